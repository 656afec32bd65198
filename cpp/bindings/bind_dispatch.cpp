// The path of a warm call: key the arguments, find the compiled call, run it.
#include <Python.h>  // before what needs it
#include <structmember.h>

#include <cstddef>
#include <unordered_map>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/compiled_call.h"
#include "bindings/leaf_key.h"

namespace rune::bindings {

namespace {

// The base of jitted functions. A call with positional arrays and numbers only, whose compiled call
// was added, runs without a Python frame; all else goes to the subclass's methods
// `_slow_call(args, kwargs)` and, for arguments that its program cannot take, `_eager_call(args,
// kwargs)`, which runs the user's function on NumPy.
struct DispatcherObject {
  PyObject ob_base;  // as PyObject_HEAD has it
  vectorcallfunc vectorcall;
  std::unordered_map<std::string, std::shared_ptr<CompiledCall>>* calls;
  long long hits;
};

DispatcherObject& as_dispatcher(PyObject* self) {
  return *reinterpret_cast<DispatcherObject*>(self);
}

// False if an argument is not of the simple kind.
bool key_of(std::span<const py::handle> args, std::string& key) {
  for (const py::handle arg : args)
    if (!append_leaf_key(arg, key)) return false;
  return true;
}

// Calls a method of the subclass with what a vectorcall was given.
py::object call_method(PyObject* self, const char* name, std::span<const py::handle> args,
                       PyObject* const* values, PyObject* names) {
  py::tuple positional(args.size());
  for (size_t i = 0; i < args.size(); ++i) positional[i] = args[i];
  py::dict named;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    named[PyTuple_GET_ITEM(names, i)] = py::handle(values[i]);
  return py::handle(self).attr(name)(positional, named);
}

py::object dispatch(PyObject* self, std::span<const py::handle> args, PyObject* const* values,
                    PyObject* names) {
  DispatcherObject& dispatcher = as_dispatcher(self);
  const auto slow = [&] { return call_method(self, "_slow_call", args, values, names); };
  std::string key;
  if ((names && PyTuple_GET_SIZE(names) > 0) || !key_of(args, key)) return slow();
  const auto found = dispatcher.calls->find(key);
  if (found == dispatcher.calls->end()) return slow();
  const std::shared_ptr<CompiledCall> compiled = found->second;  // may be cleared while it runs
  py::object result;
  switch (compiled->call(args, result)) {
    case CompiledCall::Status::Done: ++dispatcher.hits; return result;
    case CompiledCall::Status::Unsuitable:
      return call_method(self, "_eager_call", args, values, names);
    case CompiledCall::Status::Stale: dispatcher.calls->erase(key); return slow();
  }
  RUNE_UNREACHABLE();
}

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  try {
    const std::vector<py::handle> positional(args, args + count);
    return dispatch(self, positional, args + count, names).release().ptr();
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
}

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  DispatcherObject& dispatcher = as_dispatcher(self);
  dispatcher.vectorcall = &vectorcall;
  dispatcher.calls = new std::unordered_map<std::string, std::shared_ptr<CompiledCall>>;
  return self;
}

void dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  delete as_dispatcher(self).calls;
  type->tp_free(self);
  Py_DECREF(type);  // of a heap type each instance holds a reference
}

py::object make_dispatcher() {
  static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET,
                                   offsetof(DispatcherObject, vectorcall), READONLY, nullptr},
                                  {"_fast_hits", T_LONGLONG, offsetof(DispatcherObject, hits),
                                   READONLY, "Calls that ran without a Python frame."},
                                  {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&make)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&dealloc)},
                         {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                         {Py_tp_members, members},
                         {0, nullptr}};
  PyType_Spec spec = {"rune_jit._core.Dispatcher", sizeof(DispatcherObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  const auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  const auto define = [&](const char* name, auto&& f, const char* meaning) {
    py::setattr(type, name, py::cpp_function(f, py::name(name), py::is_method(type), meaning));
  };
  define(
      "_remember",
      [](py::handle self, const py::tuple& args, std::shared_ptr<CompiledCall> compiled) {
        const std::vector<py::handle> leaves(args.begin(), args.end());
        std::string key;
        if (!key_of(leaves, key)) return false;
        (*as_dispatcher(self.ptr()).calls)[key] = std::move(compiled);
        return true;
      },
      "Registers the compiled call of such arguments; False if they are not of the simple kind.");
  define(
      "_forget", [](py::handle self) { as_dispatcher(self.ptr()).calls->clear(); },
      "Forgets every registered call.");
  return type;
}

// The key of the leaves, and the positions of those that are static values. The sizes of the
// `dynamic` (leaf, axis) do not decide.
py::tuple key_leaves(const py::sequence& leaves,
                     const std::vector<std::pair<int64_t, int64_t>>& dynamic) {
  std::string key;
  py::list statics;
  int64_t i = 0;
  for (const py::handle leaf : leaves) {
    std::vector<int64_t> axes;
    for (const auto& [of, axis] : dynamic)
      if (of == i) axes.push_back(axis);
    if (!append_leaf_key(leaf, key, axes)) {
      key += 'S';
      statics.append(i);
    }
    ++i;
  }
  return py::make_tuple(py::bytes(key), statics);
}

}  // namespace

void bind_dispatch(py::module_& m) {
  m.def(
      "broken_guards",
      [](const py::sequence& tuples) {
        py::list broken;
        int64_t i = 0;
        for (const Guard& guard : to_guards(tuples)) {
          if (!guard.holds()) broken.append(i);
          ++i;
        }
        return broken;
      },
      py::arg("guards"), "Positions of those (kind, holder, name, value) that do not hold.");
  m.def("key_leaves", &key_leaves, py::arg("leaves"),
        py::arg("dynamic") = std::vector<std::pair<int64_t, int64_t>>(),
        "(key, positions of static leaves): arrays and numbers are keyed by type, not by value; "
        "arrays also by shape, but for the sizes of these (leaf, axis).");
  py::class_<CompiledCall, std::shared_ptr<CompiledCall>>(m, "CompiledCall")
      .def(py::init<std::shared_ptr<BoundProgram>, std::vector<int64_t>, py::sequence, py::sequence,
                    py::object, py::sequence, py::sequence, py::sequence, std::vector<int64_t>,
                    py::sequence, py::object>(),
           py::arg("program"), py::arg("input_leaves"), py::arg("captured"), py::arg("outputs"),
           py::arg("unflatten"), py::arg("leaf_guards"), py::arg("guards"),
           py::arg("writes") = py::tuple(), py::arg("contiguous") = std::vector<int64_t>(),
           py::arg("checks") = py::tuple(), py::arg("device") = py::none())
      .def("is_current", &CompiledCall::is_current)
      .def_static("tick", &CompiledCall::tick)
      .def_property_readonly("last_used", &CompiledCall::last_used)
      .def("call", [](CompiledCall& c, const py::list& leaves) {
        std::vector<py::handle> handles(leaves.begin(), leaves.end());
        py::object result = py::none();
        using Status = CompiledCall::Status;
        const Status status = c.call(handles, result);
        const char* name = status == Status::Done    ? "done"
                           : status == Status::Stale ? "stale"
                                                     : "unsuitable";
        return py::make_tuple(name, result);
      });
  m.add_object("Dispatcher", make_dispatcher().release().ptr());
}

}  // namespace rune::bindings
