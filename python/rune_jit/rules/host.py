"""Calls on the host. The compiled program makes them when it runs. A trace in segments makes them
at once. on_host.py has the functions."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import optree

from rune_jit import _core
from rune_jit.chunked.parts import numbers_of
from rune_jit.containers import leaves_in, refuse_endless, replaced
from rune_jit.errors import (
    DataDependentShapeError,
    InternalError,
    ResultsChangedError,
    RuneJitError,
    UnsupportedOpError,
)
from rune_jit.rules.callbacks import may_have_effects
from rune_jit.rules.known import WRITERS, of_data, plain
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.segments import SegmentedTrace
from rune_jit.tracing.sizes import Size, has_sizes
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, contains_traced
from rune_jit.trees import PLAIN

# While tracing, NumPy is called to find the shapes and dtypes of results. The functions below
# (probes) make the arrays for these calls. NumPy's function must accept them, and shapes and dtypes
# must not depend on their values.


def zeros(value: Any) -> np.ndarray:
    """Zeros: positions that every array has. Masks are all True."""
    return np.full(value.shape, value.dtype == bool, value.dtype)


def ones(value: Any) -> np.ndarray:
    return np.ones(value.shape, value.dtype)


def various(value: Any) -> np.ndarray:
    """Like `zeros`, with other values, to find out whether shapes depend on values."""
    numbers = np.arange(1, math.prod(value.shape) + 1)
    if value.dtype == bool:
        numbers = numbers % 2
    return numbers.astype(value.dtype).reshape(value.shape)


def minus_ones(value: Any) -> np.ndarray:
    return np.full(value.shape, -1 if value.dtype.kind in "if" else 1, value.dtype)


def eye(value: Any) -> np.ndarray:
    """Identity matrices, which can be inverted and decomposed."""
    if value.ndim < 2:
        return ones(value)
    return np.broadcast_to(np.eye(*value.shape[-2:], dtype=value.dtype), value.shape)


# The probes are tried in this order. The first that the function accepts decides.
_PROBES = (zeros, ones, eye, various)


# So many calls that have been asked are kept, for loops that are unrolled.
_MOST_ASKED = 8
# A function is slow if it takes so many seconds.
_LONG = 0.1

# The most bytes of arrays in chunks that one host call gets as a whole.
_MOST_AT_ONCE = 1 << 28


class _Type(NamedTuple):
    """The dtype and shape of a probe."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)


class _Operand(NamedTuple):
    """A traced argument: its position among the leaves, and the kind of object that NumPy gets."""

    position: int
    weak: bool  # a Python number
    scalar: bool  # NumPy's

    def of(self, array: np.ndarray) -> Any:
        if self.weak:
            return array.item()
        return array[()] if self.scalar else array


