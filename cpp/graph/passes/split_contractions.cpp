#include <algorithm>
#include <optional>

#include "base/math.h"
#include "graph/infer.h"
#include "graph/parallel_work.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// The side of the blocks of a product that workgroups compute, and the least side of a product that
// has them. And the least bytes of a part's terms, which outweigh the time to begin a block.
constexpr int64_t kBlockSide = 128, kLeastSide = 32;
constexpr int64_t kLeastBytes = 512;
// If the product has at least this many smaller blocks for each block, these are faster than parts
// of the sums.
constexpr int64_t kPartsOfBlock = 4;

// The number of parts of a dot product for each core.
constexpr int64_t kSharesPerCore = 4;

// The number of elements that an operand has for each term of a sum.
int64_t free_elements(const Contract& node, size_t operand, const Shape& shape) {
  int64_t count = 1;
  for (const int64_t axis : free_axes(node, operand, shape.size())) count *= shape[axis].bound();
  return count;
}

// The number of parts of a long dot product, such that each core has some.
std::optional<int64_t> parts_on_cores(const Contract& node, const Shape& a, const Shape& b,
                                      const Capabilities& caps) {
  const bool is_dot =
      max_elements(a) == a[node.contract[0].first].constant() && max_elements(b) == max_elements(a);
  if (!is_dot || caps.num_cores == 1 || !is_long_reduction(a)) return std::nullopt;
  return kSharesPerCore * caps.num_cores;
}

std::optional<int64_t> choose_parts(const Contract& node, const Shape& a, const Shape& b,
                                    DType dtype, const Capabilities& caps) {
  if (node.contract.size() != 1 || !is_constant(a) || !is_constant(b)) return std::nullopt;
  if (caps.model == ExecutionModel::Cores) return parts_on_cores(node, a, b, caps);
  // With matrix operations, there are more and smaller blocks.
  const auto multiplies = [&](const MatrixOp& op) { return op.operands == dtype; };
  if (std::any_of(caps.matrix_ops.begin(), caps.matrix_ops.end(), multiplies)) return std::nullopt;
  const int64_t terms = a[node.contract[0].first].constant();
  const int64_t rows = free_elements(node, 0, a);
  const int64_t columns = free_elements(node, 1, b);
  if (std::min(rows, columns) < kLeastSide) return std::nullopt;
  // If a library is much faster, it computes the product, and divides the sums itself.
  const double operations =
      static_cast<double>(terms) * static_cast<double>(rows) * static_cast<double>(columns);
  const auto is_left = [&](const LibraryRate& rate) {
    return rate.operands == dtype && rate.of_library > 2 * rate.of_kernels &&
           rate.saved_ns(operations) > caps.launch_ns;
  };
  if (std::any_of(caps.library_rates.begin(), caps.library_rates.end(), is_left))
    return std::nullopt;
  int64_t blocks = ceil_div(rows, kBlockSide) * ceil_div(columns, kBlockSide);
  for (const auto& [of_a, of_b] : node.batch) blocks *= a[of_a].constant();
  if (kPartsOfBlock * blocks > caps.num_cores) return std::nullopt;
  const int64_t wanted =
      std::min(2 * caps.num_cores / blocks, terms * size_of(dtype) / kLeastBytes);
  return wanted < 2 ? std::nullopt : divisor_near(terms, wanted);
}

// On a grid, computes a vector times a matrix as a reduction of products, if the sums are along the
// matrix's columns. Adjacent threads compute adjacent columns. Returns nothing for other
// contractions.
std::optional<Value> vector_times_rows(Builder& builder, const Node& node, const Contract& contract,
                                       Value a, Value b, const Capabilities& caps) {
  if (caps.model != ExecutionModel::Grid || contract.contract.size() != 1 ||
      !contract.batch.empty() || is_bool(node.dtype()))
    return std::nullopt;
  const bool is_first = free_elements(contract, 0, builder.shape(a)) == 1;
  if (!is_first && free_elements(contract, 1, builder.shape(b)) != 1) return std::nullopt;
  const Value vector = is_first ? a : b;
  Value matrix = is_first ? b : a;
  int64_t summed = is_first ? contract.contract[0].second : contract.contract[0].first;
  std::optional<Ints> order;
  if (const auto* permute = builder[matrix].as<Permute>()) {  // takes the order of memory
    order = permute->axes;
    summed = (*order)[summed];
    matrix = builder[matrix].inputs[0];
  }
  const Shape shape = builder.shape(matrix);
  if (!is_constant(shape) || !is_long_reduction(shape) ||
      summed == static_cast<int64_t>(shape.size()) - 1 || shape.back().constant() < caps.simd_width)
    return std::nullopt;
  Shape along(shape.size(), Dim(1));
  along[summed] = shape[summed];
  const Value factors = builder.expand(builder.reshape(vector, std::move(along)), shape);
  const Value products = builder.alu(AluOp::Mul, {factors, matrix});
  Value sums = builder.reduce(ReduceOp::Add, products, {summed});
  if (order) sums = builder.permute(sums, *order);
  return builder.reshape(sums, node.shape());
}

