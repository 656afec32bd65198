"""Variables that are None before a loop which assigns them under conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare import assert_same
from loop_checks import ROLLED

import rune_jit

X = np.random.default_rng(7).normal(size=60)
A = X.reshape(12, 5)
# Of these some loops find nothing.
CASES = (X, -np.abs(X), np.abs(X), np.zeros(60))


def compare(function: Any, cases: Any = CASES) -> list[str]:
    """Compares calls with NumPy's; how the loops run."""
    jitted = rune_jit.jit(function)
    for _ in range(3):
        for x in cases:
            assert_same(jitted(x.copy()), function(x.copy()), ulps=8, scaled=True)
    lines = [line.strip() for line in jitted.explain().splitlines()]
    return [line for line in lines if line.startswith("loop at")]


def rolled(function: Any, cases: Any = CASES) -> None:
    lines = compare(function, cases)
    assert lines and all(line.endswith(ROLLED) for line in lines), lines


def test_numbers_and_positions() -> None:
    def f(x: Any) -> Any:
        last, at, count = None, None, 0
        for i in range(len(x)):
            if x[i] > 1.0:
                last = x[i] * 2
                at = i
                count += 1
        return last, at, count

    rolled(f)


def test_arrays() -> None:
    def f(a: Any) -> Any:
        best, row = 0.5, None
        for i in range(a.shape[0]):
            s = a[i].sum()
            if s > best:
                best, row = s, a[i].copy()
        return best if row is None else (best, row * 2)

    def writes(a: Any) -> Any:
        row = None
        for i in range(a.shape[0]):
            if a[i, 0] > 0.5:
                row = a[i]
        if row is not None:
            row[1] = 9.0
        return a

    rolled(f, [x.reshape(12, 5) for x in CASES])
    assert compare(writes, [x.reshape(12, 5) for x in CASES])


def test_the_first_hit_ends_the_loop() -> None:
    def f(x: Any) -> Any:
        found = None
        for i, value in enumerate(x):
            if value > 1.5:
                found = i
                break
        if found is None:
            return -1.0
        return x[found] + found

    rolled(f)


def test_loops_in_loops_and_both_sides() -> None:
    def f(a: Any) -> Any:
        low: Any = None
        low = high = None
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                if a[i, j] > 1.0:
                    high = (i, j)
                elif a[i, j] < -1.0:
                    low = a[i, j]
        return low, high

    assert compare(f, [x.reshape(12, 5) for x in CASES])


def test_while_loops() -> None:
    def f(x: Any) -> Any:
        i, found = 0, None
        while i < len(x) and x[i] > -2:
            if x[i] > 1.2:
                found = x[i]
            i += 1
        return i, found

    assert compare(f)


def test_what_is_read_in_the_loop() -> None:
    def f(x: Any) -> Any:
        last, total = None, 0.0
        for value in x:
            if value > 0.3:
                if last is not None:
                    total += value - last
                last = value
        return last, total

    def least(x: Any) -> Any:
        best = None
        for i in range(len(x)):
            if x[i] > 0.2 and (best is None or x[i] < x[best]):
                best = i
        return best

    def pivot(a: Any) -> Any:
        place = None
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                if a[i, j] > 0.3 and (place is None or a[i, j] > a[place[0], place[1]]):
                    place = (i, j)
        return place

    def of_rows(a: Any) -> Any:
        found = np.zeros(len(a), int)
        for i in range(len(a)):
            best = None
            for j in range(a.shape[1]):
                if best is None or a[i, j] < a[i, best]:
                    best = j
            found[i] = best
        return found

    rolled(f)
    rolled(least)
    rolled(pivot, [x.reshape(12, 5) for x in CASES])
    rolled(of_rows, [x.reshape(12, 5) for x in CASES])


