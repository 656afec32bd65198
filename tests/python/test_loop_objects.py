"""Loops that assign attributes of objects and items of lists and dicts: loops of the program carry
what these hold."""

from __future__ import annotations

import abc
import copy
import io
import logging
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pytest
from compare import assert_same
from loop_checks import ROLLED

import rune_jit
from rune_jit.calls.trial import Trial

Value = TypeVar("Value")
ROWS = np.random.default_rng(0).normal(size=(40, 3))


class Filter:
    """What people write: a state, a covariance, counters."""

    def __init__(self) -> None:
        self.x, self.p = np.zeros(3), np.eye(3)
        self.count, self.total, self.last = 0, 0.0, None
        self.has_failed = False
        self.history = np.zeros((60, 3))

    def predict(self) -> None:
        self.p = 0.9 * self.p + 0.1 * np.eye(3)

    def gain(self) -> Any:
        return self.p @ np.linalg.inv(self.p + np.eye(3))

    def update(self, z: Any) -> Any:
        k = self.gain()
        self.x = self.x + k @ (z - self.x)
        self.p = self.p - k @ self.p
        self.count += 1
        self.total += -0.5 * float(z @ z)
        return self.x

    def update_if(self, z: Any) -> None:
        if z.sum() > 0:
            self.count += 1
            self.x = self.x + z
        else:
            self.total += z[0]
        if self.total < -2:
            self.total = 0.0

    def difference(self, z: Any) -> None:
        d = z * 0 if self.last is None else z - self.last
        self.last = z.copy()
        self.total += float(d @ d)

    def in_place(self, z: Any) -> None:
        self.x += z
        self.p = self.p * 0.9
        self.p += np.outer(z, z)
        self.history[self.count % 60] = self.x
        self.count += 1

    def keep(self, z: Any) -> None:
        self.last = z

    def __call__(self, z: Any) -> Any:
        self.x = self.x * 0.5 + z
        return self.x.sum()

    def __getitem__(self, i: int) -> Any:
        return self.x[i]

    @property
    def doubled(self) -> Any:
        return self.total

    @doubled.setter
    def doubled(self, value: Any) -> None:
        self.total = value * 2
        self.count += 1


def filters(f: Any, rows: Any) -> Any:
    found = []
    for z in rows:
        f.predict()
        f.update(z)
        found.append(f.x.copy())
    return np.array(found)


def under_conditions(f: Any, rows: Any) -> Any:
    for z in rows:
        f.update_if(z)
    return f.x, f.total


def first_is_none(f: Any, rows: Any) -> Any:
    for z in rows:
        f.difference(z)
    return f.total


def in_place(f: Any, rows: Any) -> Any:
    before = f.p
    for z in rows:
        f.in_place(z)
    return before, f.p


def made_in_the_loop(f: Any, rows: Any) -> Any:
    for z in rows:
        f.extra = z * 2
        f.x = f.x + f.extra
    return f.extra


def called(f: Any, rows: Any) -> Any:
    total = 0.0
    for z in rows:
        total += f(z) + f[1]
        f.doubled = f.doubled + z[0]
    return total, f.doubled


def other_names(f: Any, rows: Any) -> Any:
    same, first = f, f.x
    for z in rows:
        before = f.x
        f.update(z)
        same.update(-z)
        f.total += np.abs(f.x - before).sum()
    first += 1
    return first, before, same.x


def exchanged(f: Any, rows: Any) -> Any:
    f.a, f.b = np.ones(3), np.arange(3.0)
    for z in rows:
        f.a, f.b = f.b, f.a * 0.5 + f.b * 0.5 + z
    return f.a, f.b


def broken(f: Any, rows: Any) -> Any:
    for z in rows:
        f.x = f.x + z
        if f.x.sum() > 3:
            f.has_failed = True
            break
    else:
        f.total = -1.0
    return f.total


def returned(f: Any, rows: Any) -> Any:
    for i in range(len(rows)):
        f.x = f.x + rows[i]
        f.count += 1
        if f.x[0] > 2:
            f.total = 7.0
            return i
    return -1


def until(f: Any, rows: Any) -> Any:
    i = 0
    while f.count < 30 and np.abs(f.x).max() < 5:
        f.x = f.x + rows[i]
        f.count += 1
        i += 1
    return i


def raised(f: Any, rows: Any) -> Any:
    for z in rows:
        f.x = f.x + z
        f.count += 1
        if f.x.sum() < -4:
            raise ValueError("low")
    return f.x


