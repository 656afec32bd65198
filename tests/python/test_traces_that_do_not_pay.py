"""Traces of whole programs that take much longer than a call."""

import numpy as np
from compare import assert_matches
from segment_checks import never_numpy, x

import rune_jit
from rune_jit.calls.call_trace import CallTrace
from rune_jit.tracing import trace

__all__ = ["never_numpy"]  # a fixture of all tests here


def test_a_trace_of_pythons_work_ends():
    class Words:
        def weight(self, word):
            return 2 if word.startswith("a") else 1

    words, table = [f"{'ab'[i % 2]}{i}" for i in range(31_000)], Words()

    def f(x):
        total = 0
        for word in words:
            total += table.weight(word)
        return x + total

    jitted = rune_jit.jit(f)
    for _ in range(2):
        assert_matches(jitted(x()), f(x()))
    assert "cannot trace more than 10,000 steps of Python that compute little" in jitted.explain()


def test_a_trace_that_numpy_mostly_computes_is_not_repeated(monkeypatch):
    def f(x):
        table = {i: np.arange(i, i + 3).sum() for i in [*range(2000)]}
        return x + table[int(x[1])]  # (a trace guesses that this is an int64)

    traces = []
    traced = CallTrace.traced
    monkeypatch.setattr(CallTrace, "traced", lambda self: (traces.append(self), traced(self))[1])
    jitted = rune_jit.jit(f)
    assert_matches(jitted(x()), f(x()))
    assert len(traces) == 1


def test_writes_to_parts_of_large_arrays_are_not_interpreted():
    """The interpreter stores the whole array."""

    def f(x):
        y = x * 2
        y.sum().tolist()
        y[2:5] = 7.0
        return y

    x = np.arange(2_000_000.0)
    jitted = rune_jit.jit(f)
    np.testing.assert_array_equal(jitted(x), f(x))
    (entry,) = jitted._runner.known.cache.entries()
    assert entry.programs.compiled == 2


_SCALE = np.array([0.5, 0.25])


def test_a_trace_with_too_many_operations_is_not_repeated(monkeypatch):
    def f(x):
        seen = set()
        for k in range(400):
            seen.add(k)
            for i in range(1, x.size):
                x[i] += x[i - 1] * _SCALE[0]
        return x * len(seen)

    traces = []
    traced = CallTrace.traced
    monkeypatch.setattr(CallTrace, "traced", lambda self: (traces.append(self), traced(self))[1])
    monkeypatch.setattr(trace, "_MOST_NODES", 1000)
    jitted = rune_jit.jit(f)
    for _ in range(2):
        assert_matches(jitted(x()), f(x()))
    assert len(traces) == 1
