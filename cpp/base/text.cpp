#include "base/text.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace rune::text {

namespace {
bool ident_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool ident_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}
}  // namespace

void Lexer::skip_space() {
  while (pos_ < source_.size()) {
    const char c = source_[pos_];
    if (c == ';') {
      while (pos_ < source_.size() && source_[pos_] != '\n') ++pos_;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++pos_;
    } else {
      return;
    }
  }
}

void Lexer::advance(size_t count) {
  pos_ += count;
  skip_space();
}

bool Lexer::peek(std::string_view punctuation) const {
  return source_.substr(pos_).starts_with(punctuation);
}

bool Lexer::accept(std::string_view punctuation) {
  if (!peek(punctuation)) return false;
  advance(punctuation.size());
  return true;
}

void Lexer::expect(std::string_view punctuation) {
  if (!accept(punctuation)) fail(concat("expected `", punctuation, "`"));
}

bool Lexer::peek_ident() const {
  return !at_end() && ident_start(source_[pos_]);
}

std::string_view Lexer::lookahead_ident() const {
  if (!peek_ident()) return {};
  size_t end = pos_;
  while (end < source_.size() && ident_part(source_[end])) ++end;
  return source_.substr(pos_, end - pos_);
}

std::string Lexer::ident() {
  const std::string_view word = lookahead_ident();
  if (word.empty()) fail("expected an identifier");
  std::string result(word);
  advance(word.size());
  return result;
}

void Lexer::expect_ident(std::string_view word) {
  if (lookahead_ident() != word) fail(concat("expected `", word, "`"));
  advance(word.size());
}

bool Lexer::peek_number() const {
  if (at_end()) return false;
  const char c = source_[pos_];
  if (std::isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '+') return true;
  const std::string_view word = lookahead_ident();
  return word == "inf" || word == "nan";
}

std::string Lexer::number() {
  if (!peek_number()) fail("expected a number");
  size_t end = pos_;
  if (source_[end] == '-' || source_[end] == '+') ++end;
  while (end < source_.size()) {
    const char c = source_[end];
    const bool exponent_sign = (c == '-' || c == '+') && end > pos_ &&
                               (source_[end - 1] == 'e' || source_[end - 1] == 'E');
    if (!ident_part(c) && !exponent_sign) break;
    ++end;
  }
  std::string token(source_.substr(pos_, end - pos_));
  advance(end - pos_);
  return token;
}

int64_t Lexer::integer() {
  const std::string token = number();
  int64_t result = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), result);
  if (error != std::errc() || end != token.data() + token.size())
    fail(concat("expected a 64-bit integer, found ", token));
  return result;
}

std::string Lexer::string_literal() {
  if (!peek("\"")) fail("expected a string");
  std::string result;
  size_t i = pos_ + 1;
  while (i < source_.size() && source_[i] != '"') {
    char c = source_[i++];
    if (c == '\\') {
      if (i >= source_.size()) break;
      c = source_[i++];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
    }
    result += c;
  }
  if (i >= source_.size()) fail("a string is not closed");
  advance(i + 1 - pos_);
  return result;
}

uint32_t Lexer::value_id() {
  if (!peek("%")) fail("expected a value, %id");
  advance(1);
  const int64_t id = integer();
  if (id < 0 || id > 0xfffffffeLL) fail("a value id is out of range");
  return static_cast<uint32_t>(id);
}

bool Lexer::peek_attribute() const {
  const std::string_view word = lookahead_ident();
  const size_t next = pos_ + word.size();
  return !word.empty() && next < source_.size() && source_[next] == '=';
}

void Lexer::declare(const std::string& name, int64_t least, int64_t greatest) {
  (*names_)[name] = {least, greatest};
}

std::optional<std::pair<int64_t, int64_t>> Lexer::bounds_of(const std::string& name) const {
  const auto found = names_->find(name);
  return found == names_->end() ? std::nullopt : std::optional(found->second);
}

int Lexer::line() const {
  int line = 1;
  for (size_t i = 0; i < pos_ && i < source_.size(); ++i) line += source_[i] == '\n';
  return line;
}

void Lexer::fail(const std::string& message) const {
  const size_t here = pos_ < source_.size() ? pos_ : source_.size();
  const size_t newline = here == 0 ? std::string_view::npos : source_.rfind('\n', here - 1);
  const size_t column = here - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  std::string near(source_.substr(here, 24));
  if (const size_t cut = near.find('\n'); cut != std::string::npos) near.resize(cut);
  user_error(ErrorKind::Parse, "parse: ", message, " (line ", line(), ", column ", column,
             near.empty() ? ", at the end" : ", at `" + near + "`", ")");
}

std::string quote(std::string_view raw) {
  std::string out = "\"";
  for (const char c : raw) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string print_double(double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  RUNE_CHECK(error == std::errc());
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

double parse_double(const std::string& token, const Lexer& lexer) {
  char* end = nullptr;
  const double value = std::strtod(token.c_str(), &end);
  if (end != token.c_str() + token.size()) lexer.fail("expected a number, found " + token);
  return value;
}

}  // namespace rune::text
