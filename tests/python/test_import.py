"""Importing the package has no effect that a user or another library could notice. It loads no
compiler, nothing that only arrays in chunks need, and nothing that only calls need."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import run_program

import rune_jit
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
    late = {"llvmlite", "ml_dtypes", "platformdirs", "multiprocessing", "rune_jit.chunked.arrays"}
    late |= {f"rune_jit.{name}" for name in ("calls.running", "capture", "rules", "eager")}
    rune_jit.jit(max)  # defining a function loads nothing more
    print(differ, sorted(loaded & late), sorted((sys.modules.keys() - loaded_before) - loaded))
"""


def test_import_has_no_side_effects(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    done = run_program(PROGRAM, RUNE_JIT_CACHE_DIR=cache, RUNE_JIT_CALIBRATION="")
    assert (done.stdout, done.stderr) == ("[] [] []\n", "")
    assert list(tmp_path.iterdir()) == []


NARROW_FLOATS = """
    import sys
    import numpy as np
    import rune_jit

    def doubled(x, dtype):
        try:
            return (x * 2).astype(dtype).tolist()
        except TypeError as error:
            return str(error)

    for dtype in ("float32", "bfloat16"):
        print(rune_jit.jit(doubled)(np.ones(2), dtype))
    print("ml_dtypes" in sys.modules)
    import ml_dtypes
    for x, dtype in ((np.ones(2), "bfloat16"), (np.ones(2, ml_dtypes.bfloat16), "float32")):
        print(rune_jit.jit(doubled)(x, dtype))
"""


def test_calls_load_no_dtypes_of_other_packages() -> None:
    """As with NumPy, the name "bfloat16" is known from the import of ml_dtypes on."""
    done = run_program(NARROW_FLOATS)
    lines = ["[2.0, 2.0]", "data type 'bfloat16' not understood", "False", *["[2.0, 2.0]"] * 2, ""]
    assert (done.stdout, done.stderr) == ("\n".join(lines), "")


ARRAYS_FIRST = """
    import pickle, sys
    import numpy as np
    import rune_jit
    x = pickle.loads(bytes.fromhex(sys.argv[1]))
    print(repr(x + 1), isinstance(x, rune_jit.Array))
    print(set(rune_jit.__all__) - {name for name in dir(rune_jit) if hasattr(rune_jit, name)})
"""


def test_arrays_of_pickles_have_operators() -> None:
    """What they need is not loaded yet."""
    pickled = pickle.dumps(rune_jit.array([1.0, 2.0])).hex()
    done = run_program(ARRAYS_FIRST.replace("sys.argv[1]", repr(pickled)))
    assert (done.stdout, done.stderr) == ("Array([2., 3.]) True\nset()\n", "")


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("nm") is None, reason="needs nm")
@pytest.mark.skipif("metal_emulator" in _core.__file__, reason="this build shows the emulator")
def test_extension_shows_nothing_to_other_libraries() -> None:
    """With a static libstdc++ that is visible, the process would have parts of two of them."""
    nm = ["nm", "--dynamic", "--defined-only", _core.__file__]
    shown = subprocess.run(nm, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[-1] for line in shown] == ["PyInit__core"]
