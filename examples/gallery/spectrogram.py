"""The spectrogram of a bird's song.

The song is made of chirps. Overlapping windows of the signal are gathered, weighted and
transformed. `np.fft.rfft` runs inside the compiled program as a call to NumPy; what is before and
after it is fused.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit

RATE, WINDOW, HOP = 22_050, 512, 64


@rune_jit.jit
def spectrogram(signal):
    """Power in decibels, [windows, frequencies], for signal[samples]."""
    starts = np.arange(0, len(signal) - WINDOW, HOP)
    frames = signal[starts[:, None] + np.arange(WINDOW)]
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    spectrum = np.fft.rfft(frames * taper, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    return 10 * np.log10(power / power.max() + 1e-8)


def arguments(scale):
    time = np.arange(2 * RATE * scale) / RATE
    pitch = 3000 + 1200 * np.sin(2 * np.pi * 3 * time) + 600 * np.sin(2 * np.pi * 17 * time)
    loud = np.clip(np.sin(2 * np.pi * 2.5 * time), 0, 1) ** 0.5
    song = loud * np.sin(2 * np.pi * np.cumsum(pitch) / RATE)
    return (song + np.random.default_rng(0).normal(0, 0.02, len(time)),)


def draw(figure, power):
    axes = figure.subplots()
    extent = (0, len(power) * HOP / RATE, 0, RATE / 2000)
    axes.imshow(power.T, origin="lower", aspect="auto", extent=extent, cmap="magma", vmin=-60)
    axes.set(xlabel="seconds", ylabel="kHz", title="power, dB")


if __name__ == "__main__":
    show(__doc__, spectrogram, arguments, draw)
