"""Long compilations show what they are doing, and leave nothing behind."""

from __future__ import annotations

import hashlib
import io
import signal
import threading
import time
import types
from typing import Any

import numpy as np
import pytest
from threads import in_threads

import rune_jit
from rune_jit.backends import llvm, object_cache, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()
    # pytest sets sys.stderr again before the test.
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=found))
    monkeypatch.setattr(progress, "_AFTER", 0.05)
    monkeypatch.setattr(progress, "_EVERY", 0.05)
    return found


def after(lines: str) -> str:
    """What a terminal shows after this has been written to it."""
    return lines.rpartition(progress._CLEAR)[2]


def slow_to_trace(x: Any) -> Any:
    hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)  # takes a while, when it is traced
    return x + 1


def test_it_names_the_function_and_the_line(terminal: Terminal) -> None:
    f = rune_jit.jit(slow_to_trace, device="cpu")
    np.testing.assert_array_equal(f(np.ones(3)), 2)
    line = slow_to_trace.__code__.co_firstlineno + 1
    written = terminal.getvalue()
    assert f"compiling slow_to_trace: tracing, at test_progress.py:{line} (" in written
    assert after(written) == ""
    assert not any(thread.name == "rune_jit progress" for thread in threading.enumerate())


def test_it_counts_the_parts_that_llvm_compiles(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = llvm._Compiler.object_code

    def slow(self: Any, ir: str) -> bytes:
        time.sleep(0.2)
        return original(self, ir)

    monkeypatch.setattr(llvm._Compiler, "object_code", slow)
    monkeypatch.setattr(object_cache.Entry, "read", lambda self: None)
    monkeypatch.setattr(llvm, "_PART", 2000)

    def f(x: Any) -> Any:
        return x.sum(), x.cumsum(), np.outer(x, x).max(axis=0), np.exp(x).max()

    rune_jit.jit(f, device="cpu")(np.linspace(0, 1, 50, dtype=np.float32))
    assert "compiling f: making machine code, part 2 of " in terminal.getvalue()
    assert after(terminal.getvalue()) == ""


def test_what_is_fast_shows_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_AFTER", 2.0)
    rune_jit.jit(lambda x: x + 1, device="cpu")(np.ones(3))
    assert terminal.getvalue() == ""


def test_files_get_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for stderr in (io.StringIO(), None, object()):
        with monkeypatch.context() as patch:
            patch.setattr(progress, "sys", types.SimpleNamespace(stderr=stderr))
            patch.setattr(progress, "_AFTER", 0.01)
            rune_jit.jit(slow_to_trace, device="cpu")(np.ones(3))
            if isinstance(stderr, io.StringIO):
                assert stderr.getvalue() == ""


def test_ctrl_c_takes_the_line_away(terminal: Terminal) -> None:
    def interrupted(x: Any) -> Any:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)
        signal.raise_signal(signal.SIGINT)
        return x

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            rune_jit.jit(interrupted, device="cpu")(np.ones(3))
    finally:
        signal.signal(signal.SIGINT, before)
    assert "compiling interrupted" in terminal.getvalue() and after(terminal.getvalue()) == ""
    f = rune_jit.jit(slow_to_trace, device="cpu")
    f(np.ones(3))  # the next one is shown, too
    assert "compiling slow_to_trace" in terminal.getvalue()


def test_two_threads_share_the_line(terminal: Terminal) -> None:
    functions = [rune_jit.jit(slow_to_trace, device="cpu") for _ in range(3)]
    in_threads(lambda i: functions[i](np.ones(i + 1)), range(3))
    assert after(terminal.getvalue()) == ""
