"""What the programs of the gallery share: they time a compiled function and NumPy, compare the
results and save a picture."""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import rune_jit


def leaves(result: Any) -> list[np.ndarray]:
    """The arrays and numbers in tuples and lists."""
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]


def difference(found: Any, wanted: Any) -> float:
    """The largest difference over the largest element, of all arrays of two results."""
    worst = 0.0
    for a, b in zip(leaves(found), leaves(wanted), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
        a, b = a.astype(np.float64), b.astype(np.float64)
        worst = max(worst, float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)))
    return worst


def seconds(function: Callable[..., Any], args: tuple[Any, ...], limit: float) -> float:
    """The fastest of several calls, in `limit` seconds or so, on fresh copies of the arguments."""
    best, end = float("inf"), time.perf_counter() + limit
    while True:
        fresh = copy.deepcopy(args)
        begin = time.perf_counter()
        function(*fresh)
        best = min(best, time.perf_counter() - begin)
        if time.perf_counter() > end:
            return best


def show(
    doc: str,
    function: rune_jit.JitFunction[..., Any],
    arguments: Callable[[int], tuple[Any, ...]],
    draw: Callable[[Figure, Any], None],
) -> None:
    """Runs `function` on NumPy and compiled, for `arguments(scale)`. `draw` makes the picture."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--scale", type=int, default=1, help="how large the problem is")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "out")
    parser.add_argument("--seconds", type=float, default=0.3, help="how long to measure each")
    options = parser.parse_args()

    args = arguments(options.scale)
    plain = function.__wrapped__
    wanted = plain(*copy.deepcopy(args))
    begin = time.perf_counter()
    found = function(*copy.deepcopy(args))
    first = time.perf_counter() - begin
    for _ in range(4):  # what takes turns with NumPy, to find the faster way, ends that
        again = function(*copy.deepcopy(args))
    worst = max(difference(found, wanted), difference(again, wanted))
    in_numpy, compiled = (seconds(f, args, options.seconds) for f in (plain, function))
    print(f"NumPy       {in_numpy * 1e3:9.3f} ms")
    print(f"first call  {first * 1e3:9.3f} ms")
    print(f"rune_jit    {compiled * 1e3:9.3f} ms  ({in_numpy / compiled:.1f} times as fast)")
    print(f"difference  {worst:9.1e} of the largest element")
    print(function.explain().splitlines()[0])

    figure = Figure(figsize=(6.4, 4.8), dpi=100, layout="constrained")
    draw(figure, again)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{Path(sys.argv[0]).stem}.png"
    figure.savefig(path)
    print(f"wrote {path}")
