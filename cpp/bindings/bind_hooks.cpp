// Sets the CPU backend's compiler, which is in Python (llvmlite). Also binds entry points for
// tests, which run one stage at a time on IR text.

#include "backends/cpu/cpu_calibration.h"
#include "backends/cpu/cpu_capabilities.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cuda/cuda_device.h"
#include "backends/cuda/nvrtc.h"
#include "backends/cuda/services.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/options.h"
#include "bindings/bindings.h"
#include "driver/pipeline.h"
#include "driver/targets.h"
#include "lower/interpreter.h"
#include "lower/text.h"
#include "render/llvm_ir.h"
#include "render/msl.h"

namespace rune::bindings {

namespace {

// Holds a Python object that any C++ thread may release. It is freed with the GIL held, and kept at
// exit.
std::shared_ptr<void> keep_alive(py::object object) {
  auto* raw = object.release().ptr();
  return std::shared_ptr<void>(raw, [](void* p) {
    if (!Py_IsInitialized()) return;
    const py::gil_scoped_acquire gil;
    Py_DECREF(static_cast<PyObject*>(p));
  });
}

// Python's signal handlers run only on its main thread, so other threads need not wait for the GIL.
unsigned long main_thread = 0;

void handle_signals() {
  if (PyThread_get_thread_ident() != main_thread || !Py_IsInitialized()) return;
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void set_compile_hook(const py::function& compile_module) {
  const std::shared_ptr<void> function = keep_alive(compile_module);
  runtime::set_compile_hook(
      [function](const std::string& text, const std::vector<std::string>& names) {
        const py::gil_scoped_acquire gil;
        try {
          const py::handle call(static_cast<PyObject*>(function.get()));
          const auto [addresses, code] = call(text, names, options().cache, options().cache_dir)
                                             .cast<std::pair<std::vector<uintptr_t>, py::object>>();
          runtime::CompiledModule module;
          for (const uintptr_t address : addresses)
            // NOLINTNEXTLINE(performance-no-int-to-ptr): in Python, addresses are integers
            module.entry_points.push_back(reinterpret_cast<void*>(address));
          module.keep_alive = keep_alive(code);
          return module;
        } catch (const py::error_already_set& e) {
          if (!e.matches(PyExc_Exception)) throw;  // Ctrl-C
          user_error(ErrorKind::Runtime, "compile: cannot compile the module with LLVM (", e.what(),
                     ")");
        }
      });
}

// Sets the functions of Python that the CUDA backend calls. They are in the module
// rune_jit.backends.cuda, which `module` loads.
void set_cuda_module(const py::function& module) {
  const std::shared_ptr<void> load = keep_alive(module);
  const auto call = [load](const char* function, const auto&... arguments) {
    const py::handle loader(static_cast<PyObject*>(load.get()));
    return loader().attr(function)(arguments...);
  };
  const auto files = [call](const char* function) {
    return [call, function] {
      const py::gil_scoped_acquire gil;
      return call(function).template cast<std::vector<std::string>>();
    };
  };
  cuda::services() = {files("nvrtc_files"), files("cublas_files"),
                      [call](const std::string& key) -> std::optional<std::string> {
                        if (!options().cache) return {};
                        const py::gil_scoped_acquire gil;
                        const py::object code = call("read_cache", options().cache_dir, key);
                        return code.is_none() ? std::nullopt
                                              : std::optional(code.cast<std::string>());
                      },
                      [call](const std::string& key, const std::string& code) {
                        if (!options().cache) return;
                        const py::gil_scoped_acquire gil;
                        call("write_cache", options().cache_dir, key, py::bytes(code));
                      }};
}

// Runs a kernel in place on arrays, one for each Define_Global, and its other arguments. Raises an
// error if the interpreter finds an access out of bounds, a race, or a barrier that some threads do
// not reach.
void interpret(const std::string& text, const std::vector<py::array>& arrays, bool reverse_order) {
  const lower::Kernel kernel = lower::parse(text);
  std::vector<lower::Memory> globals;
  for (const py::array& array : arrays) {
    if (!(array.flags() & py::array::c_style))
      user_error(ErrorKind::Value, "interpret: cannot use an array (it is not C-contiguous)");
    globals.push_back({const_cast<void*>(array.data()), array.size()});
  }
  lower::InterpreterOptions options;
  options.reverse_order = reverse_order;
  const py::gil_scoped_release release;
  lower::Interpreter(kernel).run(globals, kernel.arguments, options);
}

runtime::CpuFigures measure_cpu() {
  const py::gil_scoped_release release;
  return runtime::measure_cpu(runtime::built_in_cpu_capabilities());
}

// Reads a graph, a schedule or kernels as text, verifies it and prints it again.
std::pair<std::string, std::vector<std::string>> reprint(const std::string& text) {
  const driver::State state = driver::parse(text, driver::find_target("cpu").capabilities());
  return {driver::print(state), driver::verify(state)};
}

}  // namespace

void bind_hooks(py::module_& m) {
  const py::object main = py::module_::import("threading").attr("main_thread")();
  main_thread = main.attr("ident").cast<unsigned long>();
  set_interrupt_hook(handle_signals);
  m.def("set_compile_hook", &set_compile_hook, py::arg("compile_module"),
        "Sets the compiler of LLVM IR: compile_module(ir, names, cache, cache_dir) -> (addresses, "
        "keep_alive). The last two arguments are options.");
  m.def("set_cuda_module", &set_cuda_module, py::arg("load"),
        "Sets the function that loads rune_jit.backends.cuda, whose functions the CUDA backend "
        "calls.");
  m.def("describe_cuda", &cuda::describe,
        "NVIDIA's driver, the devices and NVRTC, one line each. A missing one's line says why.");
  m.def(
      "compile_cuda",
      [](const std::string& text, int architecture) {
        const cuda::Nvrtc& nvrtc = cuda::Nvrtc::find(0);
        const cuda::Image image = nvrtc.compile(text, nvrtc.options(architecture, true));
        return std::pair(py::bytes(image.bytes), image.log);
      },
      py::arg("text"), py::arg("architecture"),
      "Compiles CUDA C++ with NVRTC, without a device. Returns PTX and the compiler's messages.");
  m.def(
      "calibration_options", [] { return std::pair(options().calibration, options().cache_dir); },
      "RUNE_JIT_CALIBRATION and RUNE_JIT_CACHE_DIR.");
  m.def(
      "cpu_figures", [] { return runtime::figures_of(runtime::cpu_capabilities()); },
      "The figures of the CPU that the cost model uses.");
  m.def(
      "built_in_cpu_figures",
      [] { return runtime::figures_of(runtime::built_in_cpu_capabilities()); },
      "The figures of the CPU that the cost model uses if none have been set.");
  m.def("release_memory", &driver::release_memory, py::call_guard<py::gil_scoped_release>(),
        "Returns the memory that devices keep for reuse to the system.");
  m.def("measure_cpu", &measure_cpu, "Measures the figures of the CPU, in some 30 ms.");
  m.def("set_cpu_figures", &runtime::calibrate_cpu, py::arg("figures"),
        "Sets the figures of the CPU for programs that are lowered from now on. Raises ValueError "
        "for a figure that is not positive and finite.");
  m.def("interpret", &interpret, py::arg("kernel"), py::arg("arrays"),
        py::arg("reverse_order") = false);
  m.def("reprint", &reprint, py::arg("text"),
        "Reads IR text (a graph, a schedule or kernels). Returns it as it is printed again, and "
        "the verifier's violations.");
  m.def(
      "render_llvm",
      [](const std::string& kernel) { return render::render_llvm(lower::parse(kernel)); },
      py::arg("kernel"), "LLVM IR of a kernel's text.");
  m.def(
      "render_msl",
      [](const std::string& kernel) { return render::render_msl(lower::parse(kernel)); },
      py::arg("kernel"), "Metal source of a kernel's text.");
}

}  // namespace rune::bindings
