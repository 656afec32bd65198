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
      "graph { %0 = placeholder index=0 : f32[4] %1 = unary neg %0 : f32[4] "
      "%2 = define_var {name=\"n\" min=1 max=9} : i64[] return %1 }");
  Kernel k;
  k.name = "with \"quotes\"\n";
  k.device = "metal";
  k.ops = {Value{1}};
  k.inputs = {Value{0}, Value{0}};
  k.outputs = {Value{1}};
  k.iter.axes = {{"o0", 4}, {"r1", Dim(SymVar{"n", 1, 9}) * 2 - 1}};
  k.iter.mapping = {{0}, {1}, {0}, {0}, 4, 32, std::nullopt, 2, true, true};
  k.iter.tiles = {{4, 2}, {}};
  Scratch scratch{Value{0}, {4}, {1}, 0};
  scratch.run = 4;
  scratch.elements = 16;
  k.scratch = {scratch, {Value{1}, {}, {}}};
  k.prefetches = {{Value{0}, 1, 64}, {Value{1}, std::nullopt, 2}};
  k.nontemporal = {Value{1}};
  k.arguments = {{"launch.0", -3, 0}};
  k.shifts = {{Value{0}, 0, 4}};
  k.constants = {{Value{1}, 0}};
  k.body = Staged{{{StageKind::Reduce, {1}, {{Value{1}, {1, 0}}, {Value{0}, {-1, 2}}}},
                   {StageKind::Map, {}, {}}},
                  Combination{ThreadCombination::Shuffles, true}};
  Kernel phased;
  phased.body = Phased{{k, Kernel{}}};
  Kernel tiled;
  MatrixPlan plan;
  plan.tiles = {4, 2};
  plan.copies = 2;
  tiled.body = MatrixTiled{plan, {{StageKind::Map, {}, {}}}};
  s.kernels = {k, Kernel{}, phased, tiled};
  s.items = {{Launch{0, {Value{1}}, {Value{0}, Value{0}}, {Value{1}}, {-3}}},
             {Launch{}},
             {Memory_Transfer{Value{0}, Value{1}, "cpu", "metal"}},
             {Synchronization{{"cpu", "metal"}}},
             {Synchronization{}},
             {Host_Callback{"f", 2, {Value{0}, Value{0}}, {Value{1}}}}};
  s.outputs = {Value{1}};
  s.dependencies = {{0, 1, {Value{1}}}, {1, 2, {}}};
  s.allocations = {{Value{0}, 0, 3, 128}, {Value{1}, 1, 1, std::nullopt}};
  s.fusion_opportunities = {{Value{0}, Value{1}, FusionType::Mixed, true, 0.1, 16, "a reason"}};
  s.analysis = {{1, 2, 3, 4, 0.25, 5, 6}, {}};
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
           "  kernel {\n",
           "  item 0 launch {\n",
           "    arguments=[-3]\n",
           "    argument name=\"launch.0\" min=-3 max=0\n",
           "    shift %0 argument=0 scale=4\n",
           "    constant %1 argument=0\n",
           "    inputs=[%0,%0]\n",
           "    axis name=\"o0\" size=4\n",
           "    axis name=\"r1\" size=2*n-1\n",
           "    mapping block=[0] thread=[1] vec=[0] serial=[0] lanes=4 threads=32 teams=2 "
           "mirrored=true exchanged=true\n",
           "    tiles=[[4,2],[]]\n",
           "    scratch %0 shape=[4] strides=[1] run_axis=0 run=4 elements=16\n",
           "    prefetch %0 axis=1 ahead=64\n",
           "    nontemporal=[%1]\n",
           "    stage Reduce axes=[1] values=[{%1 strides=[1,0]},{%0 strides=[-1,2]}]\n",
           "    stage Map axes=[] values=[]\n",
           "    combine threads=Shuffles atomic=true\n",
           "  item 2 transfer {\n",
           "    src=%0\n",
           "  item 5 callback {\n",
           "    phase {\n",
           "    matrix m=0 n=0 k=0 operands=f32 rows=0 columns=0 reduced=0 row_operand=0 "
           "tiles=[4,2] groups=[] depth=0 copies=2\n",
           "  dependency from=0 to=1 values=[%1]\n",
           "  allocation %0 first=0 last=3 offset=128\n",
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
      {"teams=2", "teams=4"},
      {"from=0", "from=1"},
      {"offset=128", "offset=64"},
      {"prefetch %0", "prefetch %1"},
      {"scale=4", "scale=8"},
      {"constant %1", "constant %0"},
      {"arguments=[-3]", "arguments=[0]"},
      {"copies=2", "copies=1"},
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
  EXPECT_NE(error_of(replaced("    mapping", "    napping")).find("expected `mapping`"),
            std::string::npos);
  EXPECT_NE(error_of(replaced("item 3", "item 4")).find("items are numbered in order"),
            std::string::npos);
}

}  // namespace
}  // namespace rune::schedule
