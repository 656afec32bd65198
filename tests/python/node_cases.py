"""Graphs of every kind of node of the high-level IR, with what NumPy computes for them.

A case is a function `case_<kind>_<what>` that builds a graph and returns its outputs with the
arrays that they must equal."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from devices import HAS_FLOAT64

from rune_jit import ir

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOAT64 = [np.dtype("float64")] if HAS_FLOAT64 else []
DTYPES = [
    *(np.dtype(kind + str(size)) for kind in "iu" for size in (1, 2, 4, 8)),
    *(np.dtype(name) for name in ("bool", "float16", "float32")),
    BF16,
    *FLOAT64,
]
SPECIAL = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 3e38], np.float32)


class Graph(ir.Builder):
    """A builder that remembers the arguments of its placeholders."""

    def __init__(self) -> None:
        super().__init__()
        self.arguments: list[np.ndarray] = []

    def input(self, array: Any) -> ir.Value:
        array = np.asarray(array)
        self.arguments.append(array)
        return self.placeholder(array.dtype, array.shape)


Expected = list[tuple[ir.Value, Any]]
Case = Callable[[Graph], Expected]


def sample(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).integers(-50, 50, shape)
    if np.dtype(dtype).kind in "u":
        values = np.abs(values)
    return (values > 0 if np.dtype(dtype) == bool else values).astype(dtype)


# Complex numbers.


def sample_complex(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return (sample(shape, seed=seed) + 1j * sample(shape, seed=seed + 10)).astype(np.complex64)


def case_complex_parts(g: Graph) -> Expected:
    z = sample_complex((4, 6))[::2, ::-1]
    v = g.input(z)
    swapped = g.node("complex", g.node("imag", v), g.node("real", v))
    number = g.constant(2 - 3j, np.complex64)
    return [(v, z), (swapped, z.imag + 1j * z.real), (number, np.complex64(2 - 3j))]


def case_complex_part_by_part(g: Graph) -> Expected:
    x, y, c = sample_complex((4, 6)), sample_complex((4, 6), 1), sample((4, 6)) > 0
    v, w, mask = g.input(x), g.input(y), g.input(c)
    index = g.vconst([3, 1], np.int64)
    both = g.node("gather", g.node("cat", v, w, axis=0), index, axis=0)
    scattered = g.node("scatter", "add", v, index, both, axis=0)
    e = x.copy()
    e[[3, 1]] += x[[3, 1]]
    total = g.node("reduce_axis", "add", g.node("pad", v, widths=[(1, 0), (0, 2)]), axes=[0])
    return [
        (g.node("binop", "sub", v, g.node("unary", "neg", w)), x + y),
        (g.node("ternary", "where", mask, v, w), np.where(c, x, y)),
        (g.node("permute", g.node("flip", v, axes=[1]), axes=[1, 0]), x[:, ::-1].T),
        (scattered, e),
        (total, np.pad(x.sum(0, keepdims=True), ((0, 0), (0, 2)))),
        (g.node("scan", "add", v, axis=1), np.cumsum(x, 1)),
    ]


def case_complex_casts(g: Graph) -> Expected:
    x = sample_complex((6,))
    x[:2] = [0, 1j]
    v = g.input(x)
    real = g.node("cast", g.node("cast", v, "i16"), "c64")
    return [(g.node("cast", v, "bool"), x != 0), (real, x.real.astype(np.int16).astype("F"))]


def case_complex_contract(g: Graph) -> Expected:
    x, y = sample_complex((3, 4, 5)), sample_complex((3, 5, 2), 1)
    product = g.node("contract", g.input(x), g.input(y), contract=[(2, 1)], batch=[(0, 0)])
    return [(product, x @ y)]


def case_complex_writes(g: Graph) -> Expected:
    x, y = sample_complex((6,)), sample_complex((2,), 1)
    v = g.input(x)
    before = g.node("unary", "neg", v)
    g.node("sink", g.node("assign", g.node("flip", v, axes=[0]), g.input(y), boxes=[[(1, 3)]]))
    e = x.copy()
    e[::-1][1:3] = y
    return [(before, -x), (v, e), (g.node("real", v), e.real)]


def case_complex_host_callback(g: Graph) -> Expected:
    x = sample_complex((4,))

    def function(a: np.ndarray) -> list[np.ndarray]:
        assert a.dtype == np.complex64
        return [a.conj(), np.abs(a)]

    results = [(np.complex64, (4,)), (np.float32, (4,))]
    v = g.node("unary", "neg", g.input(x))
    conjugate, size = g.host_callback("conj", function, v, results=results)
    return [(g.node("unary", "neg", conjugate), x.conj()), (size, np.abs(x))]


# Memory and constants.


def case_placeholder_strides(g: Graph) -> Expected:
    x = sample((4, 6))
    arrays = [x, x[::2, ::-1], x.T, np.broadcast_to(x[:1], (4, 6)), np.float32(2), x[:0], x[:, :1]]
    return [(g.input(a), a) for a in arrays]


def case_const_scalar_all_dtypes(g: Graph) -> Expected:
    values = [*((v, d) for d in DTYPES for v in (0, 1, 100)), (np.nan, np.float32), (-0.0, BF16)]
    values += [(2**64 - 1, np.uint64), (-(2**63), np.int64), (-np.inf, np.float16)]
    return [(g.constant(v, d), np.asarray(v).astype(d)) for v, d in values]


def case_vconst_all_dtypes(g: Graph) -> Expected:
    return [(g.vconst([1, 0, 7, 100], d), np.array([1, 0, 7, 100]).astype(d)) for d in DTYPES]


def case_vconst_special(g: Graph) -> Expected:
    c = g.vconst(SPECIAL.tolist()[:7], np.float32)
    return [(c, SPECIAL[:7]), (g.node("flip", c, axes=[0]), SPECIAL[6::-1])]


def case_buffer_view_offset(g: Graph) -> Expected:
    x = sample((20,))
    v = g.input(x)
    inner = g.node("buffer_view", v, size=12, offset=5)
    return [
        (inner, x[5:17]),
        (g.node("buffer_view", inner, size=3, offset=9), x[14:17]),
        (g.node("buffer_view", v, size=0, offset=20), x[20:]),
        (g.node("buffer_view", g.vconst([4, 5, 6], np.int8), size=2, offset=1), np.int8([5, 6])),
    ]


# Arithmetic (every operation and dtype is in test_ops.py).


def case_unary_special(g: Graph) -> Expected:
    x = g.input(SPECIAL)
    return [
        (g.node("unary", op, x), f(SPECIAL))
        for op, f in (("neg", np.negative), ("floor", np.floor))
    ]


def case_binop_special(g: Graph) -> Expected:
    a, b = (m.ravel() for m in np.meshgrid(SPECIAL, SPECIAL))
    x, y = g.input(a), g.input(b)
    functions = {"add": np.add, "mul": np.multiply, "cmplt": np.less, "fdiv": np.divide}
    with np.errstate(all="ignore"):
        result: Expected = [(g.node("binop", op, x, y), f(a, b)) for op, f in functions.items()]
    # Which zero is the larger one is open, in NumPy too.
    largest = g.node("unary", "abs", g.node("binop", "max", x, y))
    return [*result, (largest, np.abs(np.maximum(a, b)))]


def case_ternary_where_mulacc(g: Graph) -> Expected:
    c, x, y = sample((5, 3), bool), sample((5, 3), seed=1), sample((5, 3), seed=2)
    vc, vx, vy = g.input(c), g.input(x), g.input(y)
    return [
        (g.node("ternary", "where", vc, vx, vy), np.where(c, x, y)),
        (g.node("ternary", "mulacc", vx, vy, vx), x * y + x),
    ]


def case_cast_all_pairs(g: Graph) -> Expected:
    result: Expected = []
    for source, target in itertools.product(DTYPES, DTYPES):
        x = sample((37,), source)
        result.append((g.node("cast", ir._dtype_text(target), g.input(x)), x.astype(target)))
    return result


def case_bitcast_all_pairs(g: Graph) -> Expected:
    result: Expected = []
    for source, target in itertools.product(DTYPES, DTYPES):
        if source.itemsize != target.itemsize or target.kind == "b":
            continue
        x = sample((21,), source)
        result.append((g.node("bitcast", ir._dtype_text(target), g.input(x)), x.view(target)))
    flags = np.array([0, 1, 1], np.uint8)
    return [*result, (g.node("bitcast", "bool", g.input(flags)), flags.view(bool))]


# Movement.


def case_reshape_permute_expand(g: Graph) -> Expected:
    x = sample((4, 6))
    v = g.input(x)
    permuted = g.node("permute", v, axes=[1, 0])
    column = g.node("reshape", v, shape=[24, 1])
    return [
        (permuted, x.T),
        (g.node("reshape", permuted, shape=[3, 8]), x.T.reshape(3, 8)),
        (g.node("expand", column, shape=[24, 5]), np.broadcast_to(x.reshape(24, 1), (24, 5))),
        (g.node("expand", column, shape=[24, 0]), np.zeros((24, 0), np.float32)),
        (g.node("reshape", g.input(np.float32(3)), shape=[1, 1]), np.float32([[3]])),
    ]


def case_permute_3d(g: Graph) -> Expected:
    x = sample((2, 3, 5), np.int16)
    v = g.input(x)
    axes = [list(p) for p in itertools.permutations(range(3))]
    return [(g.node("permute", v, axes=p), x.transpose(p)) for p in axes]


def case_expand_inner(g: Graph) -> Expected:
    x = sample((3, 1, 2))
    return [(g.node("expand", g.input(x), shape=[3, 4, 2]), np.broadcast_to(x, (3, 4, 2)))]


def case_pad_shrink_flip(g: Graph) -> Expected:
    x = sample((5, 7))
    v = g.input(x)
    padded = g.node("pad", v, widths=[(1, 2), (0, 3)])
    e = np.pad(x, ((1, 2), (0, 3)))
    return [
        (padded, e),
        (g.node("shrink", padded, limits=[(0, 8), (2, 9)]), e[:, 2:9]),
        (g.node("flip", padded, axes=[0, 1]), e[::-1, ::-1]),
        (g.node("shrink", v, limits=[(2, 2), (0, 7)]), x[2:2]),
        (g.node("pad", g.input(x[:0]), widths=[(2, 1), (1, 1)]), np.zeros((3, 9), np.float32)),
    ]


def case_shrink_odd(g: Graph) -> Expected:
    x = sample((31,))
    return [(g.node("shrink", g.input(x), limits=[(3, 30)]), x[3:30])]


def case_flip_strided(g: Graph) -> Expected:
    x = sample((6, 6, 2), np.int32)[::-2, 1::2]
    return [(g.node("flip", g.input(x), axes=[0, 2]), x[::-1, :, ::-1])]


def case_view_masks(g: Graph) -> Expected:
    x = sample((8, 4))
    v = g.input(x)
    # Rows 0, 2, 4, 6 backwards, the first column masked; then read as 2 x 8.
    strided = {"shape": [4, 4], "strides": [8, -1], "offset": 3, "mask": [(0, 4), (1, 4)]}
    flat = {"shape": [2, 8], "strides": [8, 1], "offset": 0}
    e = x[::2, ::-1].copy()
    e[:, 0] = 0
    window = {"shape": [3, 4], "strides": [1, 1], "offset": 2}
    windows = np.lib.stride_tricks.sliding_window_view(x.ravel()[2:8], 4)
    return [
        (g.node("view", v, {"views": [strided]}), e),
        (g.node("view", v, {"views": [strided, flat]}), e.reshape(2, 8)),
        (g.node("view", v, {"views": [window]}), windows),
    ]


def case_valid_masks(g: Graph) -> Expected:
    view = {"shape": [5, 6], "strides": [4, 1], "offset": -5, "mask": [(1, 4), (1, 5)]}
    shifted = {"shape": [3, 6], "strides": [6, 1], "offset": 6}
    e = np.zeros((5, 6), bool)
    e[1:4, 1:5] = True
    v = g.input(sample((3, 4)))
    return [
        (g.node("valid", v, {"views": [view]}), e),
        (g.node("valid", v, {"views": [view, shifted]}), e[1:4]),
        (
            g.node("valid", v, {"views": [{"shape": [2], "strides": [1], "offset": 0}]}),
            [True, True],
        ),
    ]


def case_cat_axes(g: Graph) -> Expected:
    arrays = [sample(s, seed=i) for i, s in enumerate([(2, 3, 4), (2, 3, 4), (2, 3, 4)])]
    result: Expected = [
        (g.node("cat", *map(g.input, arrays), axis=axis), np.concatenate(arrays, axis))
        for axis in range(3)
    ]
    odd = [sample((n,), np.int8, n) for n in (3, 0, 1, 17, 40)]
    return [*result, (g.node("cat", *map(g.input, odd), axis=0), np.concatenate(odd))]


def case_cat_computed(g: Graph) -> Expected:
    x, y = sample((3, 5)), sample((4, 5), seed=1)
    a, b = g.node("unary", "neg", g.input(x)), g.node("flip", g.input(y), axes=[0])
    joined = g.node("cat", a, b, axis=0)
    e = np.concatenate([-x, y[::-1]])
    return [(g.node("reduce_axis", "add", joined, axes=[0]), e.sum(0, keepdims=True)), (joined, e)]


def case_vectorize_stack(g: Graph) -> Expected:
    arrays = [sample((3, 4), seed=i) for i in range(3)]
    one = sample((5,), np.int64)
    scalars = [np.int8(3), np.int8(-4)]
    return [
        (g.node("vectorize", *map(g.input, arrays)), np.stack(arrays, -1)),
        (g.node("vectorize", g.input(one)), one[:, None]),
        (g.node("vectorize", *map(g.input, scalars)), np.array(scalars)),
    ]


def case_shuffle_lanes(g: Graph) -> Expected:
    x = sample((3, 9))
    v = g.input(x)
    lists = [
        [0],
        [2, 3, 4],
        [4, 3, 2],
        [1, 1],
        [8, 0, 1, 2, 7],
        [0, 2, 4, 6, 8, 1, 3],
        [0, 0, 1, 0],
    ]
    return [
        (g.node("shuffle", v, indices=lanes), x[:, lanes]) for lanes in [*lists, list(range(9))]
    ] + [(g.node("shuffle", v, indices=[]), x[:, :0])]


def case_noop_identities(g: Graph) -> Expected:
    x = sample((3, 4))
    v = g.input(x)
    y = g.node("unary", "neg", v)
    return [(g.node("noop", y), -x), (g.node("noop"), np.zeros(0, bool))]


def case_detach_identity(g: Graph) -> Expected:
    return [(g.node("detach", g.input(SPECIAL)), SPECIAL)]


def case_contiguous_backward_identity(g: Graph) -> Expected:
    return [(g.node("contiguous_backward", g.input(SPECIAL)), SPECIAL)]


def case_contiguous_materialises(g: Graph) -> Expected:
    x = sample((6, 4))
    stored = g.node("contiguous", g.node("permute", g.input(x), axes=[1, 0]))
    return [(g.node("reshape", stored, shape=[24]), x.T.ravel()), (stored, x.T)]


def case_copy_same_device(g: Graph) -> Expected:
    x = sample((5,))
    v = g.input(x)
    clone = g.node("copy", v, device="", clone=True)
    return [(clone, x), (g.node("copy", v, device="", clone=False), x)]


def case_fuse_reduction(g: Graph) -> Expected:
    x = sample((4, 8))
    fused = g.node("fuse", g.node("reduce_axis", "add", g.input(x), axes=[1]))
    wide = g.node("expand", fused, shape=[4, 8])
    return [(wide, np.broadcast_to(x.sum(1, keepdims=True), (4, 8)))]


def case_unroll_marker(g: Graph) -> Expected:
    x = sample((4, 8))
    v = g.node("unroll", g.node("unary", "neg", g.input(x)), factor=4)
    return [(v, -x), (g.node("reduce_axis", "max", v, axes=[1]), (-x).max(1, keepdims=True))]


def case_kernel_marker(g: Graph) -> Expected:
    x = sample((4, 8))
    v = g.input(x)
    y = g.node("unary", "neg", v)
    k = g.node("kernel", y, v, name="mine", local_dims=0, upcasted=0, dont_use_locals=False)
    return [(g.node("binop", "add", k, v), np.zeros_like(x))]


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


# Assign and places.


def case_assign_boxes(g: Graph) -> Expected:
    x, a, b = sample((5, 6)), sample((2, 3), seed=1), sample((5, 2), seed=2)
    boxes = [[(1, 3), (2, 5)], [(0, 5), (4, 6)]]
    e = x.copy()
    e[1:3, 2:5] = a
    e[:, 4:6] = b
    return [(g.node("assign", g.input(x), g.input(a), g.input(b), boxes=boxes), e)]


def case_assign_order(g: Graph) -> Expected:
    """Earlier reads see the old contents, later ones the new; a result is a value."""
    x, a, b = sample((6,)), sample((6,), seed=1), sample((2,), seed=2)
    v, va, vb = g.input(x), g.input(a), g.input(b)
    before = g.node("unary", "neg", v)
    first = g.node("assign", v, va, boxes=[[]])
    between = g.node("unary", "neg", v)
    second = g.node("assign", v, vb, boxes=[[(1, 3)]])
    after = g.node("binop", "add", v, v)
    g.node("sink", second)
    e = a.copy()
    e[1:3] = b
    return [(before, -x), (between, -a), (first, a), (after, e + e), (v, e), (second, e)]


def case_assign_through_movement(g: Graph) -> Expected:
    x = sample((4, 6), np.int32)
    v = g.input(x)
    place = g.node("shrink", v, limits=[(1, 4), (0, 5)])
    place = g.node("flip", g.node("permute", place, axes=[1, 0]), axes=[0])
    place = g.node("reshape", place, shape=[15])
    part = g.node("buffer_view", place, size=6, offset=4)
    u = sample((6,), np.int32, 1)
    written = g.node("assign", part, g.input(u), boxes=[[]])
    padded = g.node("pad", v, widths=[(1, 0), (0, 2)])
    w = sample((5, 3), np.int32, 2)
    more = g.node("assign", padded, g.input(w), boxes=[[(0, 5), (5, 8)]])
    g.node("sink", written, more)
    e = x.copy()
    flat = e[1:4, 0:5].T[::-1].ravel()
    flat[4:10] = u
    e[1:4, 0:5] = flat.reshape(5, 3)[::-1].T
    e[:, 5] = w[1:, 0]  # the rest is padding
    negated = g.node("unary", "neg", part)
    return [(written, u), (v, e), (negated, -u), (more, np.pad(e, ((1, 0), (0, 2))))]


def case_assign_of_itself(g: Graph) -> Expected:
    x = sample((7,))
    v = g.input(x)
    flipped = g.node("flip", v, axes=[0])
    swapped = g.node("assign", v, flipped, boxes=[[]])
    again = g.node("assign", swapped, g.node("unary", "neg", swapped), boxes=[[]])
    return [(swapped, x[::-1]), (again, -x[::-1]), (flipped, -x)]


def case_buffer_assigned_in_parts(g: Graph) -> Expected:
    a, b = sample((2, 3), seed=1), sample((2, 3), seed=2)
    buffer = g.buffer(np.float32, (4, 3))
    half = g.node("assign", buffer, g.input(a), boxes=[[(0, 2), (0, 3)]])
    done = g.node("assign", half, g.input(b), boxes=[[(2, 4), (0, 3)]])
    empty = g.buffer(np.int8, (0, 3))
    return [
        (done, np.concatenate([a, b])),
        (g.node("unary", "neg", buffer), -np.concatenate([a, b])),
        (empty, np.zeros((0, 3), np.int8)),
    ]


# Program structure.


def case_sink_keeps(g: Graph) -> Expected:
    x = sample((4, 5))
    v = g.input(x)
    hidden = g.node("reduce_axis", "add", g.node("unary", "exp", v), axes=[1])
    sink = g.node("sink", hidden, v, g.constant(1, np.int8))
    return [(g.node("unary", "neg", v), -x), (sink, np.zeros(0, bool))]


def case_unique_id(g: Graph) -> Expected:
    a, b = g.node("unique", id=7), g.node("unique", id=8)
    return [(a, np.int64(7)), (g.node("binop", "add", a, b), np.int64(15))]


def case_bind_value(g: Graph) -> Expected:
    n = g.node("define_var", {"name": "n", "min": -1, "max": 100})
    return [
        (g.node("bind", n, value=42), np.int64(42)),
        (g.node("bind", n, value=-1), np.int64(-1)),
    ]


def case_define_var_bound_only(g: Graph) -> Expected:
    n = g.node("define_var", {"name": "rows", "min": 1, "max": 8})
    x = np.int64(5)
    return [(g.node("binop", "mul", g.node("bind", n, value=3), g.input(x)), np.int64(15))]


def case_loop_counter_and_carry(g: Graph) -> Expected:
    """x[i] += x[i - 1] for the rows of x, from the last to the second, and their number."""
    x = sample((6, 20), np.int32)
    v, zero = g.input(x), g.constant(0, np.int64)
    counter = g.node("loop_counter", {"name": "i", "min": 1, "max": 5})
    i = g._core.size(counter.number)
    rows = g.node("carry", v, counter, index=0)
    number = g.node("carry", zero, counter, index=1)
    here = g.node("shrink", rows, limits=[(i, i.plus(1)), (0, 20)])
    before = g.node("shrink", rows, limits=[(i.plus(-1), i), (0, 20)])
    new = g.node("update", rows, g.node("binop", "add", here, before), offsets=[i, 0])
    total = g.node("binop", "add", number, counter)
    end = g.node("end_loop", counter, new, total, v, zero, start=5, stop=0, step=-1)
    expected = x.copy()
    for k in range(5, 0, -1):
        expected[k] += expected[k - 1]
    return [
        (g.node("loop_result", end, new, index=0), expected),
        (g.node("loop_result", end, total, index=1), np.int64(15)),
    ]


def case_loop_size(g: Graph) -> Expected:
    """Sums of the rows' first elements, as many as another array says."""
    x, counts = sample((4, 6)), np.array([3, 0, 6, 1])
    v, n = g.input(x), g.input(counts)
    total = g.constant(0, np.float32)
    counter = g.node("loop_counter", {"name": "i", "min": 0, "max": 3})
    i = g._core.size(counter.number)
    before = g.node("carry", total, counter, index=0)
    count = g.node("reshape", g.node("shrink", n, limits=[(i, i.plus(1))]), shape=[])
    size = g.node("loop_size", count, counter, {"name": "n", "min": 0, "max": 6})
    n = g._core.size(size.number)
    row = g.node("shrink", v, limits=[(i, i.plus(1)), (0, n)])
    row = g.node("reshape", g.node("reduce_axis", "add", row, axes=[1]), shape=[])
    after = g.node("binop", "add", before, row)
    end = g.node("end_loop", counter, after, total, start=0, stop=4, step=1)
    expected = np.float32(0)
    for k in range(4):
        expected = np.float32(expected + x[k, : counts[k]].sum())
    return [(g.node("loop_result", end, after, index=0), expected)]


