// The high-level graph IR: arrays as values, one node per value.
//
// Every node kind is a struct of its attributes. A node has a kind and an ordered list of operands,
// and is immutable once built. Operands come before their users, so node ids are a topological
// order. docs/dev/ir.md describes each kind. infer.cpp computes shapes and dtypes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "alu/alu.h"
#include "types/scalar.h"
#include "types/shape.h"

namespace rune::graph {

// A value is the node that computes it.
struct Value {
  uint32_t id = ~uint32_t{0};
  bool valid() const { return id != ~uint32_t{0}; }
  auto operator<=>(const Value&) const = default;
};

using Pairs = std::vector<std::pair<int64_t, int64_t>>;
using DimPairs = std::vector<std::pair<Dim, Dim>>;

// How a Scatter's update changes the element at its position: it replaces the element (Set), or is
// combined with it.
enum class ScatterMode : uint8_t { Set, Add, Prod, Max, Min };
inline constexpr int kNumScatterModes = 5;
const char* name_of(ScatterMode mode);
std::optional<ReduceOp> reduce_op(ScatterMode mode);  // nothing for Set

struct Graph;

// A graph as an attribute of a node. Copies of the node share it. It is compared by its text.
struct Subgraph {
  std::shared_ptr<const Graph> graph;
  bool operator==(const Subgraph& other) const;
};

// An attribute of a Custom node.
struct CustomAttr {
  std::string key;
  std::variant<int64_t, double, std::string, Ints> value;
  // Compares texts, so that 0.0 differs from -0.0, and NaN equals NaN.
  bool operator==(const CustomAttr& other) const;
};

// The members of nodes with one or two attributes.
#define RUNE_NODE_1(Name, T1, m1, k1) \
  struct Name {                       \
    T1 m1{};                          \
    RUNE_FIELDS(Name, f(k1, m1))      \
  };

#define RUNE_NODE_2(Name, T1, m1, k1, T2, m2, k2) \
  struct Name {                                   \
    T1 m1{};                                      \
    T2 m2{};                                      \
    RUNE_FIELDS(Name, f(k1, m1), f(k2, m2))       \
  };

// Memory.
// A new array of `size` elements on `device`, with undefined contents. A target of Assign.
RUNE_NODE_2(Buffer, int64_t, size, "size", std::string, device, "device")
// `size` elements of a 1-d operand, from element `offset`.
RUNE_NODE_2(Buffer_View, int64_t, size, "size", int64_t, offset, "offset")
// Argument number `index` of the program.
RUNE_NODE_1(Placeholder, int64_t, index, "index")
RUNE_NODE_1(Const_Scalar, Scalar, value, "")
// A 1-d constant.
RUNE_NODE_1(Vconst, std::vector<Scalar>, values, "")
// The integers 0, 1, 2, ... of a 1-d shape. The dtype `target` can represent all of them.
RUNE_NODE_2(Iota, DType, target, "", Shape, shape, "shape")

// Elementwise arithmetic. The operands have one shape.
RUNE_NODE_1(Binop, AluOp, op, "")
RUNE_NODE_1(Unary, AluOp, op, "")
RUNE_NODE_1(Ternary, AluOp, op, "")

// Movement, which copies nothing.
// Reads the operand's elements, in row-major order, through the tracker. Masked elements are 0.
RUNE_NODE_1(View, ShapeTracker, tracker, "")
RUNE_NODE_1(Reshape, Shape, shape, "shape")
RUNE_NODE_1(Permute, Ints, axes, "axes")
// Repeats dimensions of size 1.
RUNE_NODE_1(Expand, Shape, shape, "shape")
// Adds zeros around the operand: (before, after) for each axis.
RUNE_NODE_1(Pad, DimPairs, widths, "widths")
// Elements [low, high) of each axis.
RUNE_NODE_1(Shrink, DimPairs, limits, "limits")
RUNE_NODE_1(Flip, Ints, axes, "axes")

// Reduces `axes` to size 1 each. The rank stays.
RUNE_NODE_2(Reduce_Axis, ReduceOp, op, "", Ints, axes, "axes")

// Operands (x[, initial]): for each element of x, the reduction of the elements up to and including
// it along `axis`, in order. It begins with `initial`, of size 1 along the axis, if that is given.
RUNE_NODE_2(Scan, ReduceOp, op, "", int64_t, axis, "axis")

// True where the tracker's mask is true. The result is bool and has the tracker's shape. The
// operand gives the shape of the buffer that the tracker's views index.
RUNE_NODE_1(Valid, ShapeTracker, tracker, "")
// Operands (in, idx[, valid]): in.ravel()[idx], 0 where valid is false. The shape is idx's.
struct Index : text::NoFields {};
// Elements `indices` of the last axis (a vector's lanes).
RUNE_NODE_1(Shuffle, Ints, indices, "indices")
// Stacks operands of one shape along a new last axis.
struct Vectorize : text::NoFields {};
// Operands (a[m,k], b[k,n], c[m,n]): a @ b + c.
struct Wmma {
  int64_t m = 0, n = 0, k = 0;
  RUNE_FIELDS(Wmma, f("m", m), f("n", n), f("k", k))
};

// Operands (real, imag), floats of one dtype: real + imag j. Real and Imag give its parts.
struct Complex : text::NoFields {};
struct Real : text::NoFields {};
struct Imag : text::NoFields {};

// Converts as NumPy's astype does: a complex number to its real part, a number to bool by != 0.
RUNE_NODE_1(Cast, DType, target, "")
// Reinterprets the bits as a dtype of the same size.
RUNE_NODE_1(Bitcast, DType, target, "")

// The operand, stored in memory, row-major.
struct Contiguous : text::NoFields {};
RUNE_NODE_2(Copy, std::string, device, "device", bool, clone, "clone")
// Operands (target, value...): writes each value i to the box `boxes[i]` of the target, in order. A
// box has (low, high) for each axis; an empty one is the whole target. The result is the target
// after the writes.
RUNE_NODE_1(Assign, std::vector<DimPairs>, boxes, "boxes")

// A 0-d int64 whose value is bound when the program runs.
RUNE_NODE_1(Define_Var, SymVar, var, "")
// The operand, a Define_Var, with its value fixed.
RUNE_NODE_1(Bind, int64_t, value, "value")

struct Detach : text::NoFields {};
struct Contiguous_Backward : text::NoFields {};
// Has no value. Its operands are computed before the program ends.
struct Sink : text::NoFields {};
// Operand 0, stored, so that a kernel ends here. The fields and other operands only inform readers.
struct Kernel {
  std::string name;
  int64_t local_dims = 0;
  int64_t upcasted = 0;
  bool dont_use_locals = false;
  RUNE_FIELDS(Kernel, f("name", name), f("local_dims", local_dims), f("upcasted", upcasted),
              f("dont_use_locals", dont_use_locals))
};
// A 0-d int64 that equals no other node. It keeps nodes apart that would otherwise be merged.
RUNE_NODE_1(Unique, int64_t, id, "id")
RUNE_NODE_1(Device, std::string, name, "name")
// One array made of shards on several devices: its parts along `axis`, or copies if there is none.
RUNE_NODE_2(Multi, std::optional<int64_t>, axis, "axis", std::vector<bool>, real, "real")
// The operand, with the hint to compute it in its consumer's kernel. The hint has no effect, since
// costs decide what is stored.
struct Fuse : text::NoFields {};
// The operand, with the hint to unroll along its last axis. The hint has no effect, since the
// mapping decides what is unrolled.
RUNE_NODE_1(Unroll, int64_t, factor, "factor")
// Operands (a, b): sums products over the axis pairs `contract`, and pairs the axes of `batch`. The
// result's axes are those of the batch, then the rest of a's, then the rest of b's.
RUNE_NODE_2(Contract, Pairs, contract, "contract", Pairs, batch, "batch")
RUNE_NODE_1(Cat, int64_t, axis, "axis")
// Operands (counter, key), each u32[...,2]: random bits by Threefry2x32 with 20 rounds (Salmon et
// al. 2011).
struct Threefry : text::NoFields {};
// Operands (source, indices): source.take(indices, axis).
RUNE_NODE_1(Gather, int64_t, axis, "axis")
// Operands (target, indices, updates): the target with the updates at these indices of `axis`, in
// order. Negative indices count from the end. An index out of range writes nothing. The operands
// share their first `batch` axes (none if it is absent). Each point of these has its own indices.
struct Scatter {
  ScatterMode mode{};
  int64_t axis = 0;
  std::optional<int64_t> batch = std::nullopt;
  RUNE_FIELDS(Scatter, f("", mode), f("axis", axis), f("batch", batch))
  int64_t batch_rank() const { return batch.value_or(0); }
};
// An elementwise operation that the user defines. The operands have the result's shape, and its
// dtype is declared. Attributes whose key is a target's name ("cpu", "metal", "cuda") or "c" (any
// C-like language) are its source, see lower::Custom. The integer attribute "reference" is the
// number of a call to a function of the host, as in Host_Callback. This function computes the
// operation on targets for which there is no source.
RUNE_NODE_2(Custom, std::string, op_name, "", std::vector<CustomAttr>, attributes, "attributes")
// Result number `result` of host call number `call`, to a function `name`, on the operands. The
// program is compiled with the functions, by call. Nodes of one call have equal operands. The
// function treats the points of the first `rows` axes of operand 0 one by one (none if it is
// absent). These are also the first axes of each result, and the function may be called for a part
// of the points.
struct Host_Callback {
  std::string name;
  int64_t call = 0;
  int64_t result = 0;
  std::optional<int64_t> rows = std::nullopt;
  RUNE_FIELDS(Host_Callback, f("", name), f("call", call), f("result", result), f("rows", rows))
  int64_t row_rank() const { return rows.value_or(0); }
};
struct Noop : text::NoFields {};

// Loops. A loop's Loop_Counter identifies it, and declares the counter's variable. The body of the
// loop is all nodes before its End_Loop that depend on the counter or on a Carry of the loop,
// directly or by their sizes. Outside of the loop, only the Loop_Results of the End_Loop are used.
RUNE_NODE_1(Loop_Counter, SymVar, var, "")
// Operands (value, counter): declares a variable of the loop's body. In each iteration, the
// variable is the value, a 0-d int64 within the variable's bounds.
RUNE_NODE_1(Loop_Size, SymVar, var, "")
// Operands (value, counter): carried value number `index` of the loop, at the start of an
// iteration. The operand is its value before the first iteration.
RUNE_NODE_1(Carry, int64_t, index, "index")
// Operands (counter, values..., initial values...): the carried values at the end of an iteration,
// by index, and those before the first one. The counter takes the values of Python's
// range(start, stop, step). If `goes_on` is given, carried value number `goes_on` is a 0-d bool,
// and the loop ends before an iteration if it is false.
struct End_Loop {
  Dim start, stop;
  int64_t step = 1;
  std::optional<int64_t> goes_on = std::nullopt;
  RUNE_FIELDS(End_Loop, f("start", start), f("stop", stop), f("step", step), f("goes_on", goes_on))
};
// Operands (an End_Loop, its value number `index` at the end of an iteration): this carried value
// after the loop.
RUNE_NODE_1(Loop_Result, int64_t, index, "index")
// Operands (target, part): the target, where the elements from `offsets` on are replaced by the
// part.
RUNE_NODE_1(Update, std::vector<Dim>, offsets, "offsets")

// Output number `result` of a graph of loops, whose Placeholders are the operands. Nodes of one
// nest have equal operands.
RUNE_NODE_2(Loop_Nest, int64_t, result, "result", Subgraph, graph, "graph")

#undef RUNE_NODE_1
#undef RUNE_NODE_2

// Users and the front end may write source nodes. decompose_nodes turns them into core nodes, and
// no later pass knows them.
enum class Dialect : uint8_t { Source, Core };

// RUNE_NODE(Kind, text, fewest operands, most operands (-1: any number), dialect)
#define RUNE_GRAPH_NODES(RUNE_NODE)                                   \
  RUNE_NODE(Buffer, "buffer", 0, 0, Source)                           \
  RUNE_NODE(Buffer_View, "buffer_view", 1, 1, Source)                 \
  RUNE_NODE(Placeholder, "placeholder", 0, 0, Core)                   \
  RUNE_NODE(Const_Scalar, "const_scalar", 0, 0, Core)                 \
  RUNE_NODE(Vconst, "vconst", 0, 0, Core)                             \
  RUNE_NODE(Iota, "iota", 0, 0, Core)                                 \
  RUNE_NODE(Binop, "binop", 2, 2, Core)                               \
  RUNE_NODE(Unary, "unary", 1, 1, Core)                               \
  RUNE_NODE(Ternary, "ternary", 3, 3, Core)                           \
  RUNE_NODE(View, "view", 1, 1, Core)                                 \
  RUNE_NODE(Reshape, "reshape", 1, 1, Core)                           \
  RUNE_NODE(Permute, "permute", 1, 1, Core)                           \
  RUNE_NODE(Expand, "expand", 1, 1, Core)                             \
  RUNE_NODE(Pad, "pad", 1, 1, Core)                                   \
  RUNE_NODE(Shrink, "shrink", 1, 1, Core)                             \
  RUNE_NODE(Flip, "flip", 1, 1, Core)                                 \
  RUNE_NODE(Reduce_Axis, "reduce_axis", 1, 1, Core)                   \
  RUNE_NODE(Scan, "scan", 1, 2, Core)                                 \
  RUNE_NODE(Valid, "valid", 1, 1, Source)                             \
  RUNE_NODE(Index, "index", 2, 3, Source)                             \
  RUNE_NODE(Shuffle, "shuffle", 1, 1, Source)                         \
  RUNE_NODE(Vectorize, "vectorize", 1, -1, Source)                    \
  RUNE_NODE(Wmma, "wmma", 3, 3, Source)                               \
  RUNE_NODE(Complex, "complex", 2, 2, Source)                         \
  RUNE_NODE(Real, "real", 1, 1, Source)                               \
  RUNE_NODE(Imag, "imag", 1, 1, Source)                               \
  RUNE_NODE(Cast, "cast", 1, 1, Core)                                 \
  RUNE_NODE(Bitcast, "bitcast", 1, 1, Core)                           \
  RUNE_NODE(Contiguous, "contiguous", 1, 1, Core)                     \
  RUNE_NODE(Copy, "copy", 1, 1, Core)                                 \
  RUNE_NODE(Assign, "assign", 2, -1, Source)                          \
  RUNE_NODE(Define_Var, "define_var", 0, 0, Core)                     \
  RUNE_NODE(Bind, "bind", 1, 1, Source)                               \
  RUNE_NODE(Detach, "detach", 1, 1, Source)                           \
  RUNE_NODE(Contiguous_Backward, "contiguous_backward", 1, 1, Source) \
  RUNE_NODE(Sink, "sink", 0, -1, Core)                                \
  RUNE_NODE(Kernel, "kernel", 1, -1, Source)                          \
  RUNE_NODE(Unique, "unique", 0, 0, Source)                           \
  RUNE_NODE(Device, "device", 0, 0, Source)                           \
  RUNE_NODE(Multi, "multi", 1, -1, Source)                            \
  RUNE_NODE(Fuse, "fuse", 1, 1, Source)                               \
  RUNE_NODE(Unroll, "unroll", 1, 1, Source)                           \
  RUNE_NODE(Contract, "contract", 2, 2, Core)                         \
  RUNE_NODE(Cat, "cat", 1, -1, Core)                                  \
  RUNE_NODE(Threefry, "threefry", 2, 2, Source)                       \
  RUNE_NODE(Gather, "gather", 2, 2, Core)                             \
  RUNE_NODE(Scatter, "scatter", 3, 3, Core)                           \
  RUNE_NODE(Custom, "custom", 0, -1, Core)                            \
  RUNE_NODE(Host_Callback, "host_callback", 0, -1, Core)              \
  RUNE_NODE(Noop, "noop", 0, 1, Source)                               \
  RUNE_NODE(Loop_Counter, "loop_counter", 0, 0, Source)               \
  RUNE_NODE(Loop_Size, "loop_size", 2, 2, Source)                     \
  RUNE_NODE(Carry, "carry", 2, 2, Source)                             \
  RUNE_NODE(End_Loop, "end_loop", 1, -1, Source)                      \
  RUNE_NODE(Loop_Result, "loop_result", 2, 2, Source)                 \
  RUNE_NODE(Update, "update", 2, 2, Source)                           \
  RUNE_NODE(Loop_Nest, "loop_nest", 0, -1, Core)

// The text attribute with this key; null if there is none.
const std::string* custom_source(const Custom& custom, const std::string& key);
std::optional<int64_t> custom_reference(const Custom& custom);

// The kinds, in the order of Payload's alternatives.
enum class NodeKind : uint8_t {
#define RUNE_NODE(Name, ...) Name,
  RUNE_GRAPH_NODES(RUNE_NODE)
#undef RUNE_NODE
};

namespace detail {
template <class Unused, class... Kinds>
using Variant = std::variant<Kinds...>;
}
// clang-format off
using AnyNode = detail::Variant<void
#define RUNE_NODE(Name, ...) , Name
  RUNE_GRAPH_NODES(RUNE_NODE)
#undef RUNE_NODE
>;
// clang-format on
inline constexpr int kNumNodeKinds = std::variant_size_v<AnyNode>;

// The attributes of a node. It is a class, so that only node.cpp instantiates the copies, moves and
// comparisons of all kinds.
struct Payload : AnyNode {
  using AnyNode::AnyNode;
  Payload();
  Payload(const Payload&);
  Payload(Payload&&) noexcept;
  Payload& operator=(const Payload&);
  Payload& operator=(Payload&&) noexcept;
  ~Payload();
  bool operator==(const Payload& o) const;
};

const char* name_of(NodeKind kind);

template <class Kind>
inline constexpr Dialect dialect_of = Dialect::Source;
#define RUNE_NODE(Name, text, least, most, dialect) \
  template <>                                       \
  inline constexpr Dialect dialect_of<Name> = Dialect::dialect;
RUNE_GRAPH_NODES(RUNE_NODE)
#undef RUNE_NODE
Dialect dialect_of_kind(NodeKind kind);

// `case` labels of all source kinds, for a switch in a pass that gets only core nodes.
#define RUNE_SOURCE_CASES RUNE_GRAPH_NODES(RUNE_CASE_OF_NODE)
#define RUNE_CASE_OF_NODE(Name, text, least, most, dialect) RUNE_CASE_OF_##dialect(Name)
#define RUNE_CASE_OF_Source(Name) case ::rune::graph::NodeKind::Name:
#define RUNE_CASE_OF_Core(Name)

// The type of a value, and its device.
struct Metadata {
  DType dtype = DType::Float32;
  Shape shape;
  std::optional<std::string> device;  // absent for the program's device
  bool operator==(const Metadata&) const = default;
};

struct Node {
  Payload payload;
  std::vector<Value> inputs;
  Metadata meta;
  // The user's source line that made this node ("file.py:12"), or "". Not part of equality.
  std::string location;

