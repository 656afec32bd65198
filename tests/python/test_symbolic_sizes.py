"""Programs for a range of sizes, compiled once, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare import assert_matches, assert_same

from rune_jit import ParseError, UnsupportedOpError, ir

DEVICES = ["cpu", "interpreter"]
SIZES = [1, 2, 7, 8, 31, 64, 65, 100, 211]


class Graph(ir.Builder):
    def __init__(self, low: int = 1) -> None:
        super().__init__()
        self.n, self.bound = self.size("n", low, 211)

    def add(self, name: str, *parts: Any, **attributes: Any) -> ir.Value:
        return self.node(name, *parts, **attributes)

    def row(self, x: ir.Value) -> ir.Value:
        """[k] as [n,k]."""
        return self.add(
            "expand",
            self.add("reshape", x, shape=[1, *x.shape]),
            shape=[self.bound, *x.shape],
        )


def check(graph: Graph, outputs: list[ir.Value], device: str, reference: Any, make: Any) -> None:
    program = ir.Program(graph.finish(*outputs), device)
    for n in SIZES:
        arguments = make(n, np.random.default_rng(n))
        before = [np.array(a) for a in arguments]
        assert_matches(program.run(*arguments), reference(*arguments), 84, f"n={n}")
        assert_same(arguments, before)


@pytest.mark.parametrize("device", DEVICES)
def test_elementwise(device: str) -> None:
    g = Graph(0)
    x, b, y = (g.placeholder(np.float32, s) for s in ((g.bound, 16), (16,), (g.bound,)))
    wide = g.add("expand", g.add("reshape", y, shape=[g.bound, 1]), shape=[g.bound, 16])
    z = g.add("binop", "mul", g.add("binop", "add", x, g.row(b)), wide)
    line = g.add("unary", "sqrt", g.add("binop", "mul", y, y))
    check(
        g,
        [z, line],
        device,
        lambda x, b, y: [(x + b) * y[:, None], np.abs(y)],
        lambda n, r: [r.standard_normal(s).astype(np.float32) for s in ((n, 16), (16,), (n,))],
    )
    (empty, _) = ir.Program(g.finish(z, line), device).run(
        np.ones((0, 16), np.float32), np.ones(16, np.float32), np.ones(0, np.float32)
    )
    assert empty.shape == (0, 16)


@pytest.mark.parametrize("device", DEVICES)
def test_reductions(device: str) -> None:
    """Over the symbolic axis, over others, both, and back again; a mean by the variable's value."""
    g = Graph()
    x, i = g.placeholder(np.float32, (g.bound, 24)), g.placeholder(np.int32, (g.bound,))
    total = g.add("reduce_axis", "add", x, axes=[0])
    n = g.add("reshape", g.add("cast", "f32", g.n), shape=[1, 1])
    mean = g.add("binop", "fdiv", total, g.add("expand", n, shape=[1, 24]))
    mean_wide = g.add("expand", mean, shape=[g.bound, 24])
    centred = g.add("binop", "sub", x, mean_wide)
    rows = g.add("reduce_axis", "max", centred, axes=[1])
    exp = g.add(
        "unary", "exp", g.add("binop", "sub", centred, g.add("expand", rows, shape=[g.bound, 24]))
    )
    norm = g.add("expand", g.add("reduce_axis", "add", exp, axes=[1]), shape=[g.bound, 24])
    softmax = g.add("binop", "fdiv", exp, norm)
    every = g.add("reduce_axis", "min", x, axes=[0, 1])
    product = g.add("reduce_axis", "prod", i, axes=[0])
    constant = g.add(
        "expand", g.add("reshape", g.constant(3, np.int32), shape=[1]), shape=[g.bound]
    )
    count = g.add("reduce_axis", "add", constant, axes=[0])

    def reference(x: Any, i: Any) -> list[Any]:
        c = x - x.mean(0, keepdims=True)
        e = np.exp(c - c.max(1, keepdims=True))
        return [
            x.sum(0, keepdims=True),
            e / e.sum(1, keepdims=True),
            x.min(keepdims=True),
            i.prod(keepdims=True, dtype=np.int32),
            np.array([3 * len(i)], np.int32),
        ]

    check(
        g,
        [total, softmax, every, product, count],
        device,
        reference,
        lambda n, r: [
            r.standard_normal((n, 24)).astype(np.float32),
            r.integers(1, 3, n).astype(np.int32),
        ],
    )


