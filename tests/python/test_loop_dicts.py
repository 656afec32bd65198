"""Loops that make dicts and sets of integers longer: programs of their own in calls in segments
(capture/loops/dicts.py, mapping.py)."""

from __future__ import annotations

from collections import Counter, defaultdict, deque

import numpy as np
import pytest
from compare import assert_same
from growing_checks import compared, loops_apart  # noqa: F401
from segment_checks import never_numpy  # noqa: F401

import rune_jit
from rune_jit.capture.loops import apart

pytestmark = pytest.mark.usefixtures("never_numpy")


def data(k):
    return (np.random.default_rng(k).integers(-20, 20, 150 + k),)


def held(d):
    """What a dict or set holds, in its order, and the types of that."""
    items = list(d.items()) if isinstance(d, dict) else [(x,) for x in d]
    return items, [tuple(type(y) for y in item) for item in items]


def counts_by_get(x):
    count = {}
    for v in x:
        count[v] = count.get(v, 0) + 1
    return held(count)


def counts_by_in(x):
    count = {}
    for v in x:
        key = int(v) % 7
        if key in count:
            count[key] += 1
        else:
            count[key] = 1
    return held(count)


def counts_by_default(x):
    count, total = defaultdict(int), defaultdict(float)
    for i in range(len(x)):
        count[x[i]] += 1
        total[x[i] % 5] += x[i] * 0.5
    return held(count), held(total)


def counts_by_counter(x):
    count, missing = Counter(), 0
    for v in x:
        missing += count[v + 1]
        count[int(v)] += 2
    return held(count), missing, count.most_common(2)


def first_repeated(x):
    seen = set()
    for i in range(len(x)):
        if x[i] in seen:
            break
        seen.add(x[i])
    return i, sorted(seen)


def in_order(x):
    seen, out = {3}, []
    for v in x:
        if v not in seen:
            seen.add(v)
            out.append(v)
    return out, len(seen), sorted(seen)


def pairs(x):
    last, n = {(0, 0): (1, 0.5)}, 0
    for i in range(len(x) - 1):
        key = (x[i], x[i + 1] % 3)
        if key in last:
            n += last[key][0]
        last[x[i], x[i + 1] % 3] = (i, x[i] * 0.25)
    return held(last), n


def steps_of_collatz(x):
    steps = {1: 0}
    longest = 0
    for i in range(len(x)):
        n, k = abs(int(x[i])) + 1, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            k += 1
        steps[abs(int(x[i])) + 1] = k
        longest = max(longest, k)
    return held(steps), longest


def search(x):
    """A breadth-first search whose distances are a dict."""
    distance = {0: 0}
    queue = deque([0])
    while queue:
        u = queue.popleft()
        for step in (1, 3, 7):
            v = (u + step + int(x[u])) % len(x)
            if v not in distance:
                distance[v] = distance[u] + 1
                queue.append(v)
    return held(distance), len(distance)


@pytest.mark.parametrize(
    "function",
    [
        *(counts_by_get, counts_by_in, counts_by_default, counts_by_counter, first_repeated),
        *(in_order, pairs, steps_of_collatz, search),
    ],
    ids=lambda f: f.__name__,
)
def test_dicts(ran, function):
    compared(function, data)
    assert "as one program" in ran[-1]


def test_the_order_of_a_set(ran):
    def f(x):
        seen = {8, 0}
        for v in x:
            seen.add(v * 8)
        return list(seen)

    compared(f, data)
    assert "as one program" in ran[-1]


def test_a_key_that_is_missing(ran):
    def f(x):
        parent, total = {}, 0
        for i in range(len(x)):
            parent[x[i]] = i
        n = 0
        while n < 40:
            total += parent[n % 23]
            n += 1
        return total, held(parent)

    compared(f, lambda k: (np.arange(23 - (k == 2) * 5),), calls=4)
    assert "as one program" in ran[0]


def test_more_keys_than_there_is_room_for(monkeypatch, ran):
    monkeypatch.setattr(apart, "_LEAST_ROWS", 16)
    monkeypatch.setattr(apart, "is_array", lambda x: False)

    def f(x):
        seen = {}
        for i in range(len(x)):
            seen[x[i] * 1_000_003] = i
        return held(seen)

    function = rune_jit.jit(f)
    for k in range(12):
        x = np.arange(300) + k
        assert_same(function(x), f(x))
    assert "as one program" in ran[-1]


def test_keys_that_are_no_integers(ran):
    def floats(x):
        count = {}
        for v in x:
            count[v * 0.5] = count.get(v * 0.5, 0) + 1
        return held(count)

    def both(x):
        count = {}
        for i in range(len(x)):
            count[x[i] if x[i] > 0 else i] = True
        return held(count)

    def of_texts(x):
        count = {"a": 1}
        for v in x:
            count["b" if v > 0 else "a"] = v
        return held(count)

    for function in (floats, both, of_texts):
        compared(function, data)


def test_a_dict_that_is_used_in_other_ways(ran):
    def removed(x):
        waiting = set()
        for v in x:
            if v in waiting:
                waiting.discard(v)
            else:
                waiting.add(v)
        return sorted(waiting)

    def listed(x):
        total, count = 0, {}
        for v in x:
            count[v] = 1
            total += sum(count.values())
        return total

    def another_name(x):
        count = {}
        other = count
        for v in x:
            count[v] = len(other)
        return held(count)

    for function in (removed, listed, another_name):
        compared(function, data)


def test_large_integers(ran):
    def f(x):
        count = {}
        for v in x:
            count[v] = count.get(v, 0) + 2**40
        return held(count)

    compared(f, data)


def test_a_class_that_changes(ran):
    def f(x, made):
        count = made()
        for v in x:
            count[v] += 1
        return held(count)

    function = rune_jit.jit(f)
    for made in (Counter, lambda: defaultdict(int), Counter, lambda: defaultdict(float)):
        assert_same(function(*data(0), made), f(*data(0), made))
