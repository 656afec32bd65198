"""The values that the names of a loop have when the loop runs apart (apart.py)."""

from __future__ import annotations

import functools
import itertools
import types
from collections import deque
from typing import Any

import numpy as np

from rune_jit import trees
from rune_jit.capture.loops.dicts import is_dict
from rune_jit.containers import items_of_tuple, refuse_endless
from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.indexing.selection import Selection
from rune_jit.tracing.segments import SegmentedTrace
from rune_jit.tracing.storage import as_number
from rune_jit.tracing.tracer import NUMBERS, Tracer, contains_tracer

_ATOMS = (*NUMBERS, str, type(None), np.generic)
_MOST_ITEMS = 2500  # items of a list
_MOST_INITIAL = 64  # items of a stack before the loop
_MOST_INITIAL_OF_DICTS = 4  # items of a dict or set before the loop: the trace looks up each


class Unsuitable(Exception):
    """The value of a name cannot be an argument of the loop's function."""


def settled(trace: SegmentedTrace, x: Any) -> Any:
    """The argument of the loop's function for the value of a name: the elements of a selection, the
    original of a copied function, and every other value itself."""
    if type(x) is Selection:
        return x.settled()
    return _function(trace, x) if type(x) is types.FunctionType else x


def _function(trace: SegmentedTrace, x: types.FunctionType) -> Any:
    """The function of which x is a copy for this call. Each call makes other copies, so they cannot
    tell whether the loop gets the same function again. Returns x if its closure differs. For a
    function that the call has made: one that reads the globals of its module."""
    function = trace.rebind.outside(x)
    if function is x:
        return trace.rebind.apart(x)
    if type(function) is not types.FunctionType:  # (x stands in for a function in C)
        return function
    return function if _cells(x) == _cells(function) else x


def _cells(x: types.FunctionType) -> list[int]:
    return [id(cell.cell_contents) for cell in x.__closure__ or () if cell != types.CellType()]


