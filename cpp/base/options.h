// Options. Only the functions of this file read the environment. Every option has a row in
// options.def.
#pragma once

#include <string>

namespace rune {

struct Options {
#define RUNE_OPTION_STRING(field, variable, fallback, meaning) std::string field = fallback;
#define RUNE_OPTION_INT(field, variable, fallback, meaning) int field = fallback;
#define RUNE_OPTION_BOOL(field, variable, fallback, meaning) bool field = fallback;
#include "base/options.def"
#undef RUNE_OPTION_STRING
#undef RUNE_OPTION_INT
#undef RUNE_OPTION_BOOL
};

// The process's options, which the first call reads from the environment. Booleans are 0 or 1.
// Throws UserError(Value) for a value that does not parse.
Options& options();

// The options of the present environment, read anew. For callers that must not fix the result of
// options() yet. Throws as options() does.
Options read_environment();

// One line for each variable: name, current value, meaning.
std::string describe_options();

}  // namespace rune