def case_loop_nest_of_text(g: Graph) -> Expected:
    nest = """graph {
  %0 = placeholder index=0 : f32[3]
  %1 = loop_counter {name="i" min=0 max=3} : i64[]
  %2 = carry index=0 %0 %1 : f32[3]
  %3 = unary neg %2 : f32[3]
  %4 = end_loop start=0 stop=3 step=1 %1 %3 %0 : bool[0]
  %5 = loop_result index=0 %4 %3 : f32[3]
  return %5
}"""
    x = sample((3,))
    return [(g.node("loop_nest", f"result=0 graph={nest}", g.input(x)), -x)]


def case_device_no_value(g: Graph) -> Expected:
    return [
        (g.node("unary", "neg", g.input(SPECIAL)), -SPECIAL),
        (g.node("noop"), np.zeros(0, bool)),
    ]


def case_multi_shards(g: Graph) -> Expected:
    a, b = sample((2, 3)), sample((4, 3), seed=1)
    x, y, z = g.input(a), g.input(b), g.node("unary", "neg", g.input(a))
    return [
        (g.node("multi", x, y, axis=0, real=[True, True]), np.concatenate([a, b])),
        (g.node("multi", x, y, axis=0, real=[True, False]), np.concatenate([a, np.zeros_like(b)])),
        (g.node("multi", x, z, real=[True, True]), a),
        (g.node("multi", x, z, real=[False, True]), -a),
    ]


