"""Takes the arguments of a call apart into arrays, numbers and static values, and makes the call's
key."""

from __future__ import annotations

import inspect
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, NamedTuple

import numpy as np

from rune_jit import _core, trees
from rune_jit.arrays.array import Array
from rune_jit.calls.dynamic import DynamicAxes
from rune_jit.capture.objects import is_foreign_array
from rune_jit.capture.state import Slot
from rune_jit.errors import UnkeyedError, UnsupportedOpError
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.sizes import AxisSize
from rune_jit.tracing.tracer import Tracer

# What a second call with the same object finds used up.
USED_ONCE = (Iterator, AsyncIterator, Coroutine)


class Call(NamedTuple):
    """The arguments of one call, taken apart."""

    signature: Any  # calls of one signature differ in their arrays and numbers only
    leaves: list[Any]
    treedef: Any
    names: tuple[str, ...]  # of the arguments in the tree
    statics: dict[str, Any]  # arguments named in static_argnums or static_argnames
    static_leaves: list[int]
    bound: inspect.BoundArguments | None  # none for functions without a signature
    receiver: Any  # the argument `self` of a method: a leaf even if it is a dataclass
    sizes: tuple[AxisSize, ...]  # of the arguments' dynamic axes
    constants: tuple[int, ...] = ()  # leaves: numbers whose values the trace uses
    slots: tuple[Slot, ...] = ()  # that the function assigns; the last argument is what they hold
    plain: Any = None  # the call without slots
    in_chunks: bool = False  # whether arrays stand for dask's
    decides: bool = False  # whether its trace takes conditions on numbers for those of later calls

    @property
    def key(self) -> Any:
        """Calls of one key run the same program."""
        return self.signature, tuple(trees.static_key(self.leaves[i]) for i in self.constants)

    @property
    def kind(self) -> Any:
        """The part of the key that calls of one kind share: all but which objects they have."""
        return tuple(map(type_of, self.leaves)), self.key[1]

    def with_constants(self, leaves: frozenset[int]) -> Call:
        """The call with these numbers, too, as constants."""
        constants = tuple(sorted(leaves.union(self.constants)))
        static = sorted({*self.static_leaves, *constants})
        return self._replace(constants=constants, static_leaves=static)

    @property
    def without_constants(self) -> Call:
        """The call with its constants as numbers of any value. (Functions stay what they are.)"""
        constants = {i for i in self.constants if not callable(self.leaves[i])}
        static = [i for i in self.static_leaves if i not in constants]
        return self._replace(constants=(), static_leaves=static)


def with_state(name: str, call: Call, slots: tuple[Slot, ...]) -> Call:
    """The call with what these slots hold as a further argument. Raises UnsupportedOpError or
    TypeError if that cannot be one."""
    held = [slot.read() for slot in slots]
    leaves, structure = trees.flatten(held)
    static = _core.static_leaves(leaves)
    for position in static:
        _check_leaf(name, leaves[position], position, {STATE: held}, None)
    types = [type_of(leaf) for leaf in leaves]
    for position in static:
        types[position] = trees.static_key(leaves[position])
    return call._replace(
        signature=(call.signature, structure, tuple(types)),
        leaves=[*call.leaves, *leaves],
        treedef=trees.with_last(call.treedef, structure),
        names=(*call.names, STATE),
        static_leaves=[*call.static_leaves, *(len(call.leaves) + i for i in static)],
        slots=slots,
        plain=call,
    )


# The name of the argument that holds what slots hold.
STATE = "the state of the function"


def type_of(leaf: Any) -> Any:
    """The properties of an array or number that all calls of a program share."""
    if isinstance(leaf, (np.ndarray, np.generic, Array)):
        return type(leaf), leaf.dtype, leaf.shape
    return type(leaf)


