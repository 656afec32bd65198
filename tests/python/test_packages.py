"""Jitted functions of installed packages, and what their functions assign."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit
from rune_jit.capture import libraries

X = np.arange(4.0)
SOURCE = """
import abc

import numpy as np

enabled = True

def enable(value):
    global enabled
    enabled = value

def set_and_double(x, value):
    enable(value)
    return x * 2

def asks(x):
    return x * 3 if enabled else x

class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __call__(self, function):
        def wrapper(*args):
            with self:
                return function(*args)

        return wrapper

class Signal(abc.ABC):
    def __init__(self, values):
        self.values = self.unpacked(values)

    @staticmethod
    @Quiet()
    def unpacked(values):
        return values if isinstance(values, (tuple, np.ndarray)) else None

    @property
    def part(self):
        return self._part

    @part.setter
    def part(self, value):
        self._part = value if isinstance(value, np.ndarray) else None

def apply(model, x):
    return model.matrix @ x

def apply_by_text(model, x):
    return getattr(model, "mat" + "rix") @ x

class Operator:
    def __init__(self, matrix):
        self.matrix = matrix

    def apply(self, x):
        return self.matrix @ x

def signal(x):
    made = Signal(np.exp(x))
    made.part = x + 1
    return made.values, made.part, made
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "of_signals.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(libraries, "INSTALLED", (str(folder),))
    yield importlib.import_module("of_signals")
    del sys.modules["of_signals"]


VALUES = (True, True, False, True, False, False, True, True, False)


def test_a_global_gets_the_value_that_it_has_when_the_function_is_traced(package: Any) -> None:
    jitted = rune_jit.jit(package.enable)
    for value in VALUES:
        jitted(value)
        assert package.enabled is value


def test_a_global_of_another_package_is_assigned_at_each_call(package: Any) -> None:
    @rune_jit.jit
    def f(x: Any, value: Any) -> Any:
        package.enable(value)
        return x * 2

    for value in VALUES:
        assert_same(f(X, value), X * 2)
        assert package.enabled is value


def test_a_global_that_is_assigned_is_read_by_other_functions(package: Any) -> None:
    assigns, asks = rune_jit.jit(package.set_and_double), rune_jit.jit(package.asks)
    for value in VALUES:
        package.enabled = not value
        assigns(X, value)
        assert package.enabled is value
        assert_same(asks(X), X * 3 if value else X)


def test_objects_of_the_package_know_traced_arrays(package: Any) -> None:
    jitted = rune_jit.jit(package.signal)
    for i in range(4):
        values, part, made = jitted(X + i)
        assert_same(values, np.exp(X + i), ulps=4)
        assert_same(part, X + i + 1)
        assert made.values is values
        assert made.part is part


class Model:
    pass


def _model(package: Any, name: str, matrix: np.ndarray) -> Any:
    if name == "object":
        model = Model()
        vars(model)["mat" + "rix"] = matrix
        return model
    kind = package.Operator if name == "operator" else type("Derived", (package.Operator,), {})
    return kind(matrix)


# (No function of the test names the attribute that the package's functions read.)
@pytest.mark.parametrize("name", ("object", "operator", "derived"))
@pytest.mark.parametrize("how", ("apply", "apply_by_text", "method"))
def test_arrays_that_only_the_package_reads(package: Any, name: str, how: str) -> None:
    if how == "method" and name == "object":
        pytest.skip("it has no method")
    apply = {"apply": package.apply, "apply_by_text": package.apply_by_text}.get(how)

    def f(model: Any) -> Any:
        x = np.arange(1.0, 3.0)
        return model.apply(x) if apply is None else apply(model, x)

    jitted = rune_jit.jit(f)
    for i in range(4):
        model = _model(package, name, matrix := np.arange(4.0).reshape(2, 2))
        for _ in range(2):
            matrix += i
            assert_same(jitted(model), f(model))
