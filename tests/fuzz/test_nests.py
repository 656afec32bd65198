"""Random nests of loops, built node by node: each program runs on the CPU, where loops are
compiled, and in the interpreter, where they are expanded, and must equal NumPy's. Numbers are
integers that wrap, so that results are exact."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from rune_jit import _core, ir

_INT = np.dtype(np.int64)
_SHAPES: list[tuple[int, ...]] = [(), (), (6,), (20,), (4, 6), (6, 20), (20, 6), (1,)]
_MOST_TRIPS = 4


class _Counter:
    """A counter of a loop, with the bounds of its values."""

    def __init__(self, name: str, low: int, high: int) -> None:
        self.name, self.low, self.high = name, low, high


class _Generator:
    """Makes a list of statements:

    ("put", variable, items, expression), ("let", variable, expression),
    ("loop", counter, start, stop, step, body); start and stop are (counter or None, offset).
    Expressions: ("read", variable, items, is_flipped), ("number", n), ("counter", counter),
    ("sum", variable, items), ("op", name, a, b). Items, one for each axis: (counter or None,
    offset), or a pair of such for a slice.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.shapes = {f"x{i}": rng.choice(_SHAPES) for i in range(rng.randint(2, 5))}
        self.counters: list[_Counter] = []
        self.names = 0

    def program(self) -> list[Any]:
        return [*self.statements(2), self.loop(0), *self.statements(1)]

    def statements(self, most: int, depth: int = 0) -> list[Any]:
        result = []
        for _ in range(self.rng.randint(1, most)):
            if depth < 2 and self.counters and self.rng.random() < 0.25:
                result.append(self.loop(depth + 1))
            else:
                result.append(self.assignment())
        return result

    def loop(self, depth: int) -> Any:
        rng = self.rng
        around = rng.choice([None, *self.counters])
        step = rng.choice([1, 1, 1, 2, -1, -2])
        first, last = sorted((rng.randint(0, 2), rng.randint(0, _MOST_TRIPS)))
        low, high = first, last
        if around is not None and rng.random() < 0.6:
            # From or up to the counter of a loop around it.
            low, high = min(first, around.low), max(last, around.high)
            start, stop = (None, first), (None, last)
            if rng.random() < 0.5:
                start = around, 0
            else:
                stop = around, 0
        else:
            start, stop = (None, first), (None, last)
        if step < 0:
            start, stop = stop, start
        self.names += 1
        counter = _Counter(f"i{self.names}", max(0, low), max(high, low + 1))
        self.counters.append(counter)
        body = self.statements(4, depth)
        self.counters.pop()
        return "loop", counter, start, stop, step, body

    def assignment(self) -> Any:
        rng = self.rng
        name = rng.choice(list(self.shapes))
        if rng.random() < 0.3:
            return "let", name, self.whole(name)
        items = self.items(self.shapes[name])
        return "put", name, items, self.expression(self.shapes[name], items)

    def whole(self, name: str) -> Any:
        """Another variable of the same shape, as it is or in an expression."""
        shape = self.shapes[name]
        others = [other for other in self.shapes if self.shapes[other] == shape]
        items = [((None, 0), (None, size)) for size in shape]
        read = ("read", self.rng.choice(others), items, False)
        if self.rng.random() < 0.4:
            return read
        return "op", self.rng.choice(["add", "subtract"]), read, self.expression(shape, items)

    def items(self, shape: tuple[int, ...]) -> list[Any]:
        return [self.item(size) for size in shape]

    def item(self, size: int) -> Any:
        rng = self.rng
        position = self.position(size - 1)
        kind = rng.random()
        if kind < 0.5:
            return position
        if kind < 0.7:
            return (None, 0), self.position(size)
        if kind < 0.85:
            return position, (None, size)
        low = rng.randint(0, size)
        return (None, low), (None, rng.randint(low, size))

    def position(self, most: int) -> Any:
        """Between 0 and `most` for all values of the counters."""
        fitting = [c for c in self.counters if c.high <= most]
        if not fitting or self.rng.random() < 0.3:
            return None, self.rng.randint(0, most)
        counter = self.rng.choice(fitting)
        return counter, self.rng.randint(-counter.low, most - counter.high)

    def expression(self, shape: tuple[int, ...], items: list[Any], depth: int = 0) -> Any:
        rng = self.rng
        kind = rng.random()
        if depth < 2 and kind < 0.5:
            parts = [self.expression(shape, items, depth + 1) for _ in range(2)]
            return "op", rng.choice(["add", "subtract", "multiply", "maximum"]), *parts
        if kind < 0.8:
            alike = [name for name, other in self.shapes.items() if other == shape]
            return "read", rng.choice(alike), items, rng.random() < 0.2
        if kind < 0.9:
            name = rng.choice(list(self.shapes))
            return "sum", name, self.items(self.shapes[name])
        if self.counters and kind < 0.95:
            return "counter", rng.choice(self.counters)
        return "number", rng.randint(-3, 3)


