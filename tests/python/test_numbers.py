"""Numbers among the arguments whose values a traced function needs: they become constants of the
program, which is compiled for each value of them."""

from __future__ import annotations

import collections
import math
import operator
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches, assert_same, outcome

import rune_jit
from rune_jit import ConcretizationError

X = np.linspace(-2.0, 3.0, 12)


def check(function: Callable[..., Any], *calls: tuple[Any, ...]) -> rune_jit.CacheInfo:
    """The calls give NumPy's results, twice, and nothing runs on NumPy."""
    jitted = rune_jit.jit(function, fallback="error")
    for _ in range(2):
        for arguments in calls:
            assert_matches(jitted(*arguments), function(*arguments))
    return jitted.cache_info()


USES = {
    "range": lambda x, n: [x[i] * i for i in range(n)],
    "zeros": lambda x, n: np.zeros(n) + x[0],
    "a shape from arithmetic": lambda x, n: x.reshape(n // 2 * 2, -1) + n,
    "a slice": lambda x, n: x[:n].sum() + x[n:].sum() * n,
    "an axis": lambda x, n: x.reshape(3, 4).sum(axis=n // 6),
    "a list index": lambda x, n: x * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0][n],
    "if": lambda x, n: x if n > 4 else -x,
    "float": lambda x, n: x * float(n),
    "factorial": lambda x, n: x * math.factorial(n),
    "a dict": lambda x, n: x * {4: 1.5, 6: 2.5}[n],
    "repeat": lambda x, n: np.repeat(x, n),
    "pad": lambda x, n: np.pad(x, n),
    "resize": lambda x, n: np.resize(x, n),
    "bincount": lambda x, n: np.bincount(np.abs(x).astype(int), minlength=n),
    "text": lambda x, n: x * len(f"{'x' * n}"),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("kind", [int, np.int64])
def test_numbers_that_decide(name: str, kind: type) -> None:
    info = check(USES[name], (X, kind(4)), (X, kind(6)))
    assert (info.misses, info.size) == (2, 2)


@pytest.mark.parametrize("kind", [int, np.int64])
def test_numbers_that_decide_in_loops_of_the_program(kind: type) -> None:
    def halve(x: Any, n: Any) -> Any:
        while n > 1:
            x, n = x / 2, n // 2
        return x

    info = check(halve, (X, kind(4)), (X, kind(6)))
    assert (info.misses, info.size) == (1, 1)


def test_other_numbers_stay_traced() -> None:
    """Many learning rates are one program, also beside a number that decides."""
    rates = [(X, n, rate) for n in (2, 3) for rate in np.linspace(0.1, 1, 20).tolist()]
    info = check(lambda x, n, rate: np.stack([x * rate] * n), *rates)
    assert (info.misses, info.size) == (2, 2)


@pytest.mark.parametrize("kind", [int, np.int64])
def test_numbers_that_math_takes_stay_traced(kind: type) -> None:
    info = check(lambda x, n: x * math.sqrt(n), (X, kind(4)), (X, kind(6)))
    assert (info.misses, info.size) == (1, 1)


def test_values_are_told_apart_by_type_and_sign() -> None:
    def f(x: Any, a: Any) -> Any:
        return x * math.copysign(1.0, a), a

    check(f, (X, 0.0), (X, -0.0), (X, 0), (X, np.float32(0)), (X, np.float64(-0.0)), (X, math.nan))


def test_numbers_in_containers() -> None:
    check(lambda x, options: np.zeros(options["shape"]) + x[0], (X, {"shape": (2, 3)}))
    check(lambda x, shape: x.reshape(shape), (X, (3, 4)), (X, [2, 6]), (X, (12,)))


@pytest.mark.parametrize("function", [np.mean, np.sum, np.cumsum, np.flip, np.sort])
def test_numpys_functions_with_an_axis(function: Any) -> None:
    x = X.reshape(3, 4)
    jitted = rune_jit.jit(function, fallback="error")
    for axis in (0, 1, -1):
        assert_matches(jitted(x, axis=axis), function(x, axis=axis))


def test_a_lowered_program_is_for_its_values() -> None:
    jitted = rune_jit.jit(lambda x, n: np.tile(x, n))
    run = jitted.lower(X, 2).compile()
    assert_matches(run(X, 2), np.tile(X, 2))
    with pytest.raises(TypeError, match="another signature"):
        run(X, 3)


def test_too_many_values() -> None:
    def f(x: Any, a: Any) -> Any:
        return x if str(a) > "0.5" else -x

    jitted = rune_jit.jit(f)
    for i in range(80):
        for _ in range(3):  # each program serves other calls, too
            assert_matches(jitted(X, i / 80), f(X, i / 80))
    assert jitted.cache_info().size == 80
    assert jitted.cache_info().segmented == 14
    assert "each value of argument a" in jitted.explain()


def test_conditions_on_numbers_of_many_values() -> None:
    def f(x: Any, a: Any, n: Any) -> Any:
        return sum(x + i for i in range(n)) if a % 10 == 0 and a > 0.5 else -x * a

    jitted = rune_jit.jit(f)
    for i in range(80):
        assert_matches(jitted(X, i, 2 + i // 40), f(X, i, 2 + i // 40))
    assert jitted.cache_info().misses < 12
    assert "on NumPy" not in jitted.explain()


@pytest.mark.parametrize("kinds", [TypeError, Exception, (ValueError, TypeError), BaseException])
def test_the_function_cannot_catch_what_numpy_does_not_raise(kinds: Any) -> None:
    """A branch for errors is taken where NumPy takes it."""

    def number(x: Any, n: Any) -> Any:
        try:
            return x * [2.0, 3.0][n]
        except IndexError:
            return x
        except Exception:
            return None

    def value(x: Any) -> Any:
        try:
            return x * x.sum().tolist()
        except kinds:
            return None

    def any_number(x: Any, n: Any) -> Any:
        try:
            return x * sum(range(n))
        except:  # noqa: E722
            raise ValueError("no number") from None

    check(number, (X, 1), (X, 2))
    check(any_number, (X, 1), (X, 2))
    assert_matches(rune_jit.jit(value)(X), value(X))
    with pytest.raises(ConcretizationError, match="tolist: cannot take the value"):
        rune_jit.jit(value, fallback="error")(X)

    def raises(x: Any) -> Any:
        try:
            return x * x.sum().tolist()
        except kinds as error:
            raise ValueError("no number") from error

    assert_matches(rune_jit.jit(raises, fallback="silent")(X), raises(X))


def test_functions_that_ask_for_values_run_in_segments() -> None:
    def newton(x: Any) -> Any:
        while np.abs(x * x - 2).max().tolist() > 1e-9:
            x = x - (x * x - 2) / (2 * x)
        return x

    jitted = rune_jit.jit(newton)
    x = np.abs(X) + 1
    assert_matches(jitted(x), newton(x))
    assert_matches(jitted(x * 2), newton(x * 2))
    assert "tolist: cannot take the value" in jitted.explain()


def _in_a_queue(x: Any, width: int) -> Any:
    recent, out = collections.deque(maxlen=width), np.zeros(len(x))
    for i in range(len(x)):
        recent.append(x[i])
        out[i] = recent[0]
    return out


def _packed(x: Any, n: int) -> Any:
    return x * struct.unpack("i", struct.pack("i", n))[0]


def _refused(x: Any, n: int) -> Any:
    if n > 3:
        raise TypeError("too large")
    return x * n


@pytest.mark.parametrize("function", [_in_a_queue, _packed, _refused])
def test_code_in_c_gets_pythons_numbers(function: Any) -> None:
    """It raises TypeError for traced ones."""
    jitted = rune_jit.jit(function)
    x = np.arange(9.0)
    for n in (2, 3, 5, 2):
        try:
            expected = function(x, n)
        except TypeError as error:
            with pytest.raises(TypeError, match=str(error)):
                jitted(x, n)
            continue
        np.testing.assert_array_equal(jitted(x, n), expected)
    assert "as one program" in jitted.explain()


def test_seeds_of_numpys_older_generators() -> None:
    def sampled(seed):
        return np.random.RandomState(seed).choice([-1, 1], size=(3, 3)) * 2.0

    jitted = rune_jit.jit(sampled)
    for seed in (3, 4):
        np.testing.assert_array_equal(jitted(seed), sampled(seed))
    assert "as one program" in jitted.explain()


def test_numbers_of_python_have_no_attributes_of_arrays() -> None:
    def size(x, n):
        try:
            return x * n.shape[0]
        except AttributeError:
            return x + n

    def mean(x, n):
        try:
            return (n + 1).mean() + x
        except AttributeError:
            return x

    def asked(x, n):
        return x + (n if hasattr(n, "squeeze") else -n)

    check(size, (X, 3), (X, 2.5))
    check(mean, (X, 3), (X, 2.5))
    check(asked, (X, 3), (X, 2.5), (X, np.float64(3.0)))

    def carried(x, n):
        w = n
        for i in range(5):
            w = w + i
        return w.sum() + x

    def given(x, n):
        return x + n.T

    def unsure(x, n):
        best = n
        for i in range(5):
            if x[i] > best:
                best = x[i]
        return best.mean()

    for function in (carried, given):
        jitted = rune_jit.jit(function)
        for _ in range(3):
            with pytest.raises(AttributeError, match="'int' object has no attribute"):
                jitted(X, 3)
        assert_matches(jitted(X, np.int64(3)), function(X, np.int64(3)))
    jitted = rune_jit.jit(unsure)
    with pytest.raises(AttributeError, match="'float' object has no attribute 'mean'"):
        jitted(X, 9.0)
    assert_matches(jitted(X, -9.0), unsure(X, -9.0))


def test_the_base_of_a_view_is_the_argument() -> None:
    def based(x):
        print(end="")
        view = x[:3]
        return view.base is x, x.base is None, view.base.sum()

    jitted = rune_jit.jit(based)
    for _ in range(2):
        assert_matches(jitted(X), based(X))


@pytest.mark.parametrize("number", [0.5, 2, np.float64(2), np.int64(2)])
@pytest.mark.parametrize("apply", [operator.mul, operator.add, operator.lt, operator.eq])
def test_python_s_numbers_beside_lists(apply, number):
    values = [1.0, 2.0]
    for f in (lambda x: apply(x, values), lambda x: apply(tuple(values), x)):
        jitted, wanted = rune_jit.jit(f, fallback="silent"), outcome(f, number)
        for _ in range(2):
            found = outcome(jitted, number)
            assert type(found) is type(wanted)
            if isinstance(wanted, TypeError):
                assert str(found) == str(wanted)
            else:
                assert_same(found, wanted)


def recorded(x: Any, digits: int) -> Any:
    history = []
    for i in range(30):
        x = x * 0.9 + 0.01 * i
        history.append(round(float(x.mean()), digits))
    return history


@pytest.mark.parametrize("digits", [0, 1, 2, 5, 15, 22])
def test_rounding_to_digits_has_pythons_bits(digits: int) -> None:
    def each(x: Any) -> Any:
        result = np.zeros(x.shape)
        for i in range(x.shape[0]):
            result[i] = round(float(x[i]), digits)
        return result

    rng = np.random.default_rng(digits)
    large = rng.normal(size=2000) * min(1e4, 2.0**47 / 10**digits)
    ties = (rng.integers(0, 1000, 2000) + 0.5) / 10.0**digits
    known = np.array([2.675, 1.005, 0.125, -2.5, 0.0, -0.0, -0.001, np.nan, np.inf])
    known[np.isfinite(known) & (np.abs(known) * 10.0**digits > 2.0**50)] = 0.0
    jitted = rune_jit.jit(each, fallback="error")
    for x in (large, ties, known):
        got, expected = jitted(x), each(x)
        assert (got.view(np.int64) == expected.view(np.int64))[~np.isnan(expected)].all()
        assert (np.isnan(got) == np.isnan(expected)).all()


def test_rounding_numbers() -> None:
    history = rune_jit.jit(recorded)
    for x in (np.linspace(-1, 2, 9), np.full(9, 1e300), np.linspace(0, 1, 9)):
        assert_same(history(x, 3), recorded(x, 3), ulps=64, scaled=True)
    for function in (lambda x: round(float(x[0]), 2), lambda x: round(int(x[0]), 2)):
        jitted = rune_jit.jit(function)
        for number in (2.675, -0.001, 1e300, 7.0):
            x = np.array([number])
            assert_same(jitted(x), function(x))
