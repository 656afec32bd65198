// Binds dtypes, capabilities of targets, options and the table of scalar operations.
#include <pybind11/gil_safe_call_once.h>

#include <algorithm>
#include <bit>

#include "alu/alu.h"
#include "base/error.h"
#include "base/options.h"
#include "bindings/array.h"
#include "bindings/bindings.h"
#include "bindings/tracer.h"
#include "graph/numpy/ufuncs.h"

namespace rune::bindings {

namespace {

// NumPy's dtypes by type number. NumPy has two numbers for some types (long and long long).
struct DTypeTable {
  std::array<py::object, kNumGraphDTypes> descriptors;  // null for bfloat16
  std::vector<std::optional<DType>> by_number;

  void add(int number, DType dtype) {
    by_number.resize(std::max<size_t>(by_number.size(), number + 1));
    by_number[number] = dtype;
  }
};

// The table is made once and never freed, because the interpreter may have ended at exit. During
// the import another thread may run and need the table. With a plain static variable, that thread
// would wait for ever with the GIL held.
const DTypeTable& dtype_table() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<DTypeTable> table;
  const auto make = [] {
    DTypeTable t;
    for (int i = 0; i < kNumGraphDTypes; ++i) {
      const auto d = static_cast<DType>(i);
      if (d == DType::Bfloat16) continue;
      const py::dtype descriptor = py::dtype::from_args(py::str(numpy_name(d)));
      t.add(descriptor.num(), d);
      t.descriptors[i] = descriptor;
    }
    for (const char* code : {"l", "L", "q", "Q", "i", "I"}) {
      const py::dtype descriptor = py::dtype::from_args(py::str(code));
      const bool is_signed = descriptor.kind() == 'i';
      const DType d = descriptor.itemsize() == 8 ? (is_signed ? DType::Int64 : DType::Uint64)
                                                 : (is_signed ? DType::Int32 : DType::Uint32);
      t.add(descriptor.num(), d);
    }
    return t;
  };
  return table.call_once_and_store_result(make).get_stored();
}

// The dtype of ml_dtypes. That package takes longer to import than all of this one, so that it is
// imported where the dtype is first needed.
const py::object& bfloat16() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> descriptor;
  const auto make = [] {
    return py::object(py::dtype::from_args(py::module_::import("ml_dtypes").attr("bfloat16")));
  };
  return descriptor.call_once_and_store_result(make).get_stored();
}

// Whether a type number that is not NumPy's is that of bfloat16.
bool is_bfloat16(int number) {
  static PyObject* const name = PyUnicode_InternFromString("ml_dtypes");
  if (!PyDict_Contains(PyImport_GetModuleDict(), name)) return false;
  return py::reinterpret_borrow<py::dtype>(bfloat16()).num() == number;
}

py::dict describe(const AluInfo& row) {
  py::dict d;
  d["name"] = row.text;
  d["arity"] = row.arity;
  d["operands"] = row.operands;
  d["numpy"] = row.numpy;
  d["meaning"] = row.meaning;
  d["associative"] = row.has(alu_flags::Associative);
  return d;
}

}  // namespace

PyTypeObject* ndarray_class = nullptr;

std::optional<DType> dtype_of(py::handle descriptor) {
  const auto& fields = *py::detail::array_descriptor_proxy(descriptor.ptr());
  // The native byte order is '=' or, for single bytes, '|'. Arrays from files may have it as '<' or
  // '>'.
  constexpr char kOther = std::endian::native == std::endian::little ? '>' : '<';
  if (fields.byteorder == kOther) return std::nullopt;
  const auto& by_number = dtype_table().by_number;
  constexpr int kFirstOfOthers = 256;  // type numbers of other libraries; some have -1
  if (fields.type_num >= kFirstOfOthers)
    return is_bfloat16(fields.type_num) ? std::optional(DType::Bfloat16) : std::nullopt;
  const auto number = static_cast<size_t>(fields.type_num);
  return number < by_number.size() ? by_number[number] : std::nullopt;
}

DType to_dtype(py::handle anything) {
  const TracerObject* const tracer = as_tracer(anything.ptr());
  if (tracer && !storage_of(*tracer).is(StorageField::Scalar))  // (it has a dtype, as NumPy's have)
    throw py::type_error("Cannot construct a dtype from an array");
  const py::dtype descriptor = py::dtype::from_args(py::reinterpret_borrow<py::object>(anything));
  const auto dtype = dtype_of(descriptor);
  if (!dtype)
    user_error(ErrorKind::Unsupported, "dtype: cannot trace arrays of ",
               std::string(py::str(descriptor)));
  return *dtype;
}

