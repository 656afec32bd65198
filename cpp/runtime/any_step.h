// Searches a program's steps, and the steps inside of them.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/executable.h"

namespace rune::runtime {

// Whether a step, or a step inside of it, meets a condition.
bool any_step(const std::vector<Step>& steps, const auto& condition) {
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    if (condition(step)) return true;
    if (const auto* sequence = std::get_if<Launch_Sequence>(&step))
      return any_step(sequence->body->steps, condition);
    const auto* loop = std::get_if<Repeat>(&step);
    if (!loop) return false;
    return any_step(loop->body->steps, condition) ||
           std::any_of(loop->turns.begin(), loop->turns.end(), [&](const Repeat::Turn& turn) {
             return any_step(turn.body->steps, condition) || any_step(turn.end->steps, condition);
           });
  });
}

}  // namespace rune::runtime
