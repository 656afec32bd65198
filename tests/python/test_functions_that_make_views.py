"""Functions that make views: these show what is written to the array afterwards, and results share
memory with arguments."""

from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from numpy.lib.stride_tricks import sliding_window_view

import rune_jit


def writes_to_an_argument(x: Any) -> Any:
    w = sliding_window_view(x, 3, axis=0)
    x[2] = 90.0
    return w.sum(axis=-1)


def writes_to_a_local_array(x: Any) -> Any:
    y = x * 2
    w = sliding_window_view(y, 3, axis=0)
    y[1:3] = 90.0
    return w, y


def of_two_axes(x: Any) -> Any:
    w = sliding_window_view(x, (2, 3))[::2, 1:]
    x[1] -= 5.0
    return w.max(axis=(-2, -1)), w.transpose(2, 0, 1, 3).reshape(-1) + 1


def in_segments(x: Any) -> Any:
    w = sliding_window_view(x, 2, axis=1)
    x[0] = float(x.sum())
    x[1] = w[0, 0, 0] + 1
    return w * 1


FUNCTIONS = (writes_to_an_argument, writes_to_a_local_array, of_two_axes, in_segments)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_writes_show_in_windows(function: Any) -> None:
    jitted = rune_jit.jit(function)
    for _ in range(3):
        mine, theirs = np.arange(24.0).reshape(6, 4), np.arange(24.0).reshape(6, 4)
        assert_matches(jitted(mine), function(theirs))
        assert_matches(mine, theirs)


def test_windows_as_results() -> None:
    x = np.arange(9.0)
    w = rune_jit.jit(lambda x: sliding_window_view(x, 4)[1:])(x)
    x[5] = 100.0
    np.testing.assert_array_equal(w, sliding_window_view(x, 4)[1:])
    assert not w.flags.writeable


def test_windows_are_read_only() -> None:
    def write(x: Any) -> None:
        sliding_window_view(x, 4)[0] = 1.0

    for function in (write, rune_jit.jit(write)):
        with pytest.raises(ValueError, match="read-only"):
            function(np.arange(9.0))


def test_astype_without_a_copy() -> None:
    """np.astype returns the array itself if its dtype is right."""

    def doubled(x: Any) -> Any:
        y = np.astype(x, float, copy=False)
        copied = np.astype(x, float)
        x[0] = 7.0
        return y * 2, copied

    for _ in range(2):
        mine, theirs = np.arange(3.0), np.arange(3.0)
        assert_matches(rune_jit.jit(doubled)(mine), doubled(theirs))
    x = np.arange(3.0)
    assert rune_jit.jit(lambda x: np.astype(x, float, copy=False))(x) is x


def test_the_first_power_of_a_matrix_is_the_matrix() -> None:
    first = rune_jit.jit(lambda x: np.linalg.matrix_power(x, 1))
    powers = rune_jit.jit(lambda x: [np.linalg.matrix_power(x, n) for n in (1, 2, -1)])
    for _ in range(3):
        x = np.array([[2.0, 1.0], [0.0, 4.0]])
        assert first(x) is x
        assert_matches(powers(x), [x, x @ x, np.linalg.inv(x)])
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        first(np.ones((2, 3)))
