"""Corners of NumPy: dtypes and special values that follow from no rule of the others'."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compare import assert_matches, outcome
from devices import HAS_FLOAT64

import rune_jit

BOOLS = np.array([True, False, True])
FLOATS = np.array([4.0, -0.0, -np.inf, 1.5], np.float32)
HALVES = FLOATS.astype(np.float16)
BRAIN = np.array([1, -2, 0.5], ml_dtypes.bfloat16)
EMPTY = np.zeros((0, 3), np.int8)
INTEGERS = np.arange(24, dtype=np.int32)

CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "quotients by comparisons with extremes": (
        lambda x, y: tuple(
            np.abs(np.where(c, v, 0) / c)
            for v, low, high in ((x, 0, 255), (y, -128, 127))
            for c in (v <= low, v >= high, v < low, v > high, v <= high, low <= v)
        ),
        [np.array([0, 3, 255] * 7, np.uint8), np.array([-128, 0, 127] * 11, np.int8)],
    ),
    "squares of bool": (lambda x: (x**2, np.power(x, 2), x[0] ** 2, x**True), [BOOLS]),
    "roots as powers": (
        lambda x, y: tuple(
            f(v) for v in (x, y, x[1], y[2]) for f in (lambda v: v**0.5, lambda v: np.power(v, 0.5))
        ),
        [FLOATS, HALVES],
    ),
    "products of bfloat16": (
        lambda x: (x @ x, np.matmul(x[None], x), np.vecdot(x, x), np.dot(x, x)),
        [BRAIN],
    ),
    "clip of bfloat16": (lambda x: (np.clip(x, -1, 1), np.clip(x, None, 1)), [BRAIN]),
    "choices of bfloat16": (
        lambda x: (np.where(x > 0, x, 1), np.where(x > 0, x, x)),
        [BRAIN],
    ),
    "sinc": (lambda x: np.sinc(x), [np.array([0, -0.0, 0.5], np.float16)]),
    "extrema of nothing": (
        lambda x: (
            np.max(x, axis=(0, 1), initial=1),
            np.min(x, 0, initial=3, keepdims=True),
            np.max(x, 1, initial=2),
            np.max(x, 0, initial=5, where=x > 0),
        ),
        [EMPTY],
    ),
}
if HAS_FLOAT64:
    CASES["choices of bfloat16 and a float"] = (lambda x: np.where(x > 0, x, 1.5), [BRAIN])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str, run: Callable[..., Any]) -> None:
    function, arguments = CASES[name]
    expected = function(*arguments)
    actual = run(function, *arguments)
    if not isinstance(expected, tuple):
        actual, expected = (actual,), (expected,)
    for found, wanted in zip(actual, expected, strict=True):
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
        np.testing.assert_array_equal(found, wanted, strict=True)
        numbers = wanted == wanted  # NaN's sign is not promised
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


def test_numbers_of_at() -> None:
    """NumPy takes them as int64 and float64, and rounds: what that changes is left to NumPy."""

    def add(x: Any, value: Any) -> Any:
        np.add.at(x, np.array([0, 1, 1]), value)
        return x

    jitted = rune_jit.jit(add, fallback="error", static_argnums=1)
    for x, value in ((FLOATS, 0.5), (FLOATS, -3), (np.int8([100, 2]), 50), (HALVES, 1)):
        np.testing.assert_array_equal(jitted(x.copy(), value), add(x.copy(), value), strict=True)
        assert "numpy.add.at" not in jitted.lower(x.copy(), value).explain()
    for x, value in ((FLOATS, 0.3), (FLOATS, 2**24 + 1), (np.uint64([1, 2]), 1)):
        np.testing.assert_array_equal(jitted(x.copy(), value), add(x.copy(), value), strict=True)
        assert "numpy.add.at" in jitted.lower(x.copy(), value).explain()
    any_number = rune_jit.jit(add, fallback="error")
    for value in (0.5, 0.3):
        found = any_number(FLOATS.copy(), value)
        np.testing.assert_array_equal(found, add(FLOATS.copy(), value), strict=True)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.subtract, np.maximum, np.minimum])
def test_integers_and_numbers_of_at(ufunc: np.ufunc) -> None:
    """Numbers out of bounds wrap; uint64 and a number are float64; fractions cannot be cast."""
    for dtype in ("int8", "uint8", "int64", "uint64"):
        x = np.array([0, 5, 100, 2]).astype(dtype)
        if dtype == "uint64":
            x[1:3] = 2**53 + 1, 2**64 - 2
        for value in (0, -1, 300, 2**40, True, 0.5):

            def at(x: Any, value: Any = value) -> Any:
                ufunc.at(x, np.array([0, 1, 2, 2, -1]), value)
                return x

            with np.errstate(all="ignore"):
                try:
                    wanted = at(x.copy())
                except TypeError as error:
                    with pytest.raises(type(error)):
                        rune_jit.jit(at, fallback="error")(x.copy())
                    continue
                found = rune_jit.jit(at, fallback="error")(x.copy())
            np.testing.assert_array_equal(found, wanted, strict=True)


def test_einsum_with_ellipses(run: Callable[..., Any]) -> None:
    def function(x: Any, y: Any, v: Any) -> Any:
        return (
            np.einsum("...ij,...jk->...ik", x, y), np.einsum("...ij,jk", x, y[0]),
            np.einsum("i...->...", x), np.einsum("...i,...i->...", x, v), np.einsum("...", v),
            np.einsum("i...,...k->ki...", v, v), np.einsum("...ij->...ji", x),
            np.einsum("ij...,j...->...", y, y[0]), np.einsum(" ... i -> ... ", x),
        )  # fmt: skip

    arguments = INTEGERS[:24].reshape(2, 3, 4), INTEGERS[:20].reshape(1, 4, 5), INTEGERS[:4]
    for found, wanted in zip(run(function, *arguments), function(*arguments), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)
    for subscripts in "...i->i", "...ij->...k", "...ijkl":
        with pytest.raises(ValueError):
            run(
                lambda v, subscripts=subscripts: np.einsum(subscripts, v),
                INTEGERS[:6].reshape(2, 3),
            )


@pytest.mark.parametrize("optimize", [False, True, "greedy", "optimal"])
def test_einsum_without_axes(optimize: Any) -> None:
    """NumPy's result is an array if its last step is a product of matrices: `+=` writes to it."""

    def function(a: Any, b: Any, v: Any) -> Any:
        total = np.einsum("ij,ji->", a, b, optimize=optimize)
        before = total
        total += 1.0
        return (
            total, before, np.einsum("ij,ij", a, b, optimize=optimize),
            np.einsum("i,i->", v, v, optimize=optimize), np.einsum("ij->", a, optimize=optimize),
            np.einsum("i,j->", v, v, optimize=optimize),
            np.einsum("i,ij,j->", v, a, v, optimize=optimize),
            np.einsum("i,j,k->", v, v, v, optimize=optimize),
            np.einsum("...i,...i->...", v, v, optimize=optimize),
            np.einsum("ij,ij->", a, v[:1, None], optimize=optimize),
        )  # fmt: skip

    rng, jitted = np.random.default_rng(0), rune_jit.jit(function, fallback="error")
    for n in 5, 3:
        a, b, v = rng.normal(size=(n, n)), rng.normal(size=(n, n)), rng.normal(size=n)
        for found, wanted in zip(jitted(a, b, v), function(a, b, v), strict=True):
            assert type(found) is type(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_einsum_of_one_operand_is_a_view(run: Callable[..., Any]) -> None:
    def function(x: Any, cube: Any) -> Any:
        transposed, diagonal = np.einsum("ij -> ji", x), np.einsum("ii->i", x)
        implicit, total = np.einsum("ba", x), np.einsum("ii", x)
        x[1] = -1
        transposed[0] = 7
        diagonal *= 3
        np.einsum("iji->ij", cube)[1:] = 5
        return transposed, diagonal, implicit, total, x + 0, cube + 0

    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    cube = np.arange(36).reshape(3, 4, 3)
    results = run(function, x.copy(), cube.copy())
    for found, wanted in zip(results, function(x, cube), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)


def test_axes_of_arrays_without_axes() -> None:
    functions = (
        np.sum, np.max, np.any, np.mean, np.argmax, np.count_nonzero, np.ptp, np.cumsum, np.nansum,
        np.nanmean, np.nanmax, np.nanargmax, np.nancumsum, np.squeeze, np.sort, np.flip,
        np.add.reduce, np.fmax.reduce, np.maximum.accumulate, np.diff, np.median, np.expand_dims,
    )  # fmt: skip

    def outcome(function: Callable[..., Any], x: Any) -> Any:
        try:
            return function(x)
        except (TypeError, ValueError):
            return "an error"

    for function in functions:
        for axis in (0, -1, (0,), (), 1):
            call = lambda x, f=function, a=axis: f(x, axis=a)  # noqa: E731
            found = outcome(rune_jit.jit(call, fallback="error"), np.array(3.0))
            wanted = outcome(call, np.array(3.0))
            assert type(found) is type(wanted) and found == wanted, (function, axis)


def test_methods_by_position() -> None:
    def functions(x: Any, out: Any) -> Any:
        x.clip(0, 2, out)
        x.sort(0, "stable")
        x.partition(1, 1, "introselect")
        total = x.dot(x.T, np.zeros((3, 3)))
        chosen = np.compress([0, 1], x), np.compress([True, False, True], x, 0)
        return x.round(1), out, total, chosen, np.extract([[1, 0, 1]], x[:1, :3])

    x = np.linspace(-2, 3, 12).reshape(3, 4)
    found = rune_jit.jit(functions, fallback="error")(x.copy(), np.zeros((3, 4)))
    assert_matches(found, functions(x.copy(), np.zeros((3, 4))))
    for name in ("compress", "extract"):
        with pytest.raises(rune_jit.ConcretizationError, match=rf"{name}.*\nhint: write np\.where"):
            rune_jit.jit(getattr(np, name), fallback="error")(x[0] > 0, x[0])


def test_choices_are_of_one_dtype() -> None:
    large = np.array([2**64 - 1, 5], np.uint64)
    mask = np.array([True, False])

    def functions(x: Any, m: Any) -> Any:
        return np.select([m, ~m], [x, m], 1), np.select([m], [x], 3), np.select([m], [m], 2.5)

    assert_matches(rune_jit.jit(functions, fallback="error")(large, mask), functions(large, mask))
    x = np.ones(2, np.float32)
    for number in (2, 2.5, True, np.int64(3), np.float32(1)):
        found = rune_jit.jit(np.select, fallback="error")([mask], [x], number)
        assert_matches(found, np.select([mask], [x], number))
    with pytest.raises(TypeError, match="invalid entry 0 in condlist"):
        rune_jit.jit(lambda x, m: np.select([x], [m]), fallback="error")(large, mask)


@pytest.mark.parametrize("index", [0, slice(4), (0, 0), [0], (None, 0)])
def test_numbers_have_no_items(index: Any) -> None:
    def read(x: Any) -> Any:
        try:
            return x.min()[index]
        except IndexError as error:
            return x + len(str(error))

    x = np.arange(3.0)
    assert_matches(rune_jit.jit(read, fallback="error")(x), read(x))


def test_writes_of_nothing_to_nothing() -> None:
    def write(x: Any, i: Any, value: Any) -> Any:
        x[i, :0] = value
        return x

    x, i = np.zeros((4, 5)), np.array([0, 1])
    for shape in ((2, 3, 1, 0), (1,), (0,), (2, 0)):
        found = rune_jit.jit(write, fallback="error")(x.copy(), i, np.ones(shape))
        np.testing.assert_array_equal(found, write(x.copy(), i, np.ones(shape)))
    with pytest.raises(ValueError, match="shape mismatch"):
        rune_jit.jit(write, fallback="error")(x.copy(), i, np.ones((3, 0)))


def test_no_axes_and_no_shifts() -> None:
    x = np.arange(6.0).reshape(2, 3)

    def functions(x: Any) -> Any:
        return (
            np.roll(x, 1, axis=()), np.roll(x, (), axis=0), np.roll(x, (), axis=()),
            np.transpose(x[0, 0].reshape(()), ()), np.moveaxis(x, (), ()), np.squeeze(x, ()),
            np.expand_dims(x, ()), np.flip(x, ()), np.tile(x, ()),
            np.sum(x, axis=()), np.take(x, np.zeros(0, int)), np.split(x, []), np.rot90(x, 0),
            np.einsum("ij", x), np.tensordot(x, x, ((), ())), np.pad(x, 0), x[()], x[[], 0],
        )  # fmt: skip

    assert_matches(rune_jit.jit(functions, fallback="error")(x), functions(x))


def test_arrays_without_axes_are_no_scalars() -> None:
    """Functions whose result is an array even where it has no axes: views write to it."""

    def function(x: Any) -> Any:
        results = [
            np.where(x > 1, x, 0), np.select([x > 1], [x], 0), np.copy(x), np.zeros_like(x),
            np.roll(x, 1), np.array(x), np.full((), x), np.reshape(x + 1, (1,)).reshape(()),
        ]  # fmt: skip
        for result in results:
            np.add.at(result.reshape(1), np.array([[0], [-1]]), np.ones((2, 1)))
        return tuple(results)

    x = np.array(2.0)
    for found, wanted in zip(rune_jit.jit(function, fallback="error")(x), function(x), strict=True):
        assert type(found) is type(wanted) and found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("narrow", ["int8", "uint8", "int16", "bool"])
def test_a_rest_of_one_lane_is_one_element(narrow: str, run: Callable[..., Any]) -> None:
    """Columns of 257 end in a vector with one valid lane; what follows is of another column."""
    x = np.arange(257 * 70).reshape(257, 70) % 97 - 40
    for wide in ("int16", "uint16", "int32", "int64"):
        columns = run(lambda v: np.square(v.T).astype(narrow), x.astype(wide))
        np.testing.assert_array_equal(columns, np.square(x.astype(wide).T).astype(narrow))


@pytest.mark.parametrize("size", [9, 17, 1001, 65537])
def test_one_part_of_a_concatenation(size: int, run: Callable[..., Any]) -> None:
    """The last lane but one is of the part that is read, the next one would be of the other."""

    def function(x: Any, y: Any) -> Any:
        return np.stack([x, y], 0)[None, 0], np.concatenate([x, y])[:size]

    x, y = np.arange(size, dtype=np.uint8), np.arange(size, dtype=np.uint64) + 7
    for found, wanted in zip(run(function, x, y), function(x, y), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)


def test_parts_of_a_concatenation_that_nothing_reads(run: Callable[..., Any]) -> None:
    def function(x: Any, y: Any, z: Any) -> Any:
        end = np.concatenate([y, x, y, y], 0)[:-77:-1]
        return np.concatenate([z, np.pad(end, [(3, 1)], constant_values=7), z, z], 0)

    x, y, z = np.full(4, -2, np.int16), np.arange(64.0), np.arange(76.0) + 100
    np.testing.assert_array_equal(run(function, x, y, z), function(x, y, z), strict=True)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "float32", "int64"])
