"""Functions among the arguments: those that one definition makes share a program, unless it matters
which of them a call is given."""

from __future__ import annotations

import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

X = np.arange(1.0, 7.0)


def applied(f: Callable[..., Any], x: Any) -> Any:
    return f(x) * 2


def made(*, named: bool = False) -> Callable[..., Any]:
    """Another function at each call, from one definition."""

    def square(x: Any) -> Any:
        return x * x

    return square if named else lambda x: x * x


@pytest.mark.parametrize("named", [True, False])
def test_functions_of_one_definition_share_a_program(named: bool) -> None:
    jitted = rune_jit.jit(applied)
    for _ in range(100):
        np.testing.assert_array_equal(jitted(made(named=named), X), applied(made(), X))
    assert jitted.cache_info().misses == 1


def test_functions_in_containers() -> None:
    def each(fs: Any, x: Any) -> Any:
        return fs["all"][0](x) + fs["all"][1](x)

    jitted = rune_jit.jit(each)
    for _ in range(40):
        np.testing.assert_array_equal(jitted({"all": [made(), made()]}, X), 2 * X * X)
    assert jitted.cache_info().misses == 1


def times(factor: float) -> Callable[..., Any]:
    return lambda x: x * factor


def test_variables_of_outer_functions() -> None:
    jitted = rune_jit.jit(applied)
    for factor in (2.0, 3.0, 2.0, 4.0):
        np.testing.assert_array_equal(jitted(times(factor), X), X * factor * 2)


def test_defaults() -> None:
    jitted = rune_jit.jit(applied)
    for factor in (2.0, 3.0, 2.0, 2, True, -0.0, 0.0, np.float32(2), X, X + 1):
        with np.errstate(divide="ignore"):
            result = jitted(lambda x, factor=factor: x / factor, X)
            np.testing.assert_array_equal(result, X / factor * 2)


def test_defaults_that_change() -> None:
    jitted = rune_jit.jit(applied)
    factor = X.copy()
    for _ in range(3):
        np.testing.assert_array_equal(jitted(lambda x, y=factor: x * y, X), X * factor * 2)
        factor += 1
    factors = [1.0]
    for _ in range(3):
        np.testing.assert_array_equal(
            jitted(lambda x, y=factors: x * y[-1], X), X * factors[-1] * 2
        )
        factors.append(factors[-1] + 1)


def test_defaults_of_keywords() -> None:
    jitted = rune_jit.jit(applied)
    for factor in (2.0, 3.0, 2.0):
        np.testing.assert_array_equal(jitted(lambda x, *, y=factor: x * y, X), X * factor * 2)


_SCALED = lambda x: x * factor  # type: ignore[name-defined]  # noqa: E731, F821


def test_globals() -> None:
    jitted = rune_jit.jit(applied)
    for factor in (2.0, 3.0, 2.0):
        f = types.FunctionType(_SCALED.__code__, {"factor": factor})
        np.testing.assert_array_equal(jitted(f, X), X * factor * 2)


def test_attributes() -> None:
    def weighted(f: Any, x: Any) -> Any:
        return f(x) * getattr(f, "weight", 1.0)

    jitted = rune_jit.jit(weighted)
    for weight in (None, 2.0, 3.0, None, 2.0):
        f = made()
        if weight is not None:
            f.weight = weight  # type: ignore[attr-defined]
        np.testing.assert_array_equal(jitted(f, X), weighted(f, X))


def test_attributes_that_are_assigned() -> None:
    def counted(f: Any, x: Any) -> Any:
        f.calls = getattr(f, "calls", 0) + 1
        return f(x)

    jitted = rune_jit.jit(counted)
    for _ in range(4):
        f = made()
        for calls in (1, 2, 3):
            np.testing.assert_array_equal(jitted(f, X), X * X)
            assert f.calls == calls  # type: ignore[attr-defined]


def test_names() -> None:
    def name_of(f: Any, x: Any) -> Any:
        return x * len(f.__name__)

    jitted = rune_jit.jit(name_of)
    for name in (None, "short", "much_longer", None):
        f = made()
        if name is not None:
            f.__name__ = name
        np.testing.assert_array_equal(jitted(f, X), name_of(f, X))


def test_edited_functions() -> None:
    jitted = rune_jit.jit(applied)
    f = made()
    np.testing.assert_array_equal(jitted(f, X), X * X * 2)
    f.__code__ = (lambda x: x + 1).__code__
    np.testing.assert_array_equal(jitted(f, X), (X + 1) * 2)
    np.testing.assert_array_equal(jitted(made(), X), X * X * 2)


def test_results_that_are_the_functions() -> None:
    for returned in (lambda f, x: (f, x + 1), lambda f, x: {"f": [f], "x": x}):
        jitted = rune_jit.jit(returned)
        for _ in range(3):
            f = made()
            expected = returned(f, X)
            result = jitted(f, X)
            key: Any = "f" if isinstance(result, dict) else 0
            held, other = (r[key] for r in (result, expected))
            assert (held[0] if key else held) is (other[0] if key else other)


