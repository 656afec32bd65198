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

// What the trace concluded from the value of a Python number among the arguments.
struct LeafGuard {
  int64_t leaf = 0;
  std::optional<DType> dtype;  // the number fits it; absent: the number is not zero

  bool holds(py::handle value) const;
};

// A check of a value that the program computes.
struct Check {
  // Index, of a uint64: 0, or 2 * i + 1 for an index i out of bounds; a second one is the size of
  // the axis if that is not known before. Equal, of two int64: they are equal. Assumed: so are
  // these, or the program is not the one for the call's data. Raise: so are these, or Python runs
  // the call, which raises.
  enum class Kind : uint8_t { Index, Equal, Assumed, Raise } kind = Kind::Index;
  int64_t axis = 0;             // of Index
  std::optional<int64_t> size;  // of Index
  std::string message;          // of Equal: the ValueError's text; the numbers replace each {}

  // ("index", axis, size or None), ("equal", message), ("assumed",) or ("raise",).
  static Check of(const py::tuple& t);
  // False if an assumption does not hold, or the call raises; throws UserError if another check
  // fails.
  bool passes(const py::object& computed) const;
};

// A write of the traced function to an argument or a captured array. It happens after the run, or
// in it.
struct WriteBack {
  int64_t input = 0;  // of the program
  int64_t computed = 0;
  bool is_direct = false;  // the program may compute the result in the array's memory

  // `value` is memory.
  void write(py::handle target, const py::object& value) const;
};

// A result of the traced function.
struct Output {
  enum class From : uint8_t { Computed, Leaf, Constant } from = From::Computed;
  int64_t index = 0;
  bool to_python = false;  // a Python number, not NumPy's
  // The computed bool that says whether it is Python's, if only the call knows.
  std::optional<int64_t> python_if;
  bool copy = false;      // of Constant: each call returns its own array
  bool to_array = false;  // a 0-d array, not a scalar
  py::object constant;

  // ("computed", index, to_python, to_array[, python_if]), ("leaf", index), ("constant", object) or
  // ("copy", array).
  static Output of(const py::tuple& t);
};

class CompiledCall {
 public:
  enum class Status { Done, Unsuitable, Stale };

  CompiledCall(std::shared_ptr<BoundProgram> program, std::vector<int64_t> input_leaves,
               std::vector<py::object> captured, const std::vector<py::tuple>& outputs,
               py::object unflatten, const std::vector<std::pair<int64_t, py::object>>& leaf_guards,
               const py::sequence& guards, const std::vector<std::pair<int64_t, int64_t>>& writes,
               std::vector<int64_t> contiguous, std::vector<int64_t> turned,
               std::vector<int64_t> turned_results, const std::vector<py::tuple>& checks,
               py::object device);

  // Whether the state that the trace read has not changed, and the captured arrays have the same
  // types as before.
  bool is_current() const;
  // The state that has changed: guards as tuples, and ("array", array, number, None) for captured
  // arrays.
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
  std::vector<py::object> run(const std::vector<py::handle>& arguments,
                              std::span<void* const> places) const;
  // Whether the result that is written is used for nothing else, and certainly is written.
  bool is_direct(const WriteBack& write) const;
  // By result of the program, the memory of arrays that it may be computed in; empty if none.
  std::vector<void*> places(std::span<const py::handle> arguments) const;
  bool may_write(std::span<const py::handle> arguments) const;
  // Whether the data is what the trace assumed. Throws UserError for a failed check.
  // The first check that is false; null if all pass.
  const Check* failed_check(std::span<const py::object> computed) const;
  py::object one(const Output& output, std::span<const py::handle> leaves,
                 std::span<const py::object> computed) const;
  py::object assemble(std::span<const py::handle> leaves,
                      std::span<const py::object> computed) const;

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
  std::vector<int64_t> contiguous_;      // inputs
  std::vector<int64_t> turned_;          // inputs whose transposes the program takes
  std::vector<int64_t> turned_results_;  // of the program; the function's are their transposes
  std::vector<WriteBack> writes_;
  std::vector<Check> checks_;  // of the program's last results
};

}  // namespace rune::bindings
