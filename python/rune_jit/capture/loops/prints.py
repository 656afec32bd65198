"""Calls of `print` in loops that run apart (apart.py). The loop appends the values to lists, and
Python prints them after the loop:

    for i in range(n):                          for i in range(n):
        if i % 100 == 0:                            if i % 100 == 0:
            print(f"{i}: {loss:.3f}")                   printed0.append((i, loss))

                                                for v0, v1 in printed0:
                                                    print(f"{v0}: {v1:.3f}")

Each row also gets a number, so that the rows of several statements are printed in their order. If
Python runs the loop, the statements print at once. Functions of Python that make texts or round
numbers (`round(loss, 4)`, `str(i)`) are called when the values are printed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from rune_jit.capture.loops.nodes import SCOPES, Transformer, at, call, copied, load, path_of, walk
from rune_jit.capture.loops.pure import BUILTINS, READING_METHODS
from rune_jit.capture.loops.unfold import ITEMS, TABLE

# The function that is called in the place of a statement that prints, with the statement's number
# and the values. After the call, STATEMENTS[number] prints the values.
LATER = ".later"
STATEMENTS: list[Callable[..., None]] = []
_LIST, _TURN, _VALUE = "_rune_printed{}", "_rune_turn", "v{}"


class Printed(list[Any]):
    """The rows of values that a statement prints later."""

    def __init__(self, function: Callable[..., None], is_late: bool) -> None:
        """`is_late`: whether rows of Python are printed later, too, because the loop may be
        undone."""
        super().__init__()
        self.function, self._is_late = function, is_late

    def append(self, row: Any) -> None:
        """Prints the row. (Only Python calls `append`; programs extend the list.)"""
        if self._is_late:
            super().append(row)
        else:
            self.function(*row[1:])


class Prints:
    """The statements of a loop that print."""

    def __init__(self, loop: ast.stmt, statements: list[ast.Expr]) -> None:
        collector = _Collector(statements)
        self.loop: ast.stmt = collector.visit(copied(loop))
        self._functions = [_function(loop, *site) for site in collector.sites]
        # The functions that are called when the values are printed.
        self.calls = frozenset().union(*(_calls_of(called) for called, _ in collector.sites))

    @classmethod
    def of(cls, loop: ast.stmt) -> Prints | None:
        """The statements of a loop that print. None if there are none, or if the arguments of one
        cannot be evaluated earlier than they are printed."""
        nodes = list(walk(loop))
        found = [x for x in nodes if isinstance(x, ast.Name) and x.id == "print"]
        statements = [x for x in nodes if isinstance(x, ast.Expr) and _is_print(x.value)]
        if not found or len(found) != len(statements) or any(isinstance(x, SCOPES) for x in nodes):
            return None
        return cls(loop, statements)

    def lists(self, are_late: bool) -> dict[str, Printed]:
        """New lists for a run of the loop, by name. For `are_late` see Printed."""
        return {_LIST.format(i): Printed(f, are_late) for i, f in enumerate(self._functions)}

    def names(self) -> dict[str, Any]:
        """The variables that the loop has in addition to those of its function, and their values
        before the loop."""
        return {_LIST.format(i): [] for i in range(len(self._functions))} | {_TURN: 0}


def later(s: ast.Expr) -> tuple[ast.Expr, frozenset[str]] | None:
    """The statement that replaces one that prints, in traced code, and the functions that are
    called when the values are printed. None if the evaluation of its values might have effects."""
    if not _is_print(s.value):
        return None
    values: list[ast.expr] = []
    made: Any = copied(s.value)
    made.args = [_Values(values).visit(x) for x in made.args]
    if not all(isinstance(x, _PLAIN) for value in values for x in walk(value)):
        return None
    calls = [x for value in values for x in walk(value) if isinstance(x, ast.Call)]
    if not all(map(_is_plain_call, calls)):
        return None
    STATEMENTS.append(_function(s, made, len(values)))
    made_later = at(s, ast.Expr(call(LATER, ast.Constant(len(STATEMENTS) - 1), *values)))
    return made_later, _calls_of(made)


_PLAIN = (
    *(ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.BinOp, ast.UnaryOp),
    *(ast.Tuple, ast.List, ast.Call, ast.operator, ast.unaryop, ast.expr_context),
)
# Functions that replace Python's in loops (unfold.py).
_REPLACEMENTS = frozenset((".convert", ITEMS, TABLE))


def _is_plain_call(x: ast.Call) -> bool:
    path = path_of(x.func)
    if len(path) == 1:
        return path[0] in BUILTINS or path[0] in _REPLACEMENTS
    is_method = isinstance(x.func, ast.Attribute) and x.func.attr in READING_METHODS
    return is_method or path[:1] in (("np",), ("numpy",), ("math",))


def show(lists: Iterable[Printed]) -> None:
    """Prints the rows that a program has computed."""
    rows = ((row[0], row[1:], x.function) for x in lists for row in x)
    for _, values, function in sorted(rows, key=lambda row: row[0]):
        function(*values)


def _function(place: ast.stmt, called: ast.expr, count: int) -> Callable[..., None]:
    """A function of `count` values that evaluates a call of print."""
    parameters = [ast.arg(_VALUE.format(i)) for i in range(count)]
    arguments = ast.arguments([], parameters, None, [], [], None, [])
    made = at(place, ast.Expression(ast.Lambda(arguments, called)))
    code = compile(ast.fix_missing_locations(made), "<what a loop prints>", "eval")
    found: Callable[..., None] = eval(code, {"print": print})
    return found


class _Collector(Transformer):
    """Makes the statements append the values that they print to lists."""

    def __init__(self, statements: list[ast.Expr]) -> None:
        self._places = {(x.lineno, x.col_offset) for x in statements}
        # By statement: the call, with names for the values, and the number of values.
        self.sites: list[tuple[ast.expr, int]] = []

    def visit_Expr(self, node: ast.Expr) -> Any:
        if (node.lineno, node.col_offset) not in self._places or not _is_print(node.value):
            return node
        values: list[ast.expr] = []
        assert isinstance(node.value, ast.Call)
        taken = _Values(values)
        node.value.args = [taken.visit(x) for x in node.value.args]
        items = _LIST.format(len(self.sites))
        self.sites.append((node.value, len(values)))
        turn = ast.AugAssign(ast.Name(_TURN, ast.Store()), ast.Add(), ast.Constant(1))
        row = ast.Tuple([load(_TURN), *values], ast.Load())
        return [at(node, turn), at(node, ast.Expr(call((items, "append"), row)))]


class _Values(Transformer):
    """Replaces the values in an argument by names. Format strings stay, and so do calls of
    functions that make texts or round numbers."""

    def __init__(self, values: list[ast.expr]) -> None:
        self._values = values

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.JoinedStr):
            node.values = [self.visit(x) for x in node.values]
        elif isinstance(node, ast.FormattedValue):
            node.value = self.visit(node.value)
        elif isinstance(node, ast.BinOp) and _is_text(node.left) and isinstance(node.op, ast.Mod):
            node.right = self._parts(node.right)
        elif isinstance(node, ast.Call) and (_is_format(node) or _is_later(node)):
            node.args = [self.visit(x) for x in node.args]
        elif isinstance(node, ast.BinOp) and _makes_text(node):
            node.left, node.right = self.visit(node.left), self.visit(node.right)
        else:
            name = _VALUE.format(len(self._values))
            self._values.append(node)  # type: ignore[arg-type]
            return at(node, load(name))
        return node

    def _parts(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.Tuple):
            return self.visit(node)  # type: ignore[no-any-return]
        node.elts = [self.visit(x) for x in node.elts]
        return node


def _is_text(x: ast.AST) -> bool:
    return isinstance(x, ast.Constant) and isinstance(x.value, str)


def _is_format(x: ast.Call) -> bool:
    return isinstance(x.func, ast.Attribute) and x.func.attr == "format" and _is_text(x.func.value)


# Functions of Python whose calls are made when the values are printed.
_LATER = frozenset(("format", "repr", "round", "str"))


def _is_later(x: ast.AST) -> bool:
    """Whether an expression is a call that is made when the values are printed."""
    is_plain = isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and not x.keywords
    return is_plain and bool(x.args) and x.func.id in _LATER  # type: ignore[attr-defined]


def _makes_text(x: ast.AST) -> bool:
    """Whether an expression consists of texts, formatted values and sums of these."""
    if isinstance(x, ast.BinOp) and isinstance(x.op, ast.Add):
        return _makes_text(x.left) and _makes_text(x.right)
    if isinstance(x, ast.Call) and (_is_format(x) or _is_later(x)):
        return not (isinstance(x.func, ast.Name) and x.func.id == "round")
    return _is_text(x) or isinstance(x, ast.JoinedStr)


def _calls_of(printed: ast.AST) -> frozenset[str]:
    """The functions by name that are called when this expression prints its values."""
    return frozenset(x.func.id for x in walk(printed) if _is_later(x))  # type: ignore[attr-defined]


# Expressions that arguments must not contain: they assign names, or their parts are not evaluated
# exactly once.
_OTHERS = (
    *(ast.Starred, ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def _is_print(x: ast.expr) -> bool:
    """Whether an expression is a call of print that can be made later."""
    if not isinstance(x, ast.Call) or not isinstance(x.func, ast.Name) or x.func.id != "print":
        return False
    options = all(
        y.arg in ("sep", "end", "flush") and isinstance(y.value, ast.Constant) for y in x.keywords
    )
    specs = (y.format_spec for y in walk(x) if isinstance(y, ast.FormattedValue))
    are_known = all(
        spec is None or all(isinstance(y, ast.Constant) for y in spec.values)  # type: ignore[attr-defined]
        for spec in specs
    )
    named = any(isinstance(y, ast.Call) and _is_format(y) and y.keywords for y in walk(x))
    return options and are_known and not named and not any(isinstance(y, _OTHERS) for y in walk(x))
