"""Random chains of views of rune_jit.Arrays, and writes to them, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import outcome
from devices import devices

import rune_jit
from rune_jit import jit

VIEWS: list[Callable[[Any], Any]] = [
    lambda a: a.T,
    lambda a: a.reshape(-1),
    lambda a: a[..., ::-1],
    lambda a: a[::2],
    lambda a: a[1:],
    lambda a: a[None],
    lambda a: a[..., :2],
    lambda a: np.moveaxis(a, 0, -1),
]


@jit
def add_to(x: Any, y: Any) -> Any:
    x += y
    return x * 2


@jit
def exchange(x: Any, y: Any) -> None:
    x[...] = y[::-1]
    y *= 2


@jit
def ends(x: Any, y: Any) -> Any:
    x[0] = x[-1] + 1
    return y.T


@jit
def decide(x: Any, y: Any) -> Any:
    if x.sum().item() > y.sum().item():
        x[-1] = y[0]
    y += 1
    return x + 1


@jit
def reshape_both(x: Any, y: Any) -> None:
    x.reshape(-1)[0] = 7
    y.T.ravel()[-1:] = 3


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    *(add_to, exchange, ends, decide, reshape_both),
    lambda x, y: x.fill(50),
    lambda x, y: x.__iadd__(y),
    lambda x, y: np.multiply(x, 2, out=y),
    lambda x, y: x.__setitem__(y > 20, 0),
    lambda x, y: np.copyto(x, y),
    lambda x, y: x.sort(),
]


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
@pytest.mark.parametrize("seed", range(20))
def test_random_views(seed: int, device: str) -> None:
    random = np.random.default_rng(seed)
    shape = [(4, 6), (12,), (2, 3, 4)][seed % 3]
    numpys: list[Any] = [random.integers(0, 9, shape).astype(np.float32)]
    ours: list[Any] = [rune_jit.array(numpys[0], device=device)]
    for _ in range(20):
        i, j = random.integers(len(ours), size=2)
        if random.random() < 0.3:
            view = VIEWS[random.integers(len(VIEWS))]
            for arrays in (numpys, ours):
                arrays.append(view(arrays[i]))
            continue
        operation = OPERATIONS[random.integers(len(OPERATIONS))]
        plain = getattr(operation, "__wrapped__", operation)
        wanted, found = (
            outcome(f, arrays[i], arrays[j]) for f, arrays in ((plain, numpys), (operation, ours))
        )
        if isinstance(wanted, Exception):
            assert type(found) is type(wanted)
        elif wanted is not None:
            np.testing.assert_array_equal(found, wanted)
        for x, a in zip(ours, numpys, strict=True):
            np.testing.assert_array_equal(x, a)
