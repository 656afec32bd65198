"""The operators `in`, and `==` of tuples, for numbers that are known only when the program runs."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rune_jit.capture.loops.branches import is_traced, is_unknown, python_bool
from rune_jit.capture.loops.effects import ALLOWED
from rune_jit.capture.loops.unfold import SAME
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.sizes import Size


def _contains(x: Any, items: Any, wanted: bool) -> Any:
    """`x in items` if `wanted`, else `x not in items`. An unknown number is compared with each
    item."""
    parts = x if type(x) is tuple else (x,)
    are_known = not any(type(y) is Size or is_unknown(y) for y in parts)
    if are_known or type(items) not in (tuple, list, set, frozenset, range):
        return (x in items) is wanted
    return _decided(functools.reduce(np.logical_or, [_equal(x, y) for y in items], False), wanted)


def _same(x: Any, y: Any, wanted: bool) -> Any:
    """`x == y` if `wanted`, else `x != y`. One of them may be a tuple of unknown numbers."""
    parts = [*(x if type(x) is tuple else ()), *(y if type(y) is tuple else ())]
    if not any(type(z) is Size or is_unknown(z) for z in parts):
        return x == y if wanted else x != y
    return _decided(_equal(x, y), wanted)


def _equal(x: Any, y: Any) -> Any:
    """Whether two numbers, or all items of two tuples, are equal. The value of a traced float is
    needed: Python compares items by identity first, so a NaN may count as equal to itself."""
    if type(x) is not tuple and type(y) is not tuple:
        return x == y
    if type(x) is not tuple or type(y) is not tuple or len(x) != len(y):
        return False
    for z in (*x, *y):
        if is_unknown(z) and z.dtype.kind not in "biu":
            bool(z)  # (ends the segment, or refuses)
    return functools.reduce(np.logical_and, map(_equal, x, y), True)


def _decided(found: Any, wanted: bool) -> Any:
    if not is_traced(found):
        return bool(found) is wanted
    decided: Any = found == wanted
    return python_bool(require_trace(), decided._value_in(require_trace()))


ALLOWED += [_contains, _same]

# The functions that loops call, by name.
EQUALITY = {".in": _contains, SAME: _same}
