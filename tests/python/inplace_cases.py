"""Functions that write to arrays, and arguments to call them on, for test_inplace.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Function = Callable[..., Any]


def matrix() -> np.ndarray:
    return np.arange(12.0).reshape(3, 4)


def vector() -> np.ndarray:
    return np.arange(6, dtype=np.float32) - 2


def case(*arguments: Any) -> Callable[[Function], Function]:
    """Registers a function with arrays to call it on."""

    def register(function: Function) -> Function:
        CASES.append(pytest.param(function, arguments, id=function.__name__))
        return function

    return register


CASES: list[Any] = []


@case(vector())
def set_one(x: Any) -> Any:
    x[2] = 9
    return x * 2


@case(vector())
def set_last(x: Any) -> None:
    x[-1] = x[0]


@case(matrix())
def set_row_and_column(x: Any) -> Any:
    x[1] = 7
    x[:, 2] = x[:, 0]
    return x.sum(axis=0)


@case(matrix())
def set_everything(x: Any) -> Any:
    x[...] = x.T.sum() + np.arange(4)
    x[:] *= 2
    return x


@case(matrix())
def set_strided(x: Any) -> Any:
    x[::2, 1::2] = -x[::2, ::2]
    x[::-2, ::-3] += 100
    return x[::-1]


@case(matrix())
def set_beyond_the_end(x: Any) -> Any:
    x[1:100, -100:2] = 5
    x[2:1] = 9
    return x


@case(matrix())
def set_with_new_axes_and_ellipsis(x: Any) -> Any:
    x[..., 0] = [1, 2, 3]
    x[None, :, 1:3, None] = np.array([[[[5.5], [6.5]]]])
    return x


@case(np.zeros((2, 3, 4), np.int16))
def three_axes(x: Any) -> Any:
    x[0, 1, 2] = 3
    x[1, :, ::3] = np.arange(6).reshape(3, 2)
    x[:, 2] -= 1
    return x.sum()


@case(vector(), np.float32(2.5), 3)
def operators(x: Any, s: Any, n: Any) -> Any:
    x += s
    x *= n
    x -= x[::-1]
    x /= 3
    x **= 2
    x //= 0.5
    x %= 7
    return x


@case(np.arange(8, dtype=np.int32), 3)
def integer_operators(x: Any, n: Any) -> Any:
    x <<= 2
    x |= 1
    x &= 13
    x ^= n
    x >>= 1
    return x


@case(vector())
def rebinding_keeps_the_argument(x: Any) -> Any:
    x = x + 1
    x += 1
    return x


@case(vector(), 1.5, np.float64(2))
def numbers_are_rebound(x: Any, a: Any, b: Any) -> Any:
    before = a, b
    a += 1
    b *= 2
    total = x.sum()
    same = total
    total += 1
    element = x[1]
    element += 5
    return before, a, b, same, total, x


@case(matrix())
def views_see_the_base(x: Any) -> Any:
    row, column, transposed = x[1], x[:, 1], x.T
    x[1, 1] = 50
    x += 1
    return row * 2, column * 2, transposed * 2


@case(matrix())
def the_base_sees_views(x: Any) -> Any:
    row = x[1]
    row[2:] = 3
    x.T[0, 0] = 8
    part = x[:, ::2][1:]
    part[0] += 10
    y = x.reshape(2, 6)
    y[1, 0] = -1
    x.ravel()[3] = 99
    np.flip(x)[0, 0] = 77
    x[:, None, :].squeeze(1)[2, 1] = 55
    return x * 1


@case(matrix())
def views_of_views(x: Any) -> Any:
    a = x.swapaxes(0, 1)[1:]
    b = a[::-1, 1]
    b -= 20
    c = np.moveaxis(x[None], 0, 2)
    c[0, :, 0] = 2
    left, right = np.split(x, 2, axis=1)
    left[...] = right
    right += left
    return a, b


@case(matrix())
def copies_are_apart(x: Any) -> Any:
    y, z, w = x.copy(), x.flatten(), x.T.reshape(-1)
    y[0] = 1
    z[1] = 2
    w[2] = 3
    v = x[[0, 1]]
    v += 100
    x[0, 3] = 4
    return y, z, w, v


@case(vector())
def overlapping_source_and_target(x: Any) -> Any:
    x[1:] = x[:-1]
    x[::-1] = x
    x[:-2] += x[2:]
    return x


@case(vector(), vector() * 3)
def swap(x: Any, y: Any) -> None:
    t = x.copy()
    x[:] = y
    y[:] = t


@case(vector())
def stencil(x: Any) -> Any:
    for _ in range(3):
        x[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    return x.max()


@case(matrix())
def masks(x: Any) -> Any:
    x[x > 8] = 0
    x[x < 2] += 7
    x[x == 5] = -x[x == 5]
    mask = x > 6
    x[mask] = np.sqrt(x[mask]) * 2
    x[np.array([True, False, True])] = np.arange(4)
    x[x.sum(axis=1) > 100] = 3
    return x


@case(matrix(), np.array([[True, False, True, False]] * 3))
def a_mask_argument(x: Any, m: Any) -> Any:
    x[m] = 1
    m[0] = False
    x[~m] *= 2
    return x.sum()


@case(matrix(), 1, 2)
def traced_integers(x: Any, i: Any, j: Any) -> Any:
    x[i, j] = 100
    row = x[i - 1]
    row += 1
    x[-i, 1:] = 3
    x[:, j] *= 2
    return row, x[i, j], x[j]


@case(vector())
def out_of_ufuncs(x: Any) -> Any:
    y = np.empty_like(x)
    result = np.add(x, 1, out=y)
    np.multiply(y, 2, out=x[:])
    np.sqrt(np.abs(x), y)
    np.maximum(x[1:], x[:-1], out=x[1:])
    np.negative(x, out=x, where=x > 3)
    return result, y


@case(matrix())
def out_of_reductions(x: Any) -> Any:
    s = np.zeros(4)
    np.sum(x, axis=0, out=s)
    x.max(axis=1, out=x[:, 0])
    m = np.empty(3)
    np.mean(x, axis=1, out=m)
    np.clip(x, 1, 6, out=x)
    np.matmul(x, x.T, out=x[:, :3])
    return s, m


@case(matrix(), vector())
def clips_under_a_mask(x: Any, y: Any) -> Any:
    z = np.ones(x.shape)
    np.clip(x, 0, 1, out=z, where=x > 2)
    y.clip(0, 2, out=y, where=[v > 0 for v in (1, 0)] * (y.shape[0] // 2))
    np.clip(x, -1, 1, x[::-1], where=x[:1] > 0)
    return z, np.linalg.norm(x, keepdims=np.True_)


@case(vector())
def functions_that_write(x: Any) -> Any:
    np.copyto(x[1:3], 8)
    np.copyto(x, x * 2, where=x > 0)
    y = np.zeros_like(x)
    y.fill(x[1])
    np.putmask(x, x < 0, 5)
    z = np.eye(3)
    np.fill_diagonal(z, y[0])
    return y, z


@case(np.arange(5, dtype=np.uint8), 3, 2.5)
def assignments_cast(x: Any, n: Any, f: Any) -> Any:
    x[0] = 2.9
    x[1] = n
    x[2] = f
    x[3:] = np.array([7.7, 8.8])
    return x + n


@case(np.array(3.0))
def a_0d_array(x: Any) -> None:
    x += 1
    x[...] = x * 2
    x[()] = x + 0.5


@case(vector(), {"a": vector(), "b": [matrix()]})
def trees(x: Any, tree: Any) -> Any:
    tree["a"] += x
    tree["b"][0][0] = 1
    return {"same": tree["b"][0], "sum": tree["a"].sum()}


@case(matrix())
def filled_inside(x: Any) -> Any:
    a = np.zeros(4)
    a[0] = x[0, 1]
    a[1:3] = x[1, :2]
    b = np.empty((3, 4), np.float32)
    for i in range(3):
        b[i] = x[i] * i
    c = np.ones_like(x)
    c[:, 1] = a[0]
    d = np.full(3, x[1, 1])
    d[1] += 1
    e = np.eye(3) * x[2, 2]
    e[0] = 5
    return a, b, c, d, e


@case(vector())
def arrays_of_elements(x: Any) -> Any:
    a = np.array([x[0], x[1]])
    a[0] = 9
    return a, np.array([[x[0], 1], [2.5, x[1]]]), np.array([x[:2], x[2:4]]), np.array(x, np.int32)


@case(vector())
def known_arrays_stay_numpys(x: Any) -> Any:
    steps = np.arange(3)
    table = np.zeros((3, 2))
    for i in steps:
        table[i] = i
        x[i] *= steps[i] + 1
    if table.sum() == 6:
        table = table + 1
    table[0, 0] = x[1]
    half = np.linspace(0, 1, 3)[::2]
    half += 1
    return table, half, int(steps[2]), x[steps] + 1


@case(vector())
def known_views(x: Any) -> Any:
    a = np.zeros((2, 3))
    b = a.T[1:]
    b[0] = 4
    c = a.reshape(-1)
    c[5] = x[1]
    b[1, 0] = x[2]
    return a, b, c


@case(vector(), [1.0, 2.0])
def arguments_as_arrays(x: Any, numbers: Any) -> Any:
    y = np.ascontiguousarray(np.asarray(x))
    y[0] = 3
    z = np.asarray(numbers)
    z[0] += y[1]
    w = np.asarray(x, np.float64)
    w[1] = 7
    return z, w, np.zeros(2, np.complex128), np.ones(1, "M8[s]").dtype


@case(matrix())
def results_that_are_one_array(x: Any) -> Any:
    y = x + 1
    z = y
    z += 1
    return y, z


@case(np.zeros((0, 3)), vector())
def empty_arrays(x: Any, y: Any) -> Any:
    x += 1
    x[:] = 5
    y[2:2] = 9
    y[3:3] += y[:0]
    return x, y


@case(vector())
def known_arrays_in_other_orders(x: Any) -> Any:
    columns = np.cumsum(np.ones((3, 4)).T * 2, 0)  # as its operand, in Fortran's order
    flat, rows = columns.reshape(12), columns.T.reshape(12)
    flat[0], rows[1] = 50, 60
    return columns + x[0], flat + x[0], rows
