"""Loops over heaps of heapq: programs of their own in calls in segments
(capture/loops/heaps.py)."""

from __future__ import annotations

import heapq
from heapq import heappop, heappush

import numpy as np
import pytest
from compare import assert_same
from growing_checks import compared, data, loops_apart  # noqa: F401
from segment_checks import never_numpy  # noqa: F401

import rune_jit
from rune_jit.capture.loops import apart
from rune_jit.tracing import conditions

pytestmark = pytest.mark.usefixtures("never_numpy")


def graph(k):
    rng = np.random.default_rng(k)
    source = np.sort(rng.integers(0, 60, 240))
    return np.searchsorted(source, np.arange(61)), rng.integers(0, 60, 240), rng.random(240)


def shortest_paths(first, to, weight):
    distance = np.full(len(first) - 1, np.inf)
    distance[0] = 0
    heap = [(0.0, 0)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > distance[u]:
            continue
        for j in range(first[u], first[u + 1]):
            v = to[j]
            if d + weight[j] < distance[v]:
                distance[v] = d + weight[j]
                heapq.heappush(heap, (distance[v], v))
    return distance, heap


def steps_to_the_corner(x):
    """An A* search in a grid, which returns from its loop."""
    free = x[:144].reshape(12, 12) > -1.0
    steps = np.full((12, 12), -1)
    steps[0, 0] = 0
    open_ = [(22, 0, 0, 0)]
    while open_:
        _, n, r, c = heappop(open_)
        if r == 11 and c == 11:
            return n
        if n > steps[r, c]:
            continue
        for a, b in ((r, c + 1), (r + 1, c), (r, c - 1), (r - 1, c)):
            if not (0 <= a < 12 and 0 <= b < 12 and free[a, b]):
                continue
            if steps[a, b] < 0 or n + 1 < steps[a, b]:
                steps[a, b] = n + 1
                heappush(open_, (n + 1 + 22 - a - b, n + 1, a, b))
    return -1


def largest(x):
    heap = []
    for v in x:
        if len(heap) < 10:
            heapq.heappush(heap, v)
        elif v > heap[0]:
            heapq.heapreplace(heap, v)
    return heap, [type(v) for v in heap]


def waiting(x):
    """Customers, and three servers that are free at some times."""
    free = [0.0, 0.25, 0.0]
    heapq.heapify(free)
    waits = np.zeros(len(x))
    for i in range(len(x)):
        at = heapq.heappop(free)
        begin = max(at, i * 0.5)
        waits[i] = begin - i * 0.5
        heapq.heappush(free, begin + abs(x[i]) * 2)
    return waits, free


def smallest_of_windows(x):
    heap, out = [], np.zeros(len(x))
    for i in range(len(x)):
        heappush(heap, (x[i], i))
        while heap[0][1] <= i - 5:
            heappop(heap)
        out[i] = heap[0][0]
    return out, heap


def pushed_and_popped(x):
    heap, total = [3, 1, 2], 0
    for i in range(len(x)):
        total += heapq.heappushpop(heap, int(x[i] * 10))
        if x[i] > 1:
            heap[-1] = i
            heapq.heapify(heap)
    return total, heap, [type(v) for v in heap]


@pytest.mark.parametrize(
    "function",
    [largest, waiting, smallest_of_windows, pushed_and_popped],
    ids=lambda f: f.__name__,
)
def test_heaps(ran, function):
    compared(function)
    assert "as one program" in ran[-1]


def test_a_search_that_returns(ran, monkeypatch):
    monkeypatch.setattr(conditions, "MOST", 8)  # what is returned is a condition with two ways
    compared(steps_to_the_corner, calls=5)
    assert "as one program" in ran[-1]


def test_shortest_paths(ran):
    compared(shortest_paths, graph)
    assert "as one program" in ran[-1]


def test_equal_items_keep_the_order_of_heapq(ran):
    def f(x):
        heap = [(0, 0)]
        for i in range(len(x)):
            heappush(heap, (int(x[i]), i % 4))
            if x[i] > 0.5:
                heappop(heap)
        return heap

    compared(f)
    assert "as one program" in ran[-1]


def test_an_empty_heap(ran):
    def f(x):
        heap, total = [0.5], 0.0
        for i in range(len(x)):
            if x[i] > -0.8:
                heappush(heap, x[i])
            else:
                total += heappop(heap) + heappop(heap)
        return total, heap

    def with_many(k):
        x = data(k)[0]
        if k == 2:
            x[40:] -= 3.0
        return (x,)

    compared(f, with_many, calls=4)
    assert "as one program" in ran[0]


def test_nan(ran):
    def of_tuples(x):
        heap = [(1.0, 0)]
        for i in range(len(x)):
            heappush(heap, (x[i], i % 3))
            if len(heap) > 20:
                heappop(heap)
        return heap

    def of_numbers(x):
        heap = [1.0]
        for i in range(len(x)):
            heappush(heap, x[i])
            if len(heap) > 20:
                heappop(heap)
        return heap

    def with_nan(k):
        x = data(k)[0]
        x[k * 10 :: 17] = np.nan
        return (x,)

    for function in (of_tuples, of_numbers):
        compared(function, with_nan)
    assert "as one program" in ran[-1]


def test_more_items_than_there_is_room_for(monkeypatch, ran):
    monkeypatch.setattr(apart, "_LEAST_ROWS", 16)
    monkeypatch.setattr(apart, "is_array", lambda x: False)

    def f(x):
        heap, n = [(0.0, 0)], 0
        while heap:
            d, v = heappop(heap)
            n += v
            if v < len(x) - 2:
                heappush(heap, (d + x[v], v + 1))
                heappush(heap, (d + x[v + 1], v + 2))
            if n > 20_000:
                break
        return n, heap

    jitted, x = rune_jit.jit(f), np.abs(data(3)[0])
    for _ in range(8):
        assert_same(jitted(x), f(x))


def test_a_loop_within_a_loop_that_cannot_be_a_program(ran):
    def f(x):
        """Dijkstra's algorithm. Its list of names makes the outer loop run in segments."""
        weight = abs(x[:144].reshape(12, 12)) + 0.1
        distance = np.full(12, np.inf)
        distance[0] = 0
        heap, previous = [(0.0, 0)], ["none"] * 12
        while heap:
            d, u = heapq.heappop(heap)
            previous[u] += f" {u}"
            for v in range(12):
                if d + weight[u, v] < distance[v]:
                    distance[v] = d + weight[u, v]
                    heapq.heappush(heap, (distance[v], v))
        return distance, previous

    compared(f)


def test_functions_of_these_names_that_are_others(ran):
    def of_its_own(x):
        def heappush(items, value):
            items.insert(0, value)

        heap = [0.0]
        for i in range(len(x)):
            if x[i] > 0:
                heappush(heap, x[i])
            if x[i] > 1:
                heap.pop()
        return heap

    compared(of_its_own)

    def takes(x, push):
        heap = [0.0]
        for i in range(len(x)):
            push.heappush(heap, x[i])
            if x[i] > 1:
                heap.pop()
        return heap

    class Others:
        heappush = staticmethod(lambda items, value: items.append(2 * value))

    jitted = rune_jit.jit(takes)
    for module in (heapq, heapq, Others, heapq):
        x = data(1)[0]
        assert_same(jitted(x.copy(), module), takes(x, module))


def test_items_that_arrays_cannot_hold(ran):
    def of_texts(x):
        heap = [(0.5, "a")]
        for i in range(len(x)):
            heappush(heap, (x[i], "b"))
            if x[i] > 1:
                heappop(heap)
        return heap

    def of_large_integers(x):
        heap = [2**70]
        for i in range(len(x)):
            heappush(heap, 2**62 + int(x[i] * 10))
            if x[i] > 1:
                heappop(heap)
        return heap

    def of_arrays(x):
        heap = [(0.5, 0)]
        for i in range(len(x) - 3):
            heappush(heap, (x[i], x[i : i + 3]))
            if x[i] > 1:
                heappop(heap)
        return len(heap)

    for function in (of_texts, of_large_integers, of_arrays):
        compared(function)
