"""Every ufunc on some dtypes and memory layouts (with --full on all), with special values among the
data, on every device, against NumPy. And every operation of the table (op_cases.py) on other
layouts, sizes and values than its own. Arrays lie at inaccessible memory; see guarded.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from devices import HAS_DENORMALS, devices, run_metal
from guarded import PLACEMENTS, guarded
from op_cases import ALL, CASES, FEW, FLOATS, INTS, OpCase
from sampling import some

import rune_jit
from rune_jit.rules.ufuncs import is_traced

UFUNCS = sorted(
    {
        f
        for f in vars(np).values()
        if isinstance(f, np.ufunc) and f.signature is None and is_traced(f)
    },
    key=lambda f: f.__name__,
)
# One dtype a kind that differs in how it is computed; --full takes all.
_SAMPLE = ("bool", "int8", "float32")
_ALL = ("bool", *INTS, *FLOATS)
# In units of the last place; what two correct roundings of an intermediate may do.
_ULPS = {"float_power": 16, "power": 16, "logaddexp": 16, "logaddexp2": 16}


def special(dtype: np.dtype) -> np.ndarray:
    """Values at which operations of a dtype are special, first those that wrap or overflow."""
    if dtype.kind == "b":
        return np.array([False, True, True, False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = [limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1, 2, 7]
        return np.array(values + ([-1, -2] if dtype.kind == "i" else []), dtype)
    limits = np.finfo(dtype)
    tiny = [limits.tiny, limits.eps, limits.max]
    if HAS_DENORMALS or dtype != np.float32:
        tiny.append(limits.smallest_subnormal)
    plain = [0.0, 1.0, np.inf, 0.5, 2.5, 3.0, 1e-3, 100.0]
    return np.array([np.nan, *(s * v for v in (*plain, *tiny) for s in (1, -1))], dtype)


def layouts(values: np.ndarray) -> list[np.ndarray]:
    """The values in arrays of each layout: contiguous, with a step, backwards, transposed, repeated
    by broadcasting, 0-d, of one element, empty, of prime sizes."""
    wide = np.resize(values, 13 * 7 * 2).reshape(13, 14)
    return [
        np.resize(values, 37),
        np.resize(values, 74)[::2],
        np.resize(values, 37)[::-1],
        wide[:, ::2].T,
        wide[::-2, 3:-4],
        np.broadcast_to(values[:5], (3, 5)),
        np.broadcast_to(values[3:4, None], (2, 3)),
        values[1].reshape(()),
        values[:1],
        values[:0].reshape(3, 0),
    ]


def parameters() -> Any:
    for ufunc in UFUNCS:
        for dtype in _ALL:
            try:
                with np.errstate(all="ignore"):
                    ufunc(*[np.ones(1, dtype)] * ufunc.nin)
            except TypeError:
                continue
            marks = () if dtype in _SAMPLE else (pytest.mark.full,)
            yield pytest.param(ufunc, dtype, id=f"{ufunc.__name__}-{dtype}", marks=marks)


def operands(ufunc: np.ufunc, dtype: str) -> list[tuple[np.ndarray, ...]]:
    """First all special values, in pairs, then arrays in several layouts."""
    values = special(np.dtype(dtype))
    if ufunc.nin == 1:
        return [(x,) for x in (values, *layouts(values))]
    first, second = (
        np.array(x, dtype) for x in zip(*itertools.product(values, values), strict=True)
    )
    pairs = list(zip(layouts(first), layouts(second[::-1].copy()), strict=True))
    mixed = [(np.resize(first, (4, 5)), np.resize(second, (5, 4)).T), (first[:7, None], second[:3])]
    return [(first, second), *pairs, *mixed]


@pytest.mark.parametrize(("ufunc", "dtype"), list(parameters()))
@pytest.mark.parametrize("device", devices("cpu", "interpreter"), indirect=True)
def test_ufunc(
    run: Callable[..., Any], device: str, ufunc: np.ufunc, dtype: str, full: bool
) -> None:
    special_values, *rest = operands(ufunc, dtype)
    arguments = [special_values, *some(rest, 3, f"{ufunc.__name__} {dtype}", full)]

    def every_layout(pairs: Any) -> list[Any]:
        return [ufunc(*pair) for pair in pairs]

    with np.errstate(all="ignore"):
        try:
            expected = every_layout(arguments)
        except ValueError:  # integers to negative powers
            arguments = [tuple(np.abs(x) % 5 for x in pair) for pair in arguments]
            expected = every_layout(arguments)
    for placement in PLACEMENTS:
        placed = [tuple(guarded(x, placement) for x in pair) for pair in arguments]
        assert_matches(run(every_layout, placed), expected, _ULPS.get(ufunc.__name__, 8))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float64"])
def test_short_rows(run: Callable[..., Any], dtype: str) -> None:
    """Rows of few elements, fewer than a vector's lanes: read and written by columns."""
    rng = np.random.default_rng(7)
    arrays = [
        rng.integers(0, 2 if dtype == "bool" else 100, (rows, width)).astype(dtype)
        for width, rows in ((2, 37), (3, 96), (4, 1), (5, 37), (8, 96), (9, 37))
    ]

    def by_columns(x: Any) -> list[Any]:
        columns = [x[:, i] for i in range(x.shape[1])]
        return [
            np.stack(columns[::-1], -1),
            np.stack([columns[0], columns[0] | columns[1] if dtype == "bool" else -columns[1]], 1),
            columns[0] ^ columns[-1] if dtype == "bool" else columns[0] * columns[-1],
            x == x.max(-1, keepdims=True),
            np.repeat(columns[1][:, None], 3, 1),
            np.where(x[:, ::-1] > x[0], x, columns[1][:, None]),
            x[1:, 1:],
        ]

    def every_row(pairs: Any) -> list[Any]:
        return [by_columns(x) for x in pairs]

    for placement in PLACEMENTS:
        placed = [guarded(x, placement) for x in arrays]
        assert_matches(run(every_row, placed), every_row(arrays), 0)


