#include "lower/passes/eliminate_dead_instructions.h"

#include <map>
#include <vector>

namespace rune::lower {

namespace {

// For each instruction, the one that opens the scope around it, or -1. For an end, that is the
// scope which it closes.
std::vector<int64_t> scopes_around(const Kernel& kernel) {
  std::vector<int64_t> around(kernel.body.size(), -1), open;
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const InstrKind kind = kernel.body[i].kind();
    if (!open.empty()) around[i] = open.back();
    if (opens_scope(kind)) open.push_back(static_cast<int64_t>(i));
    if (closes_scope(kind)) open.pop_back();
  }
  return around;
}

bool has_effect(const Instr& instr) {
  const InstrKind kind = instr.kind();
  return kind == InstrKind::Store || kind == InstrKind::Prefetch || kind == InstrKind::Barrier ||
         kind == InstrKind::Define_Global || kind == InstrKind::Define_Var ||
         kind == InstrKind::Custom;
}

class Marker {
 public:
  explicit Marker(const Kernel& kernel)
      : live(kernel.body.size(), false),
        kernel_(kernel),
        around_(scopes_around(kernel)),
        assigns_(kernel.body.size()) {
    for (size_t i = 0; i < kernel.body.size(); ++i) {
      if (kernel.body[i].kind() == InstrKind::Assign)
        assigns_[kernel.body[i].args[0].id].push_back(i);
      if (kernel.body[i].kind() == InstrKind::Break) breaks_[around_[i]].push_back(i);
    }
  }

  void run() {
    for (size_t i = 0; i < kernel_.body.size(); ++i)
      if (has_effect(kernel_.body[i])) mark(i);
    while (!pending_.empty()) {
      const size_t i = pending_.back();
      pending_.pop_back();
      for (const Var arg : kernel_.body[i].args) mark(arg.id);
      // A live accumulator needs its Assigns.
      for (const size_t assign : assigns_[i]) mark(assign);
      if (const auto ends = breaks_.find(static_cast<int64_t>(i)); ends != breaks_.end())
        for (const size_t end : ends->second) mark(end);
    }
    for (size_t i = 0; i < kernel_.body.size(); ++i)
      if (closes_scope(kernel_.body[i].kind())) live[i] = live[around_[i]];
  }

  std::vector<bool> live;

 private:
  void mark(size_t i) {
    if (live[i]) return;
    live[i] = true;
    pending_.push_back(i);
    if (around_[i] >= 0) mark(static_cast<size_t>(around_[i]));
  }

  const Kernel& kernel_;
  const std::vector<int64_t> around_;
  std::vector<std::vector<size_t>> assigns_;       // by accumulator
  std::map<int64_t, std::vector<size_t>> breaks_;  // by Range
  std::vector<size_t> pending_;
};

}  // namespace

Kernel eliminate_dead_instructions(const Kernel& kernel, const Capabilities&) {
  Marker marker(kernel);
  marker.run();
  Kernel result{kernel.name, kernel.grid, kernel.local, {}};
  std::vector<Var> position(kernel.body.size());
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    if (!marker.live[i]) continue;
    Instr instr = kernel.body[i];
    for (Var& arg : instr.args) arg = position[arg.id];
    position[i] = Var{static_cast<uint32_t>(result.body.size())};
    result.body.push_back(std::move(instr));
  }
  return result;
}

}  // namespace rune::lower
