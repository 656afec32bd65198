"""Loops that append structures to lists, and values to lists in objects, dicts and closures."""

from __future__ import annotations

from typing import Any

import numpy as np
from loop_structures import Pair, State, X, compare, rolled


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