def take_apart(
    name: str,
    bound: inspect.BoundArguments | None,
    static_names: tuple[str, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    make_key: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    dynamic: DynamicAxes | None = None,
) -> Call:
    """The call of the function `name`, whose signature, if it has one, has `bound` the arguments;
    `make_key` makes the key of arguments.

    Raises UnsupportedOpError for an argument that cannot be traced, UnkeyedError for lists of many
    numbers and what can be used once only, TypeError for a static one that
    has no hash, what DynamicAxes.of raises.
    """
    if bound is None:
        arguments: dict[str, Any] = {"args": args, "kwargs": kwargs}
    else:
        # Defaults that are not given stay constants of the function.
        arguments = dict(bound.arguments)
    statics = {name: arguments.pop(name) for name in static_names if name in arguments}
    _check_count(name, arguments)
    receiver = arguments["self"] if next(iter(arguments), None) == "self" else None
    try:
        leaves, treedef = trees.flatten(list(arguments.values()), receiver)
    except TypeError as error:  # a record holds what has no hash
        raise UnkeyedError(f"{name}: cannot trace its arguments ({error})") from None
    sizes = dynamic.of(arguments, leaves, receiver) if dynamic else ()
    static_leaves = _core.static_leaves(leaves)
    for position in static_leaves:
        _check_leaf(name, leaves[position], position, arguments, receiver)
    try:
        signature_key = make_key(args, kwargs)
    except TypeError:
        _refuse_without_hash(name, statics, [leaves[i] for i in static_leaves])
        raise
    names = tuple(arguments)
    key = (signature_key, sizes)
    return Call(key, leaves, treedef, names, statics, static_leaves, bound, receiver, sizes)


def _check_count(name: str, arguments: dict[str, Any]) -> None:
    """Raises UnkeyedError for a list, tuple or dict of many numbers: a program would take each of
    them as an argument of its own."""
    for argument, value in arguments.items():
        count, items = 1, value
        for _ in range(_MOST_DIMENSIONS):
            if type(items) not in (list, tuple, dict) or not items:
                break
            first = next(iter(items.values() if type(items) is dict else items))
            count, items = count * len(items), first
        if count > _MOST_NUMBERS and type(items) in (int, float, bool, complex):
            raise UnkeyedError(
                f"{name}: cannot trace about {count:,} numbers as arguments (argument {argument},"
                f" at most {_MOST_NUMBERS})\nhint: pass numpy.array(...) of them"
            )


_MOST_NUMBERS, _MOST_DIMENSIONS = 256, 64


def _refuse_without_hash(name: str, statics: dict[str, Any], leaves: list[Any]) -> None:
    """Raises TypeError for a static argument without a hash, UnsupportedOpError for a leaf."""
    for static, value in statics.items():
        if not trees.has_key(value):
            raise TypeError(
                f"{name}: cannot use {static} as a static argument ({type(value).__name__}"
                " is not hashable)"
            ) from None
    for leaf in leaves:
        if not trees.has_key(leaf):
            raise UnsupportedOpError(
                f"{name}: cannot trace an argument of {type(leaf).__name__}"
                " (neither an array, a number, a container of these, nor hashable)\n"
                "hint: pass the arrays and numbers in it"
            ) from None


def _check_leaf(
    name: str, leaf: Any, position: int, arguments: dict[str, Any], receiver: Any
) -> None:
    """Raises UnsupportedOpError for a leaf that is an array or can be used once only,
    TracerLeakError for one that belongs to a trace."""
    if isinstance(leaf, Tracer):
        require_trace()
    if isinstance(leaf, (np.ndarray, np.generic, Array)):
        what = leaf.dtype if type(leaf) in (np.ndarray, Array) else type(leaf).__name__
        raise UnsupportedOpError(
            f"{name}: cannot trace an argument of {what}"
            f" ({_owner(arguments, position, receiver)}, shape {leaf.shape})\n"
            "hint: convert it to a plain array of numbers: np.asarray(x, dtype)"
        )
    if is_foreign_array(leaf):
        raise UnsupportedOpError(
            f"{name}: cannot trace an argument of {type(leaf).__name__}"
            f" ({_owner(arguments, position, receiver)})\nhint: pass numpy.asarray(...) of it"
        )
    if isinstance(leaf, USED_ONCE):
        raise UnkeyedError(
            f"{name}: cannot trace an argument of {type(leaf).__name__}"
            f" ({_owner(arguments, position, receiver)}; it can be used once only)\n"
            "hint: pass a list"
        )


def input_names(call: Call, input_leaves: list[int]) -> list[str]:
    """The names that users have for the leaves that are inputs of a graph."""
    values = trees.unflatten(call.treedef, call.leaves)
    arguments = dict(zip(call.names, values, strict=True))
    return [_owner(arguments, leaf, call.receiver) for leaf in input_leaves]


def _owner(arguments: dict[str, Any], position: int, receiver: Any) -> str:
    """Which argument a leaf belongs to."""
    for name, value in arguments.items():
        position -= trees.count(value, receiver)
        if position < 0:
            return f"argument {name}"
    raise IndexError(position)


def is_turned(leaf: Any) -> bool:
    """Whether an array is read in Fortran order, as its key says."""
    memory = leaf._memory if isinstance(leaf, Array) else leaf
    return isinstance(memory, np.ndarray) and memory.flags.fnc and memory.flags.aligned


def may_repeat(call: Call) -> bool:
    """Whether two arguments of a call, or of another one of this signature, may be one array."""
    arrays = [x for x in call.leaves if isinstance(x, (np.ndarray, Array))]
    if call.in_chunks:  # each call is traced
        kinds: list[Any] = [id(x) for x in arrays]
    else:
        kinds = [(x.dtype, x.ndim if call.sizes else x.shape) for x in arrays]
    return len({*kinds}) < len(kinds)


def is_defined_often(x: Any) -> bool:
    """Whether the key of a call describes this argument by its code (call_key.cpp)."""
    if not isinstance(x, types.FunctionType) or x.__closure__ or vars(x):
        return False
    return bool(x.__code__.co_flags & inspect.CO_NESTED) or x.__name__ == "<lambda>"
