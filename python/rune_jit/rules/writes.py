"""Writes to traced arrays. Each write makes a new version of the storage (storage.py)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.coercions import SAMPLES, check_mask
from rune_jit.rules.python_errors import fitting
from rune_jit.rules.table import implements
from rune_jit.rules.warned import warn_of_lost_part
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.sizes import Size, broadcast_shapes, mismatch, same_shape, same_size
from rune_jit.tracing.storage import refuse_write_to_numpy, same_steps
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import NUMBERS, Tracer


def shape_text(shape: tuple[int, ...]) -> str:
    return f"({shape[0]},)" if len(shape) == 1 else f"({','.join(map(str, shape))})"


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(
        same_size(a, 1) or same_size(a, b)
        for a, b in zip(reversed(shape), reversed(to), strict=False)
    )


def converted(
    trace: Trace,
    value: Any,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    message: str = "could not broadcast input array from shape {} into shape {}",
) -> Any:
    """The value that an assignment writes to an array with this dtype and shape. It is cast and
    broadcast as in NumPy's assignments, which drop leading axes of size 1. Raises ValueError if it
    cannot be broadcast. Its message is `message`, formatted with both shapes."""
    if issubclass(type(value), np.generic) and dtype.kind in "iu" and value.dtype.kind in "iuf":
        fits = np.iinfo(dtype).min <= np.trunc(value).item() <= np.iinfo(dtype).max
        if not fits:  # NumPy raises or warns
            raise UnsupportedOpError(f"assignment: cannot trace {value!r} for an array of {dtype}")
    if type(value) in (bool, int, float, complex):
        one = np.zeros((), dtype)
        one[()] = value  # raises NumPy's errors for values that do not fit
        return trace.builder.broadcast_to(trace.builder.constant(one[()]), list(shape))
    operand = trace.array(fitting(trace, value, dtype))
    given = operand.shape
    if operand.dtype == dtype and operand.weak is None and same_shape(given, shape):
        return operand
    kept = given
    while len(kept) > len(shape) and same_size(kept[0], 1):
        kept = kept[1:]
    if not broadcasts(kept, shape):
        raise mismatch(message.format(shape_text(given), shape_text(shape)), given, shape)
    if operand.weak is not None:
        operand = trace.builder.full([], operand, dtype)  # checked to fit
    else:
        warn_of_lost_part(operand.dtype, dtype)
        operand = trace.builder.astype(operand, dtype)
    if kept is not given:
        operand = trace.builder.reshape(operand, list(kept))
    return trace.builder.broadcast_to(operand, list(shape))


def write(x: Tracer, value: Any) -> None:
    """Replaces the elements of x by a value with x's dtype and shape."""
    x._storage.write(require_trace(), x._steps, value)


def refuse_number(x: Tracer) -> None:
    """Raises NumPy's error for an assignment to an item of a number, if x is one."""
    if x._storage.scalar:
        raise TypeError(f"'numpy.{x.dtype.name}' object does not support item assignment")


def check_writeable(x: Tracer) -> None:
    """Raises NumPy's error for an assignment to items of a read-only array, if x is one."""
    refuse_number(x)
    _refuse_read_only(x, "assignment destination is read-only")


def _refuse_read_only(x: Tracer, message: str) -> None:
    if x._writeable:
        return
    if any(step.kind == "broadcast_arrays" for step in x._steps):
        raise UnsupportedOpError(
            "broadcast_arrays: cannot trace a write to its result (elements share memory)\n"
            "hint: write to a copy"
        )
    if any(step.kind in ("reshape", "ravel") for step in x._steps):
        if x._trace.is_segmented:
            raise ValueError(message)
        raise UnsupportedOpError(
            "reshape: cannot trace a write to an array that was reshaped from a read-only one"
            " (whether NumPy copies it depends on its layout)\nhint: reshape a copy:"
            " x.copy().reshape(...)"
        )
    raise ValueError(message)


def target(x: Any, name: str) -> Tracer:
    """The array to which the function `name` writes. Raises an error if x is none."""
    if not isinstance(x, Tracer):
        refuse_write_to_numpy(name)
    check_writeable(x)
    return x  # type: ignore[no-any-return]


