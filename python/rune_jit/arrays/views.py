"""Views of Arrays in a device's memory. (In the host's memory they are NumPy's views.)"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.arrays.array import Array
from rune_jit.arrays.memory import to_memory
from rune_jit.tracing.storage import layout

# A function from an array to its view.
View = Callable[[np.ndarray], np.ndarray]


class Views:
    """Arrays on a device that are views of one array. Each has memory of its own, because programs
    take arrays in C order. A write to one of them is made to all."""

    def __init__(self, base: Array) -> None:
        self._memory = base._memory  # of the whole array; it may live longer than `base`
        self._device = base.device
        self._members: dict[int, tuple[weakref.ref[Array], View]] = {}  # by id
        self.add(base, _itself)

    def add(self, array: Array, view: View) -> None:
        """Makes an Array a view of the whole array."""
        key, members = id(array), self._members
        members[key] = weakref.ref(array, lambda _: members.pop(key, None)), view
        array._views = self

    def view_of(self, array: Array) -> View:
        """The function that makes this Array's view of the whole array."""
        return self._members[id(array)][1]

    def laid_out(self, array: Array) -> np.ndarray:
        """An array with the layout of NumPy's view, whose elements must not be read or written."""
        return self.view_of(array)(layout(self._memory.shape, self._memory.dtype, ()))

    def is_contiguous(self, array: Array) -> bool:
        """Whether NumPy's view would be C-contiguous."""
        return self.laid_out(array).flags.c_contiguous

    def write(self, array: Array, memory: Any) -> None:
        """Replaces the elements of one of the Arrays. `memory` is in the device's memory. Raises
        ValueError if NumPy's view is read-only."""
        view = self.view_of(array)
        if view is _itself:
            self._write(memory)
            return
        whole = _core.to_host(self._memory)
        view(whole)[...] = _core.to_host(memory)
        self.write_whole(whole)

    def write_whole(self, whole: np.ndarray) -> None:
        """Replaces the elements of the whole array."""
        self._write(to_memory(whole, self._device), whole)

    def _write(self, memory: Any, whole: np.ndarray | None = None) -> None:
        self._memory = memory
        for reference, view in list(self._members.values()):
            array = reference()
            if view is _itself and array is not None:
                array._memory = memory
            elif array is not None:
                whole = _core.to_host(memory) if whole is None else whole
                array._memory = to_memory(view(whole), self._device)


def _itself(whole: np.ndarray) -> np.ndarray:
    return whole


def note_view(array: Array, result: Array, select: View) -> None:
    """Makes `result` a view of `array`. `select` makes the view."""
    views = array._views or Views(array)
    view = views.view_of(array)
    views.add(result, lambda whole: select(view(whole)))
