"""Steps that choose elements by value or by arrays of indices: gathers, sorts, searches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from generator import Generator


def _integers(value: object) -> bool:
    return value.dtype.kind in "iu" and value.size < 4000  # type: ignore[attr-defined]


def indices(g: Generator, dim: int, flat: bool = False) -> tuple[str, tuple[int, ...]]:
    """An array of indices of an axis of this size, known or computed, and its shape; a `flat` one
    has one dimension."""
    if g.rng.random() < 0.5:
        try:
            a = g.pick(_integers)
        except LookupError:
            pass
        else:
            forms = [f"v{a} % {dim}"] * 3
            if g.values[a].dtype.kind == "i":
                forms.append(f"(v{a} % {dim} - {dim})")
            text = f"({g.rng.choice(forms)})"
            if flat:
                return f"{text}.ravel()", (g.values[a].size,)
            return text, g.values[a].shape
    shape = g.rng.choice([(), (1,), (2,), (3,), (5,), *(() if flat else ((2, 1), (1, 3), (2, 2)))])
    numbers = [g.rng.randrange(-dim, dim) for _ in range(math.prod(shape))]
    if not shape:
        return f"[{numbers[0]}]", (1,)
    dtype = g.rng.choice(["np.int64", "np.int64", "np.int32", "np.int8"])
    return f"np.array({np.reshape(numbers, shape).tolist()}, {dtype})", shape


def _gather(g: Generator) -> None:
    a = g.pick(lambda v: v.size > 0 and v.ndim > 0)
    shape = g.values[a].shape
    axis = g.rng.randrange(len(shape))
    at, index_shape = indices(g, shape[axis])
    if math.prod(index_shape) * g.values[a].size // shape[axis] > g.most:
        return
    before = ":, " * axis
    forms = [f"np.take(v{a}, {at}, {axis})", f"v{a}[{before}{at}]", f"v{a}[..., {at} % 1]"]
    raw = ", ".join(str(g.rng.randint(-2 * shape[axis], 2 * shape[axis])) for _ in range(3))
    mode = g.rng.choice(["wrap", "clip"])
    forms.append(f"np.take(v{a}, np.array([{raw}]), {axis}, mode='{mode}')")
    if axis + 1 < len(shape):
        other, _ = indices(g, shape[axis + 1])
        forms += [f"v{a}[{before}{at}, {other}]", f"v{a}[{before}{at}, ::2]"]
    if axis + 2 < len(shape):
        other, _ = indices(g, shape[axis + 2])
        forms.append(f"v{a}[{before}{at}, :, {other}]")
    if axis:
        forms.append(f"v{a}[:, None, ..., {g.rng.randrange(shape[-1])}, {at} % 1]")
    g.add(g.rng.choice(forms))


def _along_axis(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0 and v.size > 0)
    shape = g.values[a].shape
    axis = g.rng.randrange(len(shape))
    forms = []
    fits = [
        i
        for i, v in g.arrays()
        if _integers(v)
        and v.ndim == len(shape)
        and v.shape[:axis] + v.shape[axis + 1 :] == shape[:axis] + shape[axis + 1 :]
    ]
    if fits:
        forms.append(f"np.take_along_axis(v{a}, v{g.rng.choice(fits)} % {shape[axis]}, {axis})")
    if a in g.program.exact:
        first = g.rng.choice(["argmax", "argmin"])
        at = f"np.{first}(v{a}, axis={axis}, keepdims=True)"
        forms.append(f"np.take_along_axis(v{a}, {at}, {axis})")
    if a in g.program.signed_zeros:
        forms.append(f"np.take_along_axis(v{a}, np.argsort(v{a}, {axis}), {axis})")
    if forms:
        g.add(g.rng.choice(forms), zeros=False)


def _sort(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0 and v.size > 0)
    shape = g.values[a].shape
    axis = g.rng.randrange(len(shape))
    k = g.rng.randrange(shape[axis])
    forms = [f"np.sort(v{a}, {axis})", f"np.sort(v{a}, axis=None)"]
    forms += [f"np.sort(v{a}, {axis})[::-1]", f"np.partition(v{a}, {k}, {axis}).take({k}, {axis})"]
    if a in g.program.signed_zeros:
        forms += [f"np.argsort(v{a}, {axis}, kind='stable')", f"np.argsort(-v{a}, {axis})"]
    g.add(g.rng.choice(forms), zeros=False)


def _search(g: Generator) -> None:
    a = g.pick(lambda v: v.size > 0, exact=True)
    b = g.pick(lambda v: v.dtype == g.values[a].dtype, exact=True)
    side = g.rng.choice(["left", "right"])
    forms = [f"np.searchsorted(np.sort(v{a}, None), v{b}, '{side}')"]
    forms.append(f"np.digitize(v{b}, np.sort(v{a}, None))")
    forms.append(f"np.isin(v{a}, v{b})")
    g.add(g.rng.choice(forms))


MAKERS: list[tuple[float, Callable[[Generator], None]]] = [
    (3, _gather),
    (1, _along_axis),
    (1, _sort),
    (0.5, _search),
]
