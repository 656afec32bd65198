"""Finds out whether two names, or a name and a list, may share an array after a loop. A compiled
loop returns copies, so it would lose the sharing."""

from __future__ import annotations

import ast
import enum
import types
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from rune_jit.capture.loops.liveness import stored
from rune_jit.capture.loops.nodes import SCOPES, blocks_of, path_of, walk
from rune_jit.capture.loops.scopes import DEEPEST, Find, Reads, Scope, are_as_read, body_of
from rune_jit.capture.loops.unfold import ON_LISTS, is_append
from rune_jit.capture.random_methods import (
    METHODS,
    NUM_PARAMETERS,
    generator_of,
    is_of_python,
    method_of,
)
from rune_jit.capture.shim import original
from rune_jit.tracing.tracer import is_array
from rune_jit.trees import attribute


class Kind(enum.IntEnum):
    """What an expression surely yields. If one of several expressions gives the value, its kind is
    the least of theirs."""

    OTHER = 0  # anything: perhaps an array that exists already, or a view of one
    NEW = 1  # a new array, or a number
    NUMBER = 2


_NUMBERS = frozenset(("int", "float", "bool", "len", "round", "ord"))
_OF_NUMBERS = frozenset(("abs", "min", "max", "sum", "pow", "divmod"))
NEW_METHODS = (
    "sum mean max min dot copy argmax argmin std var prod all any astype cumsum cumprod round clip"
    " argsort searchsorted repeat take item"
)
_NEW_FUNCTIONS = (
    "zeros ones empty full zeros_like ones_like empty_like full_like arange linspace eye where sqrt"
    " exp log log2 log10 log1p expm1 sin cos tan tanh sinh cosh arctan arctan2 abs absolute sign"
    " floor ceil power maximum minimum add subtract multiply divide matmul outer inner cross kron"
    " roll concatenate stack vstack hstack sort median nansum nanmean hypot square norm isnan"
    " isfinite logical_and logical_or logical_not float32 float64 int32 int64 mod remainder"
)
_MAKING = (  # they give arrays if they get numbers
    "zeros ones empty full zeros_like ones_like empty_like full_like arange linspace eye where"
    " outer roll copy astype repeat take argsort sort concatenate stack vstack hstack kron"
)
_OF_ARRAYS = frozenset(_MAKING.split())
_NEW = frozenset(f"{NEW_METHODS} {_NEW_FUNCTIONS}".split())
_METHODS = frozenset(NEW_METHODS.split())
# Functions and methods that reduce an array to a number, unless they get an axis.
_OF_ALL_NAMES = "sum mean max min argmax argmin std var prod all any item median norm"
_OF_ALL = frozenset(_OF_ALL_NAMES.split())


_RANGE = ast.parse("range(0)", mode="eval").body


