"""Errors name the operation, what is wrong, what to write instead, and the user's line."""

from __future__ import annotations

import inspect
import pickle
import threading
import warnings
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit import ConcretizationError, JitFallbackWarning, TracerLeakError, UnsupportedOpError

X = np.arange(6.0).reshape(2, 3)


def _trace(function: Any, *args: Any) -> Any:
    return rune_jit.jit(function, fallback="error").trace(*args)


@pytest.mark.parametrize(
    ("use", "hint"),
    [
        (lambda x: bool(x.sum() > 0), "np.where"),
        (lambda x: 1 if x[0, 0] > 0 else 2, "static_argnums"),
        (lambda x: float(x.sum()), "astype"),
        (lambda x: int(x.sum()), "static_argnums"),
        (lambda x: [1, 2, 3][x.argmax()], "x.shape"),
        (lambda x: np.random.default_rng(0).bytes(x.sum()), "astype(np.int64)"),
        (lambda x: np.polynomial.Polynomial([x[0, 0]]), "np.stack"),
        (lambda x: x.sum().item(), "item()"),
        (lambda x: x.tolist(), "tolist()"),
        (lambda x: {x: 1}, "static"),
        (lambda x: complex(x.sum()), "complex"),
    ],
)
def test_values_are_not_known_while_tracing(use: Any, hint: str) -> None:
    with pytest.raises(ConcretizationError) as info:
        rune_jit.jit(use, fallback="error")(X)
    message = str(info.value)
    assert hint in message
    line = inspect.getsourcelines(use)[1]
    assert f"test_errors.py:{line}" in message


def test_leaked_tracers_say_where_they_were_made() -> None:
    queue: Any = SimpleQueue()

    def leak(x: Any) -> Any:
        queue.put(x + 1)
        return x

    _trace(leak, X)
    leaked = [queue.get()]
    with pytest.raises(TracerLeakError, match="outside the function"):
        leaked[0] + 1
    with pytest.raises(TracerLeakError, match=r"made at test_errors.py:\d+.*after its trace ended"):
        _trace(lambda x: x + leaked[0], X)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (
            lambda x: x + np.zeros((4, 3)),
            ValueError,
            r"\[2,3\] with \[4,3\].*dimension -2: 2 and 4",
        ),
        (lambda x: x.reshape(4), ValueError, r"reshape: cannot reshape \[2,3\] to \[4\]"),
        (lambda x: x.sum(axis=2), np.exceptions.AxisError, "axis 2 of an array with 2 dimensions"),
        (lambda x: x.sum(axis=(0, 0)), ValueError, "duplicate"),
        (lambda x: x @ x, ValueError, "contracted dimension: 3 and 2"),
        (lambda x: x[5], IndexError, "index 5 is out of bounds for axis 0 with size 2"),
        (lambda x: x[0, 0, 0], IndexError, "too many indices"),
        (lambda x: x[:, :0].max(), ValueError, "no identity"),
        (lambda x: (x > 0) - (x > 1), TypeError, "bitwise_xor"),
        (lambda x: -(x > 0), TypeError, "negative"),
        (lambda x: x & 1, TypeError, "bitwise_and"),
        (lambda x: x.astype(np.int32) ** -1, ValueError, "negative integer powers"),
        (lambda x: np.concatenate([x, x[0]]), ValueError, "number of dimensions: 2 and 1"),
        (lambda x: np.stack([x, x[:1]]), ValueError, "same shape"),
        (lambda x: np.squeeze(x, 0), ValueError, "size 2, not 1"),
        (lambda x: np.einsum("ij,jk->ik", x, x), ValueError, "label 'j'"),
        (lambda x: len(x[0, 0]), TypeError, "has no len"),
        (lambda x: np.split(x, 2, axis=1), ValueError, "equal division"),
    ],
)
def test_errors_are_numpys(function: Any, error: type[Exception], message: str) -> None:
    """The same kind of exception as NumPy raises, with both values."""
    with pytest.raises(error):
        function(X)
    with pytest.raises(error, match=message):
        _trace(function, X)


def test_exceptions_of_the_function_propagate() -> None:
    class Mine(Exception):
        pass

    def fail(x: Any) -> Any:
        raise Mine("as it is")

    with pytest.raises(Mine, match="as it is"):
        rune_jit.jit(fail)(X)


