// Binds the base type of rune_jit.Array, and the memory of devices that do not use the host's.
#include "bindings/array.h"

#include <pybind11/gil_safe_call_once.h>
#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "driver/targets.h"
#include "runtime/caching_allocator.h"

namespace rune::bindings {

namespace {

struct ArrayObject {
  PyObject ob_base;  // what PyObject_HEAD declares
  PyObject* memory;
  PyObject* device;
  PyObject* views;  // see views_of; may be null
};

// The Python class, whose instances programs return. It is never freed.
PyTypeObject* array_base = nullptr;
PyTypeObject* array_class = nullptr;
bool has_instances = false;  // whether it has ever had any

ArrayObject* as_array(py::handle object) {
  return reinterpret_cast<ArrayObject*>(object.ptr());
}

void free_array(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(as_array(self)->memory);
  Py_XDECREF(as_array(self)->device);
  Py_XDECREF(as_array(self)->views);
  type->tp_free(self);
  Py_DECREF(type);  // each instance of a heap type holds a reference to it
}

// The buffer protocol. The buffer is the host's memory, or a read-only copy of the device's.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    const py::handle memory = as_array(self)->memory;
    const bool is_copy = !is_ndarray(memory, false);
    if (is_copy && (flags & PyBUF_WRITABLE)) {
      PyErr_SetString(PyExc_BufferError,
                      "Array: cannot give a writeable buffer (the elements are on a device)\n"
                      "hint: numpy.array(x) copies them");
      return -1;
    }
    const py::array host = to_host(memory);
    const int status = PyObject_GetBuffer(host.ptr(), view, flags);
    if (status == 0 && is_copy) view->readonly = 1;
    return status;
  } catch (...) {
    raise_current_exception();
  }
  return -1;
}

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "Array: cannot be called\nhint: rune_jit.asarray(x) makes one from an array");
  return nullptr;
}

PyTypeObject* make_base() {
  static PyMemberDef members[] = {
      {"_memory", T_OBJECT_EX, offsetof(ArrayObject, memory), 0, nullptr},
      {"_device", T_OBJECT_EX, offsetof(ArrayObject, device), READONLY, nullptr},
      {"_views", T_OBJECT, offsetof(ArrayObject, views), 0, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&free_array)},
                         {Py_tp_members, members},
                         {Py_tp_new, reinterpret_cast<void*>(&refuse_new)},
                         {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
                         {0, nullptr}};
  PyType_Spec spec = {"rune_jit._core.ArrayBase", sizeof(ArrayObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  return type;
}

// Memory of the caching allocator, as the base object of an ndarray.
struct BlockObject {
  PyObject ob_base;
  void* memory;
  size_t bytes;
};

PyTypeObject* block_type = nullptr;  // never freed

void free_block(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  const auto* block = reinterpret_cast<BlockObject*>(self);
  runtime::caching_allocator().deallocate(block->memory, block->bytes);
  type->tp_free(self);
  Py_DECREF(type);
}

// NumPy lets an array become writable again if its base gives a writable buffer.
int get_block_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto* block = reinterpret_cast<BlockObject*>(self);
  return PyBuffer_FillInfo(view, self, block->memory, static_cast<Py_ssize_t>(block->bytes),
                           /*readonly=*/0, flags);
}

PyTypeObject* make_block_type() {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&free_block)},
                         {Py_bf_getbuffer, reinterpret_cast<void*>(&get_block_buffer)},
                         {0, nullptr}};
  PyType_Spec spec = {"rune_jit._core.Memory", sizeof(BlockObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  return type;
}

// Whether an Array's memory can be replaced without anybody noticing: it is a program's result, and
// no view, buffer or running program refers to it.
bool is_sole_owner(py::handle memory) {
  if (memory.ref_count() != 1) return false;
  const auto* proxy = py::detail::array_proxy(memory.ptr());
  return proxy->base && Py_TYPE(proxy->base) == block_type && Py_REFCNT(proxy->base) == 1;
}

// Copies memory to another device directly. Returns nothing if that is impossible.
std::optional<std::shared_ptr<DeviceMemory>> copy_to(const DeviceMemory& memory,
                                                     const std::string& device) {
  memory.verify();
  auto result = std::make_shared<DeviceMemory>(driver::open_device(device), memory.type());
  const size_t bytes = bytes_of(memory.type());
  if (!result->device().copy_from(memory.device(), result->get(), memory.get(), bytes))
    return std::nullopt;
  return result;
}

std::shared_ptr<DeviceMemory> from_host(const py::array& array, const std::string& device) {
  const py::array source = py::array::ensure(array, py::array::c_style);
  const ArrayType type{to_dtype(source.dtype()),
                       Ints(source.shape(), source.shape() + source.ndim())};
  auto memory = std::make_shared<DeviceMemory>(driver::open_device(device), type);
  memory->copy_in(source.data());
  return memory;
}

}  // namespace

