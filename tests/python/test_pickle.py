"""Jitted functions in other processes: plain pickle by name, cloudpickle by value."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune_jit

X = np.arange(4.0)


@rune_jit.jit(static_argnames="n")
def decorated(x: Any, n: int = 2) -> Any:
    return x * n


def plain(x: Any, n: int) -> Any:
    return x + n


class Model:
    def __init__(self, w: Any) -> None:
        self.w = w

    @rune_jit.jit
    def run(self, x: Any) -> Any:
        return x * self.w


def test_functions_that_can_be_imported() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated
    assert pickle.loads(pickle.dumps(Model.run)) is Model.run
    bound = pickle.loads(pickle.dumps(Model(3).run))
    np.testing.assert_array_equal(bound(X), X * 3)

    again = pickle.loads(
        pickle.dumps(rune_jit.jit(plain, static_argnums=1, fallback="error", cache_size=7))
    )
    np.testing.assert_array_equal(again(X, 3), X + 3)
    assert again.__wrapped__ is plain
    assert again._options["cache_size"] == 7
    partial = pickle.loads(pickle.dumps(rune_jit.jit(functools.partial(plain, n=5))))
    np.testing.assert_array_equal(partial(X), X + 5)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(rune_jit.jit(lambda x: x))


def dynamic_sum(x: Any, n: Any = 1) -> Any:
    return x.sum() + n


# A value of each option of jit that is not its default.
OPTIONS: dict[str, Any] = {
    "device": "interpreter",
    "static_argnums": (1,),
    "static_argnames": ("n",),
    "donate_argnums": (0,),
    "fallback": "error",
    "cache_size": 2,
    "dynamic": {"x": {0: "n"}},
}


@pytest.mark.parametrize("copied", [lambda f: pickle.loads(pickle.dumps(f)), copy.copy])
@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_kept(name: str, copied: Any) -> None:
    parameters = inspect.signature(rune_jit.jit).parameters
    assert set(parameters) - {"fn"} == set(OPTIONS)
    assert OPTIONS[name] != parameters[name].default
    original = rune_jit.jit(dynamic_sum, **{name: OPTIONS[name]})
    again = copied(original)
    assert again is not original and again.__wrapped__ is dynamic_sum
    assert repr(again.__reduce__()[1][1]) == repr(original.__reduce__()[1][1])
    seen = behaviour(again)
    assert seen == behaviour(original)
    if name != "donate_argnums":  # which the CPU makes no use of
        assert seen != behaviour(rune_jit.jit(dynamic_sum)), name


def behaviour(jitted: Any) -> list[Any]:
    """What tells the options of a function apart."""
    seen: list[Any] = [jitted.lower(X, 1).device]
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        seen += [jitted(np.ones(size), number) for size in (3, 4, 5) for number in (1, 2, 3)]
        seen.append(jitted.cache_info())
        try:
            seen.append(jitted(np.ones(3, object)))  # which no program takes
        except rune_jit.UnsupportedOpError as error:
            seen.append(str(error))
    return [*seen, *(warning.category for warning in raised)]


SCRIPT = """
import sys, pickle, numpy as np, rune_jit
{pickler}
w = np.ones(4)

@rune_jit.jit
def f(x):
    y = np.zeros(4)
    y[1:] = x[1:] + w[1:]
    return y

k = 10
g = rune_jit.jit(lambda x: f(x) * k, fallback="error")
f(w)
if __name__ == "__main__":
    sys.stdout.buffer.write(dumps([f, g]))
"""


def test_functions_of_a_script(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(pickler="from cloudpickle import dumps"))
    made = subprocess.run([sys.executable, str(script)], capture_output=True, check=True)
    f, g = pickle.loads(made.stdout)
    np.testing.assert_array_equal(f(X), [0, 2, 3, 4])
    np.testing.assert_array_equal(g(X), [0, 20, 30, 40])
    # Plain pickle finds a script's functions in the script, as it finds all functions.
    script.write_text(
        SCRIPT.format(pickler="dumps = lambda fs: pickle.dumps(fs[0])").replace(
            "sys.stdout.buffer.write(dumps([f, g]))",
            "assert pickle.loads(dumps([f, g])) is f",
        )
    )
    subprocess.run([sys.executable, str(script)], check=True)
