"""Calls of code that a trace does not copy, on values that are not traced, happen at each call."""

from __future__ import annotations

import ctypes
import importlib
import pprint
import sys
from pathlib import Path
from pprint import pprint as pretty_print
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit
from rune_jit.capture import libraries

X = np.random.default_rng(0).random((6, 6))


_CONSOLE = """
import sys

class Console:
    def print(self, text):
        sys.stdout.write(text)

def show(text):
    Console().print(text)

console = Console()
"""


def test_methods_of_packages_run_at_each_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "of_consoles.py").write_text(_CONSOLE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(libraries, "INSTALLED", (str(tmp_path),))
    package = importlib.import_module("of_consoles")

    def method(x: Any) -> Any:
        package.console.print("a")
        return x * 2

    def function(x: Any) -> Any:
        package.show("b")
        return x * 2

    def of_class(x: Any) -> Any:
        package.Console().print("c")
        return x * 2

    for f in (method, function, of_class):
        jitted = rune_jit.jit(f, fallback="silent")
        for _ in range(4):
            assert_matches(jitted(X), X * 2)
    assert capsys.readouterr().out == "aaaabbbbcccc"
    del sys.modules["of_consoles"]


def test_compiled_functions_without_arrays_run_at_each_call() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit
    def drawn() -> Any:
        return np.random.random()

    def f(x: Any) -> Any:
        return x + drawn()

    jitted = rune_jit.jit(f, fallback="silent")
    assert len({float(jitted(X)[0, 0]) for _ in range(4)}) == 4


_C = ctypes.CDLL(None) if sys.platform != "win32" else None


@pytest.mark.skipif(_C is None, reason="no library of C")
def test_functions_of_c_run_at_each_call() -> None:
    @rune_jit.jit
    def f(x: Any) -> Any:
        return x + _C.rand()  # type: ignore[union-attr]

    assert len({float(f(X)[0, 0]) for _ in range(5)}) == 5


def test_functions_of_pythons_other_modules_run_at_each_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @rune_jit.jit
    def by_module(x: Any) -> Any:
        pprint.pprint("a")
        return x * 2

    @rune_jit.jit
    def by_name(x: Any) -> Any:
        pretty_print("b")
        return x * 2

    for function in (by_module, by_name):
        for _ in range(4):
            np.testing.assert_array_equal(function(X), X * 2)
    assert capsys.readouterr().out == "'a'\n" * 4 + "'b'\n" * 4


def test_methods_in_c_get_numpys_arrays() -> None:
    linalg, sparse = (pytest.importorskip(f"scipy.sparse{name}") for name in (".linalg", ""))
    matrix = sparse.csc_matrix(np.diag(np.arange(1.0, 5.0)))
    factors = linalg.splu(matrix)

    class Solver:
        def __init__(self) -> None:
            self.factors = linalg.splu(matrix)

        def solve(self, x: Any) -> Any:
            return self.factors.solve(x) + 1

    solver = Solver()

    def of_global(x: Any) -> Any:
        return factors.solve(x * 2) + 1

    def of_attribute(x: Any) -> Any:
        return solver.solve(x * 2)

    def by_name(x: Any) -> Any:
        return np.abs(factors.solve(x)) + np.linalg.solve(np.eye(4), x)

    def of_made(x: Any) -> Any:
        return Solver().solve(x * 2)

    def in_loop(x: Any) -> Any:
        for _ in range(3):
            x = solver.solve(x / np.linalg.norm(x))
        return x

    for f in (of_global, of_attribute, by_name, of_made, in_loop):
        jitted = rune_jit.jit(f, fallback="silent")
        for i in range(6):
            x = np.arange(4.0) + i
            assert_matches(jitted(x), f(x))


def test_compiled_functions_get_the_elements_of_a_selection() -> None:
    linbin = pytest.importorskip("statsmodels.nonparametric.linbin").fast_linbin

    def f(x: Any) -> Any:
        x = x[x > 0.3]
        return linbin(x, x.min(), x.max(), 8) / len(x)

    jitted = rune_jit.jit(f, fallback="silent")
    for i in range(6):
        x = X.ravel() * (1 - i / 10)
        assert_matches(jitted(x), f(x))
