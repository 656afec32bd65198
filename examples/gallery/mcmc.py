"""Fits a straight line to data with outliers.

The Metropolis algorithm walks through slopes and intercepts. Many walkers start at random places
and take their steps together, so each operation has an element for each walker and data point.
Errors have Student's distribution, which forgives outliers. Source: Metropolis and others, 1953.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit


def log_likelihood(line, x, y):
    """For line[2, walkers]: of Student's errors with three degrees of freedom and width 0.1."""
    error = (y[:, None] - line[0] * x[:, None] - line[1]) / 0.1
    return -2 * np.log1p(error**2 / 3).sum(axis=0)


@rune_jit.jit
def walk(line, x, y, jumps, numbers):
    """The walkers' lines after each step, [steps, 2, walkers]."""
    path = np.empty(jumps.shape)
    likelihood = log_likelihood(line, x, y)
    for step in range(len(jumps)):
        proposal = line + 0.05 * jumps[step]
        new = log_likelihood(proposal, x, y)
        accepted = numbers[step] < np.exp(np.minimum(new - likelihood, 0))
        line = np.where(accepted, proposal, line)
        likelihood = np.where(accepted, new, likelihood)
        path[step] = line
    return path


def data():
    random = np.random.default_rng(1)
    x = np.linspace(0, 1, 40)
    y = 1.5 * x + 0.2 + random.normal(0, 0.08, 40)
    y[::8] += random.uniform(0.8, 1.6, 5)
    return x, y


def arguments(scale):
    random = np.random.default_rng(2)
    walkers, steps = 200 * scale, 300
    line = random.normal(0.5, 0.3, (2, walkers))
    jumps = random.normal(size=(steps, 2, walkers))
    return line, *data(), jumps, random.random((steps, walkers))


def draw(figure, path):
    left, right = figure.subplots(1, 2)
    slopes, intercepts = path[100:].transpose(1, 0, 2).reshape(2, -1)
    x, y = data()
    left.plot(x, y, "k.")
    for slope, intercept in zip(slopes[::2000], intercepts[::2000], strict=True):
        left.plot(x, slope * x + intercept, color="tab:blue", linewidth=0.5, alpha=0.4)
    left.set(title="data and lines")
    right.hist2d(slopes, intercepts, bins=60, cmap="Blues")
    right.set(xlabel="slope", ylabel="intercept", title="posterior")


if __name__ == "__main__":
    show(__doc__, walk, arguments, draw)
