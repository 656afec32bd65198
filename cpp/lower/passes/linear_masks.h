// Analyses the masks of a kernel that are comparisons between integers, if these are linear in the
// variables of loops and launch.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "lower/instr.h"

namespace rune::lower {

// An integer: the sum of coefficient * variable over scalar instructions, plus a constant for each
// lane.
struct Linear {
  std::map<uint32_t, int64_t> variables;
  std::vector<int64_t> lanes;

  int64_t lane(size_t i) const { return lanes[lanes.size() == 1 ? 0 : i]; }
};

// A comparison. It holds in a lane if the sum of coefficient * variable, plus the lane's constant,
// is not negative.
struct Condition {
  std::map<uint32_t, int64_t> variables;
  int64_t least = 0, greatest = 0;  // of the lanes' constants
};

// Comparisons whose outcome is known. Each is the same in all lanes.
struct Outcomes {
  std::set<uint32_t> hold, fail;
};

// Answers questions about the masks of one kernel, which must outlive it.
class LinearMasks {
 public:
  explicit LinearMasks(const Kernel& kernel) : kernel_(kernel), known_(kernel.body.size()) {}

  // Adds the linear comparisons in the mask of an instruction: of a masked load or store, or the
  // condition of a Where.
  void collect(const Instr& instr, std::set<uint32_t>& comparisons);

  // The Condition of a linear comparison; nothing for other instructions.
  std::optional<Condition> condition(Var mask);

  // Whether a mask holds in all lanes (true) or in none (false); nothing if the outcomes do not
  // determine that.
  std::optional<bool> value(Var mask, const Outcomes& outcomes) const;

 private:
  void collect_from(Var mask, std::set<uint32_t>& comparisons);
  std::optional<Linear> linear(Var v);
  std::optional<Linear> compute(const Instr& instr);

  const Kernel& kernel_;
  std::vector<std::optional<std::optional<Linear>>> known_;
};

// The mask of a load or store that has one.
std::optional<Var> mask_of(const Instr& instr);

}  // namespace rune::lower
