"""Views of rune_jit.Arrays: writes to one reach the others, as NumPy's do."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import outcome
from devices import devices

import rune_jit
from rune_jit import Array, asarray, jit

Write = Callable[[Any], Any]

# Each changes an array of 4 x 3 numbers.


def item_of_slice(a: Any) -> None:
    b = a[1:3]
    b[0] = 9


def rows(a: Any) -> None:
    for row in a:
        row[:] = row[0]


def transpose(a: Any) -> None:
    a.T[0] = 1
    a.swapaxes(0, 1)[2] -= 1
    np.moveaxis(a, 0, 1)[0] = 5


def reshaped(a: Any) -> None:
    a.reshape(-1)[0] = 1
    a.reshape(2, 6)[:, ::2] *= -1


def raveled(a: Any) -> None:
    a.ravel()[1] = 5


def reshaped_transpose(a: Any) -> None:
    a.T.reshape(-1)[0] = 50


def in_place_item(a: Any) -> None:
    a[0] += 1
    a[..., 0][1:] *= 2
    a[1, 2] -= 4


def in_place(a: Any) -> None:
    a **= 2
    a -= 3
    a //= 2


def out_that_overlaps(a: Any) -> None:
    np.add(a[:2], 1, out=a[1:3])
    np.multiply(a, 2, out=a)


def in_place_that_overlaps(a: Any) -> None:
    a[1:] += a[:-1]
    a[1:3] = a[0:2]


def out_where(a: Any) -> None:
    np.sin(a[1], out=a[1], where=a[0] > 0)


def flat(a: Any) -> None:
    a.flat[3] = 7
    a.flat[::2] += 1


def whole_flat(a: Any) -> None:
    a.flat = [1, 2]


def mask(a: Any) -> None:
    a[a > 3] = -1
    a[1:][a[:-1] < 0] *= 2


def view_of_view(a: Any) -> None:
    a[1:][:, 1:][0] = 4
    a[::-1, ::2][1] += 10
    a[None, 2, :, None][0, 1] = 6


def seen_through_views(a: Any) -> None:
    b = a[1]
    a[1, 1] = 77
    a[0] = b * 2


def functions_that_write(a: Any) -> None:
    np.copyto(a[1:], a[:-1])
    np.fill_diagonal(a, 3)
    np.put_along_axis(a[:, ::-1], np.array([[0], [1], [0], [2]]), 5.0, 1)
    np.add.at(a[1:], ([0, 0], [1, 1]), 5)


def methods_that_write(a: Any) -> None:
    a[1:3].fill(4)
    a[0].put([1], [3])
    a.T.sort()


def functions_that_view(a: Any) -> None:
    np.einsum("ii->i", a[:3, :3])[:] = 8
    x, y = np.split(a, 2)
    x += y
    np.flip(a)[0] = 1
    np.rot90(a)[0, 1] = 55


def copies(a: Any) -> None:
    for b in (a.copy(), a.flatten(), a.reshape(-1, copy=True), a.astype(a.dtype), a[[0, 2]], +a):
        b[0] = 100


def read_only_views(a: Any) -> None:
    a[3] = 1
    np.broadcast_to(a[0], (3, 3))[0] = 1


def read_only_diagonal(a: Any) -> None:
    np.diagonal(a)[0] = 1


def recurrence(a: Any) -> None:
    row = a[2]
    for i in range(1, 3):
        row[i] += row[i - 1]


def real_part(a: Any) -> None:
    a.real[0] = 3
    a.real += 1


def imaginary_part(a: Any) -> None:
    a.imag = 1


def cannot_cast(a: Any) -> None:
    a += 1j


def cannot_broadcast(a: Any) -> None:
    a += np.ones((5, 4, 3), np.float32)


WRITES = [
    x
    for _, x in inspect.getmembers(sys.modules[__name__], inspect.isfunction)
    if list(inspect.signature(x).parameters) == ["a"]
]
# Memory, and which part of it.
LAYOUTS = {
    "C": (np.zeros((4, 3), np.float32), np.s_[:]),
    "Fortran": (np.zeros((4, 3), np.float32, order="F"), np.s_[:]),
    "strided": (np.zeros((8, 6), np.float32), np.s_[::2, ::2]),
    "part": (np.zeros((6, 3), np.float32), np.s_[1:5]),
}


def laid_out(layout: str) -> tuple[np.ndarray, np.ndarray]:
    """The numbers 0 to 11 in a layout, and the memory in which they are."""
    memory, index = LAYOUTS[layout]
    memory = memory.copy("A")
    part = memory[index]
    part[...] = np.arange(12).reshape(4, 3)
    return part, memory


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_writes_reach(write: Write, layout: str) -> None:
    """Outside of jit, and twice in it; what surrounds the array stays."""
    jitted = jit(write)
    for run in (write, jitted, jitted):
        (a, wanted), (b, found) = laid_out(layout), laid_out(layout)
        expected, actual = outcome(write, a), outcome(run, asarray(b))
        assert type(actual) is type(expected)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
@pytest.mark.parametrize("layout", ["C", "part"])
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_writes_reach_on_device(write: Write, layout: str, device: str) -> None:
    """Also where the memory is the device's own, in which a view is no part of the same memory."""
    jitted = jit(write)
    for run in (write, jitted):
        a, wanted = laid_out(layout)
        found = asarray(laid_out(layout)[1], device=device)
        b = found[LAYOUTS[layout][1]]
        others = found.T, b[1:], b.reshape(-1), b.T.reshape(-1), b[:, 0]
        expected, actual = outcome(write, a), outcome(run, b)
        if write is flat and rune_jit.device.has_host_memory(device) is False and run is write:
            assert isinstance(actual, ValueError) and "read-only" in str(actual)
            continue
        assert type(actual) is type(expected)
        np.testing.assert_array_equal(found, wanted)
        before = laid_out(layout)[0].T.reshape(-1)  # a copy
        for view, other in zip(
            others, (wanted.T, a[1:], a.reshape(-1), before, a[:, 0]), strict=True
        ):
            np.testing.assert_array_equal(view, other)