def other_types(f: Any, rows: Any) -> Any:
    f.count = 0
    for z in rows:
        f.count = f.count + z[0]
        f.total = f.count * 2
    return f.count


def of_a_list(f: Any, rows: Any) -> Any:
    other = Filter()
    both = [f, other]
    for z in rows:
        for one in both:
            one(z)
        other(-z)
    return [one.x for one in both]


def made_inside(f: Any, rows: Any) -> Any:
    mine = Filter()
    for z in rows:
        mine(z)
        mine.doubled = z[0]
    return mine.x, mine.count


def items(f: Any, rows: Any) -> Any:
    state, sums = [np.zeros(3), 0.0, [1.0, np.ones(3)]], {}
    velocity = {"a": np.zeros(3), "b": np.zeros((3, 3))}
    for z in rows:
        state[0] = state[0] + z
        state[1] += z[0]
        state[2][1] = state[2][1] * 0.9
        sums["s"] = sums.get("s", 0.0) + z.sum()
        gradient = {"a": z, "b": np.outer(z, z)}
        for key, value in velocity.items():
            velocity[key] = 0.9 * value - gradient[key]
    return state, sums, velocity


def items_under_conditions(f: Any, rows: Any) -> Any:
    found = np.zeros(len(rows))
    for i in range(len(rows)):
        mine = {"k": 0.0}
        if rows[i, 0] > 0:
            mine["k"] = 1.0
        found[i] = mine["k"]
    return found


