#include "bindings/call_key.h"

#include <pybind11/gil_safe_call_once.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "bindings/array.h"

namespace rune::bindings {

namespace {

// Nested containers, and containers of one argument. Python walks through deeper and larger
// arguments first, and raises if there are too many.
constexpr int kDeepest = 64;
constexpr int64_t kMany = 1 << 16;
constexpr int64_t kMostCounted = 1LL << 32;  // numbers

template <class T>
void append_bytes(const T& value, std::string& text) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

bool append_text(PyObject* string, std::string& text) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(string, &size);
  if (!bytes) {  // a lone surrogate
    PyErr_Clear();
    return false;
  }
  text += 's';
  append_bytes(size, text);
  text.append(bytes, size);
  return true;
}

bool append_array_or_number_key(py::handle leaf, std::string& key,
                                std::span<const int64_t> dynamic) {
  const bool on_device = is_array(leaf);
  if (on_device || is_ndarray(leaf, true)) {
    const ArrayHeader header = header_of(leaf);
    if (!header.dtype) return false;
    for (const int64_t axis : dynamic)
      if (axis < -header.rank || axis >= header.rank) return false;
    const std::string order = header.order();
    key += on_device ? (order.empty() ? 'D' : 'U') : order.empty() ? 'A' : 'T';
    key += static_cast<char>(*header.dtype);
    key += static_cast<char>(header.rank);
    key += order;
    const size_t shape_at = key.size();
    key.append(reinterpret_cast<const char*>(header.shape), header.rank * sizeof(ssize_t));
    for (const int64_t axis : dynamic) {
      const int64_t at = axis < 0 ? axis + header.rank : axis;
      if (header.shape[at] == 0) continue;  // such a size stays in the key
      key.replace(shape_at + at * sizeof(ssize_t), sizeof(ssize_t), sizeof(ssize_t), '\xff');
    }
    if (on_device) {
      Py_ssize_t size = 0;
      const char* device = PyUnicode_AsUTF8AndSize(device_of(leaf).ptr(), &size);
      key += static_cast<char>(size);
      key.append(device, size);
    }
    return true;
  }
  if (PyFloat_CheckExact(leaf.ptr())) {
    key += 'F';
    return true;
  }
  if (PyComplex_CheckExact(leaf.ptr())) {
    key += 'C';
    return true;
  }
  if (PyLong_CheckExact(leaf.ptr())) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(leaf.ptr(), &overflow);
    if (overflow != 0) return false;
    key += 'I';
    return true;
  }
  return false;
}

// The dtype of a NumPy scalar. Empty for other objects and unsupported dtypes.
std::optional<DType> dtype_of_scalar(py::handle x) {
  static std::unordered_map<PyTypeObject*, DType> known;
  if (const auto at = known.find(Py_TYPE(x.ptr())); at != known.end()) return at->second;
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> generic;
  generic.call_once_and_store_result([] { return py::module_::import("numpy").attr("generic"); });
  if (PyObject_IsInstance(x.ptr(), generic.get_stored().ptr()) != 1) return {};
  const auto dtype = dtype_of(py::dtype::from_args(x.attr("dtype")));
  if (!dtype) return {};
  Py_INCREF(Py_TYPE(x.ptr()));  // so that no other type gets its address
  known.emplace(Py_TYPE(x.ptr()), *dtype);
  return dtype;
}

// Appends the key of a NumPy scalar. It is as strong as a 0-d array, but is never written to.
bool append_numpy_scalar_key(py::handle leaf, std::string& key) {
  const auto dtype = dtype_of_scalar(leaf);
  if (!dtype) return false;
  key += 'G';
  key += static_cast<char>(*dtype);
  return true;
}

// Appends None, True, False or a str. Returns false for other values.
bool append_constant(PyObject* value, std::string& text) {
  if (PyUnicode_CheckExact(value)) return append_text(value, text);
  if (value != Py_None && !PyBool_Check(value)) return false;
  text += value == Py_None ? 'N' : value == Py_True ? 'T' : 'B';
  return true;
}

