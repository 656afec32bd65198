// Maps contractions whose operands do not fit the caches: tiles for each level of cache, packed
// operands, register tiles (Goto and van de Geijn 2008).
#pragma once

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// Maps a kernel with one large contraction and any elementwise operations to cores, as map_axes
// does for other kernels. Workgroups cover tiles of the result. Each keeps two copies in scratch
// memory: panels of the operand with the columns, as wide as the register tile, and a block of rows
// of the other operand, which stays in the second-level cache. Rows that few columns use are read
// in place. Returns false and changes nothing if the kernel has no such contraction, or one too
// small to repay the copies.
//
// A phase takes its mapping and first tiles from the kernel `around`, whose tiles are set. The last
// axis of `around` must be a row axis; the others must belong to both operands or to the rows. Rows
// in the scratch memory of `around` are not copied again.
bool map_packed_contraction(const Graph& graph, const Capabilities& caps, Kernel& kernel,
                            const Kernel* around = nullptr);

// Whether a phase's contraction is large but its sums are too short to repay copies of its
// operands.
bool contracts_unpacked(const Kernel& phase);

// The number of rows of the register tile.
int64_t register_tile_rows(const Capabilities& caps);

}  // namespace rune::schedule
