"""An epidemic spreads over a map.

Each cell has shares of people who are susceptible, infected and recovered. The infected infect
their own cell and, by travel, the cells around it, more where more people live. Heun's method
advances the three equations. Source: Kermack and McKendrick, 1927.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit

INFECTION, RECOVERY, TRAVEL, STEP = 0.5, 0.12, 0.9, 0.25  # by day


def around(x):
    """The mean of the four neighbours; nobody leaves the map."""
    padded = np.pad(x, 1, mode="edge")
    return (padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]) / 4


def change(susceptible, infected, people):
    pressure = infected + TRAVEL * (around(infected) - infected)
    new = INFECTION * people * susceptible * pressure
    return -new, new - RECOVERY * infected


@rune_jit.jit
def spread(susceptible, infected, people, days):
    """The shares after some days, and the mean of the infected at each step."""
    steps = int(days / STEP)
    curve = np.empty(steps)
    for step in range(steps):
        ds, di = change(susceptible, infected, people)
        es, ei = change(susceptible + STEP * ds, infected + STEP * di, people)
        susceptible = susceptible + STEP / 2 * (ds + es)
        infected = infected + STEP / 2 * (di + ei)
        curve[step] = (infected * people).sum() / people.sum()
    return susceptible, infected, curve


def arguments(scale):
    size = 100 * scale
    random = np.random.default_rng(4)
    y, x = np.mgrid[:size, :size] / size
    people = np.full((size, size), 0.7)
    for cy, cx, width in random.uniform((0, 0, 0.03), (1, 1, 0.12), (9, 3)):
        people += np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / width**2)
    infected = np.zeros((size, size))
    infected[size // 2, size // 5] = 0.1
    return 1 - infected, infected, people, 120


def draw(figure, result):
    susceptible, infected, curve = result
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    left.imshow(np.stack([3 * infected, susceptible, 1 - susceptible], -1).clip(0, 1))
    left.set(xticks=[], yticks=[], title="green: healthy, red: ill, blue: immune")
    right.plot(np.arange(len(curve)) * STEP, 100 * curve)
    right.set(xlabel="days", title="infected, per cent")


if __name__ == "__main__":
    show(__doc__, spread, arguments, draw)