class Stop(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError, SystemExit, Stop])
def test_calls_that_raise_have_done_what_comes_before(error: type[BaseException]) -> None:
    class Log:
        count = 0
        last: Any = None

    def note(x: Any, log: Any, lines: list[Any]) -> Any:
        log.count += 1
        log.last = x * 2
        lines.append(x + 1)
        if x[0] > 1:
            raise error("too large", x.sum())
        x += 1
        return x

    def outcome(function: Any, x: Any, log: Log, lines: list[Any]) -> Any:
        try:
            result = function(x, log, lines)
        except error as found:
            result = found.args
        return result, x, log.count, log.last, lines

    jitted = rune_jit.jit(note)
    log, expected_log = Log(), Log()
    lines: list[Any] = []
    expected_lines: list[Any] = []
    for first in (0.0, 0.0, 2.0, 0.0, 3.0, 3.0, 0.0, 2.0):
        x, y = np.array([first, 1.0]), np.array([first, 1.0])
        expected = outcome(note, y, expected_log, expected_lines)
        assert str(outcome(jitted, x, log, lines)) == str(expected)


NUMBERS = pickle.dumps(np.zeros((2, 3)))
UNTRACEABLE = [
    lambda x: x[x > 1],
    lambda x: np.unique(x),
    lambda x: np.linalg.eigvals(x @ x.T),
    lambda x: np.repeat(x, x.astype(int).ravel()),
    lambda x: np.where(x > 1),
    lambda x: np.add(x, 1, out=pickle.loads(NUMBERS)),
    lambda x: np.linalg.eig(x @ x.T)[0],
]


@pytest.mark.parametrize("function", UNTRACEABLE)
def test_what_cannot_be_traced_runs_at_its_place(function: Any) -> None:
    jitted = rune_jit.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (X, X + 1):
            np.testing.assert_allclose(jitted(x), function(x), rtol=1e-12)
    assert jitted.cache_info().segmented == 1
    assert jitted.cache_info().misses == 1


def test_what_runs_on_numpy_as_a_whole() -> None:
    def function(x: Any) -> Any:
        threading.Thread(target=len, args=([],)).start()
        return x + 1

    jitted = rune_jit.jit(function)
    with pytest.warns(JitFallbackWarning, match="runs on NumPy") as record:
        np.testing.assert_array_equal(jitted(X), function(X))
    assert len(record) == 1
    assert record[0].filename == __file__
    assert record[0].lineno == inspect.getsourcelines(function)[1] + 1
    with warnings.catch_warnings():  # once: later calls go straight to NumPy
        warnings.simplefilter("error")
        np.testing.assert_array_equal(jitted(X + 1), function(X + 1))
    assert jitted.cache_info().fallbacks == 1
    assert jitted.cache_info().misses == 1
    assert jitted.explain().startswith("function: on NumPy: threading.Thread: cannot trace")


def test_fallback_modes() -> None:
    with pytest.raises(UnsupportedOpError, match="unique: cannot trace"):
        rune_jit.jit(np.unique, fallback="error")(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(rune_jit.jit(np.unique, fallback="silent")(X), np.unique(X))
    with pytest.raises(ValueError, match="fallback"):
        rune_jit.jit(np.unique, fallback="maybe")


def test_static_arguments_must_exist_and_be_hashable() -> None:
    with pytest.raises(ValueError, match="static_argnums=2"):
        rune_jit.jit(lambda x: x, static_argnums=2)
    with pytest.raises(ValueError, match="static_argnames='n'"):
        rune_jit.jit(lambda x: x, static_argnames="n")
    with pytest.raises(TypeError, match="not hashable"):
        rune_jit.jit(lambda x, n: x, static_argnums=1)(X, {})


def test_wrong_calls_raise_pythons_own_message() -> None:
    @rune_jit.jit
    def f(x: Any) -> Any:
        return x

    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'x'"):
        f()


def test_ir_text_that_does_not_parse() -> None:
    with pytest.raises(rune_jit.ParseError, match=r"line 1, column \d+"):
        rune_jit._core.parse_graph("graph { %0 = nonsense : f32[] }")
