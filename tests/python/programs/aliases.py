# mypy: ignore-errors
# ruff: noqa
import numpy as np


def swap_views(a):
    left, right = a[:, :2], a[:, 2:4]
    tmp = left
    left[...] = right
    right[...] = tmp
    return a


def swap_copy(a):
    a[:, [0, 1]] = a[:, [1, 0]]
    a[[0, -1]] = a[[-1, 0]]
    return a.copy()


def same_arg(x, y):
    x += 1
    y *= 2
    return x is y, x.sum(), np.shares_memory(x, y)


def twice(x):
    return same_arg(x, x)


def list_mult(n):
    rows = [np.zeros(n)] * 3
    rows[0][0] = 1
    rows[1] = rows[1] + 5
    grid = [[0] * n for _ in range(2)]
    grid[0][1] = 9
    return rows, grid, np.array(grid)


def default_mut(x, acc=[], cache={}):
    acc.append(x.sum())
    cache[len(acc)] = x
    return len(acc), list(acc), cache


def overlap(x):
    x[1:] += x[:-1]
    y = x
    y = y + 1
    x[:3] = x[2:5]
    return x, y


CALLS = [
    ("swap_views", lambda r: (r.random((3, 4)),)),
    ("swap_copy", lambda r: (r.random((3, 4)),)),
    ("twice", lambda r: (r.random(3),)),
    ("list_mult", lambda r: (3,)),
    ("default_mut", lambda r: (r.random(3),)),
    ("overlap", lambda r: (r.random(7),)),
    ("default_mut", lambda r: (r.random(2),)),
    ("overlap", lambda r: (r.integers(0, 9, 6),)),
]
