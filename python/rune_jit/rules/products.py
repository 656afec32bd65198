"""NumPy's products of vectors, matrices and tensors, on traced arrays."""

from __future__ import annotations

import numbers
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.rules.coercions import as_ints, call_builder, refuse, refuse_unless
from rune_jit.rules.known import run_known
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.tracer import Tracer, contains_traced

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
    return Tracer(trace, trace.builder.squeeze(product, dropped) if dropped else product)


def _product(name: str) -> Callable[..., Tracer]:
    def handler(a: Any, b: Any) -> Tracer:
        return call_builder(name, a, require_trace().operand(b))

    return handler


for _function in (np.dot, np.inner, np.outer):
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
    return Tracer(trace, trace.builder.einsum(subscripts, [trace.array(x) for x in operands]))


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
