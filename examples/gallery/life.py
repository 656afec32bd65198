"""Conway's game of life.

A cell lives on with two or three neighbours, and is born with three. The eight neighbours are eight
shifted views of a padded grid; the compiled program adds them while it computes the new grid.
Source: Gardner, Scientific American, 1970.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit


def generation(cells):
    padded = np.pad(cells, 1, mode="wrap")
    height, width = cells.shape
    around = sum(
        padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]
        for dy in (-1, 0, 1)
        for dx in (-1, 0, 1)
        if (dy, dx) != (0, 0)
    )
    return ((around == 3) | ((cells == 1) & (around == 2))).astype(np.uint8)


@rune_jit.jit
def live(cells, generations):
    """The cells after some generations, and how often each one has lived."""
    alive = np.zeros(cells.shape, np.int32)
    for _ in range(generations):
        cells = generation(cells)
        alive += cells
    return cells, alive


def arguments(scale):
    random = np.random.default_rng(0)
    return (random.random((150 * scale, 200 * scale)) < 0.25).astype(np.uint8), 200


def draw(figure, result):
    cells, alive = result
    axes = figure.subplots()
    axes.imshow(np.log1p(alive), cmap="viridis")
    axes.imshow(np.ma.masked_equal(cells, 0), cmap="gray", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[], title="living cells (white), and how often others have lived")


if __name__ == "__main__":
    show(__doc__, live, arguments, draw)
