"""The text of an error that the traced function handles is NumPy's."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x + np.ones(3),
        lambda x: x.reshape(3),
        lambda x: x[:0].max(),
        lambda x: x[:0].argmax(),
        lambda x: x @ np.ones(3),
        lambda x: x.sum(axis=2),
        lambda x: np.concatenate([x, np.ones((2, 2))]),
        lambda x: np.stack([x, np.ones(3)]),
        lambda x: np.transpose(x, (1, 0)),
        lambda x: x & 1,
        lambda x: x[5],
        lambda x: np.sum(x, axis=True),
        lambda x: np.argmax(x, axis=True),
        lambda x: np.cumsum(x, axis=True),
        lambda x: np.sum(x, where=x),
        lambda x: np.mean(x, where=x),
        lambda x: np.add(x, 1, out=x, where=x),
        lambda x: np.copyto(x, 1, where=x),
        lambda x: np.add(x, 1, subok=1),
        lambda x: np.add(x, 1, order="X"),
        lambda x: np.max(x, initial=1j),
        lambda x: round(np.sqrt(x + 0j)[0], 1),
        lambda x: np.around(x, out=(np.zeros(2),)),
        lambda x: np.sum(x, out=(np.zeros(()),)),
        lambda x: np.take(x, [0], out=(np.zeros(1),)),
        lambda x: np.full(3, x[0], order="K"),
        lambda x: x.reshape(1, 2).transpose(True, False),
        lambda x: np.vdot(x, np.ones(3)),
        lambda x: pow(x, 2, 3),
        lambda x: pow(x[0], 2, 3),
        lambda x: pow(x.astype(int)[0], 2, 3),
        lambda x: "%d" % x,  # noqa: UP031
        lambda x: b"%d" % (x * 2),
        lambda x: dict(**x),
        lambda x: ord(x),
        lambda x: x(),
        lambda x: float(1j * x[0]),
        lambda x: int(1j * x[0]),
        lambda x: math.floor(1j * x[0]),
        lambda x: round(1j * x[0]),
        lambda x: range(1j * x[0]),
    ],
)
def test_it_is_numpys(operation: Any) -> None:
    def f(x: Any) -> Any:
        try:
            return operation(x)
        except (ValueError, TypeError, IndexError) as error:
            return type(error).__name__, str(error), x * 2

    jitted = rune_jit.jit(f, fallback="silent")
    for _ in range(3):
        assert_same(jitted(np.ones(2)), f(np.ones(2)))


def test_handlers_that_see_no_text_are_part_of_programs() -> None:
    def f(x: Any) -> Any:
        try:
            return x.reshape(3)
        except ValueError:
            return x * 2

    jitted = rune_jit.jit(f)
    assert_same([jitted(np.ones(2)), jitted(np.ones(3))], [f(np.ones(2)), f(np.ones(3))])
    assert "segments" not in jitted.explain()


def test_errors_of_the_function_itself_are_part_of_programs() -> None:
    def f(x: Any) -> Any:
        try:
            if x.ndim == 1:
                raise ValueError("one axis")
        except ValueError as error:
            return str(error), x * 2
        return "none", x

    jitted = rune_jit.jit(f)
    assert_same(jitted(np.ones(2)), f(np.ones(2)))
    assert "segments" not in jitted.explain()


def test_errors_in_helpers_without_arrays_are_part_of_programs() -> None:
    def number(text: str) -> int:
        return text.index("w")

    def f(x: Any, text: str) -> Any:
        try:
            return x * number(text)
        except ValueError as error:
            return x * len(str(error))

    jitted = rune_jit.jit(f, fallback="error")
    for text in ("2", "two"):
        assert_same(jitted(np.ones(2), text), f(np.ones(2), text))
    assert "as one program" in jitted.explain()


LISTS: dict[str, Any] = {
    "put": lambda x: np.put(x, [0], 5),
    "copyto": lambda x: np.copyto(x, 1),
    "putmask": lambda x: np.putmask(x, [True, False], 5),
    "place": lambda x: np.place(x, [True, False], [5]),
    "fill_diagonal": lambda x: np.fill_diagonal(x, 0),
    "put_along_axis": lambda x: np.put_along_axis(x, np.zeros((1, 2), int), 9, axis=0),
    "rollaxis": lambda x: np.rollaxis(x, 1),
    "tril_indices_from": lambda x: np.tril_indices_from(x),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("given", [[1.0, 2.0], [np.ones(2), np.zeros(2)]])
def test_functions_that_refuse_lists(name: str, given: Any) -> None:
    jitted = rune_jit.jit(LISTS[name], fallback="silent")
    with pytest.raises((TypeError, AttributeError)) as wanted:
        LISTS[name](given)
    for _ in range(3):
        with pytest.raises(wanted.type, match=re.escape(str(wanted.value))):
            jitted(given)


@pytest.mark.parametrize("out", [2, 2.5, 1j, np.float64(2), np.int64(2)])
def test_a_number_is_no_output(out: Any) -> None:
    for f in (lambda x, out: np.add(x, 1, out=out), lambda x, out: np.add(1, 2, out=(out,))):
        jitted = rune_jit.jit(f, fallback="silent")
        for _ in range(3):
            with pytest.raises(TypeError, match="return arrays must be of ArrayType"):
                jitted(np.ones(2), out)


@pytest.mark.parametrize("casting", ["same_kind", "unsafe", "no"])
@pytest.mark.parametrize("value", [True, 1, -1, 1.5])
@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "c16"])
def test_numbers_that_are_copied_to_arrays(dtype: str, value: Any, casting: Any) -> None:
    def f(x: Any, v: Any) -> Any:
        try:
            np.copyto(x, value, casting=casting)
            np.copyto(x[1:], v, casting=casting)
        except (TypeError, OverflowError) as error:
            return type(error).__name__, str(error)
        return x

    jitted = rune_jit.jit(f, fallback="silent")
    for _ in range(3):
        mine, theirs = np.zeros(3, dtype), np.zeros(3, dtype)
        assert_same(jitted(mine, value), f(theirs, value))
        assert_same(mine, theirs)


@pytest.mark.parametrize("at", [[1, 7, 9], [-9, 7, -20], [2, 3, 9]])
@pytest.mark.parametrize(
    "operation",
    [
        lambda x, i: x[i] * 2,
        lambda x, i: x.take(i) + 1,
        lambda x, i: np.stack([x, x])[1, i],
        lambda x, i: sum(x[k] for k in i),
    ],
)
def test_of_several_wrong_positions_the_first_is_named(operation: Any, at: list[int]) -> None:
    jitted = rune_jit.jit(operation)
    x, positions = np.ones(5), np.array(at)
    with pytest.raises(IndexError) as expected:
        operation(x, positions)
    for _ in range(3):
        with pytest.raises(IndexError) as found:
            jitted(x, positions)
        assert str(found.value) == str(expected.value)
        assert found.traceback[-1].path == expected.traceback[-1].path


@pytest.mark.parametrize("make", [np.ones, lambda n: np.ones(n).sum(keepdims=True)])
def test_an_array_is_no_dtype(make: Any) -> None:
    def f(x: Any) -> Any:
        y = make(3) + x.size
        messages = []
        for convert in (x.astype, np.array(1.0).astype, y.astype):
            for dtype in (x, y):
                try:
                    convert(dtype)
                except TypeError as error:
                    messages.append(str(error))
        return messages, x.astype(x.dtype)

    jitted = rune_jit.jit(f)
    for _ in range(3):
        assert_same(jitted(np.ones(2)), f(np.ones(2)))
