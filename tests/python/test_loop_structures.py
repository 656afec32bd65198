"""Loops whose iterations put lists, dicts, named tuples and objects in the place of others."""

from __future__ import annotations

import copy
import dataclasses
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
from compare import assert_same
from loop_checks import ROLLED

import rune_jit

X = np.random.default_rng(3).normal(size=30)
Y = np.random.default_rng(4).normal(size=30)
Pair = namedtuple("Pair", "x v")


class Orbit(NamedTuple):
    x: Any
    v: Any
    count: int = 0

    def step(self, h: float) -> Orbit:
        v = self.v - h * self.x
        return Orbit(self.x + h * v, v, self.count + 1)


@dataclasses.dataclass
class State:
    x: Any
    v: Any
    t: float = 0.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any
    v: Any
    names: list[str] = dataclasses.field(default_factory=list)


class Base:
    def __init__(self, x: Any) -> None:
        self.x = x

    def pull(self) -> Any:
        return self.x * 0.5


class Body(Base):
    """Its methods make new objects, and call those that they override."""

    mass = 2.0

    def __init__(self, x: Any, v: Any) -> None:
        super().__init__(x)
        self.v = v

    @property
    def momentum(self) -> Any:
        return self.mass * self.v

    def pull(self) -> Any:
        return super().pull() + 0.01 * self.v

    def __add__(self, other: Any) -> Any:
        return Body(self.x + other.x, self.v + other.v)

    def step(self, h: float) -> Any:
        return Body(self.x + h * self.momentum, self.v - h * self.pull())


def as_data(x: Any) -> Any:
    """x with its objects' classes and attributes."""
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [as_data(item) for item in x]
    if isinstance(x, dict):
        return [(key, as_data(value)) for key, value in x.items()]
    return (type(x).__name__, as_data(vars(x))) if hasattr(x, "__dict__") else x


def compare(function: Any, *args: Any) -> list[str]:
    """Compares a function's results, and what it leaves in its arguments, with NumPy's; how its
    loops run."""
    jitted = rune_jit.jit(function)
    wanted = copy.deepcopy(args)
    expected = as_data(function(*wanted))
    for _ in range(3):
        given = copy.deepcopy(args)
        assert_same(as_data(jitted(*given)), expected, ulps=8, scaled=True)
        assert_same(as_data(given), as_data(wanted), ulps=8, scaled=True)
    lines = [line.strip() for line in jitted.explain().splitlines()]
    return [line for line in lines if line.startswith("loop at")]


def rolled(function: Any, *args: Any) -> None:
    lines = compare(function, *args)
    assert lines and all(line.endswith(ROLLED) for line in lines), lines


def unrolled(reason: str, function: Any, *args: Any) -> None:
    lines = compare(function, *args)
    assert any(reason in line for line in lines), lines


@pytest.mark.parametrize(
    "make",
    [
        lambda x, v: [x, v],
        lambda x, v: {"x": x, "v": v},
        lambda x, v: (x, {"v": v, 3: [x, (v, 1.5)]}),
        Pair,
        Orbit,
        State,
        Frozen,
        Body,
    ],
)
def test_an_iteration_makes_the_next_structure(make: Any) -> None:
    def parts(s: Any) -> Any:
        if isinstance(s, dict):
            return s["x"], s["v"]
        if isinstance(s, tuple) and isinstance(s[1], dict):
            return s[0], s[1][3][1][0]
        return s[:2] if isinstance(s, (list, tuple)) else (s.x, s.v)

    def f(x: Any, y: Any) -> Any:
        s = [x, y]
        if make is not None:
            for _ in range(20):
                s = [s[0] + 0.1 * s[1], s[1] - 0.1 * s[0]]
        return s

    rolled(f, X, Y)

    def g(x: Any, y: Any) -> Any:
        s = make(x, y)
        for _ in range(20):
            a, b = parts(s)
            v = b - 0.1 * a
            s = make(a + 0.1 * v, v)
        return s

    assert compare(g, X, Y)


def test_named_tuples() -> None:
    def f(x: Any, y: Any) -> Any:
        s, t = Orbit(x, y), Pair(x, 0)
        for i in range(20):
            s = s.step(0.1)
            t = t._replace(x=t.x * 0.9 + s.v[i], v=t.v + 1)
        return s, t, s._asdict()["count"]

    rolled(f, X, Y)


def test_objects_with_methods_properties_and_operators() -> None:
    def f(x: Any, y: Any) -> Any:
        a, b = Body(x, y), Body(y, x)
        for _ in range(20):
            a = a.step(0.01) + b
            b = Body(b.v * 0.5, b.x * 0.25)
        return a.momentum, b.x

    rolled(f, X, Y)


def test_dataclasses() -> None:
    def f(x: Any, y: Any) -> Any:
        s, k = State(x, y), Frozen(x, y)
        for _ in range(20):
            s = dataclasses.replace(s, x=s.x * 0.9 + k.x, t=s.t + 0.5)
            s.v = s.v + s.x
            k = Frozen(k.v, k.x * 0.5)
        return s, k.x, k.v

    rolled(f, X, Y)


