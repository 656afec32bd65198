"""What has run in segments when an index is out of bounds: the operations before it."""

import numpy as np
import pytest
from compare import assert_same, outcome
from segment_checks import never_numpy

import rune_jit

__all__ = ["never_numpy"]  # a fixture of all tests here

BAD = np.array([0, 3, 9, 2])


class Holder:
    pass


def part(x, at, held, log):
    x[0] = x[1].tolist()
    x[at] = 7
    x[1] = 9
    log.append("after")


def rows(x, at, held, log):
    number = x[0].tolist()
    square = held.values = np.full((4, 4), number)
    square[at, 0] += 7
    square[:] = 0
    held.done = True


def of_computed_indices(x, at, held, log):
    number = x[0].tolist()
    held.values, more = np.zeros(6), at + 0
    view = held.values[2:]
    view[0] = 3
    x[:] = view[more % 2] @ np.ones(4)
    x[1] = view[more[2]]
    view[1] = number
    x[:] = 0


def of_swapped_arrays(x, at, held, log):
    held.values = y = x + x[0].tolist()
    x[:] = y
    y[:] = x[::-1]
    x[(at + 0)[1]] += y[(at + 0)[2]]
    y[:] = 0


def in_a_loop(x, at, held, log):
    number = x[0].tolist()
    for i in range(40):
        x[i % 6] += number
        held.values = x * x[at[i % 3]]
        log.append(i)


def in_an_inner_loop(x, at, held, log):
    x[0].tolist()
    for i in range(3):
        x[i] = 9
        for j in range(i):
            x[at[i]] = j
    x[5] = 7


def of_two_writes(x, at, held, log):
    x[0].tolist()
    x[at[0]], x[at[2]] = 5, 6
    x[5] = 7


def of_counts(x, at, held, log):
    x[0] = np.bincount(at).sum().tolist()
    x[1] = np.bincount(at - 1)[0]
    x[2] = x[at[2]]


def handled(x, at, held, log):
    x[0].tolist()
    try:
        x[at + 0] = 7
    except IndexError as error:
        log.append(str(error))


USES = [
    *(part, rows, of_computed_indices, of_swapped_arrays, in_a_loop, in_an_inner_loop),
    *(of_two_writes, of_counts, handled),
]


@pytest.mark.parametrize("use", USES)
def test_nothing_after_the_index_has_run(use):
    jitted = rune_jit.jit(use)
    for at in (BAD, BAD, BAD % 4, BAD):
        found, wanted = ((np.arange(1.0, 7.0), at, Holder(), []) for _ in range(2))
        actual, expected = outcome(jitted, *found), outcome(use, *wanted)
        assert type(actual) is type(expected)
        assert str(actual) == str(expected)
        assert_same(found[0], wanted[0], ulps=8)
        assert_same(vars(found[2]), vars(wanted[2]), ulps=8)
        assert found[3] == wanted[3]


def test_many_indices_out_of_bounds():
    def use(x, at):
        x[0] = x[1].tolist()
        x[at] = 7
        x[1] = 9

    at = np.arange(20_000)
    at[-2] = -20_001
    jitted = rune_jit.jit(use)
    for function in (jitted, use, jitted):
        x = np.ones(20_000)
        with pytest.raises(IndexError, match="index -20001 is out of bounds for axis 0"):
            function(x, at)
        np.testing.assert_array_equal(x, 1)


def of_two(x, i, j):
    j = x.sum() + j
    print(float(x[0, 0]))
    return x[i, j]


def of_three(x, i, j):
    y = x.reshape(3, 3, 2)
    print(float(x[0, 0]))
    return y[1, x.sum() + i, x.sum() + j]


def of_float(x, i, j):
    print(float(x[0, 0]))
    return x[x.sum() * 0.5]


@pytest.mark.parametrize("function", [of_two, of_three, of_float])
@pytest.mark.parametrize("i, j", [(1, 0), (-9, -20), (-10, -19), (0, -17), (99, -9)])
def test_the_axis_that_is_named(function, i, j, capsys):
    jitted = rune_jit.jit(function)
    for _ in range(3):
        x = np.ones((9, 2), np.int64)
        x[0, 0] = -8
        assert repr(outcome(jitted, x, i, j)) == repr(outcome(function, x, i, j))
