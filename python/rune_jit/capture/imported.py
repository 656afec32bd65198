"""Imports in a trace, and stand-ins for `sys.modules` and `importlib.import_module`. The modules
that these give are the trace's stand-ins, as those of `import` statements are."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from rune_jit import _core
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import current_trace


class Modules(MutableMapping[str, Any]):
    """The stand-in for `sys.modules`."""

    def __getitem__(self, name: str) -> Any:
        module, trace = sys.modules[name], current_trace()
        return module if trace is None else trace.rebind.read(sys.modules, name, module)

    def __setitem__(self, name: str, module: Any) -> None:
        _refuse_change()
        trace = current_trace()
        sys.modules[name] = module if trace is None else trace.rebind.outside(module)

    def __delitem__(self, name: str) -> None:
        _refuse_change()
        del sys.modules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sys.modules)

    def __len__(self) -> int:
        return len(sys.modules)


def _refuse_change() -> None:
    trace = current_trace()
    if trace is not None and not trace.is_segmented:
        raise UnsupportedOpError(
            "sys.modules: cannot trace a change (it would happen once, not at each call)\n"
            "hint: do it outside"
        )


MODULES = Modules()


def imported(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function that imports a module. The module's code is no part of the trace, which
    could refuse it and leave half of a package."""
    _core.suspend_traces()
    try:
        return function(*args, **kwargs)
    finally:
        _core.resume_traces()


def import_module(name: str, package: str | None = None) -> Any:
    """The stand-in for importlib.import_module."""
    imported(importlib.import_module, name, package)
    return MODULES[importlib.util.resolve_name(name, package)]


PAIRS = [(sys.modules, MODULES), (importlib.import_module, import_module)]
