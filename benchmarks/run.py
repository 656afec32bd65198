"""Measures rune_jit against NumPy and other libraries on the standard workloads.

    python benchmarks/run.py                 # everything: prints tables, writes results.md
    python benchmarks/run.py --quick --no-peers --workload softmax --workload chain_f32
    python benchmarks/run.py --device cuda   # or metal: on a GPU, against its libraries (gpu.py)

Results are checked against NumPy before anything is timed; all contestants of a workload are timed
in turns in this process, with a plain copy of as many bytes among them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import machine  # noqa: E402
import numpy as np  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import timing  # noqa: E402
import workloads  # noqa: E402

# Programs whose first call is taken apart.
FIRST_CALLS = ("chain_f32", "softmax", "mlp")
# With fewer bytes a copy says nothing about memory.
LEAST_COPY_BYTES = 1 << 20


@dataclass
class Row:
    """One workload measured."""

    workload: workloads.Workload
    times: dict[str, timing.Times] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    copy_bytes: int = 0  # that the contestants "copy ..." move


def leaves(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def disagreement(
    workload: workloads.Workload, result: list[np.ndarray], expected: Any, strict: bool
) -> str | None:
    """What differs from NumPy's result; None if nothing does. Unless `strict`, dtypes may differ,
    and errors be a hundred times the workload's: some peers sum long arrays one by one."""
    wanted = [np.asarray(x) for x in leaves(expected)]
    if len(result) != len(wanted):
        return f"{len(result)} results instead of {len(wanted)}"
    for got, want in zip(result, wanted, strict=True):
        if got.shape != want.shape:
            return f"shape {got.shape} instead of {want.shape}"
        if strict and got.dtype != want.dtype:
            return f"{got.dtype} instead of {want.dtype}"
        error = np.abs(got.astype(np.float64) - want.astype(np.float64))
        allowed = workload.atol + workload.rtol * np.abs(want.astype(np.float64))
        if not np.all(error <= allowed * (1 if strict else 100)):  # also false for NaN
            return f"differs from NumPy by {np.max(error):.3g}"
    return None


def first_calls(row: Row, contestants: list[Any], expected: Any) -> dict[str, Any]:
    """Calls each contestant once; returns the calls whose results are right."""
    calls: dict[str, Any] = {}
    for contestant in contestants:
        try:
            call = contestant.prepare(row.workload)
            seconds, result = timing.once(call)
            found = [contestant.to_numpy(x) for x in leaves(result)]
            problem = disagreement(row.workload, found, expected, contestant.name == "rune_jit")
        except Exception as error:  # a contestant that fails is reported and left out
            problem = f"{type(error).__name__}: {error}".splitlines()[0]
        if problem:
            row.failures[contestant.name] = problem
            continue
        calls[contestant.name] = call
        row.times[contestant.name] = timing.Times(seconds)
    return calls


