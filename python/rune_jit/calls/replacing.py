"""Replaces objects in the containers and attributes that hold them."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import gc
import itertools
import operator
import sys
import types
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.capture import told_apart
from rune_jit.capture.grown import Grown
from rune_jit.capture.matching import reachable
from rune_jit.capture.objects import is_library
from rune_jit.capture.shim import original, stand_ins
from rune_jit.containers import contents
from rune_jit.rules.indexing.selection import Selection
from rune_jit.rules.indexing.write import Flat
from rune_jit.tracing.frames import replace_locals
from rune_jit.tracing.segments import SegmentedTrace
from rune_jit.tracing.tracer import ATOMIC, Tracer, are_atomic
from rune_jit.trees import attribute


def replaced(x: Any, replace: Callable[[Any], Any], seen: dict[int, Any]) -> Any:
    """x with everything in it replaced, in place where that is possible."""
    new = replace(x)
    if new is not x or type(x) in (Tracer, Grown):  # (a Grown belongs to a trace that has ended)
        return new
    if id(x) in seen:
        return seen[id(x)]
    seen[id(x)] = x
    kind: Any
    if isinstance(x, (list, deque)):
        kind = list if isinstance(x, list) else deque
        items = contents(x)
        for i, item in enumerate(() if are_atomic(items) else items):
            new = replaced(item, replace, seen)
            if new is not item:
                kind.__setitem__(x, i, new)
    elif isinstance(x, dict):
        kind = OrderedDict if isinstance(x, OrderedDict) else dict  # (not methods of the user's)
        keys = [
            key if type(key) in ATOMIC else replaced(key, replace, seen) for key in kind.keys(x)
        ]
        if any(new is not key for new, key in zip(keys, kind.keys(x), strict=True)):
            values = list(kind.values(x))
            kind.clear(x)
            for key, item in zip(keys, values, strict=True):
                kind.__setitem__(x, key, item)
        for key, item in [] if are_atomic(kind.values(x)) else list(kind.items(x)):
            new = replaced(item, replace, seen)
            if new is not item:
                kind.__setitem__(x, key, new)
    elif type(x) in (set, frozenset, tuple) and are_atomic(contents(x)):
        return x
    elif isinstance(x, (set, frozenset)):
        items = [replaced(item, replace, seen) for item in contents(x)]
        if any(new is not item for new, item in zip(items, contents(x), strict=True)):
            if isinstance(x, frozenset):
                seen[id(x)] = type(x)(items)
            else:
                set.clear(x)
                set.update(x, items)
        return seen[id(x)]
    elif isinstance(x, tuple):
        items = [replaced(item, replace, seen) for item in contents(x)]
        if any(new is not item for new, item in zip(items, contents(x), strict=True)):
            seen[id(x)] = tuple.__new__(type(x), items)
            if held := attribute(x, "__dict__"):
                vars(seen[id(x)]).update(replaced(held, replace, seen))
            return seen[id(x)]
    elif isinstance(x, slice):
        old = (x.start, x.stop, x.step)
        parts = [replaced(part, replace, seen) for part in old]
        if any(new is not part for new, part in zip(parts, old, strict=True)):
            seen[id(x)] = slice(*parts)
        return seen[id(x)]
    elif isinstance(x, functools.partial):
        args = replaced(x.args, replace, seen)
        keywords = replaced(x.keywords, replace, seen)
        if args is not x.args:
            x.__setstate__((x.func, args, keywords, vars(x)))  # type: ignore[attr-defined]
    elif isinstance(x, types.GeneratorType):
        if x.gi_frame is not None:
            replace_locals(x.gi_frame, lambda item: replaced(item, replace, seen))
    elif type(x) in _ITERATORS or type(x).__module__ == "itertools":
        seen[id(x)] = _iterator_with(x, replace, seen)
        return seen[id(x)]
    elif isinstance(x, np.ndarray):
        for index in np.ndindex(x.shape if x.dtype == object else 0):
            item = x[index]
            new = replaced(item, replace, seen)
            if new is not item:
                x[None][(0, *index)] = new
    if type(x) in _WITHOUT_ATTRIBUTES:
        return x
    if has_attributes(x):
        replaced(vars(x), replace, seen)
    for member, item in _members_of(x):
        new = replaced(item, replace, seen)
        if new is not item:
            member.__set__(x, new)
    return x


_WITHOUT_ATTRIBUTES = ATOMIC | {list, deque, dict, np.ndarray, types.GeneratorType}


# Python's iterators that hold their items. (They cannot be changed.)
_ITERATORS = {
    *(zip, map, filter, enumerate, reversed),
    *map(type, (iter(()), iter([]), reversed([]))),
}


def _iterator_with(x: Any, replace: Callable[[Any], Any], seen: dict[int, Any]) -> Any:
    """The iterator x with everything in it replaced: x, or a new iterator at the same place."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # (for itertools, in Python 3.12 and 3.13)
            make, args, *state = x.__reduce__()
    except TypeError:  # (those of itertools since Python 3.14)
        return x
    old = [*args, *(state or ())]
    new = [replaced(item, replace, seen) for item in old]
    if all(map(operator.is_, new, old)):
        return x
    made = make(*new[: len(args)])
    for at in new[len(args) :]:
        made.__setstate__(at)
    return made


