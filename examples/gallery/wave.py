"""A wave passes two slits.

The wave equation on a grid: each step computes the new height of each point from its neighbours.
The loop over time is part of the compiled program, and the arrays are written in place. Source: the
leapfrog scheme of Courant, Friedrichs and Lewy, 1928.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit

SPEED = 0.5  # cells a step; below 1 / sqrt(2) the scheme is stable


@rune_jit.jit
def propagate(before, now, wall, steps):
    """The height of the water after some steps, from that at the last two."""
    for step in range(steps):
        around = now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2]
        inside = now[1:-1, 1:-1]
        new = 2 * inside - before[1:-1, 1:-1] + SPEED**2 * (around - 4 * inside)
        before[:] = now
        now[1:-1, 1:-1] = new * wall[1:-1, 1:-1]
        now[:, 0] = np.sin(0.25 * step)  # the source, at the left
    return now


def arguments(scale):
    size = 200 * scale
    wall = np.ones((size, size))
    wall[:, size // 3] = 0
    for slit in (0.42, 0.58):
        middle = int(slit * size)
        wall[middle - 3 * scale : middle + 3 * scale, size // 3] = 1
    return np.zeros((size, size)), np.zeros((size, size)), wall, 320 * scale


def draw(figure, height):
    axes = figure.subplots()
    axes.imshow(height, cmap="RdBu", vmin=-0.8, vmax=0.8)
    axes.set(xticks=[], yticks=[], title="height of the water")


if __name__ == "__main__":
    show(__doc__, propagate, arguments, draw)
