"""Loops whose iterations put lists, dicts, named tuples and objects in the place of others."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from loop_structures import Body, Frozen, Orbit, Pair, State, X, Y, compare, rolled, unrolled

import rune_jit


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
