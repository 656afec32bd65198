"""Finds the object that a trace calls for a callee: a copy of the user's function, or the stand-in
for another function or class."""

from __future__ import annotations

import functools
import types
import weakref
from typing import TYPE_CHECKING, Any

from rune_jit import _core
from rune_jit.bound import BoundJit
from rune_jit.capture.foreign import has_stand_in, module_of
from rune_jit.capture.guards import Watch
from rune_jit.capture.loops.members import can_be_made
from rune_jit.capture.objects import is_bar, is_library, may_act_unseen
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.trace import Trace

if TYPE_CHECKING:
    from rune_jit.capture.rebinder import Rebinder


class Callees:
    """Finds the objects to call, whether the callees come from names, lists or attributes. Only the
    call sees a copy, so code that compares functions sees the functions themselves."""

    def __init__(self, trace: Trace, watch: Watch, rebind: Rebinder) -> None:
        self._trace, self._watch = trace, watch
        self._rebind = weakref.proxy(rebind)  # (a cycle of references would keep the trace alive)
        self._known: dict[int, tuple[Any, Any]] = trace.callees
        self._plain_kinds: set[Any] = set()  # classes whose objects are called themselves
        self._objects: dict[int, Any] = {}  # by id of an object with methods: its stand-in

    def end_early(self) -> bool:
        """Called when code looks for a callee. Ends a trace in segments that does not pay, also if
        it computes nothing. Returns whether it has ended. Raises UnsupportedOpError if the trace of
        a whole program does not pay."""
        trace: Any = self._trace
        trace.note_steps()
        return bool(trace.gave_up) and trace.end_early()

    def __call__(self, x: Any) -> Any:
        """The object to call for x."""
        if self.end_early():
            return x
        kind: Any = type(x)
        if kind in self._plain_kinds:
            return x
        # Python calls the functions of jitted ones without a frame of ours, which would keep the
        # arguments.
        if issubclass(kind, _core.Dispatcher):
            return self._rebind(x._fn)
        if kind is BoundJit:
            return types.MethodType(self._rebind(x._jit._fn), x.__self__)
        if kind is types.MethodType:
            copy = self._method(x.__func__)
            return x if copy is x.__func__ else self._bound(copy, x.__self__)
        if kind is functools.partial:
            copy, inside = self(x.func), self._rebind.inside
            if not self._watch.knows(x):
                return x if copy is x.func else functools.partial(copy, *x.args, **x.keywords)
            kwargs = {name: inside(value) for name, value in x.keywords.items()}
            return functools.partial(copy, *map(inside, x.args), **kwargs)
        if isinstance(x, type) and not issubclass(x, BaseException):
            self._refuse_effects(x, x.__module__)
        if kind is type and can_be_made(x):
            is_made = self._trace.loops is not None or self._trace.is_segmented
            return self._rebind.class_for(x) if is_made else x
        if has_stand_in(kind):
            return self._function(x)
        call = next((vars(x)["__call__"] for x in kind.__mro__ if "__call__" in vars(x)), None)
        if (copy := self._method(call)) is not call:
            return self._bound(copy, x)
        self._refuse_effects(kind, kind.__module__)
        if is_library(kind.__module__):
            self._plain_kinds.add(kind)
        return x

    def _method(self, function: Any) -> Any:
        """The object to call for the function of a method. Functions of other packages are called
        themselves: there are many, and reading their sources would take seconds."""
        kind: Any = type(function)
        if kind is not types.FunctionType:  # (Cython's methods have stand-ins)
            return self._function(function) if has_stand_in(kind) else function
        known = self._known.get(id(function))
        if known is None and self._watch.is_foreign(function.__module__):
            self._refuse_effects(function, function.__module__)
            self._watch.learn(function.__code__, True)
            known = self._known[id(function)] = (function, function)
        return self._function(function) if known is None else known[1]

    def _refuse_effects(self, x: Any, module: str | None) -> None:
        """Raises UnsupportedOpError for code of Python or another package, which is not copied,
        unless Python runs it at each call."""
        is_seen = self._trace.is_segmented or not self._watch.is_foreign(module) or is_bar(x)
        if not is_seen and may_act_unseen(module):
            package = str(module).partition(".")[0]
            raise UnsupportedOpError(
                f"{x.__qualname__}: cannot trace code of {package} (what it does besides computing"
                " would happen once, not at each call)\nhint: call it outside"
            )

    def _function(self, x: Any) -> Any:
        """The object to call for a function or class."""
        if (known := self._known.get(id(x))) is not None:
            return known[1]
        if type(x) is not types.FunctionType or is_library(x.__module__):
            if isinstance(x, (types.FunctionType, types.BuiltinFunctionType)) and module_of(x):
                self._refuse_effects(x, module_of(x))
            made = self._rebind.stand_in(x)
        elif type(x.__globals__) is not dict:
            return x  # (made by the trace)
        else:
            self._trace.need_identity(x)
            if self._trace.is_segmented:
                self._rebind.told_apart.note_code(x)
            made = self._rebind.copied(x)
        self._known[id(x)] = (x, made)
        return made

    def _bound(self, function: Any, x: Any) -> Any:
        """A function as a method of an object, or of its stand-in."""
        if self._watch.knows(x):
            if id(x) not in self._objects:
                self._objects[id(x)] = self._rebind.inside(x)
            x = self._objects[id(x)]
        return types.MethodType(function, x)
