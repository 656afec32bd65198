"""Guards on the Python state outside of a trace that the trace read. A later call compares the
state and traces again if it has changed.

A trace runs copies of functions (rebinder.py), which record here what they read. Methods and
other callables that cannot be copied are searched instead: their code, and the objects that it
reaches by name. If the trace changes such an object, the trace is refused and the object
restored."""

from __future__ import annotations

import builtins
import functools
import gc
import inspect
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np

from rune_jit import _core, trees
from rune_jit.bound import METHODS
from rune_jit.capture import effects, libraries, matching, stateful
from rune_jit.capture.changes import Caches, Layouts, Members, broken, change, is_broken, restore
from rune_jit.capture.class_tests import refuse_class_test
from rune_jit.capture.matching import (
    Met,
    function_of,
    guard_on_member,
    has_slots,
    is_data,
    knows_identity,
    members_of,
    owner_of,
)
from rune_jit.capture.names import (
    ASKING,
    BY_TEXT,
    Names,
    asks_identity,
    globals_in,
    guards_on_absence,
)
from rune_jit.capture.objects import is_foreign_array, is_library
from rune_jit.capture.state import Slot, Unbound, bound_members, refuse_other_order, watched_place
from rune_jit.capture.told_apart import ToldApart
from rune_jit.chunked.recognition import is_dask_array
from rune_jit.containers import contents, copy_of
from rune_jit.errors import StateChangedError, UnsupportedOpError
from rune_jit.tracing.context import is_library_file
from rune_jit.tracing.steps import steps_of

# (kind, holder, name, value), see cpp/bindings/guards.h.
Guard = tuple[str, Any, Any, Any]

_ATOMS = (*trees.PLAIN, np.generic, np.dtype, range, slice)
_ABSENT = object()
_MOST_OF_LIBRARY = 5000  # objects that an object of a library may hold


