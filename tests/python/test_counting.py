"""np.bincount and np.histogram as parts of the compiled program."""

from __future__ import annotations

import compare
import numpy as np
import pytest
from compare import assert_matches
from devices import HAS_FLOAT64, devices

import rune_jit
from rune_jit import ConcretizationError
from rune_jit.tracing.trace import Trace

RNG = np.random.default_rng(5)


def check(function, *arguments, device="cpu"):
    """Each call may be traced anew: the number of counts depends on the data."""
    compare.check(function, *arguments, device=device, traces=2)


# Counts.


@pytest.mark.skipif(not HAS_FLOAT64, reason="the device has no float64")
@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_bincount(device):
    def counts(i, w):
        few = i % 3
        return (
            np.bincount(i), np.bincount(i, minlength=9), np.bincount(few, w), np.bincount(i, i),
            np.bincount(few[::-1], w > 0, minlength=2), np.bincount([2, 2, 0, 1, 1, 1, 1], w),
        )  # fmt: skip

    i, w = np.array([3, 1, 1, 0, 7, 3, 1]), RNG.standard_normal(7)
    w[2] = np.nan
    for dtype in (bool, *"bBhHiIlq"):
        check(counts, i.astype(dtype), w, device=device)
    text = rune_jit.jit(np.bincount).lower(i).explain()
    assert "scatter" in text and "host" not in text


@pytest.mark.parametrize(
    "x", [[-1, 2], [-1, -1], [1.5], [[1]], 3, [], np.zeros(2, np.uint64)], ids=str
)
def test_what_bincount_takes(x):
    x = np.asarray(x, None if np.size(x) else np.int64)
    check(np.bincount, x)
    check(lambda x: np.bincount(x, minlength=4), x)
    check(lambda x: np.bincount(x, minlength=-1), x)
    check(lambda x: np.bincount(x, np.ones(2)), x)


def test_bincount_of_other_lengths():
    """A call whose data needs another length has a program of its own; nothing is written and
    nothing computed for the wrong one is seen."""

    def function(x, i):
        x[0] = x[0] + len(np.bincount(i))
        return np.bincount(i + 1, minlength=4), np.linalg.cholesky(np.eye(2) * np.bincount(i).size)

    jitted = rune_jit.jit(function, fallback="error")
    x, y = np.zeros(2), np.zeros(2)
    for last in (2, 2, 1, 6, 6):
        i = np.array([0, last, 1])
        assert_matches(jitted(x, i), function(y, i))
        np.testing.assert_array_equal(x, y)
    assert jitted.cache_info()[:2] == (2, 3)
    with pytest.raises(ValueError, match="no negative elements"):
        jitted(x, -i)
    np.testing.assert_array_equal(x, y)


def test_minlength_is_the_length_until_it_is_too_small():
    function = lambda i: np.bincount(i * 2, minlength=16)  # noqa: E731
    jitted = rune_jit.jit(function, fallback="error")
    for top in (1, 7, 5, 11):
        i = np.arange(top)
        i = np.resize(i, 11)
        assert_matches(jitted(i), function(i))
    assert jitted.cache_info().misses == 2


def test_lengths_that_never_stay_the_same():
    jitted = rune_jit.jit(np.bincount)
    i = np.array([0, 4, 1])
    for more in range(12):
        assert_matches(jitted(i + more), np.bincount(i + more))
    assert "each size that data may have" in jitted.explain()
    strict = rune_jit.jit(np.bincount, fallback="error")
    with pytest.raises(ConcretizationError, match="minlength"):
        for more in range(12):
            strict(i + more)


def test_a_program_has_few_lengths_that_data_decide():
    """The program so far was compiled and run for each of them."""

    def counts(rows):
        table = np.zeros((len(rows), 4), int)
        for i, row in enumerate(rows):
            found = np.bincount(row)
            table[i, : len(found)] = found
        return table

    f = rune_jit.jit(counts)
    for seed in range(3):
        rows = np.random.default_rng(seed).integers(0, 4, (20, 5))
        assert_matches(f(rows), counts(rows))
        info = f.cache_info()
        assert (info.misses, info.segmented) == (1, 1)


def test_few_lengths_at_one_place_are_computed(monkeypatch):
    """A loop asks for more of them, most often: what has been computed is then of no use."""
    computed = []
    assume = Trace.assume
    monkeypatch.setattr(Trace, "assume", lambda *args: computed.append(0) or assume(*args))

    def most_frequent(rows):
        found = np.zeros(len(rows))
        for i in range(len(rows)):
            found[i] = np.argmax(np.bincount(rows[i]))
        return found

    f = rune_jit.jit(most_frequent)
    rows = np.random.default_rng(0).integers(0, 9, (40, 5))
    for _ in range(2):
        assert_matches(f(rows), most_frequent(rows))
    assert len(computed) <= 16


