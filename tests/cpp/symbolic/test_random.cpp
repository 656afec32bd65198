// Random expressions, shapes and masks against direct evaluation.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "expr_testing.h"

namespace rune::sym {

void PrintTo(const Expr& e, std::ostream* out) {
  *out << text_of(e);
}

namespace {

using Rng = std::mt19937_64;

int64_t pick(Rng& rng, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
}

int64_t floor_quotient(int64_t a, int64_t d) {
  return a >= 0 ? a / d : -((-a + d - 1) / d);
}

// The values of all variables at each of the points at which expressions are compared.
struct Space {
  std::vector<Bounds> bounds;
  std::vector<std::vector<int64_t>> points;

  Space(Rng& rng, size_t variables, size_t count) {
    for (size_t v = 0; v < variables; ++v) {
      const int64_t low = rng() % 3 ? 0 : pick(rng, -9, 9);
      bounds.push_back({low, low + pick(rng, 0, rng() % 4 ? 7 : 60)});
    }
    for (size_t p = 0; p < count; ++p) {
      std::vector<int64_t> point;
      for (const Bounds& b : bounds) point.push_back(pick(rng, b.low, b.high));
      points.push_back(point);
    }
  }

  Expr variable(size_t v) const { return Expr::variable(static_cast<uint32_t>(v), bounds[v]); }
};

// An expression beside its true values at all points.
struct Checked {
  Expr expr;
  std::vector<int64_t> values;
};

template <class F>
Checked map(Checked a, Expr expr, F&& f) {
  a.expr = std::move(expr);
  for (int64_t& v : a.values) v = f(v);
  return a;
}

Checked random_expr(Rng& rng, const Space& space, int depth) {
  if (depth == 0 || rng() % 8 == 0) {
    const size_t v = rng() % space.bounds.size();
    Checked result{space.variable(v), {}};
    for (const auto& point : space.points) result.values.push_back(point[v]);
    return result;
  }
  const Checked a = random_expr(rng, space, depth - 1);
  const int64_t divisors[] = {2, 3, 4, 5, 6, 8, 12, 16, 24, 60};
  const int64_t d = divisors[rng() % 10];
  switch (rng() % 6) {
    case 0: return map(a, floordiv(a.expr, d), [&](int64_t v) { return floor_quotient(v, d); });
    case 1: return map(a, mod(a.expr, d), [&](int64_t v) { return v - d * floor_quotient(v, d); });
    case 2: {
      const int64_t c = rng() % 3 ? d : pick(rng, -6, 6);
      return map(a, a.expr * c, [&](int64_t v) { return v * c; });
    }
    case 3: {
      const int64_t c = pick(rng, -20, 20);
      return map(a, a.expr + c, [&](int64_t v) { return v + c; });
    }
    default: {
      const Checked b = random_expr(rng, space, depth - 1);
      Checked result{rng() % 4 ? a.expr + b.expr : a.expr - b.expr, {}};
      const bool subtract = !(result.expr == a.expr + b.expr);
      for (size_t p = 0; p < a.values.size(); ++p) {
        result.values.push_back(subtract ? a.values[p] - b.values[p] : a.values[p] + b.values[p]);
      }
      return result;
    }
  }
}

void expect_canonical(const Expr& e) {
  for (size_t t = 0; t < e.terms().size(); ++t) {
    const Atom& atom = *e.terms()[t].atom;
    EXPECT_NE(e.terms()[t].coefficient, 0) << text_of(e);
    if (atom.kind == Atom::Kind::Variable) continue;
    EXPECT_FALSE(atom.inner.is_constant()) << text_of(e);
    EXPECT_GT(atom.divisor, 1) << text_of(e);
    expect_canonical(atom.inner);
  }
}

TEST(RandomExpr, AgreesWithDirectEvaluation) {
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Rng rng(seed);
    const Space space(rng, 1 + rng() % 4, 12);
    const Checked checked = random_expr(rng, space, 2 + static_cast<int>(rng() % 6));
    const Expr& e = checked.expr;
    expect_canonical(e);
    const Bounds bounds = e.bounds();
    const int64_t divisor = e.known_divisor();
    for (size_t p = 0; p < space.points.size(); ++p) {
      const int64_t value = evaluate(e, [&](uint32_t v) { return space.points[p][v]; });
      ASSERT_EQ(value, checked.values[p]) << "seed " << seed << ": " << text_of(e);
      ASSERT_LE(bounds.low, value) << "seed " << seed << ": " << text_of(e);
      ASSERT_GE(bounds.high, value) << "seed " << seed << ": " << text_of(e);
      ASSERT_TRUE(divisor ? value % divisor == 0 : value == 0) << "seed " << seed;
    }
    // Idempotence: rebuilding from the variables changes nothing.
    const Expr rebuilt = e.substitute([&](uint32_t v) { return space.variable(v); });
    ASSERT_EQ(text_of(rebuilt), text_of(e)) << "seed " << seed;
    ASSERT_EQ(rebuilt, e) << "seed " << seed;
    ASSERT_EQ(rebuilt.hash(), e.hash()) << "seed " << seed;
  }
}

TEST(RandomExpr, QuotientAndRemainderRestoreTheValue) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Rng rng(seed);
    const uint32_t variables = 1 + rng() % 3;
    Expr e(pick(rng, -9, 9));
    for (uint32_t v = 0; v < variables; ++v) {
      e = e + Expr::variable(v, {INT64_MIN, INT64_MAX}) * pick(rng, -20, 20);
    }
    const int64_t c = pick(rng, 1, 24), d = pick(rng, 1, 6), k = pick(rng, 1, 5);
    const auto expect_same = [&](const char* rule, const Expr& a, const Expr& b) {
      EXPECT_EQ(text_of(a), text_of(b)) << rule << " with e = " << text_of(e) << ", c = " << c
                                        << ", d = " << d << ", seed " << seed;
      EXPECT_EQ(a, b);
    };
    expect_same("(e//c*c + e%c)*k = e*k", (floordiv(e, c) * c + mod(e, c)) * k, e * k);
    expect_same("e//c*(c*k) + e%c*k = e*k", floordiv(e, c) * (c * k) + mod(e, c) * k, e * k);
    expect_same("e//c//d = e//(c*d)", floordiv(floordiv(e, c), d), floordiv(e, c * d));
    expect_same("e%(c*d)%c = e%c", mod(mod(e, c * d), c), mod(e, c));
    // With a factor common to all coefficients and d, the two sides keep different forms.
    if (std::gcd((e - e.constant()).known_divisor(), d) == 1) {
      expect_same("e//c%d = e%(c*d)//c", mod(floordiv(e, c), d), floordiv(mod(e, c * d), c));
    }
    expect_same("e//c%d*c + e%c = e%(c*d)", mod(floordiv(e, c), d) * c + mod(e, c), mod(e, c * d));
  }
}

