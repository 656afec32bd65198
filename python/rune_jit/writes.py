"""Writes to traced arrays: each makes a new version of the storage (storage.py)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit import numpy_dispatch as _dispatch
from rune_jit import selection as _selection
from rune_jit.errors import UnsupportedOpError
from rune_jit.registry import implements
from rune_jit.storage import refuse_write_to_numpy
from rune_jit.trace import Trace, contains_traced, require_trace
from rune_jit.tracer import Tracer


def _shape_text(shape: tuple[int, ...]) -> str:
    return f"({shape[0]},)" if len(shape) == 1 else f"({','.join(map(str, shape))})"


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(
        a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False)
    )


def converted(
    trace: Trace, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], extra: bool = True
) -> Any:
    """The value that an assignment writes to an array of this type: cast as NumPy's assignments do
    and broadcast; `extra`: leading dimensions of size 1 are dropped."""
    if type(value) in (bool, int, float):
        one = np.zeros((), dtype)
        one[()] = value  # NumPy's errors for what does not fit
        return trace.builder.broadcast_to(trace.builder.constant(one[()]), list(shape))
    operand = trace.array(value)
    given = tuple(operand.shape)
    kept = given
    while extra and len(kept) > len(shape) and kept[0] == 1:
        kept = kept[1:]
    if not shape and kept:
        raise ValueError("setting an array element with a sequence.")
    if not _broadcasts(kept, shape):
        raise ValueError(
            f"could not broadcast input array from shape {_shape_text(given)} into shape"
            f" {_shape_text(shape)}"
        )
    if operand.weak is not None:
        operand = trace.builder.full([], operand, dtype)  # checked to fit
    else:
        operand = trace.builder.astype(operand, dtype)
    if kept != given:
        operand = trace.builder.reshape(operand, list(kept))
    return trace.builder.broadcast_to(operand, list(shape))


def write(x: Tracer, value: Any) -> None:
    """Makes a value of x's type the content of x."""
    x._storage.write(require_trace(), x._steps, value)


def _check_writeable(x: Tracer, message: str) -> None:
    if x._storage.scalar:
        raise TypeError(f"'numpy.{x.dtype.name}' object does not support item assignment")
    if not x._writeable:
        raise ValueError(message)


def setitem(x: Tracer, index: Any, value: Any) -> None:
    """x[index] = value."""
    if x._is_left_over():
        _dispatch.plain(x)[_dispatch.plain(index)] = _dispatch.plain(value)
        return
    trace = require_trace()
    x._check_trace(trace)
    _check_writeable(x, "assignment destination is read-only")
    array = x._array()
    traced = contains_traced(index) or contains_traced(value)
    if array is not None and not traced and not isinstance(value, _selection.Selection):
        array[_dispatch.plain(index)] = _dispatch.plain(value)
        x._storage.touched()
        return
    items = index if isinstance(index, tuple) else (index,)
    if len(items) == 1 and is_mask(items[0]):
        _write_where(trace, x, items[0], value)
        return
    if isinstance(value, _selection.Selection):
        raise value.refusal("setitem")
    target = _dispatch.basic_view(trace, x, items)
    if target is None:
        raise UnsupportedOpError(
            "setitem: cannot trace a write at an array of indices\n"
            "hint: write np.where(mask, new, x)"
        )
    if (
        isinstance(value, Tracer)
        and value._storage is target._storage
        and value._steps == target._steps
    ):
        return  # the end of x[index] += ..., which wrote through the view
    write(target, converted(trace, value, target.shape, target.dtype))


def is_mask(item: Any) -> bool:
    """Whether an index is an array of bool."""
    return isinstance(item, (Tracer, np.ndarray)) and item.dtype == bool


def aligned_mask(trace: Trace, x: Tracer, mask: Any) -> Any:
    """The mask as a value that broadcasts against x; its axes are the first ones of x."""
    shape = tuple(mask.shape)
    if len(shape) > x.ndim:
        raise IndexError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {len(shape)} were"
            " indexed"
        )
    for axis, (have, want) in enumerate(zip(shape, x.shape, strict=False)):
        if have != want:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is"
                f" {want} but size of corresponding boolean axis is {have}"
            )
    value = trace.operand(mask)
    return trace.builder.reshape(value, [*shape, *([1] * (x.ndim - len(shape)))])


def _write_where(trace: Trace, x: Tracer, mask: Any, value: Any) -> None:
    where = aligned_mask(trace, x, mask)
    if isinstance(value, _selection.Selection):
        full = value.under(trace, x, where, "setitem")
        new = trace.builder.astype(full._value_in(trace), x.dtype)
    else:
        if not isinstance(value, (Tracer, np.ndarray, int, float)):
            value = np.asarray(value) if not contains_traced(value) else value
        rest = x.shape[np.ndim(mask) :]
        given = np.shape(value) if not isinstance(value, (list, tuple)) else (2, *x.shape)
        while len(given) > len(rest) and given[0] == 1:
            given = given[1:]
        if len(given) > len(rest):
            raise UnsupportedOpError(
                "setitem: cannot trace a write of an array to the elements under a mask (how many"
                " there are depends on data)\nhint: write np.where(mask, new, x)"
            )
        new = converted(trace, value, rest, x.dtype)
        new = trace.builder.broadcast_to(new, list(x.shape))
    write(x, trace.builder.where(where, new, trace.operand(x)))


