"""The table of rules for NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
# Functions that run on the host if no rule accepts the call. Each has a probe for host.py.
ON_HOST: dict[Any, Callable[..., Any]] = {}


def named(module: Any, names: str) -> list[Any]:
    """The functions with these names that the module has in this version of NumPy."""
    return [getattr(module, name) for name in names.split() if hasattr(module, name)]


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the rule of NumPy functions."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            FUNCTIONS[function] = handler
        return handler

    return register


# Functions that return views of arrays of every layout.
VIEWS_OF_ANY_LAYOUT = frozenset(
    [
        *named(
            np,
            "transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis expand_dims squeeze"
            " broadcast_to broadcast_arrays atleast_1d atleast_2d atleast_3d array_split split"
            " hsplit vsplit dsplit unstack flip fliplr flipud rot90 diagonal real imag",
        ),
        *named(np.linalg, "diagonal matrix_transpose"),
        np.lib.stride_tricks.sliding_window_view,
    ]
)
# Functions that may return views of their arguments, or an argument itself.
VIEWS = VIEWS_OF_ANY_LAYOUT.union(
    named(np, "reshape ravel ix_ einsum shape ndim size diag real_if_close")
)
