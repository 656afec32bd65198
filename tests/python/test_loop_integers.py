"""Python integers that loops compute from iteration to iteration: loops of the program have 64 bits
for them, Python has as many as it needs."""

import bisect
import math

import numpy as np
import pytest
from compare import assert_matches, assert_same
from loop_checks import both, rolled

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
    assert "is unrolled" not in jitted.explain()
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


WIDE = DATA.astype(np.int64)


def product_of_arguments(x, n):
    out = np.zeros(x.shape[0], dtype=np.int64)
    for i in range(x.shape[0]):
        out[i] = (n * n * n * n) % 1000 + x[i]
    return out


def position_of_a_product(x, n):
    out = np.zeros(60)
    for i in range(x.shape[0]):
        out[(int(x[i]) * n * n * n * n) % 60] += 1
    return out


def shifted_by_data(x, n):
    total = 0.0
    for i in range(x.shape[0]):
        total += (n << int(x[i]) % 50) % 1001
    return total


def powers_of_counters(x, n):
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] / 4**j + float(x[j]) * n ** (j % 3) + (-1) ** j + 2**-j + 1.5**j
    return total


def powers_of_data(x, n):
    total = 0
    for j in range(x.shape[0]):
        total += int(x[j]) ** (j % 7) % 1009 + n ** int(x[j] % 4) % 7
    return total


def factorials(x, n):
    f, total = n, 0.0
    for i in range(1, 16):
        f *= i
        total += x[i] / f + f % 10
    return total


def counted_cubes(x, n):
    count = n
    for i in range(x.shape[0]):
        if x[i] > 100:
            count += n
    return count * count * count * count % 1003


@pytest.mark.parametrize(
    "function",
    [
        product_of_arguments,
        position_of_a_product,
        shifted_by_data,
        powers_of_counters,
        powers_of_data,
        factorials,
        counted_cubes,
    ],
)
@pytest.mark.parametrize("n", [1, 3, -7, 70_000, 2**40])
def test_computed_integers_grow_as_pythons(function, n):
    jitted = rune_jit.jit(function)
    for _ in range(2):
        assert_matches(jitted(WIDE, n), function(WIDE, n))


@pytest.mark.parametrize("function", [product_of_arguments, shifted_by_data, powers_of_data])
def test_computed_integers_that_may_exceed_64_bits_are_checked(function):
    jitted = rune_jit.jit(function)
    assert_matches(jitted(WIDE, 3), function(WIDE, 3))
    assert "is a loop of the program" in jitted.explain()
    assert_matches(jitted(WIDE, 80_000_000), function(WIDE, 80_000_000))


def test_a_power_that_may_be_negative_is_checked():
    def powers(x, exponents):
        total = 0.0
        for i in range(x.shape[0]):
            total += float(3 ** int(exponents[i])) + x[i]
        return total

    jitted, exponents = rune_jit.jit(powers), np.arange(90) % 20
    assert_matches(jitted(WIDE, exponents), powers(WIDE, exponents))
    assert "is a loop of the program" in jitted.explain()
    for other in (-exponents, exponents + 40, exponents):
        assert_matches(jitted(WIDE, other), powers(WIDE, other))


def hough(xs, ys, n):
    votes = np.zeros((30, n), dtype=np.int64)
    for k in range(len(xs)):
        for a in range(30):
            angle = a * math.pi / 30
            d = round(xs[k] * math.cos(angle) + ys[k] * math.sin(angle))
            r = int(d) + n // 2
            if 0 <= r < n:
                votes[a, r] += 1
    return votes


def rounded(x):
    total, out = 0, np.zeros(len(x), dtype=np.int64)
    for i in range(len(x)):
        out[i] = round(x[i])
        total += round(float(x[i]) * 3)
        if round(x[i] * 0.5) == 1:
            total += 100
    return out, total


HALVES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 2**52 + 1.0, -0.0, 7.3])


def test_round_is_python_s():
    rolled(hough, *np.random.default_rng(0).normal(size=(2, 20)) * 9, 40)
    for dtype in (np.float64, np.float32):
        rolled(rounded, HALVES[HALVES < 1e9].astype(dtype))
    both(rounded, HALVES)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_round_of_what_is_no_integer(value):
    x = HALVES.copy()
    x[4] = value
    with pytest.raises((ValueError, OverflowError)) as wanted:
        rounded(x)
    with pytest.raises(wanted.type, match=str(wanted.value)):
        rune_jit.jit(rounded)(x)


def test_round_of_large_numbers():
    both(rounded, np.where(HALVES == 7.3, 2.0**61, HALVES))


