#include "driver/cut.h"

#include <limits>
#include <utility>

#include "driver/targets.h"
#include "graph/passes/passes.h"

namespace rune::driver {

partition::Plan cut(const graph::Graph& graph, const std::string& device,
                    const std::vector<partition::Chunks>& chunks) {
  const Capabilities& known = known_capabilities(device);
  // Loops are expanded, because a loop in a kernel would need whole arrays instead of blocks.
  Capabilities expanding = known;
  expanding.model = ExecutionModel::Grid;
  expanding.max_expanded_nodes = std::numeric_limits<int>::max();
  graph::Graph g = graph::form_loops(graph::split_complex(graph), expanding);
  g = graph::functionalize(g, known.name);
  g = graph::place_on_devices(std::move(g), known.name);
  g = graph::decompose_nodes(g, known.name, known.languages);
  g = graph::simplify(graph::fold_constants(g));
  g = graph::eliminate_dead_code(graph::eliminate_common_subexpressions(g));
  return partition::partition(g, chunks);
}

}  // namespace rune::driver
