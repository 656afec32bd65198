#include "lower/interpreter.h"

#include <algorithm>

#include "base/error.h"
#include "lower/interpreter_memory.h"
#include "lower/interpreter_program.h"
#include "lower/text.h"

namespace rune::lower {

namespace interpreter {
namespace {

// If workgroups find the contents of the workgroup before, so many use the same memory. The next
// one gets other memory, as on a core that joins later.
constexpr int64_t kGroupsOfMemory = 3;

// One run of a program. The threads of a workgroup run one after the other, each up to the next
// barrier.
class Runner {
 public:
  Runner(const Program& program, std::span<const Memory> globals, std::span<const int64_t> vars,
         const InterpreterOptions& options)
      : program_(program),
        kernel_(program.kernel),
        options_(options),
        groups_(kernel_.grid),
        threads_(kernel_.local),
        // Races need two threads.
        memories_(program, globals, options.check_races && groups_ * threads_ > 1) {
    std::vector<uint64_t> image = program.image;
    for (size_t i = 0; i < program.vars.size(); ++i)
      for (const uint32_t slot : program.vars[i].registers)
        image[slot] = static_cast<uint64_t>(vars[i]);
    // Without barriers the threads take turns with one register file.
    stepwise_ = program.has_barrier && threads_ > 1;
    words_ = image.size();
    for (int64_t t = 0; t < (stepwise_ ? threads_ : 1); ++t)
      registers_.insert(registers_.end(), image.begin(), image.end());
  }

  void run() {
    for (int64_t g = 0; g < groups_; ++g) {
      const bool keeps_memory = program_.asks_for_previous && g % kGroupsOfMemory != 0;
      previous_ = keeps_memory ? group_ : -1;
      group_ = options_.reverse_order ? groups_ - 1 - g : g;
      moment_.group_start = ++moment_.interval;
      if (!keeps_memory) memories_.start_group();
      if (stepwise_) {
        run_stepwise();
      } else {
        for (int64_t t = 0; t < threads_; ++t) run_thread(thread_in_order(t), 0, registers_.data());
      }
    }
  }

 private:
  int64_t thread_in_order(int64_t t) const { return options_.reverse_order ? threads_ - 1 - t : t; }
  uint64_t* registers_of(int64_t thread) { return registers_.data() + thread * words_; }

  void run_stepwise() {
    std::vector<uint32_t> position(threads_, 0);
    for (;;) {
      for (int64_t t = 0; t < threads_; ++t) {
        const int64_t thread = thread_in_order(t);
        position[thread] = run_thread(thread, position[thread], registers_of(thread));
      }
      compare_barriers(position);
      const Op& op = program_.ops[position[0]];
      if (op.code == Code::End) return;
      for (uint32_t& p : position) ++p;
      if (op.code == Code::SimdReduce)
        combine_groups(op);
      else if (op.code == Code::SimdShuffle)
        shuffle_groups(op);
      else if (op.code == Code::Wmma)
        multiply_groups(op);
      else
        ++moment_.interval;
    }
  }

  // Combines the values of each SIMD-group's threads by halves.
  void combine_groups(const Op& op) {
    const int64_t width = op.extra;
    for (int64_t first = 0; first < threads_; first += width) {
      std::vector<uint64_t> values;
      for (int64_t t = 0; t < width; ++t) values.push_back(registers_of(first + t)[op.a]);
      for (size_t n = values.size(); n > 1; n = (n + 1) / 2)
        for (size_t i = 0; i < n / 2; ++i)
          op.fn(&values[i], &values[i], &values[i + (n + 1) / 2], nullptr, 1);
      for (int64_t t = 0; t < width; ++t) registers_of(first + t)[op.dst] = values[0];
    }
  }

  // Gives each thread of a SIMD-group the value of another one.
  void shuffle_groups(const Op& op) {
    const int64_t width = op.extra;
    std::vector<uint64_t> values(threads_);
    for (int64_t t = 0; t < threads_; ++t) {
      const auto lane = static_cast<int64_t>(registers_of(t)[op.b]);
      if (lane < 0 || lane >= width)
        user_error(ErrorKind::Runtime, "simd_shuffle: cannot read lane ", lane,
                   " of a SIMD-group of ", width, " threads (thread ", t, ", %", op.source, ")");
      values[t] = registers_of(t / width * width + lane)[op.a];
    }
    for (int64_t t = 0; t < threads_; ++t) registers_of(t)[op.dst] = values[t];
  }

