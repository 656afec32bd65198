"""What the machine can do, measured: copy bandwidth and the rate of multiply-adds."""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def load() -> float:
    """Runnable processes of the last minute; above 0 before a run means a noisy machine."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


class Copy:
    """Copies one warm array to another, on one thread or on every core: what memory allows."""

    def __init__(self, nbytes: int) -> None:
        self.source = np.ones(max(nbytes // 8, 1))
        self.target = np.ones_like(self.source)
        count = cores()
        bounds = np.linspace(0, self.source.size, count + 1).astype(int)
        self._parts = [(self.target[a:b], self.source[a:b]) for a, b in itertools.pairwise(bounds)]
        self._pool = ThreadPoolExecutor(count)

    @property
    def nbytes(self) -> int:
        """Read and written by one call."""
        return 2 * self.source.nbytes

    def one_thread(self) -> None:
        np.copyto(self.target, self.source)

    def all_threads(self) -> None:
        list(self._pool.map(lambda part: np.copyto(*part), self._parts))


def best_seconds(call: Any, rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def copy_bandwidth(nbytes: int = 64 << 20, rounds: int = 15) -> float:
    """Bytes per second, read and written together; the better of one thread and all."""
    copy = Copy(nbytes)
    return copy.nbytes / min(
        best_seconds(copy.one_thread, rounds), best_seconds(copy.all_threads, rounds)
    )


# Multiply-adds in one call of the kernel below: 12 accumulators of 16 floats.
_STEPS = 1 << 20
_FLOPS = _STEPS * 12 * 16 * 2


def _fma_ir() -> str:
    vector = "<16 x float>"
    names = range(12)
    lines = [
        f"declare {vector} @llvm.fma.v16f32({vector}, {vector}, {vector})",
        "define float @fma(float %x) {",
        "entry:",
        f"  %one = insertelement {vector} poison, float %x, i32 0",
        f"  %v = shufflevector {vector} %one, {vector} poison, <16 x i32> zeroinitializer",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(f"  %a{k} = phi {vector} [ %v, %entry ], [ %b{k}, %loop ]" for k in names),
        *(
            f"  %b{k} = call {vector} @llvm.fma.v16f32({vector} %a{k}, {vector} %v, {vector} %v)"
            for k in names
        ),
        "  %next = add i64 %i, 1",
        f"  %more = icmp ult i64 %next, {_STEPS}",
        "  br i1 %more, label %loop, label %end",
        "end:",
        f"  %s0 = fadd {vector} %b0, %b1",
        *(f"  %s{k} = fadd {vector} %s{k - 1}, %b{k + 1}" for k in range(1, 11)),
        f"  %r = extractelement {vector} %s10, i32 0",
        "  ret float %r",
        "}",
    ]
    return "\n".join(lines)


def fma_peak(rounds: int = 8) -> float:
    """float32 operations per second of all cores, a multiply-add counting two."""
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_fma_ir()), machine)
    kernel = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(engine.get_function_address("fma"))
    # One core, alone: several are rarely all free at once on a busy machine.
    return cores() * _FLOPS / best_seconds(lambda: kernel(0.5), rounds)
