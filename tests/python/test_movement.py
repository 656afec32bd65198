"""Movement composed at random, with masks: Reshape, Permute, Expand, Pad, Shrink, Flip, Cat, View
and Valid, against NumPy. Sums in between tell a masked zero from what was computed of one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from devices import HAS_FLOAT64, devices
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from node_graphs import Graph

import rune_jit
from rune_jit import ir

_MOST_ELEMENTS = 400
_KINDS = ("reshape", "permute", "expand", "pad", "shrink", "flip", "cat", "view", "valid", "add")
Draw = Any  # of hypothesis: a value of a strategy


def through(views: list[dict[str, Any]], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a shape tracker reads of an array, and where its masks leave elements."""
    valid = np.ones(x.shape, bool)
    for view in views:
        grid = np.indices(view["shape"])
        axes = range(len(view["shape"]))
        at = view["offset"] + sum((grid[d] * view["strides"][d] for d in axes), np.int64(0))
        inside = np.ones(view["shape"], bool)
        for d, (low, high) in enumerate(view.get("mask", ())):
            inside &= (low <= grid[d]) & (grid[d] < high)
        at = np.where(inside, at, 0)
        assert np.all((at >= 0) & (at < x.size))
        valid = inside & valid.ravel()[at]
        x = np.where(valid, x.ravel()[at], x.dtype.type(0))
    return x, valid


def draw_view(draw: Draw, size: int) -> dict[str, Any]:
    """One view of so many elements: what its mask leaves lies among them."""
    shape = draw(st.lists(st.integers(1, 6), max_size=3))
    strides = [draw(st.sampled_from((0, 1, 1, -1, 2, -3, *shape, 7))) for _ in shape]
    view: dict[str, Any] = {"shape": shape, "strides": strides, "offset": 0}
    box = [(0, n) for n in shape]
    if draw(st.booleans()):
        box = [tuple(sorted(draw(st.tuples(*[st.integers(0, n)] * 2)))) for n in shape]
        view["mask"] = box
    if any(low == high for low, high in box):
        return view
    while True:
        ends = [(low * s, (high - 1) * s) for (low, high), s in zip(box, strides, strict=True)]
        least, most = sum(map(min, ends)), sum(map(max, ends))
        if most - least < size:
            break
        widest = max(range(len(ends)), key=lambda d: abs(ends[d][1] - ends[d][0]))
        strides[widest] = 0
    view["offset"] = draw(st.integers(-least, size - 1 - most))
    return view


def draw_shape(draw: Draw, size: int) -> list[int]:
    """A shape of so many elements."""
    shape = []
    while size > 1 and len(shape) < 3:
        shape.append(draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0])))
        size //= shape[-1]
    shape.append(size)
    return draw(st.permutations(shape))


def draw_movement(draw: Draw, g: Graph, v: ir.Value, x: np.ndarray) -> tuple[ir.Value, np.ndarray]:
    """The next step: a node and what it is."""
    kind = draw(st.sampled_from(_KINDS))
    rank = x.ndim
    if kind == "reshape" and x.size:
        shape = draw_shape(draw, x.size)
        return g.node("reshape", v, shape=shape), x.reshape(shape)
    if kind == "permute":
        axes = draw(st.permutations(range(rank)))
        return g.node("permute", v, axes=axes), x.transpose(axes)
    if kind == "expand" and x.size * 3**rank <= _MOST_ELEMENTS:
        shape = [draw(st.integers(1, 3)) if n == 1 else n for n in x.shape]
        return g.node("expand", v, shape=shape), np.broadcast_to(x, shape)
    if kind == "pad" and math.prod(n + 4 for n in x.shape) <= _MOST_ELEMENTS:
        widths = [draw(st.tuples(*[st.integers(0, 2)] * 2)) for _ in x.shape]
        return g.node("pad", v, widths=widths), np.pad(x, widths) if rank else x
    if kind == "shrink":
        limits = [tuple(sorted(draw(st.tuples(*[st.integers(0, n)] * 2)))) for n in x.shape]
        limits = [b if b[0] < b[1] else (0, n) for b, n in zip(limits, x.shape, strict=True)]
        return g.node("shrink", v, limits=limits), x[tuple(slice(*b) for b in limits)]
    if kind == "flip":
        axes = [a for a in range(rank) if draw(st.booleans())]
        return g.node("flip", v, axes=axes), np.flip(x, tuple(axes))
    if kind == "cat" and rank and 2 * x.size <= _MOST_ELEMENTS:
        axis = draw(st.integers(0, rank - 1))
        other = g.node("flip", v, axes=[axis])
        return g.node("cat", v, other, axis=axis), np.concatenate([x, np.flip(x, axis)], axis)
    if kind in ("view", "valid"):
        views = [draw_view(draw, x.size)]
        if draw(st.booleans()):
            views.append(draw_view(draw, math.prod(views[0]["shape"])))
        moved, valid = through(views, x)
        node = g.node("view", v, {"views": views})
        if kind == "view":
            return node, moved
        mask = g.node("valid", v, {"views": views})
        return g.node("ternary", "where", mask, g.node("unary", "neg", node), node), np.where(
            valid, -moved, moved
        )
    return g.node("binop", "add", v, one_like(g, x.shape)), x + 1


