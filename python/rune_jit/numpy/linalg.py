"""The linear algebra extension of the array API standard 2024.12: numpy.linalg's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.numpy.namespace import make_all as _make_all

_FUNCTIONS = {
    "x, /": "det eigh eigvalsh inv matrix_transpose slogdet svdvals",
    "x1, x2, /": "matmul outer solve",
    "x, /, *, upper=False": "cholesky",
    "x1, x2, /, *, axis=-1": "cross vecdot",
    "x, /, *, offset=0": "diagonal",
    "x, /, *, keepdims=False, ord='fro'": "matrix_norm",
    "x, n, /": "matrix_power",
    "x, /, *, rtol=None": "matrix_rank pinv",
    "x, /, *, mode='reduced'": "qr",
    "x, /, *, full_matrices=True": "svd",
    "x1, x2, /, *, axes=2": "tensordot",
    "x, /, *, offset=0, dtype=None": "trace",
    "x, /, *, axis=None, keepdims=False, ord=2": "vector_norm",
}
globals().update(_make_all(_FUNCTIONS, np.linalg, __name__))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
