"""Python's sum, max, min, any and all of generators, lists and rows as loops."""

import math

import numpy as np
import pytest
from compare import assert_matches
from loop_checks import rolled

import rune_jit

X = np.random.default_rng(0).normal(size=120)
ROWS = X.reshape(6, 20)


def sums(x):
    n = x.shape[0]
    y = x[::-1]
    return (
        sum(x[i] * x[i] for i in range(n)),
        sum(1 for v in x if v > 0),
        sum((v for v in x), 10.0),
        sum(a * b for a, b in zip(x, y)),  # noqa: B905
        sum(i * v for i, v in enumerate(x)),
        sum([v + 1 for v in x]),
        sum(v if v > 0 else -v for v in x if v < 1 if v > -2),
        sum(int(v * 10) for v in x),
    )


def sums_of_pairs(x):
    n = x.shape[0] // 4
    return sum(x[i] * (i - j) for i in range(n) for j in range(i) if x[j] > 0)


def products(rows):
    n, m = rows.shape
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            out[i, j] = sum(rows[i, k] * rows[j, k] for k in range(m))
    return out


def extremes(x):
    n = x.shape[0]
    return (
        max(x[i] - x[i - 1] for i in range(1, n)),
        min(abs(v) for v in x),
        max([v * v for v in x]),
        max(int(v * 10) for v in x),
    )


def largest_of_rows(rows):
    best = -1e9
    for i in range(rows.shape[0]):
        distance = max(abs(rows[i, k]) for k in range(rows.shape[1]))
        if distance > best:
            best = distance
    return best


def decisions(x):
    n = x.shape[0]
    return (
        any(v > 2 for v in x),
        any(v > 99 for v in x),
        all(x[i] < 9 for i in range(n)),
        all(x[i] < 1 for i in range(n)),
        any(x[i] > x[j] + 3 for i in range(n) for j in range(n)),
        all(x[i] > x[j] - 3 for i in range(n) for j in range(i)),
    )


def primes(x):
    count = 0
    for i in range(2, x.shape[0]):
        if all(i % d != 0 for d in range(2, i)) and x[i] < 9:
            count += 1
    return count


def decided_rows(rows):
    count = 0
    for i in range(rows.shape[0]):
        if any(rows[i, k] > 1.5 for k in range(rows.shape[1])):
            count += 1
        elif not all(rows[i, k] > -1.5 for k in range(rows.shape[1])):
            count += 10
    return count


def norms(rows):
    return [math.sqrt(sum(v * v for v in row)) for row in rows]


@pytest.mark.parametrize("function", [sums, sums_of_pairs, extremes, decisions, primes])
def test_generators_are_loops(function):
    rolled(function, X, ulps=4)


@pytest.mark.parametrize("function", [products, largest_of_rows, decided_rows, norms])
def test_generators_are_loops_in_loops(function):
    rolled(function, ROWS, ulps=4)


def test_functions_of_other_modules_are_theirs():
    def f(x):
        sum = lambda values: 42  # noqa: E731
        return sum(v for v in x)

    assert rune_jit.jit(f)(X) == 42


def test_names_of_generators_are_their_own():
    def f(x):
        v, i = 5.0, 7
        total = sum(v for v in x) + sum(x[i] for i in range(100))
        return total, v, i

    assert_matches(rune_jit.jit(f)(X), f(X))


def test_nothing_has_no_extreme():
    def largest(x):
        return max(v for v in x if v > 99)

    def smallest(x):
        return min(x[i] for i in range(0))

    for f in (largest, smallest):
        for g in (f, rune_jit.jit(f)):
            with pytest.raises(ValueError, match="empty"):
                g(X)


def test_decisions_read_no_more_than_they_need():
    def f(x, at):
        return any(x[at[i]] > 1 for i in range(at.shape[0]))

    jitted = rune_jit.jit(f)
    at = np.array([0, 3, 5, int(np.argmax(X)), 7, 999, 8, 9])
    for _ in range(2):
        assert jitted(X, at) is f(X, at) is True
    with pytest.raises(IndexError):
        jitted(-np.abs(X), at)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8, bool])
@pytest.mark.parametrize("nans", [(), (3,), (0, 7), range(120)])
def test_extremes_of_rows(dtype, nans):
    x = (X * 9).astype(dtype)
    if x.dtype.kind == "f":
        x[list(nans)] = np.nan

    def f(x):
        out = np.zeros(10, x.dtype)
        for i in range(10):
            out[i] = max(x[i : i + 5])
        return max(x), min(x), out

    jitted = rune_jit.jit(f)
    for _ in range(2):
        assert_matches(jitted(x), f(x))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, bool])
def test_decisions_about_arrays_are_one_condition(dtype):
    def f(x):
        flags = any(x > 2), all(x < 9), any(x), all(x)
        return x * 2 if any(x == 0) else x + 1, flags

    jitted = rune_jit.jit(f)
    some = np.arange(1, 40).astype(dtype)
    for x in (some, np.zeros(39, dtype), some, np.full(39, 4).astype(dtype)):
        assert_matches(jitted(x), f(x))
    assert "programs, one for each way" in jitted.explain(), jitted.explain()
    for x in (some.reshape(3, 13), some[:0]):
        if x.ndim > 1:
            with pytest.raises(ValueError, match="ambiguous"):
                jitted(x)
        else:
            assert_matches(jitted(x), f(x))


def test_decisions_about_rows_in_loops():
    def f(rows):
        count = 0
        for i in range(len(rows)):
            if any(rows[i] > 1.5) and not all(rows[i] > -2):
                count += 1
        return count

    rolled(f, ROWS)
