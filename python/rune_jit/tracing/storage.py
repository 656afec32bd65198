"""The storage of traced arrays, and views of it. Each write makes a new version of a storage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rune_jit import _core
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.sizes import Size, has_sizes, same_size, with_bounds

if TYPE_CHECKING:
    from rune_jit.tracing.trace import Trace
    from rune_jit.tracing.tracer import Tracer


# A write to a slice that may reach beyond the array copies the whole array, if it has at most so
# many elements. Copying more takes longer than NumPy's write.
_MOST_COPIED = 4096


class Step(NamedTuple):
    """One view of an array.

    Kinds and arguments:

    - "index": basic index items; "element": (axis, traced index)
    - "transpose": axes; "diagonal": (offset, axis1, axis2)
    - "reshape"; "ravel", which copies if the result is not contiguous: a shape
    - "broadcast_to"; "broadcast_arrays", whose results are writeable: a shape
    - "windows": (size, axis), sliding windows along a new last axis
    - "pad": the number of zeros after each axis
    - "real", "imag": None, of a complex array
    - "parts": None, a complex array as real numbers, with a last axis of twice the size
    - "pairs": None, the inverse of "parts"
    """

    kind: str
    argument: Any

    @property
    def varies(self) -> bool:
        """Whether data or counters decide the elements of the view."""
        return self.kind in ("element", "pad") or has_sizes(self.argument)

    def dtype(self, of: np.dtype[Any]) -> np.dtype[Any]:
        """The view's dtype, given the array's."""
        if self.kind == "pairs":
            return np.result_type(of, np.complex64)
        return np.zeros(0, of).real.dtype if self.kind in ("real", "imag", "parts") else of

    def dtype_before(self, of: np.dtype[Any]) -> np.dtype[Any]:
        """The array's dtype, given the view's."""
        if self.kind == "pairs":
            return np.zeros(0, of).real.dtype
        return np.result_type(of, np.complex64) if self.kind in ("real", "imag", "parts") else of

    def of(self, builder: Any, value: Any) -> Any:
        """The view of a value."""
        if self.kind in ("real", "imag"):
            return getattr(builder, self.kind)(value)
        if self.kind == "parts":
            both = builder.stack([builder.real(value), builder.imag(value)], -1)
            return builder.reshape(both, [*value.shape[:-1], -1])
        if self.kind == "pairs":
            both = builder.reshape(value, [*value.shape[:-1], -1, 2])
            return builder.complex(*(builder.index(both, [..., i]) for i in (0, 1)))
        if self.kind == "element":
            axis, at = self.argument
            return builder.take(value, at, axis)
        if self.kind == "pad":
            return builder.pad(value, [(0, n) for n in self.argument])
        if self.kind in ("diagonal", "windows"):
            return getattr(builder, self.kind)(value, *self.argument)
        kind = {"broadcast_arrays": "broadcast_to", "ravel": "reshape"}.get(self.kind, self.kind)
        return getattr(builder, kind)(value, list(self.argument))

    def of_array(self, array: np.ndarray, trace: Trace | None = None) -> np.ndarray:
        """The view of a NumPy array; a reshape must be possible without a copy. An "element" needs
        a trace in segments, which knows the index."""
        if self.kind in ("real", "imag"):
            return getattr(array, self.kind)  # type: ignore[no-any-return]
        if self.kind in ("parts", "pairs"):
            return array.view(self.dtype(array.dtype))
        if self.kind == "index":
            items = tuple(map(_with_bounds, self.argument))
            is_whole = any(item is ... for item in items)
            return array[items if is_whole else (*items, ...)]
        if self.kind == "element" and trace is not None:
            axis, at = self.argument
            return array[(slice(None),) * axis + (int(trace.values([at])[0]), ...)]  # type: ignore[no-any-return]
        if self.kind == "transpose":
            return array.transpose(self.argument)
        if self.kind in ("reshape", "ravel"):
            return reshaped_view(array, with_bounds(self.argument))
        if self.kind == "pad":  # only for asking NumPy what is a view of it
            shape = [n + more for n, more in zip(array.shape, self.argument, strict=True)]
            return np.lib.stride_tricks.as_strided(array, shape, array.strides, writeable=False)
        if self.kind == "broadcast_to":
            return np.broadcast_to(array, with_bounds(self.argument))
        if self.kind == "broadcast_arrays":
            return np.broadcast_arrays(array, np.empty(with_bounds(self.argument), bool))[0]
        if self.kind == "windows":
            return np.lib.stride_tricks.sliding_window_view(array, *self.argument)
        assert self.kind == "diagonal", self.kind
        view = np.diagonal(array, *self.argument)
        if array.flags.writeable:  # einsum's are; a Tracer knows whether it is
            view.flags.writeable = True
        return view

    def put(self, trace: Trace, old: Any, part: Any) -> Any:
        """`old` with its view replaced by `part`."""
        builder = trace.builder
        if self.kind == "real":
            return builder.complex(part, builder.imag(old))
        if self.kind == "imag":
            return builder.complex(builder.real(old), part)
        if self.kind in ("parts", "pairs"):
            return Step("pairs" if self.kind == "parts" else "parts", None).of(builder, part)
        if self.kind == "index":
            return builder.put(old, list(self.argument), part)
        if self.kind == "transpose":
            axes = [axis % old.ndim for axis in self.argument]
            return builder.transpose(part, [axes.index(i) for i in range(old.ndim)])
        if self.kind in ("reshape", "ravel"):
            return builder.reshape(part, list(old.shape))
        if self.kind == "diagonal":
            offset, first, second = self.argument
            assert offset == 0 and old.shape[first] == old.shape[second], "einsum's diagonals only"
            here = builder.ufunc("equal", [_along(trace, old, first), _along(trace, old, second)])[
                0
            ]
            axes = list(range(old.ndim - 2))
            axes.insert(first - (second < first), old.ndim - 2)
            return builder.where(
                here, builder.expand_dims(builder.transpose(part, axes), [second]), old
            )
        if self.kind == "pad":
            if math.prod(with_bounds(tuple(old.shape))) > _MOST_COPIED:
                raise UnsupportedOpError(
                    "setitem: cannot trace a write to a slice whose bounds data decide in an array"
                    f" of more than {_MOST_COPIED} elements\n"
                    "hint: write the elements in a loop, or select them by a mask"
                )
            return builder.index(part, [slice(0, n) for n in old.shape])
        assert self.kind == "element", self.kind
        axis, at = self.argument
        size = old.shape[axis]
        from_end = builder.ufunc("add", [builder.astype(at, np.int64), size])[0]
        wrapped = builder.where(builder.ufunc("less", [at, 0])[0], from_end, at)
        here = builder.ufunc("equal", [_along(trace, old, axis), wrapped])[0]
        return builder.where(here, builder.expand_dims(part, [axis]), old)


def same_steps(a: tuple[Step, ...], b: tuple[Step, ...]) -> bool:
    """Whether two chains of views certainly select the same elements."""
    return _is_same(a, b)


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, (tuple, list)):
        return isinstance(b, (tuple, list)) and len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, slice):
        return isinstance(b, slice) and _is_same(
            (a.start, a.stop, a.step), (b.start, b.stop, b.step)
        )
    if isinstance(a, Size) or isinstance(b, Size):
        return same_size(a, b)
    number = getattr(a, "id", None)  # of a value of the graph
    if number is not None:
        return bool(number == getattr(b, "id", None))
    return type(a) is type(b) and bool(a == b)


def _along(trace: Trace, x: Any, axis: int) -> Any:
    """The positions along an axis, broadcastable to x's shape."""
    size = x.shape[axis]
    return trace.builder.reshape(trace.iota(size), [size] + [1] * (x.ndim - axis - 1))


