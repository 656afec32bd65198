"""NumPy's ufuncs that are compositions of others. Each function here takes arrays with the dtypes
of one of NumPy's loops. It returns the result or a tuple of results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rune_jit.rules.coercions import call_builder, is_inexact
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.tracer import Tracer


def _times_quotient(x: Any, a: float, b: float) -> Any:
    """x * (a / b) as in NumPy: the quotient has the loop's dtype, or float32 for floats of 16
    bits."""
    dtype = np.dtype(np.float32) if x.dtype.itemsize == 2 else x.dtype
    return (x.astype(dtype, copy=False) * (dtype.type(a) / dtype.type(b))).astype(x.dtype)


def _deg2rad(x: Any) -> Any:
    return _times_quotient(x, math.pi, 180)


def _rad2deg(x: Any) -> Any:
    return _times_quotient(x, 180, math.pi)


def _reciprocal(x: Any) -> Any:
    if is_inexact(x.dtype):
        trace = require_trace()
        return Tracer(trace, trace.builder.ufunc("reciprocal", [trace.operand(x)])[0])
    # NumPy truncates 1 / x. For 0 its result is infinity, cast to an integer.
    infinity = call_builder("astype", np.float64(np.inf), x.dtype)
    is_unit = (x == 1) | (x == -1) if x.dtype.kind == "i" else x == 1
    return np.where(is_unit, x, np.where(x == 0, infinity, x.dtype.type(0)))


def _heaviside(x: Any, at_zero: Any) -> Any:
    one, zero = x.dtype.type(1), x.dtype.type(0)
    step = np.where(x == 0, at_zero, np.where(x > 0, one, zero))
    return np.where(np.isnan(x), x, step)


def _logaddexp(x: Any, y: Any) -> Any:
    # exp(-|x - y|) cannot overflow. For equal infinities x - y is NaN, so equal operands are
    # treated separately.
    unequal = np.maximum(x, y) + np.log1p(np.exp(-np.abs(x - y)))
    return np.where(x == y, x + x.dtype.type(math.log(2)), unequal)


def _logaddexp2(x: Any, y: Any) -> Any:
    rest = np.log1p(np.exp2(-np.abs(x - y))) * x.dtype.type(math.log2(math.e))
    return np.where(x == y, x + x.dtype.type(1), np.maximum(x, y) + rest)


def _modf(x: Any) -> tuple[Any, Any]:
    whole = np.trunc(x)
    part = np.where(np.isinf(x), x.dtype.type(0), x - whole)
    return np.copysign(part, x), whole  # both with x's sign


# Functions that work on the bits of numbers.


class _Format:
    """The binary format of a float dtype."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.integer = np.dtype(f"i{dtype.itemsize}")  # signed, so that it has the float's sign
        self.mantissa = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[dtype.name]
        self.bias = (1 << (8 * dtype.itemsize - self.mantissa - 2)) - 1
        self.tiny = 2.0 ** (1 - self.bias)  # the least normal number
        self.smallest = math.ldexp(self.tiny, -self.mantissa)  # the least number above 0

    def bits(self, x: Any) -> Any:
        return call_builder("bitcast", x, self.integer)

    def number(self, bits: Any) -> Any:
        return call_builder("bitcast", bits, self.dtype)


def _frexp(x: Any) -> tuple[Any, Any]:
    """The mantissa, in [0.5, 1) with x's sign, and the exponent. For 0, infinities and NaN the
    exponent is 0."""
    f = _Format(x.dtype)
    scale = f.mantissa + 1  # makes subnormal numbers normal
    is_tiny = np.abs(x) < f.tiny
    bits = f.bits(np.where(is_tiny, x * x.dtype.type(2.0**scale), x))
    field = bits & ((2 * f.bias + 1) << f.mantissa)
    bias = np.where(is_tiny, np.int32(f.bias - 1 + scale), np.int32(f.bias - 1))
    exponent = (field >> f.mantissa).astype(np.int32) - bias
    fraction = f.number((bits - field) | ((f.bias - 1) << f.mantissa))
    itself = (x == 0) | ~np.isfinite(x)
    return np.where(itself, x, fraction), np.where(itself, np.int32(0), exponent)


def _ldexp(x: Any, exponent: Any) -> Any:
    """x * 2**exponent, rounded once."""
    # Floats of 16 bits are scaled in float32, which is exact as long as they stay in their own
    # range.
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    limit = 4 * _Format(wide.dtype).bias  # beyond this, every result is 0 or infinite
    bounded = np.minimum(np.maximum(exponent, -limit), limit).astype(wide.dtype)
    trace = require_trace()
    operands = [trace.operand(wide), trace.operand(bounded)]
    return Tracer(trace, trace.builder.ufunc("ldexp", operands)[0]).astype(x.dtype)


def _nextafter(x: Any, y: Any) -> Any:
    f = _Format(x.dtype)
    grows = (x < y) == (x > 0)
    one = f.integer.type(1)
    moved = f.number(f.bits(x) + np.where(grows, one, -one))
    moved = np.where(x == 0, np.copysign(x.dtype.type(f.smallest), y), moved)
    moved = np.where(x == y, x if f.dtype == np.float16 else y, moved)
    return np.where(np.isnan(x) | np.isnan(y), x.dtype.type(np.nan), moved)


def _spacing(x: Any) -> Any:
    """The distance to the next number away from zero (for float16, towards infinity)."""
    f = _Format(x.dtype)
    one = f.integer.type(1)
    step = np.where(x < 0, -one, one) if f.dtype == np.float16 else one
    distance = f.number(f.bits(x) + step) - x
    smallest: Any = x.dtype.type(f.smallest)
    if f.dtype.name == "bfloat16":
        smallest = np.copysign(smallest, x)
    distance = np.where(x == 0, smallest, distance)
    return np.where(np.isfinite(x), distance, x.dtype.type(np.nan))


def _bitwise_count(x: Any) -> Any:
    """The number of set bits of |x|."""
    bits = 8 * x.dtype.itemsize
    x = np.abs(x).astype(f"u{x.dtype.itemsize}")

    def mask(byte: int) -> int:
        return int(byte * ((2**bits - 1) // 255))

    # Counts of 1, 2 and 4 bits side by side become counts of twice as many (Warren, Hacker's
    # Delight, 5-1). A product adds up the counts of bytes in the highest byte.
    x = x - ((x >> 1) & mask(0x55))
    x = (x & mask(0x33)) + ((x >> 2) & mask(0x33))
    x = (x + (x >> 4)) & mask(0x0F)
    return ((x * mask(0x01)) >> (bits - 8)).astype(np.uint8)


COMPOSED: dict[Any, Any] = {
    np.deg2rad: _deg2rad,
    np.radians: _deg2rad,
    np.rad2deg: _rad2deg,
    np.degrees: _rad2deg,
    np.reciprocal: _reciprocal,
    np.heaviside: _heaviside,
    np.logaddexp: _logaddexp,
    np.logaddexp2: _logaddexp2,
    np.modf: _modf,
    np.frexp: _frexp,
    np.ldexp: _ldexp,
    np.nextafter: _nextafter,
    np.spacing: _spacing,
    np.bitwise_count: _bitwise_count,
}
