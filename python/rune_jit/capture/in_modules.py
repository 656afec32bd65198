"""Functions that a trace makes, as they are outside of it: with the code of the source and the
globals of their modules."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rune_jit.capture.copied_globals import calls_for_loops
from rune_jit.capture.loops.asking import own_code
from rune_jit.tracing.tracer import Tracer

if TYPE_CHECKING:
    from rune_jit.capture.rebinder import Rebinder


def in_module(
    x: types.FunctionType, cell_for: Callable[[types.CellType], types.CellType]
) -> types.FunctionType:
    """A function with Globals, as it is in its module, with `cell_for(cell)` in place of each
    cell."""
    code, closure = own_code(x)
    globals_: Any = x.__globals__
    names = globals_ if calls_for_loops(code) else globals_.real
    cells = tuple(map(cell_for, closure)) if closure else None
    new = types.FunctionType(code, names, x.__name__, x.__defaults__, cells)
    for name in ("__kwdefaults__", "__qualname__", "__doc__"):
        setattr(new, name, getattr(x, name))
    new.__dict__.update(x.__dict__)
    return new


def apart(rebinder: Rebinder, x: Any, known: dict[int, Any] | None = None) -> Any:
    """The counterpart of a function, for code that runs while the call goes on. If the call has
    made the function, the counterpart has variables of its own, with their present values, since
    the trace needs those of x. `known` has such counterparts, by id."""
    if not rebinder.is_made_here(x):
        return x if type(x) is Tracer else rebinder.outside(x)
    known = {} if known is None else known
    if id(x) not in known:
        pairs: list[tuple[types.CellType, types.CellType]] = []

        def cell_for(cell: types.CellType) -> types.CellType:
            pairs.append((cell, types.CellType()))
            return pairs[-1][1]

        known[id(x)] = in_module(x, cell_for)
        for old, new in pairs:
            if old != types.CellType():
                new.cell_contents = apart(rebinder, old.cell_contents, known)
    return known[id(x)]
