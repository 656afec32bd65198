#include "base/error.h"

namespace rune::detail {

void throw_internal(const char* file, int line, const char* condition, const std::string& message) {
  std::string_view path(file);
  const auto cut = path.rfind("cpp/");
  if (cut != std::string_view::npos) path = path.substr(cut);
  throw InternalError(concat("internal error at ", path, ":", line, ": `", condition, "` is false",
                             message.empty() ? "" : ": ", message,
                             "\nhint: this is a bug of rune_jit, please report it"));
}

void append_text(std::string& out, std::string_view text) {
  out += text;
}

}  // namespace rune::detail
