// The path of a warm call: key the arguments, find the compiled call, run it.
#include <pybind11/gil_safe_call_once.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "bindings/guards.h"
#include "bindings/program.h"

namespace rune::bindings {

namespace {

// Appends what of a leaf decides which program runs: dtype, shape and device of arrays, dtype of
// NumPy scalars, the type of Python ints and floats. False, and nothing appended, for a leaf that
// is a static value.
bool append_leaf_key(py::handle leaf, std::string& key) {
  const bool on_device = is_array(leaf);
  if (on_device || is_ndarray(leaf, true)) {
    const ArrayHeader header = header_of(leaf);
    if (!header.dtype) return false;
    key += on_device ? 'D' : 'A';
    key += static_cast<char>(*header.dtype);
    key += static_cast<char>(header.rank);
    key.append(reinterpret_cast<const char*>(header.shape), header.rank * sizeof(ssize_t));
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
  if (PyLong_CheckExact(leaf.ptr())) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(leaf.ptr(), &overflow);
    if (overflow != 0) return false;
    key += 'I';
    return true;
  }
  return false;
}

py::object numpy_attribute(const char* name) {
  return py::module_::import("numpy").attr(name);
}

// NumPy scalars are as strong as 0-d arrays, but nothing is ever written to them.
bool append_numpy_scalar_key(py::handle leaf, std::string& key) {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> generic;
  generic.call_once_and_store_result([] { return numpy_attribute("generic"); });
  if (PyObject_IsInstance(leaf.ptr(), generic.get_stored().ptr()) != 1) return false;
  const auto dtype = dtype_of(py::dtype::from_args(leaf.attr("dtype")));
  if (!dtype) return false;
  key += 'G';
  key += static_cast<char>(*dtype);
  return true;
}

struct LeafGuard {
  int64_t leaf = 0;
  std::optional<DType> dtype;  // absent: the number must not be zero

  bool holds(py::handle value) const {
    if (!dtype) return PyObject_IsTrue(value.ptr()) == 1;
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow != 0) return false;
    const int bits = bits_of(*dtype);
    if (kind(*dtype) == Kind::Uint) return v >= 0 && (bits >= 64 || (v >> bits) == 0);
    return bits >= 64 || (v >= -(1LL << (bits - 1)) && v < (1LL << (bits - 1)));
  }
};

// A check made while the program runs, of one of its values.
struct Check {
  // Index, of a 0-d uint64: 0, or 2 * i + 1 for an index i out of bounds. Equal, of two int64: they
  // are equal.
  enum class Kind : uint8_t { Index, Equal } kind = Kind::Index;
  int64_t axis = 0, size = 0;  // of Index
  std::string message;         // of Equal: what a ValueError says; the numbers replace each {}

  static Check of(const py::tuple& t) {
    if (t[0].cast<std::string>() == "index")
      return {Kind::Index, t[1].cast<int64_t>(), t[2].cast<int64_t>(), {}};
    return {Kind::Equal, 0, 0, t[1].cast<std::string>()};
  }

  void raise_unless_passed(const py::object& computed) const {
    const py::object value = to_numpy_result(computed);
    switch (kind) {
      case Kind::Index: {
        const auto code = value.cast<uint64_t>();
        if (code == 0) return;
        user_error(ErrorKind::Index, "index ", static_cast<int64_t>(code) >> 1,
                   " is out of bounds for axis ", axis, " with size ", size);
      }
      case Kind::Equal: {
        const auto numbers = value.cast<std::vector<int64_t>>();
        if (numbers.at(0) == numbers.at(1)) return;
        std::string text = message;
        for (const int64_t number : numbers)
          if (const size_t at = text.find("{}"); at != std::string::npos)
            text.replace(at, 2, std::to_string(number));
        user_error(ErrorKind::Value, text);
      }
    }
  }
};

// The memory of an array: the bytes between its lowest and its highest element.
struct Extent {
  uintptr_t low = 0, high = 0;
  size_t bytes = 0;  // of all elements

