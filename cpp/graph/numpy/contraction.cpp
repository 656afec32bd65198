// Products summed over axes.
#include <algorithm>

#include "graph/numpy/complex.h"
#include "graph/numpy/reductions.h"

namespace rune::graph::numpy {

namespace {

bool has(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

Ints permutation(const std::string& from, const std::string& to) {
  Ints axes;
  for (const char label : to) axes.push_back(static_cast<int64_t>(from.find(label)));
  return axes;
}

// The dtype in which products are summed, such that the result, cast back, is NumPy's. 16-bit
// floats accumulate in 32 bits. For bool, whose result is "any of the products", it is wide enough
// to count them.
DType contraction_dtype(DType dtype) {
  if (dtype == DType::Float16 || dtype == DType::Bfloat16) return DType::Float32;
  return is_bool(dtype) ? DType::Int32 : dtype;
}

// Sums x over the labels that `keep` lacks.
Value reduce_labels(TracedGraph& t, Value x, std::string& labels, const std::string& keep) {
  Ints axes;
  std::string kept;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (has(keep, labels[i]))
      kept += labels[i];
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return x;
  labels = kept;
  return drop_axes(t, t.reduce(ReduceOp::Add, x, axes), axes);
}

Value contract_labels(TracedGraph& t, Value a, std::string la, Value b, std::string lb,
                      const std::string& out) {
  // An axis of size 1 broadcasts against the other operand's axis. Without it, that one is an outer
  // axis. If it is summed over, each of its elements is still multiplied, because products may be
  // NaN or infinite.
  const auto drop_ones = [&](Value& x, std::string& lx, Value y, const std::string& ly) {
    Ints ones;
    Shape wide = t.shape(x);
    std::string kept;
    for (size_t i = 0; i < lx.size(); ++i) {
      const size_t j = ly.find(lx[i]);
      const bool spreads = wide[i] == 1 && j != std::string::npos && t.shape(y)[j] != 1;
      if (spreads && has(out, lx[i])) {
        ones.push_back(static_cast<int64_t>(i));
        continue;
      }
      if (spreads) wide[i] = t.shape(y)[j];
      kept += lx[i];
    }
    x = drop_axes(t, t.expand(x, wide), ones);
    lx = kept;
  };
  drop_ones(a, la, b, lb);
  drop_ones(b, lb, a, la);
  a = reduce_labels(t, a, la, out + lb);
  b = reduce_labels(t, b, lb, out + la);
  Pairs contract, batch;
  std::string labels;
  for (size_t i = 0; i < la.size(); ++i) {
    const size_t j = lb.find(la[i]);
    if (j == std::string::npos) continue;
    const std::pair<int64_t, int64_t> pair{i, j};
    if (!has(out, la[i])) {
      contract.push_back(pair);
    } else {
      batch.push_back(pair);
      labels += la[i];
    }
  }
  for (const char label : la)
    if (!has(lb, label)) labels += label;
  for (const char label : lb)
    if (!has(la, label)) labels += label;
  Value result;
  if (contract.empty()) {
    // Nothing is summed: this is a product of broadcast operands.
    const auto spread = [&](Value x, const std::string& lx) {
      std::string order;
      Shape shape;
      for (const char label : labels) {
        const size_t i = lx.find(label);
        if (i != std::string::npos) order += label;
        shape.push_back(i == std::string::npos ? 1 : t.shape(x)[i]);
      }
      return t.reshape(t.permute(x, permutation(lx, order)), shape);
    };
    const Value x = spread(a, la), y = spread(b, lb);
    result = is_complex(t.dtype(x)) ? complex_product(t, x, y) : elementwise(t, AluOp::Mul, {x, y});
  } else {
    result = t.contract(a, b, contract, batch);
  }
  return t.permute(result, permutation(labels, out));
}

}  // namespace

Operand contract(TracedGraph& t, const std::string& op, const Operand& a, const std::string& la,
                 const Operand& b, const std::string& lb, const std::string& out) {
  const Shape sa = shape_of(t, a), sb = shape_of(t, b);
  for (size_t i = 0; i < la.size(); ++i) {
    const size_t j = lb.find(la[i]);
    if (j != std::string::npos && sa[i] != sb[j] && sa[i] != 1 && sb[j] != 1)
      refuse_sizes({sa[i], sb[j]}, concat(op, ": cannot match label '", la[i], "' (sizes ", sa[i],
                                          " and ", sb[j], ")"));
  }
  const DType dtype = result_type(t, {a, b});
  const DType compute = contraction_dtype(dtype);
  const Value result = contract_labels(t, t.cast(convert(t, a, dtype), compute), la,
                                       t.cast(convert(t, b, dtype), compute), lb, out);
  return is_bool(dtype) ? to_bool(t, result) : t.cast(result, dtype);
}

Operand matmul(TracedGraph& t, const Operand& a, const Operand& b) {
  const Shape sa = shape_of(t, a), sb = shape_of(t, b);
  if (sa.empty() || sb.empty())
    user_error(ErrorKind::Value, "matmul: cannot multiply ", shape_text(sa), " with ",
               shape_text(sb), " (0-d operand)\nhint: use * for scalars");
  const Dim &ka = sa.back(), &kb = sb[sb.size() - (sb.size() > 1 ? 2 : 1)];
  if (ka != kb)
    refuse_sizes({ka, kb},
                 concat("matmul: cannot multiply ", shape_text(sa), " with ", shape_text(sb),
                        " (contracted dimension: ", ka, " and ", kb, ")"));
  // Letters: M N K, and a b c ... for batch axes counted from the last one.
  const auto batch_letters = [](size_t rank) {
    std::string letters;
    for (size_t i = rank; i-- > 0;) letters += static_cast<char>('a' + i);
    return letters;
  };
  const size_t rank_a = sa.size() > 2 ? sa.size() - 2 : 0,
               rank_b = sb.size() > 2 ? sb.size() - 2 : 0;
  broadcast_shapes("matmul", Shape(sa.begin(), sa.begin() + rank_a),
                   Shape(sb.begin(), sb.begin() + rank_b));
  const std::string la = batch_letters(rank_a) + (sa.size() > 1 ? "MK" : "K");
  const std::string lb = batch_letters(rank_b) + (sb.size() > 1 ? "KN" : "K");
  std::string out = batch_letters(std::max(rank_a, rank_b));
  if (sa.size() > 1) out += 'M';
  if (sb.size() > 1) out += 'N';
  if (result_type(t, {a, b}) != DType::Bfloat16) return contract(t, "matmul", a, la, b, lb, out);
  // The ufunc has no loop for bfloat16.
  return contract(t, "matmul", convert(t, a, DType::Float32), la, b, lb, out);
}

}  // namespace rune::graph::numpy
