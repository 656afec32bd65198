"""Variants of programs that people wrote: random changes of their source, such as an alias that is
written to, a branch on a value, a variable that becomes an attribute, a list of what was computed.

A variant is well-typed in most cases, since the program is run first to learn which variables are
arrays and numbers where. It may raise exceptions; NumPy then raises the same."""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import io
import linecache
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_MOST_LINES = 20_000  # that a call may execute


class TooLong(BaseException):
    """A call executes too many lines."""


@dataclass
class Base:
    """A program to change: its function or class, what it sees, and what makes its arguments."""

    name: str
    node: ast.FunctionDef | ast.ClassDef
    names: dict[str, Any]
    make: Callable[[np.random.Generator], tuple[Any, ...]]
    method: str = ""  # of a class: the one that is called
    attributes: dict[str, Any] | None = None  # of a class: those of the object

    @property
    def called(self) -> ast.FunctionDef:
        """The function whose calls are compared."""
        if isinstance(self.node, ast.FunctionDef):
            return self.node
        found = (node for node in self.node.body if isinstance(node, ast.FunctionDef))
        return next(node for node in found if node.name == self.method)


def base(name: str, function: Any, make: Any) -> Base | None:
    """The program that a function or a bound method is, or None if it cannot be changed: it is a
    closure, or an object without a dict."""
    owner = getattr(function, "__self__", None)
    target = function if owner is None else type(owner)
    inner = getattr(function, "__func__", function)
    if not inspect.isfunction(inner) or inner.__closure__:
        return None
    source = textwrap.dedent(inspect.getsource(target))
    if re.search("searchsorted|interp", source):
        return None  # their results for numbers that are not sorted have no definition
    # A change may leave out what fills an array.
    source = re.sub(r"\bnp\.empty(?=\(|_like)", "np.zeros", source)
    node: Any = ast.parse(source).body[0]
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return None
    node.decorator_list = []
    if owner is None:
        return Base(name, node, inner.__globals__, make)
    own = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
    if not hasattr(owner, "__dict__") or inner.__name__ not in own or target.__bases__ != (object,):
        return None
    return Base(name, node, inner.__globals__, make, inner.__name__, vars(owner))


class Variant:
    """One changed program, which is made anew for each way of running it."""

    def __init__(self, base: Base, node: Any, seed: int, kind: str = "variant") -> None:
        self.base, self.node, self.seed = base, node, seed
        source = ast.unparse(ast.fix_missing_locations(node)) + "\n"
        self.source = source
        self._file = f"<{kind} {seed}>"
        linecache.cache[self._file] = (len(source), None, source.splitlines(keepends=True), "")

    def make(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The function to call, and the state that it may change, by name."""
        names = dict(self.base.names)
        before = set(names)
        exec(compile(self.source, self._file, "exec"), names)
        made = names[self.node.name]
        state = {"globals": names}
        if isinstance(self.node, ast.ClassDef):
            instance = object.__new__(made)
            if self.base.attributes is not None:
                vars(instance).update(copy.deepcopy(self.base.attributes))
            made = getattr(instance, self.base.method)
            state["object"] = vars(instance)
        state["globals"] = _NewGlobals(names, before | {self.node.name})
        return made, state

    def arguments(self, call: int) -> tuple[Any, ...]:
        return self.base.make(np.random.default_rng([self.seed % 97, call]))

    def observed(self) -> dict[int, dict[str, Any]]:
        """By line of the called function: the local variables at its first execution."""
        function, _ = self.make()
        seen: dict[int, dict[str, Any]] = {}

        def note(frame: Any) -> None:
            if frame.f_code.co_name == self.base.called.name:
                seen.setdefault(frame.f_lineno, copy.copy(frame.f_locals))

        printed = contextlib.redirect_stdout(io.StringIO())
        with np.errstate(all="ignore"), printed, contextlib.suppress(Exception):
            limited(function, self.arguments(0), self._file, note)
        return seen

    def limited(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """What a call returns. Raises TooLong if it runs for too many lines."""
        return limited(function, arguments, self._file)


class _NewGlobals(dict):
    """The global variables that a program made."""

    def __init__(self, names: dict[str, Any], old: set[str]) -> None:
        self._names, self._old = names, old

    def items(self) -> Any:
        new = set(self._names) - self._old
        return [(name, self._names[name]) for name in sorted(new) if not name.startswith("__")]


def limited(
    function: Any, arguments: tuple[Any, ...], file: str, note: Callable[[Any], None] | None = None
) -> Any:
    left = _MOST_LINES

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != file:
            return None
        left -= 1
        if left < 0:
            raise TooLong
        if note is not None and event == "line":
            note(frame)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return function(*arguments)
    finally:
        sys.settrace(before)


def blocks(node: Any) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a function, outermost first."""
    for child in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            found = getattr(child, name, None)
            if isinstance(found, list) and found and isinstance(found[0], ast.stmt):
                yield found


def smaller(made: Variant) -> Iterator[Variant]:
    """Variants with one statement less, or with the body of a statement in its place."""
    count = sum(len(block) for block in blocks(made.node))
    for at in range(count):
        for inside in (False, True):
            node = copy.deepcopy(made.node)
            place = at
            for block in blocks(node):
                if place < len(block):
                    body = getattr(block[place], "body", [])
                    if inside and not body:
                        break
                    block[place : place + 1] = body if inside else []
                    if not block:
                        block.append(ast.Pass())
                    yield Variant(made.base, node, made.seed)
                    break
                place -= len(block)
