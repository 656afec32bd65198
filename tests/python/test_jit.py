"""jit: caching, arguments, results, methods, closures, threads. On the CPU and the interpreter."""

from __future__ import annotations

import collections
import functools
import inspect
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from processes import output_of
from threads import in_threads

import rune_jit

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=["interpreter", "cpu"])
def jit(request: pytest.FixtureRequest) -> Any:
    """rune_jit.jit on a device, raising for what cannot be traced."""
    return functools.partial(rune_jit.jit, device=request.param, fallback="error")


def test_a_function_is_traced_once_a_signature(jit: Any) -> None:
    traces = []

    @jit
    def f(x: Any) -> Any:
        traces.append(x.shape)
        return x + 1

    for _ in range(3):
        np.testing.assert_array_equal(f(X), X + 1)
    f(X.astype(np.float64))
    f(X[:1])
    f(X[:, ::2])
    assert traces == [(2, 3), (2, 3), (1, 3), (2, 2)]
    assert f.cache_info() == (2, 4, 0, 4, 0, 0)
    f.clear_cache()
    f(X)
    assert len(traces) == 5


def test_results_have_numpys_types(jit: Any) -> None:
    array, scalar, number = jit(lambda x, n: (x * 2, x.sum(), n + 1))(X, 3)
    assert type(array) is np.ndarray
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert type(scalar) is np.float32
    assert type(number) is int
    assert number == 4


def test_twenty_values_of_a_python_number_compile_once(jit: Any) -> None:
    f = jit(lambda x, s: x * s)
    for value in range(20):
        result = f(X, float(value))
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, X * float(value))
    assert f.cache_info().misses == 1


def test_earlier_results_survive(jit: Any) -> None:
    f = jit(lambda x: x + 1)
    results = [f(X + i) for i in range(5)]
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, X + i + 1)


def test_layouts_that_are_not_contiguous(jit: Any) -> None:
    f = jit(lambda x: x * 2 + x[::-1])
    for x in (X.T, X[:, ::2], X[::-1], np.broadcast_to(X[0], (4, 3)), np.asfortranarray(X)):
        np.testing.assert_array_equal(f(x), x * 2 + x[::-1])
    unaligned = np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3)
    np.testing.assert_array_equal(f(unaligned), X * 2 + X[::-1])


def test_read_only_inputs(jit: Any) -> None:
    x = X.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(jit(lambda v: v + 1)(x), X + 1)


Point = collections.namedtuple("Point", "x y")


def test_trees_in_and_out(jit: Any) -> None:
    @jit
    def f(p: Any, d: Any, none: Any) -> Any:
        assert none is None
        return {"sum": d["a"] + p.x, "pair": Point(p.y, [d["b"], None]), "text": "as it is"}

    result = f(Point(X, X + 1), {"a": X, "b": 2.0}, None)
    np.testing.assert_array_equal(result["sum"], X + X)
    assert isinstance(result["pair"], Point)
    np.testing.assert_array_equal(result["pair"].x, X + 1)
    assert result["pair"].y == [2.0, None]
    assert result["text"] == "as it is"


def test_untouched_arguments_come_back_as_they_are(jit: Any) -> None:
    x = X.copy()
    same, number, twice = jit(lambda x, n: (x, n, x * 2))(x, 1)
    assert same is x
    assert number == 1
    assert twice is not x


def test_constant_results_are_fresh(jit: Any) -> None:
    f = jit(lambda x: (np.zeros(3), 5, "text"))
    first = f(X)
    first[0][0] = 1
    second = f(X)
    np.testing.assert_array_equal(second[0], np.zeros(3))
    assert second[1:] == (5, "text")


def test_keywords_defaults_and_variadics(jit: Any) -> None:
    @jit
    def f(a: Any, b: Any = 2, *rest: Any, scale: Any = 1, **more: Any) -> Any:
        return a * b * scale + sum(rest) + sum(more.values())

    for args, kwargs in [
        ((X,), {}),
        ((X, 3), {}),
        ((X,), {"b": 3}),
        ((X, 3, 4, 5), {"scale": 2}),
        ((), {"a": X, "z": 1, "y": 2}),
    ]:
        expected = f.__wrapped__(*args, **kwargs)
        np.testing.assert_array_equal(f(*args, **kwargs), expected)
        np.testing.assert_array_equal(f(*args, **kwargs), expected)


def test_values_that_are_not_arrays_are_static(jit: Any) -> None:
    @jit
    def f(x: Any, mode: str, flag: bool) -> Any:
        return (x + 1 if mode == "up" else x - 1) * (2 if flag else 1)

    np.testing.assert_array_equal(f(X, "up", True), (X + 1) * 2)
    np.testing.assert_array_equal(f(X, "down", True), (X - 1) * 2)
    np.testing.assert_array_equal(f(X, "down", False), X - 1)
    assert f.cache_info().misses == 3


