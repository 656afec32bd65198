"""Functions that return values of other types where a loop is left: there is a program for each way
through them."""

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

A = np.random.default_rng(0).integers(0, 20, 80)


def pair(a, wanted):
    for i in range(len(a)):
        for j in range(i + 1, len(a)):
            if a[i] + a[j] == wanted:
                return i, j
    return None


def position(a, wanted):
    for i, v in enumerate(a):
        if v == wanted:
            return i


def text(a, wanted):
    k = 0
    for i in range(len(a)):
        if a[i] == wanted:
            k = i
            break
    else:
        return "none"
    return k + a[k]


def early(a, wanted):
    for i in range(len(a)):
        if a[i] == wanted:
            return None
    total = 0.0
    for i in range(len(a)):
        total = 0.5 * total + a[i]
    return total


def array(a, wanted):
    k = 0
    while k < len(a):
        if a[k] == wanted:
            return a[k:] if k < 0 else a * k
        k += 1
    return -1


@pytest.mark.parametrize("function", [pair, position, text, early, array])
def test_each_way_has_a_program(function):
    jitted = rune_jit.jit(function)
    for wanted in (7, 99, 38, 11, 98, 0, -1):
        expected, found = function(A, wanted), jitted(A, wanted)
        assert type(found) is type(expected)
        if expected is not None:
            assert_matches(found, expected)
    assert "is a loop of the program" in jitted.explain()
    assert "programs, one for each way" in jitted.explain()


def test_ways_within_a_loop_are_no_programs():
    def f(a, x):
        found = []
        for k in x.tolist():
            found.append(position(a, k))
        return found

    x = np.array([7, 99, 11, 0])
    jitted = rune_jit.jit(f)
    for _ in range(3):
        assert jitted(A, x) == f(A, x)
