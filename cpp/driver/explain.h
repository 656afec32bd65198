// A description of the compiler's decisions about a program, for people.
#pragma once

#include <string>

#include "driver/compile.h"

namespace rune::driver {

// Lists the estimated time, the peak memory and the critical path. For each item, lists the items
// that it waits for, its loops and where they run, hints, reduction plan, buffers, costs and nodes.
// Lists each fusion, taken or refused, with its saving and the reason.
std::string explain(const Lowered& lowered);
// Describes one item: its loops and where they run, hints, buffers and nodes.
std::string explain_item(const Lowered& lowered, size_t item);

}  // namespace rune::driver
