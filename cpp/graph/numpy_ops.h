// NumPy's functions over graphs: promote, broadcast, then build. Every rule of shapes and dtypes
// that the Python front relies on is here; the front only forwards.
//
// Functions throw UserError with the kind of the exception that NumPy raises for the same
// arguments, and UserError(Unsupported) for what NumPy can do and a graph cannot.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "graph/builder.h"

namespace rune::graph {

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

// A Python bool, int or float written in the traced function. Integers beyond 2^100 are held as
// +-2^100, which no dtype holds either.
struct Literal {
  Kind kind = Kind::Int;
  __int128 integer = 0;  // of Bool and Int
  double real = 0;       // the value rounded to double, of every kind
  static Literal of(bool value);
  static Literal of(int64_t value);
  static Literal of(double value);
};

// An operand of a NumPy function: a value of the graph or a literal. `weak` marks Python scalars,
// which take the dtype of the arrays that they meet (NEP 50): Bool, Int or Float.
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

// What must hold of a Python scalar that is an argument for the graph to give NumPy's result;
// checked at each call.
struct ScalarGuard {
  enum class Check : uint8_t { FitsDtype, NonZero } check = Check::FitsDtype;
  int64_t input = 0;
  DType dtype = DType::Int64;  // of FitsDtype
  bool operator==(const ScalarGuard&) const = default;
};

// A run-time check that an array of indices keeps within an axis. `value` is a 0-d uint64: 0 if all
// do, else 2 * i + 1 (mod 2^64) for one index i that does not. The caller raises NumPy's
// IndexError.
struct IndexCheck {
  Value value;
  int64_t axis = 0;
  Dim size;
};

// One item of an index expression.
struct IndexItem {
  enum class Kind : uint8_t { Integer, Slice, NewAxis, Ellipsis, Array } kind = Kind::Ellipsis;
  int64_t integer = 0;
  std::optional<Dim> start, stop;
  std::optional<int64_t> step;
  Operand array;  // integers
};

// These throw UserError(Unsupported) naming `op` where the sizes' bounds do not decide.
Dim smaller(const char* op, const Dim& a, const Dim& b);
Dim larger(const char* op, const Dim& a, const Dim& b);
// `value`, but not less than `low` nor more than `high`, of which `high` wins.
Dim clamp(const char* op, const Dim& value, const Dim& low, const Dim& high);
// A position along an axis of this size, negative ones from the end.
Dim from_end(const Dim& position, const Dim& size);

using Axes = std::optional<Ints>;  // absent: all

class NumpyBuilder {
 public:
  Builder& builder() { return b_; }
  const Builder& builder() const { return b_; }
  const std::vector<ScalarGuard>& guards() const { return guards_; }
  // One for each read through traced indices that are not known to be in range.
  const std::vector<IndexCheck>& checks() const { return checks_; }
  // States that every element of x is in [low, high]: reads through it need no check then.
  void assume_range(const Operand& x, int64_t low, int64_t high);

  Operand input(DType dtype, Shape shape, std::optional<Kind> weak = std::nullopt);
  // A size from `low` to `high` that is known when the program runs.
  Dim define_size(std::string name, int64_t low, int64_t high);
  // A size as a Python int: a literal, or computed from what define_size declared.
  Operand size_of(const Dim& size);
  Operand constant(const Scalar& value) { return b_.constant(value); }
  // Of a literal: {} and the dtype it has alone.
  Shape shape(const Operand& x) const;
  DType dtype(const Operand& x) const;
  // The dtype in which a ufunc computes on these operands.
  DType result_type(const Operands& operands) const;
  // numpy.result_type. Other than in ufuncs, bfloat16 has no common dtype with 16 bits of another
  // kind nor with wider integers, and Python floats are float64 beside it.
  DType common_type(const char* op, const Operands& operands) const;
  // The dtype in which NumPy's float-only loops compute on these operands.
  DType float_type(const Operands& operands) const;
  // The operand as a value, in its own dtype (of weak operands and literals the default one).
  Value value_of(const Operand& x);

