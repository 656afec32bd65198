"""The random changes of programs (variants.py)."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from variants import Base, Variant, blocks


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
            texts += [f"{array} = np.append({array}, {value})", f"{array} = {array}[{array} > 0]"]
            texts += [
                f"{array}[0], {array}[-1] = {array}[-1], {array}[0]",
                f"{array}.fill({value})",
            ]
            texts += [f"np.add({array}, {value}, out={array})", f"{array} = {array}.astype('f4')"]
            texts += [f"{array} = np.array([v for v in {array}])", f"{array}.flat[0] = {value}"]
            texts += [f"for part in {array}:\n    {array} = {array} + np.sum(part)"]
            texts += [f"for k, part in enumerate({array}):\n    {array}[k] = part * 2"]
        if number:
            texts += [f"{number} = {number} + 1", f"{number} += {value}", f"{number} = {value}"]
            texts += [f"{number} = float({number})", f"{number} = np.float32({number})"]
            texts += [f"{number} = max({number}, {value})", f"{number} = {number} or {value}"]
            texts += [f"{number} = {value} if {number} > 0 else {number}", f"{number} = -{number}"]
            texts += [
                f"{number} = sum([{number}, {value}])",
                f"{number} = (lambda v: v + 1)({number})",
            ]
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
        again, limit = self._simple(known), self._random.randint(3, 30)
        texts += [f"for turn in range({limit}):\n    {simple}\n    if {test}:\n        break"]
        texts += [f"for turn in range({limit}):\n    if {test}:\n        {simple}\n    {again}"]
        texts += [
            f"for turn in range({limit}):\n    if {test}:\n        break\nelse:\n    {simple}"
        ]
        texts += [f"with np.errstate(all='ignore'):\n    {simple}"]
        texts += [
            f"done = False\nfor turn in range({limit}):\n    if done is False:\n        {simple}\n"
            f"    if {test}:\n        done = True"
        ]
        texts += [
            f"done, turn = False, 0\nwhile done is not True:\n    {simple}\n    turn += 1\n"
            f"    done = turn > 3 or bool({test})"
        ]
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

    def _as_method(self) -> None:
        """The function becomes a method of an object that keeps its state from call to call."""
        function = self._base.node
        if not isinstance(function, ast.FunctionDef) or function.args.posonlyargs:
            return
        nodes = ast.walk(function)
        if any(isinstance(n, ast.Name) and n.id in ("self", function.name) for n in nodes):
            return  # (it calls itself)
        function.args.args.insert(0, ast.arg("self"))
        made = ast.parse("class Model:\n    def __init__(self):\n        self.calls = 0").body[0]
        assert isinstance(made, ast.ClassDef)
        made.body.append(function)
        self._base.node, self._base.method = made, function.name
        self._base.attributes = {"calls": 0}
        self._first.append("self.calls += 1")
        self._elsewhere()

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

    _CHANGES = (
        _insert,
        _insert,
        _insert,
        _insert,
        _alias,
        _alias,
        _elsewhere,
        _elsewhere,
        _replace,
    )
    _CHANGES = (*_CHANGES, _move, _as_method)


def variant(base: Base, seed: int) -> Variant:
    return Changer(base, seed).variant()
