"""Large contractions, which run from packed copies of their operands, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

# Small whole numbers: every sum is exact, in whatever order it is formed.
_rng = np.random.default_rng(7)


def _array(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _rng.integers(-3, 4, shape).astype(dtype)


def _check(function: Callable[..., Any], *arguments: np.ndarray, device: str = "cpu") -> None:
    actual = rune_jit.jit(function, device=device, fallback="error")(*arguments)
    expected = function(*arguments)
    np.testing.assert_array_equal(actual, expected)
    assert actual.dtype == expected.dtype


def _is_packed(function: Callable[..., Any], *arguments: np.ndarray) -> bool:
    return "    scratch %" in str(rune_jit.jit(function, device="cpu").lower(*arguments).schedule)


def product(a: Any, b: Any) -> Any:
    return a @ b


# Rows, reduced, columns: multiples of every tile, one more, one less, long and thin.
SIZES = [
    (256, 256, 256),
    (197, 131, 193),
    (15 * 14 + 1, 97, 33 * 4 - 1),
    (40, 33, 2500),
    (2600, 40, 70),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_sizes(dtype: Any) -> None:
    for m, k, n in SIZES:
        a, b = _array(m, k, dtype=dtype), _array(k, n, dtype=dtype)
        _check(product, a, b)
        assert _is_packed(product, a, b)


def _copied(function: Callable[..., Any], *arguments: np.ndarray) -> int:
    return str(rune_jit.jit(function, device="cpu").lower(*arguments).schedule).count(" scratch %")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_rows_are_read_where_they_are(dtype: Any) -> None:
    for m, k, n in ((2600, 40, 70), (197, 131, 113), (211, 97, 199)):
        a, b = _array(m, k, dtype=dtype), _array(k, n, dtype=dtype)
        for function in (product, lambda a, b: np.maximum(a @ b + a[:, :1], 0)):
            _check(function, a, b)
            assert _copied(function, a, b) == 1
        _check(lambda a, b: a @ b.T, a, b.T.copy())
        assert _copied(lambda a, b: a @ b.T, a, b.T.copy()) == 1
        _check(lambda a, b: a.T @ b, a.T.copy(), b)
        assert _copied(lambda a, b: a.T @ b, a.T.copy(), b) == 2
    # Rows that fall into the same sets of the first-level cache are copied.
    a, b = _array(150, 4096, dtype=dtype), _array(4096, 70, dtype=dtype)
    _check(product, a, b)
    assert _copied(product, a, b) == 2


def _tiles_of_terms(function: Callable[..., Any], *arguments: np.ndarray) -> list[str]:
    lines = rune_jit.jit(function, device="cpu").lower(*arguments).explain().splitlines()
    reduced = next(line for line in lines if " reduced, tiles [" in line)
    return reduced.split("tiles [")[1].split("]")[0].split(",")


def _carries_sums(function: Callable[..., Any], *arguments: np.ndarray) -> bool:
    return len(_tiles_of_terms(function, *arguments)) == 2


def test_long_sums_are_carried_in_the_result() -> None:
    def scaled(a: Any, b: Any, c: Any) -> Any:
        return np.maximum(2 * (a @ b) + 3 * c, 0)

    def assigned(a: Any, b: Any, c: Any) -> Any:
        c[:] = 2 * a @ b + 3 * c
        return c

    def turned(a: Any, b: Any) -> Any:
        return a.T @ b.T

    terms = 20011
    for dtype in (np.float32, np.float64, np.int64):
        a, b = _array(200, terms, dtype=dtype), _array(terms, 67, dtype=dtype)
        c = _array(200, 67, dtype=dtype)
        assert _carries_sums(product, a, b)
        _check(product, a, b)
        assert _carries_sums(scaled, a, b, c)
        _check(scaled, a, b, c)
        _check(turned, a.T.copy(), b.T.copy())
        expected = assigned(a, b, c.copy())
        np.testing.assert_array_equal(rune_jit.jit(assigned, fallback="error")(a, b, c), expected)
        np.testing.assert_array_equal(c, expected)


def test_long_sums_of_several_products() -> None:
    def both(a: Any, b: Any) -> Any:
        return np.einsum("gik,gkj->gij", a, b) + 1

    a, b = _array(2, 180, 12001), _array(2, 12001, 66)
    assert _carries_sums(both, a, b)
    _check(both, a, b)


def test_sums_have_the_same_bits_however_they_are_divided() -> None:
    a, b = _rng.random((200, 20480)), _rng.random((20480, 267))
    assert _tiles_of_terms(product, a, b) != _tiles_of_terms(product, a[:28], b)
    compiled = rune_jit.jit(product)
    parts = [compiled(a[i : i + 28], b) for i in range(0, 196, 28)]
    np.testing.assert_array_equal(compiled(a, b)[:196], np.concatenate(parts))


def test_products_with_itself() -> None:
    for function in (lambda a: a @ a, lambda a: a.T @ a, lambda a: a @ a.T):
        _check(function, _array(150, 150))
        assert _is_packed(function, _array(150, 150))


def _is_mirrored(function: Callable[..., Any], x: np.ndarray) -> bool:
    return "mirror rows=" in str(rune_jit.jit(function, device="cpu").lower(x).schedule)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_products_with_its_transpose_compute_one_half(dtype: Any) -> None:
    sizes = [(150, 150), (257, 300)]
    if dtype == np.float64:
        sizes += [(129, 500), (1000, 90)]
    for rows, reduced in sizes:
        x = _array(rows, reduced, dtype=dtype)
        for function in (lambda x: x @ x.T, lambda x: np.maximum(2 * (x @ x.T), 3) - 1):
            _check(function, x)
            assert _is_mirrored(function, x)
        for function in (lambda x: x.T @ x, lambda x: (x - 1).T @ (x - 1)):
            _check(function, x.T.copy())
            assert _is_mirrored(lambda x: x.T @ x, x.T.copy())
        not_symmetric = (
            lambda x: x @ x.T + x[:, :1],
            lambda x: np.triu(x @ x.T),
            lambda x: x @ x[::-1].T,
            lambda x: x @ (2 * x).T,
        )
        for function in not_symmetric[: 4 if rows < 200 else 2]:
            _check(function, x)
            assert not _is_mirrored(function, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_long_sums_of_products_with_its_transpose(dtype: Any) -> None:
    for rows, terms in ((150, 20011), (1001, 3000), (33, 70001)):
        x = _array(rows, terms, dtype=dtype)
        for function in (lambda x: x @ x.T, lambda x: np.maximum(2 * (x @ x.T), 3) - 1):
            assert _is_mirrored(function, x) and _carries_sums(function, x)
            _check(function, x)
        x = x.T.copy()
        for function in (lambda x: x.T @ x, lambda x: (x - 1).T @ (x - 1)):
            assert _is_mirrored(function, x) and _carries_sums(function, x)
            _check(function, x)


def test_rows_that_need_several_blocks() -> None:
    _check(product, _array(700, 2100), _array(2100, 333))
    _check(product, _array(90, 9000), _array(9000, 70))


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "transposed columns": (lambda a, b: a @ b.T, (_array(150, 140), _array(130, 140))),
    "transposed rows": (lambda a, b: a.T @ b, (_array(140, 150), _array(140, 130))),
    "both transposed": (lambda a, b: a.T @ b.T, (_array(140, 150), _array(130, 140))),
    "transposed result": (lambda a, b: (a @ b).T + 1, (_array(150, 140), _array(140, 130))),
    "slices": (lambda a, b: a[3:, ::2] @ b[::-1, 5:], (_array(150, 280), _array(140, 140))),
    "batch": (lambda a, b: a @ b, (_array(3, 140, 130), _array(3, 130, 150))),
    "batch of rows": (lambda a, b: a @ b, (_array(5, 60, 130), _array(130, 150))),
    "rows of two axes": (lambda a, b: a @ b, (_array(32, 128, 256), _array(256, 300))),
    "rows of three axes": (lambda a, b: a @ b + 1, (_array(4, 8, 128, 256), _array(256, 300))),
    "broadcast batch": (lambda a, b: a @ b, (_array(2, 1, 140, 130), _array(3, 130, 150))),
    "with itself": (lambda a: a @ a, (_array(150, 150),)),
    "with its transpose": (lambda a: a @ a.T, (_array(150, 140),)),
    "rows added": (lambda a, b: a @ b + a, (_array(150, 150), _array(150, 150))),
    "columns added": (lambda a, b: a @ b + b.T, (_array(150, 150), _array(150, 150))),
    "prologue": (
        lambda a, b, s: np.maximum(a, 0) @ (b * s + 1),
        (_array(150, 140), _array(140, 130), _array(130)),
    ),
    "epilogue": (
        lambda a, b, c: np.maximum(a @ b + c, 0) * 2,
        (_array(150, 140), _array(140, 130), _array(130)),
    ),
    "several results": (
        lambda a, b: np.stack([a @ b, np.abs(a @ b)]),
        (_array(150, 140), _array(140, 130)),
    ),
    "einsum": (
        lambda a, b: np.einsum("bik,kjl->bijl", a, b),
        (_array(3, 50, 130), _array(130, 10, 12)),
    ),
    "padded": (lambda a, b: np.pad(a, 1) @ np.pad(b, 1), (_array(148, 138), _array(138, 128))),
    "concatenated": (
        lambda a, b: np.concatenate([a, a + 1], 1) @ b,
        (_array(150, 70), _array(140, 130)),
    ),
    "float16": (lambda a, b: a @ b, (_array(150, 140, dtype=np.float16),
                                     _array(140, 130, dtype=np.float16))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_layouts_and_surroundings(name: str) -> None:
    function, arguments = CASES[name]
    _check(function, *arguments)


def test_long_dot_products() -> None:
    for size in (1 << 18, 300_001):
        _check(product, _array(size), _array(size))
        _check(lambda a, b: a @ b + 1, _array(size, dtype=np.float64), _array(size))


# Rows, columns: their sums are carried in the output, by tiles of rows.
@pytest.mark.parametrize("size", [(2003, 1100), (512, 4097), (263, 2048)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_a_vector_times_long_rows(size: tuple[int, int], dtype: Any) -> None:
    rows, columns = size
    x, a, bias = _array(rows, dtype=dtype), _array(rows, columns, dtype=dtype), _array(columns)
    for function in (lambda x, a, b: x @ a, lambda x, a, b: np.maximum(a.T @ x, 0)):
        _check(function, x, a, bias)
        schedule = rune_jit.jit(function, device="cpu").lower(x, a, bias).schedule
        assert "serial=[1,0,1]" in str(schedule)
    _check(lambda x, a, b: np.stack([x @ a + b, (2 * x) @ a[:, ::-1]]), x, a, bias)
    _check(lambda x, a, b: x[np.newaxis] @ a, x, a, bias)


@pytest.mark.parametrize(
    ("rows", "dtype"),
    [
        *((rows, np.float32) for rows in (2, 4, 7, 8, 11)),
        *((rows, dtype) for rows in (4, 11) for dtype in (np.float64, np.int32)),
    ],
)
def test_few_rows_times_long_rows(rows: int, dtype: Any) -> None:
    a, b = _array(rows, 613, dtype=dtype), _array(613, 2100, dtype=dtype)
    bias = _array(2100, dtype=dtype)
    function = lambda a, b, bias: np.maximum(a @ b + bias, 0)  # noqa: E731
    _check(function, a, b, bias)
    assert "serial=[2,1,0,2]" in str(
        rune_jit.jit(function, device="cpu").lower(a, b, bias).schedule
    )
    _check(lambda a, b, bias: (a @ b).T, a, b, bias)
    _check(lambda a, b, bias: (b.T @ a.T) * 2, a, b, bias)
    _check(lambda a, b, bias: (a @ b[:, ::-1]).sum(0), a, b, bias)


def test_on_the_interpreter() -> None:
    for m, k, n in [(150, 101, 150), (60, 70, 600)]:
        _check(lambda a, b: np.maximum(a @ b, 0), _array(m, k), _array(k, n), device="interpreter")
    _check(lambda a, b: a.T @ b, _array(101, 150), _array(101, 150), device="interpreter")


def test_small_and_thin_ones_are_not_packed() -> None:
    assert not _is_packed(product, _array(64, 64), _array(64, 64))
    assert not _is_packed(product, _array(4, 2048), _array(2048, 2048))
    assert not _is_packed(product, _array(2048, 2048), _array(2048, 1))


def test_several_threads_and_programs_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    a, b = _array(400, 300), _array(300, 500)
    f = rune_jit.jit(product)
    expected = a @ b
    with ThreadPoolExecutor(4) as pool:
        for actual in pool.map(lambda _: f(a, b), range(32)):
            np.testing.assert_array_equal(actual, expected)
