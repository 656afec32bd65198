"""What Python and NumPy say of an array or a number outside of a trace, they say inside of it."""

from __future__ import annotations

import numbers
import statistics
import warnings
from collections.abc import Callable, Hashable, Iterable, Sized
from typing import Any

import numpy as np
import pytest
from compare import assert_matches, assert_same
from numpy import float64

import rune_jit

X = np.linspace(-2.0, 3.0, 6).reshape(2, 3)
ARRAY = rune_jit.asarray(X)


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result, or the exception and its message."""
    try:
        return function(*arguments)
    except (ValueError, TypeError, ArithmeticError) as error:
        return type(error), str(error)


# Each gives NumPy's result, of the same type, without running on NumPy.
COMPILED = {
    "isscalar": lambda x, n: (np.isscalar(x.sum()), np.isscalar(x), np.isscalar(n)),
    "a NumPy scalar": lambda x, n: isinstance(x.sum(), float) and isinstance(x.sum(), np.floating),
    "a Python number": lambda x, n: (isinstance(n, int), isinstance(n * 1.5, float)),
    "the numeric tower": lambda x, n: isinstance(n, numbers.Integral),
    "no array": lambda x, n: (isinstance(n, np.ndarray), isinstance(x.sum(), np.ndarray)),
    "an array": lambda x, n: (isinstance(x, np.ndarray), isinstance(x, float)),
    "elements under a mask": lambda x, n: (
        isinstance(x[x > 0], np.ndarray),
        type(x[x > 0]) is np.ndarray,
    ),
    "equal to None": lambda x, n: (x == None, x != None, x.sum() == None, n == None),  # noqa: E711
    "equal to text": lambda x, n: (x == "a", x != "a", x[0, 0] == "a"),
    "initial": lambda x, n: (np.sum(x[:0], initial=-0.0), np.prod(x[:0], initial=3.0)),
    "attributes of numbers": lambda x, n: (n.bit_length(), n.numerator, (n / 2).is_integer()),
    "a power in a ring": lambda x, n: pow(n, 3, 5),
    "the shapes of a broadcast": lambda x, n: (np.broadcast(x, x[0]).shape, np.broadcast(x, n).nd),
    "initial of negative zeros": lambda x, n: (
        np.sum(x * -0.0 - 0.0, initial=-0.0),
        np.sum(-abs(x * 0.0), axis=0, initial=-0.0),
    ),
    "sums of one negative zero": lambda x, n: np.sum(-abs(x[:, :1] * 0.0), axis=1),
    "an axis for a function on the host": lambda x, n: np.median(x[None], axis=(n - 2, 1 - 2)),
    "results on the host": lambda x, n: np.percentile(x, 10 * n, out=np.zeros(1)),
    "bins on the host": lambda x, n: np.histogram2d(x[0], x[1], (n + 4, 5))[0],
    "results of a product": lambda x, n: np.vecdot(x, x, out=np.zeros((2, 2))),
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
    "a NumPy scalar of a number": lambda x, n: (np.float64(n), np.int8(n), np.bool_(n)),
    "a NumPy scalar of a scalar": lambda x, n: (np.float32(x[0, 0]), np.int64(x[1, 1] * n)),
    "a NumPy scalar's class of an array": lambda x, n: (
        np.float64(x),
        np.bool_(x),
        float64([n, 2]),
    ),
    "a NumPy scalar of a computed number": lambda x, n: (np.int64(n * 100), np.float32(n + 1)),
    "classes of scalars as dtypes": lambda x, n: x.astype(np.float32) + np.zeros(3, dtype=np.int8),
    "classes of scalars": lambda x, n: _classes(x, n),
    "the class of an array": lambda x, n: (
        type(x) is np.ndarray,
        type(np.zeros(2)) in (np.ndarray,),
    ),
    "the class of a number": lambda x, n: (type(n) is int, type(x[0, 0]) is np.float64),
    "functions as values": lambda x, n, f=np.add: (
        f is np.add,
        f == np.add,
        f.nin,
        np.sum.__name__,
    ),
    "the sum of a list": lambda x, n: (np.sum([x, x * 2], axis=0), np.sum((n, 2, x[0, 0]))),
    "the extremes of a list": lambda x, n: (np.max([x, x * 2]), np.argmax([x[0, 0], n])),
    "a product with a list": lambda x, n: (x[:, :2] @ [[1, 2], [3, n]], [[1, 2], [3, n]] @ x),
    "a vector product of lists": lambda x, n: np.dot([x[0, 0], n], [1.0, x[0, 1]]),
    "linear algebra of lists": lambda x, n: (
        np.linalg.norm([x[0, 0], n]),
        np.linalg.det([[x[0, 0], 1], [n, x[1, 1]]]),
    ),
    "ufuncs of lists": lambda x, n: (np.sin([x[0, 0], 1]), np.maximum.reduce([x[0], x[1], x[0]])),
    "nested lists": lambda x, n: np.array([[x[0, 0], 0], [0, n]]),
    "lists in lists": lambda x, n: np.vstack(([x[0, 0], 1.0], [2, n])),
    "lists as bounds": lambda x, n: np.clip([x[0, 0], n], 0, 1),
    "columns": lambda x, n: (np.c_[x[0], x[1]], np.r_[x[0], n, 0:3]),
    "like a list": lambda x, n: (np.zeros_like([x[0, 0], 1]), np.full_like([n, 2], 7)),
    "the shape of a list": lambda x, n: (np.shape([x, x]), np.ndim([x, x]), np.size([x[0], x[1]])),
    "sizes in tuples": lambda x, n: (np.reshape(x, (-1, n)), np.tile(x, (n, 1)), np.pad(x, (n, 1))),
    "attributes": lambda x, n: (hasattr(n, "dtype"), hasattr(x, "shape"), getattr(n, "ndim", 7)),
    "attributes of a scalar": lambda x, n: (hasattr(x.sum(), "__len__"), hasattr(x.sum(), "dtype")),
    "abstract classes": lambda x, n: (isinstance(n, Iterable), isinstance(x, Sized)),
    "hashable": lambda x, n: (isinstance(x, Hashable), isinstance(n, Hashable)),
    "in columns": lambda x, n: (x.T.ravel("K"), x.T.flatten("A"), x.T.reshape(-1, order="A")),
    "in columns by copies": lambda x, n: (
        x.copy("F").ravel("K"),
        np.array(x, order="F").ravel("A"),
    ),
    "flags": lambda x, n: _flags(x * n),
    "strides": lambda x, n: (x.T.strides, (x + n)[::-1].strides, x.sum().strides),
    "known strides": lambda x, n: (np.zeros((2, 3), order="F").strides, (x + n).base is None),
    "shared memory": lambda x, n: (
        np.shares_memory(x[:, ::2], x[:, 1::2]),
        np.may_share_memory(x[:, ::2], x[:, 1::2]),
        np.shares_memory(x, x.T),
        np.shares_memory(x, x + n),
    ),
    "contiguous copies and views": lambda x, n: _written_contiguous(x * n),
    "require": lambda x, n: np.require((x * n).T, np.float32, ["C"]),
    "Fortran's order": lambda x, n: (np.isfortran(x.T), np.asfortranarray(x) * n),
    "joined in a dtype": lambda x, n: np.concatenate([x, x], dtype=np.int32, casting="unsafe"),
    "joined by no cast": lambda x, n: np.concatenate([x, np.arange(6).reshape(2, 3)], casting="no"),
    "stacked by the same kind": lambda x, n: np.stack([x, x], dtype=np.int32),
    "stacked in rows": lambda x, n: np.vstack([x, x], dtype=np.int32),
    "stacked by any cast": lambda x, n: np.hstack([x, x], dtype=np.int32, casting="unsafe"),
    "joined into": lambda x, n: np.concatenate(
        [x, x], out=np.zeros((4, 3), np.float32), casting="unsafe"
    ),
    "joined into, with a dtype": lambda x, n: np.concatenate(
        [x, x], out=np.zeros((4, 3)), dtype=np.float64
    ),
    "extremes of complex numbers": lambda x, n: np.fmax.reduce(
        np.array([1, np.nan, n]) + 0j * x[0]
    ),
    "complex weights": lambda x, n: np.histogram(x, bins=n, weights=x * 1j)[0],
    "a ufunc's casting": lambda x, n: np.add(x, n, dtype=np.int32, casting="unsafe"),
    "a ufunc's dtype": lambda x, n: np.add(x, n, dtype=np.int32),
    "grids": lambda x, n: (np.mgrid[0:n, 0:1:3j] * x[0, 0], np.ogrid[0:n, 0:n], np.mgrid[0:n]),
    "a grid between numbers": lambda x, n: np.mgrid[x[0, 0] : x[1, 2] : 5j],
    "finite lists": lambda x, n: np.asarray_chkfinite([x[0, 0], n]),
    "errors ignored": lambda x, n: _divided(x, "ignore"),
    "a list of unequal lengths": lambda x, n: np.sum([x[0], x[0, :2]]),
}


def _flags(x: Any) -> Any:
    return (
        x.flags.c_contiguous,
        x.T.flags["F_CONTIGUOUS"],
        x.flags.owndata,
        x[0].flags.owndata,
        x[:, 0].flags.contiguous,
        x.flags.writeable,
        x.sum().flags.writeable,
        x.copy("F").flags.f_contiguous,
        np.zeros((2, 3), order="F").flags.fnc,
    )


def _written_contiguous(x: Any) -> Any:
    view, columns, copy = np.ascontiguousarray(x[1:]), np.asfortranarray(x), x.copy("F")
    view[0] = 9
    columns[0, 0] = 5
    copy[0, 1] = 7
    return x, view, columns, copy


def _divided(x: Any, how: Any) -> Any:
    with np.errstate(divide=how, invalid="ignore"):
        return x / (x - x)


def _classes(x: Any, n: int) -> Any:
    class Own(np.ndarray):
        pass

    return (
        issubclass(np.float32, np.floating),
        issubclass(np.int8, np.float64),
        isinstance(np.float32, type),
        isinstance(np.float32(2), np.float32),
        issubclass(Own, np.ndarray),
        np.issubdtype(x.dtype, np.floating),
        x.dtype == np.float64,
        x.dtype.type == np.float64,
        {np.float64: n * 0}[x.dtype.type],
        np.finfo(np.float32).eps,
        np.iinfo(np.int8).max,
        np.result_type(np.int8, np.float32),
        np.float32.__name__,
        np.dtype([("a", np.float32)]),
    )


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
    "whether an argument may be written to": lambda x: (x, x.flags.writeable),
    "elements of a broadcast": lambda x: list(np.broadcast(x, x[0])),
    "a tensor inverted": lambda x: np.linalg.tensorinv(np.eye(6).reshape(2, 3, 6) * x[1, 1], 2),
    "a rational number": lambda x: statistics.mean(x[0]),
    "an attribute of a scalar": lambda x: x.sum().is_integer(),
    "errors that raise": lambda x: _divided(x, "raise"),
    "errors that raise in a function": lambda x: np.errstate(divide="raise")(lambda y: 1 / y)(
        x - x
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    jitted = rune_jit.jit(VALUES[name])
    for _ in range(2):
        assert repr(outcome(jitted, X)) == repr(outcome(VALUES[name], X))


def test_errors_that_raise_around_a_call() -> None:
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        rune_jit.jit(lambda x: 1 / x, fallback="silent")(X - X)


def test_errors_that_raise_around_a_compiled_call() -> None:
    jitted = rune_jit.jit(lambda x: 1 / x)
    jitted(X - X)
    for _ in range(2):
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            jitted(X - X)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            np.divide(1, ARRAY - ARRAY)
        with np.errstate(divide="ignore"):
            assert np.isinf(jitted(X - X)).all()


def test_made_up_values_raise_nothing() -> None:
    def f(total: Any, mask: Any, x: Any) -> Any:
        np.add.at(total, mask, x)
        return total

    arguments = np.zeros(4), np.array([True, False, False, False]), np.ones(1)
    assert_matches(rune_jit.jit(f, fallback="silent")(*arguments), np.array([1.0, 0, 0, 0]))


def test_ufuncs_with_results_by_name() -> None:
    out = np.zeros(3), np.zeros(3, np.int32)
    result = rune_jit.jit(np.frexp, fallback="error")(np.arange(3.0), out=out)
    assert result[0] is out[0] and result[1] is out[1]
    assert_matches(out, np.frexp(np.arange(3.0)))


def test_arrays_in_other_orders() -> None:
    def f(x: Any) -> Any:
        return x.ravel("K"), x.T.ravel("A"), x.strides, np.isfortran(x)

    jitted = rune_jit.jit(f, fallback="silent")
    for x in (X, np.asfortranarray(X), X[:, ::2]):
        assert_matches(jitted(x), f(x))


def test_printing_happens_at_each_call(capsys: pytest.CaptureFixture[str]) -> None:
    @rune_jit.jit(fallback="silent")
    def f(x: Any) -> Any:
        print(x[0], x.sum())
        return x

    for x in (X, X + 1):
        f(x)
        assert capsys.readouterr().out == f"{x[0]} {x.sum()}\n"


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.dtype("f4"), "float32", float])
def test_dtypes_as_arguments(dtype: Any) -> None:
    def f(x: Any, dtype: Any) -> Any:
        return x.astype(dtype), np.zeros(2, dtype) + x[0, 0], np.ones_like(x, dtype=dtype)

    result = rune_jit.jit(f, fallback="error")(X, dtype)
    assert_matches(result, f(X, dtype))


def test_functions_of_lists_as_jitted_functions() -> None:
    for function in (np.sum, np.mean, np.linalg.norm, np.sin):
        assert_matches(rune_jit.jit(function, fallback="error")([1.0, 2.5]), function([1.0, 2.5]))


def test_what_a_trace_returns_is_the_real_thing() -> None:
    def f(x: Any) -> Any:
        return np.add, np.float32, np.zeros, type, np.linalg, np, x

    result, expected = rune_jit.jit(f, fallback="error")(X), f(X)
    assert all(a is b for a, b in zip(result[:-1], expected[:-1], strict=True))


def test_a_number_that_does_not_fit() -> None:
    jitted = rune_jit.jit(lambda n: np.int8(n), fallback="error")
    assert repr(jitted(3)) == repr(np.int8(3))
    for _ in range(2):
        assert outcome(jitted, 300) == outcome(np.int8, 300)


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


def test_the_memory_of_arrays() -> None:
    assert ARRAY.strides == X.strides and ARRAY.flags.c_contiguous and ARRAY.flags.writeable
    assert ARRAY.T.strides == X.T.strides and ARRAY.T.flags.f_contiguous
    assert np.isfortran(ARRAY) is False
    assert_matches(
        np.asarray(ARRAY.astype(np.float32, order="C", casting="same_kind")), X.astype("f4")
    )


def test_arrays_refuse_what_numpy_refuses() -> None:
    for function in (
        lambda a: a.astype(np.int32, casting="safe"),
        lambda a: np.clip(a, 1, 2, min=1),
        lambda a: np.linalg.norm(a[None], "fro"),
        lambda a: np.tensordot(a, a, axes=([0, 0], [1, 1])),
    ):
        assert outcome(function, ARRAY) == outcome(function, X)


def _assigned(index: Any, value: Callable[[Any], Any], dtype: str) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        made = np.zeros(3, dtype)
        made[index] = value(x)
        return made

    return program


ASSIGNED: dict[str, Callable[[Any], Any]] = {
    "an element": _assigned(0, lambda x: x[0], "int32"),
    "a slice": _assigned(slice(1, 3), lambda x: x.sum(), "int32"),
    "all elements": _assigned(..., lambda x: x[0], "int8"),
    "a list": _assigned(slice(None), lambda x: [x[0], 1, 2], "int16"),
    "a float": _assigned(0, lambda x: x[0] * 1.5, "int64"),
    "a root": _assigned(0, lambda x: np.sqrt(x[0]), "int32"),
    "an unsigned one": _assigned(0, lambda x: x[0].astype("u8"), "int64"),
    "to an unsigned element": _assigned(0, lambda x: x[0], "uint8"),
    "by an index array": _assigned([0, 1], lambda x: x[0], "int8"),
    "an array": _assigned(0, lambda x: np.asarray(x[0]), "int32"),
    "filled": lambda x: np.zeros(3, "int32").fill(x[0]),
    "np.array": lambda x: np.array([x[0], 2], "int32"),
    "in a loop": _assigned(0, lambda x: max(x[i] for i in range(3)), "int32"),
}


@pytest.mark.parametrize("name", ASSIGNED)
def test_numbers_that_elements_do_not_hold(name: str) -> None:
    """NumPy raises for signed integers, and wraps elsewhere."""
    program = ASSIGNED[name]
    jitted = rune_jit.jit(program)
    for first in (5, 2**40, -(2**62), -(2**31), 2**31 - 1, -129):
        x = np.array([first, 2, 3])
        with np.errstate(invalid="ignore"):
            assert_same(outcome(jitted, x), outcome(program, x))


def test_numbers_that_are_known_to_fit_are_not_checked() -> None:
    def program(x: Any) -> Any:
        made = np.zeros(2, np.int32)
        made[0] = np.argmax(x)
        made[1] = (x > 0).sum(dtype=np.int16)
        return made

    jitted = rune_jit.jit(program, fallback="error")
    assert_same(jitted(X), program(X))
    assert "clip" not in str(jitted.lower(X).graph) and "cat" not in str(jitted.lower(X).graph)


def test_complex_takes_numpy_floats_as_floats() -> None:
    """Python's complex computes with them itself, and its result adapts to the other operand."""

    def program(x: Any, z: complex, a: Any) -> Any:
        s = x.sum()
        return 1j * s, z + s, z / (s + 1), s * z, z == s, a * (1j * s), z * np.float64(2)

    a = np.array([1, 2], np.float32)
    assert_same(rune_jit.jit(program)(X, 1 - 2j, a), program(X, 1 - 2j, a))


def test_the_operator_that_squares_bools() -> None:
    def program(x: Any) -> Any:
        made = np.zeros(3, bool)
        return made**2, made**3, (x > 0) ** 2, np.iscomplex(x) ** 2

    assert_same(rune_jit.jit(program)(X), program(X))


def errors_of_means(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.nanmean(np.where(x > 9, x, np.nan))
        except RuntimeWarning as error:
            return str(error)


def errors_after_a_read(x):
    print(x.sum())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=RuntimeWarning)
        try:
            return np.log(x)
        except RuntimeWarning as error:
            return str(error)


def recorded(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        y = 1 / x
    return y, [str(x.message) for x in found]


def ignored(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return 1 / x


@pytest.mark.parametrize("f", [errors_of_means, errors_after_a_read, recorded, ignored])
def test_code_that_notices_warnings(f: Any) -> None:
    jitted = rune_jit.jit(f)
    for _ in range(3):
        assert_same(jitted(np.zeros(3)), f(np.zeros(3)))
    assert ("one program" in jitted.explain()) is (f is ignored)
