"""Convolutions as people write them with NumPy, against the convolutions of torch and JAX.

    python benchmarks/convolution.py                # and writes convolution.md

Checks the results of all against NumPy's, times all in turns in this process, and prints the
shortest call of each. A library that is not installed is left out.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib.util
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import numpy as np
import timing

import rune_jit

# Pictures, channels before and after, size of the filters, size of the pictures.
_CASES = [
    (8, 3, 16, 2, 32),
    (8, 3, 8, 5, 64),
    (1, 3, 64, 7, 224),
    (8, 16, 32, 3, 56),
    (4, 64, 64, 3, 56),
    (8, 32, 32, 5, 28),
    (1, 128, 128, 3, 28),
    (2, 1, 8, 3, 512),
]
_MOST_ITERATIONS = 4096  # of a function with loops over the results, for NumPy's sake


def shifted_products(x: Any, w: Any, b: Any) -> Any:
    k = w.shape[0]
    height, width = x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.zeros((x.shape[0], height, width, w.shape[3]), x.dtype)
    for i in range(k):
        for j in range(k):
            out += x[:, i : i + height, j : j + width, :] @ w[i, j]
    return out + b


def windows(x: Any, w: Any, b: Any) -> Any:
    k = w.shape[0]
    views = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(1, 2))
    return np.einsum("nhwcij,ijco->nhwo", views, w) + b


def windows_in_loops(x: Any, w: Any, b: Any) -> Any:
    k = w.shape[0]
    out = np.empty((x.shape[0], x.shape[1] - k + 1, x.shape[2] - k + 1, w.shape[3]), x.dtype)
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            window = x[:, i : i + k, j : j + k, :, np.newaxis]
            out[:, i, j, :] = np.sum(window * w[np.newaxis], axis=(1, 2, 3))
    return out + b


def _torch(x: Any, w: Any, b: Any) -> dict[str, Callable[[], Any]]:
    """torch's convolution, of pictures with the channels last and with the channels first."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    torch.set_num_threads(machine.cores())
    picture = torch.from_numpy(x).permute(0, 3, 1, 2)
    filters = torch.from_numpy(w).permute(3, 2, 0, 1)
    bias = torch.from_numpy(b)

    def run(picture: Any, filters: Any) -> Any:
        with torch.inference_mode():
            return torch.nn.functional.conv2d(picture, filters, bias).permute(0, 2, 3, 1)

    first = picture.contiguous(), filters.contiguous()
    return {
        f"torch {torch.__version__}": functools.partial(run, picture, filters),
        f"torch {torch.__version__}, channels first": functools.partial(run, *first),
    }


def _jax(x: Any, w: Any, b: Any) -> dict[str, Callable[[], Any]]:
    if importlib.util.find_spec("jax") is None:
        return {}
    import jax

    @jax.jit
    def run(x: Any, w: Any, b: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=numbers) + b

    arguments = [jax.numpy.asarray(a) for a in (x, w, b)]
    return {f"jax {jax.__version__}": lambda: run(*arguments).block_until_ready()}


def _measure(case: tuple[int, ...], seconds: float) -> list[str]:
    """The row of the table."""
    pictures, before, after, kernel, size = case
    rng = np.random.default_rng(0)
    x = rng.random((pictures, size, size, before), np.float32)
    w = rng.random((kernel, kernel, before, after), np.float32)
    b = rng.random(after, np.float32)
    expected = windows(x, w, b)
    peers = {**_torch(x, w, b), **_jax(x, w, b)}
    ours = {}
    for fn in (shifted_products, windows, windows_in_loops):
        if fn is windows_in_loops and size**2 > _MOST_ITERATIONS:
            continue
        ours[fn.__name__] = functools.partial(rune_jit.jit(fn, fallback="error"), x, w, b)
    calls = {**peers, **ours}
    for name, call in calls.items():
        np.testing.assert_allclose(np.asarray(call()), expected, rtol=1e-3, err_msg=name)
    times = {name: timing.Times(0.0) for name in calls}
    timing.interleave(calls, times, seconds)
    row = [f"{pictures} x {size} x {size} x {before}, {after} filters of {kernel} x {kernel}"]
    best = min((times[name].best for name in peers), default=float("nan"))
    fastest = min(peers, key=lambda name: times[name].best, default="-")
    row += [f"{1e3 * best:.3f} ({fastest})"]
    for fn in (shifted_products, windows, windows_in_loops):
        own = times.get(fn.__name__)
        row.append("-" if own is None else f"{own.best / best:.2f}")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=2, help="for each contestant and case")
    options = parser.parse_args()
    rows = []
    for case in _CASES:
        rows.append(_measure(case, options.seconds))
        print(" | ".join(rows[-1]), flush=True)
    ratios = [float(cell) for row in rows for cell in row[2:] if cell != "-"]
    lines = [
        "# Convolutions",
        "",
        "Time divided by the best of torch's and JAX's own convolutions (in brackets), float32,"
        f" measured on {datetime.date.today()};",
        f"cores: {machine.cores()} of {machine.cpu_name()}. Written by"
        " `python benchmarks/convolution.py`.",
        "",
        f"Geometric mean {statistics.geometric_mean(ratios):.2f}, worst {max(ratios):.2f}.",
        "",
        "| pictures and filters | best of the others, ms | `shifted_products` | `windows` |"
        " `windows_in_loops` |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    (Path(__file__).parent / "convolution.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
