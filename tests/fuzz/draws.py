"""Random functions with loops that draw random numbers of NumPy's and Python's generators: under
conditions, in nested and `while` loops, before and after `break` and `continue`, with arguments
that the loop changes, single ones and arrays, of one generator or two. The generators are
arguments, or the function makes them from a seed that it says or gets."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from loops import LoopProgram

_OF_NUMPY = (
    *("{g}.random()", "{g}.uniform(-1, 2)", "{g}.uniform(-1, high=abs(s) + 1)", "{g}.normal()"),
    *("{g}.standard_normal()", "{g}.normal(s, 0.5)", "{g}.normal(0.0, scale=0.25)"),
)
_NUMBERS = {
    "rng": (
        *(*_OF_NUMPY, "{g}.integers(5)", "{g}.integers(-3, 9)", "{g}.integers(0, k + 2)"),
        *("{g}.choice(4)", "{g}.choice([0.5, -1.5])", "{g}.exponential()", "{g}.poisson(2.0)"),
    ),
    "old": (
        *(*_OF_NUMPY, "{g}.rand()", "{g}.randn()", "{g}.randint(5)", "{g}.randint(-3, 9)"),
        *("{g}.random_sample()", "{g}.choice(4)", "{g}.choice([0.5, -1.5])", "{g}.gamma(2.0)"),
    ),
    "py": (
        *("{g}.random()", "{g}.uniform(-1, 2)", "{g}.randint(1, 6)", "{g}.randrange(7)"),
        *("{g}.choice([0.5, -1.5])", "{g}.randrange(k, k + 5)", "{g}.gauss(0, 1)"),
    ),
}
_ARRAYS = {
    "rng": ("{g}.random(3)", "{g}.normal(size=3)", "{g}.integers(9, size=3)", "{g}.permutation(3)"),
    "old": ("{g}.rand(3)", "{g}.normal(0, 1, 3)", "{g}.randint(9, size=3)", "{g}.permutation(3)"),
    "py": ("np.full(3, {g}.random())",),
}


_MADE = {"rng": "np.random.default_rng", "old": "np.random.RandomState", "py": "random.Random"}


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = self.rng.sample(("rng", "old", "py"), self.rng.choice((1, 1, 1, 2)))
        self.has_arrays = self.rng.random() < 0.3
        self.lines: list[str] = []

    def program(self) -> LoopProgram:
        rng = self.rng
        self._add(1, "s, k, v = 0.5, 1, np.zeros(3)")
        self._add(1, "out = []")
        for name in self.names:
            if (seed := rng.choice((None, None, "seed", "7"))) is not None:
                self._add(1, f"{name} = {_MADE[name]}({seed})")
        for _ in range(rng.choice((1, 1, 2))):
            self._loop(1)
        self._add(1, f"return s, k, v, out, x, {self._number()}")
        source = (
            "import random\ndef program(x, rng, old, py, seed):\n" + "\n".join(self.lines) + "\n"
        )

        def arguments(call: int) -> tuple[Any, ...]:
            generators = np.random.default_rng(call), np.random.RandomState(call)
            return np.zeros((4, 3)), *generators, random.Random(call), call

        return LoopProgram(source, arguments)

    def _add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _number(self) -> str:
        name = self.rng.choice(self.names)
        return self.rng.choice(_NUMBERS[name]).format(g=name)

    def _array(self) -> str:
        name = self.rng.choice(self.names)
        return self.rng.choice(_ARRAYS[name]).format(g=name)

    def _loop(self, depth: int) -> None:
        rng = self.rng
        i = "ijm"[depth - 1]
        if rng.random() < 0.15 and depth == 2:
            self._add(depth, f"t{depth} = 0")
            self._add(depth, f"while t{depth} < 4 and {self._number()} < 1:")
            self._add(depth + 1, f"t{depth} += 1")
            self._add(depth + 1, f"{i} = t{depth}")
        else:
            self._add(depth, f"for {i} in range({rng.choice((100, 130)) if depth == 1 else 3}):")
        for _ in range(rng.randint(2, 4)):
            self._statement(depth + 1, i)

    def _statement(self, depth: int, i: str) -> None:
        rng = self.rng
        if depth < 4 and rng.random() < 0.12:
            self._loop(depth)
            return
        if rng.random() < 0.25:
            conditions = (f"{self._number()} < 0.5", "s > 0", f"{i} % 3 == 1", "x[1, 0] > s")
            condition = rng.choice((*conditions, f"s > 0 or {self._number()} < 0.25"))
            self._add(depth, f"if {condition}:")
            depth += 1
            if rng.random() < 0.15:
                self._add(depth, rng.choice(("break", "continue")))
                return
        number = self._number()
        choices = [
            *(f"s = 0.5 * s + {number}", f"s -= {number} * 0.25", f"x[{i} % 4, 0] += {number}"),
            *(f"x[{i} % 4] = {number} + x[0] * 0.5", "s *= 0.5", f"k = int({number}) % 5 + 1"),
            *(f"v[{i} % 3] = {number} - {self._number()}", f"out.append({number})"),
        ]
        if self.has_arrays:
            choices += [f"v = v * 0.5 + {self._array()}", f"x[1] = {self._array()}"]
        self._add(depth, rng.choice(choices))


def draw_program(seed: int) -> LoopProgram:
    return _Generator(seed).program()
