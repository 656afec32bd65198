"""Edited sources take effect: functions that are loaded again, as %autoreload and
importlib.reload do."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune_jit

X = np.arange(4.0)
_times = itertools.count(1)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Writes a module, and loads it, again from the second time on."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"edited_{next(_times)}"

    def load(text: str) -> Any:
        path = tmp_path / f"{name}.py"
        path.write_text("import numpy as np\nimport rune_jit\n" + text)
        os.utime(path, (next(_times) * 10, next(_times) * 10))
        importlib.invalidate_caches()
        module = sys.modules.get(name)
        return importlib.reload(module) if module else importlib.import_module(name)

    yield load
    sys.modules.pop(name, None)


@pytest.fixture
def autoreload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "IPython.extensions.autoreload", types.ModuleType("autoreload")
    )


def test_helpers_of_a_module(write: Callable[[str], Any]) -> None:
    module = write("def helper(x):\n    return x + 1\n")
    f = rune_jit.jit(lambda x: module.helper(x) * 2, fallback="error")
    np.testing.assert_array_equal(f(X), (X + 1) * 2)
    write("def helper(x):\n    return x + 5\n")
    np.testing.assert_array_equal(f(X), (X + 5) * 2)


def test_code_that_autoreload_replaces(write: Callable[[str], Any]) -> None:
    """In a function, in one that it calls, and in its signature."""
    module = write("def inner(x):\n    return x + 1\ndef outer(x):\n    return inner(x) * 2\n")
    inner, outer = module.inner, module.outer
    f = rune_jit.jit(outer, fallback="error")
    np.testing.assert_array_equal(f(X), (X + 1) * 2)
    new = write("def inner(x):\n    return x - 1\ndef outer(x, k=3):\n    return inner(x) * k\n")
    inner.__code__ = new.inner.__code__
    outer.__globals__["inner"] = inner
    np.testing.assert_array_equal(f(X), (X - 1) * 2)
    outer.__code__, outer.__defaults__ = new.outer.__code__, new.outer.__defaults__
    np.testing.assert_array_equal(f(X), (X - 1) * 3)
    np.testing.assert_array_equal(f(X, k=4), (X - 1) * 4)


def test_loops_of_an_edited_file(write: Callable[[str], Any]) -> None:
    text = "@rune_jit.jit\ndef f(x):\n    for i in range(x.shape[0]):\n        x[i] = x[i] * {}\n"
    text += "    return x\n"
    module = write(text.format(2))
    np.testing.assert_array_equal(module.f(X.copy()), X * 2)
    assert "is a loop of the program" in module.f.explain()
    module = write("\n\n" + text.format(3))
    np.testing.assert_array_equal(module.f(X.copy()), X * 3)
    assert "is a loop of the program" in module.f.explain()


def test_loops_apart_of_an_edited_file(write: Callable[[str], Any]) -> None:
    """The new loop stands at the place of the old one, but cannot run apart. The old function still
    has the old loop."""
    text = "def f(x):\n    s, t = 0.0, x.tolist()\n    for i in range(len(x)):\n        {}\n"
    text += "    return s, t\n"
    x, functions = np.arange(40.0), []
    for line in ("s = s + x[i] * 2", "s = s + (t := x[i] * 3)"):
        functions.append(write(text.format(line)).f)
        for f in functions:
            jitted = rune_jit.jit(f)
            assert [jitted(x), jitted(x)] == [f(x)] * 2


def test_imported_names_become_the_new_functions(
    write: Callable[[str], Any], autoreload: None
) -> None:
    text = "@rune_jit.jit\ndef f(x):\n    return x + {}\n"
    old = write(text.format(1)).f
    np.testing.assert_array_equal(old(X), X + 1)
    for k in (2, 3):
        module = write(text.format(k))
        assert module.f is not old
        np.testing.assert_array_equal(old(X), X + k)
        np.testing.assert_array_equal(module.f(X), X + k)


def test_without_autoreload_imported_names_stay(write: Callable[[str], Any]) -> None:
    text = "@rune_jit.jit\ndef f(x):\n    return x + {}\n"
    old = write(text.format(1)).f
    module = write(text.format(2))
    np.testing.assert_array_equal(old(X), X + 1)
    np.testing.assert_array_equal(module.f(X), X + 2)


def test_functions_of_one_name_are_not_confused(autoreload: None) -> None:
    steps = []
    for k in (1.0, 2.0):

        def step(x: Any, k: float = k) -> Any:
            return x * k

        step.__qualname__ = "step"
        steps.append(rune_jit.jit(step))
    for k, f in zip((1.0, 2.0), steps, strict=True):
        np.testing.assert_array_equal(f(X), X * k)


def test_the_way_is_chosen_again(write: Callable[[str], Any]) -> None:
    module = write("def f(x):\n    return x + 1 if x[0].tolist() < 1 else x\n")
    f = rune_jit.jit(module.f)
    function = module.f
    np.testing.assert_array_equal(f(X), X + 1)
    assert f.cache_info().segmented == 1
    function.__code__ = write("def f(x):\n    return x + 2\n").f.__code__
    np.testing.assert_array_equal(f(X), X + 2)
    assert f.cache_info().segmented == 0 and "as one program" in f.explain()


def test_sources_with_invalid_escapes(write: Callable[[str], Any]) -> None:
    """Python warns of them when it loads the source. Later readers of it do not."""
    text = """
@rune_jit.jit
def f(x):
    "sums x, as \\sum_i does"
    total = 0.0
    for v in x:
        total += v
    return total

g = rune_jit.jit(lambda x: [x * i for i in range(3)] + ["\\s"])
"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = write(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert module.f(X) == 6
        np.testing.assert_array_equal(module.g(X)[1], X)
    assert "loop at" in module.f.explain() and "is unrolled" not in module.f.explain()
