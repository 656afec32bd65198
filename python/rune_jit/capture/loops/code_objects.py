"""Code objects of functions: compiles them from a definition, and compares them."""

from __future__ import annotations
import __future__

import ast
import dis
import functools
import types
import warnings
from typing import Any

from rune_jit.capture.names import inner_codes

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


def parsed(text: str, filename: str = "<unknown>") -> ast.Module:
    """The syntax tree of source that Python has loaded. Does not warn of invalid escapes again."""
    if "\\" not in text:
        return ast.parse(text, filename)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, filename)


def compiled(definition: ast.stmt, code: types.CodeType, qualname: str) -> types.CodeType:
    """The code of a definition, which uses the same variables of outer functions as `code`."""
    # Python compiles the definition in a class, in a function whose parameters are the variables.
    # The names of a class are no variables of the functions in it, so the definition may read a
    # global of its own name, as recursive functions do. The class of a method is within this class.
    # Its name is a part of names that begin with two underscores.
    within = qualname.split(".")[:-1]
    kinds = [_SCOPE, *(x for x in within[-1:] if x.isidentifier())]
    body = definition
    for name in reversed(kinds):
        body = _with_body(f"class {name}: pass", body)
    outer = _with_body(f"def {_OUTER}({', '.join(code.co_freevars)}): pass", body)
    found = _compiled(ast.Module([outer], []), code)
    for name in (_OUTER, *kinds, code.co_name):
        found = inner(found, name)
    prefix = f"{_OUTER}.<locals>.{'.'.join(kinds)}."
    return _renamed(found, prefix, qualname.removesuffix(code.co_name))


def _with_body(source: str, statement: ast.stmt) -> ast.stmt:
    """The definition in `source`, with this statement as its body."""
    made: Any = ast.parse(source).body[0]
    for x in ast.walk(made):
        if isinstance(x, (ast.stmt, ast.arg)):
            ast.copy_location(x, statement)
    made.body = [statement]
    return made  # type: ignore[no-any-return]


def compiled_alone(definition: ast.FunctionDef, like: types.CodeType) -> types.CodeType:
    """The code of a definition that uses no variables of outer functions. The code belongs to the
    file of `like`."""
    return inner(_compiled(ast.Module([definition], []), like), definition.name)


def _compiled(module: ast.Module, like: types.CodeType) -> types.CodeType:
    """The code of a module in the file of `like`. Python has warned of its source before."""
    compiled = functools.partial(compile, module, like.co_filename, "exec")
    flags = like.co_flags & _FUTURE
    if not any(map(_is_warned_of, ast.walk(module))):
        return compiled(flags, dont_inherit=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compiled(flags, dont_inherit=True)


_LITERALS = (ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr)


def _is_warned_of(x: ast.AST) -> bool:
    """Whether Python may warn of this: `x is 3`, `assert (x, "text")`, `3(x)`, `"text"[x]`."""
    if isinstance(x, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in x.ops):
        given = (x.left, *x.comparators)
        return any(isinstance(y, _LITERALS) and not _is_single(y) for y in given)
    used = getattr(x, {"Assert": "test", "Call": "func"}.get(type(x).__name__, ""), None)
    return isinstance(x.value if isinstance(x, ast.Subscript) else used, _LITERALS)


def _is_single(x: ast.expr) -> bool:
    """Whether x is None, True, False or Ellipsis."""
    return isinstance(x, ast.Constant) and isinstance(x.value, (type(None), bool, type(...)))


# The names of the function and the class that are put around a definition to compile it.
_OUTER, _SCOPE = "_rune_jit_outer", "_"


def _renamed(code: types.CodeType, old: str, new: str) -> types.CodeType:
    """The code with qualified names that begin with `new` instead of `old`."""

    def renamed(x: Any) -> Any:
        if isinstance(x, types.CodeType):
            return _renamed(x, old, new)
        return new + x.removeprefix(old) if type(x) is str and x.startswith(old) else x

    changes: dict[str, Any] = {"co_consts": tuple(map(renamed, code.co_consts))}
    if hasattr(code, "co_qualname"):  # from Python 3.11 on
        changes["co_qualname"] = renamed(code.co_qualname)
    return code.replace(**changes)


def inner(
    code: types.CodeType, name: str, definition: ast.FunctionDef | ast.ClassDef | None = None
) -> types.CodeType:
    """The code of an inner function: the first one with this name, or that of a definition."""
    line = None
    if definition is not None:
        line = min([definition.lineno, *(x.lineno for x in definition.decorator_list)])
    for x in inner_codes(code):
        if x.co_name == name and line in (None, x.co_firstlineno):
            return x
    raise ValueError(name)


def is_same(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether two code objects do the same and begin at the same line."""
    fields = ("co_names", "co_varnames", "co_cellvars", "co_freevars", "co_firstlineno")
    if any(getattr(a, field) != getattr(b, field) for field in fields):
        return False
    if a.co_code != b.co_code and _instructions(a) != _instructions(b):
        return False
    return len(a.co_consts) == len(b.co_consts) and all(
        is_same(x, y)
        if isinstance(x, types.CodeType) and isinstance(y, types.CodeType)
        else type(x) is type(y) and repr(x) == repr(y)
        for x, y in zip(a.co_consts, b.co_consts, strict=True)
    )


def _instructions(code: types.CodeType) -> list[tuple[str, Any]]:
    """The instructions of code, in a form that can be compared. Loads and calls of methods become
    those of attributes: Python chooses between them by the module's imports, which the source of
    the function alone does not show."""
    kept: list[dis.Instruction] = []
    position: dict[int, int] = {}
    for x in dis.get_instructions(code):
        position[x.offset] = len(kept)
        if x.opname not in ONLY_FOR_CALLS:
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


ONLY_FOR_CALLS = ("PUSH_NULL", "PRECALL", "CACHE", "EXTENDED_ARG")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def captured_in(code: types.CodeType, loop: ast.stmt | None = None) -> frozenset[str]:
    """The variables of a function that its inner functions use. Functions in the loop do not count:
    they belong to an iteration. Neither do comprehensions, which run at once."""
    lines = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1) if loop is not None else ()
    names: set[str] = set()
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            if x.co_name in _COMPREHENSIONS:
                names |= captured_in(x, loop)
            elif x.co_firstlineno not in lines:
                names |= set(x.co_freevars)
    return frozenset(names)
