#include "lower/verify.h"

#include <set>

namespace rune::lower {

namespace {

// Computes the least fixed point. It starts from "nothing depends on the thread" and adds
// dependences. It goes over the body again as long as an Acc gets a dependence from a later Assign.
class Analysis {
 public:
  explicit Analysis(const Kernel& kernel) : kernel_(kernel) {
    result_.value.resize(kernel.body.size());
    result_.execution.resize(kernel.body.size());
  }

  ThreadDependence run() {
    do {
      changed_ = false;
      scopes_.clear();
      openers_.clear();
      for (uint32_t i = 0; i < kernel_.body.size(); ++i) visit(i);
    } while (changed_);
    return std::move(result_);
  }

 private:
  bool diverged() const { return !scopes_.empty() && scopes_.back(); }

  void mark(uint32_t id) {
    changed_ |= !result_.value[id];
    result_.value[id] = true;
  }

  bool is_source(const Instr& instr) const {
    const Special* special = instr.as<Special>();
    return instr.as<Wmma>() ||  // each thread has its own elements
           (special && special->kind != SpecialKind::Workgroup_idx && kernel_.local > 1);
  }

  void visit(uint32_t id) {
    const Instr& instr = kernel_.body[id];
    const InstrKind kind = instr.kind();
    if (closes_scope(kind)) {
      scopes_.pop_back();
      openers_.pop_back();
    }
    result_.execution[id] = diverged();
    bool depends = is_source(instr);
    for (const Var arg : instr.args) depends |= result_.value[arg.id];
    if (kind == InstrKind::Assign) {
      // If only some threads execute the Assign, the others keep the old value.
      if (result_.value[instr.args[1].id] || diverged()) mark(instr.args[0].id);
    } else if (opens_scope(kind)) {
      scopes_.push_back(diverged() || depends || breaks_apart_.contains(id));
      openers_.push_back(id);
    } else if (kind == InstrKind::Break) {
      if (depends || diverged()) changed_ |= breaks_apart_.insert(openers_.back()).second;
    } else if (depends) {
      mark(id);
    }
  }

  const Kernel& kernel_;
  ThreadDependence result_;
  std::vector<bool> scopes_;         // by open Range or If: whether the threads inside may differ
  std::vector<uint32_t> openers_;    // the open Ranges and Ifs
  std::set<uint32_t> breaks_apart_;  // the Ranges that threads may leave in different iterations
  bool changed_ = false;
};

}  // namespace

ThreadDependence thread_dependence(const Kernel& kernel) {
  return Analysis(kernel).run();
}

}  // namespace rune::lower
