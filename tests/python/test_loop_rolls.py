"""np.roll by counters of loops and by integers that data decide."""

import numpy as np
from compare import assert_matches

import rune_jit


def test_rolls_by_counters_and_by_data():
    def sheared(x, by):
        total = np.zeros(x.shape[1])
        for i in range(x.shape[1]):
            x[:, i] = np.roll(x[:, i], -i)
            total += np.roll(x, by[i], axis=0)[i]
        return x, total, np.roll(x, by[0]), np.roll(x, by[1], axis=(0, 1))

    for dtype in (np.int64, np.uint8):
        jitted = rune_jit.jit(sheared, fallback="error")
        for by in ([2, 7, 0, 1, 9], [0, 100, 3, 255, 1]):
            ours, theirs = np.arange(30.0).reshape(6, 5), np.arange(30.0).reshape(6, 5)
            shifts = np.array(by).astype(dtype)
            assert_matches(jitted(ours, shifts), sheared(theirs, shifts))
        assert "is a loop of the program" in jitted.explain()


def test_rolls_by_integers_that_wrap():
    def rolled(x, by):
        return np.roll(x, -by[0])

    x, by = np.arange(7), np.array([2], np.uint64)
    with np.errstate(over="ignore"):
        assert_matches(rune_jit.jit(rolled)(x, by), rolled(x, by))