  static Extent of(const ArrayHeader& header) {
    Extent extent;
    extent.low = extent.high = reinterpret_cast<uintptr_t>(header.data);
    extent.bytes = size_of(*header.dtype);
    for (int i = 0; i < header.rank; ++i) {
      if (header.shape[i] == 0) return {};
      const ssize_t reach = (header.shape[i] - 1) * header.strides[i];
      (reach < 0 ? extent.low : extent.high) += reach;
      extent.bytes *= header.shape[i];
    }
    extent.high += size_of(*header.dtype);
    return extent;
  }
  bool meets(const Extent& other) const { return low < other.high && other.low < high; }
  // Two elements may share memory.
  bool folds() const { return bytes > high - low; }
};

// A write of the traced function to an argument or a captured array, done after the run.
struct WriteBack {
  int64_t input = 0;  // of the program
  int64_t computed = 0;

  // `value` is memory. An Array gets it as its new memory: other Arrays that share the old one keep
  // their elements.
  void write(py::handle target, const py::object& value) const {
    if (is_array(target)) return set_memory(target, value);
    const ArrayHeader header = header_of(target);
    const py::array array = to_host(value);
    if (header.contiguous) {
      const ArrayHeader from = header_of(array);
      std::memcpy(header.data, from.data, Extent::of(from).bytes);
      return;
    }
    PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> copyto;
    copyto.call_once_and_store_result([] { return numpy_attribute("copyto"); });
    copyto.get_stored()(target, array);
  }
};

struct Output {
  enum class From : uint8_t { Computed, Leaf, Constant } from = From::Computed;
  int64_t index = 0;
  bool to_python = false;  // a Python number, not NumPy's
  bool copy = false;       // of Constant: each call returns its own array
  bool to_array = false;   // a 0-d array, not a scalar
  py::object constant;
};

enum class Status { Done, Unsuitable, Stale };

// A traced function for one key: its program and how arguments and results meet it.
class CompiledCall {
 public:
  CompiledCall(std::shared_ptr<BoundProgram> program, std::vector<int64_t> input_leaves,
               const py::sequence& captured, const py::sequence& outputs, py::object unflatten,
               const py::sequence& leaf_guards, const py::sequence& guards,
               const py::sequence& writes, std::vector<int64_t> contiguous,
               const py::sequence& checks, py::object device)
      : program_(std::move(program)),
        input_leaves_(std::move(input_leaves)),
        unflatten_(std::move(unflatten)),
        device_(std::move(device)),
        guards_(to_guards(guards)),
        contiguous_(std::move(contiguous)) {
    for (const py::handle array : captured)
      captured_.push_back(py::reinterpret_borrow<py::object>(array));
    for (const py::handle o : outputs)
      outputs_.push_back(to_output(py::reinterpret_borrow<py::tuple>(o)));
    for (const py::handle g : leaf_guards) {
      const auto pair = py::reinterpret_borrow<py::tuple>(g);
      std::optional<DType> dtype;
      if (!pair[1].is_none()) dtype = to_dtype(pair[1]);
      leaf_guards_.push_back({pair[0].cast<int64_t>(), dtype});
    }
    for (const py::handle w : writes) {
      const auto t = py::reinterpret_borrow<py::tuple>(w);
      writes_.push_back({t[0].cast<int64_t>(), t[1].cast<int64_t>()});
    }
    for (const py::handle c : checks)
      checks_.push_back(Check::of(py::reinterpret_borrow<py::tuple>(c)));
  }

  // Whether the state that the trace read is what it was, and the captured arrays have the types
  // that they had then.
  bool is_current() const {
    for (const Guard& guard : guards_)
      if (!guard.holds()) return false;
    for (size_t i = 0; i < captured_.size(); ++i) {
      const ArrayHeader header = header_of(captured_[i]);
      const ArrayType& type = program_->inputs()[input_leaves_.size() + i];
      if (header.dtype != type.dtype || header.rank != static_cast<int>(type.shape.size()) ||
          !std::equal(type.shape.begin(), type.shape.end(), header.shape))
        return false;
    }
    return true;
  }

