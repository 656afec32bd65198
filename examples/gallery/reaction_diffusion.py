"""Spots and stripes from two chemicals.

Two chemicals spread over a surface and react. Some rates of feeding and decay give the patterns of
animals' skins. The loop over time is part of the program. Source: the model of Gray and Scott,
1984; rates from Pearson, 1993.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit

FEED, KILL = np.float32(0.037), np.float32(0.060)


def laplacian(x):
    """Differences to the four neighbours, on a torus."""
    rows = np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0)
    return rows + np.roll(x, 1, axis=1) + np.roll(x, -1, axis=1) - 4 * x


@rune_jit.jit
def react(u, v, steps):
    """The concentrations after some steps."""
    for _ in range(steps):
        reaction = u * v * v
        u = u + 0.16 * laplacian(u) - reaction + FEED * (1 - u)
        v = v + 0.08 * laplacian(v) + reaction - (FEED + KILL) * v
    return u, v


def arguments(scale):
    size = 128 * scale
    random = np.random.default_rng(3)
    u, v = np.ones((size, size), np.float32), np.zeros((size, size), np.float32)
    for _ in range(20 * scale):
        y, x = random.integers(0, size - 8, 2)
        u[y : y + 8, x : x + 8], v[y : y + 8, x : x + 8] = 0.5, 0.25
    return u, v, 1500


def draw(figure, result):
    axes = figure.subplots()
    axes.imshow(result[1], cmap="magma", interpolation="bicubic")
    axes.set(xticks=[], yticks=[], title="concentration of the second chemical")


if __name__ == "__main__":
    show(__doc__, react, arguments, draw)