std::vector<int64_t> random_shape(Rng& rng, int64_t total) {
  std::vector<int64_t> shape;
  while (total > 1) {
    int64_t d = pick(rng, 2, total);
    while (total % d != 0) ++d;
    shape.push_back(d);
    total /= d;
    if (rng() % 5 == 0) shape.push_back(1);
  }
  std::shuffle(shape.begin(), shape.end(), rng);
  return shape;
}

std::vector<Expr> axes_of(const std::vector<int64_t>& shape) {
  std::vector<Expr> index;
  for (size_t a = 0; a < shape.size(); ++a) {
    index.push_back(Expr::variable(static_cast<uint32_t>(a), {0, shape[a] - 1}));
  }
  return index;
}

const int64_t kTotals[] = {1, 2, 12, 24, 30, 36, 60, 64, 120, 210, 360, 720, 1024};

TEST(RandomIndex, ReshapeChainsLeaveNothing) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Rng rng(seed);
    const int64_t total = kTotals[rng() % 13];
    const auto first = random_shape(rng, total);
    const Expr position = flatten_index(axes_of(first), first);
    EXPECT_FALSE(has_division(position));
    Expr current = position;
    for (int step = 0; step < 5; ++step) {
      const auto shape = random_shape(rng, total);
      current = flatten_index(unflatten_index(current, shape), shape);
      ASSERT_EQ(text_of(current), text_of(position)) << "seed " << seed;
    }
    ASSERT_EQ(unflatten_index(current, first), axes_of(first)) << "seed " << seed;
    const Expr x = Expr::variable(0, {0, total - 1});
    ASSERT_EQ(flatten_index(unflatten_index(x, first), first), x) << "seed " << seed;
  }
}

