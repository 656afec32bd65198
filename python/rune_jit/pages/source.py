"""The user's source lines, by places such as "file.py:12"."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

_AROUND = 2  # lines that are shown before and after a line that computes something


class Block(NamedTuple):
    """Consecutive lines of a file."""

    file: str
    first: int
    lines: list[str]


def blocks(function: Callable[..., Any] | None, places: Iterable[str]) -> list[Block]:
    """All lines of a function, and the lines around places outside of it. Files that cannot be read
    are left out."""
    wanted: dict[str, set[int]] = {}
    for place in places:
        name, _, number = place.rpartition(":")
        if name and number.isdigit():
            wanted.setdefault(name, set()).add(int(number))
    own = _whole(function)
    found = []
    if own is not None:
        found.append(own)
        covered = range(own.first, own.first + len(own.lines))
        numbers = wanted.get(os.path.basename(own.file), set())
        numbers.difference_update(covered)
    home = own.file if own else ""
    for name, numbers in wanted.items():
        path = _path_of(name, home)
        lines = linecache.getlines(path) if path else []
        for first, last in _stretches(numbers, len(lines)):
            while not lines[first - 1].strip():
                first += 1
            texts = [x.rstrip() for x in lines[first - 1 : last]]
            while not texts[-1]:
                texts.pop()
            found.append(Block(path, first, texts))
    return found


def _whole(function: Callable[..., Any] | None) -> Block | None:
    if function is None:
        return None
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or ""
    except (OSError, TypeError):
        return None
    return Block(file, max(first, 1), [line.rstrip("\n") for line in lines])


def _stretches(numbers: set[int], length: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for number in sorted(n for n in numbers if n <= length):
        first, last = max(1, number - _AROUND), min(length, number + _AROUND)
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found


def _path_of(name: str, home: str) -> str:
    """The path of a file whose name is known: a module's file, or a notebook's cell. If there are
    several, the one nearest to `home`."""
    if os.path.basename(home) == name:
        return home
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    candidates = {
        f for f in [*files, *linecache.cache] if f.replace("\\", "/").endswith("/" + name)
    }
    candidates |= {f for f in linecache.cache if f == name}

    def nearness(path: str) -> int:
        return sum(a == b for a, b in zip(path.split(os.sep), home.split(os.sep), strict=False))

    return max(sorted(candidates), key=nearness, default="")
