#include "lower/instr.h"
#include "base/math.h"

#include <algorithm>

namespace rune::lower {

Payload::Payload() = default;
Payload::Payload(const Payload&) = default;
Payload::Payload(Payload&&) noexcept = default;
Payload& Payload::operator=(const Payload&) = default;
Payload& Payload::operator=(Payload&&) noexcept = default;
Payload::~Payload() = default;
bool Payload::operator==(const Payload& o) const {
  return static_cast<const AnyInstr&>(*this) == o;
}

const InstrInfo& info(InstrKind kind) {
  static constexpr InstrInfo kRows[] = {
#define RUNE_INSTR(Name, text, fewest, most, value) {text, fewest, most, value},
      RUNE_LOWERED_INSTRS(RUNE_INSTR)
#undef RUNE_INSTR
  };
  return kRows[static_cast<int>(kind)];
}

const char* name_of(SpecialKind kind) {
  switch (kind) {
    case SpecialKind::Global_task_idx: return "Global_task_idx";
    case SpecialKind::Local_thread_idx: return "Local_thread_idx";
    case SpecialKind::Workgroup_idx: return "Workgroup_idx";
    case SpecialKind::Previous_workgroup_idx: return "Previous_workgroup_idx";
  }
  return "?";
}

int64_t spread_position(const Ints& strides, int64_t number) {
  int64_t position = 0;
  for (size_t i = 0; i < strides.size(); ++i)
    if (number >> i & 1) position += strides[i];
  return position;
}

int64_t size_of_memory(const Instr& memory) {
  if (const auto* local = memory.as<Local>()) return local->size;
  if (const auto* own = memory.as<Private>()) return own->size;
  const auto* global = memory.as<Define_Global>();
  return global ? global->size : 0;
}

bool is_collective(const Instr& instr) {
  const InstrKind kind = instr.kind();
  return kind == InstrKind::Barrier || kind == InstrKind::Simd_reduce ||
         kind == InstrKind::Simd_shuffle || kind == InstrKind::Wmma;
}

std::vector<Var> Kernel::globals() const {
  std::vector<Var> result;
  for (uint32_t i = 0; i < body.size(); ++i)
    if (body[i].as<Define_Global>()) result.push_back({i});
  std::sort(result.begin(), result.end(), [&](Var a, Var b) {
    const int64_t first = body[a.id].as<Define_Global>()->index;
    const int64_t second = body[b.id].as<Define_Global>()->index;
    return first != second ? first < second : a.id < b.id;
  });
  return result;
}

bool Kernel::needs_early_loads() const {
  constexpr int64_t kHidingThreads = int64_t{1} << 16;
  if (grid * local >= kHidingThreads) return false;
  int loops = 0;
  for (const Instr& instr : body) {
    if (instr.kind() == InstrKind::Range) ++loops;
    if (instr.kind() == InstrKind::EndRange) --loops;
    if (instr.kind() == InstrKind::Store && loops > 0 &&
        (*this)[instr.args[0]].kind() == InstrKind::Define_Global)
      return true;
  }
  return false;
}

bool Kernel::has_independent_threads() const {
  return std::none_of(body.begin(), body.end(), [](const Instr& instr) {
    const auto* special = instr.as<Special>();
    return is_collective(instr) || instr.as<Local>() ||
           (special && special->kind != SpecialKind::Global_task_idx);
  });
}

std::vector<int64_t> Kernel::local_offsets() const {
  constexpr int64_t kAlignment = 64;
  std::vector<int64_t> offsets{0};
  for (const Instr& instr : body)
    if (const auto* local = instr.as<Local>()) {
      const int64_t bytes = local->size * size_of(instr.type.dtype);
      offsets.push_back(offsets.back() + round_up(bytes, kAlignment));
    }
  return offsets;
}

}  // namespace rune::lower
