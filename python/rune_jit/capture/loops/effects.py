"""Decides whether one traced run of Python code can represent many runs. For this, everything that
the code reaches must be of a known kind. The code may change traced arrays, local variables, items
of containers and attributes of objects, and nothing else."""

from __future__ import annotations

import builtins
import collections
import contextlib
import dataclasses
import enum
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from rune_jit import _core, trees
from rune_jit.capture.grown import Grown, is_list
from rune_jit.capture.loops.members import (
    NOT_CALLED,
    Copied,
    can_be_made,
    classes_of,
    is_made,
    is_of_named_tuple,
    member,
    what_makes,
)
from rune_jit.capture.loops.places import Global, Held, Variable, refuse_new_global
from rune_jit.capture.loops.pure import READING_METHODS, is_pure
from rune_jit.capture.loops.source import source_of
from rune_jit.capture.loops.structures import class_of, is_named_tuple
from rune_jit.capture.loops.syntax import Path, Uses
from rune_jit.capture.objects import can_be_copied, is_bar, is_library
from rune_jit.capture.random_methods import METHODS, Recorded, generator_of
from rune_jit.capture.shim import ModuleView, original
from rune_jit.capture.stand_ins import OF_CLASSES
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.tracer import Tracer


class StandIn:
    """The base of the stand-ins for lists of numbers in the body of a loop (lists.py)."""


_ATOMS = (
    *(*trees.PLAIN, type(...), slice, range, np.dtype, np.generic, np.ndarray),
    *(StandIn, Tracer, Size, _core.ArrayBase, trees.Structure, enum.Enum),
)
_METHOD_NAMES = (
    "choose compress fill ptp put sort view at accumulate outer reduce reduceat"
    " items keys values get _replace _asdict"
    # Methods that change lists and queues. Their items are compared after the run.
    " append appendleft extend insert pop popleft remove reverse rotate"
)
_METHODS = READING_METHODS | {*_METHOD_NAMES.split()}
# Further functions without effects, such as replacements for Python's own. Modules add theirs.
ALLOWED: list[Any] = [trees.flatten, trees.unflatten, trees.leaves_again, OF_CLASSES["isinstance"]]
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_MOST_HELD = 10_000  # items of all containers together
# Methods that read, assign or delete attributes of any name.
OF_ANY_NAME = ("__getattr__", "__getattribute__", "__setattr__", "__delattr__")


class Refused(Exception):
    """The code may do something that is not known."""