def check(trace: SegmentedTrace, x: Any, outer: tuple[types.FunctionType, ...] = ()) -> None:
    """Raises Unsuitable for a value of another kind than a loop's function takes: traced arrays of
    this trace, NumPy's arrays, numbers, strings, functions, and tuples and lists of these. `outer`
    are the functions in whose variables the value has been found. (These hold no traced values:
    `Memory` does not replace them.)"""
    if type(x) is Tracer:
        if x._trace is not trace or outer:
            raise Unsuitable
    elif type(x) is tuple:
        for item in x:
            check(trace, item, outer)
    elif type(x) is list:
        if len(x) > _MOST_ITEMS or not all(type(item) in NUMBERS for item in x):
            raise Unsuitable
    elif type(x) is types.FunctionType:
        defaults = [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
        if hasattr(x.__globals__, "real") or contains_tracer(defaults):
            raise Unsuitable
        for cell in x.__closure__ or () if x not in outer else ():
            if cell != types.CellType():
                check(trace, cell.cell_contents, (*outer, x))
    elif not isinstance(x, _ATOMS) and (type(x) is not np.ndarray or x.dtype.hasobject):
        raise Unsuitable


def check_stack(trace: SegmentedTrace, x: Any, size: int) -> None:
    """Raises Unsuitable unless x is a list or queue of numbers, or of tuples of `size` numbers."""
    is_list = type(x) is list or (type(x) is deque and x.maxlen is None)
    if not is_list or len(x) > _MOST_INITIAL:
        raise Unsuitable
    for value in x:
        if (type(value) is tuple) != bool(size) or (size and len(value) != size):
            raise Unsuitable
        for number in value if size else (value,):
            is_traced = type(number) is Tracer and number._storage.scalar
            if not is_traced and type(number) not in NUMBERS and not isinstance(number, np.generic):
                raise Unsuitable
            check(trace, number)


def check_dict(trace: SegmentedTrace, x: Any) -> None:
    """Raises Unsuitable unless x is a small dict or set: its keys are integers or tuples of
    integers, and the values of a dict are numbers or tuples of numbers."""
    if not is_dict(x) or len(x) > _MOST_INITIAL_OF_DICTS:
        raise Unsuitable
    for key in x:
        if not all(isinstance(y, (int, np.integer)) for y in _parts_of(key)):
            raise Unsuitable
    for value in x.values() if isinstance(x, dict) else ():
        for y in _parts_of(value):
            check(trace, y)
            if type(y) in (str, type(None), list, np.ndarray):
                raise Unsuitable


def _parts_of(x: Any) -> tuple[Any, ...]:
    return x if type(x) is tuple else (x,)


def items_of(x: Any) -> tuple[Any, ...]:
    """The items of a list, queue, set or dict. Those of a dict are pairs of key and value."""
    return tuple(x.items()) if isinstance(x, dict) else tuple(x)


def fill_again(x: Any, items: tuple[Any, ...]) -> None:
    """Replaces the items of a list, queue or dict by these, which are equal but not traced."""
    if isinstance(x, dict):
        dict.update(x, items)
    elif not isinstance(x, set):  # (a set holds no traced numbers)
        x.clear()
        x += items


def check_lists(lists: dict[str, Any], given: dict[str, Any]) -> None:
    """Raises Unsuitable if the loop can read one of the lists under another name, or if tuples have
    no end."""
    try:
        refuse_endless((*given.values(),), items_of_tuple)
    except UnsupportedOpError:
        raise Unsuitable from None
    ids = {id(x) for x in lists.values()}
    others = [x for name, x in given.items() if name not in lists]
    if len(ids) < len(lists) or any(map(functools.partial(_holds, ids), others)):
        raise Unsuitable


def _holds(ids: set[int], x: Any) -> bool:
    return id(x) in ids or (type(x) is tuple and any(_holds(ids, item) for item in x))


class Memory:
    """While the loop runs: its arguments as NumPy's arrays and as numbers, no longer traced."""

    def __init__(self, trace: SegmentedTrace, given: dict[str, Any]) -> None:
        self._trace, self._given = trace, given
        self._storages: dict[int, tuple[Any, bool, bool]] = {}

    def __enter__(self) -> Memory:
        trace = self._trace
        scalars = [x for x in self._tracers() if x._storage.scalar]
        for x in self._tracers():
            storage = x._storage
            if not storage.scalar and id(storage) not in self._storages:
                known = storage.array is not None
                self._storages[id(storage)] = storage, known, storage.is_exposed
                trace.expose(x)
        found = trace.values([x._value_in(trace) for x in scalars])
        numbers = {
            id(x): as_number(x._value_in(trace), v) for x, v in zip(scalars, found, strict=True)
        }

        self.values = {name: _outside(x, numbers) for name, x in self._given.items()}
        return self

    def _tracers(self) -> list[Tracer]:
        return [x for x in trees.flatten(list(self._given.values()))[0] if type(x) is Tracer]

    def __exit__(self, *_: object) -> None:
        for storage, known, exposed in self._storages.values():
            if exposed or self._trace.gave_up:
                storage.touched()
            elif known:
                storage.is_exposed = False
                storage.touched()
            else:
                self._trace.take_back(storage)

    def inside(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """Converts the function's results to values of the trace."""
        arrays = [x for x in trees.flatten(results)[0] if isinstance(x, np.ndarray)]
        pairs = itertools.combinations({id(x): x for x in arrays}.values(), 2)
        shared = {id(x) for pair in pairs if np.may_share_memory(*pair) for x in pair}
        return tuple(self._inside(x, shared) for x in results)

    def _inside(self, x: Any, shared: set[int]) -> Any:
        """`shared`: the ids of results that share memory with others. They stay NumPy's."""
        if type(x) is tuple:
            return tuple(self._inside(item, shared) for item in x)
        known = self._known(x)
        if known is not x or (isinstance(x, np.ndarray) and self._shares_memory(x)):
            return known
        made = x if id(x) in shared else self._trace.result(x)
        if type(made) is Tracer and x.ndim > 1 and not x.flags.c_contiguous:
            made._storage.laid_out_by = (lambda: [x]), 0
        return made

    def _known(self, x: Any) -> Any:
        """The argument that x is, else x. Items of lists and dicts that the loop has made are
        replaced, too; others stay NumPy's."""
        for name, given in self.values.items():
            if x is given:
                return self._given[name]
        items: Any = enumerate(x) if type(x) is list else [*x.items()] if type(x) is dict else ()
        for at, item in items:
            if isinstance(item, (np.ndarray, list, dict, tuple)):
                x[at] = self._known_item(item)
        return x

    def _known_item(self, x: Any) -> Any:
        if type(x) is tuple:
            return tuple(map(self._known_item, x))
        known = self._known(x)
        if known is x and isinstance(x, np.ndarray):
            self._shares_memory(x)
        return known

    def _shares_memory(self, x: np.ndarray) -> bool:
        """Whether an array may share memory with an argument. Then both stay NumPy's."""
        for storage, *_ in list(self._storages.values()):
            if np.may_share_memory(storage.array, x):
                self._storages[id(storage)] = storage, True, True
                return True
        arguments = trees.flatten(list(self.values.values()))[0]
        return any(isinstance(y, np.ndarray) and np.may_share_memory(y, x) for y in arguments)


def _outside(x: Any, numbers: dict[int, Any]) -> Any:
    if type(x) is tuple:
        return tuple([_outside(item, numbers) for item in x])
    if type(x) is not Tracer:
        return x
    return numbers[id(x)] if id(x) in numbers else x._array()