# Random123's known answers for threefry2x32 with 20 rounds: counter, key, result.
THREEFRY = [
    ([0, 0], [0, 0], [0x6B200159, 0x99BA4EFE]),
    ([0xFFFFFFFF] * 2, [0xFFFFFFFF] * 2, [0x1CB996FC, 0xBB002BE7]),
    ([0x243F6A88, 0x85A308D3], [0x13198A2E, 0x03707344], [0xC4923A9C, 0x483DF7A0]),
]


def case_threefry_known_answers(g: Graph) -> Expected:
    counters, keys, results = (
        np.array(column, np.uint32) for column in zip(*THREEFRY, strict=True)
    )
    single = g.node("threefry", g.input(counters[2]), g.input(keys[2]))
    empty = np.zeros((0, 2), np.uint32)
    return [
        (g.node("threefry", g.input(counters), g.input(keys)), results),
        (single, results[2]),
        (g.node("threefry", g.input(empty), g.input(empty)), empty),
    ]


def case_threefry_chained(g: Graph) -> Expected:
    counters, keys, results = (
        np.array(column, np.uint32) for column in zip(*THREEFRY, strict=True)
    )
    first = g.node("threefry", g.input(counters), g.input(keys))
    flipped = g.node("flip", first, axes=[0])
    return [(flipped, results[::-1])]


