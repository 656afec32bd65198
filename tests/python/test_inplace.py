"""Writes inside traced functions: results and the caller's arrays are NumPy's. On the CPU and the
interpreter."""

from __future__ import annotations

import functools
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same, check
from inplace_cases import (
    CASES,
    Function,
    matrix,
    operators,
    results_that_are_one_array,
    vector,
)

import rune_jit
from rune_jit import UnsupportedOpError


@pytest.fixture(params=["interpreter", "cpu"])
def jit(request: pytest.FixtureRequest) -> Any:
    """rune_jit.jit on a device, raising for what cannot be traced."""
    return functools.partial(rune_jit.jit, device=request.param, fallback="error")


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_matches_numpy(jit: Any, function: Function, arguments: tuple[Any, ...]) -> None:
    check(function, *arguments, ulps=0, jit=jit)


def test_a_written_argument_comes_back_itself(jit: Any) -> None:
    x = vector()
    result, other = jit(operators)(x, np.float32(1), 2), x
    assert result is other


def test_one_array_returned_twice_is_one(jit: Any) -> None:
    y, z = jit(results_that_are_one_array)(matrix())
    assert y is z


@pytest.mark.parametrize(
    "view",
    [
        lambda b: b[:, ::2],
        lambda b: b.T,
        lambda b: b[::-1, ::-1],
        lambda b: b.astype(np.float64, order="F"),
        lambda b: b[1:3, 2:5],
    ],
)
def test_arguments_of_any_layout(jit: Any, view: Function) -> None:
    def f(x: Any) -> Any:
        x[1:] += x[:-1]
        x[0, 0] = 5
        return x.sum()

    expected_base, actual_base = (np.arange(48.0).reshape(6, 8) for _ in range(2))
    expected_view, actual_view = view(expected_base), view(actual_base)
    jitted = jit(f)
    for _ in range(2):
        assert jitted(actual_view) == f(expected_view)
        np.testing.assert_array_equal(actual_view, expected_view)
        np.testing.assert_array_equal(actual_base, expected_base)


def test_reshapes_of_arrays_that_are_not_contiguous(jit: Any) -> None:
    def f(x: Any) -> Any:
        y = x.reshape(-1)
        y[1] = 50
        return x * 1

    jitted = jit(f)
    for make in (lambda: matrix(), lambda: matrix().T, lambda: matrix()[:, ::2]):
        a, b = make(), make()
        np.testing.assert_array_equal(jitted(a), f(b))
        np.testing.assert_array_equal(a, b)


def test_overlapping_arguments_run_on_numpy(jit: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        x += y
        y *= 2
        return x + y

    jitted = jit(f)
    for shift in (0, 1, 3, 4):
        a, b = np.arange(8.0), np.arange(8.0)
        np.testing.assert_array_equal(
            jitted(a[:4], a[shift : shift + 4]), f(b[:4], b[shift : shift + 4])
        )
        np.testing.assert_array_equal(a, b)
    a, b = np.zeros(3), np.zeros(3)
    for base, function in ((a, jitted), (b, f)):  # an array whose rows are one
        function(np.lib.stride_tricks.as_strided(base, (3, 3), (0, 8)), np.ones((3, 3)))
    np.testing.assert_array_equal(a, b)


def test_read_only_arguments(jit: Any) -> None:
    def assign(x: Any) -> None:
        x[0] = 1

    def add(x: Any) -> None:
        x += 1

    for function in (assign, add):
        jitted = jit(function)
        jitted(vector())
        x = vector()
        x.flags.writeable = False
        with pytest.raises(ValueError) as expected:
            function(x)
        with pytest.raises(ValueError) as actual:
            jitted(x)
        assert str(actual.value) == str(expected.value)
        np.testing.assert_array_equal(x, vector())


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: np.add(i, 0.5, out=i),
        lambda x, i: np.copyto(i, x[: i.size]),
        lambda x, i: i.__iadd__(1.5),
        lambda x, i: i.__itruediv__(2),
        lambda x, i: x.__iadd__(np.ones((2, 6))),
        lambda x, i: np.add(x, np.ones((2, 6)), out=x),
        lambda x, i: x.__setitem__(0, [1, 2]),
        lambda x, i: x.__setitem__(slice(2), np.ones((2, 3))),
        lambda x, i: x.__setitem__(6, 1),
        lambda x, i: x.__setitem__((0, 0), 1),
        lambda x, i: x.__setitem__(x[:3] > 0, 1),
        lambda x, i: i.astype(np.uint8).__setitem__(0, 300),
        lambda x, i: i.__setitem__(0, float("nan")),
        lambda x, i: np.broadcast_to(x, (2, 6)).__setitem__(0, 1),
        lambda x, i: np.diagonal(np.outer(x, x)).__setitem__(0, 1),
        lambda x, i: x[i[:1] + 6],
        lambda x, i: np.take(x, i[:2] - 7),
        lambda x, i: x.__setitem__(i[1] + 6, 0),
    ],
)
def test_errors_are_numpys(jit: Any, function: Function) -> None:
    """The same exception with the same text, and nothing written."""
    arguments = vector(), np.arange(3)
    with pytest.raises((TypeError, ValueError, IndexError, OverflowError)) as expected:
        function(vector(), np.arange(3))
    with pytest.raises(expected.type) as actual:
        jit(function)(*arguments)
    assert str(actual.value) == str(expected.value)
    assert_same(list(arguments), [vector(), np.arange(3)])


