// Random programs: their schedules are valid and compute what the graph says.
#include "random_program.h"

namespace rune::schedule {
namespace {

void check_program(uint32_t seed, const Capabilities& caps) {
  RandomProgram program(seed);
  for (int i = 0; i < 2; ++i) program.add_input();
  for (uint32_t i = 0; i < 4 + seed % 12; ++i) program.add_any();
  graph::Graph graph = program.builder().graph();
  graph.outputs = program.pick_outputs();
  const Schedule schedule = schedule_graph(graph, caps);
  const std::vector<Tensor> values = evaluate_graph(graph, program.inputs());
  const std::vector<Tensor> found = run_schedule(schedule, program.inputs());
  ASSERT_EQ(found.size(), graph.outputs.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i].data, values[graph.outputs[i].id].data)
        << "output " << i << " of\n"
        << graph::print(graph) << print(schedule);
}

class Fuzz : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, Fuzz, testing::Values("cores", "grid"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Fuzz, SchedulesComputeWhatGraphsSay) {
  Capabilities caps = std::string(GetParam()) == "cores" ? cores() : grid();
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    // Slow arithmetic makes storing cheap, so that more values become kernels of their own.
    caps.operations_per_ns = rates_by_size(seed % 3 == 0 ? 5e-5 : 50);
    caps.launch_ns = seed % 3 == 0 ? 0 : 500;
    check_program(seed, caps);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace rune::schedule