def test_slices_are_static(jit: Any) -> None:
    f = jit(lambda x, where: x[where] * 2)
    for where in (slice(1), slice(1, None), slice(None, None, -1), (slice(1), slice(2))):
        np.testing.assert_array_equal(f(X, where), X[where] * 2)


def test_static_arguments(jit: Any) -> None:
    f = jit(lambda x, n: sum((x for _ in range(n)), 0.0), static_argnums=1)
    g = jit(lambda x, n=2: sum((x for _ in range(n)), 0.0), static_argnames="n")
    np.testing.assert_array_equal(f(X, 3), X * 3)
    np.testing.assert_array_equal(f(X, 2), X * 2)
    np.testing.assert_array_equal(g(X), X * 2)
    np.testing.assert_array_equal(g(X, n=4), X * 4)


def test_numbers_check_what_numpy_checks(jit: Any) -> None:
    f = jit(lambda x, n: x + n)
    x = np.ones(2, np.uint8)
    np.testing.assert_array_equal(f(x, 254), [255, 255])
    with pytest.raises(OverflowError, match="out of bounds for uint8"):
        f(x, 256)
    with pytest.raises(ZeroDivisionError):
        jit(lambda a, b: a / b)(1.0, 0.0)


def test_captured_arrays_are_read_at_each_call(jit: Any) -> None:
    w = np.ones(3, np.float32)
    f = jit(lambda x: x + w)
    np.testing.assert_array_equal(f(X), X + 1)
    w[:] = 5
    np.testing.assert_array_equal(f(X), X + 5)
    assert f.cache_info().misses == 1


_scale = 2.0
_table = np.ones(3)


def _helper(x: Any) -> Any:
    return x * _scale + _table


