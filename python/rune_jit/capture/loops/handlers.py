"""`try` statements and `with np.errstate(...)` in loops of the program and around them. The program
assumes that nothing raises, and checks this (`Check` in cpp/bindings/compiled_call.h). If a check
fails, Python runs the call from its start. So no handler runs in the body of a loop of the program:
if something raises there while the body is traced, the loop is refused.

    try:                                try:
        y = f(x[i])                         y = f(x[i])
    except ValueError:                  except .passed_on(False): raise
        continue                        except ValueError:
                                            continue
"""

from __future__ import annotations

import ast
import copy
import dis
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rune_jit.capture.loops.nodes import SCOPES, Transformer, at, call, walk
from rune_jit.errors import RuneJitError, UnsupportedOpError
from rune_jit.tracing.context import ValuesNeeded, current_trace, is_library_file, is_own_file
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.tracer import contains_tracer
from rune_jit.trees import attribute

# The functions that the rewritten statements call: the first handler of a `try`, and `with`.
PASSED_ON, ENTERED = ".passed_on", ".entered"
_JUMPS = (ast.Break, ast.Continue)
_SCOPES = (*SCOPES, ast.Lambda)


def passed_on(is_named: bool) -> tuple[type[BaseException], ...]:
    """The exceptions that must pass by the handlers of a `try` of a traced function. `is_named`
    tells whether a handler names the exception. If it does, raises UnsupportedOpError for an error
    whose text may differ from NumPy's. (In segments, it is NumPy's own.)"""
    trace = current_trace()
    if trace is None or trace.is_segmented:
        return ()
    if trace.loops is not None and trace.loops.within:
        return (BaseException,)
    error = sys.exc_info()[1]
    kinds = (ValueError, TypeError, BufferError) if is_named else (BufferError,)
    if isinstance(error, kinds) and _is_ours(error):
        raise UnsupportedOpError(
            "try: cannot trace a handler that reads an error of an operation on arrays (its text"
            " may differ from NumPy's)\nhint: write `except` without `as`"
        )
    return (LoopRefused, ValuesNeeded, RuneJitError)


def _is_ours(error: BaseException) -> bool:
    """Whether a trace has raised an error in place of NumPy."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or isinstance(error, RuneJitError):
        return False
    frame = traceback.tb_frame
    code = frame.f_code
    if is_own_file(code.co_filename) or is_library_file(code.co_filename):
        return is_own_file(code.co_filename)
    if dis.opname[code.co_code[traceback.tb_lasti]] in ("RAISE_VARARGS", "RERAISE"):
        return False
    # Code in C has raised it. It may be an operation on arrays if the function can reach any array.
    held = [*frame.f_locals.values(), *(frame.f_globals.get(name) for name in code.co_names)]
    objects = [x for x in held if not isinstance(x, types.ModuleType)]
    held += [y for x in objects for y in attribute(x, "__dict__", {}).values()]
    return contains_tracer(held) or any(isinstance(x, np.ndarray) for x in held)


def entered(manager: Any) -> Any:
    """Checks the context manager of a `with` statement that looks like np.errstate, and returns it.
    Another manager may swallow exceptions; then loops in and around the statement are refused."""
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    if loops is not None and type(manager) is not np.errstate:
        why = "it has a with statement, or is in one"
        if loops.within:
            loops.fail(why)
        if not loops.plans.are_all_refused:
            loops.plans.refuse_all(why)
            raise LoopRefused
    return manager


def is_try(s: ast.AST) -> bool:
    """Whether a statement is a `try` whose body a loop of the program may run."""
    return isinstance(s, ast.Try) and not s.finalbody


def is_errstate(s: ast.AST) -> bool:
    """Whether a statement is `with np.errstate(...):`, which swallows no exception."""
    return isinstance(s, ast.With) and all(map(_is_errstate, s.items))


def _is_errstate(item: ast.withitem) -> bool:
    x = item.context_expr
    if item.optional_vars is not None or not isinstance(x, ast.Call):
        return False
    name = x.func.attr if isinstance(x.func, ast.Attribute) else getattr(x.func, "id", None)
    return name == "errstate"


def is_transparent(s: ast.AST) -> bool:
    """Whether a trace can run the statements in `s` as if they stood in its place."""
    return is_try(s) or is_errstate(s)


def blocks(s: Any) -> list[list[ast.stmt]]:
    """The blocks of such a statement that run if nothing raises."""
    return [s.body, s.orelse] if isinstance(s, ast.Try) else [s.body]


def as_traced(statements: Iterable[ast.stmt]) -> list[ast.stmt]:
    """The statements that a loop of the program runs, without handlers."""
    return [x for s in statements for x in _as_traced(s)]


def _as_traced(s: ast.stmt) -> Iterator[ast.stmt]:
    if is_try(s):
        yield from as_traced([x for block in blocks(s) for x in block])
    elif is_errstate(s):
        for item in s.items:  # type: ignore[attr-defined]
            yield at(s, ast.Expr(item.context_expr))
        yield from as_traced(s.body)  # type: ignore[attr-defined]
    elif isinstance(s, (ast.If, ast.For, ast.While)) and any(map(is_transparent, walk(s))):
        made = copy.copy(s)
        made.body, made.orelse = as_traced(s.body), as_traced(s.orelse)
        yield made
    else:
        yield s


def jumps_out(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements contain a jump of the loop around them, or a `return`."""
    for s in statements:
        if isinstance(s, (*_JUMPS, ast.Return)):
            return True
        if isinstance(s, (ast.For, ast.While)):
            if jumps_out(s.orelse) or any(isinstance(x, ast.Return) for x in walk(s)):
                return True
        elif not isinstance(s, _SCOPES):
            parts: list[Any] = [s, *getattr(s, "handlers", ()), *getattr(s, "cases", ())]
            names = ("body", "orelse", "finalbody")
            if any(jumps_out(getattr(x, name, [])) for x in parts for name in names):
                return True
    return False


def handlers_of(s: ast.AST) -> Iterator[ast.ExceptHandler]:
    """The handlers in a statement."""
    return (x for x in walk(s) if isinstance(x, ast.ExceptHandler))


def may_jump(handler: ast.ExceptHandler) -> bool:
    """Whether a handler contains a `break` or `continue`, also one of an inner loop."""
    return any(isinstance(x, _JUMPS) for x in walk(handler))


class Guards(Transformer):
    """Adds a first handler to each `try` statement, for the exceptions that must pass by the other
    handlers, and a call to each `with np.errstate(...)`."""

    def visit_With(self, node: ast.With) -> ast.With:
        self.generic_visit(node)
        if is_errstate(node):
            for item in node.items:
                item.context_expr = at(node, call(ENTERED, item.context_expr))
        return node

    def visit_Try(self, node: ast.Try) -> ast.Try:
        self.generic_visit(node)
        if node.handlers:
            is_named = ast.Constant(any(x.name for x in node.handlers))
            first = ast.ExceptHandler(call(PASSED_ON, is_named), None, [ast.Raise()])
            node.handlers.insert(0, at(node.handlers[0], first))
        return node


# The functions that loops call, by name.
HANDLERS = {PASSED_ON: passed_on, ENTERED: entered}
