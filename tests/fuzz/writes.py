"""Statements that write: to arguments, through views of views, at slices, arrays of indices and
masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from inputs import is_float
from movement import basic_index, slice_text
from selection import indices

if TYPE_CHECKING:
    from generator import Generator


def _target(g: Generator) -> int:
    return g.pick(lambda v: v.ndim > 0 and v.size > 0 and v.flags.writeable)


def _items(g: Generator, name: int, arrays: bool) -> str:
    """An index of slices, numbers and perhaps arrays."""
    shape = g.values[name].shape
    if not arrays:
        return basic_index(g, shape)
    items = []
    for dim in shape[: g.rng.randint(1, len(shape))]:
        choice = g.rng.random()
        if choice < 0.5:
            # In which order NumPy takes indices of several dimensions depends on layouts.
            items.append(indices(g, dim, flat=True)[0])
        elif choice < 0.65:
            items.append(str(g.rng.randrange(-dim, dim)))
        else:
            items.append(slice_text(g, dim))
    if g.rng.random() < 0.15:
        items.insert(g.rng.randint(0, len(items)), g.rng.choice(["None", "..."]))
    return ", ".join(items)


def _mask(g: Generator, name: int) -> str:
    """A mask of some axes of a value, of itself where it is exact."""
    shape = g.values[name].shape
    axes = g.rng.randint(1, len(shape))
    known = [i for i, v in g.arrays() if i in g.program.exact and v.shape[:axes] == shape[:axes]]
    if not known:
        raise LookupError
    i = g.rng.choice(known)
    if g.values[i].ndim == axes and g.values[i].dtype == bool:
        return f"v{i}"
    part = f"v{i}[{', '.join([':'] * axes + ['0'] * (g.values[i].ndim - axes))}]"
    return f"({part} {g.rng.choice(['>', '<', '==', '!='])} {g.rng.randint(0, 3)})"


def _value(g: Generator, name: int) -> str:
    """Something that can be assigned to elements of an array without an inexact cast."""
    dtype = g.values[name].dtype
    choice = g.rng.random()
    if choice < 0.3:
        return str(g.rng.randint(0 if dtype.kind in "ub" else -3, 3))
    source = g.pick(lambda v: is_float(dtype) or np.can_cast(v.dtype, dtype, "same_kind"))
    text = f"v{source}"
    if choice < 0.6 and g.values[source].ndim and g.values[source].size:
        text += f"[{_items(g, source, g.rng.random() < 0.5)}]"
    return text if g.rng.random() < 0.7 else f"({text} + {text})"


def _view(g: Generator) -> None:
    a = _target(g)
    ndim = g.values[a].ndim
    views = [f"v{a}[{basic_index(g, g.values[a].shape)}]"] * 3
    views += [f"v{a}.T", f"v{a}[::-1]", f"v{a}.reshape(-1)", f"np.ravel(v{a})", f"np.flip(v{a})"]
    views += [f"v{a}.swapaxes(0, {ndim - 1})", f"v{a}[None]", f"np.squeeze(v{a})"]
    views += [f"v{a}.reshape({g.values[a].shape[0]}, -1)", f"np.asarray(v{a})"]
    g.add(g.rng.choice(views))


def _copy(g: Generator) -> None:
    a = _target(g)
    copies = [f"v{a}.copy()", f"np.zeros_like(v{a})", f"np.array(v{a})", f"np.full_like(v{a}, 3)"]
    copies += [f"np.zeros({g.values[a].shape}, np.float32)", f"np.arange({g.values[a].size})"]
    g.add(g.rng.choice(copies))


def _assign(g: Generator) -> None:
    a = _target(g)
    value = _value(g, a)
    g.write(f"v{a}[{_items(g, a, g.rng.random() < 0.6)}] = {value}", a)


def _augment(g: Generator) -> None:
    a = _target(g)
    operator = g.rng.choice(["+", "-", "*", "|", "^"])
    place = "" if g.rng.random() < 0.3 else f"[{_items(g, a, g.rng.random() < 0.6)}]"
    g.write(f"v{a}{place} {operator}= {_value(g, a)}", a)


def _masked(g: Generator) -> None:
    a = _target(g)
    mask = _mask(g, a)
    choice = g.rng.random()
    if choice < 0.3:
        text = f"v{a}[{mask}] {g.rng.choice(['+', '*'])}= {g.rng.randint(0, 2)}"
    elif choice < 0.5:
        # As many elements as the mask has: of the arguments that there are.
        count = int(np.sum(eval(mask, {"np": np}, g.names())))
        text = f"v{a}[{mask}] = np.ravel({_value(g, a)})[:{count}]"
    elif choice < 0.65:
        text = f"v{a}[{mask}] = v{a}[{mask}] + v{a}[{mask}]"
    elif choice < 0.75 and g.values[a].ndim > 1:
        text = f"v{a}[{mask}, {g.rng.choice(['0', ':1', '...'])}] = {g.rng.randint(0, 3)}"
    else:
        text = f"v{a}[{mask}] = {_value(g, a)}"
    g.write(text, a)


def _at(g: Generator) -> None:
    a = _target(g)
    at, shape = indices(g, g.values[a].shape[0])
    value = _value(g, a)
    if len(shape) > 1:  # NumPy 2.4 reads beyond values that have fewer dimensions than the indices
        value = f"np.copy(np.broadcast_to({value}, {shape}))"
    name = g.rng.choice(["add", "add", "subtract", "maximum", "minimum"])
    noise = None
    if name in ("add", "subtract"):
        count = np.prod(shape, dtype=int) + 1
        total = f"(magnitude(before) + {count} * np.max(magnitude({value}), initial=0))"
        noise = f"eps * {count} * {total} + bounded({total}, out)"
    g.write(f"np.{name}.at(v{a}, {at}, {value})", a, noise, zeros=False)


def _function(g: Generator) -> None:
    a, b = _target(g), _target(g)
    size = g.values[a].size
    mask, value = _mask(g, a), _value(g, a)
    axis = g.rng.randrange(g.values[a].ndim)
    along = "".join(":, " * axis)
    forms = [
        f"np.put(v{a}, {indices(g, size)[0]}, {value})",
        f"np.putmask(v{a}, {mask}, {value})",
        f"np.place(v{a}, {mask}, {value})",
        f"np.copyto(v{a}, 1 * {value}, where={mask})",
        f"np.copyto(v{a}, {value})",
        f"np.add(v{a}, {value}, out=v{a})",
        f"np.multiply(v{a}, {value}, out=v{a}, where={mask})",
        f"np.subtract(v{a}[{along}1:], v{a}[{along}:-1], out=v{a}[{along}1:])",
        f"v{a}.fill({g.rng.randint(0, 3)})",
        f"v{a}.flat[{slice_text(g, size)}] = {value}",
        f"np.fill_diagonal(v{a}, {value})",
        f"np.put_along_axis(v{a}, np.zeros_like(v{a}, np.int64), {value}, {axis})",
    ]
    if a in g.program.exact:
        first = f"np.argmax(v{a}, {axis}, keepdims=True)"
        forms.append(f"np.put_along_axis(v{a}, {first}, {value}, {axis})")
    text = g.rng.choice(forms)
    g.write(text, a)
    if g.can_broadcast(a, b) and np.can_cast(g.values[a].dtype, g.values[b].dtype, "same_kind"):
        g.write(f"np.add(v{a}, {value}, out=v{b})", b)


MAKERS: list[tuple[float, Callable[[Generator], None]]] = [
    (2, _view),
    (1, _copy),
    (2, _assign),
    (2, _augment),
    (1, _masked),
    (0.5, _at),
    (1, _function),
]
