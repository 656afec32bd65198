"""Compares codes: whether a source is what a function was made from."""

from __future__ import annotations

import dis
import types
from typing import Any


def is_same(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether two codes do the same at the same lines."""
    fields = ("co_names", "co_varnames", "co_cellvars", "co_freevars", "co_firstlineno")
    if any(getattr(a, field) != getattr(b, field) for field in fields):
        return False
    if _instructions(a) != _instructions(b):
        return False
    return len(a.co_consts) == len(b.co_consts) and all(
        is_same(x, y)
        if isinstance(x, types.CodeType) and isinstance(y, types.CodeType)
        else type(x) is type(y) and repr(x) == repr(y)
        for x, y in zip(a.co_consts, b.co_consts, strict=True)
    )


def _instructions(code: types.CodeType) -> list[tuple[str, Any]]:
    """What code does. (Methods of what the module imports are called in another way, which the
    source of a function alone does not tell.)"""
    kept: list[dis.Instruction] = []
    position: dict[int, int] = {}
    for x in dis.get_instructions(code):
        position[x.offset] = len(kept)
        if x.opname not in _ONLY_FOR_CALLS:
            kept.append(x)
    result = []
    for x in kept:
        name = "LOAD_ATTR" if x.opname == "LOAD_METHOD" else x.opname
        name = "CALL_FUNCTION" if name == "CALL_METHOD" else name
        argument = x.argval
        if x.opcode in _JUMPS:
            argument = position.get(argument, argument)
        elif isinstance(argument, types.CodeType):
            argument = argument.co_name
        result.append((name, repr(argument)))
    return result


_ONLY_FOR_CALLS = ("PUSH_NULL", "PRECALL", "CACHE", "EXTENDED_ARG")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


def all_codes(code: types.CodeType) -> list[types.CodeType]:
    inner = [x for x in code.co_consts if isinstance(x, types.CodeType)]
    return [code, *(c for x in inner for c in all_codes(x))]
