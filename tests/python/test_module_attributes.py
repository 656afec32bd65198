"""Functions that assign variables of other modules of the user's, by the module: `config.n += 1`.
The module's own functions assign and read the same variables."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

config: Any = types.ModuleType("config_of_a_test")
exec(
    "n = 0\nlast = None\n"
    "def get(): return n\n"
    "def bump():\n    global n\n    n += 1\n    return n\n",
    vars(config),
)
sys.modules[config.__name__] = config


def counts(x: Any) -> Any:
    config.n += 1
    return x * config.n


def stores(x: Any) -> Any:
    config.n = config.n + x.sum()
    config.last = x * config.n
    config.last[0] = 5
    return config.last, x


def by_functions(x: Any) -> Any:
    config.bump()
    config.n += 1
    return x * config.get(), config.bump(), config.n


def in_a_loop(x: Any) -> Any:
    for i in range(len(x)):
        config.n = config.n + x[i]
    return config.n


def counts_in_a_loop(x: Any) -> Any:
    y = 0
    for _ in range(len(x)):
        config.n += 1
        config.bump()
        y += config.get()
    return y, x * config.n


def under_a_condition(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 3:
            config.n += x[i]
        else:
            config.n -= 1
    return config.n


def of_two_ways(x: Any) -> Any:
    if x[0] > 2:
        config.n += 1
    else:
        config.n -= 5
    return config.n


def until(x: Any) -> Any:
    i = 0
    while config.n < 100 and i < 20:
        config.n += x[i]
        i += 1
    return config.n, i


def in_segments(x: Any) -> Any:
    for i in range(len(x)):
        config.n += x[i]
    config.last = x * 2
    return config.n, x.tolist()


def by_text(x: Any) -> Any:
    config.n = config.n + 1
    config.fresh = getattr(config, "fresh", 0) + 1
    return x * config.n, config.fresh, hasattr(config, "absent")


def by_sys_modules(x: Any) -> Any:
    held = sys.modules[config.__name__]
    held.n = getattr(held, "n", 0) + 1
    setattr(held, "last", x * held.n)  # noqa: B010
    return config.last + 1, held.n, "absent" in sys.modules, sys.modules.get(np.__name__).sum(x)


def by_sys_modules_in_segments(x: Any) -> Any:
    sys.modules.get(config.__name__).last = x * float(x.sum())
    return config.last


def by_import_module(x: Any) -> Any:
    held = importlib.import_module(config.__name__)
    held.last = x if held.last is None else held.last + x
    return config.last


@pytest.mark.parametrize(
    "function",
    [
        *(by_sys_modules, by_sys_modules_in_segments, by_import_module),
        *(counts, stores, by_functions, in_a_loop, counts_in_a_loop, under_a_condition),
        *(of_two_ways, until, in_segments, by_text),
    ],
)
def test_variables_of_a_module(function: Callable[..., Any]) -> None:
    outcomes = []
    for f in (function, rune_jit.jit(function, fallback="silent")):
        config.n, config.last = 0, None
        vars(config).pop("fresh", None)
        calls = [f(np.full(30, float(i))) for i in range(1, 6)]
        last = None if config.last is None else config.last.copy()
        outcomes.append((calls, config.n, last, getattr(config, "fresh", None)))
    assert_matches(outcomes[1], outcomes[0])


def test_a_counter_in_a_module_is_one_program() -> None:
    config.n = 0
    jitted = rune_jit.jit(counts)
    for i in range(4):
        np.testing.assert_array_equal(jitted(np.ones(3)), [i + 1.0] * 3)
    assert "as one program" in jitted.explain()


class Scaling(types.ModuleType):
    factor: float

    def __call__(self, x: Any) -> Any:
        return np.sin(x) * self.factor


scaling = Scaling("scaling_of_a_test")
scaling.factor = 2.0
sys.modules[scaling.__name__] = scaling


def calls_module(x: Any) -> Any:
    return scaling(x) + callable(scaling) + callable(config)


def calls_module_after_value(x: Any) -> Any:
    return scaling(x) * len(x.tolist())


def calls_module_in_a_loop(x: Any) -> Any:
    for i in range(20):
        x = 0.1 * scaling(x) + i
    return x, list(map(scaling, [x, x + 1]))


@pytest.mark.parametrize(
    "f", [calls_module, calls_module_after_value, calls_module_in_a_loop], ids=lambda f: f.__name__
)
def test_module_that_can_be_called(f: Callable[..., Any], monkeypatch: Any) -> None:
    jitted = rune_jit.jit(f)
    for factor in (2.0, 3.0, 4.0):
        monkeypatch.setattr(scaling, "factor", factor)
        x = np.arange(3.0) + factor
        assert_matches(jitted(x), f(x))
    assert "on NumPy" not in jitted.explain()


def calls_usual_module(x: Any) -> Any:
    return config(x * len(x.tolist()))


def test_call_of_a_module_without_call() -> None:
    for f in (calls_usual_module, rune_jit.jit(calls_usual_module)):
        with pytest.raises(TypeError, match=r"^'module' object is not callable$"):
            f(np.ones(3))
