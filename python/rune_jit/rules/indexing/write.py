"""Writes to the elements that arrays of indices or masks select: scatters, and NumPy's functions
built on them."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rune_jit.errors import UnsupportedOpError, forgive
from rune_jit.methods import COMPARISONS
from rune_jit.rules import host, writes
from rune_jit.rules.coercions import as_index, rank, refuse
from rune_jit.rules.indexing.items import aligned_mask, basic_view, index_items
from rune_jit.rules.indexing.masks import WRONG_COUNT, running_count, spread
from rune_jit.rules.indexing.selection import Selection
from rune_jit.rules.known import plain
from rune_jit.rules.python_errors import fitting
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.sizes import Size, same_size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, contains_traced


def scatter(trace: Trace, x: Tracer, items: tuple[Any, ...], value: Any, mode: str = "set") -> None:
    """Writes to x[items], in order, with arrays of integers among the items. `mode` is that of the
    graph's Scatter."""
    builder, old = trace.builder, trace.operand(x)
    parts = index_items(trace, x, items)
    shape = tuple(builder.indexed_shape(old, parts))
    given = getattr(value, "shape", ())
    last = given[max(0, len(given) - len(shape)) :]
    if len(given) > len(shape) and 0 in shape and 0 in given and writes.broadcasts(last, shape):
        return  # NumPy ignores further axes then
    text = "shape mismatch: value array of shape {} could not be broadcast to indexing result of"
    new = writes.converted(trace, value, shape, x.dtype, message=text + " shape {}")
    writes.write(x, builder.scatter(old, parts, new, mode))


# Boolean masks.


def write_where(trace: Trace, x: Tracer, mask: Any, value: Any) -> None:
    """x[mask] = value, for a mask over the first axes of x."""
    writes.refuse_other_view("setitem", x, mask)
    where = aligned_mask(trace, x, mask)
    if isinstance(value, Selection):
        new = value.spread_over(trace, x, where, np.shape(mask))
    else:
        if isinstance(value, (list, tuple)):
            value = Tracer(trace, trace.array(fitting(trace, value, x.dtype)))
        rest = x.shape[np.ndim(mask) :]
        given = np.shape(value)
        while len(given) > len(rest) and same_size(given[0], 1):
            given = given[1:]
        if len(given) > len(rest):
            writes.refuse_itself("setitem", x, value)
            new = _spread(trace, x, mask, value)
        else:
            converted = writes.converted(trace, value, rest, x.dtype)
            new = trace.builder.broadcast_to(converted, list(x.shape))
    writes.write(x, trace.builder.where(where, new, trace.operand(x)))


def _spread(trace: Trace, x: Tracer, mask: Any, value: Any) -> Any:
    """An array like x whose elements under the mask are the rows of `value`, in order, as a value.
    A call raises NumPy's ValueError if the numbers differ."""
    rest = x.shape[np.ndim(mask) :]
    given = np.shape(value)
    while len(given) > len(rest) + 1 and same_size(given[0], 1):
        given = given[1:]
    if rest and 0 in given and len(given) > len(rest) + 1:
        raise UnsupportedOpError(
            f"setitem: cannot trace a write of an empty array of shape {writes.shape_text(given)}"
            " to the elements under a mask (NumPy allows it where the mask has no True)"
        )
    if len(given) != len(rest) + 1:
        raise ValueError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, input has"
            f" {len(given)} dimensions"
            if not rest
            else f"shape mismatch: value array of shape {writes.shape_text(given)} could not be"
            " broadcast to the elements under a mask"
        )
    message = WRONG_COUNT
    if rest:
        wanted = ",".join(map(str, rest))
        message = (
            f"shape mismatch: value array of shape ({{}},{','.join(map(str, given[1:]))}) could not"
            f" be broadcast to indexing result of shape ({{}},{wanted})"
        )
    rows = writes.converted(trace, value, (given[0], *rest), x.dtype)
    return spread(trace, x, trace.array(mask), rows, given[0], message)


