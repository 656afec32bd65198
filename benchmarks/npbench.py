"""Runs the programs of spcl/npbench, NumPy code that others wrote, unmodified and with default
settings: on the CPU against NumPy and the suite's own numba and JAX ports, on a GPU against its
CuPy and JAX ports.

    python benchmarks/npbench.py PATH [--preset S] [--only lu,adi] [--write benchmarks/npbench.md]
    python benchmarks/npbench.py PATH --device cuda --preset L --write benchmarks/npbench_cuda.md

PATH is a checkout of https://github.com/spcl/npbench. Each program runs in a process of its own
with each contestant, on fresh arguments for every call, which lie on the device already. A time is
that of a call and of waiting for its results. Results are compared with NumPy's before anything is
timed; where NumPy takes longer than the limit, those of preset S are, and of nbody, which magnifies
rounding. Contestants that are not installed are left out. Of numba's ports, of which the suite has
several for some programs, the fastest counts. The table is written after every program.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gpu
import machine
import npbench_contestants
import numpy as np
from npbench_contestants import Contestant, Program
from report import geometric_mean

_TIMED_SECONDS = 1.0
_CHECKED_PRESET = "S"  # where NumPy takes too long for the one that is timed
# Whose trajectories magnify rounding, so that no two compilers agree after many steps: checked at
# that preset, too.
_SENSITIVE = ("nbody", "mandelbrot1", "mandelbrot2")

Result = dict[str, Any]  # "ms" and "first_ms", or "error"


def _equal(got: np.ndarray, want: np.ndarray) -> bool:
    if got.shape != want.shape:
        return False
    if want.dtype.kind not in "fc":
        return bool((got == want).all())
    tolerance = 1e-6 if want.dtype.itemsize > 4 * (1 + (want.dtype.kind == "c")) else 1e-3
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
    return bool(np.allclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


class Calls:
    """Calls of one contestant's function, each on arguments of its own."""

    def __init__(
        self, program: Program, contestant: Contestant, function: Callable[..., Any]
    ) -> None:
        self._program, self._contestant, self._function = program, contestant, function
        self._arguments = [contestant.argument(x) for x in program.arguments()]

    def call(self) -> tuple[float, list[Any]]:
        """Seconds, and what the program gives; where the contestant cannot write, what its port
        returns instead of writing."""
        contestant = self._contestant
        arguments = [contestant.fresh(x) for x in self._arguments]
        contestant.wait(arguments)
        start = time.perf_counter()
        returned = self._function(*arguments)
        contestant.wait([*npbench_contestants.flat(returned), *arguments])
        seconds = time.perf_counter() - start
        if contestant.writes:
            return seconds, self._program.outputs(arguments, returned)
        return seconds, npbench_contestants.flat(returned)

    def is_right(self, found: list[Any], want: list[np.ndarray]) -> bool:
        if not self._contestant.writes:  # ports return some of it, or arguments as well
            found, want = found[: len(want)], want[: len(found)]
        found = [self._contestant.to_numpy(x) for x in found]
        return len(found) == len(want) and all(map(_equal, found, want))


def _references(program: Program) -> tuple[float, list[np.ndarray]]:
    numpy = Contestant()
    seconds, found = Calls(program, numpy, numpy.functions(program)[0]).call()
    return seconds, [numpy.to_numpy(x) for x in found]


def _time(calls: Calls, function: Callable[..., Any], want: list[np.ndarray] | None) -> Result:
    first, found = calls.call()
    if want is not None and not calls.is_right(found, want):
        return {"error": "wrong result"}
    del found
    times: list[float] = []
    end = time.perf_counter() + _TIMED_SECONDS
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 200):
        times.append(calls.call()[0])
        if sum(times) > 5 * _TIMED_SECONDS:
            break
    result: Result = {"first_ms": first * 1e3, "ms": min(times) * 1e3}
    if hasattr(function, "explain"):
        lines = function.explain().splitlines()
        result["runs"] = lines[0] if lines else ""
    return result