def test_functions_that_are_stored() -> None:
    class Holder:
        def __init__(self) -> None:
            self.total, self.last = np.zeros(6), None

        def call(self, f: Any, x: Any) -> Any:
            self.last = f
            self.total = self.total + f(x)
            return self.total

        jitted = rune_jit.jit(call)

    holder, expected = Holder(), Holder()
    for _ in range(6):
        f = made()
        np.testing.assert_array_equal(holder.jitted(f, X), expected.call(f, X))
        assert holder.last is f
    calls: dict[Any, Any] = {}

    def noted(d: Any, f: Any, x: Any) -> Any:
        d[f] = 1
        return f(x)

    jitted = rune_jit.jit(noted)
    functions = [made() for _ in range(5)]
    for f in functions:
        np.testing.assert_array_equal(jitted(calls, f, X), X * X)
    assert list(calls) == functions


class Record:
    """Keeps functions in each kind of place."""

    def __init__(self) -> None:
        self.last, self.all, self.names, self.of = None, [], set(), {}  # type: ignore[var-annotated]
        self.args: Any = ()

    def note(self, *args: Any) -> Any:
        f, x = args
        self.last, self.args = f, args
        self.all.append(f)
        self.names.add(f)
        self.of[f] = len(self.of)
        return x * float(f(x).sum())


def test_functions_that_are_stored_in_segments() -> None:
    class Jitted(Record):
        note = rune_jit.jit(Record.note)

    record, expected = Jitted(), Record()
    functions = [made() for _ in range(6)]
    for f in functions:
        np.testing.assert_array_equal(record.note(f, X), expected.note(f, X))
        assert record.last is f
        assert record.args[0] is f
        assert record.all == expected.all
        assert record.names == expected.names
        assert record.of == expected.of


class Place:
    held: Any


def _keep(f: Any, place: Place, items: list[Any], table: dict[str, Any]) -> None:
    place.held = table["held"] = f
    items.append(f)


def _zeros(x: Any, *places: Any) -> Any:
    _keep(np.zeros, *places)
    return x.tolist()


def _generators(x: Any, *places: Any) -> Any:
    _keep(np.random.default_rng, *places)
    return x.tolist()


def _random(x: Any, *places: Any) -> Any:
    _keep(np.random, *places)
    return x.tolist()


def _clock(x: Any, *places: Any) -> Any:
    _keep(time.time, *places)
    return x.tolist()


@pytest.mark.parametrize(
    ("function", "held"),
    [
        (_zeros, np.zeros),
        (_generators, np.random.default_rng),
        (_random, np.random),
        (_clock, time.time),
    ],
)
def test_what_is_numpys_and_pythons_is_stored_in_segments(function: Any, held: Any) -> None:
    jitted = rune_jit.jit(function)
    for _ in range(4):
        places: tuple[Any, ...] = (Place(), [], {})
        assert jitted(X, *places) == X.tolist()
        place, items, table = places
        assert items[0] is table["held"] is place.held is held
    assert "in segments" in jitted.explain()


class Named(tuple[Any, ...]):
    """A tuple with attributes, as SciPy's results are."""

    module: Any
    zeros: Any
    doubled: Any


def _named(x: Any, a: Any) -> Any:
    made = Named((x.tolist(), a))
    made.module, made.zeros, made.doubled = np.random, np.zeros, x * 2
    return made


@pytest.mark.parametrize("a", [1.0, np.ones(2)])
def test_attributes_of_tuples_in_segments(a: Any) -> None:
    jitted = rune_jit.jit(_named)
    for _ in range(4):
        result = jitted(X, a)
        assert result.module is np.random
        assert result.zeros is np.zeros
        assert type(result.doubled) is np.ndarray
        np.testing.assert_array_equal(result.doubled, X * 2)


KNOWN = made()
OTHERS = {made(): 2.0, KNOWN: 3.0}


def test_which_function_it_is() -> None:
    def is_known(f: Any, x: Any) -> Any:
        return x * 2 if f is KNOWN else x * 3

    def is_same(f: Any, g: Any, x: Any) -> Any:
        return f(x) if f is g else g(x) * 3

    def looked_up(f: Any, x: Any) -> Any:
        return x * OTHERS.get(f, 5.0)

    for function in (is_known, looked_up):
        jitted = rune_jit.jit(function)
        for f in (made(), KNOWN, made(), KNOWN, *OTHERS):
            np.testing.assert_array_equal(jitted(f, X), function(f, X))
    jitted = rune_jit.jit(is_same)
    for f, g in ((made(), made()), (KNOWN, KNOWN), (KNOWN, made())):
        np.testing.assert_array_equal(jitted(f, g, X), is_same(f, g, X))


def test_functions_given_to_jitted_functions_that_are_called_by_one() -> None:
    inner = rune_jit.jit(applied)

    def outer(x: Any) -> Any:
        return inner(lambda y: y + 1, x) + inner(lambda y: y * 3, x)

    jitted = rune_jit.jit(outer)
    for _ in range(3):
        np.testing.assert_array_equal(jitted(X), outer(X))
