"""Jitted functions called from many threads, in forked processes, and first of all in a process."""

from __future__ import annotations

import _thread
import concurrent.futures
import contextlib
import functools
import os
import pathlib
import threading
from typing import Any

import numpy as np
import pytest
from processes import output_of
from threads import in_threads

import rune_jit
from rune_jit import TracerLeakError, UnsupportedOpError
from rune_jit.calls.running import Runner

X = np.arange(4.0)


@pytest.fixture(params=["cpu", "interpreter"])
def jit(request: pytest.FixtureRequest) -> Any:
    """rune_jit.jit on a device, raising for what cannot be traced."""
    return functools.partial(rune_jit.jit, device=request.param, fallback="error")


def test_threads_call_one_function(jit: Any) -> None:
    small = jit.keywords["device"] == "interpreter"
    x = np.random.default_rng(0).random(3000 if small else 300_000).astype(np.float32)

    def f(v: Any) -> Any:
        return np.sin(v) * 2, v.max(), (v * v).reshape(100, -1).sum(1)

    jitted, expected = jit(f), f(x)

    def work(i: int) -> None:
        for _ in range(5 if small else 20):
            for got, want in zip(jitted(x), expected, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
            jitted(x[: 100 * (i + 1)])  # a signature of its own

    in_threads(work, range(10))
    assert jitted.cache_info().misses == 11


def test_tracers_do_not_cross_threads(jit: Any) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        f = jit(lambda x: pool.submit(lambda: x + 1).result(60))
        with pytest.raises(UnsupportedOpError, match="ThreadPoolExecutor: cannot trace"):
            f(np.ones(3))

    def unnoticed(x: Any) -> Any:
        caught: list[Exception] = []
        done = _thread.allocate_lock()
        done.acquire()

        def work() -> None:
            try:
                caught.append(x + 1)
            except TracerLeakError as error:
                caught.append(error)
            done.release()

        _thread.start_new_thread(work, ())
        done.acquire()
        raise caught[0]

    with pytest.raises(TracerLeakError):
        jit(unnoticed)(np.ones(3))


def test_the_first_call_of_a_process_from_many_threads() -> None:
    """What is made once a process is made without deadlock (imports hand the interpreter over)."""
    code = (
        "import threading, numpy as np, rune_jit\n"
        "f = rune_jit.jit(lambda x: x + 1, device='cpu')\n"
        "results = []\n"
        "work = lambda: results.append(f(np.ones(8)).sum())\n"
        "threads = [threading.Thread(target=work) for _ in range(12)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(results == [16.0] * 12)"
    )
    for _ in range(3):
        assert output_of(code) == "True\n"


def test_threads_replace_programs_that_others_look_up(tmp_path: pathlib.Path) -> None:
    """The end of a program may run Python code, and with it another thread."""
    program = "import threads_program"
    assert output_of(program, RUNE_JIT_CACHE_DIR=str(tmp_path)) == "done\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_after_use() -> None:
    code = (
        "import os, numpy as np, rune_jit\n"
        "x = np.random.rand(300_000).astype(np.float32)\n"
        "f = rune_jit.jit(lambda x: np.sqrt(x) * 2, device='cpu')\n"
        "f(x)\n"
        "def ok():\n"
        "    g = rune_jit.jit(lambda x: np.sqrt(x) + 3, device='cpu')\n"
        "    return np.array_equal(f(x), np.sqrt(x) * 2) and np.array_equal(g(x), np.sqrt(x) + 3)\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0 if ok() else 3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), ok())"
    )
    assert output_of(code) == "0 True\n"


POOL = concurrent.futures.ThreadPoolExecutor(1)


class _Worker(threading.Thread):
    def __init__(self, x: Any) -> None:
        super().__init__()
        self.x = x

    def run(self) -> None:
        self.y = np.sin(self.x)


def in_a_pool(x: Any) -> Any:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(np.sin, [x, x + 1]))


def in_a_pool_from_outside(x: Any) -> Any:
    y = x * 2
    return POOL.submit(lambda scale: np.cos(y) * scale, x.max()).result()


def in_a_subclass(x: Any) -> Any:
    worker = _Worker(x * 2)
    worker.start()
    worker.join()
    return worker.y


@pytest.mark.parametrize("function", [in_a_pool, in_a_pool_from_outside, in_a_subclass])
@pytest.mark.parametrize("in_segments", [False, True])
def test_work_for_other_threads(function: Any, in_segments: bool) -> None:
    def f(x: Any) -> Any:
        if in_segments and x[0].item() < 0:
            return x
        return function(x)

    POOL.submit(len, []).result()  # its thread runs already
    jitted = rune_jit.jit(f, fallback="silent")
    for i in range(3):
        x = np.arange(4.0) + i
        got, want = jitted(x), f(x)
        assert type(got) is np.ndarray
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_lists_that_other_threads_fill() -> None:
    def f(x: Any) -> Any:
        found = [x * 2] if x[0].item() >= 0 else []
        thread = threading.Thread(target=lambda held: held.append(held[0] + 1), args=(found,))
        thread.start()
        thread.join()
        return found

    jitted = rune_jit.jit(f, fallback="silent")
    for _ in range(2):
        got = jitted(np.arange(3.0))
        assert [type(x) for x in got] == [np.ndarray] * 2
        np.testing.assert_array_equal(got, f(np.arange(3.0)))


def test_two_threads_end_one_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run the last of NumPy's calls at the same time."""
    barrier = threading.Barrier(2, timeout=5)
    on_numpy = Runner.eager_call

    def together(runner: Any, *args: Any) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):
            barrier.wait()
        return on_numpy(runner, *args)

    @rune_jit.jit
    def f(x: Any, held: dict[str, Any]) -> Any:
        held["x"] = x * 2
        return x + 1

    f(X, {"x": X})
    f(X, {"x": X})
    monkeypatch.setattr(Runner, "eager_call", together)
    held = [{"x": X}, {"x": X}]

    def work(i: int) -> None:
        for k in range(8):
            np.testing.assert_array_equal(f(X + k, held[i]), X + k + 1)
            np.testing.assert_array_equal(held[i]["x"], 2 * (X + k))

    in_threads(work, range(2))
