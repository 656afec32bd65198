"""Jitted functions in other processes: plain pickle by name, cloudpickle by value."""

from __future__ import annotations

import copy
import functools
import pickle
import subprocess
import sys
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
