#include "schedule/analysis/library_product.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "schedule/analysis/cost.h"
#include "schedule/indexing/demand.h"

namespace rune::schedule {

namespace {

// The least time that the library must save, because it must be loaded for the first product.
constexpr double kLeastGainNs = 1000;

using IsStored = std::function<bool(Value)>;

// The value from which an operand comes by movement and, if `widens` is set, widening to float32.
Access follow(const Graph& graph, Access access, const IsStored& is_stored, bool widens) {
  while (!is_stored(access.value)) {
    const graph::Node& node = graph[access.value];
    const bool casts = node.kind() == graph::NodeKind::Cast && widens &&
                       node.dtype() == DType::Float32 && is_float(graph[node.inputs[0]].dtype()) &&
                       size_of(graph[node.inputs[0]].dtype()) == 2;
    if (!casts && evaluation_of(node) != Evaluation::Forward) break;
    Access next = operand_accesses(graph, access.value, access.index)[0];
    next.mask.require(access.mask);
    access = std::move(next);
  }
  return access;
}

// Axes of the contraction. Several of them may be one axis of the product. Steps are the strides in
// a, b and c.
struct ProductAxis {
  int64_t size = 1;
  std::array<int64_t, 3> steps{};
};
using ProductAxes = std::vector<ProductAxis>;

// These axes as a single one, in row-major order, if that is possible.
std::optional<ProductAxis> collapse(const ProductAxes& axes) {
  ProductAxis result;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].size == 1) continue;
    if (result.size == 1)
      result.steps = axes[i].steps;
    else
      for (size_t m = 0; m < 3; ++m)
        if (axes[i].steps[m] != result.steps[m] * result.size) return std::nullopt;
    result.size *= axes[i].size;
  }
  return result;
}

// Whether these are the strides of a matrix: elements of rows or of columns are adjacent, and rows
// or columns do not overlap.
bool is_matrix(int64_t rows, int64_t row_step, int64_t columns, int64_t column_step) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max({rows, columns, row_step, column_step}) > kMost) return false;
  return (column_step == 1 && row_step >= columns) || (row_step == 1 && column_step >= rows);
}

struct Found {
  MatrixProduct product;  // its arguments are not set
  std::array<Value, 2> operands;
};

// The product of stored operands that a Contract computes.
std::optional<Found> find_product(const Graph& graph, Value v, const IsStored& is_stored) {
  const auto& contract = *graph[v].as<graph::Contract>();
  const Shape& shape = graph[v].shape();
  const Shape reduced = reduced_shape(graph, v);
  if (!is_constant(shape) || !is_constant(reduced)) return std::nullopt;
  const Index index = variable_index(shape, 0);
  const auto first_reduced = static_cast<uint32_t>(shape.size());
  const Index inner = variable_index(reduced, first_reduced);
  std::array<std::vector<Access>, 2> wide_and_narrow;
  for (const bool widens : {false, true})
    for (const Access& access : reduction_accesses(graph, v, index, inner))
      wide_and_narrow[widens].push_back(follow(graph, access, is_stored, widens));
  const auto dtype_of = [&](const Access& access) { return graph[access.value].dtype(); };
  const bool widens = dtype_of(wide_and_narrow[1][0]) == dtype_of(wide_and_narrow[1][1]);
  const std::vector<Access>& operands = wide_and_narrow[widens];

  std::array<sym::Expr, 2> positions;
  for (size_t i = 0; i < 2; ++i) {
    if (!operands[i].mask.is_true()) return std::nullopt;
    positions[i] = flatten_index(operands[i].index, graph[operands[i].value].shape());
  }
  const Ints strides = contiguous_strides(shape);
  bool is_linear = true;
  const auto axis = [&](uint32_t variable, const Dim& size, int64_t of_result) {
    ProductAxis result{size.constant(), {0, 0, of_result}};
    for (size_t i = 0; i < 2; ++i) {
      const auto step = positions[i].coefficient_of(variable);
      is_linear = is_linear && step && *step >= 0;
      result.steps[i] = step.value_or(0);
    }
    return result;
  };
  ProductAxes batch, rows, columns, terms;
  for (uint32_t d = 0; d < first_reduced; ++d) {
    const ProductAxis added = axis(d, shape[d], strides[d]);
    if (added.size == 1) continue;
    const bool of_a = added.steps[0] != 0, of_b = added.steps[1] != 0;
    const size_t rank_of_a = graph[graph[v].inputs[0]].shape().size();
    const bool is_batch = d < contract.batch.size();
    const bool is_row = !is_batch && d < rank_of_a - contract.contract.size();
    // An operand that is repeated along an axis of its rows or columns is no matrix. Repetition
    // along a batch axis is allowed.
    if (!is_batch && !(is_row ? of_a : of_b)) return std::nullopt;
    (is_batch ? batch : is_row ? rows : columns).push_back(added);
  }
  for (uint32_t d = 0; d < reduced.size(); ++d)
    terms.push_back(axis(first_reduced + d, reduced[d], 0));
  const auto g = collapse(batch), i = collapse(rows), j = collapse(columns), k = collapse(terms);
  if (!is_linear || !g || !i || !j || !k) return std::nullopt;
  if (!is_matrix(i->size, i->steps[0], k->size, k->steps[0]) ||
      !is_matrix(k->size, k->steps[1], j->size, j->steps[1]) ||
      !is_matrix(i->size, i->steps[2], j->size, j->steps[2]) || g->size > INT32_MAX)
    return std::nullopt;
  Found found;
  found.operands = {operands[0].value, operands[1].value};
  found.product = {dtype_of(operands[0]),
                   graph[v].dtype(),
                   g->size,
                   i->size,
                   j->size,
                   k->size,
                   {0, positions[0].constant(), {g->steps[0], i->steps[0], k->steps[0]}},
                   {0, positions[1].constant(), {g->steps[1], k->steps[1], j->steps[1]}},
                   {0, 0, {g->steps[2], i->steps[2], j->steps[2]}}};
  return found;
}

