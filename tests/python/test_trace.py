"""What tracing builds: graphs, their inputs, their constants."""

from __future__ import annotations

import inspect
import pickle
import re
import sys
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit import _core
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

X = np.ones((4, 3), np.float32)


def _graph(function: Any, *args: Any) -> str:
    graph = rune_jit.jit(function, fallback="error").trace(*args)
    assert graph.verify() == []
    text = str(graph)
    assert _core.parse_graph(text) == graph
    return text


def _count(text: str, what: str) -> int:
    return len(re.findall(rf"= {what}\b", text))


def test_softmax() -> None:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    assert (
        _graph(softmax, X)
        == """graph {
  %0 = placeholder index=0 : f32[4,3]
  %1 = reduce_axis max axes=[1] %0 : f32[4,1]
  %2 = expand shape=[4,3] %1 : f32[4,3]
  %3 = binop sub %0 %2 : f32[4,3]
  %4 = unary exp %3 : f32[4,3]
  %5 = reduce_axis add axes=[1] %4 : f32[4,1]
  %6 = expand shape=[4,3] %5 : f32[4,3]
  %7 = binop fdiv %4 %6 : f32[4,3]
  return %7
}
"""
    )


def test_small_powers_are_products() -> None:
    text = _graph(lambda x: x**3 + x**2, X)
    assert _count(text, "binop pow") == 0
    assert _count(text, "binop mul") == 3


def test_captured_arrays_are_inputs_and_one_each() -> None:
    w = np.ones((3, 5), np.float32)
    text = _graph(lambda x: x @ w + x @ w, X)
    assert _count(text, "placeholder") == 2
    assert _count(text, "const_scalar") == 0
    assert _count(text, "vconst") == 0


def test_numpy_scalars_are_strong_constants() -> None:
    text = _graph(lambda x: x * np.float64(2), X)
    assert "const_scalar f64(2.0)" in text
    assert "cast f64 %0" in text


def test_arrays_made_inside_run_in_numpy() -> None:
    text = _graph(lambda x: x + np.linspace(0, 1, 3, dtype=np.float32), X)
    assert _count(text, "placeholder") == 2


def test_bool_matmul_counts_and_tests() -> None:
    text = _graph(lambda x: (x > 0) @ (x > 0).T, X)
    assert _count(text, "contract") == 1
    assert text.rstrip().splitlines()[-3].endswith(": bool[4,4]")


def test_nested_jit_is_inlined() -> None:
    inner = rune_jit.jit(lambda x: np.sin(x))
    text = _graph(lambda x: inner(x) + inner(x), X)
    assert _count(text, "unary sin") == 2
    assert inner.cache_info().misses == 0


NUMBERS = pickle.dumps(np.arange(3.0))


def test_writes_to_an_array_that_met_a_tracer_are_refused() -> None:
    def f(x: Any) -> Any:
        buffer = pickle.loads(NUMBERS)
        first = x + buffer
        buffer[0] = 1
        return first + buffer

    with pytest.raises(rune_jit.UnsupportedOpError, match="cannot trace a write to an array"):
        _graph(f, X)


def test_writes_before_an_array_meets_a_tracer_are_fine() -> None:
    def f(x: Any) -> Any:
        buffer = np.zeros(3, np.float32)
        buffer[0] = 1
        return x + buffer

    assert _count(_graph(f, X), "binop add") == 1


def test_what_a_tracer_knows() -> None:
    def f(x: Any) -> Any:
        assert x.shape == (4, 3)
        assert x.ndim == 2
        assert x.size == 12
        assert x.dtype == np.float32
        assert x.nbytes == 48
        assert len(x) == 4
        assert np.shape(x) == (4, 3)
        return x + 1

    _graph(f, X)


def test_reflected_operators_of_arrays_and_scalars() -> None:
    w = np.ones(3, np.float32)
    text = _graph(lambda x: w - x, X)
    assert re.search(r"binop sub %\d+ %0", text)
    assert _count(_graph(lambda x: np.float32(1) / x, X), "binop fdiv") == 1
    assert _count(_graph(lambda x: np.ones((2, 4), np.float32) @ x, X), "contract") == 1


def test_every_ufunc_of_the_alu_table_is_dispatched() -> None:
    for row in _core.alu_ops():
        if row["numpy"]:
            assert _core.has_ufunc(row["numpy"]), row
            assert isinstance(getattr(np, row["numpy"]), np.ufunc)


def test_lines_of_long_functions() -> None:
    """Lines are looked up in another way once a function has traced some operations."""
    steps = "".join(
        f"    x = (x +\n        {i}.5)\n    made.append(x._made_at)\n" for i in range(60)
    )
    made: list[str] = []
    names: dict[str, Any] = {"made": made}
    exec(compile(f"def long(x):\n{steps}    return x", "long.py", "exec"), names)
    rune_jit.jit(names["long"], fallback="error").trace(np.ones(3))
    assert made[-60:] == [f"long.py:{2 + 3 * i}" for i in range(60)]


OPERATORS = [
    *("add", "radd", "sub", "rsub", "mul", "truediv", "rtruediv", "floordiv", "mod"),
    *("lt", "eq", "ne", "neg", "abs"),
]


@pytest.mark.parametrize("name", OPERATORS)
def test_shortcuts_trace_what_their_rules_do(name: str) -> None:
    numbers = [2, 2.5, True, 1j, np.float32(3), np.int64(4), X]

    def trace(function: Any, first: int, second: int) -> str:
        """What is made of operands of these numbers: the error, or the graph and the result."""
        trace = Trace("f")
        builder = trace.builder
        shapes = [(np.float32, [4, 3], None), (np.float32, [3], None), (np.int8, [], None)]
        shapes += [(np.int64, [], "int"), (np.float64, [], "float")]
        with trace.active():
            inputs = [
                Tracer(trace, builder.input(np.dtype(dtype), shape, weak))
                for dtype, shape, weak in shapes
            ]
            inputs[0]._storage.leaf = 0  # of unknown order
            others = [*inputs, inputs[0].T, *numbers]
            operands = inputs[first], *([] if name in ("neg", "abs") else [others[second]])
            try:
                made = function(*operands)
            except Exception as error:
                return f"{type(error).__name__}: {error}"
            storage = made._storage
            order = [(z._shape, z._value_in(trace).id) for z in storage.order_from]
            graph = builder.finish([made._value])
            return f"{made._value.weak} {storage.scalar} {order} {made._dtype}\n{graph}"

    method = vars(Tracer)[f"__{name}__"]
    assert isinstance(method, _core.Shortcut)
    for first in range(5):
        for second in range(6 + len(numbers)):
            assert trace(method, first, second) == trace(method.__wrapped__, first, second)


def test_a_shortcut_needs_no_frame() -> None:
    frames: list[str] = []
    trace = Trace("f")
    with trace.active():
        x = Tracer(trace, trace.builder.input(np.dtype(np.float32), [4, 3]))
        y = x + x
        sys.setprofile(lambda frame, event, _: frames.append(event))
        y = np.sin(y * x) > 2.0
        sys.setprofile(None)
    assert "call" not in frames
    assert y.dtype == bool
    assert y.shape == (4, 3)
    line = inspect.currentframe().f_lineno - 5  # type: ignore[union-attr]
    assert y._made_at == f"test_trace.py:{line}"
