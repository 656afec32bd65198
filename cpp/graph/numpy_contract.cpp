// Products summed over axes: matmul, dot, inner, outer, tensordot, einsum. All are one labelled
// contraction, as in einsum: each axis of an operand has a letter.
#include <algorithm>
#include <cctype>

#include "graph/numpy_ops.h"

namespace rune::graph {

namespace {

bool has(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

Ints permutation(const std::string& from, const std::string& to) {
  Ints axes;
  for (const char label : to) axes.push_back(static_cast<int64_t>(from.find(label)));
  return axes;
}

// The dtype in which products are summed, so that the result, cast back, is NumPy's: 16-bit floats
// accumulate in 32 bits, bool is "any of the products", wide enough to count.
DType contraction_dtype(DType dtype) {
  if (dtype == DType::Float16 || dtype == DType::Bfloat16) return DType::Float32;
  return is_bool(dtype) ? DType::Int32 : dtype;
}

}  // namespace

// Sums x over the labels that `keep` lacks.
Value NumpyBuilder::reduce_labels(Value x, std::string& labels, const std::string& keep) {
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
  return drop_axes(b_.reduce(ReduceOp::Add, x, axes), axes);
}

Value NumpyBuilder::contract_labels(Value a, std::string la, Value b, std::string lb,
                                    const std::string& out) {
  // An axis of size 1 broadcasts against the other operand's: without it, it is an outer axis. If
  // it is summed over, the products are those of each element: NaN and infinities may be among
  // them.
  const auto drop_ones = [&](Value& x, std::string& lx, Value y, const std::string& ly) {
    Ints ones;
    Shape wide = b_.shape(x);
    std::string kept;
    for (size_t i = 0; i < lx.size(); ++i) {
      const size_t j = ly.find(lx[i]);
      const bool spreads = wide[i] == 1 && j != std::string::npos && b_.shape(y)[j] != 1;
      if (spreads && has(out, lx[i])) {
        ones.push_back(static_cast<int64_t>(i));
        continue;
      }
      if (spreads) wide[i] = b_.shape(y)[j];
      kept += lx[i];
    }
    x = drop_axes(b_.expand(x, wide), ones);
    lx = kept;
  };
  drop_ones(a, la, b, lb);
  drop_ones(b, lb, a, la);
  a = reduce_labels(a, la, out + lb);
  b = reduce_labels(b, lb, out + la);
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
    // No sum: a product of broadcast operands.
    const auto spread = [&](Value x, const std::string& lx) {
      std::string order;
      Shape shape;
      for (const char label : labels) {
        const size_t i = lx.find(label);
        if (i != std::string::npos) order += label;
        shape.push_back(i == std::string::npos ? 1 : b_.shape(x)[i]);
      }
      return b_.reshape(b_.permute(x, permutation(lx, order)), shape);
    };
    result = elementwise(AluOp::Mul, {spread(a, la), spread(b, lb)});
  } else {
    result = b_.contract(a, b, contract, batch);
  }
  return b_.permute(result, permutation(labels, out));
}

Value NumpyBuilder::contract_pair(const char* op, const Operand& a, const std::string& la,
                                  const Operand& b, const std::string& lb, const std::string& out) {
  const DType dtype = result_type({a, b});
  const DType compute = contraction_dtype(dtype);
  const Value result = contract_labels(b_.cast(as(a, dtype, op), compute), la,
                                       b_.cast(as(b, dtype, op), compute), lb, out);
  return is_bool(dtype) ? to_bool(result) : b_.cast(result, dtype);
}

Operand NumpyBuilder::matmul(const Operand& a, const Operand& b) {
  const Shape sa = shape(a), sb = shape(b);
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
  if (result_type({a, b}) != DType::Bfloat16) return contract_pair("matmul", a, la, b, lb, out);
  // The ufunc has no loop of bfloat16.
  return contract_pair("matmul", as(a, DType::Float32, "matmul"), la, b, lb, out);
}

Operand NumpyBuilder::scaled(const Operand& a, const Operand& b) {
  const Value x = value_of(a), y = value_of(b);
  common_type("dot", {x, y});  // NumPy would give Python objects
  return ufunc("multiply", {x, y})[0];
}

Operand NumpyBuilder::dot(const Operand& a, const Operand& b) {
  const Shape sa = shape(a), sb = shape(b);
  if (sa.empty() || sb.empty()) return scaled(a, b);
  return tensordot(a, b, {static_cast<int64_t>(sa.size()) - 1},
                   {static_cast<int64_t>(sb.size()) - (sb.size() > 1 ? 2 : 1)});
}

Operand NumpyBuilder::inner(const Operand& a, const Operand& b) {
  if (shape(a).empty() || shape(b).empty()) return scaled(a, b);
  return tensordot(a, b, {-1}, {-1});
}

Operand NumpyBuilder::outer(const Operand& a, const Operand& b) {
  const Operand x = reshape(a, {-1, 1}), y = reshape(b, {1, -1});
  return ufunc("multiply", {x, y})[0];
}

Operand NumpyBuilder::tensordot(const Operand& a, const Operand& b, const Ints& axes_a,
                                const Ints& axes_b) {
  const Shape sa = shape(a), sb = shape(b);
  common_type("tensordot", {a, b});  // NumPy would give Python objects
  if (axes_a.size() != axes_b.size())
    user_error(ErrorKind::Value, "tensordot: cannot pair ", axes_a.size(), " axes with ",
               axes_b.size());
  if (sa.size() + sb.size() > 52)
    user_error(ErrorKind::Unsupported, "tensordot: cannot trace more than 52 dimensions");
  std::string la, lb;
  for (size_t i = 0; i < sa.size(); ++i) la += static_cast<char>('a' + i);
  for (size_t i = 0; i < sb.size(); ++i) lb += static_cast<char>('A' + i);
  for (size_t i = 0; i < axes_a.size(); ++i) {
    const int64_t x = axis_of("tensordot", axes_a[i], static_cast<int64_t>(sa.size()));
    const int64_t y = axis_of("tensordot", axes_b[i], static_cast<int64_t>(sb.size()));
    if (sa[x] != sb[y])
      refuse_sizes({sa[x], sb[y]},
                   concat("tensordot: cannot contract ", shape_text(sa), " with ", shape_text(sb),
                          " (axes ", x, " and ", y, ": ", sa[x], " and ", sb[y], ")"));
    lb[y] = la[x];
  }
  std::string out;
  for (const char label : la)
    if (!has(lb, label)) out += label;
  for (const char label : lb)
    if (!has(la, label)) out += label;
  return contract_pair("tensordot", a, la, b, lb, out);
}

namespace {

struct Subscripts {
  std::vector<std::string> operands;
  std::string out;
};

// Splits "ij,jk->ik"; without an arrow the result has the letters that occur once, sorted.
Subscripts parse_subscripts(const std::string& text) {
  Subscripts result;
  std::string spaceless;
  for (const char c : text)
    if (!std::isspace(static_cast<unsigned char>(c))) spaceless += c;
  if (spaceless.find('.') != std::string::npos)
    user_error(ErrorKind::Unsupported, "einsum: cannot trace an ellipsis in ", text);
  const size_t arrow = spaceless.find("->");
  const std::string left = spaceless.substr(0, arrow);
  std::string current;
  for (const char c : left + ",") {
    if (c == ',') {
      result.operands.push_back(current);
      current.clear();
    } else if (std::isalpha(static_cast<unsigned char>(c))) {
      current += c;
    } else {
      user_error(ErrorKind::Value, "einsum: cannot parse ", text, " (character '", c, "')");
    }
  }
  if (arrow != std::string::npos) {
    result.out = spaceless.substr(arrow + 2);
    for (const char c : result.out) {
      if (!has(left, c))
        user_error(ErrorKind::Value, "einsum: cannot make the output label '", c,
                   "' (no operand has it)");
      if (std::count(result.out.begin(), result.out.end(), c) > 1)
        user_error(ErrorKind::Value, "einsum: cannot repeat the output label '", c, "'");
    }
    return result;
  }
  for (const char c : left)
    if (c != ',' && std::count(left.begin(), left.end(), c) == 1) result.out += c;
  std::sort(result.out.begin(), result.out.end());
  return result;
}

}  // namespace

Operand NumpyBuilder::einsum(const std::string& text, const Operands& operands) {
  Subscripts subscripts = parse_subscripts(text);
  if (subscripts.operands.size() != operands.size())
    user_error(ErrorKind::Value, "einsum: cannot match ", subscripts.operands.size(),
               " subscripts of ", text, " with ", operands.size(), " operands");
  const DType dtype = common_type("einsum", operands);
  const DType compute = contraction_dtype(dtype);
  std::vector<Value> values;
  std::string sizes_labels;
  Shape sizes;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string& labels = subscripts.operands[i];
    Operand x = operands[i];
    if (labels.size() != shape(x).size())
      user_error(ErrorKind::Value, "einsum: cannot use subscripts ", labels, " for an array with ",
                 shape(x).size(), " dimensions");
    for (size_t j = 0; j < labels.size(); ++j) {  // a repeated letter is a diagonal
      const size_t first = labels.find(labels[j]);
      if (first == j) continue;
      if (shape(x)[first] != shape(x)[j])
        refuse_sizes(
            {shape(x)[first], shape(x)[j]},
            concat("einsum: cannot take the diagonal '", labels[j], "' of ", shape_text(shape(x))));
      x = diagonal(x, 0, static_cast<int64_t>(first), static_cast<int64_t>(j));
      const char label = labels[j];
      std::erase(labels, label);
      labels += label;
      j = static_cast<size_t>(-1);
    }
    for (size_t j = 0; j < labels.size(); ++j) {
      const size_t known = sizes_labels.find(labels[j]);
      const Dim size = shape(x)[j];
      if (known == std::string::npos) {
        sizes_labels += labels[j];
        sizes.push_back(size);
      } else if (sizes[known] != size && size != 1 && sizes[known] != 1) {
        refuse_sizes({sizes[known], size}, concat("einsum: cannot match label '", labels[j],
                                                  "' (sizes ", sizes[known], " and ", size, ")"));
      } else if (sizes[known] == 1) {
        sizes[known] = size;
      }
    }
    values.push_back(b_.cast(as(x, dtype, "einsum"), compute));
  }
  // Left to right; a label stays while the output or a later operand has it.
  Value result = values[0];
  std::string labels = subscripts.operands[0];
  for (size_t i = 1; i < values.size(); ++i) {
    std::string later = subscripts.out, next;
    for (size_t j = i + 1; j < values.size(); ++j) later += subscripts.operands[j];
    for (const char c : labels + subscripts.operands[i])
      if (has(later, c) && !has(next, c)) next += c;
    if (i + 1 == values.size()) next = subscripts.out;
    result = contract_labels(result, labels, values[i], subscripts.operands[i], next);
    labels = next;
  }
  if (values.size() == 1) {
    result = reduce_labels(result, labels, subscripts.out);
    result = b_.permute(result, permutation(labels, subscripts.out));
  }
  return is_bool(dtype) ? to_bool(result) : b_.cast(result, dtype);
}

}  // namespace rune::graph
