"""Random functions with loops that append to lists: arrays that variables go on to write to, take
over from one another and share with the lists, views of arguments, numbers, tuples and inner
lists.

Values are integers, which wrap around, so that results are exact."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from loops import LoopProgram

_RETURNED = "x, v, w, q, s, t, rows, nums, parts, flat"


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.n = self.rng.choice((4, 5, 6, 8, 18))
        self.lines: list[str] = []
        self._chooses = False  # whether it has an `if`

    def program(self) -> LoopProgram:
        rng, n = self.rng, self.n
        starts = ("x[0]", "x[1] * 2", "np.zeros(3, np.int64)", "x[0].copy()", "v")
        self._add(1, f"v = {rng.choice(starts[:4])}")
        self._add(1, f"w = {rng.choice(starts)}")
        self._add(1, f"q = {rng.choice(starts)}")
        self._add(1, f"s, t = x[0, 0], {rng.choice(('0', 'x[1, 1]', 'int(x[2, 1])'))}")
        self._add(1, "rows, nums, parts, flat = [], [], [], []")
        self._has_rows = rng.random() < 0.5
        if self._has_rows:
            self._add(1, f"rows.append({self._row('0')})")
        for _ in range(rng.randint(1, 2)):
            self._loop(1)
            for _ in range(rng.randint(0, 3)):
                self._add(1, self._after())
        used = ["np.array(rows)", "np.array(nums)", "len(flat)", "np.array(flat)"]
        used += ["np.stack(rows, -1) if rows else 0", "sum(nums)"]
        if not self._chooses:  # which array a name stands for is no object of its own then
            used.append("rows[-1] is v if rows else 0")
        extra = ", ".join(rng.sample(used, 3))
        self._add(1, f"return {_RETURNED}, {extra}")
        source = "def program(x):\n" + "\n".join(self.lines) + "\n"

        def arguments(call: int) -> tuple[Any, ...]:
            return (np.random.default_rng([n, call]).integers(0, 9, (n, 3)),)

        return LoopProgram(source, arguments)

    def _add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _row(self, i: str) -> str:
        """An expression for an array of three elements."""
        choices = ("v", "w", "q", "v", f"x[{i}]", f"x[{i}] * 2", "v + w", f"q - x[{i}]", "v.copy()")
        return self.rng.choice((*choices, "v[::-1]", f"x[{i}].copy()", "w * s", "x[:3, 1]"))

    def _number(self, i: str) -> str:
        choices = ("s", "t", f"x[{i}, 1]", f"s + x[{i}, 0]", f"v[1] * {i}", "s * 2")
        return self.rng.choice((*choices, f"x[{i}].sum()"))

    def _loop(self, depth: int) -> None:
        rng, n = self.rng, self.n
        i = "ijk"[depth - 1]
        kind = rng.random()
        if kind < 0.15:
            comprehension = rng.choice((self._row(i), self._number(i)))
            self._add(depth, f"many = [{comprehension} for {i} in range({n})]")
            kept = ("flat += many[:2]", "parts.append(many)", "s = len(many)")
            self._add(depth, rng.choice(kept))
            return
        ranges = (f"{n}", f"{n}", f"1, {n}", f"{n} - 1, -1, -1", f"0, {n}, 2", "0", "2")
        self._add(depth, f"for {i} in range({rng.choice(ranges)}):")
        for _ in range(rng.randint(2, 5)):
            self._statement(depth + 1, i)

    def _statement(self, depth: int, i: str) -> None:
        rng = self.rng
        if depth < 4 and rng.random() < 0.12:
            if rng.random() < 0.5:
                self._add(depth, "inner = []")
                self._add(depth, f"for m in range({rng.choice((2, 4, 5))}):")
                self._add(depth + 1, f"inner.append({self._number(i)} * m)")
                kept = ("flat += inner", "parts.append(inner)", "t = sum(inner)")
                self._add(depth, rng.choice(kept))
            else:
                self._loop(depth)
            return
        if rng.random() < 0.05:
            self._add(depth, f"if {rng.choice(('s > 20', f'{i} > 0', f'x[{i}, 0] > 4'))}:")
            depth += 1
            self._chooses = True
        row, number = self._row(i), self._number(i)
        choices = [
            *(f"v = {row}", f"w = {row}", f"v = v + x[{i}]", "q = v * 2", "v, w = w, v + w"),
            *("v += 1", f"w[1] = {i}", f"x[{i}, 2] += 1", "q *= 2", "v, q = q, w"),
            *(f"s = {number}", f"t = {number}", f"s = s + x[{i}, 0]"),
            *(f"parts.append(({row}, {number}))", f"parts.append([{number}, {i}])"),
            *(f"parts.append({i})", f"parts.append(int({number}))"),
            *(f"rows.append({row})", f"rows.append({row})", "rows.append(v)", "rows.append(w)"),
            *(f"nums.append({number})", f"nums.append({number})", f"flat.append({number})"),
        ]
        if self._has_rows:
            choices += [f"rows.append(rows[-1] * 2 + x[{i}])", "rows.append(rows[-1][::-1] + 1)"]
            choices += ["v = rows[-1]", "s = rows[-1][0]"]
        self._add(depth, rng.choice(choices))

    def _after(self) -> str:
        return self.rng.choice(
            (
                *("v += 1", "w[1] = 7", "x[1] = 5", "q = np.array(rows)[-1:].sum() + v"),
                *("rows[-1:] = [rows[-1] * 2] if rows else []", "s = len(rows)", "s = sum(nums)"),
                *("for k in rows[1:2]: k += 3", "for k in rows[-1:]: k[0] = 4", "v = v + 1"),
                *("t = np.sum(rows) if rows else 0", "x = x + 1", "rows = rows[::-1]"),
            )
        )


def list_program(seed: int) -> LoopProgram:
    """The function of a seed."""
    return _Generator(seed).program()
