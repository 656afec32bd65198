"""The table of NumPy's functions that can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
# Those that may run on the host, where no traced form takes the call, with what host.py asks
# NumPy about.
ON_HOST: dict[Any, Callable[..., Any]] = {}


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the traced form of NumPy functions."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            FUNCTIONS[function] = handler
        return handler

    return register


def supported_functions() -> list[str]:
    """Names of the NumPy functions (ufuncs apart) that can be traced."""
    return sorted({f.__name__ for f in (*FUNCTIONS, *ON_HOST)})


# Functions that return views of their arguments, or one of them as it is.
VIEWS = frozenset(
    [
        np.reshape,
        np.ravel,
        np.transpose,
        np.permute_dims,
        np.matrix_transpose,
        np.swapaxes,
        np.moveaxis,
        np.rollaxis,
        np.expand_dims,
        np.squeeze,
        np.broadcast_to,
        np.broadcast_arrays,
        np.atleast_1d,
        np.atleast_2d,
        np.atleast_3d,
        np.ix_,
        np.einsum,
        np.shape,
        np.ndim,
        np.size,
        np.array_split,
        np.split,
        np.hsplit,
        np.vsplit,
        np.dsplit,
        np.unstack,
        np.flip,
        np.fliplr,
        np.flipud,
        np.rot90,
        np.diagonal,
        np.real,
        np.real_if_close,
        np.lib.stride_tricks.sliding_window_view,
        np.linalg.diagonal,
        np.linalg.matrix_transpose,
    ]
)
