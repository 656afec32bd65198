"""jit(dynamic=...): what one program computes for a range of sizes, against NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from compare import assert_same
from devices import HAS_FLOAT64, devices

import rune_jit
from rune_jit import Dim

DEVICES = devices("cpu", "interpreter")
SIZES = [1, 2, 3, 17, 1000, 1024]


def check(
    function: Callable[..., Any], make: Callable[..., Any], device: str, **options: Any
) -> None:
    """The function gives NumPy's results for all sizes, by one program."""
    options = {"dynamic": {0: {0: Dim("n", max=1024)}}, "fallback": "error", **options}
    jitted = rune_jit.jit(function, device=device, **options)
    for n in SIZES:
        arguments = make(n, np.random.default_rng(n))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's own, of 0 / 0
            expected = function(*arguments)
        try:
            results = jitted(*arguments)
        except rune_jit.DTypeError as error:
            if HAS_FLOAT64 or "float64" not in str(error):
                raise
            pytest.skip("the device has no float64")
        assert_same(results, expected, f"n={n}", 170, scaled=True)
        arrays = [r for r in optree.tree_leaves(results) if isinstance(r, np.ndarray)]
        assert all(r.flags.c_contiguous for r in arrays)
    info = jitted.cache_info()
    assert (info.misses, info.fallbacks, info.size) == (1, 0, 1)


def rows(n: int, rng: Any) -> list[np.ndarray]:
    return [rng.standard_normal((n, 4)).astype(np.float32)]


@pytest.mark.parametrize("device", DEVICES)
def test_elementwise_and_arrays_made(device: str) -> None:
    def f(x: Any) -> Any:
        n = x.shape[0]
        return (
            np.tanh(x) * 2 + x[:, :1],
            np.where(x > 0, x, -x)[:, 1:],
            np.zeros(x.shape),
            np.ones((n, 3), np.int8),
            np.full(n, x[:, 0].sum()),
            np.zeros_like(x) + np.arange(4, dtype=np.float32),
            np.arange(n) * 2,
            np.arange(n, dtype=np.float32) + x[:, 0],
            np.broadcast_to(np.float32(3), (n, 2)) * x[:, :2],
            x.reshape(n, 2, 2)[:, ::-1],
            x.reshape(-1, 2, 2).sum(1),
            np.stack([x, -x], 1),
            np.concatenate([x, x * 2], 1),
            x[:, None] * x[:, :, None],
            np.clip(x, -0.5, 0.5).astype(np.float64),
        )

    check(f, rows, device)


@pytest.mark.parametrize("device", DEVICES)
def test_reductions(device: str) -> None:
    """What is stored beyond a size is part of no reduction, whatever its neutral element."""

    def f(x: Any) -> Any:
        results: list[Any] = []
        for sign in (1, -1):
            y = x * sign + np.float32(sign) * 10  # all of one sign
            for axis in (None, 0, 1):
                results += [
                    y.max(axis),
                    y.min(axis),
                    y.sum(axis),
                    y.mean(axis),
                    y.var(axis),
                    (y / 10).prod(axis),
                    (y > 0).any(axis),
                    (y > 0).all(axis),
                ]
            results += [np.argmin(y, 0), np.argmax(y, 0), np.argmax(y, 1), np.argmax(y[:, 0])]
        exps = np.exp(x - x.max(0))
        results += [exps / exps.sum(0), x.std(0), x.std(ddof=1), x.var(0, ddof=0.5)]
        results += [np.cumsum(x, 0), np.maximum.accumulate(x, 0), np.count_nonzero(x > 0)]
        return results

    check(f, rows, device)


@pytest.mark.parametrize("device", DEVICES)
def test_size_as_a_number(device: str) -> None:
    def f(x: Any) -> Any:
        n = x.shape[0]
        assert n >= 1 and n > 0 and not n > 1024 and n != 1025 and n == x.shape[0] and n
        small = x[:, 0].astype(np.float16)
        return (
            x.sum() / n,
            x.astype(np.float64).sum(0) / np.sqrt(n),
            x * (n - 1) / (2 * n),
            n // 2 + 3,
            x.size,
            np.size(x, 0),
            small / n,
            x.shape,
            -n,
            n**2 % 7,
            (x.astype(np.int32) + n).sum(),
        )

    check(f, rows, device)


