#include "types/shape.h"

#include <algorithm>

#include "base/error.h"

namespace rune {

namespace {

[[noreturn]] void overflow() {
  user_error(ErrorKind::Value, "shape: cannot hold an axis of more than 2^63 elements");
}

int64_t plus(int64_t a, int64_t b) {
  if (__builtin_add_overflow(a, b, &a)) overflow();
  return a;
}

int64_t times(int64_t a, int64_t b) {
  if (__builtin_mul_overflow(a, b, &a)) overflow();
  return a;
}

// The product of `sizes`. Errors print `shape`, which may consist of ints or of dims.
template <class Sizes>
int64_t product(const Ints& sizes, const Sizes& shape) {
  int64_t product = 1;
  bool overflow = false;
  for (const int64_t size : sizes) {
    if (size == 0) return 0;
    overflow |= __builtin_mul_overflow(product, size, &product);
  }
  if (overflow)
    user_error(ErrorKind::Value, "shape: cannot hold ", shape_text(shape),
               " (more than 2^63 elements)");
  return product;
}

}  // namespace

Dim::Dim(int64_t offset, std::vector<Term> terms) : offset_(offset) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return a.var.name < b.var.name; });
  std::vector<Term> joined;
  for (Term& term : terms) {
    if (term.var.min_val == term.var.max_val) {
      offset_ = plus(offset_, times(term.coefficient, term.var.min_val));
    } else if (!joined.empty() && joined.back().var.name == term.var.name) {
      RUNE_CHECK(joined.back().var == term.var, term.var.name, " has two ranges");
      joined.back().coefficient = plus(joined.back().coefficient, term.coefficient);
    } else {
      joined.push_back(std::move(term));
    }
  }
  std::erase_if(joined, [](const Term& term) { return term.coefficient == 0; });
  if (!joined.empty()) terms_ = std::make_shared<const std::vector<Term>>(std::move(joined));
}

int64_t Dim::constant() const {
  RUNE_CHECK(is_constant(), "the size ", text(), " is no constant");
  return offset_;
}

const std::vector<Dim::Term>& Dim::terms() const {
  static const std::vector<Term> kNone;
  return terms_ ? *terms_ : kNone;
}

int64_t Dim::bound() const {
  int64_t result = offset_;
  for (const Term& t : terms())
    result = plus(result, times(t.coefficient, t.coefficient > 0 ? t.var.max_val : t.var.min_val));
  return result;
}

int64_t Dim::least() const {
  int64_t result = offset_;
  for (const Term& t : terms())
    result = plus(result, times(t.coefficient, t.coefficient > 0 ? t.var.min_val : t.var.max_val));
  return result;
}

int64_t Dim::evaluate(const std::function<int64_t(const SymVar&)>& value) const {
  int64_t result = offset_;
  for (const Term& t : terms()) result += t.coefficient * value(t.var);
  return result;
}

bool Dim::depends_on(const std::string& variable) const {
  return std::any_of(terms().begin(), terms().end(),
                     [&](const Term& t) { return t.var.name == variable; });
}

Dim Dim::with(const std::map<std::string, int64_t>& values) const {
  Dim result = offset_;
  for (const Term& t : terms()) {
    const auto known = values.find(t.var.name);
    result += known == values.end() ? Dim(0, {t}) : Dim(times(t.coefficient, known->second));
  }
  return result;
}

std::string Dim::text() const {
  if (is_constant()) return std::to_string(offset_);
  std::string out;
  for (const Term& t : *terms_) {
    if (t.coefficient > 0 && !out.empty()) out += '+';
    if (t.coefficient == -1) out += '-';
    if (t.coefficient != 1 && t.coefficient != -1) out += std::to_string(t.coefficient) + '*';
    out += t.var.name;
  }
  if (offset_ > 0) out += '+';
  if (offset_ != 0) out += std::to_string(offset_);
  return out;
}

bool Dim::operator==(const Dim& other) const {
  if (offset_ != other.offset_ || is_constant() != other.is_constant()) return false;
  return terms_ == other.terms_ || *terms_ == *other.terms_;
}

