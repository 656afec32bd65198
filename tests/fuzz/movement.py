"""Steps that move elements: shapes, slices, joins, padding, repetition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generator import Generator


def _reshape(g: Generator) -> None:
    a = g.pick()
    dims = []
    left = g.values[a].size
    while left > 1 and len(dims) < 4 and g.rng.random() < 0.75:
        divisors = [d for d in range(1, min(left, 300) + 1) if left % d == 0]
        dims.append(g.rng.choice(divisors))
        left //= dims[-1]
    dims.append(left)
    g.rng.shuffle(dims)
    forms = [f"v{a}.reshape({', '.join(map(str, dims))})"] * 3
    forms += [f"v{a}.ravel()", f"np.squeeze(v{a})", f"np.atleast_2d(v{a})", f"v{a}.flatten()"]
    g.add(g.rng.choice(forms))


def _transpose(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 1)
    axes = list(range(g.values[a].ndim))
    g.rng.shuffle(axes)
    i, j = g.axis(g.values[a]), g.axis(g.values[a])
    forms = [f"np.transpose(v{a}, {axes})"] * 3
    forms += [f"v{a}.swapaxes({i}, {j})", f"np.moveaxis(v{a}, {i}, {j})", f"v{a}.T"]
    forms += [f"np.rot90(v{a}, {j})"]
    g.add(g.rng.choice(forms))


def slice_text(g: Generator, dim: int) -> str:
    """A random slice along an axis of this size, in bounds or not."""
    bounds = ["", *(str(g.rng.randint(-dim - 1, dim + 1)) for _ in range(2))]
    step = g.rng.choice(["", "", "1", "-1", "2", "-2", "3"])
    return f"{g.rng.choice(bounds)}:{g.rng.choice(bounds)}:{step}"


def basic_index(g: Generator, shape: tuple[int, ...]) -> str:
    """A random index of slices and numbers."""
    items = []
    for dim in shape[: g.rng.randint(1, len(shape))]:
        choice = g.rng.random()
        if choice < 0.25:
            items.append(":")
        elif choice < 0.35 and dim:
            items.append(str(g.rng.randrange(-dim, dim)))
        else:
            items.append(slice_text(g, dim))
    if g.rng.random() < 0.2:
        items.insert(g.rng.randint(0, len(items)), "None")
    if g.rng.random() < 0.1:
        items.insert(0, "...")
    return ", ".join(items)


def _index(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0)
    text = f"v{a}[{basic_index(g, g.values[a].shape)}]"
    try:
        size = eval(text, {}, {f"v{a}": g.values[a]}).size
    except IndexError:
        return
    if size or g.rng.random() < 0.05:  # empty arrays make dull programs
        g.add(text)


def _flip(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0)
    axis = g.axis(g.values[a])
    shift = g.rng.randint(-5, 5)
    forms = [f"np.flip(v{a})", f"np.flip(v{a}, {axis})", f"np.roll(v{a}, {shift}, {axis})"]
    g.add(g.rng.choice([*forms, f"np.roll(v{a}, {shift})"]))


def _join(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0)
    shape = g.values[a].shape
    axis = g.rng.randrange(len(shape))
    rest = shape[:axis] + shape[axis + 1 :]
    others = [
        g.pick(lambda v: v.ndim == len(shape) and v.shape[:axis] + v.shape[axis + 1 :] == rest)
        for _ in range(g.rng.randint(1, 3))
    ]
    operands = [a, *others]
    g.rng.shuffle(operands)
    text = ", ".join(f"v{i}" for i in operands)
    if sum(g.values[i].size for i in operands) > g.most:
        return
    forms = [f"np.concatenate([{text}], {axis})"] * 4
    forms += [f"np.stack([{text}], {g.rng.randint(0, len(shape))})"] * 2
    forms += [f"np.hstack([{text}])", f"np.vstack([{text}])", f"np.concatenate([{text}], None)"]
    forms.append(f"np.array([{text}])")
    g.add(g.rng.choice(forms))


def _split(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0)
    axis = g.axis(g.values[a])
    parts = g.rng.randint(1, 4)
    part = g.rng.randrange(parts)
    bounds = sorted(g.rng.sample(range(g.values[a].shape[axis] + 1), 1)) * 2
    forms = [
        f"np.array_split(v{a}, {parts}, {axis})[{part}]",
        f"np.split(v{a}, {parts}, {axis})[0]",
    ]
    g.add(g.rng.choice([*forms, f"np.split(v{a}, {bounds}, {axis})[{g.rng.randrange(3)}]"]))


def _pad(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0)
    widths = [(g.rng.randint(0, 3), g.rng.randint(0, 3)) for _ in g.values[a].shape]
    modes = ["", "", "", "mode='edge'", "mode='reflect'", "mode='wrap'", "mode='symmetric'"]
    if g.values[a].dtype != bool:
        modes += ["constant_values=1", "constant_values=7"]
    g.add(f"np.pad(v{a}, {widths}, {g.rng.choice(modes)})".replace(", )", ")"))


def _broadcast(g: Generator) -> None:
    a = g.pick(lambda v: v.size < 200)
    shape = [g.rng.choice((2, 3, 5)) if d == 1 else d for d in g.values[a].shape]
    if g.rng.random() < 0.6:
        shape.insert(0, g.rng.choice((1, 2, 5)))
    g.add(f"np.broadcast_to(v{a}, {tuple(shape)})")


def _repeat(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0 and v.size < 1000)
    value = g.values[a]
    axis = g.rng.randrange(value.ndim)
    counts = [g.rng.randint(0, 3) for _ in range(value.shape[axis])]
    forms = [f"np.repeat(v{a}, 2, {axis})", f"np.repeat(v{a}, 3)", f"np.tile(v{a}, 2)"]
    forms += [f"np.expand_dims(v{a}, {axis})", f"np.tile(v{a}, (2, 1))"]
    if len(counts) < 20:
        forms.append(f"np.repeat(v{a}, {counts}, {axis})")
    if value.dtype != bool and value.dtype.kind != "u":
        forms.append(f"np.diff(v{a}, axis={axis})")
    g.add(g.rng.choice(forms))


def _triangle(g: Generator) -> None:
    a = g.pick(lambda v: v.ndim > 0 and max(v.shape) < 64)
    k = g.rng.randint(-3, 3)
    forms = [f"np.tril(v{a}, {k})", f"np.triu(v{a}, {k})", f"np.diag(v{a}, {k})"]
    g.add(g.rng.choice([*forms, f"np.diagonal(v{a}, {k})"]))


MAKERS: list[tuple[float, Callable[[Generator], None]]] = [
    (2, _reshape),
    (2, _transpose),
    (4, _index),
    (1, _flip),
    (2, _join),
    (1, _split),
    (1, _pad),
    (1, _broadcast),
    (1, _repeat),
    (0.5, _triangle),
]
