// The text form of schedules: parse(print(s)) equals s.
#pragma once

#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace rune::schedule {

std::string print(const Schedule& schedule);
// Throws UserError(Parse) with line and column.
Schedule parse(std::string_view text);
bool equal(const Schedule& a, const Schedule& b);

}  // namespace rune::schedule
