// Emits loads and stores of a kernel's values: its arguments, and scratch memory.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lower/passes/index_emitter.h"
#include "schedule/indexing/indexing.h"

namespace rune::lower {

using schedule::Access;
using schedule::Index;
using schedule::Value;

// The place of a value's elements in memory.
struct Location {
  Var memory;
  // The layout of scratch memory, which has the elements from `origin` on. If it is null, the
  // memory has the whole value in row-major order.
  const schedule::Scratch* layout = nullptr;
  Index origin;
  const Placement* placement = nullptr;  // of an output that is a part of the memory's array
  sym::Expr shift;  // for an argument, the distance of this launch's elements from its start
  // The memory has the elements while this scope is open. Loads are not hoisted out of it.
  ScopedBuilder::ScopeName scope;
  bool is_input = false;  // of the kernel
};

// Returns row `row` of the transpose of a square of vectors. `half` is half the number of lanes. If
// it is smaller, only the blocks of 2 * `half` rows and lanes are transposed.
Var transposed(ScopedBuilder& builder, const std::vector<Var>& rows, int64_t row, int64_t half);

class MemoryEmitter {
 public:
  // For `kernel`, which is the launch's or one of its phases. Defines arguments and scratch memory.
  MemoryEmitter(Launch& launch, const schedule::Kernel& kernel, IndexEmitter& index);

  // The memory from which the value is read: scratch memory if the stage takes it from there, else
  // an argument. Null if the value is not in memory and has to be computed.
  const Location* find(Value v) const;
  bool is_input(Value v) const {
    const auto argument = arguments_.find(v.id);
    return argument != arguments_.end() && argument->second.is_input;
  }
  // Loads an element of a value that find() has found.
  Var load(const Access& access);

  // Stores elements of a value. If the elements of several points interleave, so that together they
  // fill a run of memory, they are stored as whole vectors.
  struct Element {
    sym::Expr position;
    Var value;
    sym::Mask mask;
  };
  void store(Value v, const std::vector<Element>& elements, bool nontemporal);
  void store(Value v, const Element& element, bool nontemporal);
  // Loads the element that the kernel has stored at a position of an output.
  Var load_stored(Value v, const sym::Expr& position, const sym::Mask& mask);

  // How an update changes an element: it replaces the element, or is combined with it by `op`. If
  // it is atomic, other threads may update the same element.
  struct Combination {
    std::optional<ReduceOp> op;
    bool atomic = false;
  };
  // Updates an element where its mask holds and, if there is a `valid`, where `valid` holds.
  void update(Value v, const Element& element, Var valid, Combination by);

  // Stores an element to scratch memory, whose first element is the one at `origin`.
  void keep(Value v, const Index& origin, const Index& index, Var value, const sym::Mask& mask);
  // From now on, until the innermost scope closes, loads may take the elements that have been kept
  // from `origin` on.
  void hold(Value v, const Index& origin);
  // From now on, until the innermost scope closes, the scratch memory that `owner` has for this
  // value replaces its argument. It has the elements from `origin` on.
  void place_in_scratch(Value v, const MemoryEmitter& owner, const Index& origin);
  // Sets the values that are loaded from scratch memory instead of being computed.
  void take(std::vector<Value> values) { taken_ = std::move(values); }
  bool takes(Value v) const { return contains(taken_, v); }

  // The piece of a square that one thread of a workgroup computes. Each side of the square has
  // `pieces` pieces.
  struct Piece {
    sym::Expr row, column;
    int64_t pieces;
  };
  // Sets the thread's piece. Threads then exchange the vectors that they load transposed.
  void exchange(std::optional<Piece> piece);
  bool exchanges() const { return piece_.has_value(); }
  // Loads the elements of these accesses that are in memory, and exchanges the loaded vectors.
  void fetch(const std::vector<Access>& accesses);

  // From now on, loads prefetch elements as the kernel's hints for the stage say.
  void prefetch_for(const schedule::Stage& stage);
  // Prefetches an element of an argument.
  void prefetch(const Access& access);

