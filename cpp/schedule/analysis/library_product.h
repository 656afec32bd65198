// Finds matrix products that a library of the device computes instead of a kernel.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "schedule/schedule.h"
#include "types/matrix_product.h"

namespace rune::schedule {

// A contraction for the library. It reads `a` and `b`, which must be stored. It stores `result`:
// the Contract itself, or the Cast that narrows its elements to the operands' dtype.
struct LibraryProduct {
  Value a, b, result;
};

// The contractions, by id, that the library computes faster, even though their operands and results
// must then be stored. `is_required` tells for each node whether it is materialized anyway. (A
// kernel that reduces may still keep such a value to itself, unless it is an output.)
std::map<uint32_t, LibraryProduct> library_products(const Graph& graph,
                                                    const std::vector<Value>& outputs,
                                                    const std::vector<bool>& is_required,
                                                    const Capabilities& caps);

// The product that a kernel computes, if the library computes it faster. Its arguments are the
// kernel's inputs, followed by its outputs.
std::optional<MatrixProduct> library_product(const Graph& graph, const Kernel& kernel,
                                             const Capabilities& caps);

}  // namespace rune::schedule