def call_on_host(
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
    probe: Callable[[Any], np.ndarray] = zeros,
    name: str | None = None,
    may_raise: bool = True,
    others: Sequence[Callable[[Any], np.ndarray]] | None = None,
    ints_are_data: bool = False,
    rows: int = 0,
    side_by_side: bool = False,
) -> Any:
    """Makes function(*args, **kwargs) a host call of the program, if arrays among the arguments are
    traced.

    A call while tracing finds the shapes and dtypes of the results. It gets an array made by
    `probe` in place of each traced array. Shapes and dtypes must not depend on values, which calls
    with `others` check.

    When the program runs, exceptions of the function end the run and reach the caller. If it may
    raise, it is called even if nobody uses its results.

    `rows`: the first axes of the only traced array are the first axes of each result, too, and the
    function treats their points one by one. The probe then has one row. `ints_are_data`: traced
    ints of the arguments are not axes or sizes. `side_by_side`: the function releases the GIL while
    it computes and has no effects, so that several calls may run at the same time.

    Raises what all calls with probes raise, if it is the same; otherwise UnsupportedOpError if no
    call gives a result, or a result has a dtype that cannot be traced or depends on values;
    DataDependentShapeError if shapes depend on values; ValuesNeeded for ints among the arguments of
    the traced function, unless `ints_are_data`."""
    trace = require_trace()
    if isinstance(trace, SegmentedTrace):
        return run_now(trace, function, args, kwargs)
    if any(map(may_have_effects, (function, *leaves_in((args, kwargs))))):
        raise UnsupportedOpError(
            f"{name or function.__name__}: cannot trace a call of a function that may have effects,"
            " or may not end with made-up values"
        )
    if others is None:
        others = (various,) if probe is zeros else ()
    name = name or f"{function.__module__}.{function.__name__}"
    run, values = _host_function(trace, function, args, kwargs, name, rows, ints_are_data)
    if trace.in_chunks:
        _refuse_large(name, values, rows)
    question = probe, (*others,), [(tuple(x.shape), x.dtype) for x in values]
    like = (a for q, call, a in trace.asked if q == question and call.is_like(run))
    answers: list[Any] = next(like, [])
    if not answers:
        answers, errors = _answers(lambda probe: run.ask(probe, values), probe, others)
        if not any(has_sizes(x.shape) for x in values):  # (a Size belongs to one trace)
            trace.asked.append((question, run, answers))
            del trace.asked[:-_MOST_ASKED]
    if not answers:
        trace.need_numbers(values)
        raise _without_answer(name, errors)
    results, treedef = optree.tree_flatten(answers[0])
    for result in results:
        _refuse_other_arrays(name, result)
    types = _types(results)
    for answer in answers[1:]:
        other_types = _types(optree.tree_leaves(answer))
        if [shape for _, shape in other_types] != [shape for _, shape in types]:
            trace.need_numbers(values)
            raise shape_depends_on_data(name)
        if other_types != types:
            raise UnsupportedOpError(
                f"{name}: cannot trace this call (the dtype of the result depends on data)"
            )
    for dtype, _ in types:
        if not _core.is_supported_dtype(dtype):
            raise UnsupportedOpError(f"{name}: cannot trace a result of {dtype}")
    if any(type(result) in (int, float) for result in results):
        raise UnsupportedOpError(f"{name}: cannot trace a result that is a Python number")
    if rows:
        types = [(dtype, (*values[0].shape[:rows], *shape[rows:])) for dtype, shape in types]
    run.types = types
    made = trace.call_host(name, run, values, types, may_raise, rows or None, side_by_side)
    tracers = [
        Tracer(
            trace,
            trace.builder.python_bool(value) if type(result) is bool else value,
            scalar=not isinstance(result, np.ndarray),
        )
        for value, result in zip(made, results, strict=True)
    ]
    return optree.tree_unflatten(treedef, tracers)


class _HostFunction:
    """A function with its arguments, but for the arrays that a program gives it. (It refers to no
    trace, because programs keep it, and may send it to other processes.)"""

    def __init__(
        self, function: Callable[..., Any], name: str, leaves: list[Any], treedef: Any, rows: int
    ) -> None:
        """`leaves` are the arguments. Those that the program gives are set by `take`."""
        self._function, self._name, self._rows = function, name, rows
        self._leaves, self._treedef = leaves, treedef
        self._operands: list[_Operand] = []
        self._dtypes: list[Any] = []  # of the operands
        self.types: list[Any] = []  # dtypes and shapes of the results

    def take(self, operand: _Operand, dtype: Any) -> None:
        """Makes an argument one that the program gives."""
        self._leaves[operand.position] = None
        self._operands.append(operand)
        self._dtypes.append(dtype)

    def __call__(self, *given: np.ndarray) -> list[Any]:
        arrays = list(map(numbers_of, given, self._dtypes))
        found = optree.tree_leaves(self._on(arrays))
        wanted, rows = self.types, self._rows
        if rows:  # it may be called for some of the points
            some = arrays[0].shape[:rows]
            wanted = [(dtype, (*some, *shape[rows:])) for dtype, shape in wanted]
        if _types(found) != wanted:
            raise ResultsChangedError(f"{self._name}: gave {_types(found)}, not {wanted}")
        return found

    def is_like(self, other: _HostFunction) -> bool:
        """Whether another call is of the same function, with equal arguments, but for those that
        the program gives."""
        mine, its = ((x._name, x._treedef, x._operands, x._dtypes) for x in (self, other))
        are_one = self._function is other._function and mine == its
        return are_one and all(map(_is_equal, self._leaves, other._leaves))

    def ask(self, probe: Callable[[Any], np.ndarray], values: list[Any]) -> Any:
        """What the function returns for probes in place of the values."""
        shapes = [(1,) * self._rows + tuple(value.shape[self._rows :]) for value in values]
        types = [_Type(shape, value.dtype) for shape, value in zip(shapes, values, strict=True)]
        arrays = list(map(probe, types))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._on(arrays)

    def _on(self, arrays: list[Any]) -> Any:
        filled = list(self._leaves)
        for operand, array in zip(self._operands, arrays, strict=True):
            filled[operand.position] = operand.of(array)
        args, kwargs = optree.tree_unflatten(self._treedef, filled)
        return self._function(*args, **kwargs)


