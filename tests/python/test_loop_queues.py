"""Loops that change queues: lists and deques that are as long after an iteration as before it."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from loop_checks import both, refused, rolled

import rune_jit

X = np.random.default_rng(6).normal(size=60)


@pytest.mark.parametrize("start", [0.0, np.float64(0.5)])
@pytest.mark.parametrize("size", [1, 3, 8, 30])
def test_delay_lines(size: int, start: Any) -> None:
    def by_deque(x: Any) -> Any:
        line, out = deque([start] * size), np.empty(len(x))
        for i in range(len(x)):
            old = line.popleft()
            out[i] = x[i] + 0.5 * old
            line.append(out[i])
        return out, list(line)[:2], len(line)

    def by_list(x: Any) -> Any:
        line, out = [start] * size, []
        for value in x:
            old = line.pop(0)
            line.append(value + 0.5 * old)
            out.append(line[-1])
        return np.array(out), line

    def by_slices(x: Any) -> Any:
        line, out = [start] * size, np.empty(len(x))
        for i in range(len(x)):
            out[i] = line[0] - x[i]
            line = [*line[1:], x[i] * 2]
        return out, line

    for f in (by_deque, by_list, by_slices):
        rolled(f, X, ulps=8)


def test_a_queue_that_fills() -> None:
    def f(x: Any) -> Any:
        window: Any = deque(maxlen=5)
        means, largest = np.empty(len(x)), []
        for i in range(len(x)):
            window.append(x[i])
            means[i] = sum(window) / len(window)
            largest.append(max(window))
        return means, np.array(largest), window.maxlen, list(window)

    rolled(f, X, ulps=8)


def test_queues_of_arrays_and_of_objects() -> None:
    class Delay:
        def __init__(self, size: int) -> None:
            self.items: Any = deque([np.zeros(3)] * size, maxlen=size)

        def feed(self, row: Any) -> Any:
            self.items.append(row * 2)
            return self.items[0]

    def f(rows: Any) -> Any:
        delay, out = Delay(4), []
        for row in rows:
            out.append(delay.feed(row).sum())
        return np.array(out)

    rolled(f, X.reshape(20, 3), ulps=8)


def test_rotation_and_reversal() -> None:
    def f(x: Any) -> Any:
        ring, items, total = deque([1.0, 2.0, 3.0]), [x[0], x[1], x[2]], 0.0
        for value in x:
            ring.rotate(1)
            items.reverse()
            items.insert(0, items.pop())
            total += value * ring[0] + items[1]
        return total, list(ring), items

    assert both(f, X, ulps=8)


def test_queues_under_conditions() -> None:
    def f(x: Any) -> Any:
        window: Any = deque([0.0, 0.0, 0.0], maxlen=3)
        total = 0.0
        for value in x:
            if value > 0:
                window.append(value)
            total += window[0]
        return total, list(window)

    def grows(x: Any) -> Any:
        found: Any = deque()
        for value in x:
            if value > 0:
                found.append(value)
        return list(found)

    assert both(f, X, ulps=8)
    assert both(grows, X, ulps=8)


def test_what_becomes_longer_or_shorter() -> None:
    def grows(x: Any) -> Any:
        items = [0.0]
        for value in x:
            items.append(value + len(items))
        return items

    def shrinks(x: Any) -> Any:
        items, total = list(x), 0.0
        while items:
            total = 0.5 * total + items.pop()
        return total

    def breadth_first(x: Any) -> Any:
        queue, seen = deque([0]), []
        while queue:
            node = queue.popleft()
            seen.append(x[node])
            for child in (2 * node + 1, 2 * node + 2):
                if child < 20:
                    queue.append(child)
        return np.array(seen)

    def of_an_argument(x: Any, line: Any) -> Any:
        for value in x:
            line.append(value)
        return len(line)

    for f in (grows, shrinks, breadth_first):
        both(f, X, ulps=8)
    jitted = rune_jit.jit(of_an_argument)
    for _ in range(3):
        line: Any = deque([1.0], maxlen=4)
        assert jitted(X, line) == 4
        assert list(line) == list(X[-4:])


def test_long_queues() -> None:
    def f(x: Any) -> Any:
        line, total = deque([0.0] * 400), 0.0
        for value in x:
            line.append(value)
            total += line.popleft()
        return total + line[-1]

    refused("it changes more than 200 items", f, X)


def test_an_empty_queue_raises() -> None:
    def f(x: Any) -> Any:
        line: Any = deque()
        for _ in x:
            line.popleft()
        return line

    with pytest.raises(IndexError, match="pop from an empty deque"):
        rune_jit.jit(f)(X)


@pytest.mark.parametrize("hold", [lambda q: [q], lambda q: (q,), lambda q: [[q]], lambda q: {0: q}])
def test_a_queue_in_another_container_changes_under_a_condition(hold) -> None:
    def f(x):
        held = hold(deque([0.0]))
        for v in x:
            queue = held[0]
            (queue[0] if type(queue) is list else queue).append(v * 2)
            if v > 0.5:
                (held[0][0] if type(held[0]) is list else held[0]).popleft()
        return held

    def of_list(x):
        held = [deque()]
        for v in x:
            held[0].append(v * 2)
            if v > 0.5:
                held[0].popleft()
        return held

    x = np.array([0.1, 0.7, 0.3, 0.4])
    for function in (f, of_list):
        assert repr(rune_jit.jit(function, fallback="silent")(x)) == repr(function(x))
