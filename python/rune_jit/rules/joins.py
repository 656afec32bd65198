"""NumPy's functions that join and split arrays, on traced ones."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from rune_jit.rules.coercions import as_axis, as_index, as_ints, make_tracer, refuse_unless
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.tracer import Tracer


@implements(np.concatenate, np.concat)
def _concatenate(
    arrays: Any, /, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind"
) -> Tracer:
    refuse_unless(casting == "same_kind", "concatenate with casting=")
    trace = require_trace()
    parts = [trace.array(x) for x in arrays]
    return make_tracer(trace, trace.builder.concatenate(parts, as_axis(axis), dtype))


@implements(np.stack)
def _stack(arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    trace = require_trace()
    result = make_tracer(
        trace, trace.builder.stack([trace.array(x) for x in arrays], as_index(axis))
    )
    return result if dtype is None else result.astype(dtype)


@implements(np.hstack)
def _hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    parts = [np.atleast_1d(x) for x in tup]
    return np.concatenate(parts, 0 if np.ndim(parts[0]) == 1 else 1, dtype=dtype)


@implements(np.vstack, *([np.row_stack] if "row_stack" in np.__dict__ else []))
def _vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return np.concatenate([np.atleast_2d(x) for x in tup], 0, dtype=dtype)


@implements(np.dstack)
def _dstack(tup: Any) -> Any:
    return np.concatenate([np.atleast_3d(x) for x in tup], 2)


@implements(np.column_stack)
def _column_stack(tup: Any) -> Any:
    columns = [np.reshape(x, (-1, 1)) if np.ndim(x) < 2 else x for x in tup]
    return np.concatenate(columns, 1)


@implements(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return np.concatenate((arr, values), axis=axis)


def _split_at(ary: Any, borders: list[int], axis: int) -> list[Any]:
    ends = [*borders, None]
    before = (slice(None),) * (axis + np.ndim(ary) if axis < 0 else axis)
    if not -np.ndim(ary) <= axis < np.ndim(ary):
        require_trace().builder.split(require_trace().operand(ary), borders, axis)  # raises
    return [ary[(*before, slice(low, high))] for low, high in zip([0, *borders], ends, strict=True)]


@implements(np.array_split)
def _array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tracer]:
    axis = as_index(axis)
    if not isinstance(indices_or_sections, numbers.Integral):
        return _split_at(ary, as_ints(indices_or_sections), axis)
    sections, size = int(indices_or_sections), ary.shape[axis]
    if sections <= 0:
        raise ValueError("number sections must be larger than 0.")
    small, larger = divmod(size, sections)
    sizes = [small + 1] * larger + [small] * (sections - larger)
    return _split_at(ary, [sum(sizes[: i + 1]) for i in range(sections - 1)], axis)


@implements(np.split)
def _split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tracer]:
    if isinstance(indices_or_sections, numbers.Integral):
        size = ary.shape[as_index(axis)]
        if int(indices_or_sections) <= 0 or size % int(indices_or_sections):
            raise ValueError("array split does not result in an equal division")
    return _array_split(ary, indices_or_sections, axis)  # type: ignore[no-any-return]


@implements(np.hsplit)
def _hsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    return _split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)  # type: ignore[no-any-return]


@implements(np.vsplit)
def _vsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    return _split(ary, indices_or_sections, 0)  # type: ignore[no-any-return]


@implements(np.dsplit)
def _dsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    return _split(ary, indices_or_sections, 2)  # type: ignore[no-any-return]


@implements(np.unstack)
def _unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    return tuple(np.moveaxis(x, axis, 0))
