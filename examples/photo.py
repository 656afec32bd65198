"""Blurs a photograph, finds its edges and bends its tones, in plain NumPy code run by rune_jit.

    pip install '.[examples]' && python examples/photo.py [--device cpu] [--out examples/out]

Writes before.png, after.png (sharpened, with a tone curve) and edges.png. Prints how long NumPy,
the first call (which compiles) and a warm call take, the number of kernels, and the largest
difference between NumPy's result and the compiled program's.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

import rune_jit

KERNEL = np.exp(-(np.arange(-3, 4) ** 2) / (2 * 1.5**2))
WEIGHTS = (KERNEL / KERNEL.sum()).astype(np.float32)
LUMA = np.array([0.299, 0.587, 0.114], np.float32)


def blur_rows(image):
    """A Gaussian of radius 3 along axis 0, as a weighted sum of shifted slices."""
    height = len(image)
    padded = np.concatenate([image[:1]] * 3 + [image] + [image[-1:]] * 3)
    return sum(float(weight) * padded[i : i + height] for i, weight in enumerate(WEIGHTS))


def blur(image):
    """A Gaussian along both axes; the picture goes on beyond its border as at the border."""
    return blur_rows(blur_rows(image).transpose(1, 0, 2)).transpose(1, 0, 2)


def sobel(gray):
    """The gradient's magnitude, one pixel smaller on every side."""
    left, right = gray[:, :-2], gray[:, 2:]
    horizontal = right - left
    horizontal = horizontal[:-2] + 2 * horizontal[1:-1] + horizontal[2:]
    vertical = gray[2:] - gray[:-2]
    vertical = vertical[:, :-2] + 2 * vertical[:, 1:-1] + vertical[:, 2:]
    return np.sqrt(horizontal**2 + vertical**2)


def tone(image):
    """A filmic curve: more contrast in the middle, soft shoulders."""
    curved = 1 / (1 + np.exp(-7 * (image - 0.5)))
    low, high = 1 / (1 + math.exp(3.5)), 1 / (1 + math.exp(-3.5))
    return (curved - low) / (high - low)


def develop(photo):
    """uint8[height, width, 3] -> (the picture after the edit, its edges), both uint8."""
    image = photo.astype(np.float32) / 255
    soft = blur(image)
    sharp = np.clip(image + 0.8 * (image - soft), 0, 1)
    after = np.rint(255 * tone(sharp)).astype(np.uint8)
    gray = (soft * LUMA).sum(axis=2)
    edges = np.rint(255 * np.clip(1.5 * sobel(gray), 0, 1)).astype(np.uint8)
    return after, edges


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """The fastest of some calls."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out")
    options = parser.parse_args()

    photo = load_sample_image("china.jpg")
    fast_develop = rune_jit.jit(develop, device=options.device)
    expected = develop(photo)
    numpy_time = seconds(lambda: develop(photo), 5)
    first_time = seconds(lambda: fast_develop(photo), 1)
    warm_time = seconds(lambda: fast_develop(photo), 20)
    after, edges = fast_develop(photo)
    difference = max(
        int(np.abs(got.astype(int) - want).max())
        for got, want in zip((after, edges), expected, strict=True)
    )

    options.out.mkdir(parents=True, exist_ok=True)
    pictures = {"before.png": photo, "after.png": after, "edges.png": edges}
    for name, picture in pictures.items():
        Image.fromarray(np.asarray(picture)).save(options.out / name)

    height, width, _ = photo.shape
    lowered = fast_develop.lower(photo)
    print(f"photo        {width} x {height}, {', '.join(pictures)} in {options.out}")
    print(f"NumPy        {1e3 * numpy_time:8.2f} ms")
    print(f"first call   {1e3 * first_time:8.2f} ms")
    speedup = numpy_time / warm_time
    print(f"warm call    {1e3 * warm_time:8.2f} ms  ({speedup:.1f} times NumPy's speed)")
    print(f"kernels      {len(lowered.kernels)}")
    print(f"difference   at most {difference} of 255")


if __name__ == "__main__":
    main()
