"""The colours of a photograph, by k-means.

Each pixel goes to the nearest of sixteen colours, and each colour to the mean of its pixels. The
distances are never stored: one kernel computes them and the nearest colour. `np.add.at` sums the
pixels of each colour. Source: Lloyd, 1982.
"""

from __future__ import annotations

import numpy as np
from show import show
from sklearn.datasets import load_sample_image

import rune_jit


@rune_jit.jit
def palette(pixels, colours, steps):
    """The colours after some steps, and the index of each pixel's colour."""
    count = len(colours)
    for _ in range(steps):
        distances = ((pixels[:, None, :] - colours[None, :, :]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        members = np.bincount(nearest, minlength=count)
        sums = np.zeros_like(colours)
        np.add.at(sums, nearest, pixels)
        colours = sums / np.maximum(members, 1)[:, None]
    return colours, nearest


def photo():
    return load_sample_image("flower.jpg")[::2, ::2].astype(np.float64) / 255


def arguments(scale):
    pixels = np.tile(photo().reshape(-1, 3), (scale, 1))
    return pixels, pixels[:: len(pixels) // 16][:16].copy(), 5


def draw(figure, result):
    colours, nearest = result
    picture = photo()
    top, bottom = figure.subplots(2, 1, height_ratios=(6, 1))
    top.imshow(colours[nearest[: picture.shape[0] * picture.shape[1]]].reshape(picture.shape))
    bottom.imshow(colours[np.argsort(colours.sum(axis=1))][None])
    for axes in (top, bottom):
        axes.set(xticks=[], yticks=[])


if __name__ == "__main__":
    show(__doc__, palette, arguments, draw)
