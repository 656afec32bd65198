"""Loops over ranges that data decide, outside of other loops."""

import numpy as np
import pytest
from loop_checks import both, rolled

import rune_jit

X = np.random.default_rng(0).normal(size=60)


def decayed(x, n):
    count, total = int(n[0]), 0.0
    for i in range(count):
        total = 0.9 * total + x[i]
    return total


def of_numpys(x, n):
    out = np.zeros(x.shape[0])
    for i in range(n[0], 2 * n[0] + 3):
        out[i] = x[i] * i + out[i - 1]
    return out


def backwards(x, n):
    out = x.copy()
    for i in range(np.sum(x > 0) + n[0], 1, -2):
        out[i] += out[i - 1]
    return out


def left(x, n):
    found = -1
    for i in range(n[0]):
        if x[i] > 1:
            found = i
            break
    else:
        found = -2
    return found


def nested(x, n):
    total, out = 0.0, np.zeros(20)
    for i in range(2, int(n[0])):
        for j in range(i):
            total += x[j] * x[i]
            if total > 1:
                total -= x[i]
        out[i % 20] = total
    return out, total


def last(x, n):
    i = -1
    for i in range(3, n[0] + 3, 4):
        x[i] = 0
    return i


@pytest.mark.parametrize("n", [0, 1, 5, 17])
@pytest.mark.parametrize("function", [decayed, of_numpys, backwards, left, nested, last])
def test_data_decide_how_many_iterations_there_are(function, n):
    rolled(function, X, np.array([n]))


def test_there_is_one_program():
    jitted = rune_jit.jit(decayed)
    for n in (3, 0, 7, 60, 59, -4):
        assert jitted(X, np.array([n])) == pytest.approx(decayed(X, np.array([n])))
    assert "as one program" in jitted.explain()
    with pytest.raises(IndexError):
        jitted(X, np.array([61]))


def test_the_target_may_have_no_value():
    def f(x, n):
        for i in range(n[0]):
            x[i] = 0
        return i

    jitted = rune_jit.jit(f)
    assert jitted(X.copy(), np.array([4])) == 3
    with pytest.raises(UnboundLocalError):
        jitted(X.copy(), np.array([0]))


def test_a_range_that_is_no_loop_of_the_program():
    def f(x, n):
        names = []
        for i in range(n[0]):
            names.append(f"{i}")
            x[i] += 1
        return names

    both(f, X, np.array([5]))
