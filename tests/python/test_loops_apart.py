"""Loops of functions whose calls run in segments are programs of their own
(capture/loops/apart.py)."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit
from rune_jit.calls.trial import Trial
from rune_jit.capture.loops.apart import LoopApart
from rune_jit.tracing import timed

X = np.random.default_rng(0).normal(size=300)
WORDS = np.random.default_rng(1).integers(0, 4, (2, 60))


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch):
    """Calls stay in segments, however long they take."""
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def apart(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> str:
    """Compares calls with NumPy's, what they write to their arguments, too; how they run."""
    jitted = rune_jit.jit(function)
    for _ in range(3):
        wanted, given = make(), make()
        assert_same(jitted(*given), function(*wanted), ulps=8, scaled=True)
        assert_same(given, wanted, ulps=8, scaled=True)
    return jitted.explain()


def subsequence(a, b):
    n, m = len(a), len(b)
    table = np.zeros((n + 1, m + 1), dtype=int)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    out, i, j = [], n, m
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            out.append(int(a[i - 1]))
            i, j = i - 1, j - 1
        elif table[i - 1, j] >= table[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return out[::-1], table


def warped(a, b):
    a, b = np.unique(np.round(a, 1)), np.unique(np.round(b, 2))
    costs = np.full((len(a) + 1, len(b) + 1), np.inf)
    costs[0, 0] = 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            least = min(costs[i - 1, j], costs[i, j - 1], costs[i - 1, j - 1])
            costs[i, j] = abs(a[i - 1] - b[j - 1]) + least
    return costs[len(a), len(b)], a[:3]


def written(x, y):
    """Writes to an argument through a view, and to an array that has a view."""
    part = x[10:]
    if y.item(3) > 1e9:
        part = y
    z = np.zeros(300)
    half = z[:150]
    k, total = 0, 0.0
    for i in range(1, 200):
        part[i] = 0.5 * part[i - 1] + y[i]
        z[i] += part[i]
        total = total + part[i]
        k += 2
    half += 1
    return z, half, total, k, i, part[:4], np.nonzero(z > 1)[0]


def replaced(x, y):
    found = x[x > 0]
    v = np.ones(20)
    for i in range(20, 60):
        w = v * 0.5
        w[i % 20] += found[i]
        v = w[::-1] + found[i - 20 : i]
    first = v
    row = found[:5]
    for i in range(30):
        row = found[i : i + 5]
        v[i % 20] += row[2]
    return v, first is v, row, found, i


def ended(x, y):
    scale = float(f"{y[0]:.3f}")
    steps, v = 0, 100.0
    while v > 1.0:
        v = v * 0.9 + 0.001 * scale
        steps += 1
        if steps > 10_000:
            break
    return v, steps


def counted(x, y):
    """Other integers at each call of the loop."""
    totals = []
    for scale in (1, 2, 3):
        n = int(np.floor(scale * 17 + abs(x[scale]).tolist()))
        total = 0.0
        for i in range(n):
            total = 0.9 * total + x[i] * n
        totals.append(total)
    return totals


PAIR = lambda: (X.copy(), X[::-1].copy())  # noqa: E731


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (subsequence, lambda: tuple(WORDS.copy())),
        (warped, PAIR),
        (written, PAIR),
        (replaced, PAIR),
        (ended, PAIR),
    ],
)
def test_loops_between_what_runs_in_segments(function, make):
    text = apart(function, make)
    assert "more of loops" in text or "as one program" in text  # (test_made_lists.py)


def test_loops_in_loops_that_run_in_segments():
    assert "more of loops" in apart(counted, PAIR)


def test_an_error_leaves_what_numpy_leaves():
    def f(x, at):
        low = x.min().tolist()
        for i in range(at.shape[0]):
            x[at[i]] += low + i
        return x

    for at in (np.arange(40), np.arange(40) * 8, np.arange(20)):
        jitted, a, b = rune_jit.jit(f), X.copy(), X.copy()
        try:
            f(a, at)
        except IndexError:
            with pytest.raises(IndexError):
                jitted(b, at)
        else:
            jitted(b, at)
        assert_same(b, a)


class Buffer:
    def __init__(self) -> None:
        self.values = np.zeros(50)


BUFFER = Buffer()


