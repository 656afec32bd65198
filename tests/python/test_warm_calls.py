"""Warm calls find their program without a Python frame, and never that of another signature."""

import enum
import gc

import numpy as np
import pytest

import rune_jit
from rune_jit import jit
from rune_jit.calls.trial import Trial

A = np.arange(3, dtype=np.float32)
B = A + 10


def runs_fast(f, *args, **kwargs):
    """Whether a call like the last one finds its program without Python's help."""
    before = f._fast_hits
    f(*args, **kwargs)
    return f._fast_hits == before + 1


class Scale:
    def __init__(self, factor):
        self.factor = factor

    @jit
    def __call__(self, x):
        return x * self.factor

    @jit
    def constant(self):
        return np.full(2, self.factor)


class Mode(enum.Enum):
    ADD = 1
    MULTIPLY = 2


def two(a, b):
    return a - 2 * b


def apply(x, how):
    return how(x)


def combine(x, mode):
    return x + x if mode is Mode.ADD else x * x


CALLS = {
    "positional": (two, {}, (A, B), {}),
    "named": (two, {}, (), {"b": A, "a": B}),
    "mixed": (two, {}, (A,), {"b": B}),
    "numbers": (two, {}, (A, 2), {}),
    "tuple": (lambda t: t[0] - t[1][0], {}, ((A, [B]),), {}),
    "dict": (lambda d: d["z"] - d["a"], {}, ({"z": A, "a": B},), {}),
    "None": (lambda x, y=None: x if y is None else x + y, {}, (A, None), {}),
    "flag": (lambda x, up: x + 1 if up else x - 1, {}, (A, True), {}),
    "text": (lambda x, way: x + 1 if way == "up" else x - 1, {}, (A, "up"), {}),
    "static": (lambda x, n: x * n, {"static_argnums": 1}, (A, 3), {}),
    "static name": (
        lambda x, *, n: x * n[0] + n[1],
        {"static_argnames": "n"},
        (A,),
        {"n": (1, 2.5)},
    ),
    "function": (apply, {}, (A, np.sqrt), {}),
    "enumeration": (combine, {}, (A, Mode.MULTIPLY), {}),
    "star": (lambda x, *rest, scale: (x - sum(rest)) * scale, {}, (A, B, A), {"scale": B}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warm_call_runs_without_a_python_frame(name):
    fn, options, args, kwargs = CALLS[name]
    f = jit(fn, fallback="error", **options)
    for _ in range(2):
        np.testing.assert_array_equal(f(*args, **kwargs), fn(*args, **kwargs))
    assert runs_fast(f, *args, **kwargs)
    assert f.cache_info().misses == 1


def test_a_warm_method_runs_without_a_python_frame_and_keeps_instances_apart():
    double, triple = Scale(np.float32(2)), Scale(np.float32(3))
    for _ in range(3):
        np.testing.assert_array_equal(double(A), A * 2)
        np.testing.assert_array_equal(triple(A), A * 3)
    assert runs_fast(Scale.__call__, double, A)
    double.factor = np.float32(5)
    np.testing.assert_array_equal(double(A), A * 5)


def test_an_address_used_again_is_not_the_same_object():
    results = []
    for factor in range(20):
        scale = Scale(float(factor))
        results.append(scale(A)[2])
        results.append(scale(A)[2])
        del scale
        gc.collect()
    assert results == [2.0 * (i // 2) for i in range(40)]


@pytest.mark.parametrize(
    "first, second",
    [
        (((A, B), {}), ((), {"b": A, "a": B})),
        (((), {"b": A, "a": A}), ((), {"b": B, "a": A})),
        (((), {"b": A, "a": A}), ((), {"a": A, "b": B})),
        (((A, 1), {}), ((A, True), {})),
        (((A, 1), {}), ((A, 1.5), {})),
        (((A, B), {}), ((A, B.astype(np.float64)), {})),
        (((A, B), {}), ((A, B[:1]), {})),
    ],
)
def test_calls_that_look_alike_are_kept_apart(first, second):
    f = jit(two)
    for args, kwargs in (first, first, second, second, first):
        expected = two(*args, **kwargs)
        actual = f(*args, **kwargs)
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype


@pytest.mark.parametrize(
    "trees",
    [
        [(A, B), [A, B]],
        [{"a": A, "b": B}, {"a": A, "c": B}, {"b": B, "a": A}],
        [(A, (B,)), ((A,), B), (A, B)],
        [(A, None), (None, A), (A,)],
        [{"a": (A, B)}, {"a": A, "b": B}],
        ["s", ("s",), {"s": A}],
    ],
)
def test_structures_are_kept_apart(trees):
    f = jit(lambda tree: np.zeros(1))
    for tree in trees * 3:
        f(tree)
    # Dicts are the same whatever the order of their items.
    different = {str(sorted(t.items(), key=str)) if isinstance(t, dict) else str(t) for t in trees}
    assert f.cache_info().misses == len(different)


@pytest.mark.parametrize("values", [[1, 1.0, True, "1", (1,), None], [0.0, -0.0], ["", "\ud800"]])
def test_static_values_are_kept_apart(values):
    f = jit(lambda x, n: np.full(1, len(repr(n))), static_argnums=1, fallback="error")
    for _ in range(3):
        for value in values:
            assert f(A, value)[0] == len(repr(value))
    assert f.cache_info().misses == len(values)


def test_a_warm_call_in_a_trace_becomes_part_of_it():
    scale = Scale(2.0)
    scale.constant()
    scale.constant()
    outer = jit(lambda x: x + scale.constant()[0])
    np.testing.assert_array_equal(outer(A), A + 2)
    scale.factor = 7.0
    np.testing.assert_array_equal(outer(A), A + 7)


def test_wrong_arguments_raise_what_python_raises():
    f = jit(two)
    f(A, B)
    for args, kwargs in [((A,), {}), ((A, B, A), {}), ((A, B), {"b": B}), ((A,), {"c": B})]:
        with pytest.raises(TypeError):
            f(*args, **kwargs)
    np.testing.assert_array_equal(f(A, B), two(A, B))


def test_very_deep_and_cyclic_arguments_are_left_to_python():
    f = jit(lambda tree: np.zeros(1))
    deep = A
    for _ in range(100):
        deep = [deep]
    for _ in range(2):
        f(deep)
    cyclic = []
    cyclic.append(cyclic)
    with pytest.raises((RecursionError, rune_jit.UnsupportedOpError)):
        jit(lambda tree: np.zeros(1), fallback="error")(cyclic)


def test_a_results_memory_outlives_the_function() -> None:
    x = np.arange(12.0).reshape(3, 4)
    result = rune_jit.jit(lambda x: x + 1)(x)
    view = result[1:]
    del result
    others = [rune_jit.jit(lambda x: x * 3)(x) for _ in range(20)]
    np.testing.assert_array_equal(view, x[1:] + 1)
    assert len(others) == 20


def test_programs_end_where_most_arguments_are_new():
    def scaled(x, name, function):
        return function(x - x.mean()) if name else x

    f = jit(scaled)
    for i in range(60):
        x = np.arange(10.0 + i)
        np.testing.assert_allclose(f(x, f"run {i}", lambda v: v * 2), (x - x.mean()) * 2)
    assert f.cache_info().misses < 40
    x = np.ones(10)
    for _ in range(80):
        f(x, "run 0", np.negative)
    g = jit(scaled, fallback="error")
    for i in range(40):
        g(A, f"run {i}", np.negative)
    assert g.cache_info().misses == 40


def test_an_edited_function_leaves_numpy(monkeypatch):
    monkeypatch.setattr(Trial, "verdict", lambda self: "it is faster")

    def f(x):
        return x.sum().tolist() + 1

    def g(x):
        return x.sum() + 2

    jitted = jit(f)
    for _ in range(8):
        jitted(A)
    assert "on NumPy" in jitted.explain()
    f.__code__ = g.__code__
    assert jitted(A) == A.sum() + 2
    assert "one program" in jitted.explain()
