"""Ctrl-C ends a compilation at once, wherever it is, and leaves what later calls need. Callbacks of
the garbage collector may run during a trace."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit.backends import llvm, object_cache
from rune_jit.tracing import context

LONGEST = 0.5  # seconds from Ctrl-C to KeyboardInterrupt


def press_ctrl_c() -> float:
    pressed = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)
    return pressed


def many_products(x: Any) -> list[Any]:
    """A hundred kernels that differ."""
    results = []
    for i in [*range(100)]:
        part = x[: 20 + i % 50, : 30 + i % 7]
        results.append((part @ part.T)[: 5 + i % 9].sum(axis=0) * np.sin(i + 1.0))
    return results


@pytest.fixture(autouse=True)
def heeds_ctrl_c() -> Iterator[None]:
    """Shells start commands in the background with SIGINT ignored, which Python keeps."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def no_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache.Entry, "read", lambda self: None)


def test_while_passes_run() -> None:
    graph = rune_jit.jit(many_products, device="cpu").trace(np.ones((80, 80)))
    start = time.perf_counter()
    rune_jit._core.lower(graph, "cpu", ["x"], [])
    whole = time.perf_counter() - start
    for share in (0.1, 0.3, 0.5, 0.7):
        pressed: list[float] = []

        def press(delay: float = share * whole, pressed: list[float] = pressed) -> None:
            time.sleep(delay)
            pressed.append(press_ctrl_c())

        thread = threading.Thread(target=press)
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            while True:
                rune_jit._core.lower(graph, "cpu", ["x"], [])
        assert time.perf_counter() - pressed[0] < LONGEST
        thread.join()


def test_while_llvm_compiles(monkeypatch: pytest.MonkeyPatch, no_disk_cache: None) -> None:
    """The main thread does not wait for LLVM, which ends with the part that it compiles."""
    original, compiled = llvm._Compiler.object_code, []
    pressed = []

    def slow(self: Any, ir: str) -> bytes:
        compiled.append(ir)
        if len(compiled) == 2:
            pressed.append(press_ctrl_c())
            time.sleep(2)
        return original(self, ir)

    x = np.ones((80, 80))
    f = rune_jit.jit(many_products, fallback="error", device="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(llvm._Compiler, "object_code", slow)
        with pytest.raises(KeyboardInterrupt):
            f(x)
        assert time.perf_counter() - pressed[0] < LONGEST
        time.sleep(2.5)
        assert len(compiled) == 2
    assert f.cache_info().size == 0
    for result, expected in zip(f(x), many_products(x), strict=True):
        np.testing.assert_allclose(result, expected)


def test_long_modules_are_compiled_in_parts(
    monkeypatch: pytest.MonkeyPatch, no_disk_cache: None
) -> None:
    original, sizes = llvm._Compiler.object_code, []

    def counted(self: Any, ir: str) -> bytes:
        sizes.append(len(ir))
        return original(self, ir)

    def functions(x: Any) -> tuple[Any, ...]:
        return (
            x.sum(),
            x[::-1].cumsum(),
            x @ x,
            np.outer(x, x).max(axis=0),
            np.exp(x).max(),
            x.cumsum(),
        )

    monkeypatch.setattr(llvm._Compiler, "object_code", counted)
    monkeypatch.setattr(llvm, "_PART", 2000)
    x = np.linspace(0, 1, 50, dtype=np.float32)
    for result, expected in zip(
        rune_jit.jit(functions, fallback="error", device="cpu")(x), functions(x), strict=True
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert len(sizes) > 2


total = 0


def test_while_tracing() -> None:
    """What the trace has changed is put back."""

    def counts(x: Any, interrupt: bool = False) -> Any:
        global total
        total = x.sum()
        if interrupt:
            _thread.interrupt_main()
        return x * 2

    f = rune_jit.jit(counts)
    with pytest.raises(KeyboardInterrupt):
        f(np.ones(3), True)
    assert type(total) is int
    np.testing.assert_array_equal(f(np.ones(3)), [2, 2, 2])
    assert total == 3


class Layer:
    def __init__(self) -> None:
        self.weights = np.ones(3)
        self.steps: list[Any] = []


def test_in_segments_objects_hold_values() -> None:
    layer = Layer()

    def train(x: Any, times: int, interrupt: bool) -> Any:
        for i in range(times):
            layer.weights = layer.weights + x * i
            layer.steps.append(layer.weights.sum())
            if interrupt and i == times - 1:
                press_ctrl_c()
            print(float(layer.weights[0]), end="")
        return layer.weights

    f = rune_jit.jit(train)
    f(np.ones(3), 4, False)
    with pytest.raises(KeyboardInterrupt):
        f(np.ones(3), 4, True)
    assert type(layer.weights) is np.ndarray
    np.testing.assert_array_equal(layer.weights, np.full(3, 1.0 + 6 + 6))
    assert len(layer.steps) == 8 and layer.steps[-1] == 39 and type(layer.steps[-1]) is np.float64
    layer.weights = np.ones(3)
    np.testing.assert_array_equal(f(np.ones(3), 4, False), np.full(3, 7.0))


def test_callbacks_of_the_garbage_collector(tmp_path):
    def note(phase, info):
        (tmp_path / "notes").open("a").close()
        open(tmp_path / "notes").close()

    def f(x):
        gc.collect()
        return x + 1

    gc.callbacks.append(note)
    try:
        assert rune_jit.jit(f, fallback="error")(np.ones(3)).tolist() == [2, 2, 2]
    finally:
        gc.callbacks.remove(note)
    assert (tmp_path / "notes").exists()


def test_a_trace_that_an_interrupt_has_left_ends() -> None:
    traces = []

    def f(x: Any) -> Any:
        traces.append(context.current_trace())
        return x.tolist()

    for _ in range(2):
        rune_jit.jit(f)(np.ones(3))
    assert traces[0] is not traces[-1]
    # As if Ctrl-C had come after the last line of a `with` statement.
    left = context.active(traces[-1])
    left.__enter__()
    with open(os.devnull) as file:
        file.read()
    jitted = rune_jit.jit(lambda x: x + 1)
    for _ in range(2):
        np.testing.assert_array_equal(jitted(np.ones(3)), [2.0] * 3)
    assert context.current_trace() is None
    with context.active(traces[0]):
        del left
        gc.collect()
        assert context.current_trace() is traces[0]
    assert context.current_trace() is None
