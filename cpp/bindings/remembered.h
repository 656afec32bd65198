// The compiled calls of a jitted function, by the keys of their arguments.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/call_key.h"
#include "bindings/compiled_call.h"

namespace rune::bindings {

// A dynamic axis of a leaf, and the range of sizes for which a compiled call was made.
struct AxisRange {
  int64_t leaf = 0, axis = 0;
  std::string name;  // axes with the same name must have the same size
  int64_t least = 0, most = 0;
};

// A number among the leaves whose value is part of the program.
struct Constant {
  int64_t leaf = 0;
  py::object value;

  // Whether a number has the same type and the same value. -0.0 and 0.0 differ.
  bool is(py::handle other) const {
    if (Py_TYPE(other.ptr()) != Py_TYPE(value.ptr())) return false;
    if (PyFloat_Check(other.ptr())) {  // (also numpy.float64)
      const double a = PyFloat_AS_DOUBLE(value.ptr()), b = PyFloat_AS_DOUBLE(other.ptr());
      return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
    }
    if (PyLong_CheckExact(other.ptr())) return value.equal(other);
    const bool may_be_same = value.equal(other) || !value.equal(value);  // (NaN is not itself)
    return may_be_same && py::repr(value).equal(py::repr(other));
  }
};

// Programs for one signature. A list is never changed, because another thread may be reading it.
using Programs = std::vector<std::shared_ptr<CompiledCall>>;
using Ways = std::shared_ptr<const Programs>;

// When a signature that NumPy runs was last called, by CompiledCall's clock.
struct LastUse {
  int64_t tick = CompiledCall::tick();
};

// Calls that run the user's function on NumPy.
struct OnNumpy {
  std::shared_ptr<LastUse> use;
  py::object code;   // of the function; null if it has none
  int64_t left = 0;  // number of calls until Python checks the function's state again
};

struct Remembered {
  Ways ways;  // by the function's conditions; null if on_numpy is set
  std::optional<OnNumpy> on_numpy;
  CallKey key;
  std::vector<AxisRange> ranges;  // of the sizes that the key leaves out
  std::vector<Constant> constants;
  size_t last = 0;  // the way of the last call

  bool is_for(const KeyedCall& call) const { return key == call.key && takes(call.leaves); }

  bool takes(const std::vector<py::handle>& leaves) const {
    for (const Constant& constant : constants)
      if (!constant.is(leaves[constant.leaf])) return false;
    const auto size = [&](const AxisRange& range) {
      return static_cast<int64_t>(header_of(leaves[range.leaf]).shape[range.axis]);
    };
    return std::all_of(ranges.begin(), ranges.end(), [&](const AxisRange& range) {
      const int64_t n = size(range);
      return range.least <= n && n <= range.most &&
             std::all_of(ranges.begin(), ranges.end(), [&](const AxisRange& other) {
               return other.name != range.name || size(other) == n;
             });
    });
  }
};

// The entries of keys with one text. A list is never changed, because another thread may be reading
// it, and neither are an entry's ways.
using Entries = std::shared_ptr<const std::vector<std::shared_ptr<Remembered>>>;

// If NumPy has run more than kManyLooks calls in a row whose keys were made, it runs the next calls
// without making their keys: first as many again, then twice as many each time, up to kMostUnseen.
constexpr int kManyLooks = 16, kMostUnseen = 256;
// After a call that takes this long, the next call's key is made again.
constexpr std::chrono::milliseconds kLongCall{1};

struct Dispatcher {
  Parameters parameters;
  std::unordered_map<std::string, Entries> calls;  // by the texts of keys
  int looks_in_a_row = 0, unseen = 0;
  py::object code;  // of the function when NumPy last ran it; null if it has none

  void note_look(bool on_numpy) {
    looks_in_a_row = on_numpy ? looks_in_a_row + 1 : 0;
    const int more = looks_in_a_row - kManyLooks;
    unseen = more > 0 ? std::min(1 << std::min(more + 3, 30), kMostUnseen) : 0;
  }

  // The entry for a call, or null. `held` keeps it alive: comparisons may run Python code, in which
  // other threads replace entries.
  Remembered* find(const KeyedCall& call, Entries& held) const {
    const auto found = calls.find(call.key.text);
    if (found == calls.end()) return nullptr;
    held = found->second;
    for (const std::shared_ptr<Remembered>& entry : *held)
      if (entry->is_for(call)) return entry.get();
    return nullptr;
  }
  // Puts an entry in the place of those for a call. Null puts none.
  void replace(const KeyedCall& call, std::shared_ptr<Remembered> entry) {
    auto made = std::make_shared<std::vector<std::shared_ptr<Remembered>>>();
    Entries before;
    if (const auto found = calls.find(call.key.text); found != calls.end()) {
      before = found->second;
      std::copy_if(before->begin(), before->end(), std::back_inserter(*made),
                   [&](const auto& other) { return !other->is_for(call); });
    }
    if (entry) made->push_back(std::move(entry));
    // The old entries end when this returns. That may run Python code.
    const Entries old = std::exchange(calls[call.key.text], std::move(made));
  }
  void forget() { const auto old = std::exchange(calls, {}); }
};

}  // namespace rune::bindings
