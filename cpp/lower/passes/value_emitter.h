// Emits values of the graph at index tuples: index expressions, masks, loads and scalar operations.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "lower/passes/lane_expressions.h"
#include "lower/scoped_builder.h"
#include "schedule/analysis/accesses.h"
#include "schedule/indexing/demand.h"

namespace rune::lower {

using schedule::Access;
using schedule::Index;
using schedule::Value;

// What distinguishes launches of one code: how much further along an axis than in the kernel
// lowered the elements lie that the code reads of an input.
struct Shift {
  Value input;
  int64_t axis = 0;
  size_t argument = 0;
};

// What a kernel and its phases share: the kernel whose arguments are the globals, the graph's
// variables, and the code that they become. All that it refers to must outlive it.
struct Launch {
  Launch(const schedule::Graph& graph, const schedule::Kernel& kernel,
         const std::vector<SymVar>& vars, const Capabilities& caps);

  const schedule::Graph& graph;
  const schedule::Kernel& kernel;
  const std::vector<SymVar>& vars;
  const Capabilities& caps;
  const DType index_dtype;
  std::vector<SymVar> arguments;  // of the launch
  std::vector<Shift> shifts;
  ScopedBuilder builder;
};

// Where the element at `index` is in scratch memory of this layout that counts from `origin`.
sym::Expr scratch_position(const schedule::Scratch& layout, const Index& origin,
                           const Index& index);

class ValueEmitter {
 public:
  // For `kernel` or for one of its phases. Values may depend on a lane variable; then they are
  // vectors.
  ValueEmitter(Launch& launch, const schedule::Kernel& kernel);

  // A variable of index expressions that stands for this value.
  sym::Expr bind(Var value, sym::Bounds bounds);
  // A symbolic variable's value.
  sym::Expr symbol(const SymVar& var) { return symbols_.at(var.name); }
  // The same for an expression that is at least 0 and less than `count`, though its own bounds may
  // be wider.
  sym::Expr emit_and_bind(const sym::Expr& expr, int64_t count) {
    return bind(emit(expr), {0, count - 1});
  }
  // The number of the lane, where only the first `used` lanes matter: the bounds are tighter, the
  // value is the same.
  sym::Expr lane(int64_t used) const;
  int lanes() const { return lanes_; }

  // An index expression: a scalar, or a vector if it depends on the lane.
  Var emit(const sym::Expr& expr);
  // A condition: no Var if it is always true.
  Var emit(const sym::Mask& mask);
  Var index_constant(int64_t value) { return builder_.constant(Scalar::of(index_dtype_, value)); }

  // The values wanted, in one sweep over the graph. An access's mask says where the value is
  // needed; elsewhere it may be anything, but memory is not touched.
  std::vector<Var> evaluate(const std::vector<Access>& wanted);
  Var evaluate_one(const Access& wanted) { return evaluate({wanted})[0]; }

  // From now on the reduction's element at this position is this value.
  void define(Value reduction, const sym::Expr& position, Var result);

  // `value` where the condition holds, else `other`; scalars spread over the lanes of the rest.
  Var where(Var condition, Var value, Var other);
  // A value spread over the lanes of a type.
  Var match(Var v, const Type& type) { return builder_.splat(v, type.lanes); }

  void store(Value v, const sym::Expr& position, Var value, const sym::Mask& mask,
             bool nontemporal);
  // As store, of a value's elements at several points. Where they fill what lies between the
  // elements of each other's neighbouring lanes, they are stored as whole vectors.
  struct Element {
    sym::Expr position;
    Var value;
    sym::Mask mask;
  };
  void store(Value v, const std::vector<Element>& elements, bool nontemporal);

  // A scalar index that is data as a position along an axis, negative ones from the end; `valid`
  // says whether it is one.
  struct Position {
    sym::Expr position;
    Var valid;
  };
  Position checked_position(Var index, int64_t extent);
  // How an update meets what is there: in its place, or by `op`, which other threads may do, too.
  struct Combination {
    std::optional<ReduceOp> op;
    bool atomic = false;
  };
  // As store, where `valid`, if there is one, holds too.
  void update(Value v, const sym::Expr& position, Var value, const sym::Mask& mask, Var valid,
              Combination by);

  // Scratch memory. What is kept counts from `origin`, the index at the first element held.
  void keep(Value v, const Index& origin, const Index& index, Var value, const sym::Mask& mask);
  // From now on, in the innermost scope, the elements that have been kept from `origin` on can be
  // taken.
  void hold(Value v, const Index& origin);
  // From now on, in the innermost scope, the scratch buffer that `owner` has for this value takes
  // the place of its memory, from `origin` on.
  void place_in_scratch(Value v, const ValueEmitter& owner, const Index& origin);
  // The values that are taken from scratch instead of being computed.
  void take(std::vector<Value> values) { taken_ = std::move(values); }
  // From now on, what is loaded is announced as the kernel's hints for the stage say.
  void prefetch_for(const schedule::Stage& stage);

