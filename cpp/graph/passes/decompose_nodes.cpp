#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/error.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/text.h"

namespace rune::graph {

namespace {

using Operands = std::vector<Value>;

// Lanes in more runs than this are gathered.
constexpr size_t kMostRuns = 4;

// Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011), as in
// Random123.
Value threefry(Builder& b, Value counter, Value key) {
  static constexpr std::array<int, 8> kRotations{13, 15, 26, 6, 17, 29, 16, 24};
  constexpr int kRounds = 20;
  const int64_t last = static_cast<int64_t>(b.shape(counter).size()) - 1;
  const auto word = [&](Value x, int64_t i) { return b.slice(x, last, i, i + 1); };
  const Shape shape = b.shape(word(counter, 0));
  const auto number = [&](uint64_t n) { return b.full(Scalar::of(DType::Uint32, n), shape); };
  const auto alu = [&](AluOp op, Value x, Value y) { return b.alu(op, {x, y}); };

  std::array<Value, 3> keys{word(key, 0), word(key, 1), {}};
  keys[2] = alu(AluOp::Xor, alu(AluOp::Xor, keys[0], keys[1]), number(0x1BD11BDA));
  Value x = alu(AluOp::Add, word(counter, 0), keys[0]);
  Value y = alu(AluOp::Add, word(counter, 1), keys[1]);
  for (int round = 0; round < kRounds; ++round) {
    const int bits = kRotations[round % 8];
    x = alu(AluOp::Add, x, y);
    const Value rotated =
        alu(AluOp::Or, alu(AluOp::Shl, y, number(bits)), alu(AluOp::Shr, y, number(32 - bits)));
    y = alu(AluOp::Xor, rotated, x);
    if (round % 4 != 3) continue;
    const int injection = round / 4 + 1;
    x = alu(AluOp::Add, x, keys[injection % 3]);
    y = alu(AluOp::Add, alu(AluOp::Add, y, keys[(injection + 1) % 3]), number(injection));
  }
  return b.cat({x, y}, last);
}

// The elements at these lanes. Runs of adjacent lanes are slices; many runs are a Gather.
Value lanes_of(Builder& b, Value x, const Ints& lanes) {
  const int64_t axis = static_cast<int64_t>(b.shape(x).size()) - 1;
  if (lanes.empty()) return b.slice(x, axis, 0, 0);
  std::vector<Value> parts;
  for (size_t i = 0; i < lanes.size() && parts.size() <= kMostRuns;) {
    const int64_t step = i + 1 < lanes.size() && lanes[i + 1] == lanes[i] - 1 ? -1 : 1;
    size_t end = i + 1;
    while (end < lanes.size() && lanes[end] == lanes[end - 1] + step) ++end;
    const int64_t first = lanes[i], last = lanes[end - 1];
    const Value part = b.slice(x, axis, std::min(first, last), std::max(first, last) + 1);
    parts.push_back(step < 0 ? b.flip(part, {axis}) : part);
    i = end;
  }
  if (parts.size() <= kMostRuns) return b.cat(std::move(parts), axis);
  Vconst indices;
  for (const int64_t lane : lanes) indices.values.push_back(Scalar::of(DType::Int64, lane));
  return b.add(Gather{axis}, {x, b.add(std::move(indices), {})});
}

Value stack(Builder& b, Operands parts) {
  Shape shape = b.shape(parts[0]);
  shape.push_back(1);
  for (Value& part : parts) part = b.reshape(part, shape);
  return b.cat(std::move(parts), static_cast<int64_t>(shape.size()) - 1);
}

// The Gather, or an empty array if it has no elements.
Value gather(Builder& b, const Gather& gather, Value source, Value indices) {
  const Shape& from = b.shape(source);
  Node node = b.make(gather, {source, indices});
  if (from[gather.axis] != 0) return b.append(std::move(node));
  if (max_elements(node.shape()) > 0)
    user_error(ErrorKind::Index, "gather: cannot take elements ", shape_text(node.shape()),
               " from ", shape_text(from), " (the source has no elements)");
  return b.full(Scalar::zero(node.dtype()), node.shape());
}

// The product of sizes.
Dim count_of(const char* op, const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), Dim(1),
                         [&](const Dim& x, const Dim& y) { return product(op, x, y); });
}