def _kind(trace: Trace, operand: Any) -> tuple[Any, Any]:
    """An operand for NumPy's own checks: its dtype, or its Python type and a number of that
    type."""
    value = trace.operand(operand)
    if type(value) in (bool, int, float, complex):
        return type(value), value
    if value.weak is None:
        return value.dtype, None
    return value.weak, SAMPLES[value.weak]


def check_cast(
    trace: Trace,
    ufunc: np.ufunc,
    inputs: tuple[Any, ...],
    results: Sequence[Any],
    targets: Sequence[Any],
    **kwargs: Any,
) -> None:
    """Raises NumPy's errors if it would not cast results to the dtypes of the targets. (A target
    may be None.)"""
    dtypes = [None if target is None else target.dtype for target in targets]
    if not kwargs and dtypes == [value.dtype for value in results]:
        return  # nothing is cast
    kinds = tuple([_kind(trace, x) for x in inputs])
    _check_cast(ufunc, kinds, tuple(dtypes), tuple(kwargs.items()))


@functools.lru_cache(maxsize=1024)
def _check_cast(ufunc: np.ufunc, inputs: Any, outputs: Any, options: Any) -> None:
    with np.errstate(all="ignore"):
        out = tuple(None if dtype is None else np.zeros((1, 1), dtype) for dtype in outputs)
        arrays = [np.ones((1, 1), kind) if x is None else x for kind, x in inputs]
        ufunc(*arrays, out=out, **dict(options))


def check_casting(given: np.dtype[Any], wanted: np.dtype[Any], casting: Any) -> None:
    """Raises NumPy's TypeError if the casting rule does not allow the cast."""
    if not np.can_cast(given, wanted, casting):
        raise TypeError(
            f"Cannot cast array data from {given!r} to {wanted!r} according to the rule '{casting}'"
        )


def _output(out: Any, name: str) -> Tracer:
    """The array of an out= argument."""
    if not isinstance(out, Tracer):
        refuse_write_to_numpy(name)
    _refuse_read_only(out, "output array is read-only")
    return out  # type: ignore[no-any-return]


def _not_broadcastable(out: Any, common: Any, given: Any) -> Exception:
    return mismatch(
        f"non-broadcastable output operand with shape {shape_text(out)} doesn't match the broadcast"
        f" shape {shape_text(common)}",
        given,
        out,
    )


def refuse_numbers(trace: Trace, out: tuple[Any, ...]) -> None:
    """Raises NumPy's TypeError if an item of `out=` is a number of Python's, or a number that is
    an argument of the function. (Other numbers may be the results of `out=...`, which are arrays:
    NumPy does not pass that to __array_ufunc__.)"""
    numbers = (x for x in out if type(x) is Tracer and x._storage.scalar)
    if any(x._storage.leaf is not None or trace.operand(x).weak for x in numbers):
        raise TypeError("return arrays must be of ArrayType")


def refuse_shapes(ufunc: np.ufunc, inputs: Any, out: Any) -> None:
    """Raises NumPy's ValueError if the operands of a ufunc, including those of `out=`, cannot be
    broadcast."""
    shapes = [np.shape(x) for x in (*inputs, *out) if x is not None]
    if ufunc.signature is not None or any(isinstance(n, Size) for shape in shapes for n in shape):
        return
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        texts = " ".join(map(shape_text, shapes))
        raise ValueError(f"operands could not be broadcast together with shapes {texts} ") from None


def ufunc_write(trace: Trace, out: Any, value: Any, where: Any = True) -> None:
    """Writes a ufunc's result to `out`."""
    if type(out) is not Tracer or not out._writeable:
        _output(out, "out")
    # With out=..., results are arrays and not numbers. NumPy does not pass it to __array_ufunc__.
    out._storage.scalar = False
    new = value if value.dtype == out._dtype else trace.builder.astype(value, out._dtype)
    if not same_shape(value.shape, out._shape):
        if not broadcasts(value.shape, out.shape):
            common = broadcast_shapes(value.shape, out.shape)
            raise _not_broadcastable(out.shape, common, value.shape)
        new = trace.builder.broadcast_to(new, list(out.shape))
    if where is not True:
        new = trace.builder.where(trace.operand(where), new, trace.operand(out))
        if not same_shape(new.shape, out.shape):
            raise _not_broadcastable(out.shape, tuple(new.shape), new.shape)
    out._storage.write(trace, out._steps, new)