def test_round_to_digits():
    def f(x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = round(x[i], 1)
        return out

    both(f, HALVES)


def test_pythons_float_of_a_number_that_may_be_numpys() -> None:
    def f(x):
        s = 0.0
        for i in range(len(x)):
            value = 0.5
            if x[i] < 0.5:
                value = x[i] + 1
            s = 0.5 * s - float(value)
        return s

    rolled(f, np.random.default_rng(0).normal(size=40))


def test_greatest_common_divisors():
    def f(x, y):
        out, g, product = np.zeros(len(x), np.int64), 0, 1
        for i in range(len(x)):
            out[i] = math.gcd(int(x[i]), int(y[i]))
            g = math.gcd(g, x[i], 6)
            product = math.lcm(product, int(y[i])) % 1000
        return out, g, product

    jitted = rune_jit.jit(f)
    for seed in range(4):
        x, y = np.random.default_rng(seed).integers(-60, 60, (2, 40)) * (1 + seed)
        assert_same(jitted(x, y), f(x, y))
    assert "as one program" in jitted.explain()
    with pytest.raises(TypeError):
        jitted(x + 0.5, y)


def last_above(x, out, width):
    for i in range(len(x)):
        place = -1
        for j in range(i):
            if x[j] > 0.5:
                place = j
        out[i] = place


def back_pointers(x, out, width):
    for i in range(len(x)):
        place = 0
        for j in range(i - int(width[0]), i - 2 * int(width[0]) - 1, -1):
            if j < 0:
                break
            if x[j] > 0.5:
                place = j
        out[i] = place


def counters_of_data(x, out, width):
    for i in range(len(x)):
        for j in range(i - int(width[0]), i):
            out[i] = j


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
@pytest.mark.parametrize("function", [last_above, back_pointers, counters_of_data])
def test_elements_of_fewer_bits(function, dtype):
    """What an array cannot hold raises as in NumPy."""
    jitted = rune_jit.jit(function)
    for seed, size in enumerate((60, 60, 300, 60)):
        x = np.random.default_rng(seed).random(size)
        ours, theirs = np.zeros(size, dtype), np.zeros(size, dtype)
        try:
            function(x, theirs, np.array([10.0]))
        except OverflowError as error:
            with pytest.raises(OverflowError, match=str(error)):
                jitted(x, ours, np.array([10.0]))
        else:
            jitted(x, ours, np.array([10.0]))
        assert_same(ours, theirs)
    if dtype == "int32":
        assert jitted.explain().count("is unrolled") == 0
        assert jitted.explain().count("is a loop of the program") == 4


def test_bisect_in_a_loop() -> None:
    def f(x, y, q):
        out = np.zeros(len(q))
        for i in range(len(q)):
            k = min(max(bisect.bisect(x, q[i]) - 1, 0), len(x) - 2)
            out[i] = y[k] + bisect.bisect_left(x, q[i], 2, k + 2) + bisect.bisect_left(x, x[k])
        return out

    rng = np.random.default_rng(3)
    x = np.sort(rng.integers(0, 20, 30)).astype(float)
    rolled(f, x, rng.random(30), rng.integers(-2, 23, 50).astype(float))


def test_a_number_that_is_pythons_or_numpys_is_assigned_to_unsigned_integers() -> None:
    """Where it is Python's, NumPy raises if it is out of bounds; where it is NumPy's, it wraps."""

    def f(x):
        out, last = np.zeros(len(x), np.uint8), 0
        for i in range(len(x)):
            out[i] = last - 1
            if x[i] > 2:
                last = x[i]
        return out

    jitted = rune_jit.jit(f)
    with pytest.raises(OverflowError, match="-1 out of bounds for uint8"):
        jitted(np.array([3, 4, 1]))

    def g(x):
        out, last = np.zeros(len(x), np.uint8), 1
        for i in range(len(x)):
            out[i] = last - 1
            if x[i] < 0:
                last = x[i]
        return out

    rolled(g, np.array([3, -4, 1, -7, 2]))


def test_integers_of_more_than_64_bits_that_may_be_numpys() -> None:
    def program(a, b):
        total = 0
        c = np.multiply.outer(a, b)
        for i in range(a.shape[0] - 1):
            for _ in a:
                for _ in a:
                    total = total * 2 + i
                c[i - 1, i:, -1] += 2 * a[i][i:]
                if b[0] > total:
                    total = b[0]
        for i in range(a.shape[0] - 2, 0, -1):
            a[1:] -= a[:-1] * b[i]
        return total, a[1:]

    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 5, (6, 6)), np.array([0, 0, 3, 3, 2, 2])
    jitted = rune_jit.jit(program)
    for _ in range(3):
        assert_same(jitted(a.copy(), b), program(a.copy(), b))


def test_sums_of_more_than_64_bits_that_may_be_numpys() -> None:
    def doubled(a, b, count):
        s = 0
        for i in range(len(b)):
            if b[i] > 5:
                s = a[i] @ a[i]
        for _ in range(count):
            s += s + 1
        return s

    a, jitted = np.arange(20).reshape(4, 5), rune_jit.jit(doubled)
    for b, count in (([1, 3, 1, 3], 20), ([1, 3, 1, 3], 125), ([1, 9, 1, 3], 30)):
        got, expected = jitted(a, np.array(b), count), doubled(a, np.array(b), count)
        assert (type(got), got) == (type(expected), expected)
