"""Installs NumPy's protocols and Python's operators on traced arrays. Each calls a rule in another
module of this package. The core finds the shapes and dtypes of results (cpp/graph/numpy)."""

from __future__ import annotations

import builtins
import functools
import inspect
import operator as op
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.errors import DataDependentShapeError, UnsupportedOpError, forgive
from rune_jit.methods import (
    BINARY,
    COMPARISONS,
    METHODS,
    UNARY,
    ArrayMethods,
    install_operators,
)
from rune_jit.rules import (  # noqa: F401  (some only register their rules)
    by_rows,
    compositions,
    counting,
    dtypes,
    elementwise,
    grid_positions,
    host,
    memory,
    on_host,
    products,
    python_rounding,
    reductions,
    shapes,
    small_matrices,
    small_sorts,
    statistics,
    ufuncs,
    writes,
)
from rune_jit.rules.coercions import as_laid_out, check_mask, laid_out_as, make_view
from rune_jit.rules.indexing.read import getitem, setitem
from rune_jit.rules.indexing.selection import Selection
from rune_jit.rules.indexing.write import Flat, ufunc_at
from rune_jit.rules.known import known, run_known
from rune_jit.rules.memory import layout_of
from rune_jit.rules.number_attributes import refuse_attributes_of_arrays
from rune_jit.rules.operators import is_operand, operator
from rune_jit.rules.table import FUNCTIONS, ON_HOST, VIEWS, named
from rune_jit.rules.warned import warn_of_lost_part
from rune_jit.tracing.context import current_trace, require_trace
from rune_jit.tracing.segments import SegmentedTrace
from rune_jit.tracing.storage import Step
from rune_jit.tracing.tracer import Tracer, contains_traced, is_array, tracers_in
from rune_jit.trees import package_of


