"""The Mandelbrot set, pixel by pixel.

Each pixel iterates until it leaves a circle: a while loop inside of two for loops. NumPy runs them
in Python. Compiled, they run as machine code, and all cores share the rows. Source: Mandelbrot,
1980.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit


@rune_jit.jit
def escape_times(real, imaginary, most):
    """How many steps each point takes, for real[width] and imaginary[height]."""
    times = np.empty((len(imaginary), len(real)), np.int64)
    for row in range(len(imaginary)):
        for column in range(len(real)):
            x = y = 0.0
            count = 0
            while count < most and x * x + y * y < 4.0:
                x, y = x * x - y * y + real[column], 2.0 * x * y + imaginary[row]
                count += 1
            times[row, column] = count
    return times


def arguments(scale):
    return np.linspace(-2.2, 0.8, 120 * scale), np.linspace(-1.15, 1.15, 90 * scale), 100


def draw(figure, times):
    axes = figure.subplots()
    shade = np.where(times == times.max(), 0, times)
    axes.imshow(np.log1p(shade), cmap="twilight_shifted", interpolation="bicubic")
    axes.set(xticks=[], yticks=[])


if __name__ == "__main__":
    show(__doc__, escape_times, arguments, draw)