// On a grid, computes a long dot product as a reduction of products, which split_reductions
// divides. Returns nothing for other contractions.
std::optional<Value> long_dot(Builder& builder, const Node& node, const Contract& contract, Value a,
                              Value b, const Capabilities& caps) {
  const auto is_dot = [&](Value v, int64_t axis) {
    const Shape& shape = builder.shape(v);
    return is_constant(shape) && max_elements(shape) == shape[axis].constant();
  };
  if (caps.model != ExecutionModel::Grid || contract.contract.size() != 1 || is_bool(node.dtype()))
    return std::nullopt;
  const auto [of_a, of_b] = contract.contract[0];
  if (!is_dot(a, of_a) || !is_dot(b, of_b) || !is_long_reduction(builder.shape(a)))
    return std::nullopt;
  const Shape line{builder.shape(a)[of_a]};
  const Value products =
      builder.alu(AluOp::Mul, {builder.reshape(a, line), builder.reshape(b, line)});
  return builder.reshape(builder.reduce(ReduceOp::Add, products, {0}), node.shape());
}

Value contract_in_parts(Builder& builder, const Contract& node, Value a, Value b, int64_t parts) {
  const auto [of_a, of_b] = node.contract[0];
  const auto shifted = [](int64_t axis, int64_t by) { return axis > by ? axis + 1 : axis; };
  Pairs batch{{of_a, of_b}};
  for (const auto& [x, y] : node.batch) batch.emplace_back(shifted(x, of_a), shifted(y, of_b));
  a = split_axis(builder, a, of_a, parts);
  b = split_axis(builder, b, of_b, parts);
  const Value products = builder.contract(a, b, {{of_a + 1, of_b + 1}}, std::move(batch));
  const Value sum = builder.reduce(ReduceOp::Add, builder.add(Contiguous{}, {products}), {0});
  const Shape& shape = builder.shape(sum);
  return builder.reshape(sum, Shape(shape.begin() + 1, shape.end()));
}

// Computes a contraction by parts of equal length, and the remainder.
Value contract_by_parts(Builder& builder, const Contract& node, Value a, Value b, int64_t parts) {
  const auto [of_a, of_b] = node.contract[0];
  const int64_t terms = builder.shape(a)[of_a].constant(), main = terms - terms % parts;
  const auto part = [&](int64_t from, int64_t to) {
    return std::pair(builder.slice(a, of_a, from, to), builder.slice(b, of_b, from, to));
  };
  const auto [head_a, head_b] = part(0, main);
  const Value sum = contract_in_parts(builder, node, head_a, head_b, parts);
  if (main == terms) return sum;
  const auto [tail_a, tail_b] = part(main, terms);
  return builder.alu(AluOp::Add,
                     {sum, builder.contract(tail_a, tail_b, node.contract, node.batch)});
}

}  // namespace

Graph split_contractions(Graph graph, const Capabilities& caps) {
  if (!any_node(graph, [](const Node& node) { return node.kind() == NodeKind::Contract; }))
    return graph;
  return rewrite(graph, [&](Builder& builder, uint32_t, const Node& node,
                            std::vector<Value> inputs) {
    const auto* contract = node.as<Contract>();
    // Matrix units multiply operands that are widened for the product without widening them, and
    // faster.
    const bool is_widened = std::any_of(
        inputs.begin(), inputs.end(), [&](Value v) { return builder[v].kind() == NodeKind::Cast; });
    if (contract && !is_widened) {
      if (const auto sum = long_dot(builder, node, *contract, inputs[0], inputs[1], caps))
        return *sum;
      if (const auto sums = vector_times_rows(builder, node, *contract, inputs[0], inputs[1], caps))
        return *sums;
    }
    const auto parts = contract && !is_widened
                           ? choose_parts(*contract, builder.shape(inputs[0]),
                                          builder.shape(inputs[1]), node.dtype(), caps)
                           : std::nullopt;
    if (!parts) return builder.copy(node, std::move(inputs));
    return contract_by_parts(builder, *contract, inputs[0], inputs[1], *parts);
  });
}

}  // namespace rune::graph
