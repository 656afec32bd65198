"""Calls on the host in loops of the program: those of all iterations are made before the loop, if
they take nothing that an iteration before has computed."""

from __future__ import annotations

import numpy as np
import pytest
from loop_checks import both, refused, rolled

import rune_jit


def matrices(n: int = 7, size: int = 5) -> np.ndarray:
    return np.random.default_rng(n).random((n, size, size)) + 3 * np.eye(size)


def test_calls_of_all_iterations() -> None:
    def f(a, b):
        total, order = np.zeros(b.shape), np.zeros(a.shape[0])
        for i in range(a.shape[0]):
            total += np.linalg.solve(a[i], b) * i
            order[i] = np.argsort(a[i, 0])[0]
        return total, order

    rolled(f, matrices(), np.ones((5, 3)), ulps=64)


def test_one_call_takes_what_another_returns() -> None:
    def f(a):
        total = np.zeros(a.shape[1:])
        for m in a:
            values, vectors = np.linalg.eigh(m + m.T)
            q, r = np.linalg.qr(vectors * values)
            total += q @ r
        return total

    rolled(f, matrices(), ulps=1 << 12)


def test_nested_loops() -> None:
    def f(a):
        total = np.zeros(a.shape[1:])
        for i in range(a.shape[0]):
            for j in range(4):
                total += np.linalg.inv(a[i] + j * 0.1) * (i - j)
        return total

    rolled(f, matrices(), ulps=1 << 10)


def test_a_call_that_is_the_same_in_all_iterations() -> None:
    def f(a):
        for i in range(1, a.shape[0]):
            a[i] = a[i - 1] + np.linalg.inv(np.eye(5) * 2)
        return a

    rolled(f, matrices(), ulps=8)


def test_indices_and_conditions_from_the_host() -> None:
    def f(a, x):
        total = 0.0
        for i in range(a.shape[0]):
            order = np.argsort(a[i, 0])
            if np.median(a[i]) > 0.6:
                total = total + x[order[0]]
            x[order[1:3]] += 1
        return total, x

    both(f, matrices(), np.arange(5.0))


def test_lists_of_what_the_host_returns() -> None:
    def f(a):
        return np.array([np.linalg.det(m) for m in a]), [np.sort(m, axis=None) for m in a]

    rolled(f, matrices(20), ulps=64)


def test_large_and_small_iterations_backwards() -> None:
    def f(a):
        total = np.zeros(5)
        for i in range(a.shape[0] - 1, 0, -1):
            total = total * 0.5 + np.sort(a[i, 0])
        return total

    rolled(f, matrices())


def test_calls_of_what_an_iteration_has_computed() -> None:
    def value(a, x):
        for i in range(a.shape[0]):
            x = np.linalg.lstsq(a[i], x)[0]
        return x

    def array(a, x):
        for i in range(a.shape[0] - 1):
            a[i + 1] += np.sort(a[i], axis=0)
        return a

    def of_an_outer_loop(a, x):
        for _ in range(a.shape[0]):
            y = x * 0
            for j in range(4):
                y = y + np.partition(x + j, 2)
            x = y * 0.25
        return x

    refused("it calls numpy.linalg.lstsq on the host", value, matrices(), np.ones(5))
    refused("it calls numpy.sort on the host", array, matrices(), np.ones(5))
    refused("it calls numpy.partition on the host", of_an_outer_loop, matrices(), np.ones(5))


def test_calls_under_conditions() -> None:
    def some(a):
        total = np.zeros((5, 5))
        for i in range(a.shape[0]):
            if a[i, 0, 0] > 3.5:
                total += np.linalg.pinv(a[i] - a[i, 0, 0])
        return total

    def until(a):
        total = np.zeros((5, 5))
        for i in range(a.shape[0]):
            if a[i, 0, 0] > 3.8:
                break
            total += np.linalg.pinv(a[i])
        return total

    for f in (some, until):
        refused("on the host", f, matrices())


@pytest.mark.parametrize("at", (0, 3))
def test_errors_reach_the_caller(at: int) -> None:
    def f(a, out):
        for i in range(a.shape[0]):
            out[i] = np.linalg.inv(a[i])[0, 0]
        return out

    a, out, wanted = matrices(), np.zeros(7), np.zeros(7)
    a[at] = 0
    jitted = rune_jit.jit(f)
    for _ in range(3):
        out[:] = 0
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            jitted(a, out)
    with pytest.raises(np.linalg.LinAlgError):
        f(a, wanted)
    np.testing.assert_allclose(out, wanted)


def test_an_earlier_error_comes_first() -> None:
    def f(a, x):
        total = 0.0
        for i in range(a.shape[0]):
            total += x[i] + np.linalg.inv(a[i])[0, 0]
        return total

    a = matrices()
    a[5] = 0
    with pytest.raises(IndexError):
        rune_jit.jit(f)(a, np.ones(3))


def test_large_arrays_are_not_kept_for_all_iterations() -> None:
    def f(a):
        total = 0.0
        for i in range(40):
            total = total + np.sort(a + i)[0]
        return total

    refused("for large arrays", f, np.zeros(1 << 19))


def test_the_first_iteration_that_raises_raises() -> None:
    def f(a):
        total = np.zeros(a.shape[1:])
        for i in range(a.shape[0]):
            total += np.linalg.cholesky(a[i])
        return total

    many = matrices(40, 60)
    many = many @ many.transpose(0, 2, 1)
    rolled(f, many, ulps=1 << 12)
    many[[9, 23, 31]] = -1
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        rune_jit.jit(f)(many)


def test_one_element_is_left_out_or_put_in() -> None:
    def f(a, x):
        without, rows = np.zeros(a.shape[0]), np.zeros(a.shape[0])
        for i in range(a.shape[0]):
            without[i] = np.delete(a[i], i)[-1] + np.delete(x.T, -1 - i, axis=1)[0, 0]
            rows[i] = np.insert(np.delete(a, i, axis=0)[:, 0], i, 0.5)[1]
        return without, rows

    a = np.random.default_rng(1).random((6, 6))
    rolled(f, a, a)


def test_an_element_that_is_not_there() -> None:
    def f(x, i):
        return np.delete(x, i[0])

    for i in (0, 4, -5):
        both(f, np.arange(5.0), np.array([i]))
    for i in (5, -6):
        text = f"^index {i} is out of bounds for axis 0 with size 5$"
        with pytest.raises(IndexError, match=text):
            rune_jit.jit(f)(np.arange(5.0), np.array([i]))
