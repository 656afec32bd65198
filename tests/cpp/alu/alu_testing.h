// What the tests of the evaluator share.
#pragma once

#include <initializer_list>
#include <span>

#include "alu/eval.h"

namespace rune {

inline Scalar apply(AluOp op, std::initializer_list<Scalar> operands) {
  return evaluate(op, std::span(operands.begin(), operands.size()));
}

}  // namespace rune
