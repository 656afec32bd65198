"""Runs the programs of spcl/npbench, NumPy code that others wrote, unmodified and with default
settings, against NumPy and the suite's own numba and JAX ports.

    python benchmarks/npbench.py PATH [--preset S] [--only lu,adi] [--write benchmarks/npbench.md]

PATH is a checkout of https://github.com/spcl/npbench. Each program runs in a process of its own
with each contestant, on fresh arguments for every call. Results are compared with NumPy's before
anything is timed. numba and JAX are left out where they are not installed. Of numba's ports, of
which the suite has several for some programs, the fastest counts.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib.util
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import numpy as np

_CONTESTANTS = ("numpy", "rune_jit", "numba", "jax")
_NUMBA_PORTS = ("n", "np", "npr", "o", "op", "opr")
_TIME_FOR_A_CONTESTANT = 60  # seconds, from the start of its process
_TIMED_SECONDS = 1.0


class Program:
    """One program of the suite."""

    def __init__(self, path: Path, name: str, preset: str) -> None:
        self.info = json.loads((path / "bench_info" / f"{name}.json").read_text())["benchmark"]
        self.folder = path / "npbench" / "benchmarks" / self.info["relative_path"]
        self.module = self.info["module_name"]
        values = dict(self.info["parameters"][preset])
        if init := self.info.get("init"):
            function = getattr(self._load(self.module), init["func_name"])
            made = function(*(values[name] for name in init["input_args"]))
            names = init["output_args"]
            values |= zip(names, made if len(names) > 1 else (made,), strict=True)
        self.values = values

    def _load(self, module: str) -> Any:
        spec = importlib.util.spec_from_file_location(module, self.folder / f"{module}.py")
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[module] = loaded
        spec.loader.exec_module(loaded)
        return loaded

    def function(self, port: str) -> Any:
        """The function of a port: "numpy", "jax", "numba_np" ..."""
        return getattr(self._load(f"{self.module}_{port}"), self.info["func_name"])

    def has(self, port: str) -> bool:
        return (self.folder / f"{self.module}_{port}.py").exists()

    def arguments(self) -> list[Any]:
        return [_copied(self.values[name]) for name in self.info["input_args"]]

    def outputs(self, arguments: list[Any], returned: Any) -> list[Any]:
        """What a call has returned, and the arguments that it writes to."""
        names = self.info["input_args"]
        written = [arguments[names.index(n)] for n in self.info["output_args"] if n in names]
        return [*_flat(returned), *written]


def _copied(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else copy.deepcopy(x)


def _flat(x: Any) -> list[Any]:
    if x is None:
        return []
    return [part for item in x for part in _flat(item)] if isinstance(x, (tuple, list)) else [x]


def _equal(got: Any, want: Any) -> bool:
    got, want = (np.asarray(x.toarray() if hasattr(x, "toarray") else x) for x in (got, want))
    if got.shape != want.shape:
        return False
    if want.dtype.kind not in "fc":
        return bool((got == want).all())
    tolerance = 1e-6 if want.dtype.itemsize > 4 * (1 + (want.dtype.kind == "c")) else 1e-3
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
    return bool(np.allclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _functions(program: Program, contestant: str) -> list[Any]:
    """What to time: the fastest counts."""
    if contestant == "numpy":
        return [program.function("numpy")]
    if contestant == "rune_jit":
        import rune_jit

        return [rune_jit.jit(program.function("numpy"))]
    if contestant == "numba":
        ports = [f"numba_{port}" for port in _NUMBA_PORTS if program.has(f"numba_{port}")]
        return [program.function(port) for port in ports]
    import jax

    jax.config.update("jax_enable_x64", True)
    if not program.has("jax"):
        return []
    port = program.function("jax")
    return [lambda *arguments: jax.block_until_ready(port(*arguments))]


def _is_right(
    program: Program, contestant: str, got: Any, used: list[Any], want: list[Any]
) -> bool:
    if contestant != "jax":
        found = program.outputs(used, got)
    else:  # its arrays cannot be written to: it returns what the program writes
        found = _flat(got)
        want = want[: len(found)]
    return len(found) == len(want) and all(map(_equal, found, want))


def _measure(program: Program, contestant: str) -> dict[str, Any]:
    """Times of calls in milliseconds, in this process."""
    arguments = program.arguments()
    returned = program.function("numpy")(*arguments)
    want = program.outputs(arguments, returned)
    best: dict[str, Any] = {}
    for function in _functions(program, contestant):
        try:
            result = _time(program, contestant, function, want)
        except Exception as error:  # the suite's ports do not all run
            result = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"}
        if ("ms" in result and result["ms"] < best.get("ms", math.inf)) or not best:
            best = result
    return best or {"error": "the suite has no port"}


def _time(program: Program, contestant: str, function: Callable[..., Any], want: list[Any]) -> Any:
    def prepared() -> list[Any]:
        arguments = program.arguments()
        if contestant == "jax":
            import jax

            arguments = [jax.device_put(x) if isinstance(x, np.ndarray) else x for x in arguments]
        return arguments

    def seconds() -> tuple[float, Any, list[Any]]:
        arguments = prepared()
        start = time.perf_counter()
        returned = function(*arguments)
        return time.perf_counter() - start, returned, arguments

    first, returned, used = seconds()
    if not _is_right(program, contestant, returned, used, want):
        return {"error": "wrong result"}
    times = []
    end = time.perf_counter() + _TIMED_SECONDS
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 200):
        times.append(seconds()[0])
        if sum(times) > 10 * _TIMED_SECONDS and len(times) >= 2:
            break
    result = {"first_ms": first * 1e3, "ms": min(times) * 1e3}
    if contestant == "rune_jit":
        lines = function.explain().splitlines()
        result["runs"] = lines[0] if lines else ""
    return result


def _run_contestant(path: Path, name: str, preset: str, contestant: str) -> dict[str, Any]:
    command = [sys.executable, __file__, str(path), "--preset", preset, "--child", name, contestant]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_TIME_FOR_A_CONTESTANT, text=True
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {_TIME_FOR_A_CONTESTANT} s"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no result"])[-1][:100]}
    return dict(json.loads(lines[-1]))


def _cell(result: dict[str, Any]) -> str:
    return f"{result['ms']:.3g}" if "ms" in result else "-"


def _geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def report(results: dict[str, dict[str, dict[str, Any]]], preset: str) -> str:
    """The table, as Markdown."""
    rows, over_best, over_numpy = [], [], []
    for name, by_contestant in results.items():
        ours = by_contestant["rune_jit"]
        peers = [r["ms"] for c, r in by_contestant.items() if c != "rune_jit" and "ms" in r]
        ratio = ours["ms"] / min(peers) if "ms" in ours and peers else math.nan
        numpy = by_contestant["numpy"].get("ms")
        if not math.isnan(ratio):
            over_best.append(ratio)
        if numpy and "ms" in ours:
            over_numpy.append(ours["ms"] / numpy)
        cells = [_cell(by_contestant.get(c, {})) for c in ("numpy", "numba", "jax", "rune_jit")]
        first = f"{ours['first_ms']:.0f}" if "first_ms" in ours else "-"
        note = ours.get("error", ours.get("runs", ""))
        rows.append(f"| {name} | {' | '.join(cells)} | {ratio:.2f} | {first} | {note} |")
    return "\n".join(
        [
            f"# spcl/npbench, preset {preset}",
            "",
            f"`python benchmarks/npbench.py PATH --preset {preset}`, {datetime.date.today()},"
            f" {machine.cores()} cores of {machine.cpu_name()}. Times in ms, the best call of each"
            " process; the ratio is rune_jit's time over the best of the others. A dash: the suite"
            " has no port, or it does not run.",
            "",
            f"{len(over_best)} programs compared: geometric mean {_geometric_mean(over_best):.2f}"
            f" of the best of the others, {sum(r < 1 for r in over_best)} ahead; of NumPy's time"
            f" {_geometric_mean(over_numpy):.2f}.",
            "",
            "| program | NumPy | numba | JAX | rune_jit | ratio | first call | runs as |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", type=Path)
    parser.add_argument("--preset", default="S")
    parser.add_argument("--only", default="", help="names of programs, by commas")
    parser.add_argument("--contestants", default=",".join(_CONTESTANTS))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if options.child:
        name, contestant = options.child
        os.chdir(options.path)
        sys.path.insert(0, str(options.path))
        print(json.dumps(_measure(Program(options.path, name, options.preset), contestant)))
        return
    contestants = options.contestants.split(",")
    for module in ("numba", "jax"):
        if module in contestants and importlib.util.find_spec(module) is None:
            contestants.remove(module)
    names = sorted(file.stem for file in (options.path / "bench_info").glob("*.json"))
    results: dict[str, dict[str, dict[str, Any]]] = {}
    for name in names:
        if options.only and name not in options.only.split(","):
            continue
        results[name] = {
            c: _run_contestant(options.path.resolve(), name, options.preset, c) for c in contestants
        }
        print(name, {c: r.get("ms", r.get("error")) for c, r in results[name].items()}, flush=True)
    text = report(results, options.preset)
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
