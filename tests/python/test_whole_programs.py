"""Whole programs (programs/*.py), each a module as its author wrote it, with state of its own.
CALLS lists calls: a function's name and what makes its arguments. Under jit they are what they are
without it: results, types, arguments, globals, attributes of classes, what is printed and logged,
errors. First the called functions are jitted, then all functions and methods of the module."""

from __future__ import annotations

import contextlib
import enum
import inspect
import io
import itertools
import logging
import random
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune_jit

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
_ROUNDS = 4
_MODULE = "program_under_test"  # both modules have this name, so that texts are the same
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


def load(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = types.ModuleType(_MODULE)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, _MODULE, module)  # dataclasses look for it
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return module


def jit_functions(module: Any, of_all: bool) -> None:
    called = {name for name, _ in module.CALLS}
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) != _MODULE:
            continue
        if isinstance(value, types.FunctionType) and (of_all or name in called):
            setattr(module, name, rune_jit.jit(value, fallback="silent"))
        elif isinstance(value, type) and of_all and not issubclass(value, enum.Enum):
            for member, method in list(vars(value).items()):
                is_own = isinstance(method, types.FunctionType) and member != "__array__"
                if is_own and method.__code__.co_filename == module.__file__:
                    setattr(value, member, rune_jit.jit(method, fallback="silent"))


def differences(want: Any, got: Any, path: str, seen: set[Any]) -> Iterator[str]:
    """How `got` differs from what NumPy gives."""
    if isinstance(want, types.FunctionType | types.ModuleType) or (id(want), id(got)) in seen:
        return
    seen.add((id(want), id(got)))
    if isinstance(got, rune_jit.JitFunction):
        return
    kinds = [(type(x).__module__, type(x).__qualname__) for x in (want, got)]
    if kinds[0] != kinds[1]:
        yield f"{path}: {kinds[0]} {want!r}, {kinds[1]}"
    elif isinstance(want, np.ndarray | np.generic) and want.dtype != object:
        if want.dtype != got.dtype or want.shape != got.shape or not _are_close(want, got):
            yield f"{path}: {want!r}, {got!r}"
    elif isinstance(want, float | complex):
        if not np.isclose(got, want, rtol=1e-9, atol=1e-12, equal_nan=True):
            yield f"{path}: {want!r}, {got!r}"
    elif isinstance(want, str):
        if not _is_same_text(want, got):
            yield f"{path}: {want!r}, {got!r}"
    elif isinstance(want, list | tuple | dict) or hasattr(want, "__dict__"):
        parts = [_parts(x) for x in (want, got)]
        if list(map(repr, parts[0])) != list(map(repr, parts[1])):
            yield f"{path}: {list(parts[0])}, {list(parts[1])}"
        else:
            for key, a, b in zip(parts[0], parts[0].values(), parts[1].values(), strict=True):
                yield from differences(a, b, f"{path}[{key!r}]", seen)
    elif hasattr(type(want), "__slots__"):
        for name in type(want).__slots__:
            pair = (getattr(x, name, None) for x in (want, got))
            yield from differences(*pair, f"{path}.{name}", seen)
    elif type(want).__eq__ is not object.__eq__ and want != got:
        yield f"{path}: {want!r}, {got!r}"


def _parts(x: Any) -> dict[Any, Any]:
    own = dict(enumerate(x)) if isinstance(x, list | tuple) else dict(x) if type(x) is dict else {}
    return own | {f".{name}": value for name, value in getattr(x, "__dict__", {}).items()}


def _are_close(want: Any, got: Any) -> bool:
    if want.dtype.kind not in "fc":
        return np.array_equal(want, got)
    finite = np.abs(want[np.isfinite(want)])
    scale = float(finite.max()) if finite.size else 0.0
    return np.allclose(got, want, rtol=1e-9, atol=1e-9 * scale, equal_nan=True)


def _is_same_text(want: str, got: str) -> bool:
    if _NUMBER.sub("#", want) != _NUMBER.sub("#", got):
        return False
    pairs = zip(*([float(x) for x in _NUMBER.findall(text)] for text in (want, got)), strict=True)
    return all(abs(a - b) <= 1e-3 * abs(a) + 1e-9 for a, b in pairs)


def state_of(module: Any) -> dict[str, Any]:
    """What the names of a module and of its classes hold, without functions and NumPy's classes."""
    held = {name: x for name, x in vars(module).items() if name[:2] != "__" and name != "CALLS"}
    found = {name: x for name, x in held.items() if not callable(x) and not inspect.ismodule(x)}
    own = [x for x in held.values() if isinstance(x, type) and x.__module__ == _MODULE]
    kinds = (np.ndarray, int, float, list, dict)
    for kind in own:
        for name, x in vars(kind).items():
            if isinstance(x, kinds) and name[:2] != "__":
                found[f"{kind.__name__}.{name}"] = x
    return found


class _Messages(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(("rune_jit", "asyncio")):
            self.texts.append(record.getMessage())


def outcome(module: Any, call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The result, or the error, what is printed, logged and warned, and the next random numbers."""
    np.random.seed(1)
    random.seed(1)
    printed, messages, result = io.StringIO(), _Messages(), None
    monkeypatch.setitem(sys.modules, _MODULE, module)
    monkeypatch.setattr(logging.root, "handlers", [messages])
    monkeypatch.setattr(logging.root, "level", logging.INFO)
    with warnings.catch_warnings(record=True) as found, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            result = call()
            result = list(result) if inspect.isgenerator(result) else result
        except Exception as error:
            result = [type(error).__qualname__, str(error)]
    texts = [str(x.message) for x in found if x.category is DeprecationWarning]
    drawn = [np.random.random(), random.random()]
    return [result, printed.getvalue(), messages.texts, texts, drawn]


@pytest.mark.parametrize("of_all", [False, True], ids=["called functions", "all functions"])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path: Path, of_all: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [load(path, monkeypatch), load(path, monkeypatch)]
    jit_functions(modules[1], of_all)
    for seed, i in itertools.product(range(_ROUNDS), range(len(modules[0].CALLS))):
        seen = []
        for module in modules:
            name, make = module.CALLS[i]
            monkeypatch.setitem(sys.modules, _MODULE, module)
            arguments = make(np.random.default_rng(seed))
            function = getattr(module, name)
            found = outcome(module, lambda: function(*arguments), monkeypatch)  # noqa: B023
            seen.append([found, arguments, state_of(module)])
        where = f"{module.CALLS[i][0]}, call {i} with seed {seed}"
        assert not [*differences(seen[0], seen[1], where, set())]
