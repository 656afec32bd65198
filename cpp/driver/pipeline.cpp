#include "driver/pipeline.h"

#include <chrono>
#include <cstdio>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/options.h"
#include "driver/lower_loops.h"
#include "graph/passes/passes.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "lower/passes/decompose.h"
#include "lower/passes/divide_by_reciprocals.h"
#include "lower/passes/eliminate_dead_instructions.h"
#include "lower/passes/lower_kernel.h"
#include "lower/passes/partition_loops.h"
#include "lower/passes/skip_mismatches.h"
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

template <lower::Kernel (*pass)(const lower::Kernel&, const Capabilities&)>
void for_each_kernel(State& s) {
  for (lower::Kernel& kernel : s.kernels) {
    check_interrupt();
    kernel = pass(kernel, *s.capabilities);
  }
}

constexpr Stage kSource = Stage::Source, kCore = Stage::Core, kSchedule = Stage::Schedule,
                kLowered = Stage::Lowered;

// A graph pass that needs only the graph.
template <graph::Graph (*pass)(const graph::Graph&)>
void on_graph(State& s) {
  s.graph = pass(s.graph);
}

// A graph pass that divides work among the parts of the device, which adds nodes.
template <graph::Graph (*pass)(graph::Graph, const Capabilities&)>
void divide(State& s) {
  const size_t before = s.graph.size();
  s.graph = pass(std::move(s.graph), *s.capabilities);
  s.is_divided |= s.graph.size() != before;
}

// Simplifies again only if a pass has divided work, because a sweep of a large graph takes as long
// as the other passes.
void simplify_divided(State& s) {
  if (!s.is_divided) return;
  s.graph = graph::eliminate_common_subexpressions(graph::simplify(s.graph));
  s.graph = graph::eliminate_dead_code(s.graph);
}

// The device that the program runs on.
const std::string& device_of(const State& s) {
  return s.device.empty() ? s.capabilities->name : s.device;
}

