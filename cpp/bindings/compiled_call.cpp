#include "bindings/compiled_call.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace rune::bindings {

namespace {

// The range of memory of an array: from its lowest to its highest element.
struct Extent {
  uintptr_t low = 0, high = 0;
  size_t bytes = 0;  // of all elements

  static Extent of(const ArrayHeader& header) {
    Extent extent;
    extent.low = extent.high = reinterpret_cast<uintptr_t>(header.data);
    extent.bytes = header.bytes();
    for (int i = 0; i < header.rank; ++i) {
      if (header.shape[i] == 0) return {};
      const ssize_t reach = (header.shape[i] - 1) * header.strides[i];
      (reach < 0 ? extent.low : extent.high) += reach;
    }
    extent.high += size_of(*header.dtype);
    return extent;
  }
  bool meets(const Extent& other) const { return low < other.high && other.low < high; }
  // Whether two elements may share memory.
  bool folds() const { return bytes > high - low; }
};

bool is_any_array(py::handle x) {
  return is_array(x) || is_ndarray(x, false);
}

// Whether the array's elements are in C order.
bool is_contiguous(py::handle x) {
  const py::handle views = is_array(x) ? views_of(x) : nullptr;
  return views ? views.attr("is_contiguous")(x).cast<bool>() : header_of(x).contiguous;
}

bool is_in_host_memory(py::handle x) {
  return is_any_array(x) && header_of(x).data;
}

}  // namespace

bool LeafGuard::holds(py::handle value) const {
  if (!dtype) return PyObject_IsTrue(value.ptr()) == 1;
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (v == -1 && PyErr_Occurred()) throw py::error_already_set();
  if (overflow != 0) return false;
  const int bits = bits_of(*dtype);
  if (kind(*dtype) == Kind::Uint) return v >= 0 && (bits >= 64 || (v >> bits) == 0);
  return bits >= 64 || (v >= -(1LL << (bits - 1)) && v < (1LL << (bits - 1)));
}

Check Check::of(const py::tuple& t) {
  if (t[0].cast<std::string>() == "index")
    return {Kind::Index, t[1].cast<int64_t>(), t[2].cast<std::optional<int64_t>>(), {}};
  if (t.size() == 1)
    return {t[0].cast<std::string>() == "raise" ? Kind::Raise : Kind::Assumed, 0, {}, {}};
  return {Kind::Equal, 0, {}, t[1].cast<std::string>()};
}

bool Check::passes(const py::object& computed) const {
  const py::array array = to_host(computed);  // contiguous, of 64-bit integers
  if (kind == Kind::Index) {
    const auto* const numbers = static_cast<const uint64_t*>(array.data());
    if (numbers[0] == 0) return true;
    user_error(ErrorKind::Index, "index ", static_cast<int64_t>(numbers[0]) >> 1,
               " is out of bounds for axis ", axis, " with size ",
               size ? *size : static_cast<int64_t>(numbers[1]));
  }
  const auto* const numbers = static_cast<const int64_t*>(array.data());
  if (numbers[0] == numbers[1]) return true;
  if (kind != Kind::Equal) return false;
  std::string text = message;
  for (const int64_t number : {numbers[0], numbers[1]})
    if (const size_t at = text.find("{}"); at != std::string::npos)
      text.replace(at, 2, std::to_string(number));
  user_error(ErrorKind::Value, text);
}

void WriteBack::write(py::handle target, const py::object& value) const {
  if (is_array(target))
    write_array(target, value);
  else
    copy_elements(target, to_host(value));
}

Output Output::of(const py::tuple& t) {
  const auto from = t[0].cast<std::string>();
  Output output;
  if (from == "constant" || from == "copy") {
    output.from = From::Constant;
    output.constant = t[1];
    output.copy = from == "copy";
    return output;
  }
  output.from = from == "leaf" ? From::Leaf : From::Computed;
  output.index = t[1].cast<int64_t>();
  output.to_python = t.size() > 2 && t[2].cast<bool>();
  output.to_array = t.size() > 3 && t[3].cast<bool>();
  if (t.size() > 4) output.python_if = t[4].cast<int64_t>();
  return output;
}