  // Collects the tiles of each SIMD-group's threads, and distributes the product among them.
  void multiply_groups(const Op& op) {
    const WmmaInfo& w = program_.wmmas[op.extra];
    const uint32_t sources[] = {w.cast_a.dst, w.cast_b.dst, op.c};
    std::array<std::vector<uint64_t>, 3> tiles;
    // Calls f(element of the tile, register) for all elements of tile i in the SIMD-group.
    const auto each = [&](int64_t first, size_t i, uint32_t base, const auto& f) {
      for (size_t number = 0; number < w.positions[i].size(); ++number)
        f(tiles[i][w.positions[i][number]],
          registers_of(first + number % w.threads)[base + number / w.threads]);
    };
    for (int64_t first = 0; first < threads_; first += w.threads) {
      for (int64_t t = first; t < first + w.threads; ++t) cast_tiles(w, registers_of(t));
      for (size_t i = 0; i < 3; ++i) {
        tiles[i].resize(w.positions[i].size());
        each(first, i, sources[i], [](uint64_t& tile, uint64_t& r) { tile = r; });
      }
      multiply(w, tiles[0].data(), tiles[1].data(), tiles[2].data());
      each(first, 2, op.dst, [](uint64_t& tile, uint64_t& r) { r = tile; });
    }
  }

  // Checks that all threads wait at the same barrier as thread 0, in the same iterations of the
  // loops around it.
  void compare_barriers(const std::vector<uint32_t>& position) {
    for (int64_t t = 1; t < threads_; ++t) {
      if (position[t] != position[0]) fail_barrier(position, t);
      const Op& op = program_.ops[position[0]];
      if (op.code != Code::Barrier) continue;
      for (const uint32_t loop : program_.barrier_loops[op.extra]) {
        const int64_t here = static_cast<int64_t>(registers_of(t)[loop]);
        const int64_t there = static_cast<int64_t>(registers_of(0)[loop]);
        if (here != there)
          user_error(ErrorKind::Runtime, "barrier: cannot wait in different iterations (thread ", t,
                     " is in iteration ", here, ", thread 0 in ", there, ") at ", where(op));
      }
    }
  }

  [[noreturn]] void fail_barrier(const std::vector<uint32_t>& position, int64_t other) {
    int64_t first = 0;
    if (program_.ops[position[0]].code == Code::End) std::swap(first, other);
    const Op& op = program_.ops[position[first]];
    const Op& other_op = program_.ops[position[other]];
    const std::string elsewhere =
        other_op.code == Code::End
            ? "reaches the end without it"
            : concat("waits at `", print_instr(kernel_, Var{other_op.source}), "`, instruction ",
                     other_op.source);
    user_error(ErrorKind::Runtime, "barrier: cannot wait for all threads (thread ", first,
               " waits at instruction ", op.source, ", thread ", other, " ", elsewhere, ") at ",
               where(op));
  }

  // Text for errors: the instruction, the kernel and the workgroup.
  std::string where(const Op& op) const {
    return concat("`", print_instr(kernel_, Var{op.source}), "` of kernel ", kernel_.name,
                  ", workgroup ", group_);
  }

  // Runs from op `position` to the next barrier or the end. Returns the position there.
  uint32_t run_thread(int64_t thread, uint32_t position, uint64_t* r) {
    moment_.thread = static_cast<uint32_t>(thread);
    const Op* const ops = program_.ops.data();
    for (;; ++position) {
      const Op& op = ops[position];
      switch (op.code) {
        case Code::Lanes: op.fn(r + op.dst, r + op.a, r + op.b, r + op.c, op.lanes); break;
        case Code::Copy: std::copy_n(r + op.a, op.lanes, r + op.dst); break;
        case Code::Splat: std::fill_n(r + op.dst, op.lanes, r[op.a]); break;
        case Code::Gather: {
          const uint32_t* const from = program_.gathers[op.extra].data();
          for (uint32_t i = 0; i < op.lanes; ++i) r[op.dst + i] = r[from[i]];
          break;
        }
        case Code::Position: r[op.dst] = position_along(op.extra); break;
        case Code::Range:
          r[op.dst] = 0;
          r[op.b] = r[op.a];
          if (static_cast<int64_t>(r[op.b]) <= 0) position = op.target - 1;
          break;
        case Code::EndRange:
          if (static_cast<int64_t>(++r[op.dst]) < static_cast<int64_t>(r[op.b]))
            position = op.target - 1;
          break;
        case Code::Break:
          if (r[op.a]) position = op.target - 1;
          break;
        case Code::If:
          if (!r[op.a]) position = op.target - 1;
          break;
        case Code::Load: load(op, r); break;
        case Code::Store: store(op, r); break;
        case Code::Barrier:
          if (stepwise_) return position;
          break;
        case Code::SimdReduce:
          if (stepwise_) return position;
          combine_groups(op);
          break;
        case Code::SimdShuffle:
          if (stepwise_) return position;
          shuffle_groups(op);
          break;
        case Code::Wmma:
          if (stepwise_) return position;
          multiply_groups(op);
          break;
        case Code::End: return position;
      }
    }
  }

