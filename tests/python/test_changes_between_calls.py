"""What changes outside of a function between its calls: NumPy's functions, the attributes of
numbers and texts, the settings of decimal numbers. (Classes: test_changing_class.py.)"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import rune_jit

X = np.arange(1.0, 7.0)


def largest(x: Any) -> Any:
    return x.max() * 7


def mean(x: Any) -> Any:
    return np.mean(x) + x


def mean_in_segments(x: Any) -> Any:
    return np.mean(x) + float(x[0].tolist()) + x


def means(x: Any) -> Any:
    total = 0.0
    for i in range(3):
        total += np.mean(x[i:])
    return total


@pytest.mark.parametrize("use", [mean, mean_in_segments, means])
def test_functions_of_numpy_that_are_replaced(
    use: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, jitted = np.mean, rune_jit.jit(use)
    for function in (real, largest, np.median, real, real):
        monkeypatch.setattr(np, "mean", function)
        np.testing.assert_allclose(jitted(X), use(X))


def test_functions_that_make_arrays_and_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def use(x: Any) -> Any:
        made = np.zeros(3)
        made[0] = x[0]
        return made

    real, jitted = np.zeros, rune_jit.jit(use)
    for function in (real, np.ones, real):
        monkeypatch.setattr(np, "zeros", function)
        np.testing.assert_array_equal(jitted(X), use(X))


def test_numbers_of_modules_that_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def use(x: Any) -> Any:
        return np.pi * x

    jitted = rune_jit.jit(use)
    for number in (np.pi, 3.0, 4.0):
        monkeypatch.setattr(np, "pi", number)
        np.testing.assert_allclose(jitted(X), use(X))


class Text(str):
    scale: Any


class Count(int):
    scale: Any


class Length(float):
    scale: Any


OBJECTS = (Text("a"), Count(3), Length(2.5))


@pytest.mark.parametrize("outside", OBJECTS, ids=type)
def test_attributes_of_numbers_and_texts(outside: Any) -> None:
    def of_argument(x: Any, held: Any) -> Any:
        return x * held.scale

    def of_name(x: Any, held: Any) -> Any:
        return x * outside.scale

    def changed(x: Any, held: Any) -> Any:
        held.scale = x.sum()
        held.count = 3
        return x * 2

    for function in (of_argument, of_name):
        jitted = rune_jit.jit(function)
        for scale in (2.0, 3.0, 4.0):
            outside.scale = scale
            np.testing.assert_array_equal(jitted(X, outside), function(X, outside))
            other = type(outside)(outside)
            other.scale = 10 * scale
            np.testing.assert_array_equal(jitted(X, other), function(X, other))
    jitted = rune_jit.jit(changed)
    for _ in range(3):
        held = type(outside)(outside)
        np.testing.assert_array_equal(jitted(X, held), 2 * X)
        assert type(held.scale) is np.float64
        assert vars(held) == {"scale": 21.0, "count": 3}


@pytest.fixture
def context() -> Iterator[Any]:
    with decimal.localcontext() as found:
        yield found


def test_settings_of_decimal_numbers_that_a_function_reads(context: Any) -> None:
    seventh = Decimal(1) / 7

    def divided(x: Any) -> Any:
        return x * float(Decimal(1) / 7)

    def of_module(x: Any) -> Any:
        return x * float(decimal.Decimal(1) / 7)

    def of_number(x: Any) -> Any:
        return x * float(seventh * 3)

    for function in (divided, of_module, of_number):
        jitted = rune_jit.jit(function)
        for precision in (28, 3, 5, 28):
            context.prec = precision
            np.testing.assert_array_equal(jitted(X), function(X))


def test_settings_of_decimal_numbers_that_a_function_changes(context: Any) -> None:
    def change(x: Any, precision: int) -> Any:
        decimal.getcontext().prec = precision
        return x * 2

    jitted = rune_jit.jit(change)
    for precision in (28, 3, 7, 8, 28, 3):
        np.testing.assert_array_equal(jitted(X, precision), 2 * X)
        assert context.prec == precision
