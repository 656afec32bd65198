"""LLVM loaded while the package is imported: when it is, forks, the end of the process, errors."""

import os
import subprocess
import sys
import textwrap

import pytest

from rune_jit import _core

_, CORES, *_ = _core.options_at_import()
pytestmark = pytest.mark.skipif(CORES == 1, reason="LLVM is not loaded ahead on one core")

IS_LOADED = """
    import threading
    import rune_jit
    for thread in threading.enumerate():
        if thread.name.startswith("rune_jit"):
            thread.join()
    from rune_jit.backends import llvm as _llvm
    print(_llvm._state is not None)
"""
CALL = """
    import numpy as np
    f = rune_jit.jit(lambda x: x * 2 + 1, fallback="error")
    assert f(np.arange(5.0))[4] == 9
"""


def run(program, cache_dir, *folders, **options):
    """What a process of this program prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*folders, *sys.path]),
            "RUNE_JIT_CACHE_DIR": str(cache_dir),
            "RUNE_JIT_NUM_THREADS": "2",
            "RUNE_JIT_DEVICE": "cpu",
            **options,
        },
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_it_is_loaded_where_it_is_likely_to_be_needed(tmp_path):
    assert run(IS_LOADED, tmp_path) == ["True"]
    assert run(IS_LOADED, tmp_path, RUNE_JIT_NUM_THREADS="1") == ["False"]
    assert run(IS_LOADED, tmp_path, RUNE_JIT_DEVICE="interpreter") == ["False"]
    assert run(IS_LOADED, tmp_path, RUNE_JIT_DISABLE="1") == ["False"]
    assert run(IS_LOADED, tmp_path, RUNE_JIT_DISABLE="2") == ["False"]  # an error of the first call
    # One that has filled the cache finds its programs there; another may not.
    assert run(IS_LOADED + CALL, tmp_path) == ["True"]
    assert run(IS_LOADED + CALL, tmp_path) == ["False"]
    assert run(IS_LOADED + CALL, tmp_path, RUNE_JIT_CACHE="0") == ["True"]
    assert run(IS_LOADED, tmp_path) == ["True"]


def test_a_script_that_has_changed_is_another_command(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(IS_LOADED + CALL))
    program = f"import runpy, sys; sys.argv = [{str(script)!r}]; runpy.run_path({str(script)!r})"
    assert run(program, tmp_path) == ["True"]
    assert run(program, tmp_path) == ["False"]
    os.utime(script, (0, 0))
    assert run(program, tmp_path) == ["True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_and_end_while_it_is_loaded(tmp_path):
    assert run("import rune_jit", tmp_path) == []
    program = f"""
    import os
    import rune_jit
    child = os.fork()
    {textwrap.indent(textwrap.dedent(CALL), "    ")}
    if child:
        print(os.waitpid(child, 0)[1])
    """
    # Python 3.12 warns of forks in processes that have threads.
    assert run(program, tmp_path, PYTHONWARNINGS="ignore::DeprecationWarning") == ["0"]


def test_errors_are_raised_by_the_call_that_needs_it(tmp_path):
    (tmp_path / "llvmlite").mkdir()
    (tmp_path / "llvmlite" / "__init__.py").write_text("")
    program = f"""
    {IS_LOADED}
    try:
        {textwrap.indent(textwrap.dedent(CALL), "        ").strip()}
    except Exception as error:
        print(*str(error).split())
    """
    loaded, *message = run(program, tmp_path, str(tmp_path))
    assert loaded == "False"
    assert "libllvmlite" in " ".join(message)