def _array_ufunc(self: Tracer, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__`: calls and methods of ufuncs."""
    if not contains_traced(inputs) and not contains_traced(kwargs):
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return run_known(function, inputs, kwargs)
    if method == "at":
        return ufunc_at(ufunc, *inputs, **kwargs)
    out = kwargs.pop("out", None)
    kinds = {*map(type, out)} if out is not None else {type(None)}
    if kinds == {type(None)}:
        return ufuncs.call(ufunc, method, inputs, kwargs)
    if any(map(_decides_itself, kinds.union(map(type, inputs)))):
        return NotImplemented
    if type(Ellipsis) in kinds:
        raise TypeError("must use `...` as `out=...` and not per-operand/in a tuple")
    if method != "__call__":
        if kwargs.get("dtype") is None and ufunc in (np.add, np.multiply) and method != "outer":
            kwargs["dtype"] = out[0].dtype
        result = ufuncs.call(ufunc, method, inputs, kwargs)
        return writes.into(f"{ufunc.__name__}.{method}", out[0], result)
    try:
        return _ufunc_into(ufunc, inputs, out, kwargs)
    except ValueError:
        writes.refuse_shapes(ufunc, inputs, out)
        raise


def _ufunc_into(ufunc: np.ufunc, inputs: Any, out: Any, kwargs: dict[str, Any]) -> Any:
    """A call of a ufunc with `out=`."""
    trace = require_trace()
    writes.refuse_numbers(trace, out)
    where = kwargs.pop("where", True)
    check_mask(where)
    given = {k: v for k, v in kwargs.items() if k in ("dtype", "casting")} if kwargs else {}
    if ufuncs.is_generalized(ufunc):
        results = ufuncs.run_with_out(ufunc, inputs, out, kwargs)
    else:
        results = ufuncs.call(ufunc, "__call__", inputs, kwargs)
    results = results if ufunc.nout > 1 else (results,)
    values = [trace.operand(result) for result in results]
    if ufunc.signature is None:
        writes.check_cast(trace, ufunc, inputs, values, out, **given)
    for target, value in zip(out, values, strict=True):
        if target is not None:
            if ufunc.signature is not None:
                ufuncs.check_core(ufunc, inputs, value.shape, target.shape)
                result = np.broadcast_to(Tracer(trace, value), target.shape)
                writes.into(ufunc.__name__, target, result)
            else:
                writes.ufunc_write(trace, target, value, where)
    if len(out) == 1:
        return out[0]
    return tuple(r if o is None else o for o, r in zip(out, results, strict=True))


def _array_function(
    self: Tracer, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    """`__array_function__`: NumPy's functions that are not ufuncs."""
    handler = FUNCTIONS.get(func)
    is_long = args and type(args[0]) in (list, tuple) and len(args[0]) > host.MOST_PARTS
    if is_long and contains_traced(args[0]):
        trace = current_trace()
        if isinstance(trace, SegmentedTrace) and not trace.gave_up:
            return host.run_now(trace, func, args, kwargs)
    is_known = not contains_traced(args) and not contains_traced(kwargs)
    if is_known and (func not in VIEWS or current_trace() is None):
        return run_known(func, args, kwargs)
    if handler is None and func not in ON_HOST:
        raise UnsupportedOpError(
            f"{_name_of(func)}: cannot trace this function\n"
            "hint: call it outside of the jitted function"
        )
    kwargs = {**kwargs}  # if this raises, NumPy gets all keywords
    out = kwargs.pop("out", None)
    given, position = args, _position_of_out(func)
    if position < len(args):  # rules have no such parameter
        out = args[position]
        args = (*given[:position], None, *given[position + 1 :])
        given = (*given[:position], *given[position + 1 :])
    if type(out) is tuple and func not in _WITH_OUT_IN_TUPLE:
        raise TypeError("return arrays must be of ArrayType")
    if out is not None and func in (np.concatenate, np.stack) and kwargs.get("dtype") is not None:
        raise TypeError(
            "concatenate() only takes `out` or `dtype` as an argument, but both were provided."
        )
    if out is not None and func in _IN_DTYPE_OF_OUT:
        if len(given) > 2:  # the third parameter of all of them
            given = (*given[:2], out.dtype if given[2] is None else given[2], *given[3:])
        elif kwargs.get("dtype") is None:
            kwargs["dtype"] = out.dtype
    where = kwargs.pop("where", True) if out is not None and func is np.clip else True
    check_mask(where)
    try:
        result = handler(*given, **kwargs) if handler else on_host.call(func, args, kwargs)
    except UnsupportedOpError as error:
        depends_on_data = isinstance(error, DataDependentShapeError)
        if handler is None or func not in ON_HOST or depends_on_data:
            raise
        forgive(error)
        result = on_host.call(func, args, kwargs)
    except TypeError as error:
        if "unexpected keyword argument" in str(error) or "positional argument" in str(error):
            if func not in ON_HOST:
                name = _name_of(func)
                raise UnsupportedOpError(f"{name}: cannot trace this call ({error})") from error
            result = on_host.call(func, args, kwargs)
        else:
            raise
    if out is None:
        call = func, args, kwargs
        return as_laid_out(func, result, (*args, *kwargs.values()), call)
    if where is not True:
        result = np.where(where, result, out)
    if func in _BROADCAST_TO_OUT:
        result = np.broadcast_to(result, out.shape)
    if func in (np.argmax, np.argmin, np.nanargmax, np.nanargmin):
        writes.check_casting(out.dtype, np.dtype(np.intp), "safe")
    casting = _CASTING_OF_OUT.get(func, kwargs.get("casting", "same_kind"))
    if func in (np.concatenate, np.stack) and result.shape == getattr(out, "shape", None):
        operands = tracers_in(args[0])
        if any(type(out) is Tracer and x._storage is out._storage for x in operands):
            axis = args[1] if len(args) > 1 else kwargs.get("axis", 0)
            return writes.joined_into(func, out, args[0], axis, casting)
    return writes.into(func.__name__, out, result, casting)


def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}"


_CASTING_OF_OUT = {
    np.dot: "no",
    **dict.fromkeys((np.mean, np.std, np.argmax, np.argmin), "unsafe"),
}

_BROADCAST_TO_OUT = tuple(by_rows.QUANTILES)

# Functions that take `out` in a tuple, too, as ufuncs do.
_WITH_OUT_IN_TUPLE = named(
    np, "clip percentile quantile nanpercentile nanquantile nanmax nanmin fix cumulative_sum"
)

# Functions that NumPy computes in the dtype of `out`.
_IN_DTYPE_OF_OUT = named(
    np,
    "sum prod cumsum cumprod nansum nanprod nancumsum nancumprod nanmean cumulative_sum"
    " cumulative_prod",
)


@functools.cache
def _position_of_out(func: Callable[..., Any]) -> int:
    """The position of `out` among a function's parameters, if it may be given by position."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except ValueError:  # a function in C without a signature
        return sys.maxsize
    for position, parameter in enumerate(parameters):
        if parameter.name == "out" and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            return position
        if parameter.kind is parameter.VAR_POSITIONAL:
            break
    return sys.maxsize


# Attributes of numpy.ndarray that ArrayMethods lacks.


def _operation(name: str) -> Callable[[tuple[Any, ...]], Any]:
    """A function that computes a Python operator on its operands."""
    if name == "matmul":
        return lambda operands: np.matmul(*operands)
    if name == "divmod":
        return lambda operands: (operands[0] // operands[1], operands[0] % operands[1])
    return functools.partial(operator, _UFUNCS[name])


def _apply_in_place(name: str, x: Tracer, other: Any) -> Any:
    """x op= other."""
    if name == "matmul":
        if x.ndim < 1 or np.ndim(other) < 2:
            raise ValueError(
                "inplace matrix multiplication requires the first operand to have at least one and"
                " the second at least two dimensions."
            )
        return np.matmul(x, other, out=x)  # type: ignore[call-overload]
    if type(other) is Selection and not x._storage.scalar:
        if not x._trace.is_segmented:
            raise other.refusal(f"i{name}")
        other = other.settled()
    if x._storage.scalar:
        return operator(_UFUNCS[name], (x, other))
    trace = require_trace()
    ufunc = getattr(np, _UFUNCS[name])
    if x._storage.array is not None and trace.loops is not None:
        trace.loops.before_known_write(trace, x._storage)
    if x._storage.array is not None and not contains_traced(other):
        return ufunc(x, other, out=(x,))
    try:
        value = trace.operand(operator(_UFUNCS[name], (x, other)))
        writes.check_cast(trace, ufunc, (x, other), [value], [x])
        writes.ufunc_write(trace, x, value)
    except ValueError:
        writes.refuse_shapes(ufunc, (x, other), (x,))
        raise
    return x


_UFUNCS = BINARY | COMPARISONS | UNARY


def _astype(
    self: Tracer,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Tracer:
    if is_array(dtype):
        raise TypeError("Cannot construct a dtype from an array")
    writes.check_casting(self.dtype, np.dtype(dtype), casting)
    if not copy and np.dtype(dtype) == self.dtype:
        is_any = order in ("K", "k", None)
        return self if is_any else memory.in_order(self, memory.known_order(self, order))
    if (array := self._array()) is not None:
        return known(array.astype(dtype, order))  # type: ignore[no-any-return,call-overload]
    trace = require_trace()
    warn_of_lost_part(self.dtype, np.dtype(dtype))
    value = trace.builder.astype(trace.operand(self), dtype)
    result = Tracer(trace, value, scalar=self._storage.scalar)
    if order not in ("K", "k", None) and self.ndim > 1:
        return result.copy(memory.known_order(self, order))  # type: ignore[no-any-return]
    return laid_out_as(result, [self])


def _copy(self: Tracer, order: str = "C") -> Tracer:
    if (array := self._array()) is not None:
        return known(array.copy(order))  # type: ignore[no-any-return,arg-type]
    trace = require_trace()
    if order in ("K", "k"):
        result = Tracer(trace, self._value_in(trace), scalar=self._storage.scalar)
        return laid_out_as(result, [self])
    if memory.known_order(self, order or "C") == "F" and self.ndim > 1:
        return self.T.copy().T  # type: ignore[no-any-return]
    return Tracer(trace, self._value_in(trace), scalar=self._storage.scalar)


def _view(self: Tracer, dtype: Any = None, type: Any = None) -> Tracer:
    if isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray):
        dtype, type = None, dtype
    if type not in (None, np.ndarray):
        raise UnsupportedOpError(f"ndarray.view: cannot trace a view as a {type.__name__}")
    if dtype is None or np.dtype(dtype) == self.dtype:
        return self[...]  # type: ignore[no-any-return]
    for kind in ("parts", "pairs"):
        is_known = self.dtype.kind == ("c" if kind == "parts" else "f")
        if is_known and Step(kind, None).dtype(self.dtype) == np.dtype(dtype):
            layout_of(self).view(dtype)  # raises NumPy's errors
            return make_view(kind, None, self)
    raise UnsupportedOpError(
        f"ndarray.view: cannot trace a view of {self.dtype} as {dtype}\nhint: x.astype(dtype)"
        " converts the values"
    )


def _set_flat(self: Tracer, value: Any) -> None:
    Flat(self)[:] = value


def _contains(self: Tracer, x: Any) -> bool:
    if self._storage.scalar:
        return x in self._element("in")  # (raises Python's TypeError)
    return ArrayMethods.__contains__(self, x)


def _conjugate(self: Tracer, *given: Any) -> Any:
    if given:  # an array for the result
        return np.conjugate(self, *given)
    if self.dtype.kind != "c":
        return self  # like NumPy's arrays
    return operator("conjugate", (self,))


def _with_object(self: Tracer, name: str, other: Any, reflected: bool) -> Any:
    """An operator with an arbitrary object. NumPy applies it to each element, unless the object's
    class asks to decide itself."""
    if _asks_to_decide(other):
        return NotImplemented
    trace = self._trace
    if trace.is_segmented and not trace.done:  # NumPy's result, or its error
        function = divmod if name == "divmod" else getattr(op, f"__{name}__")
        operands = (other, self) if reflected else (self, other)
        return host.run_now(require_trace(), function, operands, {})  # type: ignore[arg-type]
    if self._storage.scalar or other is None or isinstance(other, (str, bytes)):
        return NotImplemented  # Python's error
    raise UnsupportedOpError(f"{name}: cannot trace it with a {type(other).__name__}")


def _decides_itself(kind: type) -> bool:
    """Whether a class decides itself what ufuncs do that write to its objects."""
    if kind is Tracer or package_of(kind) in ("numpy", "rune_jit"):
        return False
    found = getattr(kind, "__array_ufunc__", None)
    return found is not None and found is not np.ndarray.__array_ufunc__


def _asks_to_decide(x: Any) -> bool:
    kind = type(x)
    if hasattr(kind, "__array_ufunc__"):
        return kind.__array_ufunc__ is None
    return getattr(x, "__array_priority__", 0) > 0


# In segments, NumPy runs functions without a rule.


def _ufunc_of(self: Tracer, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    return (ufunc if method == "__call__" else getattr(ufunc, method)), inputs, kwargs


def _function_of(self: Tracer, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return func, args, kwargs


def _by_name(name: str) -> Callable[..., Any]:
    """A method of arrays and of NumPy's scalars."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(type(x), name)(x, *args, **kwargs)

    return call


def _operation_or_numpy(name: str) -> Callable[[tuple[Any, ...]], Any]:
    function = divmod if name == "divmod" else getattr(op, f"__{name}__")
    return host.or_numpy(_operation(name), lambda operands: (function, operands, {}))


def _in_place_of(name: str, x: Tracer, other: Any) -> Any:
    return getattr(op, f"__{name}__" if x._storage.scalar else f"__i{name}__"), (x, other), {}


_set_item_or_numpy = host.or_numpy(setitem, host.given(op.setitem))


def _set_item(self: Tracer, index: Any, value: Any) -> None:
    if self._storage.scalar:  # NumPy's function would return an array
        writes.refuse_number(self)
    _set_item_or_numpy(self, index, value)


_REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "mean")

# Functions with shortcuts, by name.
_SHORT = {getattr(np, name): name for name in (*_REDUCTIONS, "where", "transpose", "reshape")}

for _name, _method in {
    "__array_ufunc__": _core.shorten_ufuncs(host.or_numpy(_array_ufunc, _ufunc_of), ufuncs.NATIVE),
    "__array_function__": _core.shorten_functions(
        host.or_numpy(_array_function, _function_of), _SHORT
    ),
    "__getitem__": _core.shorten_getitem(host.or_numpy(getitem, host.given(op.getitem))),
    "__setitem__": _core.shorten_setitem(_set_item),
    "astype": _core.shorten_astype(host.or_numpy(_astype, host.given(_by_name("astype")))),
    "copy": host.or_numpy(_copy, host.given(_by_name("copy"))),
    "view": host.or_numpy(_view, host.given(_by_name("view"))),
    "flat": property(Flat, _set_flat),
    "__contains__": _contains,
    "conj": _conjugate,
    "conjugate": _conjugate,
    "_with_object": _with_object,
}.items():
    setattr(Tracer, _name, _method)
install_operators(
    Tracer, is_operand, _operation_or_numpy, host.or_numpy(_apply_in_place, _in_place_of)
)
for _name, _ufunc in (_UFUNCS | {"matmul": "matmul"}).items():
    for _prefix in ("", "r") if _name in BINARY or _name == "matmul" else ("",):
        _rule = getattr(Tracer, f"__{_prefix}{_name}__")
        _method = _core.shorten_operator(_rule, _ufunc, _prefix == "r")
        setattr(Tracer, f"__{_prefix}{_name}__", _method)
# Methods that do not write to the array.
_READING = ("choose", "clip", "compress", "conj", "conjugate", "dot", "flatten", "item", "reshape")
for _name in (*METHODS, *_READING, "transpose"):
    _method = getattr(Tracer, _name)
    setattr(Tracer, _name, host.or_numpy(_method, host.given(_by_name(_name))))
for _name in [f"__i{name}__" for name in BINARY]:
    setattr(Tracer, _name, _core.shorten_in_place(getattr(Tracer, _name), BINARY[_name[3:-2]]))

for _name in _REDUCTIONS:
    setattr(Tracer, _name, _core.shorten_reduction(getattr(Tracer, _name), _name))

refuse_attributes_of_arrays()
