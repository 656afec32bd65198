"""Python integers that a program computes meet narrower dtypes: a call raises where NumPy does."""

import numpy as np
import pytest
from compare import assert_matches

import rune_jit


def sign(x):
    if x > 2:
        return 1
    if x < 2:
        return -1
    return 0


def used(b):
    x = b[0]
    for k in range(len(b)):
        x = x + sign(b[k])
    return x


def unused(b):
    t, w = b[0], b.copy()
    for k in range(len(b)):
        w[k] += 1
        x = t + sign(b[k])  # noqa: F841
    return w


@pytest.mark.parametrize("function", [used, unused])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64])
@pytest.mark.parametrize("values", [[3, 3, 4, 3], [3, 2, 5, 3], [3, 1, 4, 3]])
def test_they_are_checked(function, dtype, values):
    x = np.array(values, dtype)
    jitted = rune_jit.jit(function)
    for _ in range(2):
        try:
            want = function(x)
        except OverflowError as error:
            with pytest.raises(OverflowError) as raised:
                jitted(x)
            assert str(raised.value) == str(error)
        else:
            assert_matches(jitted(x), want)
            assert "as one program" in jitted.explain()
