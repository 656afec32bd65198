// Shared by the parts of a kernel's verification. Private to verify_kernel.cpp and
// verify_stages.cpp.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "schedule/analysis/accesses.h"

namespace rune::schedule::detail {

class KernelChecks {
 protected:
  KernelChecks(const Graph& graph, const Kernel& kernel, std::vector<std::string>& violations)
      : graph_(graph),
        kernel_(kernel),
        iter_(kernel.iter),
        mapping_(kernel.iter.mapping),
        outer_(outer_axes(kernel)),
        reported_(violations) {}

  template <class... Args>
  void report(const Args&... args) {
    reported_.push_back(concat(args...));
  }

  static std::string text(Value v) { return text::to_text(v); }
  int64_t num_axes() const { return static_cast<int64_t>(iter_.axes.size()); }
  bool is_axis(int64_t axis) const { return axis >= 0 && axis < num_axes(); }
  int64_t extent(int64_t axis) const { return iter_.axes[axis].extent(); }
  std::string axis_text(int64_t axis) const {
    return concat("axis ", axis, " (`", iter_.axes[axis].name, "`)");
  }

  // `kept` are the values that stages or phases put into scratch memory.
  void check_scratch_buffer(const Scratch& buffer, const std::set<Value>& kept);

  const Graph& graph_;
  const Kernel& kernel_;
  const IterSpace& iter_;
  const Mapping& mapping_;
  const Ints outer_;

 private:
  std::vector<std::string>& reported_;
};

// Appends violations in the stages themselves, and in their scratch buffers. The axes and values
// that they name exist.
void verify_stages(const Graph& graph, const Kernel& kernel, std::vector<std::string>& violations);

// Appends violations in the values that the stages read and compute. Requires that there are no
// other violations.
void verify_accesses(const Graph& graph, const Kernel& kernel,
                     std::vector<std::string>& violations);

}  // namespace rune::schedule::detail
