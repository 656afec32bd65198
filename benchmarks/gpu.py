"""Measures rune_jit on a GPU against torch, torch.compile, JAX and CuPy on the same workloads; on
Metal against MLX.

    python benchmarks/run.py --device cuda    # prints the table, writes results_cuda.md
    python benchmarks/run.py --device metal   # writes results_metal.md

The first axis is `SCALE` times as long as on the CPU. Arguments lie on the device before anything
is timed; a time is that of one call among many that are issued without waiting between them. A copy
of as many bytes as arguments and results have, half read and half written, is timed in the same
way, in turns with the contestants.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import peers
import workloads
from report import geometric_mean
from workloads import Workload

SCALE = 4
# The arguments whose first axis is longer, where these are not all that are as long as the first.
_SCALED: dict[str, tuple[int, ...]] = {
    "matmul_512": (0,),
    "matmul_1024": (0,),
    "matmul_2048": (0,),
    "matmul_bias_relu": (0,),
    "mlp": (0,),
    "transpose_add": (),
    "gather": (1,),
    "tiny_call": (),
    "many_arguments": (),
}
_SECONDS = 0.15  # of a contestant's samples
_SAMPLE_SECONDS = 0.01
_LEAST_COPY_BYTES = 1 << 20  # with fewer a copy says nothing about memory


def build(name: str, *, tiny: bool = False) -> Workload:
    """The workload, scaled; `bytes` counts its arguments and results."""
    workload = workloads.build(name, tiny=tiny)
    long = workload.args[0].shape[:1]
    scaled = _SCALED.get(name, [i for i, a in enumerate(workload.args) if a.shape[:1] == long])
    args = tuple(
        np.concatenate([a] * SCALE) if i in scaled else a for i, a in enumerate(workload.args)
    )
    results = _leaves(workload.fn(*args))
    moved = sum(np.asarray(a).nbytes for a in (*args, *results))
    return dataclasses.replace(workload, args=args, bytes=moved)


def _leaves(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


class RuneJit:
    name = "rune_jit"

    def __init__(self, device: str) -> None:
        import rune_jit

        self._rune, self._device = rune_jit, device
        self.version = rune_jit.__version__

    def prepare(self, workload: Workload) -> Callable[[], Any]:
        run = self._rune.jit(workload.fn, fallback="error")
        args = [self._rune.asarray(a, device=self._device) for a in workload.args]
        return lambda: run(*args)

    def copy(self, nbytes: int) -> Callable[[], Any]:
        """A call that reads and writes so many bytes together."""
        x = self._rune.asarray(np.ones(nbytes // 8, np.float32), device=self._device)
        run = self._rune.jit(lambda x: -x, fallback="error")
        return lambda: run(x)

    def wait(self, result: Any) -> None:
        _leaves(result)[0].block_until_ready()

    def to_numpy(self, result: Any) -> np.ndarray:
        return np.asarray(result)


class Torch:
    name = "torch"

    def __init__(self, device: str) -> None:
        import torch

        self._torch, self._device = torch, device
        self.version = torch.__version__

    def _function(self, workload: Workload) -> Callable[..., Any]:
        torch = self._torch
        if workload.name == "scatter_add":
            return lambda values, index, bins: bins.index_add(0, index, values)
        names = peers._TorchNumPy(torch)
        return peers.with_globals(workload.fn, np=names, as_float32=lambda x: x.to(torch.float32))

    def prepare(self, workload: Workload) -> Callable[[], Any]:
        torch, fn = self._torch, self._function(workload)
        args = [torch.from_numpy(np.array(a)).to(self._device) for a in workload.args]

        def call() -> Any:
            with torch.no_grad():
                return fn(*args)

        return call

    def wait(self, result: Any) -> None:
        self._torch.cuda.synchronize()

    def to_numpy(self, result: Any) -> np.ndarray:
        return np.asarray(result.cpu().numpy())


class TorchCompile(Torch):
    name = "torch.compile"

    def _function(self, workload: Workload) -> Callable[..., Any]:
        if workload.name == "mandelbrot":
            raise peers.Unsupported("needs minutes to compile the unrolled loop")
        self._torch._dynamo.reset()
        return self._torch.compile(super()._function(workload), dynamic=False)


class Jax:
    name = "jax"

    def __init__(self, device: str) -> None:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")
        self._jax, self._jnp, self._device = jax, jnp, jax.devices(device)[0]
        self.version = jax.__version__

    def prepare(self, workload: Workload) -> Callable[[], Any]:
        jnp = self._jnp
        scatter = workload.name == "scatter_add"
        fn = peers._jax_scatter(jnp) if scatter else peers.with_globals(workload.fn, np=jnp)
        args = [self._jax.device_put(a, self._device) for a in workload.args]
        run = self._jax.jit(fn)
        return lambda: run(*args)

    def wait(self, result: Any) -> None:
        self._jax.block_until_ready(result)

    def to_numpy(self, result: Any) -> np.ndarray:
        return np.asarray(result)


class CuPy:
    name = "cupy"

    def __init__(self, device: str) -> None:
        import cupy

        self._cupy = cupy
        self.version = cupy.__version__

    def prepare(self, workload: Workload) -> Callable[[], Any]:
        fn = peers.with_globals(workload.fn, np=self._cupy)
        args = [self._cupy.asarray(a) for a in workload.args]
        return lambda: fn(*args)

    def wait(self, result: Any) -> None:
        self._cupy.cuda.get_current_stream().synchronize()

    def to_numpy(self, result: Any) -> np.ndarray:
        return self._cupy.asnumpy(result)


class Mlx:
    name = "mlx"

    def __init__(self, device: str) -> None:
        import importlib.metadata

        import mlx.core as mx

        self.version = importlib.metadata.version("mlx")
        mx.set_default_device(mx.gpu)
        self._mx = mx

    def prepare(self, workload: Workload) -> Callable[[], Any]:
        mx = self._mx
        fn = peers.with_globals(workload.fn, np=mx, as_float32=lambda x: x.astype(mx.float32))
        if workload.name == "scatter_add":
            fn = peers._jax_scatter(mx)
        args = [mx.array(a, getattr(mx, a.dtype.name)) for a in workload.args]
        mx.eval(args)
        run = mx.compile(fn)

        def call() -> Any:
            result = run(*args)
            mx.async_eval(result)
            return result

        return call

    def wait(self, result: Any) -> None:
        self._mx.eval(result)

    def to_numpy(self, result: Any) -> np.ndarray:
        return np.asarray(result)


def _peers(device: str) -> tuple[Any, ...]:
    return (Mlx,) if device == "metal" else (Torch, TorchCompile, Jax, CuPy)


def _runs_on(device: str, workload: Workload) -> bool:
    """Metal has no float64."""
    arrays = (*workload.args, *_leaves(workload.fn(*workload.args)))
    return device != "metal" or all(np.asarray(a).dtype != np.float64 for a in arrays)


def _sample(contestant: Any, call: Callable[[], Any], repeats: int) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    for _ in range(repeats):
        result = call()
    contestant.wait(result)
    return (time.perf_counter() - start) / repeats


def _repeats(contestant: Any, call: Callable[[], Any]) -> int:
    """Calls of a sample."""
    once = [_sample(contestant, call, 1) for _ in range(3)][-1]
    return max(1, int(_SAMPLE_SECONDS / once))


def measure(
    name: str, contestants: list[Any], tiny: bool = False
) -> tuple[dict[str, float], dict[str, str]]:
    """Seconds of a call by contestant, in turns with a "copy" of as many bytes if these are not
    few, and why others have none."""
    # Not in run.py's way: it imports this module.
    from run import disagreement

    workload = build(name, tiny=tiny)
    expected = workload.fn(*workload.args)
    calls: dict[str, tuple[Any, Callable[[], Any], int]] = {}
    failures = {}
    for contestant in contestants:
        try:
            call = contestant.prepare(workload)
            found = [contestant.to_numpy(x) for x in _leaves(call())]
            problem = disagreement(workload, found, expected, contestant.name == "rune_jit")
            if problem:
                failures[contestant.name] = problem
                continue
            calls[contestant.name] = contestant, call, _repeats(contestant, call)
        except Exception as error:  # a contestant that fails is reported and left out
            failures[contestant.name] = f"{type(error).__name__}: {error}".splitlines()[0]
    if workload.bytes >= _LEAST_COPY_BYTES:
        rune = contestants[0]
        copy = rune.copy(workload.bytes)
        calls["copy"] = rune, copy, _repeats(rune, copy)
    best = dict.fromkeys(calls, math.inf)
    end = time.perf_counter() + (0 if tiny else _SECONDS * len(calls))
    while True:
        for label, (contestant, call, repeats) in calls.items():
            best[label] = min(best[label], _sample(contestant, call, repeats))
        if time.perf_counter() > end:
            return best, failures


def card(device: str) -> str:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    if device == "metal":
        query = ["sysctl", "-n", "machdep.cpu.brand_string"]
    try:
        return subprocess.run(query, capture_output=True, text=True).stdout.splitlines()[0]
    except (OSError, IndexError):
        return "unknown card"


def run(device: str, names: list[str], output: Path | None, tiny: bool, with_peers: bool) -> int:
    """Prints and writes the table; the number of workloads that rune_jit got wrong."""
    contestants: list[Any] = [RuneJit(device)]
    missing = {}
    for adapter in _peers(device) if with_peers else ():
        try:
            contestants.append(adapter(device))
        except Exception as error:  # a broken installation must not end the run
            missing[adapter.name] = f"{type(error).__name__}: {error}".splitlines()[0]
    labels = [c.name for c in contestants]
    names = [n for n in names if _runs_on(device, workloads.build(n, tiny=True))]
    rows, ratios, wrong = [], [], 0
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best, failures = measure(name, contestants, tiny)
        wrong += "rune_jit" in failures
        others = [best[label] for label in labels[1:] if label in best]
        ratio = best["rune_jit"] / min(others) if others and "rune_jit" in best else None
        if ratio:
            ratios.append(ratio)
        copy = best.get("copy")
        limit = copy / best["rune_jit"] if copy and "rune_jit" in best else None
        cells = [f"{best[label] * 1e6:.1f}" if label in best else "-" for label in labels]
        cells += [f"{x:.2f}" if x is not None else "-" for x in (ratio, limit)]
        rows.append([name, *cells])
        why = "; ".join(f"{label}: {text[:90]}" for label, text in failures.items())
        print("  ".join(rows[-1]), why, file=sys.stderr, flush=True)
    header = ["workload", *(f"{label}, us" for label in labels), "over best peer", "of copying"]
    lines = [
        "# Benchmarks on a GPU",
        "",
        f"{datetime.date.today().isoformat()}, {card(device)}. `python benchmarks/run.py --device "
        f"{device}`: microseconds of a call among many without a wait between them; arrays "
        f"{SCALE} times as long as on the CPU. *of copying*: the time of a copy that reads and "
        "writes as many bytes as arguments and results have together, measured in the same way and "
        "in turns with the others, over rune_jit's.",
        "",
        ", ".join(f"{c.name} {c.version}" for c in contestants)
        + "".join(f"; without {name} ({why})" for name, why in missing.items()),
        "",
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    if ratios:
        lines += ["", f"Geometric mean over the best peer: {geometric_mean(ratios):.2f}."]
    text = "\n".join(lines) + "\n"
    print(text)
    if output:
        output.write_text(text)
    return wrong
