"""Trains a neural network on two spirals, with gradients written by hand.

Two hidden layers, the logistic loss and the Adam optimizer, in plain NumPy. The whole training is
one function: the loop over steps is part of the compiled program. Source: Kingma and Ba, 2015, for
Adam.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit

HIDDEN, RATE = 32, 0.01


def forward(w, points):
    first = np.tanh(points @ w[0] + w[1])
    second = np.tanh(first @ w[2] + w[3])
    return first, second, 1 / (1 + np.exp(-(second @ w[4] + w[5])))


def gradients(w, points, labels):
    """Of the mean logistic loss by each of the weights, by the chain rule."""
    first, second, chance = forward(w, points)
    out = (chance - labels) / len(points)
    back2 = (out @ w[4].T) * (1 - second**2)
    back1 = (back2 @ w[2].T) * (1 - first**2)
    pairs = ((points, back1), (first, back2), (second, out))
    return [g for x, back in pairs for g in (x.T @ back, back.sum(axis=0))]


@rune_jit.jit
def train(w, points, labels, steps):
    """Changes the weights by some steps of Adam, and returns them."""
    mean = [np.zeros_like(x) for x in w]
    square = [np.zeros_like(x) for x in w]
    fast, slow = 1.0, 1.0
    for _ in range(steps):
        fast, slow = 0.9 * fast, 0.999 * slow  # what the averages lack at first
        size = RATE * np.sqrt(1 - slow) / (1 - fast)
        found = gradients(w, points, labels)
        for x, m, s, g in zip(w, mean, square, found, strict=True):
            m += 0.1 * (g - m)
            s += 0.001 * (g * g - s)
            x -= size * m / (np.sqrt(s) + 1e-8)
    return w


def spirals():
    random = np.random.default_rng(0)
    angle = np.sqrt(random.random(300)) * 3 * np.pi
    arm = np.repeat([0.0, 1.0], 150)
    turn = angle + np.pi * arm
    points = angle[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1) / 10
    return points + random.normal(0, 0.01, points.shape), arm[:, None]


def arguments(scale):
    random = np.random.default_rng(1)
    shapes = ((2, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, 1), (1,))
    w = [random.normal(0, 1, s) / np.sqrt(s[0] if len(s) > 1 else 10) for s in shapes]
    return w, *spirals(), 400 * scale


def draw(figure, w):
    axes = figure.subplots()
    points, labels = spirals()
    grid = np.stack(np.meshgrid(np.linspace(-1.1, 1.1, 200), np.linspace(-1.1, 1.1, 200)), -1)
    chance = forward(w, grid.reshape(-1, 2))[2].reshape(200, 200)
    axes.imshow(chance, extent=(-1.1, 1.1, -1.1, 1.1), origin="lower", cmap="RdBu", alpha=0.6)
    axes.scatter(*points.T, c=labels[:, 0], cmap="RdBu", edgecolors="k", linewidths=0.3, s=12)
    axes.set(xticks=[], yticks=[], title="probability of the blue spiral")


if __name__ == "__main__":
    show(__doc__, train, arguments, draw)
