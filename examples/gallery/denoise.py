"""Removes noise from a photograph, and keeps its edges.

Total variation: the result is close to the noisy picture, and the sum of its gradients is small.
Chambolle's iteration finds it with a field of two components a pixel. Differences, norms and
divisions of one iteration are fused. Source: Chambolle, 2004.
"""

from __future__ import annotations

import numpy as np
from show import show
from sklearn.datasets import load_sample_image

import rune_jit

NOISE, WEIGHT, STEP = 0.12, 0.14, 0.24


def divergence(field):
    down, right = field
    result = down + right
    result[1:] -= down[:-1]
    result[:, 1:] -= right[:, :-1]
    return result


@rune_jit.jit
def denoise(noisy, steps):
    """The picture without noise, for noisy[height, width]."""
    field = np.zeros((2, *noisy.shape), noisy.dtype)
    for _ in range(steps):
        smooth = divergence(field) - noisy / WEIGHT
        gradient = np.zeros_like(field)
        gradient[0, :-1] = smooth[1:] - smooth[:-1]
        gradient[1, :, :-1] = smooth[:, 1:] - smooth[:, :-1]
        length = np.sqrt((gradient**2).sum(axis=0))
        field = (field + STEP * gradient) / (1 + STEP * length)
    return noisy - WEIGHT * divergence(field)


def photo(scale):
    picture = load_sample_image("flower.jpg")[40:400, 140:560].mean(axis=2) / 255
    return picture[:: max(3 - scale, 1), :: max(3 - scale, 1)].astype(np.float32)


def noisy_photo(scale):
    picture = photo(scale)
    noise = np.random.default_rng(0).normal(0, NOISE, picture.shape)
    return (picture + noise).astype(np.float32)


def arguments(scale):
    return noisy_photo(scale), 60


def draw(figure, result):
    scale = 1 if result.shape == photo(1).shape else 2
    pictures = {"with noise": noisy_photo(scale), "without": result}
    for axes, (title, picture) in zip(figure.subplots(1, 2), pictures.items(), strict=True):
        axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[], title=title)


if __name__ == "__main__":
    show(__doc__, denoise, arguments, draw)
