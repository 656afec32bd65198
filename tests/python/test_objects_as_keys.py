"""Objects with arrays that are keys of dicts and members of sets: there are no copies of them."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import rune_jit

X = np.array([0.5, 0.75, 2.0])


class Normal:
    def __init__(self, mean: float) -> None:
        self.mean = np.full(3, mean)

    def density(self, x: Any, cache: dict[Any, Any]) -> Any:
        key = (0, self)
        if key not in cache:
            cache[key] = np.exp(-((x - self.mean) ** 2))
        return cache[key]


@dataclasses.dataclass(eq=False)
class Layer:
    weight: Any


@pytest.mark.parametrize("in_cell", (False, True))
def test_a_memo(in_cell: bool) -> None:
    normal = Normal(1.0)
    cache: dict[Any, Any] = {}
    if in_cell:
        jitted: Any = rune_jit.jit(lambda x: normal.density(x, cache))
        found = [jitted(X) for _ in range(3)]
    else:
        jitted = rune_jit.jit(Normal.density)
        found = [jitted(normal, X, cache) for _ in range(3)]
    for density in found:
        np.testing.assert_allclose(density, normal.density(X, {}))
    ((key, value),) = cache.items()
    assert key[1] is normal and type(value) is np.ndarray


def test_state_of_layers() -> None:
    def update(layer: Any, x: Any, state: Any) -> Any:
        state[layer] = state.get(layer, 0) + x * layer.weight
        return state[layer] * 2

    jitted = rune_jit.jit(update)
    layers = [Layer(np.ones(3)), Layer(X)]
    found: dict[Any, Any] = {}
    wanted: dict[Any, Any] = {}
    for _ in range(3):
        for layer in layers:
            np.testing.assert_allclose(jitted(layer, X, found), update(layer, X, wanted))
    assert [*found] == layers


def test_keys_of_results() -> None:
    normal = Normal(1.0)
    jitted = rune_jit.jit(lambda x: {normal: x * normal.mean})
    for _ in range(3):
        assert [key is normal for key in jitted(X)] == [True]


def test_members_and_keys_outside() -> None:
    one, two = Normal(1.0), Normal(2.0)
    seen, names, factors = {one}, {one: "one"}, {(1, one): 2.0}

    def f(normal: Any, x: Any) -> Any:
        factor = factors.get((1, normal), 7.0)
        return x * (2 if normal in seen else 3), names.get(normal, "none"), normal.mean * factor

    jitted = rune_jit.jit(f)
    for normal in (one, two, one, two):
        for found, wanted in zip(jitted(normal, X), f(normal, X), strict=True):
            np.testing.assert_array_equal(found, wanted)
