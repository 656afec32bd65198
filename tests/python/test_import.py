"""Importing the package has no effect that a user or another library could notice. It loads no
compiler, and nothing that only arrays in chunks need."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import run_program

from rune_jit import _core

PROGRAM = """
    import atexit, gc, os, signal, sys, threading, warnings
    import numpy, optree  # optree registers exit handlers of its own

    def names(folder):
        return os.listdir(folder) if os.path.isdir(folder) else []

    def state():
        return {
            "threads": (threading.active_count(), len(names("/proc/self/task"))),
            "exit handlers": atexit._ncallbacks(),
            "signals": [signal.getsignal(s) for s in signal.valid_signals()],
            "environment": dict(os.environ),
            "warnings": list(warnings.filters),
            "hooks": (sys.excepthook, sys.displayhook, sys.meta_path[:], sys.path_hooks[:]),
            "path": sys.path[:],
            "limits": (sys.getrecursionlimit(), gc.get_threshold(), gc.callbacks[:]),
            "trace": (sys.gettrace(), sys.getprofile(), threading.gettrace()),
            "floats": (numpy.geterr(), numpy.get_printoptions()),
            "files": set(names("/proc/self/fd")),
        }

    before, loaded_before = state(), set(sys.modules)
    import rune_jit
    after = state()
    differ = [name for name in before if before[name] != after[name]]
    loaded = sys.modules.keys() - loaded_before
    late = {"llvmlite", "platformdirs", "multiprocessing", "rune_jit.chunked.arrays"}
    print(differ, sorted(loaded & late))
"""


def test_import_has_no_side_effects(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    done = run_program(PROGRAM, RUNE_JIT_CACHE_DIR=cache, RUNE_JIT_CALIBRATION="")
    assert (done.stdout, done.stderr) == ("[] []\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("nm") is None, reason="needs nm")
@pytest.mark.skipif("metal_emulator" in _core.__file__, reason="this build shows the emulator")
def test_extension_shows_nothing_to_other_libraries() -> None:
    """With a static libstdc++ that is visible, the process would have parts of two of them."""
    nm = ["nm", "--dynamic", "--defined-only", _core.__file__]
    shown = subprocess.run(nm, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[-1] for line in shown] == ["PyInit__core"]