def test_traced_values_in_objects():
    def f(x):
        BUFFER.values = x[:50] * x.max().tolist()
        total = 0.0
        for i in range(50):
            total = 0.5 * total + BUFFER.values[i]
        return total

    apart(f, lambda: (X.copy(),))
    assert type(BUFFER.values) is np.ndarray


class Layer:
    def __init__(self):
        self.total, self.values = np.zeros(3), np.zeros(3)

    def measure(self):
        self.total = self.values.sum()


class Network:
    def __init__(self):
        self.layers = [Layer(), Layer()]


NETWORK = Network()


def test_a_loop_over_objects_of_a_global(monkeypatch):
    def step(x):
        NETWORK.layers[0].values = NETWORK.layers[0].values + x
        factor = x.sum().tolist()
        NETWORK.layers[1].values = NETWORK.layers[1].values * 2 + factor
        for layer in NETWORK.layers:  # its values are traced ones
            layer.measure()
        return [layer.total for layer in NETWORK.layers]

    jitted = rune_jit.jit(step)
    networks = Network(), Network()
    for k in range(4):
        results = []
        for function, network in zip((step, jitted), networks, strict=True):
            monkeypatch.setitem(globals(), "NETWORK", network)
            results.append(function(X[:3] + k))
        assert_same(results[1], results[0], ulps=8, scaled=True)
    for want, got in zip(*(network.layers for network in networks), strict=True):
        assert_same(vars(got), vars(want), ulps=8, scaled=True)


def test_functions_that_loops_call():
    def f(x):
        low = x.min().tolist()

        def g(v):
            return v * low

        total = 0.0
        for i in range(len(x)):
            total += g(x[i])
        return total

    apart(f, lambda: (X.copy(),))


TABLE = np.zeros(60)


def test_what_waits_to_be_written():
    def f(x):
        TABLE[:] = x[:60] * x.max().tolist()
        total = 0.0
        for i in range(50):
            total = 0.5 * total + TABLE[i]
            TABLE[i + 1] += total
        return total, TABLE.copy()

    apart(f, lambda: (X.copy(),))


@pytest.mark.parametrize("use", ["w += 10", "a[2] = 7", "v[0] = 3"])
def test_arrays_that_are_others(use):
    source = f"""
def f(a, b):
    low = a.min().tolist()
    w, v = a[1], b[:2]
    for i in range(5):
        if b[i] > 2:
            w = a[i]
        v = a[i - 1]
    {use}
    return w, v, low
"""
    name = f"<{hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {}
    exec(compile(source, name, "exec"), namespace)
    for b in (np.array([1, 3, 5, 0, 1]), np.zeros(5, int)):
        apart(namespace["f"], lambda b=b: (np.arange(20).reshape(5, 4), b.copy()))


def test_an_array_that_is_another_one_if_no_iteration_runs():
    def f(a):
        low = a.min().tolist()
        b = a
        while b[0] < 5:
            b = b * 2
        b += 1
        return a, b, low

    apart(f, lambda: (np.arange(1.0, 5.0),))
    apart(f, lambda: (np.arange(7.0, 12.0),))


def test_overlapping_views():
    def f(x):
        low = x.min().tolist()
        a, b = x[1:], x[:-1]
        for i in range(50):
            a[i] = b[i] + low
        return a, b, x.sum().tolist()

    apart(f, lambda: (X.copy(),))


def test_lists_that_get_arrays():
    def f(x):
        low = x.min().tolist()
        v, s, rows, sums, numbers = x[:3] * 2, 0, [], [], []
        for _ in range(20):
            rows.append(v)
        for i in range(20):
            s += x[i : i + 2]
            sums.append(s)
        for i in range(20):
            numbers.append(x[i])
            numbers[i] = numbers[i] * 2
        v += 1
        s *= 2
        return rows, v, sums, s, numbers, low

    apart(f, lambda: (X.copy(),))


def pair_with_sum(x, total):
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if x[i] + x[j] > total:
                return i, j
    return None


def first_above(x, total):
    for i in range(len(x)):
        if x[i] > total:
            return i
    return -1


def product_or_number(x, total):
    i = 0
    while True:
        if x[i] > total:
            return x[i] * 1.5
        if i > 250:
            return np.float64(0.5)
        i += 1


def within_another_loop(x, total):
    count = 0
    for k in range(4):
        low = (x[k] * 0).tolist()
        for i in range(len(x)):
            if x[i] * (k + 1) > total + low:
                return k, i, count
            count += 1
    return count


