"""Random numbers: known answers, determinism, ranges and moments."""

from __future__ import annotations

import numpy as np
import pytest

import rune_jit
from rune_jit import UnsupportedOpError, ir, random

KEY = random.key(0x13198A2E03707344)
N = 100_000


def test_bits_are_threefry() -> None:
    """The cipher of (i, 0), as the graph's node computes it (which has Random123's answers)."""
    counters = np.stack([np.arange(5), np.zeros(5)], 1).astype(np.uint32)
    b = ir.Builder()
    node = b.node("threefry", *(b.placeholder(np.uint32, (5, 2)) for _ in range(2)))
    program = ir.Program(b.finish(node), "interpreter")
    (expected,) = program.run(counters, np.tile(KEY, (5, 1)))
    np.testing.assert_array_equal(random.bits(KEY, 9), expected.T.ravel()[:9])
    wide = random.bits(KEY, (5,), np.uint64)
    np.testing.assert_array_equal(wide >> 32, expected[:, 0])
    np.testing.assert_array_equal(wide & 0xFFFFFFFF, expected[:, 1])
    zero = random.bits(random.key(0), 2)
    np.testing.assert_array_equal(zero, np.array([0x6B200159, 0x99BA4EFE], np.uint32))


def test_same_inside_jit() -> None:
    def draw(key):
        a, b = random.split(key, 2)
        return random.normal(a, (7,)), random.randint(b, -5, 5, (3, 4)), random.bits(key, (2, 3))

    inside = rune_jit.jit(draw, fallback="error")(KEY)
    for x, y in zip(inside, draw(KEY), strict=True):
        np.testing.assert_array_equal(x, y)


def test_keys_differ() -> None:
    keys = random.split(KEY, 1000)
    assert keys.shape == (1000, 2) and keys.dtype == np.uint32
    assert len({tuple(k) for k in keys.tolist()} | {tuple(KEY.tolist())}) == 1001
    assert not np.array_equal(random.bits(keys[0], 100), random.bits(keys[1], 100))
    np.testing.assert_array_equal(random.bits(KEY, 100), random.bits(KEY, 100))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform(dtype: str) -> None:
    x = random.uniform(KEY, N, dtype)
    assert x.dtype == dtype and x.min() >= 0 and x.max() < 1
    counts = np.histogram(x, 20, (0, 1))[0]
    assert ((counts - N / 20) ** 2 / (N / 20)).sum() < 50  # chi square, 19 degrees of freedom
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.015
    y = random.uniform(KEY, (3, 4), dtype, low=-2, high=6)
    assert y.shape == (3, 4) and y.min() >= -2 and y.max() < 6 and y.dtype == dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(dtype: str) -> None:
    x = random.normal(KEY, N, dtype)
    assert x.dtype == dtype and np.isfinite(x).all()
    x = x.astype(np.float64)
    assert abs(x.mean()) < 0.015 and abs(x.var() - 1) < 0.02
    assert abs((x**3).mean()) < 0.05 and abs((x**4).mean() - 3) < 0.15
    assert abs((np.abs(x) < 1).mean() - 0.6827) < 0.007


def test_randint_and_bernoulli() -> None:
    x = random.randint(KEY, -3, 4, N, np.int8)
    assert x.dtype == np.int8
    values, counts = np.unique(x, return_counts=True)
    assert values.tolist() == list(range(-3, 4)) and abs(counts - N / 7).max() < 600
    assert random.randint(KEY, 2**63, 2**64, 10, np.uint64).min() >= 2**63
    assert abs(random.bernoulli(KEY, 0.3, N).mean() - 0.3) < 0.007
    assert random.uniform(KEY).shape == () and random.bits(KEY, (0, 3)).shape == (0, 3)


def test_permutation() -> None:
    p = random.permutation(KEY, 1000)
    assert sorted(p.tolist()) == list(range(1000)) and p.tolist() != list(range(1000))
    rows = np.arange(12).reshape(6, 2)
    assert sorted(random.permutation(KEY, rows).tolist()) == rows.tolist()
    with pytest.raises(UnsupportedOpError, match=r"random\.permutation: cannot sort"):
        rune_jit.jit(lambda k: random.permutation(k, 3), fallback="error")(KEY)


def test_errors() -> None:
    with pytest.raises(TypeError, match="as a key"):
        random.bits(np.zeros(2), 3)
    with pytest.raises(TypeError, match="cannot draw int32"):
        random.uniform(KEY, 3, np.int32)
    with pytest.raises(ValueError, match="cannot draw int8 from"):
        random.randint(KEY, 0, 1000, 3, np.int8)