def in_place(ufunc: str, x: Tracer, other: Any) -> Any:
    """x op= other."""
    if x._storage.scalar or isinstance(other, _selection.Selection):
        return _dispatch.operator(ufunc, (x, other))
    trace = require_trace()
    function = getattr(np, ufunc)
    if x._storage.array is not None and not contains_traced(other):
        return _dispatch.call_ufunc(function, "__call__", (x, other), {"out": (x,)})
    check_cast(trace, function, (x, other), x.dtype)
    operands = [trace.operand(x), trace.operand(other)]
    ufunc_write(trace, x, trace.builder.operator(ufunc, operands))
    return x


def _dummy(trace: Trace, operand: Any) -> Any:
    """Something of the operand's type for NumPy's own checks."""
    if type(operand) in (bool, int, float):
        return operand
    value = trace.operand(operand)
    if type(value) in (bool, int, float):
        return value
    if value.weak is not None:
        return {"bool": True, "int": 1, "float": 1.0}[value.weak]
    return np.ones((1, 1), value.dtype)


def check_cast(
    trace: Trace,
    ufunc: np.ufunc,
    inputs: tuple[Any, ...],
    *outputs: np.dtype[Any],
    **kwargs: Any,
) -> None:
    """Raises NumPy's own errors if it would not cast the results to these dtypes."""
    with np.errstate(all="ignore"):
        out = tuple(np.zeros((1, 1), dtype) for dtype in outputs)
        ufunc(*[_dummy(trace, x) for x in inputs], out=out, **kwargs)


def ufunc_write(trace: Trace, out: Any, value: Any, where: Any = True) -> None:
    """Writes a result of the ufunc to out."""
    if not isinstance(out, Tracer):
        refuse_write_to_numpy("out")
    if not out._writeable or out._storage.scalar:
        raise ValueError("output array is read-only")
    if not _broadcasts(tuple(value.shape), out.shape):
        raise ValueError(
            f"non-broadcastable output operand with shape {_shape_text(out.shape)} doesn't match"
            f" the broadcast shape {_shape_text(np.broadcast_shapes(value.shape, out.shape))}"
        )
    new = trace.builder.astype(value, out.dtype)
    new = trace.builder.broadcast_to(new, list(out.shape))
    if where is not True:
        new = trace.builder.where(trace.operand(where), new, trace.operand(out))
        if tuple(new.shape) != out.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {_shape_text(out.shape)} doesn't"
                f" match the broadcast shape {_shape_text(tuple(new.shape))}"
            )
    write(out, new)


def into(name: str, out: Any, result: Any, casting: str = "same_kind") -> Any:
    """Writes the result of a function to its out= argument, which it returns."""
    trace = require_trace()
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if not isinstance(out, Tracer):
        refuse_write_to_numpy(name)
    if not out._writeable or out._storage.scalar:
        raise ValueError("output array is read-only")
    value = trace.array(result)
    if tuple(value.shape) != out.shape:
        raise ValueError(
            f"{name}: cannot write a result of shape {_shape_text(tuple(value.shape))} to an out="
            f" array of shape {_shape_text(out.shape)}"
        )
    if not np.can_cast(value.dtype, out.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from {value.dtype!r} to {out.dtype!r} according to the rule"
            f" '{casting}'"
        )
    write(out, trace.builder.astype(value, out.dtype))
    return out


# NumPy's functions that write to their first argument.


def _target(x: Any, name: str) -> Tracer:
    if not isinstance(x, Tracer):
        refuse_write_to_numpy(name)
    _check_writeable(x, "assignment destination is read-only")
    return x  # type: ignore[no-any-return]


@implements(np.copyto)
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    x = _target(dst, "copyto")
    trace = require_trace()
    source = np.asarray(src) if isinstance(src, (list, tuple)) else src
    if isinstance(source, (Tracer, np.ndarray, np.generic)):
        weak = isinstance(source, Tracer) and trace.array(source).weak
        if not weak and not np.can_cast(source.dtype, x.dtype, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast array data from {source.dtype!r} to {x.dtype!r} according to the"
                f" rule '{casting}'"
            )
    new = converted(trace, source, x.shape, x.dtype)
    if where is not True:
        mask = trace.builder.broadcast_to(trace.array(where), list(x.shape))
        new = trace.builder.where(mask, new, trace.operand(x))
    write(x, new)


@implements(np.putmask)
def _putmask(a: Any, mask: Any, values: Any) -> None:
    x = _target(a, "putmask")
    trace = require_trace()
    if np.shape(mask) != x.shape:
        raise ValueError("putmask: mask and data must be the same size")
    if np.shape(values) not in ((), (1,), x.shape):
        raise UnsupportedOpError("putmask: cannot trace values of another shape")
    new = converted(trace, values, x.shape, x.dtype)
    write(x, trace.builder.where(trace.array(mask), new, trace.operand(x)))


@implements(np.place)
def _place(arr: Any, mask: Any, vals: Any) -> None:
    if np.size(vals) != 1:
        raise UnsupportedOpError(
            "place: cannot trace several values (which go where depends on data)"
        )
    _putmask(arr, mask, np.reshape(vals, ()))


@implements(np.fill_diagonal)
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    x = _target(a, "fill_diagonal")
    if x.ndim != 2 or wrap or np.size(val) != 1:
        raise UnsupportedOpError("fill_diagonal: cannot trace this call")
    setitem(x, np.eye(*x.shape, dtype=bool), np.reshape(val, ()))