def test_parameters_in_lists_and_dicts() -> None:
    def f(x: Any, y: Any) -> Any:
        params = {"w": x.copy(), "layers": [y.copy(), x * 2]}
        for _ in range(20):
            grads = [2 * p for p in params["layers"]]
            layers = [p - 0.01 * g for p, g in zip(params["layers"], grads)]  # noqa: B905
            params = {**params, "layers": layers}
        return params

    rolled(f, X, Y)


def test_arguments_stay_what_they_are() -> None:
    def f(state: Any, items: Any) -> Any:
        for _ in range(20):
            state = State(state.x * 0.9, state.v + state.x)
            items = [item * 0.9 for item in items]
        return state, items

    rolled(f, State(X, Y), [X, Y])


def test_an_attribute_that_holds_another_list_after_each_iteration() -> None:
    class Net:
        def __init__(self, layers: Any) -> None:
            self.layers = layers

    def f(x: Any, y: Any) -> Any:
        net = Net([x, y])
        for _ in range(20):
            net.layers = [w * 0.9 + 0.1 * net.layers[0] for w in net.layers]
        return net.layers

    rolled(f, X, Y)


def test_conditions_select_parts() -> None:
    def f(x: Any, y: Any) -> Any:
        state, best, least = State(x, 0), State(x, 0), np.inf
        pair = Pair(x, 0.0)
        for i in range(20):
            new = State(state.x * 0.9 + 0.3 * y[i], state.v + 1)
            error = (new.x**2).sum()
            if error < least:
                best, least = new, error
                pair = Pair(new.x, error)
            state = new if y[i] > 0 else State(state.x * 0.5, 0)
        return best.x, best.v, pair, least

    rolled(f, X, Y)


def test_conditions_end_loops() -> None:
    def f(x: Any) -> Any:
        s = State(x, 0)
        for i in range(300):  # noqa: B007
            new = State(0.5 * (s.x + np.cos(s.x)), s.v + 1)
            if np.abs(new.x - s.x).max() < 1e-9:
                break
            s = new
        p = {"x": x, "count": 0}
        while np.abs(p["x"] - np.cos(p["x"])).max() > 1e-9:
            p = {"x": 0.5 * (p["x"] + np.cos(p["x"])), "count": p["count"] + 1}
        return s.x, s.v, i, p["x"], p["count"]

    rolled(f, X)


def test_names_that_take_others_over() -> None:
    def f(x: Any, y: Any) -> Any:
        before, now = {"x": x}, {"x": y}
        for _ in range(20):
            new = {"x": 1.5 * now["x"] - 0.4 * before["x"]}
            before, now = now, new
        return before["x"], now["x"]

    rolled(f, X, Y)


def test_what_may_be_one_object_and_is_returned_twice() -> None:
    def f(x: Any, y: Any) -> Any:
        best = state = State(x, 0)
        for i in range(20):
            state = State(state.x * 0.9, i)
            if y[i] > 0.5:
                best = state
        return best, state

    unrolled("may be the same as another one", f, X, Y)
    for y in (Y, np.ones(30), np.zeros(30)):
        best, state = rune_jit.jit(f)(X, y)
        expected = f(X, y)
        assert (best is state) == (expected[0] is expected[1])


def test_what_may_be_an_argument_is_that_argument() -> None:
    def f(state: Any, y: Any) -> Any:
        for i in range(20):
            if y[i] > 0.5:
                state = {"x": state["x"] * 0.9}
        return state

    for y in (Y, np.zeros(30)):
        state, jitted = {"x": X}, rune_jit.jit(f)
        for _ in range(3):
            assert (jitted(state, y) is state) == (f(state, y) is state)


def test_what_may_be_one_object_and_changes_later() -> None:
    def f(x: Any, y: Any) -> Any:
        best = state = State(x, 0)
        for i in range(20):
            state = State(state.x * 0.9, i)
            if y[i] > 0.5:
                best = state
        state.x = x
        return best.x

    unrolled("changes later", f, X, Y)
    unrolled("changes later", f, X, np.ones(30))


def test_what_is_changed_before_it_is_replaced() -> None:
    def f(x: Any) -> Any:
        s = first = State(x, 0)
        for _ in range(20):
            s.v = s.v + 1
            s = State(s.x * 0.9, s.v)
        return first.v, s.x, s.v

    assert compare(f, X)


def test_what_is_kept_elsewhere() -> None:
    def f(x: Any) -> Any:
        kept, s = {"s": {"x": x}}, {"x": x}
        for _ in range(20):
            s = {"x": s["x"] * 0.9}
            kept["s"] = s
        s["x"] = x
        return kept["s"]["x"]

    assert compare(f, X)


def test_appended_structures() -> None:
    def f(x: Any) -> Any:
        pair, state, out, old, rows = Pair(x[0], x[1]), State(x, 1.0), [], [], []
        for i in range(20):
            pair = Pair(pair.x + 0.1 * pair.v, pair.v - 0.1 * pair.x)
            old.append(state)
            state = State(state.x * 0.9, state.v)
            out.append(pair)
            rows.append({"i": i, "x": pair.x * 2, "inner": [state.x[0], pair]})
        return np.array(out), old, rows, state.x

    rolled(f, X)


