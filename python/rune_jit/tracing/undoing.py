"""The checks of indices in a segment: whether they hold, which index is the first wrong one, and
which writes are undone if one fails."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.tracing.storage import Storage


class Writes:
    """The writes since the last cut of a trace in segments."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        # The number of nodes before the write, the storage, and the id of its value before.
        self._made: list[tuple[int, Storage, int]] = []

    def note(self, storage: Storage, old: Any) -> None:
        self._made.append((len(self._builder), storage, old.id))

    def undo_after(self, node: int) -> None:
        """Undoes the writes that the function has made after a node."""
        for at, storage, old in reversed(self._made):
            if at > node and storage.array is None:
                storage.value = self._builder.with_id(old)
                storage.version += 1


def first_wrong(indices: Any, size: int) -> np.uint64:
    """The value of a check of indices for the first one that is wrong, as NumPy reports it."""
    found = np.asarray(indices).ravel().tolist()
    wrong = next(i for i in found if not -size <= i < size)
    return np.uint64((2 * wrong + 1) % 2**64)


# The checks of arrays with more elements are parts of the program.
_MOST_CHECKED = 10_000


def do_checks_hold(checks: list[tuple[Any, ...]], memory: dict[int, Any]) -> bool | None:
    """Whether all of these checks of a builder hold; None if an index is not known yet. `memory`
    has the arrays that are known, by the ids of their values."""
    for _, axis, size, _, at in checks:
        indices = None if axis is None or at is None else memory.get(at)
        if not isinstance(indices, (np.ndarray, np.generic)) or indices.size > _MOST_CHECKED:
            return None
        if indices.size and not -size <= int(indices.min()) <= int(indices.max()) < size:
            return False
    return True
