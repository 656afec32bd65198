#include "reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "expr_testing.h"
#include "graph/text.h"
#include "schedule/analysis/accesses.h"
#include "schedule_testing.h"

namespace rune::schedule {

namespace {

// Arithmetic.

int64_t scalar(AluOp op, const std::vector<int64_t>& x) {
  const auto u = [&](size_t i) { return static_cast<uint64_t>(x[i]); };
  switch (op) {  // NOLINT: the operations that the tests use
    case AluOp::Add: return static_cast<int64_t>(u(0) + u(1));
    case AluOp::Sub: return static_cast<int64_t>(u(0) - u(1));
    case AluOp::Mul: return static_cast<int64_t>(u(0) * u(1));
    case AluOp::Max: return std::max(x[0], x[1]);
    case AluOp::Min: return std::min(x[0], x[1]);
    case AluOp::Neg: return static_cast<int64_t>(-u(0));
    default: ADD_FAILURE() << "the reference lacks " << name_of(op); return 0;
  }
}

int64_t identity_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Add: return 0;
    case ReduceOp::Prod: return 1;
    case ReduceOp::Max: return INT64_MIN;
    case ReduceOp::Min: return INT64_MAX;
  }
  return 0;
}

AluOp op_of(const graph::Node& node) {
  if (const auto* binop = node.as<graph::Binop>()) return binop->op;
  return node.as<graph::Unary>()->op;
}

int64_t position_of(const Ints& index, const Ints& shape) {
  int64_t position = 0;
  for (size_t d = 0; d < shape.size(); ++d) position = position * shape[d] + index[d];
  return position;
}

// Graphs.

class GraphEvaluator {
 public:
  GraphEvaluator(const graph::Graph& graph, const std::vector<Tensor>& inputs)
      : graph_(graph), inputs_(inputs) {}

  std::vector<Tensor> run() {
    for (const graph::Node& node : graph_.nodes) {
      Tensor result{constants_of(node.shape()), {}};
      for_each_index(result.shape,
                     [&](const Ints& index) { result.data.push_back(element(node, index)); });
      values_.push_back(std::move(result));
    }
    return std::move(values_);
  }

 private:
  int64_t read(Value v, const Ints& index) const {
    const Tensor& x = values_[v.id];
    return x.data.at(position_of(index, x.shape));
  }

  int64_t element(const graph::Node& node, const Ints& index) const {
    using namespace graph;
    const Value x = node.inputs.empty() ? Value{} : node.inputs[0];
    Ints at = index;
    if (const auto* n = node.as<Placeholder>())
      return inputs_[n->index].data[position_of(index, constants_of(node.shape()))];
    if (const auto* n = node.as<Const_Scalar>()) return n->value.as_int64();
    if (node.as<Reshape>())
      return values_[x.id].data.at(position_of(index, constants_of(node.shape())));
    if (node.as<Contiguous>()) return read(x, index);
    if (const auto* n = node.as<Permute>()) {
      for (size_t i = 0; i < at.size(); ++i) at[n->axes[i]] = index[i];
      return read(x, at);
    }
    if (node.as<Expand>()) {
      for (size_t i = 0; i < at.size(); ++i) at[i] = graph_[x].shape()[i] == 1 ? 0 : index[i];
      return read(x, at);
    }
    if (const auto* n = node.as<Pad>()) {
      for (size_t i = 0; i < at.size(); ++i) {
        at[i] -= n->widths[i].first.constant();
        if (at[i] < 0 || at[i] >= graph_[x].shape()[i].constant()) return 0;
      }
      return read(x, at);
    }
    if (const auto* n = node.as<Shrink>()) {
      for (size_t i = 0; i < at.size(); ++i) at[i] += n->limits[i].first.constant();
      return read(x, at);
    }
    if (const auto* n = node.as<Flip>()) {
      for (const int64_t axis : n->axes) at[axis] = node.shape()[axis].constant() - 1 - index[axis];
      return read(x, at);
    }
    if (const auto* n = node.as<graph::View>()) return view_element(n->tracker, x, index);
    if (const auto* n = node.as<Cat>()) {
      for (const Value part : node.inputs) {
        const int64_t size = graph_[part].shape()[n->axis].constant();
        if (at[n->axis] < size) return read(part, at);
        at[n->axis] -= size;
      }
    }
    if (const auto* n = node.as<Reduce_Axis>()) return reduce_element(*n, x, index);
    if (const auto* n = node.as<Contract>()) return contract_element(*n, node, index);
    std::vector<int64_t> operands;
    for (const Value v : node.inputs) operands.push_back(read(v, index));
    return scalar(op_of(node), operands);
  }