  // Ufuncs, by NumPy's name. One result, except divmod, frexp and modf.
  Operands ufunc(std::string_view name, const Operands& operands,
                 std::optional<DType> dtype = std::nullopt);
  // A Python operator: as the ufunc, but Python scalars alone give a Python scalar, and some
  // constant exponents have NumPy's shortcuts.
  Operand python_operator(std::string_view ufunc_name, const Operands& operands);
  static bool has_ufunc(std::string_view name);

  Operand where(const Operand& condition, const Operand& x, const Operand& y);
  Operand clip(const Operand& x, const std::optional<Operand>& low,
               const std::optional<Operand>& high);
  Operand astype(const Operand& x, DType dtype);
  Operand full(const Shape& shape, const Operand& fill, std::optional<DType> dtype);

  // sum, prod, max, min, any, all.
  Operand reduce(std::string_view name, const Operand& x, const Axes& axes, bool keepdims,
                 std::optional<DType> dtype = std::nullopt);
  Operand mean(const Operand& x, const Axes& axes, bool keepdims, std::optional<DType> dtype);
  // Variance, or its root. The divisor is the number of elements minus `correction`.
  Operand variance(const Operand& x, const Axes& axes, bool keepdims, std::optional<DType> dtype,
                   double correction, bool root);
  // argmax or argmin, of the flattened array without an axis. `positions`, which broadcasts to x,
  // is each element's index, int32 or int64.
  Operand arg_reduce(bool largest, const Operand& x, std::optional<int64_t> axis, bool keepdims,
                     const Operand& positions);
  // The integers 0, 1, ... below a size.
  Operand count_to(const Dim& size);
  // The node of that name, of a key for all counters.
  Operand threefry(const Operand& counter, const Operand& key);

  Operand matmul(const Operand& a, const Operand& b);
  Operand dot(const Operand& a, const Operand& b);
  Operand inner(const Operand& a, const Operand& b);
  Operand outer(const Operand& a, const Operand& b);
  Operand tensordot(const Operand& a, const Operand& b, const Ints& axes_a, const Ints& axes_b);
  Operand einsum(const std::string& subscripts, const Operands& operands);

  Operand reshape(const Operand& x, Shape shape);
  Operand transpose(const Operand& x, const Axes& axes);
  Operand swapaxes(const Operand& x, int64_t a, int64_t b);
  Operand moveaxis(const Operand& x, const Ints& source, const Ints& destination);
  Operand expand_dims(const Operand& x, const Ints& axes);
  Operand squeeze(const Operand& x, const Axes& axes);
  Operand broadcast_to(const Operand& x, const Shape& shape);
  // axis absent: of the flattened operands.
  Operand concatenate(const Operands& parts, std::optional<int64_t> axis,
                      std::optional<DType> dtype = std::nullopt);
  Operand stack(const Operands& parts, int64_t axis);
  Operand roll(const Operand& x, const Ints& shifts, const Axes& axes);
  Operand repeat(const Operand& x, int64_t repeats, std::optional<int64_t> axis);
  Operand tile(const Operand& x, Ints repeats);
  // mode: constant, edge, reflect, symmetric, wrap.
  Operand pad(const Operand& x, const DimPairs& widths, const std::string& mode,
              const Operand& fill);
  Operand diagonal(const Operand& x, int64_t offset, int64_t axis1, int64_t axis2);
  // result[..., i, ..., k] = x[..., i + k, ...], i along `axis` and k of `size` along a new last
  // axis.
  Operand windows(const Operand& x, int64_t size, int64_t axis);
  Operand take(const Operand& x, const Operand& indices, std::optional<int64_t> axis);
  // As take, of indices that are known to be in range.
  Operand take_unchecked(const Operand& x, const Operand& indices, int64_t axis);
  // x[items]: basic indexing and arrays of integers.
  Operand index(const Operand& x, const std::vector<IndexItem>& items);
  // x with x[items], by basic indexing, replaced by `value` of the selection's shape and x's dtype.
  Operand put(const Operand& x, const std::vector<IndexItem>& items, const Operand& value);
  // The shape of x[items].
  Shape indexed_shape(const Operand& x, const std::vector<IndexItem>& items);
  // x with `updates`, of the shape of x[items] and x's dtype, written to or combined with x[items],
  // in order. There is an array among the items.
  Operand scatter(const Operand& x, const std::vector<IndexItem>& items, const Operand& updates,
                  ScatterMode mode);
  // How many elements of a mask are true up to and including each, in row-major order: i64, 1-D.
  Operand running_count(const Operand& mask);
  // Whether two values are computed by equal nodes from equal operands.
  bool same(const Operand& a, const Operand& b) const;