// Classes whose instances are leaves that are keyed by identity.
std::unordered_set<PyTypeObject*>& known_by_identity() {
  static std::unordered_set<PyTypeObject*> classes;
  return classes;
}

// Appends arguments to the key of a call.
class Writer {
 public:
  Writer(KeyedCall& call, std::span<const int64_t> dynamic, const py::object& describe,
         PyObject* argument)
      : call_(call),
        text_(call.key.text),
        dynamic_(dynamic),
        describe_(describe),
        argument_(argument) {}

  // Appends a static value.
  void append_value(PyObject* value, int depth = 0) {
    if (append_constant(value, text_) || append_number(value)) return;
    if (!PyTuple_CheckExact(value) || depth == kDeepest) return append_described(value, true);
    text_ += '(';
    append_bytes(PyTuple_GET_SIZE(value), text_);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
      append_value(PyTuple_GET_ITEM(value, i), depth + 1);
  }

  // Appends an array or a number, or any other object as a static value.
  void append_leaf(PyObject* value) {
    if (!append_leaf_key(value, text_, dynamic_)) append_value(value);
    call_.leaves.push_back(value);
  }

  void append_tree(PyObject* value, int depth = 0) {
    if (append_leaf_key(value, text_, dynamic_)) {
      call_.leaves.push_back(value);
    } else if (value == Py_None) {  // a container without elements
      text_ += 'N';
    } else if (PyUnicode_CheckExact(value) || PyBool_Check(value) ||
               call_.receiver.ptr() == value) {
      append_value(value);
      call_.leaves.push_back(value);
    } else if (depth == kDeepest) {
      check_argument();
      append_described(value, false);
    } else if (PyDict_CheckExact(value)) {
      note_container();
      append_dict(value, depth + 1);
    } else if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
      note_container();
      text_ += PyTuple_CheckExact(value) ? '(' : '[';
      append_bytes(PySequence_Fast_GET_SIZE(value), text_);
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i)
        append_tree(PySequence_Fast_GET_ITEM(value, i), depth + 1);
    } else {
      append_described(value, false);
    }
  }

 private:
  void check_argument() {
    if (!std::exchange(is_checked_, true)) describe_(py::handle(argument_), false);
  }

  void note_container() {
    if (++containers_ == kMany) check_argument();
  }

  bool append_number(PyObject* value) {
    if (PyFloat_CheckExact(value)) {
      text_ += 'f';
      append_bytes(PyFloat_AS_DOUBLE(value), text_);
      return true;
    }
    if (!PyLong_CheckExact(value)) return false;
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0) return false;
    text_ += 'i';
    append_bytes(number, text_);
    return true;
  }

  // Appends a dict, with its items in the order of their names, as in trees.flatten.
  void append_dict(PyObject* dict, int depth) {
    std::vector<std::pair<std::string, PyObject*>> items;
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &value);) {
      std::string text;
      if (!PyUnicode_CheckExact(name) || !append_text(name, text))
        return append_described(dict, false);
      items.emplace_back(std::move(text), value);
    }
    // UTF-8 sorts like code points, so names are compared by bytes.
    const auto characters = [](const auto& item) {
      return std::string_view(item.first).substr(1 + sizeof(Py_ssize_t));
    };
    std::sort(items.begin(), items.end(),
              [&](const auto& a, const auto& b) { return characters(a) < characters(b); });
    text_ += '{';
    append_bytes(items.size(), text_);
    for (const auto& [text, item] : items) {
      text_ += text;
      append_tree(item, depth);
    }
  }

  void append_address(PyObject* value) {
    append_bytes(reinterpret_cast<uintptr_t>(value), text_);
    call_.key.objects.push_back(py::reinterpret_borrow<py::object>(value));
  }

  // Appends a function that was defined inside of a function or by a lambda expression, and so may
  // be another object in each call. It is described by its code, globals and defaults, and by its
  // number among the call's functions. Returns false for functions with attributes, another name,
  // defaults of keyword-only parameters, or variables of outer functions.
  bool append_function(PyObject* value) {
    if (!PyFunction_Check(value)) return false;
    const auto& function = *reinterpret_cast<PyFunctionObject*>(value);
    const auto& code = *reinterpret_cast<PyCodeObject*>(function.func_code);
    static PyObject* const lambda = PyUnicode_InternFromString("<lambda>");
    if (!(code.co_flags & CO_NESTED) && code.co_name != lambda) return false;
    if (function.func_closure || function.func_kwdefaults || function.func_name != code.co_name ||
        (function.func_dict && PyDict_GET_SIZE(function.func_dict) != 0))
      return false;
    auto& known = call_.functions;
    const auto at = std::find(known.begin(), known.end(), value);
    text_ += 'L';
    append_bytes(at - known.begin(), text_);
    if (at != known.end()) return true;
    known.push_back(value);
    append_address(function.func_code);
    append_address(function.func_globals);
    const Py_ssize_t count = function.func_defaults ? PyTuple_GET_SIZE(function.func_defaults) : -1;
    append_bytes(count, text_);
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const item = PyTuple_GET_ITEM(function.func_defaults, i);
      if (append_constant(item, text_) || append_number(item)) continue;
      text_ += 'O';
      append_address(item);
    }
    return true;
  }

  // Appends a method of an object. It is described by its function and object, because each access
  // to the attribute makes a new method object.
  bool append_method(PyObject* value) {
    if (!PyMethod_Check(value)) return false;
    text_ += 'M';
    append_address(PyMethod_GET_FUNCTION(value));
    append_address(PyMethod_GET_SELF(value));
    return true;
  }

  // Appends an object as trees.describe describes it: as a static value, or as a container with
  // leaves.
  void append_described(PyObject* value, bool is_static) {
    if (!is_static && (append_function(value) || append_method(value))) {
      call_.leaves.push_back(value);
      return;
    }
    py::object stands_for, leaves;
    if (!known_by_identity().contains(Py_TYPE(value))) {
      const py::tuple described = describe_(py::handle(value), is_static);
      stands_for = described[0];
      leaves = described[1];
      // Keeps the class, so that no other one gets its address.
      if (described[2].cast<bool>() && known_by_identity().insert(Py_TYPE(value)).second)
        Py_INCREF(Py_TYPE(value));
    }
    if (!stands_for || stands_for.is_none()) {
      text_ += 'O';
      append_address(value);
    } else {
      text_ += 'H';
      append_bytes(py::hash(stands_for), text_);
      call_.key.values.push_back(std::move(stands_for));
    }
    if (leaves && !leaves.is_none()) {
      for (const py::handle leaf : leaves) append_leaf(leaf.ptr());
      call_.owned.push_back(std::move(leaves));
    } else if (!is_static) {
      call_.leaves.push_back(value);
    }
  }

  KeyedCall& call_;
  std::string& text_;
  std::span<const int64_t> dynamic_;
  const py::object& describe_;
  PyObject* argument_;
  int64_t containers_ = 0;  // so far
  bool is_checked_ = false;
};

}  // namespace

