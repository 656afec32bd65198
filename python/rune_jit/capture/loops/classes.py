"""Calls that may make objects of a class: a replacement of the class is asked first.

state = State(x)                    state = .made(State)(x)"""

from __future__ import annotations

import ast
import builtins
import dis
import types
from typing import Any

from rune_jit.capture.loops.members import can_be_made
from rune_jit.capture.loops.nodes import at, call

MADE, TYPE = ".made", ".type"


class Classes(ast.NodeTransformer):
    """Puts calls around the names that are called."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        f = node.func
        if isinstance(f, ast.Name) and f.id == "type" and len(node.args) == 1:
            return at(node, call(TYPE, f, *node.args))
        elif isinstance(f, ast.Name):
            if f.id[0] != "." and not hasattr(builtins, f.id):
                node.func = at(f, call(MADE, f))
        elif isinstance(f, ast.Attribute) and f.attr[:1].isupper():
            node.func = at(f, call(MADE, f))
        return node


class OuterClasses(Classes):
    """The same beside functions in the function: these may outlive the trace."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node


def calls_classes(function: types.FunctionType) -> bool:
    """Whether a function may call classes of the user's, as far as its names tell."""
    names, code = function.__globals__, function.__code__
    if dis.opmap["LOAD_BUILD_CLASS"] in code.co_code[::2]:
        return True
    found = [dict.get(names, name) for name in code.co_names]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not bound yet
            continue
    if any(isinstance(x, type) and can_be_made(x) for x in found):
        return True
    return any(isinstance(x, types.ModuleType) for x in found) and any(
        name[:1].isupper() for name in code.co_names
    )