def written_before(x, total):
    for i in range(len(x)):
        x[i] += 1
        if x[i] > total:
            return x[i]


@pytest.mark.parametrize(
    "function",
    (pair_with_sum, first_above, product_or_number, within_another_loop, written_before),
)
def test_loops_that_return(function):
    def in_segments(x, total):
        low = x.min().tolist()
        return function(x, total), low

    jitted = rune_jit.jit(in_segments)
    for total in (1.5, 9.0, 2.5, 1.5, 9.0, -5.0, 1.5):
        wanted, given = X.copy(), X.copy()
        assert_same(jitted(given, total), in_segments(wanted, total))
        assert_same(given, wanted)


def test_a_returning_loop_is_a_program():
    def f(x, total):
        low = x.min().tolist()
        for i in range(len(x)):
            if x[i] * 2 > total + low:
                return i, x[i] * 2
        return None

    jitted = rune_jit.jit(f)
    for total in (9.0, 4.0, 99.0, 99.0, 4.0, 0.0):
        assert_same(jitted(X.copy(), total), f(X.copy(), total))
    assert "1 more of loops" in jitted.explain()


def cliques(x):
    near, found = np.unique(np.round(np.abs(x[:40]), 1)), []

    def extend(start, members):
        if members == 3:
            found.append(start)
            return
        for i in range(start, len(near)):
            if near[i] > 0.5 + members:
                extend(i + 1, members + 1)

    extend(0, 0)
    return found


def test_a_function_with_a_loop_that_calls_itself():
    apart(cliques, lambda: (X.copy(),))


def test_a_call_whose_short_loops_numpy_runs_goes_on_with_numpy(monkeypatch):
    def f(x):
        total, q = int(x.sum()), ((1.0, 0.0), (0.0, 1.0))
        weights = {"one": 1}  # (so the outer loop does not run apart)
        for i in range(300):
            row = q[i % 2]
            best = [k for k, v in enumerate(row) if v == np.max(row)]
            if np.random.rand() < 2:
                total += weights["one"] * best[0]
        return total

    runs, run = [], LoopApart._call
    monkeypatch.setattr(LoopApart, "_call", lambda *args: runs.append(1) or run(*args))
    monkeypatch.setattr(Trial, "verdict", lambda self: "it is faster")
    monkeypatch.setattr(timed, "_SLOW", 0.0)
    assert rune_jit.jit(f)(np.ones(3)) == f(np.ones(3))
    assert 100 <= len(runs) < 200, len(runs)


def test_functions_that_the_call_makes():
    """Their variables are those of the call, before and after an attempt to run the loop apart."""

    def f(x):
        held = [x]

        def total():
            return x.sum()

        for _ in range(4):
            x[x > 1] = 1
            if total().tolist() < 100:
                held[0] += 2
        return total()

    jitted = rune_jit.jit(f)
    for _ in range(3):
        ours, theirs = X.copy(), X.copy()
        assert_same(jitted(ours), f(theirs))
        assert_same(ours, theirs)


def test_loops_without_an_iteration():
    """Names that each iteration assigns then keep their values, or have none."""

    def last(x):
        x[0].tolist()
        for i in range(20):
            for j in range(i):
                x[i] = x[i] - x[j]
        return j

    def never(x):
        x[0].tolist()
        for v in x[:0]:
            y = v * 2
        x += 1
        return y

    for function in (last, never):
        jitted = rune_jit.jit(function)
        for _ in range(3):
            ours, theirs = X[:20].copy(), X[:20].copy()
            if function is never:
                for f, x in ((never, theirs), (jitted, ours)):
                    with pytest.raises(UnboundLocalError, match="'y'"):
                        f(x)
            else:
                assert jitted(ours) == last(theirs)
            assert_same(ours, theirs)


def test_arrays_in_dicts_are_changed_in_place():
    def f(x):
        held = {}
        for i in np.flatnonzero(x > 0):
            held["rows"] = x.T
            held["rows"] *= 2
            held["number"] = i
            held["number"] += 1
        return held

    jitted = rune_jit.jit(f)
    for _ in range(3):
        ours, theirs = X[:6].copy(), X[:6].copy()
        assert_same(jitted(ours), f(theirs))
        assert_same(ours, theirs)