def test_what_is_read_while_it_is_none() -> None:
    def f(x: Any) -> Any:
        last, total = None, 0.0
        for value in x:
            if value > 0.8:
                total += last * value
            if value > 0.3:
                last = value
        return total, last

    jitted = rune_jit.jit(f)
    ordered = np.array([0.0, 0.5, 0.9, 0.4, 1.5, 0.1])
    for x in (ordered, ordered, np.zeros(6), ordered[::-1].copy(), ordered):
        try:
            expected = f(x)
        except TypeError as error:
            with pytest.raises(TypeError) as found:
                jitted(x)
            assert str(found.value) == str(error)
        else:
            assert_same(jitted(x), expected, ulps=8)


def test_tuples_with_a_part_that_is_none() -> None:
    def nearest(x: Any) -> Any:
        best = (np.inf, None)
        for i in range(20):
            for j in range(i + 1, 20):
                d = abs(x[i] - x[j])
                if d < best[0]:
                    best = (d, (i, j))
        return best

    def swapped(x: Any) -> Any:
        """The new parts are computed before one of them is assigned."""
        pair = (1.0, None, 0)
        for i in range(len(x)):
            if x[i] > 0.4:
                pair = (x[i] - pair[-3], i, pair[2] + 1)
        first, at, count = pair
        return pair, first, at, count

    def whole(x: Any) -> Any:
        """Another function gets the tuple."""
        best = (0.0, None)
        for i in range(len(x)):
            if x[i] > best[0]:
                best = (x[i], i)
        return len(best), max(best, (0.5, -1))

    rolled(nearest)
    compare(swapped)
    rolled(whole, [X, np.abs(X)])


def test_what_stays_or_becomes_none_again() -> None:
    def f(x: Any) -> Any:
        a = None
        b = None
        b = 3.0
        for value in x:
            if value > 1:
                a = value
                b = 2.0
            elif value < -1:
                a = None
        return a, b

    assert compare(f)


def test_functions_see_the_variable() -> None:
    def f(x: Any) -> Any:
        last = None

        def read() -> Any:
            return last

        for value in x:
            if value > 1:
                last = value
        return read()

    assert compare(f)


def test_values_of_other_kinds() -> None:
    def f(x: Any) -> Any:
        kind = None
        for i in range(len(x)):
            if x[i] > 1:
                kind = "high"
            elif x[i] < -1:
                kind = i
        return kind

    compare(f)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_few_iterations(count: int) -> None:
    def f(x: Any) -> Any:
        found = None
        for i in range(count):
            if x[i] > 0:
                found = x[i]
        return found

    compare(f)


def test_calls_from_loops() -> None:
    def last_above(row: Any, limit: float) -> Any:
        found = None
        for value in row:
            if value > limit:
                found = value
        return 0.0 if found is None else found

    def f(a: Any) -> Any:
        out = np.zeros(a.shape[0])
        for i in range(a.shape[0]):
            out[i] = last_above(a[i], 0.5)
        return out

    compare(f, [x.reshape(12, 5) for x in CASES])


def test_the_nearest_of_some_in_each_iteration() -> None:
    def f(x: Any) -> Any:
        label = np.zeros(len(x), int)
        for i in range(len(x)):
            best, least = None, float("inf")
            for j in range(5):
                distance = abs(x[i] - x[j])
                if distance < least:
                    least = distance
                    best = j
            label[i] = best
        return label

    rolled(f)
    jitted, x = rune_jit.jit(f), np.where(np.arange(60) == 40, np.nan, X)
    for _ in range(5):  # there best stays None
        with pytest.raises(TypeError):
            jitted(x)


def test_a_loop_in_a_loop_that_often_finds_nothing() -> None:
    def compared(x: Any) -> Any:
        count, total = 0, 0.0
        for i in range(len(x)):
            found = None
            for j in range(i):
                if x[j] > x[i] + 1:
                    found = x[j]
            if found is not None:
                count, total = count + 1, total + found
        return count, total

    def returned(x: Any) -> Any:
        found, total = None, 0.0
        for i in range(len(x)):
            found = None
            for j in range(i):
                if x[j] > x[i] + 1:
                    found = j
            total += x[i]
        return found, total

    compare(compared)
    compare(returned)