Dim operator+(const Dim& a, const Dim& b) {
  const int64_t offset = plus(a.offset_, b.offset_);
  if (a.is_constant() && b.is_constant()) return offset;
  std::vector<Dim::Term> terms = a.terms();
  terms.insert(terms.end(), b.terms().begin(), b.terms().end());
  return Dim(offset, std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) {
  return a + b * -1;
}

Dim operator*(const Dim& a, int64_t factor) {
  if (a.is_constant()) return times(a.offset_, factor);
  std::vector<Dim::Term> terms = a.terms();
  for (Dim::Term& term : terms) term.coefficient = times(term.coefficient, factor);
  return Dim(times(a.offset_, factor), std::move(terms));
}

bool always_at_most(const Dim& a, const Dim& b) {
  return (b - a).least() >= 0;
}

void refuse_sizes(const std::vector<Dim>& dims, const std::string& message) {
  std::string closer;
  for (const Dim& dim : dims)
    for (const Dim::Term& term : dim.terms()) {
      const std::string bounds = "Dim(\"" + term.var.name + "\", min=..., max=...)";
      if (closer.find(bounds) == std::string::npos) closer += ", " + bounds;
    }
  if (closer.empty()) user_error(ErrorKind::Value, message);
  if (message.find("\nhint:") != std::string::npos) user_error(ErrorKind::Unsupported, message);
  user_error(ErrorKind::Unsupported, message, "\nhint: closer bounds may allow it", closer,
             ", or an axis less in jit(dynamic=...)");
}

Ints bounds_of(const Shape& shape) {
  Ints result;
  for (const Dim& dim : shape) result.push_back(dim.bound());
  return result;
}

Ints constants_of(const Shape& shape) {
  Ints result;
  for (const Dim& dim : shape) result.push_back(dim.constant());
  return result;
}

bool ShapeOrder::operator()(const Shape& a, const Shape& b) const {
  const Ints x = bounds_of(a), y = bounds_of(b);
  return x != y ? x < y : shape_text(a) < shape_text(b);
}

Dim product(const char* op, const Dim& a, const Dim& b) {
  if (a.is_constant()) return b * a.constant();
  if (!b.is_constant())
    refuse_sizes({a, b}, concat(op, ": cannot merge the sizes ", a, " and ", b));
  return a * b.constant();
}

int64_t num_elements(const Ints& shape) {
  return product(shape, shape);
}

int64_t max_elements(const Shape& shape) {
  return product(bounds_of(shape), shape);
}

Ints contiguous_strides(const Shape& shape) {
  Ints strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i].bound(), 1);
  }
  return strides;
}

std::string shape_text(const Shape& shape) {
  return text::to_text(shape);
}

std::string shape_text(const Ints& shape) {
  return text::to_text(shape);
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const Dim y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (x != y && x != 1 && y != 1)
      refuse_sizes(
          {x, y},
          concat(op, ": cannot broadcast ", shape_text(a), " with ", shape_text(b), " (dimension ",
                 static_cast<int64_t>(i) - static_cast<int64_t>(rank), ": ", x, " and ", y,
                 ")\nhint: sizes must be equal or 1, counted from the last dimension"));
    out[i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace rune

namespace rune::text {

Dim Codec<Dim>::parse(Lexer& lexer) {
  Dim sum;
  bool first = true;
  while (first || lexer.peek("+") || lexer.peek("-")) {
    first = false;
    int64_t factor = lexer.accept("-") ? -1 : 1;
    lexer.accept("+");
    if (!lexer.peek_ident()) {
      factor *= lexer.integer();
      if (!lexer.accept("*")) {
        sum += factor;
        continue;
      }
    }
    const Lexer start = lexer;
    const std::string name = lexer.ident();
    const auto bounds = lexer.bounds_of(name);
    if (!bounds) start.fail("the size " + name + " is not declared");
    sum += Dim(SymVar{name, bounds->first, bounds->second}) * factor;
  }
  return sum;
}

}  // namespace rune::text
