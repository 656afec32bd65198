"""Rewrites expressions that a trace cannot follow. Conditional expressions and comprehensions are
turned into statements. Conversions, appends, comparisons and accesses to lists are turned into
calls of functions of rune_jit."""

from __future__ import annotations

import ast
from typing import Any

from rune_jit.capture.loops.folds import as_loop, is_fold
from rune_jit.capture.loops.nodes import (
    OWN_SCOPES,
    SCOPES,
    Transformer,
    assign,
    assigned,
    at,
    call,
    children,
    copied,
    load,
    stores,
    targets_of,
    walk,
    within,
)

# The names of the functions and methods whose calls are replaced.
CONVERSIONS = frozenset(("int", "float", "bool", "round"))
METHODS = frozenset(("append", "item"))
# The functions that append to a list, and to the list of a comprehension. Their names begin with a
# dot, like all names that a program's source cannot contain.
APPEND, COLLECT = ".append", ".collect"
# The function that does `x.item()`.
NUMBER = ".number"
# The function that compares tuples.
SAME = ".same"
# The function that does `items += [x]`.
EXTENDED = ".extended"
# The function that is called with a list whose item is read or assigned.
ITEMS = ".items"
# The function that is called with an object whose item is read, if it may be a tuple or dict.
TABLE = ".table"
# The functions for stacks and queues (stacks.py).
LENGTH, POPPED, ITEM, PUT = ".length", ".popped", ".item", ".put"
# The prefix of the functions that replace those of Python's library (library.py).
ON_LISTS = "_rune_on_"
# A loop that appends to a list and reads its last item keeps the last item in a variable. The
# functions that append and return the value, that read the last item in the loop, and that read it
# before the loop; and the prefix of the variable.
APPENDED, LAST, LAST_OF, KEPT = ".appended", ".last", ".last_of", ".kept "


