"""The table of NumPy's functions that can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
# Functions that run on the host where no traced form takes the call. Each has a function that makes
# the arrays with which host.py asks NumPy about the results.
ON_HOST: dict[Any, Callable[..., Any]] = {}


def named(module: Any, names: str) -> list[Any]:
    """The functions of these names that this version of NumPy has in the module."""
    return [getattr(module, name) for name in names.split() if hasattr(module, name)]


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the traced form of NumPy functions."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            FUNCTIONS[function] = handler
        return handler

    return register


# Functions that return views of their arguments, or one of them as it is.
VIEWS = frozenset(
    [
        *named(
            np,
            "reshape ravel transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis"
            " expand_dims squeeze broadcast_to broadcast_arrays atleast_1d atleast_2d atleast_3d"
            " ix_ einsum shape ndim size array_split split hsplit vsplit dsplit unstack flip"
            " fliplr flipud rot90 diag diagonal real imag real_if_close",
        ),
        *named(np.linalg, "diagonal matrix_transpose"),
        np.lib.stride_tricks.sliding_window_view,
    ]
)
