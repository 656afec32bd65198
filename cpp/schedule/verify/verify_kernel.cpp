#include "schedule/verify/verify_kernel.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/math.h"
#include "schedule/mapping/matrix_tiles.h"
#include "schedule/verify/verify_checks.h"

namespace rune::schedule::detail {

namespace {

class KernelVerifier : KernelChecks {
 public:
  KernelVerifier(const Graph& graph, const Kernel& kernel)
      : KernelChecks(graph, kernel, violations_), reduced_(reduced_axes(kernel)) {}

  std::vector<std::string> run() {
    if (!check_references()) return std::move(violations_);
    check_axes();
    check_buffers();
    if (violations_.empty() && kernel_.matrix()) violations_ = verify_matrix_plan(graph_, kernel_);
    if (!violations_.empty()) return std::move(violations_);
    check_mapping();
    check_hints();
    check_combination();
    check_mirror();
    const bool has_phases = std::holds_alternative<Phased>(kernel_.body);
    if (has_phases) {
      check_phases();
    } else {
      verify_stages(graph_, kernel_, violations_);
    }
    if (violations_.empty()) check_tiles();
    if (violations_.empty() && !has_phases) verify_accesses(graph_, kernel_, violations_);
    return std::move(violations_);
  }

 private:
  // References.

  void check_value(Value v, const char* what) {
    if (v.id >= graph_.size()) report("the ", what, " ", text(v), " does not exist");
  }

  void check_axis_list(const Ints& axes, const char* what, bool may_repeat = false) {
    std::set<int64_t> seen;
    for (const int64_t axis : axes) {
      if (!is_axis(axis)) {
        report("the ", what, " names axis ", axis, ", which does not exist (there are ", num_axes(),
               ")");
      } else if (!seen.insert(axis).second && !may_repeat) {
        report("the ", what, " names ", axis_text(axis), " twice");
      }
    }
  }

  // Checks that all values and axes exist. The other checks rely on it.
  bool check_references() {
    for (const Value v : kernel_.ops) check_value(v, "op");
    for (const Value v : kernel_.inputs) check_value(v, "input");
    for (const Value v : kernel_.outputs) check_value(v, "output");
    for (const Scratch& buffer : kernel_.scratch) check_value(buffer.value, "scratch value");
    check_axis_list(mapping_.block, "block mapping");
    check_axis_list(mapping_.thread, "thread mapping");
    check_axis_list(mapping_.vec, "vec mapping");
    check_axis_list(mapping_.serial, "serial mapping", true);
    if (const MatrixPlan* plan = kernel_.matrix())
      check_axis_list({plan->rows, plan->columns, plan->reduced}, "matrix plan");
    for (const Prefetch& prefetch : kernel_.prefetches)
      if (prefetch.axis) check_axis_list({*prefetch.axis}, "prefetch");
    for (size_t s = 0; s < kernel_.stages().size(); ++s) {
      const std::string what = concat("stage ", s);
      check_axis_list(kernel_.stages()[s].axes, what.c_str());
      std::vector<StageValue> values = kernel_.stages()[s].values;
      if (kernel_.stages()[s].keeps) values.push_back(*kernel_.stages()[s].keeps);
      for (const StageValue& value : values) {
        check_value(value.value, "stage value");
        if (value.strides.size() != iter_.axes.size())
          report(what, " gives ", text(value.value), " ", value.strides.size(), " strides for ",
                 num_axes(), " axes");
      }
    }
    return violations_.empty();
  }

  // Axes, mapping, tiles.

  bool contains_variable(const SymVar& var) const {
    const std::vector<SymVar> vars = graph_.symbolic_vars();
    return contains(vars, var);
  }

  void check_axes() {
    for (int64_t i = 0; i < num_axes(); ++i) {
      const Axis& axis = iter_.axes[i];
      for (const Dim::Term& term : axis.size.terms())
        if (!contains_variable(term.var))
          report(axis_text(i), " has the size ", axis.size, ", but the graph declares no ",
                 term.var.name, " with these bounds");
      if (axis.extent() < 1) report(axis_text(i), " has size ", axis.extent());
    }
  }

