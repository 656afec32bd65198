"""NumPy's reductions, products, and elementwise functions that are no ufuncs, for traced arrays."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.errors import DataDependentShapeError
from rune_jit.rules.coercions import (
    NO_VALUE,
    as_axes,
    as_axis,
    as_flag,
    as_index,
    as_ints,
    is_axis_of_scalar,
    is_float,
    make_tracer,
    refuse,
    refuse_unless,
)
from rune_jit.rules.known import run_known
from rune_jit.rules.statistics import degrees_removed, masked_mean, masked_variance
from rune_jit.rules.table import FUNCTIONS, implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, contains_traced

# Reductions.


# By reduction, the ufunc whose `reduce` it is.
UFUNCS = {
    "sum": "add",
    "prod": "multiply",
    "max": "maximum",
    "min": "minimum",
    "any": "logical_or",
    "all": "logical_and",
}


def reduce_array(
    name: str,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Tracer:
    """numpy.sum and the other reductions of this module's table."""
    if where is not NO_VALUE and where is not True:
        a = _where_else_neutral(name, a, initial, where)
    axes = None if is_axis_of_scalar(a, axis) else as_axes(axis)
    if name in ("max", "min") and initial is not NO_VALUE and 0 in np.shape(a):
        a = _of_initial(a, axes, initial)
    trace = require_trace()
    value = trace.builder.reduce(name, trace.operand(a), axes, as_flag(keepdims), dtype)
    result = make_tracer(trace, value)
    if initial is NO_VALUE or initial is None:
        return result
    if name in ("any", "all"):
        initial = bool(initial)
    values = trace.builder.ufunc(UFUNCS[name], [value, trace.operand(initial)], value.dtype)
    return make_tracer(trace, values[0])


def _where_else_neutral(name: str, a: Any, initial: Any, where: Any) -> Any:
    """a, and what does not change the reduction where `where` is false."""
    neutral = {"sum": 0, "prod": 1, "any": 0, "all": 1}.get(name, initial)
    if neutral is NO_VALUE:
        raise ValueError(
            f"reduction operation '{name}imum' does not have an identity, so to use a where mask"
            " one has to specify 'initial'"
        )
    value = require_trace().array(a)
    is_traced = isinstance(neutral, Tracer)
    other = neutral.astype(value.dtype) if is_traced else value.dtype.type(neutral)
    return np.where(where, a, other)


def _of_initial(a: Any, axes: Any, initial: Any) -> Any:
    """What stands for an array without elements along these axes: one element along each."""
    among = range(a.ndim) if axes is None else [axis % a.ndim for axis in axes]
    shape = [1 if i in among else n for i, n in enumerate(a.shape)]
    return np.full_like(a, initial, shape=shape)


def _reduce_to_own_dtype(
    name: str, a: Any, axis: Any = None, *options: Any, **named: Any
) -> Tracer:
    return reduce_array(name, a, axis, None, *options, **named)


for _function in (np.sum, np.prod, np.max, np.min, np.any, np.all):
    _reduce = reduce_array if _function in (np.sum, np.prod) else _reduce_to_own_dtype
    implements(_function)(functools.partial(_reduce, _function.__name__))
for _old, _new in (("amax", np.max), ("amin", np.min)):
    if hasattr(np, _old):
        implements(getattr(np, _old))(FUNCTIONS[_new])


@implements(np.mean)
def _mean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, *, where: Any = NO_VALUE
) -> Tracer:
    if where is not NO_VALUE and where is not True:
        return masked_mean(a, axis, dtype, keepdims, where)  # type: ignore[no-any-return]
    trace = require_trace()
    return make_tracer(
        trace, trace.builder.mean(trace.operand(a), as_axes(axis), as_flag(keepdims), dtype)
    )


