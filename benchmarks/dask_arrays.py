"""Functions on arrays that are larger than memory: cut into blocks by rune_jit, against the same
functions written for dask.array, on arrays in zarr's files. Results are checked first, on small
arrays, and then at places of the large ones.

    python benchmarks/dask_arrays.py [--gib 1] [--threads 2] [--folder build/dask_arrays]
    python benchmarks/dask_arrays.py --workers 2 --memory 2GB --threads 4 --gib 18.6 --minutes 8

Each measurement is a process of its own: wall and CPU time (best of --repeat) of tracing, compiling
and running, tasks of the optimized graph, and peak memory. With --workers it starts that many
processes of distributed, each with a memory limit; peak memory then is that of the largest one, and
one more run has a worker killed in the middle. What --minutes leave no time for is left out. The
files stay in the folder for the next run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

import rune_jit

_SWEEPS = 10
_CLUSTERS = 8
_CHUNK = 2048  # rows and columns of a chunk of the field: 16 MiB
_ROWS, _COLUMNS = 1 << 18, 16  # of a chunk of the table: 16 MiB


def masked_mean(x: Any) -> Any:
    """The mean of the elements above a half."""
    mask = x > 0.5
    return np.where(mask, x, np.float32(0)).sum() / mask.sum()


CENTRES = np.random.default_rng(1).random((_CLUSTERS, _COLUMNS), dtype=np.float32)


def k_means_step(x: Any) -> Any:
    """The mean of the points that are nearest to each centre."""
    # Squared distances, but for what is the same for all centres.
    distances = (CENTRES**2).sum(1) - 2 * (x @ CENTRES.T)
    nearest = distances.argmin(1)
    member = (nearest[:, None] == np.arange(_CLUSTERS)).astype(np.float32)
    return member.T @ x / member.sum(0)[:, None]


def standardise(x: Any) -> Any:
    """Columns of mean 0 and deviation 1."""
    return (x - x.mean(0)) / x.std(0)


def sweep(x: Any) -> Any:
    """One sweep of a five-point stencil; the border stays."""
    y = x.copy()
    y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return y


def stencil(x: Any) -> Any:
    """Ten sweeps."""
    for _ in range(_SWEEPS):
        x = sweep(x)
    return x


def dask_stencil(x: Any) -> Any:
    """The same for dask.array, with one neighbour exchanged before each sweep."""
    for _ in range(_SWEEPS):
        x = da.map_overlap(sweep, x, depth=1, boundary="none", meta=np.empty((0, 0), np.float32))
    return x


def reading(x: Any) -> Any:
    """One element of each chunk, so that all are read."""
    return da.map_blocks(lambda b: b[:1, :1], x, chunks=tuple((1,) * len(c) for c in x.chunks))


# By name: NumPy's function, dask.array's, whether it reads the field or the table.
PROGRAMS: dict[str, tuple[Any, Any, str]] = {
    "masked mean": (masked_mean, masked_mean, "field"),
    "k-means step": (k_means_step, k_means_step, "table"),
    "standardise by column": (standardise, standardise, "table"),
    "reading": (reading, reading, "field"),
    "reading and writing": (lambda x: x, lambda x: x, "field"),
    "stencil, 10 sweeps": (stencil, dask_stencil, "field"),
}
_FLOORS = ("reading", "reading and writing")  # what bounds the others


def lazy(program: str, variant: str, x: Any) -> Any:
    """The result of a program on a dask array."""
    function, for_dask, _ = PROGRAMS[program]
    return rune_jit.jit(function)(x) if variant == "rune_jit" else for_dask(x)


def check() -> None:
    """Compares both variants with NumPy on small arrays."""
    rng = np.random.default_rng(0)
    small = {"field": (rng.random((300, 200), dtype=np.float32), (64, 80))}
    small["table"] = (rng.random((3000, _COLUMNS), dtype=np.float32), (700, _COLUMNS))
    for program, (function, _, kind) in PROGRAMS.items():
        if program in _FLOORS:
            continue
        x, chunks = small[kind]
        want = function(x)
        for variant in ("rune_jit", "dask"):
            found = lazy(program, variant, da.from_array(x, chunks=chunks)).compute()
            if "stencil" in program:
                np.testing.assert_array_equal(found, want, program)
            else:
                np.testing.assert_allclose(found, want, 2e-5, 2e-5, err_msg=program)


def store(folder: Path, gib: float) -> None:
    """Writes the field, unless it is there, and lets the table have the same files."""
    import zarr

    side = max(2, round((gib * 2**30 / 4) ** 0.5 / _CHUNK)) * _CHUNK
    path, table = folder / f"field-{gib}.zarr", folder / f"table-{gib}.zarr"
    if not path.exists():
        chunks = (_CHUNK, _CHUNK)
        write(da.random.default_rng(0).random((side, side), dtype=np.float32, chunks=chunks), path)
    if table.exists():
        return
    files = sorted((path / "c").glob("*/*"))
    shape = (len(files) * _ROWS, _COLUMNS)
    zarr.create_array(str(table), shape=shape, dtype=np.float32, chunks=(_ROWS, _COLUMNS), **_PLAIN)
    for row, file in enumerate(files):
        (table / f"c/{row}").mkdir(parents=True)
        os.link(file, table / f"c/{row}/0")


# Uncompressed, so that a chunk's file is its elements.
_PLAIN: dict[str, Any] = {"compressors": None}


def write(x: Any, path: Path) -> None:
    """Stores an array in uncompressed files, one a chunk."""
    import zarr

    shutil.rmtree(path, ignore_errors=True)
    chunks = tuple(axis[0] for axis in x.chunks)
    target = zarr.create_array(str(path), shape=x.shape, dtype=x.dtype, chunks=chunks, **_PLAIN)
    da.store(x.rechunk(chunks), target, lock=False)


def windows(array: Any) -> list[tuple[int, int, int, int]]:
    """(first row, first column, rows, columns) of some places of a result: corners of chunks, which
    four blocks meet in, and of the array."""
    rows, columns = array.shape
    height, width = min(64, rows), min(64, columns)
    places = np.random.default_rng(3).integers(0, 1 << 30, (24, 2))
    found = [(0, 0), (rows - height, columns - width)]
    for i, j in places:
        row = int(i) % max(1, rows // array.chunks[0]) * array.chunks[0] - height // 2
        column = int(j) % max(1, columns // array.chunks[1]) * array.chunks[1] - width // 2
        found.append((max(0, row), max(0, column)))
    return [(row, column, height, width) for row, column in found]


def sample(path: Path) -> np.ndarray:
    """The elements of a stored result at these places."""
    import zarr

    z = zarr.open_array(str(path), mode="r")
    return np.stack([z[i : i + m, j : j + n] for i, j, m, n in windows(z)])


def wanted_of_stencil(field: Path) -> np.ndarray:
    """What NumPy computes at these places."""
    import zarr

    z = zarr.open_array(str(field), mode="r")
    found = []
    for i, j, m, n in windows(z):
        top, left = max(0, i - _SWEEPS - 1), max(0, j - _SWEEPS - 1)
        around = z[top : i + m + _SWEEPS + 1, left : j + n + _SWEEPS + 1]
        found.append(stencil(around)[i - top : i - top + m, j - left : j - left + n])
    return np.stack(found)


def peak_memory() -> float:
    """GiB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(program: str, variant: str, options: argparse.Namespace) -> dict[str, Any]:
    """Runs one program once: in this process, or in a cluster's."""
    if not options.workers:
        dask.config.set(scheduler="threads", num_workers=options.threads)
        before = time.process_time()
        found = run(program, variant, options, os.getpid)
        return found | {"peak": peak_memory(), "cpu": time.process_time() - before}
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=options.workers,
            threads_per_worker=options.threads,
            memory_limit=options.memory,
            dashboard_address=None,
            local_directory=str(options.folder / "spilled"),
        ) as cluster,
        Client(cluster) as client,
    ):
        base = max(client.run(_started).values())
        before = client.run(time.process_time)
        own = time.process_time()
        found = run(program, variant, options, lambda: min(client.run(os.getpid).values()))
        after = client.run(time.process_time)
        cpu = time.process_time() - own + sum(after[w] - before.get(w, 0.0) for w in after)
        peak = max(client.run(peak_memory).values())
        lost = len(set(before) - set(after))
        return found | {"peak": peak, "cpu": cpu, "base": base, "lost": lost}