def test_what_is_appended_last_is_what_the_name_stands_for() -> None:
    def f(x: Any) -> Any:
        state, out = State(x, 1), []
        first = state
        for i in range(20):
            state = State(state.x * 0.9, i)
            out.append(state)
        state.v = 99
        return out, out[-1] is state, first.v

    rolled(f, X)


def test_linked_objects() -> None:
    class Node:
        def __init__(self, value: Any, before: Any) -> None:
            self.value, self.before = value, before

    def f(x: Any) -> Any:
        node = None
        for value in x:
            node = Node(value, node)
        total = 0.0
        while node is not None:
            total = 0.5 * total + node.value
            node = node.before
        return total

    assert compare(f, X)


def test_structures_of_other_kinds_after_an_iteration() -> None:
    def longer(x: Any) -> Any:
        s = [x]
        for _ in range(6):
            s = [*s, s[-1] * 0.5]
        return s

    def other_keys(x: Any) -> Any:
        s: Any = {"a": x}
        for i in range(6):
            s = {**s, i: x * i}
        return s

    def other_class(x: Any) -> Any:
        s: Any = Pair(x, x)
        for i in range(6):
            s = State(s.x, s.v + 1) if i % 2 else Pair(s.x * 0.5, s.v)
        return s

    for f in (longer, other_keys, other_class):
        assert compare(f, X)


def test_loops_in_loops() -> None:
    def f(x: Any, y: Any) -> Any:
        s = State(x, y)
        for i in range(10):
            for j in range(5):
                s = State(s.x * 0.9 + 0.01 * j, s.v + s.x)
            s = State(s.x - i, s.v * 0.1)
        return s

    rolled(f, X, Y)


def test_arrays_that_names_share_are_not_written_to_afterwards() -> None:
    def f(x: Any, y: Any) -> Any:
        best, z, least = x, x, np.inf
        for i in range(20):
            z = z * 0.9 + y[i]
            if (z * z).sum() < least:
                best, least = z, (z * z).sum()
        result = best + z
        z[0] = 5
        return result, best, z

    assert compare(f, X, Y)


def test_whether_arrays_share_memory_that_data_select() -> None:
    def f(x: Any, y: Any) -> Any:
        w = x
        for i in range(20):
            if y[i] > 0.5:
                w = x * 2
        return np.shares_memory(x, w), np.may_share_memory(w, x)

    for y in (Y, np.zeros(30)):
        assert compare(f, X, y)


def test_integers_that_are_computed_from_others() -> None:
    def f(x: Any, y: Any) -> Any:
        count, best = 0, 0
        for i in range(20):
            new = count + 1
            if y[i] > x[i]:
                best = new
            count = new if y[i] > 0 else 0
        return best, count

    rolled(f, X, Y)


class Log:
    def __init__(self) -> None:
        self.losses: list[Any] = []
        self.parts: dict[str, list[Any]] = {"x": [], "y": []}

    def note(self, value: Any) -> None:
        self.losses.append(value)
        self.parts["x"].append(value * 2)


def test_lists_of_objects_dicts_and_closures_are_appended_to() -> None:
    def f(x: Any) -> Any:
        log, rows, seen, more = Log(), {"a": [], "b": [1.0]}, [], []
        columns: Any = [[], []]

        def visit(value: Any) -> None:
            seen.append(value)

        for i in range(len(x)):
            log.note(x[i])
            log.parts["y"].append(x[i] * x[i])
            rows["a"].append(x[i] + 1)
            rows["b"].append(float(x[i]))
            columns[1].append(x[i])
            visit(x[i] * 3)
            more += [x[i], x[i] * 2]
        return log.losses, log.parts, rows, seen, np.array(more), columns

    rolled(f, X)


def test_lists_of_arguments_are_appended_to() -> None:
    def f(x: Any, log: Any, rows: Any) -> Any:
        for value in x:
            log.losses.append(value)
            rows["a"].append(value)
        return len(log.losses), len(rows["a"])

    compare(f, X, Log(), {"a": [1.0]})


def test_lists_that_are_read_and_appended_to() -> None:
    def of_object(x: Any) -> Any:
        log = Log()
        for value in x:
            log.note(value + len(log.losses))
        return log.losses

    def of_dict(x: Any) -> Any:
        rows = {"a": [0.0], "b": [0.0]}
        for value in x:
            rows["a"].append(value + rows["b"][-1])
        return rows

    def of_two_names(x: Any) -> Any:
        log = Log()
        losses = log.losses
        for value in x:
            log.losses.append(value)
            losses.append(value * 2)
        return losses

    def of_arrays(x: Any) -> Any:
        out: Any = []
        out = x[:1] * 1
        for _ in range(8):
            out += [x[0]]
        return out

    for f in (of_object, of_dict, of_two_names, of_arrays):
        assert compare(f, X)
