// Shared by all of NumPy's functions over graphs: operands, promotion of dtypes, broadcasting,
// axes, and the facts that a trace has found about the values of its graph.
//
// Functions in this folder promote, broadcast, then build. They throw UserError with the kind of
// the exception that NumPy raises for the same arguments. They throw UserError(Unsupported) for
// operations that NumPy supports and a graph does not.
#pragma once

#include <complex>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "graph/builder.h"

namespace rune::graph::numpy {

// A Python integer that does not fit a dtype: OverflowError in Python.
class OverflowError : public UserError {
 public:
  explicit OverflowError(const std::string& message) : UserError(ErrorKind::Value, message) {}
};

// An axis that an array does not have: numpy.exceptions.AxisError in Python.
class AxisError : public UserError {
 public:
  explicit AxisError(const std::string& message) : UserError(ErrorKind::Index, message) {}
};

// A Python bool, int, float or complex number written in the traced function. Integers beyond 2^100
// are held as +-2^100, which no dtype holds either.
struct Literal {
  Kind kind = Kind::Int;
  __int128 integer = 0;  // of Bool and Int
  double real = 0;       // the value rounded to double, of every kind
  double imag = 0;       // of Complex
  static Literal of(bool value);
  static Literal of(int64_t value);
  static Literal of(double value);
  static Literal of(std::complex<double> value);
};

// An operand of a NumPy function: a value of the graph or a literal. `weak` marks Python scalars,
// which take the dtype of the arrays that they meet (NEP 50): Bool, Int, Float or Complex.
struct Operand {
  Value value;  // not valid for a literal
  std::optional<Kind> weak;
  std::optional<Literal> literal;