def _started() -> float:
    """The memory of a worker that has imported everything, and compiled and run a small program."""
    import zarr  # noqa: F401

    x = da.from_array(np.ones((4, 4), np.float32), chunks=(2, 4))
    rune_jit.jit(lambda x: x * 2 + 1)(x).compute(scheduler="sync")
    return peak_memory()


def run(
    program: str, variant: str, options: argparse.Namespace, worker: Callable[[], int]
) -> dict[str, Any]:
    """Runs one program once. `worker` gives the process that is killed if options say so."""
    folder, gib = options.folder, options.gib
    kind = PROGRAMS[program][2]
    x = da.from_zarr(str(folder / f"{kind}-{gib}.zarr"))
    start = time.perf_counter()
    result = lazy(program, variant, x)
    built = time.perf_counter()
    (optimized,) = dask.optimize(result)
    tasks = len(dict(optimized.__dask_graph__()))
    if options.kill_after:
        process = worker()
        threading.Timer(options.kill_after, os.kill, (process, signal.SIGKILL)).start()
    begun = time.perf_counter()
    kept = folder / f"{program.replace(' ', '-')}-{variant}.npy"
    if result.ndim == 2 and result.shape[0] > 1000:
        write(result, folder / "result.zarr")
        seconds = time.perf_counter() - begun + built - start
        np.save(kept, sample(folder / "result.zarr"))
        shutil.rmtree(folder / "result.zarr")
    else:
        computed = result.compute()
        seconds = time.perf_counter() - begun + built - start
        np.save(kept, computed)
    found: dict[str, Any] = {"seconds": seconds, "tasks": tasks, "result": str(kept)}
    if variant == "rune_jit":
        text = rune_jit.jit(PROGRAMS[program][0]).lower(x).explain()
        (line,) = [line for line in text.splitlines() if line.startswith("predicted")]
        found["predicted"] = float(line.split()[3]) / 1024
        found["blocks"] = sum(
            int(line.split()[2]) for line in text.splitlines() if line.startswith("pass ")
        )
    return found


