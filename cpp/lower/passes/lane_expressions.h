// Index expressions of vectors: how they depend on the number of the lane.
#pragma once

#include <optional>

#include "symbolic/expr.h"

namespace rune::lower {

// Variables from here on number a vector's lanes; those before them, from the other constant on,
// stand for vectors of data.
inline constexpr uint32_t kFirstLaneVariable = ~uint32_t{0} - 1024;
inline constexpr uint32_t kFirstVectorVariable = uint32_t{1} << 31;

// Whether the variable numbers lanes.
bool is_lane(uint32_t variable);

// Whether the lanes of a vector have values of their own.
bool depends_on_lane(const sym::Expr& expr);

// How far one lane moves the expression: 0 without lanes, nothing if that differs between lanes.
std::optional<int64_t> lane_stride(const sym::Expr& expr);

// The expression or mask for the lane of this number.
sym::Expr with_lane(const sym::Expr& expr, const sym::Expr& number);
sym::Mask with_lane(const sym::Mask& mask, const sym::Expr& number);

}  // namespace rune::lower