  uint64_t position_along(uint32_t special) const {
    const auto group = static_cast<uint64_t>(group_);
    switch (static_cast<SpecialKind>(special)) {
      case SpecialKind::Global_task_idx:
        return group * static_cast<uint64_t>(threads_) + moment_.thread;
      case SpecialKind::Local_thread_idx: return moment_.thread;
      case SpecialKind::Workgroup_idx: return group;
      case SpecialKind::Previous_workgroup_idx: return static_cast<uint64_t>(previous_);
    }
    RUNE_UNREACHABLE();
  }

  // The region, if all lanes can be accessed at once: they are adjacent, unmasked, in bounds and
  // need no record. Otherwise null.
  Region* whole_access(const Op& op, int64_t index) {
    Region& region = memories_.regions[op.extra];
    const bool in_bounds = index >= 0 && index <= region.size - static_cast<int64_t>(op.lanes);
    return !op.masked && !op.index_stride && !region.shadow && in_bounds ? &region : nullptr;
  }

  // The memory that has this element.
  Region& locate(const Op& op, int64_t index) {
    Region& region = memories_.regions[op.extra];
    if (index < 0 || index >= region.size) fail_bounds(op, index);
    return region;
  }

  static int64_t index_of(const Op& op, const uint64_t* r, uint32_t lane) {
    return op.index_stride ? static_cast<int64_t>(r[op.a + lane])
                           : static_cast<int64_t>(r[op.a] + lane);
  }
  static bool is_masked_off(const Op& op, const uint64_t* r, uint32_t lane) {
    return op.masked && !r[op.b + lane * op.mask_stride];
  }

  // Calls access(lane, address) for the accessed lanes, one after the other. record(region, index,
  // lane) returns the conflict of each with an earlier access.
  template <class Record, class F>
  void each_lane(const Op& op, const uint64_t* r, Record record, F access) {
    for (uint32_t lane = 0; lane < op.lanes; ++lane) {
      if (is_masked_off(op, r, lane)) continue;
      const int64_t index = index_of(op, r, lane);
      Region& region = locate(op, index);
      if (region.shadow) {
        const Conflict conflict = record(region, index, lane);
        if (conflict.kind != Conflict::Kind::None) fail_race(op, region, index, conflict);
      }
      access(lane, region.at(index, moment_.thread));
    }
  }

  void load(const Op& op, uint64_t* r) {
    const int64_t first = static_cast<int64_t>(r[op.a]);
    if (const Region* region = whole_access(op, first))
      return read_elements(op.dtype, region->at(first, moment_.thread), r + op.dst, op.lanes);
    for (uint32_t lane = 0; lane < op.lanes; ++lane)
      if (is_masked_off(op, r, lane)) r[op.dst + lane] = 0;
    each_lane(
        op, r, [&](Region& m, int64_t i, uint32_t) { return record_read(m, i, moment_); },
        [&](uint32_t lane, std::byte* from) {
          read_elements(op.dtype, from, r + op.dst + lane, 1);
        });
  }

  void store(const Op& op, const uint64_t* r) {
    if (op.fn) return store_atomic(op, r);
    const int64_t first = static_cast<int64_t>(r[op.a]);
    if (const Region* region = whole_access(op, first))
      return write_elements(op.dtype, r + op.c, region->at(first, moment_.thread), op.lanes);
    each_lane(
        op, r,
        [&](Region& m, int64_t i, uint32_t lane) {
          return record_write(m, i, r[op.c + lane], moment_);
        },
        [&](uint32_t lane, std::byte* to) { write_elements(op.dtype, r + op.c + lane, to, 1); });
  }