// Elements of a source by their row-major positions. They are 0 where a third operand is false.
Value look_up(Builder& b, const Operands& in) {
  const Dim count = count_of("index", b.shape(in[0]));
  const Shape shape = b.shape(in[1]);
  const Value source = b.reshape(in[0], {count});
  const auto zeros = [&](Value like) { return b.full(Scalar::zero(b.dtype(like)), shape); };
  if (in.size() == 2) return gather(b, {0}, source, in[1]);
  if (count == 0) return zeros(source);
  const Value at = b.alu(AluOp::Where, {in[2], in[1], zeros(in[1])});
  return b.alu(AluOp::Where, {in[2], gather(b, {0}, source, at), zeros(source)});
}

// A Scatter with indices of one dimension, or the target if it writes nothing.
Value scatter(Builder& b, const Scatter& scatter, const Operands& in) {
  const Shape shape = b.shape(in[0]);
  const Shape& all = b.shape(in[1]);
  if (max_elements(shape) == 0 || max_elements(all) == 0) return in[0];
  const auto own = all.begin() + scatter.batch_rank();
  Shape flat(all.begin(), own), rows = shape;
  flat.push_back(count_of("scatter", Shape(own, all.end())));
  rows[scatter.axis] = flat.back();
  return b.add(scatter, {in[0], b.reshape(in[1], flat), b.reshape(in[2], rows)});
}

// A Scan of several elements. A Scan of one element or none becomes arithmetic.
Value scan(Builder& b, const Scan& scan, const Operands& in) {
  const Shape shape = b.shape(in[0]);
  if (max_elements(shape) == 0) return b.full(Scalar::zero(b.dtype(in[0])), shape);
  if (shape[scan.axis] != 1) return b.add(scan, in);
  return in.size() == 1 ? in[0] : b.alu(alu_of(scan.op), {in[1], in[0]});
}

class Decomposer {
 public:
  Decomposer(const Graph& graph, const std::string& target, const Languages& languages)
      : graph_(graph), target_(target), languages_(languages), vars_(graph.symbolic_vars()) {}

  Graph run() {
    return rewrite(graph_, [&](Builder& b, uint32_t, const Node& node, Operands in) {
      const auto rule = [&](const auto& payload) { return decompose(b, payload, node, in); };
      return std::visit(rule, node.payload);
    });
  }

 private:
  // Nodes without a value are arrays of no elements.
  static Value nothing(Builder& b) { return b.full(Scalar::of(DType::Bool, false), {0}); }

  // Core nodes without an overload below stay. Source nodes must have one.
  template <class Kind>
  Value decompose(Builder& b, const Kind&, const Node& node, Operands& in) {
    static_assert(dialect_of<Kind> == Dialect::Core, "this source kind has no rule");
    return b.copy(node, std::move(in));
  }

  Value decompose(Builder& b, const Threefry&, const Node&, Operands& in) {
    return threefry(b, in[0], in[1]);
  }
  Value decompose(Builder& b, const Wmma&, const Node& node, Operands& in) {
    const Value rows = b.cast(in[0], node.dtype()), columns = b.cast(in[1], node.dtype());
    return b.alu(AluOp::Add, {b.contract(rows, columns, {{1, 0}}, {}), in[2]});
  }
  Value decompose(Builder& b, const Shuffle& shuffle, const Node&, Operands& in) {
    return lanes_of(b, in[0], shuffle.indices);
  }
  Value decompose(Builder& b, const Vectorize&, const Node&, Operands& in) {
    return stack(b, std::move(in));
  }
  Value decompose(Builder& b, const Index&, const Node&, Operands& in) { return look_up(b, in); }
  Value decompose(Builder& b, const Gather& node, const Node&, Operands& in) {
    return gather(b, node, in[0], in[1]);
  }
  Value decompose(Builder& b, const Scatter& node, const Node&, Operands& in) {
    return scatter(b, node, in);
  }
  Value decompose(Builder& b, const Scan& node, const Node&, Operands& in) {
    return scan(b, node, in);
  }
  // Views the value true: a masked element is 0, which is false.
  Value decompose(Builder& b, const Valid& valid, const Node&, Operands& in) {
    return b.add(View{valid.tracker}, {b.full(Scalar::of(DType::Bool, true), b.shape(in[0]))});
  }
  Value decompose(Builder& b, const Buffer_View& view, const Node&, Operands& in) {
    return b.slice(in[0], 0, view.offset, view.offset + view.size);
  }