def _measure(
    load: Callable[[str], Program], preset: str, contestant: Contestant, file: Path
) -> Result:
    """In this process. `file` holds NumPy's results, if it was able to compute them."""
    program = load(preset)
    best: Result = {"error": "the suite has no port"}
    want = None
    if file.exists() and program.module not in _SENSITIVE:
        with np.load(file) as saved:
            want = [saved[name] for name in saved.files]
    for function in contestant.functions(program):
        try:
            if want is None:
                small = load(_CHECKED_PRESET)
                calls = Calls(small, contestant, function)
                if not calls.is_right(calls.call()[1], _references(small)[1]):
                    raise ValueError(f"wrong result at preset {_CHECKED_PRESET}")
            result = _time(Calls(program, contestant, function), function, want)
        except Exception as error:  # the suite's ports do not all run
            result = {
                "error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:100]}"
            }
        if result.get("ms", math.inf) < best.get("ms", math.inf) or "ms" not in best:
            best = result
    if want is None and "ms" in best:
        best["checked"] = _CHECKED_PRESET
    return best


def _measure_numpy(load: Callable[[str], Program], preset: str, file: Path, device: str) -> Result:
    """Also writes its results to `file`. On a GPU's machine it is no contestant: one call."""
    program = load(preset)
    numpy = Contestant()
    function = numpy.functions(program)[0]
    calls = Calls(program, numpy, function)
    seconds, found = calls.call()
    partial = file.with_suffix(".partial.npz")
    np.savez(partial, *(numpy.to_numpy(x) for x in found))
    partial.rename(file)
    del found
    if device != "cpu":
        return {"first_ms": seconds * 1e3, "ms": seconds * 1e3}
    return _time(calls, function, None)


