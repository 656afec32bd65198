"""Loops over ranges that data decide, outside of other loops, and over reversed ranges."""

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


def filtered_backwards(x):
    out, acc = np.zeros_like(x), np.zeros(x.shape[1])
    for t in reversed(range(x.shape[0])):
        acc = x[t] + 0.9 * acc
        out[t] = acc
    return out, t


def rows_backwards(x):
    s = 0.0
    for row in reversed(x):
        s = 0.5 * s + row.sum()
    return s


def triangle_backwards(x):
    for i in range(x.shape[0]):
        for j in reversed(range(i)):
            x[i, j] += x[j, i] * 0.5 + x[i, j + 1]
    return x


def steps_backwards(x):
    for i in reversed(range(1, x.shape[0], 2)):
        x[i] += x[i - 1] * 2
    return x, i


def until_backwards(x):
    for i in reversed(range(x.shape[0] - 1)):
        x[i] -= 0.3 * x[i + 1]
        if x[i, 0] < 0:
            break
    return x, i


@pytest.mark.parametrize(
    "function",
    [filtered_backwards, rows_backwards, triangle_backwards, steps_backwards, until_backwards],
)
def test_reversed(function):
    rolled(function, np.random.default_rng(0).random((9, 9)), ulps=16)


def test_reversed_lists_and_empty_ranges_are_pythons():
    def f(x):
        out = []
        for v in reversed([1, 2, 3, 4, 5]):
            out.append(x[v] * 2)
        for i in reversed(range(0)):
            out.append(x[i])
        return out

    both(f, X)


def test_nested_ranges_of_any_length() -> None:
    def nest(x, n):
        count, total = int(n[0]), 0.0
        for i in range(count):
            for j in range(count):
                for k in range(count):
                    for m in range(count):
                        total += x[i] * x[j] + x[k] * x[m]
        return total

    for count in (0, 3):
        rolled(nest, X, np.array([count]), ulps=8)


def test_bounds_that_are_numpy_s_integers():
    def f(n):
        s = np.zeros(n)
        for i in range(np.int64(1), n):
            s[i] = s[i - 1] + i
        return s

    jitted = rune_jit.jit(f)
    for n in (np.int64(30), np.int32(40)):
        np.testing.assert_array_equal(jitted(n), f(n))
    assert jitted.explain().count("is a loop of the program") == 2


def with_name(x):
    total = 0.0
    for i in range(1, len(x)):
        few = range(1, min(i, len(x) - i) + 1)
        for j in few:
            total += x[i] * x[j]
    return total


def of_inner_function(x):
    def best(i):
        values = np.zeros(len(x))
        places = range(i)
        for j in places:
            values[j] = x[j] * i
        return np.max(values)

    for i in range(1, len(x)):
        x[i] = best(i)
    return x


def with_two_ranges(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        if i % 2:  # noqa: SIM108
            places = range(i, len(x))
        else:
            places = range(0, i, 2)
        for j in places:
            out[i] += x[j]
        for k, j in enumerate(places):
            out[i] += k * x[j]
    return out


@pytest.mark.parametrize("function", [with_name, of_inner_function])
def test_ranges_with_names(function):
    rolled(function, X, ulps=16)


def of_parameter(x, places=None):
    if places is None:
        places = range(len(x))
    return np.array([x[i] * 2 for i in places])


def read_otherwise(x):
    total = 0.0
    for i in range(2, len(x)):
        places = range(0, i)
        for j in places:
            total += x[j]
        total += len(places) + places[1]
    return total, places


@pytest.mark.parametrize("function", [with_two_ranges, of_parameter, read_otherwise])
def test_ranges_with_names_that_are_read_otherwise(function):
    both(function, X, ulps=16)