  void store_atomic(const Op& op, const uint64_t* r) {
    each_lane(
        op, r, [&](Region& m, int64_t i, uint32_t) { return record_atomic(m, i, moment_); },
        [&](uint32_t lane, std::byte* element) {
          uint64_t value = 0;
          read_elements(op.dtype, element, &value, 1);
          op.fn(&value, &value, r + op.c + lane, nullptr, 1);
          write_elements(op.dtype, &value, element, 1);
        });
  }

  static void cast_tiles(const WmmaInfo& w, uint64_t* r) {
    for (const Op* cast : {&w.cast_a, &w.cast_b})
      cast->fn(r + cast->dst, r + cast->a, nullptr, nullptr, cast->lanes);
  }

  // c += a @ b for row-major tiles.
  static void multiply(const WmmaInfo& w, const uint64_t* a, const uint64_t* b, uint64_t* c) {
    for (uint32_t i = 0; i < w.m; ++i)
      for (uint32_t j = 0; j < w.n; ++j, ++c)
        for (uint32_t k = 0; k < w.k; ++k)
          w.multiply_add(c, a + i * w.k + k, b + k * w.n + j, c, 1);
  }

  [[noreturn]] void fail_bounds(const Op& op, int64_t index) {
    const int64_t size = memories_.regions[op.extra].size;
    const char* const verb = op.code == Code::Load ? "load: cannot read" : "store: cannot write";
    user_error(ErrorKind::Runtime, verb, " element ", index, " of %",
               kernel_.body[op.source].args[0].id, " (it has ", size, " elements) in ", where(op),
               ", thread ", moment_.thread);
  }

  [[noreturn]] void fail_race(const Op& op, const Region& region, int64_t index,
                              const Conflict& conflict) {
    const char* const verb = op.code == Code::Load ? "load: cannot read" : "store: cannot write";
    std::string other = "another workgroup";
    if (conflict.kind == Conflict::Kind::Thread)
      other = conflict.thread == kSeveral ? "other threads" : concat("thread ", conflict.thread);
    user_error(ErrorKind::Runtime, verb, " element ", index, " of %", region.source, ": ", other,
               conflict.other_writes ? " wrote it" : " read it",
               conflict.kind == Conflict::Kind::Thread ? " since the last barrier (data race)"
                                                       : " (data race)",
               " in ", where(op), ", thread ", moment_.thread);
  }

  const Program& program_;
  const Kernel& kernel_;
  const InterpreterOptions options_;
  const int64_t groups_, threads_;
  Memories memories_;
  bool stepwise_ = false;
  size_t words_ = 0;
  std::vector<uint64_t> registers_;
  int64_t group_ = 0, previous_ = -1;
  Moment moment_;
};

}  // namespace
}  // namespace interpreter

Interpreter::Interpreter(Kernel kernel)
    : program_(std::make_shared<interpreter::Program>(interpreter::decode(std::move(kernel)))) {}

void Interpreter::run(std::span<const Memory> globals, std::span<const int64_t> vars,
                      const InterpreterOptions& options) const {
  const std::string& name = program_->kernel.name;
  const size_t wanted = program_->kernel.globals().size();
  if (globals.size() != wanted)
    user_error(ErrorKind::Runtime, "interpreter: cannot run kernel ", name, " with ",
               globals.size(), " buffers (it has ", wanted, ")");
  if (vars.size() != program_->vars.size())
    user_error(ErrorKind::Runtime, "interpreter: cannot run kernel ", name, " with ", vars.size(),
               " symbolic values (it has ", program_->vars.size(), ")");
  for (size_t i = 0; i < vars.size(); ++i) {
    const SymVar& var = program_->vars[i].var;
    if (vars[i] < var.min_val || vars[i] > var.max_val)
      user_error(ErrorKind::Runtime, "interpreter: cannot run kernel ", name, " with ", var.name,
                 " = ", vars[i], " (it lies in [", var.min_val, ",", var.max_val, "])");
  }
  interpreter::Runner(*program_, globals, vars, options).run();
}

}  // namespace rune::lower