@pytest.mark.parametrize("device", DEVICES)
def test_contract_and_order(device: str) -> None:
    """Products over and along the axis; transposes that are stored; scans, gathers, scatters."""
    g = Graph()
    x, w = g.placeholder(np.float32, (g.bound, 20)), g.placeholder(np.float32, (20, 33))
    i = g.placeholder(np.int64, (g.bound,))
    product = g.add("contract", x, w, contract=[(1, 0)], batch=[])
    gram = g.add("contract", x, x, contract=[(0, 0)], batch=[])
    moved = g.add("contiguous", g.add("permute", x, axes=[1, 0]))
    columns = g.add("unary", "neg", moved)
    back = g.add("permute", columns, axes=[1, 0])
    scan = g.add("scan", "add", x, axis=0)
    across = g.add("scan", "max", x, axis=1)
    rows = g.add("gather", w, i, axis=0)
    zeros = g.add("expand", g.add("reshape", g.constant(0, np.float32), shape=[1]), shape=[20])
    ones = g.add("expand", g.add("reshape", g.constant(1, np.float32), shape=[1]), shape=[g.bound])
    bins = g.add("scatter", "add", zeros, i, ones, axis=0)
    split = g.add("reshape", x, shape=[g.bound, 4, 5])
    quarters = g.add("reduce_axis", "add", split, axes=[1])
    first = g.add("shrink", x, limits=[(0, 1), (0, 20)])  # of any size
    ends = g.add("gather", x, g.vconst([0, -1], np.int64), axis=0)
    marked = g.add("scatter", "set", x, g.vconst([-1], np.int64), first, axis=0)

    def reference(x: Any, w: Any, i: Any) -> list[Any]:
        return [
            x @ w,
            x.T @ x,
            -x,
            -x.T,
            np.cumsum(x, 0),
            np.maximum.accumulate(x, 1),
            w[i],
            np.bincount(i, minlength=20).astype(np.float32),
            x.reshape(-1, 4, 5).sum(1, keepdims=True),
            x[[0, -1]],
            np.concatenate([x[:-1], x[:1]]),
        ]

    check(
        g,
        [product, gram, back, columns, scan, across, rows, bins, quarters, ends, marked],
        device,
        reference,
        lambda n, r: [
            r.standard_normal((n, 20)).astype(np.float32),
            r.standard_normal((20, 33)).astype(np.float32),
            r.integers(0, 20, n),
        ],
    )


def test_long_axis_on_all_cores() -> None:
    g = ir.Builder()
    _, bound = g.size("n", 1, 3_000_000)
    x = g.placeholder(np.float32, (bound,))
    y = g.node("unary", "exp", x)
    program = ir.Program(g.finish(y, g.node("reduce_axis", "max", y, axes=[0])), "cpu")
    for n in (1, 1000, 2_999_999):
        a = np.random.default_rng(n).random(n, np.float32)
        result, largest = program.run(a)
        np.testing.assert_allclose(result, np.exp(a), rtol=1e-6)
        assert largest[0] == result.max()


@pytest.mark.parametrize("device", DEVICES)
def test_variables_as_numbers(device: str) -> None:
    g = ir.Builder()
    n = g.node("define_var", {"name": "n", "min": -5, "max": 100})
    m = g.node("define_var", {"name": "m", "min": 0, "max": 9})
    x = g.placeholder(np.int64, ())
    program = ir.Program(
        g.finish(g.node("binop", "sub", g.node("binop", "mul", n, x), m), m), device
    )
    for a, b in ((-5, 9), (100, 0)):
        assert program.run(np.int64(7), n=a, m=b) == [7 * a - b, b]
    with pytest.raises(ValueError, match="cannot run without a value of m"):
        program.run(np.int64(7), n=1)
    with pytest.raises(ValueError, match=r"n = 101 .it lies between -5 and 100"):
        program.run(np.int64(7), n=101, m=1)
    with pytest.raises(ValueError, match="cannot set k"):
        program.run(np.int64(7), n=1, m=1, k=1)