def one_like(g: Graph, shape: tuple[int, ...]) -> ir.Value:
    one = g.node("reshape", g.constant(1, np.int32), shape=[1] * len(shape))
    return g.node("expand", one, shape=list(shape))


def check(draw: Draw, device: str) -> None:
    """Draws a program and compares two of its values and a sum with NumPy's."""
    g = Graph()
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    x = np.arange(1, math.prod(shape) + 1, dtype=np.int32).reshape(shape)
    v = g.input(x)
    values = []
    for _ in range(draw(st.integers(1, 7))):
        v, x = draw_movement(draw, g, v, x)
        values.append((v, x))
    total = g.node("reduce_axis", "add", v, axes=list(range(x.ndim)))
    chosen = [draw(st.sampled_from(values)), values[-1]]
    chosen.append((total, x.sum(keepdims=True, dtype=np.int32).reshape((1,) * x.ndim)))
    graph = g.finish(*(v for v, _ in chosen))
    note(str(graph))
    results = ir.Program(graph, device).run(*g.arguments)
    assert_matches(results, [want for _, want in chosen])


def search(device: str, **options: Any) -> None:
    """Checks many programs, by default the same ones each time."""

    @settings(**{"derandomize": True, "deadline": None, "database": None, **options})
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check(data.draw, device)

    run()


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_movement(device: str, full: bool) -> None:
    search(device, max_examples=3000 if full else 60, derandomize=not full)


