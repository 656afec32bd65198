"""Steps that combine elements: reductions, running sums, contractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from elementwise import condition
from inputs import is_float

if TYPE_CHECKING:
    from generator import Generator

_MOST_PRODUCTS = 400_000
# May be inexact; of exact values only.
_REDUCTIONS = ["sum", "sum", "max", "min", "prod", "mean", "var", "std", "ptp"]
_DISCONTINUOUS = ["any", "all", "count_nonzero", "argmax", "argmin"]
_EINSUMS = (
    *("ij,jk->ik", "ij,kj->ik", "ji,jk->ki", "bij,bjk->bik", "i,j->ij", "ij,j->i", "ij,ij->"),
    *("ij,ij->j", "i,i->", "...i,...i->...", "ij,k->jki", "bij,jk", "ij,jk,k->i"),
)
_EINSUMS_OF_ONE = ("ij->ji", "ii->i", "ii", "ijk->j", "ij->", "i...->...")


def _roundings(dtype: np.dtype, count: int) -> float:
    """How many roundings a sum of so many suffers, NumPy's in order of the elements too."""
    stagnates = is_float(dtype) and dtype.itemsize == 2 and count > 256
    return 4.0 + (count if stagnates else math.sqrt(count))


def _axes(g: Generator, ndim: int) -> tuple[str, Any]:
    """Keyword arguments of a reduction as text, and the axes."""
    choice = g.rng.random()
    keep = ", keepdims=True" if g.rng.random() < 0.4 else ""
    if choice < 0.25 or ndim == 0:
        return f"axis=None{keep}", None
    if choice < 0.75:
        axis: Any = g.rng.randrange(-ndim, ndim)
    else:
        axis = tuple(sorted(g.rng.sample(range(ndim), g.rng.randint(1, ndim))))
    return f"axis={axis}{keep}", axis


def _reduction(g: Generator) -> None:
    name = g.rng.choice(_REDUCTIONS * 2 + _DISCONTINUOUS)
    a = g.pick(exact=name in _DISCONTINUOUS)
    value = g.values[a]
    axes, axis = _axes(g, value.ndim)
    if name.startswith("arg") and isinstance(axis, tuple):
        return
    options, x = axes, f"v{a}"
    if name in ("sum", "prod", "max", "min", "mean", "any", "all") and g.rng.random() < 0.25:
        mask = condition(g)
        try:
            np.broadcast_to(g.values[mask], value.shape)
        except ValueError:
            return
        options += f", where=v{mask}"
        neutral = 1 if name == "prod" else 0
        x = f"np.where(v{mask}, v{a}, v{a}.dtype.type({neutral}))"
    if name in ("sum", "prod", "mean") and g.rng.random() < 0.2:
        wider = ["float32"] if is_float(value.dtype) else ["float32", "int64", "uint8"]
        options += f", dtype=np.{g.rng.choice(wider if name != 'mean' else wider[:1])}"
    start = "0"
    if name in ("sum", "prod", "max", "min") and ("where" in options or g.rng.random() < 0.2):
        start = g.rng.choice(["1", "3"])
        options += f", initial={start}"
    lengths = value.shape if axis is None else [value.shape[i] for i in np.atleast_1d(axis)]
    noise = _noise(name, x, axes, start, max(1, math.prod(lengths)), value.dtype)
    if name in ("mean", "var", "std") and value.size == 0:
        return
    g.add(f"np.{name}(v{a}, {options})", noise, zeros=False)


def _noise(name: str, x: str, axes: str, start: str, count: int, dtype: np.dtype) -> str | None:
    k = _roundings(dtype, count)
    spread = f" + spread_of_product(np.asarray({x}, out.dtype), {axes})"
    size = f"(np.sum(magnitude({x}), {axes}) + {start})"
    squares = f"0 * np.sum(magnitude({x}).astype(out.dtype) ** 2, {axes})"
    return {
        "sum": f"eps * {k} * {size} + bounded({size}, out)",
        # Of how many a mask leaves is not known.
        "mean": f"eps * {k} * {size} / {1 if 'where' in x else count} + bounded({size}, out)",
        "prod": f"eps * {count} * magnitude(out){spread}",
        "var": f"eps * {k} * magnitude(out) + (eps * {k} * {size} / {count}) ** 2 + {squares}",
        "std": f"eps * {k} * magnitude(out) + eps * {k} * {size} / {count} + {squares}",
    }.get(name)


def _row_wise(g: Generator) -> None:
    """A reduction that is broadcast back."""
    a = g.pick(lambda v: v.ndim > 0 and is_float(v.dtype))
    axis = g.axis(g.values[a])
    name = g.rng.choice(["max", "min"])
    if g.add(f"np.{name}(v{a}, axis={axis}, keepdims=True)", zeros=False):
        g.add(f"v{a} - v{len(g.values) - 1}", zeros=False)


def _running(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0)
    value = g.values[a]
    axis = g.axis(value)
    count = value.shape[axis] + 1
    name = g.rng.choice(["cumsum", "cumsum", "cumprod", "maximum", "minimum"])
    if name in ("maximum", "minimum"):
        g.add(f"np.{name}.accumulate(v{a}, {axis})", zeros=False)
        return
    if name == "cumsum":
        size = f"np.cumsum(magnitude(v{a}), {axis})"
        # One after the other; those of equal terms all round the same way.
        noise = f"eps * {count} * {size} + bounded({size}, out)"
    else:
        noise = f"eps * {count} * magnitude(out) + spread_of_product(v{a}, np.cumsum, axis={axis})"
    g.add(f"np.{name}(v{a}, {axis})", noise, zeros=False)


