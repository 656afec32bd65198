"""NumPy's products of vectors, matrices and tensors, on traced arrays."""

from __future__ import annotations

import itertools
import numbers
import string
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from rune_jit.rules.coercions import as_index, as_ints, refuse, refuse_unless, traced
from rune_jit.rules.known import run_known
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.sizes import mismatch, same_shape, same_size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, contains_traced

# By ufunc: the axes of size 1 that make its two operands matrices, and the axes that are removed
# from the result.
_PRODUCTS: dict[str, tuple[list[int], list[int], list[int]]] = {
    "matmul": ([], [], []),
    "vecdot": ([-2], [-1], [-2, -1]),
    "matvec": ([], [-1], [-1]),
    "vecmat": ([-2], [], [-2]),
}


def generalized(name: str, a: Any, b: Any) -> Tracer:
    """A ufunc of matrices and vectors, computed by matmul."""
    refuse_unless(name in _PRODUCTS, name)
    trace = require_trace()
    left, right, dropped = _PRODUCTS[name]
    least = 1 + (name == "matvec"), 1 + (name == "vecmat")
    is_vector = name != "matmul" and (np.ndim(a) < least[0] or np.ndim(b) < least[1])
    refuse_unless(not is_vector, f"{name} of vectors")
    if name in ("vecdot", "vecmat") and np.iscomplexobj(a):
        a = np.conjugate(a)
    x, y = trace.operand(a), trace.operand(b)
    if left:
        x = trace.builder.expand_dims(trace.array(a), left)
    if right:
        y = trace.builder.expand_dims(trace.array(b), right)
    product = trace.builder.matmul(x, y)
    return Tracer(trace, trace.builder.squeeze(product, dropped) if dropped else product)


def _dot_product(a: Any, b: Any, axis_of_b: int) -> Tracer:
    """The products of a and b, summed over a's last axis and b's axis `axis_of_b`."""
    trace = require_trace()
    x, y = trace.array(a), trace.array(b)
    if x.ndim and y.ndim:
        return Tracer(trace, _contracted(trace, x, y, [-1], [axis_of_b]))
    return Tracer(trace, trace.builder.ufunc("multiply", [x, y])[0])


@implements(np.dot)
def _dot(a: Any, b: Any) -> Tracer:
    return _dot_product(a, b, -2 if np.ndim(b) > 1 else -1)


@implements(np.inner)
def _inner(a: Any, b: Any) -> Tracer:
    return _dot_product(a, b, -1)


@implements(np.outer)
def _outer(a: Any, b: Any) -> Any:
    return np.multiply(np.reshape(traced(a), (-1, 1)), np.reshape(traced(b), (1, -1)))


@implements(np.vdot)
def _vdot(a: Any, b: Any) -> Any:
    a, b = np.ravel(a), np.ravel(b)
    if not same_shape(a.shape, b.shape):
        raise ValueError(f"cannot reshape array of size {b.shape[0]} into shape ({a.shape[0]},)")
    return np.dot(np.conjugate(a) if np.iscomplexobj(a) else a, b)


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
    for axes_of, ndim in ((axes_x, x.ndim), (axes_y, y.ndim)):
        is_repeated = len(set(axes_of)) < len(axes_of)
        if is_repeated or len({normalize_axis_index(i, ndim) for i in axes_of}) < len(axes_of):
            raise ValueError("duplicate axes are not allowed in tensordot")
    return Tracer(trace, _contracted(trace, x, y, axes_x, axes_y), scalar=False)


