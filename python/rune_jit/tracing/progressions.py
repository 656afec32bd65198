"""Arrays whose elements are linear in their indices, such as those of np.arange and np.indices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Smaller arrays cost nothing to read. Elements must fit int32.
_FEWEST, _MOST = 64, 2**31
_MOST_TERMS = 2
_BLOCK = 1 << 18  # elements that are compared at once
_MOST_PARTS = 4  # such as the coordinates that np.indices gives


class Progression(NamedTuple):
    """start + the sum of steps[i] * (the index along axis i), computed in int32 and converted."""

    start: int
    steps: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def value(self, builder: Any) -> Any:
        """The traced value."""
        total: Any = None
        rank = len(self.shape)
        for axis, (step, size) in enumerate(zip(self.steps, self.shape, strict=True)):
            if step == 0:
                continue
            numbers = builder.iota([size], np.dtype(np.int32))
            if step != 1:
                numbers = builder.ufunc("multiply", [numbers, step])[0]
            numbers = builder.reshape(numbers, [size] + [1] * (rank - axis - 1))
            total = numbers if total is None else builder.ufunc("add", [total, numbers])[0]
        if total is None:
            return builder.full(list(self.shape), self.start, self.dtype)
        if self.start:
            total = builder.ufunc("add", [total, self.start])[0]
        return builder.astype(builder.full(list(self.shape), total, None), self.dtype)


class Parts(NamedTuple):
    """An array whose slices along an axis are progressions."""

    parts: tuple[Progression, ...]
    axis: int

    def value(self, builder: Any) -> Any:
        """The traced value."""
        return builder.stack([part.value(builder) for part in self.parts], self.axis)


def find(array: np.ndarray) -> Progression | Parts | None:
    """The progression, or the parts, with exactly the bits of an array. None if there is none, or
    if the array is so small that reading it costs as little."""
    if array.size < _FEWEST or array.dtype.kind not in "iuf" or max(array.shape) >= _MOST:
        return None
    whole = _progression(array)
    if whole is not None:
        return whole if any(whole.steps) else None  # an array of one number is a constant anyway
    for axis in {0, array.ndim - 1}:
        if array.ndim < 2 or not 1 < array.shape[axis] <= _MOST_PARTS:
            continue
        parts = tuple(map(_progression, np.moveaxis(array, axis, 0)))
        if all(part is not None for part in parts):
            return Parts(parts, axis)  # type: ignore[arg-type]  # mypy does not narrow elements
    return None


def _progression(array: np.ndarray) -> Progression | None:
    """The progression with exactly the bits of an array, or None. (All steps may be 0.) The array
    must have at least one axis and one element."""
    corner = (0,) * array.ndim
    seconds = [(*corner[:i], min(1, n - 1), *corner[i + 1 :]) for i, n in enumerate(array.shape)]
    known = [float(array[at]) for at in (corner, (-1,) * array.ndim, *seconds)]
    if not all(abs(x) < _MOST for x in known):  # NaN fails this test, too
        return None
    start = int(known[0])
    steps = tuple(int(x) - start for x in known[2:])
    if np.count_nonzero(steps) > _MOST_TERMS:
        return None
    ends = [step * (size - 1) for step, size in zip(steps, array.shape, strict=True)]
    least, most = (start + sum(end for end in ends if sign * end > 0) for sign in (-1, 1))
    if start + sum(ends) != known[1] or least <= -_MOST or most >= _MOST:
        return None
    rows = max(1, _BLOCK * len(array) // array.size)
    blocks = ((i, array[i : i + rows]) for i in range(0, len(array), rows))
    if not all(_same_bits(_numbers(start, steps, i, part), part) for i, part in blocks):
        return None
    return Progression(start, steps, array.shape, array.dtype)


def _numbers(start: int, steps: tuple[int, ...], first: int, like: np.ndarray) -> np.ndarray:
    """The rows of a progression from `first` on, with the shape and dtype of `like`."""
    numbers = np.full((), start + first * steps[0], np.int64)
    for axis, (step, size) in enumerate(zip(steps, like.shape, strict=True)):
        along = np.arange(size) * step
        numbers = numbers + along.reshape((-1,) + (1,) * (like.ndim - axis - 1))
    return numbers.astype(like.dtype)


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one dtype and shape have the same bits. (0.0 and -0.0 differ.)"""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return np.array_equal(np.ascontiguousarray(a).view(bits), np.ascontiguousarray(b).view(bits))
