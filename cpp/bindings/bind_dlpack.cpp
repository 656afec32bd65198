// Shares memory of devices with other libraries: by DLPack and __cuda_array_interface__.

#include "base/error.h"
#include "bindings/array.h"
#include "bindings/dlpack.h"
#include "driver/targets.h"

namespace rune::bindings {

namespace {

constexpr const char* kName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

dlpack::DataType to_dlpack(DType dtype) {
  using dlpack::Code;
  const auto bits = static_cast<uint8_t>(size_of(dtype) * 8);
  if (dtype == DType::Bool) return {Code::Bool, bits, 1};
  if (dtype == DType::Bfloat16) return {Code::Bfloat, bits, 1};
  if (is_complex(dtype)) return {Code::Complex, bits, 1};
  switch (kind(dtype)) {
    case Kind::Int: return {Code::Int, bits, 1};
    case Kind::Uint: return {Code::Uint, bits, 1};
    default: return {Code::Float, bits, 1};
  }
}

DType from_dlpack(dlpack::DataType type) {
  if (type.lanes == 1)
    for (int d = 0; d < kNumGraphDTypes; ++d) {
      const auto dtype = static_cast<DType>(d);
      const dlpack::DataType own = to_dlpack(dtype);
      if (own.code == type.code && own.bits == type.bits) return dtype;
    }
  user_error(ErrorKind::DType, "from_dlpack: cannot hold elements of DLPack's type ",
             static_cast<int>(type.code), " with ", static_cast<int>(type.bits), " bits and ",
             type.lanes, " lanes");
}

runtime::Interchange& interchange_of(const DeviceMemory& memory) {
  runtime::Interchange* const interchange = memory.device().interchange();
  if (!interchange)
    user_error(ErrorKind::Unsupported, "dlpack: cannot share memory of ", memory.device().name());
  return *interchange;
}

// The object behind a capsule, which keeps the memory alive for its consumer.
template <class ManagedTensor>
struct Export {
  ManagedTensor managed{};
  std::shared_ptr<DeviceMemory> memory;
  Ints shape;
  std::optional<int64_t> stream;  // where the consumer may use the memory