double gain_ns(const MatrixProduct& product, const Capabilities& caps) {
  const double operations = static_cast<double>(product.batch) * static_cast<double>(product.rows) *
                            static_cast<double>(product.columns) *
                            static_cast<double>(product.terms);
  for (const LibraryRate& rate : caps.library_rates)
    if (rate.operands == product.operands) return rate.saved_ns(operations);
  return 0;
}

}  // namespace

std::map<uint32_t, LibraryProduct> library_products(const Graph& graph,
                                                    const std::vector<Value>& outputs,
                                                    const std::vector<bool>& is_required,
                                                    const Capabilities& caps) {
  std::map<uint32_t, LibraryProduct> products;
  if (caps.library_rates.empty()) return products;
  std::vector<std::vector<Value>> users(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id)
    for (const Value input : graph.nodes[id].inputs) users[input.id].push_back(Value{id});
  const auto is_read = [&](Value v) {
    return is_required[v.id] || evaluation_of(graph[v]) == Evaluation::Memory;
  };
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (!graph[v].as<graph::Contract>() || users[id].empty()) continue;
    const std::optional<Found> found = find_product(graph, v, is_read);
    if (!found) continue;
    LibraryProduct product{found->operands[0], found->operands[1], v};
    const Value user = users[id].front();
    const bool narrows = graph[user].kind() == graph::NodeKind::Cast &&
                         graph[user].dtype() == found->product.operands && users[id].size() == 1;
    if (narrows && graph[v].dtype() != found->product.operands) product.result = user;
    double more_ns = 0;
    const auto add = [&](Value stored) {
      more_ns += store_ns(caps, static_cast<double>(bytes_of(graph[stored])));
    };
    if (!is_read(product.a)) add(product.a);
    if (!is_read(product.b)) add(product.b);
    if (!contains(outputs, product.result)) add(product.result);
    if (gain_ns(found->product, caps) > more_ns + kLeastGainNs) products[id] = product;
  }
  return products;
}

std::optional<MatrixProduct> library_product(const Graph& graph, const Kernel& kernel,
                                             const Capabilities& caps) {
  if (caps.library_rates.empty() || kernel.outputs.size() != 1 || !kernel.phases().empty() ||
      !kernel.arguments.empty() || kernel.stages().size() != 2 ||
      kernel.stages()[0].values.size() != 1)
    return std::nullopt;
  const Value v = kernel.stages()[0].values[0].value, result = kernel.outputs[0];
  if (!graph[v].as<graph::Contract>()) return std::nullopt;
  const auto number_of = [&](Value input) {
    return static_cast<size_t>(std::find(kernel.inputs.begin(), kernel.inputs.end(), input) -
                               kernel.inputs.begin());
  };
  const auto is_input = [&](Value value) { return number_of(value) < kernel.inputs.size(); };
  std::optional<Found> found = find_product(graph, v, is_input);
  if (!found || !is_input(found->operands[0]) || !is_input(found->operands[1])) return std::nullopt;
  MatrixProduct& product = found->product;
  if (result != v) {
    if (graph[result].kind() != graph::NodeKind::Cast || graph[result].inputs[0] != v ||
        graph[result].dtype() != product.operands)
      return std::nullopt;
    product.result = graph[result].dtype();
  }
  if (gain_ns(product, caps) <= kLeastGainNs) return std::nullopt;
  product.a.argument = number_of(found->operands[0]);
  product.b.argument = number_of(found->operands[1]);
  product.c.argument = kernel.inputs.size();
  return product;
}

}  // namespace rune::schedule
