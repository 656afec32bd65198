"""Arrays on several devices of one kind: copies between them, and computation on shards."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compare import assert_matches
from node_graphs import Graph, sample

from rune_jit import UnsupportedOpError, ir

DEVICES = ["cpu", "interpreter"]


def run(g: Graph, outputs: list[tuple[ir.Value, np.ndarray]], device: str) -> ir.Program:
    program = ir.Program(g.finish(*(v for v, _ in outputs)), device, g.functions)
    assert_matches(program.run(*g.arguments), [want for _, want in outputs])
    return program


def kernel_devices(program: ir.Program) -> list[str]:
    found = re.findall(r'\n    device="([^"]*)"', program.lowered.schedule)
    return [name.removesuffix(":0") for name in found]


@pytest.mark.parametrize("device", DEVICES)
def test_there_and_back(device: str) -> None:
    g = Graph()
    x, y = sample((6, 5)), sample((6, 5), seed=1)
    v, w = g.input(x), g.input(y)
    there = g.node("copy", v, device=f"{device}:1", clone=False)
    # The other operand follows; constants are everywhere.
    total = g.node("binop", "add", g.node("unary", "neg", there), w)
    sums = g.node("reduce_axis", "add", total, axes=[1])
    back = g.node("copy", sums, device=device, clone=False)
    result = g.node("binop", "mul", back, g.node("reduce_axis", "max", w, axes=[1]))
    program = run(
        g,
        [(total, y - x), (result, (y - x).sum(1, keepdims=True) * y.max(1, keepdims=True))],
        device,
    )
    assert set(kernel_devices(program)) == {device, f"{device}:1"}
    schedule = program.lowered.schedule
    assert len(re.findall(r"item \d+ transfer", schedule)) == 4
    assert len(re.findall(r"item \d+ synchronization", schedule)) == 4
    assert program.lowered.cost_analysis()["transfers"] == 4


@pytest.mark.parametrize("device", DEVICES)
def test_shards(device: str) -> None:
    """Elementwise operations and reductions run where the shards are; the rest on the whole."""
    g = Graph()
    x, y, b = sample((7, 6)), sample((7, 6), seed=1), sample((6,), seed=2)
    names = [device, f"{device}:1", f"{device}:2"]
    bounds = [0, 3, 5, 7]

    def shard(v: ir.Value) -> ir.Value:
        parts = []
        for name, low, high in zip(names, bounds, bounds[1:], strict=False):
            part = g.node("shrink", v, limits=[(low, high), (0, 6)])
            parts.append(g.node("copy", part, device=name, clone=False))
        return g.node("multi", *parts, axis=0, real=[True] * 3)

    u, v = shard(g.input(x)), shard(g.input(y))
    bias = g.node("expand", g.node("reshape", g.input(b), shape=[1, 6]), shape=[7, 6])
    z = g.node("binop", "add", g.node("binop", "mul", u, v), bias)
    e = x * y + b
    columns = g.node("reduce_axis", "add", z, axes=[0])
    rows = g.node("reduce_axis", "max", z, axes=[1])
    centred = g.node("binop", "sub", z, g.node("expand", rows, shape=[7, 6]))
    moved = g.node("permute", centred, axes=[1, 0])
    flat = g.node("reshape", z, shape=[42])
    program = run(
        g,
        [
            (z, e),
            (columns, e.sum(0, keepdims=True)),
            (rows, e.max(1, keepdims=True)),
            (moved, (e - e.max(1, keepdims=True)).T),
            (flat, e.ravel()),
        ],
        device,
    )
    assert set(kernel_devices(program)) == set(names)


@pytest.mark.parametrize("device", DEVICES)
def test_copies(device: str) -> None:
    g = Graph()
    x = sample((4, 3))
    v = g.input(x)
    there = g.node("copy", v, device=f"{device}:1", clone=False)
    both = g.node("multi", v, there, real=[True, True])
    squares = g.node("binop", "mul", both, both)
    total = g.node("reduce_axis", "add", squares, axes=[0, 1])
    run(g, [(squares, x * x), (total, (x * x).sum(keepdims=True))], device)


@pytest.mark.parametrize("device", DEVICES)
def test_copies_of_copies(device: str) -> None:
    g = Graph()
    x = sample((4, 3))
    v = g.node("unary", "neg", g.input(x))
    for number in (1, 2, 0):
        v = g.node("copy", v, device=f"{device}:{number}", clone=False)
    far = g.node(
        "copy",
        g.node("copy", v, device=f"{device}:1", clone=False),
        device=f"{device}:2",
        clone=False,
    )
    run(g, [(v, -x), (g.node("unary", "abs", far), np.abs(x))], device)


def test_program_on_another_device() -> None:
    g = Graph()
    x = sample((5,))
    v = g.node("copy", g.input(x), device="cpu:0", clone=False)
    run(g, [(g.node("unary", "neg", v), -x)], "cpu:1")


def test_devices_of_one_kind() -> None:
    g = Graph()
    v = g.node("copy", g.input(sample((5,))), device="metal", clone=False)
    with pytest.raises(
        UnsupportedOpError, match="cannot place a value on metal in a program of cpu"
    ):
        ir.Program(g.finish(v), "cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_every_kind_of_item(device: str) -> None:
    g = Graph()
    x = sample((5, 2))
    there = g.node("copy", g.node("unary", "neg", g.input(x)), device=f"{device}:1", clone=False)
    back = g.node("copy", g.node("unary", "abs", there), device=device, clone=False)
    (ordered,) = g.host_callback(
        "sort",
        lambda a, b: [np.sort(np.abs(b), 0) + (a - np.abs(b))],
        *(back, there),  # which comes to the program's device first
        results=[(np.float32, (5, 2))],
    )
    total = g.node("reduce_axis", "add", g.node("binop", "mul", ordered, back), axes=[0])
    expected = (np.sort(np.abs(x), 0) * np.abs(x)).sum(0, keepdims=True)
    program = run(g, [(ordered, np.sort(np.abs(x), 0)), (total, expected)], device)
    kinds = re.findall(r"item \d+ (\w+)", program.lowered.schedule)
    assert set(kinds) == {"launch", "transfer", "synchronization", "callback"}