def joined_into(function: Any, out: Tracer, arrays: Any, axis: Any, casting: str) -> Tracer:
    """numpy.concatenate or numpy.stack into an array of which operands are views. NumPy copies one
    operand after the other, so that the later ones have new elements."""
    start, is_stack, trace = 0, function is np.stack, require_trace()
    parts = [x if type(x) is Tracer else Tracer(trace, trace.array(x)) for x in arrays]
    for part in parts:
        x: Any = np.ravel(part) if axis is None else part
        check_casting(x.dtype, out.dtype, casting)
        along, index = (axis or 0) % out.ndim, [slice(None)] * out.ndim
        size = 1 if is_stack else x.shape[along]
        index[along] = slice(start, start + size)
        out[tuple(index)] = np.expand_dims(x, along) if is_stack else x
        start += size
    return out


def into(name: str, out: Any, result: Any, casting: str = "same_kind") -> Any:
    """Writes the result of a function to its out= argument, and returns that. (numpy.dot returns a
    number in place of a 0-d array.)"""
    trace = require_trace()
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    out = _output(out, name)
    if out._storage.scalar:
        raise TypeError("return arrays must be of ArrayType")
    value = trace.array(result)
    if not same_shape(value.shape, out.shape):
        raise mismatch(
            f"{name}: cannot write a result of shape {shape_text(tuple(value.shape))} to an out="
            f" array of shape {shape_text(out.shape)}",
            value.shape,
            out.shape,
        )
    check_casting(value.dtype, out.dtype, casting)
    write(out, trace.builder.astype(value, out.dtype))
    return out[()] if name == "dot" and not out.ndim else out


def refuse_itself(what: str, x: Tracer, value: Any) -> None:
    """Raises UnsupportedOpError if NumPy would read elements that it has just written."""
    if isinstance(value, Tracer) and value._storage is x._storage:
        raise UnsupportedOpError(
            f"{what}: cannot trace a write of an array to itself (NumPy reads what it has written)"
            "\nhint: write a copy of it"
        )


def refuse_other_view(what: str, x: Tracer, mask: Any) -> None:
    """Like `refuse_itself`, for a mask. The mask may be x itself, because NumPy reads each element
    of the mask just before it writes the same element of x."""
    if isinstance(mask, Tracer) and not same_steps(mask._steps, x._steps):
        refuse_itself(what, x, mask)


# The kinds of dtypes that hold a Python number whatever the casting rule is, by its type.
_HOLDING = {"bool": "b", "int": "iufc", "float": "fc", "complex": "c"}


def _check_number(kind: str, wanted: np.dtype[Any], casting: str) -> None:
    """Raises numpy.copyto's TypeError if the casting rule does not allow the cast of a Python
    number."""
    given = np.dtype(kind)
    if wanted.kind not in _HOLDING[kind] and not np.can_cast(given, wanted, casting):  # type: ignore
        text = f"Cannot cast scalar from {given!r} to {wanted!r} according to the rule '{casting}'"
        raise TypeError(text)


@implements(np.copyto)
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    x = target(dst, "copyto")
    trace = require_trace()
    source = np.asarray(src) if isinstance(src, (list, tuple)) else src
    weak = trace.array(source).weak if isinstance(source, Tracer) else None
    if weak or type(source) in NUMBERS:
        _check_number(weak or type(source).__name__, x.dtype, casting)
    elif isinstance(source, (Tracer, np.ndarray, np.generic)):
        check_casting(source.dtype, x.dtype, casting)
    new = converted(trace, source, x.shape, x.dtype)
    if where is not True:
        check_mask(where)
        refuse_other_view("copyto", x, where)
        message = "could not broadcast where mask from shape {} into shape {}"
        mask = converted(trace, where, x.shape, np.dtype(bool), message)
        new = trace.builder.where(mask, new, trace.operand(x))
    write(x, new)