def test_scalars_have_no_items(jit: Any) -> None:
    def f(x: Any) -> None:
        x.sum()[0] = 1

    with pytest.raises(TypeError, match="float32' object does not support item assignment"):
        jit(f)(vector())


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint32])
def test_indices_out_of_bounds(jit: Any, dtype: Any) -> None:
    x = np.arange(5.0)
    f, g = jit(lambda x, i: x[i]), jit(lambda x, i: x.reshape(1, 5)[:, i])
    good = np.array([[0, 4], [2, 1]], dtype)
    np.testing.assert_array_equal(f(x, good), x[good])
    bad = [5, 100] if np.dtype(dtype).kind == "u" else [5, 100, -6, -128]
    for at in bad:
        index = good.copy()
        index[1, 0] = at
        for function, axis in ((f, 0), (g, 1)):
            with pytest.raises(
                IndexError, match=f"^index {at} is out of bounds for axis {axis} with size 5$"
            ):
                function(x, index)
    np.testing.assert_array_equal(f(x, good), x[good])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # NumPy 2.3: it takes one element
@pytest.mark.parametrize("dtype", ["float64", "int32", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(1,), (1, 1), (2,)])
def test_arrays_assigned_to_an_element(jit: Any, dtype: str, shape: tuple[int, ...]) -> None:
    def element(y: np.ndarray, x: np.ndarray) -> None:
        y[0, 1] = x

    def view(y: np.ndarray, x: np.ndarray) -> None:
        y[..., 0, 1] = x

    for f in (element, view):
        ours, theirs = np.zeros((2, 2), dtype), np.zeros((2, 2), dtype)
        x, error = np.ones(shape, dtype), None
        try:
            f(theirs, x)
        except (TypeError, ValueError) as raised:
            error = raised
        if error is None:
            jit(f)(ours, x)
        else:
            with pytest.raises(type(error)) as found:
                jit(f)(ours, x)
            assert str(found.value) == str(error)
        np.testing.assert_array_equal(ours, theirs)


def test_what_numpy_writes_before_an_error_is_written(jit: Any) -> None:
    def f(x: Any, i: Any) -> Any:
        x += 1
        y = x[i]
        x[0] = y[0]
        return y

    x, jitted = vector(), jit(f)
    for count in (1, 2):
        with pytest.raises(IndexError, match=r"^index 6 is out of bounds"):
            jitted(x, np.array([6]))
        np.testing.assert_array_equal(x, vector() + count)


def test_indices_known_to_be_in_range_are_not_checked() -> None:
    def checks(function: Function, *args: Any) -> int:
        jitted = rune_jit.jit(function, fallback="error")
        return len(jitted._runner.compiler.trace(jitted._runner.take_apart(args, {})).checks)

    index, i = np.array([0, 1]), np.array([1, 2])
    assert checks(lambda x: x[[0, 2, -1]], vector()) == 0
    assert checks(lambda x: x[np.arange(4)], vector()) == 0
    assert checks(lambda x, i: x[i], np.zeros(256), i.astype(np.uint8)) == 0
    assert checks(lambda x, i: x[i], vector(), i) == 1
    assert checks(lambda x: x[index], vector()) == 1  # a captured array may change