def test_a_wrong_mask_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the graph is shown."""
    right = through

    def with_ones(views: list[dict[str, Any]], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moved, valid = right(views, x)
        return np.where(valid, moved, x.dtype.type(1)), valid

    monkeypatch.setattr("test_movement.through", with_ones)
    with pytest.raises(AssertionError) as failure:
        search("interpreter", max_examples=60, phases=[Phase.generate], report_multiple_bugs=False)
    assert any(" = view {" in note for note in failure.value.__notes__)


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "uint8", "bool"])
def test_steps_from_lane_to_lane(device: str, dtype: str) -> None:
    """Short steps, for which lanes are taken from whole vectors, and longer ones; the last element
    that is read may be the last there is."""

    def read(x: Any) -> list[Any]:
        columns = x.reshape(-1, 3)
        steps = [np.maximum(x[::step], x[0]) for step in (2, 3, 4, 8, 9, -2, -3, -5)]
        return [*steps, columns[:, 2] == x[1], columns.max(axis=1)]

    x = np.random.default_rng(0).integers(-9, 9, 3 * 67).astype(dtype)
    if x.dtype.kind == "f":
        x[::13], x[5::17] = np.nan, -0.0
    for got, want in zip(rune_jit.jit(read, device=device)(x), read(x), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
@pytest.mark.parametrize("dtype", ["float32", "int32", "int16", "float64", "int8"])
def test_transposes(device: str, dtype: str) -> None:
    if dtype == "float64" and not HAS_FLOAT64:
        pytest.skip("the device has no float64")

    def run(x: Any, y: Any, cube: Any) -> list[Any]:
        n, m = x.shape
        parts = [x.T, x[:, 16:].T * 2 - y[16:], x[5:, 3:].T[::-1], x[:, ::-1].T, x[::-1].T + y]
        parts += [np.where(y > 3, x.T, y), np.pad(x.T, 3), np.roll(x, 5, 1).T]
        parts += [cube.transpose(0, 2, 1), cube.transpose(2, 1, 0) + 1, cube.transpose(1, 2, 0)]
        parts += [x.T[: n // 2 + 3], x[: min(n, m)].T[: min(n, m)] + x[: min(n, m), : min(n, m)]]
        return [np.ascontiguousarray(part) for part in parts]

    jitted = rune_jit.jit(run, device=device, fallback="error")
    rng = np.random.default_rng(0)
    sizes = [(80, 96), (97, 130)]
    if dtype == "float32":
        sizes += [(100, 144), (131, 113)]
    for n, m in sizes if device == "cpu" else sizes[:1]:
        x, y = (rng.integers(0, 9, shape).astype(dtype) for shape in ((n, m), (m, n)))
        cube = rng.integers(0, 9, (3, 80, m)).astype(dtype)
        for got, wanted in zip(jitted(x, y, cube), run(x, y, cube), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_transposes_of_rows_that_begin_anywhere(dtype: type) -> None:
    """Whose kernels prefetch what they store, also where a loop of the program runs them."""

    def run(x: Any, out: Any) -> Any:
        for i in range(2):
            out[i, 1:, 3:] = x[i].T[1:, 3:]
        return x[0].T.copy(), x[1].T[::-1] + 1, out

    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 1003, 997)).astype(dtype)
    special = np.array([np.nan, np.inf, -np.inf, -0.0, np.finfo(dtype).smallest_subnormal], dtype)
    x[:, ::7, ::11] = rng.choice(special, x[:, ::7, ::11].shape)
    out = np.zeros((2, 997, 1003), dtype)
    compiled = rune_jit.jit(run, fallback="error")
    assert "prefetch" in str(compiled.lower(x, out.copy()).explain())
    for got, wanted in zip(compiled(x, out.copy()), run(x, out.copy()), strict=True):
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("count", [3, 9, 14, 20])
def test_sums_of_many_joined_parts(count: int) -> None:
    """Each part has a mask: more than a processor has registers for."""

    def function(x: Any) -> Any:
        return np.concatenate([x[:1]] * (count - 1) + [x[:1] * 2]).sum()

    for dtype in (np.int64, np.float32, np.int8):
        x = np.arange(1, 22).reshape(7, 3).astype(dtype)
        assert rune_jit.jit(function)(x) == function(x)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_ends_of_rows_with_strides(dtype: type) -> None:
    """The last vector of a row has few lanes. No element beyond the array is read, and lanes that a
    padding excludes are 0."""

    def function(x: Any) -> Any:
        some, more, last = x[:, ::2], x[:, 1::3], x[:, ::-4]
        return some * 2, more, np.pad(last, 5) + 1, np.pad(x[-1, ::2], (3, 70))[::-1]

    rng = np.random.default_rng(0)
    for columns in (4, 9, 30, 61, 64, 127, 200):
        x = rng.integers(0, 99, (3, columns)).astype(dtype)
        got = rune_jit.jit(function, fallback="error")(x)
        for result, wanted in zip(got, function(x), strict=True):
            assert_matches(result, wanted)


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_, np.int16, np.float16, np.float32])
def test_elements_of_joined_rows(dtype: type) -> None:
    """Quotients and remainders of positions, and masks of single lanes, up to the array's ends."""

    def function(x: Any, at: Any) -> Any:
        padded = np.pad(x, 3).ravel()[5:-7]
        border = x.copy()
        border[:2] = border[-2:] = border[:, :2] = border[:, -1:] = 0
        single = x[0]
        for _ in range(4):
            single = np.append(np.flip(single), single[:1])
        return padded, border.ravel()[::-1], x[np.arange(len(x))[:, None], at], single

    rng = np.random.default_rng(0)
    for rows, columns in ((37, 61), (1, 1), (3, 2), (64, 64), (5, 300)):
        # Arrays of bytes begin at all places of a word.
        memory = rng.integers(0, 2, rows * columns + 3).astype(dtype)
        at = rng.integers(-columns, columns, (rows, 9))
        for start in range(4):
            x = memory[start : start + rows * columns].reshape(rows, columns)
            got = rune_jit.jit(function, fallback="error")(x, at)
            for result, wanted in zip(got, function(x, at), strict=True):
                assert_matches(result, wanted)
