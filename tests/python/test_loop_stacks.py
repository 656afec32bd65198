"""Stacks, queues and lists of results that a loop reads: programs of their own in calls in segments
(capture/loops/reading.py)."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from compare import assert_same
from growing_checks import compared, data, loops_apart  # noqa: F401
from segment_checks import never_numpy, outcome  # noqa: F401

import rune_jit
from rune_jit.capture.loops import apart


def distances(x):
    """A breadth-first search in a grid."""
    free = x[:144].reshape(12, 12) > -0.8
    distance = np.full(free.shape, -1)
    distance[3, 4] = 0
    queue = deque([(3, 4)])
    while queue:
        r, c = queue.popleft()
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            a, b = r + dr, c + dc
            if 0 <= a < 12 and 0 <= b < 12 and free[a, b] and distance[a, b] < 0:
                distance[a, b] = distance[r, c] + 1
                queue.append((a, b))
    return distance, queue


def flooded(x):
    """A region that is filled with a stack."""
    level = x[:144].reshape(12, 12)
    seen = np.zeros((12, 12), bool)
    stack, count = [(5, 5)], 0
    while len(stack) > 0:
        cell = stack.pop()
        r, c = cell
        if seen[r, c] or level[r, c] < -1.0:
            continue
        seen[r, c] = True
        count += 1
        for a, b in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            if 0 <= a < 12 and 0 <= b < 12 and not seen[a, b]:
                stack.append((a, b))
    return seen, count, stack


def reached(x):
    """A breadth-first search over a matrix; the number of its rows is an argument of the loop."""
    adjacent = x[:144].reshape(12, 12) > 0.5
    n = len(adjacent)
    seen = np.zeros(n, bool)
    seen[0] = True
    queue, order = [0], []
    while queue:
        u = queue.pop(0)
        order.append(u)
        for v in range(n):
            if adjacent[u, v] and not seen[v]:
                seen[v] = True
                queue.append(v)
    return order, seen


def extended(x):
    """A region that is filled, whose neighbours are appended at once."""
    level = x[:144].reshape(12, 12).copy()
    stack = [(5, 5)]
    while stack:
        r, c = stack.pop()
        if r < 0 or r >= 12 or c < 0 or c >= 12 or level[r, c] < -1.0:
            continue
        level[r, c] = -2.0
        stack.extend([(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)])
    return level


def next_greater(x):
    out, stack = np.full(len(x), -1), []
    for i in range(len(x)):
        while stack and x[stack[-1]] < x[i]:
            out[stack.pop()] = i
        stack.append(i)
    return out, stack


def largest_rectangle(x):
    best, stack = 0.0, []
    for i in range(len(x) + 1):
        height = abs(x[i]) if i < len(x) else 0.0
        while stack and abs(x[stack[-1]]) >= height:
            top = stack.pop()
            width = i if not stack else i - stack[-1] - 1
            best = max(best, abs(x[top]) * width)
        stack.append(i)
    return best


def peaks_apart(x):
    peaks = []
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] >= x[i + 1]:
            if not peaks or i - peaks[-1] >= 5:
                peaks.append(i)
            elif x[i] > x[peaks[-1]]:
                peaks[-1] = i
    return peaks


def turning_points(x):
    pivots = [0]
    for i in range(1, len(x)):
        if abs(x[i] - x[pivots[-1]]) > 1.5:
            pivots.append(i)
    return np.array(pivots), [type(p) for p in pivots]


def the_first(x):
    found = []
    for i in range(len(x)):
        if x[i] > 0.3:
            found.append(x[i] * 2)
        if len(found) >= 7:
            break
    return found, i


def merged(x):
    order = np.argsort(x)
    spans = [(x[order[0]], x[order[0]] + 0.02)]
    for i in order[1:]:
        low, high = spans[-1]
        if x[i] <= high:
            spans[-1] = (low, x[i] + 0.02)
        else:
            spans.append((x[i], x[i] + 0.02))
    return spans


def counted_items(x):
    items = [0.0, 0.0]
    for i in range(len(x)):
        if x[i] > 0:
            items[0] += x[i]
        elif x[i] < -1:
            items.append(x[i])
        else:
            items[i % 2] -= 1.0
    return items


def window_that_data_move(x):
    """How many numbers fit a sum, with two ends."""
    window, total, longest = [], 0.0, 0
    for i in range(len(x)):
        window.append(abs(x[i]))
        total += window[-1]
        while total > 3.0:
            total -= window.pop(0)
        longest = max(longest, len(window))
    return longest, window


@pytest.mark.parametrize(
    "function",
    [
        *(distances, flooded, next_greater, largest_rectangle, peaks_apart, turning_points),
        *(the_first, merged, counted_items, window_that_data_move, reached, extended),
    ],
)
def test_programs(function, ran):
    jitted = compared(function)
    assert ran or "as one program" in jitted.explain()  # (test_read_lists.py)
    assert all("as one program" in x for x in ran), ran


def test_items_that_are_not_there(ran):
    def f(x):
        stack, out = [1, 2, 3], np.zeros(8)
        for i in range(len(x)):
            if x[i] > 0.5:
                stack.append(i)
            elif x[i] < -0.5:
                out[i % 8] += stack.pop()
        return out, stack

    def falls(k):
        x = np.random.default_rng(k).normal(size=150)
        x[:40] += 0.7
        if k % 2:
            x[60:90] -= 3.0
        return (x,)

    compared(f, falls, calls=4)

    def g(x):
        stack = [0]
        for i in range(len(x)):
            if x[i] > 0:
                stack.append(i)
            if x[i] > 2.0:
                x[0] = stack[int(x[i] * 10)]
        return stack

    compared(g)

    def never_ends_without(x):
        stack, v = [3], 0
        while v < 100:
            v = stack.pop()
            if x[v] > -0.5:
                stack.append(v + 1)
        return v

    compared(never_ends_without)


def test_more_items_than_there_is_room_for(monkeypatch, ran):
    monkeypatch.setattr(apart, "_LEAST_ROWS", 16)
    monkeypatch.setattr(apart, "is_array", lambda x: False)

    def f(x):
        stack, n = [0], 0
        while stack:
            v = stack.pop()
            n += v
            if v < len(x) - 2 and x[v] > -1.5:
                stack.append(v + 1)
                stack.append(v + 2)
            if n > 20_000:
                break
        return n, stack

    jitted, x = rune_jit.jit(f), np.abs(data(3)[0])
    for _ in range(8):
        assert_same(jitted(x), f(x))


def test_what_stands_for_other_things(ran):
    def names_twice(x):
        stack = [0]
        other = stack
        for i in range(len(x)):
            if x[i] > 0:
                stack.append(i)
            if x[i] > 1 and len(other) > 3:
                stack.pop()
        return stack, other

    def in_another(x):
        stack, all_ = [0], []
        for i in range(len(x)):
            if x[i] > 0:
                stack.append(i)
            if len(stack) > 4:
                all_.append(stack)
                stack = []
        return stack, all_

    def of_arrays(x):
        stack = [x[:3]]
        for i in range(3, len(x)):
            if x[i] > 0:
                stack.append(x[i - 3 : i])
            if x[i] > 1:
                stack[-1][0] = 5.0
        return stack

    def of_lists(x):
        runs = []
        for i in range(len(x)):
            if runs and runs[-1][0] == (x[i] > 0):
                runs[-1][1] += 1
            else:
                runs.append([x[i] > 0, 1])
        return runs

    def of_limited_length(x):
        last = deque([0.0], maxlen=3)
        for i in range(len(x)):
            if x[i] > 0:
                last.append(x[i])
            if last[0] > 1:
                x[i] = last[-1]
        return last

    def of_different_kinds(x):
        stack = [0]
        for i in range(len(x)):
            if x[i] > 0:
                stack.append((i, x[i]) if i % 2 else 2.5)
            if x[i] > 1:
                stack.pop()
        return stack

    def of_a_dict(x):
        held = {0: 1.0}
        for i in range(len(x)):
            if x[i] > 0:
                held[i] = x[i]
            if len(held) > 4:
                held.pop(0, None)
        return held

    for function in (names_twice, in_another, of_arrays, of_lists):
        compared(function)
    for function in (of_limited_length, of_different_kinds, of_a_dict):
        compared(function)


def test_stack_with_traced_numbers(ran):
    """The outer loop runs in segments; the inner one is a program of its own."""

    def f(x):
        stack, n, s = [], 0, 0.0
        for i in range(len(x)):
            stack.append(x[i])
            if x[i] < -0.4 or i % 3 == 0:
                stack.append(x[i])
                while stack and n < 40:
                    n += 1
                    stack.pop()
                    stack.append(1)
                    s += stack.pop(0)
        return stack, n, s

    compared(f)


def test_values_as_operands(ran):
    def f(x):
        stack, out = [0], []
        for i in range(len(x)):
            if x[i] > 0.2 or (len(stack) > 5 and x[stack[0]] < 0.5):
                stack.append(i)
            is_full = len(stack) > 3
            if is_full and not x[i] > 0:
                y = stack.pop() * 2 + len(stack)
                out.append(y / 3 if stack else -1)
        return stack, out

    compared(f)


def test_arguments_stay_the_callers(ran):
    def f(x, stack):
        for i in range(len(x)):
            if x[i] > 0:
                stack.append(i)
            elif len(stack) > 2:
                stack.pop()
        return len(stack)

    jitted = rune_jit.jit(f)
    for k in range(4):
        (x,) = data(k)
        ours, theirs = [7, 8], [7, 8]
        assert outcome(jitted, (x, ours), {}) == outcome(f, (x, theirs), {})
        assert ours == theirs
        assert [type(y) for y in ours] == [type(y) for y in theirs]
