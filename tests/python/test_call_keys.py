"""Pairs of calls that differ in exactly one thing that a program may depend on.

Each pair is called A, A, B, A; each result must be what the function itself returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from compare import own

import rune_jit


class Arguments(NamedTuple):
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def given(*args: Any, **kwargs: Any) -> Arguments:
    return Arguments(args, kwargs)


def weighted(x: Any, a: Any = 0, b: Any = 0) -> Any:
    return x + a * 10 + b * 100


def keyword_only(x: Any, *, a: Any = 0, b: Any = 0) -> Any:
    return x + a * 10 + b * 100


def any_keywords(x: Any, **kwargs: Any) -> Any:
    return x + kwargs.get("a", 0) * 10 + kwargs.get("b", 0) * 100


def any_positions(x: Any, *args: Any, a: Any = 0) -> Any:
    return x + sum(args, 0) * 10 + a * 100


def described(x: Any, tag: Any = None) -> Any:
    """Depends on the type of `tag`, not on its value alone."""
    return x * 2 if isinstance(tag, bool) else x * 3 if isinstance(tag, str) else x * 5


def promoted(x: Any, y: Any) -> Any:
    return x + y


def summed(x: Any) -> Any:
    """Where elements share memory, NumPy adds up what it has written."""
    x += np.arange(x.size, dtype=x.dtype).reshape(x.shape)
    return x.sum()


def assigned(x: Any) -> Any:
    """Of a number it makes another, of an array it changes the elements."""
    x += 1
    return x * 2


def written_and_read(x: Any, y: Any) -> Any:
    x += 1
    return y * 2


def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Elements of one memory, in bytes apart."""
    memory = np.arange(16, dtype=np.float32)
    return np.lib.stride_tricks.as_strided(memory, shape, strides)


def written(x: Any) -> Any:
    x[...] = x * 2
    return x.sum()


X = np.arange(6, dtype=np.float32)
ROW = np.arange(12, dtype=np.float32)

ARGUMENTS: dict[str, tuple[Callable[..., Any], Arguments, Arguments]] = {
    "keyword name": (weighted, given(X, a=1), given(X, b=1)),
    "keyword name, keyword-only": (keyword_only, given(X, a=1), given(X, b=1)),
    "keyword name, **kwargs": (any_keywords, given(X, a=1), given(X, b=1)),
    "keyword name, of an array": (weighted, given(X, a=X), given(X, b=X)),
    "keyword order": (weighted, given(X, a=1, b=2), given(X, b=1, a=2)),
    "position and keyword": (weighted, given(X, 1), given(X, b=1)),
    "*args and keyword": (any_positions, given(X, 1), given(X, a=1)),
    "number of *args": (any_positions, given(X, 1), given(X, 1, 1)),
    "argument left out": (weighted, given(X), given(X, 1)),
    "int and float": (promoted, given(np.int32([1, 2]), 1), given(np.int32([1, 2]), 1.0)),
    "int and bool": (promoted, given(np.int8([1, 2]), 1), given(np.int8([1, 2]), True)),
    "number and NumPy scalar": (promoted, given(X, 1.0), given(X, np.float64(1.0))),
    "NumPy scalars of two dtypes": (promoted, given(X, np.float32(1)), given(X, np.float64(1))),
    "scalar and 0-d array": (
        lambda x: x,
        given(np.float32(1)),
        given(np.array(1, np.float32)),
    ),
    "0-d and 1-d": (promoted, given(X, np.array(1, np.float32)), given(X, np.float32([1]))),
    "dtype": (promoted, given(X, X), given(X, X.astype(np.int64))),
    "shape": (promoted, given(X.reshape(2, 3), X[:3]), given(X.reshape(2, 3), X[:1])),
    "static value": (described, given(X, "a"), given(X, None)),
    "type of a static value": (described, given(X, True), given(X, "True")),
    "list and tuple": (
        lambda x, y: x * (2 if isinstance(y, list) else 3) + y[0],
        given(X, [1.0]),
        given(X, (1.0,)),
    ),
    "keys of a dict": (
        lambda x, y: x + y.get("a", 0) * 10 + y.get("b", 0) * 100,
        given(X, {"a": 1}),
        given(X, {"b": 1}),
    ),
    "strides": (promoted, given(ROW[:6], X), given(ROW[::2], X)),
    "order of axes": (
        promoted,
        given(ROW.reshape(3, 4), ROW.reshape(3, 4)),
        given(ROW.reshape(4, 3).T, ROW.reshape(3, 4)),
    ),
    "stride of zero": (promoted, given(X, X), given(np.broadcast_to(X[:1], 6), X)),
    "stride of zero, written": (summed, given(X), given(strided((6,), (0,)))),
    "inner stride of zero, written": (
        summed,
        given(X.reshape(3, 2)),
        given(strided((3, 2), (4, 0))),
    ),
    "windows, written": (summed, given(X.reshape(3, 2)), given(strided((3, 2), (4, 4)))),
    "negative stride, written": (summed, given(X), given(X[::-1])),
    "scalar and 0-d array, written": (
        assigned,
        given(np.float32(1)),
        given(np.array(1, np.float32)),
    ),
    "number and 0-d array, written": (assigned, given(1.0), given(np.array(1.0))),
    "0-d and 1-d, written": (
        assigned,
        given(np.array(1, np.float32)),
        given(np.array([1], np.float32)),
    ),
    "list and array, written": (
        lambda x: (assigned(x[0]), 0)[0],
        given([X]),
        given(X.reshape(1, 6)),
    ),
    "alignment": (
        promoted,
        given(X, X),
        given(np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32), X),
    ),
}


