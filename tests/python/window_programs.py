"""Loops whose iterations write windows that grow, shrink or move with the counter. Each takes a
square matrix and a vector of as many elements."""

from __future__ import annotations

from typing import Any

import numpy as np


def symmetric(x: Any, y: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(len(x)):
        out[i:, i] = out[i, i:] = x[:, i] @ x[:, i:] / (y[0] + 1)
    return out


def symmetric_without_diagonal(x: Any, y: Any) -> Any:
    out = np.eye(len(x), dtype=x.dtype)
    for i in range(len(x) - 1):
        out[i + 1 :, i] = out[i, i + 1 :] = x[i, i + 1 :] * 2
    return out


def mirrored_triangle(x: Any, y: Any) -> Any:
    for i in range(len(x)):
        x[i:, i] = x[i, i:]
    return x


def written_and_read(x: Any, y: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(len(x)):
        out[i, i:] = x[i, i:] * 2
        out[i:, i] = out[i, i:]
    return out


def rows_then_columns(x: Any, y: Any) -> Any:
    out = x.copy()
    for i in range(len(x)):
        out[i, :] = y
        out[:, i] = y * 2
    return out


def columns_backwards_then_rows(x: Any, y: Any) -> Any:
    out = x.copy()
    n = len(x)
    for i in range(n):
        out[:, n - 1 - i] = y - 1
        out[i] = x[i] * y
    return out


def three_orders(x: Any, y: Any) -> Any:
    out = x.copy()
    n = len(x)
    for i in range(n):
        out[i, : i + 1] = y[: i + 1]
        out[:, i] = y + x[0]
        out[n - 1 - i, i:] = x[i, i:]
    return out


def lower_triangle_in_place(x: Any, y: Any) -> Any:
    for i in range(1, len(x)):
        x[i, :i] = np.sqrt(np.abs(x[i, :i])) + y[:i]
    return x


def twice_in_an_iteration(x: Any, y: Any) -> Any:
    out = x.copy()
    for i in range(len(x)):
        out[i, i:] = x[i, i:] + y[i:]
        out[i, : i + 1] = out[i, : i + 1] * out[i, i : i + 1]
    return out


def blocks(x: Any, y: Any) -> Any:
    out = x.copy()
    for i in range(0, len(x) - 3, 4):
        out[i : i + 4, i:] = x[i : i + 4, i:] * y[i:]
    return out


def backwards(x: Any, y: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(len(x) - 1, 0, -1):
        out[:i, i] = x[i, :i] + 1
    return out


def rows_after(x: Any, y: Any) -> Any:
    for i in range(len(x) - 1):
        x[i, i:] = x[i + 1, i:] + y[i:]
    return x


def sums_over_fixed_axes(x: Any, y: Any) -> Any:
    out = np.ones_like(x)
    for i in range(len(x)):
        out[i, i:] = np.max(x[:, i : i + 1] * x[:, i:], axis=0)
    return out


def one_number(x: Any, y: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(len(x)):
        out[i, : i + 1] = y[i]
    return out


def slabs(x: Any, y: Any) -> Any:
    out = np.zeros((len(x), len(x), 3), x.dtype)
    for i in range(len(x)):
        out[i:, i] = x[i:, :3]
    return out


AT_ONCE = [
    symmetric, symmetric_without_diagonal, mirrored_triangle, written_and_read, rows_then_columns,
    columns_backwards_then_rows, three_orders, lower_triangle_in_place, twice_in_an_iteration,
    blocks, backwards, rows_after, sums_over_fixed_axes, one_number, slabs,
]  # fmt: skip


def read_before(x: Any, y: Any) -> Any:
    for i in range(1, len(x)):
        x[i, i:] = x[i - 1, i:] + 1
    return x


def read_across(x: Any, y: Any) -> Any:
    for i in range(len(x)):
        x[i, i:] = x[: len(x) - i, i] + 1
    return x


def mirrored_rows(x: Any, y: Any) -> Any:
    n = len(x)
    for i in range(n):
        x[i, :] = x[n - 1 - i, :]
    return x


def shifted_windows(x: Any, y: Any) -> Any:
    out = x.copy()
    n = len(x)
    for i in range(n):
        out[i, i:] = x[i, : n - i]
    return out


def sums_of_windows(x: Any, y: Any) -> Any:
    out = x.copy()
    for i in range(1, len(x)):
        out[i, :i] = x[i, :i] + np.sum(x[:i, i])
    return out


def small_windows(x: Any, y: Any) -> Any:
    out = x.copy()
    for i in range(len(x)):
        out[i, i : i + 1] = y[i]
        out[len(x) - 1, i // 2 :] = out[len(x) - 1, i // 2 :] + 1
    return out


ONE_BY_ONE = [
    read_before, read_across, mirrored_rows, shifted_windows, sums_of_windows, small_windows,
]  # fmt: skip
