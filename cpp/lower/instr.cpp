#include "lower/instr.h"
#include "base/math.h"

#include <algorithm>

namespace rune::lower {

namespace {

struct Row {
  const char* text;
  int least, most;
  bool value;
};

constexpr Row kRows[] = {
#define RUNE_INSTR(Name, text, least, most, value) {text, least, most, value},
    RUNE_LOWERED_INSTRS(RUNE_INSTR)
#undef RUNE_INSTR
};

const Row& row(InstrKind kind) {
  return kRows[static_cast<int>(kind)];
}

}  // namespace

const char* name_of(InstrKind kind) {
  return row(kind).text;
}
bool has_value(InstrKind kind) {
  return row(kind).value;
}
int min_args(InstrKind kind) {
  return row(kind).least;
}
int max_args(InstrKind kind) {
  return row(kind).most;
}

const char* name_of(SpecialKind kind) {
  switch (kind) {
    case SpecialKind::Global_task_idx: return "Global_task_idx";
    case SpecialKind::Local_thread_idx: return "Local_thread_idx";
    case SpecialKind::Workgroup_idx: return "Workgroup_idx";
  }
  return "?";
}

int64_t spread_position(const Ints& strides, int64_t number) {
  int64_t position = 0;
  for (size_t i = 0; i < strides.size(); ++i)
    if (number >> i & 1) position += strides[i];
  return position;
}

bool is_collective(const Instr& instr) {
  const auto* wmma = instr.as<Wmma>();
  return instr.kind() == InstrKind::Barrier || instr.kind() == InstrKind::Simd_reduce ||
         (wmma && wmma->spread);
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

bool Kernel::has_independent_threads() const {
  return std::none_of(body.begin(), body.end(), [](const Instr& instr) {
    const auto* special = instr.as<Special>();
    return is_collective(instr) || instr.as<Local>() || instr.as<Buffer>() ||
           (special && special->kind != SpecialKind::Global_task_idx);
  });
}

std::vector<int64_t> Kernel::buffer_offsets() const {
  constexpr int64_t kAlignment = 64;
  std::vector<int64_t> offsets{0};
  for (const Instr& instr : body)
    if (const auto* buffer = instr.as<Buffer>()) {
      const int64_t bytes = buffer->size * size_of(instr.type.dtype);
      offsets.push_back(offsets.back() + round_up(bytes, kAlignment));
    }
  return offsets;
}

}  // namespace rune::lower
