#include "driver/pipeline.h"

#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "base/error.h"
#include "base/options.h"
#include "graph/passes/decompose_nodes.h"
#include "graph/passes/eliminate_common_subexpressions.h"
#include "graph/passes/eliminate_dead_code.h"
#include "graph/passes/fold_constants.h"
#include "graph/passes/passes.h"
#include "graph/passes/simplify.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "lower/passes/decompose.h"
#include "lower/passes/eliminate_dead_instructions.h"
#include "lower/passes/lower_kernel.h"
#include "lower/passes/parameterize_constants.h"
#include "lower/passes/partition_loops.h"
#include "lower/text.h"
#include "lower/verify.h"
#include "schedule/analysis/analysis.h"
#include "schedule/analysis/dependencies.h"
#include "schedule/fusion/fuse_kernels.h"
#include "schedule/mapping/mapping.h"
#include "schedule/memory/memory_plan.h"
#include "schedule/text.h"
#include "schedule/verify/verify.h"

namespace rune::driver {

namespace {

// Kernels that share a body, and so have equal launches, share what becomes of it.
template <lower::Kernel (*pass)(const lower::Kernel&, const Capabilities&)>
void for_each_body(State& s) {
  std::map<const void*, std::pair<lower::Instrs, lower::Instrs>> changed;  // from, to
  for (lower::Kernel& kernel : s.kernels) {
    const auto [it, is_new] = changed.try_emplace(kernel.body.identity());
    if (is_new) it->second = {kernel.body, pass(kernel, *s.capabilities).body};
    kernel.body = it->second.second;
  }
}

constexpr Stage kGraph = Stage::Graph, kSchedule = Stage::Schedule, kLowered = Stage::Lowered;

// Nodes that no kernel computes go first: what they become is made of nodes that the other passes
// know, and Assign is told by the order of the nodes, which those passes need not keep.
//
// What users wrote, made smaller: constants first, since they make rules apply, and sharing last,
// since rules make equal nodes.
//
// Outputs get buffers of their own before long reductions are split, because a split reduction that
// is an output ends in a reshape; and after scans are, because theirs is as long as the output.
// Everything about a kernel's cost is known once it is formed; the mapping uses it, and memory is
// planned when no kernel can change any more.
//
// Narrow floats are widened before decomposition, so that float32's rules serve them too. Kernels
// share their code last, since the other passes may treat constants apart.
constexpr Pass kPipeline[] = {
    {"decompose_nodes", kGraph, kGraph,
     [](State& s) {
       const Capabilities& caps = *s.capabilities;
       const std::string& device = s.device.empty() ? caps.name : s.device;
       s.graph = graph::decompose_nodes(s.graph, device, caps.languages);
     }},
    {"fold_constants", kGraph, kGraph, [](State& s) { s.graph = graph::fold_constants(s.graph); }},
    {"simplify", kGraph, kGraph, [](State& s) { s.graph = graph::simplify(s.graph); }},
    {"eliminate_common_subexpressions", kGraph, kGraph,
     [](State& s) { s.graph = graph::eliminate_common_subexpressions(s.graph); }},
    {"eliminate_dead_code", kGraph, kGraph,
     [](State& s) { s.graph = graph::eliminate_dead_code(s.graph); }},
    {"split_scans", kGraph, kGraph,
     [](State& s) { s.graph = graph::split_scans(std::move(s.graph), *s.capabilities); }},
    {"split_scatters", kGraph, kGraph,
     [](State& s) { s.graph = graph::split_scatters(std::move(s.graph), *s.capabilities); }},
    {"form_online_reductions", kGraph, kGraph,
     [](State& s) {
       s.graph = graph::form_online_reductions(std::move(s.graph), *s.capabilities);
     }},
    {"nest_long_cats", kGraph, kGraph,
     [](State& s) { s.graph = graph::nest_long_cats(std::move(s.graph)); }},
    {"materialize_outputs", kGraph, kGraph,
     [](State& s) { s.graph = graph::materialize_outputs(std::move(s.graph)); }},
    {"split_reductions", kGraph, kGraph,
     [](State& s) { s.graph = graph::split_reductions(std::move(s.graph), *s.capabilities); }},
    {"fuse", kGraph, kSchedule,
     [](State& s) { s.schedule = schedule::fuse_kernels(std::move(s.graph), *s.capabilities); }},
    {"find_dependencies", kSchedule, kSchedule,
     [](State& s) { s.schedule = schedule::find_dependencies(std::move(s.schedule)); }},
    {"analyze", kSchedule, kSchedule,
     [](State& s) {
       s.schedule = schedule::analyze_items(std::move(s.schedule), *s.capabilities);
     }},
    {"map_to_machine", kSchedule, kSchedule,
     [](State& s) {
       s.schedule = schedule::map_to_machine(std::move(s.schedule), *s.capabilities);
     }},
    {"plan_memory", kSchedule, kSchedule,
     [](State& s) { s.schedule = schedule::plan_memory(std::move(s.schedule)); }},
    {"lower", kSchedule, kLowered,
     [](State& s) { s.kernels = lower::lower_schedule(s.schedule, *s.capabilities); }},
    {"partition_loops", kLowered, kLowered, for_each_body<lower::partition_loops>},
    {"widen_narrow_floats", kLowered, kLowered, for_each_body<lower::widen_narrow_floats>},
    {"decompose", kLowered, kLowered, for_each_body<lower::decompose>},
    {"eliminate_dead_instructions", kLowered, kLowered,
     for_each_body<lower::eliminate_dead_instructions>},
    {"parameterize_constants", kLowered, kLowered,
     [](State& s) { lower::parameterize_constants(s.kernels); }},
};

// A schedule obeys its verifier once its last pass has run; the other IRs do at all times.
bool ends_stage(const Pass& pass) {
  const Pass* next = &pass + 1;
  return next == std::end(kPipeline) || next->to != pass.to;
}

void check(const Pass& pass, const State& state) {
  const std::vector<std::string> violations = verify(state);
  if (violations.empty()) return;
  std::string all;
  for (const std::string& violation : violations) all += "\n  " + violation;
  throw InternalError(concat("internal error: the IR is invalid after the pass `", pass.name,
                             "`:", all, "\n", print(state),
                             "hint: this is a bug of rune_jit, please report it"));
}

}  // namespace

std::span<const Pass> pipeline() {
  return kPipeline;
}

const Pass& find_pass(const std::string& name) {
  std::string known;
  for (const Pass& pass : kPipeline) {
    if (name == pass.name) return pass;
    known += concat(known.empty() ? "" : ", ", pass.name);
  }
  user_error(ErrorKind::Value, "pass: cannot find `", name, "`\nhint: the passes are ", known);
}

void run_pass(const Pass& pass, State& state) {
  RUNE_CHECK(state.stage == pass.from, pass.name, " runs on another IR");
  const auto start = std::chrono::steady_clock::now();
  pass.run(state);
  state.stage = pass.to;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  const Options& o = options();
  if (o.time) std::fprintf(stderr, "rune_jit: %-32s %9.1f us\n", pass.name, took.count());
  if (o.dump == "all" || o.dump == pass.name)
    std::fprintf(stderr, "; after %s\n%s", pass.name, print(state).c_str());
  if (ends_stage(pass) || (o.verify && pass.to != Stage::Schedule)) check(pass, state);
}

void run_pipeline(State& state, const std::string& stop_after) {
  if (!stop_after.empty()) find_pass(stop_after);
  if (!options().dump.empty() && options().dump != "all") find_pass(options().dump);
  bool started = false;
  for (const Pass& pass : kPipeline) {
    started |= pass.from == state.stage;
    if (!started) continue;
    run_pass(pass, state);
    if (stop_after == pass.name) return;
  }
}

std::string print(const State& state) {
  switch (state.stage) {
    case Stage::Graph: return graph::print(state.graph);
    case Stage::Schedule: return schedule::print(state.schedule);
    case Stage::Lowered: {
      std::string text;
      for (const lower::Kernel& kernel : state.kernels) text += lower::print(kernel);
      return text;
    }
  }
  RUNE_UNREACHABLE();
}

std::vector<std::string> verify(const State& state) {
  switch (state.stage) {
    case Stage::Graph: return graph::verify(state.graph);
    case Stage::Schedule: return schedule::verify(state.schedule);
    case Stage::Lowered: {
      std::vector<std::string> all;
      std::set<const void*> known;
      for (const lower::Kernel& kernel : state.kernels)
        if (known.insert(kernel.body.identity()).second)
          for (std::string& violation : lower::verify(kernel)) all.push_back(std::move(violation));
      return all;
    }
  }
  RUNE_UNREACHABLE();
}

State parse(std::string_view text, const Capabilities& caps) {
  const text::Lexer lexer(text);
  const std::string_view word = lexer.lookahead_ident();
  State state;
  state.capabilities = &caps;
  if (word == "graph") {
    state.graph = graph::parse(text);
  } else if (word == "schedule") {
    state.stage = Stage::Schedule;
    state.schedule = schedule::parse(text);
  } else if (word == "kernel") {
    state.stage = Stage::Lowered;
    state.kernels = lower::parse_all(text);
  } else {
    lexer.fail("expected `graph`, `schedule` or `kernel`");
  }
  return state;
}

}  // namespace rune::driver
