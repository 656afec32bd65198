"""`rune_jit.numpy` with each function wrapped in `rune_jit.jit`, for the array API test suite.

Arrays are arguments of the program, all else is constant. If the environment variable
RUNE_JIT_FALLBACKS names a file, the names of functions that ran on NumPy at least once, because
something in them cannot be traced, are appended to it. Functions that `jit` refuses, because they
need values, run eagerly, and are named there, too."""

from __future__ import annotations

import functools
import os
import types
from typing import Any

import optree

import rune_jit
from rune_jit import Array
from rune_jit import numpy as _xp

_CREATION = {"arange", "empty", "eye", "full", "linspace", "ones", "zeros"}
_PLAIN = {"asarray", "from_dlpack", "isdtype", "result_type", "can_cast", "finfo", "iinfo",
          "fftfreq", "rfftfreq", "__array_namespace_info__"}  # fmt: skip
_fallbacks: set[str] = set()


def _note_fallback(name: str) -> None:
    path = os.environ.get("RUNE_JIT_FALLBACKS")
    if path and name not in _fallbacks:
        with open(path, "a") as file:
            file.write(f"{name}\n")
    _fallbacks.add(name)


def _jitted(name: str, function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = optree.tree_flatten((args, kwargs), none_is_leaf=True)
        places = [i for i, x in enumerate(leaves) if isinstance(x, Array)]
        if not places and name not in _CREATION:
            return function(*args, **kwargs)
        constants = [None if isinstance(x, Array) else x for x in leaves]

        def traced(*arrays: Any) -> Any:
            filled = list(constants)
            for i, array in zip(places, arrays, strict=True):
                filled[i] = array
            args, kwargs = optree.tree_unflatten(tree, filled)
            return function(*args, **kwargs)

        jitted = rune_jit.jit(traced, fallback="silent")
        try:
            result = jitted(*(leaves[i] for i in places))
        except rune_jit.ConcretizationError:  # no fallback takes these
            _note_fallback(name)
            return function(*args, **kwargs)
        if jitted.cache_info().fallbacks:
            _note_fallback(name)
        return result if places else rune_jit.asarray(result)

    return call


def _wrapped(source: types.ModuleType, prefix: str = "") -> dict[str, Any]:
    """The names of a module, with its functions jitted."""
    names = {}
    for name, value in vars(source).items():
        if isinstance(value, types.FunctionType) and name not in _PLAIN and name[0] != "_":
            value = _jitted(prefix + name, value)
        if not name.startswith("__") or name.startswith("__array"):
            names[name] = value
    return names


globals().update(_wrapped(_xp))
linalg = types.SimpleNamespace(**_wrapped(_xp.linalg, "linalg."))
fft = types.SimpleNamespace(**_wrapped(_xp.fft, "fft."))
