"""Lists that a function makes, appends to and also reads, where data decide how long they are: one
program, where arrays can represent them (capture/loops/made_lists.py, list_results.py)."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from growing_checks import compared
from segment_checks import never_numpy, outcome  # noqa: F401

import rune_jit


def mixture(x):
    """Means of two groups; the loop ends when the likelihood does not change."""
    centers, likelihood = np.array([-1.0, 1.0]), [-np.inf]
    while True:
        near = np.exp(-((x[:, None] - centers) ** 2))
        likelihood.append(np.log(near.sum(1)).sum())
        near /= near.sum(1, keepdims=True)
        centers = near.T @ x / near.sum(0)
        if abs(likelihood[-1] - likelihood[-2]) < 1e-4 or len(likelihood) > 40:
            break
    return centers, likelihood[-1], len(likelihood)


def secant(x):
    points = [float(x[0]), float(x[0]) + 1.0]
    while abs(points[-1] - points[-2]) > 1e-9 and len(points) < 40:
        a, b = points[-2], points[-1]
        fa, fb = a**3 - 2 * a - 5, b**3 - 2 * b - 5
        points.append(b - fb * (b - a) / (fb - fa))
    return points


def steps(x):
    """The first item exists before; the size of a step depends on an error."""
    t, y, h = [0.0], [np.abs(x[0])], 0.1
    while t[-1] < 2.0:
        whole = y[-1] - h * y[-1]
        half = y[-1] - 0.5 * h * y[-1]
        half = half - 0.5 * h * half
        if abs(whole - half) < 1e-2:
            t.append(t[-1] + h)
            y.append(half)
        else:
            h = h * 0.5
    return np.array(t), np.array(y)


def distances(x):
    """A breadth-first search; the queue is a deque."""
    free = x[:144].reshape(12, 12) > -0.8
    found = np.full(free.shape, -1)
    found[3, 4] = 0
    queue = deque([(3, 4)])
    while queue:
        r, c = queue.popleft()
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            a, b = r + dr, c + dc
            if 0 <= a < 12 and 0 <= b < 12 and free[a, b] and found[a, b] < 0:
                found[a, b] = found[r, c] + 1
                queue.append((a, b))
    return found


def patient(x):
    """Training that stops when the last loss was not better."""
    w, losses, bad = 0.0, [], 0
    for _ in range(200):
        w = w - 0.2 * np.mean(w - x)
        loss = np.mean((w - x) ** 2)
        bad = bad + 1 if losses and loss > losses[-1] - 1e-5 else 0
        losses.append(loss)
        if bad >= 3:
            break
    return w, losses


@pytest.mark.parametrize(
    "function", (mixture, secant, steps, distances, patient), ids=lambda f: f.__name__
)
def test_lists_that_are_read(function):
    jitted = compared(function)
    assert "as one program" in jitted.explain()
    assert "unrolled" not in jitted.explain()
    assert jitted.cache_info().fallbacks == 0


def last_of_two(x):
    """The items are arrays, which the function reads."""
    path = [x[:3]]
    for i in range(len(x)):
        path.append(path[-1] * 0.9 + x[i])
        if x[i] > 1.8:
            break
    return path[-1], len(path)


def known(x):
    """The length is known, so that the list is the one of the trace."""
    path = [x[:3]]
    for i in range(20):
        path.append(path[-1] * 0.9 + x[i])
    return path[-1], np.array(path), len(path)


def inner(x):
    """Another function uses the list."""
    stack, total = [0], 0

    def push(i):
        stack.append(i)

    while stack:
        i = stack.pop()
        total += i
        if x[i] > 0 and i < 20:
            push(i + 1)
    return total


@pytest.mark.parametrize("function", (last_of_two, known, inner))
def test_lists_that_stay_lists(function):
    compared(function)


def states(x):
    """Arrays that NumPy makes of tuples of different numbers, of arrays and of nothing."""
    rows, mixed, copies, none = [], [], [], []
    y = x[:3]
    for i in range(40):
        y = y * 0.7
        rows.append((y[0], y[1], y[2]))
        mixed.append((i, float(y[0]), y[1] > 0))
        copies.append(y * 2)
        if y[0] > 1e9:
            none.append(1.5)
        if abs(y[0]) < 1e-3:
            break
    return np.array(rows), np.array(mixed), np.asarray(copies), np.array(none)


def test_arrays_of_lists():
    assert "as one program" in compared(states).explain()


class Queue(list):
    """A class of the user's with the name of Python's."""

    def append(self, x):
        super().append(2 * x)


def test_a_class_named_deque(monkeypatch):
    def f(x):
        queue, total = deque([1]), 0
        while queue:
            i = queue.pop()
            total += i
            if i < 50 and x[i] > -9:
                queue.append(i + 1)
        return total

    monkeypatch.setitem(globals(), "deque", Queue)
    compared(f)


def test_errors_of_empty_lists_are_numpys():
    def f(x):
        stack = [1]
        for v in x:
            if v > 0:
                stack.append(2)
            else:
                stack.pop()
        return stack[-1]

    jitted = rune_jit.jit(f)
    for signs in ([1, 1, -1], [-1, 1, 1], [-1, -1], [1, -1, -1], [1, -1, -1, 1], [1, 1, -1]):
        x = np.array(signs, float)
        assert outcome(jitted, (x,), {}) == outcome(f, (x,), {})


def ragged(x):
    """A constant list of lists that the loop reads, and one that it appends to."""
    weights, sums = [[], [0.5], [0.25, 0.75]], []
    for i in range(3):
        total = 0.0
        for k in range(i):
            total += weights[i][k] * x[k]
        sums.append(total)
        if total > 100:
            break
    weights.append([1.0])
    return sums, len(weights)


def of_different_sizes(x):
    stack, total = [(1, 2), (3,)], 0.0
    while stack:
        total += sum(stack.pop())
        if total > x[0]:
            break
    return total


@pytest.mark.parametrize("function", (ragged, of_different_sizes))
def test_items_of_different_sizes(function):
    compared(function)


def traced_back(x):
    """The longest common subsequence of two texts, which is found from its end."""
    a, b = (x[:20] > 0).astype(int), (x[20:45] > 0.2).astype(int)
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    for i in range(len(a)):
        for j in range(len(b)):
            if a[i] == b[j]:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = max(table[i, j + 1], table[i + 1, j])
    common, i, j = [], len(a), len(b)
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            common.append(a[i - 1])
            i, j = i - 1, j - 1
        elif table[i - 1, j] > table[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return common[::-1], table


def test_lists_that_are_reversed():
    assert "as one program" in compared(traced_back).explain()


def rates(x):
    """The function makes a list for each item of a dict."""
    found = []
    for rate in {"slow": 0.1, "fast": 0.5}.values():
        w, history = 0.0, []
        for _ in range(100):
            w = w - rate * np.mean(w - x)
            history.append(np.mean((w - x) ** 2))
            if len(history) > 1 and abs(history[-1] - history[-2]) < 1e-4:
                break
        found.append((w, len(history), history[-1]))
    return found


def rows_of_each(x):
    """A loop of the program makes the lists."""
    lengths = np.zeros(12, int)
    for i in range(12):
        kept = []
        for v in x[12 * i : 12 * i + 12]:
            if v > 0:
                kept.append(v)
        lengths[i] = len(kept)
    return lengths


def test_lists_that_loops_make():
    assert "as one program" in compared(rates).explain()
    compared(rows_of_each)


def made_in_loops(x):
    """Each iteration of a loop of the program makes a list, which an inner loop reads."""
    longest = np.zeros(12)
    for i in range(12):
        rising = [x[i]]
        for v in x[i : i + 20]:
            if v > rising[-1]:
                rising.append(v)
        longest[i] = len(rising) + rising[-1]
    return longest


def written(x):
    """The function writes to an array that the list holds."""
    found = [x[:3].copy()]
    for i in range(20):
        y = found[-1]
        y += 1
        found.append(y * 0.5)
        if x[i] > 2.5:
            break
    return np.array(found)


def recursive(x, depth=3):
    stack, total = [0], 0.0
    while stack:
        i = stack.pop()
        total += x[i]
        if x[i] > 0 and i < 10:
            stack.append(i + 1)
    return total if depth == 0 else total + recursive(x * 0.5, depth - 1)


def appended_by_a_function(x):
    path, turns = [x[0]], 0
    for i in range(30):
        turns += path[-1] * x[i] < 0

        def note():
            path.append(x[i])  # noqa: B023

        note()
    return path, turns


def test_lists_that_arrays_cannot_stand_for():
    for function in (made_in_loops, written, recursive, appended_by_a_function):
        compared(function)