  // A mark becomes its operand.
  Value decompose(Builder&, const Detach&, const Node&, Operands& in) { return in[0]; }
  Value decompose(Builder&, const Contiguous_Backward&, const Node&, Operands& in) { return in[0]; }
  Value decompose(Builder&, const Fuse&, const Node&, Operands& in) { return in[0]; }
  Value decompose(Builder&, const Unroll&, const Node&, Operands& in) { return in[0]; }
  Value decompose(Builder& b, const Kernel&, const Node&, Operands& in) {
    return b.contiguous(in[0]);
  }
  Value decompose(Builder& b, const Noop&, const Node&, Operands& in) {
    return in.empty() ? nothing(b) : in[0];
  }
  Value decompose(Builder& b, const Device&, const Node&, Operands&) { return nothing(b); }
  Value decompose(Builder& b, const Sink&, const Node& node, Operands& in) {
    b.copy(node, std::move(in));
    return nothing(b);
  }

  Value decompose(Builder& b, const Bind& bind, const Node&, Operands&) {
    return b.constant(Scalar::of(DType::Int64, bind.value));
  }
  Value decompose(Builder& b, const Unique& unique, const Node&, Operands&) {
    return b.constant(Scalar::of(DType::Int64, unique.id));
  }
  // A variable that is only bound has no value when the program runs. Only a Bind may read it.
  Value decompose(Builder& b, const Define_Var& define, const Node& node, Operands&) {
    const bool given = contains(vars_, define.var);
    return given ? b.copy(node, {}) : Value{};
  }

  // Keeps only the source for this target, or calls the reference if there is none.
  Value decompose(Builder& b, const Custom& custom, const Node& node, Operands& in) {
    for (const Value v : in)
      if (b.shape(v) != node.shape())
        user_error(ErrorKind::Value, "custom: cannot compute ", custom.op_name, " of ",
                   shape_text(b.shape(v)), " as ", shape_text(node.shape()),
                   " (it works element by element)\nhint: expand the operands");
    const Metadata type{node.dtype(), node.shape(), std::nullopt};
    for (const std::string& language : languages_)
      if (const std::string* source = custom_source(custom, language))
        return b.add(Custom{custom.op_name, {{"text", *source}}}, in, type);
    const std::optional<int64_t> call = custom_reference(custom);
    if (!call)
      user_error(ErrorKind::Unsupported, "custom: cannot compile ", custom.op_name, " for ",
                 target_, " (it has no source for ", target_,
                 ")\nhint: give it one as the attribute \"", target_, "\", or a reference");
    if (max_elements(node.shape()) == 0) return b.full(Scalar::zero(node.dtype()), node.shape());
    return decompose(b, Host_Callback{custom.op_name, *call, 0}, node, in);
  }
  Value decompose(Builder& b, const Host_Callback& callback, const Node& node, Operands& in) {
    const auto [known, fresh] = operands_of_call_.insert({callback.call, in});
    if (!fresh && known->second != in)
      user_error(ErrorKind::Value, "host_callback: cannot call ", callback.name,
                 " with other operands (call ", callback.call, " has its own already)",
                 "\nhint: give each call a number and a function of its own");
    return b.add(callback, in, {node.dtype(), node.shape(), std::nullopt});
  }

  // Earlier passes have removed these.
  Value decompose(Builder&, const Buffer& node, const Node&, Operands&) { return remains(node); }
  Value decompose(Builder&, const Assign& node, const Node&, Operands&) { return remains(node); }
  Value decompose(Builder&, const Multi& node, const Node&, Operands&) { return remains(node); }
  Value decompose(Builder&, const Complex& node, const Node&, Operands&) { return remains(node); }
  Value decompose(Builder&, const Real& node, const Node&, Operands&) { return remains(node); }
  Value decompose(Builder&, const Imag& node, const Node&, Operands&) { return remains(node); }
  Value decompose(Builder&, const Loop_Counter& n, const Node&, Operands&) { return remains(n); }
  Value decompose(Builder&, const Loop_Size& node, const Node&, Operands&) { return remains(node); }
  Value decompose(Builder&, const Carry& node, const Node&, Operands&) { return remains(node); }
  Value decompose(Builder&, const End_Loop& node, const Node&, Operands&) { return remains(node); }
  Value decompose(Builder&, const Loop_Result& n, const Node&, Operands&) { return remains(n); }
  Value decompose(Builder&, const Update& node, const Node&, Operands&) { return remains(node); }
  template <class Kind>
  [[noreturn]] Value remains(const Kind& kind) {
    RUNE_UNREACHABLE(name_of(static_cast<NodeKind>(Payload(kind).index())), " was left");
  }

  const Graph& graph_;
  const std::string target_;
  const Languages& languages_;
  const std::vector<SymVar> vars_;
  std::map<int64_t, Operands> operands_of_call_;
};

}  // namespace

Graph decompose_nodes(const Graph& graph, const std::string& device, const Languages& languages) {
  return Decomposer(graph, device.substr(0, device.find(':')), languages).run();
}

}  // namespace rune::graph