PROGRAMS = (
    *(filters, under_conditions, first_is_none, in_place, made_in_the_loop, called, other_names),
    *(exchanged, broken, returned, until, raised, other_types, of_a_list, made_inside, items),
    items_under_conditions,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("is_kept", (False, True))
def test_attributes_and_items(
    program: Callable[..., Any], is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    lines = compare(program, is_kept)
    loops = [line for line in lines if line.startswith("loop at")]
    # (Loops over a few objects are unrolled.)
    assert loops and all(line.endswith(ROLLED) for line in loops), lines


def views(f: Any, rows: Any) -> Any:
    for z in rows:
        f.keep(z)
        f.x = f.x + z
    return f.last


def of_classes(f: Any, rows: Any) -> Any:
    for z in rows:
        type(f).steps = getattr(type(f), "steps", 0) + 1
        f.x = f.x + z
    steps = type(f).steps
    del type(f).steps
    return steps


def of_functions(f: Any, rows: Any) -> Any:
    doubled.calls = 0  # type: ignore[attr-defined]
    for z in rows:
        f.x = f.x + doubled(z)
    return doubled.calls  # type: ignore[attr-defined]


def doubled(z: Any) -> Any:
    doubled.calls += 1  # type: ignore[attr-defined]
    return z * 2


def appended(f: Any, rows: Any) -> Any:
    f.kept = []
    for z in rows:
        f.kept.append(f.update(z))
        f.total += len(f.kept)
    return f.kept[-1]


@pytest.mark.parametrize("program", (views, of_classes, of_functions, appended))
def test_what_runs_all_iterations(program: Callable[..., Any]) -> None:
    assert not any(line.endswith(ROLLED) for line in compare(program, False))


def compare(program: Callable[..., Any], is_kept: bool) -> list[str]:
    """Compares calls with NumPy's, with another object each or the same one; explain()'s lines."""
    jitted = rune_jit.jit(program)
    ours = theirs = Filter()
    for i in range(4):
        if i == 0 or not is_kept:
            ours, theirs = Filter(), Filter()
        rows = ROWS if i < 2 else -ROWS
        wanted, found = outcome(program, theirs, rows.copy()), outcome(jitted, ours, rows.copy())
        check(found, wanted)
        check(vars(ours), vars(theirs))
    return [line.strip() for line in jitted.explain().splitlines()]


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return copy.deepcopy(function(*args))
    except ValueError as error:
        return str(error)


def check(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted), (found, wanted)
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        check(list(found.values()), list(wanted.values()))
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for x, y in zip(found, wanted, strict=True):
            check(x, y)
    elif isinstance(wanted, (float, np.ndarray)):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    else:
        assert found == wanted


def test_attributes_that_share_an_array_after_a_loop_that_may_end_early() -> None:
    def ended(state: Filter, rows: Any, limit: float) -> None:
        for z in rows:
            state.x = state.x + z
            state.last = state.x
            if state.x.max() > limit:
                break

    jitted = rune_jit.jit(ended)
    for limit in (-9.0, 2.0, 100.0):
        states = [Filter(), Filter()]
        for state, function in zip(states, (jitted, ended), strict=True):
            function(state, ROWS, limit)
            assert state.last is state.x
        np.testing.assert_array_equal(states[0].x, states[1].x)
    assert ROLLED in jitted.explain()


class Tool:
    def __init__(self, v: Any) -> None:
        self.v, self.file = v, io.StringIO()


class WithTools:
    """An object with attributes that no loop could use."""

    def __init__(self, x: Any) -> None:
        self.w, self.count = x.copy(), 0
        self.logger, self.rng = logging.getLogger("tools"), np.random.default_rng(3)
        self.lines, self.parts = iter("ab"), [Tool(x * 2)]

    def run(self, x: Any) -> Any:
        for i in range(len(x)):
            self.w = self.w * 0.5 + x[i] * self.parts[0].v
            self.count += 1
        return self.w, self.count

    def report(self, x: Any) -> Any:
        for i in range(len(x)):
            self.w = self.w * 0.5 + x[i]
            self.parts[0].file.write(f"{i}")
        return self.w, self.parts[0].file.getvalue()

    def draw(self, x: Any) -> Any:
        for i in range(len(x)):
            self.w = self.w * 0.5 + x[i] + len(next(self.lines, ""))
        return self.w


def test_attributes_that_the_loop_does_not_use() -> None:
    def f(tools: Any, x: Any) -> Any:
        return tools.run(x)

    def in_segments(tools: Any, x: Any) -> Any:
        total = float(x.sum())
        return tools.run(x), total

    for function in (f, in_segments):
        jitted = rune_jit.jit(function)
        for x in (np.arange(30.0), np.ones(30)):
            assert_same(jitted(WithTools(x), x), function(WithTools(x), x), ulps=8, scaled=True)
        assert (
            "is a loop of the program" in jitted.explain() or "1 more of loops" in jitted.explain()
        )
        assert "is unrolled" not in jitted.explain()


@pytest.mark.parametrize("run", [WithTools.report, WithTools.draw])
def test_attributes_of_parts_that_the_loop_uses(run: Any) -> None:
    jitted = rune_jit.jit(lambda tools, x: run(tools, x), fallback="silent")
    for x in (np.arange(30.0), np.ones(30)):
        assert_same(jitted(WithTools(x), x), run(WithTools(x), x), ulps=8, scaled=True)


class Layer(abc.ABC):
    def __init__(self) -> None:
        self.w, self.count = np.full((3, 3), 0.3), 0

    @abc.abstractmethod
    def forward(self, x: Any) -> Any: ...

    @property
    @abc.abstractmethod
    def scale(self) -> Any: ...

    def run(self, rows: Any) -> Any:
        for row in rows:
            out = self.forward(row)
            self.w = self.w - 0.01 * np.outer(out - row, row)
            self.count += 1
        return self.w


class Dense(Layer):
    def forward(self, x: Any) -> Any:
        out = np.zeros(3)
        out[:] = np.tanh(self.w @ x)
        return out * self.scale

    @property
    def scale(self) -> Any:
        return self.w.shape[0] / 6


class Runs(Protocol):
    def run(self, rows: Any) -> Any: ...


class Box(Runs, Generic[Value]):
    def __init__(self) -> None:
        self.w, self.inner = np.ones(3), Dense()

    def run(self, rows: Any) -> Any:
        for row in rows:
            self.w = self.w * 0.9 + self.inner.forward(row)
        return self.w


@pytest.mark.parametrize("kind", [Dense, Box])
@pytest.mark.parametrize("in_segments", [False, True])
def test_abstract_and_generic_classes(kind: Any, in_segments: bool) -> None:
    def f(x: Any, rows: Any) -> Any:
        return x.run(rows), float(rows.sum()) if in_segments else 0.0

    jitted = rune_jit.jit(f)
    for rows in (ROWS, ROWS * 2):
        mine, theirs = kind(), kind()
        assert_same(jitted(mine, rows), f(theirs, rows), ulps=8, scaled=True)
        assert type(mine) is kind
        assert vars(mine).keys() == vars(theirs).keys()
        assert_same(mine.w, theirs.w, ulps=8, scaled=True)
    assert "is unrolled" not in jitted.explain(), jitted.explain()
    if not in_segments:
        assert jitted.explain().startswith("f: as one program")
