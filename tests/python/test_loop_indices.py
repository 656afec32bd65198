"""Positions in arrays that loops of the program compute: sums of counters that may be negative, and
positions and bounds of slices that data decide."""

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

RNG = np.random.default_rng(5)


def loops_of(jitted, *args):
    """The kernels that are loops."""
    return [k for k in jitted.lower(*args).kernels if "@loops_" in k]


def same_as_numpy(function, *args):
    """Checks a function that writes to its first argument, and returns the jitted one."""
    jitted = rune_jit.jit(function)
    for _ in range(2):
        mine, theirs = np.copy(args[0]), np.copy(args[0])
        assert_matches(jitted(mine, *args[1:]), function(theirs, *args[1:]))
        assert_matches(mine, theirs)
    assert "runs all iterations" not in jitted.explain()
    return jitted


def convolved(out, a, taps):
    for i in range(a.shape[0]):
        for j in range(taps.shape[0]):
            if i - j >= 0:
                out[i] += a[i - j] * taps[j]


def wrapped(out, a, taps):
    for i in range(a.shape[0]):
        for j in range(taps.shape[0]):
            out[i] += a[i - j] * taps[j]


def scattered(out, a, taps):
    for i in range(a.shape[0]):
        for j in range(taps.shape[0]):
            if i + j < out.shape[0]:
                out[i + j] += a[i] * taps[j]


@pytest.mark.parametrize("function", [convolved, wrapped, scattered])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_differences_of_counters(function, dtype):
    a, taps = RNG.random(20).astype(dtype), RNG.random(5).astype(dtype)
    same_as_numpy(function, np.zeros(20, dtype), a, taps)


def test_a_difference_out_of_bounds_raises_as_in_numpy():
    def f(out, a):
        for i in range(a.shape[0]):
            for j in range(4):
                out[i] += a[i - 2 * j]

    a = RNG.random(5)
    with pytest.raises(IndexError, match="index -6 is out of bounds for axis 0 with size 5"):
        f(np.zeros(5), a)
    with pytest.raises(IndexError, match="index -6 is out of bounds for axis 0 with size 5"):
        rune_jit.jit(f)(np.zeros(5), a)


def test_a_nest_of_several_results_is_one_kernel():
    def f(out, at, a):
        for k in range(2):
            for i in range(6):
                for j in range(2):
                    out[k, i] += a[k, at[i, j]] @ a[k, at[i, j]]

    at = RNG.integers(0, 6, (6, 2)).astype(np.int32)
    a = RNG.integers(0, 5, (2, 6, 3, 3)) + 1j  # sums without rounding
    jitted = same_as_numpy(f, np.zeros((2, 6, 3, 3), complex), at, a)
    assert len(loops_of(jitted, np.zeros((2, 6, 3, 3), complex), at, a)) == 1
