"""The first call of a workload in a fresh process, stage by stage; prints JSON.

`first_call.py NAME total` times one call; `first_call.py NAME stages` goes through the stages one
at a time. Run with RUNE_JIT_CACHE_DIR set to an empty folder for a cold cache, and again for a warm
one; with RUNE_JIT_TIME=1 the passes print their own times to stderr. Imports are not counted.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np  # noqa: F401
import workloads

import rune_jit
from rune_jit import _llvm


def main(name: str, mode: str) -> None:
    workload = workloads.build(name)
    jitted = rune_jit.jit(workload.fn, fallback="error")
    marks: dict[str, float] = {}

    def timed(stage: str, call):
        start = time.perf_counter()
        result = call()
        marks[stage] = (time.perf_counter() - start) * 1e3
        return result

    if mode == "total":
        timed("first call", lambda: jitted(*workload.args))
    else:
        timed("trace", lambda: jitted.trace(*workload.args))
        lowered = timed("trace and lower", lambda: jitted.lower(*workload.args))
        timed("render", lambda: lowered.source())
        timed("load LLVM", lambda: _llvm.compile_module("", [], cache=False))
        compiled = timed("render and compile", lambda: lowered.compile())
        timed("first run", lambda: compiled(*workload.args))
    timed("second run", lambda: jitted(*workload.args))
    print(json.dumps(marks))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
