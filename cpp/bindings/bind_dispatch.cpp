// Runs warm calls: makes the key of the arguments, finds the compiled call and runs it.
#include <Python.h>  // before what needs it
#include <structmember.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/options.h"
#include "bindings/array.h"
#include "bindings/bindings.h"
#include "bindings/compiled_call.h"
#include "bindings/context.h"
#include "bindings/guards.h"
#include "bindings/remembered.h"
#include "runtime/profile.h"

namespace rune::bindings {

namespace {

// The base of jitted functions. A remembered call runs without a Python frame of ours, by its
// program or on NumPy. All other calls go to methods of the subclass: `_eager_call(args, kwargs,
// why)`, which runs the user's function on NumPy, if the program cannot take the arguments, and
// otherwise `_slow_call(args, kwargs)`.
struct DispatcherObject {
  PyObject ob_base;  // what PyObject_HEAD declares
  vectorcallfunc vectorcall;
  Dispatcher* dispatcher;
  long long hits;
};

DispatcherObject& as_dispatcher(PyObject* self) {
  return *reinterpret_cast<DispatcherObject*>(self);
}

// Calls a method of the subclass with the arguments of a vectorcall, followed by `more`.
template <class... More>
py::object call_method(PyObject* self, const char* name, std::span<PyObject* const> args,
                       PyObject* const* values, PyObject* names, const More&... more) {
  py::tuple positional(args.size());
  for (size_t i = 0; i < args.size(); ++i) positional[i] = py::handle(args[i]);
  py::dict named;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    named[PyTuple_GET_ITEM(names, i)] = py::handle(values[i]);
  return py::handle(self).attr(name)(positional, named, more...);
}

// Whether numpy.errstate on this thread asks for reports of floating-point errors other than
// warnings. Programs report none.
bool must_report_errors() {
  static PyObject* const variable = [] {
    try {
      const py::object found = py::module_::import("numpy._core.umath").attr("_extobj_contextvar");
      return found.inc_ref().ptr();
    } catch (const py::error_already_set&) {
      return static_cast<PyObject*>(nullptr);
    }
  }();
  static PyObject* silent = nullptr;  // the last checked state that asks for none
  PyObject* state = nullptr;
  if (!variable || PyContextVar_Get(variable, nullptr, &state) < 0 || !state) {
    PyErr_Clear();
    return false;
  }
  const auto now = py::reinterpret_steal<py::object>(state);
  if (now.ptr() == silent) return false;
  for (const auto& [kind, how] : py::dict(py::module_::import("numpy").attr("geterr")())) {
    const auto text = py::cast<std::string>(how);
    if (text != "ignore" && text != "warn") return true;
  }
  PyObject* before = std::exchange(silent, now.inc_ref().ptr());
  Py_XDECREF(before);
  return false;
}

bool is_of_dask(PyTypeObject* type) {
  static std::unordered_map<PyTypeObject*, bool> known;
  const auto [at, is_new] = known.try_emplace(type);
  if (!is_new) return at->second;
  Py_INCREF(type);  // so that no other type gets its address
  return at->second = PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "__dask_graph__");
}

// Whether an argument is, or holds, an object that must be converted for NumPy: an Array, or an
// object of dask's.
bool needs_look(PyObject* value, int depth = 0) {
  const auto inside = [&](PyObject* item) { return needs_look(item, depth + 1); };
  if (PyFloat_CheckExact(value) || PyLong_CheckExact(value) || is_ndarray(value, true))
    return false;
  if (is_array(value) || depth == 8) return true;
  if (PyTuple_Check(value) || PyList_Check(value)) {
    PyObject** const items = PySequence_Fast_ITEMS(value);
    return std::any_of(items, items + PySequence_Fast_GET_SIZE(value), inside);
  }
  if (!PyDict_Check(value)) return is_of_dask(Py_TYPE(value));
  PyObject *name = nullptr, *item = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(value, &at, &name, &item);)
    if (inside(item)) return true;
  return false;
}

