"""Random functions with loops: nested ones, triangular slices, reversed and strided ranges, carried
numbers, arrays and views, writes in place, calls of functions, `while`, `break`, `continue`,
`return` and `else`, arrays of three dimensions, positions and bounds that data decide, conditional
expressions, `in`, Python integers of unknown size.

Values are integers, which wrap around alike in any order, or small multiples of powers of two, so
that results are exact."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

_HELPERS = """
MOVES = [(1, -1), (2, 3), (0, 1)]
PRICES = {0: 2, 1: 1, 2: 4, 3: 0, 4: 3}


def mixed(x, y):
    return x * 3 - y


def added(to, at, row):
    to[at] += row
    return to[at].sum()


def larger(x, y):
    if x >= y:
        return x
    return y


def sign(x):
    if x > 2:
        return 1
    elif x < 2:
        return -1
    else:
        return 0


def running(x, count):
    total = x[0]
    for k in range(count):
        total = total * 2 + x[k]
    return total


"""


@dataclass
class LoopProgram:
    source: str
    arguments: Callable[[int], tuple[Any, ...]]  # of a call

    def function(self) -> Callable[..., Any]:
        name = f"<loops {abs(hash(self.source))}>"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[name] = (len(self.source), None, lines, name)
        namespace: dict[str, Any] = {"np": np}
        exec(compile(self.source, name, "exec"), namespace)
        return namespace["program"]  # type: ignore[no-any-return]


class _Counter(NamedTuple):
    name: str
    low: int
    high: int
    positions: tuple[str, ...] = ()  # that lie within an axis since another counter bounds this one
    slices: tuple[str, ...] = ()  # the same


@dataclass
class _Scope:
    """What statements at one place may use."""

    counters: list[_Counter] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)  # names of arrays of n elements
    scalars: list[str] = field(default_factory=list)

    def inner(self) -> _Scope:
        return _Scope([*self.counters], [*self.rows], [*self.scalars])


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.n = self.rng.choice((4, 5, 6, 7, 9))
        self.dtype = self.rng.choice(("int64", "int64", "int32", "uint8", "float64"))
        self.lines: list[str] = []
        self._names = 0
        self._budget = self.rng.randint(3, 14)

    def program(self) -> LoopProgram:
        n, dtype, seed = self.n, self.dtype, self.rng.random()
        # What every program has before its loops.
        start = [
            "n = a.shape[0]",
            self.rng.choice(("s = b[0]", "s = 0", "s = 0.0", "s = a[1, 2]")),
            f"u = np.zeros(n, np.{dtype})",
            self.rng.choice(("w = b", "w = b.copy()", "w = a[1]", "w = b * 2", "w = u")),
            "t = b[1]",
            "p = 1",
            "c = np.multiply.outer(a, b)",
        ]
        scope = _Scope(rows=["b", "u", "w"], scalars=["t", "s"])
        for line in start:
            self.lines.append("    " + line)
        for _ in range(self.rng.randint(1, 3)):
            self._loop(scope, 1)
            self._after(scope)
        self.lines.append(
            "    return s, t, u, w, p" + self.rng.choice(("", ", a[1:]", ", b", ", c"))
        )
        source = _HELPERS + "def program(a, b):\n" + "\n".join(self.lines) + "\n"

        def arguments(call: int) -> tuple[Any, ...]:
            rng = np.random.default_rng([int(seed * 2**32), call])
            a, b = rng.integers(0, 5, (n, n)), rng.integers(0, 5, n)
            return a.astype(dtype), b.astype(dtype)

        return LoopProgram(source, arguments)

    def _new(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _after(self, scope: _Scope) -> None:
        """Statements between loops."""
        if self.rng.random() < 0.4:
            self._statement(scope, 1)

    def _loop(self, scope: _Scope, depth: int) -> None:
        rng, n = self.rng, self.n
        indent = "    " * depth
        inside = scope.inner()
        last = None  # a line at the end of the body
        may_continue = True
        if rng.random() < 0.2:
            name = self._new("m")
            self.lines.append(f"{indent}{name} = 0")
            test = f"{name} < {rng.choice(('n', 'n - 1', '3'))}"
            while_true = rng.random() < 0.2
            if while_true:
                self.lines.append(f"{indent}while True:")
            else:
                if rng.random() < 0.6:
                    known = scope.inner()
                    known.counters.append(_Counter(name, 0, n - 1))
                    test += f" and ({self._test(known)})"
                self.lines.append(f"{indent}while {test}:")
            if while_true or rng.random() < 0.5:
                self.lines.append(f"{indent}    {name} += 1")
                inside.counters.append(_Counter(f"({name} - 1)", 0, n - 1))
                if while_true:
                    limit = rng.choice(("n", "3"))
                    self.lines.append(f"{indent}    if {name} >= {limit}:\n{indent}        break")
            else:
                inside.counters.append(_Counter(name, 0, n - 1))
                last, may_continue = f"{indent}    {name} += 1", False
        elif rng.random() < 0.12:
            name = self._new("r")
            self.lines.append(f"{indent}for {name} in a:")
            inside.rows.append(name)
        elif rng.random() < 0.12:
            number, name = self._new("e"), self._new("r")
            self.lines.append(
                rng.choice(
                    (
                        f"{indent}for {number}, {name} in enumerate(a):",
                        f"{indent}for {number}, {name} in enumerate(u + a):",
                    )
                )
            )
            inside.rows.append(name)
            inside.counters.append(_Counter(number, 0, n - 1))
        elif rng.random() < 0.08:
            number, name = self._new("q"), self._new("r")
            self.lines.append(f"{indent}for {number}, {name} in zip(b, a.T):")
            inside.scalars.append(number)
            inside.rows.append(name)
        elif rng.random() < 0.15:
            name, count = self._new("i"), self._new("c")
            start, step = rng.choice((("0", "+ 1"), ("n - 1", "- 1")))
            self.lines.append(f"{indent}{count} = {start}")
            self.lines.append(f"{indent}for {name} in range(n - 1):")
            self.lines.append(f"{indent}    u[{count}] += {name}")
            self.lines.append(f"{indent}    {count} = {count} {step}")
            inside.counters.append(_Counter(name, 0, n - 2))
        else:
            name = rng.choice("ijk") + (str(depth) if rng.random() < 0.5 else "")
            while any(c.name == name for c in scope.counters):
                name += "x"
            text, low, high, outer = self._range(scope)
            self.lines.append(f"{indent}for {name} in range({text}):")
            inside.counters.append(_related(_Counter(name, low, high), text, outer))
        if rng.random() < 0.1:
            self.lines.append(f"{indent}    if s is None:\n{indent}        continue")
        count = rng.randint(1, 3)
        jump_at = rng.randrange(count) if rng.random() < 0.25 else None
        leaves = False
        for k in range(count):
            if k == jump_at:
                jumps = ["break", "break", "continue", "return s, t, u, w, p"]
                jump = rng.choice(jumps if may_continue else jumps[:2])
                leaves = jump == "break"
                self.lines.append(f"{indent}    if {self._test(inside)}:")
                if rng.random() < 0.3:
                    self._statement(inside.inner(), depth + 2)
                self.lines.append(f"{indent}        {jump}")
            if depth < 3 and self._budget > 0 and rng.random() < 0.3:
                self._budget -= 2
                self._loop(inside, depth + 1)
            else:
                self._statement(inside, depth + 1)
        if last:
            self.lines.append(last)
        if leaves and rng.random() < 0.4:
            self.lines.append(f"{indent}else:")
            self._statement(scope.inner(), depth + 1)
            if rng.random() < 0.2:
                self.lines.append(f"{indent}    raise ValueError(f'{{s}} {{p}}')")

    def _test(self, scope: _Scope) -> str:
        """A condition."""
        rng, (i, j) = self.rng, self._indices(scope)
        tests = ["s > 3", f"b[{i}] > t", f"b[{i}] > a[0, {j}]", f"a[{i}].sum() % 2 == 0", "t != s"]
        if scope.counters:
            c = rng.choice(scope.counters)
            tests += [
                *(f"{c.name} > 0", f"{c.name} == 0", f"{c.name} < n - 1", f"{c.name} == n - 1"),
                *(f"{c.name} % 2", f"{c.name} == {rng.randint(0, 3)}", f"0 < {c.name} < n - 1"),
                *(f"{c.name} > 0 and b[{j}] > 2", f"{c.name} == 0 or not t > b[{i}]"),
                *(f"({c.name}, {j}) == (1, 2)", f"({c.name} % 2, b[{i}]) in ((0, 1), (1, 2))"),
                *(f"b[{i}] in (0, 2, 3)", "t not in [1, 4]", f"{c.name} in (1, 3)"),
            ]
        return rng.choice(tests)

    def _range(self, scope: _Scope) -> tuple[str, int, int, str | None]:
        rng, n, outer = self.rng, self.n, None
        choices = [
            ("n", 0, n - 1),
            ("n", 0, n - 1),
            ("1, n", 1, n - 1),
            ("1, n - 1", 1, n - 2),
            ("n - 1, -1, -1", 0, n - 1),
            ("n - 2, 0, -1", 1, n - 2),
            ("0, n, 2", 0, n - 1),
            ("n - 1, 0, -2", 1, n - 1),
            ("2", 0, 1),
            ("0", 0, 0),
        ]
        if scope.counters and rng.random() < 0.6:
            c = rng.choice(scope.counters)
            outer = c.name
            choices = [
                (c.name, 0, max(c.high - 1, 0)),
                (f"{c.name} + 1", 0, c.high),
                (f"{c.name}, n", c.low, n - 1),
                (f"{c.name} + 1, n", min(c.low + 1, n - 1), n - 1),
                (f"{c.name}, -1, -1", 0, c.high),
                (f"n - 1, {c.name}, -1", min(c.low + 1, n - 1), n - 1),
                (f"{c.name}, n, 2", c.low, n - 1),
            ]
        return (*rng.choice(choices), outer)

    def _index(self, scope: _Scope) -> str:
        rng, n = self.rng, self.n
        if not scope.counters or rng.random() < 0.15:
            return rng.choice(("0", "1", "-1", "n - 2", str(n - 1)))
        c = rng.choice(scope.counters)
        choices = [c.name, c.name, c.name, f"n - 1 - {c.name}", f"-1 - {c.name}"]
        if c.low >= 1 or rng.random() < 0.1:
            choices.append(f"{c.name} - 1")
        if c.high <= n - 2:
            choices.append(f"{c.name} + 1")
        choices += c.positions
        return rng.choice(choices)

    def _slice(self, scope: _Scope) -> str:
        rng = self.rng
        if not scope.counters or rng.random() < 0.3:
            return rng.choice((":", "1:", ":-1", "1:-1", ":2", "::2", "::-1"))
        counter = rng.choice(scope.counters)
        c = counter.name
        choices = [f":{c}", f"{c}:", f"{c} + 1:", f":{c} + 1", f":n - {c}", f"n - {c}:"]
        return rng.choice([*choices, f"-1 - {c}:", *counter.slices])

    def _scalar(self, scope: _Scope, depth: int = 2) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            choices = [
                f"b[{self._index(scope)}]",
                f"a[{self._index(scope)}, {self._index(scope)}]",
                f"{rng.choice(scope.rows)}[{self._index(scope)}]",
                rng.choice(scope.scalars),
                str(rng.randint(1, 3)),
            ]
            if scope.counters:
                choices.append(rng.choice(scope.counters).name)
            return rng.choice(choices)
        if rng.random() < 0.35:
            s = self._slice(scope)
            return rng.choice(
                (
                    f"({self._vector(scope, s, 0)} @ {self._vector(scope, s, 0)})",
                    f"np.dot({self._vector(scope, s, 0)}, {self._vector(scope, s, 0)})",
                    f"{self._vector(scope, s, 0)}.sum()",
                    f"np.sum({self._vector(scope, s, 1)})",
                )
            )
        if scope.counters and rng.random() < 0.25:  # elsewhere they ask for values
            i, j = self._indices(scope)
            return rng.choice(
                (
                    f"larger(b[{i}], a[0, {j}])",
                    f"max(b[{i}], a[0, {j}])",
                    f"min(b[{i}], b[{j}], t)",
                    f"({self._scalar(scope, 1)} if {self._test(scope)} else {j})",
                    f"a[int(b[{i}]) % n, {j}]",
                    f"b[int(a[{i}, {j}]) % n]",
                    f"b[int(a[{i}, {j}]) % n :].sum()",
                    f"u[: int(b[{j}]) % n].sum()",
                    f"int(b[{i}]) * 2",
                    f"MOVES[int(b[{i}]) % 3][{rng.randint(0, 1)}]",
                    f"PRICES[int(b[{i}]) % 5]",
                    f"({self._scalar(scope, 0)} + sign(b[{i}]))",
                )
            )
        x, y = self._scalar(scope, depth - 1), self._scalar(scope, depth - 1)
        return rng.choice(
            (
                f"({x} + {y})",
                f"({x} - {y})",
                f"{x} * 2",
                f"np.maximum({x}, {y})",
                f"mixed({x}, {y})",
            )
        )

    def _vector(self, scope: _Scope, s: str, depth: int = 2) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            i = self._index(scope)
            return rng.choice(
                (
                    f"b[{s}]",
                    f"a[{i}, {s}]",
                    f"a[{s}, {i}]",
                    f"{rng.choice(scope.rows)}[{s}]",
                    f"np.flip(b[{s}])",
                    f"a[{i}][{s}]",
                    f"a.T[{i}, {s}]",
                    f"c[{i}, {s}, {self._index(scope)}]",
                    f"c[{i}, 1][{s}]",
                )
            )
        x = self._vector(scope, s, depth - 1)
        y = self._vector(scope, s, depth - 1) if rng.random() < 0.5 else self._scalar(scope, 1)
        return rng.choice(
            (f"({x} + {y})", f"({x} - {y})", f"2 * {x}", f"np.minimum({x}, {y})", f"-{x}")
        )

    def _statement(self, scope: _Scope, depth: int) -> None:
        rng, indent = self.rng, "    " * depth
        self._budget -= 1
        row, s, i, j = rng.choice(scope.rows), self._slice(scope), *self._indices(scope)
        op = rng.choice(("=", "=", "+=", "-="))
        # A row that is assigned to a column that crosses it is no view: NumPy may read elements
        # that it has just written.
        new = " + 0" if op == "=" else ""
        choices = [
            f"{row}[{i}] {op} {self._scalar(scope)}",
            f"b[{i}] {op} {self._scalar(scope)}",
            f"a[{i}, {j}] {op} {self._scalar(scope)}",
            f"a[{i}, {j}] {op} {self._scalar(scope)}",
            f"a[{i}, {s}] {op} {self._vector(scope, s)}{new}",
            f"a[{s}, {i}] {op} {self._vector(scope, s)}{new}",
            f"{row}[{s}] {op} {self._vector(scope, s)}{new}",
            f"s = {self._scalar(scope)}",
            f"s += {self._scalar(scope)}",
            f"s = s * 2 + {self._scalar(scope)}",
            f"t = {self._scalar(scope)}",
            f"s, t = t, s + {self._scalar(scope)}",
            f"u = u + {self._vector(scope, ':')}",
            f"u, w = w, u + {self._vector(scope, ':')}",
            f"w = {self._vector(scope, ':')}",
            f"w = a[{i}]",
            f"w += {self._vector(scope, ':')}",
            f"a[:] = a + np.multiply.outer(b, a[{i}])",
            f"a[1:] -= a[:-1] * {self._scalar(scope, 1)}",
            f"s = added(a, {i}, {self._vector(scope, ':')})",
            f"t = running({row}, 4)",
            f"np.add(b, {self._vector(scope, ':')}, out=b)",
            f"a[{i}], b[:] = b, a[{j}] * 2",
            f"u[{i}] = 1",
            "u[0] = 2",
            f"c[{i}, {j}] {op} {self._vector(scope, ':')}{new}",
            f"c[{i}, {s}, {j}] {op} {self._vector(scope, s)}{new}",
            f"c[{i}] = a * {self._scalar(scope, 1)}",
            f"a[:] += c[{i}]",
            f"s += c[{i}, {j}, {i}]",
            f"c[:, {i}, {j}] {op} c[{j}, :, {i}]{new}",
            f"t = c[{i}].sum(axis=0)[{j}] + c[:, {i}].sum()",
        ]
        if scope.counters:
            choices += [
                f"p = p * 3 + {rng.choice(scope.counters).name}",
                f"u[int(b[{i}]) % n] {op} {self._scalar(scope)}",
                f"a[{i}, int(b[{j}]) % n] += {self._scalar(scope)}",
            ]
            if rng.random() < 0.1:
                name = rng.choice("st")
                self.lines.append(f"{indent}if b[{i}] > {name}:\n{indent}    {name} = b[{i}]")
                return
        if scope.counters and rng.random() < 0.25:
            test = self._test(scope)
            self.lines.append(f"{indent}if {test}:")
            self.lines.append(f"{indent}    {rng.choice(choices)}")
            if rng.random() < 0.1:
                self.lines.append(f"{indent}    print(f'{{s}}'[:0], end='')")
            if rng.random() < 0.4:
                self.lines.append(f"{indent}else:")
                self.lines.append(f"{indent}    {rng.choice(choices)}")
            return
        if rng.random() < 0.15:
            name = self._new("v")
            self.lines.append(f"{indent}{name} = a[{i}]{rng.choice(('', '.copy()'))}")
            scope.rows.append(name)
            return
        if rng.random() < 0.05:
            name, k = self._new("v"), self._new("k")
            self.lines.append(f"{indent}{name} = {self._vector(scope, ':')}")
            self.lines.append(f"{indent}for {k} in range({rng.choice(('n - 1', 'n - 2', '2'))}):")
            new = ("{0}[1:] * 2", "{0}[:-1] + {0}[1:]", "np.diff({0})", "{0}[::-1][1:] + 1")
            more = (
                "np.concatenate([{0}, {0}[:1]])",
                "np.append({0}, t)[1:]",
                "np.append({0}, {0})",
            )
            change = rng.choice((*new, *new, *more)).format(name)
            self.lines.append(f"{indent}    {name} = {change}")
            self.lines.append(f"{indent}s = s + {name}[0] + {name}.sum()")
            return
        if rng.random() < 0.15:
            name = self._new("x")
            self.lines.append(f"{indent}{name} = {self._scalar(scope)}")
            scope.scalars.append(name)
            return
        self.lines.append(indent + rng.choice(choices))

    def _indices(self, scope: _Scope) -> tuple[str, str]:
        return self._index(scope), self._index(scope)


def _related(x: _Counter, text: str, outer: str | None) -> _Counter:
    """The counter of range(text), with what lies within an axis since another one bounds it."""
    if outer is None:
        return x
    if text in (outer, f"{outer} + 1", f"{outer}, -1, -1"):  # x <= outer
        positions = [f"{outer} - {x.name}", f"{x.name} - {outer} - 1"]
        if text == outer:
            positions.append(f"{outer} - {x.name} - 1")
        slices = f"{x.name}:{outer}", f"{x.name}:{outer} + 1", f"{outer} - {x.name}:"
    else:
        positions = [f"{x.name} - {outer}", f"{outer} - {x.name} - 1"]
        if text not in (f"{outer}, n", f"{outer}, n, 2"):
            positions.append(f"{x.name} - {outer} - 1")
        slices = f"{outer}:{x.name}", f"{outer}:{x.name} + 1", f":{x.name} - {outer}"
    return x._replace(positions=tuple(positions), slices=slices)


def loop_program(seed: int) -> LoopProgram:
    """The program of a seed."""
    return _Generator(seed).program()
