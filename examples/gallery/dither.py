"""A photograph in black and white dots.

Each pixel becomes black or white, and its error goes to the neighbours that follow. Each pixel
needs the ones before it, so there are no whole arrays to compute with: two loops over pixels, which
run as compiled loops. Source: Floyd and Steinberg, 1976.
"""

from __future__ import annotations

import numpy as np
from show import show
from sklearn.datasets import load_sample_image

import rune_jit


@rune_jit.jit
def dither(gray):
    """0 or 1 for each element of gray[height, width], which is changed."""
    height, width = gray.shape
    for y in range(height - 1):
        for x in range(1, width - 1):
            old = gray[y, x]
            new = 1.0 if old > 0.5 else 0.0
            gray[y, x] = new
            error = old - new
            gray[y, x + 1] += error * 7 / 16
            gray[y + 1, x - 1] += error * 3 / 16
            gray[y + 1, x] += error * 5 / 16
            gray[y + 1, x + 1] += error * 1 / 16
    return gray


def arguments(scale):
    picture = load_sample_image("china.jpg").mean(axis=2) / 255
    step = max(4 - scale, 1)
    return (np.clip(1.3 * (picture[::step, ::step] - 0.5) + 0.5, 0, 1),)


def draw(figure, dots):
    axes = figure.subplots()
    axes.imshow(dots[:-1, 1:-1], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set(xticks=[], yticks=[])


if __name__ == "__main__":
    show(__doc__, dither, arguments, draw)