// Whether there may be objects for which needs_look is true.
bool may_need_look() {
  static PyObject* const name = PyUnicode_InternFromString("dask.array");
  if (has_made_arrays()) return true;
  const auto dask = py::reinterpret_steal<py::object>(PyImport_GetModule(name));
  if (!dask) PyErr_Clear();
  return static_cast<bool>(dask);
}

constexpr const char* kUnsuitable = "its program does not take these arguments";

// The user's function if it still has this code, otherwise null.
py::object function_with(PyObject* self, const py::object& code) {
  static PyObject* const fn = PyUnicode_InternFromString("_fn");
  static PyObject* const attribute = PyUnicode_InternFromString("__code__");
  auto function = py::reinterpret_steal<py::object>(PyObject_GetAttr(self, fn));
  if (!function) throw py::error_already_set();
  if (!code) return function;
  if (PyFunction_Check(function.ptr()))
    return PyFunction_GET_CODE(function.ptr()) == code.ptr() ? function : py::object();
  const auto now = py::reinterpret_steal<py::object>(PyObject_GetAttr(function.ptr(), attribute));
  if (!now) PyErr_Clear();
  return now.is(code) ? function : py::object();
}

// The user's function if a call may run it on NumPy, because NumPy runs the function that calls it.
// Otherwise null.
py::object function_on_numpy(PyObject* self) {
  static PyObject* const allowed = PyUnicode_InternFromString("_may_run_on_numpy");
  if (is_tracing() || runtime::is_profiling() || has_made_arrays()) return {};
  const auto found = py::reinterpret_steal<py::object>(PyObject_GetAttr(self, allowed));
  if (!found) throw py::error_already_set();
  return found.ptr() == Py_True ? function_with(self, {}) : py::object();
}

// The result of a call; null if the user's function has set an error.
py::object dispatch(PyObject* self, std::span<PyObject* const> args, PyObject* const* values,
                    PyObject* names) {
  Dispatcher& dispatcher = *as_dispatcher(self).dispatcher;
  const auto slow = [&] { return call_method(self, "_slow_call", args, values, names); };
  const auto eager = [&](const char* why) {
    return call_method(self, "_eager_call", args, values, names, why);
  };
  py::object function;  // to run on NumPy, if it is set
  const auto run_function = [&] {
    return py::reinterpret_steal<py::object>(
        PyObject_Vectorcall(function.ptr(), values - args.size(), args.size(), names));
  };
  if (is_on_numpy()) {
    function = function_on_numpy(self);
    return function ? run_function() : slow();
  }
  if (is_tracing()) return slow();
  KeyedCall call;
  Entries held;
  Remembered* found = nullptr;  // an entry in `held`
  if (dispatcher.unseen > 0 && !runtime::is_profiling()) {
    const size_t count = args.size() + (names ? PyTuple_GET_SIZE(names) : 0);
    PyObject* const* const first = values - args.size();
    if (!may_need_look() ||
        std::none_of(first, first + count, [](PyObject* x) { return needs_look(x); }))
      function = function_with(self, dispatcher.code);
    --dispatcher.unseen;
    if (function) {
      const auto begin = std::chrono::steady_clock::now();
      py::object result = run_function();
      if (std::chrono::steady_clock::now() - begin > kLongCall) dispatcher.unseen = 0;
      return result;
    }
  }
  if (!dispatcher.parameters.may_have_key(args, values, names)) return slow();
  try {
    if (dispatcher.parameters.key_of(args, values, names, call))
      found = dispatcher.find(call, held);
    if (found && found->on_numpy && !runtime::is_profiling() && --found->on_numpy->left >= 0) {
      const OnNumpy& on_numpy = *found->on_numpy;
      on_numpy.use->tick = CompiledCall::tick();
      if (!call.owned.empty()) dispatcher.note_look(true);  // keys of records take time
      function = function_with(self, on_numpy.code);
    }
  } catch (const py::error_already_set&) {  // of the arguments; the slow call raises it again
  }
  if (function) return run_function();
  if (must_report_errors()) return eager("numpy.errstate asks for floating-point errors");
  const Programs* const ways = found ? found->ways.get() : nullptr;
  if (!ways || ways->empty()) return slow();
  py::object result;
  auto status = CompiledCall::Status::Stale;
  const size_t last = found->last;
  for (size_t i = 0; i < ways->size() && status == CompiledCall::Status::Stale; ++i) {
    const size_t at = (last + i) % ways->size();
    status = CompiledCall::Status::Unsuitable;
    try {
      status = (*ways)[at]->call(call.leaves, result);
    } catch (py::error_already_set& error) {
      const py::object changed = py::module_::import("rune_jit.errors").attr("ResultsChangedError");
      if (!error.matches(changed)) throw;
    }
    if (status == CompiledCall::Status::Done) found->last = at;
  }
  switch (status) {
    case CompiledCall::Status::Done:
      ++as_dispatcher(self).hits;
      dispatcher.note_look(false);
      return result;
    case CompiledCall::Status::Unsuitable: return eager(kUnsuitable);
    case CompiledCall::Status::Stale: dispatcher.replace(call, nullptr); return slow();
  }
  RUNE_UNREACHABLE();
}

