// Quotients and remainders of vectors of positions.
#include "lower/passes/index_emitter.h"

#include <algorithm>

#include "interpreter_fixture.h"

namespace rune::lower {
namespace {

constexpr int kWidth = 8;

struct Results {
  Kernel kernel;
  std::vector<double> quotients, remainders;
};

int64_t floored(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

// Divides start + 11 * lane by a divisor, for each start, where only these bounds of a start are
// known.
Results divide(const std::vector<int64_t>& starts, sym::Bounds bounds, int64_t divisor) {
  const auto count = static_cast<int64_t>(starts.size());
  const schedule::Graph graph;
  const schedule::Kernel empty;
  const std::vector<SymVar> vars;
  const Capabilities caps;
  const Placements placements;
  Launch launch(graph, empty, vars, caps, placements);
  ScopedBuilder& b = launch.builder;
  IndexEmitter index(launch, kWidth);
  const Var in = b.define_global(DType::Int64, 0, count, false);
  const Var quotients = b.define_global(DType::Int64, 1, count * kWidth, true);
  const Var remainders = b.define_global(DType::Int64, 2, count * kWidth, true);
  const Var i = b.open_range(index.constant(count));
  const sym::Expr x = index.bind(b.load(in, i, 1, {}), bounds) + index.lane(kWidth) * 11;
  const Var at = b.alu(AluOp::Mul, {i, index.constant(kWidth)});
  b.store(quotients, at, index.emit(floordiv(x, divisor)));
  b.store(remainders, at, index.emit(mod(x, divisor)));
  b.close_range();
  Results results{b.finish("divide", 1, 1), {}, {}};
  Array of_starts(DType::Int64, count), q(DType::Int64, count * kWidth), r = q;
  for (int64_t n = 0; n < count; ++n) of_starts.set(n, i64(starts[n]));
  run(results.kernel, {&of_starts, &q, &r});
  results.quotients = q.values();
  results.remainders = r.values();
  return results;
}

bool divides(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(), [](const Instr& instr) {
    const auto* alu = instr.as<Alu>();
    return alu && (alu->op == AluOp::Div || alu->op == AluOp::Idiv || alu->op == AluOp::Fmod ||
                   alu->op == AluOp::Mod);
  });
}

void expect_exact(const std::vector<int64_t>& starts, const Results& results, int64_t divisor) {
  for (size_t i = 0; i < starts.size() * kWidth; ++i) {
    const int64_t x = starts[i / kWidth] + 11 * static_cast<int64_t>(i % kWidth);
    ASSERT_EQ(results.quotients[i], floored(x, divisor)) << x << " / " << divisor;
    ASSERT_EQ(results.remainders[i], x - floored(x, divisor) * divisor) << x << " / " << divisor;
  }
}

// Starts around multiples of the divisor, over the whole range.
std::vector<int64_t> starts_within(sym::Bounds bounds, int64_t divisor) {
  std::vector<int64_t> starts{bounds.low, bounds.high};
  for (int64_t k = 1; k < 40; ++k) {
    const int64_t at = bounds.low + (bounds.high - bounds.low) / 40 * k;
    for (const int64_t shift : {-33, -11, -3, -2, -1, 0}) {
      const int64_t start = floored(at, divisor) * divisor + shift;
      if (start >= bounds.low && start <= bounds.high) starts.push_back(start);
    }
  }
  return starts;
}

TEST(IndexEmitter, VectorsAreDividedByMultiplication) {
  const sym::Bounds ranges[] = {{0, (1 << 30) - 100}, {0, 5000}, {-2000, 90000}, {-(1 << 28), 77}};
  for (const sym::Bounds& bounds : ranges)
    for (const int64_t divisor : {2, 3, 5, 7, 10, 60, 64, 641, 1000, 32767, 32769, 65537, 6700417,
                                  268435399, 536870909, 536870913}) {
      const std::vector<int64_t> starts = starts_within(bounds, divisor);
      const Results results = divide(starts, bounds, divisor);
      EXPECT_FALSE(divides(results.kernel)) << print(results.kernel);
      expect_exact(starts, results, divisor);
    }
}

TEST(IndexEmitter, PositionsThatMayBeLargeAreDivided) {
  const sym::Bounds bounds{-5, int64_t{1} << 40};
  const std::vector<int64_t> starts = starts_within(bounds, 7);
  const Results results = divide(starts, bounds, 7);
  EXPECT_TRUE(divides(results.kernel));
  expect_exact(starts, results, 7);
}

}  // namespace
}  // namespace rune::lower
