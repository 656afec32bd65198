"""What a traced function asks for most is computed by shortcuts of the rules (cpp/bindings). They
give what NumPy gives, also where they leave the work to the rules: results, errors and writes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from segment_checks import check, never_numpy, outcome, segmented

import rune_jit
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

__all__ = ["never_numpy"]

ONE = np.arange(7.0)
TWO = np.arange(12.0).reshape(3, 4)
NARROW = np.arange(5, dtype=np.int8)

READS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "last": (lambda x: x[-1] * 2, ONE),
    "empty": (lambda x: x[5:2] * 2, ONE),
    "reversed": (lambda x: x[::-1] * 2, ONE),
    "steps": (lambda x: x[5:0:-2] * 2, ONE),
    "large bounds": (lambda x: x[-(2**70) : 2**70] * 2, ONE),
    "new axes": (lambda x: x[None, 1, ..., None] * 2, TWO),
    "element with ...": (lambda x: x[1, 2, ...] * 2, TWO),
    "row": (lambda x: x[1] * 2, TWO),
    "column": (lambda x: x[:, -1] * 2, TWO),
    "view of a view": (lambda x: x[1:][0, ::2] * 2, TWO),
    "too many": (lambda x: x[0, 0, 0], TWO),
    "beyond the end": (lambda x: x[7], ONE),
    "before the beginning": (lambda x: x[1, -5], TWO),
    "beyond 64 bits": (lambda x: x[2**70], ONE),
    "two ellipses": (lambda x: x[..., 0, ...], TWO),
    "step 0": (lambda x: x[::0], ONE),
    "transposed": (lambda x: x.T[1:] * 2, TWO),
    "sum of one element": (lambda x: np.sum(x[:, :1] * -0.0, axis=1), TWO),
    "sums": (lambda x: (x.sum(), x.sum(axis=(0, 1)), np.sum(x, -1, keepdims=True)), TWO),
    "no axes": (lambda x: np.sum(x, axis=()), TWO),
    "an axis twice": (lambda x: np.sum(x, axis=(0, 0)), TWO),
    "no such axis": (lambda x: np.max(x, axis=2), TWO),
    "extreme of nothing": (lambda x: np.max(x[3:], axis=0), TWO),
    "sums of int8": (lambda x: (x.sum(), x.mean(), x.prod(), x.any(), (x > 9).all()), NARROW),
    "means": (lambda x: (x.mean(), x.mean(axis=0), np.mean(x, 1, keepdims=True)), TWO),
    "where": (lambda x: np.where(x > 2, x, 0), NARROW),
    "where too large": (lambda x: np.where(x > 2, x, 300), NARROW),
    "where of shapes": (lambda x: np.where(x > 2, x[0], x[:, :1]), TWO),
    "where of other shapes": (lambda x: np.where(x > 2, x[0, :3], x), TWO),
    "other dtypes": (lambda x: (x.astype(np.int32), x.astype("f4"), x.astype(float) * 2), TWO),
    "dtype of another array": (lambda x: x.astype(x.astype(np.int8).dtype) * 2, TWO),
    "no dtype": (lambda x: x.astype(3), TWO),
    "dtype of a number": (lambda x: x[1, 2].astype(np.float32) * 2, TWO),
    "safe cast": (lambda x: x.astype(np.int8, casting="safe"), TWO),
    "other shapes": (lambda x: (x.reshape(-1), x.reshape((2, -1, 3)) * 2, x.reshape(3, 4)), TWO),
    "shape of a view": (lambda x: (x.T.reshape(-1) * 2, x[1:].reshape(-1) * 2), TWO),
    "shape of another size": (lambda x: x.reshape(5, -1), TWO),
    "two unknown sizes": (lambda x: x.reshape(-1, -1), TWO),
    "negative size": (lambda x: x.reshape(-2, 6), TWO),
    "two negative sizes": (lambda x: x.reshape(-2, -1), TWO),
    "no axes left": (lambda x: x[:1, :1].copy().reshape(()) * 2, TWO),
    "Fortran order": (lambda x: x.reshape((4, 3), order="F") * 2, TWO),
    "product": (lambda x: (x @ x.T, x.T @ x[:, 0], x[0] @ x[1]), TWO),
    "products": (lambda x: np.matmul(x[None], x.T), TWO),
    "product of other shapes": (lambda x: x @ x, TWO),
    "product with a number": (lambda x: x @ 2.0, TWO),
}


def write(statement: str, given: Any) -> tuple[Callable[[Any], Any], Any]:
    scope: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    y = x[:]\n    {statement}\n    return x, y", scope)
    return scope["f"], given


WRITES = {
    statement: write(statement, given)
    for statement, given in {
        "x[3] = 1.5": ONE,
        "x[-1] = 2": ONE,
        "x[2] = True": ONE,
        "x[2] = 1j": ONE,
        "x[1:-1] = x[0]": ONE,
        "x[1:] = x[:-1]": ONE,
        "x[1:] += x[:-1]": ONE,
        "x[::2] -= 1": ONE,
        "x[1:3] = x[None, 3:5]": ONE,
        "x[1:3] = x[3:6]": ONE,
        "x[1] = x[2:3]": ONE,
        "x[1] = x[2:4]": ONE,
        "x[9] = 1.0": ONE,
        "x[...] = 3.0": ONE,
        "x[()] = 3.0": ONE,
        "x[1][2] = 7.0": TWO,
        "x[1:][0, ::2] += 1.0": TWO,
        "x.T[1:] += 1.0": TWO,
        "x[1] += x[:, 0]": TWO,
        "x[0, :3] += x[:, 0]": TWO,
        "x += x[0]": TWO,
        "x *= np.float32(3)": TWO,
        "x @= x[:, :3]": TWO,
        "np.add(x, y, out=x)": TWO,
        "np.multiply(x, 2, out=x[:])": TWO,
        "np.sqrt(x, out=x)": TWO,
        "np.add(x[1:], x[:-1], out=x[1:])": ONE,
        "np.add(x, x[:2], out=x)": TWO,
        "np.add(x[0], x, out=x[0])": TWO,
        "np.add(x, 1.5, out=x)": NARROW,
        "np.add(x, 1, out=x, where=x > 2)": TWO,
        "np.matmul(x, x[:, :3].T, out=x)": TWO,
        "np.add(x[0], x[1], out=(x[2],))": TWO,
        "x.reshape(-1)[5] = 7.0": TWO,
        "x.copy().reshape(-1)[5] = 7.0": TWO,
        "x[1] = 300": NARROW,
        "x[1] = 2**70": NARROW,
        "x[1] = 2.7": NARROW,
        "x[1] = np.nan": NARROW,
        "x += 1": NARROW,
        "x += 1.5": NARROW,
        "x /= 2": NARROW,
        "x[1:] += 300": NARROW,
        "x[1] = 1e300": ONE.astype(np.float32),
        "x[1] = np.inf": ONE.astype(np.float32),
        "x[1] = 16777217": ONE.astype(np.float32),
    }.items()
}


# Here the rule computes once more what its shortcut has computed and cannot write.
CAST = {"np.less(x, 2, out=x)": write("np.less(x, 2, out=x)", TWO)}


@pytest.mark.parametrize("name", [*READS, *WRITES, *CAST])
@pytest.mark.parametrize("in_segments", [False, True])
def test_results_and_errors(name: str, in_segments: bool) -> None:
    function, given = (READS | WRITES | CAST)[name]

    def run(x: Any) -> Any:
        if in_segments and float(x.sum()) < 0:
            return None
        return function(x + 0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if in_segments:
            segmented(run, given)
        else:
            x = copy.deepcopy(given)
            check(outcome(rune_jit.jit(run), (x,), {}), outcome(run, (given,), {}))


SHORTENED = [
    *("__getitem__", "__setitem__", "__array_function__", "__array_ufunc__", "__matmul__"),
    *("__iadd__", "__isub__", "__imul__", "__itruediv__", "astype"),
]


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_shortcuts_trace_what_their_rules_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, given = (READS | WRITES)[name]

    def describe(x: Tracer) -> Any:
        storage = x._storage
        order = [(y._shape, y._steps) for y in storage.order_from]
        is_known = storage.order_known, storage.in_order_of_operands
        return storage.scalar, x._shape, x._dtype, x._steps, x._writeable, order, is_known

    def trace() -> Any:
        """What is made: the error, or the graph and the results."""
        trace = Trace("f")
        with trace.active(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = Tracer(trace, trace.builder.input(given.dtype, list(given.shape)))
            x._storage.leaf = 0
            try:
                made = function(x)
            except Exception as error:
                return type(error), str(error)
            made = made if isinstance(made, tuple) else (made,)
            graph = trace.builder.finish([y._value_in(trace) for y in (x, *made)])
            return list(map(describe, (x, *made))), str(graph)

    shortened = trace()
    for method in SHORTENED:
        monkeypatch.setattr(Tracer, method, getattr(Tracer, method).__wrapped__)
    assert shortened == trace()


def test_errors_of_an_earlier_operation() -> None:
    """A slice whose bounds vary is read from memory: what waits for its check runs."""

    def run(x: Any, at: Any) -> Any:
        found = []
        for k in range(3):
            y = x[at[k]] * 2
            found.append(y[: k + 1].sum().tolist())
        return found

    segmented(run, ONE, np.array([[1, 2, 3], [3, 4, 5], [5, 6, 6]]))
    segmented(run, ONE, np.array([[1, 2, 3], [3, 4, 5], [5, 6, 7]]))
