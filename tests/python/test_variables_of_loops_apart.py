"""Variables of the functions around a loop that runs apart (capture/loops/apart.py), and of the
functions that it calls."""

import numpy as np
import pytest
from test_loops_apart import X, apart

import rune_jit


def without_a_value(x, steps):
    if len(x) < 3:
        X = x
    total = 0.0
    for step in steps.tolist():
        total += step * X[0]
    return total


def test_a_variable_without_a_value_is_no_global():
    jitted = rune_jit.jit(without_a_value)
    for _ in range(3):
        with pytest.raises(UnboundLocalError, match="'X'"):
            jitted(X.copy(), np.arange(3.0))


def of_written_argument(x, steps):
    f = lambda v: v * x  # noqa: E731
    x += 1
    total = x * 0
    for step in steps.tolist():
        total = total + f(step)
    return total


def of_numbers(x, steps):
    scale, total = x.sum(), 0.0
    f = lambda v: v * scale  # noqa: E731
    steps.tolist()
    scale = scale + 1
    for i in range(len(steps)):
        total += f(steps[i])
    return total, scale


def through_another(x, steps):
    rates, total = x * 2, 0.0

    def f(v):
        return v * rates[0]

    def g(v):
        return f(v) + 1

    steps.tolist()
    rates[0] += 1
    for i in range(len(steps)):
        total += g(steps[i])
        rates[0] += 1
    rates[1] += 1
    return total, rates


def that_writes(x, steps):
    def f(v):
        x[0] += v
        return x[1]

    total = 0.0
    steps.tolist()
    x[1] += 1
    for i in range(len(steps)):
        total += f(steps[i])
    x[1] += 1
    return total


def of_defaults(x, steps):
    y, total = x + 1, 0.0
    f = lambda v, y=y: v * y.sum()  # noqa: E731
    steps.tolist()
    y += 1
    for i in range(len(steps)):
        total += f(steps[i])
    return total


@pytest.mark.parametrize(
    "function", [of_written_argument, of_numbers, through_another, that_writes, of_defaults]
)
def test_functions_that_read_traced_variables(function):
    apart(function, lambda: (X.copy(), np.arange(3.0) + 0.5))


class Sizes:
    def measure(self, x):
        x[0].tolist()
        for i in range(20):
            self.total = x.sum() + i
            self.largest = x.max()
            self.mean = self.total / len(x)
        return self.mean


def test_new_attributes_are_in_the_order_of_the_source():
    ours, theirs = Sizes(), Sizes()
    assert rune_jit.jit(ours.measure)(X) == pytest.approx(theirs.measure(X))
    assert list(vars(ours)) == list(vars(theirs))


class Counts:
    def __init__(self, x, shares):
        self.a = x.copy()
        self.b = self.a if shares else x.copy()
        self.log = []

    def count(self, x):
        for _ in range(1, 12, 2):
            self.a += 1
            self.log.append(self.a.sum())
            if x.sum() > 60:
                pass
        self.a += 1
        return self.log


@pytest.mark.parametrize("shares", [False, True])
def test_an_attribute_stays_the_array_that_it_was(shares):
    jitted = rune_jit.jit(lambda model, x: model.count(x))
    for _ in range(3):
        ours, theirs = (Counts(np.arange(3), shares) for _ in range(2))
        a = ours.a
        assert jitted(ours, X) == theirs.count(X)
        assert ours.a is a and ours.a.tolist() == theirs.a.tolist()
        assert ours.b.tolist() == theirs.b.tolist()


def reports(x, report=print):
    for i in range(3):
        report(i, float(x[i]) > 0)
    return x.tolist()


def test_a_variable_holds_a_function_that_a_trace_replaces(capsys):
    wanted = reports(X)
    text = capsys.readouterr().out
    jitted = rune_jit.jit(reports)
    for _ in range(4):
        assert jitted(X) == wanted
        assert capsys.readouterr().out == text


class _Weighted:
    __offset = 3.0

    @rune_jit.jit
    def total(self, x):
        __scale = float(str(x[0]))
        __sum = 0.0
        for i in range(200):
            __sum = __sum + x[i] * __scale + self.__offset
        return __sum


def test_a_loop_apart_uses_private_names_of_a_class():
    x = np.arange(1.0, 300.0)
    for _ in range(3):
        assert _Weighted().total(x) == x[:200].sum() + 600
    assert "more of loops" in _Weighted.total.explain()
