"""Random programs with dynamic axes: which sizes of the inputs are symbolic, and other sizes for
them."""

from __future__ import annotations

import contextlib
import math
import random
import resource
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from inputs import MOST_ELEMENTS
from programs import Program, Step

from rune_jit import Dim

# Sizes along which axes are split, tiled and shared by cores.
_LONG = (5000, 8192, 8209, 20000, 65537)
_MOST_LONG = 70000  # elements of an input with a long axis
_MOST_BOUND = 1 << 22  # elements of an array with the largest sizes


def with_dynamic_axes(program: Program, seed: int, names: int) -> Program | None:
    """The program with `names` sizes of its inputs dynamic, or all if there are fewer; now and then
    one of its sizes is a long one. None if there are none. Axes of one size are most often of one
    name."""
    rng = random.Random(seed)
    if rng.random() < 0.25:
        program = _with_long_axis(program, rng) or program
    sizes = sorted({n for _, _, n in _axes(program) if n > 1 or rng.random() < 0.1})
    sizes = [n for n in sizes if n > 0]
    if not sizes:
        return None
    chosen = rng.sample(sizes, min(names, len(sizes)))
    dims = {n: _dim(rng, f"n{i}", n, sizes) for i, n in enumerate(chosen)}
    every = rng.random() < 0.8
    dynamic: dict[int, dict[int, Any]] = {}
    for number, axis, size in _axes(program):
        if size in dims and (every or rng.random() < 0.7):
            dynamic.setdefault(number, {})[axis] = dims[size]
    # Memory is for the largest sizes: of inputs, and of a value that has all dynamic axes.
    if math.prod(_most(dim, n) for n, dim in dims.items()) > _MOST_BOUND:
        return None
    for number, axes in dynamic.items():
        shape = program.inputs[number].shape
        most = math.prod(_most(axes[i], n) if i in axes else n for i, n in enumerate(shape))
        if most > _MOST_BOUND:
            return None
    return replace(program, dynamic=dynamic)


def with_other_sizes(program: Program, seed: int) -> Program | None:
    """The same program on inputs of other sizes that its Dims allow, or None if NumPy refuses
    them."""
    rng = random.Random(seed)
    sizes: dict[str, int] = {}
    inputs = dict(program.inputs)
    for number, axes in program.dynamic.items():
        if number not in inputs:
            continue
        for axis, dim in axes.items():
            now = inputs[number].shape[axis]
            most = min(dim.max or 2 * now, now + 5 if now > 100 else 3 * now)
            low = max(dim.min, 1)
            size = sizes.setdefault(dim.name, rng.choice([low, most, rng.randint(low, most)]))
            inputs[number] = _resized(inputs[number], axis, size)
    layouts = {i: "C" if i in program.dynamic else x for i, x in program.layouts.items()}
    return _if_numpy_runs(_noisier(replace(program, inputs=inputs, layouts=layouts), 3))


def _axes(program: Program) -> list[tuple[int, int, int]]:
    """(input, axis, size)"""
    return [
        (number, axis, size)
        for number, array in program.inputs.items()
        if isinstance(array, np.ndarray)
        for axis, size in enumerate(array.shape)
    ]


def _dim(rng: random.Random, name: str, size: int, sizes: list[int]) -> Dim:
    """A Dim that allows the size; its bounds are often other sizes of the program."""
    highest = [None, size, size + 1, 1 << size.bit_length(), 3 * size + 1]
    highest += [n for n in sizes if n >= size] * 2
    lowest = [0, 1, 2, size // 2, size]
    return Dim(name, min(rng.choice(lowest), size), rng.choice(highest))


def _most(dim: Dim, size: int) -> int:
    """The largest size of the program that takes this one."""
    return max(256, 1 << (size - 1).bit_length()) if dim.max is None else dim.max


def _resized(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    return np.take(array, np.arange(size) % array.shape[axis], axis=axis)


def _with_long_axis(program: Program, rng: random.Random) -> Program | None:
    """The program with all axes of one size as long as _LONG has it."""
    sizes = sorted({n for _, _, n in _axes(program) if n > 1})
    if not sizes:
        return None
    size, long = rng.choice(sizes), rng.choice(_LONG)
    inputs = dict(program.inputs)
    for number, axis, n in _axes(program):
        if n != size:
            continue
        if math.prod(inputs[number].shape) // n * long > _MOST_LONG:
            return None
        inputs[number] = _resized(inputs[number], axis, long)
    longer = replace(program, inputs=inputs, layouts=dict.fromkeys(inputs, "C"))
    return _if_numpy_runs(_noisier(longer, long / size))


def _noisier(program: Program, factor: float) -> Program:
    """The program with the noise of sums that are so many times as long as its steps say."""
    steps = [replace(s, noise=s.noise and f"{factor} * ({s.noise})") for s in program.steps]
    return replace(program, steps=steps)


def _if_numpy_runs(program: Program) -> Program | None:
    """The program if NumPy runs it and no value is so large that running it takes long."""
    most = max(4 * MOST_ELEMENTS, 2 * _MOST_LONG)

    def check_size(step: Step, values: dict[str, Any], before: Any) -> None:
        if np.size(values[f"v{step.target}"]) > most:
            raise MemoryError(step.line)

    try:
        with (
            np.errstate(all="ignore"),
            warnings.catch_warnings(action="ignore"),
            _at_most(1 << 30),
        ):
            program.execute(check_size)
    except Exception:  # a shape in the program's text, an index out of range, too large a product
        return None
    return program


@contextlib.contextmanager
def _at_most(more: int) -> Iterator[None]:
    """Within it, allocations raise MemoryError that take so many bytes together (on Linux)."""
    sizes = Path("/proc/self/statm")
    if not sizes.exists():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(sizes.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
