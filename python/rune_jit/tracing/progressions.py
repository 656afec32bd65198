"""Arrays whose elements follow from their indices, as np.arange and np.indices make them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Smaller arrays cost nothing to read; the elements of larger ones fit int32.
_FEWEST, _MOST = 64, 2**31
_MOST_TERMS = 2
_MOST_PARTS = 4  # such as the coordinates that np.indices gives


class Progression(NamedTuple):
    """start + the sum of steps[i] * (the index along axis i), as integers of int32, converted."""

    start: int
    steps: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def value(self, builder: Any) -> Any:
        """The traced value."""
        total: Any = self.start
        rank = len(self.shape)
        for axis, (step, size) in enumerate(zip(self.steps, self.shape, strict=True)):
            if step == 0:
                continue
            numbers = builder.iota([size], np.dtype(np.int32))
            if step != 1:
                numbers = builder.ufunc("multiply", [numbers, step])[0]
            numbers = builder.reshape(numbers, [size] + [1] * (rank - axis - 1))
            added = isinstance(total, int) and total == 0
            total = numbers if added else builder.ufunc("add", [numbers, total])[0]
        return builder.astype(builder.full(list(self.shape), total, None), self.dtype)


class Parts(NamedTuple):
    """Progressions along the other axes, one after the other along the first axis."""

    parts: tuple[Progression, ...]

    def value(self, builder: Any) -> Any:
        """The traced value."""
        return builder.stack([part.value(builder) for part in self.parts], 0)


def find(array: np.ndarray) -> Progression | Parts | None:
    """What has an array's elements bit by bit; None if no progression has, or if reading the array
    costs as little."""
    if (whole := _progression(array)) is not None:
        return whole
    if array.ndim < 2 or not 1 < len(array) <= _MOST_PARTS:
        return None
    parts = tuple(found for part in array if (found := _progression(part)) is not None)
    return Parts(parts) if len(parts) == len(array) else None


def _progression(array: np.ndarray) -> Progression | None:
    if array.size < _FEWEST or array.dtype.kind not in "iuf" or max(array.shape) >= _MOST:
        return None
    first = np.array([array[(0,) * array.ndim], array[(-1,) * array.ndim]], np.float64)
    if not (np.isfinite(first).all() and (abs(first) < _MOST).all()):
        return None
    start = int(first[0])
    steps = []
    for axis, size in enumerate(array.shape):
        second = array[(0,) * axis + (min(1, size - 1),) + (0,) * (array.ndim - axis - 1)]
        if not abs(float(second)) < _MOST:
            return None
        steps.append(int(second) - start)
    if not 1 <= np.count_nonzero(steps) <= _MOST_TERMS:
        return None
    numbers = np.full((), start, np.int64)
    for axis, (step, size) in enumerate(zip(steps, array.shape, strict=True)):
        along = np.arange(size) * step
        numbers = numbers + along.reshape((-1,) + (1,) * (array.ndim - axis - 1))
    if not _same_bits(numbers.astype(array.dtype), array) or abs(numbers).max() >= _MOST:
        return None
    return Progression(start, tuple(steps), array.shape, array.dtype)


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one dtype and shape are equal bit by bit: 0.0 differs from -0.0."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return np.array_equal(np.ascontiguousarray(a).view(bits), np.ascontiguousarray(b).view(bits))
