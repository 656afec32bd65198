"""x[mask] with a traced mask, whose number of elements depends on data."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.containers import replaced
from rune_jit.errors import DataDependentShapeError
from rune_jit.rules import writes
from rune_jit.rules.host import shape_depends_on_data
from rune_jit.rules.indexing.items import aligned_mask, basic_view, is_mask
from rune_jit.rules.indexing.masks import compressed, spread
from rune_jit.rules.known import of_data
from rune_jit.tracing.context import current_trace, require_trace, user_site
from rune_jit.tracing.frames import is_class_asked, namespace_for
from rune_jit.tracing.sizes import same_shape
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

UNIQUE_HINT = "write np.sort(x), or np.unique outside of the jitted function"
NONZERO_HINT = "write np.where(condition, x, y)"


class Selection(np.lib.mixins.NDArrayOperatorsMixin):
    """x[mask] for a traced mask. Elementwise operations, reductions and assignments to y[mask] work
    without its size. Other operations need the size, and raise an error (in segments they use an
    array)."""

    __array_priority__ = 1001

    def __init__(self, full: Any, where: Any, axes: int) -> None:
        self.full = full  # the value of all elements
        self.where = where  # the value of the mask, with as many axes as x
        self.axes = axes  # the number of the mask's axes, which are the first ones
        self.has_views = False  # whether it may be a view of a selection, or have one
        self._site = user_site()
        # The function whose result it is, if that is not x[mask], and what to write instead.
        self.function: tuple[str, str] | None = None
        # If these are the positions of a mask's True elements along an axis: the mask and the axis.
        self.positions_of: tuple[Tracer, int] | None = None
        self._array: Any = None  # in segments: set at the first use as an array

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of a traced array."""
        return np.ndarray if is_class_asked(sys._getframe(1)) else Selection

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The namespace of NumPy's arrays."""
        return namespace_for(sys._getframe(1), api_version)

    def refusal(self, what: str) -> DataDependentShapeError:
        if self.function is not None:
            error = shape_depends_on_data(*self.function)
        else:
            error = DataDependentShapeError(
                f"{what}: cannot trace an index of bool (the result's shape depends on data)\n"
                "hint: write np.where(mask, x, 0), or a reduction with where=mask"
            )
        error.user_site = self._site  # type: ignore[attr-defined]
        return error

    @property
    def size(self) -> Any:
        """The number of elements, which only the program knows."""
        trace = require_trace()
        if trace.is_segmented:
            return self.settled().size
        return length(self) * math.prod(self.full.shape[self.axes :])

    @property
    def ndim(self) -> int:
        return self.full.ndim - self.axes + 1  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[Any, ...]:
        trace = require_trace()
        if trace.is_segmented:
            return self.settled().shape  # type: ignore[no-any-return]
        return (length(self), *self.full.shape[self.axes :])

    def __getitem__(self, index: Any) -> Any:
        trace = require_trace()
        if trace.is_segmented:
            return self.settled()[index]
        if type(index) is int:
            return self._element(trace, index)
        rest = index[1:] if type(index) is tuple and index[:1] == (slice(None),) else (None,)
        if not all(type(item) in (int, slice) for item in rest):
            raise self.refusal("getitem")
        self.has_views = True
        part = self.full[(*[slice(None)] * self.axes, *rest)]
        result = Selection(part, self._where_of(part), self.axes)
        result.has_views = True
        return result

    def _where_of(self, full: Tracer) -> Any:
        """The mask for other values of the same elements."""
        shape = [*self.where.shape[: self.axes], *[1] * (full.ndim - self.axes)]
        return require_trace().builder.reshape(self.where, shape)

    def _element(self, trace: Trace, index: int) -> Any:
        """The element at a position. Python runs the calls in which there is none."""
        size = math.prod(self.where.shape)
        if size == 0 or self.full.ndim > self.axes:  # (a row would be a view)
            raise self.refusal("getitem")
        found: Any = Tracer(trace, trace.builder.reshape(self.where, [size]))
        if index != 0:
            counts = np.cumsum(found)
            found = found & (counts == (index + 1 if index > 0 else counts[-1] + (index + 1)))
        trace.raise_if(trace.operand(~np.any(found)))
        at = trace.operand(np.argmax(found))
        trace.builder.assume_range(at, 0, size - 1)
        elements = trace.builder.reshape(trace.operand(self.full), [size])
        return Tracer(trace, trace.builder.take(elements, at, 0))

    def settled(self) -> Any:
        """x[mask] as an array, in segments. All later uses get the same array."""
        if self._array is None:
            trace: Any = require_trace()
            full, where = trace.values([trace.operand(self.full), self.where])
            mask = np.asarray(where).reshape(self.where.shape[: self.axes])
            array = np.asarray(full)[mask]
            if self.positions_of is not None and self.axes > 1:  # a column of one array in NumPy
                columns = np.empty((len(array), self.axes), array.dtype)
                columns[:, self.positions_of[1]] = array
                array = columns[:, self.positions_of[1]]
            self._array = of_data(trace, array)
        return self._array

    @property
    def is_settled(self) -> bool:
        return self._array is not None

    def spread_over(self, trace: Trace, x: Tracer, where: Any, shape: tuple[int, ...]) -> Any:
        """An array like x with these elements, in order, where the mask `where` is True, as a
        value. A call raises ValueError if the mask has another number of True elements."""
        if self.is_settled:
            raise self.refusal("setitem")
        if same_shape(self.full.shape, x.shape) and trace.builder.same(self.where, where):
            return trace.builder.astype(trace.operand(self.full), x.dtype)
        axes = len(shape)
        given = [n for n in self.where.shape[: self.axes]]
        if not same_shape(self.full.shape[self.axes :], x.shape[axes:]):
            raise self.refusal("setitem")
        builder = trace.builder
        mask = builder.reshape(self.where, given)
        rows = compressed(trace, trace.operand(self.full), mask, math.prod(given))
        target = builder.reshape(where, list(shape))
        count = builder.reduce("sum", mask, None, False, np.dtype(np.int64))
        return spread(trace, x, target, rows, count)

    def under(self, trace: Trace, x: Tracer, where: Any, what: str) -> Tracer:
        """The array of all elements, if this is a selection by the same mask from an array like x.
        Raises an error otherwise."""
        same = same_shape(self.full.shape, x.shape) and trace.builder.same(self.where, where)
        if self.is_settled or not same:
            raise self.refusal(what)
        return self.full  # type: ignore[no-any-return]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # If NumPy computes the rest of the call, it may have to report errors. It must not see the
        # elements that are not selected.
        is_numpys = require_trace().gave_up is not None
        if not is_numpys and not any(isinstance(x, Selection) and x.is_settled for x in inputs):
            try:
                return self._traced_ufunc(ufunc, method, *inputs, **kwargs)
            except DataDependentShapeError:
                if not require_trace().is_segmented:
                    raise
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        if "out" in kwargs:
            kwargs["out"] = tuple(map(_settled, kwargs["out"]))
        result = function(*map(_settled, inputs), **kwargs)
        return self if result is self._array and result is not None else result

    def _traced_ufunc(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", (None,))
        is_of_selections = any(isinstance(x, Selection) for x in inputs)
        if method != "__call__" or kwargs or len(out) != 1 or not is_of_selections:
            raise self.refusal(f"{ufunc.__name__}.{method}")
        result = selected(ufunc, inputs)
        if out[0] is None:
            is_mask = result.full.dtype == bool and result.full.ndim > result.axes
            is_index = is_mask and require_trace().is_segmented
            return result.settled() if is_index else result  # it may be empty (is_empty_mask)
        if out[0] is not self or self.has_views:
            raise self.refusal(ufunc.__name__)
        full = [x.full if isinstance(x, Selection) else x for x in inputs]
        writes.check_cast(require_trace(), ufunc, tuple(full), [result.full], [self.full])
        self.full, self.positions_of = result.full.astype(self.full.dtype), None
        return self

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func.__name__ not in _REDUCTIONS or args[0] is not self or self.is_settled:
            if require_trace().is_segmented:
                return func(*replaced(args, _settled), **replaced(kwargs, _settled))
            raise self.refusal(func.__name__)
        return getattr(self, func.__name__)(*args[1:], **kwargs)

    def _reduced(self, name: str, axis: Any = None, dtype: Any = None, **kwargs: Any) -> Any:
        """A reduction. If it is along the axis of the selected elements, all other elements are
        replaced by its neutral element. If it is along other axes only, the result is a selection,
        too."""
        axes = self._axes_of(axis)
        options = {key: v for key, v in kwargs.items() if v is not np._NoValue}
        is_segmented = require_trace().is_segmented
        may_raise = name in ("max", "min") and is_segmented  # the check comes before later writes
        if self.is_settled or may_raise or axes is None or not options.keys() <= {"ddof"}:
            if is_segmented:
                given = {"axis": axis, "dtype": np._NoValue if dtype is None else dtype, **kwargs}
                given = {key: v for key, v in given.items() if v is not np._NoValue}
                return getattr(np, name)(self.settled(), **given)
            raise self.refusal(name)
        if dtype is not None:
            options["dtype"] = dtype
        trace, x = require_trace(), self.full
        if self.axes > 0 and 0 not in axes:
            full = getattr(np, name)(x, axis=axes, **options)
            return Selection(full, self._where_of(full), self.axes)
        if name in ("max", "min"):
            ufunc = "maximum" if name == "max" else "minimum"
            message = f"zero-size array to reduction operation {ufunc} which has no identity"
            is_some = np.any(Tracer(trace, self.where))
            trace.must_be_equal(trace.operand(is_some), True, message)
            options["initial"] = _extreme(x.dtype, name == "min")
        where = Tracer(trace, trace.builder.broadcast_to(self.where, list(x.shape)))
        return getattr(np, name)(x, axis=axes, where=where, **options)

    def _axes_of(self, axis: Any) -> tuple[int, ...] | None:
        """The axes of `full` for the axes of a reduction. (The selection has one axis in place of
        the mask's axes.) None if they are not known."""
        given = axis if isinstance(axis, tuple) else (axis,)
        ndim = self.full.ndim - self.axes + 1
        if axis is None:
            return tuple(range(self.full.ndim))
        if not all(type(n) is int and -ndim <= n < ndim for n in given):
            return None
        wanted = {n % ndim for n in given}
        if len(wanted) < len(given):
            return None
        others = sorted(n + self.axes - 1 for n in wanted - {0})
        return (*(range(self.axes) if 0 in wanted else ()), *others)

    def __repr__(self) -> str:
        """The text of the array. After the trace has ended, a description."""
        trace = current_trace()
        if trace is None:
            return f"Selection({self.full!r})"
        if not trace.is_segmented:
            raise self.refusal("repr")
        return repr(self.settled())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if require_trace().is_segmented:
            return getattr(self.settled(), name)
        raise self.refusal(name)


_REDUCTIONS = ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var")
for _name in _REDUCTIONS:
    setattr(Selection, _name, functools.partialmethod(Selection._reduced, _name))


def _settled(x: Any) -> Any:
    return x.settled() if isinstance(x, Selection) else x


def with_settled(index: Any) -> Any:
    """An index expression with arrays in place of selections, in segments. (NumPy would take an
    empty mask that is not its own array for positions.)"""
    if type(index) is Selection:
        return index.settled()
    if type(index) is tuple and Selection in map(type, index):
        return tuple(map(_settled, index))
    return index


def _of_array(name: str) -> Callable[..., Any]:
    """A method that needs the size of the selection."""

    def method(self: Selection, *args: Any, **kwargs: Any) -> Any:
        if not require_trace().is_segmented:
            raise self.refusal("getitem")
        return getattr(self.settled(), name)(*args, **kwargs)

    return method


_OF_ARRAY = (
    *("array", "len", "iter", "bool", "contains", "setitem"),
    *("float", "int", "index", "complex", "str", "format", "copy", "deepcopy", "reduce_ex"),
)
for _name in _OF_ARRAY:
    setattr(Selection, f"__{_name}__", _of_array(f"__{_name}__"))


def length(x: Any) -> Any:
    """len(x), which for x[mask] only the program knows."""
    trace = current_trace()
    if type(x) is not Selection or trace is None or trace.is_segmented:
        return len(x)
    builder = trace.builder
    count = builder.reduce("sum", x.where, None, False, np.dtype(np.int64))
    return Tracer(trace, builder.python_number(count, True), scalar=True)


def unique(x: Any) -> Selection:
    """np.unique(x): the sorted elements that differ from the element before."""
    ordered = np.sort(np.ravel(x))
    differs = ordered[1:] != ordered[:-1]
    if ordered.dtype.kind == "f":  # all NaN are equal here
        differs = differs & ~np.isnan(ordered[:-1])
    selection: Any = ordered[np.concatenate([np.ones_like(ordered[:1], bool), differs])]
    selection.function = "unique", UNIQUE_HINT
    return selection  # type: ignore[no-any-return]


def _extreme(dtype: np.dtype[Any], largest: bool) -> Any:
    """The largest or smallest value of a dtype."""
    if dtype.kind == "b":
        return np.bool_(largest)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return dtype.type(limits.max if largest else limits.min)
    return dtype.type(np.inf if largest else -np.inf)


def selected(ufunc: np.ufunc, operands: tuple[Any, ...]) -> Selection:
    """An elementwise function of selections by one mask, and of numbers. Raises the selection's
    refusal for other functions and operands."""
    trace = require_trace()
    first = next(x for x in operands if isinstance(x, Selection))
    if ufunc.signature is not None:  # such as matmul, which is not elementwise
        raise first.refusal(ufunc.__name__)
    full = []
    for x in operands:
        if isinstance(x, Selection):
            full.append(x.under(trace, first.full, first.where, ufunc.__name__))
        elif np.shape(x) == ():
            full.append(x)
        else:
            raise first.refusal(ufunc.__name__)
    with np.errstate(all="ignore"):  # errors of elements that are not selected do not count
        result = ufunc(*full)
    return Selection(result, first.where, first.axes)


def select(trace: Trace, x: Tracer, mask: Any) -> Selection:
    """x[mask]."""
    where = aligned_mask(trace, x, mask)
    return Selection(x.copy(), where, np.ndim(mask))


def nonzero(x: Tracer) -> tuple[Selection, ...]:
    """np.nonzero(x)."""
    trace, mask = require_trace(), _mask_of(x)
    found = []
    for axis in range(mask.ndim):
        selection = select(trace, _positions(trace, mask.shape, axis), mask)
        selection.positions_of = mask, axis
        selection.function = "nonzero", NONZERO_HINT
        found.append(selection)
    return tuple(found)


def argwhere(x: Tracer) -> Selection:
    """np.argwhere(x)."""
    trace, mask = require_trace(), _mask_of(x)
    along = [_positions(trace, mask.shape, axis) for axis in range(mask.ndim)]
    selection = select(trace, np.stack(along, -1), mask)  # type: ignore[arg-type]
    selection.function = "argwhere", NONZERO_HINT
    return selection


def _mask_of(x: Tracer) -> Any:
    return x.copy() if x.dtype == bool else np.not_equal(x, 0)


def _positions(trace: Trace, shape: tuple[Any, ...], axis: int) -> Tracer:
    """The position of each element of an array of this shape along an axis."""
    along = trace.builder.iota([shape[axis]], np.dtype(np.int64))
    along = trace.builder.reshape(along, [-1 if i == axis else 1 for i in range(len(shape))])
    return Tracer(trace, trace.builder.broadcast_to(along, list(shape)))


def with_masks(x: Tracer, index: Any) -> Any:
    """An index expression with a mask in place of the positions of its True elements."""
    items = index if type(index) is tuple else (index,)
    found = [i for i, item in enumerate(items) if type(item) is Selection and item.positions_of]
    if not found:
        return index
    first = found[0]
    mask, _ = items[first].positions_of
    parts = [items[i].positions_of for i in found]
    axis = sum(item is not None for item in items[:first])
    fits = (
        found == list(range(first, first + mask.ndim))
        and all(of is mask and along == k for k, (of, along) in enumerate(parts))
        and all(item is None or type(item) in (int, slice) for item in items[:first])
        and same_shape(mask.shape, x.shape[axis : axis + mask.ndim])
    )
    if not fits:
        raise items[first].refusal("getitem")
    return (*items[:first], mask, *items[first + mask.ndim :])


def masked_view(trace: Trace, x: Tracer, items: tuple[Any, ...]) -> tuple[Tracer, Any, bool] | None:
    """For an index of one mask, slices and integers: the view of x by the slices and integers, with
    the mask's axes moved to the front; the mask; and whether its axes were in front already. None
    for other indices."""
    masks = [i for i, item in enumerate(items) if is_mask(item)]
    if len(masks) != 1:
        return None
    at = masks[0]
    mask = items[at]
    basic = (*items[:at], *[slice(None)] * np.ndim(mask), *items[at + 1 :])
    view = basic_view(trace, x, basic)
    if view is None or np.ndim(mask) == 0:
        return None
    if Ellipsis in [item for item in items[:at] if not isinstance(item, (Tracer, np.ndarray))]:
        return None
    before = sum(isinstance(item, slice) or item is None for item in items[:at])
    if before:
        axes = range(before, before + np.ndim(mask))
        view = np.moveaxis(view, axes, range(np.ndim(mask)))  # type: ignore[type-var]
    return view, mask, before == 0
