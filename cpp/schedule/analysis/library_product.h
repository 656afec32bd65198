// Products of matrices that a library of the device computes instead of a kernel.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "schedule/schedule.h"
#include "types/matrix_product.h"

namespace rune::schedule {

// A contraction for the library: the values that it reads, which must be stored, and what it
// stores: the Contract itself, or the Cast that narrows its elements to the operands' dtype.
struct LibraryProduct {
  Value a, b, result;
};

// The contractions, by id, that are faster as products by the library, although their operands
// and results are stored then. `is_required` says, by node, what is materialized anyway: what is
// no output, a kernel that reduces may yet keep to itself.
std::map<uint32_t, LibraryProduct> library_products(const Graph& graph,
                                                    const std::vector<Value>& outputs,
                                                    const std::vector<bool>& is_required,
                                                    const Capabilities& caps);

// What a kernel computes, if that is one product which the library computes faster. Its arguments
// are the kernel's inputs, then its outputs.
std::optional<MatrixProduct> library_product(const Graph& graph, const Kernel& kernel,
                                             const Capabilities& caps);

}  // namespace rune::schedule