class Unfolder(Transformer):
    """Rewrites the expressions of a function. If a statement contains `a if test else b`, an `if`
    statement before it computes the value. If it contains a comprehension, or a sum of a generator,
    a loop before it does. This is done unless the statement calls something first. Calls of int,
    float, bool, round, `append` and `item`, and the operator `in`, become calls of their
    replacements."""

    def __init__(self) -> None:
        self._choices = 0
        self._is_in_class = False
        self._kept: frozenset[str] = frozenset()  # lists whose last item a loop keeps
        self._lists: frozenset[str] = frozenset()  # names that may be those of lists
        self._others: frozenset[str] = frozenset()  # local variables without a known tuple or dict
        self._is_in_loop = False

    def _visit_statement(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.value, ast.IfExp) and isinstance(node, (ast.Assign, ast.Return)):
            if isinstance(node, ast.Return):
                return self._sides(node, node.value, ast.Return)
            if len(node.targets) == 1:
                return self._sides(node, node.value, lambda v: ast.Assign(node.targets, v))
        before = self._statements_before(node)
        return [*before, node] if before else node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        test = ast.copy_location(ast.Expr(node.test), node.test)
        before = self._statements_before(test)
        node.test = test.value
        return [*before, node] if before else node

    def _statements_before(self, node: ast.stmt) -> list[ast.stmt]:
        """Takes the conditional expressions and comprehensions out of a statement. Returns the
        statements that compute them."""
        before: list[ast.stmt] = []
        while choice := _first_choice(node, self._is_in_class):
            name = f".choice{self._choices}"
            self._choices += 1

            def give(value: ast.expr, name: str = name) -> ast.stmt:
                return assign(name, value)

            if isinstance(choice, ast.IfExp):
                before.append(self._sides(node, choice, give))
            elif not isinstance(choice, ast.ListComp):
                for s in as_loop(choice, name):
                    visited = self.visit(at(choice, s))
                    before += visited if isinstance(visited, list) else [visited]
            else:
                before += self._loop(choice, name)
            Replacer(choice, ast.copy_location(load(name), choice)).visit(node)
        return before

    visit_Assign = visit_Return = _visit_statement

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Replaces `items.append(x)`."""
        x = node.value
        if isinstance(x, ast.Call) and is_append(x):
            assert isinstance(x.func, ast.Attribute)
            of = x.func.value
            name = of.id if isinstance(of, ast.Name) else ""
            is_kept = name in self._kept
            made = at(x, call(APPENDED if is_kept else APPEND, of, x.args[0]))
            if is_kept:
                return self._visit_statement(at(node, assign(KEPT + name, made)))
            node.value = made
        return self._visit_statement(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Replaces `items += [x]` in loops."""
        x = node.target
        is_list = isinstance(x, ast.Name) and x.id in self._lists
        values = node.value.elts if isinstance(node.value, ast.List) else []
        is_plain = isinstance(node.op, ast.Add) and self._is_in_loop
        if not is_list or not values or not is_plain or _are_starred(values):
            return self._visit_statement(node)
        assert isinstance(x, ast.Name)
        made = call(EXTENDED, load(x.id), node.value)
        return self._visit_statement(at(node, ast.Assign([x], made)))

    def visit_For(self, node: ast.For) -> Any:
        """Keeps the last item of a list that the loop appends to in a variable:

        .kept out = .last_of("out")
        for i in range(n):
            .kept out = .appended(out, .last(out, .kept out) * 2)
        """
        names = sorted(_extended(node) - self._kept)
        outer, self._kept = self._kept, self._kept.union(names)
        self._visit_loop(node)
        self._kept = outer
        before = [assign(KEPT + name, call(LAST_OF, ast.Constant(name))) for name in names]
        return [*(at(node, x) for x in before), node]

    def visit_While(self, node: ast.While) -> Any:
        self._visit_loop(node)
        return node

    def _visit_loop(self, node: ast.stmt) -> None:
        outer, self._is_in_loop = self._is_in_loop, True
        self.generic_visit(node)
        self._is_in_loop = outer

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        name = _last_item_of(node)
        if name is None or name not in self._kept:
            return self._visit_item(node)
        return at(node, call(LAST, node.value, load(KEPT + name)))

    def _visit_item(self, node: ast.Subscript) -> ast.Subscript:
        """Replaces the list in `items[i]` in loops."""
        x = node.value
        is_table = isinstance(x, (ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict))
        if not (is_table and self._is_in_loop) or isinstance(node.slice, (ast.Slice, ast.Tuple)):
            return node
        name = x.id if isinstance(x, ast.Name) else ""
        if name in self._lists:
            node.value = at(x, call(ITEMS, x))
        elif name not in self._others:
            is_known = isinstance(node.slice, ast.Constant)
            if isinstance(node.ctx, ast.Load) and not is_known:
                node.value = at(x, call(TABLE, x))
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._visit_scope(node, True)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._visit_scope(node, False)

    def _visit_scope(self, node: ast.stmt, is_class: bool) -> ast.stmt:
        outer = self._is_in_class, self._is_in_loop, self._lists, self._others
        self._is_in_class, self._is_in_loop = is_class, False
        self._lists, self._others = _lists_of(node), _variables_of(node) - _tables_of(node)
        self.generic_visit(node)
        self._is_in_class, self._is_in_loop, self._lists, self._others = outer
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Replaces int(x), float(x), bool(x), round(x) and x.item()."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "item":
            is_item = not node.args and not node.keywords
            return at(node, call(NUMBER, node.func.value)) if is_item else node
        is_number = isinstance(node.func, ast.Name) and node.func.id in CONVERSIONS
        is_plain = len(node.args) == 1 and not isinstance(node.args[0], ast.Starred)
        if not is_number or not is_plain or node.keywords:
            return node
        return at(node, call(".convert", node.func, *node.args))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Replaces `x in items` and `(i, j) == place`."""
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        if isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            sides = node.left, node.comparators[0]
            if not any(isinstance(x, ast.Tuple) for x in sides):
                return node
            return at(node, call(SAME, *sides, ast.Constant(isinstance(node.ops[0], ast.Eq))))
        if not isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return node
        is_in = ast.Constant(isinstance(node.ops[0], ast.In))
        return at(node, call(".in", node.left, node.comparators[0], is_in))

    def _loop(self, x: ast.ListComp, name: str) -> list[ast.stmt]:
        """The statements of a loop that does the same as a comprehension:

        .choice3 = []
        for i.choice3 in range(n):
            .collect(.choice3, f(i.choice3))
        """
        generator = x.generators[0]
        names = {y.id: f"{y.id}{name}" for y in walk(generator.target) if type(y) is ast.Name}
        for part in (generator.target, x.elt):
            for y in walk(part):
                if isinstance(y, ast.Name) and y.id in names:
                    y.id = names[y.id]
        collected = ast.Expr(call(COLLECT, load(name), x.elt))
        first = assign(name, ast.List([], ast.Load()))
        body = self._visit_statement(at(x.elt, collected))
        loop = ast.For(generator.target, generator.iter, [collected], [])
        loop.body = body if isinstance(body, list) else [body]
        loop.is_comprehension = True  # type: ignore[attr-defined]
        return [at(x, first), at(x, loop)]

    def _sides(self, node: ast.stmt, choice: ast.IfExp, make: Any) -> ast.stmt:
        sides = []
        for value in (choice.body, choice.orelse):
            made = at(node, make(copied(value)))
            visited = self._visit_statement(made)
            sides.append(visited if isinstance(visited, list) else [visited])
        return ast.copy_location(ast.If(choice.test, *sides), node)


def _last_item_of(x: ast.AST) -> str | None:
    """The name of the list if x is `items[-1]`, else None."""
    if not isinstance(x, ast.Subscript) or not isinstance(x.ctx, ast.Load):
        return None
    is_last = isinstance(x.slice, ast.UnaryOp) and isinstance(x.slice.op, ast.USub)
    if not is_last or not isinstance(x.slice.operand, ast.Constant):  # type: ignore[attr-defined]
        return None
    if x.slice.operand.value != 1 or not isinstance(x.value, ast.Name):  # type: ignore[attr-defined]
        return None
    return x.value.id


def _extended(loop: ast.For) -> set[str]:
    """The names of the lists whose last items a loop reads. The loop must append to these lists by
    statements of its own, and use them in no other way."""
    nodes = [x for s in loop.body for x in walk(s)]
    appends = [s.value for s in within(loop.body) if isinstance(s, ast.Expr)]
    appends = [x for x in appends if isinstance(x, ast.Call) and is_append(x)]
    lists = [x.func.value for x in appends if isinstance(x.func.value, ast.Name)]  # type: ignore[attr-defined]
    last = [x for x in nodes if _last_item_of(x) is not None]
    inner = [x for x in nodes if isinstance(x, (*SCOPES, ast.Lambda))]
    used = {id(x) for x in lists} | {id(x.value) for x in last}  # type: ignore[attr-defined]
    used -= {id(y) for x in inner for y in walk(x)}
    others = {x.id for x in nodes if isinstance(x, ast.Name) and id(x) not in used}
    others |= {x.id for x in walk(loop.target) if isinstance(x, ast.Name)}
    return ({x.id for x in lists} & {str(_last_item_of(x)) for x in last}) - others


def is_append(x: ast.Call) -> bool:
    """Whether a call is `place.append(value)`. The place is a name, attribute or constant item."""
    return (
        isinstance(x.func, ast.Attribute)
        and x.func.attr == "append"
        and _is_place(x.func.value)
        and len(x.args) == 1
        and not _are_starred(x.args)
        and not x.keywords
    )


def _is_place(x: ast.expr) -> bool:
    if isinstance(x, ast.Subscript) and isinstance(x.slice, ast.Constant):
        x = x.value
    while isinstance(x, ast.Attribute):
        x = x.value
    return isinstance(x, ast.Name)


def _are_starred(values: list[ast.expr]) -> bool:
    return any(isinstance(x, ast.Starred) for x in values)


def _lists_of(function: ast.stmt) -> frozenset[str]:
    """The names that a function may assign lists to."""
    found: set[str] = set()

    def is_list(x: ast.expr) -> bool:
        if isinstance(x, ast.BinOp):
            return is_list(x.left) or is_list(x.right)
        if isinstance(x, ast.Call) and isinstance(x.func, ast.Name):
            return x.func.id in ("list", "sorted")
        return isinstance(x, (ast.List, ast.ListComp)) or (
            isinstance(x, ast.Name) and x.id in found
        )

    for _ in range(2):  # (the second time for names that are assigned other names)
        for s in walk(function):
            if not isinstance(s, ast.Assign):
                continue
            found |= {x.id for x, v in assigned(s) if isinstance(x, ast.Name) and is_list(v)}
    return frozenset(found)


def _variables_of(function: ast.stmt) -> frozenset[str]:
    """The parameters of a function and the names that it assigns."""
    nodes = list(walk(function))
    names = {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
    return frozenset(names | {x.arg for x in nodes if isinstance(x, ast.arg)})


def _tables_of(function: ast.stmt) -> frozenset[str]:
    """The names that a function assigns a tuple or dict display to."""
    return frozenset(
        x.id
        for s in walk(function)
        if isinstance(s, ast.Assign)
        for x, v in assigned(s)
        if isinstance(x, ast.Name) and isinstance(v, (ast.Tuple, ast.Dict))
    )


class Replacer(Transformer):
    """Replaces an expression by another one."""

    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else super().visit(node)


def _first_choice(
    x: ast.AST, is_in_class: bool
) -> ast.IfExp | ast.ListComp | ast.Call | ast.BoolOp | None:
    """The first expression in a statement that statements before it can compute. None if there is
    none, or if the statement calls something before it. The expression is `a if test else b`, a
    comprehension or generator that can be a loop, or `and` or `or` of such a generator. In the body
    of a class it cannot be a loop, which would find other names than a comprehension does."""

    def find(x: ast.AST) -> Any:
        """The expression. False if something may be called before it, None if there is none."""
        if isinstance(x, ast.IfExp) or (not is_in_class and (_is_loop(x) or is_fold(x))):
            return x
        if isinstance(x, ast.BoolOp):
            if not is_in_class and any(is_fold(y) for v in x.values[1:] for y in walk(v)):
                return x
            if (first := find(x.values[0])) is not None:
                return first
        is_chain = isinstance(x, ast.Compare) and len(x.ops) > 1
        if is_chain or isinstance(x, _EVALUATED_IN_PART):
            inner = any(isinstance(y, (ast.IfExp, ast.Call, ast.NamedExpr)) for y in walk(x))
            return False if inner else None
        for child in children(x):
            found = find(child)
            if found is not None:
                return found
        return False if isinstance(x, (ast.Call, ast.Await, ast.Yield, ast.YieldFrom)) else None

    return find(x) or None


def _is_loop(x: ast.AST) -> bool:
    """Whether x is a comprehension that can become a loop, with its own names renamed."""
    if not isinstance(x, ast.ListComp) or len(x.generators) > 1:
        return False
    generator = x.generators[0]
    targets = targets_of(x)
    if targets is None or generator.ifs:
        return False
    if any(isinstance(y, OWN_SCOPES) or stores(y, targets) for y in walk(x.elt)):
        return False
    return not any(isinstance(y, ast.NamedExpr) for y in walk(generator.iter))


_EVALUATED_IN_PART = (
    *(ast.Lambda, ast.BoolOp, ast.NamedExpr, ast.Dict, ast.JoinedStr),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
