"""The standard workloads: plain NumPy functions with arguments, tolerances and least costs.

Each is built once, by `build(name, tiny=...)`, from a seeded generator; `tiny` shrinks it to what a
smoke test can afford. `bytes` counts every input read once and every output written once, `flops`
the arithmetic that the formula needs (an exp or a log counts one).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Workload:
    """A function to measure, and what its result and its cost should be."""

    name: str
    what: str  # one line: shapes and dtype
    fn: Callable[..., Any]  # NumPy code; reads no global but `np` and `as_float32`
    args: tuple[Any, ...]
    bytes: int  # least bytes to move
    flops: int
    rtol: float = 1e-5
    atol: float = 1e-6
    kernels: int | None = None  # how many it should take, where that is settled


_BUILDERS: dict[str, Callable[[np.random.Generator, bool], Workload]] = {}


def names() -> list[str]:
    """All workloads, in the order of the report."""
    return list(_BUILDERS)


def build(name: str, *, tiny: bool = False) -> Workload:
    """Raises KeyError for an unknown name."""
    if name not in _BUILDERS:
        raise KeyError(f"no workload {name!r} (there are {', '.join(_BUILDERS)})")
    workload = _BUILDERS[name](np.random.default_rng(0), tiny)
    assert workload.name == name
    return workload


def _workload(build: Callable[[np.random.Generator, bool], Workload]) -> Any:
    _BUILDERS[build.__name__.lstrip("_")] = build
    return build


def _size(*arrays: np.ndarray) -> int:
    return sum(a.nbytes for a in arrays)


def _f32(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


# Elementwise.


def chain(x):
    y = x * 1.5 + 0.25
    y = y * x - 0.5
    y = np.maximum(y, -2.0)
    y = np.minimum(y, 2.0)
    return y * y + x


def int_chain(x):
    y = x * 3 + 7
    y = y ^ (x >> 3)
    y = np.maximum(y, -1000)
    y = np.minimum(y, 100000)
    return (y & 65535) - x


@_workload
def chain_f32(rng, tiny):
    x = _f32(rng, 1 << (12 if tiny else 24))
    return Workload(
        "chain_f32",
        f"8 operations on {x.size} float32",
        chain,
        (x,),
        2 * x.nbytes,
        8 * x.size,
        kernels=1,
    )


@_workload
def chain_f64(rng, tiny):
    x = rng.standard_normal(1 << (12 if tiny else 23))
    return Workload(
        "chain_f64",
        f"8 operations on {x.size} float64",
        chain,
        (x,),
        2 * x.nbytes,
        8 * x.size,
        rtol=1e-12,
        atol=1e-13,
        kernels=1,
    )


@_workload
def chain_i32(rng, tiny):
    x = rng.integers(-1 << 20, 1 << 20, 1 << (12 if tiny else 24), dtype=np.int32)
    return Workload(
        "chain_i32",
        f"8 operations on {x.size} int32",
        int_chain,
        (x,),
        2 * x.nbytes,
        8 * x.size,
        rtol=0,
        atol=0,
        kernels=1,
    )


def black_scholes_fn(price, strike, years):
    rate, sigma = 0.02, 0.3
    width = sigma * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + 0.5 * sigma * sigma) * years) / width
    d2 = d1 - width
    cdf1 = 0.5 * (1 + np.tanh(0.7978845608 * (d1 + 0.044715 * d1 * d1 * d1)))
    cdf2 = 0.5 * (1 + np.tanh(0.7978845608 * (d2 + 0.044715 * d2 * d2 * d2)))
    discounted = strike * np.exp(-rate * years)
    call = price * cdf1 - discounted * cdf2
    return call, call - price + discounted


@_workload
def black_scholes(rng, tiny):
    n = 1 << (10 if tiny else 22)
    price, strike, years = (
        (low + (high - low) * rng.random(n, dtype=np.float32)).astype(np.float32)
        for low, high in ((10, 100), (10, 100), (0.2, 3))
    )
    return Workload(
        "black_scholes",
        f"calls and puts of {n} options, float32",
        black_scholes_fn,
        (price, strike, years),
        5 * price.nbytes,
        36 * n,
        rtol=1e-4,
        atol=1e-4,
        kernels=1,
    )


def gelu_fn(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@_workload
def gelu(rng, tiny):
    x = _f32(rng, 1 << (10 if tiny else 23))
    return Workload(
        "gelu",
        f"gelu by tanh of {x.size} float32",
        gelu_fn,
        (x,),
        2 * x.nbytes,
        9 * x.size,
        atol=1e-6,
        kernels=1,
    )


def mask_fn(x, y):
    return np.where((x > 0.1) & (x < 0.9) & (y > 0), x * y, 0.5 * x)


@_workload
def mask(rng, tiny):
    x, y = (_f32(rng, 1 << (10 if tiny else 22)) for _ in range(2))
    return Workload(
        "mask", f"where over {x.size} float32", mask_fn, (x, y), 3 * x.nbytes, 8 * x.size, kernels=1
    )


def adam_fn(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.001 * (m / 0.5) / (np.sqrt(v / 0.25) + 1e-8), m, v


@_workload
def adam(rng, tiny):
    n = 1 << (10 if tiny else 22)
    p, g, m = (_f32(rng, n) for _ in range(3))
    v = np.abs(_f32(rng, n))
    return Workload(
        "adam",
        f"update of {n} float32 parameters",
        adam_fn,
        (p, g, m, v),
        7 * p.nbytes,
        14 * n,
        kernels=1,
    )


# Reductions and rows.


def sum_all_fn(x):
    return np.sum(x)


def sum_axis0_fn(x):
    return np.sum(x, axis=0)


def sum_axis1_fn(x):
    return np.sum(x, axis=1)


def _sum(name, fn, rng, tiny, out):
    x = rng.random((64, 96) if tiny else (4096, 4096), dtype=np.float32)
    return Workload(
        name,
        f"{x.shape[0]}x{x.shape[1]} float32",
        fn,
        (x,),
        x.nbytes + 4 * out(x),
        x.size,
        rtol=2e-5,
    )


@_workload
def sum_all(rng, tiny):
    return _sum("sum_all", sum_all_fn, rng, tiny, lambda x: 1)


@_workload
def sum_axis0(rng, tiny):
    return _sum("sum_axis0", sum_axis0_fn, rng, tiny, lambda x: x.shape[1])


@_workload
def sum_axis1(rng, tiny):
    return _sum("sum_axis1", sum_axis1_fn, rng, tiny, lambda x: x.shape[0])


def mean_var_fn(x):
    mean = np.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    return mean, np.mean(centred * centred, axis=-1, keepdims=True)


def softmax_fn(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layernorm_fn(x, gamma, beta):
    mean = np.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gamma + beta


def rmsnorm_fn(x, gamma):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * gamma


def logsumexp_fn(x):
    top = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=-1, keepdims=True)) + top


def _rows(rng, tiny):
    return _f32(rng, *((16, 64) if tiny else (4096, 1024)))


@_workload
def mean_var(rng, tiny):
    x = _rows(rng, tiny)
    return Workload(
        "mean_var",
        f"rows of {x.shape[0]}x{x.shape[1]} float32",
        mean_var_fn,
        (x,),
        x.nbytes + 8 * x.shape[0],
        4 * x.size,
        rtol=1e-4,
        kernels=1,
    )


@_workload
def softmax(rng, tiny):
    x = _rows(rng, tiny)
    return Workload(
        "softmax",
        f"rows of {x.shape[0]}x{x.shape[1]} float32",
        softmax_fn,
        (x,),
        2 * x.nbytes,
        5 * x.size,
        atol=1e-7,
        kernels=1,
    )


@_workload
def layernorm(rng, tiny):
    x = _rows(rng, tiny)
    gamma, beta = _f32(rng, x.shape[1]), _f32(rng, x.shape[1])
    return Workload(
        "layernorm",
        f"rows of {x.shape[0]}x{x.shape[1]} float32",
        layernorm_fn,
        (x, gamma, beta),
        2 * x.nbytes + _size(gamma, beta),
        7 * x.size,
        rtol=1e-4,
        atol=1e-5,
        kernels=1,
    )


@_workload
def rmsnorm(rng, tiny):
    x = _rows(rng, tiny)
    gamma = _f32(rng, x.shape[1])
    return Workload(
        "rmsnorm",
        f"rows of {x.shape[0]}x{x.shape[1]} float32",
        rmsnorm_fn,
        (x, gamma),
        2 * x.nbytes + gamma.nbytes,
        4 * x.size,
        rtol=1e-4,
        kernels=1,
    )


@_workload
def logsumexp(rng, tiny):
    x = _rows(rng, tiny)
    return Workload(
        "logsumexp",
        f"rows of {x.shape[0]}x{x.shape[1]} float32",
        logsumexp_fn,
        (x,),
        x.nbytes + 4 * x.shape[0],
        4 * x.size,
        kernels=1,
    )


def cumsum_fn(x):
    return np.cumsum(x, axis=-1)


@_workload
def cumsum(rng, tiny):
    x = rng.random((16, 64) if tiny else (4096, 1024), dtype=np.float32)
    return Workload(
        "cumsum",
        f"rows of {x.shape[0]}x{x.shape[1]} float32",
        cumsum_fn,
        (x,),
        2 * x.nbytes,
        x.size,
        rtol=1e-4,
    )


# Contractions.


def matmul_fn(a, b):
    return a @ b


def linear_fn(a, b, bias):
    return np.maximum(a @ b + bias, 0.0)


def mlp_fn(x, w1, b1, w2, b2):
    return np.maximum(x @ w1 + b1, 0.0) @ w2 + b2


def attention_fn(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) * 0.125
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return (e / np.sum(e, axis=-1, keepdims=True)) @ v


def _matmul(name, fn, rng, n, *, bias=False):
    a, b = _f32(rng, n, n), _f32(rng, n, n)
    args = (a, b, _f32(rng, n)) if bias else (a, b)
    return Workload(
        name,
        f"{n}x{n} float32",
        fn,
        args,
        _size(*args) + a.nbytes,
        2 * n**3,
        rtol=1e-4,
        atol=1e-3,
        kernels=1,
    )


@_workload
def matmul_512(rng, tiny):
    return _matmul("matmul_512", matmul_fn, rng, 33 if tiny else 512)


@_workload
def matmul_1024(rng, tiny):
    return _matmul("matmul_1024", matmul_fn, rng, 34 if tiny else 1024)


@_workload
def matmul_2048(rng, tiny):
    return _matmul("matmul_2048", matmul_fn, rng, 35 if tiny else 2048)


@_workload
def matmul_bias_relu(rng, tiny):
    return _matmul("matmul_bias_relu", linear_fn, rng, 36 if tiny else 1024, bias=True)


@_workload
def mlp(rng, tiny):
    rows, inputs, hidden, outputs = (8, 12, 20, 4) if tiny else (256, 784, 256, 10)
    x = _f32(rng, rows, inputs)
    w1, b1 = _f32(rng, inputs, hidden) / 28, _f32(rng, hidden)
    w2, b2 = _f32(rng, hidden, outputs) / 16, _f32(rng, outputs)
    return Workload(
        "mlp",
        f"{rows} rows, {inputs}-{hidden}-{outputs}, float32",
        mlp_fn,
        (x, w1, b1, w2, b2),
        _size(x, w1, b1, w2, b2) + 4 * rows * outputs,
        2 * rows * hidden * (inputs + outputs),
        rtol=1e-4,
        atol=1e-4,
        kernels=2,
    )


@_workload
def attention(rng, tiny):
    heads, length, depth = (2, 9, 8) if tiny else (8, 512, 64)
    q, k, v = (_f32(rng, heads, length, depth) for _ in range(3))
    return Workload(
        "attention",
        f"{heads} heads of {length}x{depth} float32",
        attention_fn,
        (q, k, v),
        4 * q.nbytes,
        4 * heads * length * length * depth,
        rtol=1e-4,
        atol=1e-5,
    )


# Stencils, distances, gathers and loops.


def conv_fn(x):
    n, m = x.shape[0] - 2, x.shape[1] - 2
    return (
        0.0625 * (x[:n, :m] + x[:n, 2:] + x[2:, :m] + x[2:, 2:])
        + 0.125 * (x[:n, 1:-1] + x[2:, 1:-1] + x[1:-1, :m] + x[1:-1, 2:])
        + 0.25 * x[1:-1, 1:-1]
    )


def jacobi_fn(u):
    for _ in range(4):
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u = np.pad(inner, 1)
    return u


def distances_fn(a, b):
    d = a[:, None, :] - b[None, :, :]
    return np.sqrt(np.sum(d * d, axis=-1))


def mandelbrot_fn(x, y):
    re, im = x, y
    count = np.zeros_like(x)
    for _ in range(24):
        a, b = re * re, im * im
        inside = a + b < 4.0
        count = count + np.where(inside, 1.0, 0.0)
        im = np.where(inside, 2.0 * re * im + y, im)
        re = np.where(inside, a - b + x, re)
    return count


def kmeans_fn(x, centres):
    d = np.sum(x * x, axis=1)[:, None] - 2.0 * (x @ centres.T) + np.sum(centres * centres, axis=1)
    return np.argmin(d, axis=1), np.sum(np.min(d, axis=1))


def nbody_fn(position, mass):
    d = position[None, :, :] - position[:, None, :]
    r2 = np.sum(d * d, axis=-1) + 0.01
    pull = mass / (r2 * np.sqrt(r2))
    return np.sum(d * pull[:, :, None], axis=1)


def gather_fn(table, index):
    return table[index] * 2.0


def scatter_add_fn(values, index, bins):
    result = bins + 0.0
    np.add.at(result, index, values)
    return result


def transpose_add_fn(x):
    return x + x.T


def as_float32(x):
    return x.astype(np.float32)


def normal_fn(counter):
    """Normal numbers from counters: a mixing function, then Box and Muller."""
    a = counter * 747796405 + 277803737
    a = (a ^ ((a >> 16) & 65535)) * 2146121005
    a = a ^ ((a >> 15) & 131071)
    b = (a ^ 1540483477) * 668265261
    b = b ^ ((b >> 13) & 524287)
    u = as_float32((a & 16777215) + 1) * 5.9604645e-08
    v = as_float32(b & 16777215) * 3.7450704e-07
    return np.sqrt(-2.0 * np.log(u)) * np.cos(v)


@_workload
def conv_shifts(rng, tiny):
    x = _f32(rng, *((20, 30) if tiny else (2048, 2048)))
    return Workload(
        "conv_shifts",
        f"3x3 blur of {x.shape[0]}x{x.shape[1]} float32",
        conv_fn,
        (x,),
        2 * x.nbytes,
        11 * x.size,
        atol=1e-5,
        kernels=1,
    )


@_workload
def jacobi(rng, tiny):
    x = _f32(rng, *((20, 30) if tiny else (1024, 1024)))
    return Workload(
        "jacobi",
        f"4 sweeps of {x.shape[0]}x{x.shape[1]} float32",
        jacobi_fn,
        (x,),
        2 * x.nbytes,
        16 * x.size,
    )


@_workload
def pairwise(rng, tiny):
    n, k = (12, 3) if tiny else (1024, 3)
    a, b = _f32(rng, n, k), _f32(rng, n, k)
    return Workload(
        "pairwise",
        f"distances of {n} and {n} points in {k} dimensions, float32",
        distances_fn,
        (a, b),
        _size(a, b) + 4 * n * n,
        n * n * (3 * k + 1),
        rtol=1e-4,
        kernels=1,
    )


@_workload
def mandelbrot(rng, tiny):
    n = 24 if tiny else 512
    x = np.broadcast_to(np.linspace(-2, 0.6, n, dtype=np.float32), (n, n)).copy()
    y = np.broadcast_to(np.linspace(-1.2, 1.2, n, dtype=np.float32)[:, None], (n, n)).copy()
    # Where |z| is within rounding of 2, one count more or less is right.
    return Workload(
        "mandelbrot",
        f"24 iterations of {n}x{n} float32",
        mandelbrot_fn,
        (x, y),
        3 * x.nbytes,
        24 * 10 * x.size,
        atol=1.01,
    )


@_workload
def kmeans(rng, tiny):
    n, k, d = (50, 4, 3) if tiny else (100_000, 16, 8)
    x, centres = _f32(rng, n, d), _f32(rng, k, d)
    return Workload(
        "kmeans",
        f"nearest of {k} centres for {n} points in {d} dimensions, float32",
        kmeans_fn,
        (x, centres),
        _size(x, centres) + 8 * n,
        2 * n * k * d,
        rtol=1e-4,
    )


@_workload
def nbody(rng, tiny):
    n = 12 if tiny else 1024
    position, mass = _f32(rng, n, 3), np.abs(_f32(rng, n))
    return Workload(
        "nbody",
        f"forces among {n} bodies, float32",
        nbody_fn,
        (position, mass),
        _size(position, mass) + position.nbytes,
        18 * n * n,
        rtol=1e-3,
        atol=1e-2,
    )


@_workload
def gather(rng, tiny):
    rows, width, n = (32, 8, 50) if tiny else (20_000, 64, 65_536)
    table, index = _f32(rng, rows, width), rng.integers(0, rows, n)
    return Workload(
        "gather",
        f"{n} rows of {rows}x{width} float32",
        gather_fn,
        (table, index),
        _size(table, index) + 4 * n * width,
        n * width,
    )


@_workload
def scatter_add(rng, tiny):
    n, bins = (50, 8) if tiny else (1 << 20, 4096)
    values = rng.random(n, dtype=np.float32)
    index = rng.integers(0, bins, n)
    zeros = np.zeros(bins, np.float32)
    return Workload(
        "scatter_add",
        f"{n} float32 into {bins} bins",
        scatter_add_fn,
        (values, index, zeros),
        _size(values, index, zeros) + zeros.nbytes,
        n,
        rtol=1e-4,
    )


@_workload
def transpose_add(rng, tiny):
    x = _f32(rng, *((17, 17) if tiny else (4096, 4096)))
    return Workload(
        "transpose_add",
        f"{x.shape[0]}x{x.shape[1]} float32",
        transpose_add_fn,
        (x,),
        2 * x.nbytes,
        x.size,
        kernels=1,
    )


@_workload
def normal(rng, tiny):
    counter = np.arange(1 << (10 if tiny else 22), dtype=np.int32)
    return Workload(
        "normal",
        f"{counter.size} float32 from counters",
        normal_fn,
        (counter,),
        2 * counter.nbytes,
        25 * counter.size,
        rtol=1e-4,
        atol=1e-4,
        kernels=1,
    )


# Overhead of a call.


def tiny_fn(a, b):
    return a + b


def many_fn(*arrays):
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total


@_workload
def tiny_call(rng, tiny):
    a, b = _f32(rng, 3), _f32(rng, 3)
    return Workload("tiny_call", "a + b of 3 float32", tiny_fn, (a, b), 36, 3, kernels=1)


@_workload
def many_arguments(rng, tiny):
    arrays = tuple(_f32(rng, 3) for _ in range(30))
    return Workload(
        "many_arguments", "sum of 30 arrays of 3 float32", many_fn, arrays, 31 * 12, 87, kernels=1
    )