// Whether the tracebacks of an exception may have frames of rune_jit.
bool may_show_own_frames(py::object error) {
  for (; !error.is_none(); error = error.attr("__context__"))
    for (py::object at = error.attr("__traceback__"); !at.is_none(); at = at.attr("tb_next")) {
      const py::object file = at.attr("tb_frame").attr("f_code").attr("co_filename");
      if (py::cast<std::string_view>(file).find("rune_jit") != std::string_view::npos) return true;
    }
  return false;
}

// Removes rune_jit's own frames from the traceback of the Python error that is set.
void shorten_traceback() {
  if (options().tracebacks || is_tracing()) return;
  py::error_already_set error;
  const py::object value = error.value();
  // Before Python 3.12 an exception that has not been handled yet lacks its traceback.
  if (error.trace()) PyException_SetTraceback(value.ptr(), error.trace().ptr());
  try {
    if (!may_show_own_frames(value)) return error.restore();
    py::module_::import("rune_jit.tracing.tracebacks").attr("shorten")(value);
  } catch (py::error_already_set&) {  // the process ends, or memory is exhausted
    return error.restore();
  }
  const py::object traceback = value.attr("__traceback__");
  PyErr_Restore(error.type().inc_ref().ptr(), py::object(value).release().ptr(),
                traceback.is_none() ? nullptr : py::object(traceback).release().ptr());
}

// Notes how long a call takes, if a profile is taken.
class CallTimer {
 public:
  explicit CallTimer(PyObject* self)
      : self_(self),
        begin_ns_(runtime::is_profiling() && !is_tracing() ? runtime::profile_clock_ns() : 0) {}
  CallTimer(const CallTimer&) = delete;
  ~CallTimer() {
    if (begin_ns_ == 0) return;
    const py::error_scope error;  // keeps the call's error
    try {
      runtime::note_call(py::handle(self_).attr("_name").cast<std::string>(), begin_ns_);
    } catch (const std::exception&) {  // the name is not text: the profile leaves the call out
      PyErr_Clear();
    }
  }

 private:
  PyObject* const self_;
  const int64_t begin_ns_;
};

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  const CallTimer timer(self);
  try {
    if (py::object result = dispatch(self, {args, count}, args + count, names))
      return result.release().ptr();
  } catch (...) {
    raise_current_exception();
  }
  shorten_traceback();
  return nullptr;
}

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_dispatcher(self).vectorcall = &vectorcall;
  as_dispatcher(self).dispatcher = new Dispatcher;
  return self;
}

void free_dispatcher(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  delete as_dispatcher(self).dispatcher;
  type->tp_free(self);
  Py_DECREF(type);  // each instance of a heap type holds a reference to it
}

KeyedCall key_call(py::handle self, const py::tuple& args, const py::dict& kwargs) {
  const std::span<PyObject* const> positional(PySequence_Fast_ITEMS(args.ptr()), args.size());
  const auto names = py::reinterpret_steal<py::tuple>(PySequence_Tuple(kwargs.ptr()));
  std::vector<PyObject*> values;
  for (const auto& item : kwargs) values.push_back(item.second.ptr());
  KeyedCall call;
  RUNE_CHECK(as_dispatcher(self.ptr())
                 .dispatcher->parameters.key_of(positional, values.data(), names.ptr(), call),
             "arguments that the signature does not take");
  return call;
}