py::dtype to_numpy(DType dtype) {
  return py::reinterpret_borrow<py::dtype>(
      dtype == DType::Bfloat16 ? bfloat16() : dtype_table().descriptors[static_cast<int>(dtype)]);
}

bool is_ndarray(py::handle object, bool exact) {
  if (Py_TYPE(object.ptr()) == ndarray_class) return true;
  if (PyObject_TypeCheck(object.ptr(), ndarray_class) == 0) return false;
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> memmap;
  memmap.call_once_and_store_result([] { return py::module_::import("numpy").attr("memmap"); });
  return !exact || py::type::of(object).is(memmap.get_stored());
}

size_t ArrayHeader::bytes() const {
  size_t bytes = size_of(*dtype);
  for (int i = 0; i < rank; ++i) bytes *= shape[i];
  return bytes;
}

std::string ArrayHeader::order() const {
  if (contiguous || rank < 2) return {};
  std::string order;
  std::vector<int> sides;
  for (int axis = 0; axis < rank; ++axis) {
    if (shape[axis] == 0 || (shape[axis] != 1 && strides[axis] == 0)) return {};
    if (shape[axis] == 1)
      order += static_cast<char>(axis);
    else
      sides.push_back(axis);
  }
  const auto comes_first = [&](int a, int b) {
    return std::abs(strides[a]) > std::abs(strides[b]);
  };
  std::ranges::stable_sort(sides, comes_first);
  if (std::ranges::is_sorted(sides)) return {};
  for (const int axis : sides) order += static_cast<char>(axis);
  bool has_gaps = false;
  auto stride = static_cast<ssize_t>(size_of(*dtype));
  for (size_t i = sides.size(); i-- > 0; stride *= shape[sides[i]])
    has_gaps = has_gaps || strides[sides[i]] != stride;
  return order + (has_gaps ? '1' : '0');
}

ArrayHeader header_of(py::handle array) {
  if (is_array(array)) {
    const py::object memory = memory_of(array);
    if (is_ndarray(memory, false)) return header_of(memory);
    const ArrayType& type = memory.cast<const DeviceMemory&>().type();
    ArrayHeader header;
    header.rank = static_cast<int>(type.shape.size());
    header.shape = reinterpret_cast<const ssize_t*>(type.shape.data());
    header.dtype = type.dtype;
    header.contiguous = true;
    return header;
  }
  const auto* proxy = py::detail::array_proxy(array.ptr());
  ArrayHeader header;
  header.data = proxy->data;
  header.rank = proxy->nd;
  header.shape = proxy->dimensions;
  header.strides = proxy->strides;
  header.dtype = dtype_of(proxy->descr);
  constexpr int kContiguous = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_;
  constexpr int kAligned = py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  const bool aligned = proxy->flags & kAligned;
  header.contiguous = (proxy->flags & kContiguous) && aligned;
  header.writeable = proxy->flags & py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return header;
}

void bind_types(py::module_& m) {
  ndarray_class = py::detail::npy_api::get().PyArray_Type_;
  m.def(
      "dtypes",
      [] {
        py::list names;
        for (int i = 0; i < kNumGraphDTypes; ++i) names.append(numpy_name(static_cast<DType>(i)));
        return names;
      },
      "NumPy's names of the dtypes that can be traced.");
  m.def(
      "is_supported_dtype", [](const py::dtype& d) { return dtype_of(d).has_value(); },
      py::arg("dtype"));
  m.def(
      "alu_ops",
      [] {
        py::list rows;
        for (const AluInfo& row : all_alu_ops()) rows.append(describe(row));
        return rows;
      },
      "The table of scalar operations, one dict for each.");
  m.def(
      "has_ufunc", [](const std::string& name) { return graph::numpy::has_ufunc(name); },
      py::arg("name"), "Whether the NumPy ufunc of this name can be traced.");
  m.def("describe_options", &describe_options, "Environment variables, their values and meanings.");
  m.def("default_device", [] { return options().device; });
  m.def("is_disabled", [] { return options().disable; });
}

}  // namespace rune::bindings