class _OnNumPy:
    def __init__(self, values: dict[str, np.ndarray]) -> None:
        self.values = values
        self.counters: dict[Any, int] = {}

    def number(self, position: Any) -> int:
        counter, offset = position
        return offset + (self.counters[counter] if counter else 0)

    def index(self, items: list[Any]) -> tuple[Any, ...]:
        return tuple(
            slice(*map(self.number, item)) if isinstance(item[0], tuple) else self.number(item)
            for item in items
        )

    def run(self, statements: list[Any]) -> None:
        for kind, *rest in statements:
            if kind == "loop":
                counter, start, stop, step, body = rest
                for i in range(self.number(start), self.number(stop), step):
                    self.counters[counter] = i
                    self.run(body)
            elif kind == "let":
                self.values[rest[0]] = np.array(self.value(rest[1]))
            else:
                name, items, expression = rest
                value = np.array(self.value(expression))
                self.values[name] = self.values[name].copy()
                self.values[name][self.index(items)] = value

    def value(self, expression: Any) -> Any:
        kind, *rest = expression
        if kind == "number":
            return np.int64(rest[0])
        if kind == "counter":
            return np.int64(self.counters[rest[0]])
        if kind == "op":
            return getattr(np, rest[0])(self.value(rest[1]), self.value(rest[2]))
        part = self.values[rest[0]][self.index(rest[1])]
        if kind == "sum":
            return np.sum(part)
        return np.flip(part) if rest[2] and np.ndim(part) == 1 else part


class _InGraph:
    def __init__(self, shapes: dict[str, tuple[int, ...]]) -> None:
        self.g: Any = _core.GraphBuilder()
        self.values = {name: self.g.input(_INT, list(shape)) for name, shape in shapes.items()}
        self.counters: dict[Any, Any] = {}

    def number(self, position: Any) -> Any:
        counter, offset = position
        return self.counters[counter].plus(offset) if counter else offset

    def index(self, items: list[Any]) -> list[Any]:
        return [
            slice(*map(self.number, item)) if isinstance(item[0], tuple) else self.number(item)
            for item in items
        ]

    def run(self, statements: list[Any]) -> None:
        for kind, *rest in statements:
            if kind == "loop":
                self.loop(*rest)
            elif kind == "let":
                self.values[rest[0]] = self.value(rest[1])
            else:
                name, items, expression = rest
                old, index = self.values[name], self.index(items)
                part = self.value(expression)
                part = self.g.broadcast_to(part, list(self.g.index(old, index).shape))
                self.values[name] = self.g.put(old, index, part)

    def loop(self, counter: Any, start: Any, stop: Any, step: int, body: list[Any]) -> None:
        limits = self.number(start), self.number(stop)
        before = dict(self.values)
        self.counters[counter] = self.g.begin_loop(counter.low, counter.high)
        names = sorted(_assigned(body))
        for k, name in enumerate(names):
            self.values[name] = self.g.carry(self.counters[counter], k, before[name])
        self.run(body)
        after = self.g.end_loop(
            self.counters[counter],
            *limits,
            step,
            [self.values[name] for name in names],
            [before[name] for name in names],
        )
        self.values = before | dict(zip(names, after, strict=True))

    def value(self, expression: Any) -> Any:
        kind, *rest = expression
        if kind == "number":
            return self.g.constant(np.int64(rest[0]))
        if kind == "counter":
            return self.g.astype(self.g.size_value(self.counters[rest[0]]), _INT)
        if kind == "op":
            return self.g.ufunc(rest[0], [self.value(rest[1]), self.value(rest[2])])[0]
        part = self.g.index(self.values[rest[0]], self.index(rest[1]))
        if kind == "sum":
            return self.g.reduce("sum", part, None, False)
        flips = rest[2] and part.ndim == 1
        return self.g.index(part, [slice(None, None, -1)]) if flips else part


def _assigned(statements: list[Any]) -> set[str]:
    names: set[str] = set()
    for kind, *rest in statements:
        names |= _assigned(rest[-1]) if kind == "loop" else {rest[0]}
    return names


def check(seed: int, *devices: str) -> None:
    """Raises AssertionError if the results of the seed's program differ from NumPy's."""
    rng = random.Random(seed)
    generator = _Generator(rng)
    program = generator.program()
    graph = _InGraph(generator.shapes)
    graph.run(program)
    numbers = np.random.default_rng(seed)
    inputs = {
        name: numbers.integers(-5, 6, shape, dtype=np.int64)
        for name, shape in generator.shapes.items()
    }
    expected = _OnNumPy(dict(inputs))
    expected.run(program)
    finished = graph.g.finish(list(graph.values.values()))
    for device in devices:
        results = ir.Program(finished, device).run(*inputs.values())
        for (name, want), got in zip(expected.values.items(), results, strict=True):
            np.testing.assert_array_equal(got, want, f"seed {seed}, {device}, {name}\n{program}")


@pytest.mark.parametrize("part", range(4))
def test_nests_equal_numpy(part: int) -> None:
    for seed in range(part * 25, part * 25 + 25):
        check(seed, "cpu", "interpreter")
