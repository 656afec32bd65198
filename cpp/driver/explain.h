// What the compiler decided about a program, for people.
#pragma once

#include <string>

#include "driver/compile.h"

namespace rune::driver {

// Time, peak memory and critical path; each item with what it waits for, its loops and where they
// run, hints, reduction plan, buffers, costs and nodes; and each fusion, taken or refused, with
// what it saves and why.
std::string explain(const Lowered& lowered);

}  // namespace rune::driver
