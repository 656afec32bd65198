#include "bindings/context.h"

#include <frameobject.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bindings/graph_builder.h"

namespace rune::bindings {

namespace {

PyObject* own_folders = nullptr;  // rune_jit's folders, a tuple of str, kept at exit

PyFrameObject* as_frame(const py::object& frame) {
  return reinterpret_cast<PyFrameObject*>(frame.ptr());
}

py::object code_of(const py::object& frame) {
  PyCodeObject* code = PyFrame_GetCode(as_frame(frame));
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(code));
}

py::object caller_of(const py::object& frame) {
  PyFrameObject* caller = PyFrame_GetBack(as_frame(frame));
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(caller));
}

py::handle file_of(const py::object& code) {
  return reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename;
}

// The offset of the frame's present instruction in its code, in bytes.
int instruction_of(const py::object& frame) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(as_frame(frame));
#else
  return as_frame(frame)->f_lasti * static_cast<int>(sizeof(_Py_CODEUNIT));
#endif
}

bool is_own(const py::object& code) {
  const py::handle file = file_of(code);
  const auto starts_with = [&](PyObject* prefix) {
    return PyUnicode_Tailmatch(file.ptr(), prefix, 0, PY_SSIZE_T_MAX, -1) == 1;
  };
  static PyObject* const frozen = PyUnicode_InternFromString("<frozen");
  if (starts_with(frozen)) return true;
  for (Py_ssize_t i = 0; own_folders && i < PyTuple_GET_SIZE(own_folders); ++i)
    if (starts_with(PyTuple_GET_ITEM(own_folders, i))) return true;
  return false;
}

// The innermost frame whose code is not rune_jit's own. Null if there is none.
template <class IsOwn>
py::object user_frame(IsOwn is_own_code) {
  auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && is_own_code(code_of(frame))) frame = caller_of(frame);
  return frame;
}

// `file.py:12`
std::string line_of(const py::object& frame, int number) {
  const auto path = file_of(code_of(frame)).cast<std::string>();
  return path.substr(path.find_last_of("/\\") + 1) + ':' + std::to_string(number);
}

// A cache of the lines of the user's code by instruction, because each traced operation needs its
// line.
class UserLines {
 public:
  // The present line of the innermost user's frame, as a Python str. The same instruction gives the
  // same object.
  py::object now() {
    Code* found = nullptr;
    const py::object frame = user_frame([&](const py::object& code) {
      const auto [at, is_new] = codes_.try_emplace(code.ptr());
      found = &at->second;
      if (is_new) *found = {code, is_own(code), names_shuffle(code), {}, {}};
      return found->is_own;
    });
    may_shuffle = frame && found->names_shuffle;
    if (!frame) return py::str("<unknown>:0");
    py::object& line = found->lines[instruction_of(frame)];
    if (!line) line = py::str(line_of(frame, number_of(*found, frame)));
    return line;
  }
  bool may_shuffle = false;  // whether that frame's code contains the name `shuffle`

 private:
  struct Code {
    py::object code;  // kept, so that its address, which is the key, is not reused
    bool is_own = false;
    bool names_shuffle = false;
    std::unordered_map<int, py::object> lines;  // by instruction
    std::vector<std::pair<int, int>> numbers;   // where each line begins, and its number
  };

  static bool names_shuffle(const py::object& code) {
    return code.attr("co_names").contains("shuffle");
  }

  // The number of the frame's line. Python searches for it from the beginning of the code, which is
  // only done for a few instructions of a code.
  static int number_of(Code& code, const py::object& frame) {
    if (code.lines.size() < kFew) return PyFrame_GetLineNumber(as_frame(frame));
    if (code.numbers.empty())
      for (const py::handle range : code.code.attr("co_lines")()) {
        const auto [begin, end, number] = range.cast<std::tuple<int, int, std::optional<int>>>();
        if (number) code.numbers.emplace_back(begin, *number);
      }
    const auto after = std::upper_bound(code.numbers.begin(), code.numbers.end(),
                                        std::pair(instruction_of(frame), INT_MAX));
    return after == code.numbers.begin() ? 0 : std::prev(after)->second;
  }

  static constexpr size_t kFew = 16;
  std::unordered_map<PyObject*, Code> codes_;
};

struct Entry : ActiveTrace {
  UserLines lines;
};

thread_local std::vector<Entry> active_traces;
thread_local std::vector<std::vector<Entry>> suspended_traces;
thread_local int calls_on_numpy = 0;

void trace_began(const py::object& trace) {
  auto* graph = trace.attr("builder").cast<PyGraph*>();
  const bool is_segmented = trace.attr("is_segmented").cast<bool>();
  active_traces.push_back({{trace, graph, {}, is_segmented}, {}});
}

PyObject* current_trace(PyObject*, PyObject*) {
  PyObject* trace = active_traces.empty() ? Py_None : active_traces.back().trace.ptr();
  return py::handle(trace).inc_ref().ptr();
}

