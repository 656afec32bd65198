"""Calls of signatures that run on NumPy need no Python frame of ours, and stay what they were."""

import math
import threading
import traceback
import warnings
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit import jit
from rune_jit.calls.trial import Trial

A = np.arange(3.0)


def on_numpy(x: Any, *rest: Any) -> Any:
    """Starts a thread, for which it is no program."""
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return [x + 1, *rest]


def warm(function: Any, *args: Any, **options: Any) -> Any:
    """The function, jitted, after calls that make what later ones use."""
    jitted = jit(function, fallback="silent", **options)
    for _ in range(3):
        jitted(*args)
    return jitted


class SlowCalls:
    """Counts the calls of a jitted function that need Python."""

    def __init__(self, jitted: Any) -> None:
        self.count = 0
        self._slow_call = jitted._slow_call
        jitted._slow_call = self

    def __call__(self, args: Any, kwargs: Any) -> Any:
        self.count += 1
        return self._slow_call(args, kwargs)


def test_they_need_no_python() -> None:
    jitted = warm(on_numpy, A)
    slow = SlowCalls(jitted)
    for _ in range(5):
        np.testing.assert_array_equal(jitted(A)[0], A + 1)
    assert slow.count == 0
    assert jitted.cache_info().fallbacks == 1
    assert "on NumPy" in jitted.explain()


def test_methods_and_names() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @jit(fallback="silent")
        def __call__(self, x: Any, offset: float = 0.0) -> Any:
            return on_numpy(x * self.factor, offset)

    one, two = Scale(1.0), Scale(2.0)
    for _ in range(3):
        for scale in one, two:
            scale(A, offset=3.0)
    slow = SlowCalls(vars(Scale)["__call__"])
    for scale in one, two:
        first, offset = scale(A, offset=4.0)
        np.testing.assert_array_equal(first, A * scale.factor + 1)
        assert offset == 4.0
    assert slow.count == 0


def test_arguments_of_other_signatures_are_traced() -> None:
    def by_flag(x: Any, plain: bool) -> Any:
        return on_numpy(x) if plain else x * 2

    jitted = warm(by_flag, A, True)
    np.testing.assert_array_equal(jitted(A, False), A * 2)
    assert jitted.cache_info().size == 2
    np.testing.assert_array_equal(jitted(A, True)[0], A + 1)


def test_arguments_that_the_signature_does_not_take() -> None:
    jitted = warm(lambda x: on_numpy(x), A)
    with pytest.raises(TypeError, match="positional argument"):
        jitted(A, A)
    with pytest.raises(TypeError, match="y"):
        jitted(A, y=1)


def test_exceptions_are_those_of_the_function() -> None:
    def fails(x: Any, at: Any) -> Any:
        on_numpy(x)
        return x[at]

    jitted = warm(fails, A, 0)
    slow = SlowCalls(jitted)
    with pytest.raises(IndexError, match="index 7 is out of bounds") as raised:
        jitted(A, 7)
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert names[-1] == "fails" and len(names) == 2
    assert slow.count == 0


def test_a_function_that_raised_is_tried_again() -> None:
    allowed = []

    def gate(x: Any) -> Any:
        if not allowed:
            raise RuntimeError("closed")
        return x * 2

    jitted = jit(gate)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="closed"):
            jitted(A)
    allowed.append(1)
    for _ in range(3):
        np.testing.assert_array_equal(jitted(A), A * 2)
    assert "one program" in jitted.explain()


def test_arrays_are_converted() -> None:
    jitted = warm(on_numpy, A)
    for _ in range(3):
        (result,) = jitted(rune_jit.asarray(A))
        assert isinstance(result, rune_jit.Array)
        np.testing.assert_array_equal(np.asarray(result), A + 1)
        assert type(jitted(A)[0]) is np.ndarray


def test_edited_code_takes_effect() -> None:
    def first(x: Any) -> Any:
        return on_numpy(x)

    def second(x: Any) -> Any:
        return x * 5

    jitted = warm(first, A)
    first.__code__ = second.__code__
    np.testing.assert_array_equal(jitted(A), A * 5)
    assert "one program" in jitted.explain()


