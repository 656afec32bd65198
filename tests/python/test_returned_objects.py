"""Objects that a function makes and returns: each call returns another one, with NumPy's arrays and
numbers in it."""

from __future__ import annotations

import collections
import datetime
import fractions
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

X = np.arange(1.0, 4.0)


class Held:
    def __init__(self, a: Any) -> None:
        self.a = a


class Slotted:
    __slots__ = ("_Slotted__b", "a")

    def __init__(self, a: Any) -> None:
        self.a = a
        self.__b = a

    @property
    def b(self) -> Any:
        return self.__b


class Further(Slotted):
    __slots__ = ("c",)

    def __init__(self, a: Any) -> None:
        super().__init__([a])
        self.c = Held(a)


MADE: dict[str, Callable[[Any], Any]] = {
    "object": lambda x: Held(3),
    "object with a list": lambda x: Held([]),
    "object with slots": lambda x: Slotted(3),
    "set": lambda x: {1, x.shape[0]},
    "counter": lambda x: collections.Counter("aab"),
    "bytearray": lambda x: bytearray(3),
    "namespace": lambda x: types.SimpleNamespace(n=x.ndim),
    "generator": lambda x: np.random.default_rng(3),
    "exception": lambda x: ValueError("no"),
    "in a dict": lambda x: {"a": Held(1)},
}


@pytest.mark.parametrize("name", MADE)
def test_each_call_makes_another(name: str) -> None:
    made = MADE[name]
    jitted = rune_jit.jit(lambda x: (made(x), x * 2))
    results = [jitted(X)[0] for _ in range(4)]
    if name == "in a dict":
        results = [result["a"] for result in results]
    assert len({id(result) for result in results}) == 4


def test_a_random_generator_begins_anew() -> None:
    def made(x: Any) -> Any:
        return np.random.default_rng(3), x + 1

    jitted = rune_jit.jit(made)
    for _ in range(4):
        np.testing.assert_array_equal(jitted(X)[0].random(3), made(X)[0].random(3))


HOLDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], list[Any]]]] = {
    "slots": (Slotted, lambda r: [r.a, r.b]),
    "inherited slots": (Further, lambda r: [r.a[0], r.b[0], r.c.a]),
    "exception": (ValueError, lambda r: [r.args[0]]),
    "attributes": (Held, lambda r: [r.a]),
    "slice": (lambda y: slice(y, [y], (y,)), lambda r: [r.start, r.stop[0], r.step[0]]),
    "slice in a tuple": (lambda y: (slice(None), slice(y, None, 2)), lambda r: [r[1].start]),
    "method in C": (lambda y: [y].append, lambda r: r.__self__),
}


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("name", HOLDERS)
def test_objects_hold_arrays(name: str, reads: bool) -> None:
    holder, held = HOLDERS[name]

    def made(x: Any) -> Any:
        y = x * 2
        if reads and float(y[0]) > 100:
            y = -y
        return holder(y), holder(y.sum())

    jitted = rune_jit.jit(made)
    for _ in range(4):
        for result, expected in zip(jitted(X), made(X), strict=True):
            for a, b in zip(held(result), held(expected), strict=True):
                assert type(a) is type(b)
                np.testing.assert_array_equal(a, b)


def test_objects_with_slots_keep_what_they_are_given() -> None:
    kept, expected = Slotted(None), Slotted(None)

    def note(x: Any, holder: Any) -> Any:
        holder.a = x * 2
        return float(x[0]) * x

    jitted = rune_jit.jit(note)
    for _ in range(4):
        np.testing.assert_array_equal(jitted(X, kept), note(X, expected))
        assert type(kept.a) is np.ndarray
        np.testing.assert_array_equal(kept.a, expected.a)


class Hashed(Slotted):
    """Equal objects are the same one, although each call makes another."""

    __slots__ = ()

    def __hash__(self) -> int:
        return id(self)


def test_slots_of_results_hold_no_traced_arrays() -> None:
    jitted = rune_jit.jit(lambda x: Hashed(x * 2))
    for i in range(3):
        found = jitted(X + i)
        assert type(found.a) is np.ndarray
        np.testing.assert_array_equal(found.a, (X + i) * 2)


KNOWN = Held(5)


@pytest.mark.parametrize(
    "returned",
    [
        lambda x: KNOWN,
        lambda x: Held,
        lambda x: fractions.Fraction(1, 3),
        lambda x: datetime.date(2020, 1, 2),
        lambda x: np.dtype("f4"),
        lambda x: slice(1, 2),
        lambda x: ...,
        lambda x: np.sin,
        lambda x: len,
        lambda x: np,
    ],
)
def test_values_and_what_was_there_before_are_part_of_the_program(
    returned: Callable[[Any], Any],
) -> None:
    jitted = rune_jit.jit(lambda x: (returned(x), x * 2), fallback="error")
    for _ in range(2):
        result = jitted(X)[0]
        assert result == returned(X)
    if returned(X) is KNOWN:
        assert result is KNOWN


class Line(tuple[float, float]):
    """As scipy.stats.linregress returns it: a namedtuple with a further, computed attribute."""

    _fields = ("slope", "intercept")

    def __new__(cls, slope: Any, intercept: Any, *, error: Any) -> Line:
        return tuple.__new__(cls, (slope, intercept))

    def __init__(self, slope: Any, intercept: Any, *, error: Any) -> None:
        self.__dict__["error"] = error

    @property
    def error(self) -> Any:
        return self.__dict__["error"]