  void check_mapping() {
    for (int64_t i = 0; i < num_axes(); ++i) {
      const bool block = contains(mapping_.block, i), thread = contains(mapping_.thread, i);
      const bool vec = contains(mapping_.vec, i), serial = contains(mapping_.serial, i);
      if (!block && !thread && !serial) report(axis_text(i), " is mapped nowhere");
      const bool in_pieces = thread && !iter_.tiles.empty() && kernel_.deals_squares();
      const bool by_vectors = thread && !contains(outer_, i) && !iter_.axes[i].is_symbolic() &&
                              extent(i) % mapping_.lanes == 0;
      if (thread && serial) report(axis_text(i), " is mapped twice: to threads and to loops");
      if (vec && !serial && !in_pieces && !by_vectors)
        report(axis_text(i), " has vectors but no loop");
      if (block && !contains(outer_, i) && !(kernel_.is_atomic() && contains(reduced_, i)))
        report(axis_text(i), " is a block axis, but a stage's own");
      if (thread && contains(outer_, i) && !block)
        report(axis_text(i), " is an outer thread axis, but no block axis");
    }
    const bool grid_threads = overlap(mapping_.thread, mapping_.block);
    if (grid_threads && mapping_.thread != mapping_.block && !kernel_.matrix())
      report("threads over outer axes must run over all block axes, in their order");
    if (mapping_.lanes < 1 || mapping_.threads < 1)
      report("there are ", mapping_.lanes, " lanes and ", mapping_.threads, " threads");
    if (mapping_.points && (*mapping_.points < 2 || !kernel_.deals_points_to_threads()))
      report("threads have ", *mapping_.points,
             " points each, in a kernel that does not deal points to threads");
    if (mapping_.teams) check_teams();
    if (!iter_.tiles.empty() && kernel_.deals_squares()) check_squares();
    if (mapping_.mirrored && !has_mirrored_squares())
      report("workgroups cover squares and their mirror images, but there are no such squares");
    if (mapping_.exchanged && !has_pieces_to_exchange())
      report("threads exchange pieces of squares, but do not have one of as many lanes each");
    if (mapping_.threads > 1 && mapping_.thread.empty())
      report("workgroups have ", mapping_.threads, " threads, but no axis is mapped to threads");
  }

  // Each team has a point, and its threads exchange values only by shuffles.
  void check_teams() {
    const int64_t teams = *mapping_.teams;
    const auto is_divided = [&](int64_t axis) {
      return iter_.axes[axis].is_symbolic() ||
             (!iter_.tiles.empty() && iter_.tiles[axis].front() != 1);
    };
    const Combination* combination = kernel_.combination();
    if (teams < 2 || mapping_.threads % teams != 0 || kernel_.deals_points_to_threads() ||
        std::any_of(mapping_.block.begin(), mapping_.block.end(), is_divided))
      report("workgroups of ", mapping_.threads, " threads are ", teams,
             " teams, which cannot have a point of the block axes each");
    if (!combination || combination->threads != ThreadCombination::Shuffles || combination->atomic)
      report("teams of threads combine their results, but not by shuffles");
  }

  // There are two axes. A workgroup's threads share their pieces evenly, patch by patch.
  void check_squares() {
    int64_t of_group = 1, of_patch = 1, divided = 0;
    bool is_even = !mapping_.points;
    for (const int64_t axis : mapping_.block) {
      const Ints& tiles = iter_.tiles[axis];
      if (tiles.front() == 1) continue;
      ++divided;
      if (tiles.size() != 3 || tiles[2] < 1 || iter_.extent(axis) % tiles[2] != 0) {
        is_even = false;
        continue;
      }
      of_group *= tiles[0] / tiles[2];
      of_patch *= tiles[1] / tiles[2];
    }
    if (!is_even || divided != 2 || of_patch < 1 || mapping_.threads % of_patch != 0 ||
        of_group % mapping_.threads != 0)
      report("workgroups of ", mapping_.threads,
             " threads cover rectangles that they cannot share evenly by patches of two axes");
  }

  bool has_mirrored_squares() const {
    const Ints& block = mapping_.block;
    return !iter_.tiles.empty() && kernel_.deals_squares() && block.size() == 2 &&
           iter_.extent(block[0]) == iter_.extent(block[1]) &&
           iter_.tiles[block[0]].front() == iter_.tiles[block[1]].front();
  }

  bool has_pieces_to_exchange() const {
    if (iter_.tiles.empty() || !kernel_.deals_squares() || mapping_.lanes < 2) return false;
    std::vector<Ints> divided;
    for (const int64_t axis : mapping_.block)
      if (iter_.tiles[axis].size() == 3) divided.push_back(iter_.tiles[axis]);
    return divided.size() == 2 && divided[0][0] == divided[1][0] &&
           divided[0][2] == mapping_.lanes && divided[1][2] == mapping_.lanes &&
           divided[0][0] * divided[0][0] == mapping_.threads * mapping_.lanes * mapping_.lanes;
  }

