"""A user's program, for test_types.py: mypy finds the types and errors in the comments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from typing_extensions import reveal_type

import rune_jit
import rune_jit.numpy as xp
from rune_jit import Array, random

Floats = NDArray[np.float64]


@rune_jit.jit
def scale(x: Floats, n: int = 2) -> Floats:
    return x * n


@rune_jit.jit(device="cpu", fallback="error")
def both(x: Array) -> tuple[Array, float]:
    return x, 1.0


class Model:
    @rune_jit.jit
    def step(self, x: float) -> float:
        return x


x = np.ones(3)
a = rune_jit.asarray(x)

# What jit returns.
reveal_type(scale(x, n=3))  # : ndarray[tuple[Any, ...], dtype[float64]]
reveal_type(scale.__wrapped__(x))  # : ndarray[tuple[Any, ...], dtype[float64]]
reveal_type(both(a))  # : tuple[Array, float]
reveal_type(Model().step(1.0))  # : float
reveal_type(Model.step(Model(), 1.0))  # : float
reveal_type(Model().step.lower(1.0))  # : Lowered
reveal_type(scale.lower(x).cost_analysis())  # : dict[str, float]
reveal_type(scale.lower(x).source())  # : str
reveal_type(scale.explain())  # : str
reveal_type(scale.cache_info().hits)  # : int
scale("no")  # error: arg-type
scale(x, m=1)  # error: call-arg
scale.lower("no")  # error: arg-type
rune_jit.jit(scale, devise="cpu")  # error: call-overload
rune_jit.jit(scale, fallback="never")  # error: call-overload

# Arrays.
reveal_type(a + 1)  # : Array
reveal_type(1 - a)  # : Array
reveal_type(a @ a)  # : Array
reveal_type(a == a)  # : Array
reveal_type(a < 1)  # : Array
reveal_type(-a)  # : Array
reveal_type(a[0])  # : Array
reveal_type(a.sum(axis=0))  # : Array
reveal_type(a.reshape(3, 1).T)  # : Array
reveal_type(a.astype(np.float32).copy())  # : Array
reveal_type(a.to_device("cpu").block_until_ready())  # : Array
reveal_type([row for row in a])  # : list[Array]
reveal_type(divmod(a, 2))  # : tuple[Array, Array]
reveal_type(a.shape)  # : tuple[int, ...]
reveal_type(a.device)  # : str
reveal_type(float(a[0]))  # : float
reveal_type(np.asarray(a))  # : ndarray[tuple[Any, ...], dtype[Any]]
reveal_type(rune_jit.array([1.0]))  # : Array
reveal_type(rune_jit.from_dlpack(x))  # : Array
reveal_type(rune_jit.device_put(x, "cpu"))  # : Array

# The array API standard.
reveal_type(xp.sin(a))  # : Array
reveal_type(xp.sum(a, axis=0))  # : Array
reveal_type(xp.concat([a, a]))  # : Array
reveal_type(xp.zeros(3, dtype=xp.float32))  # : Array
reveal_type(xp.sort(a))  # : Array
reveal_type(xp.unique_values(a))  # : Array
reveal_type(xp.meshgrid(a, a))  # : list[Array]
reveal_type(xp.linalg.inv(a))  # : Array
reveal_type(xp.fft.rfft(a))  # : Array
xp.sum(a, axes=0)  # error: call-arg

# Random numbers: of the kind of the key.
reveal_type(random.normal(random.key(0), (3,)))  # : ndarray[tuple[Any, ...], dtype[Any]]
reveal_type(random.normal(random.key(0, device="cpu"), (3,)))  # : Array
reveal_type(random.split(random.key(0, device="cpu")))  # : Array

# Loops and choices.
reveal_type(rune_jit.fori_loop(0, 3, lambda i, v: v + i, a))  # : Array
reveal_type(rune_jit.while_loop(lambda v: v < 3, lambda v: v + 1, 0.0))  # : float
reveal_type(rune_jit.scan(lambda c, y: (c + y, c), a, a)[0])  # : Array
halved = rune_jit.iterate(lambda v: v / 2, a, until=lambda old, new: old is new, max=3)
reveal_type(halved)  # : tuple[Array, int]
reveal_type(rune_jit.cond(True, lambda v: a, lambda v: a + 1, 3))  # : Array
rune_jit.fori_loop(0, 3, lambda v: v, a)  # error: arg-type, misc
