"""Random functions with loops over heaps, stacks and queues: items that are numbers or tuples, of
Python's and NumPy's types, equal ones and NaN among them; loops that a condition ends, that return,
and that fail because a heap is empty.

Values are halves and small integers, so that results are exact."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from loops import LoopProgram

_NUMBERS = ("x[{i} % 60]", "y[{i} % 60]", "{i}", "x[{i} % 60] + s", "float(x[{i} % 60])", "0.5")
_INTEGERS = ("{i}", "y[{i} % 60]", "{i} % 3", "int(y[{i} % 60])", "k")


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.names = self.rng.choice((("h",), ("h",), ("h", "g")))
        self.parts = {name: self.rng.choice((0, 2, 2, 3)) for name in self.names}
        self.first = self.rng.choice((_NUMBERS, _NUMBERS[:1], _INTEGERS, _INTEGERS[1:2]))
        self.has_nan = self.rng.random() < 0.1

    def program(self) -> LoopProgram:
        rng = self.rng
        self._add(1, "s, k, out = 0.0, 0, np.zeros(60)")
        for name in self.names:
            items = [self._constant(name) for _ in range(rng.choice((0, 1, 1, 1, 3)))]
            self._add(1, f"{name} = [{', '.join(items)}]")
            if len(items) > 1:
                self._add(1, f"heapify({name})")
        if rng.random() < 0.4:
            self._while()
        else:
            self._add(1, f"for i in range({rng.choice((10, 60, 150))}):")
            self._add(2, "k += 1")
            self._block(2, "i", rng.randint(2, 4))
        self._add(1, f"return s, k, out, {', '.join(self.names)}")
        source = "def program(x, y):\n" + "\n".join(self.lines) + "\n"
        nan = 3 if self.has_nan else -1

        def arguments(call: int) -> tuple[Any, ...]:
            data = np.random.default_rng(call)
            x = data.integers(-8, 9, 60) / 2
            x[nan + 1 :: 17] = np.nan if nan > 0 else 2.5
            return x, data.integers(-4, 5, 60)

        function = "from heapq import *\n" + source
        return LoopProgram(function, arguments)

    def _add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _constant(self, name: str) -> str:
        first = self.rng.choice(("1", "2", "-1") if "{i}" in self.first[0] else ("1.5", "0.0"))
        count = self.parts[name]
        return f"({', '.join([first, '0', '7'][:count])})" if count else first

    def _item(self, name: str, i: str) -> str:
        rng, count = self.rng, self.parts[name]
        parts = [rng.choice(self.first).format(i=i)]
        parts += [rng.choice(_INTEGERS).format(i=i) for _ in range(count - 1)]
        return f"({', '.join(parts)})" if count else parts[0]

    def _while(self) -> None:
        name = self.names[0]
        self._add(1, f"while {self.rng.choice((name, f'len({name}) > 0'))}:")
        self._add(2, "k += 1")
        self._take(2, name, "heappop({})")
        self._add(2, f"if k > {self.rng.choice((20, 90))}:")
        self._add(3, self.rng.choice(("break", "return k, s", "break")))
        self._block(2, "k", self.rng.randint(1, 3))

    def _take(self, depth: int, name: str, what: str) -> None:
        count, what = self.parts[name], what.format(name)
        if not count:
            self._add(depth, f"v = {what}")
            self._add(depth, self.rng.choice(("s += v", "out[k % 60] = v")))
        else:
            names = ["v", "a", "b"][:count]
            self._add(depth, f"{', '.join(names)} = {what}")
            self._add(depth, self.rng.choice(("s += v", "s = s + a", "out[a % 60] += v")))

    def _block(self, depth: int, i: str, count: int) -> None:
        for _ in range(count):
            self._statement(depth, i)

    def _statement(self, depth: int, i: str) -> None:
        rng = self.rng
        name = rng.choice(self.names)
        if rng.random() < 0.3 and depth < 4:
            tests = (f"x[{i} % 60] > 0", f"len({name}) > 5", f"{i} % 3 == 1", f"not {name}")
            self._add(depth, f"if {rng.choice(tests)}:")
            if rng.random() < 0.1:
                self._add(depth + 1, rng.choice(("return k", "return k, s", "break", "continue")))
            else:
                self._block(depth + 1, i, rng.randint(1, 2))
            return
        guard = f"if len({name}) > {rng.choice((0, 2))}:"
        kind = rng.random()
        if kind < 0.5:
            self._add(depth, f"heappush({name}, {self._item(name, i)})")
            return
        if rng.random() < 0.9:
            self._add(depth, guard)
            depth += 1
        if kind < 0.75:
            self._take(depth, name, "heappop({})")
        elif kind < 0.85:
            function = rng.choice(("heapreplace", "heappushpop"))
            self._take(depth, name, f"{function}({{}}, {self._item(name, i)})")
        elif kind < 0.95:
            self._take(depth, name, "{}[0]")
        else:
            self._add(depth, f"{name}[0] = {self._item(name, i)}")
            self._add(depth, f"heapify({name})")


def heap_program(seed: int) -> LoopProgram:
    """The function of a seed."""
    return _Generator(seed).program()