# ufunc.at.

_AT: dict[Any, str] = {
    np.add: "add",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.subtract: "add",
}


def ufunc_at(ufunc: np.ufunc, a: Any, indices: Any, *others: Any) -> None:
    """ufunc.at. An index that occurs twice has an effect twice."""
    x = writes.target(a, f"{ufunc.__name__}.at")
    try:
        _scatter_at(ufunc, x, indices, *others)
    except UnsupportedOpError as error:
        forgive(error)
        _at_on_host(ufunc, x, indices, others)


def _at_on_host(ufunc: np.ufunc, x: Tracer, indices: Any, others: tuple[Any, ...]) -> None:
    def after(x: np.ndarray, indices: Any, *others: Any) -> np.ndarray:
        result = x.copy()
        ufunc.at(result, indices, *others)
        return result

    name = f"numpy.{ufunc.__name__}.at"
    try:
        x[...] = host.call_on_host(after, (x, indices, *others), {}, name=name)
    except (ValueError, IndexError) as error:  # from the probes' masks and indices
        raise UnsupportedOpError(f"{name}: cannot trace this call ({error})") from error


def _scatter_at(ufunc: np.ufunc, x: Tracer, indices: Any, *others: Any) -> None:
    trace = require_trace()
    mode = _AT.get(ufunc)
    if x.dtype == bool:
        mode = {"add": "max", "max": "max", "prod": "min", "min": "min"}.get(mode or "")
    if mode is None or len(others) != 1 or (x.dtype == bool and ufunc is np.subtract):
        raise UnsupportedOpError(f"{ufunc.__name__}.at: cannot trace this call")
    items = indices if isinstance(indices, tuple) else (indices,)
    value = trace.operand(others[0])
    given = trace.builder.value(value).dtype
    rounds = mode in ("add", "prod")
    wraps = x.dtype.kind in "iu" and given.kind in "iub" and rounds
    wraps &= not (x.dtype == np.uint64 and given.kind == "i")  # NumPy adds these as float64
    common = trace.builder.result_type([trace.operand(x), value])
    # Rounding does not change which of two floats is greater.
    in_common = (rounds or x.dtype.kind in "iu") and x.dtype != bool
    if in_common and _is_python_number(value) and not _holds(x.dtype, value):
        common = np.result_type(x.dtype, given)
    if not wraps and common != x.dtype:
        raise UnsupportedOpError(
            f"{ufunc.__name__}.at: cannot trace values of {given} for an array"
            f" of {x.dtype} (NumPy rounds after each)\nhint: cast them with astype first"
        )
    if wraps and type(others[0]) is int:
        value = trace.operand(np.int64(others[0]))
    if ufunc is np.subtract:
        value = trace.builder.ufunc("negative", [trace.builder.astype(value, x.dtype)])[0]
    new = Tracer(trace, trace.builder.astype(value, x.dtype))
    if x.dtype == bool:  # of 0 and 1, which compare like bools
        numbers = x.astype(np.uint8)
        _scatter_at(np.maximum if mode == "max" else np.minimum, numbers, indices, new)
        x[...] = numbers.astype(bool)
        return
    items = tuple(np.atleast_1d(i) if issubclass(type(i), (int, np.integer)) else i for i in items)
    if all(item is None or item is Ellipsis or isinstance(item, slice) for item in items):
        raise UnsupportedOpError(f"{ufunc.__name__}.at: cannot trace an index without arrays")
    scatter(trace, x, items, new, mode)


def _is_python_number(value: Any) -> bool:
    return type(value) in (bool, int, float, complex) or value.weak is not None


def _holds(dtype: np.dtype, value: Any) -> bool:
    """Whether the dtype can represent a Python number exactly. In .at, NumPy uses the number as
    int64 or float64 and rounds the result. If the dtype can represent the number, this makes no
    difference."""
    if type(value) not in (bool, int, float) or dtype.kind == "c":
        return False  # an argument of the traced function
    if dtype == np.uint64:
        return False  # with int64: float64
    with np.errstate(all="ignore"):
        held = np.asarray(value).astype(dtype)
    return bool((int(held) if dtype.kind in "iu" else float(held)) == value)