bool append_leaf_key(py::handle leaf, std::string& key, std::span<const int64_t> dynamic) {
  return append_array_or_number_key(leaf, key, dynamic) || append_numpy_scalar_key(leaf, key);
}

bool CallKey::operator==(const CallKey& other) const {
  return text == other.text &&
         std::equal(values.begin(), values.end(), other.values.begin(), other.values.end(),
                    [](const py::object& a, const py::object& b) { return a.is(b) || a.equal(b); });
}

int64_t count_numbers(PyObject* value) {
  int64_t count = 1;
  for (int depth = 0; depth < kDeepest; ++depth) {
    PyObject* first = nullptr;
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
      count = std::min<int64_t>(kMostCounted, count * PySequence_Fast_GET_SIZE(value));
      if (PySequence_Fast_GET_SIZE(value) > 0) first = PySequence_Fast_GET_ITEM(value, 0);
    } else if (PyDict_CheckExact(value)) {
      count = std::min<int64_t>(kMostCounted, count * PyDict_GET_SIZE(value));
      Py_ssize_t at = 0;
      PyDict_Next(value, &at, nullptr, &first);
    }
    if (!first) break;
    value = first;
  }
  const bool is_number = PyFloat_CheckExact(value) || PyLong_CheckExact(value) ||
                         PyBool_Check(value) || PyComplex_CheckExact(value);
  return is_number ? count : 0;
}

