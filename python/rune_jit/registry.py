"""The table of NumPy's functions that can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
# Those that may run on the host, where no traced form takes the call, with what numpy_host.py asks
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
