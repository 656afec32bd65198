"""Loops that need the length of slices x[s : s + w] whose bounds data decide."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest
from compare import assert_same
from loop_checks import both, rolled

import rune_jit


def _frames(x, starts, window):
    frames = np.zeros((len(starts), len(window)))
    for i in range(len(starts)):
        s = starts[i]
        frames[i] = (x[s : s + len(window)] - 0.5) * window
    return frames


def _correlations(x, starts, window):
    found = np.zeros(len(starts))
    for i in range(len(starts)):
        found[i] = x[starts[i] : starts[i] + len(window)] @ window
    return found


def _medians(x, starts, window):
    found = np.zeros(len(starts))
    for i in range(len(starts)):
        found[i] = np.median(x[starts[i] - 2 : 3 + starts[i]])
    return found


def _distances(x, starts, window):
    found = np.zeros((len(starts), 8))
    for i in range(len(starts)):
        s = starts[i]
        for k in range(8):
            found[i, k] = np.sum((x[s : s + 6] - x[s + starts[k] : s + starts[k] + 6]) ** 2)
    return found


def _overlap_add(x, starts, window):
    y, weights = np.zeros_like(x), np.zeros_like(x)
    for s in starts:
        y[s : s + len(window)] += window * x[s : s + len(window)]
        weights[s : s + len(window)] += window
    return y / np.maximum(weights, 0.1)


def _epochs(x, starts, window):
    epochs = []
    for s in starts:
        epochs.append(x[s - 3 : s + 5])
    return np.array(epochs)


def _epochs_of_a_comprehension(x, starts, window):
    return np.array([x[s - 3 : s + 5] for s in starts])


def _rows(x, starts, window):
    rows = x.reshape(-1, 2)
    found = np.zeros((len(starts), 6))
    for i in range(len(starts)):
        r = int(starts[i]) // 2
        found[i] = rows[r : r + 3].ravel()
    return found


def _average_of_whole(x, starts, window):
    total, count = np.zeros(20), 0
    for s in starts:
        if s - 10 < 0 or s + 10 > len(x):
            continue
        total += x[s - 10 : s + 10]
        count += 1
    return total / count


ALL = [
    _frames,
    _correlations,
    _medians,
    _distances,
    _overlap_add,
    _epochs,
    _epochs_of_a_comprehension,
    _rows,
    _average_of_whole,
]


def _arguments() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random(200), rng.integers(5, 90, 20), np.hanning(16)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_windows_are_loops_of_the_program(function):
    rolled(function, *_arguments(), ulps=64)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_windows_beyond_the_ends_are_as_in_numpy(function):
    """NumPy raises, broadcasts a single element, or computes with shorter slices."""
    x, starts, window = _arguments()
    jitted = rune_jit.jit(function)
    jitted(x, starts, window)
    for place in (1, 199, 195, 250, -4):
        starts[4] = place
        wanted, found = _outcome(function, x, starts, window), _outcome(jitted, x, starts, window)
        assert_same(found, wanted, ulps=64, scaled=True)


def _outcome(function: Any, *args: Any) -> Any:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*(np.copy(x) for x in args))
    except (ValueError, IndexError) as error:
        return str(error)


def test_a_step_that_is_numpys_integer():
    def frames(x, step):
        found = np.zeros((9, 16))
        for i in range(9):
            found[i] = x[i * step : i * step + 16]
        return found

    rolled(frames, np.arange(200.0), np.int64(20))


def _runs_in_python(function: Any, jitted: Any, *args: Any) -> bool:
    codes = set()
    sys.setprofile(lambda frame, event, _: codes.add(frame.f_code))
    try:
        jitted(*args)
    finally:
        sys.setprofile(None)
    return function.__code__ in codes


def test_python_runs_calls_with_shorter_slices_only_if_a_loop_needs_the_length():
    def means(x, starts, window):
        found = np.zeros(len(starts))
        for i in range(len(starts)):
            found[i] = x[starts[i] : starts[i] + 9].mean()
        return found

    x, starts, window = _arguments()
    shorter = np.append(starts[1:], 199)
    for function in (means, _medians):
        jitted = rune_jit.jit(function)
        for _ in range(2):
            jitted(x, starts, window)
        assert not _runs_in_python(function, jitted, x, starts, window)
        assert _runs_in_python(function, jitted, x, shorter, window) is (function is _medians)
        assert_same(jitted(x, shorter, window), function(x, shorter, window), ulps=8)


def test_windows_are_views():
    def doubled(x, starts, window):
        for s in starts:
            part = x[s : s + 16]
            part *= window
        return x[3]

    rolled(doubled, *_arguments())

    def views(x, starts):
        return [x[s : s + 16] for s in starts]

    x, starts, _ = _arguments()
    for _ in range(3):
        assert all(np.shares_memory(part, x) for part in rune_jit.jit(views)(x, starts))


def test_a_loop_that_is_refused_for_another_reason():
    def texts(x, starts, window):
        found = np.zeros(len(starts))
        for i in range(len(starts)):
            found[i] = len(str(x[starts[i] : starts[i] + 3]))
        return found

    both(texts, *_arguments())
