#include "bindings/tracer.h"

#include <structmember.h>

#include "bindings/value.h"

namespace rune::bindings {

namespace {

// Names in the order of the fields.
constexpr const char* kTracerNames[] = {"_trace", "_storage", "_steps",     "_shape",  "_dtype",
                                        "_value", "_version", "_writeable", "_made_at"};
constexpr const char* kStorageNames[] = {"value",
                                         "original",
                                         "array",
                                         "captured",
                                         "fill",
                                         "serial",
                                         "version",
                                         "leaf",
                                         "scalar",
                                         "layout_used",
                                         "order_from",
                                         "order_known",
                                         "in_order_of_operands",
                                         "reshaped",
                                         "is_nonzero",
                                         "of_counters",
                                         "flag_of",
                                         "is_exposed",
                                         "laid_out_by",
                                         "in_c_order"};

// The Python classes derived from these types, and the class of steps. They are never freed.
PyTypeObject* tracer_type = nullptr;
PyTypeObject* storage_type = nullptr;
PyTypeObject* step_type = nullptr;

int64_t last_serial = 0;

PyObject* next_serial(PyObject*, PyObject*) {
  return PyLong_FromLongLong(++last_serial);
}

template <class Object>
Object* as(PyObject* object) {
  return reinterpret_cast<Object*>(object);
}

template <class Object>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (PyObject* field : as<Object>(self)->fields) Py_VISIT(field);
  return 0;
}

// Clears the fields. They become None, because no field may be null.
template <class Object>
int clear(PyObject* self) {
  for (PyObject*& field : as<Object>(self)->fields) Py_XSETREF(field, Py_NewRef(Py_None));
  return 0;
}

template <class Object>
void free_wrapper(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  for (PyObject*& field : as<Object>(self)->fields) Py_CLEAR(field);
  type->tp_free(self);
  Py_DECREF(type);  // each instance of a heap type holds a reference to it
}

PyObject* empty_tuple() {
  static PyObject* const empty = PyTuple_New(0);
  return empty;
}

PyObject* zero() {
  static PyObject* const number = PyLong_FromLong(0);
  return number;
}

template <class Object>
Object* allocate(PyTypeObject* type) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) throw py::error_already_set();
  for (PyObject*& field : as<Object>(self)->fields) field = Py_NewRef(Py_None);
  return as<Object>(self);
}

StorageObject* new_storage(PyTypeObject* type) {
  using enum StorageField;
  StorageObject* self = allocate<StorageObject>(type);
  Py_SETREF(self->fields[static_cast<size_t>(Serial)], next_serial(nullptr, nullptr));
  self->set(Version, zero());
  for (const StorageField flag :
       {Scalar, LayoutUsed, InOrderOfOperands, IsNonzero, OfCounters, IsExposed, InCOrder})
    self->set(flag, Py_False);
  self->set(OrderKnown, Py_True);
  self->set(OrderFrom, empty_tuple());
  self->set(Reshaped, empty_tuple());
  return self;
}

TracerObject* new_tracer(PyTypeObject* type) {
  TracerObject* self = allocate<TracerObject>(type);
  self->set(TracerField::Steps, empty_tuple());
  self->set(TracerField::Version, zero());
  self->set(TracerField::Writeable, Py_True);
  return self;
}

// Makes the function a slot of a type: C++ exceptions become Python's.
template <auto make>
PyObject* new_object(PyTypeObject* type, PyObject*, PyObject*) {
  try {
    return reinterpret_cast<PyObject*>(make(type));
  } catch (...) {
    raise_current_exception();
  }
  return nullptr;
}

// Storage(value=None, array=None, captured=None, fill=None)
int init_storage(PyObject* object, PyObject* args, PyObject* kwargs) {
  using enum StorageField;
  static const char* names[] = {"value", "array", "captured", "fill", nullptr};
  PyObject *value = Py_None, *array = Py_None, *captured = Py_None, *fill = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO", const_cast<char**>(names), &value, &array,
                                   &captured, &fill))
    return -1;
  StorageObject& self = *as<StorageObject>(object);
  self.set(Value, value);
  self.set(Original, value);
  self.set(Array, array);
  self.set(Captured, captured);
  self.set(Fill, fill);
  return 0;
}