# NumPy's functions that write to elements of their first argument.


def _flat(trace: Trace, x: Any) -> Any:
    return trace.builder.reshape(trace.array(x), [-1])


def _write_flat(trace: Trace, x: Tracer, flat: Any) -> None:
    writes.write(x, trace.builder.reshape(flat, list(x.shape)))


def _repeated(trace: Trace, values: Any, size: int, dtype: Any) -> Any:
    """numpy.resize(values, size), cast to the dtype."""
    flat = _flat(trace, fitting(trace, values, np.dtype(dtype)))
    given = flat.shape[0]
    if given != size:
        flat = trace.builder.take(flat, trace.constant(np.arange(size) % given), 0)
    return writes.converted(trace, Tracer(trace, flat), (size,), np.dtype(dtype))


@implements(np.put)
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    x = writes.target(a, "put")
    trace = require_trace()
    at = _flat(trace, ind)
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if at.shape[0] == 0 or np.size(v) == 0:
        return
    if mode == "clip":
        at = trace.builder.clip(at, 0, x.size - 1)
    elif mode == "wrap":
        at = trace.builder.ufunc("remainder", [at, x.size])[0]
    new = _repeated(trace, v, at.shape[0], x.dtype)
    _write_flat(trace, x, trace.builder.scatter(_flat(trace, x), [at], new, "set"))


@implements(np.putmask)
def _putmask(a: Any, mask: Any, values: Any) -> None:
    x = writes.target(a, "putmask")
    trace = require_trace()
    if np.size(mask) != x.size:
        raise ValueError("putmask: mask and data must be the same size")
    if np.size(values) == 0:
        return
    where = trace.builder.astype(_flat(trace, mask), np.dtype(bool))
    new = _repeated(trace, values, x.size, x.dtype)
    _write_flat(trace, x, trace.builder.where(where, new, _flat(trace, x)))


@implements(np.place)
def _place(arr: Any, mask: Any, vals: Any) -> None:
    x = writes.target(arr, "place")
    writes.refuse_itself("place", x, vals)
    trace = require_trace()
    builder = trace.builder
    if np.size(mask) != x.size:
        raise ValueError("place: mask and data must be the same size")
    if x.size == 0:
        return
    where = builder.astype(_flat(trace, mask), np.dtype(bool))
    if np.size(vals) == 0:
        count = builder.reduce("sum", where, None, False, np.dtype(np.int64))
        trace.must_be_equal(count, 0, "Cannot insert from an empty array!")
        return
    new = _repeated(trace, vals, np.size(vals), x.dtype)
    ranks = builder.ufunc("subtract", [running_count(trace, where), 1])[0]
    at = builder.ufunc("remainder", [ranks, new.shape[0]])[0]
    builder.assume_range(at, 0, new.shape[0] - 1)
    _write_flat(trace, x, builder.where(where, builder.take(new, at, 0), _flat(trace, x)))


@implements(np.put_along_axis)
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    x = writes.target(arr, "put_along_axis")
    trace = require_trace()
    if axis is None:
        if np.ndim(indices) != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        flat = Tracer(trace, _flat(trace, x))
        scatter(trace, flat, (indices,), values)
        _write_flat(trace, x, trace.operand(flat))
        return
    if np.ndim(indices) != x.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    along = range(x.ndim)[as_index(axis)]
    items = []
    for i in range(x.ndim):
        shape = [1] * x.ndim
        shape[i] = x.shape[i]
        items.append(indices if i == along else np.arange(x.shape[i]).reshape(shape))
    scatter(trace, x, tuple(items), values)


# ndarray.flat.