def test_complex_parts() -> None:
    a = np.arange(4, dtype=np.float32) * (1 + 1j)
    x = rune_jit.array(a)
    for y in (a, x):
        y.imag = y.real * 2
        y.real[1:] -= y.imag[0]
        y.real *= 3
    np.testing.assert_array_equal(x, a)


def test_read_only_arrays() -> None:
    a = np.arange(3, dtype=np.float32)
    a.flags.writeable = False
    x = asarray(a)

    def held() -> Any:
        x[0] = 5
        return x.sum().item()

    def given(x: Any) -> Any:
        x[x.sum().item() > 0] = 5

    for function, arguments in ((held, ()), (given, (x,))):
        for run in (function, jit(function), jit(function)):
            with pytest.raises(ValueError, match="read-only"):
                run(*arguments)
    np.testing.assert_array_equal(a, np.arange(3, dtype=np.float32))


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_views_and_copies(device: str) -> None:
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = asarray(a, device=device)
    for function in (
        lambda a: a.T,
        lambda a: a.T.reshape(-1),
        lambda a: a.T.ravel(),
        lambda a: a.reshape(6, 4).reshape(-1, order="F"),
        lambda a: a.reshape(4, 6, copy=True),
        lambda a: np.einsum("iij->ij", a[:, :2]),
        lambda a: np.einsum("ijk->ik", a),
        lambda a: np.einsum("i,i", a[0, 0], a[1, 1]),
        lambda a: np.diag(a[0]),
        lambda a: np.diag(a[0, 0]),
        lambda a: np.broadcast_arrays(a[0, 0], np.ones((2, 1), np.float32))[0],
        lambda a: np.atleast_2d(a[0, 0], a[1])[1],
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 1),
        lambda a: np.split(a, 2, 2)[1][0],
        lambda a: a[0, 0, 0],
        lambda a: a[a > 5],
        lambda a: a[..., [0, 1]],
    ):
        before = a.copy()
        wanted, found = function(a), function(x)
        np.testing.assert_array_equal(found, wanted)
        x += 1
        a += 1
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(x, a)
        x -= 1
        a -= 1
        np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_arguments_that_overlap(device: str) -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        x[1:] = y[:-1] * 2
        y[0] = x.sum()
        return x + y

    for index in (slice(1, 6), slice(None, 5), slice(None, None, 2), slice(7, 12)):
        a = np.arange(12, dtype=np.float32)
        b = rune_jit.array(a, device=device)
        length = len(a[index])
        for _ in range(2):
            wanted, found = f.__wrapped__(a[:length], a[index]), f(b[:length], b[index])
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_reshapes_of_arguments_that_are_views(device: str) -> None:
    """They are views or copies as the argument lies in NumPy's memory."""

    def flat(x: Any) -> None:
        x.reshape(-1)[0] = 7

    def flat_transpose(x: Any) -> None:
        x.T.ravel()[-1] = 3

    for function in (flat, flat_transpose):
        jitted = jit(function)
        for view in (lambda a: a, lambda a: a.T, lambda a: a[:, :3], lambda a: a[1:]):
            for is_captured in (False, True):
                a = np.arange(16, dtype=np.float32).reshape(4, 4)
                x = rune_jit.array(a, device=device)
                held = view(x)
                function(view(a))
                if is_captured:
                    jit(lambda: function(held))()  # noqa: B023
                else:
                    jitted(held)
                np.testing.assert_array_equal(x, a)


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_captured_views(device: str) -> None:
    whole = rune_jit.array(np.zeros(4, np.float32), device=device)
    part = whole[1:3]

    @jit
    def f(x: Any) -> Any:
        part[:] = x
        return part + 1

    @jit
    def g(x: Any) -> Any:
        part[0] += x
        return whole * 2

    np.testing.assert_array_equal(f(np.float32(5)), [6, 6])
    np.testing.assert_array_equal(whole, [0, 5, 5, 0])
    for total in (6, 7):
        np.testing.assert_array_equal(g(np.float32(1)), [0, 2 * total, 10, 0])
        np.testing.assert_array_equal(whole, [0, total, 5, 0])


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_segments(device: str) -> None:
    whole = rune_jit.array(np.arange(4, dtype=np.float32), device=device)

    def f(x: Any) -> Any:
        y = x[1:3]
        y += 1
        before = whole[0] + 0
        if y[0] > x.sum().item() / 3:
            whole[1] = y[0]
        whole[0] += x.sum().item()
        return y * 2, before

    jitted = jit(f)
    x = np.arange(4, dtype=np.float32)
    held, a = np.arange(4, dtype=np.float32), rune_jit.array(x, device=device)
    view = whole[:2]
    for _ in range(3):
        y, before = jitted(a)
        x[1:3] += 1
        np.testing.assert_array_equal(y, x[1:3] * 2)
        assert before == held[0]
        held[0] += x.sum()
        np.testing.assert_array_equal(a, x)
        np.testing.assert_array_equal(view, held[:2])


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_segments_that_give_away_captured_arrays(device: str) -> None:
    whole = rune_jit.array(np.arange(6, dtype=np.float32), device=device)
    view = whole[1:]

    def f() -> Any:
        np.asarray(whole)[0] += 1
        whole[1] += whole.sum().item()
        return np.asarray(whole)[0]

    jitted, held = jit(f), np.arange(6, dtype=np.float32)
    for _ in range(3):
        held[0] += 1
        held[1] += held.sum()
        assert jitted() == held[0]
        np.testing.assert_array_equal(whole, held)
        np.testing.assert_array_equal(view, held[1:])


