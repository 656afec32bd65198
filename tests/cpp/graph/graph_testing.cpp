#include "graph_testing.h"

#include <limits>

namespace rune::graph {

namespace {

void add_memory_and_writes(Builder& b) {
  const Value buffer = b.add(Buffer{12, "cpu:1"}, {}, {DType::Float32, {12}, std::nullopt});
  const Value part = b.add(Buffer_View{4, 8}, {buffer});
  const Value values =
      b.add(Vconst{{Scalar::of(DType::Float32, -0.0), Scalar::of(DType::Float32, 0.1),
                    Scalar::lowest(DType::Float32),
                    Scalar::of(DType::Float32, std::numeric_limits<double>::quiet_NaN())}},
            {});
  const Value two = b.shrink(values, {{1, 3}});
  const Value written = b.add(Assign{{{}, {{2, 4}}}}, {part, values, two});
  const Value moved = b.add(Copy{"cpu:2", true}, {written});
  const Value shards = b.add(Multi{0, {true, false}}, {written, moved});
  const Value copies = b.add(Multi{std::nullopt, {true, true}}, {written, moved});
  b.add(Device{"a \"quoted\"\n\\ name"}, {});
  b.add(Unique{7}, {});
  b.add(Iota{DType::Int16, {7}}, {});
  b.add(Sink{}, {shards, copies});
  b.add(Noop{}, {});
}

void add_movement(Builder& b, Value x) {  // x: f32[8,4]
  const rune::View strided{{4, 4}, {8, -1}, 3, {{{0, 4}, {1, 4}}}};
  const rune::View flat{{2, 8}, {8, 1}, 0, std::nullopt};
  b.add(View{{{strided, flat}}}, {x});
  b.add(Valid{{{strided}}}, {x});
  const Value row = b.reshape(x, {1, 32});
  b.expand(row, {3, 32});
  b.permute(x, {1, 0});
  b.pad(x, {{1, 0}, {0, 2}});
  b.flip(x, {1});
  const Value v = b.add(Vectorize{}, {x, x});
  b.add(Shuffle{{1, 0, 1}}, {v});
  b.cat({x, b.shrink(x, {{0, 2}, {0, 4}})}, 0);
}

void add_arithmetic(Builder& b, Value x) {
  const Value y = b.alu(AluOp::Add, {x, b.alu(AluOp::Exp2, {x})});
  b.alu(AluOp::Where, {b.alu(AluOp::Cmplt, {x, y}), x, y});
  b.reduce(ReduceOp::Max, x, {1, 0});
  b.add(Scan{ReduceOp::Add, 1}, {x, b.reduce(ReduceOp::Min, x, {1})});
  b.cast(x, DType::Bfloat16);
  b.bitcast(x, DType::Int32);
  const Value matrix = b.contract(x, x, {{1, 1}}, {});
  b.contract(x, x, {{0, 0}}, {{1, 1}});
  b.add(Wmma{8, 8, 4}, {x, b.permute(x, {1, 0}), matrix});
  const Value pairs = b.bitcast(b.full(Scalar::of(DType::Uint32, 7), {3, 2}), DType::Uint32);
  b.add(Threefry{}, {pairs, pairs});
}

void add_marks(Builder& b, Value x) {
  const Value n = b.add(Define_Var{{"n", -1, 100}}, {});
  b.add(Bind{100}, {n});
  for (const Payload& mark :
       {Payload{Contiguous{}}, Payload{Detach{}}, Payload{Contiguous_Backward{}}, Payload{Fuse{}},
        Payload{Unroll{4}}, Payload{Kernel{"k", 2, 1, true}}, Payload{Noop{}}})
    b.add(mark, {x});
  b.add(Custom{"mine",
               {{"i", int64_t{-3}},
                {"d", 3.0},
                {"inf", -std::numeric_limits<double>::infinity()},
                {"nan", std::numeric_limits<double>::quiet_NaN()},
                {"s", std::string("3")},
                {"list", Ints{1, -2}}}},
        {x, n}, {DType::Int8, {2, 0}, "cpu:3"});
  b.add(Host_Callback{"numpy.linalg.qr", 3, 1}, {x}, {DType::Float64, {4, 4}, std::nullopt});
  b.add(Host_Callback{"numpy.sort", 4, 0, 0}, {x}, {DType::Float64, {4}, std::nullopt});
}

}  // namespace

Graph every_kind() {
  Builder b;
  const Value x = b.placeholder(DType::Float32, {8, 4});
  const Value indices = b.placeholder(DType::Int32, {2, 3});
  add_memory_and_writes(b);
  add_movement(b, x);
  add_arithmetic(b, x);
  add_marks(b, x);
  const Value complex = b.add(Complex{}, {x, x});
  b.alu(AluOp::Add, {b.add(Real{}, {complex}), b.add(Imag{}, {complex})});
  const Value counter = b.add(Loop_Counter{{"i", 0, 3}}, {});
  const Value carried = b.add(Carry{0}, {x, counter});
  const Dim i({"i", 0, 3});
  const Value row = b.slice(carried, 0, i, i + 1);
  b.add(Loop_Size{{"count", 0, 4}}, {counter, counter});
  const Value updated = b.add(Update{{i, 0}}, {carried, row});
  const Value ended = b.add(End_Loop{0, 4, 1}, {counter, updated, x});
  b.add(Loop_Result{0}, {ended, updated});
  Builder nest;
  nest.set_outputs({nest.placeholder(DType::Float32, {8, 4})});
  b.add(Loop_Nest{0, {std::make_shared<const Graph>(nest.take())}}, {x});
  const Value gathered = b.add(Gather{0}, {x, indices});
  const Value scattered = b.add(Scatter{ScatterMode::Add, 0}, {x, indices, gathered});
  b.add(Scatter{ScatterMode::Set, 0}, {x, indices, gathered});
  b.add(Scatter{ScatterMode::Max, 0}, {x, indices, gathered});
  const Value mask = b.full(Scalar::of(DType::Bool, true), {2, 3});
  const Value indexed = b.add(Index{}, {x, indices, mask});
  b.add(Index{}, {x, indices});
  b.set_outputs({gathered, scattered, indexed});
  return b.take();
}

Graph to_core(const Graph& graph, const std::string& device) {
  Capabilities grid;
  grid.model = ExecutionModel::Grid;
  const Graph placed =
      place_on_devices(functionalize(form_loops(split_complex(graph), grid), device), device);
  const Graph core = decompose_nodes(placed, device, {});
  EXPECT_EQ(verify(core, Dialect::Core), std::vector<std::string>{}) << print(core);
  return core;
}

Graph every_core_kind() {
  Graph graph = every_kind();
  std::vector<bool> unusable(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    Node& node = graph.nodes[id];
    const NodeKind kind = node.kind();
    // What is an error by itself: the buffer is written only in part, the device has another name,
    // and the custom node has no source.
    unusable[id] = kind == NodeKind::Custom || kind == NodeKind::Define_Var ||
                   kind == NodeKind::Buffer || kind == NodeKind::Device || kind == NodeKind::Sink ||
                   kind == NodeKind::Loop_Counter || kind == NodeKind::End_Loop ||
                   kind == NodeKind::Loop_Size;
    for (const Value v : node.inputs)
      if (kind != NodeKind::Bind) unusable[id] = unusable[id] || unusable[v.id];
    if (kind == NodeKind::Sink) {
      node.payload = Noop{};
      node.inputs.clear();
    }
    if (!unusable[id]) graph.outputs.push_back({id});
  }
  return to_core(graph, "cpu");
}

}  // namespace rune::graph
