"""Every row of the table of scalar operations (cpp/alu/alu.def) on every dtype that it accepts, on
every device, against NumPy.

The list of tests is the table itself. OPERANDS says what operands each row is tried on; a row
without operands fails."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import devices
from node_graphs import BF16, DTYPES, Graph

from rune_jit import _core, ir

ROWS = {row["name"]: row for row in _core.alu_ops()}
SIZE = 163
# All combinations of these stand before the numbers of the interval.
SPECIAL = {"f": (0.0, -0.0, np.nan, np.inf, -np.inf), "i": (0, 1), "u": (0, 1)}

# By operation: operands in [low, high); of integers without a sign, in [0, high).
OPERANDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("add", "sub", "mul", "mulacc", "max", "min", "fmax", "fmin"), (-50, 50)),
    **dict.fromkeys(("cmplt", "cmple", "cmpeq", "cmpne", "where"), (-3, 3)),
    **dict.fromkeys(("xor", "or", "and", "not"), (-120, 120)),
    **dict.fromkeys(("div", "idiv", "mod", "fmod"), (-60, 60)),
    **dict.fromkeys(("fdiv", "recip"), (0.5, 50)),
    **dict.fromkeys(("shl", "shr"), (-2, 9)),
    "pow": (0.5, 4),
    **dict.fromkeys(("atan2", "hypot", "copysign"), (-9, 9)),
    "ldexp": (-9, 9),
    **dict.fromkeys(("neg", "abs", "sign", "signbit"), (-9, 9)),
    **dict.fromkeys(("floor", "ceil", "trunc", "rint"), (-9, 9)),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), (-9, 9)),
    **dict.fromkeys(("sqrt", "cbrt"), (0, 90)),
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "erf"), (-3, 3)),
    **dict.fromkeys(("log", "log2", "log10", "log1p"), (0.1, 90)),
    **dict.fromkeys(("sin", "cos", "atan", "asinh"), (-9, 9)),
    "tan": (-1.3, 1.3),
    **dict.fromkeys(("asin", "acos", "atanh"), (-0.9, 0.9)),
    "acosh": (1.1, 9),
}

# What rows without a ufunc compute.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "div": lambda a, b: np.where(
        b == 0, 0, np.trunc(a.astype(float) / np.where(b == 0, 1, b))
    ).astype(a.dtype),
    "ldexp": lambda x, n: np.ldexp(x, np.trunc(n).astype(np.int32)),
    "erf": np.vectorize(math.erf),
    "where": lambda c, a, b: np.where(c, a, b),
    "mulacc": lambda a, b, c: a * b + c,
}


def accepted(row: dict[str, Any]) -> list[np.dtype[Any]]:
    letters = {"b": "b", "i": "i", "u": "i", "f": "f", "V": "f"}
    return [d for d in DTYPES if letters[d.kind] in row["operands"]]


def operands(row: dict[str, Any], dtype: np.dtype[Any]) -> list[np.ndarray]:
    low, high = OPERANDS[row["name"]]
    rng = np.random.default_rng(len(row["name"]) + dtype.num)
    kind = "f" if dtype == BF16 else dtype.kind
    result = []
    for i in range(row["arity"]):
        if dtype == np.bool_ or (row["name"] == "where" and i == 0):
            result.append(rng.integers(0, 2, SIZE).astype(bool))
            continue
        x = rng.uniform(max(low, 0) if dtype.kind == "u" else low, high, SIZE)
        is_exponent = row["name"] == "ldexp" and i == 1
        if dtype.kind in "iu" or is_exponent:
            x = np.floor(x)
        if not is_exponent:
            special = np.array([*itertools.product(SPECIAL[kind], repeat=row["arity"])])
            x[: len(special)] = special[:, i]
        result.append(x.astype(dtype))
    return result


def computed(row: dict[str, Any], arrays: list[np.ndarray]) -> np.ndarray:
    """What NumPy gives; of bfloat16 by way of float32."""
    function = FUNCTIONS.get(row["name"]) or getattr(np, row["numpy"])
    dtype = arrays[-1].dtype
    if dtype == BF16:
        arrays = [a.astype(np.float32) if a.dtype == BF16 else a for a in arrays]
    if row["name"] in ("shl", "shr"):  # of amounts out of range, NumPy's results are C's
        wide = [a.astype(object) for a in arrays]
        bits, outside = 8 * dtype.itemsize, (arrays[1] < 0) | (arrays[1] >= 8 * dtype.itemsize)
        shift = (lambda a, n: a << n) if row["name"] == "shl" else (lambda a, n: a >> n)
        inside = [shift(a, n if 0 <= n < bits else 0) for a, n in zip(*wide, strict=True)]
        within = np.array([v % 2**bits for v in inside], np.uint64).astype(dtype)
        beyond = np.where(arrays[0] < 0, -1, 0) if row["name"] == "shr" else np.zeros(SIZE)
        return np.where(outside, beyond.astype(dtype), within)
    with np.errstate(all="ignore"):
        result = np.asarray(function(*arrays))
    return result if result.dtype == bool else result.astype(dtype)


def assert_close(name: str, actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
        return
    eps = 2.0**-7 if expected.dtype == BF16 else float(np.finfo(expected.dtype).eps)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(a, e, rtol=8 * eps, atol=8 * eps)
    # (NumPy's maximum and minimum of 0.0 and -0.0 are either of them.)
    zeros = (a == 0) & (e == 0) & (name not in ("max", "min", "fmax", "fmin"))
    np.testing.assert_array_equal(np.signbit(a[zeros]), np.signbit(e[zeros]))


def test_every_operation_has_operands() -> None:
    assert set(OPERANDS) == set(ROWS)
    assert set(FUNCTIONS) == {name for name, row in ROWS.items() if not row["numpy"]}


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
@pytest.mark.parametrize("name", ROWS)
def test_scalar_operation(name: str, device: str) -> None:
    row, graph = ROWS[name], Graph()
    kind = {1: "unary", 2: "binop", 3: "ternary"}[row["arity"]]
    outputs, expected = [], []
    for dtype in accepted(row):
        arrays = operands(row, dtype)
        outputs.append(graph.node(kind, name, *map(graph.input, arrays)))
        expected.append(computed(row, arrays))
    assert outputs
    program = ir.Program(graph.finish(*outputs), device, graph.functions)
    for actual, wanted in zip(program.run(*graph.arguments), expected, strict=True):
        assert_close(name, np.asarray(actual), wanted)
