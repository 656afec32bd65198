"""Objects that functions are given, and calls of a function and its jitted twin with copies of
them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from compare import assert_matches

import rune_jit

X = np.arange(1.0, 7.0)


def follow(
    function: Callable[..., Any], calls: list[tuple[Any, ...]], misses: int | None = None
) -> Any:
    """Calls a function and its jitted twin, which takes copies of the arguments. `misses`: how many
    traces there are."""
    jitted = rune_jit.jit(function)
    for args in calls:
        theirs = copy.deepcopy(args)
        wanted, found = function(*theirs), jitted(*args)
        assert_matches(described(found), described(wanted))
        assert_matches(described(args), described(theirs))
    if misses is not None:
        assert jitted.cache_info().misses == misses
    return jitted


def described(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, *map(described, x)]
    if isinstance(x, dict):
        return {key: described(value) for key, value in x.items()}
    if hasattr(x, "__self__") or isinstance(x, (np.ndarray, np.generic)) or not described_by(x):
        return x if isinstance(x, (np.ndarray, np.generic, int, float, str)) else type(x).__name__
    return {"class": type(x).__name__} | {
        key: described(getattr(x, key)) for key in described_by(x)
    }


def described_by(x: Any) -> list[str]:
    return [*getattr(x, "__dict__", ()), *getattr(x, "__slots__", ())]


class Settings:
    def __init__(self, factor: Any = 2.0, name: str = "") -> None:
        self.factor = factor
        self.name = name


class Layer:
    def __init__(self, seed: int = 0, rows: int = 6, factor: float = 2.0) -> None:
        self.weights = np.random.default_rng(seed).random((rows, 6))
        self.bias = np.full(rows, float(seed))
        self.activation = np.tanh
        self.settings = Settings(factor)
        self.sizes = [rows, 6]
        self.names = {"in": "x", "out": "y"}

    def __call__(self, x: Any) -> Any:
        y = self.activation(self.weights @ x + self.bias) * self.settings.factor
        return y / self.sizes[1] if self.names["in"] == "x" else y


def scaled(settings: Any, x: Any) -> Any:
    return x * settings.factor