class Aliases:
    """The names that may share an array after a loop."""

    def __init__(
        self,
        loop: ast.stmt,
        results: tuple[str, ...],
        stacks: Collection[str] = (),
        numbered: Collection[str] = (),
    ) -> None:
        """`results` are the names that are read after the loop. `stacks` are the lists of numbers,
        or of tuples of numbers, that the loop both changes and reads. `numbered` are names that
        may share arrays because same_arrays.py keeps track of them."""
        self._stacks = stacks
        self._loop, self._results = loop, [name for name in results if name not in numbered]
        self.appended = appended_only(loop)
        # By name: the expressions that are assigned to it (None: one that is not known), and the
        # expressions that `name += ...` adds.
        self._values: dict[str, list[ast.expr | None]] = {}
        self._added: dict[str, list[ast.expr]] = {}
        self._iterated: list[tuple[str, ast.expr]] = []  # loop variables, and what they run over
        for x in walk(loop):
            if isinstance(x, ast.AugAssign) and isinstance(x.target, ast.Name):
                self._added.setdefault(x.target.id, []).append(x.value)
            elif isinstance(x, ast.Assign):
                first, *others = x.targets
                self._assign(first, x.value)
                for target in others:  # (they get the same array)
                    self._assign(target, first if isinstance(first, ast.Name) else None)
            elif isinstance(x, (ast.For, ast.comprehension)):
                self._iterate(x.target, x.iter)
            elif isinstance(x, ast.AnnAssign) and x.value is not None:
                self._assign(x.target, x.value)
        self._known: dict[Any, tuple[bool, bool, Reads]] = {}

    def are_possible(self, given: Mapping[str, Any], find: Find) -> bool:
        """Whether a result may share its array with another name or a list after the loop. `given`
        are the values of the names before the loop; `find` finds the functions that it calls."""
        key = tuple([(name, type(x), attribute(x, "ndim")) for name, x in given.items()])
        known = self._known.get(key)
        if known is None or not are_as_read(known[2], find):
            reads: Reads = {}
            kinds = self.kinds(given, Scope(find, reads, None))
            known = self._known[key] = (
                any(map(kinds.may_be_others, self._results)) or not self._keeps_lists(kinds, given),
                any(is_array(given.get(name)) for name in self._results if kinds.assigns(name)),
                reads,
            )
        may_be, are_replaced, _ = known
        return may_be or (are_replaced and not self._replaces(given))

    def kinds(self, given: Mapping[str, Any], scope: Scope) -> _Kinds:
        """The kinds of the loop's expressions, if `given` are the values before the loop."""
        return _Kinds(self._values, self._added, self._iterated, given, self._stacks, scope)

    def values_of(self, name: str) -> list[ast.expr] | None:
        """The expressions that the loop assigns to a name. None if it assigns anything to the name
        by another statement than `name = value`."""
        values = self._values.get(name, [])
        is_other = name in self._added or any(name == x for x, _ in self._iterated)
        return None if is_other or None in values else values  # type: ignore[return-value]

    def _keeps_lists(self, kinds: _Kinds, given: Mapping[str, Any]) -> bool:
        """Whether the loop stores no array that exists already in a list."""
        lists = {name for name, x in given.items() if type(x) is list} - {*self._stacks}
        known: set[int] = set()  # uses of lists that surely store no such array
        for x in walk(self._loop) if lists else ():
            if isinstance(x, ast.Call) and len(x.args) == 1:
                is_append = isinstance(x.func, ast.Attribute) and x.func.attr == "append"
                if is_append and (
                    kinds.of(x.args[0]) == Kind.NUMBER
                    or (
                        isinstance(x.func.value, ast.Name)  # type: ignore[attr-defined]
                        and x.func.value.id in self.appended  # type: ignore[attr-defined]
                        and (kinds.is_new(x.args[0]) or self._is_made_for(x, kinds))
                    )
                ):
                    known.add(id(x.func.value))  # type: ignore[attr-defined]
                elif isinstance(x.func, ast.Name) and x.func.id == "len":
                    known.add(id(x.args[0]))
            elif isinstance(x, ast.Subscript) and isinstance(x.ctx, ast.Load):
                known.add(id(x.value))
            elif isinstance(x, (ast.Assign, ast.AugAssign)) and kinds.of(x.value) == Kind.NUMBER:
                targets = x.targets if isinstance(x, ast.Assign) else [x.target]
                known |= {id(y.value) for y in targets if isinstance(y, ast.Subscript)}
        return all(
            id(x) in known
            for x in (walk(self._loop) if lists else ())
            if isinstance(x, ast.Name) and x.id in lists
        )

    def _is_made_for(self, x: ast.Call, kinds: _Kinds) -> bool:
        """Whether a call appends an array that an earlier statement of the same block has made, and
        that no other list and no result gets."""
        name = x.args[0].id if isinstance(x.args[0], ast.Name) else None
        if name is None or name in self._results:
            return False
        appended = [y for y in walk(self._loop) if isinstance(y, ast.Call) and is_append(y)]
        if sum(isinstance(z, ast.Name) and z.id == name for y in appended for z in walk(y)) != 1:
            return False
        blocks = [y for s in walk(self._loop) for y in blocks_of(s)]
        for block in blocks:
            at = next((i for i, s in enumerate(block) if getattr(s, "value", None) is x), 0)
            for s in block[:at]:
                is_of_name = isinstance(s, ast.Assign) and len(s.targets) == 1
                if is_of_name and name in stored(s.targets):  # type: ignore[attr-defined]
                    return kinds.of(s.value) >= Kind.NEW  # type: ignore[attr-defined]
        return False

    def _replaces(self, given: Mapping[str, Any]) -> bool:
        """Whether the loop surely assigns each name that it may assign and that is an array now."""
        always = assigned_always(self._loop)
        names = [x for x in self._results if x in self._values and is_array(given.get(x))]
        return all(name in always for name in names) and self._runs(given)

    def _runs(self, given: Mapping[str, Any]) -> bool:
        """Whether the loop surely has an iteration."""
        if not isinstance(self._loop, ast.For) or not _is_range(self._loop.iter):
            return False
        if any(isinstance(x, ast.Call) and not _is_range(x) for x in walk(self._loop.iter)):
            return False
        code = compile(ast.Expression(self._loop.iter), "<range>", "eval")
        try:
            return len(eval(code, {"range": range}, dict(given))) > 0
        except Exception:  # an argument is no integer
            return False

    def _iterate(self, target: ast.expr, over: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._iterated.append((target.id, over))
            return
        if isinstance(over, (ast.Tuple, ast.List)):
            for item in over.elts:
                self._assign(target, item)
            return
        parts: list[ast.expr] = []
        is_call = isinstance(over, ast.Call) and isinstance(over.func, ast.Name)
        if is_call and over.func.id == "zip":  # type: ignore[attr-defined]
            parts = over.args  # type: ignore[attr-defined]
        elif is_call and over.func.id == "enumerate":  # type: ignore[attr-defined]
            parts = [_RANGE, *over.args[:1]]  # type: ignore[attr-defined]
        if isinstance(target, ast.Tuple) and len(target.elts) == len(parts):
            for x, part in zip(target.elts, parts, strict=True):
                self._iterate(x, part)
        else:
            self._assign(target, None)

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault(target.id, []).append(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts: list[Any] = [None] * len(target.elts)
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                parts = list(value.elts)
            elif isinstance(value, (ast.Call, ast.Subscript)):  # an item of a stack
                parts = [value if item_of(value) in self._stacks else None] * len(target.elts)
            for x, part in zip(target.elts, parts, strict=True):
                self._assign(x, part)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, None)


class _Kinds:
    """The kinds of a loop's expressions, if names have given values before it."""

    def __init__(
        self,
        values: dict[str, list[ast.expr | None]],
        added: dict[str, list[ast.expr]],
        iterated: list[tuple[str, ast.expr]],
        given: Mapping[str, Any],
        stacks: Collection[str],
        scope: Scope,
    ) -> None:
        self._stacks, self._scope = stacks, scope
        self._values = {name: [*x] for name, x in values.items()}
        self._added, self._given = added, given
        for name, over in iterated:
            array = given.get(over.id) if isinstance(over, ast.Name) else None
            is_number = _is_range(over) or getattr(array, "ndim", 0) == 1
            self._values.setdefault(name, []).append(ast.Constant(0) if is_number else None)
        self._find_numbers()

    def assigns(self, name: str) -> bool:
        return name in self._values

    def may_be_others(self, name: str) -> bool:
        """Whether the loop may assign the name an array that exists already."""
        return any(self.of(x) == Kind.OTHER for x in self._values.get(name, ()))

    def is_new(self, x: ast.expr) -> bool:
        """Whether an expression is a number, a new array, or a tuple or list of these."""
        if isinstance(x, (ast.Tuple, ast.List)):
            return all(map(self.is_new, x.elts))
        return self.of(x) >= Kind.NEW

    def _find_numbers(self) -> None:
        """Finds the names to which nothing but numbers is assigned. Begins with all names that are
        no arrays before the loop, and removes names until none has to be removed."""
        names = self._given.keys() | self._values.keys()
        self._numbers = {name for name in names if not is_array(self._given.get(name))}
        while True:
            others = {
                name
                for name in self._numbers
                for x in (*self._values.get(name, ()), *self._added.get(name, ()))
                if self.of(x) != Kind.NUMBER
            }
            if not others:
                return
            self._numbers -= others

    def of(self, x: ast.expr | None) -> Kind:
        """The kind of an expression; None stands for one that is not known."""
        if isinstance(x, ast.Constant) or (x is not None and item_of(x) in self._stacks):
            return Kind.NUMBER
        if isinstance(x, ast.Name):
            # (The array that a name stands for exists already.)
            return Kind.NUMBER if x.id in self._numbers else Kind.OTHER
        if isinstance(x, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            parts = [y for y in ast.iter_child_nodes(x) if isinstance(y, ast.expr)]
            return max(Kind.NEW, min(map(self.of, parts)))
        if isinstance(x, (ast.BoolOp, ast.IfExp)):
            parts = x.values if isinstance(x, ast.BoolOp) else [x.body, x.orelse]
            return min(map(self.of, parts))
        if isinstance(x, ast.Tuple):
            return Kind.NEW if self.is_new(x) else Kind.OTHER
        if isinstance(x, ast.Subscript):
            return self._of_item(x)
        if isinstance(x, ast.Attribute):
            return Kind.NUMBER if x.attr in ("size", "ndim", "pi", "inf", "nan") else Kind.OTHER
        return self._of_call(x) if isinstance(x, ast.Call) else Kind.OTHER

    def _of_item(self, x: ast.Subscript) -> Kind:
        if isinstance(x.value, ast.Attribute) and x.value.attr == "shape":
            return Kind.NUMBER
        given = self._given.get(x.value.id) if isinstance(x.value, ast.Name) else None
        if given is None or x.value.id in self._values:  # type: ignore[attr-defined]
            return Kind.OTHER
        items = x.slice.elts if isinstance(x.slice, ast.Tuple) else [x.slice]
        if type(given) is list:
            return Kind.NUMBER
        if is_array(given) and given.ndim == len(items):
            return Kind.NUMBER if all(self.of(y) == Kind.NUMBER for y in items) else Kind.OTHER
        return Kind.OTHER

    def _of_call(self, x: ast.Call) -> Kind:
        if (method := self._draw(x)) is not None:
            return self._of_draw(x, method)
        if isinstance(x.func, ast.Name):
            if x.func.id in _NUMBERS:
                return Kind.NUMBER
            given = [self.of(y) for y in x.args]
            if x.func.id in _OF_NUMBERS:
                return min(given, default=Kind.OTHER)
            function = None if x.func.id in self._values else self._scope(x.func.id)
            is_readable = isinstance(function, types.FunctionType) and not x.keywords
            return _returned(original(function), given, self._scope) if is_readable else Kind.OTHER
        if not isinstance(x.func, ast.Attribute) or any(y.arg == "out" for y in x.keywords):
            return Kind.OTHER
        is_module = isinstance(x.func.value, ast.Name) and x.func.value.id not in self._given
        is_module |= isinstance(x.func.value, ast.Attribute)
        if x.func.attr not in (_NEW if is_module else _METHODS):
            return Kind.OTHER
        if x.func.attr in _OF_ALL and len(x.args) == is_module and not x.keywords:
            return Kind.NUMBER
        given = [self.of(y) for y in x.args]
        are_numbers = is_module and given and all(kind == Kind.NUMBER for kind in given)
        are_numbers = are_numbers and x.func.attr not in _OF_ARRAYS
        return Kind.NUMBER if are_numbers and not x.keywords else Kind.NEW

    def _draw(self, x: ast.Call) -> Any:
        """The method of a random generator that a call calls, else None."""
        path = path_of(x.func)
        if not path or path[0] in self._values:
            return None
        if path[0] in self._given:  # (what the scope finds is kept, and must not be an array)
            may_draw = generator_of(self._given[path[0]]) is not None
        else:
            may_draw = path[-1] in METHODS
        return method_of(path, self._scope) if may_draw else None

    def _of_draw(self, x: ast.Call, method: Any) -> Kind:
        name, named = method.__name__, {y.arg for y in x.keywords}
        if is_of_python(method.__self__):
            return Kind.OTHER if name in ("choice", "choices", "sample") else Kind.NUMBER
        if named & {"out", None}:
            return Kind.OTHER
        if name == "choice":
            is_number = len(x.args) == 1 and self._is_flat(x.args[0]) and "size" not in named
        else:
            given = (*x.args, *(y.value for y in x.keywords))
            is_number = len(x.args) <= NUM_PARAMETERS.get(name, -1) and "size" not in named
            is_number = is_number and all(self.of(y) == Kind.NUMBER for y in given)
        return Kind.NUMBER if is_number else Kind.NEW

    def _is_flat(self, x: ast.expr) -> bool:
        """Whether an expression surely is a number, or a sequence of numbers."""
        if isinstance(x, (ast.Tuple, ast.List)):
            return all(self.of(y) == Kind.NUMBER for y in x.elts)
        is_given = isinstance(x, ast.Name) and x.id not in self._values
        given = self._given.get(x.id) if is_given else None  # type: ignore[attr-defined]
        return self.of(x) == Kind.NUMBER or (is_array(given) and given.ndim == 1)  # type: ignore[union-attr]


_NUMBER, _SOME_ARRAY = 0.0, np.empty((0,) * 20)


def _returned(function: types.FunctionType, given: Sequence[Kind], scope: Scope) -> Kind:
    """The kind of what a function returns, if its arguments are of the kinds in `given`."""
    code = function.__code__
    body = body_of(function) if scope.depth < DEEPEST else None
    if body is None or code.co_kwonlyargcount or len(given) > code.co_argcount:
        return Kind.OTHER
    defaults = [Kind.OTHER] * (code.co_argcount - len(given))
    values = {
        name: _NUMBER if kind == Kind.NUMBER else _SOME_ARRAY
        for name, kind in zip(code.co_varnames, [*given, *defaults], strict=False)
    }
    nodes = [x for s in body for x in walk(s)]
    if any(isinstance(x, (*SCOPES, ast.Lambda, ast.Yield, ast.YieldFrom)) for x in nodes):
        return Kind.OTHER
    kinds = Aliases(ast.If(ast.Constant(True), body, []), ()).kinds(values, scope.within(function))
    return min([kinds.of(x.value) for x in nodes if isinstance(x, ast.Return)], default=Kind.OTHER)


def item_of(x: ast.expr) -> str | None:
    """The name of the list that an expression takes an item, or a part of an item, from. None if
    it does not do that."""
    while isinstance(x, ast.Subscript):
        x = x.value
        if isinstance(x, ast.Name):
            return x.id
    if isinstance(x, ast.Call) and isinstance(x.func, ast.Name):
        is_item = x.func.id.startswith(ON_LISTS) and isinstance(x.args[0], ast.Name)
        return x.args[0].id if is_item else None  # type: ignore[attr-defined]
    is_pop = isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute)
    if is_pop and x.func.attr in ("pop", "popleft") and isinstance(x.func.value, ast.Name):  # type: ignore[attr-defined]
        return x.func.value.id  # type: ignore[attr-defined]
    return None


def appended_only(loop: ast.stmt) -> frozenset[str]:
    """The names of the lists that a loop uses in no other way than to append to them."""
    nodes = [x for x in walk(loop)]
    lists = [
        x.value.func.value  # type: ignore[attr-defined]
        for x in nodes
        if isinstance(x, ast.Expr) and isinstance(x.value, ast.Call) and is_append(x.value)
    ]
    names = [x for x in lists if isinstance(x, ast.Name)]
    known = {id(x) for x in names}
    others = {x.id for x in nodes if isinstance(x, ast.Name) and id(x) not in known}
    return frozenset(x.id for x in names) - others


def _is_range(x: ast.expr) -> bool:
    return isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id == "range"


def assigned_always(loop: ast.stmt | None) -> frozenset[str]:
    """The names that each iteration of a `for` loop assigns."""
    if not isinstance(loop, ast.For):
        return frozenset()
    found = stored([loop.target])
    for s in loop.body:
        if isinstance(s, (ast.If, ast.For, ast.While)):
            jumps = (ast.Break, ast.Continue)
            if any(isinstance(x, jumps) for x in walk(s)):
                break
        elif isinstance(s, ast.Assign):
            found |= stored(s.targets)
    return found
