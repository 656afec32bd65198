"""Trees: containers of arrays, numbers and other values.

Containers are those that optree knows, records, and arrays and datasets of xarray. Records are
dataclasses that hold arrays, and tuples of classes that add attributes to a namedtuple. A record's
fields with arrays, numbers and objects that may change are its children. Its other fields are part
of its structure. The children of xarray's arrays are their elements. Names, coordinates and
attributes are part of their structure."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import inspect
import itertools
import sys
import threading
import types
import warnings
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import optree

from rune_jit import containers
from rune_jit.containers import items_in, leaves_in, refuse_endless
from rune_jit.errors import UnsupportedOpError
from rune_jit.methods import ArrayMethods

_NAMESPACE = "rune_jit"
_lock = threading.Lock()
_known: set[type] = set()


PYTHON_CLASS = 1 << 9  # Py_TPFLAGS_HEAPTYPE in __flags__: the class is written in Python

# The modules of the classes of random generators.
OF_GENERATORS = ("random", "numpy.random._generator", "numpy.random.mtrand")

# Types whose values are their own keys.
_KEYS = frozenset({int, bool, str, type(None)})


def package_of(kind: Any) -> str:
    """The name of the package that has a class. (Code may make classes without a module.)"""
    return str(kind.__module__).partition(".")[0]


def attribute(x: Any, name: str, default: Any = None) -> Any:
    """getattr(x, name, default), but without the `__getattr__` of the class of x. It may have
    effects, and it may raise what it likes."""
    if not hasattr(type(x), "__getattr__"):
        return getattr(x, name, default)
    try:
        return object.__getattribute__(x, name)
    except AttributeError:
        return default


def has_attributes(x: Any) -> bool:
    """Whether a number or text is of a class of the user's, whose objects may get attributes."""
    return type(x).__dictoffset__ != 0 and not isinstance(x, enum.Enum)


class Keyed:
    """An object that is hashed and compared by its `key`."""

    key: Any

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.key == other.key


class ByIdentity(Keyed):
    """A key for an object that cannot be hashed, or that changes. It is equal only to itself."""

    def __init__(self, held: Any) -> None:
        self.held, self.key = held, id(held)


def static_key(value: Any) -> Any:
    """A hashable key for a value. It differs for 1, 1.0 and True, for 0.0 and -0.0, and for two
    objects whose attributes may differ. NaN equals itself. Raises TypeError for values that can
    neither be hashed nor guarded."""
    kind: Any = type(value)
    if kind in _KEYS:
        return kind, value
    if isinstance(value, (float, complex)) and has_attributes(value):
        return ByIdentity(value)
    if isinstance(value, float):
        return kind, value.hex()
    if isinstance(value, complex):
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, tuple):
        return kind, tuple(map(static_key, value))
    if isinstance(value, slice):
        return kind, static_key((value.start, value.stop, value.step))
    if isinstance(value, frozenset):
        return kind, frozenset(map(static_key, value))
    if (fields := _fields_of_value(value)) is not None:
        return kind, fields
    if kind is types.MethodType:
        return kind, static_key(value.__func__), static_key(value.__self__)
    if isinstance(value, (type, enum.Enum, np.dtype)):
        return kind, value
    if attribute(value, "__dict__") is not None or _is_users(kind):
        return ByIdentity(value)
    hash(value)
    return kind, value


def _fields_of_value(x: Any) -> tuple[tuple[str, Any], ...] | None:
    """The names and keys of the fields of a dataclass's object that can be hashed. None for other
    objects. (An object of a frozen dataclass has no hash if a field holds an array.)"""
    kind: Any = type(x)
    if not dataclasses.is_dataclass(kind) or kind.__hash__ in (None, object.__hash__):
        return None
    try:
        return tuple([(f.name, static_key(getattr(x, f.name))) for f in dataclasses.fields(x)])
    except TypeError:
        return None


@functools.cache
def _is_users(kind: Any) -> bool:
    """Whether a class is written in Python and is not part of Python. (Python's own classes are
    values.)"""
    module = package_of(kind)
    is_pythons = module in sys.stdlib_module_names and module != "__main__"
    return bool(kind.__flags__ & PYTHON_CLASS) and not is_pythons


def has_key(value: Any) -> bool:
    """Whether static_key accepts the value."""
    try:
        static_key(value)
    except TypeError:
        return False
    return True


