"""State outside of a function that changes from call to call, and what functions return of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from state_checks import never_on_numpy, outcome, random, state_of

import rune_jit

__all__ = ["never_on_numpy"]  # a fixture of all tests here


def test_a_list_that_is_returned_as_it_was_is_the_same_list() -> None:
    def clip(gradients: list[np.ndarray], limit: float) -> list[np.ndarray]:
        total = np.sqrt(sum((g**2).sum() for g in gradients))
        if total > limit:
            return [g * (limit / total) for g in gradients]
        return gradients

    jitted = rune_jit.jit(clip)
    for scale in (1.0, 0.1, 2.0, 0.01, 0.5):
        gradients = [np.full(3, scale), np.full((2, 2), -scale)]
        expected = clip(gradients, 1.0)
        result = jitted(gradients, 1.0)
        assert (result is gradients) == (expected is gradients)
        for ours, theirs in zip(result, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-14)


rate, count = 0.5, 1
settings = {"rate": 0.5, "name": "a"}


class Scheduled:
    def __init__(self) -> None:
        self.rate, self.weights = 0.5, np.zeros(3)

    def step(this, gradient: np.ndarray) -> Any:
        this.weights -= this.rate * gradient
        return this.weights.sum()


def _with_global(x: np.ndarray) -> Any:
    return x * rate + count


def _with_dict(x: np.ndarray) -> Any:
    return x * settings["rate"] if settings["name"] == "a" else x


def _with_condition(x: np.ndarray) -> Any:
    return x if rate > 3 else -x * rate


@pytest.mark.parametrize("function", [_with_global, _with_dict, _with_condition])
def test_numbers_outside_that_differ_at_each_call(function: Callable[..., Any]) -> None:
    global rate, count
    jitted = rune_jit.jit(function)
    x = np.arange(200.0)
    for i in range(12):
        rate, count = 0.5 * i, i
        settings["rate"] = 0.25 * i
        np.testing.assert_array_equal(jitted(x), function(x))
    assert jitted.cache_info().misses <= (16 if function is _with_condition else 3)
    rate = np.float32(2)  # type: ignore[assignment]
    settings["name"] = "b"
    result, expected = jitted(x), function(x)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_numbers_of_variables_and_objects_that_differ_at_each_call() -> None:
    offset = 0.0

    def shifted(x: np.ndarray) -> np.ndarray:
        return x + offset

    moved, stepped = rune_jit.jit(shifted), rune_jit.jit(Scheduled.step)
    ours, theirs = Scheduled(), Scheduled()
    x = np.arange(3.0)
    for i in range(8):
        offset = 0.5 * i
        ours.rate = theirs.rate = 0.1 * i
        np.testing.assert_array_equal(moved(x), shifted(x))
        np.testing.assert_allclose(stepped(ours, x), theirs.step(x), rtol=1e-15)
        np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-15)
    assert moved.cache_info().misses == stepped.cache_info().misses == 3


def test_programs_end_where_what_is_outside_always_differs() -> None:
    global count

    def repeated(x: np.ndarray) -> Any:
        return sum(x * k for k in range(count))

    jitted = rune_jit.jit(repeated)
    for i in range(1, 30):
        count = i
        np.testing.assert_allclose(jitted(np.ones(3)), repeated(np.ones(3)))
    assert jitted.cache_info().misses < 20
    assert "what it reads outside differs" in jitted.explain() or "on NumPy" in jitted.explain()


class Logged:
    def __init__(self) -> None:
        self.mean, self.log = np.zeros(3), []  # type: ignore[var-annotated]

    def update(this, x: np.ndarray) -> np.ndarray:
        this.mean = this.mean * 0.5 + x
        if this.mean.sum() > 3:
            this.log.append(float(this.mean.sum()))
        return this.mean.copy()

    def note(this, x: np.ndarray) -> np.ndarray:
        this.mean = this.mean * 0.5 + x
        this.log.append(1)
        return this.mean.copy()


@pytest.mark.parametrize("method", [Logged.update, Logged.note])
def test_lists_of_objects_that_grow(method: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(method)
    ours, theirs = Logged(), Logged()
    for i in range(8):
        x = np.full(3, float(i % 4))
        np.testing.assert_array_equal(jitted(ours, x), method(theirs, x))
        assert ours.log == theirs.log


class _Scaled:
    """Counts its calls, and only reads its array."""

    def __init__(self) -> None:
        self.factors = np.arange(3.0)
        self.count = 0
        self.rate = 1.0

    def step(self, x: Any) -> Any:
        self.count += 1
        self.rate *= 0.5
        return self.rate * self.factors * x

    def size(self) -> Any:
        return (self.factors**2).sum() * self.rate


def test_methods_assign_numbers_of_objects_that_hold_arrays() -> None:
    step, theirs, ours = rune_jit.jit(_Scaled.step), _Scaled(), _Scaled()
    for i in range(7):
        assert_matches(step(ours, random(i, 3)), theirs.step(random(i, 3)))
        assert_matches(state_of(ours), state_of(theirs))
    assert "one program" in step.explain()


def test_what_is_assigned_elsewhere_is_an_argument() -> None:
    size, ours = rune_jit.jit(_Scaled.size), _Scaled()
    for i in range(20):
        assert_matches(size(ours), _Scaled.size(ours))
        ours.factors, ours.rate = random(i, 3), ours.rate / 2
    assert size.cache_info().misses <= 4
    assert "one program" in size.explain()


def test_what_changes_at_each_call_and_is_no_argument_makes_no_program_each() -> None:
    class Named:
        name = ""
        factors = np.arange(3.0)

        def size(self) -> Any:
            return self.factors.sum() + len(self.name)

    size, ours = rune_jit.jit(Named.size), Named()
    for i in range(30):
        assert_matches(size(ours), Named.size(ours))
        ours.name = "a" * i
    assert size.cache_info().misses < 16


def test_objects_of_which_each_is_used_little_run_on_numpy() -> None:
    size = rune_jit.jit(_Scaled.size)
    for i in range(200):
        scaled = _Scaled()
        scaled.rate = float(i)  # which is no argument, so each has a program of its own
        assert_matches(size(scaled), _Scaled.size(scaled))
    assert size.cache_info().misses <= 40
    assert "most of its programs serve one call" in size.explain()
    for _ in range(600):  # this one is used much
        assert_matches(size(scaled), _Scaled.size(scaled))
    assert "one program" in size.explain().splitlines()[-1]


class _Checked:
    """An object without arrays, whose methods ask what they are given."""

    def by_isinstance(self, x: Any) -> Any:
        return self._doubled(x)

    def _doubled(self, x: Any) -> Any:
        return x * 2 if isinstance(x, np.ndarray) else x * 3

    def by_pattern(self, x: Any) -> Any:
        return self._matched(x)

    def _matched(self, x: Any) -> Any:
        match x:
            case np.ndarray():
                return x * 2
        return x * 3

    def by_type(self, x: Any) -> Any:
        return self._compared(x)

    def _compared(self, x: Any) -> Any:
        return x * 2 if type(x) is np.ndarray else x * 3

    def in_segments(self, x: Any) -> Any:
        print(x.sum())
        return self._doubled(x + 1)


@pytest.mark.parametrize("name", ["by_isinstance", "by_pattern", "by_type", "in_segments"])
def test_methods_of_objects_without_arrays_know_arrays(name: str) -> None:
    method = getattr(_Checked, name)
    jitted = rune_jit.jit(method, fallback="silent")
    for i in range(4):
        assert_matches(jitted(_Checked(), random(i, 3)), method(_Checked(), random(i, 3)))


_scale = np.arange(3.0)


def _scaled_sum(x: Any) -> Any:
    return (_scale * x).sum()


def _over_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    def over_rows(rows: Any) -> Any:
        return np.array([function(row) for row in rows])

    return over_rows


def _shifted(by: Any) -> Callable[..., Any]:
    def shifted(x: Any) -> Any:
        return _scaled_sum(x) + by.sum()

    return shifted


def test_functions_that_are_returned_read_globals_as_they_are() -> None:
    global _scale
    over_rows, shifted = rune_jit.jit(_over_rows), rune_jit.jit(_shifted)
    for i in range(6):
        rows, by = random(i, 2, 3), random(i + 9, 4)
        pairs = [(over_rows(_scaled_sum), _over_rows(_scaled_sum), rows)]
        pairs.append((shifted(by), _shifted(by), rows[0]))
        for made, wanted, x in pairs:
            assert_matches(made(x), wanted(x))
            _scale = _scale + 1
            assert_matches(made(x), wanted(x))


class _Filter:
    def __init__(self, order: int = 2) -> None:
        self.order, self.calls, self.mean = order, 0, np.zeros(3)

    def step(self, x: Any) -> Any:
        self.calls += 1
        self.mean = 0.5 * self.mean + x * self.order
        return self.mean / self.calls


def test_what_changes_between_calls_with_known_programs() -> None:
    """Calls like the last one with state take a shorter way, those after a change do not."""

    def replace(f: Any) -> None:
        f.mean = f.mean.astype(np.float32)

    changes: list[Callable[[Any], None]] = [
        lambda f: setattr(f, "order", 3),
        lambda f: setattr(f, "mean", np.ones((2, 3))),
        lambda f: setattr(f, "mean", 2),
        lambda f: setattr(f, "calls", 10**30),
        lambda f: setattr(f, "calls", True),
        lambda f: setattr(f, "calls", 1.5),
        lambda f: setattr(f, "mean", None),
        lambda f: delattr(f, "mean"),
        lambda f: setattr(f, "extra", 1),
        replace,
    ]
    for change in changes:
        jitted = rune_jit.jit(_Filter.step)
        ours, theirs = _Filter(), _Filter()
        for i in range(16):
            if i == 10:
                change(ours), change(theirs)
            x = random(i, 3)
            found = outcome(jitted, (ours, x.copy()))
            wanted = outcome(_Filter.step, (theirs, x))
            assert_matches(found, wanted)
            assert_matches(state_of(ours), state_of(theirs))


def test_known_programs_of_two_objects_and_shapes() -> None:
    jitted = rune_jit.jit(_Filter.step)
    ours, theirs = [_Filter(), _Filter()], [_Filter(), _Filter()]
    for i in range(40):
        shape = (2, 3) if i > 30 else (3,)
        x = random(i, *shape)
        assert_matches(jitted(ours[i % 2], x), theirs[i % 2].step(x))
        assert_matches(state_of(ours[i % 2]), state_of(theirs[i % 2]))


def test_a_new_attribute_that_is_none() -> None:
    class Holder:
        def __init__(self) -> None:
            self.weights = np.ones(3)

    def step(f: Any, x: Any) -> Any:
        f.last = None
        return x * f.weights

    jitted = rune_jit.jit(step)
    for i in range(4):
        f = Holder()
        for _ in range(1 + i % 2):
            assert_matches(jitted(f, random(i, 3)), random(i, 3))
            assert vars(f)["last"] is None


class _Ordered:
    def __init__(self) -> None:
        self.a, self.b, self.c = np.ones(3), 2.0, np.zeros(3)

    def assigns_the_same(self, x: Any) -> Any:
        a = self.a
        del self.a
        self.a = a
        return x * 2

    def pops(self, x: Any) -> Any:
        b = self.__dict__.pop("b")
        self.d = x
        self.b = b + 1
        return x

    def tells(self, x: Any) -> Any:
        del self.b
        self.b = self.c + x
        self.c = self.b * 2
        return list(vars(self)), self.c + x


_TABLES = [{"a": np.ones(3), "b": 1.0, "c": 2} for _ in range(2)]


@pytest.mark.parametrize("name", ["assigns_the_same", "pops", "tells"])
def test_the_order_of_attributes_that_are_deleted_and_assigned(name: str) -> None:
    ours, theirs = _Ordered(), _Ordered()
    jitted = rune_jit.jit(getattr(_Ordered, name))
    for i in range(4):
        x = random(i, 3)
        assert_matches(jitted(ours, x), getattr(theirs, name)(x))
        assert list(vars(ours)) == list(vars(theirs))
        assert_matches(vars(ours), vars(theirs))


def test_the_order_of_keys_that_are_deleted_and_assigned() -> None:
    def move(x: Any, table: Any) -> Any:
        a = table.pop("a")
        table["a"] = a
        return x * 2 + a

    jitted = rune_jit.jit(lambda x: move(x, _TABLES[0]))
    for i in range(3):
        x = random(i, 3)
        assert_matches(jitted(x), move(x, _TABLES[1]))
        assert list(_TABLES[0]) == list(_TABLES[1])
