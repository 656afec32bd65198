"""Effects of what Python calls itself, special methods and properties, and of methods of objects
without arrays: they happen at each call, once."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit


class Noisy:
    """Says what Python calls."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __add__(self, other: Any) -> Any:
        print("add")
        return self.a + other

    def __neg__(self) -> Any:
        warnings.warn("negative", stacklevel=1)
        return -self.a

    def __len__(self) -> int:
        sys.stdout.write("len")
        return len(self.a)

    def __getitem__(self, i: Any) -> Any:
        print("item", i)
        return self.a[i]

    def __iter__(self) -> Any:
        print("iter")
        return iter(self.a)

    def __contains__(self, x: Any) -> bool:
        print("contains")
        return x == 1.0

    def __bool__(self) -> bool:
        print("bool")
        return True

    def __call__(self, x: Any) -> Any:
        print("call")
        return self.a + x

    def __lt__(self, other: Any) -> bool:
        print("less")
        return True

    def __enter__(self) -> Any:
        print("enter")
        return self

    def __exit__(self, *what: object) -> None:
        print("exit")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        print("array")
        return self.a

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        print("attribute", name)
        return 3.0

    @property
    def doubled(self) -> Any:
        print("property")
        return self.a * 2

    @functools.cached_property
    def once(self) -> Any:
        print("once")
        return self.a * 2


class Watched:
    def __setattr__(self, name: str, value: Any) -> None:
        print("set", name)
        object.__setattr__(self, name, value)


class Printer:
    """Has no arrays."""

    def show(self, x: Any) -> Any:
        print("shown")
        return x + 1

    def log(self, x: Any) -> Any:
        sys.stdout.write("logged")
        return x + 1


def sets(v: Any) -> Any:
    held = Watched()
    held.b = v.a + 1
    return held.b


def within(v: Any) -> Any:
    with v as w:
        return w.a + 1


USES: dict[str, Callable[[Any], Any]] = {
    "+": lambda v: v + 1,
    "-": lambda v: -v,
    "len": lambda v: v.a * len(v),
    "[]": lambda v: v[0] + v[1],
    "iter": lambda v: [x + 1 for x in v],
    "in": lambda v: (1.0 in v, v.a + 1),
    "bool": lambda v: v.a + 1 if v else v.a,
    "()": lambda v: v(2.0),
    "sorted": lambda v: sorted([v, v])[0].a + 1,
    "array": lambda v: np.sin(v),
    "getattr": lambda v: v.other * v.a,
    "property": lambda v: v.doubled + 1,
    "cached property": lambda v: v.once + 1,
    "setattr": sets,
    "with": within,
    "method": lambda v: Printer().show(v.a),
    "stream": lambda v: Printer().log(v.a),
}


@pytest.mark.parametrize("name", USES)
def test_effects(name: str) -> None:
    def outcomes(function: Callable[[Any], Any]) -> Any:
        v, found = Noisy(np.arange(3.0)), []
        for _ in range(4):
            said = io.StringIO()
            with contextlib.redirect_stdout(said), warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                result = function(v)
            own = [str(w.message) for w in warned if w.category is UserWarning]
            found.append((result, said.getvalue(), own))
        return found

    assert_matches(outcomes(rune_jit.jit(USES[name])), outcomes(USES[name]))


class Clock:
    @property
    def now(self) -> float:
        return time.perf_counter()

    def __call__(self) -> float:
        return perf_counter()


@pytest.mark.parametrize("read", [lambda clock: clock.now, lambda clock: clock()])
def test_clocks(read: Callable[[Any], float]) -> None:
    clock = Clock()
    jitted = rune_jit.jit(lambda x: x + read(clock))
    times = [jitted(np.zeros(2))[0] for _ in range(4)]
    assert times == sorted(set(times))


def test_functions_are_pythons_again() -> None:
    real = print, warnings.warn, time.time
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for use in ("+", "-", "property"):
            rune_jit.jit(USES[use])(Noisy(np.arange(3.0)))
    assert (print, warnings.warn, time.time) == real


def test_generators_that_spawn() -> None:
    def draw(generator: Any, x: Any) -> Any:
        return x + generator.spawn(1)[0].random()

    theirs, ours = np.random.default_rng(5), np.random.default_rng(5)
    jitted = rune_jit.jit(lambda x: draw(ours, x))
    for _ in range(4):
        np.testing.assert_array_equal(jitted(np.zeros(2)), draw(theirs, np.zeros(2)))


def test_what_exceptions_hold() -> None:
    class Error(Exception):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.worst = args[-1]

    def check(x: Any) -> None:
        try:
            raise KeyError("sum", x.sum())
        except KeyError as error:
            raise Error(x[:2], x.max()) from error

    jitted = rune_jit.jit(check)
    x = np.arange(3.0)
    for _ in range(3):
        with pytest.raises(Error) as raised:
            jitted(x)
        error = raised.value
        assert_matches((error.args, error.worst), ((x[:2], np.float64(2)), np.float64(2)))
        assert_matches(error.__cause__.args, ("sum", np.float64(3)))  # type: ignore[union-attr]


class Inverting:
    def __init__(self, size):
        self.inverse, self.total = np.linalg.inv, np.sum
        self.matrix = np.eye(size)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_objects_that_hold_functions_of_numpy(copied):
    def f(x):
        held, states = Inverting(2), []
        for shift in x:
            held.matrix = held.inverse(held.matrix + shift.item())
            states.append(copied(held.__dict__))
        return [state["matrix"] for state in states], states[-1]["total"](x)

    jitted = rune_jit.jit(f)
    for x in (np.arange(3.0), np.arange(1.0, 4.0)):
        for found, expected in zip(jitted(x), f(x), strict=True):
            np.testing.assert_allclose(found, expected)


class Named:
    def __init__(self, name, value):
        self.name, self.value = name, value

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


def test_objects_with_a_hash_and_an_equality_are_keys():
    def f(x):
        weights = {Named(name, x[0]): i for i, name in enumerate("abca")}
        return [(key.name, key.value + i) for key, i in weights.items()], x.sum().item()

    jitted = rune_jit.jit(f)
    for x in (np.arange(3.0), np.arange(1.0, 4.0)):
        assert jitted(x) == f(x)