def test_transposes_by_squares(dtype: str, run: Callable[..., Any]) -> None:
    """Sides of whole squares and not, rows that begin at whole vectors and not, backwards."""
    cases = [
        ((3, 24, 64), (0, 2, 1)), ((5, 32, 30), (2, 0, 1)), ((65, 80), (1, 0)), ((64, 70), (1, 0)),
        ((2, 17, 6, 32), (0, 2, 3, 1)), ((16, 257), (1, 0)), ((128, 48), (1, 0)),
    ]  # fmt: skip
    arrays = [np.arange(np.prod(shape)).reshape(shape).astype(dtype) for shape, _ in cases]

    def function(*arrays: Any) -> Any:
        results = [np.transpose(x, axes) for x, (_, axes) in zip(arrays, cases, strict=True)]
        turned = [r[::-1].copy() for r in results], [r[..., ::-1].copy() for r in results]
        parts = [r[1:, ::-1].astype(np.int32) for r in results]
        return [r.copy() for r in results], *turned, parts

    for found, wanted in zip(run(function, *arrays), function(*arrays), strict=True):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


def test_columns_that_are_computed_apart(run: Callable[..., Any]) -> None:
    def function(a: Any, b: Any) -> Any:
        first, second = a[:, 0] * b[:, 1] - a[:, 1], a[:, 2] + b[:, 3]
        return np.stack([first, second, a[:, 3] * 2, -b[:, 0]], -1), np.hypot(a[:, 9], a[:, 4])

    a, b = (np.arange(10070.0).reshape(1007, 10) % m for m in (13, 17))
    for found, wanted in zip(run(function, a, b), function(a, b), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=3e-16, strict=True)