  NodeKind kind() const { return static_cast<NodeKind>(payload.index()); }
  const Shape& shape() const { return meta.shape; }
  DType dtype() const { return meta.dtype; }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&payload);
  }
};

// A program: nodes in topological order, and the values that it returns. Its arguments are its
// Placeholder nodes, by index. Its symbolic variables are its Define_Var nodes. A Define_Var,
// Loop_Counter or Loop_Size comes before all nodes with shapes or attributes that depend on its
// variable.
struct Graph {
  std::vector<Node> nodes;
  std::vector<Value> outputs;

  const Node& operator[](Value v) const { return nodes[v.id]; }
  size_t size() const { return nodes.size(); }
  // The Placeholder values, ordered by index.
  std::vector<Value> inputs() const;
  // The variables whose values are given when the program runs: all except those that are only
  // operands of Bind.
  std::vector<SymVar> symbolic_vars() const;
  // The first Define_Var of this variable. Throws InternalError if there is none.
  Value definition(const SymVar& var) const;
};

// The bytes of the node's value, with room for the largest sizes.
int64_t bytes_of(const Node& node);

// Whether the node's elements are computed, so that they are neither arguments nor constants.
bool is_computed(const Node& node);

// The variable that a Define_Var, Loop_Counter or Loop_Size declares, or null.
const SymVar* declared_variable(const Node& node);

// The number of values that the loop of an End_Loop carries.
inline size_t num_carried(const Node& end) {
  return end.inputs.size() / 2;
}

// For each node, the number of times that it is an operand of a live node or an output.
std::vector<uint32_t> count_uses(const Graph& graph);

}  // namespace rune::graph

RUNE_ENUM_CODEC(rune::graph::ScatterMode, rune::graph::kNumScatterModes, rune::graph::name_of);

template <>
struct rune::text::Codec<rune::graph::Value> {
  static void print(std::string& out, rune::graph::Value v) { out += '%' + std::to_string(v.id); }
  static rune::graph::Value parse(Lexer& lexer) { return {lexer.value_id()}; }
};

template <>
struct rune::text::Codec<rune::graph::Subgraph> {
  static void print(std::string& out, const rune::graph::Subgraph& subgraph);
  static rune::graph::Subgraph parse(Lexer& lexer);
};

template <>
struct rune::text::Codec<rune::graph::CustomAttr> {
  static void print(std::string& out, const rune::graph::CustomAttr& attr);
  static rune::graph::CustomAttr parse(Lexer& lexer);
};
