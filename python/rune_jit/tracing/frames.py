"""Local variables of functions that run."""

from __future__ import annotations

import contextlib
import dis
import importlib
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.tracing.context import is_own, may_handle_errors


def callers(end: types.CodeType) -> Iterator[types.FrameType]:
    """The frames from here up to the frame of the code `end`, without frames of rune_jit and
    NumPy."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not end:
        if not is_own(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


# The innermost frame outside rune_jit and NumPy.
user_frame: Callable[[], types.FrameType | None] = _core.user_frame


def is_of_xarray(frame: types.FrameType) -> bool:
    """Whether a frame belongs to xarray. Its objects hold traced arrays. It asks 0-d arrays that
    are numbers for their values, and calls functions of NumPy that the array API standard lacks."""
    return "/xarray/" in frame.f_code.co_filename


def namespace_for(frame: types.FrameType, api_version: Any) -> Any:
    """The array API's namespace for NumPy's arrays that a frame gets. If the frame belongs to
    array_api_compat, or to a library's copy of it, this is that package's module for NumPy.
    Otherwise it is NumPy."""
    name: str = frame.f_globals.get("__name__", "")
    above, found, _ = name.partition("array_api_compat")
    if found:
        with contextlib.suppress(ModuleNotFoundError):  # xarray's module has this name, too
            return importlib.import_module(f"{above}{found}.numpy")
    return np.empty(0).__array_namespace__(api_version=api_version)


def is_shuffling(frame: types.FrameType | None) -> bool:
    """Whether the user's frame may be calling a compiled function named `shuffle`."""
    if frame is None or "shuffle" not in frame.f_code.co_names:
        return False
    operation = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return operation.startswith(("CALL", "PRECALL"))


def replace_locals(frame: types.FrameType, replace: Callable[[Any], Any]) -> None:
    """Replaces the value of each local variable by the result of `replace`."""
    if not frame.f_code.co_flags & _HAS_FAST_LOCALS:
        return
    held = frame.f_locals
    changed = {name: new for name, x in held.items() if (new := replace(x)) is not x}
    if not changed:
        return
    held.update(changed)
    if sys.version_info < (3, 13):  # later versions write to the variables
        import ctypes

        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


_HAS_FAST_LOCALS = 1  # inspect.CO_OPTIMIZED


def index_of(x: Any) -> int:
    """operator.index(x). Raises Python's TypeError for the item or slice that the user's frame
    reads or assigns, in which x must be an integer."""
    try:
        return operator.index(x)
    except TypeError:
        frame = user_frame()
        if frame is None or not isinstance(x, np.generic):
            raise
        code, at = frame.f_code.co_code, frame.f_lasti
        last, before = dis.opname[code[at]], dis.opname[code[at - 2]]
        if last in ("BINARY_SLICE", "STORE_SLICE") or before == "BUILD_SLICE":
            slice(x).indices(0)
        elif last.endswith("_SUBSCR"):
            operator.getitem([], x)  # type: ignore[misc]
        raise


def is_handler_active() -> bool:
    """Whether a function of the user, called in the current call in segments, handles
    exceptions."""
    frame = user_frame()
    while frame is not None and not is_own(frame.f_code.co_filename):
        if may_handle_errors(frame.f_code):
            return True
        frame = frame.f_back
    return False


_MATCH_CLASS = dis.opmap["MATCH_CLASS"]
_LOAD = frozenset(dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap)


def is_class_asked(frame: types.FrameType, by_isinstance: bool = True) -> bool:
    """Whether a frame of the user reads x.__class__, or may call isinstance or match a class. (In
    methods that are not copied, `numpy.ndarray` is NumPy's class and not a stand-in.)"""
    code = frame.f_code
    if is_own(code.co_filename):
        return False
    is_match = code.co_code[frame.f_lasti] == _MATCH_CLASS
    may_ask = is_match or (by_isinstance and "isinstance" in code.co_names)
    return may_ask or is_named(frame, "__class__")


def is_named(frame: types.FrameType, name: str) -> bool:
    """Whether a frame reads an attribute that its code may name so. (Code in C may read others.)"""
    code = frame.f_code
    return name in code.co_names and code.co_code[frame.f_lasti] in _LOAD