def has_attributes(x: Any) -> bool:
    """Whether x is an object whose attributes may hold traced arrays."""
    if isinstance(x, (type, types.ModuleType, types.FunctionType, Tracer, _core.ArrayBase)):
        return False
    return isinstance(attribute(x, "__dict__"), dict)


def is_written_in_place(x: Any) -> bool:
    is_container = isinstance(x, (list, dict, deque, set, functools.partial))
    return is_container or has_attributes(x) or any(_members_of(x))


def _members_of(x: Any) -> Iterator[tuple[Any, Any]]:
    """The slots of an object with their contents, the arguments of an exception, and the defaults
    of a function."""
    if isinstance(x, BaseException):
        yield BaseException.args, x.args
    if isinstance(x, types.FunctionType):
        yield types.FunctionType.__defaults__, x.__defaults__
        yield types.FunctionType.__kwdefaults__, x.__kwdefaults__
    if not hasattr(type(x), "__slots__") or isinstance(x, (Tracer, _core.ArrayBase)):
        return
    for base in type(x).__mro__:
        if "__slots__" not in vars(base) or is_library(base.__module__):
            continue
        for member in vars(base).values():
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # it is empty
                    yield member, member.__get__(x)


def replace_held(holder: Any, replace: Callable[[Any], Any], seen: dict[int, Any]) -> None:
    """Replaces the contents of a container, object or class, except objects that are in `seen`."""
    if type(holder) is dict and holder.keys() >= {"__module__", "__doc__"}:
        # The dict may be a class's. Python caches a class's attributes until one is set.
        for kind in (x for x in gc.get_referrers(holder) if isinstance(x, type)):
            for name, held in list(vars(kind).items()):
                if (new := replaced(held, replace, seen)) is not held:
                    type.__setattr__(kind, name, new)
    if is_written_in_place(holder):
        replaced(holder, replace, seen)


def referrers(objects: list[Any]) -> list[Any]:
    return gc.get_referrers(*objects) if objects else []


def objects_with(held: list[Any]) -> list[Any]:
    """The user's objects that have one of these objects as an attribute. (Lists may be
    rune_jit's.)"""
    holders = holders_of(held)
    holders += referrers([x for x in holders if type(x) is dict])
    return [x for x in holders if has_attributes(x) and not is_library(type(x).__module__)]


def holders_of(held: list[Any]) -> list[Any]:
    """The objects that refer to these objects, also through tuples and frozen sets; except
    frames."""
    found: list[Any] = []
    while held:
        known = len(found)
        others = (x for x in referrers(held) if x is not held and x is not found)
        found += [x for x in others if not isinstance(x, types.FrameType)]
        held = [x for x in found[known:] if isinstance(x, (tuple, frozenset))]
    return found


def references() -> list[int]:
    """How many references there are to each stand-in for a function, class or module of NumPy or
    Python."""
    return [*map(sys.getrefcount, stand_ins())]


# So few objects are searched for stand-ins after each call.
_FEW = 50