def _key_of(x: Any) -> Any:
    """Like static_key, but also for containers that may change, by their present contents."""
    if isinstance(x, dict):
        return type(x), tuple((static_key(name), _key_of(value)) for name, value in x.items())
    if isinstance(x, (list, tuple, collections.deque)):
        return type(x), attribute(x, "maxlen"), tuple(map(_key_of, x))
    if isinstance(x, np.ndarray):
        content = tuple(map(static_key, x.flat)) if x.dtype.hasobject else x.tobytes()
        return type(x), x.dtype, x.shape, content
    return (set, static_key(frozenset(x))) if isinstance(x, set) else static_key(x)


_NUMBERS = (int, float, complex)


class _Structure(Keyed):
    """The structure of a record: its fields in order, and which of them are children. Children have
    no values here."""

    def __init__(self, kind: type, fields: dict[Any, Any], children: tuple[Any, ...]) -> None:
        self.kind = kind
        self.fields = {name: None if name in children else x for name, x in fields.items()}
        self.children = children
        self.key = (kind, children, _key_of(self.fields))


def fields_of(x: Any) -> dict[Any, Any]:
    """The items of a tuple by position, and the attributes of a record by name."""
    if isinstance(x, tuple):
        return {**dict(enumerate(x)), **attribute(x, "__dict__", {})}
    fields = dict(attribute(x, "__dict__", ()))
    kind: Any = type(x)
    for name in _names_of(kind):
        with contextlib.suppress(AttributeError):
            fields[name] = getattr(x, name)
    return fields


@functools.cache
def _names_of(kind: Any) -> tuple[str, ...]:
    """The names of a dataclass's fields."""
    return tuple(field.name for field in dataclasses.fields(kind))


def _flatten_record(x: Any) -> tuple[tuple[Any, ...], _Structure]:
    fields = fields_of(x)
    children = tuple(name for name, value in fields.items() if _is_child(value))
    return tuple(fields[name] for name in children), _Structure(type(x), fields, children)


def _is_child(x: Any) -> bool:
    """Whether a field of a record is a child (a leaf, or a container of leaves), and not part of
    the key."""
    if type(x) in LEAVES:
        return type(x) in _NUMBERS or isinstance(x, (np.ndarray, np.generic))
    return _holds_object(x) or _holds_array(x)


def _unflatten_record(structure: _Structure, children: Any) -> Any:
    # A record gets copies of lists and similar objects, so that writes do not reach the structure.
    fields = {name: _copied(x) for name, x in structure.fields.items()}
    fields |= dict(zip(structure.children, children, strict=True))
    return record_of(structure.kind, fields)


def record_of(kind: Any, fields: dict[Any, Any]) -> Any:
    """The tuple or record with these fields, as `fields_of` returns them."""
    if issubclass(kind, tuple):
        items = (value for name, value in fields.items() if isinstance(name, int))
        x: Any = tuple.__new__(kind, items)
        if attributes := {name: value for name, value in fields.items() if isinstance(name, str)}:
            vars(x).update(attributes)  # even if the class has a property with this name
        return x
    x = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(x, name, value)
    return x


def _copied(x: Any) -> Any:
    """x with copies of the lists, dicts, sets and queues in it."""
    if type(x) is collections.deque:
        return collections.deque(map(_copied, x), x.maxlen)
    if type(x) in (list, tuple):
        return type(x)(map(_copied, x))
    if type(x) is dict:
        return {key: _copied(value) for key, value in x.items()}
    return set(x) if type(x) is set else x


def _holds_array(x: Any) -> bool:
    """Whether x is an array, or an object of a dataclass that holds one. Raises UnsupportedOpError
    if it has no end."""
    refuse_endless(x, _items_or_fields)
    seen: dict[int, Any] = {}
    open_ = [x]
    while open_:
        for leaf in leaves_in(open_.pop()):
            if isinstance(leaf, (np.ndarray, np.generic, ArrayMethods)):
                return True
            if _is_record(leaf) and id(leaf) not in seen:
                seen[id(leaf)] = leaf
                open_ += fields_of(leaf).values()
    return False


def _holds_object(x: Any) -> bool:
    """Whether x is or holds an object that a function may change: an object of a user's class, or a
    random generator."""
    return any(map(_may_change, leaves_in(x)))


def _may_change(x: Any) -> bool:
    kind: Any = type(x)
    if kind in LEAVES or isinstance(x, (type, enum.Enum)):
        return False
    return kind.__module__ in OF_GENERATORS or (_is_users(kind) and _fields_of_value(x) is None)


