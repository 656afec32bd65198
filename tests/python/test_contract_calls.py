"""The ways in which a traced function could silently differ from the function itself: arguments,
side effects, threads. A scenario (scenarios.py) is a script that yields results, with jit and
without."""

from __future__ import annotations

import concurrent.futures
import os
import random
import threading
import time
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import output_of
from scenarios import X, collection, contract_tests, eager, needs_float64
from threads import in_threads

import rune_jit

TRACED, traced = collection()
ON_NUMPY, on_numpy = collection()


# Arguments.


@traced
def aliasing_arguments(jit: Any) -> Iterator[Any]:
    def f(a: Any, b: Any) -> Any:
        a += 1
        b *= a
        return a + b

    g = jit(f)
    for i, j in ((0, 4), (0, 0), (0, 2), (3, 1)):
        base = np.arange(8.0)
        yield g(base[i : i + 4], base[j : j + 4]), base
    h = jit(lambda a, b: a * b + a)
    base = np.arange(8.0)
    yield h(base, base), h(base[::2], base[4:]), h(base[::-1], base)


@traced
def new_shapes_and_types(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: (x.sum(), x[: x.shape[0] // 2] * len(x)))
    for n in (4, 7, 1, 0, 4):
        for dtype in (np.float64, np.float32, np.int8, np.uint64, bool):
            yield f(np.ones(n, dtype)), f(np.ones((n, 2), dtype))


@traced
def results_do_not_share_memory(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: (x + 1, x + 1, x * 2))
    first = f(X)
    a, b, c = first
    a[0] = b[1] = c[2] = 99
    yield first, f(X)
    y = X.copy()
    g = jit(lambda x: x * 1)
    z = g(y)
    z[0] = 5
    yield y, z, g(y)


@traced
def layouts(jit: Any) -> Iterator[Any]:
    def f(x: Any) -> Any:
        x[1:] -= x[:-1]
        return x * 2

    g = jit(f)
    base = np.arange(400.0).reshape(20, 20)
    for view in (
        base[::-1],
        base[:, ::-3],
        base[::19, ::19],
        base.T[5:2:-1],
        np.asfortranarray(base),
        base[:0],
        base[:, :0],
    ):
        yield g(view), base, view


@traced
def files_in_memory(jit: Any) -> Iterator[Any]:
    path = Path(os.environ.get("PYTEST_TMP", "/tmp")) / f"contract-{os.getpid()}.bin"

    def f(x: Any, y: Any) -> Any:
        x[0] = y[1] + 1
        return x * 2

    g = jit(f)
    try:
        for _ in range(2):
            x = np.memmap(path, np.float64, "w+", shape=(4,))
            x[:] = X
            yield np.asarray(g(x, np.memmap(path, np.float64, "r", shape=(4,))))
            x.flush()
            yield np.fromfile(path)
    finally:
        path.unlink(missing_ok=True)


@traced
def weak_numbers(jit: Any) -> Iterator[Any]:
    f = jit(lambda x, n: x * n + n)
    x = np.ones(3, np.float32)
    for i in range(20):
        yield f(x, i / 7), f(x, i)
    yield f(np.ones(2, np.int8), 3), f(np.ones(2, np.uint8), 200)
    for dtype, n in ((np.int8, 300), (np.uint8, -1), (np.int64, 2**70)):
        try:
            yield f(np.ones(2, dtype), n)
        except OverflowError as error:
            yield type(error).__name__
    if jit is not eager:
        assert f.cache_info().misses <= 2 + 2 + 3


@traced
@needs_float64
def double_precision_stays(jit: Any) -> Iterator[Any]:
    f = jit(lambda x, n: (x / 3, x.mean(), x + 1e-12, np.full(2, n) / 3, np.zeros(1) + n))
    yield f(X, 1), f(X.astype(np.int32), 2**40), f(X.astype(np.float32), 0.1)


@traced
def bounds(jit: Any) -> Iterator[Any]:
    f, g = jit(lambda x, i: x[i]), jit(lambda x, i: np.take(x, i))
    for i in (0, 3, -4, 4, -5, 2**40, np.array([1, 4]), np.array([[-5]]), np.array([], int)):
        for function in (f, g):
            try:
                yield function(X, i)
            except IndexError as error:
                yield str(error).replace("1-dimensional ", "")


# Writes to containers, exceptions, and what else is no result.


@traced
def containers_of_arrays(jit: Any) -> Iterator[Any]:
    def f(d: Any) -> Any:
        d["a"] += 1
        d["b"][0][1:] *= 2
        return d["a"].sum()

    g = jit(f)
    d = {"a": X.copy(), "b": [X.copy()]}
    for _ in range(2):
        yield g(d), d


@traced
def items_of_containers(jit: Any) -> Iterator[Any]:
    def f(d: Any, items: Any) -> Any:
        d["new"] = d["x"] * 2
        items[0] = items[0] + 1
        items.append(d["x"])
        return d["new"]

    g = jit(f)
    d, items = {"x": X}, [X]
    for _ in range(2):
        yield g(d, items)
        yield d, items


@on_numpy
def counters(jit: Any) -> Iterator[Any]:
    count, box = 0, types.SimpleNamespace(n=0, last=None)

    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        box.n += 2
        box.last = x + count
        return x * count

    g = jit(f)
    for _ in range(4):
        yield g(X), count, box.n, box.last


@on_numpy
def plain_writes(jit: Any) -> Iterator[Any]:
    box = types.SimpleNamespace(w=np.zeros(3))

    def f(x: Any) -> Any:
        box.w[1] += 1
        return x + box.w[1]

    g = jit(f)
    for _ in range(3):
        yield g(X), box.w


@traced
def memoised_values(jit: Any) -> Iterator[Any]:
    cache: dict[int, Any] = {}

    def table(n: int) -> Any:
        if n not in cache:
            cache[n] = list(range(n))
        return cache[n]

    f = jit(lambda x: x * sum(table(x.shape[0])))
    for n in (4, 3, 4):
        yield f(X[:n])


@on_numpy
def random_numbers(jit: Any) -> Iterator[Any]:
    rng = np.random.default_rng(3)
    box = types.SimpleNamespace(rng=np.random.RandomState(5), python=random.Random(2))
    np.random.seed(4)
    random.seed(4)
    for function in (
        lambda x: x + np.random.rand(4),
        lambda x: x + rng.normal(size=4),
        lambda x: x + box.rng.rand(4),
        lambda x: x + box.python.random(),
        lambda x: x + random.random(),
        lambda x: np.random.permutation(4) + x,
    ):
        f = jit(function)
        for _ in range(3):
            yield f(X)


@traced
def seeded_random_numbers(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: x + np.random.default_rng(1).normal(size=4))
    yield f(X), f(X)


@on_numpy
def clocks(jit: Any) -> Iterator[Any]:
    from time import perf_counter

    for read in (lambda: time.time(), lambda: perf_counter(), lambda: int(os.urandom(9).hex(), 16)):
        f = jit(lambda x, read=read: x * 0 + read())
        yield len({f(X)[0] for _ in range(3)})
    f = jit(lambda x: x * 0 + np.random.default_rng().normal())
    yield len({f(X)[0] for _ in range(3)})


@traced
def loops_over_arrays(jit: Any) -> Iterator[Any]:
    def f(x: Any) -> Any:
        total = 0
        for i, (a, row) in enumerate(zip(x[:, 0], x, strict=True)):
            total = total + a * row[i]
            row[1] = total
        return total, [v for v in x[0]], max(x[:, 1].shape), sum(x)

    g = jit(f)
    yield g(np.arange(12.0).reshape(3, 4))


@traced
def generators_and_recursion(jit: Any) -> Iterator[Any]:
    def terms(x: Any) -> Iterator[Any]:
        for n in range(3):
            yield x**n

    def power(x: Any, n: int) -> Any:
        return x if n == 0 else x * f(x, n - 1)

    f = jit(power) if jit is eager else jit(power, static_argnums=1)
    yield f(X, 3), jit(lambda x: sum(terms(x)))(X)


@traced
def methods_of_all_kinds(jit: Any) -> Iterator[Any]:
    class Model:
        scale = 2

        def __init__(self, w: Any) -> None:
            self.w = w

        def __call__(self, x: Any) -> Any:
            y = np.zeros(4)
            y[1] = x[1] * self.w[0]
            return y

        static = staticmethod(jit(lambda x: x * 3))
        klass = classmethod(jit(lambda cls, x: x * cls.scale))
        method = jit(lambda self, x, *rest, k=1, **more: x + self.w[0] + sum(rest) + k + sum(more))
        value = property(jit(lambda self: self.w * 2))

    class Child(Model):
        scale = 5

        def method(self, x: Any) -> Any:  # type: ignore[override]
            return super().method(x, 1) * 2

    a, b = Model(np.ones(1)), Child(np.full(1, 7.0))
    for _ in range(2):
        yield a.static(X), Model.static(X), a.klass(X), b.klass(X), Model.klass(X)
        yield a.method(X), b.method(X), a.method(X, 2, 3.5, k=4), Model.method(a, X), a.value
        yield jit(a)(X), jit(b)(X), jit(a.__call__)(X)
        a.w[0] += 1


@on_numpy
def subclasses(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: x * x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        yield np.asarray(f(np.matrix([[1.0, 2], [3, 4]])))
    y = f(np.ma.masked_array(X, X > 1))
    yield y.mask, y.filled(0)
    yield jit(lambda r: r.a * 2)(np.rec.array([(1, 2.0)], dtype=[("a", int), ("b", float)]))


@on_numpy
def other_byte_order(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: x * 2 + x.sum())
    yield f(np.arange(3, dtype=">f8")), f(np.arange(3, dtype=">i4"))
    w = np.arange(3, dtype=">f8")
    g = jit(lambda x: x + w.sum())
    yield g(X)
    w[0] = 9
    yield g(X)


@traced
def exceptions_midway(jit: Any) -> Iterator[Any]:
    """What raises while tracing has written nothing; NumPy would have written the first element."""

    def f(x: Any, k: Any) -> Any:
        x[0] = 5
        if k == "raise":
            raise KeyError(k)
        return x.sum()

    g = jit(f)
    x = X.copy()
    try:
        g(x, "raise")
    except KeyError as error:
        yield str(error), x[1:]
    yield g(x, "go"), x


test_traced, test_on_numpy = contract_tests(TRACED, ON_NUMPY)


def test_one_compilation_for_twenty_numbers() -> None:
    f = rune_jit.jit(lambda x, a, n: x * a + n, fallback="error")
    for i in range(20):
        np.testing.assert_array_equal(f(X, i / 3, i), X * (i / 3) + i)
    assert f.cache_info().misses == 1


def test_nan_is_one_static_value() -> None:
    f = rune_jit.jit(lambda x, s: x * s, static_argnums=1, fallback="error")
    for _ in range(3):
        assert np.isnan(f(X, float("nan"))).all()
        assert np.isnan(f(X, np.float64("nan"))).all()
    assert f.cache_info().misses == 2


def test_the_cache_is_bounded() -> None:
    f = rune_jit.jit(lambda x, s: x * s, static_argnums=1, cache_size=3, fallback="error")
    for s in (1, 2, 3, 1, 4, 1, 2):  # 4 drives out 2, and 2 then 3
        np.testing.assert_array_equal(f(X, s), X * s)
    assert f.cache_info() == (2, 5, 0, 3, 2, 0)
    g = rune_jit.jit(lambda x: x + 1, cache_size=2)
    for n in (1, 2, 3, 1, 2, 3, 3):
        np.testing.assert_array_equal(g(np.ones(n)), np.full(n, 2.0))
    assert g.cache_info().size == 2
    with pytest.raises(ValueError, match="cache_size=0"):
        rune_jit.jit(lambda x: x, cache_size=0)


def test_a_function_that_waits_for_a_thread_that_calls_it() -> None:
    """No thread waits for ever for a trace that waits for it."""

    def f(x: Any, depth: int) -> Any:
        results: list[Any] = []
        if depth:
            thread = threading.Thread(target=lambda: results.append(jitted(X, depth - 1)))
            thread.start()
            thread.join(60)
        return x + sum(r.sum() for r in results)

    jitted = rune_jit.jit(f, static_argnums=1, fallback="silent")
    np.testing.assert_array_equal(jitted(X, 2), f(X, 2))

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        busy = threading.Lock()

        def same(x: Any) -> Any:
            if busy.acquire(blocking=False):
                pool.submit(again, X).result(60)
                busy.release()
            return x * 2

        again = rune_jit.jit(same)
        np.testing.assert_array_equal(again(X), X * 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_while_another_thread_traces() -> None:
    code = """
import os, threading, time, numpy as np, rune_jit
inside, leave = threading.Event(), threading.Event()

def f(x):
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        leave.wait(20)
    return x + 1

g = rune_jit.jit(f)
thread = threading.Thread(target=g, args=(np.ones(3),))
thread.start()
inside.wait(20)
child = os.fork()
if child == 0:
    os._exit(0 if g(np.ones(3)).sum() == 6 else 1)
leave.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert output_of(code) == "0\n"


def test_printing_happens_at_each_call(capsys: pytest.CaptureFixture[str]) -> None:
    f = rune_jit.jit(lambda x: print("called", x.shape) or x + 1)
    for _ in range(3):
        f(X)
    assert capsys.readouterr().out == 3 * "called (4,)\n"


def test_threads_get_their_own_results() -> None:
    f = rune_jit.jit(lambda x, k: np.sin(x * k).sum(), fallback="error")

    def work(k: int) -> None:
        x = np.arange(1000.0) + k
        for _ in range(50):
            np.testing.assert_allclose(f(x, k), np.sin(x * k).sum(), rtol=1e-9, atol=1e-9)

    in_threads(work, range(8))