@pytest.mark.parametrize("device", DEVICES)
def test_order_and_indices(device: str) -> None:
    """Reads and writes by number along the axis, from both ends."""

    def f(x: Any, i: Any) -> Any:
        n = x.shape[0]
        y = x.copy()
        y[i] = 7
        z = np.zeros(n)
        np.add.at(z, i, 1.5)
        return (
            x[0],
            x[-1],
            x[0, 1] + x[-1, -1],
            x[i],
            x[i][::-1],
            np.take(x, i % n - n, axis=0),
            x[::-1],
            np.flip(x),
            np.roll(x, 3, 0),
            np.roll(x, (-1, 2), (0, 1)),
            np.argmax(x),
            np.argmin(x, keepdims=True),
            np.argmax(x[:, None, :]),
            y,
            z,
        )

    def make(n: int, rng: Any) -> list[np.ndarray]:
        return [*rows(n, rng), rng.integers(-n, n, 50)]

    check(f, make, device)


def _row_of_least(x: Any) -> Any:
    return (
        x[np.argmin(x[:, 0])],
        x[np.argmin(x, 0)],
        np.take_along_axis(x, np.argmin(x, 0)[None], 0),
    )


@pytest.mark.parametrize("device", DEVICES)
def test_sizes_in_terms_of_a_size(device: str) -> None:
    """What cuts, extends, joins and merges the axis has sizes that follow from its own."""

    def f(x: Any) -> Any:
        n = x.shape[0]
        assert n + 1 > n and 2 * n - n == n and (n - 1) * 2 + 2 == 2 * n and n + 1 != n
        return (
            x[1:],
            x[:-1] - x[1:],
            np.diff(x, axis=0),
            np.concatenate([x, x[::-1], x[:1]]),
            _row_of_least(np.concatenate([x, x])[1:]),
            np.concatenate([x[1:].sum(0, keepdims=True), x]),
            np.pad(x, 1),
            np.pad(x, [(2, 0), (0, 3)], mode="edge"),
            np.repeat(x, 3, 0),
            x.ravel() * 2,
            x.reshape(-1),
            x.reshape(n * 2, 2).sum(1),
            x.reshape(2 * n, -1)[::-1],
            np.vstack([x, x]).mean(0),
            np.zeros((n + 1, 2)),
            np.ones(2 * n - 1).sum(),
            np.arange(n + 2) * 2,
            x[: n - 1],
            x[n - 1 :],
            np.cumsum(np.pad(x[:, 0], (1, 0))),
            np.roll(x, 1, 0),
            x[np.arange(n), np.arange(n) % 4],
            np.append(x[:, 0], 3),
            (n + 1, n * 2, 1 - n, n - n, -n),
            np.stack([x[:, 0], x[:, 1]]).T,
            np.hstack([x, x]),
            np.flip(np.pad(x[:, 0], (0, 5))),
            np.argmax(np.concatenate([x[:, 0], x[:, 1]])),
            np.concatenate([x, x]) @ np.ones((4, 2), np.float32),
            np.dot(x[:, 0], x[::-1, 1]),
        )

    check(f, rows, device)


@pytest.mark.parametrize("device", DEVICES)
def test_products(device: str) -> None:
    w = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)

    def f(x: Any, y: Any, i: Any) -> Any:
        return (
            x @ w,
            x.T @ y,
            y @ x.T @ x,
            x[:, 0] @ y,
            np.einsum("ni,nj->ij", x, y),
            np.einsum("ni,ni->n", x, y),
            (x @ w).mean(0),
            w.T[i],
            np.take(w, i, axis=1).T,
        )

    def make(n: int, rng: Any) -> list[np.ndarray]:
        return [*rows(n, rng), *rows(n, rng), rng.integers(-4, 4, n)]

    dim = Dim("n", min=1, max=1024)
    check(f, make, device, dynamic={"x": {0: dim}, "y": {0: "n"}, "i": {-1: "n"}})


@pytest.mark.parametrize("copied", (np.ravel, np.ascontiguousarray, lambda x: x.reshape(-1)))
def test_writes_to_what_is_a_view_of_one_column_only(copied: Callable[..., Any]) -> None:
    def program(x: Any) -> Any:
        y = copied(x.T)
        y[...] = 9.0
        return x, y

    jitted = rune_jit.jit(program, dynamic={0: {1: Dim("n", max=8)}})
    for n in (5, 1, 3):
        given, expected = np.arange(4.0 * n).reshape(4, n), np.arange(4.0 * n).reshape(4, n)
        assert_same(jitted(given), program(expected))
        assert_same(given, expected)