  // Any thread may call it, with or without the GIL.
  static void release(ManagedTensor* managed) {
    const std::unique_ptr<Export> self(static_cast<Export*>(managed->context));
    try {
      if (self->stream) interchange_of(*self->memory).wait_for(*self->stream);
    } catch (const UserError&) {  // an error of the consumer's commands: the next wait reports it
    }
  }
};

template <class ManagedTensor>
py::capsule make_capsule(const std::shared_ptr<DeviceMemory>& memory, std::optional<int64_t> stream,
                         const char* name) {
  auto owner = std::make_unique<Export<ManagedTensor>>();
  owner->memory = memory;
  owner->shape = memory->type().shape;
  owner->stream = stream;
  const auto [type, number] = interchange_of(*memory).device();
  ManagedTensor& managed = owner->managed;
  managed.tensor = {memory->get(),
                    {type, number},
                    static_cast<int32_t>(owner->shape.size()),
                    to_dlpack(memory->type().dtype),
                    owner->shape.data(),
                    nullptr,
                    0};
  managed.release = &Export<ManagedTensor>::release;
  managed.context = owner.get();
  py::capsule capsule(&managed, name, [](PyObject* object) {
    // A consumer renames the capsule when it takes the tensor.
    for (const char* unused : {kName, kVersionedName})
      if (PyCapsule_IsValid(object, unused)) {
        auto* const tensor = static_cast<ManagedTensor*>(PyCapsule_GetPointer(object, unused));
        tensor->release(tensor);
      }
  });
  (void)owner.release();
  return capsule;
}

py::capsule export_dlpack(const std::shared_ptr<DeviceMemory>& memory,
                          std::optional<int64_t> stream, bool versioned) {
  memory->verify();
  if (stream) interchange_of(*memory).release_to(*stream);
  if (!versioned) return make_capsule<dlpack::Managed>(memory, stream, kName);
  py::capsule capsule = make_capsule<dlpack::VersionedManaged>(memory, stream, kVersionedName);
  auto* const managed = capsule.get_pointer<dlpack::VersionedManaged>();
  managed->version = {1, 0};
  managed->flags = dlpack::kReadOnly;  // Arrays may share the memory
  return capsule;
}

bool is_c_order(const dlpack::Tensor& tensor) {
  int64_t expected = 1;
  for (int i = tensor.rank - 1; tensor.strides && i >= 0; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

// The memory and the tensor's shape. If the elements are not in C order, also the strides in
// elements and the index of the first element; the memory then has one axis.
using Imported = std::tuple<std::shared_ptr<DeviceMemory>, Ints, std::optional<Ints>, int64_t>;

Imported to_memory(const dlpack::Tensor& tensor, const std::string& device,
                   std::function<void()> release) {
  ArrayType type{from_dlpack(tensor.dtype), Ints(tensor.shape, tensor.shape + tensor.rank)};
  const Ints shape = type.shape;
  char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  std::optional<Ints> strides;
  int64_t first = 0;
  const bool is_empty = num_elements(shape) == 0;
  if (!is_empty && !is_c_order(tensor)) {
    strides.emplace(tensor.strides, tensor.strides + tensor.rank);
    int64_t last = 0;
    for (int i = 0; i < tensor.rank; ++i)
      ((*strides)[i] < 0 ? first : last) += (shape[i] - 1) * (*strides)[i];
    data += first * size_of(type.dtype);
    type.shape = {last - first + 1};
  }
  auto memory = std::make_shared<DeviceMemory>(driver::open_device(device), std::move(type), data,
                                               std::move(release));
  return {std::move(memory), shape, strides, -first};
}

template <class ManagedTensor>
Imported take_managed(const py::capsule& capsule, const std::string& device,
                      const char* used_name) {
  auto* const managed = capsule.get_pointer<ManagedTensor>();
  // From here on the tensor belongs to this consumer, whatever happens.
  if (PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw py::error_already_set();
  const std::shared_ptr<ManagedTensor> owner(managed, [](ManagedTensor* tensor) {
    if (tensor->release) tensor->release(tensor);
  });
  return to_memory(owner->tensor, device, [owner] {});
}

Imported import_dlpack(const py::capsule& capsule, const std::string& device) {
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedName)) {
    const auto version = capsule.get_pointer<dlpack::VersionedManaged>()->version;
    if (version.major > 1)
      user_error(ErrorKind::Unsupported, "from_dlpack: cannot read version ", version.major,
                 " of DLPack (1 is known)");
    return take_managed<dlpack::VersionedManaged>(capsule, device, "used_dltensor_versioned");
  }
  if (!PyCapsule_IsValid(capsule.ptr(), kName))
    user_error(ErrorKind::Value, "from_dlpack: cannot use this capsule (it has been used before)");
  return take_managed<dlpack::Managed>(capsule, device, "used_dltensor");
}

}  // namespace

void bind_dlpack(py::module_& m) {
  m.def(
      "dlpack_device",
      [](const DeviceMemory& memory) {
        runtime::Interchange* const interchange = memory.device().interchange();
        return interchange ? std::optional(interchange->device()) : std::nullopt;
      },
      py::arg("memory"),
      "DLPack's numbers for the type of a memory's device and for the device. None if other "
      "libraries cannot use the memory.");
  m.def(
      "stream_of", [](const DeviceMemory& memory) { return interchange_of(memory).stream(); },
      py::arg("memory"), "The stream in which programs use a memory.");
  m.def(
      "stream_of_device",
      [](const std::string& device) {
        runtime::Interchange* const interchange = driver::open_device(device)->interchange();
        return interchange ? std::optional(interchange->stream()) : std::nullopt;
      },
      py::arg("device"), "The stream in which a device's programs run; None if it has none.");
  m.def(
      "order_streams",
      [](const std::string& device, intptr_t stream, bool device_first) {
        runtime::Interchange* const interchange = driver::open_device(device)->interchange();
        if (!interchange)
          user_error(ErrorKind::Value, "use_stream: cannot use a stream of ", device,
                     " (it has none)");
        device_first ? interchange->release_to(stream) : interchange->run_after(stream);
      },
      py::arg("device"), py::arg("stream"), py::arg("device_first"),
      "Makes later commands of a stream wait for all launches so far. With device_first=False, "
      "makes later launches wait for all commands in the stream so far.");
  m.def(
      "address_of",
      [](const DeviceMemory& memory) { return reinterpret_cast<uintptr_t>(memory.get()); },
      py::arg("memory"));
  m.def("export_dlpack", &export_dlpack, py::arg("memory"), py::arg("stream"), py::arg("versioned"),
        "A DLPack capsule of a memory. Later commands of `stream` wait for all launches so far.");
  m.def("import_dlpack", &import_dlpack, py::arg("capsule"), py::arg("device"),
        "(memory, shape, strides, first) of a DLPack capsule of a device's memory. Without "
        "strides, the memory has the shape. With strides, it has one axis; `first` is the index of "
        "the first element, and the strides count elements.");
}

}  // namespace rune::bindings
