"""Results that a program computes in the memory of an argument: those with which a function
overwrites an array that it does not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit

X = np.random.default_rng(0).random((40, 30))


def double(x: Any, out: Any) -> None:
    out[...] = x * 2 + 1


def check(
    function: Callable[..., Any], make: Callable[[], tuple[Any, ...]], ulps: float = 0
) -> None:
    """Compares results and arguments with NumPy's; `make` makes the arguments of a call."""
    wanted = make()
    expected = function(*wanted)
    jitted = rune_jit.jit(function, fallback="error")
    for _ in range(3):
        found = make()
        assert_same(jitted(*found), expected, ulps=ulps)
        assert_same(found, wanted, ulps=ulps)


def peak(function: Callable[..., Any], *args: Any) -> int:
    """The most bytes that results and temporaries of a call have."""
    jitted = rune_jit.jit(function, fallback="error")
    for _ in range(3):
        jitted(*args)
    with rune_jit.profile() as taken:
        jitted(*args)
    use = taken.memory["cpu"]
    return use.peak - use.begin


def test_there_is_no_memory_for_the_result() -> None:
    x = np.ones((500, 500))

    def reads(x: Any, out: Any) -> None:
        out += x * 2

    def returns(x: Any, out: Any) -> Any:
        out[...] = x * 2
        return x * 2

    assert peak(double, x, np.zeros_like(x)) < x.nbytes / 2
    assert peak(double, x, np.zeros((500, 1000))[:, ::2]) >= x.nbytes
    assert peak(reads, x, np.zeros_like(x)) >= x.nbytes
    assert peak(returns, x, np.zeros_like(x)) >= x.nbytes


@pytest.mark.parametrize(
    "place",
    (
        lambda: np.zeros((40, 30)),
        lambda: np.zeros((40, 30), order="F"),
        lambda: np.zeros((80, 30))[::2],
        lambda: np.zeros((40, 30))[::-1],
        lambda: np.zeros((41, 30))[1:],
        lambda: (
            np.frombuffer(bytearray(8 * 1200 + 1), np.uint8)[1:].view(np.float64).reshape(40, 30)
        ),
        lambda: np.zeros((40, 30), np.float32),
    ),
)
def test_layouts(place: Callable[[], Any]) -> None:
    check(double, lambda: (X.copy(), place()))


@pytest.mark.parametrize("shift", range(4))
def test_arrays_that_share_memory(shift: int) -> None:
    def make() -> tuple[Any, Any]:
        memory = np.arange(104.0)
        return memory[:100], memory[shift : 100 + shift]

    def f(x: Any, out: Any) -> None:
        out[:] = x[::-1] * 2 + x

    wanted, found = make(), make()
    f(*wanted)
    jitted = rune_jit.jit(f)
    for _ in range(3):
        found = make()
        jitted(*found)
        assert_same(found, wanted)


@pytest.mark.parametrize("offset", range(0, 64, 8))
def test_large_arrays_at_any_address(offset: int) -> None:
    x = np.random.default_rng(1).random(3 << 20)
    memory = np.zeros(8 * x.size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    out = memory[start : start + x.nbytes].view(np.float64)
    jitted = rune_jit.jit(double, fallback="error")
    for _ in range(2):
        out[:] = 0
        jitted(x, out)
        assert (out == x * 2 + 1).all()


def test_results_share_no_memory_with_what_is_written() -> None:
    def f(x: Any, out: Any, other: Any) -> Any:
        y = x * 2
        out[...] = y
        other[...] = y
        return y, out, out.copy()

    jitted = rune_jit.jit(f, fallback="error")
    for _ in range(3):
        out, other = np.zeros_like(X), np.zeros_like(X)
        y, same, copy = jitted(X, out, other)
        assert same is out
        arrays = [y, out, other, copy]
        assert all((a == X * 2).all() for a in arrays)
        assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def test_arrays_that_may_not_be_written() -> None:
    jitted = rune_jit.jit(double)
    out = np.zeros_like(X)
    for _ in range(2):
        jitted(X, out)
    out[:] = 0
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        jitted(X, out)
    assert not out.any()


def test_two_writes_and_loops() -> None:
    def f(x: Any, a: Any, b: Any) -> None:
        a[...] = x.sum(axis=1)
        for i in range(x.shape[0]):
            for j in range(1, x.shape[1]):
                x[i, j] = x[i, j - 1] * 0.5 + x[i, j]
        b[...] = x[:, ::-1]

    check(f, lambda: (X.copy(), np.zeros(40), np.zeros((40, 30))), ulps=4)


GLOBAL = np.zeros((40, 30))


def test_global_arrays() -> None:
    def f(x: Any) -> None:
        GLOBAL[...] = x + 1

    jitted = rune_jit.jit(f, fallback="error")
    for i in range(3):
        jitted(X + i)
        np.testing.assert_array_equal(GLOBAL, X + i + 1)


def test_an_index_out_of_bounds_after_the_write() -> None:
    def f(x: Any, i: Any, out: Any) -> Any:
        out[...] = x * 2
        return x[i]

    for index in (3, 50):
        out, wanted = np.zeros_like(X), np.zeros_like(X)
        jitted = rune_jit.jit(f)
        for _ in range(2):
            if index == 3:
                assert_same(jitted(X, np.int64(index), out), f(X, np.int64(index), wanted))
            else:
                with pytest.raises(IndexError):
                    jitted(X, np.int64(index), out)
                with pytest.raises(IndexError):
                    f(X, np.int64(index), wanted)
            assert_same(out, wanted)