def reshaped_view(array: np.ndarray, shape: Any) -> np.ndarray:
    """array.reshape(shape), which must be a view. Raises ValueError or AttributeError if it would
    be a copy."""
    try:
        return np.reshape(array, shape, copy=False)
    except TypeError:  # NumPy 2.0 has no copy=
        view = array.view()
        view.shape = tuple(shape)
        return view


# Returns a number that is greater than the serial numbers of all storages so far.
next_serial: Callable[[], int] = _core.next_serial


class Storage(_core.StorageBase):
    """The memory behind a traced array and its views.

    It holds one of three things: the value of its current version; an array whose elements are
    known while tracing (made by numpy.zeros ... inside the traced function), until a traced value
    is written to it; or a captured array, until its value is needed."""

    __slots__ = ()
    value: Any
    original: Any  # the value of an input at the start
    array: np.ndarray | None
    captured: Any  # the captured array, if it is one
    fill: Any  # the value of all elements of `array`, if known
    serial: int  # a later storage has a greater one
    version: int
    leaf: int | None  # which argument this is
    in_c_order: bool  # whether this is an argument whose axes lie in C order at each call
    scalar: bool  # a NumPy scalar or a Python number: in-place operators rebind
    layout_used: bool  # whether the trace requires a C-contiguous array
    # The arrays whose layout NumPy gives to this one, if `order_known`. Empty: C order.
    order_from: tuple[Tracer, ...]
    order_known: bool
    # Whether that layout is NumPy's order "K".
    in_order_of_operands: bool
    # Storages whose layouts decided whether a reshape was a view of this one or a copy.
    reshaped: tuple[Storage, ...]
    is_nonzero: bool  # whether it is a number that is known not to be 0
    of_counters: bool  # whether it is a comparison of loop counters
    flag_of: int | None  # the loop of which this flag tells how it has ended
    is_exposed: bool  # whether NumPy may write to `array`
    # Of some results (layouts_now.by_numpy) and of arrays whose elements were known: a function
    # that returns arrays with the layouts of all results, and the number of this one.
    laid_out_by: tuple[Callable[[], list[Any]], int] | None

    if TYPE_CHECKING:

        def __init__(
            self,
            value: Any = None,
            array: np.ndarray | None = None,
            captured: Any = None,
            fill: Any = None,
        ) -> None: ...

    def current(self, trace: Trace) -> Any:
        """The value of the current version."""
        if self.is_exposed:
            exposed: Any = self.array
            return trace.snapshot(exposed)
        if self.value is None and self.captured is not None:
            self.value = self.original = trace.add_captured(self.captured)
        elif self.value is None:
            assert self.array is not None
            self.value = self._embed(trace, self.array)
        return self.value

    def _embed(self, trace: Trace, array: np.ndarray) -> Any:
        fill = self.fill if self.version == 0 else None
        if fill is None and array.size and array.ndim:
            flat = np.ascontiguousarray(array).reshape(-1)
            bits = flat.view("u1" if array.dtype.kind == "c" else f"u{array.itemsize}")
            if (bits.reshape(flat.size, -1) == bits[: bits.size // flat.size]).all():
                fill = flat[0]
        if fill is None and array.ndim == 0:
            fill = array[()]
        if fill is None:
            return trace.constant(array.copy())
        return trace.builder.broadcast_to(trace.builder.constant(fill), list(array.shape))

    def embed(self, trace: Trace) -> None:
        """Turns an array whose elements are known into a traced value."""
        if not self.is_exposed:
            self.current(trace)
            self.drop_array()

    def touched(self) -> None:
        """Notes that `array` may have changed."""
        trace = current_trace()
        if trace is not None and trace.loops is not None:
            trace.loops.after_known_write(self)
        self.version += 1
        if self.array is not None:
            self.value = None

    def write(self, trace: Trace, steps: tuple[Step, ...], part: Any) -> None:
        """Makes a new version, in which the view through `steps` is `part`."""
        if trace.loops is not None:
            part = trace.loops.before_write(trace, self, steps, part)
        for storage in self.reshaped:
            storage.require_c_order()
        self.reshaped = ()
        if self.captured is not None and trace.is_segmented and not self.is_exposed:
            trace.before_write(self)
        if self.is_exposed:
            if not trace.is_segmented:
                raise UnsupportedOpError(
                    "setitem: cannot trace a write to an array that NumPy may also write to"
                )
            array: Any = self.array
            for step in steps:
                array = step.of_array(array, trace)
            array[...] = trace.values([part])[0]
            return
        old = self.current(trace) if self.value is None else self.value
        if trace.is_segmented:
            trace.writes.note(self, old)
        self.value = _put(trace, old, steps, part) if steps else part
        self.drop_array()
        self.version += 1

    def drop_array(self) -> None:
        """Forgets the known elements, not how they lie in memory."""
        array, self.array = self.array, None
        if isinstance(array, np.ndarray) and not array.flags.c_contiguous:
            self.laid_out_by = (lambda: [array]), 0

    def is_known_in_c_order(self) -> bool:
        """Whether NumPy's array of these elements is in C order, or there is none."""
        known = self.captured if self.array is None else self.array
        return known is None or (isinstance(known, np.ndarray) and known.flags.c_contiguous)

    def note_reshaped(self) -> None:
        """Notes that the layout of this array decided whether a reshape of it was a view."""
        if self not in self.reshaped:
            self.reshaped += (self,)

    def require_c_order(self) -> None:
        """Notes that the trace requires the array to be C-contiguous. Raises UnsupportedOpError if
        NumPy gives it another layout."""
        if not self.can_require_c_order():
            raise UnsupportedOpError(
                "reshape: cannot trace a write to an array that was reshaped (NumPy lays it"
                " out in another order than C)\nhint: reshape a copy: x.copy().reshape(...)"
            )

    def can_require_c_order(self) -> bool:
        """Like `require_c_order`, but returns False if NumPy may give the array another layout."""
        seen, open_ = set[int](), [self]
        while open_:
            storage = open_.pop()
            if id(storage) in seen:
                continue
            seen.add(id(storage))
            storage.layout_used = storage.leaf is not None
            is_c = storage.order_known and storage.is_known_in_c_order()
            if storage.laid_out_by is not None:
                results, number = storage.laid_out_by
                is_c &= all(x.flags.c_contiguous for x in results()[number : number + 1])
            for tracer in storage.order_from:
                base = tracer._storage
                is_c &= is_in_c_order(base.shape, tracer.dtype, tracer._steps)
                open_.append(base)
            if not is_c:
                return False
        return True

    @property
    def is_outside(self) -> bool:
        """Whether this is the memory of an argument or captured array."""
        return self.leaf is not None or self.captured is not None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        known = self.array if self.array is not None else self.captured
        return tuple(known.shape if known is not None else self.value.shape)


def _with_bounds(item: Any) -> Any:
    """A basic index item with numbers in place of Sizes."""
    if isinstance(item, Size):
        return item.high
    if not isinstance(item, slice):
        return item
    return slice(*with_bounds((item.start, item.stop, item.step)))


def _put(trace: Trace, old: Any, steps: tuple[Step, ...], part: Any) -> Any:
    first, rest = steps[0], steps[1:]
    if rest:
        part = _put(trace, first.of(trace.builder, old), rest, part)
    return first.put(trace, old, part)


def viewed(array: np.ndarray, steps: tuple[Step, ...]) -> np.ndarray:
    """An array with the layout of the view through `steps`. (It takes element 0 for a traced
    index.)"""
    for step in steps:
        if step.kind == "element":
            axis = step.argument[0]
            array = array[(slice(None),) * axis + (0,)]
        else:
            array = step.of_array(array)
    return array


def layout(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    steps: tuple[Step, ...],
    memory: np.ndarray | None = None,
) -> np.ndarray:
    """An array with the layout of the view through `steps` of a C-contiguous array. `dtype` is the
    view's. It begins where `memory` does. Its elements must not be read or written: it serves only
    to ask NumPy about layouts."""
    for step in reversed(steps):
        dtype = step.dtype_before(dtype)
    memory = np.empty(1, dtype) if memory is None else memory
    strides, stride = [], dtype.itemsize
    shape = with_bounds(shape)
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    array = np.lib.stride_tricks.as_strided(memory, shape, strides[::-1])
    return viewed(array, steps)


def is_contiguous(shape: tuple[int, ...], dtype: np.dtype[Any], steps: tuple[Step, ...]) -> bool:
    """Whether the view through `steps` of a C-contiguous array is C-contiguous, too."""
    return not steps or bool(layout(shape, dtype, steps).flags.c_contiguous)


def is_in_c_order(shape: tuple[int, ...], dtype: np.dtype[Any], steps: tuple[Step, ...]) -> bool:
    """Whether NumPy gives C order to the result of an elementwise operation on the view through
    `steps` of a C-contiguous array."""
    return not steps or has_c_order(layout(shape, dtype, steps))


def has_c_order(array: np.ndarray) -> bool:
    """Whether the elements lie in C order, possibly with gaps between them."""
    strides = [abs(s) for s, size in zip(array.strides, array.shape, strict=True) if size != 1]
    return all(a > b > 0 for a, b in itertools.pairwise(strides))


def note_copy(copy: Tracer, original: Tracer) -> None:
    """Notes that NumPy copied an array because of its layout. If one of its sizes may be 1 in
    another call, that call gets a view. So later writes to the copy or the original are refused."""
    behind = original._storage
    if any(isinstance(n, Size) and n.low <= 1 for n in original.shape):
        behind = Storage()
        behind.order_known = False
        original._storage.reshaped += (behind,)
    copy._storage.reshaped += (behind,)


def can_view(shape: Any, dtype: np.dtype[Any], steps: tuple[Step, ...], wanted: Any) -> bool:
    """Whether NumPy reshapes the view through `steps` to the shape `wanted` without a copy."""
    return not steps or is_viewed(layout(shape, dtype, steps), wanted)


def is_viewed(array: np.ndarray, wanted: Any) -> bool:
    """Whether NumPy reshapes the array to the shape `wanted` without a copy."""
    try:
        reshaped_view(array, with_bounds(wanted))
    except (ValueError, AttributeError):
        return False
    return True


def permutation(function: Any, ndim: int, *arguments: Any) -> tuple[int, ...]:
    """The axes for `transpose` that have the effect of a NumPy function such as moveaxis."""
    return function(np.empty(tuple(range(ndim))), *arguments).shape  # type: ignore[no-any-return]


def refuse_write_to_numpy(what: str) -> None:
    raise UnsupportedOpError(
        f"{what}: cannot trace a write to an array that is not traced\n"
        "hint: pass the array as an argument"
    )


def refuse_if_unsure(number: Tracer, what: str) -> None:
    """Raises UnsupportedOpError for a number that may be Python's or NumPy's."""
    value = number._value
    if value is not None and number._trace.builder.unsure_kind(value):
        raise UnsupportedOpError(
            f"{what}: cannot trace what depends on whether a number is Python's or NumPy's"
        )


def is_empty_mask(array: Any) -> bool:
    """Whether an array is a mask without elements and with several axes. (As an index, NumPy takes
    it for a list of positions unless it is NumPy's own array.)"""
    return bool(array.dtype == bool and array.ndim > 1 and array.size == 0)


def as_number(value: Any, found: Any) -> Any:
    """The number that was found for a value, as Python's or NumPy's number."""
    number = np.asarray(found)[()]
    return number if value.weak is None else number.item()
