// Index expressions of vectors, and their dependence on the lane's number.
#pragma once

#include <optional>

#include "symbolic/expr.h"

namespace rune::lower {

// Variables from kFirstLaneVariable on are lane numbers. Variables between kFirstVectorVariable and
// kFirstLaneVariable are vectors of data.
inline constexpr uint32_t kFirstLaneVariable = ~uint32_t{0} - 1024;
inline constexpr uint32_t kFirstVectorVariable = uint32_t{1} << 31;

// Whether the variable is a lane number.
bool is_lane(uint32_t variable);

// Whether the expression's value may differ between the lanes of a vector.
bool depends_on_lane(const sym::Expr& expr);

// The difference of the expression between neighbouring lanes: 0 if it does not depend on lanes,
// nothing if the difference varies.
std::optional<int64_t> lane_stride(const sym::Expr& expr);

// The expression or mask for the lane with this number.
sym::Expr with_lane(const sym::Expr& expr, const sym::Expr& number);
sym::Mask with_lane(const sym::Mask& mask, const sym::Expr& number);

}  // namespace rune::lower