  void check_tiles() {
    if (iter_.tiles.size() != iter_.axes.size())
      return report("there are tiles for ", iter_.tiles.size(), " axes, not for ", num_axes());
    for (int64_t i = 0; i < num_axes(); ++i) {
      const Ints& tiles = iter_.tiles[i];
      if (is_of_matrix(i)) {
        if (!tiles.empty())
          report(axis_text(i), " has the tiles ", text::to_text(tiles),
                 ", but the matrix plan divides it");
        continue;
      }
      if (tiles.empty() || *std::min_element(tiles.begin(), tiles.end()) < 1) {
        report(axis_text(i), " has the tiles ", text::to_text(tiles));
        continue;
      }
      for (size_t t = 1; t < tiles.size(); ++t)
        if (tiles[t - 1] % tiles[t] != 0)
          report(axis_text(i), " has a tile of ", tiles[t - 1], ", not a multiple of the next, ",
                 tiles[t]);
      if (tiles.back() % iter_.lanes(i) != 0)
        report(axis_text(i), " has an innermost tile of ", tiles.back(),
               ", not a multiple of its lanes, ", iter_.lanes(i));
      if (tiles.front() > round_up(extent(i), tiles[tiles.size() > 1]))
        report(axis_text(i), " has a tile of ", tiles.front(), " for a size of ", extent(i));
      const bool looped = contains(mapping_.serial, i) || contains(mapping_.thread, i);
      if (!looped && tiles.front() != 1)
        report(axis_text(i), " has no loop, but tiles of ", tiles.front(), " for a workgroup");
      const auto loops = std::count(mapping_.serial.begin(), mapping_.serial.end(), i);
      const auto sizes = static_cast<int64_t>(tiles.size()) - contains(mapping_.block, i);
      if (contains(outer_, i) && contains(mapping_.serial, i) && loops != sizes)
        report(axis_text(i), " has ", loops, " loops for ", sizes, " tiles within a workgroup");
      if (!contains(outer_, i) && loops > 1 + (kernel_.carried_axis() == i))
        report(axis_text(i), " has ", loops, " loops");
    }
  }

  bool is_of_matrix(int64_t axis) const {
    return kernel_.matrix() && kernel_.matrix()->divides(axis);
  }

  void check_hints() {
    std::set<Value> announced;
    for (const Prefetch& prefetch : kernel_.prefetches) {
      const bool is_output = contains(kernel_.outputs, prefetch.from);
      if (!is_output && !contains(kernel_.inputs, prefetch.from))
        report("a prefetch is from ", text(prefetch.from),
               ", which is neither an input nor an output");
      if (is_output && prefetch.axis)
        report("a prefetch of stores to ", text(prefetch.from), " has an axis");
      if (prefetch.ahead < 1) report("a prefetch is of elements ", prefetch.ahead, " ahead");
      if (prefetch.axis && contains(outer_, *prefetch.axis))
        report("a prefetch is along ", axis_text(*prefetch.axis), ", which is no axis of a stage");
      if (!announced.insert(prefetch.from).second)
        report("there are two prefetches from ", text(prefetch.from));
    }
    for (const Value v : kernel_.nontemporal)
      if (!contains(kernel_.outputs, v))
        report(text(v), " is written past the caches, but is no output");
  }

  void check_mirror() {
    const Mirror* mirror = kernel_.mirror();
    if (!mirror) return;
    const auto [rows, columns] = *mirror;
    check_axis_list({rows, columns}, "mirror");
    if (!violations_.empty()) return;
    if (!contains(outer_, rows) || !contains(outer_, columns) || extent(rows) != extent(columns))
      report("the output is mirrored in ", axis_text(rows), " and ", axis_text(columns),
             ", which are no outer axes of equal size");
    if (kernel_.outputs.size() != 1 || !contains(mapping_.vec, columns))
      report("an output is mirrored, but has no vectors along ", axis_text(columns),
             ", or is not the only one");
  }

  static bool overlap(const Ints& a, const Ints& b) {
    return std::any_of(a.begin(), a.end(), [&](int64_t axis) { return contains(b, axis); });
  }

