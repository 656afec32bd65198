"""The algorithms of NumPy's and Python's random generators, for compiled loops (streams.py). A
sampler takes words that a generator has made, and returns the number that the generator would make
of them.

`words` are 64-bit words of a bit generator (`pcg`), or 32-bit words of a Mersenne twister (`mt`).
`at[0]` is the position of the next word. `at[1]` tells whether `held` holds an unused rest.

Sources: Lemire, "Fast random integer generation in an interval" (2019); Marsaglia and Tsang, "The
ziggurat method" (2000); Marsaglia and Bray's polar method (1964)."""

from __future__ import annotations

from typing import Any

import numpy as np

# The tables of the ziggurat: the widths of the layers, divided by 2^52; the distance below which a
# layer surely lies under the curve; and the height of the curve at each layer. streams.py fills
# them.
widths: Any = np.zeros(256)
inside: Any = np.zeros(256, np.int64)
heights: Any = np.zeros(256)


def _word(words: Any, at: Any) -> Any:
    position = at[0]
    at[0] = position + 1
    # (If there are too few words, the caller begins again with more.)
    return words[position % len(words)]


def _interval(low: Any, high: Any) -> Any:
    """The first integer of an interval, and the number of its integers."""
    first, count = (0, low) if high is None else (low, high - low)
    if count < 1 or count > 0xFFFFFFFF:
        raise ValueError("low >= high, or too many integers")
    return first, count


# np.random.Generator with a bit generator of 64-bit words.


def _pcg_half(words: Any, at: Any, held: Any) -> Any:
    """32 bits: the lower half of a word, and at the next call its upper half."""
    if at[1] == 1:
        at[1] = 0
        return held[0]
    word = _word(words, at)
    at[1] = 1
    held[0] = word >> np.uint64(32)
    return word & np.uint64(0xFFFFFFFF)


