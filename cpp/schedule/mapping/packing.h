// Contractions of operands too large for the caches: tiles for each level of cache, packed
// operands, register tiles (Goto and van de Geijn 2008).
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// Chooses everything that map_axes does, for a kernel of one large contraction with any elementwise
// operations around it, on a machine of cores: workgroups over tiles of the result; each keeps the
// operand of its columns in scratch memory as panels as wide as the register tile, and a block of
// rows of the other operand that stays in the second-level cache. Returns false, changing nothing,
// if the kernel is no such contraction or too small to repay the copies.
//
// A phase of the kernel `around`, whose tiles are set, has its mapping and first tiles from there:
// the last of its axes must be one of rows, the others belong to both operands or to the rows. Rows
// in the scratch memory of `around` are not copied again.
bool map_packed_contraction(const Graph& graph, const Capabilities& caps, Kernel& kernel,
                            const Kernel* around = nullptr);

// Whether a phase's contraction is large, but of sums too short to repay copies of its operands.
bool contracts_unpacked(const Kernel& phase);

// Rows of the register tile.
int64_t register_tile_rows(const Capabilities& caps);

}  // namespace rune::schedule
