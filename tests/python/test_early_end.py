"""A trace that has given up ends before its call ends. The functions that are called after that run
as they are."""

from __future__ import annotations

import copy
import functools
import sys

import numpy as np
import pytest

import rune_jit
from rune_jit.calls import early_end, segmented
from rune_jit.calls.early_end import EarlyEnd
from rune_jit.calls.trial import Trial
from rune_jit.tracing import timed
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.segments import SegmentedTrace

_STEPS = 60


@pytest.fixture
def ends(monkeypatch):
    """Makes all traces give up soon. The results of EarlyEnd."""
    found = []
    end = EarlyEnd.__call__

    def noted(self):
        found.append(end(self))
        return found[-1]

    # (Not already when sources have been read, since NumPy would run the whole call.)
    is_slow = lambda self, seconds: seconds == timed._SLOW  # noqa: E731
    monkeypatch.setattr(SegmentedTrace, "_takes_longer_than", is_slow)
    monkeypatch.setattr(EarlyEnd, "__call__", noted)
    monkeypatch.setattr(early_end, "_LOOKING", (__name__, *early_end._LOOKING))
    monkeypatch.setattr(early_end, "_PAUSE", 0)
    return found


def _check(function, *args):
    """Compares a first call and a later one with NumPy's, also what they do to the arguments."""
    jitted = rune_jit.jit(function)
    for _ in range(2):
        ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
        got, expected = _outcome(jitted, ours), _outcome(function, theirs)
        assert repr(got) == repr(expected)
        assert repr(ours) == repr(theirs)


def _outcome(function, args):
    try:
        return function(*args)
    except ArithmeticError as error:
        return error


_codes = []


def half(x):
    _codes.append(sys._getframe().f_code)
    return np.abs(x) * 0.5


def test_functions_run_as_they_are(ends):
    def f(x):
        total = 0.0
        for i in range(_STEPS):
            x = half(x) + i
            total += x.sum().tolist()
        return x, total

    _check(f, np.ones(3))
    assert ends.count(True) == 1
    _codes.clear()
    rune_jit.jit(f)(np.ones(3))
    assert _codes[0] is not half.__code__
    assert _codes[-1] is half.__code__


def test_operands_of_expressions(ends):
    def inner(x, depth):
        for i in range(_STEPS):
            if x.sum().tolist() > 1e9:
                return x
            x = half(x) + i
        return x * 2 - inner(x, depth - 1) if depth else x

    def f(x):
        return (x, x + 1) + (x * 3 + inner(x, 2),) + (x.max() - inner(x, 1).min(),)  # noqa: RUF005

    _check(f, np.ones(3))
    assert False in ends


class _Counter:
    def __init__(self, x):
        self.total, self.history = x * 0, []

    def add(self, x):
        self.total = self.total + half(x)
        self.history.append(self.total.sum().tolist())
        return self

    def __repr__(self):
        return f"{type(self).__name__}({self.total}, {self.history[-3:]})"


def test_objects(ends):
    def f(x, counter):
        made = _Counter(x)
        kinds = set()
        for _ in range(_STEPS):
            made.add(x)
            counter.add(made.total)
            kinds |= {type(made), type(_Counter(x))}
        return made, sorted(map(str, kinds)), isinstance(made, _Counter)

    _check(f, np.ones(3), _Counter(np.ones(3)))
    assert True in ends


def test_functions_in_variables(ends):
    def f(x):
        function, same = half, []
        names = {"half": half}
        for _ in range(_STEPS):
            x = function(x) + x.sum().tolist() * 0.1
            names[str(x[0])] = half
            same.append((function is half, names["half"] is function))
        return x, set(same)

    _check(f, np.ones(3))
    assert True in ends


def test_jitted_functions(ends):
    inner = rune_jit.jit(lambda x, k: np.sin(x) * k)

    def f(x):
        for i in range(_STEPS):
            x = inner(x, 0.5) + x[0].tolist() * i
        return x

    _check(f, np.ones(3))
    assert True in ends


def test_exceptions(ends):
    def f(x):
        for i in range(_STEPS):
            x = half(x) + i
            try:
                if x.sum().tolist() > 10 * i + 1:
                    raise OverflowError(f"{i} {x}")
            except OverflowError:
                x = x - 1
        raise ZeroDivisionError(str(half(x)))

    _check(f, np.ones(3))
    assert True in ends


