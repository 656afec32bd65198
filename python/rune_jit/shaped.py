"""What follows from an array's shape and dtype alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Shaped:
    """Base of what looks like an array: NumPy's attributes (numpy.ndarray) that need `shape` and
    `dtype` only, and iteration by the first axis, which needs `[]`."""

    __slots__ = ()
    shape: Any
    dtype: Any

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size: int = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    def __len__(self) -> int:
        """Raises TypeError of a 0-d array."""
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        """Raises TypeError of a 0-d array."""
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))  # type: ignore[index]