def test_tuples_with_properties() -> None:
    def fitted(x: Any) -> Any:
        return Line(x.sum(), x[0], error=x * 2)

    jitted = rune_jit.jit(fitted)
    for _ in range(3):
        result = jitted(X)
        assert type(result) is Line
        assert result == fitted(X)
        np.testing.assert_array_equal(result.error, X * 2)


def test_objects_hold_numpys_functions_and_classes() -> None:
    def made(x: Any) -> Any:
        return Held([np.sin, np.float32, np.linalg, np.add]), x * 2

    jitted = rune_jit.jit(made)
    for _ in range(4):
        held = jitted(X)[0].a
        assert held[0] is np.sin
        assert held[1] is np.float32
        assert held[2] is np.linalg
        assert held[3] is np.add


@pytest.mark.parametrize("squeezed", [lambda x: x.squeeze(), np.squeeze, lambda x: x.squeeze(())])
def test_an_array_squeezed_in_vain_is_itself(squeezed: Callable[[Any], Any]) -> None:
    jitted = rune_jit.jit(lambda x: squeezed(x))
    for _ in range(2):
        x = X.copy()
        assert squeezed(x) is x
        assert jitted(x) is x


def test_vectorized_functions() -> None:
    def f(x: Any) -> Any:
        return np.vectorize(lambda t: t * 2), x + 1

    for _ in range(2):
        found, _ = rune_jit.jit(f)(np.ones(2))
        assert type(found) is np.vectorize
        np.testing.assert_array_equal(found(np.arange(3)), [0, 2, 4])


OUTSIDE = types.SimpleNamespace(made=None)


def local_class(x: Any) -> Any:
    class Local:
        doubled = x * 2

        def get(self) -> Any:
            return self.doubled + x

    return [Local], lambda found: (found[0].doubled, found[0]().get())


def class_without_methods(x: Any) -> Any:
    return type("Local", (), {"doubled": x * 2}), lambda found: found.doubled


def class_outside(x: Any) -> Any:
    class Local(Held):
        first = x[0]

    OUTSIDE.made = Local
    return Local, lambda found: (OUTSIDE.made.first, OUTSIDE.made(2).a, found is OUTSIDE.made)


def tuple_class(x: Any) -> Any:
    return collections.namedtuple("Pair", "a b"), lambda found: found(x, 1)


@pytest.mark.parametrize("make", [local_class, class_without_methods, class_outside, tuple_class])
@pytest.mark.parametrize("in_segments", [False, True])
def test_classes_that_a_call_makes(make: Callable[..., Any], in_segments: bool) -> None:
    def f(x: Any) -> Any:
        return make(x * float(x.sum()) if in_segments else x)

    jitted = rune_jit.jit(f)
    made = []
    for i in range(4):
        found, use = jitted(X + i)
        wanted, use_wanted = f(X + i)
        made.append(found[0] if type(found) is list else found)
        OUTSIDE.made = wanted if make is class_outside else None
        expected = use_wanted(wanted)
        OUTSIDE.made = made[-1]
        actual = use(found)
        for a, e in zip(actual, expected, strict=True):
            assert type(a) is type(e)
            np.testing.assert_array_equal(a, e)
    assert len(set(made)) == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda x: (v + 1 for v in x),
        lambda x: (row.sum() for row in np.outer(x, x)),
        lambda x: iter(x * 2),
        lambda x: reversed(x),
        lambda x: iter(np.outer(x, x)),
        lambda x: x.flat,
        lambda x: np.outer(x, x + 1).T.flat,
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_iterators_over_arrays(make: Callable[..., Any], begun: bool) -> None:
    def f(x: Any) -> Any:
        made = make(x)
        return next(made) if begun else 0, made

    jitted = rune_jit.jit(f)
    for i in range(4):
        x, y = X + i, X + i
        (first, rest), (first_wanted, rest_wanted) = jitted(x), f(y)
        assert first == pytest.approx(first_wanted)
        x[-1] = y[-1] = 9  # (the iterator reads it when it gets there)
        np.testing.assert_array_equal([*rest], [*rest_wanted])


def iterator_of_outside(x: Any) -> Any:
    OUTSIDE.made = [(x * 2).flat]
    next(OUTSIDE.made[0])
    return x + 1


def iterator_after_a_loop(x: Any) -> Any:
    elements = np.outer(x, x).flat
    OUTSIDE.made = (elements,)
    total = 0.0
    for v in elements:
        total = total + v
        if elements.index == 3:
            break
    return total, next(elements), elements.coords


@pytest.mark.parametrize("f", [iterator_of_outside, iterator_after_a_loop])
def test_flat_iterators_go_on(f: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(f)
    for i in range(4):
        found, rest = jitted(X + i), OUTSIDE.made
        wanted, rest_wanted = f(X + i), OUTSIDE.made
        for a, e in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, e)
        assert type(rest[0]) is np.flatiter
        assert rest[0].index == rest_wanted[0].index
        np.testing.assert_array_equal([*rest[0]], [*rest_wanted[0]])
