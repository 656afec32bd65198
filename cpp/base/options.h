// The one place that reads the environment. Every option has a row in options.def.
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

// The process's options, read from the environment at the first call. Booleans take 0/1.
// Throws UserError(Value) for a value that does not parse.
Options& options();

// What the environment says now, while options() is not yet to be fixed. Throws as options() does.
Options read_environment();

// One line a variable: name, current value, meaning.
std::string describe_options();

}  // namespace rune
