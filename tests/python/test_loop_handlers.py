"""Loops with `try` statements and `np.errstate`, and such statements around loops: handlers run
where NumPy raises."""

import copy

import numpy as np
import pytest
from compare import assert_same
from loop_checks import ROLLED, rolled

import rune_jit

X = np.random.default_rng(0).random(40) + 0.1
ZEROS = np.where(np.arange(40) % 9 == 4, 0.0, X)


def outcome(function, *args):
    """What a call returns or raises, and what it leaves in its arguments."""
    args = copy.deepcopy(args)
    try:
        result = function(*args)
    except Exception as error:
        result = type(error), str(error)
    return result, args


def compare(function, *calls):
    """Compares calls with other data, in turns, with NumPy."""
    jitted = rune_jit.jit(function)
    for _ in range(3):
        for args in calls:
            (actual, left), (expected, wanted) = outcome(jitted, *args), outcome(function, *args)
            if isinstance(expected, tuple) and isinstance(expected[0], type):
                assert actual == expected
            else:
                assert_same(actual, expected, ulps=2)
            assert_same(left, wanted, ulps=2)
    return jitted


def reciprocals(x):
    out, missing = np.zeros(len(x)), 0
    for i in range(len(x)):
        try:
            out[i] = 1.0 / float(x[i])
        except ZeroDivisionError:
            missing += 1
            out[i] = np.nan
    return out, missing


def goes_on(x):
    total = 0.0
    for i in range(len(x)):
        try:
            y = 1.0 / float(x[i])
        except ZeroDivisionError:
            continue
        total += y * i
    return total


def breaks(x):
    total, last = 0.0, -1
    for i in range(len(x)):
        try:
            total += 1.0 / float(x[i])
        except ZeroDivisionError:
            last = i
            break
        else:
            total -= 1
    return total, last


def breaks_before_else(x):
    total = 0.0
    for i in range(len(x)):
        try:
            total += 1.0 / float(x[i])
        except ZeroDivisionError:
            break
    else:
        total = -total
    return total


def returns(x):
    total = 0.0
    for i in range(len(x)):
        try:
            total += 1.0 / float(x[i])
        except ZeroDivisionError:
            return i, total
    return -1, total


def handles_all(x):
    total = 0.0
    for i in range(len(x)):
        try:
            total += 1.0 / float(x[i])
        except:  # noqa: E722
            total = 0.0
    return total


def is_around(x):
    out, i = np.zeros(len(x)), -1
    try:
        for i in range(len(x)):
            out[i] = 1.0 / float(x[i])
    except (ZeroDivisionError, IndexError) as error:
        out[0] = i
        return out, str(error)
    return out, ""


def raises(x):
    total = 0.0
    for i in range(len(x)):
        try:
            if x[i] == 0:
                raise ValueError(f"zero at {i}")
            total += 1 / x[i]
        except ValueError as error:
            total -= len(str(error))
    return total


def raises_again(x):
    for i in range(len(x)):
        try:
            x[i] = 1.0 / float(x[i])
        except ZeroDivisionError as error:
            raise ValueError(f"zero at {i}") from error
    return x


def inverse(y):
    try:
        return 1.0 / float(y)
    except ZeroDivisionError:
        return 0.0


