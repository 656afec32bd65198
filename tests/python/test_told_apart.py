"""Functions that are keys, or elements of containers: code tells which function it is."""

import collections
import functools
import gc
import inspect
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

import rune_jit

X = np.arange(3.0) + 1


def double(x: Any) -> Any:
    return x * 2.0


def triple(x: Any) -> Any:
    return x * 3.0


def plus(x: float, k: int = 2) -> float:
    """Adds."""
    return x + k


@functools.wraps(plus)
def wrapped(x: Any, k: int = 3) -> Any:
    return plus(x, k) * 2.0


@pytest.fixture(autouse=True)
def nothing_is_frozen() -> Iterator[None]:
    """The collector, which finds what holds a function, sees all objects (tests/conftest.py)."""
    gc.unfreeze()
    yield
    gc.freeze()


MEMBERS = {double, triple}
LIST = [double, triple]
NESTED: Any = collections.defaultdict(set)
NESTED["a"].add(triple)
WEAK = weakref.WeakKeyDictionary({double: 5.0})


class Registry:
    """One that no code names beside its own methods."""

    factors: ClassVar[dict[Any, float]] = {}

    def __init__(self, function: Any, x: Any) -> None:
        self.value = function(x) * self.factors.get(function, 1.0)


def registered(function: Callable[..., Any]) -> Callable[..., Any]:
    def inner(x: Any) -> Any:
        return Registry(function, x).value if inner in MADE else x

    MADE.add(inner)
    Registry.factors[function] = 4.0
    return inner


MADE: set[Any] = set()


@registered
def primitive(x: Any) -> Any:
    return x + np.ones(3)


def is_member(x: Any) -> Any:
    return x * (2.0 if double in MEMBERS else 3.0)


def is_in_list(x: Any) -> Any:
    return x * (2.0 if double in LIST else 3.0)


def is_first(x: Any) -> Any:
    return x * (2.0 if LIST[0] is double else 3.0)


def is_nested(x: Any) -> Any:
    return x * (2.0 if triple in NESTED["a"] else 3.0)


def is_weak_key(x: Any) -> Any:
    return x * WEAK.get(double, 1.0)


def is_of_class(x: Any) -> Any:
    return x * Registry.factors.get(triple, 1.0)


BY_ID = {id(triple): 4.0, hash(double): 5.0}


def has_id(x: Any) -> Any:
    return x * BY_ID.get(id(triple), 1.0) * BY_ID.get(hash(double), 1.0) * sum(map(id, [triple]))


class Held:
    def __init__(self, function: Any) -> None:
        self.function, self.state = function, np.ones(3)

    def is_double(self) -> bool:
        return self.function == double


HELD = Held(double)


def is_attribute(x: Any) -> Any:
    factor = 2.0 if HELD.function == double and triple != HELD.function else 3.0
    return HELD.function(x) * (factor if HELD.is_double() else 5.0)


def is_attribute_among(x: Any) -> Any:
    others = [triple, double]
    return x * others.index(HELD.function) * {double: 2.0}.get(HELD.function, 3.0)


def calls_primitive(x: Any) -> Any:
    return primitive(x)


def has_annotations(x: Any) -> Any:
    signature = inspect.signature(plus)
    is_float = signature.return_annotation in (float, "float")
    return x * len(plus.__annotations__) * (2.0 if is_float else 3.0)


def has_text(x: Any) -> Any:
    return x * len((wrapped.__doc__ or "") + wrapped.__module__ + wrapped.__qualname__)


FUNCTIONS = [
    *(is_member, is_in_list, is_first, is_nested, is_weak_key, is_of_class, calls_primitive),
    *(has_annotations, has_text, has_id, is_attribute, is_attribute_among),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("in_segments", [False, True])
def test_which_function_it_is(function: Any, in_segments: bool) -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(int(x[0]) + 1 if in_segments else 1):
            total += float(x[i % 3]) if in_segments else 1.0
        return function(x) * total

    jitted = rune_jit.jit(f)
    for i in range(4):
        np.testing.assert_array_equal(jitted(X + i), f(X + i))


MEMO: dict[Any, int] = {}


def test_functions_that_become_keys() -> None:
    def f(x: Any) -> Any:
        for _ in range(int(x[0])):
            if triple not in MEMO:
                MEMO[triple] = 0
            MEMO[triple] += 1
        return triple(x) + float(x[1])

    jitted = rune_jit.jit(f)
    for i in range(4):
        np.testing.assert_array_equal(jitted(X), f(X))
        assert MEMO[triple] == 2 * (i + 1)


def test_functions_that_become_keys_in_one_program() -> None:
    def f(x: Any) -> Any:
        if plus not in MEMO:
            MEMO[plus] = 0
        MEMO[plus] += 1
        return plus(x)

    jitted = rune_jit.jit(f)
    for i in range(4):
        np.testing.assert_array_equal(jitted(X), f(X))
        assert MEMO[plus] == 2 * (i + 1)


def test_functions_that_are_keys_of_an_argument() -> None:
    def f(factors: Any, x: Any) -> Any:
        return double(x) * factors.get(double, 3.0) * factors.get(triple, 5.0)

    jitted = rune_jit.jit(f)
    for factors in ({double: 2.0}, {triple: 4.0}, {double: 1.0, triple: 7.0}, {}):
        np.testing.assert_array_equal(jitted(factors, X), f(factors, X))