def _contract(g: Generator, form: str, operands: list[str], inner: int) -> None:
    """A sum of products. `form` has the operands' places as {0}, {1} ..."""
    sizes = [f"magnitude({x})" for x in operands]
    values = [eval(x, {}, g.names()) for x in operands]
    dtypes = [value.dtype for value in values]
    by_dot = form.startswith("np.") and "einsum" not in form and "matmul" not in form
    infinite = any(is_float(v.dtype) and not np.isfinite(v).all() for v in values)
    if by_dot and infinite and any(1 in v.shape for v in values):
        return  # NumPy's dot takes the product of an infinity and one 0 for 0, matmul for NaN
    if infinite and "einsum" in form and any(0 in v.strides for v in values):
        return  # NumPy multiplies a repeated operand with the sum of the other one
    k = max(_roundings(dtype, inner) for dtype in dtypes)
    total = form.format(*sizes)
    g.add(form.format(*operands), f"eps * {k} * {total} + bounded({total}, out)", zeros=False)


def _matmul(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0)
    x = g.values[a]
    inner = x.shape[-1]
    if g.rng.random() < 0.3:
        b, right = a, f"v{a}.T" if x.ndim == 2 else f"v{a}"
    else:
        b = g.pick(lambda v: v.ndim > 0 and v.shape[-2 if v.ndim > 1 else -1] == inner)
        right = f"v{b}"
    if x.size * g.values[b].size // max(1, inner) > _MOST_PRODUCTS:
        return
    form = g.rng.choice(["{0} @ {1}"] * 3 + ["np.dot({0}, {1})", "np.matmul({0}, {1})"])
    _contract(g, form, [f"v{a}", right], inner)


def _einsum(g: Generator) -> None:
    text = g.rng.choice(_EINSUMS + _EINSUMS_OF_ONE)
    letters = [part.replace("...", "") for part in text.split("->")[0].split(",")]
    chosen: list[int] = []
    sizes: dict[str, int] = {}
    for part in letters:
        fits = [
            i
            for i, v in g.arrays()
            if v.ndim >= len(part)
            and (v.ndim == len(part) or "..." in text)
            and all(sizes.get(c, n) == n for c, n in zip(part, v.shape, strict=False))
        ]
        if not fits:
            return
        chosen.append(g.rng.choice(fits))
        shape = g.values[chosen[-1]].shape
        sizes.update(zip(part, shape, strict=False))
    if "..." not in text and math.prod(sizes.values()) > _MOST_PRODUCTS:
        return
    if any(g.values[i].size == 0 for i in chosen):
        return  # NumPy takes "ii->i" of sizes 0 and 4, and reads four elements
    operands = [f"v{i}" for i in chosen]
    places = ", ".join(f"{{{i}}}" for i in range(len(operands)))
    _contract(g, f"np.einsum('{text}', {places})", operands, max(sizes.values(), default=1) ** 2)


def _products(g: Generator) -> None:
    """Contractions that take any two vectors or matrices of fitting sizes."""
    a = g.pick(lambda v: v.ndim > 0)
    x = g.values[a]
    b = g.pick(lambda v: v.ndim > 0 and v.shape[-1] == x.shape[-1])
    if x.size * g.values[b].size > _MOST_PRODUCTS:
        return
    forms = ["np.inner({0}, {1})", "np.outer({0}, {1})", "np.vecdot({0}, {1})"]
    forms += ["np.tensordot({0}, {1}, 0)", "np.tensordot({0}, {1}, (-1, -1))"]
    if x.shape == g.values[b].shape:
        forms += ["np.vdot({0}, {1})", "np.tensordot({0}, {1}, {0}.ndim)"]
    _contract(g, g.rng.choice(forms), [f"v{a}", f"v{b}"], x.size)


def _counts(g: Generator) -> None:
    """How often each value is there; what is counted must be exact."""
    # Of bfloat16, data decides about the dtype of the edges.
    a = g.pick(lambda v: v.dtype.kind != "V", exact=True)
    if g.rng.random() < 0.5:
        length = g.rng.randint(1, 9)
        places = f"np.isfinite(v{a}) * 2"
        if not is_float(g.values[a].dtype):
            places = f"v{a}.astype(np.int64) % {length}"
        least = g.rng.choice(["", f", minlength={length}", f", minlength={length + 3}"])
        g.add(f"np.bincount(({places}).ravel(){least})", zeros=False)
        return
    bins = g.rng.choice(["5", "1", "[-2, 0, 0.5, 3]"])
    limits = g.rng.choice(["", ", (-3, 3)", ", (0, 0.7)"]) if bins[0] != "[" else ""
    g.add(f"np.histogram(v{a}, {bins}{limits})[0]", zeros=False)


MAKERS: list[tuple[float, Callable[[Generator], None]]] = [
    (3, _reduction),
    (1.5, _row_wise),
    (1, _running),
    (1, _matmul),
    (0.7, _einsum),
    (0.7, _products),
    (0.4, _counts),
]