# The user's operations.


def case_host_callback_results(g: Graph) -> Expected:
    x, y = sample((4, 3)), sample((3,), np.int64, seed=1)
    v, w = g.node("unary", "neg", g.input(x)), g.input(y)

    def function(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        return [np.sort(a, 1), np.argsort(b), a[:0]]

    results = [(np.float32, (4, 3)), (np.int64, (3,)), (np.float32, (0, 3))]
    ordered, order, nothing = g.host_callback("sorts", function, v, w, results=results)
    taken = g.node("gather", ordered, order, axis=1)
    return [(taken, np.sort(-x, 1)[:, np.argsort(y)]), (order, np.argsort(y)), (nothing, x[:0])]


def case_custom_reference(g: Graph) -> Expected:
    """Of targets without a source, between kernels; the interpreter has no source at all."""
    x, y = sample((4, 3)), sample((3,), seed=1)
    row = g.node("expand", g.node("reshape", g.input(y), shape=[1, 3]), shape=[4, 3])
    v = g.node("unary", "neg", g.input(x))
    signed = g.custom(
        "signed", v, row, dtype=np.float32, cuda="copysignf($0, $1)", reference=np.copysign
    )
    larger = g.custom("larger", v, row, dtype=bool, reference=np.greater)
    none = g.custom("none", g.input(x[:0]), dtype=np.int8, reference=lambda a: 1 / 0)
    chosen = g.node("ternary", "where", larger, signed, v)
    expected = np.copysign(-x, y)
    return [
        (signed, expected),
        (chosen, np.where(-x > y, expected, -x)),
        (g.node("reduce_axis", "add", none, axes=[1]), np.zeros((0, 1), np.int8)),
    ]


CASES: dict[str, Case] = {
    name.removeprefix("case_"): f for name, f in list(globals().items()) if name.startswith("case_")
}
