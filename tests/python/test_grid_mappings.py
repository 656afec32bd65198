"""Kernels whose threads work together: turned operands, scans, rows in registers, split sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from cuda_check import check_cuda
from devices import HAS_FLOAT64, devices

import rune_jit

DEVICES = devices("interpreter", "metal-interpreted", "cuda-interpreted")

TURNED: dict[str, tuple[tuple[int, ...], Callable]] = {
    "whole squares": ((64, 64), lambda x: x + x.T),
    "rest of squares": ((70, 70), lambda x: x + x.T),
    "other sides": ((40, 96), lambda x: x.T * 2),
    "of a batch": ((3, 37, 65), lambda x: np.transpose(x, (0, 2, 1)) + 1),
    "last to first": ((3, 37, 65), lambda x: np.transpose(x, (2, 0, 1)) + 1),
    "channels": ((2, 33, 40, 36), lambda x: np.transpose(x, (0, 3, 1, 2)) * 3),
    "backwards": ((40, 70), lambda x: x.T[::-1, ::-1] - 1),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "int64", "int8"])
@pytest.mark.parametrize("name", TURNED)
def test_turned_operands(name: str, dtype: str, device: str) -> None:
    shape, function = TURNED[name]
    x = (np.arange(np.prod(shape)).reshape(shape) % 101).astype(dtype)
    run = rune_jit.jit(function, device=device, fallback="error")
    np.testing.assert_array_equal(np.asarray(run(x)), function(x))


SQUARES: dict[str, Callable] = {
    "turned": lambda x, row: np.ascontiguousarray(x.T * 2),
    "with a column and a row": lambda x, row: np.ascontiguousarray(x.T + row - row[:820, None]),
    "narrowed": lambda x, row: np.ascontiguousarray(x.T.astype(np.int8)),
    "padded": lambda x, row: np.ascontiguousarray(np.pad(x.T[:, 4:], ((0, 0), (4, 0))) + 1),
}


@pytest.mark.parametrize("device", devices("cuda-interpreted"))
@pytest.mark.parametrize("name", SQUARES)
def test_squares_of_threads(name: str, device: str) -> None:
    """Large enough that each thread has a square, of which it accesses whole rows."""
    x = (np.arange(844 * 820) % 101).astype(np.float32).reshape(844, 820)
    row = np.arange(844, dtype=np.float32)
    run = rune_jit.jit(SQUARES[name], device=device, fallback="error")
    assert device != "cuda-interpreted" or "exchanged=true" in str(run.lower(x, row).schedule)
    np.testing.assert_array_equal(np.asarray(run(x, row)), SQUARES[name](x, row))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [520, 550, 576])
def test_mirror_images(n: int, device: str) -> None:
    """Squares on both sides of the diagonal read the same elements."""
    x = np.arange(n * n, dtype=np.int64).reshape(n, n)
    run = rune_jit.jit(lambda x: 3 * x - x.T, device=device, fallback="error")
    if device == "cuda-interpreted":  # whose cache is smaller than the array
        assert "mirrored" in str(run.lower(x).schedule)
    np.testing.assert_array_equal(np.asarray(run(x)), 3 * x - x.T)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(5, 1000), (9, 256), (3, 32), (2, 3, 517), (70_000,)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_scans(dtype: str, shape: tuple[int, ...], device: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    for function in (
        lambda x: np.cumsum(x, axis=-1),
        lambda x: np.maximum.accumulate(x - 1, axis=-1),
        lambda x: np.cumsum(x, axis=0),
    ):
        run = rune_jit.jit(function, device=device, fallback="error")
        np.testing.assert_array_equal(np.asarray(run(x)), function(x))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("length", [64, 100, 512, 1000, 3001, 9000])
def test_rows_are_read_once_if_threads_can_keep_them(length: int, device: str) -> None:
    def softmax(x):
        e = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return e / np.sum(e, axis=-1, keepdims=True)

    x = np.random.default_rng(0).standard_normal((3, length), dtype=np.float32)
    run = rune_jit.jit(softmax, device=device, fallback="error")
    np.testing.assert_allclose(np.asarray(run(x)), softmax(x), rtol=1e-5, atol=1e-8)
    if device == "cuda-interpreted" and length in (512, 1000):
        (kernel,) = run.lower(x).kernels
        loads = [line for line in str(kernel).splitlines() if "= load %0 " in line]
        assert len(loads) == len({line.split("load")[1] for line in loads})
        assert "range" not in str(kernel)


def _softmax_of_sums(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    e = np.exp(x + y - np.max(x + y, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


ROWS: dict[str, tuple[Callable, int]] = {
    "softmax": (_softmax_of_sums, 4),
    "sum": (lambda x, y: np.sum(x * y, axis=-1), 4),
    "any": (lambda x, y: np.any(x > y, axis=-1), 4),
    "argmax": (lambda x, y: np.argmax(x + y, axis=-1), 4),
    "cumsum": (lambda x, y: np.cumsum(x * y, axis=-1), 4),
    "float64": (lambda x, y: np.sum(np.float64(x) * y, axis=-1), 4),
    "every second": (lambda x, y: np.sum(x[:, 2:] * y[2:], axis=-1), 2),
    "not aligned": (lambda x, y: np.sum(x[:, 1:-3] * y[4:], axis=-1), 1),
    "backwards": (lambda x, y: np.sum(x[:, ::-1] * y, axis=-1), 1),
}


@pytest.mark.parametrize("device", devices("cuda-interpreted"))
@pytest.mark.parametrize("length", [160, 1024, 1036])
@pytest.mark.parametrize("name", ROWS)
def test_rows_by_vectors(name: str, length: int, device: str) -> None:
    """A thread accesses as many aligned neighbours at once as all accesses along the row allow."""
    if name == "float64" and device == "metal":
        pytest.skip("the device has no float64")
    function, lanes = ROWS[name]
    x = (np.arange(3 * length) * 37 % 101).astype(np.float32).reshape(3, length)
    y = np.arange(length, dtype=np.float32) % 7
    run = rune_jit.jit(function, device=device, fallback="error")
    if device == "cuda-interpreted":
        assert f"lanes={lanes} " in str(run.lower(x, y).schedule)
    np.testing.assert_allclose(np.asarray(run(x, y)), function(x, y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("special", [np.nan, -np.nan, -0.0, np.inf])
def test_extremes_of_special_values(special: float, device: str) -> None:
    x = np.full((2, 256), -0.0, np.float32)
    x[0, 77] = special
    x[1] = 0.0
    for function in (np.max, np.min, lambda x, axis: np.maximum(x[0], x[1])):
        got = np.asarray(rune_jit.jit(function, static_argnames="axis", device=device)(x, axis=1))
        np.testing.assert_array_equal(got, function(x, axis=1))


@pytest.mark.parametrize("device", DEVICES)
def test_results_side_by_side(device: str) -> None:
    def pulls(position, mass):
        d = position[None, :, :] - position[:, None, :]
        r2 = np.sum(d * d, axis=-1) + 0.01
        return np.sum(d * (mass / (r2 * np.sqrt(r2)))[:, :, None], axis=1)

    rng = np.random.default_rng(0)
    arguments = rng.random((150, 3), dtype=np.float32), rng.random(150, dtype=np.float32)
    run = rune_jit.jit(pulls, device=device, fallback="error")
    expected = pulls(*(a.astype(np.float64) for a in arguments))
    np.testing.assert_allclose(np.asarray(run(*arguments)), expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(64, 512, 64), (130, 900, 70), (33, 1031, 65)])
def test_split_sums(shape: tuple[int, int, int], device: str) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (k, n))
    run = rune_jit.jit(lambda a, b: np.maximum(a @ b + 1, 0), device=device, fallback="error")
    got = np.asarray(run(a.astype(np.float32), b.astype(np.float32)))
    np.testing.assert_array_equal(got, np.maximum(a @ b + 1, 0).astype(np.float32))


def _product(a, b):
    return a @ b


def _of_turned(a, b):
    return a.T @ b


def _by_turned(a, b):
    return np.maximum(a @ b.T, 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(128, 128, 64), (130, 260, 70), (64, 520, 96)])
@pytest.mark.parametrize("function", [_product, _of_turned, _by_turned])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_matrix_units(
    dtype: str, function: Callable, shape: tuple[int, int, int], device: str
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = rng.integers(-1, 2, (m, k)), rng.integers(-1, 2, (k, n))
    a, b = (a.T if function is _of_turned else a), (b.T if function is _by_turned else b)
    x, y = a.astype(dtype), b.astype(dtype)
    got = rune_jit.jit(function, device=device, fallback="error")(x, y)
    np.testing.assert_array_equal(np.asarray(got), function(a, b).astype(dtype))


@pytest.mark.parametrize("device", DEVICES)
def test_matrix_units_of_a_number(device: str) -> None:
    """An operand whose elements are all one number is that number, not a tile of a matrix."""

    def product(x, y):
        return np.inner(x, np.zeros_like(y))

    x, y = np.arange(72, dtype=np.float32).reshape(8, 9), np.ones((24, 9), np.float32)
    got = rune_jit.jit(product, device=device, fallback="error")(x, y)
    np.testing.assert_array_equal(np.asarray(got), product(x, y))


@pytest.mark.parametrize("function", [_product, _of_turned, _by_turned])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_text_of_matrix_units(dtype: str, function: Callable) -> None:
    x = np.ones((512, 512), dtype)
    source = rune_jit.jit(function, device="cuda").lower(x, x).source()
    assert "mma.sync.aligned.m16n8k16" in source
    check_cuda(source)


ODD: dict[str, tuple[tuple[int, ...], Callable]] = {
    "sum down narrow rows": ((20_011, 13), lambda x: x.sum(0)),
    "maximum down narrow rows of a batch": ((3, 9_001, 7), lambda x: x.max(1)),
    "mean square down narrow rows": ((20_011, 13), lambda x: (x * x).mean(0)),
    "all of rows of a prime number": ((1_009, 257), lambda x: (x.sum(), x.max())),
    "rows of a few more than a SIMD-group": ((1_500, 45), lambda x: x - x.max(1, keepdims=True)),
    "rows of a few less than a SIMD-group": ((5_003, 29), lambda x: x / x.sum(1, keepdims=True)),
    "running sums down columns": ((3_001, 67), lambda x: np.cumsum(x, axis=0)),
    "running sums of a batch": ((2, 1_200, 67), lambda x: np.cumsum(x, axis=1)),
    "narrow rows turned": ((70_001, 5), lambda x: x.T * 2),
    "narrow rows turned and added": ((50_003, 7), lambda x: x.T + x.T[::-1]),
    "narrow rows of a batch turned": ((3, 20_001, 6), lambda x: np.transpose(x, (0, 2, 1)) - 1),
    "position of the largest in narrow rows": ((90_001, 5), lambda x: np.argmax(x % 5, axis=0)),
    "first and last axis of a few": ((41, 90, 43), lambda x: x.sum((0, 2))),
    "dot": ((200_003,), lambda x: x @ x[::-1]),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ODD)
def test_sizes_that_divide_nothing(name: str, device: str) -> None:
    """Of whole numbers, so that the order of sums does not matter."""
    shape, function = ODD[name]
    x = (np.arange(np.prod(shape)).reshape(shape) % 7 + 1).astype(np.float32)
    got, want = rune_jit.jit(function, device=device, fallback="error")(x), function(x)
    for g, w in zip(*([a] if not isinstance(a, tuple) else a for a in (got, want)), strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6)


def _softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


SHORT_ROWS: dict[str, Callable] = {
    "any": lambda x: np.any(x > 5, axis=-1),
    "position": lambda x: np.argmin(x, axis=-1),
    "softmax": _softmax,
    "running sums": lambda x: np.cumsum(x, axis=-1),
    "sums of two": lambda x: (x.sum(-1), (x * x).sum(-1)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(1501, 45), (37, 43, 64), (700, 100), (1280, 33)])
@pytest.mark.parametrize("name", SHORT_ROWS)
def test_several_rows_of_a_workgroup(name: str, shape: tuple[int, ...], device: str) -> None:
    x = (np.arange(np.prod(shape)).reshape(shape) * 7 % 11).astype(np.float32)
    run = rune_jit.jit(SHORT_ROWS[name], device=device, fallback="error")
    got, want = run(x), SHORT_ROWS[name](x)
    for g, w in zip(*([a] if not isinstance(a, tuple) else a for a in (got, want)), strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5)
    if device == "cuda-interpreted":
        assert "teams=" in str(run.lower(x).schedule)
    if name == "softmax":
        check_cuda(rune_jit.jit(_softmax, device="cuda").lower(x).source())


COUNTED: dict[str, Callable] = {
    "counts": lambda i, w: np.bincount(i, minlength=50),
    "weights": lambda i, w: np.bincount(i, weights=w, minlength=50),
    "in place": lambda i, w: _added(np.full(50, 2.0, w.dtype), i, w),
    "largest": lambda i, w: _largest(np.zeros(50, w.dtype), i, w),
    "from the end, in rows": lambda i, w: _added(
        np.ones((50, 2), w.dtype), i - 50, w.reshape(-1, 1)
    ),
}


def _added(bins, i, w):
    np.add.at(bins, i, w)
    return bins


def _largest(bins, i, w):
    np.maximum.at(bins, i, w)
    return bins


@pytest.mark.parametrize("device", devices("interpreter", "cuda-interpreted"))
@pytest.mark.parametrize("name", COUNTED)
def test_many_updates_of_few_elements(name: str, device: str) -> None:
    """On a grid they go to copies of the few elements."""
    if name == "weights" and not HAS_FLOAT64:
        pytest.skip("NumPy counts weights in float64")
    i = (np.arange(40_009) ** 2) % 50
    w = (np.arange(40_009) % 11).astype(np.float64 if HAS_FLOAT64 else np.float32)
    run = rune_jit.jit(COUNTED[name], device=device, fallback="error")
    np.testing.assert_array_equal(np.asarray(run(i, w)), COUNTED[name](i, w))
