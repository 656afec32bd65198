"""How certain is a correlation?

The bootstrap draws the same number of pairs from the sample, with replacement, thousands of times,
and looks at how the correlation varies. The compiled function gathers pairs and sums their
products. Source: Efron, 1979.
"""

from __future__ import annotations

import numpy as np
from show import show
from sklearn.datasets import load_iris

import rune_jit


@rune_jit.jit
def correlations(x, y, draws):
    """The correlation of x[i] and y[i] for each row i of draws[resamples, n]."""
    a, b = x[draws], y[draws]
    a = a - a.mean(axis=1, keepdims=True)
    b = b - b.mean(axis=1, keepdims=True)
    return (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))


def arguments(scale):
    petals = load_iris().data[:50, 2:]  # length and width of Iris setosa
    draws = np.random.default_rng(0).integers(0, 50, (5000 * scale, 50))
    return petals[:, 0].copy(), petals[:, 1].copy(), draws


def draw(figure, result):
    axes = figure.subplots()
    axes.hist(result, bins=60, color="tab:blue", alpha=0.7)
    for bound in np.quantile(result, [0.025, 0.975]):
        axes.axvline(bound, color="tab:red")
    title = "correlation of petals' lengths and widths, with the 95% interval"
    axes.set(xlabel="correlation", ylabel="resamples", title=title)


if __name__ == "__main__":
    show(__doc__, correlations, arguments, draw)