def _check_flat(x: Tracer, index: Any) -> None:
    """Raises what NumPy raises for a known index of x.flat, and UnsupportedOpError for a number
    that is no integer, which NumPy converts."""
    if type(index) is slice or index is Ellipsis:
        return
    if not contains_traced((index, x.shape)):
        # An array of this shape that takes one byte.
        np.broadcast_to(np.zeros((), np.bool_), x.shape).flat[plain(index)]
    is_position = type(index) in (int, Size) or rank(index) > 0
    if not is_position and getattr(index, "dtype", np.dtype(object)).kind not in "iu":
        refuse("flat")


def read_flat(x: Tracer, index: Any) -> Any:
    """x.flat[index]."""
    _check_flat(x, index)
    return x.flatten()[index]


def write_flat(x: Tracer, index: Any, value: Any) -> None:
    """x.flat[index] = value: the value is repeated as often as needed."""
    trace = require_trace()
    _check_flat(x, index)
    writes.refuse_itself("flat", x, value)
    if np.size(value) == 0:
        return
    flat = Tracer(trace, _flat(trace, x))
    flat._storage.scalar = False
    if isinstance(index, slice):
        target = basic_view(trace, flat, (index,))
        assert target is not None
        if target.size:
            writes.write(target, _repeated(trace, value, target.size, x.dtype))
    elif contains_traced(index) or np.ndim(index) == 0:
        flat[index] = value
    else:
        at = np.asarray(index)
        at = np.flatnonzero(at) if at.dtype == bool else at
        if at.size:
            new = _repeated(trace, value, at.size, x.dtype)
            flat[at] = Tracer(trace, trace.builder.reshape(new, list(at.shape)))
    _write_flat(trace, x, trace.operand(flat))


def _take_flat(x: Any, index: Any) -> Any:
    return x.flat[index]


def _put_flat(x: Any, index: Any, value: Any) -> None:
    x.flat[index] = value


_read_flat_or_numpy = host.or_numpy(read_flat, host.given(_take_flat))
_write_flat_or_numpy = host.or_numpy(write_flat, host.given(_put_flat))


class Flat:
    """ndarray.flat of a traced array."""

    def __init__(self, base: Tracer) -> None:
        self.base, self.index = base, 0  # (the position of the next element)
        self._rest: Iterator[Any] | None = None  # the elements from there

    def over(self, array: Any) -> np.flatiter[Any]:
        """NumPy's iterator at the same position of an array."""
        made: np.flatiter[Any] = array.flat
        collections.deque(itertools.islice(made, self.index), 0)
        return made

    @property
    def coords(self) -> tuple[int, ...]:
        return tuple(map(int, np.unravel_index(self.index, self.base.shape)))

    def __iter__(self) -> Flat:
        return self

    def __next__(self) -> Any:
        if self._rest is None:
            self._rest = itertools.islice(self._elements(), self.index, None)
        value = next(self._rest)
        self.index += 1
        return value

    def _elements(self) -> Iterator[Any]:
        if self.base._trace.is_segmented:
            return self.base.elements()
        return (self.base[index] for index in np.ndindex(*self.base.shape))

    def __getitem__(self, index: Any) -> Any:
        self.index, self._rest = 0, None
        return _read_flat_or_numpy(self.base, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.index, self._rest = 0, None
        if self.base._array() is not None and not contains_traced((index, value)):
            plain(self.base).flat[plain(index)] = plain(value)
            self.base._storage.touched()
            return
        _write_flat_or_numpy(self.base, index, value)

    def __len__(self) -> int:
        return self.base.size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.base.flatten().__array__(dtype, copy)

    def copy(self) -> Any:
        return self.base.flatten()


def _compare(name: str) -> Callable[[Flat, Any], Any]:
    def compare(self: Flat, other: Any) -> Any:
        other = other.copy() if isinstance(other, Flat) else other
        return getattr(np, name)(self.copy(), other)

    return compare


for _name, _ufunc in COMPARISONS.items():
    setattr(Flat, f"__{_name}__", _compare(_ufunc))
