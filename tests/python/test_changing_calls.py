"""Functions whose calls differ in an int, a length or a structure each time: NumPy's results, and
few compilations."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit
from rune_jit.calls.function import JitFunction
from rune_jit.calls.segmented import Segmented
from rune_jit.calls.trial import Trial

X = np.linspace(-1.0, 2.0, 300)

CALLS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = {
    "a part": (lambda x, n: x[:n].sum(), lambda i: (X, 10 + i)),
    "a lag": (lambda x, n: x[n:] - x[:-n], lambda i: (X, 1 + i)),
    "a shift": (lambda x, n: np.roll(x, n), lambda i: (X, i)),
    "a size": (lambda n: np.linspace(0, 1, n) ** 2, lambda i: (2 + i,)),
    "a length": (lambda x: (x**2).sum(), lambda i: (X[: 5 + i].copy(),)),
    "a list of numbers": (lambda x: np.array(x).mean(), lambda i: ([1.0] * (2 + i),)),
    "a list of arrays": (
        lambda x: np.concatenate(x).sum(),
        lambda i: ([X[: k + 1].copy() for k in range(2 + i)],),
    ),
    "a dict": (
        lambda x: sum(x.values()),
        lambda i: ({f"a{k}": X for k in range(1 + i)},),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_call_is_new(name: str) -> None:
    function, arguments = CALLS[name]
    jitted = rune_jit.jit(function)
    for i in range(80):
        assert_matches(jitted(*arguments(i)), function(*arguments(i)))
    assert jitted.cache_info().misses <= 5
    assert all(
        e.programs.compiled <= 3
        for e in jitted._runner.known.cache.entries()
        if isinstance(e, Segmented)
    )
    # One that is called often is compiled yet.
    for _ in range(600):
        assert_matches(jitted(*arguments(3)), function(*arguments(3)))
    jitted.clear_cache()
    jitted(*arguments(3))
    assert jitted.cache_info().misses >= 6


def test_each_call_is_new_and_assigns() -> None:
    class Sum:
        def __init__(self) -> None:
            self.total, self.calls = 0.0, 0

        def add(self, x: np.ndarray) -> int:
            self.total = self.total + x.sum()
            self.calls += 1
            return self.calls

    ours, theirs = Sum(), Sum()
    add = rune_jit.jit(Sum.add)
    for i in range(80):
        assert add(ours, X[: 5 + i].copy()) == theirs.add(X[: 5 + i].copy())
        assert_matches(ours.total, theirs.total)
    assert add.cache_info().misses <= 8


def test_a_signature_among_many_new_ones_is_compiled() -> None:
    jitted = rune_jit.jit(lambda x: x * 2 + x.max())
    for i in range(600):
        x = X[: 5 + i % 250].copy() if i % 2 else X
        assert_matches(jitted(x), x * 2 + x.max())
    assert jitted.cache_info().hits > 200


class Marked(np.ndarray):
    """Arrays that have no trace."""


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One item for each call whose arguments Python looks at."""
    found: list[None] = []
    slow_call = JitFunction._slow_call

    def look(self: Any, *args: Any) -> Any:
        found.append(None)
        return slow_call(self, *args)

    monkeypatch.setattr(JitFunction, "_slow_call", look)
    return found


def test_calls_on_numpy_in_a_row_run_without_a_look(looks: list[None]) -> None:
    jitted = rune_jit.jit(lambda x: x * 2 + 1)
    marked = X.view(Marked)
    with pytest.warns(rune_jit.JitFallbackWarning):
        jitted(marked)
    for _ in range(400):
        found = jitted(marked)
        assert type(found) is Marked
        assert_matches(np.asarray(found), X * 2 + 1)
    assert len(looks) < 30
    # NumPy is given no Arrays, which it would return as they are.
    assert type(jitted(rune_jit.asarray(X))) is rune_jit.Array
    # Other calls get their program before long, and then none runs on NumPy.
    for _ in range(300):
        assert_matches(jitted(X), X * 2 + 1)
    looks.clear()
    for _ in range(100):
        jitted(X)
        jitted(marked)
    assert len(looks) >= 100
    assert "as one program" in jitted.explain()


def test_calls_that_raise_in_a_row_run_without_a_look(
    looks: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: "NumPy is faster")

    @rune_jit.jit
    def root(x: np.ndarray) -> np.ndarray:
        if np.any(x < 0):
            raise ValueError(f"{x.min()} is negative")
        return np.sqrt(x)

    for i in range(400):
        with pytest.raises(ValueError, match=f"-{i + 1}.0 is negative"):
            root(X - i - X.min() - 1.0)
    assert len(looks) < 30
    for _ in range(300):
        assert_matches(root(X + 1), np.sqrt(X + 1))
    looks.clear()
    root(X + 1)
    assert not looks


@dataclasses.dataclass(frozen=True)
class Wave:
    phase: float
    samples: np.ndarray
    order: int = 2
    name: str = "w"
    is_even: bool = True


def test_numbers_in_dataclasses_with_arrays_are_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)

    def shift(wave: Wave, by: float) -> tuple[Wave, float]:
        moved = wave.samples * wave.order if wave.is_even else wave.samples
        new = dataclasses.replace(wave, phase=wave.phase + by, samples=moved + wave.phase)
        return new, wave.phase

    def power(wave: Wave) -> np.ndarray:
        total = np.zeros_like(wave.samples)
        for i in range(wave.order):
            total += wave.samples**i
        return total

    jitted = rune_jit.jit(shift)
    for i in range(20):
        wave = Wave(0.5 * i, X, 1 + i)
        (found, before), (wanted, _) = jitted(wave, 1.0), shift(wave, 1.0)
        assert_matches(found.samples, wanted.samples)
        plain = [dataclasses.replace(x, samples=None) for x in (found, wanted)]
        assert repr(plain[0]) == repr(plain[1])
        assert before == wave.phase and type(before) is float
    assert jitted.cache_info().misses == 1
    jitted = rune_jit.jit(power)
    for i in range(5):
        assert_matches(jitted(Wave(0.0, X, i)), power(Wave(0.0, X, i)))


def test_calls_without_fallback_are_looked_at() -> None:
    @rune_jit.jit(fallback="error")
    def first(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        return x[i] if x.ndim == 1 else x[0].tolist()

    for _ in range(40):
        with pytest.raises(IndexError):
            first(X, np.array([len(X)]))
    with pytest.raises(rune_jit.ConcretizationError):
        first(X[None], np.array([0]))


@pytest.mark.parametrize(("count", "way"), [(300, "on NumPy"), (3, "as one program")])
def test_what_is_compared_at_each_call_may_take_longer_than_numpy(
    count: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: "NumPy is faster")
    parts = [types.SimpleNamespace(size=i) for i in range(count)]

    def offsets(x: np.ndarray) -> np.ndarray:
        return x + max(part.size for part in parts)

    jitted = rune_jit.jit(offsets)
    for last in (count, count + 1):
        for _ in range(6):
            assert_matches(jitted(X), offsets(X))
        assert way in jitted.explain()
        parts[-1].size = last