def _text(shape: tuple[Any, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _contracted(trace: Trace, x: Any, y: Any, axes_x: list[int], axes_y: list[int]) -> Any:
    """The products of x and y, summed over pairs of axes, as a value."""
    if len(axes_x) != len(axes_y):
        raise ValueError(f"tensordot: cannot pair {len(axes_x)} axes with {len(axes_y)}")
    refuse_unless(x.ndim + y.ndim <= len(string.ascii_letters), "tensordot of more than 52 axes")
    labels_x = list(string.ascii_letters[: x.ndim])
    labels_y = list(string.ascii_letters[-y.ndim :] if y.ndim else "")
    for i, j in zip(axes_x, axes_y, strict=True):
        i, j = normalize_axis_index(i, x.ndim), normalize_axis_index(j, y.ndim)
        if not same_size(x.shape[i], y.shape[j]):
            sizes = [x.shape[i], y.shape[j]]
            raise mismatch(
                f"tensordot: cannot contract {_text(x.shape)} with {_text(y.shape)} (axes"
                f" {i} and {j}: {sizes[0]} and {sizes[1]})",
                sizes,
            )
        labels_y[j] = labels_x[i]
    left, right = "".join(labels_x), "".join(labels_y)
    out = [c for c in left if c not in right] + [c for c in right if c not in left]
    return trace.builder.contract("tensordot", x, left, y, right, "".join(out))


def _without_repeated(labels: str, a: Any) -> tuple[str, Any]:
    """The operand of einsum with diagonals in place of repeated labels, and its labels."""
    for label in sorted(set(labels)):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            sizes = [a.shape[first], a.shape[second]]
            if not same_size(*sizes):
                raise mismatch(
                    f"dimensions in single operand for collapsing index '{label}' don't match"
                    f" ({sizes[0]} != {sizes[1]})",
                    sizes,
                )
            diagonal: Any = np.diagonal(a, 0, first, second)
            diagonal._writeable = a._writeable  # unlike np.diagonal's own
            a = diagonal
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return labels, a


def _with_letters(subscripts: str, operands: tuple[Any, ...]) -> str:
    """The subscripts with letters in place of ellipses. Unchanged if the ellipses are wrong."""

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


def _parsed(subscripts: str, count: int) -> tuple[list[str], str]:
    """The labels of the operands, and of the result."""
    left, arrow, out = subscripts.partition("->")
    refuse_unless("." not in subscripts, f"einsum with an ellipsis in {subscripts}")
    for c in left:
        if not (c.isalpha() or c == ","):
            raise ValueError(f"einsum: cannot parse {subscripts} (character '{c}')")
    terms = left.split(",")
    if len(terms) != count:
        raise ValueError(
            f"einsum: cannot match {len(terms)} subscripts of {subscripts} with {count} operands"
        )
    if not arrow:
        out = "".join(c for c in sorted(set(left)) if c != "," and left.count(c) == 1)
    for c in out:
        if c not in left:
            raise ValueError(f"einsum: cannot make the output label '{c}' (no operand has it)")
        if out.count(c) > 1:
            raise ValueError(f"einsum: cannot repeat the output label '{c}'")
    return terms, out


@implements(np.einsum)
def _einsum(subscripts: Any, *operands: Any, optimize: Any = False, **kwargs: Any) -> Any:
    refuse_unless(isinstance(subscripts, str), "einsum with lists of subscripts")
    refuse_unless(not kwargs, "einsum with dtype=, order= or casting=")
    is_named = optimize in (True, False, "greedy", "optimal")
    refuse_unless(is_named, "einsum with a path")  # the path may be invalid
    subscripts = "".join(subscripts.split())
    if "..." in subscripts:
        subscripts = _with_letters(subscripts, operands)
    if len(operands) > 1 and not contains_traced(operands):
        return run_known(np.einsum, (subscripts, *operands), {"optimize": optimize})
    terms, out = _parsed(subscripts, len(operands))
    for labels, x in zip(terms, operands, strict=True):
        if len(labels) != np.ndim(x):
            raise ValueError(
                f"einsum: cannot use subscripts {labels} for an array with {np.ndim(x)} dimensions"
            )
    if len(operands) == 1:
        return _einsum_of_one(terms[0], operands[0], out)
    pairs = [
        _without_repeated(*pair) for pair in zip(terms, map(_as_tracer, operands), strict=True)
    ]
    trace = require_trace()
    builder = trace.builder
    values = [trace.array(x) for _, x in pairs]
    dtype = builder.result_type(values)
    # Floats of 16 bits are summed in 32 bits. For bools, the products are counted.
    wide = {"float16": np.float32, "bfloat16": np.float32, "bool": np.int32}.get(dtype.name, dtype)
    if any(v.dtype != wide for v in values):
        values = [builder.astype(builder.astype(v, dtype), np.dtype(wide)) for v in values]
    # From left to right. A label stays as long as the output or a later operand has it.
    labels, result = pairs[0][0], values[0]
    for i in range(1, len(values)):
        later = out + "".join(term for term, _ in pairs[i + 1 :])
        kept = dict.fromkeys(c for c in labels + pairs[i][0] if c in later)
        wanted = "".join(kept) if i + 1 < len(values) else out
        result = builder.contract("einsum", result, labels, values[i], pairs[i][0], wanted)
        labels = wanted
    is_array = not out and optimize and _is_array(subscripts, terms, operands, optimize)
    result = result if wide == dtype else builder.astype(result, dtype)
    return Tracer(trace, result, scalar=False if is_array else None)


def _is_array(subscripts: str, terms: list[str], operands: Any, optimize: Any) -> bool:
    """Whether NumPy's result without axes is an array and not a number. (It may be a product of
    matrices that is reshaped.)"""
    # Small arrays with the same relations between sizes as the operands.
    shapes = [[min(n, 3) if type(n) is int else 3 for n in np.shape(x)] for x in operands]
    pairs = list(zip("".join(terms), itertools.chain(*shapes), strict=True))
    sizes = dict(pairs) | {label: n for label, n in pairs if n != 1}
    shapes = [
        [n if n == 1 else sizes[label] for label, n in zip(term, shape, strict=True)]
        for term, shape in zip(terms, shapes, strict=True)
    ]
    made = np.einsum(subscripts, *map(np.ones, shapes), optimize=optimize)
    return isinstance(made, np.ndarray)


def _einsum_of_one(labels: str, a: Any, out: str) -> Any:
    """einsum of one operand. The result is a view if nothing is summed."""
    labels, a = _without_repeated(labels, _as_tracer(a))
    summed = [i for i, label in enumerate(labels) if label not in out]
    if summed:
        a = np.sum(a, axis=tuple(summed), dtype=a.dtype)
        labels = "".join(label for label in labels if label in out)
        if labels == out:
            return a
    return np.transpose(a, [labels.index(label) for label in out])


def _as_tracer(x: Any) -> Tracer:
    return x if isinstance(x, Tracer) else traced(x)


@implements(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    value = np.abs(x) if x.dtype.kind == "c" else x
    value = value if value.dtype.kind == "f" else value.astype(np.float64)
    axis = as_index(axis) if isinstance(axis, numbers.Integral) else axis
    keepdims = bool(keepdims) if axis is None and ord is None else keepdims
    vector = x.ndim == 1 if axis is None else isinstance(axis, int)
    count = x.ndim if axis is None else 1 if vector else len(axis)
    if count not in (1, 2) and (ord is not None or axis is not None):
        raise ValueError("Improper number of dimensions to norm.")
    if ord is None or (ord == 2 and vector) or (ord == "fro" and not vector):
        return np.sqrt(np.sum(value * value, axis=axis, keepdims=keepdims))
    if vector and ord == 1:
        return np.sum(np.abs(value), axis=axis, keepdims=keepdims)
    if vector and ord in (np.inf, -np.inf):
        extremum = np.max if ord > 0 else np.min
        return extremum(np.abs(value), axis=axis, keepdims=keepdims)
    return refuse(f"linalg.norm with ord={ord!r}")
