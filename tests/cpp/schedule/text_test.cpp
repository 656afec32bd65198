// The text of schedules.
#include "schedule/text.h"

#include "base/error.h"
#include "schedule_testing.h"

namespace rune::schedule {
namespace {

// Every kind of item, every optional field present in one place and absent in another.
Schedule everything() {
  Schedule s;
  s.graph = graph::parse(
      "graph { %0 = placeholder index=0 : f32[4] %1 = unary neg %0 : f32[4] return %1 }");
  Kernel k;
  k.kernel_name = "with \"quotes\"\n";
  k.ops = {Value{1}};
  k.iter.axes = {{"o0", 4, std::nullopt, AxisRole::Normal},
                 {"r1", std::nullopt, SymVar{"n", 1, 9}, AxisRole::Reduction}};
  k.iter.mapping = {{0}, {1}, {}, {0}};
  k.iter.tiles = {{4, 2}, {}};
  BufferInfo buffer;
  buffer.buf_var = {0};
  buffer.layout = {{4}, {1}, 64, 4, {0}};
  buffer.alloc = {MemoryScope::Shared, 16, {0, 3}, 2, 128};
  buffer.is_input = true;
  k.inputs = {buffer, buffer};
  buffer.alloc = {};
  k.outputs = {buffer};
  k.stages = {{StageKind::Reduce, {1}, {{Value{1}, {1, 0}}, {Value{0}, {-1, 2}}}},
              {StageKind::Map, {}, {}}};
  k.hints = {{HintKind::Unroll, 0, std::nullopt, 4},
             {HintKind::Nontemporal, std::nullopt, Value{1}, 1}};
  k.reduce = ReductionPlan{{1}, IntraThread::Shfl, InterThread::GridReduce};
  k.context.stream = 3;
  k.context.device = "metal";
  s.items.push_back({0, k, {}, {1, 2}});
  Kernel empty;
  s.items.push_back({1, empty, {0}, {}});
  Memory_Transfer transfer;
  transfer.src_var = transfer.dst_var = {0};
  transfer.dst_strides = Ints{1};
  transfer.is_async = true;
  s.items.push_back({2, transfer, {0}, {}});
  s.items.push_back(
      {3, Synchronization{1, SyncType::Event, 7, SyncScope::System, {"cpu", "metal"}, 2}, {}, {}});
  s.items.push_back({4, Synchronization{}, {}, {}});
  s.items.push_back({5, Host_Callback{1, "f", 2, {buffer, buffer}, {buffer}}, {}, {}});
  s.outputs = {Value{1}};
  s.dependencies = {{0, 1, {Value{1}}, DependencyKind::Control}};
  s.fusion_opportunities = {{Value{0}, Value{1}, FusionType::Mixed, true, 0.1, 16, "a reason"}};
  s.analysis = {{0, 1, 2, 3, 4, 5, 0.25, 5, 6}, {}};
  s.critical_path = {0, 1};
  s.arena_bytes = 1;
  s.total_memory_usage = 2;
  s.estimated_runtime_ns = 3;
  return s;
}

TEST(ScheduleText, ReadsBackEveryField) {
  const Schedule s = everything();
  const std::string text = print(s);
  const Schedule again = parse(text);
  EXPECT_TRUE(equal(again, s)) << text;
  EXPECT_EQ(print(again), text);
}

TEST(ScheduleText, EachDecisionHasALine) {
  const std::string text = print(everything());
  for (const char* line : {
           "  item 0 kernel depends_on=[] dependents=[1,2] {\n",
           "    axis name=\"o0\" size=4 role=Normal\n",
           "    axis name=\"r1\" sym={name=\"n\" min=1 max=9} role=Reduction\n",
           "    mapping block=[0] thread=[1] vec=[] serial=[0]\n",
           "    tiles=[[4,2],[]]\n",
           "    stage Reduce axes=[1] values=[{%1 strides=[1,0]},{%0 strides=[-1,2]}]\n",
           "    stage Map axes=[] values=[]\n",
           "    reduce axes=[1] intra=Shfl inter=GridReduce\n",
           "    hint Unroll axis=0 amount=4\n",
           "    hint Nontemporal var=%1 amount=1\n",
           "    context global=[1,1,1] local=[1,1,1] upcasted=1 device=\"metal\" stream=3\n",
           "  item 2 transfer depends_on=[0] dependents=[] {\n",
           "  item 5 callback depends_on=[] dependents=[] {\n",
           "  dependency from=0 to=1 vars=[%1] kind=Control\n",
           "  critical_path=[0,1]\n",
       })
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(ScheduleText, ComparisonSeesEveryPart) {
  const std::string text = print(everything());
  const std::pair<const char*, const char*> changes[] = {
      {"unary neg", "unary sqrt"},
      {"size=4", "size=5"},
      {"outputs=[%1]\n  dep", "outputs=[%0]\n  dep"},
      {"from=0", "from=1"},
      {"score=0.1", "score=0.2"},
      {" est_ns=6", " est_ns=7"},
      {"path=[0,1]", "path=[0]"},
      {"arena_bytes=1", "arena_bytes=2"},
      {"usage=2", "usage=3"},
      {"runtime_ns=3", "runtime_ns=4"}};
  for (const auto& [from, to] : changes) {
    std::string changed = text;
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, std::string(from).size(), to);
    EXPECT_FALSE(equal(parse(changed), everything())) << from;
  }
}

TEST(ScheduleText, ErrorsHaveLineAndColumn) {
  const auto error_of = [](std::string text) -> std::string {
    try {
      parse(text);
    } catch (const UserError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Parse);
      return error.what();
    }
    return "no error";
  };
  std::string text = print(everything());
  EXPECT_NE(error_of("graph { return }").find("expected `schedule`"), std::string::npos);
  EXPECT_NE(error_of(text + "}").find("expected the end of the text"), std::string::npos);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string result = text;
    return result.replace(result.find(from), from.size(), to);
  };
  EXPECT_NE(error_of(replaced("item 2 transfer", "item 2 teleport"))
                .find("unknown kind of item `teleport`"),
            std::string::npos);
  EXPECT_NE(error_of(replaced("stage Map", "stage Mop")).find("Mop"), std::string::npos);
  EXPECT_NE(error_of(replaced("tiles=", "tilings=")).find("expected the attribute tiles="),
            std::string::npos);
  EXPECT_NE(error_of(replaced("    context", "    contest")).find("expected `context`"),
            std::string::npos);
}

}  // namespace
}  // namespace rune::schedule
