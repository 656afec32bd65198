"""The first call of a workload in a fresh process, stage by stage; prints JSON.

`first_call.py NAME total` times the import and one call; `first_call.py NAME jax` the same of JAX,
whose import loads its compiler; `first_call.py NAME stages` goes through the stages one at a time.
Run with RUNE_JIT_CACHE_DIR set to an empty folder for a cold cache, and again for a warm one; with
RUNE_JIT_TIME=1 the passes print their own times to stderr. NumPy's import is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np  # noqa: F401
import workloads

marks: dict[str, float] = {}


def timed(stage: str, call: Any) -> Any:
    start = time.perf_counter()
    result = call()
    marks[stage] = (time.perf_counter() - start) * 1e3
    return result


def import_rune() -> Any:
    import rune_jit

    return rune_jit


def load_llvm() -> None:
    from rune_jit.backends import llvm as _llvm

    _llvm.compile_module("", [], cache=False)


def jax_call(workload: workloads.Workload) -> None:
    import peers

    timed("first call", timed("import", peers.Jax).prepare(workload))


def stages(workload: workloads.Workload) -> None:
    jitted = import_rune().jit(workload.fn, fallback="error")
    timed("trace", lambda: jitted.trace(*workload.args))
    lowered = timed("trace and lower", lambda: jitted.lower(*workload.args))
    timed("render", lowered.source)
    timed("load LLVM", load_llvm)
    compiled = timed("render and compile", lowered.compile)
    timed("first run", lambda: compiled(*workload.args))
    timed("second run", lambda: jitted(*workload.args))


def total(workload: workloads.Workload) -> None:
    jitted = timed("import", import_rune).jit(workload.fn, fallback="error")
    timed("first call", lambda: jitted(*workload.args))


MODES = {"total": total, "jax": jax_call, "stages": stages}

if __name__ == "__main__":
    MODES[sys.argv[2]](workloads.build(sys.argv[1]))
    print(json.dumps(marks))
