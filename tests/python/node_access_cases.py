"""Cases of node_cases.py: reductions, indexing, scatters and scans."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from node_graphs import BF16, FLOAT64, Expected, Graph, sample

# Reductions.


def case_reduce_axis_all(g: Graph) -> Expected:
    x = sample((3, 5, 7), np.int32)
    v = g.input(x)
    functions = {"add": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
    result: Expected = []
    for axes in ([], [0], [1], [2], [0, 2], [0, 1, 2]):
        for name, f in functions.items():
            e = f.reduce(x, axis=tuple(axes), keepdims=True, dtype=x.dtype) if axes else x
            result.append((g.node("reduce_axis", name, v, axes=axes), e))
    empty = g.input(np.zeros((3, 0), np.float32))
    result.append((g.node("reduce_axis", "add", empty, axes=[1]), np.zeros((3, 1), np.float32)))
    lowest = np.full((3, 1), -np.inf, np.float32)
    result.append((g.node("reduce_axis", "max", empty, axes=[1]), lowest))
    return result


def _contract(a: np.ndarray, b: np.ndarray, pairs: Any, batch: Any) -> np.ndarray:
    la, lb = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
    for i, j in [*pairs, *batch]:
        lb[j] = la[i]
    fixed, dropped = [la[i] for i, _ in batch], [la[i] for i, _ in pairs]
    out = fixed + [x for x in la if x not in fixed + dropped]
    out += [x for x in lb if x not in fixed + dropped]
    return np.einsum(a, la, b, lb, out)


def case_contract_layouts(g: Graph) -> Expected:
    table: list[tuple[Any, Any, Any, Any]] = [
        ((3, 4), (4, 5), [(1, 0)], []),
        ((4, 3), (5, 4), [(0, 1)], []),
        ((2, 3, 4), (2, 4, 5), [(2, 1)], [(0, 0)]),
        ((3, 2, 4), (4, 5, 2), [(2, 0)], [(1, 2)]),
        ((3, 4), (3, 4), [(0, 0), (1, 1)], []),
        ((3,), (4,), [], []),
        ((3, 4), (4, 3), [], [(1, 0), (0, 1)]),
        ((2, 3, 4, 5), (5, 2, 4, 6), [(3, 0), (2, 2)], [(0, 1)]),
        ((17, 33), (33, 19), [(1, 0)], []),
        ((3, 0), (0, 5), [(1, 0)], []),
        ((0, 4), (4, 5), [(1, 0)], []),
    ]
    result: Expected = []
    for dtype in (np.float32, np.int8, *FLOAT64):
        for sa, sb, pairs, batch in table:
            a, b = sample(sa, dtype), sample(sb, dtype, 1)
            node = g.node("contract", g.input(a), g.input(b), contract=pairs, batch=batch)
            result.append((node, _contract(a, b, pairs, batch)))
    return result


def case_contract_of_moved(g: Graph) -> Expected:
    a, b = sample((6, 5)), sample((5, 7), seed=1)
    flipped = g.node("flip", g.input(a), axes=[1])
    padded = g.node("pad", g.input(b), widths=[(0, 0), (2, 1)])
    product = g.node("contract", flipped, padded, contract=[(1, 0)], batch=[])
    return [(product, a[:, ::-1] @ np.pad(b, ((0, 0), (2, 1))))]


def case_wmma_accumulates(g: Graph) -> Expected:
    result: Expected = []
    pairs = [(np.float16, np.float32), (BF16, np.float32), *((d, d) for d in FLOAT64)]
    for small, large in pairs:
        a, b = sample((8, 4), small), sample((4, 16), small, 1)
        c = sample((8, 16), large, 2)
        node = g.node("wmma", g.input(a), g.input(b), g.input(c), m=8, n=16, k=4)
        result.append((node, (a.astype(large) @ b.astype(large) + c).astype(large)))
    return result


# Indexing.


def case_gather_axes(g: Graph) -> Expected:
    x = sample((3, 5, 4))
    v = g.input(x)
    result: Expected = []
    for axis, dtype in itertools.product(range(3), (np.int8, np.int32, np.int64, np.uint8)):
        n = x.shape[axis]
        low = 0 if np.dtype(dtype).kind == "u" else -n
        indices = np.random.default_rng(axis).integers(low, n, (2, 6)).astype(dtype)
        result.append((g.node("gather", v, g.input(indices), axis=axis), np.take(x, indices, axis)))
    none = np.zeros((0,), np.int64)
    result.append((g.node("gather", v, g.input(none), axis=1), np.take(x, none, 1)))
    result.append((g.node("gather", v, g.input(np.int32(-1)), axis=2), x[..., -1]))
    empty = g.input(x[:, :0])
    result.append((g.node("gather", empty, g.input(none), axis=1), x[:, :0]))
    return result


def case_gather_computed(g: Graph) -> Expected:
    x, indices = sample((50,), np.int64), np.arange(49, -1, -1, dtype=np.int32)
    moved = g.node("unary", "neg", g.input(x))
    at = g.node("flip", g.input(indices), axes=[0])
    return [(g.node("gather", moved, at, axis=0), -x)]


def case_index_valid(g: Graph) -> Expected:
    x = sample((4, 5))
    v = g.input(x)
    indices = np.array([[0, 19, -1], [7, 7, -20]], np.int32)
    valid = np.array([[True, False, True], [False, True, True]])
    at = g.input(indices)
    empty = g.input(np.zeros((0, 3), np.float32))
    nothing = g.input(np.zeros((2, 3), bool))
    return [
        (g.node("index", v, at), x.ravel()[indices]),
        (g.node("index", v, at, g.input(valid)), np.where(valid, x.ravel()[indices], 0)),
        (g.node("index", empty, at, nothing), np.zeros((2, 3), np.float32)),
    ]


UFUNCS = {"add": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(mode: str, target: Any, indices: Any, updates: Any, axis: int) -> np.ndarray:
    result = np.moveaxis(target.copy(), axis, 0)
    flat = updates.reshape(*target.shape[:axis], indices.size, *target.shape[axis + 1 :])
    rows = np.moveaxis(flat, axis, 0)
    if mode == "set":
        result[indices.ravel()] = rows
    else:
        with np.errstate(all="ignore"):
            UFUNCS[mode].at(result, indices.ravel(), rows)
    return np.moveaxis(result, 0, axis)


def case_scatter_modes(g: Graph) -> Expected:
    result: Expected = []
    for mode, axis, dtype in itertools.product(
        ("set", *UFUNCS), range(3), (np.float32, np.int8, np.uint64, np.float16, bool)
    ):
        if mode in ("add", "prod") and dtype is bool:
            continue
        target = sample((3, 5, 4), dtype)
        n = target.shape[axis]
        indices = np.random.default_rng(axis).integers(-n, n, (2, 4)).astype(np.int32)
        shape = (*target.shape[:axis], 2, 4, *target.shape[axis + 1 :])
        updates = sample(shape, dtype, 3)
        operands = (g.input(target), g.input(indices), g.input(updates))
        node = g.node("scatter", mode, *operands, axis=axis)
        result.append((node, _scatter(mode, target, indices, updates, axis)))
    return result


def case_scatter_special(g: Graph) -> Expected:
    target = np.array([-0.0, 1, np.nan, 3, np.inf], np.float32)
    indices = np.array([1, 3, 1, -1], np.int64)
    updates = np.array([np.nan, -3.0, 7.0, -np.inf], np.float32)
    t, i, u = g.input(target), g.input(indices), g.input(updates)
    with np.errstate(all="ignore"):
        result: Expected = [
            (g.node("scatter", mode, t, i, u, axis=0), _scatter(mode, target, indices, updates, 0))
            for mode in ("set", *UFUNCS)
        ]
    none = g.input(np.zeros((0,), np.int64))
    return [*result, (g.node("scatter", "set", t, none, g.input(updates[:0]), axis=0), target)]


def case_scatter_long(g: Graph) -> Expected:
    """More positions and updates than one constant holds."""
    rng = np.random.default_rng(0)
    target, indices = sample((1500,), np.int32), rng.integers(0, 1500, 1100).astype(np.uint16)
    updates = sample((1100,), np.int32, 5)
    t, i, u = g.input(target), g.input(indices), g.input(updates)
    return [
        (g.node("scatter", mode, t, i, u, axis=0), _scatter(mode, target, indices, updates, 0))
        for mode in ("set", "add")
    ]


def case_scatter_copies(g: Graph) -> Expected:
    """Enough updates that each core has a copy of the target, and some left over; batches."""
    rng = np.random.default_rng(4)
    target = np.array([-0.0, np.inf, -np.inf, np.nan, 3], np.float32).repeat(2)
    indices = rng.integers(-8, 8, 33001).astype(np.int16)  # the last two get no update
    updates = rng.integers(-8, 9, 33001).astype(np.float32)  # whose sums are exact
    t, i, u = g.input(target), g.input(indices), g.input(updates)
    result = [
        (g.node("scatter", mode, t, i, u, axis=0), _scatter(mode, target, indices, updates, 0))
        for mode in ("add", "max", "min")
    ]
    target, indices = sample((3, 2, 5), np.int32), rng.integers(-5, 5, (3, 2, 2))
    updates = sample((3, 2, 2, 2), np.int32, 3)
    t, i, u = g.input(target), g.input(indices), g.input(updates)
    for mode in ("set", "prod"):
        node = g.node("scatter", mode, t, i, u, axis=2, batch=1)
        rows = [_scatter(mode, *row, 1) for row in zip(target, indices, updates, strict=True)]
        result.append((node, np.stack(rows)))
    return result


def case_scatter_rows(g: Graph) -> Expected:
    """Rows as vectors with a rest; computed operands; a result that is read again."""
    rng = np.random.default_rng(1)
    target, indices = sample((40, 37)), rng.integers(-40, 40, 90).astype(np.int64)
    updates = sample((90, 37), seed=2)
    t, i, u = g.input(target), g.input(indices), g.input(updates)
    flipped, negated = g.node("flip", i, axes=[0]), g.node("unary", "neg", u)
    result: Expected = []
    for mode in ("set", "add", "max"):
        node = g.node("scatter", mode, g.node("unary", "neg", t), flipped, negated, axis=0)
        e = _scatter(mode, -target, indices[::-1], -updates, 0)
        result += [(node, e), (g.node("reduce_axis", "add", node, axes=[1]), e.sum(1)[:, None])]
    again = g.node("scatter", "set", result[-2][0], i, u, axis=0)
    return [*result, (again, _scatter("set", result[-2][1], indices, updates, 0))]


# Scans.


def case_scan_axes(g: Graph) -> Expected:
    result: Expected = []
    for dtype in (np.float32, np.int8, np.uint64, np.float16):
        x = sample((3, 5, 4), dtype)
        v = g.input(x)
        for (name, f), axis in itertools.product(UFUNCS.items(), range(3)):
            with np.errstate(all="ignore"):
                e = f.accumulate(x, axis=axis, dtype=dtype)
            result.append((g.node("scan", name, v, axis=axis), e))
    return result


def case_scan_special(g: Graph) -> Expected:
    x = np.array([[-0.0, 1, 2, 3, np.inf], [-0.0, -0.0, np.nan, 1, -np.inf]], np.float32)
    v, b = g.input(x), g.input(x > 0)
    with np.errstate(all="ignore"):
        result: Expected = [
            (g.node("scan", name, v, axis=axis), f.accumulate(x, axis=axis))
            for (name, f), axis in itertools.product(UFUNCS.items(), range(2))
        ]
    result.append((g.node("scan", "max", b, axis=1), np.logical_or.accumulate(x > 0, axis=1)))
    empty = np.zeros((3, 0), np.float32)
    result.append((g.node("scan", "add", g.input(empty), axis=0), empty))
    one = g.node("scan", "add", g.node("shrink", v, limits=[(0, 2), (1, 2)]), axis=1)
    return [*result, (one, x[:, 1:2])]


def case_scan_initial(g: Graph) -> Expected:
    x, start = sample((6, 33)), sample((6, 1), seed=1)
    v, s = g.input(x), g.input(start)
    both = np.concatenate([start, x], axis=1)
    one = g.node("shrink", v, limits=[(0, 6), (0, 1)])
    return [
        (g.node("scan", "add", v, s, axis=1), np.add.accumulate(both, axis=1)[:, 1:]),
        (g.node("scan", "max", v, s, axis=1), np.maximum.accumulate(both, axis=1)[:, 1:]),
        (g.node("scan", "prod", one, s, axis=1), start * x[:, :1]),
    ]


def case_scan_long(g: Graph) -> Expected:
    """Split into blocks: with and without elements left over, an initial value, a prologue."""
    result: Expected = []
    for shape, axis in (((65536,), 0), ((3, 20011), 1), ((20000, 2), 0)):
        x = sample(shape, np.int64)
        v = g.input(x)
        result.append((g.node("scan", "add", v, axis=axis), np.cumsum(x, axis)))
        negated = g.node("unary", "neg", v)
        result.append((g.node("scan", "max", negated, axis=axis), np.maximum.accumulate(-x, axis)))
        limits = [(0, 1) if a == axis else (0, n) for a, n in enumerate(shape)]
        start = g.node("shrink", v, limits=limits)
        e = np.cumsum(x, axis) + np.take(x, [0], axis)
        result.append((g.node("scan", "add", v, start, axis=axis), e))
    return result


def case_scan_fused(g: Graph) -> Expected:
    """A prologue, movement, and uses of the result; lanes along another axis."""
    x = sample((19, 41), np.int32)
    v = g.input(x)
    y = g.node("flip", g.node("binop", "mul", v, v), axes=[0])
    first = g.node("scan", "add", y, axis=0)
    second = g.node("scan", "max", g.node("unary", "neg", first), axis=1)
    total = g.node("reduce_axis", "add", second, axes=[0])
    e = np.cumsum((x * x)[::-1], axis=0, dtype=np.int32)
    f = np.maximum.accumulate(-e, axis=1)
    return [(first, e), (second, f), (total, f.sum(0, dtype=np.int32)[None])]


def case_scatter_out_of_range(g: Graph) -> Expected:
    """Writes nothing, as the contract of functionalize says."""
    target = sample((4,), np.int32)
    updates = np.array([1, 2, 3, 4], np.int32)
    big = np.array([2**64 - 1, 2, 2**63, 4], np.uint64)
    e = target.copy()
    e[2] = 2
    t, u = g.input(target), g.input(updates)
    far = np.array([-5, 2, 100, 4], np.int8)
    return [(g.node("scatter", "set", t, g.input(i), u, axis=0), e) for i in (big, far)]
