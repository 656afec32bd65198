"""Random functions whose loops carry numbers of mixed types and exchange arrays. Python's numbers
and NumPy's replace each other. Names swap their arrays, become views, and write to arrays that
another name may share. Loops end early or have no iteration.

Values are halves and small integers, so that results are exact unless they are huge."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from loops import LoopProgram

_HEAD = """
def pick(a, b):
    if a > b:
        return a
    return b

def program(x, y):
"""
_NUMBERS = ("p", "q", "s", "t")
_FIRST = ("0", "0.0", "1", "0.5", "False", "x[0]", "y[0]", "np.float64(0)", "float(x[1])")
_ARRAYS = ("u", "v", "u + 1", "v * 2", "u.copy()", "u[::-1]", "x + 0")
_MOST_LOOPS = 5


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.counters: list[str] = []  # of the loops around the current place
        self.loops = 0
        self.depth = 1
        # Whether few places ask for values, so that the function may be one program.
        self.is_whole = self.rng.random() < 0.6
        self.has_floats = self.rng.random() < 0.5

    def program(self) -> LoopProgram:
        rng = self.rng
        for name in _NUMBERS:
            self._add(f"{name} = {rng.choice(_FIRST)}")
        self._add(f"u = {rng.choice(('x', 'np.zeros(len(x))', 'x + 0'))}")
        self._add(f"v = {rng.choice(('u', 'u', 'x', 'np.ones(len(x))'))}")
        self._add(f"items = [{rng.choice(_FIRST)}, {rng.choice(_FIRST)}]")
        while self.loops < 2 and len(self.lines) < 40:
            self._statement()
        if rng.random() < 0.6:  # shows whether the names share an array
            self._add(f"{rng.choice('uv')}[0] = 9")
        self._add("return p, q, s, t, u, v, items")
        has_floats, size = self.has_floats, rng.randint(3, 5)

        def arguments(call: int) -> tuple[Any, ...]:
            data = np.random.default_rng(call)
            x, y = data.integers(0, 5, (2, size))
            return x.astype(float) if has_floats else x, y

        return LoopProgram(_HEAD.lstrip() + "\n".join(self.lines) + "\n", arguments)

    def _add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def _block(self, count: int) -> None:
        self.depth += 1
        for _ in range(count):
            self._statement()
        self.depth -= 1

    def _at(self) -> str:
        return self.rng.choice([*self.counters, *self.counters, "0", "1", "-1"])

    def _number(self, depth: int = 0) -> str:
        rng = self.rng
        a, b = rng.choice(_NUMBERS), rng.choice(_NUMBERS)
        if depth < 3:
            a, b = self._number(depth + 1), self._number(depth + 1)
        plain = ("p", "q", "s", "t", "0", "2", "0.5", "1.0", "True", f"x[{self._at()}]")
        made = (f"({a} + {b})", f"({a} - {b})", f"({a} * 2)", f"abs({a})", f"pick({a}, {b})")
        made += (f"{rng.choice('uv')}[{self._at()}]", f"{rng.choice('uvx')}.sum()", self._at())
        asking = (f"float({a})", f"int({a})", f"min({a}, {b})", f"max({a}, {b})")
        asking += (f"({a} if {self._condition()} else {b})",)
        may_ask = not self.is_whole or rng.random() < 0.1
        return rng.choice(rng.choice((plain, made, asking if may_ask else plain)))

    def _condition(self) -> str:
        rng = self.rng
        first = rng.choice((f"x[{self._at()}]", f"y[{self._at()}]", rng.choice(_NUMBERS)))
        return rng.choice((f"{first} > {rng.randint(0, 4)}", f"{first} % 2 == 0", "x.sum() > 9"))

    def _statement(self) -> None:
        rng = self.rng
        name, array = rng.choice(_NUMBERS), rng.choice("uv")
        kind = rng.randrange(24)
        if kind < 6:
            self._add(f"{name} = {self._number()}")
        elif kind < 9:
            self._add(f"{name} {rng.choice('+-')}= {self._number(1)}")
        elif kind < 10:
            a, b = rng.sample(_NUMBERS, 2)
            self._add(f"{a}, {b} = {b}, {self._number(1)}")
        elif kind < 11:
            self._add(f"{array} = {rng.choice(_ARRAYS)}")
        elif kind < 14:
            self._add(f"u, v = v, {rng.choice(('u', 'u', 'u + v', 'x - u'))}")
        elif kind < 15:
            self._add(f"{array}[{self._at()}] = {self._number(1)}")
        elif kind < 16:
            self._add(f"{array} += {rng.choice(('x', '1', 'v', 'u'))}")
        elif kind < 17:
            self._add(f"items[{rng.randint(0, 1)}] = {self._number(1)}")
        elif kind < 18:
            self._add(f"{name} = items[{rng.randint(0, 1)}]")
        elif kind < 21 and (self.counters or not self.is_whole):
            self._branch()
        elif self.depth < 4 and self.loops < _MOST_LOOPS:
            self._loop(name)
        else:
            self._add(f"{name} = {self._number()}")

    def _branch(self) -> None:
        rng = self.rng
        self._add(f"if {self._condition()}:")
        self._block(rng.randint(1, 2))
        if self.counters and rng.random() < 0.3:
            self._add(f"    {rng.choice(('break', 'break', 'continue'))}")
        elif rng.random() < 0.4:
            self._add("else:")
            self._block(1)

    def _loop(self, name: str) -> None:
        rng = self.rng
        counter = "ijklm"[self.loops]
        self.loops += 1
        kind = rng.randrange(4)
        if kind == 0:
            self._add(f"for e in {rng.choice(('x', 'y', 'x[1:]', 'x[: y[0]]'))}:")
            self._block(rng.randint(1, 3))
            self._add(f"    {name} = {name} + e")
            return
        if kind == 1:
            self._add(f"{counter} = 0")
            self._add(f"while {counter} < len(x) and {self._condition()}:")
            self._add(f"    {counter} += 1")
            self._block(rng.randint(1, 3))
            return
        bounds = rng.choice(("len(x)", "3", "1, len(x)", "len(x) - 1"))
        self._add(f"for {counter} in range({bounds}):")
        self.counters.append(counter)
        self._block(rng.randint(1, 4))
        self.counters.pop()
        if rng.random() < 0.15:
            self._add("else:")
            self._block(1)


def exchange_program(seed: int) -> LoopProgram:
    return _Generator(seed).program()