  int64_t view_element(const ShapeTracker& tracker, Value x, Ints index) const {
    int64_t position = 0;
    for (size_t v = tracker.views.size(); v-- > 0;) {
      const View& view = tracker.views[v];
      if (v + 1 < tracker.views.size())
        for (size_t d = (index.assign(view.shape.size(), 0), view.shape.size()); d-- > 0;
             position /= view.shape[d])
          index[d] = position % view.shape[d];
      position = view.offset;
      for (size_t d = 0; d < index.size(); ++d) {
        if (view.mask && (index[d] < (*view.mask)[d].first || index[d] >= (*view.mask)[d].second))
          return 0;
        position += index[d] * view.strides[d];
      }
    }
    return values_[x.id].data.at(position);
  }

  int64_t reduce_element(const graph::Reduce_Axis& n, Value x, Ints index) const {
    Ints sizes;
    for (const int64_t axis : n.axes) sizes.push_back(graph_[x].shape()[axis].constant());
    int64_t total = identity_of(n.op);
    for_each_index(sizes, [&](const Ints& inner) {
      for (size_t i = 0; i < inner.size(); ++i) index[n.axes[i]] = inner[i];
      total = scalar(alu_of(n.op), {total, read(x, index)});
    });
    return total;
  }

  int64_t contract_element(const graph::Contract& n, const graph::Node& node,
                           const Ints& index) const {
    const Value a = node.inputs[0], b = node.inputs[1];
    Ints at_a(graph_[a].shape().size(), -1), at_b(graph_[b].shape().size(), -1);
    size_t next = 0;
    for (const auto& [i, j] : n.batch) at_a[i] = at_b[j] = index[next++];
    for (const auto& [i, j] : n.contract) at_a[i] = at_b[j] = 0;
    for (int64_t& i : at_a) i = i < 0 ? index[next++] : i;
    for (int64_t& i : at_b) i = i < 0 ? index[next++] : i;
    Ints sizes;
    for (const auto& [i, j] : n.contract) sizes.push_back(graph_[a].shape()[i].constant());
    int64_t total = 0;
    for_each_index(sizes, [&](const Ints& inner) {
      for (size_t k = 0; k < inner.size(); ++k)
        at_a[n.contract[k].first] = at_b[n.contract[k].second] = inner[k];
      total = scalar(AluOp::Add, {total, scalar(AluOp::Mul, {read(a, at_a), read(b, at_b)})});
    });
    return total;
  }

  const graph::Graph& graph_;
  const std::vector<Tensor>& inputs_;
  std::vector<Tensor> values_;
};

// Schedules.

Index constants(const Ints& index) {
  return {index.begin(), index.end()};
}

class ScheduleRunner {
 public:
  ScheduleRunner(const Schedule& schedule, const std::vector<Tensor>& inputs)
      : schedule_(schedule),
        graph_(schedule.graph),
        arena_((schedule.arena_bytes + 7) / 8, kGarbage) {
    const std::vector<Value> arguments = graph_.inputs();
    for (size_t i = 0; i < arguments.size(); ++i) memory_[arguments[i].id] = inputs[i].data;
  }

  std::vector<Tensor> run() {
    for (size_t i = 0; i < schedule_.items.size(); ++i) run_kernel(kernel_at(schedule_, i));
    std::vector<Tensor> outputs;
    for (const Value v : schedule_.outputs)
      outputs.push_back({constants_of(graph_[v].shape()), memory_[v.id]});
    return outputs;
  }

 private:
  static constexpr int64_t kGarbage = 0x5a5a5a5a5a5a5a5a;

  int64_t& cell(Value v, int64_t position) {
    const auto offset = offsets_.find(v.id);
    if (offset != offsets_.end()) return arena_.at(offset->second / 8 + position);
    return memory_.at(v.id).at(position);
  }

  void run_kernel(const Kernel& kernel) {
    kernel_ = &kernel;
    inputs_.clear();
    stored_.clear();
    for (const Value v : kernel.inputs) inputs_.insert(v.id);
    for (const Value v : kernel.outputs) {
      const std::optional<int64_t> offset = allocation_of(schedule_, v).offset;
      if (offset)
        offsets_[v.id] = *offset;
      else
        memory_[v.id].assign(max_elements(graph_[v].shape()), kGarbage);
    }
    const Ints outer = outer_axes(kernel);
    for_each_point(outer, Ints(kernel.iter.axes.size(), 0), [&](const Ints& point) {
      reductions_.clear();
      for (const Stage& stage : kernel.stages()) run_stage(stage, point);
    });
  }

  template <class F>
  void for_each_point(const Ints& axes, Ints point, F&& f) {
    Ints sizes;
    for (const int64_t axis : axes) sizes.push_back(kernel_->iter.axes[axis].extent());
    for_each_index(sizes, [&](const Ints& index) {
      for (size_t i = 0; i < axes.size(); ++i) point[axes[i]] = index[i];
      f(point);
    });
  }