// Registers `remembered` for calls with such arguments. Returns false, and does nothing, if
// trees.flatten found other leaves: then a class that had been keyed by identity has meanwhile been
// registered as a container. `sizes` are the AxisSizes (python/rune_jit/tracing/sizes.py) of the
// call. `constants` are the positions of the numbers that the trace used as constants.
bool remember(py::handle self, const py::tuple& args, const py::dict& kwargs,
              const py::list& leaves, const py::sequence& sizes,
              const std::vector<int64_t>& constants, Remembered remembered) {
  Dispatcher& dispatcher = *as_dispatcher(self.ptr()).dispatcher;
  const KeyedCall call = key_call(self, args, kwargs);
  const auto same = [](py::handle a, py::handle b) { return a.is(b); };
  if (!std::equal(call.leaves.begin(), call.leaves.end(), leaves.begin(), leaves.end(), same))
    return false;
  remembered.key = call.key;
  for (const int64_t leaf : constants)
    remembered.constants.push_back({leaf, py::reinterpret_borrow<py::object>(call.leaves[leaf])});
  for (const py::handle size : sizes)
    remembered.ranges.push_back(
        {size.attr("leaf").cast<int64_t>(), size.attr("axis").cast<int64_t>(),
         size.attr("name").cast<std::string>(), size.attr("least").cast<int64_t>(),
         size.attr("high").cast<int64_t>()});
  dispatcher.replace(call, std::make_shared<Remembered>(std::move(remembered)));
  return true;
}

py::object make_dispatcher() {
  static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET,
                                   offsetof(DispatcherObject, vectorcall), READONLY, nullptr},
                                  {"_fast_hits", T_LONGLONG, offsetof(DispatcherObject, hits),
                                   READONLY, "Calls that ran without a Python frame."},
                                  {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&make)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&free_dispatcher)},
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
      "_set_parameters",
      [](py::handle self, const py::sequence& names, std::vector<bool> is_static,
         std::vector<std::vector<int64_t>> dynamic, size_t star, size_t star_star,
         bool has_receiver, py::object describe) {
        as_dispatcher(self.ptr()).dispatcher->parameters =
            Parameters(names, std::move(is_static), std::move(dynamic), star, star_star,
                       has_receiver, std::move(describe));
      },
      "Sets how arguments are keyed. For each parameter, by position: the name that calls may use, "
      "whether it is a static value, and its axes of dynamic sizes. Then the positions of *args "
      "and **kwargs, whether the first parameter may be the receiver of a method, and "
      "trees.describe.");
  define(
      "_key",
      [](py::handle self, const py::tuple& args, const py::dict& kwargs) {
        return key_call(self, args, kwargs).key;
      },
      "Makes the CallKey of arguments that the signature takes. Raises the errors of their "
      "hashes.");
  define(
      "_keyed",
      [](py::handle self, const py::tuple& args, const py::dict& kwargs) {
        KeyedCall call = key_call(self, args, kwargs);
        py::list leaves;
        for (const py::handle leaf : call.leaves) leaves.append(leaf);
        return py::make_tuple(std::move(call.key), std::move(leaves));
      },
      "The CallKey, as _key makes it, and the leaves of the arguments.");
  define(
      "_remember",
      [](py::handle self, const py::tuple& args, const py::dict& kwargs, const py::list& leaves,
         Programs programs, const py::sequence& sizes, const std::vector<int64_t>& constants) {
        Ways ways = std::make_shared<const Programs>(std::move(programs));
        return remember(self, args, kwargs, leaves, sizes, constants,
                        {std::move(ways), {}, {}, {}, {}});
      },
      "Registers the compiled calls for such arguments. Each of them checks whether it is for a "
      "call's data. False if the arguments cannot be keyed here.");
  define(
      "_remember_on_numpy",
      [](py::handle self, const py::tuple& args, const py::dict& kwargs, const py::list& leaves,
         const py::sequence& sizes, const std::vector<int64_t>& constants,
         std::shared_ptr<LastUse> use, int64_t calls) {
        const py::object code = py::getattr(self.attr("_fn"), "__code__", py::none());
        OnNumpy on_numpy{std::move(use), code.is_none() ? py::object() : code, calls};
        return remember(self, args, kwargs, leaves, sizes, constants,
                        {{}, std::move(on_numpy), {}, {}, {}});
      },
      "Registers that the function itself runs the next `calls` calls with such arguments, until "
      "its code changes. The arguments must hold no Array. False if they cannot be keyed here.");
  define(
      "_note_look",
      [](py::handle self, bool on_numpy) {
        Dispatcher& dispatcher = *as_dispatcher(self.ptr()).dispatcher;
        dispatcher.note_look(on_numpy);
        const py::object code = py::getattr(self.attr("_fn"), "__code__", py::none());
        dispatcher.code = code.is_none() ? py::object() : code;
      },
      "Notes whether a call whose key was made runs on NumPy. After many such calls in a row, the "
      "function itself runs some calls without making their keys.");
  define(
      "_forget", [](py::handle self) { as_dispatcher(self.ptr()).dispatcher->forget(); },
      "Forgets every registered call.");
  return type;
}

