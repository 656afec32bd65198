#include "render/custom_text.h"

#include <cctype>

#include "base/error.h"

namespace rune::render {

std::string expand_custom(const lower::Custom& custom, size_t num_operands,
                          const CustomParts& parts) {
  const std::string& text = custom.text;
  std::string out;
  size_t at = 0;
  const auto is_digit = [&] { return at < text.size() && std::isdigit(text[at]); };
  const auto number = [&] {
    size_t n = 0;
    for (; is_digit() && n <= num_operands; ++at) n = n * 10 + static_cast<size_t>(text[at] - '0');
    if (n >= num_operands)
      user_error(ErrorKind::Unsupported, "custom: cannot render ", custom.op_name,
                 " (its text uses $", n, " of ", num_operands, " operands)");
    return n;
  };
  while (at < text.size()) {
    if (text[at] != '$') {
      out += text[at++];
      continue;
    }
    ++at;
    if (is_digit()) {
      out += parts.operand(number());
    } else if (text.compare(at, 1, "T") == 0) {
      ++at;
      out += is_digit() ? parts.operand_type(number()) : parts.type;
    } else if (text.compare(at, 1, "M") == 0) {
      ++at;
      out += parts.mangled_type;
    } else {
      out += '$';
    }
  }
  return out;
}

}  // namespace rune::render