// The order of the passes:
//
// Source nodes become core nodes first. Complex values become pairs of real ones before all else,
// so that no other pass has to handle them. Then loops and writes are removed. Writes depend on the
// order of the nodes, which later passes need not keep. Then values are placed on devices, because
// the rules of decompose_nodes combine values of the same device.
//
// Then the graph is made smaller. Constants come first, because they make rules apply. Sharing
// comes last, because rules make equal nodes. The passes that divide work make nodes to which rules
// apply and nodes that are equal, so rules and sharing are then repeated. Constants are not,
// because these passes make no operations on constants alone. Rules have nothing to do in a long
// Cat that is nested in Cats.
//
// Outputs get buffers of their own last, because sharing would merge them again.
//
// The cost of a kernel is known once it is formed. The mapping uses it. Memory is planned when no
// kernel can change any more.
//
// Narrow floats are widened before decomposition, so that float32's rules serve them too.
constexpr Pass kPipeline[] = {
    {"split_complex", kSource, kSource, on_graph<graph::split_complex>},
    {"hoist_contractions", kSource, kSource,
     [](State& s) { s.graph = graph::hoist_contractions(std::move(s.graph)); }},
    {"form_contractions", kSource, kSource, on_graph<graph::form_contractions>},
    {"collect_first_values", kSource, kSource,
     [](State& s) { s.graph = graph::collect_first_values(std::move(s.graph), *s.capabilities); }},
    {"batch_iterations", kSource, kSource,
     [](State& s) { s.graph = graph::batch_iterations(std::move(s.graph), *s.capabilities); }},
    {"block_loops", kSource, kSource,
     [](State& s) { s.graph = graph::block_loops(std::move(s.graph), *s.capabilities); }},
    {"form_loops", kSource, kSource,
     [](State& s) { s.graph = graph::form_loops(s.graph, *s.capabilities); }},
    {"functionalize", kSource, kSource,
     [](State& s) { s.graph = graph::functionalize(s.graph, device_of(s)); }},
    {"place_on_devices", kSource, kSource,
     [](State& s) { s.graph = graph::place_on_devices(std::move(s.graph), device_of(s)); }},
    {"decompose_nodes", kSource, kCore,
     [](State& s) {
       s.graph = graph::decompose_nodes(s.graph, device_of(s), s.capabilities->languages);
     }},
    {"fold_constants", kCore, kCore, on_graph<graph::fold_constants>},
    {"simplify", kCore, kCore, on_graph<graph::simplify>},
    {"eliminate_common_subexpressions", kCore, kCore,
     on_graph<graph::eliminate_common_subexpressions>},
    {"eliminate_dead_code", kCore, kCore, on_graph<graph::eliminate_dead_code>},
    {"split_scans", kCore, kCore, divide<graph::split_scans>},
    {"split_scatters", kCore, kCore, divide<graph::split_scatters>},
    {"split_contractions", kCore, kCore, divide<graph::split_contractions>},
    {"form_online_reductions", kCore, kCore, divide<graph::form_online_reductions>},
    {"split_reductions", kCore, kCore, divide<graph::split_reductions>},
    {"nest_long_cats", kCore, kCore,
     [](State& s) { s.graph = graph::nest_long_cats(std::move(s.graph)); }},
    {"simplify_divided", kCore, kCore, simplify_divided},
    {"materialize_outputs", kCore, kCore,
     [](State& s) { s.graph = graph::materialize_outputs(std::move(s.graph)); }},
    {"fuse", kCore, kSchedule,
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
     [](State& s) {
       lower::Placements placements;
       for (const auto& [output, placement] : s.placements)
         placements[s.schedule.outputs[output]] = placement;
       s.kernels = lower::lower_schedule(s.schedule, *s.capabilities, placements);
       for (const schedule::ScheduleItem& item : s.schedule.items)
         if (item.loops()) lower_loops(s, *item.loops());
     }},
    {"partition_loops", kLowered, kLowered, for_each_kernel<lower::partition_loops>},
    {"widen_narrow_floats", kLowered, kLowered, for_each_kernel<lower::widen_narrow_floats>},
    {"decompose", kLowered, kLowered, for_each_kernel<lower::decompose>},
    {"divide_by_reciprocals", kLowered, kLowered, for_each_kernel<lower::divide_by_reciprocals>},
    {"skip_mismatches", kLowered, kLowered, for_each_kernel<lower::skip_mismatches>},
    {"eliminate_dead_instructions", kLowered, kLowered,
     for_each_kernel<lower::eliminate_dead_instructions>},
};

bool is_graph(Stage stage) {
  return stage == Stage::Source || stage == Stage::Core;
}

// Whether the IR must be valid after a pass. A schedule must be valid only after its last pass, the
// other IRs always.
bool ends_stage(const Pass& pass) {
  const Pass* next = &pass + 1;
  return next == std::end(kPipeline) || (next->to != pass.to && !is_graph(next->to));
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

// A text does not say whether its graph has source nodes. If it has none, it may begin at passes
// for core nodes.
void start_at_core(const Pass& pass, State& state) {
  const std::vector<std::string> violations = graph::verify(state.graph, graph::Dialect::Core);
  if (!violations.empty())
    user_error(ErrorKind::Value, pass.name, ": cannot run before decompose_nodes (",
               violations.front(), ")");
  state.stage = Stage::Core;
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
  if (state.stage == Stage::Source && pass.from == Stage::Core) start_at_core(pass, state);
  RUNE_CHECK(state.stage == pass.from, pass.name, " runs on another IR");
  check_interrupt();
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
    case Stage::Source:
    case Stage::Core: return graph::print(state.graph);
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
    case Stage::Source: return graph::verify(state.graph);
    case Stage::Core: return graph::verify(state.graph, graph::Dialect::Core);
    case Stage::Schedule: return schedule::verify(state.schedule);
    case Stage::Lowered: {
      std::vector<std::string> all;
      for (const lower::Kernel& kernel : state.kernels) {
        check_interrupt();
        for (std::string& violation : lower::verify(kernel)) all.push_back(std::move(violation));
      }
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
