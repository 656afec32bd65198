"""Results share memory with arguments, captured arrays, objects and each other as NumPy's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from devices import HAS_FLOAT64, devices

import rune_jit

TABLE = np.arange(12.0).reshape(3, 4)
# The second one has memory of its own, from which results are copied.
DEVICES = devices("cpu", "interpreter-delayed") if HAS_FLOAT64 else []


def of_arguments(x: Any) -> Any:
    parts = x[1:3], x.T, x.reshape(-1), x[..., 0], x[::-1], x[0, 0, ...]
    return parts, np.diagonal(x), np.broadcast_to(x, (2, *x.shape)), np.einsum("ij->ji", x)


def of_written_arguments(x: Any) -> Any:
    x += 1
    row = x[1]
    row[:] = x.sum()
    return row, x[1:], x


def of_each_other(x: Any) -> Any:
    y = x + 1
    flat = y.reshape(-1)
    return [y, y[1:]], {"flat": flat, "again": flat}, y.T


def of_other_orders(x: Any) -> Any:
    y = x * 2 + x[::-1]
    first, second = y.ravel(order="F"), y.T.reshape(-1)
    return first, y, second[:3], second[3:], y.T[1:]


def of_parts(x: Any) -> Any:
    y = x * 2
    return y[:2], y[1:], y[0, 0]


def apart(x: Any) -> Any:
    y = x * 2
    return y[:1], y[1:], x + 0, x[0, 0]


def of_made_arrays(x: Any) -> Any:
    y = np.zeros(4)
    z = np.ones((2, 2))
    z[0] = x[0, :2]
    return y, y[1:], y, z, z[0]


def of_complex(x: Any) -> Any:
    y = x + 1j
    return y.real, y.imag, y


def of_one_twice(x: Any) -> Any:
    y, total = x + 1, x.sum()
    return y, [y, total], {"y": y, "total": total}


def of_captured(x: Any) -> Any:
    return TABLE[1:], x + TABLE[0, 0], TABLE


ROWS = np.array([1, 3])
LAST_ROWS = TABLE[1:]


def of_read_only(x: Any) -> Any:
    y = x + 1
    return y.imag, x[0].imag, np.broadcast_to(y[0], (2, 4)), np.diagonal(x * 2)


def of_read_only_in_segments(x: Any) -> Any:
    zeros = x.imag
    x.tolist()
    return zeros[1:], zeros, x.imag


def of_known_positions(x: Any) -> Any:
    first, last = ROWS
    return TABLE[first:last], LAST_ROWS[first:], x + TABLE[first], TABLE[first:last] * 2


def of_known_arrays(x: Any) -> Any:
    first, last = ROWS
    known = TABLE[first:last] * 2
    return known, known[1:], x + first, {"again": known}


def in_segments(x: Any) -> Any:
    y = x * 2
    known = float(y[0, 0]) > -1
    x[0] += known
    return y[1:], y, x[2:], x.T, y[0, 0]


def one_of_two(x: Any) -> Any:
    if x[0, 0] > 5:
        return x
    return x[1:]


def same_arrays(x: Any) -> Any:
    return np.broadcast_arrays(x, 1.0)[0], np.asarray(x), np.atleast_2d(x), x.squeeze()


def of_classes_of_numbers(x: Any) -> Any:
    row = np.float64(x[1])
    row[0] = -1.0
    y = x * 2
    return np.float64(x), np.float32(x), row, np.float64(y), y, np.float64(x[:1, :1])


FUNCTIONS = [
    of_arguments,
    of_written_arguments,
    of_each_other,
    of_other_orders,
    of_parts,
    apart,
    of_made_arrays,
    of_complex,
    of_one_twice,
    of_captured,
    of_read_only,
    of_read_only_in_segments,
    of_known_positions,
    of_known_arrays,
    in_segments,
    one_of_two,
    same_arrays,
    of_classes_of_numbers,
]
ARGUMENTS: dict[str, Callable[[], Any]] = {
    "C": lambda: np.arange(12.0).reshape(3, 4),
    "Fortran": lambda: np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "strided": lambda: np.arange(48.0).reshape(6, 8)[::2, ::2],
    "reversed": lambda: np.arange(12.0).reshape(3, 4)[::-1] + 1,
}


def leaves(result: Any) -> list[Any]:
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [leaf for x in result for leaf in leaves(x)]
    return [result]


def memory(result: Any, x: Any) -> list[Any]:
    """Of each two arrays: whether they are one, share memory, and may be written to."""
    arrays = [v for v in (*leaves(result), x, TABLE) if isinstance(v, np.ndarray)]
    pairs = [(a is b, bool(np.shares_memory(a, b))) for a in arrays for b in arrays]
    return [*pairs, *(v.flags.writeable for v in arrays)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", ARGUMENTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function: Callable[[Any], Any], layout: str, device: str) -> None:
    jitted = rune_jit.jit(function, device=device, fallback="silent")
    for _ in range(4):
        theirs, ours = ARGUMENTS[layout](), ARGUMENTS[layout]()
        wanted, found = function(theirs), jitted(ours)
        assert_matches(found, wanted)
        assert memory(found, ours) == memory(wanted, theirs)


def test_read_only_arguments() -> None:
    jitted = rune_jit.jit(of_arguments)
    for _ in range(3):
        theirs, ours = np.ones((3, 4)), np.ones((3, 4))
        theirs.flags.writeable = ours.flags.writeable = False
        assert memory(jitted(ours), ours) == memory(of_arguments(theirs), theirs)


class Filter:
    def __init__(self) -> None:
        self.state, self.past = np.zeros(4), [np.zeros(4)]

    def step(self, x: Any) -> Any:
        self.state = self.state * 0.5 + x
        return self.state[1:]

    def look(self, n: int) -> Any:
        return self.state[:n]

    def logged(self, x: Any) -> Any:
        self.state = self.state * 0.5 + x
        self.past.append(self.state.copy())
        return self.state


@pytest.mark.parametrize("method, argument", [("step", 1.0), ("look", 2), ("logged", 1.0)])
def test_state(method: str, argument: Any) -> None:
    jitted = rune_jit.jit(getattr(Filter, method))
    theirs, ours = Filter(), Filter()
    for _ in range(5):
        wanted, found = getattr(theirs, method)(argument), jitted(ours, argument)
        assert (found is ours.state) == (wanted is theirs.state)
        assert np.shares_memory(found, ours.state)
        found[0] = wanted[0] = 7.0
        np.testing.assert_array_equal(ours.state, theirs.state)


def test_arrays_of_ours_and_other_settings_give_copies() -> None:
    x = rune_jit.asarray(np.arange(4.0))
    part = rune_jit.jit(lambda v: v[1:])(x)
    assert type(part) is rune_jit.Array
    np.testing.assert_array_equal(np.asarray(part), [1.0, 2.0, 3.0])
    y = np.arange(4.0)
    assert not np.shares_memory(rune_jit.jit(lambda v: v[1:], fallback="error")(y), y)


def test_dynamic_sizes() -> None:
    jitted = rune_jit.jit(lambda x: (x[1:], x + 1), dynamic={"x": {0: "n"}})
    for n in (5, 9, 7):
        x = np.arange(float(n))
        np.testing.assert_array_equal(jitted(x)[0], x[1:])


def rows(x: Any) -> Any:
    return [x[i] for i in range(len(x))], [(i, x[i + 1, ::-1]) for i in range(len(x) - 1)]


def windows(x: Any) -> Any:
    y, found = x * 2, []
    for i in range(len(y) - 3):
        found.append((i, y[i : i + 3]))
    return found


def parts_of_rows(x: Any) -> Any:
    found = []
    for i in range(len(x)):
        for j in range(2):
            found.append({"row": i, "part": x[i, 2 * j : 2 * j + 2]})
    return found


def at_positions_of_data(x: Any) -> Any:
    order = np.argsort(x[:, 0])
    found = []
    for i in range(len(x)):
        found.append(x[order[i]])
    return found


def at_a_position_of_data(x: Any) -> Any:
    y = x + 1
    best = np.argmax(x[:, 0])
    return x[best], x[:, 1:][best - 3], y[best], y


def rows_and_all(x: Any) -> Any:
    y, found = x * 2, []
    for i in range(len(y)):
        found.append(y[i])
    return found, y[:, 1:]


def near_diagonal(x: Any) -> Any:
    found = []
    for i in range(len(x) - 3):
        for j in range(i, i + 3):
            found.append(x[j, 1:])
    return found


def rows_twice(x: Any) -> Any:
    found = []
    for i in range(len(x)):
        found.append(x[i, 1:])
    return found, found[-1], [found[-1], found[3]]


OF_LOOPS = (
    near_diagonal,
    rows_twice,
    rows_and_all,
    rows,
    windows,
    parts_of_rows,
    at_positions_of_data,
    at_a_position_of_data,
)


@pytest.mark.parametrize("function", OF_LOOPS)
def test_views_of_arrays_at_positions(function: Callable[[Any], Any]) -> None:
    jitted = rune_jit.jit(function, fallback="silent")
    for seed in range(3):
        theirs = np.random.default_rng(seed).random((30, 4))
        ours = theirs.copy()
        wanted, found = function(theirs), jitted(ours)
        assert_matches(found, wanted)
        assert memory(found, ours) == memory(wanted, theirs)


def test_lists_outside_get_views() -> None:
    def keep(x: Any, kept: list[Any]) -> None:
        for i in range(len(x)):
            kept.append(x[i])

    jitted = rune_jit.jit(keep, fallback="silent")
    kept: list[Any] = []
    for _ in range(3):
        x = np.ones((30, 4))
        jitted(x, kept)
        assert all(np.shares_memory(row, x) for row in kept[-30:])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2).T.reshape(-1),
        lambda x: (x * 2).reshape(3, 8),
        lambda x: np.moveaxis(x.reshape(2, 2, 6) * 2, 0, 2).reshape(4, 6),
        lambda x: (x + 1j).T.reshape(6, 2, 2).real + 1,
    ],
)
def test_reshaped_arrays(function: Callable[[Any], Any]) -> None:
    jitted = rune_jit.jit(function)
    x = np.arange(24.0).reshape(4, 6)
    for given in (x, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
        got, expected = jitted(given), function(given)
        assert_matches(got, expected, 8)
        assert got.strides == expected.strides
    assert "segments" not in jitted.explain()


@pytest.mark.parametrize("device", DEVICES)
def test_arrays_that_are_returned_twice(device: str) -> None:
    x = rune_jit.asarray(np.arange(4.0), device=device)
    first, (second, total) = rune_jit.jit(lambda x: ((y := x + 1), [y, y.sum()]))(x)
    assert first is second
    second += total
    np.testing.assert_array_equal(np.asarray(first), np.arange(4.0) + 11)


def written_before_an_error(x: Any, at: Any) -> Any:
    x += 1
    return x[at] * 2


@pytest.mark.parametrize("device", DEVICES)
def test_arguments_that_are_written_to_before_an_index_error(device: str) -> None:
    jitted = rune_jit.jit(written_before_an_error, device=device)
    for _ in range(3):
        x = np.arange(4.0)
        np.testing.assert_array_equal(jitted(x, np.array([1, 3])), [4.0, 8.0])
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 4"):
            jitted(x, np.array([1, 9]))
        np.testing.assert_array_equal(x, np.arange(4.0) + 2)
