// Binds compiled programs, which run on NumPy's and device arrays.
#include <algorithm>
#include <list>
#include <memory>

#include "base/error.h"
#include "bindings/program.h"
#include "runtime/thread_pool.h"
#include "types/scalar.h"

namespace rune::bindings {

namespace {

// A shorter program keeps the GIL. Releasing and acquiring it takes as long as several hundred
// instructions, and much longer if another thread waits for it.
constexpr double kBriefNs = 2000;

// Memory for one number, aligned for any dtype.
struct alignas(16) ScalarStorage {
  unsigned char bytes[16];
};

// The values of a program's variables for one run.
class Sizes {
 public:
  Sizes(const std::vector<SymVar>& vars, const std::map<std::string, int64_t>& given)
      : vars_(vars), values_(vars.size()) {
    for (const auto& [name, value] : given) {
      const auto var =
          std::find_if(vars.begin(), vars.end(), [&](const SymVar& v) { return v.name == name; });
      if (var == vars.end())
        user_error(ErrorKind::Value, "program: cannot set ", name, " (no variable has this name)");
      set(static_cast<size_t>(var - vars.begin()), value);
    }
  }

  // Sets variables to sizes of arguments, along the axes whose size is a variable alone.
  void bind(const std::vector<Shape>& shapes, std::span<const py::handle> arguments) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (is_constant(shapes[i])) continue;
      const Ints sizes = shape_of(arguments[i]);
      if (sizes.size() != shapes[i].size()) continue;
      for (size_t d = 0; d < sizes.size(); ++d)
        for (size_t v = 0; v < vars_.size(); ++v)
          if (shapes[i][d] == Dim(vars_[v])) set(v, sizes[d]);
    }
  }

  std::vector<int64_t> values() const {
    std::vector<int64_t> result;
    for (size_t v = 0; v < vars_.size(); ++v) {
      const bool is_known = values_[v] || vars_[v].min_val == vars_[v].max_val;
      if (!is_known)
        user_error(ErrorKind::Value, "program: cannot run without a value of ", vars_[v].name,
                   " (no argument has this size)\nhint: run(..., ", vars_[v].name, "=...)");
      result.push_back(values_[v].value_or(vars_[v].min_val));
    }
    return result;
  }

  std::vector<ArrayType> of(std::vector<ArrayType> types, const std::vector<Shape>& shapes) const {
    const auto value = [&](const SymVar& var) {
      return *values_[std::find(vars_.begin(), vars_.end(), var) - vars_.begin()];
    };
    for (size_t i = 0; i < types.size(); ++i)
      for (size_t d = 0; d < shapes[i].size(); ++d)
        types[i].shape[d] = shapes[i][d].evaluate(value);
    return types;
  }

 private:
  // The shape of an array. Any other object gives {}.
  static Ints shape_of(py::handle argument) {
    const py::object memory =
        is_array(argument) ? memory_of(argument) : py::reinterpret_borrow<py::object>(argument);
    if (!is_ndarray(memory, false))
      return is_array(argument) ? memory.cast<const DeviceMemory&>().type().shape : Ints{};
    const ArrayHeader header = header_of(memory);
    return Ints(header.shape, header.shape + header.rank);
  }

  void set(size_t v, int64_t value) {
    const SymVar& var = vars_[v];
    if (value < var.min_val || value > var.max_val)
      user_error(ErrorKind::Value, "program: cannot run with ", var.name, " = ", value,
                 " (it lies between ", var.min_val, " and ", var.max_val, ")");
    if (values_[v] && *values_[v] != value)
      user_error(ErrorKind::Value, "program: cannot run with ", var.name, " = ", *values_[v],
                 " and ", value, " (two arguments differ)");
    values_[v] = value;
  }

  const std::vector<SymVar>& vars_;
  std::vector<std::optional<int64_t>> values_;
};

// The type of the memory that holds an array. Its inner axes have room for the largest sizes, so
// that its strides do not depend on the sizes of a run.
ArrayType stored(const ArrayType& largest, const ArrayType& now) {
  ArrayType result = now;
  for (size_t d = 1; d < result.shape.size(); ++d) result.shape[d] = largest.shape[d];
  return result;
}

std::vector<ArrayType> all_stored(const std::vector<ArrayType>& largest,
                                  const std::vector<ArrayType>& now) {
  std::vector<ArrayType> result;
  for (size_t i = 0; i < now.size(); ++i) result.push_back(stored(largest[i], now[i]));
  return result;
}