class Effects:
    """The objects that some code can reach and change. They are compared after it has run."""

    def __init__(self, may_draw: bool = False, refuses: bool = True) -> None:
        """`may_draw`: whether the code may draw from random generators. `refuses`: whether an
        object of unknown kind raises Refused; otherwise it is passed over."""
        self._may_draw, self._refuses = may_draw, refuses
        self.generators: list[Any] = []  # from which it may draw
        self._containers: list[tuple[Any, str]] = []  # with their names for reports
        self._objects: list[Any] = []  # and the classes whose objects the code may make
        self._replaces = False  # whether the code calls dataclasses.replace
        self._asks_bases = False  # whether the code calls super
        self._attributes: set[str] = set()  # the names of attributes in the code
        self._calls: dict[str, str] = {}  # the called ones of these, with their names for reports
        self.appended: dict[int, list[Any]] = {}  # the lists that the code appends to, by id
        self._appended_attributes: set[str] = set()  # the attributes whose lists it appends to
        self._lists: list[tuple[str, Any]] = []  # lists that are attributes, with their names
        # The lists whose items are read and assigned, by id, each with one of its names.
        self._indexed: dict[int, tuple[str, list[Any]]] = {}
        self.stand_ins: list[Any] = []  # for these lists
        self._seen: dict[int, Any] = {}
        self._globals: set[tuple[int, str]] = set()  # the global variables that are assigned
        self._arrays: list[Any] = []  # NumPy's and rune_jit's
        self._num_items = 0
        self.draws = False  # whether the code reaches a random generator from outside

    def _refuse(self, why: str) -> None:
        if self._refuses:
            raise Refused(why)

    def look(
        self,
        uses: Uses,
        values: Mapping[str, Any],
        scope: Callable[[str], Any],
        module: dict[str, Any],
    ) -> None:
        """Adds all that some code reaches. `values` has the local variables that are bound. `scope`
        finds other names, and raises KeyError for a local variable that is not bound. `module` has
        the global variables that the code assigns.

        Raises Refused."""
        for name in uses.globals:
            self._assign_global(module, name)
        self._calls |= {name: name for name in uses.methods}
        attributes = {name for path in (*uses.paths, *uses.calls) for name in path[1:]}
        self._name_attributes(attributes | uses.methods | uses.attributes)

        def find(name: str) -> Any:
            return values[name] if name in values else scope(name)

        for name in uses.names:
            try:
                value = find(name)
            except KeyError:
                continue
            if not isinstance(value, types.ModuleType):
                self._look_at(value)
        for path in (*uses.paths, *uses.calls):
            try:
                value = find(path[0])
            except KeyError:
                value = None  # (a local variable that is not bound)
            self._look_along(value, path, path in uses.calls)
            if path in uses.assigned:
                self._assign_along(value, path)
        for _, value in _found(uses.appended, find):
            self._append_to(value)
        self._appended_attributes |= uses.appended_attributes
        for _, value in _found(uses.appended_items, find):
            self._append_to_items(value)
        for name, value in _found(sorted(uses.indexed), find):
            if type(value) is list:
                self._indexed.setdefault(id(value), (name, value))
            else:
                self._look_at(value)

    def stand_in(self, make: Callable[[str, list[Any]], StandIn | None]) -> None:
        """Makes stand-ins for the lists whose items are read and assigned. A list without a
        stand-in, or one that the code also reaches in another way, is an ordinary container. Raises
        Refused."""
        for name, items in self._indexed.values():
            found = None if any(map(self.reaches, (items, *items))) else make(name, items)
            if found is not None:
                self.stand_ins.append(found)
            else:
                self._look_at(items)

    def _append_to_items(self, x: Any) -> None:
        if not _holds_lists(x):
            self._look_at(x)
            return
        self._containers.append((x, type(x).__name__))
        for items in x.values() if type(x) is dict else x:
            self._append_to(items)

    def _append_to_attributes(self) -> None:
        """Adds the lists that are attributes of objects. Separates those that the code only appends
        to."""
        while True:
            read = [
                x
                for x in self._lists
                if x[0] in self._attributes or x[0] not in self._appended_attributes
            ]
            if not read:
                break
            self._lists = [x for x in self._lists if not any(x is y for y in read)]
            for _, items in read:
                self._look_at(items)
        for _, items in self._lists:
            if _holds_lists(items):
                self._append_to_items(items)
            else:
                self._append_to(items)

    def _append_to(self, x: Any) -> None:
        x = x.new if type(x) is Grown else x
        if type(x) is not list:
            self._look_at(x)
            return
        if id(x) in self.appended:
            self._refuse("it appends to a list that has two names")
        self.appended[id(x)] = x
        self._containers.append((x, "list"))

    def held(self) -> Held:
        """The present contents of the containers and objects that the code reaches. Raises Refused
        if the code calls methods that are not known."""
        members = {
            name for x in self._objects for name in self._attributes if member(x, name) is not None
        }
        if self.draws:
            members |= METHODS | {"shuffle"}
        if unknown := self._calls.keys() - _METHODS - members:
            raise Refused(f"it calls the method {self._calls[min(unknown)]}")
        return self._held()

    @classmethod
    def of_body(
        cls,
        uses: Uses,
        values: Mapping[str, Any],
        frame: Any,
        make: Callable[[str, list[Any]], StandIn | None],
    ) -> tuple[Effects, Held]:
        """The objects that the body of a loop of a frame can change, and their contents. Raises
        Refused."""
        effects = cls()
        effects.look(uses, values, scope_of(frame), frame.f_globals)
        effects._append_to_attributes()
        effects.stand_in(make)
        effects.forget_read()
        return effects, effects.held()

    @classmethod
    def seen_by(cls, uses: Uses, frame: Any) -> Held:
        """The present contents of the containers and objects that some code of a frame reaches.
        What it reaches through objects of unknown kinds is left out."""
        effects = cls(refuses=False)
        effects.look(uses, frame.f_locals, scope_of(frame), frame.f_globals)
        effects._append_to_attributes()
        for _, items in effects._indexed.values():
            for x in items:
                for item in x if type(x) is list else [x]:
                    effects._look_at(item)
        return effects._held()

    def _held(self) -> Held:
        lists = [items for _, items in self._indexed.values()]
        inner = [x for items in lists for x in items if type(x) is list]
        known = {id(x) for x, _ in self._containers}
        more = {id(x): (x, "list") for x in (*lists, *inner) if id(x) not in known}
        arrays = {id(x): x for x in self._arrays if isinstance(x, np.ndarray)}
        return Held([*self._containers, *more.values()], arrays.values())

    def reaches(self, x: Any) -> bool:
        """Whether the code reaches an object that exists outside of it."""
        return id(x) in self._seen or id(x) in self.appended

    def reaches_others_than(self, known: Iterable[Any]) -> bool:
        """Whether the code reaches an array, container or object that is not in `known`."""
        ids = {id(x) for x in known}
        found = (*self._arrays, *self._objects, *(x for x, _ in self._containers))
        return any(id(x) not in ids for x in found)

    def names_any_of(self, attributes: Iterable[str]) -> bool:
        """Whether the code names one of these attributes."""
        return not self._attributes.isdisjoint(attributes)

    def forget_read(self) -> None:
        """Removes from `appended` the lists that the code may also read."""
        for key in self.appended.keys() & self._seen.keys():
            del self.appended[key]

    def _look_along(self, value: Any, path: Path, is_called: bool) -> None:
        rest = list(path[1:])
        while rest and isinstance(value, types.ModuleType):
            value = getattr(value, rest.pop(0), None)
        if isinstance(value, types.ModuleType):
            self._refuse(f"it uses the module {'.'.join(path)}")
        if len(rest) < len(path) - 1:
            self._look_at(value)
        if rest and is_called:
            self._calls[rest[-1]] = ".".join(rest)

    def _assign_along(self, value: Any, path: Path) -> None:
        if isinstance(value, (types.FunctionType, type)):
            self._refuse(f"it assigns to the attribute {path[-1]}")
        for name in path[1:-1]:
            value = getattr(value, name, None) if isinstance(value, ModuleView) else None
        if isinstance(value, ModuleView):
            self._assign_global(value._names, path[-1])

    def _assign_global(self, module: dict[str, Any], name: str) -> None:
        if name not in module:
            if self._refuses:
                refuse_new_global(module, name)
            self._refuse(f"it assigns {name}, which has no value before")
        elif (id(module), name) not in self._globals:
            self._globals.add((id(module), name))
            self._containers.append((Global(module, name), name))

    def _look_at(self, x: Any) -> None:
        if isinstance(x, (np.ndarray, _core.ArrayBase)):
            self._arrays.append(x)
        if isinstance(x, enum.Enum):
            x = type(x)
        if isinstance(x, _ATOMS) or id(x) in self._seen:
            return
        if type(x) is Grown or is_bar(x):  # (they are not read, and not made in a trace)
            return
        self._seen[id(x)] = x
        if isinstance(x, enum.EnumMeta):
            self._look_at_enum(x)
            return
        if can_be_copied(x) and type(x) not in (list, tuple, dict):
            self._look_at_object(x)
        elif isinstance(x, _CONTAINERS):
            self._look_at_container(x)
            if is_named_tuple(type(x)):
                self._look_at(type(x))
        elif isinstance(x, type) and can_be_made(x):
            self._look_at_class(x)
        elif x is dataclasses.replace:
            self._replaces = True
            for held in list(self._objects):
                self._look_at(held if isinstance(held, type) else class_of(held))
        elif x is super:
            self._asks_bases = True
            for held in list(self._objects):
                for name in list(self._attributes):
                    self._look_at_member(held, name)
        elif isinstance(x, functools.partial):
            for part in (x.func, x.args, x.keywords):
                self._look_at(part)
        elif isinstance(x, _core.Dispatcher):
            self._look_at(x.__wrapped__)  # type: ignore[attr-defined]
        elif isinstance(trees.attribute(x, "__self__", x), Recorded):
            self.draws = True
        elif self._may_draw and (of := generator_of(x)) is not None:
            self.generators.append(of)
        elif not any(x is known for known in ALLOWED) and not is_pure(original(x)):
            if not isinstance(x, types.FunctionType) or is_library(x.__module__):
                name = trees.attribute(x, "__name__") or f"a {type(x).__name__}"
                self._refuse(f"it uses {name}")
            else:
                self._look_at_function(x)

    def _look_at_container(self, x: Any) -> None:
        if type(x) not in _CONTAINERS and not hasattr(type(x), "_fields"):
            self._refuse(f"it uses a {type(x).__name__}")
            return
        self._num_items += len(x)
        if self._num_items > _MOST_HELD:
            self._refuse("it uses large containers")
        if isinstance(x, (list, dict, set, collections.deque)):
            self._containers.append((x, type(x).__name__))
        for item in [*x.keys(), *x.values()] if isinstance(x, dict) else x:
            self._look_at(item)

    def _look_at_function(self, f: types.FunctionType) -> None:
        source = source_of(f)
        if source is None:
            self._refuse(f"it calls {f.__name__}, whose source is not known")
            return
        if source.refusal:
            self._refuse(f"it calls {f.__name__}: {source.refusal}")
        for value in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self._look_at(value)
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))

        def scope(name: str) -> Any:
            if name in source.locals and name not in source.nonlocals:
                raise KeyError(name)
            if name in cells:
                try:
                    return cells[name].cell_contents
                except ValueError:
                    raise KeyError(name) from None
            return global_value(f.__globals__, name)

        for name in source.nonlocals & cells.keys():
            if cells[name] != types.CellType() and id(cells[name]) not in self._seen:
                self._seen[id(cells[name])] = cells[name]
                self._containers.append((Variable(cells[name]), name))
        self.look(source.uses, {}, scope, f.__globals__)

    def _look_at_object(self, x: Any) -> None:
        kind: Any = type(x)
        self._look_at_class_members(kind)
        self._containers.append((vars(x), kind.__name__))
        self._objects.append(x)
        if self._replaces:
            self._look_at(class_of(x))
        for name, value in vars(x).items():
            if is_list(value) or _holds_lists(value):
                self._lists.append((name, value))
            elif can_be_copied(value) or isinstance(value, (np.ndarray, *_CONTAINERS)):
                self._look_at(value)  # (`_look_at_member` finds the others, if code names them)
        for name in list(self._attributes):
            self._look_at_member(x, name)

    def _look_at_class(self, kind: Any) -> None:
        """Adds a class whose objects the code may make."""
        self._look_at_class_members(kind)
        for function in what_makes(kind):
            self._look_at(function)
        self._objects.append(kind)
        for name in list(self._attributes):
            self._look_at_member(kind, name)

    def _look_at_enum(self, kind: enum.EnumMeta) -> None:
        """Adds all functions of an enumeration, since some of them run when a member is read,
        called or compared."""
        if type(kind) is not enum.EnumMeta:
            self._refuse(f"it uses {kind.__name__}")
        for base in classes_of(kind):
            for x in vars(base).values():
                x = getattr(x, "fget", None) or getattr(x, "__func__", x)
                if isinstance(x, types.FunctionType) and not is_library(x.__module__):
                    self._look_at_function(x)

    def _look_at_class_members(self, kind: Any) -> None:
        """Adds the methods of a class that Python calls by itself."""
        parameters = getattr(kind, "__dataclass_params__", None)
        for base in classes_of(kind):
            for name, value in vars(base).items():
                if name in OF_ANY_NAME and not (parameters and parameters.frozen):
                    self._refuse(f"it uses a {kind.__name__}, which has a method {name}")
                value = value.member if isinstance(value, Copied) else value
                is_called = name[:2] == "__" and name not in NOT_CALLED
                # (The methods that `dataclass` adds have no source.)
                if is_called and inspect.isfunction(value) and not is_made(value):
                    self._look_at(value)

    def _name_attributes(self, names: set[str]) -> None:
        """Adds attributes that the code names. They may be those of any object that it reaches."""
        new = names - self._attributes
        self._attributes |= new
        for x in list(self._objects):
            for name in new:
                self._look_at_member(x, name)

    def _look_at_member(self, x: Any, name: str) -> None:
        if self._asks_bases:
            for base in classes_of(x if isinstance(x, type) else type(x)):
                if isinstance(overridden := vars(base).get(name), types.FunctionType):
                    self._look_at(overridden)
        found = member(x, name)
        if isinstance(found, property):
            for function in (found.fget, found.fset):
                self._look_at(function)
        elif isinstance(found, types.MethodType):
            self._look_at(found.__func__)
            self._look_at(found.__self__)
        elif isinstance(found, (staticmethod, classmethod)):
            self._look_at(found.__func__)
        elif is_of_named_tuple(x, name):
            pass
        elif name == "__init__":
            self._look_at(x if isinstance(x, type) else class_of(x))
        elif name[:2] == "__" or (hasattr(type(found), "__get__") and not callable(found)):
            if found is not None:
                kind = x if isinstance(x, type) else type(x)
                self._refuse(f"it uses the attribute {name} of a {kind.__name__}")
        else:
            self._look_at(found)


def _found(names: Iterable[str], find: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    """The names that are bound, with their values. `find` raises KeyError for the others."""
    for name in names:
        with contextlib.suppress(KeyError):
            yield name, find(name)


def _holds_lists(x: Any) -> bool:
    """Whether x is a dict or list of lists."""
    items = list(x.values()) if type(x) is dict else x if type(x) is list else []
    return bool(items) and all(map(is_list, items))


def scope_of(frame: Any, names: dict[str, Any] | None = None) -> Callable[[str], Any]:
    """Returns a function that finds the global names of a frame's code, in `names` if given."""
    code = frame.f_code
    found = frame.f_globals if names is None else names
    local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}

    def scope(name: str) -> Any:
        if name in local:
            raise KeyError(name)
        return global_value(found, name)

    return scope


def global_value(names: dict[str, Any], name: str) -> Any:
    """The value of a global name or of one of Python's own; raises KeyError."""
    if name in names:
        return names[name]
    return vars(builtins)[name]
