// Compiled programs: run on NumPy arrays.
#include <cstring>

#include "base/error.h"
#include "bindings/program.h"
#include "runtime/caching_allocator.h"
#include "types/scalar.h"

namespace rune::bindings {

namespace {

// Bytes of one number, aligned to any dtype.
struct alignas(16) ScalarStorage {
  unsigned char bytes[16];
};

// Memory of a device that the host cannot address, freed at the end of a run.
class DeviceMemory {
 public:
  DeviceMemory(runtime::Device& device, size_t bytes)
      : device_(device),
        bytes_(bytes),
        memory_(bytes ? device.allocator().allocate(bytes) : nullptr) {}
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(other.device_),
        bytes_(other.bytes_),
        memory_(std::exchange(other.memory_, nullptr)) {}
  DeviceMemory(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    if (memory_) device_.allocator().deallocate(memory_, bytes_);
  }
  void* get() const { return memory_; }
  size_t bytes() const { return bytes_; }

 private:
  runtime::Device& device_;
  size_t bytes_;
  void* memory_;
};

size_t bytes_of(const ArrayType& type) {
  return static_cast<size_t>(num_elements(type.shape)) * size_of(type.dtype);
}

bool fits(const ArrayHeader& header, const ArrayType& type) {
  return header.dtype == type.dtype && header.rank == static_cast<int>(type.shape.size()) &&
         std::equal(type.shape.begin(), type.shape.end(), header.shape);
}

[[noreturn]] void wrong_argument(size_t i, const ArrayType& type, py::handle argument) {
  user_error(ErrorKind::Type, "program: cannot run argument ", i, " of ", numpy_name(type.dtype),
             shape_text(type.shape), " on ", std::string(py::str(py::type::of(argument))));
}

// A Python number as the dtype's bytes; false if it is none.
bool store_number(py::handle argument, DType dtype, ScalarStorage& storage) {
  if (PyFloat_CheckExact(argument.ptr())) {
    Scalar::of(DType::Float64, PyFloat_AS_DOUBLE(argument.ptr())).cast(dtype).store(storage.bytes);
    return true;
  }
  if (PyLong_CheckExact(argument.ptr()) || PyBool_Check(argument.ptr())) {
    Scalar::of(DType::Int64, argument.cast<int64_t>()).cast(dtype).store(storage.bytes);
    return true;
  }
  return false;
}

// What one run needs of its arguments: pointers, and what keeps them alive.
class Arguments {
 public:
  Arguments(std::span<const py::handle> arguments, const std::vector<ArrayType>& types) {
    pointers_.reserve(types.size());
    numbers_.resize(types.size());
    for (size_t i = 0; i < types.size(); ++i)
      pointers_.push_back(pointer(arguments[i], types[i], i));
  }
  std::vector<void*>& pointers() { return pointers_; }

 private:
  void* pointer(py::handle argument, const ArrayType& type, size_t i) {
    if (is_ndarray(argument, false)) {
      const ArrayHeader header = header_of(argument);
      if (!fits(header, type)) wrong_argument(i, type, argument);
      if (header.contiguous) return header.data;
      return keep(argument);
    }
    if (!type.shape.empty()) wrong_argument(i, type, argument);
    if (store_number(argument, type.dtype, numbers_[i])) return numbers_[i].bytes;
    const py::array array = py::array::ensure(argument);
    if (!array || !fits(header_of(array), type)) wrong_argument(i, type, argument);
    return keep(array);
  }

  // A contiguous, aligned copy.
  void* keep(py::handle array) {
    const py::array copy = py::array::ensure(
        array, py::array::c_style | static_cast<int>(py::detail::npy_api::NPY_ARRAY_ALIGNED_));
    if (!copy)
      user_error(ErrorKind::Memory, "program: cannot copy an argument of shape ",
                 std::string(py::str(array.attr("shape"))), " to contiguous memory (",
                 std::string(py::str(array.attr("nbytes"))), " bytes)");
    copies_.push_back(copy);
    return const_cast<void*>(copy.data());
  }

