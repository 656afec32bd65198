"""Makes a function of a loop that runs apart (apart.py). Its parameters are the names that the loop
reads, and it returns the names that are read after the loop:

    for i in range(n):              def loop(n, s, x):
        s += x[i]                       for i in range(n):
                                            s += x[i]
                                        return (s,)
"""

from __future__ import annotations

import ast
import types
from typing import Any

from rune_jit.capture.loops.calls_apart import LEFT, VALUE
from rune_jit.capture.loops.growing import filled, growing
from rune_jit.capture.loops.library import functions_of
from rune_jit.capture.loops.mapping import stack_or_dict
from rune_jit.capture.loops.nodes import assign, at, call, copied, load
from rune_jit.capture.loops.source import code_of

# Names of the parameters of the loop's function that are helpers for growing lists.
_GROWING, _STACK, _FILLED = "_rune_growing", "_rune_stack", "_rune_filled"


def function_of(
    loop: ast.stmt,
    results: tuple[str, ...],
    names: list[str],
    elements: frozenset[str],
    lists: dict[str, int | None],
    module: dict[str, Any],
    code: types.CodeType,
) -> types.FunctionType:
    """The loop as a function that takes `names` and returns `results`. `elements` are the integers
    that come as elements of arrays. `lists` are the growing lists: the size of an item if the loop
    reads the list, else None."""
    body = [assign(name, call("int", load(name))) for name in sorted(elements)]
    returned: ast.expr = ast.Tuple([load(x) for x in results], ast.Load())
    filling: list[ast.expr] = []
    for item, size in lists.items():
        made_by = call(_GROWING, ast.Constant(item))
        if size is not None:
            made_by = call(_STACK, ast.Constant(item), load(item), ast.Constant(size))
        body.append(assign(item, made_by))
        filling.append(call(_FILLED, ast.Constant(item), load(item)))
    if lists:
        returned = ast.Tuple([returned, ast.Tuple(filling, ast.Load())], ast.Load())
    broken: str | None = getattr(loop, "broken", None)
    initial = {VALUE: None, LEFT: False} | ({broken: False} if broken else {})
    if initial.keys() & results:
        # (The loop is found by its line, so these statements get the line before it.)
        before = ast.Pass(lineno=max(1, loop.lineno - 1), col_offset=0)
        start = [assign(name, ast.Constant(x)) for name, x in initial.items()]
        body += [at(before, s) for s in start]
    body += [copied(loop), ast.Return(returned)]
    of_lists = {_GROWING: growing, _STACK: stack_or_dict, _FILLED: filled} if lists else {}
    functions = of_lists | functions_of(loop)
    own = [ast.arg(name) for name in functions]
    nothing: list[Any] = [ast.Constant(None)] * len(own)
    positional = [ast.arg(name) for name in names]
    arguments = ast.arguments([], positional, None, own, nothing, None, [])
    name = f"loop_{loop.lineno}"
    definition = at(loop, ast.FunctionDef(name, arguments, body, []))
    stacks = frozenset(name for name, size in lists.items() if size is not None)
    definition.stacks = stacks  # type: ignore[attr-defined]
    made = types.FunctionType(code_of(definition, code, module), module, name)
    made.__kwdefaults__ = functions or None
    made.__qualname__ = f"{code.co_name}.<loop>"
    return made