FALLBACKS = [
    lambda x: x.byteswap(True),
    lambda x: x[x > 0],
    lambda x: x.resize(3, refcheck=False),
]


@pytest.mark.parametrize("function", FALLBACKS)
def test_what_cannot_be_traced_runs_on_numpy(function: Function) -> None:
    expected, actual = vector()[::-1].copy(), vector()[::-1].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rune_jit.jit(function)(actual)
    assert_same([result], [function(expected)])
    assert_same(actual, expected)
    with pytest.raises((UnsupportedOpError, rune_jit.ConcretizationError)):
        rune_jit.jit(function, fallback="error")(vector())


_captured = np.zeros(3)


def test_writes_to_captured_arrays_run_on_numpy() -> None:
    def item(x: Any) -> Any:
        _captured[0] = x[0]
        return x + _captured

    def whole(x: Any) -> Any:
        global _captured
        _captured += x
        return x * 2

    for function in (item, whole):
        _captured[:] = 0
        jitted = rune_jit.jit(function, fallback="silent")
        np.testing.assert_array_equal(jitted(np.ones(3)), [2, 1, 1] if function is item else 2)
        np.testing.assert_array_equal(_captured, [1, 0, 0] if function is item else 1)


def _helper(x: Any) -> Any:
    buffer = np.zeros(2)
    buffer[1] = x[1]
    return buffer


_assigned = 0


def test_globals_closures_and_helpers_see_their_numpy(jit: Any) -> None:
    numpy, zeros = np, np.zeros
    counter = 0

    def f(x: Any) -> Any:
        global _assigned
        nonlocal counter
        counter += 1
        _assigned = 5
        a, b = numpy.zeros(2), zeros(2)
        a[0] = x[0]
        b[1] = x[0]

        def inner() -> Any:
            c = np.ones(2)
            c[0] = x[3]
            return c

        return a, b, inner(), _helper(x)

    expected = f(vector())
    assert_same(jit(f)(vector()), expected)
    assert counter == 2
    assert _assigned == 5
    assert f.__globals__["np"] is np


def test_methods(jit: Any) -> None:
    class Model:
        @jit
        def run(self, x: Any) -> Any:
            a = np.zeros(2)
            a[0] = x[0]
            return a

    assert_same(Model().run(vector()), np.array([-2.0, 0.0]))


def test_nested_jit(jit: Any) -> None:
    @jit
    def inner(x: Any) -> Any:
        a = np.zeros(2)
        a[0] = x[0]
        x[0] = 9
        return a

    def outer(x: Any) -> Any:
        return inner(x) + 1, x * 2

    x = vector()
    a, b = jit(outer)(x)
    assert_same(a, np.array([-1.0, 1.0]))
    assert b[0] == 18
    assert x[0] == 9


def test_other_threads_see_numpy_while_tracing(jit: Any) -> None:
    started, seen = threading.Event(), []
    finish = threading.Event()

    def f(x: Any) -> Any:
        started.set()
        assert finish.wait(10)
        a = np.zeros(1)
        a[0] = x[0]
        return a

    def look() -> None:
        assert started.wait(10)
        seen.append(
            (type(np.zeros(1)), isinstance(np, types.ModuleType), np is f.__globals__["np"])
        )
        finish.set()

    thread = threading.Thread(target=look)
    thread.start()
    jit(f)(vector())
    thread.join()
    assert seen == [(np.ndarray, True, True)]


def test_empty_is_no_garbage(jit: Any) -> None:
    assert_same(jit(lambda x: np.empty(3) * 0 + x[0])(vector()), np.full(3, -2.0))


_table: Any = None


def test_arrays_that_outlive_the_trace_act_as_numpys(jit: Any) -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        global _table
        _table = np.arange(4)
        kept.append(np.zeros(3))
        return x + _table[1]

    np.testing.assert_array_equal(jit(f)(vector()), vector() + 1)
    assert type(_table) is np.ndarray
    kept[0][1] = 5
    assert kept[0][1] == 5
    assert (kept[0] + 1).sum() == 8
    assert kept[0].reshape(3, 1).shape == (3, 1)
    assert kept[0].copy().max() == 5


def test_a_view_is_written_once() -> None:
    def f(x: Any) -> None:
        x[1:3] += 1

    text = str(rune_jit.jit(f, fallback="error").trace(vector()))
    assert text.count("= update") == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: setattr(x, "shape", (2, 3)),
        lambda x: x.byteswap(True),
    ],
)
def test_methods_that_write_run_on_numpy(function: Function) -> None:
    expected, actual = vector(), vector()
    function(expected)
    rune_jit.jit(function, fallback="silent")(actual)
    assert_same(actual, expected)