def _variance(
    root: bool,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Tracer:
    ddof = degrees_removed(ddof, correction)
    if mean is not NO_VALUE or not (where is NO_VALUE or where is True):
        variance = masked_variance(a, axis, dtype, ddof, keepdims, where, mean)
        return np.sqrt(variance) if root else variance  # type: ignore[no-any-return]
    trace = require_trace()
    return make_tracer(
        trace,
        trace.builder.variance(
            trace.operand(a), as_axes(axis), as_flag(keepdims), dtype, float(ddof), root
        ),
    )


implements(np.var)(functools.partial(_variance, False))
implements(np.std)(functools.partial(_variance, True))


@implements(np.ptp)
def _ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Tracer:
    return np.max(a, axis, keepdims=as_flag(keepdims)) - np.min(a, axis, keepdims=as_flag(keepdims))  # type: ignore[no-any-return]


def _arg_reduce(largest: bool, a: Any, axis: Any = None, *, keepdims: Any = NO_VALUE) -> Tracer:
    trace = require_trace()
    value = trace.array(a)
    along = None if is_axis_of_scalar(a, axis) else as_axis(axis)
    if along is None and value.ndim == 0:
        value, keepdims = trace.builder.reshape(value, [1]), False
    positions = _positions(trace, value.shape, along)
    return make_tracer(
        trace, trace.builder.arg_reduce(largest, value, along, as_flag(keepdims), positions)
    )


def _positions(trace: Trace, shape: tuple[Any, ...], axis: int | None) -> Any:
    """The index of each element along an axis, or flattened, as a value that broadcasts. Of int32,
    for twice the lanes, where that holds them all, else int64."""
    builder, rank = trace.builder, len(shape)
    is_static = not any(isinstance(n, Size) for n in shape)
    dtype = np.int32 if is_static and math.prod(shape) <= np.iinfo(np.int32).max else np.int64
    if axis is not None and -rank <= axis < rank:
        sizes = [-1] + [1] * (rank - 1 - axis % rank)
        return builder.reshape(trace.iota(shape[axis], dtype), sizes)
    if axis is not None or rank < 2:
        return trace.iota(shape[0] if axis is None else 1, dtype)
    if is_static:
        return builder.reshape(trace.iota(math.prod(shape), dtype), list(shape))
    rows = _positions(trace, shape[:-1], None)
    by_row = builder.ufunc("multiply", [rows, trace.operand(shape[-1])])[0]
    return builder.ufunc("add", [builder.expand_dims(by_row, [-1]), trace.iota(shape[-1])])[0]


implements(np.argmax)(functools.partial(_arg_reduce, True))
implements(np.argmin)(functools.partial(_arg_reduce, False))


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tracer:
    return np.sum(np.not_equal(a, 0), axis=axis, dtype=np.int64, keepdims=keepdims)  # type: ignore[return-value]


# Elementwise functions that are not ufuncs.


@implements(np.where)
def _where(condition: Any, x: Any = NO_VALUE, y: Any = NO_VALUE) -> Tracer:
    if x is NO_VALUE or y is NO_VALUE:
        raise DataDependentShapeError(
            "where: cannot trace one argument (the result's shape depends on data)\n"
            "hint: write np.where(condition, x, y)"
        )
    for number, other in ((x, y), (y, x)):
        if type(number) is int and isinstance(other, Tracer) and other.dtype.kind in "iu":
            # Before NumPy 2.5 numbers that are out of bounds wrap, since then they are refused.
            np.where([], number, np.zeros(0, other.dtype))
    trace = require_trace()
    operands = [trace.operand(v) for v in (condition, x, y)]
    return Tracer(trace, trace.builder.where(*operands), scalar=False)


@implements(np.clip)
def _clip(
    a: Any,
    a_min: Any = NO_VALUE,
    a_max: Any = NO_VALUE,
    *,
    min: Any = NO_VALUE,
    max: Any = NO_VALUE,
    dtype: Any = None,
) -> Tracer:
    low = a_min if min is NO_VALUE else min
    high = a_max if max is NO_VALUE else max
    low, high = (None if bound is NO_VALUE else bound for bound in (low, high))
    trace = require_trace()
    value = trace.array(a)
    if dtype is not None:
        value = trace.builder.astype(value, dtype)
    if np.dtype(value.dtype).kind in "iu":
        # Python ints beyond the dtype bound nothing.
        limits = np.iinfo(value.dtype)
        if type(low) is int and low <= limits.min:
            low = None
        if type(high) is int and high >= limits.max:
            high = None
    bounds = [None if bound is None else trace.operand(bound) for bound in (low, high)]
    return make_tracer(trace, trace.builder.clip(value, *bounds))


@implements(np.round, np.around)
def _round(a: Any, decimals: Any = 0) -> Any:
    decimals = as_index(decimals)
    if not is_float(a.dtype):
        refuse_unless(a.dtype != bool, "round of bool")
        if decimals >= 0:
            return a.copy()
        return (np.rint(a / 10.0**-decimals) * 10.0**-decimals).astype(a.dtype)
    if decimals == 0:
        return np.rint(a)
    scale = 10.0 ** abs(decimals)
    there, back = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
    # bfloat16 and a Python float are float64, but NumPy rounds each step to the array's dtype.
    return back(np.rint(there(a, scale).astype(a.dtype)), scale).astype(a.dtype)


@implements(np.fix)
def _fix(x: Any) -> Any:
    return np.trunc(x)


@implements(np.real, np.real_if_close)
def _real(val: Any) -> Any:
    return val


@implements(np.imag)
def _imag(val: Any) -> Any:
    return np.zeros_like(val)


def _python_bool(x: Any) -> Tracer:
    trace = require_trace()
    return make_tracer(trace, trace.builder.python_bool(trace.operand(x)))


@implements(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return _python_bool(np.all(np.isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    if np.shape(a1) != np.shape(a2):
        return False
    equal = np.equal(a1, a2)
    if equal_nan:
        equal = equal | (np.not_equal(a1, a1) & np.not_equal(a2, a2))
    return _python_bool(np.all(equal))


@implements(np.array_equiv)
def _array_equiv(a1: Any, a2: Any) -> Any:
    try:
        np.broadcast_shapes(np.shape(a1), np.shape(a2))
    except ValueError:
        return False
    return _python_bool(np.all(np.equal(a1, a2)))


# Products.


# By ufunc: the axes of size 1 that make its operands matrices, and those of the result that go.
_PRODUCTS: dict[str, tuple[list[int], list[int], list[int]]] = {
    "matmul": ([], [], []),
    "vecdot": ([-2], [-1], [-2, -1]),
    "matvec": ([], [-1], [-1]),
    "vecmat": ([-2], [], [-2]),
}


def generalized(name: str, a: Any, b: Any) -> Tracer:
    """The ufuncs of matrices and vectors, by matmul."""
    refuse_unless(name in _PRODUCTS, name)
    trace = require_trace()
    left, right, dropped = _PRODUCTS[name]
    x, y = trace.operand(a), trace.operand(b)
    if left:
        x = trace.builder.expand_dims(trace.array(a), left)
    if right:
        y = trace.builder.expand_dims(trace.array(b), right)
    product = trace.builder.matmul(x, y)
    return make_tracer(trace, trace.builder.squeeze(product, dropped) if dropped else product)


def _product(name: str) -> Callable[..., Tracer]:
    def handler(a: Any, b: Any) -> Tracer:
        trace = require_trace()
        return make_tracer(trace, getattr(trace.builder, name)(trace.operand(a), trace.operand(b)))

    return handler


for _function in (np.dot, np.inner, np.outer):  # type: ignore[assignment]
    implements(_function)(_product(_function.__name__))


@implements(np.vdot)
def _vdot(a: Any, b: Any) -> Any:
    return np.dot(np.ravel(a), np.ravel(b))


@implements(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Tracer:
    trace = require_trace()
    x, y = trace.array(a), trace.array(b)
    if isinstance(axes, numbers.Integral):
        count = int(axes)
        if count > min(x.ndim, y.ndim):
            raise IndexError("tuple index out of range")
        axes_x, axes_y = list(range(x.ndim - count, x.ndim)), list(range(count))
    else:
        axes_x, axes_y = as_ints(axes[0]), as_ints(axes[1])
    return Tracer(trace, trace.builder.tensordot(x, y, axes_x, axes_y), scalar=False)


def _einsum_view(subscripts: str, a: Any) -> Tracer | None:
    """einsum of one operand if nothing is summed: a view."""
    labels, arrow, out = subscripts.partition("->")
    if not arrow:
        out = "".join(c for c in sorted(set(labels)) if labels.count(c) == 1)
    is_view = set(labels) == set(out) and len(set(out)) == len(out) and labels.isalpha()
    if not is_view or len(labels) != a.ndim:
        return None
    for label in out:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if a.shape[first] != a.shape[second]:
                raise ValueError(
                    f"dimensions in single operand for collapsing index '{label}' don't match"
                    f" ({a.shape[first]} != {a.shape[second]})"
                )
            diagonal: Any = np.diagonal(a, 0, first, second)
            diagonal._writeable = a._writeable  # unlike np.diagonal's own
            a = diagonal
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return np.transpose(a, [labels.index(label) for label in out])  # type: ignore[return-value]


def _with_letters(subscripts: str, operands: tuple[Any, ...]) -> str:
    """The subscripts with letters instead of ellipses; as they are if that is an error."""
    import string

    left, arrow, out = subscripts.partition("->")
    terms = left.split(",")
    wide = [np.ndim(x) - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=False)]
    most = max((n for t, n in zip(terms, wide, strict=False) if "..." in t), default=0)
    unused = [c for c in string.ascii_letters if c not in subscripts]
    fits = len(terms) == len(operands) and min(wide) >= 0 and most <= len(unused)
    if not fits or (arrow and most and "..." not in out):
        return subscripts
    letters = "".join(unused[:most])
    terms = [t.replace("...", letters[most - n :]) for t, n in zip(terms, wide, strict=True)]
    if not arrow:
        once = (c for c in left if c.isalpha() and left.count(c) == 1)
        out = "..." + "".join(sorted(once))
    return ",".join(terms) + "->" + out.replace("...", letters)


@implements(np.einsum)
def _einsum(subscripts: Any, *operands: Any, optimize: Any = False, **kwargs: Any) -> Any:
    refuse_unless(isinstance(subscripts, str), "einsum with lists of subscripts")
    refuse_unless(not kwargs, "einsum with dtype=, order= or casting=")
    subscripts = subscripts.replace(" ", "")
    if "..." in subscripts:
        subscripts = _with_letters(subscripts, operands)
    if len(operands) == 1:
        view = _einsum_view(subscripts, operands[0])
        if view is not None:
            return view
    if not contains_traced(operands):
        return run_known(np.einsum, (subscripts, *operands), {"optimize": optimize})
    trace = require_trace()
    return make_tracer(trace, trace.builder.einsum(subscripts, [trace.array(x) for x in operands]))


@implements(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    value = x if x.dtype.kind == "f" else x.astype(np.float64)
    vector = x.ndim == 1 if axis is None else isinstance(axis, numbers.Integral)
    if ord is None or (ord == 2 and vector) or (ord == "fro" and not vector):
        return np.sqrt(np.sum(value * value, axis=axis, keepdims=keepdims))
    if vector and ord == 1:
        return np.sum(np.abs(value), axis=axis, keepdims=keepdims)
    if vector and ord in (np.inf, -np.inf):
        extremum = np.max if ord > 0 else np.min
        return extremum(np.abs(value), axis=axis, keepdims=keepdims)
    return refuse(f"linalg.norm with ord={ord!r}")