def test_results_share_no_memory() -> None:
    """What a program stores is an Array's own: it may take the place of memory that nobody sees."""

    @jit
    def f(x: Any) -> Any:
        x += 1
        return x, x * 1, x.copy()

    x = asarray(np.zeros(3)) + 0
    seen = [np.asarray(x)]
    for step in (1.0, 2.0, 3.0):
        same, *others = f(x)
        assert same is x
        for other in others:
            assert type(other) is Array and not np.shares_memory(other, x)
            np.testing.assert_array_equal(other, [step] * 3)
        np.testing.assert_array_equal(seen[0], x)
        if step == 2:
            seen = [x[:2]]  # a view of memory that was nobody's but x's
            x[2:] = step
            x = rune_jit.array(np.full(3, step))
            seen = [x[...]]


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_views_that_nobody_has(device: str) -> None:
    """What was a view once costs nothing, and what is left of an array outlives it."""
    x = asarray(np.zeros((2, 3), np.float32), device=device)
    rows, columns = x[0], x.T[1:]
    for _ in range(100):
        x = np.real(x)
    x[0, 1] = 5
    np.testing.assert_array_equal(rows, [0, 5, 0])
    del x
    rows += 1
    np.testing.assert_array_equal(columns, [[6, 0], [1, 0]])
    columns *= 2
    np.testing.assert_array_equal(rows, [1, 12, 2])


def test_flat_is_an_iterator() -> None:
    def f(x: Any) -> Any:
        flat = (x + 1).flat
        first, position = next(flat), (flat.index, flat.coords)
        again = x.flat
        next(again)
        return first, position, next(flat), list(flat), again[2], next(again), sum(x.flat)

    x = np.arange(6.0).reshape(2, 3)
    assert rune_jit.jit(f, fallback="error")(x) == f(x)


def test_the_array_interface_in_segments() -> None:
    def f(x: Any) -> Any:
        first = float(x[0, 0])
        return first, x.T.__array_interface__["shape"], x.__array_interface__["strides"]

    x = np.arange(6.0).reshape(2, 3)
    jitted = rune_jit.jit(f)
    for _ in range(3):
        assert jitted(x) == f(x)
