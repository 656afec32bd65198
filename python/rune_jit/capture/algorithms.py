"""Loads the algorithms in Python that loops of the program run in place of Python's library."""

from __future__ import annotations

import functools
import linecache
import types
from typing import Any

FILES = "<rune_jit "  # the prefix of the names of their files


@functools.cache
def as_users(module: types.ModuleType) -> dict[str, Any]:
    """The definitions of a module of algorithms, loaded again as if they were the user's. So loops
    of the program call the functions like the user's."""
    name = module.__name__.rpartition(".")[2]
    file = f"{FILES}{name}>"
    lines = linecache.getlines(str(module.__file__))
    text = "".join(lines)
    linecache.cache[file] = (len(text), None, lines, file)
    made: dict[str, Any] = {"__name__": f"algorithms_of_{name}"}
    exec(compile(text, file, "exec"), made)
    return made