def _is_record(x: Any) -> bool:
    is_object = dataclasses.is_dataclass(x) and not isinstance(x, type)
    return is_rich_tuple(x) or (is_object and not is_endless(x))


# Dataclasses whose objects hold themselves or form long chains. They are not records.
_endless: set[type] = set()


def is_endless(x: Any) -> bool:
    """Whether x belongs to a class in this set."""
    return type(x) in _endless


def _find_endless(tree: Any) -> bool:
    """Adds the dataclasses of a tree that has no end to the set. Returns whether one is new. Raises
    UnsupportedOpError if a list, tuple or dict alone has no end, and RecursionError if it is too
    deep."""
    seen: dict[int, Any] = {}
    open_ = [tree]
    while open_:
        x = open_.pop()
        if type(x) not in LEAVES and id(x) not in seen:
            seen[id(x)] = x
            held: Any = [*fields_of(x).values()] if _is_record(x) else x
            refuse_endless(held)
            open_ += optree.tree_leaves(held)
    found = {type(x) for x in seen.values() if _is_record(x) and not isinstance(x, tuple)}
    _endless.update(found)
    return bool(found)


_ELEMENTS = object()  # the name of an array's elements in a dataset; no coordinate has it


class _Labels(Keyed):
    """The structure of an array or dataset of xarray. Its children are the elements and the numeric
    coordinates without an index."""

    def __init__(self, x: Any) -> None:
        self.is_array = hasattr(x, "to_dataset")
        dataset = x.to_dataset(name=_ELEMENTS) if self.is_array else x
        variables = dict(sorted(dataset.variables.items(), key=lambda item: str(item[0])))
        own = {name: v for name, v in variables.items() if name not in dataset.xindexes}
        held = {name: dataset.variables[name] for name in dataset.data_vars}
        held |= {n: v for n, v in own.items() if n not in held and v.dtype.kind in "biufc"}
        others = {name: v.copy() for name, v in own.items() if name not in held}
        self.name = getattr(x, "name", None)
        self.others = dataset.drop_vars(held).assign_coords(others)
        self.held = {name: (v.dims, dict(v.attrs)) for name, v in held.items()}
        self.coordinates = self.held.keys() - set(dataset.data_vars)
        labels = tuple((n, v.dims, _key_of(v.attrs)) for n, v in variables.items())
        # dask's array names depend on the inputs of the computation.
        contents = tuple(getattr(v.data, "name", None) or _key_of(v.data) for v in others.values())
        indexes = tuple(_IndexKey(dataset.xindexes[n]) for n in variables if n in dataset.xindexes)
        names = self.name, tuple(held)
        self.key = (type(x), names, _key_of(dataset.attrs), labels, contents, indexes)

    def with_children(self, children: Any) -> Any:
        pairs = zip(self.held.items(), children, strict=True)
        held = {name: (dims, x, dict(attrs)) for (name, (dims, attrs)), x in pairs}
        coordinates = {name: held.pop(name) for name in self.coordinates}
        dataset = self.others.assign_coords(coordinates).assign(held)
        return dataset[_ELEMENTS].rename(self.name) if self.is_array else dataset


def _flatten_labelled(x: Any) -> tuple[tuple[Any, ...], _Labels]:
    labels = _Labels(x)
    variables = {_ELEMENTS: x.variable, **x.coords} if labels.is_array else x.variables
    return tuple(variables[name].data for name in labels.held), labels


class _IndexKey:
    """The key of an index of xarray, which does not change. Indices with the same labels have equal
    keys."""

    def __init__(self, index: Any) -> None:
        self.index = index

    def __hash__(self) -> int:
        return hash(type(self.index))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _IndexKey) or type(self.index) is not type(other.index):
            return False
        return self.index is other.index or bool(self.index.equals(other.index))


def _is_of_xarray(kind: type) -> bool:
    xarray = sys.modules.get("xarray")
    return xarray is not None and kind in (xarray.DataArray, xarray.Dataset)


def is_rich_tuple(x: Any) -> bool:
    """Whether x belongs to a tuple class whose instances have more than their items."""
    if type(x) is tuple or not isinstance(x, tuple):
        return False
    return bool(attribute(x, "__dict__")) or not _is_made_of_items(type(x))


