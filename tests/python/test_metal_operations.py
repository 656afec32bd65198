"""Every scalar operation and conversion of rendered Metal source, executed by the emulator and
compared with the Lowered IR's interpreter; those that need guards, with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from msl_emulator import Msl
from op_cases import SPECIAL
from test_metal_emulator import DTYPES, KERNEL, merge, on_emulator
from test_msl import ALL, DECOMPOSED, KINDS, OPS, Text

from rune_jit import _core

_COUNT = 512  # elements that a kernel of test_msl.Text handles: 128 tasks of 4


def sample(dtype: str, seed: int) -> np.ndarray:
    """Values of which the first are those at which operations are special."""
    rng = np.random.default_rng(seed)
    kind = DTYPES[dtype]
    if kind.kind == "b":
        return rng.integers(0, 2, 1024).astype(bool)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        values = rng.integers(limits.min, limits.max, 1024, dtype=kind, endpoint=True)
        special = [limits.min, limits.max, 0, 1, limits.max // 2, 2, 7, 31, 63]
        small = rng.integers(0, 70, 512).astype(kind)
        values[::2] = small
        values[: len(special) * 9 : 9] = np.array(special, kind)
        return values
    values = rng.standard_normal(1024) * 10.0 ** rng.integers(-3, 4, 1024)
    values[: len(SPECIAL)] = SPECIAL
    values[50 : 50 + len(SPECIAL)] = rng.permutation(SPECIAL)
    with np.errstate(over="ignore"):
        return values.astype(kind)


def kernel_text(name: str, dtypes: list[str], operation: str, result: str) -> tuple[str, str]:
    """A kernel on vectors of 4: result = operation of values of some dtypes. IR text and source."""
    k = Text(name)
    out = k.memory(result, 0, writable=True)
    memories = [k.memory(d, i + 1) for i, d in enumerate(dtypes)]
    at = k.task()
    values = [k(f"load {m} {at} : {d}x4") for m, d in zip(memories, dtypes, strict=True)]
    k.store(out, at, k(f"{operation} {' '.join(values)} : {result}x4"))
    return "\n".join([k.head, *k.lines, "}"]), k.render()


def check_against_interpreter(kernels: dict[str, tuple[str, str, list[str], str]]) -> None:
    """Bit for bit, but for denormal floats and the bits of NaN. kernels: name to IR text, source,
    operands' dtypes, result's dtype."""
    library = Msl(merge([source for _, source, _, _ in kernels.values()]))
    for name, (text, source, dtypes, result) in kernels.items():
        inputs = [sample(d, i) for i, d in enumerate(dtypes)]
        expected, actual = np.zeros(1024, DTYPES[result]), np.zeros(1024, DTYPES[result])
        with np.errstate(all="ignore"):
            inputs = [flush(x) for x in inputs]
            _core.interpret(text, [expected.view(np.uint8), *(x.view(np.uint8) for x in inputs)])
            kernel = KERNEL.search(source)
            assert kernel
            library.run(kernel[1], [actual, *inputs], [4], [32])
            a, e = flush(actual[:_COUNT]), flush(expected[:_COUNT])
        same = (a == e) | ((a != a) & (e != e))
        assert same.all(), (
            f"{name}: element {np.argmin(same)} is {a[~same][0]!r}, not {e[~same][0]!r}, of "
            f"{[x[:_COUNT][~same][0] for x in inputs]}\n{source}"
        )
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a[a == a]), np.signbit(e[e == e]), name)


def flush(x: np.ndarray) -> np.ndarray:
    if x.dtype != np.float32:
        return x
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(0, x), x).astype(x.dtype)


# Metal's own functions, of which the emulator's are the correctly rounded ones.
_TRANSCENDENTAL = {
    "pow", "atan2", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
}  # fmt: skip
# For which a guard is needed that is no part of the rendered operation.
_GUARDED = {("div", "i"), ("fmod", "i"), ("shl", "i"), ("shr", "i")}


@pytest.mark.parametrize("dtype", KINDS)
def test_every_operation(dtype: str) -> None:
    kernels = {}
    for op, arity, kinds, result in OPS:
        kind = KINDS[dtype]
        if kind not in kinds or op in DECOMPOSED | _TRANSCENDENTAL or (op, kind) in _GUARDED:
            continue
        dtypes = ["bool" if result == "Select" else dtype, *[dtype] * (arity - 1)]
        given = "bool" if result == "Bool" else dtype
        name = f"{op}_{dtype}"
        kernels[name] = (*kernel_text(name, dtypes, f"alu {op}", given), dtypes, given)
    assert len(kernels) >= {"b": 10, "i": 15, "f": 25}[KINDS[dtype]]
    check_against_interpreter(kernels)


def integers_by_guards(x: Any, y: Any) -> Any:
    shifts = y & np.array(127, y.dtype)  # by more bits than there are, too
    return [x // y, x % y, np.fmod(x, y), *np.divmod(x, y), x << shifts, x >> shifts]


@pytest.mark.parametrize("dtype", [d for d in KINDS if KINDS[d] == "i"])
def test_guarded_integer_operations(dtype: str) -> None:
    """Division by zero and of the lowest number by -1, and shifts by all of the bits, as NumPy."""
    limits = np.iinfo(DTYPES[dtype])
    special = [0, 1, 2, 3, 7, 8, 31, 64, 100, limits.min, limits.max, limits.max - 1]
    values = np.array(special, DTYPES[dtype])
    if limits.min < 0:
        values = np.concatenate([values, -values[1:9], values[9:10] + 1])
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = integers_by_guards(x, y)
    assert_matches(on_emulator(integers_by_guards, x, y), expected)


@pytest.mark.parametrize("source", ALL)
def test_every_conversion(source: str) -> None:
    kernels = {}
    for target in ALL:
        name = f"cast_{source}_{target}"
        kernels[name] = (*kernel_text(name, [source], "cast", target), [source], target)
        if DTYPES[source].itemsize == DTYPES[target].itemsize and target != "bool":
            name = f"bits_{source}_{target}"
            kernels[name] = (*kernel_text(name, [source], "bitcast", target), [source], target)
    check_against_interpreter(kernels)
