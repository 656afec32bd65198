"""Graphs of every kind of node of the high-level IR, with what NumPy computes for them.

A case is a function `case_<kind>_<what>` that builds a graph and returns its outputs with the
arrays that they must equal. Here: numbers, memory, arithmetic and movement; the others are in
node_access_cases.py and node_program_cases.py."""

from __future__ import annotations

import itertools

import node_access_cases
import node_program_cases
import numpy as np
from node_graphs import BF16, DTYPES, SPECIAL, Case, Expected, Graph, sample

from rune_jit import ir

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


def case_iota_counts(g: Graph) -> Expected:
    counts = [g.node("iota", name, shape=[n]) for name, _, n in _IOTAS]
    long = counts[-1]
    table = g.node("reshape", long, shape=[41, 100])
    padded = g.node("pad", table, widths=[(1, 2), (3, 0)])
    e = np.arange(4100, dtype=np.int32).reshape(41, 100)
    picked = g.vconst([4099, 0, 77], np.int64)
    return [
        *((v, np.arange(n, dtype=d)) for v, (_, d, n) in zip(counts, _IOTAS, strict=True)),
        (g.node("flip", g.node("permute", table, axes=[1, 0]), axes=[0]), e.T[::-1]),
        (g.node("cast", padded, "f64"), np.pad(e, [(1, 2), (3, 0)]).astype(float)),
        (g.node("reduce_axis", "max", table, axes=[0]), e.max(0, keepdims=True)),
        (g.node("gather", long, picked, axis=0), e.ravel()[[4099, 0, 77]]),
        (g.node("cat", table, table, axis=1), np.concatenate([e, e], 1)),
    ]


_IOTAS = (
    ("i8", np.int8, 100),
    ("u8", np.uint8, 256),
    ("u16", np.uint16, 70),
    ("i64", np.int64, 1),
    ("i32", np.int32, 4100),
)


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
        if source == BF16 and target.kind in "iu":
            x = np.abs(x)  # ml_dtypes gives 0 for numbers that do not fit
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


CASES: dict[str, Case] = {
    name.removeprefix("case_"): f
    for names in (globals(), vars(node_access_cases), vars(node_program_cases))
    for name, f in list(names.items())
    if name.startswith("case_")
}
