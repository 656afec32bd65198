#include "bindings/call_key.h"

#include <algorithm>
#include <cstring>

#include "bindings/leaf_key.h"

namespace rune::bindings {

namespace {

constexpr int kDeepest = 64;  // containers; Python raises RecursionError beyond its own limit

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

// A value that is None, True, False or a str.
bool append_constant(PyObject* value, std::string& text) {
  if (PyUnicode_CheckExact(value)) return append_text(value, text);
  if (value != Py_None && !PyBool_Check(value)) return false;
  text += value == Py_None ? 'N' : value == Py_True ? 'T' : 'B';
  return true;
}

void append_object(PyObject* object, CallKey& key) {
  key.text += 'O';
  append_bytes(object, key.text);
  key.objects.push_back(object);
}

bool append_static(PyObject* value, CallKey& key, int depth) {
  if (append_constant(value, key.text)) return true;
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0) return false;
    key.text += 'i';
    append_bytes(number, key.text);
    return true;
  }
  if (PyFloat_CheckExact(value)) {
    key.text += 'f';
    append_bytes(PyFloat_AS_DOUBLE(value), key.text);
    return true;
  }
  if (PyTuple_CheckExact(value)) {
    if (depth == kDeepest) return false;
    key.text += '(';
    append_bytes(PyTuple_GET_SIZE(value), key.text);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
      if (!append_static(PyTuple_GET_ITEM(value, i), key, depth + 1)) return false;
    return true;
  }
  append_object(value, key);
  return true;
}

bool append_tree(PyObject* value, CallKey& key, int depth);

// Its items in the order of their names, as trees.flatten has them.
bool append_dict(PyObject* dict, CallKey& key, int depth) {
  std::vector<std::pair<std::string, PyObject*>> items;
  PyObject *name = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &value);) {
    std::string text;
    if (!PyUnicode_CheckExact(name) || !append_text(name, text)) return false;
    items.emplace_back(std::move(text), value);
  }
  // By their characters: UTF-8 sorts as code points do.
  const auto characters = [](const auto& item) {
    return std::string_view(item.first).substr(1 + sizeof(Py_ssize_t));
  };
  std::sort(items.begin(), items.end(),
            [&](const auto& a, const auto& b) { return characters(a) < characters(b); });
  key.text += '{';
  append_bytes(items.size(), key.text);
  for (const auto& [text, item] : items) {
    key.text += text;
    if (!append_tree(item, key, depth)) return false;
  }
  return true;
}

bool append_items(PyObject* const* items, Py_ssize_t count, char kind, CallKey& key, int depth) {
  key.text += kind;
  append_bytes(count, key.text);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!append_tree(items[i], key, depth)) return false;
  return true;
}

bool append_tree(PyObject* value, CallKey& key, int depth) {
  if (append_leaf_key(value, key.text, key.dynamic)) {
    key.leaves.push_back(value);
    return true;
  }
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value)) {
    if (depth == kDeepest) return false;
    if (PyDict_CheckExact(value)) return append_dict(value, key, depth + 1);
    return append_items(PySequence_Fast_ITEMS(value), PySequence_Fast_GET_SIZE(value),
                        PyTuple_CheckExact(value) ? '(' : '[', key, depth + 1);
  }
  if (value != Py_None) key.leaves.push_back(value);
  if (!append_constant(value, key.text)) append_object(value, key);
  return true;
}

}  // namespace

Parameters::Parameters(const py::sequence& names, std::vector<bool> is_static,
                       std::vector<std::vector<int64_t>> dynamic, size_t star)
    : is_static_(std::move(is_static)), dynamic_(std::move(dynamic)), star_(star) {
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

bool Parameters::append(py::handle argument, size_t position, CallKey& key) const {
  const bool is_static = position < is_static_.size() && is_static_[position];
  key.dynamic = {};
  if (position < dynamic_.size()) key.dynamic = dynamic_[position];
  return is_static ? append_static(argument.ptr(), key, 0) : append_tree(argument.ptr(), key, 0);
}

bool Parameters::key_of(std::span<const py::handle> args, PyObject* const* values, PyObject* names,
                        CallKey& key) const {
  for (size_t i = 0; i < args.size(); ++i)
    if (!append(args[i], std::min(i, star_), key)) return false;
  const Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
  if (count == 0) return true;
  std::vector<std::pair<size_t, PyObject*>> named;  // by position, as the signature binds them
  for (Py_ssize_t i = 0; i < count; ++i) {
    const size_t position = position_of(PyTuple_GET_ITEM(names, i));
    if (position == names_.size() || (position < star_ && position < args.size())) return false;
    named.emplace_back(position, values[i]);
  }
  std::sort(named.begin(), named.end());
  for (const auto& [position, value] : named) {
    key.text += 'K';
    append_bytes(position, key.text);
    if (!append(value, position, key)) return false;
  }
  return true;
}

}  // namespace rune::bindings
