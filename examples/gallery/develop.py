"""Develops a photograph: white balance, sharpness, tones and a vignette.

A pipeline of small functions, as one writes them. Compiled, they run in a few kernels. The first
reads each pixel once, where NumPy makes an array for each operation. examples/photo.py is a larger
version.
"""

from __future__ import annotations

import numpy as np
from show import show
from sklearn.datasets import load_sample_image

import rune_jit


def balanced(image):
    """The grey-world assumption: the mean of each channel becomes the same."""
    means = image.mean(axis=(0, 1))
    return image * (means.mean() / means)


def blurred(image):
    """A binomial filter of five elements along both axes."""
    padded = np.pad(image, ((2, 2), (2, 2), (0, 0)), mode="edge")
    rows = padded[:-4] + 4 * padded[1:-3] + 6 * padded[2:-2] + 4 * padded[3:-1] + padded[4:]
    columns = rows[:, :-4] + 4 * rows[:, 1:-3] + 6 * rows[:, 2:-2] + 4 * rows[:, 3:-1]
    return (columns + rows[:, 4:]) / 256


def toned(image):
    """Contrast by an S-shaped curve, warm lights and cool shadows."""
    curve = image * image * (3 - 2 * image)
    light = curve.mean(axis=2, keepdims=True)
    warm = np.array([0.06, 0.01, -0.06], np.float32)
    return curve + warm * (light - 0.5)


def vignetted(image):
    """Darker corners."""
    height, width, _ = image.shape
    y = np.linspace(-1, 1, height, dtype=np.float32)[:, None, None]
    x = np.linspace(-1, 1, width, dtype=np.float32)[None, :, None]
    return image * (1 - 0.35 * (x * x + y * y) ** 2)


@rune_jit.jit
def develop(photo):
    """uint8[height, width, 3] of uint8[height, width, 3]."""
    image = balanced(photo.astype(np.float32) / 255)
    sharp = image + 1.2 * (image - blurred(image))
    result = vignetted(toned(np.clip(sharp, 0, 1)))
    return np.rint(255 * np.clip(result, 0, 1)).astype(np.uint8)


def arguments(scale):
    photo = load_sample_image("china.jpg")
    return (np.tile(photo, (scale, scale, 1)),)


def draw(figure, result):
    pictures = {"before": load_sample_image("china.jpg"), "after": result}
    for axes, (title, picture) in zip(figure.subplots(2, 1), pictures.items(), strict=True):
        axes.imshow(picture)
        axes.set(xticks=[], yticks=[], title=title)


if __name__ == "__main__":
    show(__doc__, develop, arguments, draw)
