"""erf and erfc of float arrays, as NumPy's operations.

Source: fdlibm's s_erf.c (Sun Microsystems, 1993, freely granted). It has rational functions for
    parts of the axis. Above 1.25, erfc(x) = exp(-x² - 0.5625 + R / S) / x, where R and S are
    polynomials in 1 / x². Errors are below 2 units in the last place for erf, and 5 for erfc."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.rules.coercions import call_builder

# Numerator and denominator, from the constant term on.
_Rational = tuple[tuple[float, ...], tuple[float, ...]]

_NEAR: _Rational = (  # (erf(x) - x) / x in x², for |x| < 0.84375
    (
        *(1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02),
        *(-5.77027029648944159157e-03, -2.37630166566501626084e-05),
    ),
    (
        *(1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03),
        *(1.32494738004321644526e-04, -3.96022827877536812320e-06),
    ),
)
_AT_ONE = 8.45062911510467529297e-01  # about erf(1)
_MIDDLE: _Rational = (  # erf(x) - _AT_ONE in |x| - 1, for |x| < 1.25
    (
        *(-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01),
        *(3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02),
        -2.16637559486879084300e-03,
    ),
    (
        *(1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02),
        *(1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02),
    ),
)
_FAR: _Rational = (  # R / S in 1 / x², for |x| < 1 / 0.35
    (
        *(-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e01),
        *(-6.23753324503260060396e01, -1.62396669462573470355e02, -1.84605092906711035994e02),
        *(-8.12874355063065934246e01, -9.81432934416914548592e00),
    ),
    (
        *(1.0, 1.96512716674392571292e01, 1.37657754143519042600e02, 4.34565877475229228821e02),
        *(6.45387271733267880336e02, 4.29008140027567833386e02, 1.08635005541779435134e02),
        *(6.57024977031928170135e00, -6.04244152148580987438e-02),
    ),
)
_FARTHEST: _Rational = (  # the same for larger |x|
    (
        *(-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e01),
        *(-1.60636384855821916062e02, -6.37566443368389627722e02, -1.02509513161107724954e03),
        -4.83519191608651397019e02,
    ),
    (
        *(1.0, 3.03380607434824582924e01, 3.25792512996573918826e02, 1.53672958608443695994e03),
        *(3.19985821950859553908e03, 2.55305040643316442583e03, 4.74528541206955367215e02),
        -2.24409524465858183362e01,
    ),
)


def _quotient(rational: _Rational, x: Any) -> Any:
    of_parts = []
    for coefficients in rational:
        value = x.dtype.type(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            value = value * x + x.dtype.type(coefficient)
        of_parts.append(value)
    return of_parts[0] / of_parts[1]


def _tail(x: Any) -> Any:
    """erfc(x) for x >= 1.25."""
    square = 1 / (x * x)
    exponent = np.where(x < 1 / 0.35, _quotient(_FAR, square), _quotient(_FARTHEST, square))
    # exp(-x²) without the error of x²: the upper half of x's digits has an exact square.
    integer, low = (np.int64, 32) if x.dtype == np.float64 else (np.int32, 13)
    bits = call_builder("bitcast", x, np.dtype(integer))
    upper = call_builder("bitcast", (bits >> low) << low, x.dtype)
    scale = np.exp(-upper * upper - x.dtype.type(0.5625))
    return scale * np.exp((upper - x) * (upper + x) + exponent) / x


def _parts(x: Any) -> tuple[Any, Any, Any, Any]:
    """|x|, and three formulas for parts of the axis: erf(|x|), erf(|x|) - _AT_ONE, 1 - erf(|x|)."""
    size = np.abs(x)
    bounded = np.minimum(size, x.dtype.type(30))
    near = size + size * _quotient(_NEAR, bounded * bounded)
    middle = _quotient(_MIDDLE, bounded - 1)
    return size, near, middle, _tail(np.maximum(bounded, x.dtype.type(1.25)))


def erf(x: Any) -> Any:
    if x.dtype.itemsize == 2:
        return erf(x.astype(np.float32)).astype(x.dtype)
    size, near, middle, rest = _parts(x)
    middle = x.dtype.type(_AT_ONE) + middle
    value = np.where(size < 0.84375, near, np.where(size < 1.25, middle, 1 - rest))
    return np.where(np.isnan(x), x, np.copysign(value, x))


def erfc(x: Any) -> Any:
    if x.dtype.itemsize == 2:
        return erfc(x.astype(np.float32)).astype(x.dtype)
    size, near, middle, rest = _parts(x)
    # For x in [0.25, 0.84375), the sum begins with x - 0.5, which is exact.
    half = x.dtype.type(0.5)
    below = np.where(size < 0.25, 1 - near, half - (near - half))
    middle = x.dtype.type(1 - _AT_ONE) - middle
    positive = np.where(size < 0.84375, below, np.where(size < 1.25, middle, rest))
    return np.where(np.isnan(x), x, np.where(x < 0, 2 - positive, positive))


def ndtr(x: Any) -> Any:
    """The distribution function of the standard normal distribution."""
    half = x.dtype.type(0.5)
    z = x * x.dtype.type(np.sqrt(0.5))
    outside = half * erfc(np.abs(z))
    inside = half + half * erf(z)
    return np.where(np.abs(z) < np.sqrt(0.5), inside, np.where(z > 0, 1 - outside, outside))
