"""float, int, max and min, outside of loops, of numbers that only the running program knows."""

from __future__ import annotations

from typing import Any

import loop_checks
import numpy as np
import pytest
from compare import assert_same

import rune_jit


def norm(x):
    return float(np.sqrt((x * x).sum())), int(x.argmax())


def halves(x):
    return int(x[0]) // 2, int(x[1]) % 3, float(x[0]) ** 2, int(x[0]) + x[1]


def scaled(x):
    largest = max(1.0, np.max(x)) + 1e-9
    x = x / largest
    return x, largest


def extremes(x, y):
    return max(x.min(), y.max(), 0.5), min([x.sum(), y.sum()]), max(2, x.argmax(), y.argmin())


def both(function: Any, *args: Any) -> Any:
    """What the jitted function returns at its third call, which is what NumPy returns."""
    jitted = rune_jit.jit(function)
    for _ in range(3):
        got, expected = jitted(*args), function(*args)
        for a, b in zip(got, expected, strict=True):
            assert type(a) is type(b)
            np.testing.assert_allclose(a, b, rtol=1e-14)
    assert "as one program" in jitted.explain()
    return jitted


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
def test_conversions_are_part_of_the_program(dtype: str) -> None:
    both(norm, np.array([3, 0, 7, 1]).astype(dtype))
    if dtype != "bool":
        both(halves, np.array([7, 3]).astype(dtype))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_int_of_what_is_no_small_integer(bad: float) -> None:
    def f(x):
        return int(x[0]) // 2 + x[1:]

    jitted = rune_jit.jit(f)
    np.testing.assert_array_equal(jitted(np.arange(9.0, 12)), [14.0, 15.0])
    x = np.array([bad, 1.0])
    if np.isfinite(bad):
        np.testing.assert_array_equal(jitted(x), f(x))
        return
    with pytest.raises((ValueError, OverflowError)) as expected:
        f(x)
    with pytest.raises(type(expected.value)) as actual:
        jitted(x)
    assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize("factor", [1.0, 9.0, -9.0, np.nan])
def test_extremes_are_pythons(factor: float) -> None:
    """max(1.0, x) is Python's float or NumPy's, as the data decide."""
    jitted = both(scaled, np.linspace(0, 1, 7))
    x = np.linspace(0, 1, 7) * factor
    for a, b in zip(jitted(x), scaled(x), strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("bad", [np.nan, 0.25, -1.0, -0.0])
def test_extremes_keep_the_first_of_what_cannot_be_compared(bad: float) -> None:
    x, y = np.array([0.5, 0.75]), np.array([0.0, bad])
    for a, b in ((x, y), (y, x)):
        jitted = rune_jit.jit(extremes)
        for _ in range(2):
            for got, expected in zip(jitted(a, b), extremes(a, b), strict=True):
                assert type(got) is type(expected)
                np.testing.assert_array_equal(got, expected)
                assert np.signbit(got) == np.signbit(expected)


def test_of_other_types_the_value_is_read() -> None:
    def f(x):
        return max(1.0, x.max())  # Python's float, or NumPy's float32

    for factor in (0.5, 2):
        x = np.ones(3, np.float32) * np.float32(factor)
        got, expected = rune_jit.jit(f)(x), f(x)
        assert type(got) is type(expected) and got == expected


def test_complex_numbers_are_no_floats() -> None:
    def f(x):
        return float(x[0])

    x = np.array([1 + 2j])
    with pytest.warns(np.exceptions.ComplexWarning):
        expected = f(x)
    with pytest.warns(np.exceptions.ComplexWarning):
        assert rune_jit.jit(f)(x) == expected


def test_bytes_of_numbers() -> None:
    def f(x: Any) -> Any:
        return bytes(x[0]), int.from_bytes(x[1]), memoryview(x[0]).nbytes, x.sum()

    def handled(x: Any) -> Any:
        try:
            return bytes(x[0] * 2), x.sum()
        except BufferError:
            return None

    for function in (f, handled):
        jitted = rune_jit.jit(function, fallback="silent")
        for x in (np.arange(3), np.ones(3)):
            assert jitted(x) == function(x)


def test_an_unrolled_loop_runs_in_segments() -> None:
    """A program of its iterations would be large."""

    def f(x):
        total = 0.0
        for _ in [*range(40)]:
            x = np.sin(x) + 0.25
            total += float(x.sum()) + max(x[0], x[1])
        return x, total

    jitted = rune_jit.jit(f)
    for _ in range(2):
        for got, expected in zip(jitted(np.arange(5.0)), f(np.arange(5.0)), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-13)
    assert "as one program" not in jitted.explain()


def dtype_of_an_argument(x):
    x.dtype = np.int64
    return x, x.shape


def dtype_of_an_array(x):
    y = x * 2
    y.dtype = np.float32
    y[0] = 1
    return y, y.shape


def dtype_of_a_view(x):
    y = x[0]
    y.dtype = np.int64
    y += 1
    x[0, 1] *= 2
    return y, x.sum()


def shape_of_a_view(x):
    y = x[1:].T
    y.shape = (1, 2)
    y += 1
    return x, y


def shapes_without_elements(x):
    a = np.array([]).reshape(0, 0)
    a.shape = (0, 0)
    b = x[:0] * 2
    b.shape = (3, 0)
    return a.T, b, x.sum()


def size_of_an_argument(x):
    y = x * 2
    x.resize(6, refcheck=False)
    x[5] = y.sum()
    return y, x.sum()


def size_of_an_array(x):
    y = x + 1
    y.resize((y.size + 1,), refcheck=False)
    return y


@pytest.mark.parametrize("is_read_before", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        *(dtype_of_an_argument, dtype_of_an_array, dtype_of_a_view),
        *(shape_of_a_view, size_of_an_argument, size_of_an_array),
        shapes_without_elements,
    ],
)
def test_attributes_that_are_assigned(function: Any, is_read_before: bool) -> None:
    def f(x: Any) -> Any:
        if is_read_before:
            print(x.max())
        return function(x)

    jitted = rune_jit.jit(f, fallback="silent")
    for i in range(3):
        own, given = (np.arange(4.0).reshape(2, 2) + i for _ in range(2))
        assert_same(jitted(given), f(own))
        assert_same(given, own)


