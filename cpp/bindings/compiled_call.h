// A traced function for one signature: its program, and the conversion of arguments and results.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bindings/guards.h"
#include "bindings/program.h"

namespace rune::bindings {

// A condition on a Python number among the arguments, which the trace relied on.
struct LeafGuard {
  int64_t leaf = 0;
  std::optional<DType> dtype;  // the number fits this dtype; or, if absent, it is not zero

  bool holds(py::handle value) const;
};

// A check of a value that the program computes.
struct Check {
  // Index: a uint64 must be 0. Otherwise it is 2 * i + 1 for an index i out of bounds. A second
  // uint64 is the size of the axis if that is not known before.
  // Equal, Assumed, Raise: two int64 must be equal. Otherwise, for Equal, the call raises
  // ValueError. For Assumed, the program is not the one for the call's data. For Raise, Python runs
  // the call, which raises.
  enum class Kind : uint8_t { Index, Equal, Assumed, Raise } kind = Kind::Index;
  int64_t axis = 0;             // for Index
  std::optional<int64_t> size;  // for Index
  std::string message;          // for Equal: the ValueError's text; the numbers replace each {}

  // Reads ("index", axis, size or None), ("equal", message), ("assumed",) or ("raise",).
  static Check of(const py::tuple& t);
  // Returns false if a check of the kind Assumed or Raise fails. Throws UserError if another check
  // fails.
  bool passes(const py::object& computed) const;
};

// A write of the traced function to an argument or a captured array. It is done after the run, or
// by the program itself.
struct WriteBack {
  int64_t input = 0;  // the program's input that is written to
  int64_t computed = 0;
  bool is_direct = false;  // the program may compute the result in the array's memory

  // Writes `value`, a memory, to the array.
  void write(py::handle target, const py::object& value) const;
};

// A result of the traced function.
struct Output {
  enum class From : uint8_t { Computed, Leaf, Constant } from = From::Computed;
  int64_t index = 0;
  bool to_python = false;  // return a Python number, not NumPy's
  // The number of a computed bool that replaces `to_python`, if it depends on the call.
  std::optional<int64_t> python_if;
  bool copy = false;              // for Constant: each call returns its own array
  bool to_array = false;          // return a 0-d array, not a scalar
  std::optional<size_t> same_as;  // the number of an earlier result that is the same object
  py::object constant;

  // Reads ("computed", index, to_python, to_array[, python_if]), ("leaf", index), ("constant",
  // object) or ("copy", array).
  static Output of(const py::tuple& t);
  // Reads all results of a function, and finds those that are the same object.
  static std::vector<Output> of(const std::vector<py::tuple>& all);
};

class CompiledCall {
 public:
  enum class Status { Done, Unsuitable, Stale };

  CompiledCall(std::shared_ptr<BoundProgram> program, std::vector<int64_t> input_leaves,
               std::vector<py::object> captured, const std::vector<py::tuple>& outputs,
               py::object unflatten, const std::vector<std::pair<int64_t, py::object>>& leaf_guards,
               const py::sequence& guards, const std::vector<std::pair<int64_t, int64_t>>& writes,
               std::vector<int64_t> contiguous,
               const std::vector<std::pair<int64_t, py::tuple>>& transposed_inputs,
               const std::vector<std::pair<int64_t, py::tuple>>& transposed_results,
               const std::vector<py::tuple>& checks, py::object device);

  // Whether the state that the trace read and the types of the captured arrays are unchanged.
  bool is_current() const;
  // The state that has changed: the guards that fail, as tuples, and ("array", array, number, None)
  // for captured arrays.
  py::list broken() const;

  // Runs the program on the leaves of a call's arguments.
  //  - Done: `result` is the function's result.
  //  - Unsuitable: NumPy must run the call. Nothing has been written.
  //  - Stale: the state has changed, or an assumption about data failed. The program must not be
  //    used again.
  // Throws what the program throws.
  Status call(std::span<const py::handle> leaves, py::object& result);

  // A clock that advances with each use of any compiled call.
  static int64_t tick() { return ++ticks_; }
  int64_t last_used() const { return last_used_; }

 private:
  std::vector<py::object> run(std::span<const py::handle> arguments,
                              std::span<void* const> places) const;
  // Whether the written result has no other use, and the write will certainly be done.
  bool is_direct(const WriteBack& write) const;
  // For each result of the program, the array's memory in which it may be computed, or null. Empty
  // if there is none.
  std::vector<void*> places(std::span<const py::handle> arguments) const;
  bool may_write(std::span<const py::handle> arguments) const;
  // Returns the first check of the kind Assumed or Raise that fails, or null. Throws UserError if
  // another check fails.
  const Check* failed_check(std::span<const py::object> computed) const;
  py::object one(const Output& output, std::span<const py::handle> leaves,
                 std::span<const py::object> computed) const;
  py::object assemble(std::span<const py::handle> leaves,
                      std::span<const py::object> computed) const;

  static inline int64_t ticks_ = 0;  // the GIL guards it
  int64_t last_used_ = 0;
  std::shared_ptr<BoundProgram> program_;  // null if nothing is computed
  std::vector<int64_t> input_leaves_;
  bool takes_leaves_ = false;  // the inputs are the first leaves, in their order
  std::vector<py::object> captured_;
  std::vector<Output> outputs_;
  py::object unflatten_;
  py::object device_;  // the device of returned Arrays; None if results are NumPy's
  std::vector<LeafGuard> leaf_guards_;
  std::vector<Guard> guards_;
  std::vector<int64_t> contiguous_;  // inputs that must be contiguous
  struct Transposition {
    int64_t index;
    py::tuple axes;
    bool reverses;  // `array.T` takes less time than `array.transpose(axes)`
    static std::vector<Transposition> of(const std::vector<std::pair<int64_t, py::tuple>>& all);
    py::object operator()(py::handle array) const;
  };
  std::vector<Transposition> transposed_inputs_;   // inputs whose transposes the program takes
  std::vector<Transposition> transposed_results_;  // results that the function returns transposed
  std::vector<WriteBack> writes_;
  std::vector<Check> checks_;  // the checks of the program's last results
};

}  // namespace rune::bindings
