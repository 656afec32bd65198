"""Every kind of node of the high-level IR, on every device, against NumPy (node_cases.py).

A kind without a case fails test_every_kind_has_a_case."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import devices, flushed
from node_cases import BF16, CASES, ERRORS_ONLY, SPECIAL, Graph, sample

from rune_jit import UnsupportedOpError, ir

DEVICES = devices("cpu", "interpreter")


def run(graph: Graph, outputs: list[ir.Value], device: str) -> list[Any]:
    return ir.Program(graph.finish(*outputs), device).run(*graph.arguments)


def assert_same(actual: Any, expected: Any, exact: bool = True) -> None:
    expected = np.asarray(expected)
    assert np.shape(actual) == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
        return
    a, e = np.asarray(actual).astype(np.float64), expected.astype(np.float64)
    if exact:
        np.testing.assert_array_equal(a, e)
        np.testing.assert_array_equal(np.signbit(a)[a == 0], np.signbit(e)[e == 0])
    else:
        eps = 2.0**-7 if expected.dtype == BF16 else float(np.finfo(expected.dtype).eps)
        np.testing.assert_allclose(a, e, rtol=16 * eps, atol=16 * eps)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_node(name: str, device: str) -> None:
    graph = Graph()
    expected = CASES[name](graph)
    assert expected
    results = run(graph, [v for v, _ in expected], device)
    for actual, (_, want) in zip(results, expected, strict=True):
        assert_same(flushed(actual), flushed(np.asarray(want)))


def test_every_kind_has_a_case() -> None:
    tested = {*ERRORS_ONLY, "host_callback"}  # test_host_callbacks.py
    for case in CASES.values():
        graph = Graph()
        expected = case(graph)
        text = str(graph.finish(*(v for v, _ in expected)))
        tested |= set(re.findall(r"%\d+ = (\w+)", text))
        assert str(ir.parse(text)) == text
    assert set(ir.node_kinds()) - tested == {"device"}


@pytest.mark.parametrize("device", DEVICES)
def test_device_node_names_this_device(device: str) -> None:
    g = Graph()
    x = g.input(SPECIAL)
    g.node("sink", g.node("device", name=f"{device}:0"), x)
    (result,) = run(g, [x], device)
    assert_same(result, SPECIAL)


def test_sink_computes_its_operands() -> None:
    g = Graph()
    v = g.input(sample((4, 5)))
    g.node("sink", g.node("reduce_axis", "add", v, axes=[0, 1]))
    program = ir.Program(g.finish(g.node("unary", "neg", v)), "cpu")
    assert any("reduce_axis" in kernel or "acc" in kernel for kernel in program.lowered.kernels)
    assert "reduce_axis" in program.lowered.graph


@pytest.mark.parametrize("device", DEVICES)
def test_arguments_are_not_written(device: str) -> None:
    g = Graph()
    x = sample((6,))
    v = g.input(x.copy())
    ones = g.node("expand", g.node("reshape", g.constant(1, np.float32), shape=[1]), shape=[6])
    written = g.node("assign", v, ones, boxes=[[]])
    (result,) = run(g, [written], device)
    assert_same(result, np.ones(6, np.float32))
    assert_same(g.arguments[0], x)


# Random compositions of movement, with masks, against NumPy.


def _random_movement(g: Graph, v: ir.Value, x: np.ndarray, rng: Any) -> tuple[ir.Value, np.ndarray]:
    kind = rng.choice(
        ["reshape", "permute", "expand", "pad", "shrink", "flip", "cat", "neg", "where"]
    )
    rank = x.ndim
    if kind == "reshape":
        shape = _random_shape(x.size, rng)
        return g.node("reshape", v, shape=shape), x.reshape(shape)
    if kind == "permute":
        axes = [int(a) for a in rng.permutation(rank)]
        return g.node("permute", v, axes=axes), x.transpose(axes)
    if kind == "expand":
        shape = [int(rng.integers(1, 4)) if n == 1 and x.size < 500 else n for n in x.shape]
        return g.node("expand", v, shape=shape), np.broadcast_to(x, shape)
    if kind == "pad":
        widths = [tuple(int(w) for w in rng.integers(0, 3, 2)) for _ in range(rank)]
        if x.size > 2000:
            widths = [(0, 0)] * rank
        return g.node("pad", v, widths=widths), np.pad(x, widths) if rank else x
    if kind == "shrink":
        limits = [tuple(sorted(int(b) for b in rng.integers(0, n + 1, 2))) for n in x.shape]
        limits = [
            (lo, hi) if hi > lo else (0, n) for (lo, hi), n in zip(limits, x.shape, strict=True)
        ]
        return g.node("shrink", v, limits=limits), x[tuple(slice(*b) for b in limits)]
    if kind == "flip":
        axes = [a for a in range(rank) if rng.integers(2)]
        return g.node("flip", v, axes=axes), np.flip(x, tuple(axes))
    if kind == "cat" and rank and x.size < 1000:
        axis = int(rng.integers(rank))
        other = g.node("flip", v, axes=[axis])
        return g.node("cat", v, other, axis=axis), np.concatenate([x, np.flip(x, axis)], axis)
    if kind == "where":
        positive = g.node("binop", "cmplt", v, g.node("unary", "neg", v))
        return g.node("ternary", "where", positive, v, g.node("unary", "neg", v)), -np.abs(x)
    return g.node("unary", "neg", v), -x


def _random_shape(size: int, rng: Any) -> list[int]:
    shape = []
    for factor in (2, 3, 5, 7):
        while size % factor == 0 and size and rng.integers(3):
            shape.append(factor)
            size //= factor
    shape.append(size)
    rng.shuffle(shape)
    merged = [1] if rng.integers(2) else []
    for n in shape:
        if merged and rng.integers(2):
            merged[-1] *= n
        else:
            merged.append(n)
    return [int(n) for n in merged]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(12))
def test_random_movement(seed: int, device: str) -> None:
    rng = np.random.default_rng(seed)
    g = Graph()
    x = rng.integers(-100, 100, _random_shape(int(rng.choice([12, 24, 30, 35, 60])), rng)).astype(
        np.int32
    )
    v, outputs = g.input(x), []
    for _ in range(8):
        v, x = _random_movement(g, v, x, rng)
        outputs.append((v, x))
    total = g.node("reduce_axis", "add", v, axes=list(range(x.ndim)))
    outputs.append((total, x.sum(keepdims=True, dtype=np.int32).reshape((1,) * x.ndim)))
    chosen = [outputs[3], outputs[-2], outputs[-1]]
    graph = g.finish(*(v for v, _ in chosen))
    results = ir.Program(graph, device).run(*g.arguments)
    for actual, (_, want) in zip(results, chosen, strict=True):
        np.testing.assert_array_equal(actual, want, err_msg=str(graph))


# What cannot be done says so.


def _error(build: Callable[[Graph], ir.Value], error: type[Exception], text: str) -> None:
    g = Graph()
    output = build(g)
    with pytest.raises(error, match=text):
        ir.Program(g.finish(output), "cpu")


def test_unsupported() -> None:
    def custom(g: Graph) -> ir.Value:
        return g.node("custom", '"mine"', g.input(SPECIAL), attributes=[], declared=("i4", [2]))

    def through_expand(g: Graph) -> ir.Value:
        wide = g.node("expand", g.input(np.ones((1, 3), np.float32)), shape=[2, 3])
        return g.node("assign", wide, g.input(np.ones((2, 3), np.float32)), boxes=[[]])

    _error(custom, UnsupportedOpError, "custom: cannot compile mine for cpu .it has no source")
    _error(through_expand, UnsupportedOpError, "assign: cannot write through expand")


def test_undefined_buffer() -> None:
    def unassigned(g: Graph) -> ir.Value:
        return g.node("unary", "neg", g.buffer(np.float32, (2, 2)))

    def partly(g: Graph) -> ir.Value:
        half = g.node("assign", g.buffer(np.float32, (4,)), g.input(SPECIAL[:3]), boxes=[[(1, 4)]])
        return g.node("reshape", half, shape=[2, 2])

    for build in (unassigned, partly):
        _error(build, ValueError, "buffer: cannot read `%0 = buffer size=4")


def test_gather_from_nothing() -> None:
    def build(g: Graph) -> ir.Value:
        at = g.input(np.zeros((2,), np.int64))
        return g.node("gather", g.input(np.zeros((3, 0), np.float32)), at, axis=1)

    _error(build, IndexError, "gather: cannot take elements")


def test_custom_by_target() -> None:
    """fma(x, y, x) of a prologue, with an epilogue: on cores as vectors, elsewhere as text."""
    g = Graph()
    x, y = sample((1003,)), sample((1003,), seed=1)
    v, w = g.node("unary", "neg", g.input(x)), g.input(y)
    custom = g.custom(
        "my fma",
        *(v, w, v),
        dtype=np.float32,
        cpu="call $T @llvm.fma.$M($T $0, $T $1, $T $2)",
        c="fma($0, $1, $2)",
    )
    positive = g.custom(
        "sign test", v, dtype=bool, cpu="fcmp ogt $T0 $0, zeroinitializer", c="$0 > 0"
    )
    chosen = g.node("ternary", "where", positive, custom, v)
    graph = g.finish(custom, chosen)
    program = ir.Program(graph, "cpu")
    first, second = program.run(*g.arguments)
    expected = -x * y - x
    np.testing.assert_allclose(first, expected, rtol=1e-6)
    np.testing.assert_allclose(second, np.where(x < 0, expected, -x), rtol=1e-6)
    assert "float> @llvm.fma" in program.lowered.source()
    for target in ("metal", "cuda"):
        assert "fma(" in ir.Program(graph, target).lowered.source()
    with pytest.raises(UnsupportedOpError, match=r"cannot render bad, whose text uses .2 of 1 op"):
        g = Graph()
        ir.Program(g.finish(g.custom("bad", g.input(x), dtype=np.float32, cpu="$2")), "cpu").run(x)
    with pytest.raises(ValueError, match="cannot compute f of"):
        g = Graph()
        one = g.input(np.float32(1))
        ir.Program(g.finish(g.custom("f", g.input(x), one, dtype=np.float32, cpu="")), "cpu")


def test_texts() -> None:
    with pytest.raises(ValueError, match="graph is not valid"):
        ir.parse("graph { %0 = placeholder index=1 : f32[2] return %0 }")
    with pytest.raises(ValueError, match="unknown operation `nonsense`"):
        ir.parse("graph { %0 = nonsense : f32[2] return %0 }")
    program = ir.Program(
        "graph { %0 = placeholder index=0 : f32[3] %1 = unary neg %0 : f32[3] return %1 }", "cpu"
    )
    (result,) = program.run(np.ones(3, np.float32))
    assert_same(result, -np.ones(3, np.float32))
    assert "unary neg" in program.lowered.graph
