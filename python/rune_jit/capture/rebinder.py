"""Copies functions for a trace. In a copy's globals and cells, shim.py's functions replace
NumPy's, and traced arrays replace arrays. A copy reads names through this module, which records
them (guards.py)."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import sys
import types
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.bound import METHODS, method_of
from rune_jit.capture import in_modules, shim
from rune_jit.capture.callees import Callees
from rune_jit.capture.class_tests import refuse_identity_in_methods
from rune_jit.capture.copied_globals import Globals, has_copied_globals
from rune_jit.capture.creation import as_it_is, refuse_reports
from rune_jit.capture.foreign import Compiled, OnHost, is_compiled, public_name
from rune_jit.capture.grown import Grown
from rune_jit.capture.guards import Watch
from rune_jit.capture.loops.appends import append
from rune_jit.capture.loops.asking import asking
from rune_jit.capture.loops.callees import refuse_identity
from rune_jit.capture.loops.growing import result_of, watch
from rune_jit.capture.loops.source import with_loops, with_loops_apart
from rune_jit.capture.loops.structures import new_object
from rune_jit.capture.made_objects import MadeObjects
from rune_jit.capture.math_functions import is_of_math
from rune_jit.capture.names import (
    assigns_globals,
    handles_errors,
    is_assigned_beside,
    is_read_in_classes,
    names_in,
)
from rune_jit.capture.objects import (
    has_own_arithmetic,
    is_bar,
    is_copied,
    is_library,
    is_of_pandas,
    is_replaceable,
    methods_through,
)
from rune_jit.capture.outside import UNIQUE, is_class_of_call, of_numpy, outside_of
from rune_jit.capture.random_methods import Outside
from rune_jit.capture.shim import IMPURE, ModuleView, of_lists, original, replacements
from rune_jit.capture.stand_ins import (
    StandIn,
    refuse_code,
    refuse_identity_of_arguments,
)
from rune_jit.capture.state import ABSENT, FunctionAttributes, Slot
from rune_jit.errors import StateChangedError, UnsupportedOpError
from rune_jit.rules.on_host import Vectorized
from rune_jit.tracing.trace import Trace
from rune_jit.trees import PLAIN

_REBOUND = (types.FunctionType, *METHODS, functools.partial)


class Rebinder:
    """Copies the functions of one trace, with their globals and cells."""

    def __init__(self, trace: Trace, watch: Watch, copies_holders: bool = True) -> None:
        self._trace = trace
        self._state: dict[Any, Any] = {}  # by key of a slot: its value in the trace
        self._assigned: dict[Any, Any] = {}  # by key of a slot: its new value after the trace
        self._holders: set[int] = set()  # ids of the slots' holders
        self._grown: list[Grown] = []
        self._attributes: list[tuple[Any, Any]] = []  # the dicts of objects and of their copies
        self._copies_holders = copies_holders  # whether to copy holders of arrays
        self._watch = watch
        self._copies: dict[int, Any] = {}  # by id of an object: the object, its copy or stand-in
        self._cells: list[tuple[Any, Any, Any]] = []  # (cell, its copy, the content at the start)
        self._named: set[int] = set()  # ids of the functions whose copies code has got by name
        self.callee = Callees(trace, watch, self)
        self.cell_copies: dict[int, tuple[Any, Any]] = {}  # by id of a cell: the cell, its copy
        self.has_assigned_cells = False  # whether functions may assign cells that have copies
        self._globals: dict[int, Globals] = {}  # by id of the module's own
        self._made_objects = MadeObjects()
        self._function_attributes: list[FunctionAttributes] = []
        self.told_apart = watch.told_apart

    def hold(self, slots: Sequence[Slot], values: Sequence[Any]) -> None:
        """Gives slots their values in the trace."""
        self._state = {slot.key: x for slot, x in zip(slots, values, strict=True)}
        self._holders = {id(slot.holder) for slot in slots}
        for copy in self._globals.values():
            copy.hold(self.state_of(copy.real))
        for slot in slots:
            if slot.kind == "grown":  # (its arrays must be older than all loops)
                self.inside(slot.holder)

    def state_of(self, names: dict[str, Any]) -> dict[str, Any]:
        """The values in the trace of the slots in a module's or an object's dict, by name."""
        at = ("item", id(names))
        return {key[2]: x for key, x in self._state.items() if key[:2] == at}

    def end(self) -> None:
        """Called at the end of the trace, while it is active."""
        for grown in self._grown:
            grown.result = result_of(self._trace, grown.new)

    def assigned(self) -> dict[Any, Any]:
        """By key of a slot: its value at the end of the trace, if that is another object."""
        found = dict(self._assigned)
        for real, copy in self._copies.values():
            if type(copy) is Grown and copy.result:
                found["grown", id(real), None] = copy.result
        for real, now in self._attributes:
            for (kind, at, name), value in self._state.items():
                if kind == "item" and at == id(real) and now.get(name, ABSENT) is not value:
                    found[kind, at, name] = now.get(name, ABSENT)
        return found

    def is_copy(self, x: Any) -> bool:
        """Whether x is the trace's copy of a container or object."""
        return any(copy is x for _, copy in self._copies.values())

    def has_copy_of(self, x: Any) -> bool:
        """Whether the trace has a copy of x."""
        real, copy = self._copies.get(id(x), (None, None))
        return real is x and copy is not x

    def __call__(self, function: Any) -> Any:
        """The function that runs in the trace in place of this one."""
        if isinstance(function, METHODS):
            return types.MethodType(self(function.__func__), self.inside(function.__self__))
        if isinstance(function, functools.partial):
            args = map(self.inside, function.args)
            kwargs = {name: self.inside(value) for name, value in function.keywords.items()}
            return functools.partial(self(function.func), *args, **kwargs)
        if not isinstance(function, types.FunctionType):
            call = inspect.getattr_static(type(function), "__call__", None)
            if isinstance(call, types.FunctionType) and not is_library(type(function).__module__):
                return types.MethodType(self(call), self.inside(function))
            self._watch.look(function)
            return replacements().get(id(function), function)
        if is_library(function.__module__):
            return function
        known = self._copies.get(id(function))
        if known is not None and id(function) in self._named:
            return known[1]
        if not isinstance(function.__globals__, Globals):
            self._trace.need_identity(function)
        if self._trace.is_segmented:
            self.told_apart.note_code(function)
        if self._copies and self.told_apart.holds(function):
            self._watch.look(function)
            return function
        is_first = not self._copies
        self._named.add(id(function))
        copy = self.copied(function)
        if not is_first and copy is not function:
            self.told_apart.note_copy(function)
        return copy

    def copied(self, function: types.FunctionType) -> Any:
        """The copy of a function. In segments, the function itself if it cannot be copied."""
        if (known := self._copies.get(id(function))) is not None:
            return known[1]
        shim.see_replaced(names_in(code := function.__code__))
        try:
            refuse_code(code)
            if not self._trace.is_segmented:
                self._watch.packages.note(function)
                if self._trace.may_repeat:
                    refuse_identity_of_arguments(code)
            if self._trace.is_segmented and assigns_globals(code):
                return as_it_is(self._trace, function)  # (methods that are not copied read these)
            named = zip(function.__closure__ or (), code.co_freevars, strict=True)
            cells = [self._cell(cell, function, name) for cell, name in named]
            traced_code = self._code_of(function)
            if traced_code is code:
                refuse_identity(code)
        except UnsupportedOpError:
            if self._trace.is_segmented and self._copies:
                return as_it_is(self._trace, function)  # (the call has begun)
            raise
        held = self._copy_of(function.__globals__)
        copy = types.FunctionType(traced_code, held, function.__name__, None, (*cells,))
        copy.__qualname__ = function.__qualname__
        copy.__module__, copy.__doc__ = function.__module__, function.__doc__
        if sys.version_info < (3, 14):
            copy.__annotations__ = function.__annotations__
        self._copies[id(function)] = (function, copy)
        attributes = FunctionAttributes(function, self._attribute)
        self._function_attributes.append(attributes)
        is_foreign = self._watch.is_foreign(function.__module__)
        self._watch.learn(function.__code__, is_foreign)
        if is_foreign:
            self._watch.is_strict = True
        else:
            self._watch.guard_function(function)
        attributes.give(copy, tuple(map(self.inside, function.__defaults__ or ())))
        defaults = function.__kwdefaults__ or {}
        copy.__kwdefaults__ = {name: self.inside(value) for name, value in defaults.items()}
        for real, cell in zip(function.__closure__ or (), cells, strict=True):
            if cell is not real and cell == types.CellType():
                key = ("cell", id(real), None)
                inside = self._state[key] if key in self._state else self.inside(real.cell_contents)
                if cell == types.CellType():  # (copying the contents may have filled the cell)
                    cell.cell_contents = inside
                    self._cells.append((real, cell, inside))
        self._copy_of(function.__globals__).learn(function.__code__)
        if function.__name__ == "__array__":
            self._copies[id(function)] = (function, of_numpy(copy))
        return self._copies[id(function)][1]

    def _attribute(self, x: types.FunctionType) -> Any:
        with contextlib.suppress(UnsupportedOpError):
            return self(x)
        return x  # (it is refused when it is called)

    def _code_of(self, function: types.FunctionType) -> types.CodeType:
        if self._trace.loops is not None:
            return with_loops(function)
        trace: Any = self._trace
        if not trace.is_segmented or trace.gave_up:
            return asking(function)
        code = with_loops_apart(function)
        trace.note_read()
        return code

    def finish(self) -> None:
        """Makes the trace's assignments to globals, variables of outer functions and attributes of
        functions outside of the trace."""
        self._made_objects.finish()
        for attributes in self._function_attributes:
            attributes.hand_on(outside_of)
        for copy in self._globals.values():
            for name, value in copy.assigned().items():
                self._assign(copy.real, name, value)
        for cell, copied, inside in self._cells:
            if copied.cell_contents is inside:
                continue
            if ("cell", id(cell), None) in self._state:
                self._assigned["cell", id(cell), None] = copied.cell_contents
            else:
                cell.cell_contents = outside_of(copied.cell_contents)

    def class_for(self, kind: Any) -> Any:
        """The class that a trace calls in place of a class, to make an object."""
        return self._made_objects.class_for(kind, self)

    def may_handle_errors(self) -> bool:
        """Whether a copied function, or one in it, has a `try` or `with` statement."""
        codes = (getattr(function, "__code__", None) for function, _ in self._copies.values())
        return any(code is not None and handles_errors(code) for code in codes)

    def forget(self) -> tuple[list[tuple[weakref.ref[Any], Any]], list[Any]]:
        """Ends the use of the copies. Functions that outlive the trace read the globals of their
        module from now on. Returns pairs of a copied function and its original, and stand-ins."""
        for copy in self._globals.values():
            copy.forget()
        for _, copied, _ in self._cells:
            copied.cell_contents = self.outside(copied.cell_contents)
        copies = self._copies.values()
        functions = [(weakref.ref(x), real) for real, x in copies if type(x) is types.FunctionType]
        stand_ins = [x for _, x in copies if issubclass(type(x), (StandIn, ModuleView))]
        for held in (self._copies, self._trace.callees, self._cells, self.cell_copies):
            held.clear()
        return functions, stand_ins

    def read(self, names: dict[str, Any], name: str, value: Any, is_tested: bool = False) -> Any:
        """Reads a name of a module. Returns the stand-in for its value in the trace. `is_tested`
        tells whether it is a class that is only an argument of isinstance or issubclass."""
        if (key := ("item", id(names), name)) in self._state:
            return self._assigned.get(key, self._state[key])
        if self._watch.is_foreign(names.get("__name__")):
            self._watch.guard_of_library(names, name, value)
            return self.stand_in(value)
        self._watch.guard_item(names, name, value)
        return self.stand_in(value) if is_tested else self.inside(value)

    def _assign(self, names: dict[str, Any], name: str, value: Any) -> None:
        if (key := ("item", id(names), name)) in self._state:
            self._assigned[key] = value
            return
        self.guard_assigned(names, name)
        Slot("item", names, name).write(outside_of(value))

    def guard_assigned(self, names: dict[str, Any], name: str) -> None:
        """Notes what a global that the trace may assign holds now."""
        if ("item", id(names), name) not in self._state:
            self._watch.guard("item", names, name, names.get(name, ABSENT))

    def inside(self, value: Any) -> Any:
        """The stand-in for a value of a cell, a default argument or a container in the trace."""
        if type(value) in PLAIN or is_bar(value):
            return value
        if (stand_in := self.stand_in(value)) is value:
            self._watch.look(value)
        return stand_in

    def stand_in(self, value: Any) -> Any:
        trace: Any = self._trace
        kind: Any = type(value)
        if trace.is_segmented and (is_of_pandas(value) or has_own_arithmetic(kind)):
            name = getattr(value, "__name__", kind.__name__)
            trace.give_up(f"it uses {name}, which does not know traced arrays")
            return value
        if (replacement := replacements().get(id(value))) is not None:
            # (In segments, numbers are known when code asks for them.)
            is_kept = value is np.ndarray or is_of_math(value)
            return value if trace.is_segmented and is_kept else replacement
        if name := public_name(value):
            return self._copies.setdefault(id(value), (value, OnHost(value, name)))[1]
        if trace.draws is not None and (drawn := trace.draws.stand_in(value)) is not None:
            return drawn
        if is_compiled(value):
            return self._copies.setdefault(id(value), (value, Compiled(value)))[1]
        if isinstance(value, np.ufunc):
            return self._copies.setdefault(id(value), (value, of_lists(value)))[1]
        if isinstance(value, _REBOUND):
            return self(value)
        if isinstance(value, np.errstate):
            names = ("all", "divide", "over", "under", "invalid")
            refuse_reports(self._trace, {name: getattr(value, f"_{name}", None) for name in names})
        if isinstance(value, np.vectorize):
            self._watch.look(value.pyfunc)
            return Vectorized(value)
        if isinstance(value, types.ModuleType):
            return self._view_of(value)
        if not self._trace.captured_are_traced or value is vars(builtins):
            return value
        if self._copies_holders and is_copied(value, self._holders):
            return self._copy_of_holder(value)
        is_array = isinstance(value, (np.ndarray, _core.ArrayBase))
        return self._trace.stand_in(value) if is_array and is_replaceable(value) else value

    def _copy_of_holder(self, holder: Any) -> Any:
        """A copy of a container or object with traced arrays in it."""
        if (known := self._copies.get(id(holder))) is not None:
            return known[1]
        if ("grown", id(holder), None) in self._state:
            copy: Any = Grown(holder, append)
            self._copies[id(holder)] = (holder, copy)
            self._grown.append(copy)
            watch(self._trace, f"list {len(self._grown)}", copy.new, self._trace.room)
        elif type(holder) is tuple:
            copy = tuple(map(self.inside, holder))
            self._copies[id(holder)] = (holder, copy)
        elif ("content", id(holder), None) in self._state:
            copy = self._state["content", id(holder), None]
            self._copies[id(holder)] = (holder, copy)
        elif type(holder) is dict and "__builtins__" in holder:
            raise StateChangedError(
                "dict: cannot trace a function that reads globals as a dict (functions may assign"
                " further globals)\nhint: pass what the function needs as arguments"
            )
        elif type(holder) in (list, dict):
            copy = type(holder)()
            self._copies[id(holder)] = (holder, copy)  # (before its items, which may refer to it)
            self._watch.guard_content(holder)
            if type(holder) is list:
                copy += map(self.inside, holder)
            else:
                keys = (self(x) if isinstance(x, types.FunctionType) else x for x in holder)
                copy.update(zip(keys, map(self.inside, holder.values()), strict=True))
            self._watch.keep_copy(copy, copy, copy.copy(), holder)
        else:
            copy = new_object(self.class_for(type(holder)))
            self._copies[id(holder)] = (holder, copy)
            self._copy_attributes(holder, copy)
        return copy

    def _copy_attributes(self, holder: Any, copy: Any) -> None:
        """Gives the copy of an object the trace's versions of its attributes and methods."""
        held, live, now = self._watch.attributes(holder), vars(holder), vars(copy)
        if slots := self.state_of(live):
            self._attributes.append((live, now))
        now.update({name: x for name, x in (held | slots).items() if x is not ABSENT})
        held = {name: x for name, x in held.items() if name not in slots}
        refuse_identity_in_methods(type(holder), held.values())
        before = dict(now)
        self._watch.keep_copy(copy, now, before, live)
        methods = methods_through(type(copy), now, type(holder))

        def bind(name: str) -> None:
            if name not in now:
                function, is_static = methods[name]
                method = self(function) if is_static else types.MethodType(self(function), copy)
                before[name] = now[name] = method

        def read(name: str) -> None:
            self._watch.guard("item", live, name, held[name])
            if now.get(name) is before[name] is held[name]:
                before[name] = now[name] = self.inside(held[name])

        for name, (function, _) in methods.items():
            if not self._watch.is_foreign(function.__module__):
                bind(name)
        self._watch.on_names(methods, bind)  # those of libraries, which may be many
        self._watch.on_names(held, read, live)
        for name in sorted(held) if self._watch.is_foreign.has_package_of(type(holder)) else ():
            read(name)  # (code that is not learned reads them)
        self._watch.look_at_class(type(holder), holder, is_copied=True)

    def outside(self, value: Any) -> Any:
        """The counterpart, outside of the trace, of a value in it."""
        if isinstance(value, METHODS):
            return method_of(*map(self.outside, (value.__func__, value.__self__)))
        if isinstance(value, Outside):
            return self._trace.draws.source_of(value)
        for real, copy in self._copies.values():
            if copy is value:
                if isinstance(real, types.FunctionType):
                    self._trace.need_identity(real)
                return real
        return outside_of(value)

    def is_made_here(self, x: Any) -> bool:
        """Whether x is a function that the trace has made, so that it reads the trace's globals."""
        return has_copied_globals(x) and not self.is_copy(x)

    def knows(self, x: Any) -> bool:
        """Whether the trace has met x outside."""
        return self._watch.knows(x)

    def knows_memory(self, x: np.ndarray) -> bool:
        """Whether the trace has met an array outside that shares memory with x."""
        return self._watch.knows_memory(x)

    def is_new(self, x: Any) -> bool:
        """Whether each call would make a new object in place of x that code can tell from x."""
        is_known = self._watch.knows(x) or self.has_copy_of(x) or self._trace.draws.knows(x)
        if is_known or (isinstance(x, UNIQUE) and not is_class_of_call(x)):
            return False
        how: Any = type(x).__hash__
        return how in (None, object.__hash__, type.__hash__)

    def lasting(self, x: Any) -> Any:
        """The counterpart, outside of the trace, of a function that the trace has made or copied.
        For a stand-in, the original."""
        if isinstance(x, Vectorized):
            x.real.pyfunc = self.lasting(x.real.pyfunc)
        if not has_copied_globals(x):
            return original(x)
        if (known := self.outside(x)) is not x:
            return known
        new = in_modules.in_module(x, lambda cell: cell)
        self._copies[id(x)] = (new, x)  # (before its cells, which may refer to it)
        for cell in x.__closure__ or ():
            if cell != types.CellType():
                cell.cell_contents = self.lasting(self.outside(cell.cell_contents))
        return new

    apart = in_modules.apart  # (as `lasting`, for code that runs before the call has ended)

    def _view_of(self, module: types.ModuleType) -> Any:
        if is_library(module.__name__) and module.__name__ not in IMPURE:
            return module
        if id(module) not in self._copies:
            if self._trace.is_segmented or self._watch.is_foreign(module.__name__):
                view = shim.live_view(module, self)
            else:
                copy = self._copy_of(vars(module))
                read = functools.partial(copy.attribute, module)
                view = shim.view_class(module)(module, read, copy)
            self._copies[id(module)] = module, view
        return self._copies[id(module)][1]

    def _cell(self, cell: Any, function: types.FunctionType, name: str) -> Any:
        if id(cell) in self.cell_copies:  # (functions may share it)
            return self.cell_copies[id(cell)][1]
        if cell == types.CellType():  # (not bound yet)
            return cell
        value = cell.cell_contents
        is_beside = self._trace.is_segmented and is_assigned_beside(function, name)
        if is_beside:
            if not isinstance(value, np.ndarray):
                return cell
            if is_read_in_classes(function, name):
                # (An assignment to the cell itself would overtake pending operations.)
                what = f"a function that assigns '{name}', an array which methods of a class read"
                raise UnsupportedOpError(f"{function.__name__}: cannot trace {what}")
        replaced = ("cell", id(cell), None) in self._state or isinstance(value, _REBOUND)
        if not replaced and self.inside(value) is value:
            return cell
        self.has_assigned_cells |= is_beside
        return self.cell_copies.setdefault(id(cell), (cell, types.CellType()))[1]

    def _copy_of(self, real: dict[str, Any]) -> Globals:
        if isinstance(real, Globals):  # (of a function that the trace made)
            return real
        if id(real) not in self._globals:
            self._globals[id(real)] = Globals(self, real, self._trace.is_segmented)
        return self._globals[id(real)]
