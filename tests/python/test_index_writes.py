"""Reads and writes at arrays of indices and at masks: results, arguments and errors are NumPy's."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from compare import assert_same

import rune_jit

CASES: list[Any] = []
A = np.array


def case(*arguments: Any) -> Callable[[Any], Any]:
    """Registers a function with arrays to call it on."""

    def register(function: Any) -> Any:
        CASES.append(pytest.param(function, arguments, id=function.__name__))
        return function

    return register


def block() -> np.ndarray:
    return np.arange(24.0).reshape(2, 3, 4)


def vector() -> np.ndarray:
    return np.arange(6.0) - 2


@case(vector(), A([2, 0, 2, -1]))
def one_array(x: Any, i: Any) -> Any:
    x[i] = 5
    x[i] = A([1, 2, 3, 4.0])  # the last of those to one element stays
    return x[i]


@case(block(), A([2, 0]), A([[0, 1], [1, 1]]))
def one_array_of_several_axes(x: Any, i: Any, j: Any) -> Any:
    x[:, :, i] = 7
    x[0, j, 1] = x[1, j, 2] + 1
    x[j, 2] *= 2
    return x


@case(block(), A([0, 1]), A([2, 1]), A([3, 0]))
def several_arrays(x: Any, i: Any, j: Any, k: Any) -> Any:
    x[i, j, k] = [1, 2]
    x[i, :, k] = A([9, 8, 7.0])
    x[i[:, None], j] += 100
    x[..., i] -= 1
    x[np.ix_([0, 1], [2, 0])] = A([[1, 2], [3, 4.0]])[..., None]
    return (
        (x[i, :, k], x[:, j, k], x[i[:, None], j, k[None]], x[None, i, j], x[0, :, i]),
        (x[0, j, i], x[i, None, j], x[i][:, j], x[i, 1], x[1, i], x[1, :, i], x[i, ..., i]),
        (x[:, i, :][..., i], np.take(x, i, 1), x[i, 0, i], x[0, i, 0], x[0, i, ..., 0]),
    )


@case(vector(), A([0, 0, 3, 3]), A([1.0, 2, 3, 4]))
def buffered_and_unbuffered(x: Any, i: Any, v: Any) -> Any:
    x[i] += v
    np.add.at(x, i, v)
    np.subtract.at(x, i, 1)
    np.multiply.at(x, i, A([1, 2, 3, 4]))
    np.maximum.at(x, i, 2.5)
    np.minimum.at(x, (i[1:],), v[1:])
    return x


@case(vector(), A([0, 4], np.uint64), A([1, 2], np.int8), 3)
def types_of_indices(x: Any, i: Any, j: Any, n: Any) -> Any:
    x[i] = x[j]
    x[[n, 0]] = [7, x[n]]
    x[[n, n - 1]] += 1
    x[[0, 2]] = [5, 6]
    x[(A([1, 3]),)] += 1
    x[A([True, False, True, False, False, True])] = A([1, 2, 3.0])
    x[np.nonzero([0, 1, 1, 0, 0, 0])] = 4
    return x[i,], x[[0, -1]], x[[]]


@case(np.arange(6, dtype=np.int8), A([0, 1, 0]), np.arange(6) % 2 == 0, np.arange(6).astype("f2"))
def types_of_elements(x: Any, i: Any, m: Any, h: Any) -> Any:
    x[i] = [3.7, 4, 5]
    np.add.at(x, i, 3)
    x[i] = x[i] * 100
    m[i] = [0, 1, 1]
    m[i] |= True
    h[i] += A([1.5, 2, 3])
    np.add.at(h, i, h[:3])
    return x, m, h


@case(vector(), vector()[::-1].copy(), A([1.0, 2]))
def masks(x: Any, y: Any, v: Any) -> Any:
    x[x > 2] = v[:1]
    x[x < 0] = v
    y[y > 0] = x[x == 1]
    x[[False] * 6] = []
    return x


@case(block(), np.ones((3, 4)), np.arange(4.0))
def masks_of_some_axes(x: Any, v: Any, w: Any) -> Any:
    x[x[:, 0, 0] > 5] = v
    x[:, x[0, :, 0] > 3] = 2
    x[x[:, :, 0] > 1, 1] += 5
    m = np.arange(6).reshape(2, 3) % 2 == w[0]
    x[m] = np.ones((3, 4))
    x[m, 2] = w[1:]
    x[m] = x[m] * 2
    return x


@case(vector(), A([1, 3]))
def put(x: Any, i: Any) -> Any:
    np.put(x, i, [9, 8])
    np.put(x, [0, 5], x[2:3])
    x.put(i, 7)
    np.put(x, [-1, 12], [3.0, 4.0], mode="wrap")
    np.put(x, [50], 1, mode="clip")
    np.putmask(x, x > 0, [10, 20, 30.0])
    np.place(x, x > 5, [1, 2])
    np.place(x, x < 0, A([5.0]))
    np.place(x, x > 1e9, [])
    return x


@case(block(), np.zeros((3, 4)), np.zeros((5, 2)), np.zeros((3, 3, 3)))
def put_along(x: Any, a: Any, b: Any, d: Any) -> Any:
    np.put_along_axis(x, np.argmax(x, axis=1, keepdims=True), 99, axis=1)
    np.put_along_axis(x, A([[[0, 1]]]), x[:, :1, :2] * 2, axis=2)
    np.put_along_axis(a, A([1, 5]), [6, 7], axis=None)
    np.fill_diagonal(a, x[0, 0, :2])
    np.fill_diagonal(b, 3, wrap=True)
    np.fill_diagonal(d, x[0, 1, 1])
    return x


@case(block())
def flat(x: Any) -> Any:
    x.flat[3] = 50
    x.flat[::5] = [1, 2]
    x.flat[[1, 2]] = x.flat[7]
    x.flat = x.flat[::-1].copy()
    return x.flat[4], len(x.flat), sum(x[0].flat)


@case(block())
def through_views(x: Any) -> Any:
    r, t = x.reshape(6, 4), x.T
    r[[0, 1], [2, 3]] = 5
    t[[0], :, 1] = 9
    y = x[:, ::-1][:, [0, 1]]
    y[0] = 1
    for row in x:
        row[..., 0] = row[..., 1] * 2
    for i in range(2):
        x[i][A([0, 2])] = i
    x.swapaxes(0, 2)[x.swapaxes(0, 2) > 20] = -1
    return x.diagonal() * 1, y


@case(np.zeros((0, 3)), np.zeros(0, int), vector())
def nothing(x: Any, i: Any, v: Any) -> Any:
    x[i] = 4
    x[:, [0, 1]] = 5
    x[x > 1] = 2
    v[i] = 4
    v[i] = []
    v[[]] = 1
    return x[i], v[i]


MANY = np.random.default_rng(3).integers(-40, 40, 33000)


@case(np.zeros(40, np.int32), MANY, MANY.astype(np.int32), np.zeros((40, 2)), np.zeros(40))
def many_updates(x: Any, i: Any, v: Any, rows: Any, last: Any) -> Any:
    np.add.at(x, i, v)
    np.maximum.at(rows, i, v[:, None])
    last[i] = v
    return x * 2


ERRORS = [
    lambda x, i, b: x.__setitem__(i + 5, 5),
    lambda x, i, b: x.__setitem__(i, [1, 2, 3]),
    lambda x, i, b: b.__setitem__((i, A([0, 1, 2])), 1),
    lambda x, i, b: i.__setitem__(i, i.__getitem__(i).__iadd__(1.5)),
    lambda x, i, b: x.__setitem__(x > 0, [1.0, 2]),
    lambda x, i, b: x.__setitem__(x > 1, x[x > 0]),
    lambda x, i, b: b.__setitem__(b[:, :, 0] > 1, np.ones((2, 4))),
    lambda x, i, b: np.place(x, x > 0, []),
    lambda x, i, b: np.put(x, i, [1, 2]) or np.put(x, i[1:] + 5, 3),
    lambda x, i, b: b[:, i + 2],
    lambda x, i, b: np.add.at(x, i - 7, 1),
    lambda x, i, b: np.add.at(x, np.append(MANY % 6, i[1] * 6), i[1]),
    lambda x, i, b: x[x],
]


@pytest.fixture(params=["interpreter", "cpu"])
def jit(request: pytest.FixtureRequest) -> Any:
    return functools.partial(rune_jit.jit, device=request.param, fallback="error")


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_matches_numpy(jit: Any, function: Any, arguments: tuple[Any, ...]) -> None:
    jitted = jit(function)
    for _ in range(2):
        expected, actual = copy.deepcopy(arguments), copy.deepcopy(arguments)
        ours = optree.tree_leaves((jitted(*actual), actual))
        numpys = optree.tree_leaves((function(*expected), expected))
        for a, e in zip(ours, numpys, strict=True):
            assert type(a) is type(e)
            if isinstance(e, (np.ndarray, np.generic)):
                assert a.dtype == e.dtype
            np.testing.assert_array_equal(a, e)
    assert jitted.cache_info().misses == 1


@pytest.mark.parametrize("position", range(len(ERRORS)))
def test_errors_are_numpys(position: int) -> None:
    """The same exception with the same text, and nothing written."""
    function = ERRORS[position]

    def arguments() -> tuple[Any, ...]:
        return vector(), np.arange(2), block()

    ours = arguments()
    with pytest.raises((TypeError, ValueError, IndexError)) as expected:
        function(*arguments())
    with pytest.raises(expected.type) as actual:
        rune_jit.jit(function, fallback="error")(*ours)
    assert str(actual.value) == str(expected.value)
    if "put" not in function.__code__.co_names:  # NumPy writes what comes before the error
        for a, e in zip(ours, arguments(), strict=True):
            np.testing.assert_array_equal(a, e)


def test_unrolled_factorisation() -> None:
    """Products of parts of an array written element by element: reductions inside masks."""

    def lu(a: Any) -> None:
        n = a.shape[0]
        for i in range(n):
            for j in range(i):
                a[i, j] -= a[i, :j] @ a[:j, j]
                a[i, j] /= a[j, j]
            for j in range(i, n):
                a[i, j] -= a[i, :i] @ a[:i, j]

    n = 18
    matrix = np.random.default_rng(0).random((n, n)) + np.eye(n) * n
    expected = matrix.copy()
    lu(expected)
    rune_jit.jit(lu, fallback="error")(matrix)
    np.testing.assert_allclose(matrix, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("size", [1, 100, 128, 200, 40000])
def test_which_indices_are_in_range(dtype: str, size: int) -> None:
    x = np.arange(size, dtype=np.float32)
    jitted = rune_jit.jit(lambda x, i: x[i], fallback="error")

    def outcome(read: Any, i: np.ndarray) -> Any:
        try:
            return read(x, i).tolist()
        except IndexError as error:
            return str(error)

    # An error carries an index in 63 bits.
    info = np.iinfo(dtype)
    low, high = max(info.min, -(2**62)), min(info.max, 2**62 - 1)
    near = {0, size - 1, size, -size, -size - 1, 2 * size}
    for value in near | {high, high - size, low, low + size}:
        if low <= value <= high:
            i = np.array([0, 0, value, 0], dtype)
            assert outcome(jitted, i) == outcome(lambda x, i: x[i], i), (dtype, size, value)


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize(
    "write", [lambda x, m: x.__setitem__(m, False), lambda x, m: np.copyto(x, False, where=m)]
)
def test_an_array_is_its_own_mask(write: Any, flips: bool) -> None:
    """Of another view NumPy reads elements that it has just written: that is left to it."""

    def fn(x):
        write(x, np.flip(x) if flips else x)
        return x

    x = np.random.default_rng(0).random((64, 2)) < 0.5
    expected = fn(x.copy())
    if flips:
        with pytest.raises(rune_jit.UnsupportedOpError, match="of an array to itself"):
            rune_jit.jit(fn, fallback="error")(x.copy())
        found = rune_jit.jit(fn)(x.copy())
    else:
        found = rune_jit.jit(fn, fallback="error")(x.copy())
    np.testing.assert_array_equal(found, expected)


def test_empty_values_of_more_dimensions_under_a_mask() -> None:
    """NumPy stores nothing where the mask has no True, and raises elsewhere."""

    def write(x: Any, mask: Any, values: Any) -> Any:
        x[mask] = values
        return x

    jitted = rune_jit.jit(write)
    for shape in ((3, 0, 5), (3, 0, 4), (0, 5)):
        for first in (False, True):
            mask, values = np.array([first, False]), np.zeros(shape)
            found, expected = np.ones((2, 5)), np.ones((2, 5))
            outcomes = []
            for function, x in ((jitted, found), (write, expected)):
                try:
                    outcomes.append(function(x, mask, values).tolist())
                except ValueError as error:
                    outcomes.append(str(error))
            assert outcomes[0] == outcomes[1], (shape, first)
            np.testing.assert_array_equal(found, expected)


def test_tuples_among_indices_are_lists_of_positions():
    def f(x, i):
        y = x[:, (0, 2)] + x[(1, 0), :][:, 0:1].sum()
        x[(1, 0), i] = [5.0, 6.0]
        x[1:, (2,)] += 1
        return y, x[((0, 1), (2, 0))], x[(0, 1),]

    wanted, given = (np.arange(12.0).reshape(3, 4) for _ in "ab")
    expected = f(wanted, 3)
    for made, known in zip(rune_jit.jit(f, fallback="error")(given, 3), expected, strict=True):
        np.testing.assert_array_equal(made, known)
    np.testing.assert_array_equal(given, wanted)


# Numbers that elements do not hold: NumPy converts them as Python does, which raises.

NUMBERS = [300, -1, 2**40, 300.0, -1.0, np.nan, np.inf, 1e30, 1j, np.float64(300), np.int64(-1)]


def at_index(x: Any, i: Any, v: Any) -> None:
    x[i] = v


WRITES = {
    "at an index": lambda x, v: at_index(x, 0, v),
    "at a slice": lambda x, v: at_index(x, slice(1), v),
    "at indices": lambda x, v: at_index(x, A([0, 1]), v),
    "at a mask": lambda x, v: at_index(x, x > 0, v),
    "a list": lambda x, v: at_index(x, slice(None), [v, 1]),
    "a list at indices": lambda x, v: at_index(x, A([0, 1]), [v, 1]),
    "a list at a mask": lambda x, v: at_index(x, x > 0, [v, 1]),
    "fill": lambda x, v: x.fill(v),
    "put": lambda x, v: np.put(x, 0, v),
    "putmask": lambda x, v: np.putmask(x, x > 0, v),
    "place": lambda x, v: np.place(x, x > 0, v),
    "asarray": lambda x, v: np.asarray(v, x.dtype),
}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32"])
@pytest.mark.parametrize("name", WRITES)
def test_numbers_that_elements_do_not_hold_raise_as_numpys_do(name: str, dtype: str) -> None:
    write = WRITES[name]
    for value in NUMBERS:
        outcomes = []
        for function in (write, rune_jit.jit(write, fallback="silent")):
            for _ in range(2):  # with an entry that is known
                x = np.ones(2, dtype)
                try:
                    result: Any = function(x, value)
                except (ValueError, OverflowError, TypeError) as error:
                    result = type(error)
                outcomes.append(repr((result, x)))
        assert outcomes == outcomes[:1] * len(outcomes), value


def _while_over_flat(x: Any) -> Any:
    found = []
    for i, v in enumerate(x.flat):
        found.append(v)
        if i == 1:
            x[1, 1] = 77
    return found


def _into_the_first(x: Any) -> Any:
    for v in x.T.flat:
        x[0, 0] += v
    return x


def _while_over_all(x: Any) -> Any:
    found = []
    for index, v in np.ndenumerate(x):
        found.append((index, v))
        x[1, 1] += 1
    return found


def _while_backwards(x: Any) -> Any:
    y, found = x[:, 0] * 1, []
    for v in reversed(y):
        found.append(v)
        y[0] = 5
    return found, list(reversed(x))


@pytest.mark.parametrize("in_segments", [False, True])
@pytest.mark.parametrize(
    "function", [_while_over_flat, _into_the_first, _while_over_all, _while_backwards]
)
def test_writes_to_an_array_while_its_elements_are_read(function: Any, in_segments: bool) -> None:
    def f(x: Any) -> Any:
        return function(x), np.unique(x).sum() if in_segments else 0.0

    jitted = rune_jit.jit(f)
    for _ in range(2):
        ours, theirs = (np.arange(6.0).reshape(2, 3) for _ in "12")
        assert_same(jitted(ours), f(theirs))
        assert_same(ours, theirs)
