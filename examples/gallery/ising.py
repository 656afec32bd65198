"""A magnet cools down.

The Ising model: spins on a grid turn at random and like to agree with their neighbours. One sweep
updates the squares of one colour of a chessboard, then the others, so that no two neighbours turn
at once. The random numbers are an argument. Source: Metropolis and others, 1953.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit


@rune_jit.jit
def cool(spins, colour, numbers, temperatures):
    """The spins after a sweep at each temperature, and the mean spin after each."""
    means = np.empty(len(temperatures))
    for t in range(len(temperatures)):
        for parity in range(2):
            around = np.roll(spins, 1, 0) + np.roll(spins, -1, 0)
            around = around + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            gain = 2.0 * spins * around  # the energy that turning a spin takes
            turns = (numbers[t, parity] < np.exp(-gain / temperatures[t])) & (colour == parity)
            spins = np.where(turns, -spins, spins)
        means[t] = spins.mean()
    return spins, means


def arguments(scale):
    size, sweeps = 128 * scale, 40
    random = np.random.default_rng(0)
    spins = random.choice(np.array([-1, 1], np.int64), (size, size))
    colour = np.add.outer(np.arange(size), np.arange(size)) % 2
    numbers = random.random((sweeps, 2, size, size))
    return spins, colour, numbers, np.linspace(3.0, 1.0, sweeps)


def draw(figure, result):
    spins, means = result
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    left.imshow(spins, cmap="gray")
    left.set(xticks=[], yticks=[], title="spins at the end")
    right.plot(np.linspace(3.0, 1.0, len(means)), means)
    right.invert_xaxis()
    right.set(xlabel="temperature", title="mean spin")


if __name__ == "__main__":
    show(__doc__, cool, arguments, draw)
