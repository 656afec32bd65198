"""Loops that a condition on values ends: `while`, `break`, `continue` and `return` in loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_checks import both, refused, rolled

import rune_jit


def x(n: int = 9, dtype: Any = np.float64) -> np.ndarray:
    return np.arange(1, n + 1).astype(dtype)


def system(n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((n, n)) / n + np.eye(n) * 2, rng.random(n)


# Loops that run until something has converged.


def _jacobi(a, b):
    solution = np.zeros_like(b)
    diagonal = np.diag(a)
    rest = a - np.diag(diagonal)
    error, count = 1.0, 0
    while error > 1e-10:
        new = (b - rest @ solution) / diagonal
        error = np.abs(new - solution).max()
        solution = new
        count += 1
    return solution, count, error


def _jacobi_with_break(a, b):
    solution = np.zeros_like(b)
    diagonal = np.diag(a)
    rest = a - np.diag(diagonal)
    for count in range(100):  # noqa: B007
        new = (b - rest @ solution) / diagonal
        if np.linalg.norm(new - solution) < 1e-10:
            break
        solution = new
    return solution, count


def _jacobi_at_most(a, b):
    solution, count = np.zeros_like(b), 0
    diagonal = np.diag(a)
    error = np.inf
    while count < 5 and error > 1e-10:
        new = (b - a @ solution) / diagonal + solution
        error = np.abs(new - solution).sum()
        solution = new
        count += 1
    return solution, count


def _conjugate_gradients(a, b):
    a = a + a.T
    solution = np.zeros_like(b)
    r = b - a @ solution
    p, rs = r.copy(), r @ r
    while np.sqrt(rs) > 1e-10:
        ap = a @ p
        alpha = rs / (p @ ap)
        solution += alpha * p
        r -= alpha * ap
        new = r @ r
        p = r + (new / rs) * p
        rs = new
    return solution


def _largest_eigenvalue(a, b):
    for count in range(1000):  # noqa: B007
        new = a @ b
        new /= np.sqrt(new @ new)
        if np.abs(new - b).max() < 1e-12:
            break
        b = new
    else:
        count = -1
    return b, count, b @ a @ b


def _heat(a, b):
    error = 1.0
    while error > 1e-3:
        before = a.copy()
        a[1:-1, 1:-1] = 0.25 * (a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2])
        error = np.abs(a - before).max()
    return a


@pytest.mark.parametrize(
    "f",
    (
        *(_jacobi, _jacobi_with_break, _jacobi_at_most, _conjugate_gradients),
        *(_largest_eigenvalue, _heat),
    ),
)
def test_iterative_methods(f: Callable[..., Any]) -> None:
    rolled(f, *system(), ulps=256)


def test_newton_and_bisection() -> None:
    def newton(a):
        y = a[0]
        while abs(y * y - 2) > 1e-12:
            y = y - (y * y - 2) / (2 * y)
        return y

    def bisection(a):
        low, high = a[0], a[-1]
        while high - low > 1e-9:
            middle = (low + high) / 2
            if middle * middle * middle > 20:
                high = middle
            else:
                low = middle
        return low, high

    def line_search(a):
        step, tries = 1.0, 0
        value = (a * a).sum()
        while ((a - step * 4 * a) ** 2).sum() > value * (1 - 0.1 * step):
            step *= 0.5
            tries += 1
        return step, tries

    for f in (newton, bisection, line_search):
        rolled(f, x())


def test_a_loop_that_does_not_run() -> None:
    def f(a, y):
        n = 0
        while y[0] < 0:
            a = a + 1
            y = y + 3
            n += 1
        return a, y, n

    rolled(f, x(), x())
    rolled(f, x(), -x())


def test_counters_keep_their_type() -> None:
    def f(a):
        s, n, m = a.sum(), 0, 10
        while s > 1:
            s = s / 2
            n += 1
            m = m - 2
        return n, m, n * 2

    rolled(f, x())


# Numbers.


def test_integers() -> None:
    def collatz(a):
        steps = np.zeros_like(a)
        for i in range(len(a)):
            n = a[i]
            while n != 1:
                if n % 2 == 0:  # noqa: SIM108
                    n = n // 2
                else:
                    n = 3 * n + 1
                steps[i] += 1
        return steps

    def divisors(a, b):
        result = np.zeros_like(a)
        for i in range(len(a)):
            p, q = a[i], b[i]
            while q:
                p, q = q, p % q
            result[i] = p
        return result

    rolled(collatz, x(30, np.int64))
    rolled(divisors, x(9, np.int64) * 6, x(9, np.int64) * 4)


def test_break_for_each_element() -> None:
    def mandelbrot(xs, ys):
        result = np.zeros((len(ys), len(xs)), np.int64)
        for j in range(len(ys)):
            for i in range(len(xs)):
                re, im = 0.0, 0.0
                for k in range(50):  # noqa: B007
                    re, im = re * re - im * im + xs[i], 2 * re * im + ys[j]
                    if re * re + im * im > 4:
                        break
                result[j, i] = k
        return result

    rolled(mandelbrot, np.linspace(-2, 1, 20), np.linspace(-1, 1, 10))


def test_insertion_sort() -> None:
    def f(a):
        for i in range(1, len(a)):
            key, j = a[i], i - 1
            while j >= 0 and a[j] > key:
                a[j + 1] = a[j]
                j -= 1
            a[j + 1] = key

    rolled(f, np.array([3, 1, 2, 5, 4, 9, 0]))


# Jumps.


def test_search_with_return() -> None:
    def position(a, value):
        for i in range(len(a)):
            if a[i] == value:
                return i
        return -1

    def pair(a, value):
        for i in range(len(a)):
            for j in range(i):
                if a[i] + a[j] == value:
                    return i, j
        return -1, -1

    def row(a, value):
        for i in range(a.shape[0]):
            if a[i, 0] > value:
                return a[i] * 2
        return a[0] - 1

    for value in (1, 4, 9, 17, 100):
        rolled(position, x(), value)
        rolled(pair, x(), value)
        rolled(row, x(24).reshape(6, 4), value)


def test_search_with_else() -> None:
    def f(a, limit):
        for i in range(len(a)):
            if a[i] > limit:
                break
        else:
            i = -7
        return i

    rolled(f, x(), 3)
    rolled(f, x(), 30)


def test_what_a_called_function_returns_from_its_loop() -> None:
    def first_above(row, limit):
        for k in range(len(row)):
            if row[k] > limit:
                return row[k]
        return row[0] * 0

    def f(a):
        result = np.zeros(a.shape[0])
        for i in range(a.shape[0]):
            result[i] = first_above(a[i], 2 * i)
        return result

    rolled(f, np.random.default_rng(0).random((6, 5)) * 12)


def test_continue() -> None:
    def f(a):
        total, count = a[0] * 0, 0
        for i in range(len(a)):
            if a[i] % 2 == 0:
                continue
            total += a[i]
            if a[i] % 3 == 0:
                a[i] = 0
                continue
            count += 1
            a[i] += 1
        return total, count

    rolled(f, x())
    rolled(f, x(dtype=np.int64))


def test_break_within_conditions() -> None:
    def f(a):
        k = 0
        for i in range(len(a)):
            if a[i] > 3:
                if a[i] > 5:
                    a[i] = -1
                    break
                a[i] = 10
            elif i == 1:
                a[i] *= 7
            a[i] += 0.5
            k = i
        a[0] = 3
        return k, i

    rolled(f, x())


def test_while_true() -> None:
    def f(a):
        y, n = a.sum(), 0
        while True:
            y = y * 0.5
            n += 1
            if y < 1e-3:
                break
            a += y
        return y, n

    rolled(f, x())


def test_counted_while() -> None:
    def up(a):
        i, s = 0, a[0] * 0
        while i < len(a):
            s += a[i]
            i += 2
        return s, i

    def down(a):
        i, s = a.shape[0] - 1, a[0] * 0
        while i >= 1:
            a[i - 1] += a[i]
            i -= 1
        return s, i

    def first(a):
        i = 0
        while i < len(a) and a[i] < 4:
            i += 1
        return i

    for f in (up, down, first):
        rolled(f, x())
        rolled(f, x(8, np.int64))


def test_an_index_beyond_the_end_is_an_error() -> None:
    def f(a):
        i = 0
        while a[i] > 0:
            i += 1
        return i

    rolled(f, np.array([1.0, 2.0, 0.0, 3.0]))
    with pytest.raises(IndexError):
        f(x())
    with pytest.raises(IndexError):
        rune_jit.jit(f)(x())


def test_nested_while() -> None:
    def f(a):
        n = 0
        while a.sum() > 1:
            k = a.max()
            while k > 0.5:
                k = k * 0.5
                n += 1
            a *= 0.25 + k * 0.5
        return n, a

    rolled(f, x())


def test_the_last_number_of_a_loop_that_has_been_left() -> None:
    def f(a):
        for i in range(2, len(a)):
            y = a[i] * a[i - 1]
            if y > 20:
                break
        return i, y

    rolled(f, x())


def test_best_so_far() -> None:
    def f(a):
        best, at, count = a[0], 0, 0
        for i in range(len(a)):
            if a[i] > best:
                best = a[i]
                at = i
                count += 1
        return best, at, count

    rolled(f, np.array([3.0, 1, 4, 1, 5, 9, 2, 6]))


# What is refused.


def test_a_name_that_may_be_either_of_two_arrays_is_not_written_to() -> None:
    def f(a, b):
        for i in range(6):
            if a[i] > 3:
                break
            b = a * 2
        b += 1
        return a, b

    both(f, x(), -x())


def test_a_write_after_a_loop_that_may_not_run() -> None:
    def f(a):
        b = a
        while b[0] < 5:
            b = b * 2
        b += 1
        return a, b

    both(f, x())
    both(f, x() + 9)


def test_a_python_integer_of_unknown_size() -> None:
    def f(a):
        k = 1
        while a[0] > 0:
            a -= 1
            k = k * 3
        return k

    refused("k is a Python integer of unknown size", f, x() * 50)


def test_jumps_in_try_keep_their_meaning() -> None:
    def f(a):
        for i in range(9):
            try:
                if i == 4:
                    break
                a[i] = 0
            finally:
                a[0] += 1
        return a

    both(f, x())


def test_a_condition_without_effect_on_the_program() -> None:
    def f(a):
        n = 1
        while n < 100:
            n *= 2
        return a[: n % 7]

    both(f, x())


def test_what_does_not_run_need_not_end() -> None:
    def walk(next_, starts):
        steps = 0
        for k in range(len(starts)):
            if starts[k] < 0:
                continue
            at = 9
            while at != 0:
                at = next_[at] + starts[k]
                steps += 1
        return steps

    def count(times):
        total = 0
        for k in range(len(times)):
            if times[k] < 100:
                for i in range(times[k]):
                    total += i
        return total

    # A step of -1 more goes round for ever.
    rolled(walk, np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 8]), np.array([0, -1, 0, -1, 0]))
    rolled(count, np.array([3, 2**40, 5, 2**40, 7]))