def test_profiles_note_them() -> None:
    jitted = warm(on_numpy, A)
    with rune_jit.profile() as profile:
        for _ in range(3):
            jitted(A)
    assert "threading.Thread" in str(profile)
    slow = SlowCalls(jitted)
    jitted(A)
    assert slow.count == 0


def test_inside_of_another_trace_they_are_a_part_of_it() -> None:
    def scalar(x: Any) -> Any:
        return float(x[0]) * x

    inner = warm(scalar, A)
    outer = jit(lambda x: inner(x) + 1, fallback="silent")
    for _ in range(6):
        inner(A)
        np.testing.assert_array_equal(outer(A + 1), (A + 1) * 1.0 + 1)


def test_floating_point_errors_are_raised() -> None:
    def divided(x: Any) -> Any:
        on_numpy(x)
        return x / 0.0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jitted = warm(divided, A)
    with np.errstate(divide="raise", invalid="raise"), pytest.raises(FloatingPointError):
        jitted(A)


def test_those_used_last_stay() -> None:
    jitted = warm(on_numpy, A, cache_size=2)
    jitted(A[:2])
    slow = SlowCalls(jitted)
    jitted(A)
    assert slow.count == 0
    jitted(A[:1])  # that of two elements goes
    before = jitted.cache_info()
    assert before.evictions == 1
    jitted(A)
    assert jitted.cache_info().misses == before.misses


def test_segments_that_ended_on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: "it takes longer compiled")

    def halves(x: Any) -> Any:
        return [v / 2 for v in x.tolist()]

    jitted = jit(halves)
    for _ in range(8):
        jitted(A)
    assert "on NumPy" in jitted.explain()
    hits, slow = jitted.cache_info().hits, SlowCalls(jitted)
    assert jitted(A) == [0, 0.5, 1]
    assert slow.count == 0
    assert jitted.cache_info().hits == hits  # (no program has served the call)


def test_clear_cache_forgets_them() -> None:
    jitted = warm(on_numpy, A)
    jitted.clear_cache()
    misses = jitted.cache_info().misses
    jitted(A)
    assert jitted.cache_info().misses == misses + 1


class Sum:
    """Has state of any shape."""

    def __init__(self, total: Any) -> None:
        self.total = total

    @jit
    def add(self, x: float) -> None:
        self.total = self.total + x


def test_state_of_other_shapes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: "it is faster")
    held = Sum(np.zeros(2))
    for _ in range(20):
        held.add(1.0)
    assert "on NumPy" in Sum.add.explain()
    held.total = np.zeros((3, 3))
    for _ in range(100):
        held.add(1.0)
    np.testing.assert_array_equal(held.total, np.full((3, 3), 100.0))
    assert Sum.add.cache_info().misses > 2


def test_a_few_numbers_are_not_compiled() -> None:
    def hypotenuse(a: float, b: float) -> tuple[float, bool]:
        return math.sqrt(a * a + b * b), a < b

    jitted = jit(hypotenuse)
    assert jitted(3.0, 4.0) == (5.0, True)
    assert "on NumPy: it computes a few of Python's numbers" in jitted.explain()
    slow = SlowCalls(jitted)
    assert jitted(8.0, 6.0) == (10.0, False)
    assert slow.count == 0
    with pytest.raises(OverflowError):  # Python's own
        jit(lambda a: a**2)(1e200)


def test_what_takes_longer_than_a_few_numbers_is_compiled() -> None:
    def newton(x: float) -> float:
        for _ in [*range(20)]:
            x = x - (x * x - 2.0) / (2.0 * x)
        return x

    def steps(n: int) -> int:
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    for function, argument in [(newton, 1.0), (steps, 6), (lambda x: A * x, 2.0)]:
        jitted = jit(function)
        np.testing.assert_array_equal(jitted(argument), function(argument))
        assert "as one program" in jitted.explain()