class Runs:
    """Runs measurements one after another until the time is up."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes

    def measure(
        self, program: str, variant: str, options: argparse.Namespace, *more: str
    ) -> dict[str, Any] | None:
        """None: there is no time left, or it failed. Of what takes longer than --most seconds, or
        is not done when the time is up, how long it ran."""
        left = min(options.most, self._end - time.monotonic())
        if left < 5:
            print(f"no time is left for {program}, {variant}", file=sys.stderr)
            return None
        arguments = [sys.executable, __file__, *sys.argv[1:], "--one", program, variant, *more]
        # As dask's documentation recommends: its threads use the cores.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        try:
            out, _ = process.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            print(f"{program}, {variant}: not done after {left:.0f} s", file=sys.stderr)
            shutil.rmtree(options.folder / "result.zarr", ignore_errors=True)
            return {"seconds": left, "late": True}
        if process.returncode:
            print(f"{program}, {variant}: exit status {process.returncode}", file=sys.stderr)
            return None
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        print(f"{program}, {variant}: {found}", file=sys.stderr, flush=True)
        return found


def same(program: str, one: dict[str, Any], other: np.ndarray) -> None:
    """Compares a result with another one."""
    found = np.load(one["result"])
    if "stencil" in program:
        np.testing.assert_array_equal(found, other, program)
    else:
        np.testing.assert_allclose(found, other, 1e-3, 1e-4, err_msg=program)


_NONE = {"seconds": math.nan, "cpu": math.nan, "tasks": 0, "peak": math.nan}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.0, help="size of each array")
    parser.add_argument("--threads", type=int, default=2, help="of each process")
    parser.add_argument("--workers", type=int, default=0, help="processes of distributed")
    parser.add_argument("--memory", default="2GB", help="of each of these")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="for everything")
    parser.add_argument("--most", type=float, default=600, help="seconds for one measurement")
    parser.add_argument("--folder", type=Path, default=Path("build/dask_arrays"))
    parser.add_argument("--program", choices=PROGRAMS, action="append")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--kill-after", type=float, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, options)))
        return
    runs = Runs(options.minutes)
    dask.config.set(scheduler="threads")
    check()
    options.folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    store(options.folder, options.gib)
    print(f"arrays are there after {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    field = options.folder / f"field-{options.gib}.zarr"
    best: dict[tuple[str, str], dict[str, Any]] = {}
    killed = None
    for variant in ("rune_jit", "dask"):
        for program in options.program or PROGRAMS:
            if program in _FLOORS and variant == "rune_jit":
                continue
            for _ in range(options.repeat):
                found = runs.measure(program, variant, options)
                known = best.get((program, variant), found)
                if found and known and found["seconds"] <= known["seconds"]:
                    best[program, variant] = found
            if found is None or "late" in found:
                continue
            if "stencil" in program:
                same(program, found, wanted_of_stencil(field))
            elif (program, "rune_jit") in best and variant == "dask" and program not in _FLOORS:
                same(program, found, np.load(best[program, "rune_jit"]["result"]))
            if options.workers and "stencil" in program and variant == "rune_jit":
                after = str(0.4 * found["seconds"])
                killed = runs.measure(program, variant, options, "--kill-after", after)
                if killed and "late" not in killed:
                    same(program, killed, wanted_of_stencil(field))
    report(options, best, killed)


def report(
    options: argparse.Namespace,
    best: dict[tuple[str, str], dict[str, Any]],
    killed: dict[str, Any] | None,
) -> None:
    """Prints the table."""
    where = f"{options.threads} threads"
    if options.workers:
        where = f"{options.workers} processes of {where} and {options.memory} each"
    print(f"{options.gib} GiB of float32, {where}, dask {dask.__version__}, ", end="")
    print(f"NumPy {np.__version__}, {platform.processor() or platform.machine()}\n")
    columns = [f"{v}: s | CPU s | tasks | peak GiB" for v in ("dask.array", "rune_jit")]
    print(f"| program | {' | '.join(columns)} | predicted GiB | blocks | time | CPU time |")
    print("|---" * 13 + "|")
    for program in options.program or PROGRAMS:
        one, other = (best.get((program, v), _NONE) for v in ("dask", "rune_jit"))
        cells = [
            f"> {x['seconds']:.0f} | - | - | -"
            if "late" in x
            else f"{x['seconds']:.2f} | {x['cpu']:.2f} | {x['tasks']} | {x['peak']:.2f}"
            for x in (one, other)
        ]
        sign = "< " if "late" in one else ""
        ratios = [other["seconds"] / one["seconds"], other.get("cpu", 0) / one.get("cpu", math.nan)]
        predicted = other.get("predicted", math.nan) + other.get("base", 0)
        print(
            f"| {program} | {' | '.join(cells)} | {predicted:.2f} | {other.get('blocks', 0)}"
            f" | {sign}{ratios[0]:.2f} | {ratios[1]:.2f} |"
        )
    if killed and "late" not in killed:
        print(
            f"\nA worker killed in the middle: {killed['seconds']:.2f} s, {killed['lost']} lost,"
            " the result is NumPy's"
        )
    bases = [x["base"] for x in best.values() if "base" in x]
    if bases:
        print(f"\nWhat is predicted contains {max(bases):.2f} GiB: a worker before it computes.")


if __name__ == "__main__":
    main()
