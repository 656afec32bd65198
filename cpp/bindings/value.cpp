#include "bindings/value.h"

#include <structmember.h>

#include <cmath>
#include <cstddef>

#include "base/error.h"
#include "graph/segment.h"

namespace rune::bindings {

using graph::numpy::Operand;

namespace {

struct ValueObject {
  PyObject ob_base;  // what PyObject_HEAD declares
  PyObject* shape;
  PyObject* dtype;
  PyObject* weak;
  Operand operand;
  std::shared_ptr<graph::numpy::Uses> uses;  // null if uses are not counted
};

PyTypeObject* value_type = nullptr;  // never freed

ValueObject* as_value(PyObject* object) {
  return reinterpret_cast<ValueObject*>(object);
}

void free_value(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  ValueObject* value = as_value(self);
  Py_DECREF(value->shape);
  Py_DECREF(value->dtype);
  Py_DECREF(value->weak);
  if (value->uses) {
    const auto use = value->uses->find(value->operand.value.id);
    if (--use->second == 0) value->uses->erase(use);
  }
  value->uses.~shared_ptr();
  value->operand.~Operand();
  type->tp_free(self);
  Py_DECREF(type);  // each instance of a heap type holds a reference to it
}

PyObject* get_ndim(PyObject* self, void*) {
  return PyLong_FromSsize_t(PyTuple_GET_SIZE(as_value(self)->shape));
}

PyObject* get_id(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(as_value(self)->operand.value.id);
}

PyTypeObject* make_value_type() {
  static PyMemberDef members[] = {
      {"shape", T_OBJECT_EX, offsetof(ValueObject, shape), READONLY, nullptr},
      {"dtype", T_OBJECT_EX, offsetof(ValueObject, dtype), READONLY, nullptr},
      {"weak", T_OBJECT_EX, offsetof(ValueObject, weak), READONLY,
       "None, or the Python type that it stands for: bool, int, float, complex."},
      {nullptr, 0, 0, 0, nullptr}};
  static PyGetSetDef properties[] = {{"ndim", &get_ndim, nullptr, nullptr, nullptr},
                                     {"id", &get_id, nullptr, nullptr, nullptr},
                                     {nullptr, nullptr, nullptr, nullptr, nullptr}};
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&free_value)},
                         {Py_tp_members, members},
                         {Py_tp_getset, properties},
                         {Py_tp_doc, const_cast<char*>("A value of a graph.")},
                         {0, nullptr}};
  PyType_Spec spec = {"rune_jit._core.Value", sizeof(ValueObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  return type;
}

PyObject* weak_name(const std::optional<Kind>& weak) {
  if (!weak) return Py_None;
  static PyObject* const names[] = {
      PyUnicode_InternFromString("bool"), PyUnicode_InternFromString("int"),
      PyUnicode_InternFromString("float"), PyUnicode_InternFromString("complex")};
  switch (*weak) {
    case Kind::Bool: return names[0];
    case Kind::Int:
    case Kind::Uint: return names[1];
    case Kind::Float: return names[2];
    case Kind::Complex: return names[3];
  }
  RUNE_UNREACHABLE();
}

// Throws UserError(Unsupported) if there are too many nodes.
void check_size(const PyGraph& g) {
  if (g.size() > g.most)
    user_error(ErrorKind::Unsupported, "trace: cannot make one program of more than ", g.most,
               " operations\nhint: loops that are unrolled make many");
  if (!g.open_loops.empty()) return;  // the number of iterations, and so NumPy's time, is unknown
  g.allowed = g.most;
  if (!g.must_pay) return;
  for (; g.counted < g.size(); ++g.counted) {
    const graph::Value v{g.counted};
    if (g.graph()[v].as<graph::End_Loop>()) return;
    g.numpy_ns += graph::numpy_ns(g.graph(), v);
    g.compile_ns += graph::compile_ns(g.graph(), v);
    const Ints sizes = graph::kernel_sizes(g.graph(), v);
    if (!sizes.empty() && g.kernels.insert(sizes).second) g.compile_ns += graph::kKernelNs;
  }
  constexpr double kShort = 1.5e9, kManyCalls = 100;
  constexpr size_t kStep = 100;  // the number of nodes until the next check
  g.pays = g.compile_ns < kShort + kManyCalls * g.numpy_ns;
  g.allowed = g.pays ? std::min(g.most, g.size() + kStep) : 0;
  if (!g.pays)
    user_error(ErrorKind::Unsupported, "trace: cannot make one program of more than ", g.size(),
               " operations for which NumPy takes about ", std::lround(g.numpy_ns / 1000),
               " us: compiling them takes longer than many calls\n"
               "hint: loops that are unrolled make many");
}

}  // namespace

PyValue::PyValue(const graph::numpy::TracedGraph& graph, const Operand& operand,
                 const std::shared_ptr<const void>& trace) {
  const Shape none;
  const bool is_node = !operand.literal;
  py::tuple shape = to_python(is_node ? graph.shape(operand.value) : none, trace);
  py::dtype dtype = to_numpy(graph::numpy::dtype_of(graph, operand));
  PyObject* object = value_type->tp_alloc(value_type, 0);
  if (!object) throw py::error_already_set();
  ValueObject* value = as_value(object);
  value->shape = shape.release().ptr();
  value->dtype = dtype.release().ptr();
  value->weak = py::handle(weak_name(operand.weak)).inc_ref().ptr();
  new (&value->operand) Operand(operand);
  new (&value->uses) std::shared_ptr<graph::numpy::Uses>(is_node ? graph.uses : nullptr);
  if (value->uses) ++(*value->uses)[operand.value.id];
  m_ptr = object;
}

const Operand& PyValue::operand() const {
  return as_value(m_ptr)->operand;
}

bool PyValue::is_value(PyObject* object) {
  return Py_TYPE(object) == value_type;
}

std::vector<uint32_t> ids_of(const std::vector<graph::Value>& values) {
  std::vector<uint32_t> ids;
  for (const graph::Value v : values) ids.push_back(v.id);
  return ids;
}

PyObject* shape_of_value(PyObject* value) {
  return as_value(value)->shape;
}

PyObject* dtype_of_value(PyObject* value) {
  return as_value(value)->dtype;
}

PyValue to_value(const PyGraph& g, const Operand& x) {
  if (g.size() > g.allowed) [[unlikely]]
    check_size(g);
  return {g, x, g.trace};
}

PyValue constant(PyGraph& g, const py::object& x) {
  const py::array array = py::array::ensure(x);
  if (!array || array.ndim() != 0)
    user_error(ErrorKind::Value, "constant: cannot embed an array (it takes NumPy scalars)");
  const DType dtype = to_dtype(array.dtype());
  const auto* bytes = static_cast<const uint8_t*>(array.data());
  const auto part = [&](int i) {
    return g.constant(Scalar::load(real_of(dtype), bytes + i * size_of(real_of(dtype))));
  };
  return to_value(g, Operand(is_complex(dtype) ? g.complex(part(0), part(1)) : part(0)));
}

void bind_values(py::module_& m) {
  value_type = make_value_type();
  m.attr("Value") = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(value_type));
}

}  // namespace rune::bindings
