// Emits loads and stores of a kernel's values: its arguments, and scratch memory.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "lower/passes/index_emitter.h"
#include "schedule/indexing/indexing.h"

namespace rune::lower {

using schedule::Access;
using schedule::Index;
using schedule::Value;

// Where the elements of a value are in memory.
struct Location {
  Var memory;
  // Of scratch memory, which holds the elements from `origin` on; null: all of the value,
  // row-major.
  const schedule::Scratch* layout = nullptr;
  Index origin;
  sym::Expr shift;  // of an argument: how much further on the elements lie in this launch
  // While this scope is open, the elements are there; no load of them leaves it.
  ScopedBuilder::ScopeName scope;
  bool is_input = false;  // of the kernel
};

class MemoryEmitter {
 public:
  // For `kernel`, which is the launch's or one of its phases. Defines arguments and scratch memory.
  MemoryEmitter(Launch& launch, const schedule::Kernel& kernel, IndexEmitter& index);

  // Where the value is read from: scratch memory if the stage takes it from there, else an
  // argument. Null if it is in no memory and has to be computed.
  const Location* find(Value v) const;
  bool is_input(Value v) const {
    const auto argument = arguments_.find(v.id);
    return argument != arguments_.end() && argument->second.is_input;
  }
  // A value that find() has found.
  Var load(const Access& access);

  // An element of a value at several points. Where elements fill what lies between those of each
  // other's neighbouring lanes, they are stored as whole vectors.
  struct Element {
    sym::Expr position;
    Var value;
    sym::Mask mask;
  };
  void store(Value v, const std::vector<Element>& elements, bool nontemporal);
  void store(Value v, const Element& element, bool nontemporal);

  // How an update meets what is there: in its place, or by `op`, which other threads may do, too.
  struct Combination {
    std::optional<ReduceOp> op;
    bool atomic = false;
  };
  // As store, where `valid`, if there is one, holds too.
  void update(Value v, const Element& element, Var valid, Combination by);

  // Stores an element to scratch memory that counts from `origin`.
  void keep(Value v, const Index& origin, const Index& index, Var value, const sym::Mask& mask);
  // From now on, in the innermost scope, the elements that have been kept from `origin` on can be
  // taken.
  void hold(Value v, const Index& origin);
  // From now on, in the innermost scope, the scratch buffer that `owner` has for this value takes
  // the place of its argument, from `origin` on.
  void place_in_scratch(Value v, const MemoryEmitter& owner, const Index& origin);
  // The values that are taken from scratch memory instead of being computed.
  void take(std::vector<Value> values) { taken_ = std::move(values); }
  bool takes(Value v) const { return std::find(taken_.begin(), taken_.end(), v) != taken_.end(); }

  // From now on, loads are announced as the kernel's hints for the stage say.
  void prefetch_for(const schedule::Stage& stage);
  // Announces a load of an argument.
  void prefetch(const Access& access);

 private:
  // Where an access to all lanes of a position goes.
  struct Place {
    Var index;
    int lanes;
    Var valid;
    bool contiguous;
  };
  Place place_of(const sym::Expr& position, Var valid);
  sym::Expr position_of(const Location& location, const Access& access) const;

  Var load_from(Var memory, const sym::Expr& position, const sym::Mask& mask, int least_depth);
  Var load_uniform(Var memory, const sym::Expr& position, const sym::Mask& mask, int least_depth);
  // What the stage is going to load after the vector, or element, at this position.
  void prefetch_following(const Access& access, Var memory, const sym::Expr& position);
  // Of neighbouring lanes' elements that are `stride` apart: all that lies between them is loaded.
  Var load_strided(Var memory, const sym::Expr& position, int64_t stride, int least_depth);
  // The same, of memory that consists of runs of `stride` elements: whole runs are loaded, which
  // serve the accesses to their other elements, too.
  Var load_interleaved(Var memory, const sym::Expr& position, int64_t stride);
  bool is_in_runs(Value v, const sym::Expr& position, int64_t run) const;
  // Of lanes whose elements are far apart, of as many neighbouring points as there are lanes: for
  // each lane a vector of their elements is loaded, and the square of these transposed.
  Var load_transposed(Var memory, const sym::Expr& position);
  bool is_of_square(Value v, const sym::Expr& position, int64_t stride) const;
  std::vector<size_t> interleaved(const std::vector<Element>& elements, size_t first) const;
  void store_interleaved(Var memory, const std::vector<Element>& elements,
                         const std::vector<size_t>& group, bool nontemporal);
  void store_to(Var memory, const Element& element, bool nontemporal);
  // Whether the first lane is at a multiple of whole vectors, as stores past the caches must be.
  bool starts_vector(const sym::Expr& position) const;

  ScopedBuilder& builder_;
  IndexEmitter& index_;
  const schedule::Graph& graph_;
  const schedule::Kernel& kernel_;
  const int lanes_;
  std::map<uint32_t, Location> arguments_;  // by value: inputs and outputs
  std::map<uint32_t, Location> scratch_;    // by value that is kept
  std::vector<Value> taken_;
  std::map<uint32_t, int64_t> ahead_;  // by input, in elements
};

}  // namespace rune::lower