def replace_stand_ins(made: list[Any], before: list[int], roots: list[Any], most: int) -> None:
    """Replaces stand-ins of functions, classes and modules by the originals in what the roots
    reach, if this is at most `most` objects. `made`: the stand-ins that the call has made;
    `before`: the `references` when it began."""
    # More references tell that some are stored. (`made`, the variable and the argument of
    # getrefcount refer to those of this call.) Garbage that is collected meanwhile may hide them.
    are_more = any(sys.getrefcount(x) > 3 for x in made)
    if not are_more and not any(map(operator.gt, references(), before)):
        most = min(most, _FEW)
    reached = [*itertools.islice(reachable(roots), most + 1)]
    if len(reached) <= most and any(original(x) is not x for x in reached):
        replaced(roots, original, {})


def holders_and_made(traced: list[Any]) -> tuple[list[Any], list[Any]]:
    """The holders of these traced arrays (`holders_of`); and the selections from them and iterators
    over them, whose holders are among the others. (A search for referrers takes milliseconds.)"""
    found = [x for x in referrers(traced) if x is not traced and type(x) is not types.FrameType]
    made = [x for x in found if type(x) in _MADE]
    dicts = [x for x in found if type(x) is dict]
    made += [x for x in referrers(dicts) if type(x) in _MADE]
    del dicts
    made = list({id(x): x for x in made}.values())
    held = [*(x for x in found if isinstance(x, (tuple, frozenset))), *made]
    others = [x for x in holders_of(held) if x is not found and x is not made]
    return found + others, made


_MADE = (Selection, Flat)


def plain_by_id(trace: SegmentedTrace, traced: list[Any]) -> dict[int, Any]:
    """NumPy's objects in place of traced arrays and of what `holders_and_made` finds, by the ids of
    these."""
    arrays = trace.finish([_array_behind(x) for x in traced])
    return {
        id(x): x.over(array) if type(x) is Flat else array
        for x, array in zip(traced, arrays, strict=True)
    }


def _array_behind(x: Any) -> Any:
    return x.settled() if type(x) is Selection else x.base if type(x) is Flat else x


def replace_in(holders: list[Any], by_id: dict[int, Any]) -> None:
    """Replaces objects in the holders and in context variables by the values of `by_id`, whose keys
    are the objects' ids."""
    seen: dict[int, Any] = {}
    for holder in holders:
        if isinstance(holder, types.CellType):
            held = holder.cell_contents
            if isinstance(held, (tuple, frozenset)):
                holder.cell_contents = replaced(held, lambda x: by_id.get(id(x), x), seen)
            else:
                holder.cell_contents = by_id.get(id(held), held)
        else:
            replace_held(holder, lambda x: by_id.get(id(x), x), seen)
    for variable, value in contextvars.copy_context().items():
        if id(value) in by_id or type(value) is tuple:
            new = replaced(value, lambda x: by_id.get(id(x), x), {})
            if new is not value:
                variable.set(new)


def replace_functions(
    functions: list[tuple[Any, Any]], ended: collections.Counter[types.CodeType]
) -> None:
    """Replaces stored copies of functions by the originals. `functions`: weak references to copies,
    and the originals. `ended`: how many tracebacks refer to a copy, by code."""
    copies = []
    for ref, _ in functions:
        # The variable and the argument of getrefcount refer to a copy, too.
        if (copy := ref()) is not None and sys.getrefcount(copy) > 2 + ended[copy.__code__]:
            copies.append(copy)
    if not copies:
        return
    by_id = {id(copy): real for ref, real in functions if (copy := ref()) is not None}

    def original(x: Any) -> Any:
        return by_id.get(id(x), x)

    holders = [x for x in referrers(copies) if x is not copies]
    holders += referrers([x for x in holders if type(x) is tuple])
    seen: dict[int, Any] = {}
    for holder in holders:
        if type(holder) in (set, dict):
            told_apart.add(by_id[id(key)] for key in holder if id(key) in by_id)
        if type(holder) is set:
            items = [*holder]
            holder.clear()
            holder.update(map(original, items))
        elif type(holder) is dict and any(id(key) in by_id for key in holder):
            pairs = [*holder.items()]
            holder.clear()
            holder.update((original(key), value) for key, value in pairs)
        if holder is not holders:
            replace_held(holder, original, seen)