  Operand() = default;
  Operand(Value v) : value(v) {}  // NOLINT: a strong operand
  Operand(Value v, Kind weak_kind) : value(v), weak(weak_kind) {}
  Operand(const Literal& l) : weak(l.kind), literal(l) {}  // NOLINT
};
using Operands = std::vector<Operand>;

// A condition on a Python scalar among the arguments. The graph gives NumPy's result only if it
// holds. Each call checks it.
struct ScalarGuard {
  enum class Check : uint8_t { FitsDtype, NonZero } check = Check::FitsDtype;
  int64_t input = 0;
  DType dtype = DType::Int64;  // of FitsDtype
  bool operator==(const ScalarGuard&) const = default;
};

// A run-time check: a 0-d uint64 that is 0 if the check passes.
// - With an axis, it checks that an array of indices keeps within the axis. If an index i does not,
//   the value is 2 * i + 1 (mod 2^64), and the caller raises NumPy's IndexError.
// - Without an axis, it checks an assumption of the trace about the data. If that is wrong, the
//   program must not be used.
// - With `of_raise`, it checks that the `raise` of this number is not reached. If it is, Python
//   runs the call.
struct RunCheck {
  Value value;
  std::optional<int64_t> axis;
  Dim size;
  std::optional<int64_t> of_raise = std::nullopt;
  std::optional<Value> indices = std::nullopt;  // of an axis, if they are computed outside of loops
};

using CheckedIndices = std::set<std::tuple<Value, int64_t, std::string>>;  // indices, axis, size

// The checks that existed before a part of the program that may run several times or not at all.
struct CheckScope {
  size_t num_checks = 0, num_conditions = 0, num_must_fit = 0;
  CheckedIndices checked;
};

// The least and the greatest element of an integer value.
struct IntegerRange {
  __int128 low = 0, high = 0;
};

// A number of which it is unsure whether it is NumPy's, or an equal one of Python's of this kind.
// It comes from a loop that may have no iteration, or a condition selects it.
struct Unsure {
  Kind kind{};
  Value is_python;  // a 0-d bool
};

// A Python integer that an open loop computes, and its place in the source ("file.py:12").
struct LoopInteger {
  Value value;
  std::string location;
};

// The number of holders of each value of a graph, by id.
using Uses = std::unordered_map<uint32_t, int64_t>;

// A graph under construction, and the facts that its trace has found about the values.
struct TracedGraph : Builder {
  std::shared_ptr<Uses> uses;  // null if holders are not counted
  std::vector<ScalarGuard> guards;
  // One for each read through traced indices that may be out of range, and for each assumption.
  std::vector<RunCheck> checks;
  CheckedIndices checked;
  std::map<Value, std::pair<Dim, Dim>> ranges;  // the known least and greatest elements
  // By node: the result of integer_range; nothing for a value of which nothing is known.
  std::unordered_map<uint32_t, std::optional<IntegerRange>> integer_ranges;
  std::map<Value, Unsure> unsure;
  std::set<Value> nonzero;             // values that are assumed not to be 0
  std::map<std::string, Value> sizes;  // made by define_size and begin_loop, by name
  std::vector<LoopInteger> must_fit;   // integers that may not fit 64 bits: see find_unbounded
  // Whether the program may check, outside of loops, that Python integers fit 64 bits; the
  // locations in loops where it checks this; and whether it checks it anywhere.
  bool may_check_integers = false;
  std::set<std::string> checked_at;
  bool has_checked_integers = false;
  std::vector<CheckScope> open_loops, open_conditions;
  std::vector<Value> counters;  // of the open loops
  std::vector<Value> bound;     // Loop_Sizes
};

// These throw UserError(Unsupported), naming `op`, if the sizes' bounds do not determine the
// result.
Dim smaller(const char* op, const Dim& a, const Dim& b);
Dim larger(const char* op, const Dim& a, const Dim& b);
// `value`, but not less than `low` and not more than `high`. If these conflict, `high` wins.
Dim clamp(const char* op, const Dim& value, const Dim& low, const Dim& high);
// A position along an axis of this size. A negative position counts from the end.
Dim from_end(const Dim& position, const Dim& size);

using Axes = std::optional<Ints>;  // absent: all
// Throw AxisError naming `op`. normalize_axes also throws UserError(Value) for an axis given twice.
int64_t axis_of(const char* op, int64_t axis, int64_t rank);
Ints normalize_axes(const char* op, const Axes& axes, int64_t rank);  // sorted

Operand input(TracedGraph& t, DType dtype, Shape shape, std::optional<Kind> weak = std::nullopt);
// A size from `low` to `high` that is known when the program runs.
Dim define_size(TracedGraph& t, std::string name, int64_t low, int64_t high);
// A size as a Python int: a literal, or computed from what define_size declared.
Operand size_value(TracedGraph& t, const Dim& size);
// States that every element of x is in [low, high], so that reads through it need no check.
void assume_range(TracedGraph& t, const Operand& x, const Dim& low, const Dim& high);

// The shape and dtype of an operand. A literal has shape {} and the dtype that it has alone.
Shape shape_of(const TracedGraph& t, const Operand& x);
DType dtype_of(const TracedGraph& t, const Operand& x);
// The dtype in which a ufunc computes on these operands.
DType result_type(const TracedGraph& t, const Operands& operands);
// numpy.result_type. It differs from result_type() for a Python float and a bfloat16: if the float
// is the first of the two, they give float32.
DType common_type(const TracedGraph& t, const Operands& operands);
// The dtype in which NumPy's float-only loops compute on these operands.
DType float_type(const TracedGraph& t, const Operands& operands);

// Notes that a 0-d value is a Python number of this kind if a 0-d bool is true, and NumPy's
// otherwise. An operation whose result would depend on this throws UserError(Undecided).
void mark_unsure(TracedGraph& t, const Operand& x, Kind kind, const Operand& is_python);
std::optional<Kind> unsure_kind(const TracedGraph& t, const Operand& x);
// Whether a number is Python's: a 0-d bool.
Operand is_python(TracedGraph& t, const Operand& x);

// Whether two values are computed by equal nodes from equal operands.
bool same(const TracedGraph& t, const Operand& a, const Operand& b);

// The least and the greatest integer of an integer dtype or bool.
__int128 lowest_integer(DType dtype);
__int128 highest_integer(DType dtype);

// The operand as a value in its own dtype. Weak operands and literals get their default dtype.
Value value_of(TracedGraph& t, const Operand& x);
// The operand converted to a dtype. Literals and weak inputs are checked to fit.
Value convert(TracedGraph& t, const Operand& x, DType dtype);
// A value converted to a dtype, as NumPy's astype does. Of bfloat16, as in ml_dtypes, numbers that
// an integer dtype does not have become 0.
Value cast(TracedGraph& t, Value x, DType dtype);
Value to_bool(TracedGraph& t, const Operand& x);
// A constant. The dtype is not complex.
Value scalar(TracedGraph& t, DType dtype, double value);

Value broadcast(TracedGraph& t, Value x, const Shape& shape);
std::vector<Value> broadcast_all(TracedGraph& t, const char* op, std::vector<Value> values);
// A scalar operation on operands of one dtype, which are broadcast.
Value elementwise(TracedGraph& t, AluOp op, std::vector<Value> values);
// x without these axes, which are sorted and have size 1.
Value drop_axes(TracedGraph& t, Value x, const Ints& axes);

}  // namespace rune::graph::numpy
