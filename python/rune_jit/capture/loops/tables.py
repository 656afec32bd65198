"""Tuples, lists and dicts of numbers, or of tuples of numbers, as tables. A loop of the program can
read an item at a position or key that only the program knows, since arrays represent the items.

    MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    for code in codes:                  di, dj = .table(MOVES)[code]"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from rune_jit.capture.loops import lists
from rune_jit.capture.loops.effects import ALLOWED, Refused
from rune_jit.capture.loops.lists import Numbers, kinds_of
from rune_jit.capture.loops.unfold import ITEMS, TABLE
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

_MOST_ITEMS = 2500
# The largest range of a dict's keys, from the least to the greatest.
_MOST_KEYS = 2**16


def table_of(x: Any) -> Any:
    """The object from which `x[at]` is read in a loop: the stand-in of a tuple, list or dict, or
    x itself."""
    if type(x) not in (tuple, list, dict):
        return x
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    if trace is None or loops is None or not loops.within or id(x) in loops.growing:
        return x
    return _Table(trace, x)


def items_of(x: Any) -> Any:
    """As `table_of`, for objects whose items loops may assign. The stand-in of a list of numbers
    (lists.py) comes first."""
    found = lists.items_of(x)
    return table_of(x) if found is x else found


class _Table:
    """The stand-in for a tuple, list or dict."""

    def __init__(self, trace: Trace, items: Any) -> None:
        self._trace, self._items = trace, items

    def __getitem__(self, at: Any) -> Any:
        is_number = type(at) is Size or (
            type(at) is Tracer and at._storage.array is None and at.ndim == 0
        )
        if is_number and 0 < len(self._items) <= _MOST_ITEMS:
            with contextlib.suppress(Refused):
                return self._read(at)
        return self._items[at]

    def _read(self, at: Any) -> Any:
        """The item at a position or key that only the program knows. Raises Refused."""
        if type(self._items) is not dict:
            return self._item([*self._items], at)
        return self._item([*self._items.values()], self._position_of_key(at))

    def _item(self, items: list[Any], at: Any) -> Any:
        if type(items[0]) is not tuple:
            return self._number(items, at)
        if any(type(x) is not tuple or len(x) != len(items[0]) for x in items):
            raise Refused
        return tuple([self._number([*column], at) for column in zip(*items, strict=True)])

    def _number(self, items: list[Any], at: Any) -> Any:
        kinds = kinds_of(self._trace, items)
        if kinds is None:
            raise Refused
        return Numbers(self._trace, "", -1, items, kinds).read((at,))

    def _position_of_key(self, key: Any) -> Any:
        """The position of an integer key. If there is no such key, the program fails, and Python
        runs the call."""
        trace, builder, keys = self._trace, self._trace.builder, [*self._items]
        if any(type(x) is not int and not isinstance(x, np.integer) for x in keys):
            raise Refused
        least, most = int(min(keys)), int(max(keys))
        if most - least >= _MOST_KEYS or (type(key) is Tracer and key.dtype.kind not in "iu"):
            raise Refused
        positions = np.full(most - least + 1, -1)
        positions[[int(x) - least for x in keys]] = np.arange(len(keys))
        value = builder.astype(builder.value(trace.operand(key)), np.dtype(np.int64))
        kept = builder.clip(value, least, most)
        trace.raise_if(builder.ufunc("not_equal", [value, kept])[0])
        row = Tracer(trace, builder.ufunc("subtract", [kept, least])[0], scalar=True)
        found = Tracer(trace, trace.constant(positions), scalar=False)[row]._value_in(trace)
        trace.raise_if(builder.ufunc("less", [found, 0])[0])
        return Tracer(trace, builder.ufunc("maximum", [found, 0])[0], scalar=True)

    def __setitem__(self, at: Any, value: Any) -> None:
        self._items[at] = value

    def __delitem__(self, at: Any) -> None:
        del self._items[at]


ALLOWED += [table_of, items_of]

# The functions that loops call, by name.
TABLES = {TABLE: table_of, ITEMS: items_of}
