# mypy: ignore-errors
# ruff: noqa
import numpy as np
from functools import lru_cache, reduce, partial, singledispatch


@lru_cache(maxsize=None)
def dct_matrix(n):
    k = np.arange(n)
    m = np.cos(np.pi * (2 * k[None] + 1) * k[:, None] / (2 * n)) * np.sqrt(2 / n)
    m[0] /= np.sqrt(2)
    return m


@singledispatch
def describe(x):
    raise TypeError(f"cannot describe {type(x).__name__}")


@describe.register
def _(x: np.ndarray):
    return x.shape, x.dtype.name, float(x.mean())


@describe.register(int)
@describe.register(float)
def _(x):
    return "number", x * 2


@describe.register
def _(x: list):
    return [describe(v) for v in x]


def compress(block, keep):
    d = dct_matrix(block.shape[0])
    c = reduce(np.matmul, [d, block, d.T])
    thr = np.partition(np.abs(c).ravel(), -keep)[-keep]
    c[np.abs(c) < thr] = 0
    back = reduce(np.matmul, [d.T, c, d])
    err = partial(np.linalg.norm, ord="fro")(back - block)
    return c, back, err, describe([block, keep])


CALLS = [
    ("compress", lambda r: (r.random((8, 8)), 10)),
    ("compress", lambda r: (r.random((8, 8)), 3)),
    ("compress", lambda r: (r.random((5, 5)), 4)),
    ("describe", lambda r: ("abc",)),
    ("describe", lambda r: (r.random(3),)),
    ("describe", lambda r: (3,)),
    ("describe", lambda r: (2.5,)),
]