  void run_stage(const Stage& stage, const Ints& outer) {
    if (stage.kind == StageKind::Reduce)
      for (const StageValue& value : stage.values) reductions_.erase(value.value.id);
    for_each_point(stage.axes, outer, [&](const Ints& point) {
      const std::vector<sym::Expr> axes = constants(point);
      for (const StageValue& value : stage.values) {
        const int64_t position = value_position(stage, value, axes).constant();
        const Index index = unflatten_index(sym::Expr(position), graph_[value.value].shape());
        if (stage.kind == StageKind::Map) {
          ASSERT_TRUE(stored_.insert({value.value.id, position}).second) << "stored twice";
          cell(value.value, position) = element(value.value, index);
        } else {
          const Index inner = unflatten_index(inner_position(stage, value, axes),
                                              reduced_shape(graph_, value.value));
          fold(reductions_, value.value, position, index, inner);
        }
      }
    });
  }

  // The reduction's running value, and the element that it is for.
  struct Running {
    int64_t position = 0;
    int64_t total = 0;
  };

  void fold(std::map<uint32_t, Running>& running, Value v, int64_t position, const Index& index,
            const Index& inner) {
    const auto* reduce = graph_[v].as<graph::Reduce_Axis>();
    const ReduceOp op = reduce ? reduce->op : ReduceOp::Add;
    Running& r = running.insert({v.id, {position, identity_of(op)}}).first->second;
    std::vector<int64_t> operands;
    for (const Access& access : reduction_accesses(graph_, v, index, inner))
      operands.push_back(read(access));
    const int64_t term = reduce ? operands[0] : scalar(AluOp::Mul, operands);
    r.total = scalar(alu_of(op), {r.total, term});
  }

  int64_t read(const Access& access) {
    if (!sym::evaluate(access.mask, [](uint32_t) { return 0; })) return 0;
    return element(access.value, access.index);
  }

  int64_t element(Value v, const Index& index) {
    const graph::Node& node = graph_[v];
    const int64_t position = flatten_index(index, node.shape()).constant();
    EXPECT_LT(position, max_elements(node.shape()));
    EXPECT_GE(position, 0);
    const auto reduction = reductions_.find(v.id);
    if (reduction != reductions_.end()) {
      EXPECT_EQ(reduction->second.position, position)
          << "another element of the reduction is wanted";
      return reduction->second.total;
    }
    if (inputs_.count(v.id)) return cell(v, position);
    if (const auto* n = node.as<graph::Const_Scalar>()) return n->value.as_int64();
    if (evaluation_of(node) == Evaluation::Reduction) return inline_reduction(v, position, index);
    std::vector<int64_t> operands;
    for (const Access& access : operand_accesses(graph_, v, index)) {
      const bool selects = evaluation_of(node) == Evaluation::Select;
      if (selects && !sym::evaluate(access.mask, [](uint32_t) { return 0; })) continue;
      operands.push_back(read(access));
    }
    return evaluation_of(node) == Evaluation::Alu ? scalar(op_of(node), operands) : operands.at(0);
  }

  int64_t inline_reduction(Value v, int64_t position, const Index& index) {
    std::map<uint32_t, Running> running;
    for_each_index(constants_of(reduced_shape(graph_, v)),
                   [&](const Ints& inner) { fold(running, v, position, index, constants(inner)); });
    return running.at(v.id).total;
  }

  const Schedule& schedule_;
  const graph::Graph& graph_;
  std::vector<int64_t> arena_;
  std::map<uint32_t, std::vector<int64_t>> memory_;
  std::map<uint32_t, int64_t> offsets_;  // of temporaries, bytes
  const Kernel* kernel_ = nullptr;
  std::set<uint32_t> inputs_;
  std::map<uint32_t, Running> reductions_;  // of the present outer point
  std::set<std::pair<uint32_t, int64_t>> stored_;
};

}  // namespace

Tensor arange(const Ints& shape, int64_t start) {
  Tensor result{shape, {}};
  for (int64_t i = 0; i < num_elements(shape); ++i)
    result.data.push_back((i + start) % 2 ? -(i + start) : i + start);
  return result;
}

std::vector<Tensor> evaluate_graph(const graph::Graph& graph, const std::vector<Tensor>& inputs) {
  return GraphEvaluator(graph, inputs).run();
}

std::vector<Tensor> run_schedule(const Schedule& schedule, const std::vector<Tensor>& inputs) {
  return ScheduleRunner(schedule, inputs).run();
}

}  // namespace rune::schedule
