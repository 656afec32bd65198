"""Random numbers: known answers, determinism, ranges and moments."""

from __future__ import annotations

import numpy as np
import pytest

import rune_jit
from rune_jit import ir, random

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
    inside = rune_jit.jit(lambda k, x: random.permutation(k, x), fallback="silent")(KEY, rows)
    np.testing.assert_array_equal(inside, random.permutation(KEY, rows))
    counts = np.zeros((3, 3), int)
    for k in random.split(KEY, 600):
        counts[np.arange(3), random.permutation(k, 3)] += 1
    assert abs(counts - 200).max() < 60


def test_fold_in() -> None:
    folded = np.array([random.fold_in(KEY, i) for i in range(100)])
    assert folded.dtype == np.uint32 and folded.shape == (100, 2)
    assert (
        len({tuple(k) for k in folded.tolist()} | {tuple(k) for k in random.split(KEY, 100)}) == 200
    )
    # The cipher of (0, 2) under the key 0, by the definition in Salmon et al.
    np.testing.assert_array_equal(random.fold_in(random.key(0), 0), cipher(0, 0, 0, 2))
    np.testing.assert_array_equal(
        random.fold_in(KEY, 2**32 - 1), cipher(*KEY.tolist(), 2**32 - 1, 2)
    )
    inside = rune_jit.jit(lambda k, i: random.fold_in(k, i), fallback="error")(KEY, 7)
    np.testing.assert_array_equal(inside, folded[7])
    with pytest.raises(ValueError, match="cannot fold -1"):
        random.fold_in(KEY, -1)


def cipher(k0: int, k1: int, x: int, y: int) -> list[int]:
    """Threefry2x32-20 in Python's integers."""
    mask = 2**32 - 1
    keys = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    x, y = (x + k0) & mask, (y + k1) & mask
    for i in range(20):
        r = (13, 15, 26, 6, 17, 29, 16, 24)[i % 8]
        x = (x + y) & mask
        y = (((y << r) | (y >> (32 - r))) & mask) ^ x
        if i % 4 == 3:
            n = i // 4 + 1
            x, y = (x + keys[n % 3]) & mask, (y + keys[(n + 1) % 3] + n) & mask
    return [x, y]


def test_cipher_has_the_known_answers() -> None:
    """Random123's kat_vectors for threefry2x32 with 20 rounds."""
    ones = 2**32 - 1
    assert cipher(0, 0, 0, 0) == [0x6B200159, 0x99BA4EFE]
    assert cipher(ones, ones, ones, ones) == [0x1CB996FC, 0xBB002BE7]
    assert cipher(0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3) == [0xC4923A9C, 0x483DF7A0]


def test_exponential_and_choice() -> None:
    x = random.exponential(KEY, N, np.float64)
    assert x.min() >= 0 and abs(x.mean() - 1) < 0.015 and abs((x > 1).mean() - np.exp(-1)) < 0.006
    rows = np.arange(10) * 10
    assert abs(np.bincount(random.choice(KEY, rows, N) // 10) - N / 10).max() < 500
    some = random.choice(KEY, 10, (2, 3), replace=False)
    assert some.shape == (2, 3) and len(set(some.ravel().tolist())) == 6
    p = np.array([0, 1, 0, 3, 0])
    counts = np.bincount(random.choice(KEY, 5, N, p=p), minlength=5) / N
    np.testing.assert_allclose(counts, p / 4, atol=0.006)
    assert random.bernoulli(KEY, np.array([0.0, 1.0])).tolist() == [False, True]
    with pytest.raises(ValueError, match="choose 11 of 10"):
        random.choice(KEY, 10, 11, replace=False)


def test_arrays() -> None:
    k = random.key(5, device="cpu")
    plain = random.key(5)
    assert type(plain) is np.ndarray and type(k) is rune_jit.Array
    pairs = [
        (random.normal(k, (2, 3)), random.normal(plain, (2, 3))),
        (random.split(k, 3)[1], random.split(plain, 3)[1]),
        (random.permutation(k, 5), random.permutation(plain, 5)),
        (random.bernoulli(k, 0.5, 9), random.bernoulli(plain, 0.5, 9)),
        (random.choice(k, k, 3), random.choice(plain, plain, 3)),
        (random.fold_in(k, 3), random.fold_in(plain, 3)),
        (random.randint(k, 0, 9, 4), random.randint(plain, 0, 9, 4)),
        (random.uniform(k, 2, low=3, high=4), random.uniform(plain, 2, low=3, high=4)),
    ]
    for array, expected in pairs:
        assert type(array) is rune_jit.Array and array.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(array), expected)


def test_errors() -> None:
    with pytest.raises(TypeError, match="as a key"):
        random.bits(np.zeros(2), 3)
    with pytest.raises(TypeError, match="cannot draw int32"):
        random.uniform(KEY, 3, np.int32)
    with pytest.raises(ValueError, match="cannot draw int8 from"):
        random.randint(KEY, 0, 1000, 3, np.int8)
