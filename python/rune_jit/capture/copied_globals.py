"""The globals of the functions that a trace copies."""

from __future__ import annotations

import builtins
import functools
import sys
import types
from typing import TYPE_CHECKING, Any

from rune_jit.capture.imported import imported
from rune_jit.capture.loops.apart import run_apart
from rune_jit.capture.loops.appends import APPENDS
from rune_jit.capture.loops.branches import CONDITIONS, LENGTHS, branch
from rune_jit.capture.loops.calls_apart import APART
from rune_jit.capture.loops.equality import EQUALITY
from rune_jit.capture.loops.extremes import FOLDS
from rune_jit.capture.loops.handlers import HANDLERS
from rune_jit.capture.loops.iterables import iterable
from rune_jit.capture.loops.iterated import ITERABLE
from rune_jit.capture.loops.left_to_python import LEFT_TO_PYTHON
from rune_jit.capture.loops.list_results import MADE_LISTS
from rune_jit.capture.loops.positions import GRIDS
from rune_jit.capture.loops.reading import STACKS
from rune_jit.capture.loops.rebinding import BRANCH_ENTRY
from rune_jit.capture.loops.rolling import begin
from rune_jit.capture.loops.source import ENTRY, WHILE_ENTRY
from rune_jit.capture.loops.tables import TABLES
from rune_jit.capture.loops.while_loops import begin_while
from rune_jit.capture.names import (
    all_codes,
    globals_assigned,
    names_in_classes,
    tests_of_classes,
    values_in,
)
from rune_jit.capture.objects import has_usual_tests
from rune_jit.capture.printed import PRINTED
from rune_jit.capture.shim import BUILTINS
from rune_jit.capture.state import ABSENT

if TYPE_CHECKING:
    from rune_jit.capture.rebinder import Rebinder

# The functions that are called around loops and branches, by name.
_CALLED_BY_LOOPS = {
    ENTRY: begin,
    ITERABLE: iterable,
    WHILE_ENTRY: begin_while,
    BRANCH_ENTRY: branch,
    APART: run_apart,
    **CONDITIONS,
    **FOLDS,
    **GRIDS,
    **APPENDS,
    **MADE_LISTS,
    **HANDLERS,
    **STACKS,
    **TABLES,
    **EQUALITY,
    **LEFT_TO_PYTHON,
    **PRINTED,
}


@functools.cache
def calls_for_loops(code: types.CodeType) -> bool:
    """Whether the code of a function, or of an inner function, calls one of these."""
    return any(not _CALLED_BY_LOOPS.keys().isdisjoint(x.co_names) for x in all_codes(code))


class Globals(dict[str, Any]):
    """The globals of copied functions. Python calls `__getitem__` for each read of a global. The
    first read of a name replaces its value by the stand-in for the trace."""

    def __init__(self, rebinder: Rebinder, real: dict[str, Any], in_segments: bool) -> None:
        lengths = {} if in_segments else LENGTHS  # (calls of Python's own are faster)
        super().__init__(BUILTINS | lengths | _CALLED_BY_LOOPS | real)
        self["__builtins__"] = vars(builtins) | {"__import__": self._import}
        self.real = real
        self._before, self._held = dict(self), dict(real)
        self._read: set[str] = {*_CALLED_BY_LOOPS, *BUILTINS, *lengths} - real.keys()
        self._read.add("__builtins__")  # (code in C reads it to import a module)
        self._rebinder: Rebinder | None = rebinder
        self.hold(rebinder.state_of(real))

    def hold(self, state: dict[str, Any]) -> None:
        """Gives names their values in the trace. This does not wait for the first read, since the
        function may assign to a name the very object that it had outside."""
        for name, value in state.items():
            if value is not ABSENT:
                self[name] = self._before[name] = value
                self._read.add(name)

    def __getitem__(self, name: str) -> Any:
        if self._rebinder is None and name in self.real:
            return self.real[name]
        value = super().__getitem__(name)
        now = self.real.get(name, ABSENT)  # (code that is not copied may have assigned it)
        if name not in self._read or now is not self._held.get(name, ABSENT):
            self._read.add(name)
            # (The trace still runs, and has not assigned the name.)
            if self._rebinder and name in self._before and value is self._before[name]:
                if now is ABSENT and name in self._held:
                    del self[name], self._before[name], self._held[name]
                    raise KeyError(name)  # (Python turns this into a NameError)
                self._held[name] = now
                value = value if now is ABSENT else now
                is_tested = isinstance(value, type) and self._is_tested(value, sys._getframe(1))
                if is_tested:
                    self._read.discard(name)  # (a later read may be of another kind)
                value = self._rebinder.read(self.real, name, value, is_tested)
                self[name] = self._before[name] = value
        return value

    def attribute(self, module: types.ModuleType, name: str) -> Any:
        """Reads an attribute of the module."""
        if name in self.real or (name in self and name not in self._before):
            return self[name]
        return getattr(module, name)  # (the module's `__getattr__`, or an AttributeError)

    def learn(self, code: types.CodeType) -> None:
        """Called with code that may run. `len` is Python's own for code that reads it without
        calling it, because this may compare it with other functions."""
        for name in LENGTHS.keys() & values_in(code)[0] & self.keys() - self.real.keys():
            self[name] = self._before[name] = getattr(builtins, name)
        for name in names_in_classes(code) & self.real.keys():
            self[name]  # (the bodies of classes do not call `__getitem__`)
        if self._rebinder is None:
            return
        # (`assigned` does not see that the trace assigns the very object that a global holds.)
        for name in globals_assigned(code) & self.real.keys():
            self._rebinder.guard_assigned(self.real, name)

    def _is_tested(self, kind: type, reader: types.FrameType) -> bool:
        """Whether code reads a class only as an argument of isinstance or issubclass."""
        is_test = reader.f_lasti in tests_of_classes(reader.f_code)
        are_pythons = self.real.keys().isdisjoint(("isinstance", "issubclass"))
        return is_test and are_pythons and has_usual_tests(kind)

    def __missing__(self, name: str) -> Any:
        """Reads a name that code without a copy has assigned."""
        if self._rebinder is None or name in self._before or name not in self.real:
            raise KeyError(name)
        self._held[name] = self.real[name]
        self[name] = self._before[name] = value = self._rebinder.read(
            self.real, name, self._held[name]
        )
        self._read.add(name)
        return value

    def _import(self, *args: Any, **kwargs: Any) -> Any:
        """Imports a module. Returns its stand-in."""
        module = imported(__import__, *args, **kwargs)
        return self._rebinder.inside(module) if self._rebinder else module

    def forget(self) -> None:
        """Ends the use of stand-ins. Functions that outlive the trace, such as results, read the
        module's globals. Around their loops they call functions that leave these to Python."""
        self.clear()
        self.update(_CALLED_BY_LOOPS | self.real)  # (the bodies of classes read these)
        self._before, self._held = {}, {}
        self._rebinder = None

    def assigned(self) -> dict[str, Any]:
        """The values that the trace has assigned; ABSENT for names that it has deleted."""
        before = self._before
        deleted = dict.fromkeys(self.real.keys() & before.keys() - self.keys(), ABSENT)
        return deleted | {k: v for k, v in self.items() if before.get(k, ABSENT) is not v}


def has_copied_globals(x: Any) -> bool:
    """Whether x is a function that a trace has copied or made."""
    return isinstance(x, types.FunctionType) and isinstance(x.__globals__, Globals)
