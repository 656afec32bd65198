"""Python integers that loops compute from iteration to iteration: loops of the program have 64 bits
for them, Python has as many as it needs."""

import numpy as np
import pytest
from compare import assert_matches

import rune_jit


def crc16(data, poly=0x8408):
    crc = 0xFFFF
    for b in data:
        byte = 0xFF & b
        for _ in range(0, 8):
            if (crc & 1) ^ (byte & 1):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            byte >>= 1
    crc = ~crc & 0xFFFF
    return ((crc << 8) | ((crc >> 8) & 0xFF)) & 0xFFFF


def shift_register(data):
    bits = 0x1D0F
    for i in range(data.shape[0]):
        for _ in range(8):
            top = bits & 0x8000
            bits = (bits << 1) & 0xFFFF
            if top:
                bits ^= 0x1021
        if data[i] > 100:
            bits ^= 0x55
    return bits


def count(data):
    above = steps = 0
    for i in range(data.shape[0]):
        for j in range(i):
            if data[i] > data[j]:
                above += 1
                steps = steps + 2 if above % 2 == 0 else steps - 1
    return above, steps


def congruential(data):
    state = 12345
    out = np.zeros(data.shape[0])
    for i in range(data.shape[0]):
        state = (state * 1103515245 + 12345) % 2147483648
        out[i] = state / 2147483648
    return out


def gray_codes(data):
    out = np.zeros(data.size, dtype=np.int64)
    for i in range(data.size):
        out[i] = i ^ (i >> 1)
    return out


def triangular(data):
    total, last = 0, -7
    for i in range(data.size):
        if data[i] % 2:
            last = total // 3 - i
        total += i * i
    return total, last, abs(last)


DATA = np.random.default_rng(0).integers(0, 256, 90, dtype=np.uint8)


@pytest.mark.parametrize(
    "function", [crc16, shift_register, count, congruential, gray_codes, triangular]
)
def test_bounded_integers_are_carried(function):
    jitted = rune_jit.jit(function)
    assert_matches(jitted(DATA), function(DATA))
    assert_matches(jitted(DATA[::-1]), function(DATA[::-1]))
    assert "runs all iterations" not in jitted.explain()
    assert jitted.explain().count("is a loop of the program") == (
        2 if function in (crc16, shift_register, count) else 1
    )


def doubled(data):
    n = 1
    for i in range(data.shape[0]):
        if data[i] >= 0:
            n = n * 2
    return n % 1000003


def shifted_out(data):
    n = 1
    for i in range(data.shape[0]):
        n = (n << 40) % (2**61 - 1) + int(data[i] >= 0)
    return n


def fibonacci(data):
    a, b = 0, 1
    for i in range(data.shape[0]):
        if data[i] >= 0:
            a, b = b, a + b
    return a % 10007


def inner(data):
    n = 1
    for i in range(data.shape[0]):
        m = n
        for j in range(i):
            if data[j] >= 0:
                m = m + n
        n = m
    return n % 10007


def wide_product(data):
    x = 1
    out = np.zeros(data.shape[0])
    for i in range(data.shape[0]):
        if data[i] >= 0:
            x = (x * 6364136223846793005 + 1442695040888963407) % 2**62
        out[i] = x % 1000
    return out


@pytest.mark.parametrize("function", [doubled, shifted_out, fibonacci, inner, wide_product])
def test_integers_that_may_exceed_64_bits_are_pythons(function):
    jitted = rune_jit.jit(function)
    assert_matches(jitted(DATA), function(DATA))


def test_the_reason_names_the_integer():
    jitted = rune_jit.jit(wide_product)
    jitted(DATA)
    assert "x is a Python integer of unknown size" in jitted.explain()


def test_an_index_that_an_operator_bounds_needs_no_check():
    def buckets(x):
        out = np.zeros(16, dtype=np.int64)
        state = 1
        for _ in range(x.shape[0]):
            state = (state * 75 + 74) % 65537
            out[state & 15] += 1
        return out

    assert_matches(rune_jit.jit(buckets)(DATA), buckets(DATA))