# The table of operations.


def with_steps(x: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * n + 1 for n in x.shape], x.dtype)
    wide[tuple(slice(1, None, 2) for _ in x.shape)] = x
    return wide[tuple(slice(1, None, 2) for _ in x.shape)]


def backwards(x: np.ndarray) -> np.ndarray:
    return np.flip(np.ascontiguousarray(np.flip(x)))


def repeated(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x[:1], x.shape) if x.ndim else x


def without_axes(x: np.ndarray) -> np.ndarray:
    return np.resize(x if x.size else np.ones(1, x.dtype), ())


def with_special_values(x: np.ndarray) -> np.ndarray:
    """Every fifth element is NaN, an infinity, -0 or a limit of the dtype."""
    values = special(x.dtype)
    if x.dtype.kind == "f":
        values = np.array([np.nan, np.inf, -np.inf, -0.0], x.dtype)
    x = x.copy()
    places = x.reshape(-1)[::5][: len(values)]
    places[...] = values[: len(places)]
    return x


VARIANTS = (
    np.array, with_steps, backwards, np.asfortranarray, repeated, without_axes, with_special_values,
    lambda x: x[:0], lambda x: x[:1], lambda x: np.resize(x, (13, *x.shape[1:])),
)  # fmt: skip
# NaN as an integer is whatever the processor makes of it; of no rows, NumPy returns what lies in
# the memory behind.
_NOT_DEFINED = {("astype", with_special_values), ("einsum ii->i", VARIANTS[7])}


def table() -> Any:
    for case in CASES:
        usual = next((d for d in ("float32", "int8") if d in case.dtypes), case.dtypes[0])
        for dtype in ALL if case.dtypes == FEW else case.dtypes:
            marks = () if dtype == usual else (pytest.mark.full,)
            yield pytest.param(case, dtype, id=f"{case.name}-{dtype}", marks=marks)


def outcome(function: Callable[..., Any], arguments: list[Any]) -> Any:
    with np.errstate(all="ignore"):
        try:
            return function(*arguments)
        except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError) as error:
            return error


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
@pytest.mark.parametrize(("case", "dtype"), list(table()))
def test_operation(case: OpCase, dtype: str, device: str, full: bool) -> None:
    own = case.arguments(dtype)
    if isinstance(outcome(case.function, own), TypeError):
        pytest.skip("NumPy has no loop for this dtype")
    if device == "metal":
        run_metal(case.function, *own)
    jitted = rune_jit.jit(case.function, device=device, fallback="error")
    for variant in some(VARIANTS, 3, f"{case.name} {dtype}", full):
        if (case.name, variant) in _NOT_DEFINED:
            continue
        arguments = [variant(x) for x in own]
        wanted = outcome(case.function, arguments)
        for placement in PLACEMENTS:
            found = outcome(jitted, [guarded(x, placement) for x in arguments])
            if isinstance(wanted, Exception) or isinstance(found, Exception):
                # A subclass, such as AxisError, is as good.
                assert isinstance(found, type(wanted)) or isinstance(wanted, type(found)), found
            else:
                assert_matches(found, wanted, case.ulps)


