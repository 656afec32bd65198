"""Guards against effects in code that a trace does not copy: special methods, properties, methods
of objects without arrays. Such code calls Python's own functions with effects, and clocks. While a
trace runs, these functions are replaced by ones that refuse calls in the trace's thread."""

from __future__ import annotations

import builtins
import functools
import gc
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.capture.replacing import Place, Replacing
from rune_jit.capture.shim import replacements, warn
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import current_trace, is_library_file, is_own
from rune_jit.tracing.trace import Trace

_IMPURE = "time os posixpath ntpath glob uuid warnings logging threading secrets"
_MODULES = tuple(_IMPURE.split())
# Python's audit events before something happens to files, processes or connections.
_EVENTS = (
    "glob.glob glob.glob/2 mmap.__new__ open os.chdir os.chmod os.chown os.exec os.fork os.forkpty"
    " os.getxattr os.kill os.killpg os.link os.listdir os.listdrives os.listvolumes os.listxattr"
    " os.lockf os.mkdir os.posix_spawn os.putenv os.remove os.removexattr os.rename os.rmdir"
    " os.scandir os.setxattr os.spawn os.startfile os.symlink os.system os.truncate os.unsetenv"
    " os.utime os.walk os.fwalk pathlib.Path.glob pathlib.Path.rglob shutil.copyfile"
    " shutil.copymode shutil.copystat shutil.copytree shutil.make_archive shutil.move"
    " shutil.rmtree shutil.unpack_archive socket.bind socket.connect socket.sendmsg socket.sendto"
    " sqlite3.connect subprocess.Popen tempfile.mkdtemp tempfile.mkstemp urllib.Request"
    " webbrowser.open"
)
# Modules of Python's that read the sources of code, or that run functions at any time. Their events
# are not the traced function's.
_LET_THROUGH = frozenset(("inspect.py", "linecache.py", "tokenize.py", "weakref.py"))
_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_BACKENDS, _CALLS = (os.path.join(_PACKAGE, name, "") for name in ("backends", "calls"))


@contextmanager
def refused(trace: Trace) -> Iterator[None]:
    """A block in which the user's code, in this thread, raises UnsupportedOpError if it calls a
    function that must run at each call. Does nothing in segments, where such functions run at each
    call."""
    if trace.is_segmented:
        yield
        return
    _watch_events()
    with _stand_ins.block():
        yield


@functools.cache
def _watch_events() -> None:
    _core.watch_events(_EVENTS.split(), _refuse_event)


def _refuse_event(event: str) -> None:
    """Raises UnsupportedOpError before an audit event of Python's that the traced function causes,
    also by a library."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(_CALLS):
        file = frame.f_code.co_filename
        if file.startswith(("<frozen importlib", _BACKENDS)) or frame.f_code.co_name == "__del__":
            return  # an import, a compilation, or an object that has been freed meanwhile
        if os.path.basename(file) in _LET_THROUGH and is_library_file(file):
            return
        frame = frame.f_back
    # (Without a frame of a call, no trace runs: see context.running_trace.)
    if frame is not None and not _collects(sys._getframe(1)):
        raise UnsupportedOpError(
            f"{event}: cannot trace what a function does with files, processes or connections (it"
            " would happen once, not at each call)\nhint: do it outside"
        )


@functools.cache
def _functions() -> list[Place]:
    """The functions that must run at each call: module, name, function, replacement."""
    modules = [sys.modules[name] for name in _MODULES if name in sys.modules]
    named = [(module, name) for module in modules for name in vars(module)]
    named += [(builtins, name) for name in ("print", "open", "input")]
    named.append((np.random, "default_rng"))
    found = []
    for module, name in named:
        real = getattr(module, name)
        refusing = replacements().get(id(real))
        if isinstance(refusing, types.FunctionType) and not isinstance(real, type):
            found.append((module, name, real, _for_users(real, refusing)))
    return found


_stand_ins = Replacing(_functions)


def replaces(names: dict[str, Any], name: str) -> bool:
    """Whether this module replaces a function with this name in a module while a trace runs."""
    return (names.get("__name__"), name) in _names()


@functools.cache
def _names() -> set[tuple[Any, str]]:
    return {(owner.__name__, name) for owner, name, _, _ in _functions()}


def refuse(x: Any) -> None:
    """Raises UnsupportedOpError if code that is not copied names such a function itself."""
    if id(x) in _ids() and (trace := current_trace()) is not None and trace.decides:
        raise UnsupportedOpError(
            f"{x.__name__}: cannot trace this function in a method of an object without arrays (it"
            " would run once, not at each call)\nhint: call it outside"
        )


@functools.cache
def _ids() -> set[int]:
    """The ids of the functions, except for default_rng, which may have a seed."""
    return {id(real) for module, _, real, _ in _functions() if module is not np.random}


def _collects(frame: types.FrameType | None) -> bool:
    """Whether a frame is in a callback of the garbage collector, which may run at any time."""
    codes = [getattr(f, "__code__", None) for f in gc.callbacks]
    while frame is not None and codes:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def _for_users(real: Any, refusing: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def function(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename
        is_users = not (is_own(caller) or is_library_file(caller))
        if is_users and current_trace() is not None and not _collects(sys._getframe(1)):
            return refusing(*args, **kwargs)
        return call(*args, **kwargs)

    call = warn if real is warnings.warn else real
    return function
