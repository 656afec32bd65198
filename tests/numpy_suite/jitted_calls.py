"""A pytest plugin under which test modules see the functions of a library wrapped in `rune_jit.jit`
with default settings: each call that has an array among its arguments is a call of a jitted
function. So are operators, indexing and methods of arrays (operations.py).

RUNE_JIT_SUITE_REPORT names the file for the report (JSON): the outcome of each test, and how many
calls of each function ran as a program, in segments or on NumPy, and why. RUNE_JIT_SUITE_MODULES
names the library's modules. Unless RUNE_JIT_SUITE_RUN is "jitted", the functions
are the library's own."""

from __future__ import annotations

import collections
import functools
import importlib
import json
import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from operations import with_operations

import rune_jit

_JITTED = os.environ.get("RUNE_JIT_SUITE_RUN") == "jitted"
# An interpreter starts a program sooner than a compiler makes one, and these run once.
_DEVICE = "interpreter"
_MOST_ELEMENTS = 20_000  # of the arguments: what the interpreter computes in a moment
_MOST_PROGRAMS = 2000  # that are kept
_outcomes: dict[str, str] = {}
_reasons: dict[str, str] = {}  # of failures
_calls: collections.Counter[str] = collections.Counter()  # by how they ran
_uncompiled: collections.Counter[str] = collections.Counter()  # by function and reason

# The ways a call can run, by the first word of explain() about it.
_WAYS = {"as": "program", "in": "segments", "on": "NumPy"}
_MODULES = [
    importlib.import_module(name)
    for name in os.environ.get("RUNE_JIT_SUITE_MODULES", "numpy numpy.linalg").split()
]
_programs: dict[Any, Callable[..., Any]] = {}


def _program(function: Callable[..., Any], leaves: list[Any], structure: Any) -> Any:
    """The jitted function for such calls. Calls with other arguments have another one, because
    NumPy runs a function that gets another signature at each call."""
    kinds = [
        (x.dtype, x.shape) if _is_traced(x) else x if isinstance(x, (str, type)) else type(x)
        for x in leaves
    ]
    key = function, structure, *kinds
    if key not in _programs:
        if len(_programs) >= _MOST_PROGRAMS:
            _programs.clear()
        _programs[key] = rune_jit.jit(function, fallback="silent", device=_DEVICE)
    return _programs[key]


def _is_traced(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc"


class Jitted:
    """A function of the library, each call of which is traced and run as a program."""

    def __init__(self, real: Any, name: str) -> None:
        self._real, self._name = real, name
        self.__wrapped__ = real

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves: list[Any]
        leaves, structure = optree.tree_flatten((args, kwargs), none_is_leaf=True)  # type: ignore[arg-type]
        arrays = [x for x in leaves if _is_traced(x)]
        size = sum(x.size for x in arrays)
        if not arrays or size > _MOST_ELEMENTS or len(leaves) > 100:
            return self._real(*args, **kwargs)
        program = _program(self._real, leaves, structure)
        result = program(*args, **kwargs)
        way = program.explain().partition("\n")[0].partition(": ")[2]
        if way:  # there is none if a trace of another call makes this one
            _calls[_WAYS[way[:2]]] += 1
        if way[:2] not in ("", "as"):
            _uncompiled[f"{self._name}: {way}"[:200]] += 1
        return result

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        is_method = name in ("reduce", "accumulate", "reduceat", "outer", "at")
        return Jitted(value, f"{self._name}.{name}") if is_method else value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._real)

    def __eq__(self, other: Any) -> bool:
        return self._real is getattr(other, "_real", other)

    def __hash__(self) -> int:
        return hash(self._real)

    def __repr__(self) -> str:
        return repr(self._real)


def _operation(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    return Jitted(function, name)(*args, **kwargs)


class _View(types.ModuleType):
    """A module of the library with wrapped functions."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        return _wrapped(getattr(self._module, name))


# What is about NumPy's machinery and not about arrays.
_LEFT = {"set_array_function_like_doc", "frompyfunc", "vectorize", "shares_memory"}


@functools.cache
def _functions() -> dict[int, Any]:
    found: dict[int, Any] = {}
    for module in _MODULES:
        for name, value in vars(module).items():
            is_function = isinstance(value, (np.ufunc, type(np.sum), types.FunctionType))
            if is_function and name not in _LEFT and name[:1] != "_":
                found.setdefault(id(value), Jitted(value, f"{module.__name__}.{name}"))
    return found


@functools.cache
def _views() -> dict[int, Any]:
    return {id(module): _View(module) for module in _MODULES}


def _wrapped(value: Any) -> Any:
    return _views().get(id(value)) or _functions().get(id(value), value)


@pytest.hookimpl(hookwrapper=True)
def pytest_pycollect_makemodule(module_path: Any, parent: Any) -> Any:
    outcome = yield
    collector = outcome.get_result()
    if not _JITTED or collector is None:
        return
    module = collector.obj  # imported now
    with_operations(
        module, lambda name, f, args, kwargs: Jitted(f, name)(*args, **kwargs), _is_traced
    )
    for name, value in list(vars(module).items()):
        setattr(module, name, _wrapped_in(value, module.__name__))


def _wrapped_in(x: Any, module: str) -> Any:
    """x with wrapped functions in it: in containers, in a class of the test module, and in what
    its methods are parametrized by."""
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        return type(x)(_wrapped_in(item, module) for item in x)
    if type(x) is dict:
        return {_wrapped_in(k, module): _wrapped_in(v, module) for k, v in x.items()}
    if isinstance(x, type) and x.__module__ == module:
        for name, value in list(vars(x).items()):
            changed = _wrapped_in(value, module)
            if changed is not value and name[:2] != "__":
                setattr(x, name, changed)
    elif isinstance(x, types.FunctionType):
        marks = getattr(x, "pytestmark", [])
        marks[:] = [
            pytest.Mark(m.name, _wrapped_in(m.args, module), m.kwargs, _ispytest=True)
            if m.name == "parametrize"
            else m
            for m in marks
        ]
    return _wrapped(x)


def pytest_runtest_logreport(report: Any) -> None:
    known = _outcomes.get(report.nodeid)
    if report.when == "call" or report.outcome != "passed" or known is None:
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        if known in (None, "passed") or outcome == "failed":
            _outcomes[report.nodeid] = outcome
        if outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            _reasons[report.nodeid] = (crash.message if crash else str(report.longrepr))[:300]


def pytest_sessionfinish() -> None:
    found = {
        "outcomes": _outcomes,
        "reasons": _reasons,
        "calls": _calls,
        "uncompiled": dict(_uncompiled.most_common()),
    }
    with open(os.environ["RUNE_JIT_SUITE_REPORT"], "w") as file:
        json.dump(found, file)