// The part of `array` that holds the elements of an array of this shape.
py::array part(const py::array& array, const Ints& shape) {
  py::tuple index(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) index[d] = py::slice(0, shape[d], 1);
  return array[index];
}

[[noreturn]] void wrong_argument(size_t i, const ArrayType& type, py::handle argument) {
  user_error(ErrorKind::Type, "program: cannot run argument ", i, " of ", numpy_name(type.dtype),
             shape_text(type.shape), " on ", std::string(py::str(py::type::of(argument))));
}

bool store_complex(py::handle argument, DType dtype, ScalarStorage& storage) {
  if (!PyComplex_CheckExact(argument.ptr())) return false;
  const Py_complex number = PyComplex_AsCComplex(argument.ptr());
  const DType part = real_of(dtype);
  Scalar::of(part, number.real).store(storage.bytes);
  Scalar::of(part, number.imag).store(storage.bytes + size_of(part));
  return true;
}

// Stores a Python number, or a float64 of NumPy's, as the dtype's bytes. Returns false for other
// objects.
bool store_number(py::handle argument, DType dtype, ScalarStorage& storage) {
  if (is_complex(dtype)) return store_complex(argument, dtype, storage);
  const bool is_float64 = dtype == DType::Float64 && PyFloat_Check(argument.ptr());  // NumPy's, too
  if (is_float64 || PyFloat_CheckExact(argument.ptr())) {
    Scalar::of(DType::Float64, PyFloat_AS_DOUBLE(argument.ptr())).cast(dtype).store(storage.bytes);
    return true;
  }
  if (PyLong_CheckExact(argument.ptr()) || PyBool_Check(argument.ptr())) {
    Scalar::of(DType::Int64, argument.cast<int64_t>()).cast(dtype).store(storage.bytes);
    return true;
  }
  return false;
}

// Pointers to the arguments' memory for one run, and the objects that keep the memory alive.
class RunArguments {
 public:
  // The pointers are to memory of `device`, or to the host's memory if it is null.
  RunArguments(std::span<const py::handle> arguments, const std::vector<ArrayType>& types,
               std::shared_ptr<runtime::Device> device)
      : device_(std::move(device)) {
    pointers_.reserve(types.size() + kResults);
    for (size_t i = 0; i < types.size(); ++i)
      pointers_.push_back(pointer(arguments[i], types[i], i));
  }
  // Of the arguments. There is room for a few results behind them.
  std::vector<void*>& pointers() { return pointers_; }
  // Conditions that must hold for the arguments, and so for the results.
  const DeferredChecks& checks() const { return checks_; }
  // Whether launches must have run before this object is destroyed.
  bool must_be_waited_for() const {
    return !adopted_.empty() || !device_ || !device_->allocator().defers_frees();
  }

 private:
  void* pointer(py::handle argument, const ArrayType& type, size_t i) {
    if (is_array(argument)) return array_pointer(argument, type, i);
    if (is_ndarray(argument, false)) return host_pointer(argument, type, i);
    if (!type.shape.empty()) wrong_argument(i, type, argument);
    ScalarStorage number;
    if (store_number(argument, type.dtype, number)) {
      numbers_.push_back(number);
      return on_device(numbers_.back().bytes, type);
    }
    const py::array array = py::array::ensure(argument);
    if (!array || !fits(header_of(array), type)) wrong_argument(i, type, argument);
    return keep(array, type);
  }

  void* array_pointer(py::handle array, const ArrayType& type, size_t i) {
    const py::object memory = memory_of(array);
    kept_.push_back(memory);  // because another thread may replace the Array's memory
    if (is_ndarray(memory, false)) return host_pointer(memory, type, i);
    const auto& there = memory.cast<const DeviceMemory&>();
    if (there.type() != type) wrong_argument(i, type, memory);
    checks_.insert(checks_.end(), there.checks().begin(), there.checks().end());
    if (&there.device() != device_.get()) return keep(to_host(memory), type);
    if (reinterpret_cast<uintptr_t>(there.get()) % device_->alignment() == 0) return there.get();
    copies_.push_back(there.copy());  // another library's memory may lack the alignment
    return copies_.back()->get();
  }