class Suite:
    """Runs contestants in processes of their own."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options, self._folder = options, folder
        self._path = options.path.resolve()

    def run(self, name: str, contestant: str) -> Result:
        options = self._options
        file = self._folder / f"{name}.npz"
        command = [sys.executable, __file__, str(self._path), "--preset", options.preset]
        command += ["--device", options.device, "--child", name, contestant, str(file)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=options.limit, text=True)
        except subprocess.TimeoutExpired:
            return {"error": f"more than {options.limit} s"}
        lines = done.stdout.splitlines()
        if done.returncode or not lines:
            return {"error": (done.stderr.strip().splitlines() or ["no result"])[-1][:100]}
        return dict(json.loads(lines[-1]))

    def results(self, names: Sequence[str], contestants: Sequence[str]) -> Any:
        """Pairs of a program's name and its results by contestant. NumPy computes the next
        program's while a GPU computes this one's."""
        with ThreadPoolExecutor(1) as pool:
            references: dict[str, Future[Result]] = {}
            for i, name in enumerate(names):
                ahead = 2 if self._options.device != "cpu" else 1
                for next_name in names[i : i + ahead]:
                    if next_name not in references:
                        references[next_name] = pool.submit(self.run, next_name, "numpy")
                result = {"numpy": references[name].result()}
                for contestant in contestants:
                    if contestant != "numpy":
                        result[contestant] = self.run(name, contestant)
                with contextlib.suppress(FileNotFoundError):
                    (self._folder / f"{name}.npz").unlink()
                yield name, result


def _run_child(options: argparse.Namespace) -> Result:
    name, label, file = options.child
    os.chdir(options.path)
    sys.path.insert(0, str(options.path))

    def load(preset: str) -> Program:
        return Program(options.path, name, preset)

    if label == "numpy":
        return _measure_numpy(load, options.preset, Path(file), options.device)
    known = {c.name: c for c in npbench_contestants.contestants(options.device)}
    return _measure(load, options.preset, known[label], Path(file))


def report(results: dict[str, dict[str, Result]], options: argparse.Namespace) -> str:
    """The table, as Markdown."""
    labels = [c.name for c in npbench_contestants.contestants(options.device)]
    # On a GPU's machine NumPy is no contestant, and one call of it is timed.
    peers = [c for c in labels if c != "rune_jit" and (c != "numpy" or options.device == "cpu")]
    rows, over_best, over_numpy = [], [], []
    for name, by_contestant in results.items():
        ours = by_contestant.get("rune_jit", {})
        times = {c: r["ms"] for c, r in by_contestant.items() if "ms" in r}
        best = min((times[c] for c in peers if c in times), default=math.nan)
        ratio = times.get("rune_jit", math.nan) / best
        if not math.isnan(ratio):
            over_best.append(ratio)
        if "numpy" in times and "rune_jit" in times:
            over_numpy.append(times["rune_jit"] / times["numpy"])
        cells = [f"{times[c]:.3g}" if c in times else "-" for c in labels]
        first = f"{ours['first_ms']:.0f}" if "first_ms" in ours else "-"
        note = ours.get("error", ours.get("runs", ""))
        if checked := ours.get("checked"):
            note += f"; checked at preset {checked}"
        over = "-" if math.isnan(ratio) else f"{ratio:.2f}"
        rows.append(f"| {name} | {' | '.join(cells)} | {over} | {first} | {note} |")
    where = f"{machine.cores()} cores of {machine.cpu_name()}"
    option = ""
    if options.device != "cpu":
        where = gpu.card(options.device) + f", {where}"
        option = f" --device {options.device}"
    explained = (
        "Times in ms, the best call of each process, its results waited for; the ratio is"
        f" rune_jit's time over the best of {', '.join(peers)}. A dash: the suite has no port, it"
        f" does not run, or takes more than {options.limit} s with compiling and checking."
    )
    if options.device != "cpu":
        explained += (
            " Arguments lie on the card. NumPy's time is that of its first call, on the CPU."
        )
    return "\n".join(
        [
            f"# spcl/npbench, preset {options.preset}" + (f", {options.device}" if option else ""),
            "",
            f"`python benchmarks/npbench.py PATH{option} --preset {options.preset}`,"
            f" {datetime.date.today()}, {where}. {explained}",
            "",
            f"{len(over_best)} programs compared: geometric mean {geometric_mean(over_best):.2f}"
            f" of the best of the others, {sum(r < 1 for r in over_best)} ahead; of NumPy's time"
            f" {geometric_mean(over_numpy):.2g}.",
            "",
            f"| program | {' | '.join(labels)} | ratio | first call | runs as |",
            "|---" * (len(labels) + 4) + "|",
            *rows,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--preset", default="S")
    parser.add_argument("--only", default="", help="names of programs, by commas, in this order")
    parser.add_argument("--contestants", default="", help="names, by commas; otherwise all")
    parser.add_argument("--limit", type=int, default=60, help="seconds of a contestant's process")
    parser.add_argument("--write", type=Path)
    parser.add_argument(
        "--results", type=Path, help="JSON: rows of earlier runs, to which this run's are added"
    )
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if options.child:
        print(json.dumps(_run_child(options)))
        return
    all_contestants = npbench_contestants.contestants(options.device)
    chosen = options.contestants.split(",") if options.contestants else None
    contestants = [
        c.name
        for c in all_contestants
        if (chosen is None or c.name in chosen) and importlib.util.find_spec(c.module) is not None
    ]
    names = sorted(file.stem for file in (options.path / "bench_info").glob("*.json"))
    if options.only:
        only = options.only.split(",")
        if unknown := set(only) - set(names):
            parser.error(f"no such program: {', '.join(sorted(unknown))} (there are {names})")
        names = only
    results: dict[str, dict[str, Result]] = {}
    if options.results and options.results.exists():
        results = json.loads(options.results.read_text())
    with tempfile.TemporaryDirectory() as folder:
        for name, result in Suite(options, Path(folder)).results(names, contestants):
            results[name] = results.get(name, {}) | result
            print(name, {c: r.get("ms", r.get("error")) for c, r in result.items()}, flush=True)
            if options.results:
                options.results.write_text(json.dumps(results, indent=1))
            if options.write:
                options.write.write_text(report(results, options))
    print(report(results, options))


if __name__ == "__main__":
    main()