def _is_equal(x: Any, y: Any) -> bool:
    """Whether two arguments are equal for sure."""
    if type(x) is np.ndarray is type(y):
        return x.dtype == y.dtype and np.array_equal(x, y)
    return x is y or (type(x) is type(y) and type(x) in PLAIN and x == y)


def _host_function(
    trace: Trace,
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
    name: str,
    rows: int,
    ints_are_data: bool,
) -> tuple[_HostFunction, list[Any]]:
    """The function with its arguments, and the values of those that are traced."""
    refuse_endless((args, kwargs))
    leaves: list[Any]
    leaves, treedef = optree.tree_flatten((args, kwargs))  # type: ignore[arg-type]
    made = _HostFunction(function, name, leaves, treedef, rows)
    values: list[Any] = []
    for position, leaf in enumerate(leaves):
        value = _traced_value(trace, leaf)
        if value is None:
            _refuse_other_arrays(name, leaf)
            known = plain(leaf)  # its present elements; the function may write to it later
            leaves[position] = known.copy("K") if isinstance(known, np.ndarray) else known
        elif any(type(n) is int and n == 0 for n in value.shape):  # it has no elements
            leaves[position] = np.empty(value.shape, value.dtype)
        else:
            traced = isinstance(leaf, Tracer)
            is_weak = isinstance(leaf, Size) or (traced and bool(trace.operand(leaf).weak))
            if value.dtype.kind in "iu" and not ints_are_data:
                trace.need_numbers([value])
            is_scalar = traced and leaf._storage.scalar
            made.take(_Operand(position, is_weak, is_scalar), value.dtype)
            values.append(value)
    return made, values


def _without_answer(name: str, errors: list[Exception]) -> Exception:
    """The error of a function that has raised these errors for the probes."""
    first = errors[0]
    is_of_shape = not isinstance(first, np.linalg.LinAlgError) or "must be" in str(first)
    is_the_same = len({(type(e), str(e)) for e in errors}) == 1
    if isinstance(first, RuneJitError) or (is_the_same and is_of_shape):
        return first
    error = UnsupportedOpError(
        f"{name}: cannot trace this call (it was called with made-up values to find the shape"
        f" of the result, and raised {type(first).__name__}: {first})"
    )
    error.__cause__ = first
    return error


def _refuse_large(name: str, values: Sequence[Any], rows: int) -> None:
    """Raises UnsupportedOpError if a call needs more of arrays in chunks than a task may hold."""
    size = sum(math.prod(x.shape[rows:]) * x.dtype.itemsize for x in values)
    if size > _MOST_AT_ONCE:
        shapes = ", ".join(f"{x.dtype}{list(x.shape[rows:])}" for x in values)
        raise UnsupportedOpError(
            f"{name}: cannot call it on {shapes} ({size / 2**20:.0f} MiB, a task takes at most"
            f" {_MOST_AT_ONCE / 2**20:.0f} MiB at once)\nhint: reduce it first, or use dask's"
            " function for this part"
        )


