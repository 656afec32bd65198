"""Functions on arrays that are larger than memory: cut into blocks by rune_jit, against the same
functions written for dask.array, on arrays in zarr's files. Results are checked first, on small
arrays.

    python benchmarks/dask_arrays.py [--gib 1] [--threads 2] [--folder build/dask_arrays]

Each measurement is a process of its own: wall and CPU time (best of --repeat) of tracing, compiling
and running, tasks of the optimized graph, and the process's peak memory. The files stay in the
folder for the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
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


# By name: NumPy's function, dask.array's, whether it reads the field or the table.
PROGRAMS: dict[str, tuple[Any, Any, str]] = {
    "masked mean": (masked_mean, masked_mean, "field"),
    "k-means step": (k_means_step, k_means_step, "table"),
    "standardise by column": (standardise, standardise, "table"),
    "stencil, 10 sweeps": (stencil, dask_stencil, "field"),
}


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
        x, chunks = small[kind]
        want = function(x)
        for variant in ("rune_jit", "dask"):
            found = lazy(program, variant, da.from_array(x, chunks=chunks)).compute()
            if "stencil" in program:
                np.testing.assert_array_equal(found, want, program)
            else:
                np.testing.assert_allclose(found, want, 2e-5, 2e-5, err_msg=program)


def store(folder: Path, gib: float) -> None:
    """Writes the field and the table, unless they are there."""
    side = max(2, round((gib * 2**30 / 4) ** 0.5 / _CHUNK)) * _CHUNK
    rows = max(2, round(gib * 2**30 / 4 / _COLUMNS / _ROWS)) * _ROWS
    shapes = {
        "field": ((side, side), (_CHUNK, _CHUNK)),
        "table": ((rows, _COLUMNS), (_ROWS, _COLUMNS)),
    }
    for kind, (shape, chunks) in shapes.items():
        path = folder / f"{kind}-{gib}.zarr"
        if not path.exists():
            x = da.random.default_rng(0).random(shape, dtype=np.float32, chunks=chunks)
            write(x, path)


def write(x: Any, path: Path) -> None:
    """Stores an array in uncompressed files, one a chunk."""
    import zarr

    shutil.rmtree(path, ignore_errors=True)
    chunks = tuple(axis[0] for axis in x.chunks)
    target = zarr.create_array(
        str(path), shape=x.shape, dtype=x.dtype, chunks=chunks, compressors=None
    )
    da.store(x.rechunk(chunks), target, lock=False)


def measure(program: str, variant: str, folder: Path, gib: float) -> dict[str, float]:
    """Runs one program once, in this process."""
    kind = PROGRAMS[program][2]
    x = da.from_zarr(str(folder / f"{kind}-{gib}.zarr"))
    start, used = time.perf_counter(), time.process_time()
    result = lazy(program, variant, x)
    built = time.perf_counter()
    (optimized,) = dask.optimize(result)
    tasks = len(dict(optimized.__dask_graph__()))
    begun = time.perf_counter()
    if result.ndim == 2 and result.shape[0] > 1000:
        write(result, folder / "result.zarr")
    else:
        result.compute()
    seconds = time.perf_counter() - begun + built - start
    used = time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": seconds, "tasks": tasks, "peak": peak, "cpu": used}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.0, help="size of each array")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/dask_arrays"))
    parser.add_argument("--program", choices=PROGRAMS, action="append")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    dask.config.set(scheduler="threads", num_workers=options.threads)
    if options.one:
        print(json.dumps(measure(*options.one, options.folder, options.gib)))
        return
    check()
    options.folder.mkdir(parents=True, exist_ok=True)
    store(options.folder, options.gib)
    print(
        f"{options.gib} GiB of float32, {options.threads} threads, dask {dask.__version__}, ",
        end="",
    )
    print(f"NumPy {np.__version__}, {platform.processor() or platform.machine()}\n")
    columns = [f"{v}: s | CPU s | tasks | peak GiB" for v in ("dask.array", "rune_jit")]
    print(f"| program | {' | '.join(columns)} | time | CPU time |")
    print("|---" * 11 + "|")
    # As dask's documentation recommends: its threads use the cores.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for program in options.program or PROGRAMS:
        best: dict[str, dict[str, float]] = {}
        for _ in range(options.repeat):  # in turn, so that both see the same machine
            for variant in ("dask", "rune_jit"):
                arguments = [sys.executable, __file__, *sys.argv[1:], "--one", program, variant]
                out = subprocess.run(
                    arguments, check=True, stdout=subprocess.PIPE, text=True, env=environment
                ).stdout
                found = json.loads(out.splitlines()[-1])
                if variant not in best or found["seconds"] < best[variant]["seconds"]:
                    best[variant] = found
        cells = [
            f"{best[v]['seconds']:.2f} | {best[v]['cpu']:.2f} | {best[v]['tasks']}"
            f" | {best[v]['peak']:.2f}"
            for v in ("dask", "rune_jit")
        ]
        ratios = [best["rune_jit"][k] / best["dask"][k] for k in ("seconds", "cpu")]
        print(
            f"| {program} | {' | '.join(cells)} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True
        )


if __name__ == "__main__":
    main()
