"""examples/photo.py against the obvious loops in C++ (photo.cpp).

    taskset -c 0 python benchmarks/photo.py

Compiles the loops with the system's compiler ($CXX, else c++). Checks the results of both against
NumPy's, times all in turns in this process, and prints the shortest call of each.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import numpy as np
import timing

import rune_jit

_HERE = Path(__file__).resolve().parent
# Without -ffast-math compilers do not vectorise exp.
_FLAGS = ("-O3", "-march=native", "-ffast-math", "-std=c++20", "-shared", "-fPIC")
_POINTERS = [np.ctypeslib.ndpointer(t, flags="C") for t in (np.uint8, np.float32)]


def _example() -> Any:
    """The module examples/photo.py, which has this one's name."""
    spec = importlib.util.spec_from_file_location("example", _HERE.parent / "examples/photo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile(folder: str, weights: np.ndarray) -> Callable[[Any], tuple[Any, Any]]:
    """The function of photo.cpp."""
    library = f"{folder}/photo.so"
    compiler = os.environ.get("CXX", "c++")
    subprocess.run([compiler, *_FLAGS, "-o", library, str(_HERE / "photo.cpp")], check=True)
    run = ctypes.CDLL(library).develop
    of_bytes, of_floats = _POINTERS
    run.argtypes = [of_bytes, ctypes.c_int64, ctypes.c_int64, of_floats, of_bytes, of_bytes]
    run.restype = None

    def develop(photo: Any) -> tuple[Any, Any]:
        height, width, _ = photo.shape
        after = np.empty_like(photo)
        edges = np.empty((height - 2, width - 2), np.uint8)
        run(photo, height, width, weights, after, edges)
        return after, edges

    return develop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=5, help="for each contestant")
    options = parser.parse_args()
    example = _example()
    photo = np.ascontiguousarray(example.load_sample_image("china.jpg"))
    with tempfile.TemporaryDirectory() as folder:
        functions = {
            "NumPy": example.develop,
            "C++": _compile(folder, example.WEIGHTS),
            "rune_jit": rune_jit.jit(example.develop, fallback="error"),
        }
        expected = example.develop(photo)
        for name, function in functions.items():
            for got, want in zip(function(photo), expected, strict=True):
                difference = np.abs(got.astype(int) - want).max()
                assert difference <= 1, f"{name} differs from NumPy by {difference} of 255"
        times = {name: timing.Times(0.0) for name in functions}
        calls: dict[str, Callable[[], Any]]
        calls = {name: functools.partial(f, photo) for name, f in functions.items()}
        timing.interleave(calls, times, options.seconds)
    print(f"cores: {machine.cores()} of {machine.cpu_name()}; load {machine.load():.1f}")
    for name, time in times.items():
        ratio = time.best / times["C++"].best
        print(f"{name:10} {1e3 * time.best:8.2f} ms  {ratio:6.2f} of C++'s time")


if __name__ == "__main__":
    main()