  std::vector<void*> pointers_;
  std::vector<ScalarStorage> numbers_;
  std::vector<py::array> copies_;
};

// A fresh array whose memory goes back to the caching allocator when its last view dies.
py::array allocate_array(const ArrayType& type, const py::dtype& dtype) {
  struct Block {
    void* memory;
    size_t bytes;
  };
  const size_t bytes = std::max<size_t>(bytes_of(type), 1);
  auto* block = new Block{nullptr, bytes};
  py::capsule owner(block, [](void* p) {
    auto* b = static_cast<Block*>(p);
    if (b->memory) runtime::caching_allocator().deallocate(b->memory, b->bytes);
    delete b;
  });
  block->memory = runtime::caching_allocator().allocate(bytes);
  return py::array(dtype, type.shape, {}, block->memory, owner);
}

bool addresses_host_memory(const runtime::Device& device) {
  const std::string& name = device.name();
  return name.starts_with("cpu") || name.starts_with("interpreter") || name.starts_with("null");
}

void run_on_device(const runtime::Executable& executable, const std::vector<void*>& inputs,
                   const std::vector<ArrayType>& input_types, const std::vector<void*>& outputs,
                   const std::vector<ArrayType>& output_types) {
  runtime::Device& device = *executable.device;
  std::vector<DeviceMemory> memory;
  std::vector<void*> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    memory.emplace_back(device, bytes_of(input_types[i]));
    in.push_back(memory.back().get());
    if (in.back()) device.copy_in(in.back(), inputs[i], memory.back().bytes());
  }
  for (const ArrayType& type : output_types) {
    memory.emplace_back(device, bytes_of(type));
    out.push_back(memory.back().get());
  }
  executable.run(in, out);
  device.synchronize();
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i]) device.copy_out(outputs[i], out[i], bytes_of(output_types[i]));
}

}  // namespace

std::vector<ArrayType> to_array_types(const py::sequence& pairs) {
  std::vector<ArrayType> types;
  for (const py::handle pair : pairs) {
    const auto items = py::reinterpret_borrow<py::sequence>(pair);
    types.push_back({to_dtype(items[0]), items[1].cast<Shape>()});
  }
  return types;
}

BoundProgram::BoundProgram(std::shared_ptr<const runtime::Executable> executable,
                           std::vector<ArrayType> inputs, std::vector<ArrayType> outputs)
    : executable_(std::move(executable)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  for (const ArrayType& type : outputs_) output_dtypes_.push_back(to_numpy(type.dtype));
  host_memory_ = addresses_host_memory(*executable_->device);
}

std::vector<py::object> BoundProgram::run(std::span<const py::handle> arguments) const {
  if (arguments.size() != inputs_.size())
    user_error(ErrorKind::Type, "program: cannot run with ", arguments.size(),
               " arguments (it has ", inputs_.size(), " inputs)");
  Arguments in(arguments, inputs_);
  std::vector<py::object> results;
  std::vector<void*> out;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    py::array array = allocate_array(outputs_[i], output_dtypes_[i]);
    out.push_back(array.mutable_data());
    results.push_back(std::move(array));
  }
  {
    const py::gil_scoped_release release;
    if (host_memory_) {
      executable_->run(in.pointers(), out);
      executable_->device->synchronize();
    } else {
      run_on_device(*executable_, in.pointers(), inputs_, out, outputs_);
    }
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (outputs_[i].shape.empty()) results[i] = results[i][py::tuple()];
  return results;
}

void bind_executable(py::module_& m) {
  py::class_<BoundProgram, std::shared_ptr<BoundProgram>>(m, "Executable", "A compiled program.")
      .def(
          "run",
          [](const BoundProgram& p, const py::sequence& arguments) {
            std::vector<py::object> owned;
            std::vector<py::handle> handles;
            for (const py::handle x : arguments) {
              owned.push_back(py::reinterpret_borrow<py::object>(x));
              handles.push_back(x);
            }
            return p.run(handles);
          },
          py::arg("arguments"),
          "Runs on arrays (or numbers, for 0-d inputs) of the compiled types; a list of results.")
      .def_property_readonly("num_inputs", [](const BoundProgram& p) { return p.inputs().size(); })
      .def_property_readonly("num_outputs",
                             [](const BoundProgram& p) { return p.outputs().size(); });
}

}  // namespace rune::bindings