  void* host_pointer(py::handle array, const ArrayType& type, size_t i) {
    const ArrayHeader header = header_of(array);
    if (!fits(header, type)) wrong_argument(i, type, array);
    return header.contiguous ? on_device(header.data, type) : keep(array, type);
  }

  // Makes a contiguous, aligned copy and keeps it.
  void* keep(py::handle array, const ArrayType& type) {
    const py::array copy = py::array::ensure(
        array, py::array::c_style | static_cast<int>(py::detail::npy_api::NPY_ARRAY_ALIGNED_));
    if (!copy)
      user_error(ErrorKind::Memory, "program: cannot copy an argument of shape ",
                 std::string(py::str(array.attr("shape"))), " to contiguous memory (",
                 std::string(py::str(array.attr("nbytes"))), " bytes)");
    kept_.push_back(copy);
    return on_device(const_cast<void*>(copy.data()), type);
  }

  void* on_device(void* host, const ArrayType& type) {
    if (!device_) return host;
    runtime::Allocator& allocator = device_->allocator();
    if (allocator.adopt(host, bytes_of(type))) {
      adopted_.emplace_back(host, [&allocator](void* memory) { allocator.release(memory); });
      return host;
    }
    copies_.push_back(std::make_shared<DeviceMemory>(device_, type));
    copies_.back()->copy_in(host);
    return copies_.back()->get();
  }

  static constexpr size_t kResults = 4;

  std::shared_ptr<runtime::Device> device_;
  std::vector<void*> pointers_;
  std::list<ScalarStorage> numbers_;  // whose addresses stay as they are
  std::vector<py::object> kept_;
  DeferredChecks checks_;
  std::vector<std::shared_ptr<DeviceMemory>> copies_;
  std::vector<std::shared_ptr<void>> adopted_;  // host memory that the device uses in place
};

// Copies an argument to memory with room for the largest sizes.
py::array stored_copy(py::handle argument, const ArrayType& type, const ArrayType& memory,
                      size_t i) {
  const bool has_elements = is_array(argument) || is_ndarray(argument, false);
  const py::array from =
      has_elements ? to_host(is_array(argument) ? memory_of(argument) : argument) : py::array();
  if (!has_elements || !fits(header_of(from), type)) wrong_argument(i, type, argument);
  py::array result = allocate_array(memory, from.dtype());
  part(result, type.shape)[py::ellipsis()] = from;
  return result;
}

}  // namespace

BoundProgram::BoundProgram(std::shared_ptr<const runtime::Executable> executable,
                           const std::vector<SizedType>& inputs,
                           const std::vector<SizedType>& outputs, std::vector<SymVar> vars)
    : executable_(std::move(executable)), vars_(std::move(vars)) {
  for (const SizedType& type : inputs) {
    inputs_.push_back({type.dtype, bounds_of(type.shape)});
    input_shapes_.push_back(type.shape);
  }
  for (const SizedType& type : outputs) {
    outputs_.push_back({type.dtype, bounds_of(type.shape)});
    output_shapes_.push_back(type.shape);
    output_dtypes_.push_back(to_numpy(type.dtype));
  }
  host_memory_ = executable_->device->addresses_host_memory();
  is_brief_ = host_memory_ && executable_->estimated_ns < kBriefNs;
}

std::vector<py::object> BoundProgram::run(std::span<const py::handle> arguments,
                                          const std::map<std::string, int64_t>& values,
                                          std::span<void* const> places) const {
  if (arguments.size() != inputs_.size())
    user_error(ErrorKind::Type, "program: cannot run with ", arguments.size(),
               " arguments (it has ", inputs_.size(), " inputs)");
  if (vars_.empty() && values.empty()) return run_sized(arguments, inputs_, outputs_, {}, places);
  Sizes sizes(vars_, values);
  sizes.bind(input_shapes_, arguments);
  const std::vector<int64_t> vars = sizes.values();
  const std::vector<ArrayType> inputs = sizes.of(inputs_, input_shapes_),
                               outputs = sizes.of(outputs_, output_shapes_);
  const std::vector<ArrayType> in = all_stored(inputs_, inputs),
                               out = all_stored(outputs_, outputs);
  std::vector<py::handle> handles(arguments.begin(), arguments.end());
  std::vector<py::object> copies;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == inputs[i]) continue;
    copies.push_back(stored_copy(arguments[i], inputs[i], in[i], i));
    handles[i] = copies.back();
  }
  std::vector<py::object> results = run_sized(handles, in, out, vars);
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] != outputs[i]) results[i] = compact_copy(results[i], outputs[i], output_dtypes_[i]);
  return results;
}