def measure(name: str, rune: Any, others: list[Any], seconds: float, tiny: bool = False) -> Row:
    workload = workloads.build(name, tiny=tiny)
    row = Row(workload)
    numpy = peers.NumPy()
    expected = numpy.prepare(workload)()
    calls = first_calls(row, [rune, numpy, *others], expected)
    if rune.name in calls:
        row.costs = rune.jitted(workload).lower(*workload.args).cost_analysis()
    if workload.bytes >= LEAST_COPY_BYTES:
        copy = machine.Copy(workload.bytes // 2)
        row.copy_bytes = copy.nbytes
        for label, call in (("copy 1", copy.one_thread), ("copy all", copy.all_threads)):
            calls[label] = call
            row.times[label] = timing.Times(0.0)
    del expected
    timing.interleave(calls, row.times, seconds)
    return row


def run_first_call(name: str, mode: str, cache: str) -> dict[str, float]:
    """Milliseconds by stage, from a fresh process; passes by their names, from RUNE_JIT_TIME."""
    env = dict(os.environ, RUNE_JIT_CACHE_DIR=cache, RUNE_JIT_TIME="1" if mode == "stages" else "0")
    # Beside the cache folders, so that only the first of the processes measures the machine.
    env["RUNE_JIT_CALIBRATION"] = str(Path(cache).parent / "rune_jit-figures")
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once
    done = subprocess.run(
        [sys.executable, str(FOLDER / "first_call.py"), name, mode],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    marks: dict[str, float] = json.loads(done.stdout)
    for line in done.stderr.splitlines():
        words = line.split()
        if len(words) == 4 and words[0] == "rune_jit:" and words[3] == "us":
            marks.setdefault("pass " + words[1], float(words[2]) / 1e3)
    return marks


def first_call_table(
    names: list[str], with_jax: bool, repeats: int = 3
) -> dict[str, dict[str, float]]:
    """By workload: import, first call with a cold and a warm disk cache, and its stages; the same
    of JAX. Best of some processes, each with a cache folder of its own."""
    table: dict[str, dict[str, float]] = {}
    for name in names:
        best: dict[str, float] = {}

        def keep(marks: dict[str, float], best: dict[str, float] = best) -> None:
            for key, value in marks.items():
                best[key] = min(best.get(key, float("inf")), value)

        try:
            for _ in range(repeats):
                with tempfile.TemporaryDirectory() as cache:
                    for mark in ("cold", "disk cache"):
                        marks = run_first_call(name, "total", cache)
                        keep({"import": marks["import"], mark: marks["first call"]})
                    if with_jax:
                        marks = run_first_call(name, "jax", cache)
                        keep({f"jax, {mark}": value for mark, value in marks.items()})
                with tempfile.TemporaryDirectory() as cache:
                    keep(run_first_call(name, "stages", cache))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"first call of {name}: {error}", file=sys.stderr)
            continue
        table[name] = best
    return table


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--workload", action="append", metavar="NAME", help="only these; may repeat"
    )
    parser.add_argument("--quick", action="store_true", help="a quarter of the time a contestant")
    parser.add_argument("--no-peers", action="store_true", help="NumPy and rune_jit only")
    parser.add_argument("--no-first-call", action="store_true", help="skip the fresh processes")
    parser.add_argument(
        "--tiny", action="store_true", help="tiny sizes: checks results, times nothing real"
    )
    parser.add_argument(
        "--output", type=Path, help="results file (results.md here if all workloads run)"
    )
    parser.add_argument("--plot", type=Path, help="also draw this picture (needs matplotlib)")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or metal")
    parser.add_argument("--list", action="store_true", help="print the workloads' names")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """The number of workloads that rune_jit ran and got wrong."""
    options = parse(arguments)
    if options.list:
        print("\n".join(workloads.names()))
        return 0
    names = options.workload or workloads.names()
    if options.device != "cpu":
        import gpu

        file = None if options.workload or options.tiny else FOLDER / f"results_{options.device}.md"
        return gpu.run(
            options.device, names, options.output or file, options.tiny, not options.no_peers
        )
    seconds = 0.0 if options.tiny else 0.2 if options.quick else 0.8
    rune = peers.RuneJit()
    others, missing = ([], {}) if options.no_peers else peers.available()
    load_before = machine.load()
    host = report.Host(
        cpu=machine.cpu_name(),
        cores=machine.cores(),
        load_before=load_before,
        copy=machine.copy_bandwidth(),
        fma=machine.fma_peak(),
        versions={p.name: p.version for p in (peers.NumPy(), rune, *others)},
        missing=missing,
    )
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            rows.append(measure(name, rune, others, seconds, options.tiny))
            print(report.one_line(rows[-1]), file=sys.stderr, flush=True)
    host.copy = max(host.copy, machine.copy_bandwidth())
    host.fma = max(host.fma, machine.fma_peak())
    host.load_after = machine.load()
    stages = (
        {}
        if options.no_first_call or options.tiny
        else first_call_table(
            [n for n in FIRST_CALLS if n in names], any(o.name == "jax" for o in others)
        )
    )
    report.show(host, rows, stages, goals=not options.tiny)
    output = options.output or (
        FOLDER / "results.md" if not options.workload and not options.tiny else None
    )
    if output:
        text = report.markdown(host, rows, stages)
        if options.plot:
            picture = os.path.relpath(options.plot, output.parent)
            text += f"\n![times as fast as NumPy]({picture})\n"
        output.write_text(text)
        print(f"wrote {output}")
    if options.plot:
        report.plot(rows, options.plot)
    return sum("differs" in row.failures.get("rune_jit", "") for row in rows)


if __name__ == "__main__":
    sys.exit(main())