@functools.cache
def _is_made_of_items(kind: type) -> bool:
    """Whether a tuple class can be called with the items, as a namedtuple can."""
    if not hasattr(kind, "_fields") or kind.__init__ is not object.__init__:  # type: ignore[misc]
        return not hasattr(kind, "_fields")  # optree knows such classes in C
    code = getattr(kind.__new__, "__code__", None)
    more = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return code is not None and not code.co_flags & more and not code.co_kwonlyargcount


# Types of values that refer to no other objects.
PLAIN = containers.PLAIN
# Types of usual leaves.
LEAVES = PLAIN | {np.ndarray, np.float64}


# Trees with so many objects are searched for containers that are in many places.
_MANY = 2**16


def _items_or_fields(x: Any) -> Any:
    return fields_of(x).values() if _is_record(x) else items_in(x)


def flatten(tree: Any, opaque: Any = None, whole: Collection[int] = ()) -> tuple[list[Any], Any]:
    """The leaves of a tree, and its structure. `opaque` is a leaf even if it is a dataclass. So are
    objects with the ids `whole`, even if they are containers."""

    opened: Iterator[int]

    def is_leaf(x: Any) -> bool:
        kind = type(x)
        if kind in LEAVES:
            return False
        if next(opened) == _MANY:
            refuse_endless(tree, _items_or_fields)
        if x is opaque or kind in _endless or id(x) in whole:
            return True
        is_other_tuple = kind is not tuple and issubclass(kind, tuple)
        return is_other_tuple and kind not in _known and is_rich_tuple(x)

    while True:
        opened = itertools.count()
        try:
            leaves, structure = optree.tree_flatten(tree, is_leaf, namespace=_NAMESPACE)
            others = [x for x in leaves if type(x) not in LEAVES and x is not opaque]
            others = [x for x in others if id(x) not in whole]
            new = {type(x) for x in others if _is_record(x) and _holds_array(x)}
        except (RecursionError, UnsupportedOpError):
            try:
                is_new = _find_endless(tree)
            except RecursionError:
                is_new = False
            if not is_new:
                raise containers.endless() from None
            continue
        new |= {kind for kind in map(type, others) if _is_of_xarray(kind)}
        if not new - _known:
            return leaves, structure
        with _lock, warnings.catch_warnings():
            # Optree warns that these tuples get a special treatment.
            warnings.simplefilter("ignore")
            for kind in new - _known:
                ways: Any = (_flatten_record, _unflatten_record)
                if _is_of_xarray(kind):
                    ways = (_flatten_labelled, _Labels.with_children)
                optree.register_pytree_node(kind, *ways, namespace=_NAMESPACE)
                _known.add(kind)


def describe(value: Any, is_static: bool) -> tuple[Any, list[Any] | None, bool]:
    """How the key of a call contains an argument or a part of one. Returns three values: a hashable
    value for it, or None if the object itself is in the key; its leaves, if it is a container and
    not `is_static`; and whether all objects of its class are in keys themselves."""
    if not is_static:
        leaves, structure = flatten(value)
        if not structure.is_leaf():
            return structure, leaves, False
    kind = type(value)
    if isinstance(value, (type, enum.Enum, np.dtype, np.ufunc)):
        return None, None, True
    key = static_key(value)
    if isinstance(key, ByIdentity):
        return None, None, not dataclasses.is_dataclass(kind)
    return key, None, False


def unflatten(structure: Any, leaves: Any) -> Any:
    """The tree with this structure and these leaves."""
    return optree.tree_unflatten(structure, leaves)


def has_records(structure: Any) -> bool:
    """Whether a tree with this structure has records."""
    return bool(structure.namespace)


def with_last(structure: Any, last: Any) -> Any:
    """The structure of a list with a further item, which has the structure `last`."""
    items = [*optree.treespec_children(structure), last]
    return optree.treespec_list(items, namespace=_NAMESPACE)


Structure = optree.PyTreeSpec


def leaves_again(what: str, tree: Any, structure: Any) -> tuple[Any, ...]:
    """The leaves of a tree that must have this structure. Raises TypeError if it has another one.
    `what` is for its message."""
    leaves, found = flatten(tree)
    if found != structure:
        raise TypeError(
            f"{what}: cannot replace a value of structure {structure} by one of structure {found}\n"
            "hint: return the same tuples, lists and dicts each time"
        )
    return tuple(leaves)


def count(tree: Any, opaque: Any = None) -> int:
    """The number of leaves of a tree."""
    return len(flatten(tree, opaque)[0])
