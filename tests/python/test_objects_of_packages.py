"""Objects outside of a function whose classes belong to installed packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit.calls.trial import Trial
from rune_jit.capture import libraries, objects

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


def test_attributes_of_objects_of_packages_are_read_at_each_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the package's code, too, whose names the trace does not know."""
    (tmp_path / "models.py").write_text(_MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    for module in (libraries, objects):
        monkeypatch.setattr(module, "INSTALLED", (str(tmp_path),))
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
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