def test_rebound_globals_are_noticed(jit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(lambda x: _helper(x))
    np.testing.assert_array_equal(f(X), X * 2 + 1)
    monkeypatch.setattr(sys.modules[__name__], "_scale", 3.0)
    np.testing.assert_array_equal(f(X), X * 3 + 1)
    monkeypatch.setattr(sys.modules[__name__], "_table", np.zeros(3))
    np.testing.assert_array_equal(f(X), X * 3)
    np.testing.assert_array_equal(f(X), X * 3)
    assert f.cache_info().misses == 2  # another array is another input of the same program


def test_rebound_closure_cells_are_noticed(jit: Any) -> None:
    offset = 1

    def f(x: Any) -> Any:
        return x + offset

    g = jit(f)
    np.testing.assert_array_equal(g(X), X + 1)
    offset = 2
    np.testing.assert_array_equal(g(X), X + 2)


class Part:
    def __init__(self, factor: float) -> None:
        self.factor = factor


PARTS = {number: Part(float(number % 7)) for number in range(3000)}
BY_FUNCTION: dict[Any, float] = {}


def test_large_containers_of_objects_are_watched(jit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(lambda x: x * PARTS[3].factor)
    np.testing.assert_array_equal(f(X), X * 3)
    monkeypatch.setattr(PARTS[3], "factor", 4.0)
    np.testing.assert_array_equal(f(X), X * 4)
    monkeypatch.setitem(PARTS, 3, Part(5.0))
    np.testing.assert_array_equal(f(X), X * 5)


def test_functions_are_keys_of_dicts(jit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_FUNCTION, inspect.cleandoc, 1.0)
    monkeypatch.setitem(BY_FUNCTION, double, 2.0)
    f = jit(lambda x: double(x) * BY_FUNCTION[double])
    np.testing.assert_array_equal(f(X), X * 4)
    BY_FUNCTION[double] = 3.0
    np.testing.assert_array_equal(f(X), X * 6)


def double(x: Any) -> Any:
    return x * 2


def test_a_class_keeps_its_identity_and_its_attributes() -> None:
    """A trace cannot run against a copy of a class, so what it writes to one is taken back."""

    class Counter:
        calls = 0

    @rune_jit.jit(fallback="silent")
    def f(x: Any, counter: Any) -> Any:
        Counter.calls += 1
        return x + 1 if type(counter) is Counter and isinstance(counter, Counter) else x

    counter = Counter()
    for calls in range(1, 4):
        np.testing.assert_array_equal(f(X, counter), X + 1)
        assert Counter.calls == calls


def test_methods(jit: Any) -> None:
    class Model:
        def __init__(self, w: Any) -> None:
            self.w = w

        @jit
        def apply(self, x: Any, k: Any = 1) -> Any:
            """Doc."""
            return x * self.w * k

    two, three = Model(2), Model(3)
    np.testing.assert_array_equal(two.apply(X), X * 2)
    np.testing.assert_array_equal(three.apply(X, k=2), X * 6)
    np.testing.assert_array_equal(two.apply(X), X * 2)
    two.w = 7
    np.testing.assert_array_equal(two.apply(X), X * 7)
    assert two.apply.__doc__ == "Doc."
    assert len(two.apply.lower(X).kernels) == 1


def test_partials_ufuncs_and_classes_with_call(jit: Any) -> None:
    np.testing.assert_array_equal(jit(functools.partial(np.add, 1))(X), X + 1)
    np.testing.assert_array_equal(jit(np.sqrt)(X), np.sqrt(X))
    np.testing.assert_array_equal(jit(functools.partial(lambda x, n: x * n, n=3))(X), X * 3)


def test_the_wrapper_looks_like_the_function() -> None:
    @rune_jit.jit(static_argnames="n")
    def named(x: Any, n: int = 1) -> Any:
        """Documentation."""
        return x

    assert named.__name__ == "named"
    assert named.__doc__ == "Documentation."
    assert list(inspect.signature(named).parameters) == ["x", "n"]
    assert inspect.getfullargspec(named).args == ["x", "n"]
    assert named.__code__.co_argcount == 2 and named.__defaults__ == (1,)
    assert named.__globals__ is globals()
    with pytest.raises(AttributeError, match="'JitFunction' object has no attribute 'other'"):
        named.other  # noqa: B018


def test_a_method_looks_like_the_method() -> None:
    class Model:
        @rune_jit.jit
        def at(self, x: Any, n: int = 1) -> Any:
            return x

    method = Model().at
    assert list(inspect.signature(method).parameters) == ["x", "n"]
    assert method.__func__ is Model.at and method.__name__ == "at"


def test_recursion_and_nesting(jit: Any) -> None:
    inner = jit(lambda x: x * 2)

    @jit
    def power(x: Any, n: int) -> Any:
        return x if n == 0 else inner(power(x, n - 1))

    f = jit(lambda x: power(x, 3), device=None)
    np.testing.assert_array_equal(f(X), X * 8)


def test_same_array_twice_and_broadcast(jit: Any) -> None:
    f = jit(lambda a, b: a * b + a)
    np.testing.assert_array_equal(f(X, X), X * X + X)


def test_numpy_scalars_are_strong(jit: Any) -> None:
    result = jit(lambda x, s: x * s)(X, np.float64(2))
    assert result.dtype == np.float64


def test_zero_dimensional_and_empty_arrays(jit: Any) -> None:
    assert jit(lambda x: x + 1)(np.array(2.0)) == 3.0
    empty = jit(lambda x: x * 2)(np.zeros((0, 3)))
    assert empty.shape == (0, 3)


def test_threads_share_one_compilation(jit: Any) -> None:
    traces = []

    @jit
    def f(x: Any) -> Any:
        traces.append(threading.get_ident())
        time.sleep(0.05)
        return np.sin(x).sum(axis=1)

    results: list[Any] = [None] * 8

    def work(i: int) -> None:
        results[i] = f(X + i)

    in_threads(work, range(8))
    for i, result in enumerate(results):
        np.testing.assert_allclose(result, np.sin(X + i).sum(axis=1), rtol=1e-5)
    assert len(traces) == 1


def test_lower_compile_and_inspect(jit: Any) -> None:
    lowered = jit(lambda x: np.exp(x).sum(axis=1)).lower(X)
    assert "unary exp" in lowered.graph
    assert lowered.schedule
    assert lowered.kernels[0].startswith("kernel @")
    assert lowered.cost_analysis()["kernels"] == len(lowered.kernels)
    assert "kernels" in lowered.explain()
    compiled = lowered.compile()
    np.testing.assert_allclose(compiled(X), np.exp(X).sum(axis=1), rtol=1e-6)
    with pytest.raises(TypeError, match="another signature"):
        compiled(X[:1])


def test_a_thousand_calls_do_not_leak(jit: Any) -> None:
    f = jit(lambda x: x + 1)
    x = X.copy()
    f(x)
    before = sys.getrefcount(x)
    for _ in range(1000):
        f(x)
    assert sys.getrefcount(x) == before


def test_disabled_by_the_environment() -> None:
    code = (
        "import numpy as np, rune_jit\n"
        "f = rune_jit.jit(lambda x: type(x).__name__)\n"
        "print(f(np.ones(2)))"
    )
    assert output_of(code, RUNE_JIT_DISABLE="1") == "ndarray\n"


def test_show_config(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cpu" in rune_jit.show_config(mode="dicts")["targets"]
    rune_jit.show_config()
    assert "RUNE_JIT_DEVICE" in capsys.readouterr().out


@pytest.mark.skipif(sys.version_info < (3, 12), reason="inspect.markcoroutinefunction")
def test_a_jitted_coroutine_function_is_one() -> None:
    async def function(x: Any) -> Any:
        return x + 1

    assert inspect.iscoroutinefunction(rune_jit.jit(function))
    assert not inspect.iscoroutinefunction(rune_jit.jit(lambda x: x))