void set_value(TracerObject& self, PyObject* trace, PyObject* value, PyObject* line, bool scalar) {
  using enum TracerField;
  StorageObject* storage = new_storage(storage_type);
  storage->set(StorageField::Value, value);
  storage->set(StorageField::Original, value);
  if (scalar) storage->set(StorageField::Scalar, Py_True);
  Py_SETREF(self.fields[static_cast<size_t>(Storage)], reinterpret_cast<PyObject*>(storage));
  self.set(Trace, trace);
  self.set(Shape, shape_of_value(value));
  self.set(Dtype, dtype_of_value(value));
  self.set(Value, value);
  self.set(MadeAt, line);
}

PyObject* line_name() {
  static PyObject* const name = PyUnicode_InternFromString("line");
  return name;
}

py::object line_of(PyObject* trace) {
  PyObject* line = PyObject_GetAttr(trace, line_name());
  if (!line) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(line);
}

// Tracer(trace, value, *, scalar=None)
int init_tracer(PyObject* object, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"trace", "value", "scalar", nullptr};
  PyObject *trace = nullptr, *value = nullptr, *scalar = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$O", const_cast<char**>(names), &trace, &value,
                                   &scalar))
    return -1;
  try {
    if (!PyValue::is_value(value)) throw py::type_error("Tracer: takes a Value");
    const bool is_scalar = scalar == Py_None ? PyTuple_GET_SIZE(shape_of_value(value)) == 0
                                             : PyObject_IsTrue(scalar) == 1;
    set_value(*as<TracerObject>(object), trace, value, line_of(trace).ptr(), is_scalar);
    return 0;
  } catch (...) {
    raise_current_exception();
  }
  return -1;
}

// tracer._init(trace, storage, steps, shape, dtype): a view of a storage. Its value is not known.
PyObject* init_view(PyObject* object, PyObject* const* args, Py_ssize_t n) {
  using enum TracerField;
  try {
    if (n != 5) throw py::type_error("Tracer._init: takes 5 arguments");
    TracerObject& self = *as<TracerObject>(object);
    self.set(Trace, args[0]);
    self.set(Storage, args[1]);
    self.set(Steps, args[2]);
    self.set(Shape, args[3]);
    self.set(Dtype, args[4]);
    self.set(Version, py::int_(-1).ptr());
    self.set(MadeAt, line_of(args[0]).ptr());
    return py::none().release().ptr();
  } catch (...) {
    raise_current_exception();
  }
  return nullptr;
}

// The buffer of the array that the object's method `_buffer` returns.
int get_tracer_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  PyObject* array = PyObject_CallMethod(self, "_buffer", nullptr);
  if (!array) return -1;
  const int status = PyObject_GetBuffer(array, view, flags);
  Py_DECREF(array);
  return status;
}

template <class Object, size_t n>
PyTypeObject* make_type(const char* name, const char* const (&names)[n], newfunc make,
                        initproc init, PyMethodDef* methods, getbufferproc buffer) {
  static_assert(sizeof(Object::fields) == n * sizeof(PyObject*));
  static PyMemberDef members[n + 1] = {};
  for (size_t i = 0; i < n; ++i)
    members[i] = {names[i], T_OBJECT_EX,
                  static_cast<Py_ssize_t>(offsetof(Object, fields) + i * sizeof(PyObject*)), 0,
                  nullptr};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                         {Py_tp_init, reinterpret_cast<void*>(init)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&free_wrapper<Object>)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&traverse<Object>)},
                         {Py_tp_clear, reinterpret_cast<void*>(&clear<Object>)},
                         {Py_tp_members, members},
                         {Py_tp_methods, methods},
                         {Py_bf_getbuffer, reinterpret_cast<void*>(buffer)},
                         {0, nullptr}};
  if (!buffer) slots[7] = {0, nullptr};
  PyType_Spec spec = {name, sizeof(Object), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  return type;
}

bool same_number(PyObject* a, PyObject* b) {
  return a == b || PyLong_AsLongLong(a) == PyLong_AsLongLong(b);
}

}  // namespace

TracerObject* as_tracer(PyObject* object) {
  return Py_TYPE(object) == tracer_type ? as<TracerObject>(object) : nullptr;
}

StorageObject& storage_of(const TracerObject& tracer) {
  return *as<StorageObject>(tracer[TracerField::Storage]);
}

