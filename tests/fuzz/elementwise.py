"""Steps that compute element by element: arithmetic, functions, comparisons, selections, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from inputs import DTYPES, is_float, name_of

if TYPE_CHECKING:
    from generator import Generator

_NUMBERS = (
    *("1", "2", "-1", "0.5", "3", "0", "255", "-2.5", "0.0", "1.0", "True"),
    *("np.float32(3)", "np.int8(5)"),
)
_BINARY = (
    *("+", "-", "*", "/", "&", "|", "^"),
    *("np.maximum", "np.minimum", "np.fmax", "np.fmin", "np.heaviside"),
)
_UNARY = (
    *("-{}", "+{}", "~{}", "abs({})", "np.square({})", "np.sqrt({})", "{} ** 2"),
    *("np.positive({})", "np.conjugate({})", "np.clip({}, -2, 3)", "np.nan_to_num({})"),
    *("np.fabs({})", "np.reciprocal({})", "np.real({})", "np.clip({}, None, 1)"),
)
_FUNCTIONS = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tanh", "arctan"),
    *("sinh", "cosh", "cbrt", "arcsinh", "rad2deg", "deg2rad", "sinc"),
)
_FUNCTIONS_OF_TWO = ("hypot", "logaddexp", "logaddexp2")
# For exact values, of which also zeros' signs are.
_DISCONTINUOUS = (
    *("{0} < {1}", "{0} <= {1}", "{0} > {1}", "{0} >= {1}", "{0} == {1}", "{0} != {1}"),
    *("{0} // {1}", "{0} % {1}", "np.fmod({0}, {1})", "np.divmod({0}, {1})[1]"),
    *("np.logical_and({0}, {1})", "np.logical_xor({0}, {1})", "np.logical_not({0})"),
    *("np.left_shift({0}, {1})", "np.right_shift({0}, {1})", "np.bitwise_count({0})"),
    *("np.floor({0})", "np.ceil({0})", "np.trunc({0})", "np.rint({0})", "np.round({0}, 1)"),
    *("np.sign({0})", "np.isnan({0})", "np.isfinite({0})", "np.isinf({0})", "np.signbit({0})"),
    *("np.copysign({0}, {1})", "np.modf({0})[0]", "np.frexp({0})[1]", "np.ldexp({0}, 3)"),
    *("np.nextafter({0}, {1})", "np.spacing({0})", "np.gcd({0}, {1})", "np.lcm({0}, {1})"),
    *("{0} // 3", "{0} % -3", "7 // {0}", "{0} > 0", "1.0 / {0}", "{0} ** 3 // 2"),
)
_COMPARISONS = ("{0} < {1}", "{0} >= {1}", "{0} == {1}", "np.isnan({0})")


def _binary(g: Generator) -> None:
    a, b = g.pick(), g.pick()
    name = g.rng.choice(_BINARY)
    if not g.can_broadcast(a, b):
        return
    left, right = f"v{a}", f"v{b}"
    if g.rng.random() < 0.3:
        right = g.rng.choice(g.numbers() or _NUMBERS)
        if g.rng.random() < 0.3 and name != "/":
            left, right = right, left
    elif name in ("/", "np.heaviside") and b not in g.program.signed_zeros:
        return  # the sign of a zero decides between infinities
    if name == "np.heaviside" and not {a, b} <= g.program.exact:
        return
    # The two zeros are equal, so that either may be the larger.
    zeros = name in "+-*/&|^"
    g.add(f"{name}({left}, {right})" if name[0] == "n" else f"{left} {name} {right}", zeros=zeros)


def _unary(g: Generator) -> None:
    a = g.pick()
    text = g.rng.choice(_UNARY)
    if "reciprocal" in text and a not in g.program.signed_zeros:
        return
    g.add(text.format(f"v{a}"), zeros="clip" not in text)


def _function(g: Generator) -> None:
    a = g.pick(lambda v: is_float(v.dtype) or v.dtype in (np.int32, np.int64, np.uint8))
    name = g.rng.choice(_FUNCTIONS)
    noise = "eps * magnitude(out)"
    if name in ("sin", "cos", "sinc") and a not in g.program.exact:
        # Of a large argument that is not exact, nothing is known.
        noise += f" + np.where(eps * magnitude(v{a}) > 1e-5, np.nan, 0)"
    if name == "sinc":
        noise += f" + eps * magnitude(v{a}) * (magnitude(v{a}) > 0.1)"
    g.add(f"np.{name}(v{a})", noise)


def _function_of_two(g: Generator) -> None:
    a, b = g.pick(), g.pick()
    if g.can_broadcast(a, b):
        name = g.rng.choice(_FUNCTIONS_OF_TWO)
        noise = "eps * magnitude(out)"
        if name != "hypot":  # a small sum of large numbers
            noise += f" + eps * (magnitude(v{a}) + magnitude(v{b}))"
        g.add(f"np.{name}(v{a}, v{b})", noise)


def _power(g: Generator) -> None:
    a, b = g.pick(exact=True), g.pick(exact=True)
    if {a, b} <= g.program.signed_zeros and g.can_broadcast(a, b):
        right = g.rng.choice([f"v{b}", f"v{b}", "3", "-1.0", "0.5", "-0.5"])
        g.add(f"np.power(v{a}, {right})", "4 * eps * magnitude(out)")


def _discontinuous(g: Generator) -> None:
    a, b = g.pick(exact=True), g.pick(exact=True)
    if g.can_broadcast(a, b):
        known = {a, b} <= g.program.signed_zeros
        text = g.rng.choice(_DISCONTINUOUS if known else _COMPARISONS)
        g.add(text.format(f"v{a}", f"v{b}"))


def condition(g: Generator) -> int:
    """A boolean array, a new one if there is none."""
    if g.rng.random() < 0.7:
        try:
            return g.pick(lambda v: v.dtype == bool)
        except LookupError:
            pass
    a = g.pick(exact=True)
    if not g.add(f"v{a} {g.rng.choice(('>', '<=', '!='))} {g.rng.choice((0, 1, 2))}"):
        raise LookupError
    return len(g.values) - 1


def _where(g: Generator) -> None:
    a, b = g.pick(), g.pick()
    c = condition(g)
    if not g.can_broadcast(a, b, c):
        return
    other = g.rng.choice([f"v{b}", f"v{b}", "0", "1.5", "nan"])
    forms = [f"np.where(v{c}, v{a}, {other})"] * 3
    forms.append(f"np.select([v{c}, ~v{c}], [v{a}, v{b}], 1)")
    forms.append(f"np.choose(v{c}.astype(np.int8), [v{a}, v{b}])")
    g.add(g.rng.choice(forms))


def _cast(g: Generator) -> None:
    a = g.pick()
    dtype = g.rng.choice(DTYPES)
    if is_float(g.values[a].dtype) and not is_float(dtype):
        if a not in g.program.exact:
            return
        # Casts of what does not fit have no defined result.
        low = -1 if dtype.kind in "bu" else -100
        high = 100 if dtype.itemsize == 1 else 200
        g.add(f"np.where((v{a} > {low}) & (v{a} < {high}), v{a}, 7).astype({name_of(dtype)})")
    else:
        g.add(f"v{a}.astype({name_of(dtype)})")


MAKERS: list[tuple[float, Callable[[Generator], None]]] = [
    (5, _binary),
    (3, _unary),
    (3, _function),
    (0.5, _function_of_two),
    (0.5, _power),
    (2, _discontinuous),
    (2, _where),
    (2, _cast),
]
