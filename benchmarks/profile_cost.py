"""What a profile costs a call: the time of calls with and without one, in turns.

    python benchmarks/profile_cost.py

CPU times of the thread that calls, so that other work on the machine counts little.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import rune_jit

_ROUNDS = 15
_CALLS = 2000


def elementwise(x):
    return np.sqrt(x) * 2 + 1


def four_kernels(x):
    for _ in range(4):
        x = np.cumsum(x) * 0.5
    return x


def seconds(call: Callable[[], Any]) -> float:
    start = time.thread_time()
    for _ in range(_CALLS):
        call()
    return (time.thread_time() - start) / _CALLS


def profiled(call: Callable[[], Any]) -> float:
    with rune_jit.profile():
        return seconds(call)


def main() -> None:
    print(f"{'':24}{'without':>10}{'with':>10}{'more':>10}   (us a call)")
    for function in (elementwise, four_kernels):
        for size in (10, 10_000):
            jitted = rune_jit.jit(function, device="cpu")
            x = np.ones(size)
            jitted(x)
            pairs = [
                (seconds(lambda j=jitted, a=x: j(a)), profiled(lambda j=jitted, a=x: j(a)))
                for _ in range(_ROUNDS)
            ]
            without = 1e6 * statistics.median(a for a, _ in pairs)
            more = 1e6 * statistics.median(b - a for a, b in pairs)
            name = f"{function.__name__}[{size}]"
            print(f"{name:24}{without:10.2f}{without + more:10.2f}{more:10.2f}")


if __name__ == "__main__":
    main()