PyObject* known_value(const TracerObject& tracer, PyObject* trace) {
  using enum TracerField;
  const StorageObject& storage = storage_of(tracer);
  if (tracer[Trace] != trace || storage.is(StorageField::IsExposed)) return nullptr;
  if (PyTuple_GET_SIZE(tracer[Steps]) == 0 && storage.has(StorageField::Value))
    return storage[StorageField::Value];
  const bool is_known =
      tracer.has(Value) && same_number(tracer[Version], storage[StorageField::Version]);
  return is_known ? tracer[Value] : nullptr;
}

py::object make_tracer(PyObject* trace, PyObject* value, PyObject* line) {
  auto made =
      py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(new_tracer(tracer_type)));
  const bool scalar = PyTuple_GET_SIZE(shape_of_value(value)) == 0;
  set_value(*as<TracerObject>(made.ptr()), trace, value, line, scalar);
  return made;
}

py::object make_view(const TracerObject& x, const py::object& step, PyObject* value,
                     PyObject* line) {
  using enum TracerField;
  auto made =
      py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(new_tracer(tracer_type)));
  TracerObject& view = *as_tracer(made.ptr());
  for (const TracerField same : {Trace, Storage, Dtype, Writeable}) view.set(same, x[same]);
  view.set(Steps, with_step(x, step).ptr());
  view.set(Shape, shape_of_value(value));
  view.set(Value, value);
  view.set(Version, storage_of(x)[StorageField::Version]);
  view.set(MadeAt, line);
  return made;
}

py::object make_step(const char* kind, const py::object& argument) {
  const py::tuple fields =
      py::make_tuple(py::reinterpret_steal<py::object>(PyUnicode_InternFromString(kind)), argument);
  const py::tuple args = py::make_tuple(fields);
  auto step =
      py::reinterpret_steal<py::object>(PyTuple_Type.tp_new(step_type, args.ptr(), nullptr));
  if (!step) throw py::error_already_set();
  return step;
}

PyObject* items_of_step(PyObject* step) {
  const bool is_index = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(step, 0), "index") == 0;
  return is_index ? PyTuple_GET_ITEM(step, 1) : nullptr;
}

py::tuple with_step(const TracerObject& x, const py::object& step) {
  PyObject* steps = x[TracerField::Steps];
  const auto n = static_cast<size_t>(PyTuple_GET_SIZE(steps));
  py::tuple result(n + 1);
  for (size_t i = 0; i < n; ++i) result[i] = py::handle(PyTuple_GET_ITEM(steps, i));
  result[n] = step;
  return result;
}

void bind_tracers(py::module_& m) {
  // CPython stores functions of METH_FASTCALL as PyCFunction. The cast through void* says that the
  // types differ on purpose.
  void* const init = reinterpret_cast<void*>(&init_view);
  static PyMethodDef methods[] = {
      {"_init", reinterpret_cast<PyCFunction>(init), METH_FASTCALL, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  static PyMethodDef no_methods[] = {{nullptr, nullptr, 0, nullptr}};
  m.add_object("TracerBase",
               reinterpret_cast<PyObject*>(make_type<TracerObject>(
                   "rune_jit._core.TracerBase", kTracerNames, &new_object<&new_tracer>,
                   &init_tracer, methods, &get_tracer_buffer)));
  m.add_object("StorageBase", reinterpret_cast<PyObject*>(make_type<StorageObject>(
                                  "rune_jit._core.StorageBase", kStorageNames,
                                  &new_object<&new_storage>, &init_storage, no_methods, nullptr)));
  m.def(
      "set_tracer_types",
      [](const py::type& tracer, const py::type& storage, const py::type& step) {
        tracer_type = reinterpret_cast<PyTypeObject*>(py::object(tracer).release().ptr());
        storage_type = reinterpret_cast<PyTypeObject*>(py::object(storage).release().ptr());
        step_type = reinterpret_cast<PyTypeObject*>(py::object(step).release().ptr());
      },
      py::arg("tracer"), py::arg("storage"), py::arg("step"),
      "Sets the classes of traced arrays, of their storages and of the steps of views.");
  static PyMethodDef functions[] = {{"next_serial", &next_serial, METH_NOARGS,
                                     "A number that is greater than those of all storages so far."},
                                    {nullptr, nullptr, 0, nullptr}};
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw py::error_already_set();
}

}  // namespace rune::bindings
