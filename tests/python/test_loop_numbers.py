"""Python's numbers in loops of the program: whose they are, conditional expressions, `in`, math,
integers of unknown size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from compare import assert_same
from loop_checks import both, rolled

import rune_jit


def numbers(n: int = 40) -> np.ndarray:
    return np.random.default_rng(3).uniform(-1, 1, n)


# Whether a number is Python's or NumPy's is known only when the program runs.


def largest(x):
    best = 0.0
    for value in x:
        if value > best:
            best = value
    return best


@pytest.mark.parametrize("sign", [1, -1])
def test_a_result_is_pythons_or_numpys(sign: int) -> None:
    """`both` compares types: -abs(x) has no number above 0."""
    x = numbers() if sign == 1 else -np.abs(numbers())
    rolled(largest, x)
    assert type(rune_jit.jit(largest)(x)) is (np.float64 if sign == 1 else float)


def test_the_kind_of_a_number_follows_from_those_it_is_computed_from() -> None:
    def f(x):
        total, count = 0.0, 0
        for value in x:
            if value > 0.5:
                total = total + value
                count += 1
        return total - 1.5, total > 3, count, total / 2

    rolled(f, numbers())
    rolled(f, -np.abs(numbers()))


def test_a_number_that_only_inner_iterations_change() -> None:
    def f(x):
        worst, at = -1, -1
        for i in range(x.shape[0]):
            for j in range(i):
                if x[i, j] > worst:
                    worst, at = x[i, j], i
        return worst, at

    rolled(f, np.arange(30).reshape(6, 5) % 7)
    rolled(f, -np.ones((6, 5), np.int64))


def test_a_call_returns_such_a_number_several_times() -> None:
    def f(x):
        best = largest(x)
        return {"best": best, "again": [best, best + 1]}

    for x in (numbers(), -np.abs(numbers())):
        expected, actual = f(x), rune_jit.jit(f)(x)
        assert actual == expected
        assert type(actual["best"]) is type(expected["best"])
        assert [type(a) for a in actual["again"]] == [type(a) for a in expected["again"]]


# Conditional expressions and `in`.


def test_conditional_expressions_within_others() -> None:
    def f(x):
        total, out = 0.0, np.zeros(len(x))
        for i in range(len(x)):
            total += (4 if i % 2 else 2) * x[i]
            out[i] = (x[i] if x[i] > 0 else 0.5) + (1 if x[i] > 0.5 else 2 if x[i] < -0.5 else 3)
        return total, out

    rolled(f, numbers())


def test_the_side_that_is_not_taken_reads_nothing() -> None:
    def f(x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = x[i] - (x[i + 1] if i + 1 < len(x) else 0.0)
        return out

    rolled(f, numbers())


def test_calls_before_a_conditional_expression_come_first() -> None:
    order: list[str] = []

    def note(what: str, value: Any) -> Any:
        order.append(what)
        return value

    def f(x, flag):
        y = note("first", x) + (note("yes", 1) if note("test", flag) else note("no", 2))
        return y * 2

    f(1.0, True)
    expected = list(order)
    order.clear()
    rune_jit.jit(f)(1.0, True)
    assert order[:4] == expected == ["first", "test", "yes"]


def test_membership() -> None:
    def f(x):
        out = np.zeros(len(x), np.int64)
        for i in range(len(x)):
            if x[i] in (2, 3, 5) and i not in [1, 4]:
                out[i] = 1
            if x[i] not in {0, 6}:
                out[i] += 2
            if int(x[i]) in range(1, 7, 2):
                out[i] += 4
        return out

    rolled(f, np.arange(20) % 9)


# Functions of math.


def oscillator(x):
    total = 0.0
    for i in range(len(x)):
        total += math.sin(x[i]) * math.exp(-abs(x[i])) + math.atan2(x[i], 2) + math.hypot(x[i], i)
        total -= math.sqrt(1 + x[i] * x[i]) / math.log(3 + i, 2) + math.floor(3 * x[i])
    return total


def test_functions_of_math() -> None:
    rolled(oscillator, numbers(), ulps=16)


def test_math_classifies() -> None:
    def f(x):
        count = 0
        for value in x:
            if math.isnan(value) or math.isinf(value):
                continue
            if math.isfinite(value):
                count += 1
        return count

    rolled(f, np.array([1, np.nan, -2, np.inf, -np.inf, 3]))


@pytest.mark.parametrize("bad", [-1.0, np.inf, 1e5])
@pytest.mark.parametrize("where", ["loop", "line"])
def test_math_raises_where_python_does(bad: float, where: str) -> None:
    def loop(x):
        total = 0.0
        for i in range(len(x)):
            total += math.sqrt(x[i]) + math.exp(x[i]) + math.cos(x[i])
        return total

    def line(x):
        return math.sqrt(x[3]) + math.exp(x[3]) + math.cos(x[3])

    function = loop if where == "loop" else line
    x = np.abs(numbers())
    both(function, x, ulps=16)
    jitted = rune_jit.jit(function)
    jitted(x)
    x[3] = bad
    with pytest.raises((ValueError, OverflowError)) as expected:
        function(x)
    with pytest.raises(type(expected.value)) as actual:
        jitted(x)
    assert str(actual.value) == str(expected.value)


def test_math_of_one_number_is_one_program() -> None:
    def norm(x):
        return math.sqrt((x * x).sum())

    jitted = rune_jit.jit(norm)
    assert jitted(numbers()) == pytest.approx(norm(numbers()), rel=1e-15)
    assert type(jitted(numbers())) is float
    assert "as one program" in jitted.explain()


# Integers.


def collatz(starts):
    longest = 0
    for start in starts:
        k, steps = int(start), 0
        while k != 1:
            if k % 2 == 0:
                k //= 2
            else:
                k = 3 * k + 1
            steps += 1
        if steps > longest:
            longest = steps
    return longest


def test_integers_that_turn_out_to_be_small() -> None:
    rolled(collatz, np.arange(1, 60))


def test_integers_that_turn_out_to_be_large() -> None:
    """A power of 3 that no int64 holds."""

    def f(x):
        k, count = 1, 0
        for value in x:
            if value > 0:
                k = k * 3
                count += 1
        return k, count

    jitted = rune_jit.jit(f)
    for n in (10, 30, 50, 10):
        assert jitted(np.ones(n)) == f(np.ones(n))


# Functions in functions.


def test_a_function_whose_parameters_have_the_names_of_variables() -> None:
    def f(y, n):
        def slope(t, y):
            return -2 * t * y

        half = lambda y: y / 2  # noqa: E731
        t = 0.0
        for _ in range(n):
            k = slope(t, y)
            y = y + 0.1 * slope(t + 0.05, y + half(k) * 0.1)
            t = t + 0.1
        return y

    rolled(f, numbers(3), 20)


def test_a_function_that_sees_what_the_loop_changes() -> None:
    def f(x, n):
        def doubled():
            return x * 2

        for _ in range(n):
            x = doubled() - 1
        return x

    rolled(f, numbers(3), 20)


def test_variables_of_comprehensions() -> None:
    def f(x, n):
        for _ in range(n):
            x = sum(np.roll(x, i) for i in (-1, 1)) - sum([x[i] for i in (0, 1)])
        return x

    rolled(f, numbers(5), 6, ulps=64)


# Where Python's numbers raise, or are of another type, and NumPy's are not numbers.


@pytest.mark.parametrize("where", ["loop", "line"])
@pytest.mark.parametrize(
    ("compute", "good", "bad"),
    [
        (lambda a, b: 1.0 / (a - b), (3.0, 1.0), (2.0, 2.0)),
        (lambda a, b: 7 // (a - b), (3, 1), (2, 2)),
        (lambda a, b: 7.5 % (a * b), (3.0, 1.0), (0.0, 2.0)),
        (lambda a, b: (a - b) ** 2, (3.0, 1.0), (1e200, -1e200)),
        (lambda a, b: (a - b) ** -1, (3.0, 1.0), (2.0, 2.0)),
        (lambda a, b: (a - b) ** 0.5, (3.0, 1.0), (1.0, 3.0)),
    ],
)
def test_python_arithmetic(where: str, compute: Any, good: Any, bad: Any) -> None:
    def line(x, a, b):
        return x * compute(a + 0, b), compute(a + 0, b)

    def loop(x, a, b):
        x = x + 0 * a
        for i in range(len(x)):
            x[i] = x[i] * 2 + abs(compute(a + i * 0, b))
        return x

    function = loop if where == "loop" else line
    jitted = rune_jit.jit(function)
    for numbers_given in (good, bad, good):
        try:
            expected = function(np.arange(3.0), *numbers_given)
        except ArithmeticError as error:
            with pytest.raises(type(error)) as raised:
                jitted(np.arange(3.0), *numbers_given)
            assert str(raised.value) == str(error)
            continue
        assert_same(jitted(np.arange(3.0), *numbers_given), expected, ulps=4)


def test_an_integer_among_floats_is_no_result() -> None:
    """Python's int 0 or NumPy's float64: no array element holds all integers and all floats."""

    def f(x):
        best = 0
        for value in x:
            if value > best:
                best = value
        return best

    for values in (numbers(), -np.abs(numbers())):
        both(f, values)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_integers_from_arrays(dtype: str) -> None:
    """Python's integers do not wrap."""

    def f(x):
        out = np.zeros(len(x), np.int64)
        for i in range(len(x)):
            out[i] = int(x[i]) * 2 + int(x[0])
        return out

    rolled(f, np.arange(5, 25).astype(dtype))
    x = np.arange(5, 25).astype(dtype)
    jitted = rune_jit.jit(f)
    np.testing.assert_array_equal(jitted(x), f(x))
    x[3] = 2**31 - 1
    np.testing.assert_array_equal(jitted(x), f(x))
    if dtype == "int64":
        x[3] = 2**62 + 1
        with pytest.raises(OverflowError) as expected:
            f(x)
        with pytest.raises(OverflowError) as actual:
            jitted(x)
        assert str(actual.value) == str(expected.value)


