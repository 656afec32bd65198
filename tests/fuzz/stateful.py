"""Random functions that do what a program alone cannot: branches on values, reads, state, prints,
exceptions, elements under masks, calls of other libraries.

A function is the method of an object; each is called several times. Numbers are small integers, so
that results are exact in every order of operations."""

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np

_ARRAYS = [
    "{a} + {b}", "{a} - {n}", "{a} * {k} % 97", "np.abs({a})", "np.maximum({a}, {b})", "{a}[::-1]",
    "np.where({c}, {a}, {b})", "np.cumsum({a}) % 89", "np.sort({a})", "np.roll({a}, {k})",
    "np.zeros_like({a}) + {n}", "{a}.copy()", "np.clip({a}, -{k}, 40)", "-{a}", "{a} - {a}.min()",
    "np.concatenate([{a}[1:], {b}[:1]])", "({a} + 1j * {b}).imag", "np.flip({a})", "np.diag({m})",
    "np.outer({a}, {b}).sum(axis=0) % 83", "{m}.sum(axis={i}) % 79", "{a}[[2, 0, 1, 1, 3]][:{l}]",
    "helper({a}, {k})", "np.stack([{a}, {b}])[{i}]", "self.scaled({a})", "np.asarray({a}) + 0",
    "np.interp({a}, [0, 50, 100], [0, 100, 200])", "{m} @ {a} % 73", "np.array([{n}, {k}, 3, 4])",
]  # fmt: skip
_NUMBERS = [
    "{a}.sum() % 61", "{a}[{k} % 4]", "{a}.max()", "float({a}[0])", "int({a}[1]) % 7", "self.count",
    "len({a})", "{a}[{i}].item()", "round(float({a}.mean()))", "self.total", "{m}[{i}, 2]",
    "np.count_nonzero({c})", "{a}.argmax()", "self.table['n']", "calls", "min({n}, {k})",
    "abs({n})",
]  # fmt: skip
_CONDITIONS = [
    "{a}.sum() > {k} * 5", "({a} > {k}).any()", "self.count % 3 == {i}", "float({a}[0]) < {n}",
    "{n} > {k}", "{a}[0] > {b}[1] and {n} < 9", "not {c}.all()", "'extra' in self.table",
    "self.last is None", "{k} in {a}", "isinstance({n}, float)", "np.isscalar({n})",
]  # fmt: skip
_STATEMENTS = [
    "{v} = {A}", "{v} = {A}", "{v} = {A}", "n = {N}", "self.a = {A}", "self.last = {A}",
    "self.a[{i}] = {N}", "self.a += {k}", "self.count += 1", "self.total = self.total + {N}",
    "self.table['k'] = {A}", "self.table['n'] += 1", "self.table['extra'] = {N}",
    "self.table.pop('extra', None)", "log.append({N})", "print({N}, {v}.shape)", "{v}[{i}:] = {N}",
    "{v} += {b}", "{v}[{c}] = {N}", "{v} = {a}[{c}]; n = {v}.size; {v} = x * 1",
    "log.append(np.nonzero({c})[0].tolist())", "log.append(np.unique({a}))", "x[{i}] = {N}",
    "m[{i}] = {A}[:4]", "calls += 1", "self.names += 'a'", 'log.append(f"{{{N}:.1f}}")',
    "self.view = self.a[1:]; self.view[0] = {k}", "self.pair = ({A}, {N})", "{v} = {v} * 1",
    "self.items[{i}] = {A}", "self.items.append({v})", "del self.items[2:]",
]  # fmt: skip
_HEAD = """
def helper(x, k):
    if x[0] > k:
        return x + k
    return x - 1


class Model:
    def __init__(self):
        self.a, self.count, self.total, self.last = np.arange(4.0), 0, 0.0, None
        self.table, self.names, self.items = {'k': np.ones(4), 'n': 0}, '', [0, 1]

    def scaled(self, x):
        self.count += 1
        return x * 2 % 67

    def step(self, x, y, m, n, log):
        global calls
        z = w = x
"""


class Writer:
    """The text of one program."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lines: list[str] = []

    def text(self) -> str:
        self._block(2, self._random.randint(3, 9))
        self._lines.append(f"        return {self._fill('{a}, {A}, {N}')}, self.count, n")
        return _HEAD + "\n".join(self._lines) + "\n"

    def _block(self, depth: int, count: int) -> None:
        for _ in range(count):
            self._statement(depth)

    def _statement(self, depth: int) -> None:
        kind = self._random.random()
        margin = "    " * depth
        if depth < 5 and kind < 0.14:
            self._lines.append(margin + self._fill("if {C}:"))
            self._block(depth + 1, self._random.randint(1, 3))
            if self._random.random() < 0.5:
                self._lines.append(margin + "else:")
                self._block(depth + 1, 1)
        elif depth < 4 and kind < 0.2:
            loop = self._random.choice(["for i in range({k}):", "for v in {a}:", "for row in {m}:"])
            self._lines.append(margin + self._fill(loop))
            self._block(depth + 1, self._random.randint(1, 2))
        elif depth < 4 and kind < 0.24:
            self._lines.append(margin + "try:")
            self._lines.append(margin + self._fill("    {v} = {a}[int({N})] + {a}"))
            self._lines.append(margin + "except IndexError as error:")
            self._lines.append(margin + "    log.append(str(error))")
        elif kind < 0.27:
            self._lines.append(margin + self._fill('if {C}: raise ValueError(f"at {{{N}}}")'))
        elif kind < 0.29:
            self._lines.append(margin + self._fill("if {C}: return {v}, {N}"))
        else:
            self._lines.append(margin + self._fill(self._random.choice(_STATEMENTS)))

    def _fill(self, pattern: str, depth: int = 0) -> str:
        pick = self._random.choice
        names = ["x", "y", "z", "w", "self.a", "self.table['k']"]
        arrays, numbers = (_ARRAYS, _NUMBERS) if depth < 2 else (["{a}"], ["n", "3"])
        parts = {
            "{A}": lambda: self._fill(pick(arrays), depth + 1),
            "{N}": lambda: self._fill(pick(numbers), depth + 1),
            "{C}": lambda: self._fill(pick(_CONDITIONS), depth + 1),
            "{a}": lambda: pick(names),
            "{b}": lambda: pick(names[:5]),
            "{v}": lambda: pick(["z", "w", "y"]),
            "{m}": lambda: "m",
            "{n}": lambda: pick(["n", "2", "self.count"]),
            "{k}": lambda: str(self._random.randint(1, 5)),
            "{i}": lambda: str(self._random.randint(0, 1)),
            "{l}": lambda: "4",
            "{c}": lambda: f"({pick(names)} > {self._random.randint(0, 30)})",
        }
        for mark, make in parts.items():
            while mark in pattern:
                pattern = pattern.replace(mark, make(), 1)
        return pattern.replace("{{", "{").replace("}}", "}")


def program(seed: int) -> tuple[str, dict[str, Any]]:
    """The source of a program, and its globals after it was run."""
    source = Writer(seed).text()
    name = f"<stateful {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"np": np, "calls": 0, "__name__": "stateful"}
    exec(compile(source, name, "exec"), names)
    return source, names


def arguments(seed: int, call: int) -> tuple[Any, ...]:
    rng = np.random.default_rng([seed, call])
    integers = (rng.integers(0, 40, size).astype(float) for size in ((4,), (4,), (4, 4)))
    return (*integers, int(rng.integers(0, 6)), [])