def calls(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = inverse(x[i])
    return out


def holds_a_loop(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        try:
            for j in range(i, len(x)):
                if x[j] > 1:
                    break
                out[i] += x[j]
            out[i] = out[i] + 1.0 / float(x[i])
        except ZeroDivisionError:
            out[i] = -1
    return out


def keeps_what_came_before(x):
    total, count = 0.0, 0
    for i in range(len(x)):
        try:
            count += 1
            total += 1.0 / float(x[i])
            count += 1
        except ZeroDivisionError:
            total += count
    return total, count


@pytest.mark.parametrize(
    "function",
    [
        *(reciprocals, goes_on, breaks, breaks_before_else, returns, handles_all, is_around),
        *(raises, raises_again, calls, holds_a_loop, keeps_what_came_before),
    ],
)
def test_handler(function):
    jitted = rune_jit.jit(function)
    for _ in range(2):
        jitted(X.copy())
    assert (ROLLED in jitted.explain()) == (function is not breaks_before_else)
    compare(function, (X,))
    compare(function, (X,), (ZEROS,), (X * 2,))
    compare(function, (ZEROS,), (X,))


def neighbours(x, at):
    out = np.zeros(len(x))
    for i in range(len(x)):
        try:
            out[i] = x[at[i]] * 2
        except IndexError:
            out[i] = -1
    return out


def test_index_out_of_bounds():
    inside = np.arange(40)[::-1].copy()
    rolled(neighbours, X, inside)
    compare(neighbours, (X, inside), (X, inside + 3), (X, inside - 5))


def test_index_out_of_bounds_at_the_edge():
    def f(x):
        out = np.zeros_like(x)
        for i in range(len(x)):
            try:
                out[i] = x[i + 1] - x[i]
            except IndexError:
                out[i] = 7
        return out

    compare(f, (X,))


def test_handlers_of_functions_within_the_function():
    def once(x, at):
        def read():
            try:
                return x[at]
            except IndexError:
                return x[:1]

        return read()

    def often(x, at):
        found = []
        for i in at:

            def read():
                try:  # noqa: SIM105
                    found.append(x[i])  # noqa: B023
                except IndexError:
                    pass

            read()
        return found

    for function in (once, often):
        compare(function, (X, np.arange(30, 36)), (X, np.arange(36, 44)))


def test_newton_with_singular_matrices():
    def f(a, b):
        x, damping = np.zeros(len(b)), 0.0
        for _ in range(12):
            try:
                step = np.linalg.solve(a + damping * np.eye(len(b)), b - a @ x)
            except np.linalg.LinAlgError:
                damping = 0.5
                continue
            x = x + step
            if np.abs(step).max() < 1e-12:
                break
        return x, damping

    spd = np.cov(np.random.default_rng(0).random((4, 50))) + np.eye(4)
    jitted = rune_jit.jit(f)
    for a in (spd, np.ones((4, 4)), spd):
        for actual, expected in zip(jitted(a, X[:4]), f(a, X[:4]), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-9)


def within_errstate(x, y):
    out = np.zeros(len(x))
    for i in range(len(x)):
        with np.errstate(divide="ignore", invalid="ignore"):
            q = x[i] / y[i]
            if q > 2:
                out[i] = q
        if np.isnan(q):
            out[i] = -1
    return out


def in_errstate(x, y):
    out = np.zeros(len(x))
    with np.errstate(all="ignore"):
        for i in range(len(x)):
            out[i] = np.log(y[i]) / x[i]
            if out[i] < -1e6:
                break
    return out, i


@pytest.mark.parametrize("function", [within_errstate, in_errstate])
def test_errstate(function):
    rolled(function, X, X[::-1].copy(), ulps=4)
    with np.errstate(all="ignore"):
        compare(function, (X, ZEROS), (ZEROS, X))


def test_errstate_that_raises():
    def f(x, y):
        out = np.zeros(len(x))
        for i in range(len(x)):
            with np.errstate(divide="raise"):
                out[i] = x[i] / y[i]
        return out

    compare(f, (X, X), (X, ZEROS))


def test_other_context_managers():
    class Swallows:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return True

    def errstate():
        return Swallows()

    def f(x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            with errstate():
                out[i] = 1.0 / float(x[i])
                out[i] += 1
        return out

    compare(f, (X,), (ZEROS,))


def test_counts_of_labels():
    def f(x, centers):
        for _ in range(20):
            labels = np.abs(x[:, None] - centers).argmin(1)
            sums = np.bincount(labels, weights=x, minlength=len(centers))
            counts = np.bincount(labels, minlength=len(centers))
            with np.errstate(invalid="ignore"):
                new = np.where(counts > 0, sums / counts, centers)
            if np.abs(new - centers).max() < 1e-9:
                break
            centers = new
        return centers, labels

    rolled(f, X, np.array([0.2, 0.5, 0.9, 5.0]), ulps=8)


def test_counts_that_exceed_the_least_length():
    def f(x, at):
        total = 0.0
        for i in range(5):
            total += (np.bincount(at + i, minlength=8) * 1.5).sum() * x[i]
        return total

    compare(f, (X, np.array([0, 2, 3])), (X, np.array([0, 5, 2])), (X, np.array([-1, 5, 2])))