 private:
  // The operands of a load or a store of all lanes at a position.
  struct Place {
    Var index;
    int lanes;
    Var valid;
    bool contiguous;
  };
  Place place_of(const sym::Expr& position, Var valid);
  sym::Expr position_of(const Location& location, const Access& access) const;
  // The position, in the array that a value is placed in, of its element at a position.
  sym::Expr placed(const Placement& placement, const sym::Expr& position) const;

  Var load_from(Var memory, const sym::Expr& position, const sym::Mask& mask, int least_depth);
  Var load_uniform(Var memory, const sym::Expr& position, const sym::Mask& mask, int least_depth);
  // Prefetches the elements that the stage is going to load after those at this position.
  void prefetch_following(const Access& access, Var memory, const sym::Expr& position);
  // Prefetches the elements of an output that are going to be stored after the vector at this
  // position, if the kernel's hints say so.
  void prefetch_stores_after(Value v, Var memory, const sym::Expr& position);
  // The lanes from `begin` to before `end`.
  struct Lanes {
    int64_t begin, end;
  };
  // The lanes for which a mask holds; nothing if they are not adjacent or depend on more than the
  // lane's number.
  std::optional<Lanes> adjacent_lanes(const sym::Mask& mask) const;
  // Loads elements of neighbouring lanes that are `stride` apart, with all elements between them.
  // Lanes that are not needed get 0.
  Var load_strided(Var memory, const sym::Expr& position, int64_t stride, Lanes needed,
                   int least_depth);
  // The same for memory that consists of runs of `stride` elements. Loads whole runs, so that
  // accesses to their other elements can share these loads.
  Var load_interleaved(Var memory, const sym::Expr& position, int64_t stride);
  bool is_in_runs(Value v, const sym::Expr& position, int64_t run) const;
  // Loads elements of lanes that are far apart, for as many neighbouring points as there are lanes.
  // Loads a vector for each lane, with its elements of all points, and transposes these vectors.
  Var load_transposed(Var memory, const Access& access, const sym::Expr& position);
  // A square in memory: its first position, and the distance between its rows.
  struct Square {
    Var memory;
    sym::Expr start;
    int64_t stride = 0;
    bool operator==(const Square& other) const {
      return memory.id == other.memory.id && start == other.start && stride == other.stride;
    }
  };
  // A square that has been copied to shared memory, and the rows that were read from there.
  struct Fetched {
    Square square;
    Var shared;
    std::vector<Var> rows;
  };
  std::optional<Square> square_of(const Access& access) const;
  // The square's entry; null if it has not been fetched.
  Fetched* fetched(const Square& square);
  // The position in shared memory of row `row` of a square in the row `row_of_pieces` of pieces.
  Var place_in_square(const sym::Expr& row_of_pieces, int64_t row);
  std::vector<size_t> interleaved(const std::vector<Element>& elements, size_t first) const;
  void store_interleaved(const Location& location, const std::vector<Element>& elements,
                         const std::vector<size_t>& group, bool nontemporal);
  void store_to(Var memory, const Element& element, bool nontemporal);
  // Whether the first lane's position is a multiple of the vector's length. Stores past the caches
  // need this.
  bool starts_vector(const sym::Expr& position) const;

  ScopedBuilder& builder_;
  IndexEmitter& index_;
  const schedule::Graph& graph_;
  const schedule::Kernel& kernel_;
  const int lanes_;
  std::map<uint32_t, Location> arguments_;  // by input or output
  std::map<uint32_t, Location> scratch_;    // by kept value
  std::vector<Value> taken_;
  std::map<uint32_t, int64_t> ahead_;  // by input: how far ahead to prefetch, in elements
  std::optional<Piece> piece_;
  int64_t free_shared_bytes_;  // of a workgroup
  std::vector<Fetched> fetched_;
};

}  // namespace rune::lower
