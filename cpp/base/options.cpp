#include "base/options.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace rune {

namespace {

void read(const char* variable, std::string& field) {
  if (const char* text = std::getenv(variable)) field = text;
}

void read(const char* variable, int& field) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), field);
  if (error != std::errc() || end != view.data() + view.size())
    user_error(ErrorKind::Value, variable, ": cannot convert `", view, "` to an integer");
}

void read(const char* variable, bool& field) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return;
  const std::string_view view(text);
  if (view != "0" && view != "1")
    user_error(ErrorKind::Value, variable, ": cannot convert `", view, "` to 0 or 1");
  field = view == "1";
}

}  // namespace

Options read_environment() {
  Options result;
#define RUNE_OPTION_STRING(field, variable, fallback, meaning) read(variable, result.field);
#define RUNE_OPTION_INT(field, variable, fallback, meaning) read(variable, result.field);
#define RUNE_OPTION_BOOL(field, variable, fallback, meaning) read(variable, result.field);
#include "base/options.def"
#undef RUNE_OPTION_STRING
#undef RUNE_OPTION_INT
#undef RUNE_OPTION_BOOL
  return result;
}

Options& options() {
  static Options instance = read_environment();
  return instance;
}

std::string describe_options() {
  std::ostringstream out;
  const Options& o = options();
#define RUNE_OPTION_STRING(field, variable, fallback, meaning) \
  out << variable << "=" << o.field << "  " << meaning << "\n";
#define RUNE_OPTION_INT(field, variable, fallback, meaning) \
  RUNE_OPTION_STRING(field, variable, , meaning)
#define RUNE_OPTION_BOOL(field, variable, fallback, meaning) \
  RUNE_OPTION_STRING(field, variable, , meaning)
#include "base/options.def"
#undef RUNE_OPTION_STRING
#undef RUNE_OPTION_INT
#undef RUNE_OPTION_BOOL
  return out.str();
}

}  // namespace rune
