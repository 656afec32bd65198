#include "render/llvm_passes.h"

#include <algorithm>
#include <set>

namespace rune::render::llvm {

namespace {

// Locals of at most this many bytes are on the stack.
constexpr int64_t kMaxCellBytes = 256;
// The most instructions of a kernel that LLVM's passes improve. The passes take longer than
// instruction selection, and gain little in a longer kernel.
constexpr size_t kMostOptimized = 2500;

// Whether a kernel reads what it has written, other than to Locals that are tiles.
bool reads_own_writes(const lower::Kernel& kernel) {
  std::set<uint32_t> read, written;
  for (const lower::Instr& i : kernel.body) {
    if (i.kind() == lower::InstrKind::Load) read.insert(i.args[0].id);
    if (i.kind() == lower::InstrKind::Store) written.insert(i.args[0].id);
  }
  return std::any_of(read.begin(), read.end(), [&](uint32_t id) {
    const lower::Instr& memory = kernel.body[id];
    return written.contains(id) && (!memory.as<lower::Local>() || is_cell(memory));
  });
}

}  // namespace

bool is_cell(const lower::Instr& instr) {
  const auto* local = instr.as<lower::Local>();
  return instr.as<lower::Private>() ||
         (local && local->size * size_of(instr.type.dtype) <= kMaxCellBytes);
}

bool needs_passes(const lower::Kernel& kernel) {
  return kernel.body.size() <= kMostOptimized && reads_own_writes(kernel);
}

}  // namespace rune::render::llvm