class Watch:
    """Records the objects from outside that one trace reads, and their state.

    An attribute counts as read if the code of any function that can run in the trace names it. The
    state of other packages than that of the traced `function` is assumed to be fixed. With
    `may_grow`, the trace may add values that are not traced to containers.
    """

    def __init__(self, function: Any, may_grow: bool = True, slots: Iterable[Slot] = ()) -> None:
        self._may_grow = may_grow
        self._function = getattr(function, "__name__", type(function).__name__)
        self._package = (getattr(function, "__module__", None) or "").split(".")[0]
        self.is_foreign = libraries.Foreign(self._package)
        self._read: dict[tuple[int, str], Any] = {}  # from modules of libraries
        self.note_steps: Callable[[int], None] = lambda steps: None  # Trace.note_steps
        self._guards: dict[tuple[str, int, Any], Guard] = {}
        # Arrays, containers and objects that the trace may change, as guards on their contents. For
        # the attributes of an object, the guard's `name` is "attributes".
        self._kept: list[Guard] = []
        self._layouts, self._members_before, self._caches = Layouts(), Members(), Caches()
        # Copies that must not change, as the arguments of `keep_copy`.
        self._copies: list[tuple[Any, Any, Any, Any]] = []
        self.state = {slot.key for slot in slots}  # (no guard watches these places)
        from rune_jit.capture import generators  # (not before: a process may trace nothing)

        self._random = generators
        self._generators: list[tuple[Any, Any]] = [
            (source, generators.state_of(source)) for source in generators.GLOBAL
        ]
        self._names = Names()  # the names in the code of all functions met so far
        self._seen: dict[int, Any] = {}  # objects by id (this keeps them alive)
        self._most = sys.maxsize  # the most objects in _seen
        self._members: dict[int, tuple[dict[str, Any], dict[str, Any], bool]] = {}  # by class's id
        self._classes: set[tuple[int, int, bool, frozenset[str]]] = set()
        self._kinds: set[int] = set()  # ids of the classes of the objects in _seen
        self._knows_identity = False  # whether code may use the identity of objects unnoticed
        self.told_apart = ToldApart()
        self.packages = libraries.PackageState(self._function, self.is_foreign)
        self.is_strict = False  # whether code of other packages may read attributes unnoticed

    def is_of_library(self, error: BaseException) -> bool:
        """Whether an installed package or code in C raised an error, perhaps because it does not
        accept traced arrays."""
        return libraries.is_of_library(error, self.is_foreign)

    def guard(self, kind: str, holder: Any, name: Any, value: Any) -> None:
        """Notes that the trace has read a part of a holder. Raises UnsupportedOpError for a slot:
        code that is not copied reads it, and does not see the values that the trace assigns."""
        key = (kind, id(holder), name)
        contents = {(of, id(holder), None) for of in ("content", "grown")}
        if key in self.state or (kind == "items" and not contents.isdisjoint(self.state)):
            what = "what a list or dict holds" if name is None else f"'{name}'"
            raise UnsupportedOpError(
                f"{self._function}: cannot trace a function that assigns {what}, which a"
                " method of an object without arrays reads (the trace does not copy such methods)\n"
                "hint: pass what the method reads as an argument"
            )
        self._guards.setdefault(key, (kind, holder, name, value))

    def guard_item(self, holder: dict[str, Any], name: str, value: Any) -> None:
        """Notes that the trace has read a global of a module."""
        if not (isinstance(value, types.ModuleType) and is_library(value.__name__)):
            self.guard("item", holder, name, value)

    def guard_of_library(self, holder: dict[str, Any], name: str, value: Any) -> None:
        """Notes that the trace has read a name of a module whose state is assumed to be fixed. (But
        tests replace functions of libraries.)"""
        self.note_steps(1)
        if self._read.get((id(holder), name), _ABSENT) is value:
            return
        self._read[id(holder), name] = value
        stateful.refuse_stateful(value, self._may_grow)
        if not effects.replaces(holder, name):
            self.guard_item(holder, name, value)
        if type(value) is list:  # (sys.argv)
            self.look(value)

    def guard_content(self, x: Any) -> None:
        """Notes that the trace may read all contents of a container."""
        kind = "equal" if isinstance(x, (set, bytearray)) else "items"
        copy = x.copy() if type(x) is bytearray else copy_of(x)
        self.guard(kind, x, None, copy)
        self._kept.append((kind, x, None, copy))

    def guard_function(self, function: types.FunctionType, is_copied: bool = True) -> list[Any]:
        """Notes that the trace reads a function's code, its default arguments and the variables of
        outer functions that it uses. Returns the values of the arguments and variables."""
        self.guard("attribute", function, "__code__", function.__code__)
        for guard in guards_on_absence(function):
            self.guard(*guard)
        for name in ("__defaults__", "__kwdefaults__"):
            self.guard("attribute", function, name, getattr(function, name))
        self._look_at_attributes(function)
        for names, name in libraries.names_read(function):
            self.guard_item(names, name, names[name])
        held: list[Any] = list(function.__defaults__ or ())
        for name, value in (function.__kwdefaults__ or {}).items():
            self.guard("item", function.__kwdefaults__, name, value)
            held.append(value)
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # (not bound yet)
                continue
            if not is_copied or ("cell", id(cell), None) not in self.state:
                self.guard("cell", cell, None, value)
            held.append(value)
        return held

    def learn(self, code: types.CodeType, is_foreign: bool = False) -> None:
        """Notes that code may run in the trace, before it does."""
        if not (self._may_grow or is_foreign):
            stateful.refuse_text(code)
        if not (is_foreign or is_library_file(code.co_filename)):
            self._knows_identity |= asks_identity(code)
        self._names.learn(code)

    def on_names(
        self,
        held: dict[str, Any],
        read: Callable[[str], None],
        live: dict[str, Any] | None = None,
        of_object: bool = False,
    ) -> None:
        """Calls `read`, perhaps repeatedly, with each name in `held` that occurs in code, now or
        when more code is learned. If these are attributes of an object (`live`) or its slots
        (`of_object`), calls it with all names once code may read attributes by text."""
        if live is not None:
            self._names.on_any(ASKING, lambda: self.guard("keys", live, None, tuple(live)))

        def read_all() -> None:
            for name in sorted(held):
                read(name)

        if of_object or live is not None:
            self._names.on_any(BY_TEXT, read_all)
        self._names.on(held.keys(), read)

    def attributes(self, x: Any) -> dict[str, Any]:
        """The present attributes of an object. Notes that the trace must not change them."""
        held = dict(vars(x))
        self._kept.append(("items", vars(x), "attributes", held))
        if libraries.has_python_class(x):
            self.guard("attribute", x, "__class__", x.__class__)  # (it may get another one)
        return held

    def keep_copy(self, copy: Any, held: Any, before: Any, real: Any) -> None:
        """Notes that the contents of a trace's copy of a container or object must not change.
        `held` is the copy itself, or the attributes of the object; `real` is its original, and
        `before` are the contents now."""
        self.note_steps(steps_of(before))
        self._copies.append((copy, held, before, real))

    def knows(self, x: Any) -> bool:
        """Whether the trace has met an object outside, so that it existed before the trace."""
        return id(x) in self._seen

    def knows_memory(self, x: np.ndarray) -> bool:
        """Whether the trace has met an array outside that shares memory with x."""
        arrays = (y for y in self._seen.values() if isinstance(y, np.ndarray))
        return any(np.may_share_memory(x, y) for y in arrays)

    # The search of objects that are not copied.

    def look(self, x: Any) -> None:
        """Notes all that code which is not copied can read from x."""
        is_atom = isinstance(x, _ATOMS)
        if (is_atom and not trees.has_attributes(x)) or isinstance(x, _core.ArrayBase):
            return  # (an ArrayBase is traced wherever it is met)
        if id(x) in self._seen or x is vars(builtins):  # (in the globals of functions)
            return
        self._seen[id(x)] = x
        self.note_steps(steps_of(x))
        if is_atom:
            return self._look_at_attributes(x)
        if len(self._seen) > self._most:
            raise UnsupportedOpError(f"{self._function}: cannot watch large objects of libraries")
        if isinstance(x, _core.Dispatcher):  # (its function is traced wherever it is met)
            self._look_at_attributes(x, getattr(x, "_own", ()))
            return
        kind: Any = type(x)
        if id(kind) not in self._kinds or kind in (type, types.ModuleType):
            self._kinds.add(id(kind))
            self._refuse_kind(x)
            self._knows_identity |= knows_identity(kind)
        effects.refuse(x)
        if isinstance(x, np.ndarray):
            self._layouts.note(x)
            self._kept.append(("content", x, None, x.copy()))
        elif isinstance(x, types.FunctionType):
            self._look_at_function(x)
        elif isinstance(x, (*METHODS, types.BuiltinFunctionType)):
            self.look(getattr(x, "__func__", None))
            self.look(x.__self__)
        elif isinstance(x, stateful.VIEWS):
            self.look(gc.get_referents(x)[0])
        elif isinstance(x, functools.partial):
            for part in (x.func, x.args, x.keywords):
                self.look(part)
        elif isinstance(x, types.ModuleType):
            if not self.is_foreign(x.__name__):
                self.on_names(vars(x), functools.partial(self._read_global, vars(x)))
        elif isinstance(x, type):
            for kind in (x, type(x)):
                self.look_at_class(kind, x)
        elif isinstance(x, self._random.KINDS):
            self._generators.append((x, self._random.state_of(x)))
            self.on_names({"spawn": x}, stateful.refuse_spawning)
        elif isinstance(trees.attribute(x, "__wrapped__"), types.FunctionType):
            self._caches.note(x)
            self.look(x.__wrapped__)
            self.look(trees.attribute(x, "__self__"))
        else:
            if isinstance(x, (dict, list, deque, set, bytearray)):
                self.guard_content(x)
            if isinstance(x, (dict, list, deque, tuple)):
                for item in contents(x):
                    if type(item) not in trees.PLAIN and id(item) not in self._seen:
                        self.look(item)
            self.told_apart.note([x])
            self._look_at_instance(x)

    def _refuse_kind(self, x: Any) -> None:
        """Refuses an object that no trace may use, by its class; or a clock."""
        if is_foreign_array(x):
            how = "it" if is_dask_array(x) else "numpy.asarray(...)"
            raise UnsupportedOpError(
                f"operand: cannot trace a {type(x).__name__} (whether it changes is not known)\n"
                f"hint: pass {how} as an argument"
            )
        if libraries.is_decimal(x):
            self.guard("attribute", *libraries.decimal_context())
        self._random.refuse_hidden_state(x)
        stateful.refuse_stateful(x, self._may_grow, self._names.known)

    def _look_at_function(self, function: types.FunctionType) -> None:
        if self.is_foreign(function.__module__):
            return
        refuse_class_test(function.__code__)
        stateful.refuse_process(function)
        self.learn(function.__code__)
        for value in self.guard_function(function, is_copied=False):
            self.look(value)
        held = function.__globals__
        for name in sorted(globals_in(function.__code__) & held.keys()):
            self._read_global(held, name)

    def _read_global(self, held: dict[str, Any], name: str) -> None:
        self.guard_item(held, name, held[name])
        self.look(held[name])

    def _look_at_instance(self, x: Any) -> None:
        klass: Any = type(x)
        if stateful.is_fixed(klass, self._may_grow):
            return
        self._look_at_attributes(x)
        self.look_at_class(klass, x)

    def _look_at_attributes(self, x: Any, besides: Collection[str] = ()) -> None:
        live = trees.attribute(x, "__dict__")
        if isinstance(live, dict):
            held = {k: v for k, v in self.attributes(x).items() if k not in besides}

            def read(name: str) -> None:
                self.guard("item", live, name, held[name])
                self.look(held[name])

            self.on_names(held, read, live)
            self._names.on({"__class__", "__dict__"}, functools.partial(self._guard_special, x))
            if any(self.is_foreign(base.__module__) for base in type(x).__mro__[:-1]):
                most, self._most = self._most, min(self._most, len(self._seen) + _MOST_OF_LIBRARY)
                for name in sorted(held):  # (code that is not learned reads them)
                    read(name)
                self._most = most

    def _guard_special(self, x: Any, name: str) -> None:
        self.guard("attribute", x, name, type(x) if name == "__class__" else vars(x))

    def look_at_class(self, klass: type, x: Any, is_copied: bool = False) -> None:
        """Notes the attributes of a class that code can read through x, an instance or the class
        itself. `is_copied` tells whether the trace has a copy of x, with copies of its methods."""
        own = trees.attribute(x, "__dict__", {}).keys() if x is not klass else ()
        for base in klass.__mro__:
            if self.is_foreign(base.__module__):
                self.is_strict |= not is_library(base.__module__)
                for name, raw in vars(base).items() if x is not klass else ():
                    if type(raw) is types.MemberDescriptorType:  # (as in _look_at_attributes)
                        self._look_at_attribute(x, name, raw)
                continue
            if id(base) not in self._members:
                self._members_before.note(base)
                self._members[id(base)] = members_of(base)
            functions, others, is_open = self._members[id(base)]
            for value in trees.attribute(x, "__dict__", {}).values() if is_open else ():
                self.look(value)
            names = frozenset(functions).difference(own)
            key = (id(klass), id(base), is_copied, names)
            if key not in self._classes:  # (all instances have the same functions)
                self._classes.add(key)
                self._look_at_methods(klass, {n: functions[n] for n in names}, is_copied)
            others = {name: raw for name, raw in others.items() if name not in own}

            def read(name: str, raws: dict[str, Any] = others) -> None:
                self._look_at_attribute(x, name, raws[name])

            self.on_names(others, read)
            slots = {n: y for n, y in others.items() if type(y) is types.MemberDescriptorType}
            if slots and x is not klass:
                self.on_names(slots, read, of_object=True)
                if empty := slots.keys() - bound_members(x):  # (code may assign them)
                    self.guard("attribute", Unbound(x, frozenset(empty)), "are_bound", False)

    def _look_at_methods(self, klass: type, raws: dict[str, Any], is_copied: bool) -> None:
        def read(name: str) -> None:
            raw, is_special = raws[name], name[:2] == "__"
            self._look_at_method(klass, name, raw, is_copied and not is_special)
            for other in (getattr(raw, part, None) for part in ("fset", "fdel")):
                if isinstance(other, types.FunctionType):
                    self.look(other)

        for name, raw in raws.items():
            if name[:2] == "__":
                self._look_at_method(klass, name, raw, False)
        self.on_names(raws, read)

    def _look_at_method(self, klass: type, name: str, raw: Any, is_copied: bool) -> None:
        function = function_of(raw)
        self._guard_member(klass, name, raw)
        if not (is_copied and getattr(klass, name, None) is function):
            self.look(function)

    def _guard_member(self, klass: type, name: str, raw: Any) -> None:
        if guard := guard_on_member(klass, name, raw):
            self._guards.setdefault(("attribute", id(klass), name), guard)

    def _look_at_attribute(self, x: Any, name: str, raw: Any) -> None:
        """Notes an attribute of a class that is no function."""
        if isinstance(raw, types.MemberDescriptorType):  # of __slots__
            if not isinstance(x, type) and (value := getattr(x, name, _ABSENT)) is not _ABSENT:
                self.guard("attribute", x, name, value)
                self.look(value)
            return
        if not is_data(raw):
            self._guard_member(x if isinstance(x, type) else type(x), name, raw)
        elif inspect.getattr_static(x, name, _ABSENT) is raw:
            self.guard("attribute", x, name, raw)
        self.look(matching.read_through(raw))

    # The end of the trace.

    def met(self) -> Met:
        """The objects that the trace has met, to match those of calls with other objects."""
        seen: Iterator[tuple[Any, Any]] = ((x, type(x)) for x in self._seen.values())
        return Met(
            {id(live): held for _, live, name, held in self._kept if name == "attributes"},
            {id(x): (x, bound_members(x)) for x, kind in seen if has_slots(kind)},
            self.is_strict,
            self._knows_identity,
        )

    def guards_now(self) -> list[Guard]:
        """The guards that a later call must check, with the present contents of containers."""
        for (kind, at, name), (_, holder, _, value) in list(self._guards.items()):
            if kind in ("items", "equal") and is_broken(kind, holder, name, value):
                held = holder.copy() if type(holder) is bytearray else copy_of(holder)
                self._guards[kind, at, name] = (kind, holder, name, held)
                if kind == "items":
                    for item in held.values() if isinstance(held, dict) else held:
                        self.look(item)
        return [*self._guards.values(), *(kept for kept in self._kept if kept[0] == "content")]

    def refuse_changes(self, function: str) -> None:
        """Raises UnsupportedOpError if the trace has changed state in a way that a call of the
        program would not: it has assigned a name or an item, written to an array, or drawn a random
        number."""
        changed = broken(list(self._guards.values()))
        names = [change(self._may_grow, *guard) for guard in changed]
        members = [name for _, name in self._members_before.new()]
        what = next(filter(None, (*names, *members)), None)
        slots = [watched_place(*guard) for guard, name in zip(changed, names, strict=True) if name]
        slots += [None for _ in members]
        for _, held, name, before in self._kept:
            if name == "attributes":
                new = [key for key in held if held[key] is not before.get(key, _ABSENT)]
                slots += [Slot("item", held, key) for key in new]
                what = what or next(iter(new), None)
        for copy, held, before, real in self._copies:
            refuse_other_order(function, type(copy), before, held)
            if not is_broken("items", held, None, before):
                continue
            if held is copy:
                new_slots = [Slot("content", real)]
            else:
                keys = dict.fromkeys((*before, *held))
                kept = {k for k in keys if held.get(k, _ABSENT) is before.get(k, _ABSENT)}
                new_slots = [Slot("item", real, key) for key in keys if key not in kept]
            new_slots = [slot for slot in new_slots if slot.key not in self.state]
            if new_slots:
                what = what or f"a {type(copy).__name__} that holds arrays"
                slots += new_slots
        if what:
            error = StateChangedError(
                f"{function}: cannot trace a function that changes {what} (the program would not"
                " repeat it at later calls)\nhint: return the new value"
            )
            error.slots = None if None in slots or self._caches.have_missed() else slots
            raise error
        if self._layouts.changed() or any(x[0] == "content" and is_broken(*x) for x in self._kept):
            raise UnsupportedOpError(
                f"{function}: cannot trace a write to an array that is not traced\n"
                "hint: pass the array as an argument"
            )
        self.packages.refuse_changes()
        if any(self._random.state_of(source) != state for source, state in self._generators):
            raise UnsupportedOpError(
                f"{function}: cannot trace random numbers of NumPy or Python (each call would get"
                " the same)\nhint: use rune_jit.random, or pass the numbers as an argument"
            )

    def restore(self) -> None:
        """Restores all state that the trace has changed."""
        guards = list(self._guards.values())
        for i in _core.broken_guards(guards):
            kind, holder, name, value = guards[i]
            if kind == "item":
                Slot(kind, holder, name).write(value)
            elif kind == "cell":
                holder.cell_contents = value
            elif kind == "attribute":
                setattr(owner_of(holder, name), name, value)
        for state in (self.packages, self._layouts, self._members_before):
            state.restore()
        self._caches.restore()
        for kept in reversed(self._kept):  # (the oldest contents are restored last)
            if is_broken(*kept):
                restore(*kept)
        for source, state in self._generators:
            self._random.set_state(source, state)