size_t bytes_of(const ArrayType& type) {
  return static_cast<size_t>(num_elements(type.shape)) * size_of(type.dtype);
}

bool fits(const ArrayHeader& header, const ArrayType& type) {
  return header.dtype == type.dtype && header.rank == static_cast<int>(type.shape.size()) &&
         std::equal(type.shape.begin(), type.shape.end(), header.shape);
}

DeviceMemory::DeviceMemory(std::shared_ptr<runtime::Device> device, ArrayType type)
    : device_(std::move(device)), type_(std::move(type)), bytes_(bytes_of(type_)) {
  if (!bytes_) return;
  memory_ = device_->allocator().allocate(bytes_);
  runtime::note_device_memory(*device_, static_cast<int64_t>(bytes_));
}

DeviceMemory::DeviceMemory(std::shared_ptr<runtime::Device> device, ArrayType type, void* memory,
                           std::function<void()> release)
    : device_(std::move(device)),
      type_(std::move(type)),
      bytes_(bytes_of(type_)),
      memory_(memory),
      release_(std::move(release)) {}

DeviceMemory::~DeviceMemory() {
  if (release_) {
    try {
      device_->interchange()->when_done(std::move(release_));
    } catch (const UserError&) {  // an error has destroyed the context, and the memory with it
    }
    return;
  }
  if (!memory_) return;
  device_->allocator().deallocate(memory_, bytes_);
  runtime::note_device_memory(*device_, -static_cast<int64_t>(bytes_));
}

void DeviceMemory::copy_in(const void* host) {
  if (memory_) device_->copy_in(memory_, host, bytes_);
}

void DeviceMemory::copy_out(void* host) const {
  if (memory_) device_->copy_out(host, memory_, bytes_);
}

void DeferredCheck::verify() {
  if (!check_) return;
  check_();
  check_ = nullptr;
}

void DeviceMemory::add_checks(const DeferredChecks& checks) {
  for (const auto& check : checks)
    if (!contains(checks_, check)) checks_.push_back(check);
}

void DeviceMemory::verify() const {
  for (const auto& check : checks_) check->verify();
}

std::shared_ptr<DeviceMemory> DeviceMemory::copy() const {
  auto result = std::make_shared<DeviceMemory>(device_, type_);
  result->checks_ = checks_;
  if (bytes_) device_->copy(result->memory_, memory_, bytes_);
  return result;
}

py::array make_ndarray(const ArrayType& type, const py::dtype& dtype, void* memory,
                       py::object owner) {
  const auto& api = py::detail::npy_api::get();
  static_assert(sizeof(Py_intptr_t) == sizeof(Ints::value_type));
  auto array = py::reinterpret_steal<py::array>(api.PyArray_NewFromDescr_(
      api.PyArray_Type_, py::object(dtype).release().ptr(), static_cast<int>(type.shape.size()),
      reinterpret_cast<const Py_intptr_t*>(type.shape.data()), nullptr, memory,
      py::detail::npy_api::NPY_ARRAY_WRITEABLE_, nullptr));
  if (!array || api.PyArray_SetBaseObject_(array.ptr(), owner.release().ptr()) != 0)
    throw py::error_already_set();
  return array;
}

py::array allocate_array(const ArrayType& type, const py::dtype& dtype) {
  auto owner = py::reinterpret_steal<py::object>(block_type->tp_alloc(block_type, 0));
  if (!owner) throw py::error_already_set();
  auto* block = reinterpret_cast<BlockObject*>(owner.ptr());
  block->bytes = std::max<size_t>(bytes_of(type), 1);
  block->memory = runtime::caching_allocator().allocate(block->bytes);
  return make_ndarray(type, dtype, block->memory, std::move(owner));
}

bool is_array(py::handle object) {
  const PyTypeObject* const type = Py_TYPE(object.ptr());
  if (type == ndarray_class) return false;  // the most frequent type
  return type == array_class || PyObject_TypeCheck(object.ptr(), array_base);
}

py::object memory_of(py::handle array) {
  return py::reinterpret_borrow<py::object>(as_array(array)->memory);
}

void set_memory(py::handle array, py::object memory) {
  PyObject* old = std::exchange(as_array(array)->memory, memory.release().ptr());
  Py_XDECREF(old);
}

