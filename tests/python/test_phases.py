"""Contractions and row reductions that run as phases of one kernel, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

_rng = np.random.default_rng(11)


def _normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _rng.standard_normal(shape).astype(dtype)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = q @ np.swapaxes(k, -1, -2) * q.dtype.type(0.125)
    if mask is not None:
        scores = scores + mask
    return softmax(scores) @ v


def layer_norm(x: Any, w: Any) -> Any:
    y = x @ w
    centred = y - np.mean(y, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


_causal = np.where(np.tri(200, 200, dtype=bool), 0, -np.inf).astype(np.float32)
_special = _normal(3, 200, 64)
_special[0, 5], _special[1, 7, 3], _special[2, 199, 0] = np.nan, np.inf, -np.inf
_masked_row = np.where(np.arange(200)[:, None] == 17, -np.inf, _causal).astype(np.float32)


def _qkv(*sizes: int, dtype: Any = np.float32) -> tuple[np.ndarray, ...]:
    batch, rows, keys, depth, columns = sizes
    return (
        _normal(batch, rows, depth, dtype=dtype),
        _normal(batch, keys, depth, dtype=dtype),
        _normal(batch, keys, columns, dtype=dtype),
    )


# Function, arguments, phases (unless that depends on the cache): rows and keys that are multiples
# of no tile, one batch and several.
CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], int | None]] = {
    "attention": (attention, _qkv(4, 130, 257, 64, 96), 3),
    "float64": (attention, _qkv(4, 150, 150, 64, 64, dtype=np.float64), 3),
    "one head": (attention, tuple(_normal(1030, 64) for _ in range(3)), 3),
    "several batch axes": (attention, tuple(_normal(2, 3, 180, 64) for _ in range(3)), 3),
    "causal mask": (attention, (*_qkv(3, 200, 200, 64, 64), _causal), 3),
    "masked row": (attention, (*_qkv(3, 200, 200, 64, 64), _masked_row), 3),
    "special values": (attention, (_special, _normal(3, 200, 64), _normal(3, 200, 64)), 3),
    "one array": (lambda x: attention(x, x, x), (_normal(4, 200, 64),), 3),
    "long rows": (attention, _qkv(4, 150, 4096, 64, 64), None),
    "layer norm of a product": (layer_norm, (_normal(600, 80), _normal(80, 300)), 2),
    "columns reduced": (
        lambda a, b: np.sum(np.tanh(a @ b), axis=0),
        (_normal(600, 64), _normal(64, 300)),
        2,
    ),
    "short sums": (
        lambda a, b: np.min(a @ b.T, axis=1),
        (_normal(30_001, 5), _normal(17, 5)),
        2,
    ),
    "two products": (
        lambda a, b, c: np.tanh(a @ b / 8) @ c / 8,
        (_normal(3000, 64), _normal(64, 300), _normal(300, 70)),
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_phases(name: str) -> None:
    function, arguments, phases = CASES[name]
    compiled = rune_jit.jit(function, device="cpu", fallback="error")
    schedule = str(compiled.lower(*arguments).schedule)
    if phases:
        assert schedule.count("phase {") == phases
        assert len(re.findall(r"item \d+ launch", schedule)) == 1
    with np.errstate(invalid="ignore"):
        expected = function(*(a.astype(np.float64) for a in arguments))
    actual = compiled(*arguments)
    exact = arguments[0].dtype == np.float64
    np.testing.assert_allclose(
        actual, expected, rtol=1e-12 if exact else 1e-5, atol=1e-14 if exact else 1e-5
    )


def test_no_score_is_stored() -> None:
    """Bytes and peak memory count inputs and outputs only; `explain` shows phases and reason."""
    q, k, v = _qkv(4, 512, 512, 64, 64)
    lowered = rune_jit.jit(attention, device="cpu").lower(q, k, v)
    assert "arena_bytes=0" in str(lowered.schedule)
    assert f"bytes_read={3 * q.nbytes} bytes_written={q.nbytes}" in str(lowered.schedule)
    text = lowered.explain()
    assert "1 kernels" in text
    assert "phase_2" in text
    assert "stays in cache" in text


def test_values_in_between_that_are_needed_elsewhere_are_stored() -> None:
    a, b = _normal(300, 64), _normal(64, 300)
    product, largest = rune_jit.jit(lambda a, b: (a @ b, np.max(a @ b, axis=1)))(a, b)
    np.testing.assert_allclose(product, a @ b, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(largest, np.max(product, axis=1))


def test_the_nearest_centres_are_found_without_storing_distances() -> None:
    x, centres = _normal(20_000, 8), _normal(16, 8)
    x[7, 3], x[11, 0], x[12] = np.nan, np.inf, -0.0

    def nearest(x: Any, centres: Any) -> Any:
        squares = np.sum(x * x, axis=1)[:, None] + np.sum(centres * centres, axis=1)
        distances = squares - 2 * (x @ centres.T)
        return np.argmin(distances, axis=1), np.min(distances, axis=1)

    compiled = rune_jit.jit(nearest, device="cpu", fallback="error")
    costs = compiled.lower(x, centres).cost_analysis()
    assert costs["kernels"] == 2  # one sums the squares of the centres
    least = x.nbytes + 12 * len(x)
    assert costs["bytes_read"] + costs["bytes_written"] <= 1.1 * least
    with np.errstate(invalid="ignore"):
        first, expected = nearest(x.astype(np.float64), centres.astype(np.float64))
        index, distance = compiled(x, centres)
        all_distances = ((x[:, None].astype(np.float64) - centres) ** 2).sum(-1)
    np.testing.assert_allclose(distance, expected, rtol=1e-4, atol=1e-4)
    assert index.dtype == np.int64
    np.testing.assert_array_equal(index[[7, 11]], first[[7, 11]])  # the first NaN
    rows = np.delete(np.arange(len(x)), [7, 11])
    np.testing.assert_allclose(
        all_distances[rows, index[rows]], np.min(all_distances[rows], axis=1), rtol=1e-3, atol=1e-3
    )
