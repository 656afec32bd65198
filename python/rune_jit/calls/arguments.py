"""Takes the arguments of a call apart into arrays, numbers and static values, and makes the key of
the call."""

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
from rune_jit.tracing.layouts_now import axes_in_memory
from rune_jit.tracing.sizes import AxisSize
from rune_jit.tracing.tracer import Tracer

# Classes of objects that one call uses up, so that a second call finds them empty.
USED_ONCE = (Iterator, AsyncIterator, Coroutine)


class Call(NamedTuple):
    """The arguments of one call, taken apart."""

    signature: Any  # calls with one signature differ only in elements of arrays and in numbers
    leaves: list[Any]
    treedef: Any
    names: tuple[str, ...]  # of the arguments in the tree
    statics: dict[str, Any]  # arguments named in static_argnums or static_argnames
    static_leaves: list[int]
    bound: inspect.BoundArguments | None  # none for functions without a signature
    receiver: Any  # the argument `self` of a method: a leaf even if it is a dataclass
    sizes: tuple[AxisSize, ...]  # of the arguments' dynamic axes
    constants: tuple[int, ...] = ()  # leaves that are numbers whose values the trace uses
    slots: tuple[Slot, ...] = ()  # that the function assigns; the last argument is their contents
    plain: Any = None  # the call without slots
    in_chunks: bool = False  # whether arrays take the place of dask's
    decides: bool = False  # whether its trace assumes outcomes of conditions on numbers

    @property
    def key(self) -> Any:
        """The key of the call's program. Calls with one key run the same program."""
        return self.signature, tuple(trees.static_key(self.leaves[i]) for i in self.constants)

    @property
    def kind(self) -> Any:
        """The part of the key that does not depend on the identity of objects."""
        return tuple(map(type_of, self.leaves)), self.key[1]

    def with_constants(self, leaves: frozenset[int]) -> Call:
        """The call with further leaves as constants."""
        constants = tuple(sorted(leaves.union(self.constants)))
        static = sorted({*self.static_leaves, *constants})
        return self._replace(constants=constants, static_leaves=static)

    @property
    def without_constants(self) -> Call:
        """The call without constants: the numbers may have any value."""
        numbers = set(self.constants).difference(_core.static_leaves(self.leaves))
        static = [i for i in self.static_leaves if i not in numbers]
        return self._replace(constants=(), static_leaves=static)


def with_state(name: str, call: Call, slots: tuple[Slot, ...]) -> Call:
    """The call with the contents of these slots as a further argument. Raises UnsupportedOpError or
    TypeError if they cannot be an argument."""
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


# The name of the argument with the contents of slots.
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
    """The call of the function `name`. `bound` are its arguments, bound to the parameters, or None
    if the function has no signature. `make_key` makes the key of arguments.

    Raises:
        UnsupportedOpError: if an argument cannot be traced.
        UnkeyedError: if an argument holds many numbers, or can be used only once.
        TypeError: if a static argument has no hash.
        ValueError: as DynamicAxes.of.
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
    except TypeError as error:  # a record holds an object without a hash
        raise UnkeyedError(f"{name}: cannot trace its arguments ({error})") from None
    sizes = dynamic.of(arguments, leaves, receiver) if dynamic else ()
    static_leaves = _core.static_leaves(leaves)
    for position in static_leaves:
        if type(leaves[position]) not in trees.PLAIN:
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
    """Raises UnkeyedError for a list, tuple or dict of many numbers, because each number would be
    an argument of the program."""
    for argument, value in arguments.items():
        if (count := _core.count_numbers(value)) > _core.MOST_NUMBERS:
            raise UnkeyedError(
                f"{name}: cannot trace about {count:,} numbers as arguments (argument {argument},"
                f" at most {_core.MOST_NUMBERS})\nhint: pass numpy.array(...) of them"
            )


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
    """Raises an error for a static leaf that is an array (UnsupportedOpError), can be used only
    once (UnkeyedError), or belongs to a trace (TracerLeakError)."""
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
    """The names of a graph's inputs, as users would write them."""
    values = trees.unflatten(call.treedef, call.leaves)
    arguments = dict(zip(call.names, values, strict=True))
    return [_owner(arguments, leaf, call.receiver) for leaf in input_leaves]


def _owner(arguments: dict[str, Any], position: int, receiver: Any) -> str:
    """A description of the argument to which a leaf belongs."""
    for name, value in arguments.items():
        position -= trees.count(value, receiver)
        if position < 0:
            return f"argument {name}"
    raise IndexError(position)


def order_of(leaf: Any) -> tuple[tuple[int, ...], bool] | None:
    """The axes in memory of an array that is not in C order, and whether it has gaps. None for
    others. (The key of a call contains this.)"""
    memory = leaf._memory if isinstance(leaf, Array) else leaf
    axes = axes_in_memory(memory) if isinstance(memory, np.ndarray) else None
    return None if axes is None else (axes, not memory.transpose(axes).flags.c_contiguous)


def may_repeat(call: Call) -> bool:
    """Whether two arguments of a call with this signature may be one array."""
    arrays = [x for x in call.leaves if isinstance(x, (np.ndarray, Array))]
    if call.in_chunks:  # each call is traced
        kinds: list[Any] = [id(x) for x in arrays]
    else:
        kinds = [(x.dtype, x.ndim if call.sizes else x.shape) for x in arrays]
    return len({*kinds}) < len(kinds)


def is_defined_often(x: Any) -> bool:
    """Whether the key of a call contains this argument's code instead of the argument itself
    (call_key.cpp)."""
    if not isinstance(x, types.FunctionType) or x.__closure__ or vars(x):
        return False
    return bool(x.__code__.co_flags & inspect.CO_NESTED) or x.__name__ == "<lambda>"
