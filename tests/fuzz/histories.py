"""Random functions with loops that keep a history in lists, which they may read and return, and the
best of what they have met, which is None at first.

Values are halves and small integers, so that results are exact."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from loops import LoopProgram

_NUMBERS = ("x[i]", "x[i] + s", "i", "k", "float(x[i])", "2 * x[i]", "0.5", "int(x[i])")
_TESTS = ("x[i] > 1", "x[i] < 0", "i % 3 == 0", "s > 4", "k > 3", "x[i] > x[0]", "x[i] == x[1]")
_N = 24


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.lists = self.rng.sample(("a", "b", "c"), self.rng.randint(1, 2))
        self.pairs = {name: self.rng.random() < 0.25 for name in self.lists}
        self.reads = self.rng.random() < 0.6  # whether it reads the lists
        self.kinds = {name: self.rng.sample(_NUMBERS, self.rng.randint(1, 2)) for name in "abc"}
        self.best = self.rng.choice(("", "place", "value", "pair"))

    def program(self) -> LoopProgram:
        rng = self.rng
        self._add(1, "s, k, i = 0.0, 0, 0")
        depth = 1
        if rng.random() < 0.2:  # an unrolled loop, whose iterations make lists of their own
            self._add(1, "for turn in (1, 2):")
            self._add(2, "k += turn")
            depth = 2
        for name in self.lists:
            count = rng.choice((0, 0, 1, 2))
            items = ", ".join(self._item(name) for _ in range(count))
            self._add(depth, f"{name} = [{items}]")
        if self.best:
            start = {"place": "None", "value": "None", "pair": "(3.0, None)"}[self.best]
            self._add(depth, f"best = {start}")
        for _ in range(rng.choice((1, 1, 2))):
            self._loop(depth)
        results = ["s", "k", *self.lists, *(["best"] if self.best else [])]
        results += [f"np.array({name})" for name in self.lists if rng.random() < 0.3]
        if self.reads:
            results += [f"len({name})" for name in self.lists if rng.random() < 0.5]
        self._add(1, f"return {', '.join(rng.sample(results, rng.randint(1, len(results))))},")
        source = "def program(x):\n" + "\n".join(self.lines) + "\n"

        def arguments(call: int) -> tuple[Any, ...]:
            rng = np.random.default_rng([len(source), call])
            return (rng.integers(-4, 5, _N) / 2,)

        return LoopProgram(source, arguments)

    def _add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _item(self, name: str) -> str:
        value = self.rng.choice(self.kinds[name])
        return f"({self.rng.choice(('i', 'k'))}, {value})" if self.pairs[name] else value

    def _loop(self, depth: int) -> None:
        rng = self.rng
        form = rng.choice(("range", "range", "values", "while"))
        if form == "range":
            self._add(depth, f"for i in range({rng.choice((0, 1, 5, 12, _N))}):")
        elif form == "values":
            self._add(depth, "for i, v in enumerate(x):")
        else:
            self._add(depth, "i = -1")
            self._add(depth, f"while i < {rng.choice((6, _N - 1))}:")
            self._add(depth + 1, "i += 1")
        for _ in range(rng.randint(2, 5)):
            self._statement(depth + 1)
        if rng.random() < 0.2:
            self._add(depth + 1, "for j in range(3):")
            self._append(depth + 2)
        if rng.random() < 0.5:
            self._add(depth + 1, f"if {rng.choice((*_TESTS, 's > 9', 's < -6'))} and i > 2:")
            self._add(depth + 2, "break")

    def _append(self, depth: int) -> None:
        name = self.rng.choice(self.lists)
        self._add(depth, f"{name}.append({self._item(name)})")

    def _part(self, name: str, item: str) -> str:
        return f"{item}[1]" if self.pairs[name] else item

    def _statement(self, depth: int) -> None:
        rng = self.rng
        name, test = rng.choice(self.lists), rng.choice(_TESTS)
        kind = rng.choice(("append", "append", "some", "read", "pop", "best", "best", "sum"))
        if kind == "append":
            self._append(depth)
        elif kind == "some":
            self._add(depth, f"if {test}:")
            self._append(depth + 1)
        elif kind == "read" and self.reads:
            item = self._part(name, f"{name}[{rng.choice(('-1', '0', '-1'))}]")
            guard = rng.choice((f"if {name}:", f"if len({name}) > 0 and {test}:", "if k >= 0:"))
            self._add(depth, guard if rng.random() < 0.95 else "if True:")
            self._add(depth + 1, f"s += {item}")
        elif kind == "pop" and self.reads:
            item = self._part(name, f"{name}.pop({rng.choice(('', '0'))})")
            self._add(depth, f"if {name} and {test}:" if rng.random() < 0.9 else f"if {test}:")
            self._add(depth + 1, f"s -= {item}")
        elif kind == "best" and self.best:
            self._keep_best(depth, test)
        else:
            self._add(depth, f"s += {rng.choice(('x[i]', '0.5', '1'))}")
            self._add(depth, "k += 1")

    def _keep_best(self, depth: int, test: str) -> None:
        rng = self.rng
        if self.best == "pair":
            self._add(depth, "if x[i] < best[0]:")
            self._add(depth + 1, f"best = (x[i], {rng.choice(('i', '(i, k)', 'x[i]'))})")
            return
        value = "i" if self.best == "place" else "x[i]"
        now = "x[best]" if self.best == "place" else "best"
        tests = (f"if best is None or x[i] < {now}:", f"if {test}:", "if best is None:")
        self._add(depth, rng.choice(tests))
        self._add(depth + 1, f"best = {value}")
        if rng.random() < 0.4:
            self._add(depth, "if best is not None:" if rng.random() < 0.9 else f"if {test}:")
            self._add(depth + 1, f"s += {now}")


def history_program(seed: int) -> LoopProgram:
    return _Generator(seed).program()