 private:
  // Where an access to all lanes of a position goes.
  struct Place {
    Var index;
    int lanes;
    Var valid;
    bool contiguous;
  };
  Place place_of(const sym::Expr& position, Var valid);
  Var both(Var a, Var b);
  struct Hash {
    size_t operator()(const Access& access) const;
  };
  struct Equal {
    bool operator()(const Access& a, const Access& b) const {
      return a.value == b.value && a.index == b.index && a.mask == b.mask;
    }
  };
  struct Held {
    Index origin;
    int depth;
    uint64_t scope;
  };
  // A value that lies in scratch memory as if it were one of the kernel's buffers.
  struct Placed {
    Var memory;
    const schedule::Scratch* layout;
    Index origin;
    int depth;
  };
  struct Known {
    Var value;
    uint64_t scope;
  };

  // Of an input's element, in the buffer.
  sym::Expr position_in_memory(const Access& access) const;
  const Var* find(const Access& access) const;
  Var known_value(const Access& access);
  void compute(const Access& access);
  Var compute_alu(const graph::Node& node, const Access& access);
  Var compute_forward(const Access& access);
  Var compute_select(const Access& access);
  Var compute_reduction(const Access& access);
  Var compute_gathered(const Access& access);
  // Of the gathered element, memory's, `ahead` elements of the last dimension further on.
  void prefetch_gathered(const Access& access, int64_t ahead);
  // The extent of an axis of this size, which may be symbolic.
  sym::Expr extent_of(int64_t size);
  sym::Expr wrapped_position(Var index, int64_t extent);
  Var fold_in_place(const Access& access);
  Var load(const Access& access);
  Var load_uniform(Var memory, const sym::Expr& position, const sym::Mask& mask, int least_depth);
  Var emit_atom(const sym::Atom& atom);
  Var emit_condition(const sym::Expr& expr);
  const Held* held(Value v) const;
  const schedule::Scratch& scratch_layout(Value v) const { return *kernel_.scratch_of(v); }
  Var load_from(Var memory, const sym::Expr& position, const sym::Mask& mask, int least_depth);
  // What the stage is going to load after the vector, or element, at this position.
  void prefetch_following(const Access& access, const sym::Expr& position);
  // Of neighbouring lanes' elements that are `stride` apart: all that lies between them is loaded.
  Var load_strided(Var memory, const sym::Expr& position, int64_t stride, int least_depth);
  // The same, of memory that consists of runs of `stride` elements: whole runs are loaded, which
  // serve the accesses to their other elements, too.
  Var load_interleaved(Var memory, const sym::Expr& position, int64_t stride, int least_depth);
  bool is_in_runs(Value v, const sym::Expr& position, int64_t run) const;
  // Of lanes whose elements are far apart, of as many neighbouring points as there are lanes: for
  // each lane a vector of their elements is loaded, and the square of these transposed.
  Var load_transposed(Var memory, const sym::Expr& position, int least_depth);
  bool is_of_square(Value v, const sym::Expr& position, int64_t stride) const;
  std::vector<size_t> interleaved(const std::vector<Element>& elements, size_t first) const;
  void store_interleaved(Var memory, const std::vector<Element>& elements,
                         const std::vector<size_t>& group, bool nontemporal);
  void store_to(Var memory, const sym::Expr& position, Var value, const sym::Mask& mask,
                bool nontemporal);
  // Whether the first lane is at a multiple of whole vectors, as stores past the caches must be.
  bool starts_vector(const sym::Expr& position) const;
  bool is_input(Value v) const { return inputs_.count(v.id) > 0; }

  ScopedBuilder& builder_;
  const schedule::Graph& graph_;
  const schedule::Kernel& kernel_;
  const std::vector<SymVar>& vars_;  // the graph's
  const DType index_dtype_;
  const int lanes_;
  Var lane_numbers_;
  std::map<std::string, sym::Expr> symbols_;
  std::unordered_map<uint32_t, Var> variables_;
  uint32_t next_variable_ = 0;
  uint32_t next_vector_variable_ = kFirstVectorVariable;
  std::map<uint32_t, Var> memory_;        // by buffer
  std::map<uint32_t, sym::Expr> shifts_;  // by input, in elements
  std::map<uint32_t, bool> inputs_;
  std::map<uint32_t, Var> scratch_;  // by value that is kept
  std::map<uint32_t, Held> held_;
  std::map<uint32_t, Placed> placed_;
  std::vector<Value> taken_;
  std::map<uint32_t, int64_t> ahead_;  // by input, in elements
  std::map<uint32_t, std::vector<std::pair<sym::Expr, Var>>> reduced_;
  std::unordered_map<Access, Known, Hash, Equal> known_;
};

}  // namespace rune::lower
