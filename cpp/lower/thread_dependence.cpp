#include "lower/verify.h"

#include <set>

namespace rune::lower {

namespace {

// Least fixed point: starts from "nothing depends on the thread" and adds dependences, once more
// for each pass over the body in which an Acc turned out to carry one from a later Assign.
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
    return instr.as<Wmma>() ||  // each thread has elements of its own
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
      // Where only some threads execute the Assign, the others keep the old value.
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
  std::vector<bool> scopes_;         // whether the threads inside may differ, by open Range or If
  std::vector<uint32_t> openers_;    // the Ranges and Ifs that are open
  std::set<uint32_t> breaks_apart_;  // the Ranges that threads may leave one by one
  bool changed_ = false;
};

}  // namespace

ThreadDependence thread_dependence(const Kernel& kernel) {
  return Analysis(kernel).run();
}

}  // namespace rune::lower