def _refuse_other_arrays(name: str, x: Any) -> None:
    """Raises UnsupportedOpError for subclasses and similar classes: masked arrays,
    pandas.Series."""
    is_plain = type(x) is np.ndarray or issubclass(type(x), (Tracer, np.generic, _core.ArrayBase))
    if hasattr(type(x), "__array__") and not is_plain:
        raise UnsupportedOpError(f"{name}: cannot trace a {type(x).__name__}")


# In segments, NumPy computes with lists of more traced arrays than this. Otherwise a growing list
# would need a program for each of its lengths.
MOST_PARTS = 8


def run_now(
    trace: SegmentedTrace,
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
    depends_on_data: bool = False,
) -> Any:
    """Calls NumPy's function on the present values of traced arrays, in segments.
    `depends_on_data`: whether the shapes of the results depend on data."""
    both: Any = (tuple(args), kwargs)
    leaves = {id(x): x for x in leaves_in(both)}
    out = kwargs.get("out")
    written = [*(out if isinstance(out, tuple) else (out,))]
    if getattr(function, "__name__", "") in WRITERS:
        written += args[:1]
    if any(map(may_have_effects, (function, *leaves.values()))):  # it may write to arguments
        written += leaves.values()
    for x in written:
        if isinstance(x, Tracer) and not x._storage.scalar:
            trace.expose(x)
    tracers = [x for x in leaves.values() if isinstance(x, Tracer) and x._storage.array is None]
    weak = [x._value_in(trace).weak for x in tracers]
    found = trace.values([x._value_in(trace) for x in tracers])
    plain: dict[int, Any] = {}
    for x, weakness, array in zip(tracers, weak, found, strict=True):
        plain[id(x)] = np.asarray(array)
        if x._storage.scalar:
            plain[id(x)] = plain[id(x)][()] if weakness is None else plain[id(x)].item()
    inputs = {key: plain[key] if key in plain else _numpys(x) for key, x in leaves.items()}
    result = trace.run_now(function, *replaced(both, lambda x: inputs[id(x)]))
    by_id = {id(given): leaves[key] for key, given in inputs.items()}
    arrays = [(leaves[key], x) for key, x in inputs.items() if isinstance(x, np.ndarray)]
    shared = [x for x, given in arrays if _is_viewed_by(result, given)]
    views = [x for x in shared if isinstance(x, Tracer) and not x._storage.is_exposed]
    if views:  # views of the trace's own memory
        for x in views:
            trace.expose(x)
        return run_now(trace, function, args, kwargs, depends_on_data)

    def inside(array: Any) -> Any:
        if isinstance(array, np.ndarray):
            if id(array) in by_id:
                return by_id[id(array)]
            if any(_is_viewed_by(array, x) for _, x in arrays):
                return array
        elif not isinstance(array, np.generic):
            return array
        return of_data(trace, array) if depends_on_data else trace.result(array)

    return replaced(result, inside)


def _numpys(x: Any) -> Any:
    """An argument of a function of NumPy's in segments: the array or number for a traced one whose
    elements are known, and a slice by numbers for one by traced numbers."""
    if type(x) is slice:
        bounds = x.start, x.stop, x.step
        return slice(*(b._element("index") if isinstance(b, Tracer) else b for b in bounds))
    if not isinstance(x, Tracer):
        return x
    return x._array()[()] if x._storage.scalar else x._array()  # type: ignore[index]


def _is_viewed_by(result: Any, array: np.ndarray) -> bool:
    """Whether `result` is, or holds, another array in the memory of `array`."""
    return any(
        isinstance(x, np.ndarray) and x is not array and np.may_share_memory(x, array)
        for x in leaves_in(result)
    )