Parameters::Parameters(const py::sequence& names, std::vector<bool> is_static,
                       std::vector<std::vector<int64_t>> dynamic, size_t star, size_t star_star,
                       bool has_receiver, py::object describe)
    : is_static_(std::move(is_static)),
      dynamic_(std::move(dynamic)),
      star_(star),
      star_star_(star_star),
      has_receiver_(has_receiver),
      describe_(std::move(describe)) {
  for (const py::handle name : names) {
    PyObject* interned = name.inc_ref().ptr();
    if (!name.is_none()) PyUnicode_InternInPlace(&interned);
    names_.push_back(py::reinterpret_steal<py::object>(interned));
  }
}

size_t Parameters::position_of(PyObject* name) const {
  const auto found = std::find_if(names_.begin(), names_.end(),
                                  [&](const py::object& known) { return known.ptr() == name; });
  return found - names_.begin();
}

void Parameters::append(py::handle argument, size_t position, KeyedCall& call) const {
  std::span<const int64_t> dynamic;
  if (position < dynamic_.size()) dynamic = dynamic_[position];
  Writer writer(call, dynamic, describe_, argument.ptr());
  if (position < is_static_.size() && is_static_[position])
    return writer.append_value(argument.ptr());
  if (position == 0 && has_receiver_) call.receiver = argument;
  writer.append_tree(argument.ptr());
}

bool Parameters::may_have_key(std::span<PyObject* const> args, PyObject* const* values,
                              PyObject* names) const {
  const auto is_long = [&](PyObject* value, size_t position) {
    const bool is_container =
        PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value);
    return is_container && count_numbers(value) > kMostNumbers &&
           !(position < is_static_.size() && is_static_[position]);
  };
  for (size_t i = 0; i < args.size(); ++i)
    if (is_long(args[i], std::min(i, star_))) return false;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    if (is_long(values[i], position_of(PyTuple_GET_ITEM(names, i)))) return false;
  return true;
}

bool Parameters::key_of(std::span<PyObject* const> args, PyObject* const* values, PyObject* names,
                        KeyedCall& call) const {
  constexpr size_t kKey = 32;  // the keys of most arguments are not longer
  call.leaves.reserve(args.size());
  call.key.text.reserve(args.size() * kKey);
  for (size_t i = 0; i < args.size(); ++i) append(args[i], std::min(i, star_), call);
  const Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
  if (count == 0) return true;
  // Sorts named arguments by position, as the signature binds them. Unknown names are **kwargs.
  std::vector<std::pair<size_t, PyObject*>> named;
  py::dict others;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(names, i);
    const size_t position = position_of(name);
    if (position < star_ && position < args.size()) return false;
    if (position < names_.size())
      named.emplace_back(position, values[i]);
    else
      others[name] = py::handle(values[i]);
  }
  std::sort(named.begin(), named.end());
  size_t next = args.size();
  for (const auto& [position, value] : named) {
    // A named argument that could have been given by position has the same key as if it had been.
    if (position != next++ || position >= star_) {
      call.key.text += 'K';
      append_bytes(position, call.key.text);
    }
    append(value, position, call);
  }
  if (!others.empty()) {
    call.key.text += 'W';
    append(others, star_star_, call);
  }
  return true;
}

}  // namespace rune::bindings
