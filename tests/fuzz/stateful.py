"""Random functions that do what a program alone cannot: branches on values, reads, state, prints,
exceptions, elements under masks, nested functions, views, complex numbers, calls of other
libraries.

A function is the method of an object; each is called several times, now and then with other shapes
and dtypes, or with arguments that share memory. Numbers are small integers, or rounded to such, so
that results are exact in every order of operations."""

from __future__ import annotations

import linecache
import math
import random
from typing import Any, NamedTuple

import numpy as np
import pytest

special = pytest.importorskip("scipy.special")
linalg = pytest.importorskip("scipy.linalg")
ndimage = pytest.importorskip("scipy.ndimage")
signal = pytest.importorskip("scipy.signal")

_ARRAYS = [
    "{a} + {b}", "{a} - {n}", "{a} * {k} % 97", "np.abs({a})", "np.maximum({a}, {b})", "{a}[::-1]",
    "np.where({c}, {a}, {b})", "np.cumsum({a}) % 89", "np.sort({a})", "np.roll({a}, {k})",
    "np.zeros_like({a}) + {n}", "{a}.copy()", "np.clip({a}, -{k}, 40)", "-{a}", "{a} - {a}.min()",
    "np.concatenate([{a}[1:], {b}[:1]])", "({a} + 1j * {b}).imag", "np.flip({a})", "-np.diag({m})",
    "np.outer({a}, {b}).sum(axis=0) % 83", "{m}.sum(axis={i}) % 79", "{a}[[2, 0, 1, 1, 3]][:{l}]",
    "helper({a}, {k})", "np.stack([{a}, {b}])[{i}]", "self.scaled({a})", "np.asarray({a}) + 0",
    "np.interp({a}, [0, 50, 100], [0, 100, 200])", "{m} @ {a} % 73", "np.array([{n}, {k}, 3, 4])",
    "ndimage.correlate1d({a}, [1, 2, 1]) % 71", "np.rint(special.expit({a}) * 9)",
    "signal.lfilter([1, 1], [1], {a}) % 69", "linalg.toeplitz({a})[{i}]",
    "np.rint(np.linalg.solve(np.eye(4) * 2, {a}) * 2) + 0.0",
    "np.rint(np.fft.ifft(np.fft.fft({a})).real) + 0.0",
    "(self.c * (2 - 1j)).real % 59", "np.abs({a} * 1j)", "(lambda v: v * {k} - {b})({a}) % 87",
    "np.array([v + {k} for v in {a}])", "np.stack([row % 7 for row in {m}])[{i}]",
    "sum([{a}, {b}, {A}]) % 91", "np.sum(self.parts, axis=0) % 63", "self.parts[{i}] + {k}",
    "{m}[:, {i}]",
    "{m}.T[{i}] - {b}", "np.where(self.c.imag > {k}, {a}, {b})", "deeper({a}, {k})", "self.double",
    "Point({a}, {n}).x", "np.linalg.matrix_power({m} % 3, 2)[{i}] % 57", "next(halves({a}))",
    "np.select([{c}, {a} > {b}], [{a}, {b}], {n})", "{a}.astype(np.int32) // {k}",
    "{a}[{c}].sum() + {b}",
]  # fmt: skip
_NUMBERS = [
    "{a}.sum() % 61", "{a}[{k} % 4]", "{a}.max()", "float({a}[0])", "int({a}[1]) % 7", "self.count",
    "len({a})", "{a}[{i}].item()", "round(float({a}.mean()))", "self.total", "{m}[{i}, 2]",
    "np.count_nonzero({c})", "{a}.argmax()", "self.table['n']", "calls", "min({n}, {k})",
    "abs({n})", "bool({a}[{i}] > {k}) + 1", "{a}.tolist()[{i}]", "math.floor({a}[{i}] / 3)",
    "np.rint(np.linalg.det({m})) % 53", "sum({a}[:2])", "float(np.linalg.norm({a}[:1]))",
    "sum(1 for v in {a} if v > {k})", "max({a}[0], {b}[1])", "len(self.items)", "Model.made",
    "divmod(int({a}[0]), {k})[{i}]", "int(RNG.integers(9))", "({a}[0] if {C} else {n})", "{a}.ndim",
    "self.c[{i}].real", "special.comb(6, {k})", "len(np.unique({a}))", "(lambda v=n: v + 1)()",
    "math.gcd(int({a}[0]), 12)", "self.table.get('extra', 0)", "np.float32({a}[{i}])", "x.shape[0]",
    "int({c}.sum())", "np.ptp({a})", "np.nonzero({c})[0].size",
]  # fmt: skip
_CONDITIONS = [
    "{a}.sum() > {k} * 5", "({a} > {k}).any()", "self.count % 3 == {i}", "float({a}[0]) < {n}",
    "{n} > {k}", "{a}[0] > {b}[1] and {n} < 9", "not {c}.all()", "'extra' in self.table",
    "self.last is None", "{k} in {a}", "isinstance({n}, float)", "np.isscalar({n})",
    "bool({a}[{i}] % 2)", "any(v > {k} for v in {a})", "{a}.dtype == float", "len({a}) > 4",
    "np.array_equal({a}, {b})", "{k} < {n} <= 4", "{a} is x", "({a}[0] or {b}[0]) > {k}",
    "self.table.get('extra', 0) > {k}", "np.isnan({a}).any()", "{a}[1] in (3, {n})",
    "type(n) is int",
    "isinstance({a}, np.ndarray) and {a}.max() > {k}", "self.c[{i}].imag > {k}",
    "np.iscomplexobj(x)",
    "{c}[{i}]", "np.shares_memory(x, {a})", "{a}.size and not {a}[0]", "(q := {N}) > {k}",
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
    "{v}[1:][::2] = {N}", "m.T[{i}] += {k}", "m.ravel()[{k}] = {N}", "np.add({a}, {b}, out={v})",
    "np.add({a}[1:], 1, out={v}[:-1])", "r = m[{i}]; r += {k}; r[:2] = 0", "{v}[:] = {v}[::-1] * 1",
    "m[:, {i}] = {A}[:4]", "m[m > {k}] = 1", "np.add.at({v}, [0, 0, 1], {N})", "{v}, w = w, {A}",
    "setattr(self, 'a', {A})", "self.table.update(n={N})", "self.table = dict(self.table, k={A})",
    "Model.made += 1", "self.parts[{i}] = {A}", "self.parts[{i}][{i}] = {N}",
    "self.parts.reverse()",
    "self.parts = [{a}, {A}]", "self.c = self.c * 1j + {a}", "self.c[{i}] = {N} + 2j",
    "self.c.imag[{i}] = {k}", "{v} = self.c.imag % 59", "log.append(complex(self.c[{i}]))",
    "self.point = Point({A}, {N})", "{v} = self.point.x + self.point.y if self.last is None else z",
    "x, y = y, x", "n += {N}", "n = -n", "log.extend({a}[:2])", "log += [len({a})]",
    "log[:] = log[-3:]",
    "{v}.sort()", "{v}.fill({N})", "np.copyto({v}, {a}, where={c})", "self.a = x",
    "self.a = self.a[::-1]",
    "self.table[{k}] = {N}",
    "self.table = {{key: v for key, v in self.table.items() if key != {k}}}",
    "del self.point", "self.last = None", "y = y.reshape(2, -1).T.ravel()", "calls = calls + n % 3",
    "self.f = lambda v: v + {k}; {v} = self.f({a})", "self.seen.add({N})", "{v} = {v}.astype(int)",
]  # fmt: skip
# Statements that raise an exception at some calls, or at all.
_RAISING = [
    "{v} = {a}[int({N})] + {a}", "{v} = {a} + m[:{k}, 0]", "self.table.pop('extra')",
    "n = {k} // n",
    "{v} = np.rint(8 * np.linalg.inv({m} * ({N} > {k})))",
    "assert {C}, {N}", "n = int({a})", "{v}[{k}] = {N}",
    "{v} = x.reshape(2, -1)[1] + {a}", "helper({a}[{k}:], {k})", "raise KeyError({N})",
    "raise Failure({N})", "n = self.missing",
    "with np.errstate(divide='raise'): z = np.rint({k} / ({a} * 1.0))",
    "n = int(math.sqrt({N}))", "log.append(self.table[{k}])", "n = [1, 2][int({N}) % 3]",
    "if {C}: 1 / 0",
    "{v} = check({a}, {k})", 'if {C}: raise ValueError(f"at {{{N}}}")',
    "np.linalg.cholesky({m} - 9)",
    "{v} = np.concatenate([{a}, m])", "n = float('x' if {C} else '1')", "a, b = {v}[:{k}]",
    "{v} = log[0] + {a}", "log[0][{i}] = {k}", "log[0] = {A}", "{v} = log.pop() * 2 % 41",
]  # fmt: skip
_LOOPS = [
    "for i in range({k}):", "for v in {a}:", "for row in {m}:", "for i, v in enumerate({a}):",
    "for v, u in zip({a}, {b}):", "for v in halves({a}):", "for key in list(self.table):",
    "for v in self.parts:", "t{{d}} = 0; while t{{d}} < {k} and {C}:",
    "t{{d}} = 0; while t{{d}} < 2 or t{{d}} < 5 and {C}:",
    "for v in [{A}, {a}]:", "for i in reversed(range({k})):", "for v in {a}[{c}]:",
]  # fmt: skip
_EXCEPTIONS = [
    "IndexError", "ValueError", "(IndexError, ValueError, KeyError)", "Exception", "Failure",
    "ArithmeticError", "(TypeError, AttributeError, LookupError)", "np.linalg.LinAlgError",
]  # fmt: skip
_HEAD = """
def helper(x, k):
    if x[0] > k:
        return x + k
    return x - 1


def deeper(x, k):
    return x if k <= 0 else deeper(x + 1, k - 2)


def halves(x):
    yield x // 2
    yield x


def check(x, k):
    if (x == k).any():
        raise Failure(k)
    return x + k


class Failure(Exception):
    pass


class Point(NamedTuple):
    x: object
    y: object


class Model:
    made = 0

    def __init__(self):
        self.a, self.count, self.total, self.last = np.arange(4.0), 0, 0.0, None
        self.table, self.names, self.items = {'k': np.ones(4), 'n': 0}, '', [0, 1]
        self.c, self.parts = np.arange(4) * (1 - 2j), [np.zeros(4), 3 * np.ones(4)]
        self.point, self.seen = Point(2, 3), set()

    @property
    def double(self):
        return self.a * 2 % 77

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
        self._functions = 0
        # Some programs consist of few kinds of statements and expressions.
        self._arrays, self._numbers = self._some(_ARRAYS), self._some(_NUMBERS)
        self._conditions, self._statements = self._some(_CONDITIONS), self._some(_STATEMENTS)

    def _some(self, patterns: list[str]) -> list[str]:
        count = self._random.choice((3, 10, len(patterns), len(patterns)))
        return self._random.sample(patterns, count)

    def text(self) -> str:
        self._block(2, self._random.randint(3, 9))
        self._lines.append(f"        return {self._fill('{a}, {A}, {N}')}, self.count, n")
        return _HEAD + "\n".join(self._lines) + "\n"

    def _block(self, depth: int, count: int) -> None:
        for _ in range(count):
            self._statement(depth)

    def _add(self, depth: int, pattern: str) -> None:
        self._lines.append("    " * depth + self._fill(pattern))

    def _statement(self, depth: int) -> None:
        kind = self._random.random()
        if depth < 5 and kind < 0.14:
            self._add(depth, "if {C}:")
            self._block(depth + 1, self._random.randint(1, 3))
            if self._random.random() < 0.5:
                self._add(depth, "else:")
                self._block(depth + 1, 1)
        elif depth < 4 and kind < 0.2:
            self._loop(depth)
        elif depth < 4 and kind < 0.24:
            self._try(depth)
        elif depth < 4 and kind < 0.26:
            self._function(depth)
        elif kind < 0.28:
            self._add(depth, self._random.choice(_RAISING))
        elif kind < 0.3:
            self._add(depth, "if {C}: return {v}, {N}")
        else:
            self._add(depth, self._random.choice(self._statements))

    def _loop(self, depth: int) -> None:
        loop = self._random.choice(_LOOPS)
        for line in loop.replace("{{d}}", str(depth)).split("; "):
            self._add(depth, line)
        if "while" in loop:
            self._add(depth + 1, f"t{depth} += 1")
        self._block(depth + 1, self._random.randint(1, 2))
        if self._random.random() < 0.2:
            self._add(depth + 1, "if {C}: " + self._random.choice(("break", "continue")))
            self._block(depth + 1, 1)

    def _try(self, depth: int) -> None:
        self._add(depth, "try:")
        if self._random.random() < 0.5:
            self._block(depth + 1, 1)
        self._add(depth + 1, self._random.choice(_RAISING))
        if self._random.random() < 0.3:
            self._block(depth + 1, 1)
        self._add(depth, f"except {self._random.choice(_EXCEPTIONS)} as error:")
        self._add(depth + 1, "log.append(str(error))")
        if self._random.random() < 0.3:
            self._block(depth + 1, 1)
        if self._random.random() < 0.2:
            self._add(depth, self._random.choice(("else:", "finally:")))
            self._block(depth + 1, 1)

    def _function(self, depth: int) -> None:
        self._functions += 1
        name = f"inner{self._functions}"
        self._add(depth, f"def {name}(v, k={{k}}):")
        if self._random.random() < 0.4:
            self._add(depth + 1, "nonlocal n")
            self._add(depth + 1, "n = {N}")
        if self._random.random() < 0.5:
            self._add(depth + 1, self._random.choice(("v[{i}] = {k}", "log.append(k)", "m[0] = v")))
        if self._random.random() < 0.4:
            self._add(depth + 1, "if v[0] > k: return v")
        self._add(depth + 1, "return v + {A}")
        self._add(depth, f"{{v}} = {name}({{a}})")
        if self._random.random() < 0.4:
            self._add(depth, f"{{v}} = {name}({{A}}, k={{N}})")

    def _fill(self, pattern: str, depth: int = 0) -> str:
        pick = self._random.choice
        names = ["x", "y", "z", "w", "self.a", "self.table['k']"]
        arrays, numbers = (self._arrays, self._numbers) if depth < 2 else (["{a}"], ["n", "3"])
        parts = {
            "{A}": lambda: self._fill(pick(arrays), depth + 1),
            "{N}": lambda: self._fill(pick(numbers), depth + 1),
            "{C}": lambda: self._fill(pick(self._conditions), depth + 1),
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
    names: dict[str, Any] = {"np": np, "calls": 0, "__name__": "stateful", "math": math}
    names |= {"special": special, "ndimage": ndimage, "signal": signal, "linalg": linalg}
    names |= {"RNG": np.random.default_rng(seed), "NamedTuple": NamedTuple}
    exec(compile(source, name, "exec"), names)
    return source, names


def arguments(seed: int, call: int) -> tuple[Any, ...]:
    """Those of a call: of most seeds of one shape and dtype, that share no memory."""
    rng = np.random.default_rng([seed, call])
    n = 4 if seed % 5 or call < 3 else 5
    x, y, m = (rng.integers(0, 40, size).astype(float) for size in ((n,), (n,), (n, n)))
    if seed % 7 == 0:
        x, m = (array.astype(rng.choice(["d", "f", "l", "i", "B", "D"])) for array in (x, m))
    if seed % 11 == 0:
        y = [x, x[::-1], m[1], m.T[1], y[::-1]][rng.integers(5)]
    return x, y, m, int(rng.integers(0, 6)), [] if seed % 3 else [y * 2, np.flip(x)]