def or_numpy(
    rule: Callable[..., Any], numpy: Callable[..., tuple[Any, Any, Any]]
) -> Callable[..., Any]:
    """A function that calls the rule. If the rule raises an exception in segments, it calls NumPy's
    function instead, which raises NumPy's exception or gives the result. `numpy` returns that
    function, its arguments and its keywords for the rule's arguments."""

    def otherwise(trace: SegmentedTrace, error: Exception, args: Any, kwargs: Any) -> Any:
        if error is trace.error or isinstance(error, InternalError):
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame
        return _run_instead(trace, error, *numpy(*args, **kwargs))

    return _core.or_numpy(rule, otherwise)  # type: ignore[no-any-return]


def _run_instead(
    trace: SegmentedTrace, error: Exception, function: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """NumPy's result of a call whose rule has raised the error."""
    depends_on_data = isinstance(error, DataDependentShapeError)
    args, kwargs = (_settled(x) for x in (args, kwargs))
    return run_now(trace, function, args, kwargs, depends_on_data)


def given(function: Callable[..., Any]) -> Callable[..., tuple[Any, Any, Any]]:
    """The argument `numpy` of or_numpy, for a function with the rule's arguments."""
    return lambda *args, **kwargs: (function, args, kwargs)


def _settled(x: Any) -> Any:
    """x with arrays in place of selections by masks."""

    def settle(leaf: Any) -> Any:
        return leaf.settled() if hasattr(type(leaf), "settled") else leaf

    return replaced(x, settle)


def _answers(
    ask: Callable[[Any], Any],
    probe: Callable[[Any], np.ndarray],
    others: Sequence[Callable[[Any], np.ndarray]],
) -> tuple[list[Any], list[Exception]]:
    """The function's results for `probe` and `others`, if it accepts them, or for another probe if
    it accepts none of these. Also the exceptions that it raised. A slow function is not asked again
    once it has returned. (Each run of the program checks the types of the results.)"""
    answers: list[Any] = []
    errors: list[Exception] = []
    start = time.perf_counter()
    for candidate in (probe, *others, *(p for p in _PROBES if p not in (probe, *others))):
        if answers and time.perf_counter() - start > _LONG:
            break
        if candidate in (probe, *others) or not answers:
            try:
                answers.append(ask(candidate))
            except ResultsChangedError as error:
                raise UnsupportedOpError(f"cannot trace this call ({error})") from error
            except Exception as error:
                errors.append(error)
    return answers, errors


def _types(results: Sequence[Any]) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
    return [(np.asarray(x).dtype, np.shape(x)) for x in results]


def require_known(x: Any, name: str, hint: str | None = None) -> None:
    """Checks that x, which decides the shape of a result of the function `name`, holds no traced
    values. Raises ValuesNeeded if they are numbers among the arguments, and DataDependentShapeError
    otherwise."""
    if not contains_traced(x):
        return
    trace = require_trace()
    if isinstance(trace, SegmentedTrace):
        for leaf in leaves_in(x):
            if isinstance(leaf, Tracer):
                trace.expose(leaf)
        return
    values = [_traced_value(trace, leaf) for leaf in leaves_in(x)]
    trace.need_numbers(value for value in values if value is not None)
    raise shape_depends_on_data(name, hint)


def _traced_value(trace: Trace, leaf: Any) -> Any:
    """The value of a leaf that the program must read when it runs. None if the leaf is known."""
    if isinstance(leaf, Tracer):
        return trace.array(leaf) if leaf._storage.array is None else None
    if isinstance(leaf, Size) or (isinstance(leaf, np.ndarray) and leaf.ndim):
        return trace.array(leaf)
    return None


def shape_depends_on_data(name: str, hint: str | None = None) -> DataDependentShapeError:
    if hint is None:
        hint = "pass what its shape depends on as static: jit(static_argnums=...)"
    return DataDependentShapeError(
        f"{name}: cannot trace this call (the result's shape depends on data)\nhint: {hint}"
    )
