"""Functions that test_profile.py profiles: their lines are known."""

from __future__ import annotations

from typing import Any

import numpy as np

scale = 2.0


def elementwise(x: Any) -> Any:
    return np.sqrt(x) * 2 + 1


def two_kernels(x: Any) -> Any:
    return x.T @ x, np.exp(x).sum(axis=0)


def with_global(x: Any) -> Any:
    return x * scale


def reads(x: Any) -> Any:
    total = x.sum()
    if total.tolist() > 0:  # a read
        return x + 1
    return x - 1


def sorts(x: Any) -> Any:
    return np.sort(x * 2) + 1  # a call to NumPy inside of the program


def prints(x: Any, seen: list[float]) -> Any:
    for i in range(3):
        seen.append(float(x[i]))
    return x * 2


def unrolled(x: Any, n: int) -> Any:
    for _ in [*range(n)]:
        x = np.sin(x) + 1
    return x
