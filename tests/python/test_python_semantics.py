"""What Python and NumPy say of an array or a number outside of a trace, they say inside of it."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit
from rune_jit import JitFallbackWarning

X = np.linspace(-2.0, 3.0, 6).reshape(2, 3)
ARRAY = rune_jit.asarray(X)


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result, or the exception and its message."""
    try:
        return function(*arguments)
    except (ValueError, TypeError) as error:
        return type(error), str(error)


# Each gives NumPy's result, of the same type, without running on NumPy.
COMPILED = {
    "isscalar": lambda x, n: (np.isscalar(x.sum()), np.isscalar(x), np.isscalar(n)),
    "a NumPy scalar": lambda x, n: isinstance(x.sum(), float) and isinstance(x.sum(), np.floating),
    "a Python number": lambda x, n: (isinstance(n, int), isinstance(n * 1.5, float)),
    "the numeric tower": lambda x, n: isinstance(n, numbers.Integral),
    "no array": lambda x, n: (isinstance(n, np.ndarray), isinstance(x.sum(), np.ndarray)),
    "an array": lambda x, n: (isinstance(x, np.ndarray), isinstance(x, float)),
    "equal to None": lambda x, n: (x == None, x != None, x.sum() == None, n == None),  # noqa: E711
    "equal to text": lambda x, n: (x == "a", x != "a", x[0, 0] == "a"),
    "initial": lambda x, n: (np.sum(x[:0], initial=-0.0), np.prod(x[:0], initial=3.0)),
    "initial of bools": lambda x, n: np.sum(x[:0] > 0, initial=3),
    "text of a number": lambda x, n: (f"{n:03d}", str(n), repr(n), "%d" % n),  # noqa: UP031
    "round": lambda x, n: (round(n * 1.26, 1), round(x[0, 0] * 1.26, 1), round(n)),
    "round an array": lambda x, n: round(x),
    "asarray, copy if needed": lambda x, n: np.asarray(x, copy=np._CopyMode.IF_NEEDED) + n,
    "array, copy if needed": lambda x, n: np.array(x, copy=np._CopyMode.IF_NEEDED) + n,
    "array, always copy": lambda x, n: np.array(x, copy=np._CopyMode.ALWAYS) + n,
    "tensordot over an axis twice": lambda x, n: np.tensordot(x, x, axes=([0, 0], [1, 1])),
    "the norm of no matrix": lambda x, n: np.linalg.norm(x[None], "fro"),
    "the norm over three axes": lambda x, n: np.linalg.norm(x[None], axis=(0, 1, 2)),
    "clip with bounds given twice": lambda x, n: np.clip(x, 1, 2, min=1),
    "clip without a bound": lambda x, n: np.clip(x, 1),
    "numbers as indices": lambda x, n: (x[(x[0] * 0).astype(int), x.argmax() % 3], x[n % 2, 1]),
    "a number to pad with": lambda x, n: np.pad(x, 1, constant_values=x[0, 0]),
    "numbers in at": lambda x, n: _add_at(x, x.argmin() % 2),
    "a range between numbers": lambda x, n: np.linspace(x.min(), x.max(), 5),
    "a list times a number": lambda x, n: np.stack([x] * n) + x,
}


def _add_at(x: Any, i: Any) -> Any:
    total = np.zeros_like(x)
    np.add.at(total, (i, 1), x[0, 0])
    return total


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name: str) -> None:
    function = COMPILED[name]
    jitted = rune_jit.jit(function, fallback="error")
    for n in (2, 3):
        result, expected = outcome(jitted, X, n), outcome(function, X, n)
        assert repr(result) == repr(expected)


# Each gives NumPy's result by running on NumPy.
VALUES = {
    "text of an array": lambda x: f"{x.sum():.2f} {x} {x!r}",
    "the nearest integer": lambda x: round(x.sum()),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    jitted = rune_jit.jit(VALUES[name])
    with pytest.warns(JitFallbackWarning, match="cannot take the value"):
        assert repr(jitted(X)) == repr(VALUES[name](X))


def test_printing_happens_at_each_call(capsys: pytest.CaptureFixture[str]) -> None:
    @rune_jit.jit(fallback="silent")
    def f(x: Any) -> Any:
        print(x[0], x.sum())
        return x

    for x in (X, X + 1):
        f(x)
        assert capsys.readouterr().out == f"{x[0]} {x.sum()}\n"


def _add_in_place(a: Any) -> Any:
    a = a.copy()
    a += [1, 2, 3]
    return a


ARRAYS = {
    "plus a list": lambda a: a + [1, 2, 3],  # noqa: RUF005
    "a list plus": lambda a: [1, 2, 3] + a[0],
    "times a tuple": lambda a: a * (1, 2, 3),
    "plus a list in place": _add_in_place,
    "equal to a list": lambda a: a[0] == [-2.0, -1.0, 1.0],
    "less than a list": lambda a: a[0] < [1, 2, 3],
    "equal to None": lambda a: (a == None, a != None),  # noqa: E711
    "unequal to text": lambda a: a != "a",
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name: str) -> None:
    expected = ARRAYS[name](X)
    result = ARRAYS[name](ARRAY)
    if isinstance(expected, tuple):
        result = tuple(np.asarray(x) for x in result)
    assert_matches(result if isinstance(result, tuple) else np.asarray(result), expected)


def test_arrays_refuse_what_numpy_refuses() -> None:
    for function in (
        lambda a: np.clip(a, 1, 2, min=1),
        lambda a: np.linalg.norm(a[None], "fro"),
        lambda a: np.tensordot(a, a, axes=([0, 0], [1, 1])),
    ):
        assert outcome(function, ARRAY) == outcome(function, X)