def test_captured_arrays_are_counted_as_they_are_now():
    places = np.array([0, 2, 2])
    jitted = rune_jit.jit(lambda w: np.bincount(places, w), fallback="error")
    w = np.arange(3.0)
    for place in (1, 5, 5):
        places[0] = place
        assert_matches(jitted(w), np.bincount(places, w))


def test_errors_of_a_wrong_guess_are_not_raised():
    """minlength is less than what this data needs, and the function an error without it."""
    wide = np.arange(6.0).reshape(2, 3)

    def product(i, x):
        return x @ np.bincount(i, minlength=2)

    def write(i, x):
        counts = np.bincount(i, minlength=2)
        counts[[0, 1, 2]] = x[0]
        return counts

    for function in product, write:
        check(function, np.array([2, 0, 2]), wide)
    with pytest.raises(ValueError, match="matmul"):
        rune_jit.jit(product)(np.array([1, 0, 1]), wide)


# Histograms.


def data(dtype):
    if np.dtype(dtype).kind == "f":
        x = RNG.standard_normal(1201)
        x[::3] = RNG.integers(0, 40, x[::3].size) / 10  # on edges
        return x.astype(dtype)
    return RNG.integers(0, 2 if dtype is bool else 120, 1201).astype(dtype)


@pytest.mark.skipif(not HAS_FLOAT64, reason="the device has no float64")
@pytest.mark.parametrize("dtype", ["d", "f", "e", "b", "B", "i", "l", "L", bool])
@pytest.mark.parametrize("device", devices("cpu"))
def test_histogram(dtype, device):
    def histograms(x, w):
        edges = [0, 1, 2.5, 4], np.array([-1, 0, 0, 3], np.float32), [-np.inf, 1, np.nan], [7, 7]
        return (
            np.histogram(x), np.histogram(x, 37), np.histogram(x, 7, weights=w),
            *(np.histogram(x, 13, r) for r in [(0, 10), (0.1, 2.7), (3, 3), (-1, 1000)]),
            np.histogram(x, 5, (np.float32(0), np.float32(1.5)), density=True),
            *(np.histogram(x, e) for e in edges), np.histogram(x, [0, 2, 3, 9], density=True),
            np.histogram(x, 4, (0, 2), weights=x), np.histogram_bin_edges(x, 4),
        )  # fmt: skip

    check(histograms, data(dtype), RNG.integers(0, 9, 1201), device=device)


@pytest.mark.skipif(not HAS_FLOAT64, reason="the device has no float64")
@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_histogram_of_special_values(device):
    def in_range(x):
        return np.histogram(x, 4, (-1, 2)), np.histogram(x, 3, (0.0, 1e300))

    def between(x):
        return [np.histogram(x, e) for e in ([0, 1, 2], [-np.inf, 0, np.inf], [0.0, 1, np.nan])]

    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, 2, 0.5, 5e-324, 1e30])
    for values in (x, x.astype(np.float32)):
        check(in_range, values, device=device)
        check(between, values, device=device)


@pytest.mark.parametrize(
    "x",
    [
        [np.nan, 1.0], [np.inf, 1.0], [1e16, 1e16], [5.0, 5.0], np.full(2, 2.0**24, np.float32),
        [2**62, -(2**62), 0], np.array([-128, 127], np.int8), [1, 1 + 2.0**-52], [], 3.0,
    ],
    ids=str,
)  # fmt: skip
def test_ranges_of_data(x):
    for bins in (1, 3, 10):
        check(lambda x, bins=bins: np.histogram(x, bins), np.asarray(x))


def test_what_histogram_takes():
    x = np.arange(6.0)
    for arguments in ((0,), (2.5,), ([2.0],), ([3, 1],), ([[1]],), (3, (2, 1)), (3, (0, np.inf))):
        check(lambda x, arguments=arguments: np.histogram(x, *arguments), x)
    check(lambda x, e: np.histogram(x, e), x, np.array([0.0, 3, 1]))
    check(lambda x, w: np.histogram(x, 3, weights=w), x, x[1:])
    check(lambda x, high: np.histogram(x, 3, (0, high)), x, 4.0)
    check(lambda x, w: np.histogram(x, [0, 2, 4], weights=w), x, x * np.nan)


def test_long_histograms_share_the_work_and_find_places_in_vectors():
    x = RNG.random(300_000)
    jitted = rune_jit.jit(lambda x: np.histogram(x, 100, (0, 1))[0], fallback="error")
    np.testing.assert_array_equal(jitted(x), np.histogram(x, 100, (0, 1))[0])
    kernels = jitted.lower(x).explain()
    assert "item 0: map_0" in kernels and "item 1: scatter_1" in kernels
    assert "calls" not in kernels


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_counts_of_many(count):
    i = RNG.integers(0, count, 40_000)
    i[:count] = np.arange(count)
    check(lambda i: np.bincount(i, minlength=count), i)
    check(lambda i, w: np.bincount(i, w), i, np.ones(i.size))