  void check_combination() {
    const bool threads_share = overlap(reduced_, mapping_.thread);
    const bool share = threads_share || overlap(reduced_, mapping_.block);
    const Combination* combination = kernel_.combination();
    if (share != (combination != nullptr))
      return report(share ? "threads share a reduction, but nothing says how they combine"
                          : "each thread has reductions of its own, but they are combined");
    if (!combination) return;
    const bool combines_threads = combination->threads != ThreadCombination::None;
    if (combines_threads && !threads_share)
      report("threads are combined by ", name_of(combination->threads),
             ", but do not share a reduction");
    if (combination->atomic) return check_atomic_reductions();
    if (!combines_threads) report("threads share a reduction, but are not combined");
    if (scatters()) report("threads share the updates of a Scatter without atomic operations");
  }

  bool scatters() const {
    return std::any_of(kernel_.stages().begin(), kernel_.stages().end(),
                       [](const Stage& stage) { return stage.kind == StageKind::Scatter; });
  }

  // Workgroups combine only values that they store, in a buffer with initial elements.
  void check_atomic_reductions() {
    for (const Stage& stage : kernel_.stages())
      for (const StageValue& value : stage.values) {
        const bool begun = contains(kernel_.inputs, value.value);
        if (stage.kind == StageKind::Reduce && (!begun || !contains(kernel_.outputs, value.value)))
          report("workgroups combine ", text(value.value),
                 ", which is not both an output and an input whose initial elements an earlier "
                 "kernel stores");
        if (stage.kind == StageKind::Map && !scatters() && !begun)
          report("a kernel whose workgroups combine atomically stores ", text(value.value),
                 ", which it does not reduce");
      }
  }

  // Phases.

  static bool begins_with(const Ints& list, const Ints& start) {
    return list.size() >= start.size() && std::equal(start.begin(), start.end(), list.begin());
  }

  void check_phases() {
    if (kernel_.phases().empty()) report("there are neither stages nor phases");
    const std::set<Value> given(kernel_.inputs.begin(), kernel_.inputs.end());
    std::set<Value> stored, unread = given;
    for (size_t p = 0; p < kernel_.phases().size(); ++p) {
      const Kernel& phase = kernel_.phases()[p];
      for (const std::string& violation : verify_kernel(graph_, phase))
        report("phase ", p, ": ", violation);
      check_shared_loops(p, phase);
      for (const Value v : phase.inputs) {
        unread.erase(v);
        if (!given.count(v) && !stored.count(v))
          report("phase ", p, " reads ", text(v),
                 ", which is not an input and which no earlier phase stores");
      }
      for (const Value v : phase.outputs) {
        stored.insert(v);
        if ((kernel_.scratch_of(v) != nullptr) == contains(kernel_.outputs, v))
          report("phase ", p, " stores ", text(v),
                 ", which must be either an output or in a scratch buffer");
      }
    }
    for (const Value v : unread) report("no phase reads the input ", text(v));
    for (const Value v : kernel_.outputs)
      if (!stored.count(v)) report("no phase stores the output ", text(v));
    for (const Scratch& buffer : kernel_.scratch) check_scratch_buffer(buffer, stored);
  }

  void check_shared_loops(size_t p, const Kernel& phase) {
    const IterSpace& iter = phase.iter;
    if (std::holds_alternative<Phased>(phase.body)) report("phase ", p, " has phases itself");
    if (iter.mapping.block != mapping_.block || !begins_with(iter.mapping.serial, mapping_.serial))
      report("phase ", p, " has other workgroups or first loops than the kernel");
    for (int64_t i = 0; i < num_axes(); ++i)
      if (i >= static_cast<int64_t>(iter.axes.size()) ||
          i >= static_cast<int64_t>(iter.tiles.size()) || iter.axes[i].extent() != extent(i) ||
          !begins_with(iter.tiles[i], iter_.tiles[i]))
        report("phase ", p, " has another axis ", i, " than the kernel, or other tiles of it");
  }

  // Buffers.

  void check_buffers() {
    for (const auto* buffers : {&kernel_.inputs, &kernel_.outputs}) {
      std::set<Value> seen;
      for (const Value v : *buffers)
        if (!seen.insert(v).second)
          report("the ", buffers == &kernel_.inputs ? "input " : "output ", text(v),
                 " is listed twice");
    }
  }

  const Ints reduced_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> verify_kernel(const Graph& graph, const Kernel& kernel) {
  return KernelVerifier(graph, kernel).run();
}

}  // namespace rune::schedule::detail