MOVED = {
    "copy": np.copy,
    "reshape": lambda s: np.reshape(s, ()),
    "the method reshape": lambda s: s.reshape(()),
    "reshape to one": lambda s: np.reshape(s, 1),
    "squeeze": np.squeeze,
    "transpose": np.transpose,
    "moveaxis": lambda s: np.moveaxis(s, [], []),
}


@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("make", [np.sum, np.float64, float, np.array], ids=lambda f: f.__name__)
def test_numbers_whose_axes_are_moved(name: str, make: Any) -> None:
    """NumPy's numbers stay numbers, Python's become arrays."""

    def f(x: Any) -> Any:
        return MOVED[name](x), x

    if make is float and "method" in name:
        return
    jitted = rune_jit.jit(f, fallback="error")
    for i in range(3):
        assert_same(jitted(make(i + 0.5)), f(make(i + 0.5)))


def arrays_of_arrays(x):
    made = np.empty((1, 2), dtype=np.ndarray)
    made[0, 0], made[0, 1] = x * 2, x + 1
    return made[0, 0] @ made[0, 1], made.dtype


def test_ndarray_is_the_dtype_of_objects() -> None:
    jitted = rune_jit.jit(arrays_of_arrays)
    for i in range(3):
        x = np.arange(3.0) + i
        assert_same(jitted(x), arrays_of_arrays(x))


# x.item()


def items(x):
    return {"loss": x.sum().item(), "at": x.argmax().item(), "first": x[:1, None].item()}


def items_of_types(x):
    small, flag = x.astype(np.float32)[1].item(), (x > 0).all().item()
    return small, flag, x.astype(np.uint8)[0].item(), np.arange(3)[1].item(), np.float64(3).item()


def test_items_are_numbers_of_the_program() -> None:
    x = np.array([3.0, 9.5, 4.0])
    for function in (items, items_of_types):
        jitted = rune_jit.jit(function)
        for _ in range(3):
            assert repr(jitted(x)) == repr(function(x))
        assert "as one program" in jitted.explain()


def test_items_in_loops() -> None:
    def f(a, x):
        sums, positive = [], 0
        for _ in range(40):
            x = a @ x
            sums.append((x.T @ x).item())
            if (x[0] > 0).item():
                positive += 1
        return sums, positive

    loop_checks.rolled(f, np.array([[0.9, 0.3], [-0.3, 0.9]]), np.ones((2, 1)), ulps=64)


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def item(self) -> int:
        self.count += 1
        return self.count


def test_items_of_other_objects() -> None:
    def f(x, counter):
        total = 0.0
        for i in range(30):
            total = total + counter.item() * x[i % 3]
        return total, counter.item(), counter.count

    x, jitted = np.arange(3.0), rune_jit.jit(f, fallback="silent")
    mine, theirs = Counter(), Counter()
    for _ in range(3):
        assert repr(jitted(x, mine)) == repr(f(x, theirs)) and mine.count == theirs.count


def test_items_of_several_elements() -> None:
    def f(x):
        return (x * 2).item()

    with pytest.raises(ValueError, match="can only convert an array of size 1"):
        rune_jit.jit(f)(np.ones(3))
    assert rune_jit.jit(lambda x: (x * 2).item(1))(np.ones(3)) == 2.0
