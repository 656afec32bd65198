"""Every kind of node of the high-level IR, on every device, against NumPy (node_cases.py).

A kind without a case fails test_every_kind_has_a_case."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from compare import assert_matches, run_graph
from devices import devices, flushed
from node_cases import CASES
from node_graphs import SPECIAL, Graph, sample

from rune_jit import UnsupportedOpError, ir

DEVICES = devices("cpu", "interpreter")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_node(name: str, device: str) -> None:
    graph = Graph()
    expected = CASES[name](graph)
    assert expected
    results = run_graph(graph, [v for v, _ in expected], device)
    for actual, (_, want) in zip(results, expected, strict=True):
        assert_matches(flushed(actual), flushed(np.asarray(want)), 0)


def test_every_kind_has_a_case() -> None:
    tested = set()
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
    (result,) = run_graph(g, [x], device)
    assert_matches(result, SPECIAL, 0)


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
    (result,) = run_graph(g, [written], device)
    assert_matches(result, np.ones(6, np.float32), 0)
    assert_matches(g.arguments[0], x, 0)


# What cannot be done says so.


def _error(build: Callable[[Graph], ir.Value], error: type[Exception], text: str) -> None:
    g = Graph()
    output = build(g)
    with pytest.raises(error, match=text):
        ir.Program(g.finish(output), "cpu")


def test_unsupported() -> None:
    def custom(g: Graph) -> ir.Value:
        return g.node("custom", '"mine"', g.input(SPECIAL), attributes=[], declared=("i4", [8]))

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
    with pytest.raises(UnsupportedOpError, match="it has no source for interpreter"):
        ir.Program(graph, "interpreter")
    with pytest.raises(UnsupportedOpError, match=r"cannot render bad \(its text uses .2 of 1 op"):
        g = Graph()
        ir.Program(g.finish(g.custom("bad", g.input(x), dtype=np.float32, cpu="$2")), "cpu").run(x)
    with pytest.raises(ValueError, match="cannot compute f of"):
        g = Graph()
        one = g.input(np.float32(1))
        ir.Program(g.finish(g.custom("f", g.input(x), one, dtype=np.float32, cpu="")), "cpu")


def test_custom_with_a_reference() -> None:
    """It runs where there is no source, as a host callback."""
    g = Graph()
    x = sample((7, 3))
    v = g.node("unary", "neg", g.input(x))
    sources = {"cpu": "fmul $T $0, $0", "c": "$0 * $0"}
    squares = g.custom("squares", v, dtype=np.float32, reference=np.square, **sources)
    graph = g.finish(squares)
    for device, calls in (("cpu", 0), ("metal", 0), ("interpreter", 1)):
        program = ir.Program(graph, device, g.functions)
        assert program.lowered.explain().count("host callback squares") == calls
        if device != "metal":
            assert_matches(program.run(x)[0], x * x, 0)

    g = Graph()
    halves = g.custom("halves", g.input(x), dtype=np.float16, reference=lambda a: a / 2)
    with pytest.raises(ValueError, match=r"halves: cannot store float32"):
        ir.Program(g.finish(halves), "cpu", g.functions).run(x)
    with pytest.raises(ValueError, match=r"cannot run halves \(call 0 has no function\)"):
        ir.Program(g.finish(halves), "cpu").run(x)
    again = 'custom "halves" attributes=["reference"=0] %1 : f16[7,3]'
    text = str(g.finish(halves)).replace("return %1", f"%2 = {again} return %1 %2")
    with pytest.raises(ValueError, match="cannot call halves with other operands"):
        ir.Program(text, "cpu", g.functions)


def test_texts() -> None:
    with pytest.raises(ValueError, match="graph is not valid"):
        ir.parse("graph { %0 = placeholder index=1 : f32[2] return %0 }")
    with pytest.raises(ValueError, match="unknown operation `nonsense`"):
        ir.parse("graph { %0 = nonsense : f32[2] return %0 }")
    program = ir.Program(
        "graph { %0 = placeholder index=0 : f32[3] %1 = unary neg %0 : f32[3] return %1 }", "cpu"
    )
    (result,) = program.run(np.ones(3, np.float32))
    assert_matches(result, -np.ones(3, np.float32), 0)
    assert "unary neg" in program.lowered.graph
