"""What a trace reads outside of its function: what it has not read need not be watched, and large
containers do not keep a function from being compiled."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from scenarios import Scenario, X, check_on_numpy, check_traced, collection, eager

import rune_jit

TRACED, traced = collection()
ON_NUMPY, on_numpy = collection()

MANY: dict[int, Any] = {i: [i] for i in range(50_000)}
NUMBERS = list(range(100_000))
SCALE, UNUSED = 2.0, 1.0


@traced
def names_that_are_not_read(jit: Any) -> Iterator[Any]:
    """A program holds as long as what its trace read is as it was."""
    global UNUSED, SCALE

    def f(x: Any, wide: bool = False) -> Any:
        return x * (len(MANY) + UNUSED) if wide else x * SCALE

    g = jit(f)
    yield g(X, False)
    UNUSED = 3.0
    yield g(X, False)
    if jit is not eager:
        assert g.cache_info().misses == 1
    SCALE = 5.0
    yield g(X, False)
    if jit is not eager:
        assert g.cache_info().misses == 2
    UNUSED, SCALE = 1.0, 2.0


@traced
def large_containers(jit: Any) -> Iterator[Any]:
    table = {str(i): i for i in range(30_000)}
    f = jit(lambda x: x * NUMBERS[7] + table["5"] + len(NUMBERS))
    yield f(X)
    NUMBERS[7] = 70
    yield f(X)
    table["5"] = 50
    yield f(X)
    NUMBERS.append(0)
    yield f(X)
    del NUMBERS[-1], table["6"]
    NUMBERS[7] = 7
    yield f(X)


@traced
def classes_inside(jit: Any) -> Iterator[Any]:
    """The body of a class reads globals in another way than a function."""
    global SCALE

    def f(x: Any) -> Any:
        class Local:
            scale = SCALE
            zeros = np.zeros(4)

        Local.zeros[1] = 5
        return x * Local.scale + Local.zeros

    g = jit(f)
    yield g(X)
    SCALE = 7.0
    yield g(X)
    SCALE = 2.0


@traced
def attributes_set_at_each_call(jit: Any) -> Iterator[Any]:
    class Model:
        def step(self, x: Any) -> Any:
            self.last = x * 2
            return self.last + 1

    model = Model()
    f = jit(model.step)
    yield f(X), model.last
    yield f(X + 1), model.last


@dataclasses.dataclass(frozen=True)
class Options:
    scale: float
    name: str


@traced
def equal_objects_are_one_key(jit: Any) -> Iterator[Any]:
    f = jit(lambda x, options, **more: x * options.scale + sum(more.values()))
    for _ in range(2):
        yield (
            f(X, Options(2.0, "a")),
            f(X, Options(3.0, "a"), b=1, a=2),
            f(X, Options(2.0, "b"), a=1),
        )
    if jit is not eager:
        assert f.cache_info().misses == 3
        assert f.cache_info().hits == 3


class Measured:
    """Has methods that no trace may use, and numbers that it may not read."""

    scale = 2.0

    def __init__(self, value: Any) -> None:
        self.value = value
        self.when = perf_counter()

    def times(self, x: Any) -> Any:
        return x * self.scale * self.value


class Longer(Measured):
    pass


@traced
def classes_in_tests(jit: Any) -> Iterator[Any]:
    """Of a class that is only the second argument of isinstance and issubclass, nothing is read."""

    def f(x: Any) -> Any:
        if isinstance(x, Measured):
            return x.times(1.0)
        if isinstance(x.T[:1], (Measured, Longer)) or issubclass(type(x), Longer):
            return -x
        return x * sum(not isinstance(y, Longer) for y in (1, 2))

    g = jit(f)
    yield g(X)
    before, Measured.scale = Measured.scale, 7.0
    yield g(X)
    Measured.scale = before
    if jit is not eager:
        assert g.cache_info().misses == 1
        assert "as one program" in str(g.explain())
    yield g(Longer(2.0))
    yield g(X)


@traced
def classes_in_tests_and_elsewhere(jit: Any) -> Iterator[Any]:
    """A class that other code of the trace uses is read."""

    def f(x: Any) -> Any:
        return x + 1.0 if isinstance(x, Scaled) else x * other(x)

    def other(x: Any) -> Any:
        return Scaled.scale if len(x) else 0.0

    g = jit(f)
    for scale in (2.0, 3.0):
        Scaled.scale = scale
        yield g(X)

    def by_text(x: Any) -> Any:
        return x + 1.0 if isinstance(x, Scaled) else x * globals()["Scaled"].scale

    g = jit(by_text)
    for scale in (2.0, 3.0):
        Scaled.scale = scale
        yield g(X)


class Scaled:
    scale = 2.0


class Even(abc.ABC):  # noqa: B024
    """Counts what it is asked."""

    asked = 0

    @classmethod
    def __subclasshook__(cls, other: type, /) -> Any:
        Even.asked += 1
        return NotImplemented


@traced
def classes_with_tests_of_their_own(jit: Any) -> Iterator[Any]:
    def f(x: Any) -> Any:
        return x + 1.0 if isinstance(x, Even) else x * 2.0

    yield jit(f)(X)
    yield jit(f)(X)


@pytest.mark.parametrize("scenario", TRACED, ids=lambda s: s.__name__)
def test_traced(scenario: Scenario) -> None:
    check_traced(scenario, "cpu")


@pytest.mark.parametrize("scenario", ON_NUMPY, ids=lambda s: s.__name__)
def test_on_numpy(scenario: Scenario) -> None:
    check_on_numpy(scenario)


def _clock(x: Any) -> Any:
    import time

    return x * 0 + time.perf_counter()


def _clock_by_name(x: Any) -> Any:
    from time import perf_counter as now

    return x * 0 + now()


def _random_number(x: Any) -> Any:
    import random

    return x * 0 + random.random()


@pytest.mark.parametrize("function", [_clock, _clock_by_name, _random_number])
def test_modules_that_a_function_imports_are_used_at_each_call(
    function: Callable[..., Any],
) -> None:
    jitted = rune_jit.jit(function)
    assert len({float(jitted(np.ones(3))[0]) for _ in range(5)}) == 5


def test_imported_functions_are_traced() -> None:
    def f(x: Any) -> Any:
        import math
        import os.path
        from math import exp

        import numpy
        import numpy as other

        assert os.path.sep
        total = other.zeros(2)
        total[1] = numpy.sum(x)
        for value in x:
            total[0] += exp(value) * math.sqrt(2)
        return total

    x = np.linspace(0, 1, 7)
    np.testing.assert_allclose(rune_jit.jit(f, fallback="error")(x), f(x), rtol=1e-14)


def test_imported_modules_are_guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings_of_a_test.py").write_text("rate = 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    def f(x: Any) -> Any:
        import settings_of_a_test

        return x * settings_of_a_test.rate

    jitted = rune_jit.jit(f)
    np.testing.assert_array_equal(jitted(np.ones(2)), [2, 2])
    import settings_of_a_test  # type: ignore[import-not-found]

    settings_of_a_test.rate = 3.0
    np.testing.assert_array_equal(jitted(np.ones(2)), [3, 3])


def test_classes_and_functions_of_numpy_name_their_module() -> None:
    def f(x: Any) -> Any:
        if type(x).__module__ == np.__name__:
            x = x + 1
        return x, type(x[0]).__module__, np.linalg.norm.__module__, np.ndarray.__doc__

    x = np.arange(3.0)
    found, *texts = rune_jit.jit(f)(x)
    wanted, *expected = f(x)
    np.testing.assert_array_equal(found, wanted)
    assert texts == expected