void copy_elements(py::handle to, const py::array& from) {
  const ArrayHeader header = header_of(to);
  const ArrayHeader source = header_of(from);
  if (header.contiguous && source.contiguous) {
    std::memcpy(header.data, source.data, source.bytes());
    return;
  }
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> copyto;
  copyto.call_once_and_store_result([] { return py::module_::import("numpy").attr("copyto"); });
  copyto.get_stored()(to, from);
}

void write_array(py::handle array, const py::object& memory) {
  const py::handle old = as_array(array)->memory;
  const bool is_in_host = is_ndarray(memory, false);
  if (is_ndarray(old, false)) {
    if (is_in_host && is_sole_owner(old) && is_sole_owner(memory)) return set_memory(array, memory);
    return copy_elements(old, to_host(memory));
  }
  const auto& device = old.cast<const DeviceMemory&>().device();
  const bool is_there = !is_in_host && &memory.cast<const DeviceMemory&>().device() == &device;
  const py::object there =
      is_there ? memory
               : py::cast(from_host(to_host(memory), device_of(array).cast<std::string>()));
  if (const py::handle views = views_of(array))
    views.attr("write")(array, there);
  else
    set_memory(array, there);
}

py::handle views_of(py::handle array) {
  PyObject* const views = as_array(array)->views;
  return views == Py_None ? nullptr : views;
}

py::handle device_of(py::handle array) {
  return as_array(array)->device;
}

bool has_made_arrays() {
  return has_instances;
}

py::object make_array(py::object memory, py::handle device) {
  auto array = py::reinterpret_steal<py::object>(array_class->tp_alloc(array_class, 0));
  if (!array) throw py::error_already_set();
  as_array(array)->memory = memory.release().ptr();
  as_array(array)->device = device.inc_ref().ptr();
  has_instances = true;
  return array;
}

py::array to_host(py::handle memory) {
  if (is_ndarray(memory, false)) return py::reinterpret_borrow<py::array>(memory);
  const auto& device_memory = memory.cast<const DeviceMemory&>();
  device_memory.verify();
  py::array array = allocate_array(device_memory.type(), to_numpy(device_memory.type().dtype));
  void* data = array.mutable_data();
  const py::gil_scoped_release release;
  device_memory.copy_out(data);
  return array;
}

void bind_array(py::module_& m) {
  array_base = array_class = make_base();
  block_type = make_block_type();
  m.add_object("ArrayBase", reinterpret_cast<PyObject*>(array_base));
  m.def(
      "set_array_class",
      [](const py::type& type) {
        array_class = reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr());
      },
      py::arg("type"), "Sets the class of the arrays that programs return.");
  m.def("make_array", &make_array, py::arg("memory"), py::arg("device"));
  m.def("has_made_arrays", &has_made_arrays, "Whether there has been an Array in this process.");
  m.def("write_array", &write_array, py::arg("array"), py::arg("memory"),
        "Replaces the elements of an Array and of all Arrays that are views of the same array.");
  m.def("to_host", &to_host, py::arg("memory"),
        "The elements as a numpy.ndarray: the memory itself, or a copy of the device's.");
  m.def(
      "has_host_memory",
      [](const std::string& device) {
        return driver::open_device(device)->addresses_host_memory();
      },
      py::arg("device"),
      "Whether a device computes on the host's memory. Raises for a device that cannot run here.");
  m.def(
      "has_dtype",
      [](const std::string& device, const py::dtype& dtype) {
        const auto known = dtype_of(dtype);
        return known && driver::find_target(device).capabilities().has_dtype(*known);
      },
      py::arg("device"), py::arg("dtype"), "Whether a device's programs compute with a dtype.");
  m.def(
      "synchronize",
      [](const std::string& device) {
        const auto opened = driver::open_device(device);
        const py::gil_scoped_release release;
        opened->synchronize();
      },
      py::arg("device"),
      "Waits for a device's launches. Raises the error of a launch that failed.");
  py::class_<DeviceMemory, std::shared_ptr<DeviceMemory>>(
      m, "DeviceMemory", "Elements in C order, in memory that only a device can address.")
      .def(py::init(&from_host), py::arg("array"), py::arg("device"))
      .def("copy", &DeviceMemory::copy)
      .def("copy_to", &copy_to, py::arg("device"),
           "Copies the memory to another device directly. None if that is impossible.")
      .def("verify", &DeviceMemory::verify,
           "Waits for the device. Raises the error of a failed check of the programs that computed "
           "the elements.")
      .def_property_readonly(
          "shape", [](const DeviceMemory& d) { return py::tuple(py::cast(d.type().shape)); })
      .def_property_readonly("dtype",
                             [](const DeviceMemory& d) { return to_numpy(d.type().dtype); });
}

}  // namespace rune::bindings