def test_powers_of_numbers_to_arguments(run: Callable[..., Any]) -> None:
    """As in Adam's correction of its moments; of a negative number they may be complex."""

    def function(x: Any, step: float) -> Any:
        return x / (1 - 0.9**step), 2.5**step * x, x * np.float32(0.999) ** step, 0.5**step

    x = np.arange(1, 5, dtype=np.float32)
    for step in (1, 7, 2.5, -3):
        for found, wanted in zip(run(function, x, step), function(x, step), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
            assert np.asarray(found).dtype == np.asarray(wanted).dtype
    # What may be complex depends on the value of the argument, which becomes a constant.
    for function in (lambda x, step: x * (-0.9) ** step, lambda x, step: x * step**step):
        found = rune_jit.jit(function, fallback="error")(x, 2.5)
        wanted = function(x, 2.5)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        assert found.dtype == wanted.dtype


def test_rounding_a_0d_array_of_integers_gives_a_number() -> None:
    x = np.array(7)
    for function in (np.round, lambda x: x.round(), lambda x: np.around(x, 2)):
        found = rune_jit.jit(function)(x)
        assert type(found) is type(function(x))
        assert found == 7


def test_matvec_and_vecmat_take_matrices() -> None:
    x = np.ones(3)
    for function in (np.matvec, np.vecmat):
        with pytest.raises(ValueError, match="does not have enough dimensions") as expected:
            function(x, x)
        with pytest.raises(ValueError, match="does not have enough dimensions") as found:
            rune_jit.jit(lambda x, f=function: f(x, x))(x)
        assert str(found.value) == str(expected.value)


# What decides whether NumPy raises or warns, and what it writes to.
ZEROS = np.full(4, complex(-0.0, -0.0))
AT = np.array([0, 1])
PLAIN: dict[str, Callable[..., Any]] = {
    "choices by position": lambda i, x, m: i.choose(x[:2], x[2:4]),
    "a product in place of a vector": lambda i, x, m: operator.imatmul(m, x[:2]),
    "a product in place by a vector": lambda i, x, m: operator.imatmul(x[:2], x[:2]),
    "a product in place with fewer columns": lambda i, x, m: operator.imatmul(m, x[:2, None]),
    "a product written to more columns": lambda i, x, m: np.matmul(m, x[:2, None], out=m + 1),
    "a product written to more rows": lambda i, x, m: np.matmul(x[None, :2], m, out=m),
    "a product of vectors written to an array": lambda i, x, m: np.vecdot(m, x[:2], out=m.copy()),
    "a vector written to another length": lambda i, x, m: np.matvec(m[:1], x[:2], out=x),
    "bools as sizes": lambda i, x, m: x.reshape(True, -1),
    "sums from -0.0": lambda i, x, m: np.array(
        [np.add.reduce(ZEROS * m[0, 0], initial=initial) for initial in (-0.0, complex(-0.0, -0.0))]
    ),
    "sums from -0.0 under a mask": lambda i, x, m: np.sum(x * -0.0, initial=-0.0, where=x > 2),
    "no copy of another dtype": lambda i, x, m: np.asarray(x, np.float32, copy=False),
    "no copy of a number": lambda i, x, m: np.array(x.sum(), copy=False),
    "no copy of a list": lambda i, x, m: np.array([x, x], copy=False),
    "no copy": lambda i, x, m: np.array(x, copy=False) + 1,
    "no copy by the method": lambda i, x, m: x.__array__(np.float32, copy=False),
    "an unknown device": lambda i, x, m: x.to_device("gpu"),
    "a stream": lambda i, x, m: x.to_device("cpu", stream=1),
    "orders in lower case": lambda i, x, m: (m.flatten("f"), m.ravel("a"), m.copy("k")),
    "orders of None": lambda i, x, m: (m.copy(order=None), m.astype(int, order=None)),
    "a conjugate written to an array": lambda i, x, m: (m + 0j).conjugate(m + 1j),
    "complex numbers as floats": lambda i, x, m: np.full_like(x, 1j),
    "a mask without an array for the result": lambda i, x, m: np.add(x, 1, where=x > -9),
}


@pytest.mark.parametrize("name", PLAIN)
def test_errors_warnings_and_writes_are_numpys(name: str) -> None:
    found = []
    for function in (PLAIN[name], rune_jit.jit(PLAIN[name], fallback="silent")):
        arguments = AT.copy(), np.arange(4.0), np.arange(4.0).reshape(2, 2)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            result = outcome(function, *arguments)
        if isinstance(result, Exception):
            result = type(result), str(result)
        found.append(repr((result, arguments, [str(w.message) for w in seen])))
    assert found[0] == found[1]