std::vector<Output> Output::of(const std::vector<py::tuple>& all) {
  std::vector<Output> outputs;
  std::map<int64_t, size_t> first;  // by the number of a computed array
  for (const py::tuple& t : all) {
    Output output = of(t);
    if (output.from == From::Computed) {
      const auto [at, is_new] = first.try_emplace(output.index, outputs.size());
      if (!is_new) output.same_as = at->second;
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

CompiledCall::CompiledCall(std::shared_ptr<BoundProgram> program, std::vector<int64_t> input_leaves,
                           std::vector<py::object> captured, const std::vector<py::tuple>& outputs,
                           py::object unflatten,
                           const std::vector<std::pair<int64_t, py::object>>& leaf_guards,
                           const py::sequence& guards,
                           const std::vector<std::pair<int64_t, int64_t>>& writes,
                           std::vector<int64_t> contiguous,
                           const std::vector<std::pair<int64_t, py::tuple>>& transposed_inputs,
                           const std::vector<std::pair<int64_t, py::tuple>>& transposed_results,
                           const std::vector<py::tuple>& checks, py::object device)
    : program_(std::move(program)),
      input_leaves_(std::move(input_leaves)),
      captured_(std::move(captured)),
      outputs_(Output::of(outputs)),
      unflatten_(std::move(unflatten)),
      device_(std::move(device)),
      guards_(to_guards(guards)),
      contiguous_(std::move(contiguous)),
      transposed_inputs_(Transposition::of(transposed_inputs)),
      transposed_results_(Transposition::of(transposed_results)) {
  for (const auto& [leaf, dtype] : leaf_guards)
    leaf_guards_.push_back({leaf, dtype.is_none() ? std::nullopt : std::optional(to_dtype(dtype))});
  for (const auto& [input, computed] : writes) writes_.push_back({input, computed});
  for (const py::tuple& check : checks) checks_.push_back(Check::of(check));
  for (WriteBack& w : writes_) w.is_direct = is_direct(w);
  takes_leaves_ = captured_.empty();
  for (size_t i = 0; i < input_leaves_.size(); ++i)
    takes_leaves_ = takes_leaves_ && input_leaves_[i] == static_cast<int64_t>(i);
}

std::vector<CompiledCall::Transposition> CompiledCall::Transposition::of(
    const std::vector<std::pair<int64_t, py::tuple>>& all) {
  std::vector<Transposition> made;
  for (const auto& [index, axes] : all) {
    bool reverses = true;
    for (size_t i = 0; i < axes.size(); ++i)
      reverses = reverses && axes[i].cast<size_t>() == axes.size() - 1 - i;
    made.push_back({index, axes, reverses});
  }
  return made;
}

py::object CompiledCall::Transposition::operator()(py::handle array) const {
  return reverses ? py::object(array.attr("T")) : array.attr("transpose")(axes);
}

bool CompiledCall::is_direct(const WriteBack& write) const {
  const auto uses = [&](const Output& output) {
    return output.python_if == write.computed ||
           (output.from == Output::From::Computed && output.index == write.computed);
  };
  const auto writes_same = [&](const WriteBack& other) {
    return other.computed == write.computed || other.input == write.input;
  };
  return program_ && checks_.empty() && transposed_inputs_.empty() && transposed_results_.empty() &&
         program_->may_write_to(write.input, write.computed) &&
         std::none_of(outputs_.begin(), outputs_.end(), uses) &&
         std::count_if(writes_.begin(), writes_.end(), writes_same) == 1;
}

std::vector<void*> CompiledCall::places(std::span<const py::handle> arguments) const {
  std::vector<void*> places;
  for (const WriteBack& w : writes_) {
    if (!w.is_direct) continue;
    void* const place = program_->place_in(arguments[w.input], w.computed);
    if (!place) continue;
    places.resize(program_->outputs().size());
    places[w.computed] = place;
  }
  return places;
}

bool CompiledCall::is_current() const {
  for (const Guard& guard : guards_)
    if (!guard.holds()) return false;
  for (size_t i = 0; i < captured_.size(); ++i) {
    if (!fits(header_of(captured_[i]), program_->inputs()[input_leaves_.size() + i])) return false;
  }
  return true;
}

py::list CompiledCall::broken() const {
  py::list found;
  for (const Guard& guard : guards_)
    if (!guard.holds())
      found.append(py::make_tuple(name_of(guard.kind), guard.holder, guard.name, guard.expected));
  for (size_t i = 0; i < captured_.size(); ++i)
    if (!fits(header_of(captured_[i]), program_->inputs()[input_leaves_.size() + i]))
      found.append(py::make_tuple("array", captured_[i], i, py::none()));
  return found;
}

CompiledCall::Status CompiledCall::call(std::span<const py::handle> leaves, py::object& result) {
  last_used_ = tick();
  if (!is_current()) return Status::Stale;
  for (const LeafGuard& guard : leaf_guards_)
    if (!guard.holds(leaves[guard.leaf])) return Status::Unsuitable;
  std::vector<py::object> computed;
  std::vector<py::handle> gathered;
  if (!takes_leaves_) {
    gathered.reserve(input_leaves_.size() + captured_.size());
    for (const int64_t leaf : input_leaves_) gathered.push_back(leaves[leaf]);
    for (const py::object& array : captured_) gathered.push_back(array);
  }
  const auto arguments =
      takes_leaves_ ? leaves.first(input_leaves_.size()) : std::span<const py::handle>(gathered);
  for (const int64_t input : contiguous_)
    if (is_any_array(arguments[input]) && !is_contiguous(arguments[input]))
      return Status::Unsuitable;
  if (program_) {
    if (!writes_.empty() && !may_write(arguments)) return Status::Unsuitable;
    const std::vector<void*> direct = places(arguments);
    try {
      computed = run(arguments, direct);
    } catch (const py::error_already_set&) {
      // A function on the host has raised. It may have got values that NumPy would not compute for
      // this data, or NumPy would have raised earlier. So NumPy runs the call, which also does the
      // writes before the error.
      if (checks_.empty() && writes_.empty()) throw;
      return Status::Unsuitable;
    }
    try {
      if (const Check* failed = checks_.empty() ? nullptr : failed_check(computed))
        return failed->kind == Check::Kind::Raise ? Status::Unsuitable : Status::Stale;
    } catch (const UserError& error) {
      if (writes_.empty() && error.kind() != ErrorKind::Index) throw;
      return Status::Unsuitable;  // NumPy runs the call, and raises at the line of the function
    }
    for (const Transposition& t : transposed_results_)
      computed[t.index] = t(to_host(computed[t.index]));
    for (const WriteBack& w : writes_)
      if (direct.empty() || !direct[w.computed]) w.write(arguments[w.input], computed[w.computed]);
  }
  result = assemble(leaves, computed);
  return Status::Done;
}

std::vector<py::object> CompiledCall::run(std::span<const py::handle> arguments,
                                          std::span<void* const> places) const {
  if (transposed_inputs_.empty()) return program_->run(arguments, {}, places);
  std::vector<py::handle> taken(arguments.begin(), arguments.end());
  std::vector<py::object> transposes;
  for (const Transposition& t : transposed_inputs_) {
    const py::handle array = arguments[t.index];
    transposes.push_back(t(is_array(array) ? memory_of(array) : array));
    taken[t.index] = transposes.back();
  }
  return program_->run(taken);
}

// Checks of indices do not wait for a device with memory of its own if all that the call makes are
// Arrays there. They are deferred until one of them is read.
const Check* CompiledCall::failed_check(std::span<const py::object> computed) const {
  const size_t first = computed.size() - checks_.size();
  const bool may_defer = writes_.empty() && !device_.is_none();
  DeferredChecks deferred;
  for (size_t i = 0; i < checks_.size(); ++i) {
    const py::object& flags = computed[first + i];
    if (may_defer && checks_[i].kind == Check::Kind::Index && !is_ndarray(flags, false))
      deferred.push_back(std::make_shared<DeferredCheck>(
          [check = checks_[i], memory = flags.cast<std::shared_ptr<DeviceMemory>>()] {
            check.passes(py::cast(memory));
          }));
    else if (!checks_[i].passes(flags))
      return &checks_[i];
  }
  if (!deferred.empty())
    for (size_t i = 0; i < first; ++i) computed[i].cast<DeviceMemory&>().add_checks(deferred);
  return nullptr;
}

// Whether the writes may be done: the arrays are writeable, and each write touches only one input,
// and no array whose content a guard compares.
bool CompiledCall::may_write(std::span<const py::handle> arguments) const {
  for (const WriteBack& w : writes_) {
    if (!is_in_host_memory(arguments[w.input])) {
      const py::handle target = arguments[w.input];
      const auto is_same = [&](py::handle x) {
        return x.is(target) || (is_array(x) && views_of(x) && views_of(x).is(views_of(target)));
      };
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

py::object CompiledCall::one(const Output& output, std::span<const py::handle> leaves,
                             std::span<const py::object> computed) const {
  switch (output.from) {
    case Output::From::Constant:
      return output.copy ? output.constant.attr("copy")() : output.constant;
    case Output::From::Leaf: return py::reinterpret_borrow<py::object>(leaves[output.index]);
    case Output::From::Computed: {
      const py::object& value = computed[output.index];
      const auto item = [](const py::object& x) { return to_host(x).attr("item")(); };
      const bool is_python =
          output.python_if ? item(computed[*output.python_if]).cast<bool>() : output.to_python;
      if (is_python) return item(value);
      if (!device_.is_none()) return make_array(value, device_);
      return output.to_array ? to_host(value) : to_numpy_result(value);
    }
  }
  RUNE_UNREACHABLE();
}

py::object CompiledCall::assemble(std::span<const py::handle> leaves,
                                  std::span<const py::object> computed) const {
  if (unflatten_.is_none()) return one(outputs_[0], leaves, computed);
  py::tuple results(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const std::optional<size_t> same = outputs_[i].same_as;
    results[i] = same ? py::object(results[*same]) : one(outputs_[i], leaves, computed);
  }
  return unflatten_(results);
}

}  // namespace rune::bindings