// A chain of reshapes and permutations, then its inverse: the index variables come back.
TEST(RandomIndex, ReshapePermuteChainsInvert) {
  size_t restored = 0, steps = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const int64_t total = kTotals[rng() % 13];
    const auto first = random_shape(rng, total);
    std::vector<Expr> index = axes_of(first);
    std::vector<int64_t> shape = first;
    struct Undo {
      std::vector<int64_t> before, after;
      std::vector<size_t> order;
    };
    std::vector<Undo> undo;
    std::vector<std::vector<int64_t>> points;
    for (int p = 0; p < 6; ++p) {
      points.emplace_back();
      for (const int64_t n : first) points.back().push_back(pick(rng, 0, n - 1));
    }
    std::vector<int64_t> positions;  // True position at each point.
    for (const auto& point : points) {
      int64_t position = 0;
      for (size_t a = 0; a < first.size(); ++a) position = position * first[a] + point[a];
      positions.push_back(position);
    }
    const int length = 1 + static_cast<int>(rng() % 3);
    for (int s = 0; s < length; ++s) {
      Undo u;
      u.before = shape;
      u.after = random_shape(rng, total);
      const auto split = unflatten_index(flatten_index(index, shape), u.after);
      u.order.resize(u.after.size());
      std::iota(u.order.begin(), u.order.end(), size_t{0});
      std::shuffle(u.order.begin(), u.order.end(), rng);
      index.clear();
      shape.clear();
      for (const size_t a : u.order) {
        index.push_back(split[a]);
        shape.push_back(u.after[a]);
      }
      for (size_t p = 0; p < points.size(); ++p) {
        std::vector<int64_t> coordinates(u.after.size());
        int64_t rest = positions[p];
        for (size_t a = u.after.size(); a-- > 0;) {
          coordinates[a] = rest % u.after[a];
          rest /= u.after[a];
        }
        positions[p] = 0;
        for (size_t a = 0; a < u.order.size(); ++a) {
          positions[p] = positions[p] * shape[a] + coordinates[u.order[a]];
        }
        const Expr flat = flatten_index(index, shape);
        ASSERT_EQ(evaluate(flat, [&](uint32_t v) { return points[p][v]; }), positions[p])
            << "seed " << seed << ": " << text_of(flat);
      }
      undo.push_back(u);
    }
    for (size_t s = undo.size(); s-- > 0;) {
      std::vector<Expr> split(index.size());
      for (size_t a = 0; a < index.size(); ++a) split[undo[s].order[a]] = index[a];
      index = unflatten_index(flatten_index(split, undo[s].after), undo[s].before);
      shape = undo[s].before;
    }
    ++steps;
    restored += index == axes_of(first);
  }
  // Joining is a heuristic where digits of several radices mix; all but some in a thousand come
  // back.
  EXPECT_GE(restored * 1000, steps * 997);
}

// Not a benchmark: catches simplification that has become superlinear.
TEST(RandomIndex, ManyReshapesAreFast) {
  const auto start = std::chrono::steady_clock::now();
  size_t terms = 0;
  for (uint64_t seed = 0; seed < 10000; ++seed) {
    Rng rng(seed);
    const auto first = random_shape(rng, 1024), second = random_shape(rng, 1024);
    for (const Expr& e : unflatten_index(flatten_index(axes_of(first), first), second)) {
      terms += e.terms().size();
    }
  }
  const auto elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_GT(terms, 10000u);
  RecordProperty("ns_per_reshape", std::to_string(elapsed.count() / 10000));
  EXPECT_LT(std::chrono::duration<double>(elapsed).count(), 10.0);
}

TEST(RandomMask, AgreesWithBruteForce) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const size_t variables = 1 + rng() % 3;
    std::vector<Bounds> bounds;
    for (size_t v = 0; v < variables; ++v) {
      const int64_t low = pick(rng, -3, 3);
      bounds.push_back({low, low + pick(rng, 0, 7)});
    }
    const auto variable = [&](uint32_t v) { return Expr::variable(v, bounds[v]); };
    struct Range {
      std::vector<int64_t> coefficients;
      int64_t divisor, low, high;
    };
    std::vector<Range> ranges;
    Mask mask;
    for (size_t c = 0; c < 1 + rng() % 3; ++c) {
      Range r;
      Expr e;
      for (size_t v = 0; v < variables; ++v) {
        r.coefficients.push_back(pick(rng, -4, 4));
        e = e + variable(static_cast<uint32_t>(v)) * r.coefficients[v];
      }
      r.divisor = rng() % 2 ? 1 : pick(rng, 2, 4);
      r.low = pick(rng, -12, 4);
      r.high = r.low + pick(rng, -1, 15);
      mask.require_between(floordiv(e, r.divisor), r.low, r.high);
      ranges.push_back(r);
    }
    const Mask rebuilt = mask.substitute(variable);
    ASSERT_EQ(rebuilt, mask) << "seed " << seed << ": " << text_of(mask);
    for (const Expr& condition : mask.conditions()) ASSERT_FALSE(has_division(condition));
    std::vector<int64_t> point;
    for (const Bounds& b : bounds) point.push_back(b.low);
    for (bool more = true; more;) {
      bool expected = true;
      for (const Range& r : ranges) {
        const int64_t value = floor_quotient(
            std::inner_product(point.begin(), point.end(), r.coefficients.begin(), int64_t{0}),
            r.divisor);
        expected = expected && r.low <= value && value < r.high;
      }
      const auto value = [&](uint32_t v) { return point[v]; };
      ASSERT_EQ(evaluate(mask, value), expected) << "seed " << seed << ": " << text_of(mask);
      more = false;
      for (size_t v = 0; v < variables && !more; ++v) {
        more = ++point[v] <= bounds[v].high;
        if (!more) point[v] = bounds[v].low;
      }
    }
  }
}

}  // namespace
}  // namespace rune::sym
