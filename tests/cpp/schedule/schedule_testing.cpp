#include "schedule_testing.h"

#include "base/error.h"
#include "schedule/structure.h"

namespace rune::schedule {

namespace {

Capabilities all_dtypes(Capabilities caps) {
  caps.dtypes.set();
  caps.arithmetic.set();
  set_all_native(caps);
  return caps;
}

}  // namespace

Capabilities cores() {
  Capabilities caps;
  caps.name = "test-cores";
  caps.num_cores = 2;
  caps.vector_bits = 512;
  caps.num_vector_registers = 32;
  caps.l2_bytes = 1 << 20;
  caps.last_level_bytes = 32 << 20;
  caps.bandwidth_bytes_per_ns = 10;
  caps.last_level_bytes_per_ns = 20;
  caps.l2_bytes_per_ns = 40;
  caps.operations_per_ns = rates_by_size(50);
  caps.launch_ns = 500;
  caps.has_nontemporal_stores = true;
  caps.has_prefetch = true;
  return all_dtypes(caps);
}

Capabilities grid() {
  Capabilities caps;
  caps.name = "test-grid";
  caps.model = ExecutionModel::Grid;
  caps.num_cores = 16;
  caps.max_threads_per_group = 1024;
  caps.simd_width = 32;
  caps.shared_memory_bytes = 32 << 10;
  caps.bandwidth_bytes_per_ns = 200;
  caps.operations_per_ns = rates_by_size(2500);
  caps.launch_ns = 5000;
  caps.max_buffers = 31;
  return all_dtypes(caps);
}

void expect_valid(const Schedule& schedule) {
  EXPECT_EQ(verify(schedule), std::vector<std::string>{}) << print(schedule);
  const std::string text = print(schedule);
  const Schedule again = parse(text);
  EXPECT_TRUE(equal(again, schedule)) << text;
  EXPECT_EQ(print(again), text);
}

Schedule schedule_graph(const graph::Graph& graph, const Capabilities& caps) {
  Schedule schedule = fuse_kernels(materialize_outputs(split_reductions(graph, caps)), caps);
  schedule = analyze_items(find_dependencies(std::move(schedule)), caps);
  schedule = plan_memory(map_to_machine(std::move(schedule), caps));
  expect_valid(schedule);
  return schedule;
}

Schedule schedule_of(const Builder& builder, std::vector<Value> outputs, const Capabilities& caps) {
  graph::Graph graph = builder.graph();
  graph.outputs = std::move(outputs);
  return schedule_graph(graph, caps);
}

Kernel kernel_at(const Schedule& schedule, size_t item) {
  const auto& launch = std::get<Launch>(schedule.items.at(item).operation);
  return instantiate(schedule.kernels.at(launch.kernel), launch);
}

const Allocation& allocation_of(const Schedule& schedule, Value v) {
  const auto found = std::find_if(schedule.allocations.begin(), schedule.allocations.end(),
                                  [&](const Allocation& a) { return a.value == v; });
  RUNE_CHECK(found != schedule.allocations.end(), text::to_text(v), " has no allocation");
  return *found;
}

Ints axis_sizes(const Kernel& kernel) {
  Ints sizes;
  for (const Axis& axis : kernel.iter.axes) sizes.push_back(axis.extent());
  return sizes;
}

int64_t bytes_read(const Schedule& schedule) {
  int64_t total = 0;
  for (const ItemAnalysis& a : schedule.analysis) total += a.bytes_read;
  return total;
}

int64_t bytes_written(const Schedule& schedule) {
  int64_t total = 0;
  for (const ItemAnalysis& a : schedule.analysis) total += a.bytes_written;
  return total;
}

std::vector<StageKind> stage_kinds(const Kernel& kernel) {
  std::vector<StageKind> kinds;
  for (const Stage& stage : kernel.stages()) kinds.push_back(stage.kind);
  return kinds;
}

Value input(Builder& b, Shape shape) {
  return b.placeholder(DType::Float32, std::move(shape));
}

Value scalar_like(Builder& b, double value, Value like) {
  return b.full(Scalar::of(DType::Float32, value), b.shape(like));
}

Value mean(Builder& b, Value x, Ints axes) {
  double count = 1;
  for (const int64_t axis : axes) count *= static_cast<double>(b.shape(x)[axis].constant());
  const Value sum = b.reduce(ReduceOp::Add, x, std::move(axes));
  return b.alu(AluOp::Mul, {sum, scalar_like(b, 1 / count, sum)});
}

Value softmax(Builder& b, Value x, int64_t axis) {
  const Shape shape = b.shape(x);
  const Value top = b.expand(b.reduce(ReduceOp::Max, x, {axis}), shape);
  const Value e = b.alu(AluOp::Exp, {b.alu(AluOp::Sub, {x, top})});
  return b.alu(AluOp::Fdiv, {e, b.expand(b.reduce(ReduceOp::Add, e, {axis}), shape)});
}

Value layernorm(Builder& b, Value x) {
  const Shape shape = b.shape(x);
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  const Value centred = b.alu(AluOp::Sub, {x, b.expand(mean(b, x, {last}), shape)});
  const Value variance = mean(b, b.alu(AluOp::Mul, {centred, centred}), {last});
  const Value shifted = b.alu(AluOp::Add, {variance, scalar_like(b, 1e-5, variance)});
  return b.alu(AluOp::Fdiv, {centred, b.expand(b.alu(AluOp::Sqrt, {shifted}), shape)});
}

}  // namespace rune::schedule
