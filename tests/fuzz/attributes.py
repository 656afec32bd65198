"""Random classes whose methods have loops that break, append to lists, assign attributes and call
other methods. Some are dataclasses. Some globals have the names of attributes.

Values are integers, which wrap around, so that results are exact."""

from __future__ import annotations

import dataclasses
import linecache
import random
from typing import Any

import numpy as np

_START = """
def outside(u, k):
    return u * k - 1

{of_part}class Part:
    {fields_of_part}def __init__(self, x):
        self.u, self.k = x * 2, 3

    def turn(self, by):
        self.k = self.k + by
        self.u = self.u - by

{of_model}class Model:
    {fields_of_model}scale = 2

    def __init__(self, x):
        self.a, self.b, self.c = x.copy(), x + 1, 0
        self.part, self.log, self.rows, self.t = Part(x), [], [], 0
        self.rng = np.random.default_rng(7)
"""
_DATACLASS = "@dataclasses.dataclass(init=False)\n"
_FIELDS_OF_PART = "u: object; k: int\n    "
_FIELDS_OF_MODEL = "a: object; b: object; c: int; part: object; log: list; rows: list; t: int\n    "


def _start(seed: int) -> str:
    """The classes' heads. Two of five are dataclasses."""
    rng = random.Random(f"classes {seed}")
    part, model = rng.random() < 0.4, rng.random() < 0.4
    return _START.format(
        of_part=_DATACLASS * part,
        fields_of_part=_FIELDS_OF_PART * part,
        of_model=_DATACLASS * model,
        fields_of_model=_FIELDS_OF_MODEL * model,
    )


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng, self.start = random.Random(seed), _start(seed)
        self.methods: list[str] = []

    def source(self) -> str:
        rng, lines = self.rng, [self.start]
        for name in ("first", "second", "third")[: rng.randint(1, 3)]:
            lines += [f"    def {name}(self, v, w{rng.choice(('', '=2', '=3'))}):"]
            for _ in range(rng.randint(0, 3)):
                lines += self._statement(2, "v", "w")
            if rng.random() < 0.2:
                lines += ["        r = v * 2 - w", "        r[1:] += self.a[:-1]", "        v = r"]
            if rng.random() < 0.08:
                lines += ["        if v.sum() > 50:", "            return v"]
            if rng.random() < 0.85:
                lines.append(f"        return {self._array('v', 'w')}")
            else:
                lines.append("        self.t += 1")
            self.methods.append(name)
        lines += ["    def run(self, x, n):", "        q, s = x * 2, 0"]
        for _ in range(rng.randint(1, 2)):
            lines += self._loop()
            lines += [
                line for _ in range(rng.randint(0, 2)) for line in self._statement(2, "q", "s")
            ]
        returned = rng.choice(
            ("q, s", "self.a, q", "s, self.a is self.b, self.a is q", "q + self.c")
        )
        lines.append(f"        return {returned}, self.log, self.rows")
        return "\n".join(lines) + "\n"

    def _loop(self) -> list[str]:
        rng = self.rng
        head = (
            "for i in range(n):",
            "for i in range(self.scale * 5):",
            "for i in range(1, 12, 2):",
        )
        if rng.random() < 0.2:
            lines = ["        i = 0", "        while self.c < 400:", "            i += 1"]
        else:
            lines = [f"        {rng.choice(head)}"]
        body = [line for _ in range(rng.randint(2, 6)) for line in self._statement(3, "q", "i")]
        if rng.random() < 0.6:
            value = rng.choice(("s", "i", "self.c", "q[0]", "self.a.sum()", "self.t"))
            body.append(f"            self.log.append({value})")
        body.append(f"            s = s + {rng.choice(('q.sum()', 'self.a[1]', 'i', '1'))}")
        body.append("            self.c = self.c + abs(s) % 7 + 1")
        leave = rng.choice(("break", "break", "break", "raise ValueError(str(i))", "return s, q"))
        test = rng.choice(
            ("s % 7 == 3", "self.a.max() > 10**6", "i > 6", "abs(s) > 3000", "self.c > 60")
        )
        body += [f"            if {test}:", f"                {leave}"]
        if lines[-1].endswith("i += 1"):
            body += ["            if i > 40:", "                break"]
        lines += body
        if rng.random() < 0.3:
            lines += ["        else:", f"            s = s + {rng.choice(('100', 'self.t'))}"]
        return lines

    def _array(self, v: str, w: str) -> str:
        choices = (
            *(v, "self.a", "self.b", f"self.a + {w}", f"{v} * 2 - self.b", "self.part.u + 1"),
            *(f"outside({v}, {w})", "self.a[::-1]", f"{v}.copy()", f"np.maximum(self.a, {v})"),
            f"self.b * self.scale - {v} % 5",
        )
        return self.rng.choice(choices)

    def _call(self, v: str, w: str) -> str:
        argument = self.rng.choice((v, "self.a", "self.b", f"{v} + 1", "self.part.u"))
        other = self.rng.choice((w, "1", "self.c", "self.part.k", "w=1"))
        other = w if other == "w=1" and self.rng.random() < 0.5 else other
        return f"self.{self.rng.choice(self.methods)}({argument}, {other})"

    def _statement(self, depth: int, v: str, w: str) -> list[str]:
        rng, array = self.rng, self._array(v, w)
        choices = [
            *(f"self.a = {array}", f"self.b = {array}", "self.a += 1", "self.b -= self.a"),
            *(
                "self.a[1] = self.c",
                f"self.c = self.c + {w}",
                f"self.c += {v}[0] % 9",
                "self.t += 1",
            ),
            *(f"self.part.u = {array}", "self.part.k = self.t + 2", "self.part.turn(self.c % 3)"),
            *(f"{v} = {array}", f"{v} = {v} - self.a", f"self.new = {array}"),
        ]
        if rng.random() < 0.1:
            choices += [
                f"self.rows.append({array})",
                "self.log.append(self.c)",
                "self.rows.append((self.c, 1))",
            ]
        if rng.random() < 0.06:
            choices = ["self.c = self.c + int(self.rng.integers(0, 4))"]
        if self.methods and rng.random() < 0.4:
            call = self._call(v, w)
            choices = [f"self.a = {call}", f"{v} = {call}", call, f"self.b = {array} + {call}"]
            choices += [
                f"self.b = {call} - {self._call(v, w)}",
                f"self.c = self.c + {call}.sum() % 5",
            ]
            choices += [f"self.a += {call}", f"self.a[0] = {call}[1]"]
        line = "    " * depth + rng.choice(choices)
        if rng.random() < 0.08:
            return [
                "    " * depth + f"if {rng.choice(('self.c % 3 == 1', 'self.t > 2'))}:",
                "    " + line,
            ]
        return [line]


def attribute_program(seed: int) -> tuple[str, Any]:
    """The source of a seed's classes, and the class Model."""
    source = _Writer(seed).source()
    name = f"<attributes {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"np": np, "dataclasses": dataclasses, "__name__": "attributes"}
    exec(compile(source, name, "exec"), names)
    if seed % 3 == 0:  # (no code reads these)
        names |= {"a": names["Model"](np.arange(3)), "u": np.arange(3), "t": 1, "turn": [2]}
    return source, names["Model"]