std::vector<int64_t> static_leaves(const py::sequence& leaves) {
  std::string key;
  std::vector<int64_t> found;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (!append_leaf_key(leaves[i], key)) found.push_back(static_cast<int64_t>(i));
  return found;
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
      py::arg("guards"), "Positions of the guards (kind, holder, name, value) that do not hold.");
  m.def(
      "check",
      [](const py::tuple& what, const py::object& value) { return Check::of(what).passes(value); },
      py::arg("what"), py::arg("value"),
      "Checks a value that a program computed (Check in compiled_call.h) and raises the error if "
      "it fails.");
  m.attr("MOST_NUMBERS") = kMostNumbers;
  m.def(
      "count_numbers", [](const py::object& value) { return count_numbers(value.ptr()); },
      py::arg("value"),
      "About how many of Python's numbers a list, tuple or dict holds, by the first item of each "
      "container in it. 1 for a number, 0 for other values.");
  m.def("static_leaves", &static_leaves, py::arg("leaves"),
        "Positions of the leaves that are neither arrays nor numbers that a program takes.");
  py::class_<CallKey>(m, "CallKey")
      .def("__hash__", [](const CallKey& key) { return std::hash<std::string>()(key.text); })
      .def("__eq__", [](const CallKey& a, const CallKey& b) { return a == b; }, py::is_operator());
  py::class_<LastUse, std::shared_ptr<LastUse>>(m, "LastUse")
      .def(py::init())
      .def("is_now", [](LastUse& use) { use.tick = CompiledCall::tick(); })
      .def_readonly("tick", &LastUse::tick,
                    "The time of its last use, by the clock of CompiledCall.");
  py::class_<CompiledCall, std::shared_ptr<CompiledCall>>(m, "CompiledCall")
      .def(py::init<std::shared_ptr<BoundProgram>, std::vector<int64_t>, std::vector<py::object>,
                    const std::vector<py::tuple>&, py::object,
                    const std::vector<std::pair<int64_t, py::object>>&, py::sequence,
                    const std::vector<std::pair<int64_t, int64_t>>&, std::vector<int64_t>,
                    const std::vector<std::pair<int64_t, py::tuple>>&,
                    const std::vector<std::pair<int64_t, py::tuple>>&,
                    const std::vector<py::tuple>&, py::object>(),
           py::arg("program"), py::arg("input_leaves"), py::arg("captured"), py::arg("outputs"),
           py::arg("unflatten"), py::arg("leaf_guards"), py::arg("guards"), py::arg("writes"),
           py::arg("contiguous"), py::arg("transposed_inputs"), py::arg("transposed_results"),
           py::arg("checks"), py::arg("device"))
      .def("is_current", &CompiledCall::is_current)
      .def("broken", &CompiledCall::broken,
           "(kind, holder, name, expected) of each guard that does not hold, and (\"array\", "
           "array, number, None) of each captured array whose type has changed.")
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
