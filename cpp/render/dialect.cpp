#include "render/dialect.h"

namespace rune::render {

Capabilities capabilities_of(const Dialect& dialect) {
  Capabilities caps;
  caps.name = dialect.target;
  caps.languages = {dialect.target, "c"};
  caps.model = ExecutionModel::Grid;
  caps.shared_memory_bytes = dialect.shared_bytes;
  caps.access_bytes = dialect.access_bytes;
  caps.max_buffers = dialect.max_members > 0 ? dialect.max_parameters - 2 + dialect.max_members
                                             : dialect.max_parameters - 1;
  for (size_t d = 0; d < kNumDTypes; ++d) {
    caps.dtypes.set(d, dialect.has(static_cast<DType>(d)));
    caps.simd_shuffles.set(d, !dialect.simd_shuffle[d].empty());
    caps.arithmetic.set(d, caps.dtypes[d] && !dialect.storage_only[d]);
  }
  set_elementary_native(caps);
  set_table_costs(caps);
  for (const auto& [key, text] : dialect.simd_reduce)
    caps.simd_ops[static_cast<size_t>(key.second)].set(static_cast<size_t>(key.first));
  for (const auto& [key, text] : dialect.atomics)
    caps.atomic_ops[static_cast<size_t>(key.second)].set(static_cast<size_t>(key.first));
  for (const auto& [op, function] : dialect.matrix_products) caps.matrix_ops.push_back(op);
  return caps;
}

}  // namespace rune::render
