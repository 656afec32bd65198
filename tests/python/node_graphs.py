"""What builds the graphs of node_cases.py, and arrays for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from devices import HAS_FLOAT64

from rune_jit import ir

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOAT64 = [np.dtype("float64")] if HAS_FLOAT64 else []
DTYPES = [
    *(np.dtype(kind + str(size)) for kind in "iu" for size in (1, 2, 4, 8)),
    *(np.dtype(name) for name in ("bool", "float16", "float32")),
    BF16,
    *FLOAT64,
]
SPECIAL = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 3e38], np.float32)


class Graph(ir.Builder):
    """A builder that remembers the arguments of its placeholders."""

    def __init__(self) -> None:
        super().__init__()
        self.arguments: list[np.ndarray] = []

    def input(self, array: Any) -> ir.Value:
        array = np.asarray(array)
        self.arguments.append(array)
        return self.placeholder(array.dtype, array.shape)


Expected = list[tuple[ir.Value, Any]]
Case = Callable[[Graph], Expected]


def sample(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).integers(-50, 50, shape)
    if np.dtype(dtype).kind in "u":
        values = np.abs(values)
    return (values > 0 if np.dtype(dtype) == bool else values).astype(dtype)