def test_sizes_of_arguments() -> None:
    g = Graph()
    x, y = g.placeholder(np.float32, (g.bound,)), g.placeholder(np.float32, (g.bound,))
    program = ir.Program(g.finish(g.add("binop", "add", x, y)), "cpu")
    ones = np.ones(300, np.float32)
    with pytest.raises(ValueError, match=r"n = 3 and 4 .two arguments differ"):
        program.run(ones[:3], ones[:4])
    with pytest.raises(ValueError, match=r"n = 300 .it lies between 1 and 211"):
        program.run(ones, ones)
    with pytest.raises(ValueError, match=r"n = 0 "):
        program.run(ones[:0], ones[:0])


@pytest.mark.parametrize("device", DEVICES)
def test_affine_sizes(device: str) -> None:
    """Padding, cutting, joining, merging and splitting along the axis give sizes in terms of it."""
    g = Graph(low=2)
    n, m = g.bound, g.size("m", 1, 211)[1]
    x, y = g.placeholder(np.float32, (n, 4)), g.placeholder(np.float32, (m, 4))
    wide = g.placeholder(np.float32, (3, n))
    padded = g.add("pad", x, widths=[(1, 2), (0, 0)])
    inner = g.add("shrink", x, limits=[(1, n - 1), (0, 4)])
    joined = g.add("cat", x, y, inner, axis=0)
    flat = g.add("reshape", joined, shape=[8 * n + 4 * m - 8])
    pairs = g.add("reshape", x, shape=[2 * n, 2])
    flipped = g.add("flip", wide, axes=[1])
    shifted = g.add(
        "binop",
        "sub",
        g.add("shrink", x, limits=[(1, n), (0, 4)]),
        g.add("shrink", x, limits=[(0, n - 1), (0, 4)]),
    )
    total = g.add("reduce_axis", "add", joined, axes=[0, 1])
    gram = g.add("contract", joined, joined, contract=[(0, 0)], batch=[])
    scan = g.add("scan", "add", padded, axis=0)
    outputs = [padded, inner, joined, flat, pairs, flipped, shifted, total, gram, scan]
    program = ir.Program(g.finish(*outputs), device)
    for n_now, m_now in ((2, 1), (7, 64), (211, 3), (64, 211)):
        rng = np.random.default_rng(n_now)
        a, b = (rng.standard_normal((k, 4)).astype(np.float32) for k in (n_now, m_now))
        c = rng.standard_normal((3, n_now)).astype(np.float32)
        both = np.concatenate([a, b, a[1:-1]])
        around = np.pad(a, [(1, 2), (0, 0)])
        expected = [
            around,
            a[1:-1],
            both,
            both.ravel(),
            a.reshape(-1, 2),
            c[:, ::-1],
            np.diff(a, axis=0),
            both.sum(keepdims=True),
            both.T @ both,
            np.cumsum(around, 0),
        ]
        for i, (actual, want) in enumerate(zip(program.run(a, b, c), expected, strict=True)):
            where = f"output {i}, n={n_now}, m={m_now}"
            assert actual.shape == want.shape, where
            np.testing.assert_allclose(actual, want, rtol=1e-4, atol=1e-4, err_msg=where)


def test_what_a_size_cannot_do() -> None:
    def refuse(build: Any, match: str) -> None:
        g = Graph()
        x = g.placeholder(np.float32, (g.bound, 4))
        with pytest.raises(UnsupportedOpError, match=match):
            ir.Program(g.finish(build(g, x)), "cpu")

    refuse(lambda g, x: g.add("reshape", x, shape=[4, g.bound]), r"reshape \[n,4\] to \[4,n\]")
    refuse(lambda g, x: g.add("reshape", x, shape=[844]), r"reshape \[n,4\] to \[844\]")
    refuse(
        lambda g, x: g.add("shrink", x, limits=[(0, 9), (0, 4)]),
        r"dimension 0: \[0,9\) of n\)\n.*Dim\(\"n\", min",
    )
    refuse(
        lambda g, x: g.add("binop", "add", x, g.placeholder(np.float32, (211, 4))),
        r"cannot combine \[n,4\] with \[211,4\] \(dimension 0: n and 211\)",
    )
    refuse(
        lambda g, x: g.add(
            "binop", "add", x, g.placeholder(np.float32, (g.size("m", 1, 211)[1], 4))
        ),
        r"dimension 0: n and m",
    )


def test_verifier_wants_declarations() -> None:
    with pytest.raises(ParseError, match="the size n is not declared"):
        ir.parse("graph { %0 = placeholder index=0 : f32[n] return %0 }")
