"""What a user reads when something goes wrong: the lines of the program, not of rune_jit; refused
devices; slow compilations."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit.backends import compilation, llvm


def run(program: str, **environment: str) -> str:
    """What a program writes to stderr."""
    variables = {k: v for k, v in os.environ.items() if k != "RUNE_JIT_TRACEBACKS"} | environment
    path = Path(variables["SCRIPT"])
    path.write_text(textwrap.dedent(program))
    result = subprocess.run(
        [sys.executable, str(path)], env=variables, capture_output=True, text=True
    )
    return result.stderr


PROGRAMS = {
    "an error of the user's": """
        def helper(x):
            raise ValueError("mine")
        @rune_jit.jit
        def f(x):
            return helper(x)
        f(np.ones(3))
    """,
    "bad shapes": """
        @rune_jit.jit
        def f(x):
            y = x[:2]
            return x + y
        f(np.ones(3))
    """,
    "what NumPy refuses": """
        @rune_jit.jit
        def f(x):
            return np.concatenate([x, x[None]])
        f(np.ones(3))
    """,
    "in segments": """
        @rune_jit.jit
        def f(x):
            if float(x[0]) > 0:
                return np.linalg.inv(x)
        f(np.ones(3))
    """,
    "a refusal": """
        @rune_jit.jit(fallback="error")
        def f(x):
            return x if x[0] > 0 else -x
        f(np.ones(3))
    """,
    "an index at run time": """
        @rune_jit.jit
        def f(x, i):
            return x[i]
        f(np.ones(3), np.array([7]))
    """,
    "a dtype that the device lacks": """
        @rune_jit.jit(device="metal")
        def f(x):
            return x + 1
        f(np.ones(3))
    """,
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_only_lines_of_the_program(case: str, tmp_path: Path) -> None:
    program = "import numpy as np\nimport rune_jit\n" + textwrap.dedent(PROGRAMS[case])
    script = str(tmp_path / "program.py")
    own = os.path.dirname(rune_jit.__file__)
    shown = run(program, SCRIPT=script)
    assert own not in shown and "Traceback" in shown and script in shown
    assert shown.count("Traceback") == 1 or case == "in segments"
    assert own in run(program, SCRIPT=script, RUNE_JIT_TRACEBACKS="1")


def test_own_errors_are_shown_whole(tmp_path: Path) -> None:
    program = """
        import numpy as np, rune_jit
        from rune_jit.calls import compiler
        def broken(*args, **options):
            raise rune_jit.InternalError("a bug")
        compiler.trace_call = broken
        rune_jit.jit(lambda x: x + 1)(np.ones(3))
    """
    shown = run(program, SCRIPT=str(tmp_path / "program.py"))
    assert os.path.dirname(rune_jit.__file__) in shown and "a bug" in shown


def test_handled_errors_keep_their_causes() -> None:
    @rune_jit.jit
    def f(x: Any) -> Any:
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error

    with pytest.raises(ValueError, match="second") as caught:
        f(np.ones(3))
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("device", ["gpu", "GPU", "", "cpus"])
def test_unknown_devices_are_refused_at_once(device: str) -> None:
    with pytest.raises(ValueError, match=r"jit: cannot use device=.*\n.*'cpu', 'metal', 'cuda'"):
        rune_jit.jit(lambda x: x, device=device)


def test_devices_have_names() -> None:
    with pytest.raises(TypeError, match=r"device=1 \(int, not str\)\nhint: the devices are 'cpu'"):
        rune_jit.jit(lambda x: x, device=1)  # type: ignore[arg-type]


def test_slow_compilations_say_what_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "_SLOW", 0.0)

    def large(x: Any) -> Any:
        for i in [*range(30)]:
            x = np.sin(x) + i
        return x

    f = rune_jit.jit(large)
    with pytest.warns(rune_jit.SlowCompilationWarning, match=r"large compiled in \d") as warned:
        f(np.ones(3))
    text = str(warned[0].message)
    assert "operations" in text and f"{Path(__file__).name}:" in text and "passes" in text
    assert warned[0].filename == __file__
    f(np.ones(3))
    assert text.partition("large ")[2] in f.explain()
    silent = rune_jit.jit(large, fallback="silent")
    silent(np.ones(3))
    assert "compiled in" in silent.explain()


def test_slow_segments_say_what_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(x: Any) -> Any:
        x = np.sin(x) * 2
        if x[0].tolist() > 5:
            return x
        return x + 1

    monkeypatch.setattr(compilation, "_SLOW", 0.0)
    f = rune_jit.jit(reads, device="cpu")
    x = np.ones(3)
    with pytest.warns(rune_jit.SlowCompilationWarning, match="reads in a segment compiled") as seen:
        np.testing.assert_allclose(f(x), reads(x))
    line = reads.__code__.co_firstlineno + 1
    assert f"test_tracebacks.py:{line}" in str(seen[0].message)
    assert seen[0].filename == __file__
    assert f.explain().count("\n  a segment compiled in ") == 2
    monkeypatch.setattr(compilation, "_SLOW", 100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(x)


def test_fast_compilations_are_silent(recwarn: pytest.WarningsRecorder) -> None:
    f = rune_jit.jit(lambda x: x + 1)
    f(np.ones(3))
    assert not recwarn.list and "compiled in" not in f.explain()


def test_waiting_for_other_compilations_is_not_slow(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr(compilation, "_SLOW", 0.7)
    f = rune_jit.jit(lambda x: x * 3 + 1)
    f(np.ones(2))  # LLVM is there
    release = threading.Event()

    def hold() -> None:
        with llvm._lock:
            held.set()
            release.wait()

    held = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    timer = threading.Timer(0.8, release.set)
    timer.start()
    f(np.ones(3))
    holder.join()
    assert not recwarn.list


def test_a_handled_refusal_keeps_no_frames_alive():
    class Held:
        pass

    def f(x):
        return [i * x[0] for i in range(int(x.sum()))]

    jitted = rune_jit.jit(f)

    def caller():
        held = Held()
        jitted(np.ones(3))
        return weakref.ref(held)

    gc.disable()
    try:
        assert caller()() is None
    finally:
        gc.enable()
