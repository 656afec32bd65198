"""Random contractions with what is computed before and after them, large enough that they are
tiled, packed and shared by cores. All values are small integers, so that every sum is exact."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from inputs import ON_METAL

_SIZES = (1, 2, 3, 5, 8, 14, 16, 17, 31, 32, 33, 48, 64, 65, 100, 128, 130, 200, 256, 300)
_MOST_ELEMENTS = 2**21
_MOST_TERMS = 4096
_DTYPES = ("float32", "float32", "float32", "float64", "int32", "int64", "int8")
_METAL_DTYPES = ("float32", "float32", "int32", "float16")
_BEFORE = ("{0}", "{0}", "{0}", "{0} * 2", "{0} + 1", "np.maximum({0}, 0)", "-{0}")
_AFTER = (
    *("r", "r", "r", "np.maximum(r, 0)", "r * 2 + 1", "r + c", "r - r.max(-1, keepdims=True)"),
    *("r.sum(-1)", "r.sum(0)", "(r, r * 2)", "r.T", "r.astype(np.int32)", "r + r"),
)


@dataclass
class Contraction:
    text: str
    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]

    def expected(self) -> Any:
        """By NumPy, the contraction itself in float64, where its sums are exact."""

        def einsum(spec: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            exact = np.einsum(spec, a.astype(float), b.astype(float), optimize=True)
            whole = exact if a.dtype.kind == "f" else exact.astype(np.int64)
            return whole.astype(a.dtype)

        with np.errstate(all="ignore"):
            return self.function(*self.arguments, einsum)


def _axes(rng: random.Random, most_multiplies: int) -> tuple[list[list[str]], dict[str, int]]:
    """Names of the axes of a batch, of rows, of columns and of what is summed, and their sizes."""
    while True:
        counts = [rng.choice(c) for c in ((0, 0, 0, 1, 1, 2), *((0, 1, 1, 2, 3),) * 2, (1, 1, 2))]
        names = iter("abcdefghij")
        groups = [[next(names) for _ in range(count)] for count in counts]
        size = {name: rng.choice(_SIZES) for group in groups for name in group}
        batch, rows, columns, terms = (math.prod(size[n] for n in group) for group in groups)
        largest = batch * max(rows * terms, terms * columns, rows * columns)
        least = most_multiplies // rng.choice((16, 1024))
        if (
            least <= batch * rows * columns * terms <= most_multiplies
            and largest <= _MOST_ELEMENTS
            and terms <= _MOST_TERMS
        ):
            return groups, size


def _array(rng: random.Random, shape: list[int], dtype: str) -> np.ndarray:
    values = np.random.default_rng(rng.getrandbits(32)).integers(-3, 4, shape).astype(dtype)
    layout = rng.random()
    if layout < 0.15:
        return np.asfortranarray(values)
    if layout < 0.3:
        return np.ascontiguousarray(values[::-1])[::-1] if shape else values
    if layout < 0.4 and shape:
        return np.repeat(values, 2, -1)[..., ::2]
    return values


def contraction(seed: int, most_multiplies: int) -> Contraction:
    """The same for the same seed."""
    rng = random.Random(seed)
    (batch, rows, columns, terms), size = _axes(rng, most_multiplies)
    dtype = rng.choice(_METAL_DTYPES if ON_METAL else _DTYPES)

    def order(axes: list[str]) -> list[str]:
        return rng.sample(axes, len(axes)) if rng.random() < 0.5 else axes

    a, b, r = (
        order(batch + rows + terms),
        order(batch + terms + columns),
        order(batch + rows + columns),
    )
    arrays = [_array(rng, [size[n] for n in axes], dtype) for axes in (a, b, r)]
    if r and rng.random() < 0.5:
        arrays[2] = arrays[2][(0,) * (len(r) - 1)]
    before = [rng.choice(_BEFORE).format(name) for name in "ab"]
    after = rng.choice(_AFTER if r else _AFTER[:6])
    text = "\n".join(
        [
            "def function(a, b, c, einsum=np.einsum):",
            f"    r = einsum('{''.join(a)},{''.join(b)}->{''.join(r)}', {', '.join(before)})",
            f"    return {after}",
        ]
    )
    names: dict[str, Any] = {"np": np}
    exec(text, names)
    return Contraction(f"{text}\n# {size} {dtype}", names["function"], tuple(arrays))