bool BoundProgram::may_write_to(size_t input, size_t output) const {
  return host_memory_ && vars_.empty() && output < outputs_.size() && !executable_->reads(input) &&
         !executable_->calls_host();
}

void* BoundProgram::place_in(py::handle array, size_t output) const {
  if (!is_ndarray(array, false)) return nullptr;
  const ArrayHeader header = header_of(array);
  constexpr uintptr_t kStreamed = 64;
  const bool is_aligned =
      !executable_->streamed[output] || reinterpret_cast<uintptr_t>(header.data) % kStreamed == 0;
  return header.contiguous && is_aligned && fits(header, outputs_[output]) ? header.data : nullptr;
}

py::object BoundProgram::compact_copy(const py::object& memory, const ArrayType& type,
                                      const py::dtype& dtype) const {
  py::array array = allocate_array(type, dtype);
  array[py::ellipsis()] = part(to_host(memory), type.shape);
  if (host_memory_) return array;
  auto result = std::make_shared<DeviceMemory>(executable_->device, type);
  result->copy_in(array.data());
  return py::cast(std::move(result));
}

std::vector<py::object> BoundProgram::run_sized(std::span<const py::handle> arguments,
                                                const std::vector<ArrayType>& inputs,
                                                const std::vector<ArrayType>& outputs,
                                                std::span<const int64_t> vars,
                                                std::span<void* const> places) const {
  RunArguments in(arguments, inputs, host_memory_ ? nullptr : executable_->device);
  std::vector<py::object> results;
  results.reserve(outputs.size());
  std::vector<void*>& pointers = in.pointers();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!places.empty() && places[i]) {
      pointers.push_back(places[i]);
      results.push_back(py::none());
    } else if (host_memory_) {
      py::array array = allocate_array(outputs[i], output_dtypes_[i]);
      pointers.push_back(array.mutable_data());
      results.push_back(std::move(array));
    } else {
      auto memory = std::make_shared<DeviceMemory>(executable_->device, outputs[i]);
      memory->add_checks(in.checks());
      pointers.push_back(memory->get());
      results.push_back(py::cast(std::move(memory)));
    }
  }
  std::optional<py::gil_scoped_release> release;
  if (!is_brief_) release.emplace();
  const std::span<void* const> all(pointers);
  executable_->run(all.first(inputs.size()), all.subspan(inputs.size()), vars);
  // For results in the device's memory, the wait comes when they are read.
  if (in.must_be_waited_for()) executable_->device->synchronize();
  return results;
}

py::object to_numpy_result(const py::object& memory) {
  py::array array = to_host(memory);
  if (array.ndim() != 0) return array;
  return array[py::tuple()];  // a NumPy scalar
}

void bind_executable(py::module_& m) {
  py::class_<BoundProgram, std::shared_ptr<BoundProgram>>(m, "Executable", "A compiled program.")
      .def(
          "run",
          [](const BoundProgram& p, const py::sequence& arguments,
             const std::map<std::string, int64_t>& values) {
            std::vector<py::object> owned;
            std::vector<py::handle> handles;
            for (const py::handle x : arguments) {
              owned.push_back(py::reinterpret_borrow<py::object>(x));
              handles.push_back(x);
            }
            std::vector<py::object> results = p.run(handles, values);
            std::transform(results.begin(), results.end(), results.begin(), to_numpy_result);
            return results;
          },
          py::arg("arguments"), py::arg("values") = std::map<std::string, int64_t>{},
          "Runs on arrays (or numbers, for 0-d inputs) of the compiled types. Returns a list of "
          "results. `values` has the symbolic variables that are not sizes of arguments, by name.")
      .def(
          "run_alone",
          [](const BoundProgram& p, const std::vector<py::object>& arguments) {
            const runtime::RunAlone alone;
            const std::vector<py::handle> handles(arguments.begin(), arguments.end());
            std::vector<py::object> results = p.run(handles);
            std::transform(results.begin(), results.end(), results.begin(), to_host);
            return results;
          },
          py::arg("arguments"),
          "As `run`, but only on the calling thread. All results are arrays, even those of 0 "
          "dimensions.");
}

}  // namespace rune::bindings
