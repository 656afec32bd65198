"""Waves in a basin with an island: shallow water in plain NumPy, on the CPU or on a GPU.

    pip install '.[examples]' && python examples/gpu.py [--device cuda] [--size 512] [--steps 400]

The same code runs on every device; only `device` differs. Writes water.png, the height of the water
at the end. Prints how long a step takes on the device, and in NumPy, and how much water there is
before and after.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from PIL import Image

import rune_jit

GRAVITY, DEPTH, CELL, STEP = 9.81, 10.0, 1.0, 0.02
STEPS_A_CALL = 10


def step(height, u, v, land):
    """One step of the linear shallow-water equations on a staggered grid, with walls around."""
    u[1:-1] -= STEP / CELL * GRAVITY * (height[1:] - height[:-1])
    v[:, 1:-1] -= STEP / CELL * GRAVITY * (height[:, 1:] - height[:, :-1])
    u[1:-1] *= ~(land[1:] | land[:-1])
    v[:, 1:-1] *= ~(land[:, 1:] | land[:, :-1])
    height -= STEP / CELL * DEPTH * (u[1:] - u[:-1] + v[:, 1:] - v[:, :-1])


def steps(height, u, v, land):
    """Changes height, u and v in place."""
    for _ in range(STEPS_A_CALL):
        step(height, u, v, land)


def basin(size):
    """The height of the water above its level at rest, its velocities, and where land is."""
    y, x = np.mgrid[:size, :size].astype(np.float32) / size
    height = np.exp(-((x - 0.3) ** 2 + (y - 0.4) ** 2) / 0.002).astype(np.float32)
    land = (x - 0.65) ** 2 + (y - 0.6) ** 2 < 0.02
    height[land] = 0
    u, v = np.zeros((size + 1, size), np.float32), np.zeros((size, size + 1), np.float32)
    return height, u, v, land


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out")
    options = parser.parse_args()

    arrays = basin(options.size)
    before = float(arrays[0].sum())
    water = [rune_jit.asarray(a, device=options.device) for a in arrays]
    run = rune_jit.jit(steps)
    calls = max(options.steps // STEPS_A_CALL, 2)
    run(*water)  # compiles
    water[0].block_until_ready()
    start = time.perf_counter()
    for _ in range(calls - 1):
        run(*water)
    water[0].block_until_ready()
    per_step = (time.perf_counter() - start) / (calls - 1) / STEPS_A_CALL
    height = np.asarray(water[0])

    start = time.perf_counter()
    for _ in range(calls):
        steps(*arrays)
    in_numpy = (time.perf_counter() - start) / calls / STEPS_A_CALL

    shade = np.clip(128 + 600 * height, 0, 255).astype(np.uint8)
    picture = np.stack([shade // 2, shade, np.full_like(shade, 200)], -1)
    picture[arrays[3]] = (90, 70, 40)
    options.out.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(options.out / "water.png")
    print(f"{options.device:12} {per_step * 1e6:.0f} us a step")
    print(f"{'NumPy':12} {in_numpy * 1e6:.0f} us a step")
    print(f"{'difference':12} at most {np.abs(height - arrays[0]).max():.2g}")
    print(f"{'water':12} {before:.3f} before, {height.sum():.3f} after")
    print(f"wrote {options.out / 'water.png'}")


if __name__ == "__main__":
    main()
