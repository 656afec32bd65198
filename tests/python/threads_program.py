"""Functions that many threads call for the first time together. The threads often hand the
interpreter over, and old functions and their programs end meanwhile."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import rune_jit

ROUNDS, THREADS = 10, 16


def made(k):
    def smooth(image, spread):
        weights = np.exp(-0.5 * (np.arange(-k, k + 1) / spread) ** 2)
        padded = np.pad(image, k, mode="edge")
        out = np.zeros_like(image)
        for i in range(2 * k + 1):
            out += weights[i] * padded[i : i + image.shape[0], k : k + image.shape[1]]
        return out

    def second(x):
        return [np.gradient(np.gradient(x)[a], axis=b) for a, b in ((0, 0), (0, 1), (1, 1))]

    def extremes(a, b, c):
        middle, radius = (a + c) / 2, np.sqrt(((a - c) / 2) ** 2 + b**2)
        return np.stack([middle + radius, middle - radius])

    return smooth, second, extremes


def run(functions, image, spread):
    smooth, second, extremes = functions
    return extremes(*second(smooth(image, spread)))


sys.setswitchinterval(1e-5)
spreads = np.linspace(0.5, 4, 8)
for i in range(ROUNDS):
    plain = made(2 + i % 5)
    jitted = [*map(rune_jit.jit, plain)]
    image = np.random.default_rng(i).random((20 + i, 20))
    with ThreadPoolExecutor(THREADS) as pool:
        results = pool.map(lambda s, f=jitted, x=image: run(f, x, s), spreads)
        for result, spread in zip(results, spreads, strict=True):
            np.testing.assert_allclose(result, run(plain, image, spread), rtol=1e-9, atol=1e-12)
print("done")