_NEW_ARRAYS: dict[str, Any] = {
    "sum": lambda x: x.sum(1, keepdims=True), "mean": lambda x: x.mean(1),
    "var": lambda x: x.var(0), "any": lambda x: np.any(x > 2, 1), "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: np.sort(x, 1), "accumulate": lambda x: np.maximum.accumulate(x, 1),
    "outer": lambda x: np.add.outer(x, x[0, 0]), "index": lambda x: x[[0, 2]],
    "reduceat": lambda x: np.add.reduceat(x, [0, 1], 1), "elementwise": lambda x: x * 2,
    "where": lambda x: np.where(x > 3, x, 0), "take": lambda x: x.take([0], 1),
    "concatenate": lambda x: np.concatenate([x, x]), "by name": lambda x: np.sum(a=x, axis=1),
    "like": lambda x: np.zeros_like(x), "operator": lambda x: x % 7 - x[0, 0],
    "argmax": lambda x: x.argmax(1, keepdims=True), "matmul": lambda x: x[0] @ x[0].T,
    "batch": lambda x: x @ x.swapaxes(1, 2), "columns": lambda x: x[:, [0, 1]],
    "einsum": lambda x: np.einsum("abc,adc->dba", x, x),
    "apply": lambda x: np.apply_along_axis(lambda v: v * 2, 0, x),
}  # fmt: skip
_REFUSED_OF_C_ORDER = {"batch", "einsum", "columns", "apply"}


@pytest.mark.parametrize("name", _NEW_ARRAYS)
def test_writes_to_reshaped_results(name: str) -> None:
    """A reshaped array is a view of a result that NumPy has laid out in C order, else a copy."""
    x = np.arange(60.0).reshape(3, 4, 5)
    for axes in ((0, 1, 2), (2, 0, 1), (1, 0, 2)):

        def function(x: Any, axes: Any = axes) -> Any:
            result = _NEW_ARRAYS[name](x.transpose(axes))
            flat = result.ravel()
            flat[0] = 77
            return result, flat

        try:
            found = rune_jit.jit(function, fallback="error")(x)
        except rune_jit.UnsupportedOpError as error:
            assert "NumPy lays it out in another order" in str(error)
            assert axes != (0, 1, 2) or name in _REFUSED_OF_C_ORDER
            continue
        for f, w in zip(found, function(x), strict=True):
            np.testing.assert_array_equal(f, w)


def test_writes_to_what_was_reshaped_from_a_read_only_array() -> None:
    """Whether NumPy makes a copy, which can be written to, depends on the argument's layout."""

    def function(x: Any) -> Any:
        reshaped = np.broadcast_to(x, (4, 2)).reshape(2, 4)
        reshaped += 2
        return reshaped

    jitted = rune_jit.jit(function, fallback="error")
    x = np.arange(8.0).reshape(4, 2)
    for given in (x, np.broadcast_to(x[:1], (4, 2))):
        with pytest.raises(rune_jit.UnsupportedOpError, match="read-only"):
            jitted(given)
    with pytest.raises(ValueError, match="read-only"):
        rune_jit.jit(function)(x)


@pytest.mark.parametrize(
    "write",
    [
        lambda y: np.concatenate([y[6:], y[:6]], out=y),
        lambda y: np.concatenate([[1, 2.0], y[:9], y[:1]], out=y),
        lambda y: np.concatenate(y.reshape(3, 4)[::-1], axis=None, out=y),
        lambda y: np.stack([y[6:], y[:6]], out=y.reshape(2, 6)),
        lambda y: np.stack([y[3:6], y[:3], y[6:9], y[9:]], axis=-1, out=y.reshape(3, 4)),
    ],
)
def test_arrays_that_are_joined_into_themselves(write: Callable[[Any], Any]) -> None:
    """NumPy copies one after the other."""

    def function(x: Any) -> Any:
        y = x * 2
        write(y)
        return y

    jitted = rune_jit.jit(function)
    for _ in range(3):
        x = np.arange(12.0)
        np.testing.assert_array_equal(jitted(x), function(x))
    assert "as one program" in jitted.explain()