  // Grows with each use of any compiled call.
  static int64_t tick() { return ++ticks_; }
  int64_t last_used() const { return last_used_; }

  Status call(std::span<const py::handle> leaves, py::object& result) {
    last_used_ = tick();
    if (!is_current()) return Status::Stale;
    for (const LeafGuard& guard : leaf_guards_)
      if (!guard.holds(leaves[guard.leaf])) return Status::Unsuitable;
    std::vector<py::object> computed;
    if (program_) {
      std::vector<py::handle> arguments;
      arguments.reserve(input_leaves_.size() + captured_.size());
      for (const int64_t leaf : input_leaves_) arguments.push_back(leaves[leaf]);
      for (const py::object& array : captured_) arguments.push_back(array);
      for (const int64_t input : contiguous_)
        if (is_ndarray(arguments[input], false) && !header_of(arguments[input]).contiguous)
          return Status::Unsuitable;
      if (!writes_.empty() && !may_write(arguments)) return Status::Unsuitable;
      computed = program_->run(arguments);
      const size_t first_check = computed.size() - checks_.size();
      for (size_t i = 0; i < checks_.size(); ++i)
        checks_[i].raise_unless_passed(computed[first_check + i]);
      for (const WriteBack& w : writes_) w.write(arguments[w.input], computed[w.computed]);
    }
    result = assemble(leaves, computed);
    return Status::Done;
  }

 private:
  // Whether NumPy would write to these arrays, and each write touches one input only and none that
  // the trace knew.
  bool may_write(std::span<const py::handle> arguments) const {
    for (const WriteBack& w : writes_) {
      if (is_array(arguments[w.input])) {
        const auto is_same = [&](py::handle x) { return x.is(arguments[w.input]); };
        if (std::count_if(arguments.begin(), arguments.end(), is_same) > 1) return false;
        continue;
      }
      const ArrayHeader header = header_of(arguments[w.input]);
      const Extent extent = Extent::of(header);
      if (!header.writeable || extent.folds()) return false;
      for (size_t i = 0; i < arguments.size(); ++i)
        if (static_cast<int64_t>(i) != w.input && is_in_host_memory(arguments[i]) &&
            extent.meets(Extent::of(header_of(arguments[i]))))
          return false;
      for (const Guard& guard : guards_)
        if (guard.kind == Guard::Kind::Content && header_of(guard.holder).dtype &&
            extent.meets(Extent::of(header_of(guard.holder))))
          return false;
    }
    return true;
  }

  static bool is_in_host_memory(py::handle x) {
    return is_array(x) ? header_of(x).data != nullptr : is_ndarray(x, false);
  }

  // ("computed", index, to_python, to_array), ("leaf", index), ("constant", object) or ("copy",
  // array).
  static Output to_output(const py::tuple& t) {
    const auto from = t[0].cast<std::string>();
    Output output;
    if (from == "constant" || from == "copy") {
      output.from = Output::From::Constant;
      output.constant = t[1];
      output.copy = from == "copy";
      return output;
    }
    output.from = from == "leaf" ? Output::From::Leaf : Output::From::Computed;
    output.index = t[1].cast<int64_t>();
    output.to_python = t.size() > 2 && t[2].cast<bool>();
    output.to_array = t.size() > 3 && t[3].cast<bool>();
    return output;
  }

  py::object one(const Output& output, std::span<const py::handle> leaves,
                 const std::vector<py::object>& computed) const {
    switch (output.from) {
      case Output::From::Constant:
        return output.copy ? output.constant.attr("copy")() : output.constant;
      case Output::From::Leaf: return py::reinterpret_borrow<py::object>(leaves[output.index]);
      case Output::From::Computed: {
        const py::object& value = computed[output.index];
        if (output.to_python) return to_host(value).attr("item")();
        if (!device_.is_none()) return make_array(value, device_);
        return output.to_array ? to_host(value) : to_numpy_result(value);
      }
    }
    RUNE_UNREACHABLE();
  }