def test_arguments_in_fortran_order() -> None:
    """They are read where they lie; square ones, whose shapes say nothing, too."""

    def run(x: Any, y: Any) -> list[Any]:
        z = x * 2 + y
        z[1:, 0] = 7
        return [z, x.T, x.sum(axis=0), np.roll(x, 3, axis=1), x[::-1, 2:] - y[:, :-2], x.ravel()]

    jitted = rune_jit.jit(run, device="cpu", fallback="error")
    rng = np.random.default_rng(0)
    for shape in ((70, 70), (41, 103), (3, 50)):
        x, y = (rng.integers(0, 9, shape).astype(np.float32) for _ in range(2))
        for order in ("CC", "FC", "CF", "FF", "CC"):
            given = [np.array(a, order=o) for a, o in zip((x, y), order, strict=True)]
            for got, want in zip(jitted(*given), run(x, y), strict=True):
                np.testing.assert_array_equal(got, want)
    cube = rng.integers(0, 9, (4, 5, 6)).astype(np.int64)
    f = rune_jit.jit(lambda c: c[1:] + c.transpose(2, 1, 0).sum(), fallback="error")
    for given in (cube, np.asfortranarray(cube), cube.transpose(0, 2, 1)[:, :, ::2]):
        np.testing.assert_array_equal(f(given), given[1:] + given.sum())


def test_writes_to_arguments_in_fortran_order() -> None:
    def run(x: Any) -> Any:
        x[1:] += 1
        x[:, 2] = 0
        return x.sum()

    jitted = rune_jit.jit(run, device="cpu", fallback="error")
    x = np.arange(48.0).reshape(6, 8)
    given = np.asfortranarray(x)
    assert jitted(given) == run(x)
    np.testing.assert_array_equal(given, x)
    assert given.flags.f_contiguous
    given.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        jitted(given)


def test_a_reshape_is_a_view_as_the_argument_lies() -> None:
    """Also where the function computes nothing else, and there is no program."""

    def run(x: Any) -> None:
        x.T.reshape(-1)[0] = 50

    jitted = rune_jit.jit(run, device="cpu", fallback="error")
    for order in "CFCF":
        given, wanted = (np.array(np.arange(12.0).reshape(4, 3), order=order) for _ in range(2))
        run(wanted)
        jitted(given)
        np.testing.assert_array_equal(given, wanted)


@pytest.mark.parametrize(
    "use",
    [
        np.ascontiguousarray,
        np.asfortranarray,
        lambda x: np.ascontiguousarray(x + 1),
        lambda x: np.asarray(x, order="F"),
        lambda x: np.require(x, requirements="C"),
        lambda x: np.sort(x, axis=0),
        lambda x: np.cumsum(x, axis=1),
        lambda x: x.copy(),
    ],
)
@pytest.mark.parametrize("in_segments", [False, True])
def test_results_in_a_given_order_for_arguments_in_others(use: Any, in_segments: bool) -> None:
    def function(x: Any) -> Any:
        if in_segments:
            x[0].tolist()
        return use(x)

    x = np.arange(12.0).reshape(3, 4)
    others = np.asfortranarray(x), np.arange(48.0).reshape(6, 8)[::2, ::2], x[:, :]
    for first in (x, *others):
        jitted = rune_jit.jit(function)
        for given in (first, x, *others, x):
            found, wanted = jitted(given), function(given)
            np.testing.assert_array_equal(found, wanted)
            assert found.strides == wanted.strides
            assert np.shares_memory(found, given) == np.shares_memory(wanted, given)


@pytest.mark.parametrize("name", ["ascontiguousarray", "asfortranarray"])
@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("in_segments", [False, True])
def test_contiguous_arrays_of_one_axis(name, step, in_segments):
    """A view with a step is copied, also if it is the argument."""

    def f(x, step):
        first = x.tolist()[0] if in_segments else 1.0
        getattr(np, name)(x[::step])[1] += first
        getattr(np, name)(x)[2] += first
        return x * 2

    jitted = rune_jit.jit(f)
    for call in range(4):
        ours, theirs = np.arange(10.0), np.arange(10.0)
        given = slice(None, None, -1 if call % 2 else 1)
        np.testing.assert_array_equal(jitted(ours[given], step), f(theirs[given], step))
        np.testing.assert_array_equal(ours, theirs)