def pcg_random(words: Any, at: Any, held: Any) -> Any:
    return float(_word(words, at) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


def pcg_uniform(words: Any, at: Any, held: Any, low: Any = 0.0, high: Any = 1.0) -> Any:
    if high < low:
        raise ValueError("high < low")
    return float(low) + (float(high) - float(low)) * pcg_random(words, at, held)


def _pcg_below(words: Any, at: Any, held: Any, count: Any) -> Any:
    product = _pcg_half(words, at, held) * np.uint64(count)
    left = product & np.uint64(0xFFFFFFFF)
    if left < np.uint64(count):
        least = np.uint64(0x100000000 - count) % np.uint64(count)
        while left < least:
            product = _pcg_half(words, at, held) * np.uint64(count)
            left = product & np.uint64(0xFFFFFFFF)
    return np.int64(product >> np.uint64(32))


def pcg_integers(words: Any, at: Any, held: Any, low: Any, high: Any = None) -> Any:
    first, count = _interval(low, high)
    if count == 1:
        return np.int64(first)
    return np.int64(first) + _pcg_below(words, at, held, count)


def pcg_standard_normal(words: Any, at: Any, held: Any) -> Any:
    value, done = 0.0, False
    while not done:
        word = _word(words, at)
        layer = np.int64(word & np.uint64(0xFF))
        distance = np.int64((word >> np.uint64(9)) & np.uint64(0xFFFFFFFFFFFFF))
        value = float(distance) * float(widths[layer])
        if distance < inside[layer]:
            done = True
        elif layer == 0:
            tail, depth = 0.0, 0.0
            while depth + depth <= tail * tail:
                tail = -0.27366123732975828 * np.log1p(-pcg_random(words, at, held))
                depth = -np.log1p(-pcg_random(words, at, held))
            value, done = 3.6541528853610088 + tail, True
            # The sign is another bit here.
            word = np.uint64((distance >> 8) & 1) << np.uint64(8)
        else:
            height = heights[layer - 1] - heights[layer]
            height = height * pcg_random(words, at, held) + heights[layer]
            done = bool(height < np.exp(-0.5 * value * value))
        if (word >> np.uint64(8)) & np.uint64(1) == 1:
            value = -value
    return float(value)


def pcg_normal(words: Any, at: Any, held: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    if scale < 0:
        raise ValueError("scale < 0")
    return float(loc) + float(scale) * pcg_standard_normal(words, at, held)


# np.random.RandomState and random.Random with a Mersenne twister.


def mt_random(words: Any, at: Any, held: Any) -> Any:
    upper = float(_word(words, at) >> np.uint64(5))
    lower = float(_word(words, at) >> np.uint64(6))
    return (upper * 67108864.0 + lower) / 9007199254740992.0


def mt_uniform(words: Any, at: Any, held: Any, low: Any = 0.0, high: Any = 1.0) -> Any:
    return float(low) + (float(high) - float(low)) * mt_random(words, at, held)


def mt_randint(words: Any, at: Any, held: Any, low: Any, high: Any = None) -> Any:
    first, count = _interval(low, high)
    mask = np.uint64(count - 1)
    for shift in (1, 2, 4, 8, 16):
        mask = mask | (mask >> np.uint64(shift))
    value = np.uint64(0)
    if count > 1:
        value = _word(words, at) & mask
        while value >= np.uint64(count):
            value = _word(words, at) & mask
    return int(first + np.int64(value))


def mt_standard_normal(words: Any, at: Any, held: Any) -> Any:
    """Makes pairs of numbers. If at[1] is 1, the second number can be made from `held`. If at[1] is
    2, `held` holds the second number itself."""
    if at[1] == 2:
        at[1] = 0
        return float(held[0])
    if at[1] == 1:
        at[1] = 0
        return float(np.sqrt(-2.0 * np.log(held[1]) / held[1]) * held[0])
    first, second, square = 0.0, 0.0, 2.0
    while square >= 1.0 or square == 0.0:
        first = 2.0 * mt_random(words, at, held) - 1.0
        second = 2.0 * mt_random(words, at, held) - 1.0
        square = first * first + second * second
    at[1] = 1
    held[0] = first
    held[1] = square
    return float(np.sqrt(-2.0 * np.log(square) / square) * second)


def mt_normal(words: Any, at: Any, held: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    if scale < 0:
        raise ValueError("scale < 0")
    return float(loc) + float(scale) * mt_standard_normal(words, at, held)


def python_uniform(words: Any, at: Any, held: Any, a: Any, b: Any) -> Any:
    return a + (b - a) * mt_random(words, at, held)


def python_randint(words: Any, at: Any, held: Any, a: Any, b: Any) -> Any:
    return python_randrange(words, at, held, a, b + 1)


def python_randrange(words: Any, at: Any, held: Any, start: Any, stop: Any = None) -> Any:
    first, count = _interval(start, stop)
    return first + _python_below(words, at, held, count)


def _python_below(words: Any, at: Any, held: Any, count: Any) -> Any:
    _, rest = _interval(0, count)
    shift = 32
    while rest > 0:
        shift, rest = shift - 1, rest // 2
    value = _word(words, at) >> np.uint64(shift)
    while value >= np.uint64(count):
        value = _word(words, at) >> np.uint64(shift)
    return int(np.int64(value))


def pcg_choice(words: Any, at: Any, held: Any, a: Any) -> Any:
    if np.ndim(a) == 0:
        return int(pcg_integers(words, at, held, a))
    return _only_axis(a)[pcg_integers(words, at, held, len(a))]


def mt_choice(words: Any, at: Any, held: Any, a: Any) -> Any:
    if np.ndim(a) == 0:
        return mt_randint(words, at, held, a)
    return _only_axis(a)[mt_randint(words, at, held, len(a))]


def _only_axis(a: Any) -> Any:
    if np.ndim(a) > 1:
        raise ValueError("a row is chosen of several")
    return np.asarray(a)


def python_choice(words: Any, at: Any, held: Any, seq: Any) -> Any:
    return seq[_python_below(words, at, held, len(seq))]


def fill(sampler: Any, words: Any, numbers: Any, args: Any, kwargs: Any) -> None:
    """Fills an array with numbers of a sampler, one after the other."""
    for i in range(len(numbers)):
        numbers[i] = sampler(*words, *args, **kwargs)