  py::object assemble(std::span<const py::handle> leaves,
                      const std::vector<py::object>& computed) const {
    if (unflatten_.is_none()) return one(outputs_[0], leaves, computed);
    py::tuple results(outputs_.size());
    for (size_t i = 0; i < outputs_.size(); ++i) results[i] = one(outputs_[i], leaves, computed);
    return unflatten_(results);
  }

  static inline int64_t ticks_ = 0;  // the GIL guards it
  int64_t last_used_ = 0;
  std::shared_ptr<BoundProgram> program_;  // null if nothing is computed
  std::vector<int64_t> input_leaves_;
  std::vector<py::object> captured_;
  std::vector<Output> outputs_;
  py::object unflatten_;
  py::object device_;  // of the Arrays that are returned; None if results are NumPy's
  std::vector<LeafGuard> leaf_guards_;
  std::vector<Guard> guards_;
  std::vector<int64_t> contiguous_;  // inputs
  std::vector<WriteBack> writes_;
  std::vector<Check> checks_;  // of the program's last results
};

// Finds the compiled call of a call with positional arrays and numbers only; all else goes to the
// Python function `slow(args, kwargs)`. `eager(args, kwargs)` runs the user's function on NumPy.
class Dispatcher {
 public:
  Dispatcher(py::object slow, py::object eager)
      : slow_(std::move(slow)), eager_(std::move(eager)) {}

  py::object call(const py::tuple& args, const py::dict& kwargs) {
    std::string key;
    if (!kwargs.empty() || !key_of(args, key)) return slow_(args, kwargs);
    const auto found = calls_.find(key);
    if (found == calls_.end()) return slow_(args, kwargs);
    std::vector<py::handle> leaves(args.begin(), args.end());
    const std::shared_ptr<CompiledCall> compiled = found->second;  // may be cleared while it runs
    py::object result;
    switch (compiled->call(leaves, result)) {
      case Status::Done: ++hits_; return result;
      case Status::Unsuitable: return eager_(args, kwargs);
      case Status::Stale: calls_.erase(key); return slow_(args, kwargs);
    }
    RUNE_UNREACHABLE();
  }

  // Registers a call; false if its arguments are not of the simple kind.
  bool add(const py::tuple& args, std::shared_ptr<CompiledCall> compiled) {
    std::string key;
    if (!key_of(args, key)) return false;
    calls_[key] = std::move(compiled);
    return true;
  }

  void clear() { calls_.clear(); }
  int64_t hits() const { return hits_; }

 private:
  static bool key_of(const py::tuple& args, std::string& key) {
    for (const py::handle arg : args)
      if (!append_leaf_key(arg, key) && !append_numpy_scalar_key(arg, key)) return false;
    return true;
  }

  std::unordered_map<std::string, std::shared_ptr<CompiledCall>> calls_;
  py::object slow_, eager_;
  int64_t hits_ = 0;
};

// The key of the leaves, and the positions of those that are static values.
py::tuple key_leaves(const py::sequence& leaves) {
  std::string key;
  py::list statics;
  int64_t i = 0;
  for (const py::handle leaf : leaves) {
    if (!append_leaf_key(leaf, key) && !append_numpy_scalar_key(leaf, key)) {
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
        "(key, positions of static leaves): arrays and numbers are keyed by type, not by value.");
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
        const Status status = c.call(handles, result);
        const char* name = status == Status::Done    ? "done"
                           : status == Status::Stale ? "stale"
                                                     : "unsuitable";
        return py::make_tuple(name, result);
      });
  py::class_<Dispatcher>(m, "Dispatcher")
      .def(py::init<py::object, py::object>(), py::arg("slow"), py::arg("eager"))
      .def("call", &Dispatcher::call)
      .def("add", &Dispatcher::add)
      .def("clear", &Dispatcher::clear)
      .def_property_readonly("hits", &Dispatcher::hits);
}

}  // namespace rune::bindings
