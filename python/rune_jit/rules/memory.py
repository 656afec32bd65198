"""NumPy's functions and attributes about the layout of arrays in memory."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.coercions import refuse
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.layouts_now import is_fortran, laid_out_now, lies_in_c_order
from rune_jit.tracing.storage import layout, note_copy
from rune_jit.tracing.tracer import Tracer


def _real_memory(x: Tracer) -> np.ndarray | None:
    """An array at the address of x's elements, if the address is known."""
    if x._trace.is_segmented and x._storage.array is None:
        x._trace.expose(x)
    return x._array()


def layout_of(x: Tracer, memory: np.ndarray | None = None) -> np.ndarray:
    """An array with NumPy's layout of x, whose elements must not be read or written. It begins at
    `memory`. Raises UnsupportedOpError if the layout is not known. (The layout of an argument is
    known, because the program then runs only for arguments in C order.)"""
    array = _real_memory(x)
    if array is not None:
        return array
    x._storage.require_c_order()
    return layout(x._storage.shape, x.dtype, x._steps, memory)


def known_order(x: Any, order: str) -> str:
    """The order, "C" or "F", that NumPy's orders "A" and "K" mean for x's layout. Raises
    UnsupportedOpError if it is neither."""
    order = order.upper() if isinstance(order, str) else order
    if order not in ("A", "K"):
        if order not in ("C", "F"):
            raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got '{order}')")
        return order
    if not isinstance(x, Tracer) or x.ndim < 2:
        return "C"
    flags = layout_of(x).flags
    if order == "K" and not flags.forc:
        refuse("order='K' of an array that is contiguous in neither order")
    return "F" if flags.fnc else "C"


def in_order(x: Any, order: Any) -> Any:
    """x, if it is contiguous in this order, else a copy that is."""
    order = order.upper() if isinstance(order, str) else order
    if order not in ("C", "F") or not isinstance(x, Tracer) or not x.ndim:
        return x
    order = "C" if x.ndim == 1 else order
    array = x._array()
    if array is None and x._trace.is_segmented:
        array = laid_out_now(x)
    is_known = array is not None
    lies_fortran = not is_known and is_fortran(x)
    if not is_known and order == "C" and x._storage.leaf in x._trace.orders and lies_in_c_order(x):
        return x
    # (The program may depend on whether NumPy returns x itself or a copy.)
    x._storage.reshaped += (x._storage,)
    if array is None:
        array = layout(x._storage.shape, x.dtype, x._steps)
    is_c = array.flags.c_contiguous and not lies_fortran
    is_sure = is_known or order != "C" or not is_c or x._storage.can_require_c_order()
    if is_sure and (is_c if order == "C" else lies_fortran or array.flags.f_contiguous):
        return x
    copy = x.copy(order)
    note_copy(copy, x)
    if not is_sure:  # (NumPy may return x itself, so that no write may follow)
        copy._storage.reshaped += (x._storage,)
    return copy


# Flags that do not follow from the layout alone, by NumPy's short names.
_OF_MEMORY = {"O": "owndata", "W": "writeable", "A": "aligned", "X": "writebackifcopy"}
_OF_MEMORY |= {"B": "behaved", "CA": "carray", "FA": "farray"}
_OF_MEMORY |= {name.upper(): name for name in _OF_MEMORY.values()}


class Flags:
    """numpy.ndarray.flags of a traced array."""

    def __init__(self, x: Tracer) -> None:
        object.__setattr__(self, "_x", x)

    def __getitem__(self, key: str) -> Any:
        name = _OF_MEMORY.get(key)
        return layout_of(self._x).flags[key] if name is None else getattr(self, name)  # type: ignore[index]

    def __getattr__(self, name: str) -> Any:
        x: Tracer = self._x
        storage = x._storage
        is_known = _real_memory(x) is not None
        if is_known and x._trace.is_segmented:
            return getattr(layout_of(x).flags, name)
        if name not in _OF_MEMORY.values() or (is_known and name != "writeable"):
            return getattr(layout_of(x).flags, name)
        if storage.is_outside:
            raise UnsupportedOpError(
                f"flags.{name}: cannot trace this (it may differ from call to call)"
            )
        if name == "writeable":
            is_numpys = bool(x._steps) and x._steps[-1].kind == "broadcast_arrays"
            return x._writeable or is_numpys
        if name == "owndata":
            return not x._steps
        if name in ("aligned", "writebackifcopy"):
            return name == "aligned"
        contiguous = {"carray": "c_contiguous", "farray": "f_contiguous"}.get(name)
        return x._writeable and (contiguous is None or getattr(self, contiguous))

    def __setattr__(self, name: str, value: Any) -> None:
        self._set(setattr, name, value)

    def __setitem__(self, key: str, value: Any) -> None:
        self._set(operator.setitem, key, value)

    def _set(self, set_flag: Callable[..., Any], name: str, value: Any) -> None:
        if not self._x._trace.is_segmented:
            raise UnsupportedOpError(f"flags.{name}: cannot trace a write to it")
        array = layout_of(self._x)
        set_flag(array.flags, name, value)
        self._x._writeable = array.flags.writeable


def _check(x: Tracer) -> None:
    """Called before a property of x's memory is read. Raises an error if the trace cannot know
    it."""
    if (loops := require_trace().loops) is not None:
        loops.check_layout(x._storage)


def _flags(x: Tracer) -> Any:
    _check(x)
    return x.dtype.type(0).flags if x._storage.scalar else Flags(x)


def _strides(x: Tracer) -> tuple[int, ...]:
    _check(x)
    return () if x._storage.scalar else layout_of(x).strides


def _base(x: Tracer) -> Any:
    _check(x)
    storage = x._storage
    if x._trace.is_segmented and not storage.scalar:
        base = layout_of(x).base
        return x._trace.stand_in(base) if type(base) is np.ndarray else base
    if x._steps or storage.is_outside:
        refuse("ndarray.base of an array that may be a view")


for _name, _property in {"flags": _flags, "strides": _strides, "base": _base}.items():
    setattr(Tracer, _name, property(_property))


def _share(function: Any, a: Any, b: Any, *options: Any, **named: Any) -> Any:
    """numpy.may_share_memory or shares_memory."""
    if not (isinstance(a, Tracer) and isinstance(b, Tracer)):
        refuse(f"{function.__name__} with an array that is not traced")
    _check(a)
    _check(b)
    first, second = a._storage, b._storage
    if first is not second:
        if (loops := require_trace().loops) is not None:
            loops.check_memory(first, second)
        outer = [x for x in (first, second) if x.is_outside]
        if len(outer) == 2:
            refuse(f"{function.__name__} of two arrays from outside")
        return False
    if first.scalar:
        refuse(f"{function.__name__} of a number")
    # Both are views of one array, so NumPy's comparison of addresses depends only on offsets.
    memory = np.empty(1, a.dtype)
    return function(layout_of(a, memory), layout_of(b, memory), *options, **named)


@implements(np.may_share_memory)
def _may_share_memory(a: Any, b: Any, /, max_work: Any = 0) -> Any:
    return _share(np.may_share_memory, a, b, max_work)


@implements(np.shares_memory)
def _shares_memory(a: Any, b: Any, /, max_work: Any = -1) -> Any:
    return _share(np.shares_memory, a, b, max_work)
