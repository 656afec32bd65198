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
import random
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


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function, without those of inner functions."""
    open_: list[ast.AST] = [*function.body]
    while open_:
        node = open_.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            open_ += ast.iter_child_nodes(node)


class Changer:
    """Makes a variant of a program."""

    def __init__(self, base: Base, seed: int) -> None:
        self._random = random.Random(seed)
        self._base = copy.deepcopy(Base(base.name, base.node, {}, base.make, base.method))
        self._base.names, self._base.attributes = base.names, base.attributes
        self._seed = seed
        self._new = 0
        self._first: list[str] = []  # statements at the function's beginning
        self._lists: list[str] = []
        self._results: list[str] = []

    def variant(self) -> Variant:
        plain = Variant(self._base, self._base.node, self._seed, "base")
        # The lines of the text that unparse makes.
        self._base.node = ast.parse(plain.source).body[0]  # type: ignore[assignment]
        self._seen = plain.observed()
        for _ in range(self._random.choice((1, 1, 2, 2, 3, 4, 6))):
            change = self._random.choice(self._CHANGES)
            change(self)
        body = self._base.called.body
        for text in self._first:
            start = 1 if ast.get_docstring(self._base.called) else 0
            body[start:start] = ast.parse(text).body
        if self._results:
            self._return_more()
        return Variant(self._base, self._base.node, self._seed)

    # Places and variables.

    def _place(self) -> tuple[list[ast.stmt], int, dict[str, Any]] | None:
        """A block, an index in it, and the variables there, if some place has variables."""
        called = self._base.called
        places = [
            (block, i, self._seen[statement.lineno])
            for block in blocks(called)
            for i, statement in enumerate(block)
            if getattr(statement, "lineno", 0) in self._seen
            and not (isinstance(statement, ast.Expr) and i == 0)
        ]
        return self._random.choice(places) if places else None

    def _in_loop(self, block: list[ast.stmt]) -> bool:
        loops = (n for n in ast.walk(self._base.called) if isinstance(n, (ast.For, ast.While)))
        return any(block is inner for loop in loops for inner in blocks(loop))

    def _pick(self, known: dict[str, Any], kind: str) -> str | None:
        """The name of an array with elements, or of a number."""
        numbers = (int, float, np.floating, np.integer)

        def fits(value: Any) -> bool:
            if kind == "array":
                return isinstance(value, np.ndarray) and value.ndim > 0 and value.size > 0
            return isinstance(value, numbers) and not isinstance(value, bool)

        found = [name for name, value in known.items() if fits(value) and name.isidentifier()]
        return self._random.choice(found) if found else None

    def _name(self, stem: str) -> str:
        self._new += 1
        return f"{stem}{self._new}"

    # Texts.

    def _number(self, known: dict[str, Any]) -> str:
        array, number = self._pick(known, "array"), self._pick(known, "number")
        texts = [str(self._random.choice((0, 1, 2, 0.5, -1)))]
        if number:
            texts += [number] * 3 + [f"float({number})", f"{number} * 2", f"abs({number})"]
        if array:
            first = f"{array}.flat[0]" if self._random.random() < 0.3 else f"{array}.ravel()[0]"
            texts += [first, f"{array}.sum()", f"float({array}.max())", f"len({array})"]
            texts += [f"{array}.ravel()[-1].item()", f"np.mean({array})", f"{array}.shape[0]"]
        return self._random.choice(texts)

    def _test(self, known: dict[str, Any]) -> str:
        value = self._number(known)
        try:
            now = float(eval(value, {"np": np}, known))
        except Exception:
            now = 0.0
        limit = self._random.choice((now, now * 0.99, now * 1.01, now + 0.5, 0))
        sign = self._random.choice(("<", ">", "<=", ">=", "!="))
        return f"{value} {sign} {limit:.6g}"

    def _simple(self, known: dict[str, Any]) -> str:
        """A statement that changes or notes something."""
        array, number = self._pick(known, "array"), self._pick(known, "number")
        value = self._number(known)
        texts = []
        if array:
            index = self._random.choice(("0", "-1", "...", "1:", "::-1", "::2"))
            texts += [f"{array}[{index}] = {value}", f"{array} += 1", f"{array} = {array} + 1"]
            texts += [f"{array}[{index}] += {array}[{index}]", f"{array} *= 2", f"{array}.sort()"]
            texts += [f"{array}[{array} > {value}] = {value}", f"{array} = {array}.copy()"]
            texts += [f"{array} = {array}[::-1]", f"{array} = np.where({array} > 0, {array}, 0)"]
            texts += [f"{array}[:] = {array}[::-1]", f"np.negative({array}, out={array})"]
        if number:
            texts += [f"{number} = {number} + 1", f"{number} += {value}", f"{number} = {value}"]
            texts += [f"{number} = float({number})", f"{number} = np.float32({number})"]
        if not texts or (array and self._random.random() < 0.3):
            what = self._random.choice((value, f"({value}, {value})", array or "None"))
            texts = [f"{self._list()}.append({what})"]
        return self._random.choice(texts)

    def _list(self) -> str:
        if not self._lists or self._random.random() < 0.3:
            name = self._name("log")
            self._first.append(f"{name} = []")
            self._lists.append(name)
            self._results.append(name)
        return self._random.choice(self._lists)

    def _put(self, block: list[ast.stmt], i: int, text: str) -> None:
        # New statements are at lines where no variables are known.
        block[i:i] = [ast.increment_lineno(node, 100_000) for node in ast.parse(text).body]

    # Changes.

    def _insert(self) -> None:
        place = self._place()
        if place is None:
            return
        block, i, known = place
        simple, test = self._simple(known), self._test(known)
        texts = [
            simple,
            simple,
            f"if {test}:\n    {simple}",
            f"for turn in range(3):\n    {simple}",
        ]
        texts += [f"if {test}:\n    {simple}\nelse:\n    {self._simple(known)}"]
        texts += [f"if {test}:\n    return {self._number(known)}"]
        texts += [
            f"if {test}:\n    raise ValueError(f'at {{round(float({self._number(known)}))}}')"
        ]
        texts += [f"assert {test}, 'refused'", f"print(round(float({self._number(known)})))"]
        texts += [f"try:\n    {simple}\n    assert {test}\nexcept AssertionError:\n    pass"]
        texts += [f"turn = 0\nwhile {test} and turn < 4:\n    turn += 1\n    {simple}"]
        if self._in_loop(block):
            jump = self._random.choice(("break", "continue"))
            texts += [f"if {test}:\n    {jump}"] * 3
        self._put(block, i, self._random.choice(texts))

    def _alias(self) -> None:
        """A second name for an array, a view of it or a container with it, and writes to that."""
        place = self._place()
        array = place and self._pick(place[2], "array")
        if place is None or not array:
            return
        block, i, known = place
        name = self._name("other")
        ways = ["{}", "{}", "{}[1:]", "{}.T", "{}[::-1]", "{}.ravel()", "{}.copy()", "{}[0]"]
        ways += ["np.asarray({})", "{} if " + self._test(known) + " else {}.copy()"]
        way = self._random.choice(ways).replace("{}", array)
        writes = [f"{name} += 1", f"{name}[...] = 0", f"{name} *= 2", f"{array} += 1"]
        if self._random.random() < 0.3:
            form, part = self._random.choice(
                (("[{}]", "[0]"), ("({}, 1)", "[0]"), ("dict(k={})", "['k']"))
            )
            way = form.replace("{}", way)
            writes = [f"{name}{part} += 1", f"{name}{part}[...] = 0", f"{array} *= 2"]
            if form[0] == "(":
                del writes[0]
        self._first.append(f"{name} = None")
        self._results.append(name)
        self._put(block, i, f"{name} = {way}")
        if self._random.random() < 0.8:
            later = self._place()
            if later is not None:
                write = self._random.choice(writes)
                self._put(later[0], later[1], f"if {name} is not None:\n    {write}")

    def _locals(self) -> list[str]:
        """Names that the function assigns, and that no inner function or comprehension has."""
        called = self._base.called
        inner = (
            ast.Lambda,
            ast.FunctionDef,
            ast.GeneratorExp,
            ast.ListComp,
            ast.DictComp,
            ast.SetComp,
        )
        hidden = {
            name.id
            for node in ast.walk(called)
            if isinstance(node, inner) and node is not called
            for name in ast.walk(node)
            if isinstance(name, ast.Name)
        }
        stored = {
            node.id
            for node in ast.walk(called)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        declared = {
            name
            for node in ast.walk(called)
            if isinstance(node, (ast.Global, ast.Nonlocal))
            for name in node.names
        }
        return sorted(stored - hidden - declared)

    def _elsewhere(self) -> None:
        """Some local variables become attributes, items of a dict or of a list, or globals."""
        names = self._locals()
        if not names:
            return
        chosen = self._random.sample(names, self._random.randint(1, min(3, len(names))))
        called = self._base.called
        parameters = [a.arg for a in (*called.args.posonlyargs, *called.args.args)]
        kinds = ["dict", "list", "global"]
        if isinstance(self._base.node, ast.ClassDef) and parameters[:1] == ["self"]:
            kinds = ["self", "self", *kinds]
        kind = self._random.choice(kinds)
        if kind == "global":
            chosen = [name for name in chosen if name not in parameters]
            if chosen:
                self._first.append(f"global {', '.join(chosen)}")
            return
        holder = {"self": "self", "dict": "held", "list": "held"}[kind]

        class Move(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> Any:
                if node.id not in chosen:
                    return node
                at = chosen.index(node.id)
                text = {
                    "self": f"self._{node.id}",
                    "dict": f"held['{node.id}']",
                    "list": f"held[{at}]",
                }[kind]
                made: Any = ast.parse(text, mode="eval").body
                made.ctx = node.ctx
                return made

        called.body = [Move().visit(statement) for statement in called.body]
        made = {"self": "", "dict": "held = {}", "list": f"held = [None] * {len(chosen)}"}[kind]
        given = [name for name in chosen if name in parameters]
        lines = [made] if made else []
        for name in given:
            lines.append(ast.unparse(Move().visit(ast.Name(name, ast.Store()))) + f" = {name}")
        if lines:
            self._first.append("\n".join(lines))
        if kind != "self":
            self._results.append(holder)

    def _replace(self) -> None:
        """One statement or expression is written another way, or means something else."""
        called = self._base.called
        nodes = [node for node in ast.walk(called) if self._other(copy.deepcopy(node)) is not None]
        if not nodes:
            return
        chosen = self._random.choice(nodes)
        make = self._other

        class Replace(ast.NodeTransformer):
            def visit(self, node: Any) -> Any:
                return make(node) if node is chosen else self.generic_visit(node)

        called.body = [Replace().visit(statement) for statement in called.body]

    def _other(self, node: Any) -> Any:
        if isinstance(node, ast.AugAssign):
            read = copy.deepcopy(node.target)
            read.ctx = ast.Load()
            value = ast.BinOp(read, node.op, node.value)
            return ast.copy_location(ast.Assign([node.target], value), node)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            same = ast.unparse(node.targets[0]) == ast.unparse(node.value.left)
            if len(node.targets) == 1 and same:
                made = ast.AugAssign(node.targets[0], node.value.op, node.value.right)
                return ast.copy_location(made, node)
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_method and node.func.attr == "copy" and not node.args:
            return node.func.value
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Lt, ast.Gt)):
            node.ops[0] = ast.LtE() if isinstance(node.ops[0], ast.Lt) else ast.GtE()
            return node
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return ast.copy_location(ast.Constant(node.value * 2), node)
        return None

    def _move(self) -> None:
        """A statement is repeated, left out, exchanged with the next one, or put into a loop, a
        branch or a function."""
        place = self._place()
        if place is None:
            return
        block, i, known = place
        statement = block[i]
        if isinstance(statement, (ast.Return, ast.FunctionDef)):
            return
        kind = self._random.choice(("twice", "less", "exchange", "loop", "branch", "inner", "try"))
        inside = ast.unparse(statement)
        jumps = any(
            isinstance(n, (ast.Break, ast.Continue, ast.Return, ast.Yield))
            for n in ast.walk(statement)
        )
        if kind == "twice":
            block.insert(i, copy.deepcopy(statement))
        elif kind == "less" and len(block) > 1:
            del block[i]
        elif kind == "exchange" and i + 1 < len(block):
            block[i], block[i + 1] = block[i + 1], block[i]
        elif kind == "loop" and not jumps:
            self._wrap(block, i, "for turn in range(2):")
        elif kind == "branch":
            self._wrap(block, i, f"if {self._test(known)}:")
        elif kind == "try":
            self._wrap(block, i, "try:")
            block[i].handlers = (
                ast.parse("try:\n    pass\nexcept ValueError:\n    pass").body[0].handlers
            )  # type: ignore
        elif kind == "inner" and not jumps and "self" not in inside:
            stored = {
                n.id
                for n in ast.walk(statement)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            name = self._name("inner")
            self._wrap(block, i, f"def {name}():")
            if stored:
                block[i].body.insert(0, ast.Nonlocal(sorted(stored)))  # type: ignore
                self._first.append(
                    "\n".join(f"{name} = None" for name in sorted(stored - set(known))) or "pass"
                )
            block[i + 1 : i + 1] = ast.parse(f"{name}()").body

    def _wrap(self, block: list[ast.stmt], i: int, head: str) -> None:
        if head == "try:":
            made: Any = ast.parse("try:\n    pass\nfinally:\n    pass").body[0]
            made.finalbody = []
        else:
            made = ast.parse(f"{head}\n    pass").body[0]
        made.body = [block[i]]
        block[i] = ast.copy_location(made, block[i])

    def _return_more(self) -> None:
        more = [ast.Name(name, ast.Load()) for name in self._results]
        returns = [n for n in _own_nodes(self._base.called) if isinstance(n, ast.Return)]
        for node in returns:
            node.value = ast.Tuple([node.value or ast.Constant(None), *more], ast.Load())
        if not returns:
            self._base.called.body.append(ast.Return(ast.Tuple(more, ast.Load())))

    _CHANGES = (_insert, _insert, _insert, _alias, _alias, _elsewhere, _elsewhere, _replace, _move)


def variant(base: Base, seed: int) -> Variant:
    return Changer(base, seed).variant()


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