def test_numbers_that_give_shapes_after_a_loop() -> None:
    def f(x: Any, rows: int, columns: int) -> Any:
        y = np.empty_like(x)
        for i in range(x.shape[0]):  # too many to run one by one
            y[i] = x[i] * x[i] + 1
        return np.reshape(y, (rows, columns))

    x = np.random.default_rng(0).random(40000)
    compiled = rune_jit.jit(f, fallback="error")
    np.testing.assert_array_equal(compiled(x, 100, 400), f(x, 100, 400))
    np.testing.assert_array_equal(compiled(x, 400, 100), f(x, 400, 100))
    assert "is a loop of the program" in compiled.explain()


def test_arithmetic_of_numbers_that_are_pythons_or_numpys() -> None:
    def steps(x, h):
        for i in range(x.shape[0]):
            e = max(abs(x[i]), 1e-3)
            h *= min(4.0, max(0.25, 0.9 * (0.5 / e) ** 0.5))
            h = -(-h // 0.125) * 0.125 + h % 0.25
        return h

    rolled(steps, np.array([0.5, 3.0, 0.0, -2.0, 1e-9]), 0.125, ulps=16)
    rolled(steps, np.array([0.5, 3.0, 0.0, -2.0, 1e-9]), np.float64(0.125), ulps=16)


@pytest.mark.parametrize("y", [np.array([0.0, 2.0]), np.array([2.0, 0.0])])
def test_quotients_by_a_zero_that_is_pythons_or_numpys(y: np.ndarray) -> None:
    def smallest(x, y):
        s, least = 1.0, 5.0
        for i in range(x.shape[0]):
            if y[i] < least:
                least = y[i] if x[i] > 0 else 0.0
            s = s / least
        return s

    for x in (np.array([1.0, 1.0]), np.array([-1.0, 1.0]), np.array([1.0, -1.0])):
        jitted = rune_jit.jit(smallest)
        with np.errstate(all="ignore"):
            try:
                expected = smallest(x, y)
            except ZeroDivisionError:
                with pytest.raises(ZeroDivisionError):
                    jitted(x, y)
            else:
                assert_same(jitted(x, y), expected)


def test_choices_in_conditions() -> None:
    def way(s, a, b):
        i, j, moves = a.shape[0], b.shape[0], 0
        while i > 0 and j > 0:
            if s[i, j] == s[i - 1, j - 1] + (1 if a[i - 1] == b[j - 1] else -1):
                i -= 1
                j -= 1
            elif s[i, j] == (s[i - 1, j] if moves % 2 else s[i - 1, j] - 1):
                i -= 1
            else:
                j -= 1
            moves += 1
        return moves, i, j

    rng = np.random.default_rng(0)
    s = rng.integers(-3, 3, (21, 19))
    rolled(way, s, rng.integers(0, 4, 20), rng.integers(0, 4, 18))


def test_ints_and_floats_that_are_limits() -> None:
    def steps(x, h):
        out = np.zeros(len(x))
        for i in range(len(x)):
            h *= min(5, max(0.2, x[i]))
            out[i] = h / 3 - h
        return h, out

    def hinge(x):
        total = 0.0
        for i in range(len(x)):
            total = total + max(0, float(x[i])) * 0.5
        return total

    for x in (numbers(20) * 8, np.full(4, 9.0), np.zeros(4), np.full(5, np.nan)):
        rolled(steps, x, 0.1)
        rolled(hinge, x)


def test_ints_and_floats_whose_types_show() -> None:
    def last(x):
        m = 0.0
        for i in range(len(x)):
            m = min(5, max(0.2, x[i]))
        return m

    def listed(x):
        return [max(0, float(x[i])) for i in range(len(x))]

    def divided(x):
        total = 0
        for i in range(len(x)):
            total += min(5, max(0.2, x[i])) // 2
        return total

    def negative(x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = -max(0, min(x[i], 0.5))
        return out

    for x in (numbers(20) * 8, np.full(20, 9.0), np.zeros(20)):
        for function in (last, listed, divided, negative):
            both(function, x)


def test_numbers_that_become_numpys_one_after_the_other() -> None:
    def goertzel(x, c):
        s0 = s1 = s2 = 0.0
        for value in x:
            s0 = value + c * s1 - s2
            s2 = s1
            s1 = s0
        return s1**2 + s2**2 - c * s1 * s2, s1, s2

    rolled(goertzel, numbers(30), 0.7, ulps=64)
    for n in range(5):
        both(goertzel, numbers(n), 0.7, ulps=64)


@pytest.mark.parametrize("low", [-20, 0, 1])
def test_quotients_and_products_of_integers_that_may_be_numpys(low: int) -> None:
    def f(x: Any, of: Any) -> Any:
        k, out = 3, np.zeros((3, len(x)))
        for i in range(len(x)):
            if x[i] > 0.5:
                k = of[i]
            out[0, i] = k % 7 + k // -3
            out[1, i] = 100 % (k * k + 1) - abs(k) * x[k % len(x)]
            out[2, i] = 100 // k + -k if low > 0 else 0
        return out, k

    rolled(f, numbers(), np.arange(40) + low)