 private:
  friend struct UfuncTable;
  friend struct FloatBits;
  // The operand converted to a dtype; literals and weak inputs are checked to fit.
  Value as(const Operand& x, DType dtype, const char* op);
  Value to_bool(const Operand& x);
  Value broadcast(Value x, const Shape& shape);
  std::vector<Value> broadcast_all(const char* op, std::vector<Value> values);
  Value elementwise(AluOp op, std::vector<Value> values);
  Value scalar(DType dtype, double value);
  Value flip_axis(Value x, int64_t axis);
  Value slice_axis(Value x, int64_t axis, const Dim& low, const Dim& high);
  Value drop_axes(Value x, const Ints& axes);
  // How many elements these axes have together, less `correction`, but not less than 0.
  Value count_along(const Shape& shape, const Ints& axes, DType dtype, double correction = 0);
  Ints normalize_axes(const char* op, const Axes& axes, int64_t rank) const;
  int64_t axis_of(const char* op, int64_t axis, int64_t rank) const;

  Operand arithmetic(const char* name, AluOp op, const Operands& operands, DType dtype);
  Operand compare(AluOp op, const char* name, const Operand& a, const Operand& b);
  Operand compare_out_of_range(AluOp op, const Operand& x, bool literal_is_larger, bool reversed);
  Value compare_signed_unsigned(AluOp op, Value a, Value b);
  Operand power(const Operands& operands, bool is_operator);
  Operand weak_operator(std::string_view name, const Operands& operands);
  Operand alu_ufunc(AluOp op, const Operands& operands);

  // The dot product where one operand is 0-d; Python numbers are not weak there.
  Operand scaled(const Operand& a, const Operand& b);
  // Sums the products over the labels that are not in `out`; each operand's labels differ.
  Value contract_labels(Value a, std::string la, Value b, std::string lb, const std::string& out);
  Value reduce_labels(Value x, std::string& labels, const std::string& keep);
  Value contract_pair(const char* op, const Operand& a, const std::string& la, const Operand& b,
                      const std::string& lb, const std::string& out);
  Value strided(Value x, int64_t axis, const Dim& start, const Dim& count, int64_t step);
  // The inverse of `strided`: an axis of `size` zeros with x's elements at start, start + step, ...
  Value spread(Value x, int64_t axis, const Dim& start, int64_t step, const Dim& size);
  // The elements `at` of an axis, with a check. `reported` is the axis that an error names.
  Value gather(Value source, const Operand& at, int64_t axis, int64_t reported);
  void check_indices(Value at, int64_t axis, const Dim& size);
  // An index expression with arrays of integers. Integers beside them are 0-d arrays.
  struct ArrayIndex {
    std::vector<IndexItem> basic;  // full slices in place of the arrays
    std::vector<Value> arrays;
    Ints axes;             // of the view x[basic], that the arrays select from
    Ints reported;         // the same axes of x
    Shape shape;           // of the arrays, broadcast
    int64_t position = 0;  // of the arrays' axes in the result
  };
  ArrayIndex array_index(const Operand& x, const std::vector<IndexItem>& items);
  Operand index_by_arrays(const Operand& x, const std::vector<IndexItem>& items);
  Value flat_index(const ArrayIndex& index, const Shape& whole);
  static Ints selected_first(const ArrayIndex& index, const Shape& view, Shape& joined);

  Builder b_;
  std::vector<ScalarGuard> guards_;
  std::vector<IndexCheck> checks_;
  std::set<std::tuple<Value, int64_t, std::string>> checked_;  // indices, axis, size
  std::map<Value, std::pair<int64_t, int64_t>> ranges_;
  std::map<std::string, Value> sizes_;  // those of define_size, by name
};

}  // namespace rune::graph