std::set<std::string, std::less<>> watched_events;
PyObject* event_handler = nullptr;  // kept at exit

// A hook for Python's audit events (PEP 578). Calls the handler for a watched event of a thread
// whose innermost trace is one of a whole program.
int on_event(const char* event, PyObject*, void*) {
  if (active_traces.empty() || active_traces.back().is_segmented) return 0;
  if (!watched_events.contains(std::string_view(event))) return 0;
  PyObject* result = PyObject_CallFunction(event_handler, "s", event);
  Py_XDECREF(result);
  return result ? 0 : -1;
}

void watch_events(const std::vector<std::string>& events, const py::object& handler) {
  const bool is_first = event_handler == nullptr;
  watched_events = {events.begin(), events.end()};
  Py_XSETREF(event_handler, py::object(handler).release().ptr());
  if (is_first && PySys_AddAuditHook(&on_event, nullptr) != 0) throw py::error_already_set();
}

PyObject* require_trace(PyObject*, PyObject*) {
  try {
    if (active_traces.empty())
      user_error(ErrorKind::Leak, "a traced array is used outside the function that was traced\n",
                 "hint: return it from the function instead of storing it");
    note_line();
    return py::object(active_traces.back().trace).release().ptr();
  } catch (...) {
    raise_current_exception();
  }
  return nullptr;
}

std::pair<py::object, int> user_site() {
  const py::object frame = user_frame(&is_own);
  if (!frame) return {py::str("<unknown>"), 0};
  return {py::reinterpret_borrow<py::object>(file_of(code_of(frame))),
          PyFrame_GetLineNumber(as_frame(frame))};
}

}  // namespace

bool is_tracing() {
  return !active_traces.empty();
}

bool is_on_numpy() {
  return calls_on_numpy > 0;
}

ActiveTrace* active_trace() {
  return active_traces.empty() ? nullptr : &active_traces.back();
}

// Notes the line in the graph, and in the trace's attribute `line`.
void note_line() {
  Entry& active = active_traces.back();
  py::object line = active.lines.now();
  active.may_shuffle = active.lines.may_shuffle;
  if (line.is(active.line)) return;
  static PyObject* const name = PyUnicode_InternFromString("line");
  if (PyObject_SetAttr(active.trace.ptr(), name, line.ptr()) != 0) throw py::error_already_set();
  active.graph->set_location(line.cast<std::string>());
  active.line = std::move(line);
}

void bind_context(py::module_& m) {
  m.def(
      "set_own_folders",
      [](const py::tuple& folders) { Py_XSETREF(own_folders, py::tuple(folders).release().ptr()); },
      py::arg("folders"),
      "Sets the folders of code that is not the user's. Each ends with a separator.");
  m.def(
      "user_frame",
      []() -> py::object {
        py::object frame = user_frame(&is_own);
        return frame ? frame : py::none();
      },
      "The innermost Python frame of the user's code, or None.");
  m.def("user_site", &user_site, "File and line of the innermost Python frame of the user's code.");
  m.def(
      "user_line",
      [] {
        const py::object frame = user_frame(&is_own);
        return frame ? line_of(frame, PyFrame_GetLineNumber(as_frame(frame))) : "<unknown>:0";
      },
      "File name and line of the innermost Python frame of the user's code: `file.py:12`.");
  m.def("trace_began", &trace_began, py::arg("trace"),
        "Makes a trace the innermost one of this thread.");
  m.def("watch_events", &watch_events, py::arg("events"), py::arg("handler"),
        "Calls `handler(event)` before each of these audit events of Python's, in threads that "
        "trace a function into one program. What it raises prevents the event.");
  m.def("trace_ended", [] { active_traces.pop_back(); });
  m.def(
      "suspend_traces", [] { suspended_traces.push_back(std::exchange(active_traces, {})); },
      "Suspends the traces of this thread until resume_traces.");
  m.def("resume_traces", [] {
    active_traces = std::move(suspended_traces.back());
    suspended_traces.pop_back();
  });
  m.def(
      "numpy_began", [] { ++calls_on_numpy; },
      "Makes jitted functions that are called on this thread run on NumPy until numpy_ended.");
  m.def("numpy_ended", [] { --calls_on_numpy; });
  m.def("is_on_numpy", &is_on_numpy, "Whether numpy_began has been called on this thread.");
  // Functions of CPython, not of pybind11, because each traced operation calls them.
  static PyMethodDef functions[] = {
      {"current_trace", &current_trace, METH_NOARGS,
       "The innermost trace that runs on this thread, or None."},
      {"require_trace", &require_trace, METH_NOARGS,
       "The current trace, with the user's line noted. Raises TracerLeakError if there is none."},
      {nullptr, nullptr, 0, nullptr}};
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw py::error_already_set();
}

}  // namespace rune::bindings