def test_arguments_written_to(ends):
    def f(x, y):
        for i in range(_STEPS):
            x[i % 3] += half(y).sum().tolist()
            y[...] = half(y) + x[0]
        return x.sum(), y

    _check(f, np.ones(3), np.arange(3.0))
    assert True in ends


def test_variables_of_outer_functions(ends):
    def make():
        count, seen = 0, np.zeros(3)

        def f(x):
            nonlocal count, seen
            for _ in range(_STEPS):
                count += 1
                seen = seen + half(x)
                if seen.sum().tolist() > 100:
                    seen = seen * 0
            return count, seen

        return f

    jitted, plain = rune_jit.jit(make()), make()
    for _ in range(3):
        assert repr(jitted(np.ones(3))) == repr(plain(np.ones(3)))


def scaled(factor):
    def wrap(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(x) * factor

        return wrapper

    return wrap


@scaled(np.arange(3.0))
def twice(x):
    _codes.append(sys._getframe().f_code)
    return x * 2


def test_decorated_functions(ends):
    def f(x):
        for i in range(_STEPS):
            x = twice(half(x)) + x.sum().tolist() * i / 1e3
        return x

    _check(f, np.ones(3))
    assert ends.count(True) == 1
    assert _codes[-1] is twice.__wrapped__.__code__


def test_calls_that_compute_nothing_end_too(monkeypatch):
    monkeypatch.setattr(SegmentedTrace, "_takes_longer_than", lambda self, seconds: True)
    monkeypatch.setattr(early_end, "_PAUSE", 0)
    are_traced = []

    @rune_jit.jit
    def drawn(i):
        are_traced.append(current_trace() is not None)
        return np.random.binomial(1, 0.5) + i

    @rune_jit.jit
    def f(n):
        total = 0
        while total < n:
            total += drawn(len(str(total)))
        return [*reversed(str(total))]

    f(20_000)
    assert "less time than tracing" in f.explain()
    assert are_traced[0] and not are_traced[-1]


def test_lists_of_arguments(ends):
    def f(arrays):
        for i in range(_STEPS):
            arrays[i % 2] = half(arrays[0]) + arrays[1].sum().tolist()
            if i % 20 == 0:
                arrays.append(half(arrays[-1]))
        return arrays[-1]

    _check(f, [np.ones(3), np.arange(3.0)])


def test_callbacks_do_not_end_a_trace(ends):
    def f(x):
        total = 0.0
        for _ in range(_STEPS):
            total += half(x).sum().tolist()
        rows = np.apply_along_axis(lambda row: half(row) * total, 0, x)
        return rows, sorted([3, 1, 2], key=lambda k: half(x).sum().tolist() * k)

    _check(f, np.ones(3))


class _Model:
    def __init__(self):
        self.weights, self.log = np.ones(3), []

    def step(self, x):
        self.log = [(self.weights * x).sum().tolist()]
        self.weights = self.weights + self.log[0]
        return [self.weights, x * 2]


@pytest.mark.parametrize("is_slow", (False, True))
def test_calls_leave_no_reference_to_their_traces(monkeypatch, is_slow):
    """Otherwise each call would search all objects of the process."""
    searched = []
    monkeypatch.setattr(segmented, "_replace_kept", lambda *args: searched.append(args))
    monkeypatch.setattr(SegmentedTrace, "_takes_longer_than", lambda self, seconds: is_slow)
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    step, model = rune_jit.jit(_Model.step), _Model()
    texts = rune_jit.jit(lambda x: [str(x.sum().tolist()), x * 2, x.flat])
    for _ in range(6):
        step(model, np.ones(3))
        texts(np.ones(3))
    assert not searched


@rune_jit.jit
def jitted_total(x):
    total = 0.0
    for i in range(_STEPS):
        total += half(x + i).sum().tolist()
    return total


class JittedTotal:
    @rune_jit.jit
    def of(self, x):
        return jitted_total(x) * 2


def test_arguments_of_running_jitted_functions_are_no_operands(ends):
    def f(x):
        return jitted_total(x * 2) + JittedTotal().of(x * 3)

    _check(f, np.ones(3))
    assert ends and all(ends)  # none has failed
