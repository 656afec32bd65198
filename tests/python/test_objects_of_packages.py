"""Objects outside of a function whose classes belong to installed packages."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit.calls.trial import Trial
from rune_jit.capture import libraries, objects


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules are files of an installed package, and functions run compiled."""
    for name, source in (("models", _MODELS), ("readers", _READERS)):
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    for module in (libraries, objects):
        monkeypatch.setattr(module, "INSTALLED", (str(tmp_path),))
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


_MODELS = """
class Model:
    def __init__(self, weights):
        self.weights, self.bias, self.count = weights, weights * 0.5, 3.0

    def predict(self, x):
        return x * self.weights + self.rest()

    def rest(self):
        return self.bias * 2 + self.count

    @staticmethod
    def halved(x):
        return x / 2

def run(model, x, name="predict"):
    return getattr(model, name)(x) + model.halved(x)
"""


def test_attributes_of_objects_of_packages_are_read_at_each_call() -> None:
    """By the package's code, too, whose names the trace does not know."""
    import models  # type: ignore[import-not-found]

    x, changes = (
        np.ones(3),
        [
            lambda m: m.bias.__setitem__(slice(None), 7.0),
            lambda m: setattr(m, "weights", m.weights + 1),
            lambda m: setattr(m, "count", 10.0),
            lambda m: setattr(m, "bias", np.ones(3)),
            lambda m: m.weights.__setitem__(0, 9.0),
        ],
    )
    model = models.Model(np.arange(3.0))
    functions: list[Callable[[Any], Any]] = [
        lambda x: model.predict(x),
        lambda x: models.run(model, x),
        lambda x: models.run(model, x) + model.weights,
        lambda x: getattr(model, "pre" + "dict")(x) + model.halved(x),
    ]
    for function in functions:
        model = models.Model(np.arange(3.0))
        jitted = rune_jit.jit(function)
        for change in [*changes, *changes]:
            for _ in range(2):
                np.testing.assert_array_equal(jitted(x), function(x))
            change(model)
        assert "program" in jitted.explain()


_READERS = """
def run(model, x):
    return x * model.weights + model.count

class Base:
    def run(self, x):
        return x * self.weights + self.count

class Wrapped:
    def __init__(self, inner):
        self.inner = inner

    def run(self, x):
        return self.inner.weights * x + self.inner.count
"""


class Weighted:
    def __init__(self, weights: Any) -> None:
        self.weights, self.count = weights, 3.0


@pytest.mark.parametrize("weights", [np.arange(3.0), 2.0])
def test_attributes_of_the_users_objects_that_packages_read(weights: Any) -> None:
    import readers  # type: ignore[import-not-found]

    class Derived(Weighted, readers.Base):  # type: ignore[misc]
        pass

    functions: list[Callable[[Any], Any]] = [
        lambda x: readers.run(plain, x),
        lambda x: readers.run(plain, x) + plain.count,
        lambda x: model.run(x),
        lambda x: wrapped.run(x),
    ]
    for function in functions:
        plain, model = Weighted(copy.copy(weights)), Derived(copy.copy(weights))
        wrapped = readers.Wrapped(plain)
        jitted = rune_jit.jit(function)
        for step in range(9):
            np.testing.assert_array_equal(jitted(np.ones(3)), function(np.ones(3)))
            for changed in (plain, model):
                if step % 3 == 0:
                    changed.weights += 1
                elif step % 3 == 1:
                    changed.weights = changed.weights * 2
                else:
                    changed.count += 10.0
