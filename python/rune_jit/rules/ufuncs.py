"""Calls and methods of NumPy's ufuncs on traced arrays. Ufuncs that no kernel computes run on the
host (host.py)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.errors import UnsupportedOpError, forgive
from rune_jit.rules import host, products, reductions, special
from rune_jit.rules.coercions import (
    NO_VALUE,
    as_index,
    as_laid_out,
    check_mask,
    is_float,
    laid_out_as,
    rank,
    refuse,
    refuse_unless,
)
from rune_jit.rules.composed_ufuncs import COMPOSED
from rune_jit.rules.memory import known_order
from rune_jit.rules.statistics import without_nan
from rune_jit.rules.warned import warn
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.sizes import same_size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer


def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.method(*inputs, **kwargs) without out=. Elements at which `where` is false are 0."""
    if method in ("__call__", "outer") and not kwargs.keys().isdisjoint(("order", "subok")):
        given = {k: v for k, v in kwargs.items() if k in ("order", "subok")}
        np.positive(0.0, **given)  # raises NumPy's errors
        rest = {k: v for k, v in kwargs.items() if k not in given}
        return _in_order(call(ufunc, method, inputs, rest), given.get("order"), inputs)
    if method == "__call__" and kwargs.get("where", True) is not True:
        check_mask(kwargs["where"])
        for warning in _of_masks():
            warn(str(warning.message), warning.category)
    try:
        if method == "__call__" and ufunc.signature is None:
            return _elementwise(ufunc, *inputs, **kwargs)  # its layout is noted already
        native: Callable[..., Any] = _METHODS.get(method, _no_method)
        result = native(ufunc, *inputs, **kwargs)
    except UnsupportedOpError as error:
        forgive(error)
        result = run_on_host(ufunc, method, inputs, kwargs)
    # NumPy stores matrices of products in C order, and batches like the operands.
    operands = inputs
    if ufunc.signature is not None:
        operands = tuple([x for x in inputs if rank(x) >= 3])
    return as_laid_out(ufunc, result, operands, (getattr(ufunc, method), inputs, kwargs))


def _in_order(result: Any, order: Any, inputs: tuple[Any, ...]) -> Any:
    """The results of a ufunc in this memory order."""
    if isinstance(result, tuple):
        return tuple([_in_order(x, order, inputs) for x in result])
    if order in ("K", "k", None) or rank(result) < 2:
        return result
    if order in ("A", "a"):
        orders = {known_order(x, "A") for x in inputs if rank(x) > 1}
        order = "F" if orders == {"F"} else "C"
    return result.copy(order)


@functools.cache
def _of_masks() -> list[warnings.WarningMessage]:
    """The warnings of this version of NumPy about calls with where= and without out=."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        np.add(1, 1, where=np.ones((), bool))
    return seen


def is_traced(ufunc: np.ufunc) -> bool:
    """Whether kernels compute this elementwise ufunc. If not, NumPy computes it on the host."""
    return ufunc in COMPOSED or _core.has_ufunc(ufunc.__name__)


def run_on_host(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    where = kwargs.get("where", True) if method == "__call__" else True
    if where is not True:
        kwargs = {name: value for name, value in kwargs.items() if name != "where"}
    if method == "__call__":
        name, function = ufunc.__name__, ufunc
    else:
        name, function = f"{ufunc.__name__}.{method}", getattr(ufunc, method)
    may_raise = ufunc is np.power  # with negative integers as exponents
    result = host.call_on_host(
        function,
        inputs,
        kwargs,
        name=f"numpy.{name}",
        may_raise=may_raise,
        ints_are_data=method == "__call__" and ufunc.signature is None,
    )
    return _masked(result, where)


def is_generalized(ufunc: np.ufunc) -> bool:
    """Whether this is another library's ufunc that is not elementwise."""
    return ufunc.signature is not None and getattr(np, ufunc.__name__, None) is not ufunc


def check_core(
    ufunc: np.ufunc, inputs: tuple[Any, ...], shape: tuple[Any, ...], out: tuple[Any, ...]
) -> None:
    """Raises ValueError if the core dimensions of a generalized ufunc's result differ from those of
    `out`. (Only loop dimensions are broadcast.)"""
    assert ufunc.signature is not None
    if ufunc is np.matmul:  # two core dimensions, either of which may be missing
        count = sum(np.ndim(x) > 1 for x in inputs)
    else:
        names = ufunc.signature.partition("->")[2].strip("()").split(",")
        count = len([name for name in names if name])
    pairs = zip(out[len(out) - count :], shape[len(shape) - count :], strict=False)
    for i, (given, size) in enumerate(pairs):
        if not same_size(given, size):
            raise ValueError(
                f"{ufunc.__name__}: Output operand 0 has a mismatch in its core dimension {i}, with"
                f" gufunc signature {ufunc.signature} (size {given} is different from {size})"
            )


