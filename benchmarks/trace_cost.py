"""What tracing one operation costs in Python: microseconds, by operation.

    python benchmarks/trace_cost.py                  # all operations
    python benchmarks/trace_cost.py --profile add    # and where the time of one goes

The figure is the difference between traces with many and with few repetitions of the operation,
divided by their number. It has the time from the operator to the end of the trace, but neither
passes nor compilation. The repetitions are in a loop over a list, which is unrolled. `add_to_slice`
is three operations: it reads a slice, adds and writes.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import rune_jit


def empty(x, y, n):
    for _ in [*range(n)]:
        y = x
    return y


def add(x, y, n):
    for _ in [*range(n)]:
        y = y + x
    return y


def add_scalar(x, y, n):
    for _ in [*range(n)]:
        y = y + 2.0
    return y


def radd_scalar(x, y, n):
    for _ in [*range(n)]:
        y = 2.0 + y
    return y


def compare(x, y, n):
    for _ in [*range(n)]:
        y = x < 1.0
    return y


def negative(x, y, n):
    for _ in [*range(n)]:
        y = -y
    return y


def add_in_place(x, y, n):
    for _ in [*range(n)]:
        y += x
    return y


def numpy_scalar(x, y, n):
    one = np.float32(1)
    for _ in [*range(n)]:
        y = y * one
    return y


def ufunc(x, y, n):
    for _ in [*range(n)]:
        y = np.sin(y)
    return y


def binary_ufunc(x, y, n):
    for _ in [*range(n)]:
        y = np.add(x, y)
    return y


def out(x, y, n):
    for _ in [*range(n)]:
        np.add(x, y, out=y)
    return y


def composed_ufunc(x, y, n):
    for _ in [*range(n)]:
        y = np.hypot(x, y)
    return y


def where(x, y, n):
    mask = x > 0
    for _ in [*range(n)]:
        y = np.where(mask, x, y)
    return y


def method_sum(x, y, n):
    for _ in [*range(n)]:
        y = x.sum()
    return y


def sum_of_axis(x, y, n):
    for _ in [*range(n)]:
        y = np.sum(x, axis=0)
    return y


def mean(x, y, n):
    for _ in [*range(n)]:
        y = x.mean()
    return y


def matmul(x, y, n):
    for _ in [*range(n)]:
        y = x @ x
    return y


def slice_(x, y, n):
    for _ in [*range(n)]:
        y = x[1:-1]
    return y


def element(x, y, n):
    for _ in [*range(n)]:
        y = x[3]
    return y


def write(x, y, n):
    part = y[1:-1]
    for _ in [*range(n)]:
        x[1:-1] = part
    return x


def write_number(x, y, n):
    for _ in [*range(n)]:
        x[3] = 1.0
    return x


def add_to_slice(x, y, n):
    for _ in [*range(n)]:
        x[1:-1] += 1.0
    return x


def reshape(x, y, n):
    for _ in [*range(n)]:
        y = x.reshape(-1, 1)
    return y


def transpose(x, y, n):
    for _ in [*range(n)]:
        y = x.T
    return y


def astype(x, y, n):
    for _ in [*range(n)]:
        y = x.astype(np.int32)
    return y


def shape(x, y, n):
    for _ in [*range(n)]:
        x.shape  # noqa: B018
    return y


def dtype(x, y, n):
    for _ in [*range(n)]:
        x.dtype  # noqa: B018
    return y


OPERATIONS: dict[str, Callable[..., Any]] = {
    f.__name__.rstrip("_"): f
    for f in (
        *(empty, add, add_scalar, radd_scalar, numpy_scalar, compare, negative, add_in_place),
        *(ufunc, binary_ufunc, out, composed_ufunc, where, method_sum, sum_of_axis, mean, matmul),
        *(slice_, element, write, write_number, add_to_slice, reshape, transpose, astype),
        *(shape, dtype),
    )
}
FEW = 100


def trace_time(function: Callable[..., Any], n: int, repeat: int = 15) -> float:
    """The least time of a trace, in seconds of the process."""
    x = np.ones((8, 8), np.float32)
    traced = rune_jit.jit(function, static_argnums=2, fallback="error")
    traced.trace(x, x.copy(), 2 * n)  # (From then on, the process has the memory that traces need.)
    best = float("inf")
    for _ in range(repeat):
        gc.collect()
        start = time.process_time()
        traced.trace(x, x.copy(), n)
        best = min(best, time.process_time() - start)
    return best


def microseconds(name: str, n: int) -> float:
    function = OPERATIONS[name]
    return (trace_time(function, n + FEW) - trace_time(function, FEW)) / n * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("operations", nargs="*", choices=[*OPERATIONS, []], default=[])
    parser.add_argument("-n", type=int, default=1000, help="repetitions in a trace")
    parser.add_argument("--profile", choices=list(OPERATIONS), help="print a profile of it")
    options = parser.parse_args()
    if options.profile:
        x = np.ones((8, 8), np.float32)
        traced = rune_jit.jit(OPERATIONS[options.profile], static_argnums=2, fallback="error")
        profile = cProfile.Profile()
        profile.runcall(traced.trace, x, x.copy(), options.n)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    for name in options.operations or OPERATIONS:
        print(f"{name:16} {microseconds(name, options.n):6.2f} us", flush=True)


if __name__ == "__main__":
    main()
