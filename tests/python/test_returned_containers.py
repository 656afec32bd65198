"""Lists, dicts and dataclasses that a function returns and has not made are the caller's own."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

LAYERS = [np.ones(2), np.zeros(2)]
OPTIONS = {"rate": 0.5}


@dataclasses.dataclass
class Record:
    a: Any
    past: Any
    n: int = 0


class Pair(NamedTuple):
    a: Any
    b: Any


class Model:
    def __init__(self) -> None:
        self.layers = [np.ones(2), np.zeros(2)]
        self.state = {"mean": np.ones(2), "parts": [np.ones(2)]}
        self.names = ["a", "b"]
        self.record = Record(np.ones(2), [1.0])


def attribute(model: Any, given: Any, x: Any) -> Any:
    return model.layers


def attributes(model: Any, given: Any, x: Any) -> Any:
    return {"state": model.state, "more": [model.layers, x + 1]}, model.names, (model.state, 1)


def part_of_attribute(model: Any, given: Any, x: Any) -> Any:
    return model.state["parts"], x + model.state["mean"]


def captured(model: Any, given: Any, x: Any) -> Any:
    return LAYERS, OPTIONS, x * OPTIONS["rate"] + LAYERS[0]


def argument(model: Any, given: Any, x: Any) -> Any:
    return given


def beside_results(model: Any, given: Any, x: Any) -> Any:
    return given, given["list"], x + given["list"][0], {"x": x[1:], "again": given}


def changed(model: Any, given: Any, x: Any) -> Any:
    given["list"][0] = x + 1
    given["new"] = x * 2
    return given["list"], x * 3, given


def state_changed(model: Any, given: Any, x: Any) -> Any:
    model.state["mean"] = model.state["mean"] * 0.5 + x
    return model.state, x * 3, model.layers


def one_of_two(model: Any, given: Any, x: Any) -> Any:
    return model.layers if x[0] > 0 else (given, x)


def in_segments(model: Any, given: Any, x: Any) -> Any:
    return model.layers, given, float(x[0])


def records(model: Any, given: Any, x: Any) -> Any:
    record = given["record"]
    return record, record.past, x + record.a, {"own": model.record}


def in_made_objects(model: Any, given: Any, x: Any) -> Any:
    new = Record(x + 1, given["list"])
    pair = Pair(model.layers, collections.OrderedDict(a=new, b=given))
    return new, pair, collections.deque([model.state, new, x * 2])


def made(model: Any, given: Any, x: Any) -> Any:
    return [*model.layers], {**given}, given["list"][:], dict(OPTIONS)


def plain(result: Any) -> Any:
    """With dicts instead of records."""
    if isinstance(result, Record):
        result = vars(result)
    if isinstance(result, dict):
        return {key: plain(x) for key, x in result.items()}
    if isinstance(result, (list, tuple, collections.deque)):
        return [type(result).__name__, *map(plain, result)]
    return result


def lists(result: Any) -> list[Any]:
    found = [result] if isinstance(result, (list, dict, Record)) else []
    if isinstance(result, Record):
        result = vars(result)
    if isinstance(result, (list, tuple, dict, collections.deque)):
        for x in result.values() if isinstance(result, dict) else result:
            found += lists(x)
    return found


@pytest.mark.parametrize(
    "function",
    [
        attribute,
        attributes,
        part_of_attribute,
        captured,
        argument,
        beside_results,
        changed,
        state_changed,
        one_of_two,
        in_segments,
        records,
        in_made_objects,
        made,
    ],
)
def test_functions(function: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(function, fallback="silent")

    def outcome(f: Callable[..., Any], model: Model, sign: float) -> Any:
        x = np.array([sign, 2.0])
        given = {"list": [np.ones(2), 3.0], "y": np.zeros(2), "record": Record(np.ones(2), [x])}
        result = f(model, given, x)
        known = [*lists(vars(model)), *lists(given), LAYERS, OPTIONS]
        same = [[x is y for y in known] for x in lists(result)]
        return plain(result), same, plain(given), plain(vars(model))

    theirs, ours = Model(), Model()
    for sign in (1, 2, 3, -1, -2, 4):
        assert_matches(outcome(jitted, ours, sign), outcome(function, theirs, sign))


def test_one_program() -> None:
    def step(params: Any, x: Any) -> Any:
        return params, x @ params["w"]

    jitted = rune_jit.jit(step, fallback="error")
    params = {"w": np.ones((3, 3))}
    for _ in range(3):
        same, y = jitted(params, np.ones(3))
        assert same is params
        np.testing.assert_array_equal(y, [3.0] * 3)


@pytest.mark.parametrize(
    "held",
    [
        collections.deque([1.0], 4),
        collections.OrderedDict(a=np.ones(3)),
        collections.defaultdict(list, a=[1.0]),
    ],
)
def test_queues_and_dicts_that_are_arguments(held: Any) -> None:
    jitted = rune_jit.jit(lambda held, x: (held, [held], x * 2))
    for _ in range(3):
        whole, (part,), _ = jitted(held, np.ones(3))
        assert whole is held and part is held