def run_with_out(
    ufunc: np.ufunc, inputs: tuple[Any, ...], out: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The results of a generalized ufunc that writes to copies of `out`. (It may read their
    elements, and keep some.)"""
    are_given = [x is not None for x in out]

    def run(*operands: Any, **options: Any) -> Any:
        copies = iter([np.copy(x) for x in operands[ufunc.nin :]])
        filled = tuple(next(copies) if is_given else None for is_given in are_given)
        return ufunc(*operands[: ufunc.nin], out=filled, **options)

    operands = (*inputs, *(x for x in out if x is not None))
    return host.call_on_host(run, operands, kwargs, name=f"numpy.{ufunc.__name__}")


def _no_method(ufunc: np.ufunc, *inputs: Any, **kwargs: Any) -> None:
    refuse("this method")


def _masked(result: Any, where: Any) -> Any:
    if where is True:
        return result
    if isinstance(result, tuple):
        return tuple(_masked(x, where) for x in result)
    return np.where(where, result, result.dtype.type(0))


# Calls.


def _elementwise(
    ufunc: np.ufunc,
    *inputs: Any,
    where: Any = True,
    dtype: Any = None,
    casting: str = "same_kind",
    **kwargs: Any,
) -> Any:
    if kwargs:
        refuse(f"{ufunc.__name__} with {'/'.join(kwargs)}=")
    trace = require_trace()
    operands = [trace.operand(x) for x in inputs]
    if ufunc not in COMPOSED and getattr(np, ufunc.__name__, None) is not ufunc:
        rule = special.rule_of(ufunc)
        if rule is None:
            refuse(ufunc.__name__)
        COMPOSED[ufunc] = rule
    if ufunc in COMPOSED or dtype is not None or casting != "same_kind":
        results = _in_loop(trace, ufunc, operands, dtype, casting)
    else:
        results = trace.builder.ufunc(ufunc.__name__, operands)
    tracers = [laid_out_as(Tracer(trace, value), inputs) for value in results]
    if where is not True:
        tracers = [_masked(x, where) for x in tracers]
    return tracers[0] if len(tracers) == 1 else tuple(tracers)


def _product(ufunc: np.ufunc, *inputs: Any, **options: Any) -> Any:
    if options:
        refuse(f"{ufunc.__name__} with {'/'.join(options)}=")
    if getattr(np, ufunc.__name__, None) is not ufunc:
        refuse(ufunc.__name__)
    return products.generalized(ufunc.__name__, *inputs)


def _in_loop(
    trace: Trace, ufunc: np.ufunc, operands: list[Any], dtype: Any, casting: str
) -> list[Any]:
    """The results, computed in the dtypes of the loop that NumPy chooses."""
    kinds = [_kind(value) for value in operands]
    options: dict[str, Any] = {"casting": casting}
    if dtype is not None:
        options["signature"] = (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
    loop = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), **options)
    cast = [
        trace.builder.astype(value, wanted)
        for value, wanted in zip(operands, loop[: ufunc.nin], strict=True)
    ]
    if ufunc in COMPOSED:
        composed = COMPOSED[ufunc](*(Tracer(trace, trace.builder.value(x)) for x in cast))
        composed = composed if isinstance(composed, tuple) else (composed,)
        results = [trace.operand(x) for x in composed]
    else:
        results = trace.builder.ufunc(ufunc.__name__, cast)
    for value, wanted in zip(results, loop[ufunc.nin :], strict=True):
        refuse_unless(value.dtype == wanted, f"{ufunc.__name__} with dtype={dtype}")
    return results


def _kind(value: Any) -> Any:
    """Converts an operand for ufunc.resolve_dtypes."""
    is_number = type(value) in (bool, int, float, complex)
    name = type(value).__name__ if is_number else value.weak
    if name is None or name == "bool":
        return np.dtype(bool) if name else value.dtype
    return {"int": int, "float": float, "complex": complex}[name]


# Methods.

_REDUCTIONS = {getattr(np, ufunc): name for name, ufunc in reductions.UFUNCS.items()}


def _reduce(
    ufunc: np.ufunc,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> Tracer:
    if ufunc in _IGNORING_NAN:
        refuse_unless(not np.iscomplexobj(a), f"{ufunc.__name__}.reduce of complex numbers")
        return _reduce_ignoring_nan(ufunc, a, axis, dtype, keepdims, initial, where)  # type: ignore[no-any-return]
    name = _REDUCTIONS.get(ufunc)
    if name is None:
        refuse(f"{ufunc.__name__}.reduce")
    return reductions.reduce_array(name, a, axis, dtype, keepdims, initial, where)


# By ufunc: the ufunc that does not ignore NaN, and the neutral element of its reductions.
_IGNORING_NAN: dict[Any, tuple[np.ufunc, float]] = {
    np.fmax: (np.maximum, -np.inf),
    np.fmin: (np.minimum, np.inf),
}


def _reduce_ignoring_nan(
    ufunc: np.ufunc, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any
) -> Any:
    if initial is NO_VALUE and where is not True:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where"
            " mask one has to specify 'initial'"
        )
    trace = require_trace()
    x = Tracer(trace, trace.array(a))
    if dtype is not None:
        x = x.astype(dtype)
    of_numbers: Any
    of_numbers, neutral = _IGNORING_NAN[ufunc]
    if not is_float(x.dtype):
        return of_numbers.reduce(x, axis=axis, keepdims=keepdims, initial=initial, where=where)
    kept, missing = without_nan(x, neutral, where)
    no_initial = initial is NO_VALUE or initial is None
    start = {} if no_initial else {"initial": neutral}  # for an empty array, too
    best = of_numbers.reduce(kept, axis=axis, keepdims=keepdims, **start)
    none = np.all(missing, axis=axis, keepdims=keepdims)
    best = np.where(none, x.dtype.type(np.nan), best)[()]
    return best if no_initial else ufunc(best, x.dtype.type(initial))


_SCANS: dict[Any, str] = {
    np.add: "add",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.fmax: "max",
    np.fmin: "min",
}


def _accumulate(ufunc: np.ufunc, a: Any, axis: Any = 0, dtype: Any = None) -> Tracer:
    if ufunc in _IGNORING_NAN and is_float(np.result_type(a)):
        of_numbers, neutral = _IGNORING_NAN[ufunc]
        kept, missing = without_nan(Tracer(require_trace(), require_trace().array(a)), neutral)
        some = np.maximum.accumulate(np.logical_not(missing), axis=axis)
        best: Any = of_numbers.accumulate(kept, axis, dtype)
        return np.where(some, best, best.dtype.type(np.nan))  # type: ignore[no-any-return]
    refuse_unless(ufunc in _SCANS, f"{ufunc.__name__}.accumulate")
    trace = require_trace()
    value = trace.array(a)
    wanted = ufunc.accumulate(np.ones(1, value.dtype), dtype=dtype).dtype
    if type(axis) is bool:
        raise TypeError("an integer is required")
    axis = np.lib.array_utils.normalize_axis_index(as_index(axis), value.ndim)
    value = trace.builder.astype(value, wanted)
    if 0 in value.shape:
        return Tracer(trace, value)
    kind = _SCANS[ufunc]
    if wanted.kind == "b":  # for bools, addition is `or` and multiplication is `and`
        kind = {"add": "max", "prod": "min"}.get(kind, kind)
    return Tracer(trace, trace.builder.scan(kind, value, axis), scalar=False)


def _outer(ufunc: np.ufunc, a: Any, b: Any, **kwargs: Any) -> Any:
    trace = require_trace()
    x, y = trace.array(a), trace.array(b)
    left = trace.builder.reshape(x, [*x.shape, *([1] * y.ndim)])
    if y.ndim == 0:  # (NumPy makes an array of a Python number, so its dtype counts)
        b = Tracer(trace, trace.builder.reshape(y, []))
    return ufunc(Tracer(trace, left), b, **kwargs)


_METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _product,
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
}

# The ufuncs that the builder has as operations, and matmul, by name.
NATIVE = {np.matmul: "matmul"} | {
    ufunc: name
    for name, ufunc in vars(np).items()
    if type(ufunc) is np.ufunc and ufunc.__name__ == name and _core.has_ufunc(name)
    if ufunc.nout == 1 and ufunc.signature is None and ufunc not in COMPOSED
}
