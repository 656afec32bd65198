#include "bindings/guards.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "types/shape.h"

namespace rune::bindings {

namespace {

constexpr std::array<const char*, 7> kKinds{"attribute", "cell",  "item",   "items",
                                            "keys",      "equal", "content"};

// Whether a program whose trace read `expected` may run with `now` instead. Floats are compared by
// their bits, so -0.0 differs from 0.0, and NaN equals itself.
bool same(PyObject* now, PyObject* expected) {
  if (now == expected) return true;
  if (Py_TYPE(now) != Py_TYPE(expected)) return false;
  if (PyFloat_CheckExact(now)) {
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(now)) ==
           std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(expected));
  }
  if (PyTuple_CheckExact(now)) {
    const Py_ssize_t size = PyTuple_GET_SIZE(now);
    if (size != PyTuple_GET_SIZE(expected)) return false;
    for (Py_ssize_t i = 0; i < size; ++i)
      if (!same(PyTuple_GET_ITEM(now, i), PyTuple_GET_ITEM(expected, i))) return false;
    return true;
  }
  const bool comparable =
      PyLong_CheckExact(now) || PyUnicode_CheckExact(now) || PyBytes_CheckExact(now);
  return comparable && PyObject_RichCompareBool(now, expected, Py_EQ) == 1;
}

// As same, but `now` is a new reference, or null if Python has raised.
bool same_and_release(PyObject* now, PyObject* expected) {
  if (!now) {
    PyErr_Clear();
    return false;
  }
  const bool result = same(now, expected);
  Py_DECREF(now);
  return result;
}

// The items of a dict in order. Calls no methods of derived classes.
struct DictItems {
  explicit DictItems(PyObject* dict) : dict(dict) {
    // (An OrderedDict has an order of its own.)
    if (PyODict_Check(dict)) keys = py::reinterpret_steal<py::object>(PyODict_Type.tp_iter(dict));
  }
  // The next key and value, if there is one.
  bool next(PyObject** key, PyObject** value) {
    if (!keys) return PyDict_Next(dict, &at, key, value);
    held = py::reinterpret_steal<py::object>(PyIter_Next(keys.ptr()));
    if (!held) PyErr_Clear();
    *key = held.ptr();
    *value = held ? PyDict_GetItem(dict, *key) : nullptr;
    return *value;
  }

  PyObject* dict;
  py::object keys, held;
  Py_ssize_t at = 0;
};

// Compares the elements of a list or another sequence, or the items of a dict in their order.
bool same_items(PyObject* now, PyObject* expected) {
  if (PyDict_Check(now)) {
    if (PyDict_Size(now) != PyDict_Size(expected)) return false;
    DictItems items(now);
    PyObject *key = nullptr, *value = nullptr, *old_key = nullptr, *old_value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(expected, &at, &old_key, &old_value);)
      if (!items.next(&key, &value) || !same(key, old_key) || !same(value, old_value)) return false;
    return true;
  }
  const auto items = py::reinterpret_steal<py::object>(
      PyList_Check(now) ? Py_NewRef(now) : PySequence_Fast(now, "not a sequence"));
  if (!items) {  // another thread has changed it meanwhile
    PyErr_Clear();
    return false;
  }
  if (PySequence_Fast_GET_SIZE(items.ptr()) != PyList_GET_SIZE(expected)) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(expected); ++i)
    if (!same(PySequence_Fast_GET_ITEM(items.ptr(), i), PyList_GET_ITEM(expected, i))) return false;
  return true;
}

bool same_keys(PyObject* dict, PyObject* keys) {
  const Py_ssize_t count = PyTuple_GET_SIZE(keys);
  if (PyDict_Size(dict) != count) return false;
  PyObject *key, *value;
  for (Py_ssize_t at = 0, i = 0; i < count; ++i)
    if (!PyDict_Next(dict, &at, &key, &value) || !same(key, PyTuple_GET_ITEM(keys, i)))
      return false;
  return true;
}

bool same_bytes(const py::object& array, const py::object& copy) {
  const ArrayHeader now = header_of(array), then = header_of(copy);
  if (now.rank != then.rank || !std::equal(now.shape, now.shape + now.rank, then.shape))
    return false;
  if (now.dtype && now.dtype == then.dtype && now.contiguous && then.contiguous)
    return std::memcmp(now.data, then.data, now.bytes()) == 0;
  return array.attr("dtype").equal(copy.attr("dtype")) &&
         array.attr("tobytes")().equal(copy.attr("tobytes")());
}

// A part of a Python function, which must be one.
PyObject* part_of(PyObject* function, Guard::OfFunction part) {
  if (part == Guard::OfFunction::Code) return PyFunction_GET_CODE(function);
  PyObject* const found = part == Guard::OfFunction::Defaults
                              ? PyFunction_GET_DEFAULTS(function)
                              : PyFunction_GET_KW_DEFAULTS(function);
  return found ? found : Py_None;
}

Guard::OfFunction part_named(const py::object& function, std::string_view name) {
  if (!PyFunction_Check(function.ptr())) return Guard::OfFunction::None;
  return name == "__code__"         ? Guard::OfFunction::Code
         : name == "__defaults__"   ? Guard::OfFunction::Defaults
         : name == "__kwdefaults__" ? Guard::OfFunction::KwDefaults
                                    : Guard::OfFunction::None;
}

}  // namespace

bool Guard::holds() const {
  PyObject* const at = holder.ptr();
  switch (kind) {
    case Kind::Cell: {
      PyObject* now = PyCell_GET(at);
      return now && same(now, expected.ptr());
    }
    case Kind::Item: {
      PyObject* now = PyDict_GetItemWithError(at, name.ptr());
      if (!now) PyErr_Clear();
      return now && same(now, expected.ptr());
    }
    case Kind::Attribute:
      if (of_function != OfFunction::None) return same(part_of(at, of_function), expected.ptr());
      return same_and_release(PyObject_GetAttr(at, name.ptr()), expected.ptr());
    case Kind::Items: return same_items(at, expected.ptr());
    case Kind::Keys: return same_keys(at, expected.ptr());
    case Kind::Equal: {
      const int equal = PyObject_RichCompareBool(at, expected.ptr(), Py_EQ);
      if (equal < 0) PyErr_Clear();
      return equal == 1;
    }
    case Kind::Content: return same_bytes(holder, expected);
  }
  RUNE_UNREACHABLE();
}

const char* name_of(Guard::Kind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

std::vector<Guard> to_guards(const py::sequence& tuples) {
  std::vector<Guard> guards;
  for (const py::handle item : tuples) {
    const auto t = py::reinterpret_borrow<py::tuple>(item);
    const auto kind = t[0].cast<std::string>();
    const auto found = std::find(kKinds.begin(), kKinds.end(), kind);
    RUNE_CHECK(found != kKinds.end(), "guard of kind ", kind);
    guards.push_back({static_cast<Guard::Kind>(found - kKinds.begin()), t[1], t[2], t[3]});
    if (guards.back().kind == Guard::Kind::Attribute)
      guards.back().of_function = part_named(t[1], t[2].cast<std::string_view>());
  }
  return guards;
}

}  // namespace rune::bindings