def outcome(function: Callable[..., Any], call: Arguments) -> tuple[Any, ...]:
    """What a call of copies of the arguments returns or raises, and the arguments afterwards."""
    args, kwargs = own(call, "end")
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        return (type(error), str(error))
    leaves = [result, *args, *kwargs.values()]
    return tuple((type(x), np.asarray(x).dtype, np.asarray(x).tolist()) for x in leaves)


def check(function: Callable[..., Any], a: Arguments, b: Arguments) -> None:
    jitted = rune_jit.jit(function, fallback="silent")
    for call in (a, a, b, a):
        assert outcome(jitted, call) == outcome(function, call)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str) -> None:
    check(*ARGUMENTS[name])


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_the_other_way_round(name: str) -> None:
    function, a, b = ARGUMENTS[name]
    check(function, b, a)


@pytest.mark.parametrize("alias", [lambda x: x, lambda x: x[::-1], lambda x: x[:3]])
def test_arguments_that_share_memory(alias: Callable[[Any], Any]) -> None:
    jitted = rune_jit.jit(written_and_read, fallback="silent")
    for shares in (False, False, True, False):
        results = []
        for function in (jitted, written_and_read):
            x = X.copy()
            y = alias(x) if shares else alias(X.copy())
            results.append((function(x, y).tolist(), x.tolist(), y.tolist()))
        assert results[0] == results[1]


def test_the_write_flag_of_an_argument_that_is_written() -> None:
    jitted = rune_jit.jit(written, fallback="silent")
    for writeable in (True, True, False, True):
        x, y = X.copy(), X.copy()
        x.flags.writeable = y.flags.writeable = writeable
        if not writeable:
            with pytest.raises(ValueError, match="read-only"):
                jitted(x)
        else:
            assert jitted(x) == written(y)
        np.testing.assert_array_equal(x, y)


def test_static_arguments_by_value_and_type() -> None:
    jitted = rune_jit.jit(lambda x, n: x * n, static_argnames="n")
    for n in (1, 1, 1.0, 1, True, 1, -0.0, 0.0, -0.0):
        result, expected = jitted(np.int32([3]), n), np.int32([3]) * n
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


SCALE = 2.0


def scaled(x: Any, factor: float = 3.0, *, shift: float = 1.0) -> Any:
    def nested(y: Any) -> Any:
        return y * SCALE

    return nested(x) * factor + shift


