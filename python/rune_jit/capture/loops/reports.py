"""Statements in loops that only report something: `print`, warnings, logging. If data decide about
such a statement, the program leaves it out and checks whether it would have run. If it would,
Python runs the call from its start, as for `raise` (raises.py):

    if x[i] > limit:                    if x[i] > limit:
        print(f"clipped {i}")               if .reports("print"):
        x[i] = limit                            print(f"clipped {i}")
                                            x[i] = limit"""

from __future__ import annotations

import ast
import builtins
import sys
import warnings
from collections.abc import Iterable
from typing import Any

from rune_jit.capture.loops.nodes import Transformer, at, call, path_of
from rune_jit.capture.loops.prints import later
from rune_jit.capture.shim import LOG_LEVELS, original

REPORTS = ".reports"  # the function that is called with the path of the reporting function
PRINTS = (
    ".prints"  # the function that tells whether the trace prints after the program (printed.py)
)
_LOGS = ("log", "logger", "logging")  # how the names of loggers end
_FUNCTIONS = print, warnings.warn  # (traces replace these functions in their modules)
_LEAVES = (ast.Break, ast.Return)


class Reports(Transformer):
    """Makes such statements conditional. Leaves out those in a block with a `break` or `return`,
    since most calls run them."""

    def __init__(self) -> None:
        self._hidden: list[tuple[ast.If, list[ast.stmt]]] = []

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                leaves = any(isinstance(s, _LEAVES) for s in block)
                setattr(node, name, [self._statement(s, leaves) for s in block])
        return node

    def _statement(self, s: ast.stmt, leaves: bool) -> ast.stmt:
        path = _path_of(s)
        if path is None:
            return s
        made = s
        if not leaves:
            made = at(s, ast.If(call(REPORTS, ast.Constant(path)), [ast.Pass()], []))
            made.hidden = [s]  # type: ignore[attr-defined]
            self._hidden.append((made, [s]))
        found = later(s) if path == "print" else None  # type: ignore[arg-type]
        if found is None:
            return made
        printed, calls = found
        asks = at(s, ast.If(call(PRINTS, *map(ast.Constant, sorted(calls))), [printed], [made]))
        asks.hidden = []  # type: ignore[attr-defined]
        return asks

    def show(self) -> None:
        """Restores the statements, which were hidden from the analysis of loops."""
        for node, body in self._hidden:
            node.body = body


def is_hidden(s: ast.If) -> bool:
    """Whether an `if` hides a statement that reports something, or raises."""
    return hasattr(s, "hidden")


def _path_of(s: ast.stmt) -> str | None:
    """The path of the function that a statement calls to report something, as "warnings.warn". None
    for other statements."""
    if not isinstance(s, ast.Expr) or not isinstance(s.value, ast.Call):
        return None
    path = path_of(s.value.func)
    is_log = len(path) > 1 and path[-1] in LOG_LEVELS and path[-2].lower().endswith(_LOGS)
    if path in (("print",), ("warn",), ("warnings", "warn")) or is_log:
        return ".".join(path)
    return None


def is_report(path: str, frame: Any) -> bool:
    """Whether the function that a frame's code calls by this path only reports."""
    first, *names = path.split(".")
    found = _found(first, frame)
    for name in names:
        found = getattr(found, name, None)
    found = original(found)
    if any(found is x for x in (*_FUNCTIONS, original(print), original(warnings.warn))):
        return True
    logging = sys.modules.get("logging")  # (not imported here, since it adds an exit handler)
    if logging is None:
        return False
    if any(found is original(getattr(logging, name)) for name in LOG_LEVELS):
        return True
    return type(getattr(found, "__self__", None)) is logging.Logger


def are_pythons(names: Iterable[str], frame: Any) -> bool:
    """Whether names in a frame's code stand for Python's own functions."""
    return all(original(_found(name, frame)) is getattr(builtins, name) for name in names)


def _found(name: str, frame: Any) -> Any:
    return frame.f_locals.get(name, frame.f_globals.get(name, getattr(builtins, name, None)))
