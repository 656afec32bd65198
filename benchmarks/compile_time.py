"""How the time from a Python function to machine code grows with the size of its graph.

    python benchmarks/compile_time.py                         # all programs, 1,000 to 100,000 nodes
    python benchmarks/compile_time.py --program chain --nodes 1000 10000 --compile 10000

Each program is traced, lowered and, up to `--compile` nodes, compiled in a fresh process without
the disk cache. The table has the milliseconds of each stage and pass, the largest resident memory,
and the slope between the last two sizes: 1 where time is linear in the number of nodes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# Stages that take less at every size are left out of the table.
LEAST_MS = 20.0


def chain(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """One elementwise expression; each step reads the one before it twice."""

    def fn(x):
        for i in range(steps):
            x = np.where(x > i, x * np.float32(0.5) + np.float32(i), x)
        return x

    return fn, (np.ones(1 << 12, np.float32),)


def loop(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Equal steps with a reduction in each, which the next step needs."""

    def fn(x):
        for _ in range(steps):
            x = x - x.mean() * np.float32(0.5)
        return x

    return fn, (np.ones(1 << 12, np.float32),)


def slices(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Equal steps, each of which reads a part of its own of an argument and sums it."""

    def fn(x, a):
        for i in range(steps):
            x = x * (a[i] * x).sum()
        return x

    return fn, (np.ones(64, np.float32), np.ones((steps, 64), np.float32))


def stencil(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Steps of a stencil, each of which writes the inner elements in place."""

    def fn(x):
        for _ in range(steps):
            x[1:-1] = (x[:-2] + x[2:]) * np.float32(0.25) + x[1:-1] * np.float32(0.5)
        return x

    return fn, (np.ones(1 << 12, np.float32),)


def rnn(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Steps of a recurrent network: a product of matrices and tanh."""

    def fn(h, w, xs):
        for i in range(steps):
            h = np.tanh(h @ w + xs[i])
        return h

    return fn, (
        *(np.ones((64, 64), np.float32) for _ in range(2)),
        np.ones((steps, 64), np.float32),
    )


def life(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Steps of Conway's game of life by numpy.roll."""

    def fn(x):
        for _ in range(steps):
            n = sum(np.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
            x = ((n == 3) | ((x == 1) & (n == 2))).astype(x.dtype)
        return x

    return fn, (np.ones((64, 64), np.uint8),)


def tree(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A balanced sum of many terms."""

    def fn(x):
        terms = [x * np.float32(i) for i in range(steps)]
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            terms = [a + b for a, b in pairs] + terms[len(terms) & ~1 :]
        return terms[0]

    return fn, (np.ones(1 << 12, np.float32),)


def outputs(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Many small results of one argument."""

    def fn(x):
        return [np.sqrt(x + np.float32(i)) for i in range(steps)]

    return fn, (np.ones(16, np.float32),)


def stack(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Many computed operands of one numpy.stack."""

    def fn(x):
        return np.stack([x * x + np.float32(i) for i in range(steps)])

    return fn, (np.ones(64, np.float32),)


def concatenate(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Many computed operands of several lengths along the last axis."""

    def fn(x):
        return np.concatenate([x[: 8 + i % 3] * np.float32(i) for i in range(steps)])

    return fn, (np.ones(16, np.float32),)


PROGRAMS = {
    f.__name__: f
    for f in (chain, loop, slices, stencil, rnn, life, tree, outputs, stack, concatenate)
}


def steps_for(name: str, nodes: int) -> int:
    """How many steps make a graph of about this many nodes."""
    import rune_jit

    def size(steps: int) -> int:
        fn, args = PROGRAMS[name](steps)
        return len(rune_jit.jit(fn).trace(*args))

    few, more = size(16), size(48)
    return max(2, round(nodes * 32 / (more - few)))


def measure(name: str, nodes: int, compile_it: bool) -> None:
    """In the child: prints the stages' milliseconds as JSON; the passes print their own."""
    import rune_jit
    from rune_jit.backends import llvm as _llvm

    fn, args = PROGRAMS[name](steps_for(name, nodes))
    jitted = rune_jit.jit(fn, fallback="error")
    marks: dict[str, float] = {}

    def timed(stage: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = call()
        marks[stage] = (time.perf_counter() - start) * 1e3
        return result

    call = jitted._runner.take_apart(args, {})
    traced = timed("trace", lambda: jitted._runner.compiler.trace(call))
    print("-- passes", file=sys.stderr, flush=True)
    lowered = timed("lower, all passes", lambda: jitted._runner.compiler.lower(call, traced))
    print("-- end", file=sys.stderr, flush=True)
    marks["nodes"] = len(traced.graph)
    marks["kernels"] = lowered.cost_analysis()["kernels"]
    if compile_it:
        timed("load LLVM", lambda: _llvm.compile_module("", [], cache=False))
        timed("render", lowered.source)
        executable = timed("render and compile", lowered.compile)
        timed("run", lambda: executable.run(args))
    marks["peak MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(marks))


def run_child(name: str, nodes: int, compile_it: bool, limit: float) -> dict[str, float] | None:
    """The marks of one program; None if it takes longer than `limit` seconds."""
    environment = os.environ | {"RUNE_JIT_TIME": "1", "RUNE_JIT_CACHE": "0"}
    command = [sys.executable, __file__, "--measure", name, str(nodes), str(int(compile_it))]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    marks: dict[str, float] = json.loads(done.stdout)
    passes = done.stderr.split("-- passes\n")[1].split("-- end\n")[0]
    for stage, microseconds in re.findall(r"rune_jit: (\S+) +([\d.]+) us", passes):
        marks[f"  {stage}"] = float(microseconds) / 1e3
    return marks


def table(name: str, by_nodes: dict[int, dict[str, float] | None]) -> str:
    """Markdown: one row a stage, one column a size, and the slope between the last two."""
    sizes = list(by_nodes)
    stages = dict.fromkeys(s for marks in by_nodes.values() for s in marks or {})
    lines = [f"### {name}: {PROGRAMS[name].__doc__}", ""]
    lines.append("| ms | " + " | ".join(f"{n:,} nodes" for n in sizes) + " | slope |")
    lines.append("|---" * (len(sizes) + 2) + "|")
    for stage in stages:
        values = [(marks or {}).get(stage) for marks in by_nodes.values()]
        known = [v for v in values if v is not None]
        if stage.startswith("  ") and max(known) < LEAST_MS:
            continue
        cells = ["-" if v is None else f"{v:,.0f}" if v >= 100 else f"{v:.1f}" for v in values]
        slope = ""
        if len(values) > 1 and values[-1] and values[-2]:
            slope = f"{math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2]):.2f}"
        lines.append(f"| {stage} | " + " | ".join(cells) + f" | {slope} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", action="append", choices=list(PROGRAMS))
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--compile", type=int, default=10_000, help="most nodes compiled and run")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a program may take")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, nodes, compile_it = options.measure
        measure(name, int(nodes), compile_it == "1")
        return
    for name in options.program or PROGRAMS:
        by_nodes = {
            nodes: run_child(name, nodes, nodes <= options.compile, options.limit)
            for nodes in sorted(options.nodes)
        }
        print(table(name, by_nodes), flush=True)


if __name__ == "__main__":
    main()
