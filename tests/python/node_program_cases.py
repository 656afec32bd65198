"""Cases of node_cases.py: writes, the structure of programs, the user's operations."""

from __future__ import annotations

import numpy as np
from node_graphs import SPECIAL, Expected, Graph, sample

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
