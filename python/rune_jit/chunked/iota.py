"""An array of consecutive integers that takes no memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Iota(NamedTuple):
    """The integers 0 .. size - 1 as an argument of a program in blocks. Each block makes its part.

    >>> import numpy as np
    >>> from rune_jit.chunked.iota import Iota
    >>> Iota(10**12, np.dtype(np.int64)).shape
    (1000000000000,)
    """

    size: int
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)