class Holder:
    """What a function finds in attributes and items."""

    value = 2.0


HELD: dict[str, Any] = {"holder": Holder(), "list": [2.0]}


def held(x: Any) -> Any:
    def nested(y: Any) -> Any:
        return (lambda z: z * HELD["holder"].value)(y) + HELD["list"][0]

    return nested(x)


def _attribute(value: float) -> Callable[[], None]:
    return lambda: setattr(HELD["holder"], "value", value)


def _class_attribute(value: float) -> Callable[[], None]:
    return lambda: setattr(Holder, "value", value)


def _item(value: float) -> Callable[[], None]:
    return lambda: HELD["list"].__setitem__(0, value)


def _another_object(value: float) -> Callable[[], None]:
    def change() -> None:
        HELD["holder"] = Holder()
        HELD["holder"].value = value

    return change


@pytest.mark.parametrize("change", [_class_attribute, _attribute, _item, _another_object])
def test_state_that_a_nested_function_reads(change: Callable[[float], Callable[[], None]]) -> None:
    HELD.update(holder=Holder(), list=[2.0])
    Holder.value = 2.0
    jitted = rune_jit.jit(held)
    first, second = change(1.0), change(7.0)
    for step in (first, first, second, first):
        step()
        np.testing.assert_array_equal(jitted(X), held(X))


def _kwdefaults(value: float) -> Callable[[], None]:
    return lambda: setattr(scaled, "__kwdefaults__", {"shift": value})


def _kwdefaults_item(value: float) -> Callable[[], None]:
    return lambda: scaled.__kwdefaults__.update(shift=value)


def _defaults(value: float) -> Callable[[], None]:
    return lambda: setattr(scaled, "__defaults__", (value,))


def _global(value: float) -> Callable[[], None]:
    return lambda: globals().update(SCALE=value)


@pytest.mark.parametrize("change", [_kwdefaults, _kwdefaults_item, _defaults, _global])
def test_state_of_the_function(change: Callable[[float], Callable[[], None]]) -> None:
    jitted = rune_jit.jit(scaled)
    first, second = change(1.0), change(7.0)
    try:
        for step in (first, first, second, first):
            step()
            np.testing.assert_array_equal(jitted(X), scaled(X))
    finally:
        scaled.__defaults__, scaled.__kwdefaults__ = (3.0,), {"shift": 1.0}
        globals().update(SCALE=2.0)


@pytest.mark.parametrize("depth", [1, 2])
def test_closures(depth: int) -> None:
    factor = 1.0

    def inner(x: Any) -> Any:
        return x * factor if depth == 1 else (lambda y: y * factor)(x)

    jitted = rune_jit.jit(inner)
    for factor in (1.0, 1.0, 5.0, 1.0):  # noqa: B007  # the cell of `inner`
        np.testing.assert_array_equal(jitted(X), inner(X))


class Loud(np.float64):
    """A number that counts how often its text is made."""

    texts = 0

    def __repr__(self) -> str:
        Loud.texts += 1
        return super().__repr__()


@pytest.mark.parametrize("kind", [Loud, np.float64, np.float32, np.complex128])
def test_numbers_of_numpy_whose_values_are_constants(kind: Any) -> None:
    def sign(x: Any) -> Any:
        return 1 if x > 0 else np.copysign(1, x.real)

    # The first two values have programs of their own.
    values = [kind(x) for x in (1.0, -0.0, 0.0, np.nan, -0.0, 0.0, 2.0, 1.0, np.nan)]
    function = sign if kind is not np.complex128 else lambda x: (x, x.real > 0 and 1)
    jitted = rune_jit.jit(function)
    for x in values:
        jitted(x)
    before = Loud.texts
    for x in values:
        result, expected = jitted(x), function(x)
        assert type(result) is type(expected)
        np.testing.assert_equal(result, expected)
        assert np.signbit(np.real(result)).tolist() == np.signbit(np.real(expected)).tolist()
    assert Loud.texts == before
