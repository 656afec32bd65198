"""A recursive filter takes the hum out of a recording.

An IIR filter computes each sample from the last two inputs and outputs. The loop over samples
cannot be written as whole arrays; it is a compiled loop, with the sections of the filter inside of
it. The notch's coefficients are those of Bristow-Johnson's cookbook.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit

RATE = 8000.0  # samples a second


@rune_jit.jit
def filtered(signal, sections):
    """The signal after each of sections[k, 5]: b0, b1, b2, a1, a2 of a second-order section."""
    result = np.empty_like(signal)
    state = np.zeros((len(sections), 2))
    for n in range(len(signal)):
        x = signal[n]
        for k in range(len(sections)):
            y = sections[k, 0] * x + state[k, 0]
            state[k, 0] = sections[k, 1] * x - sections[k, 3] * y + state[k, 1]
            state[k, 1] = sections[k, 2] * x - sections[k, 4] * y
            x = y
        result[n] = x
    return result


def notch(frequency, quality):
    """A section that removes one frequency, in hertz."""
    turn = 2 * np.pi * frequency / RATE
    alpha = np.sin(turn) / (2 * quality)
    middle = -2 * np.cos(turn)
    return np.array([1, middle, 1, middle, 1 - alpha]) / (1 + alpha)


def recording(samples):
    time = np.arange(samples) / RATE
    tone = np.sin(2 * np.pi * 220 * time) * np.exp(-3 * (time % 0.5))
    hum = sum(np.sin(2 * np.pi * 50 * k * time) / k for k in (1, 2, 3))
    return tone + 0.5 * hum


def arguments(scale):
    return recording(12_000 * scale), np.stack([notch(50.0 * k, 8.0) for k in (1, 2, 3)])


def draw(figure, result):
    top, bottom = figure.subplots(2, 1, sharex=True)
    time = np.arange(len(result)) / RATE
    top.plot(time, recording(len(result)), linewidth=0.4, color="tab:red")
    top.set(title="with hum", ylim=(-1.8, 1.8))
    bottom.plot(time, result, linewidth=0.4)
    bottom.set(title="after the filter", xlabel="seconds", ylim=(-1.8, 1.8))


if __name__ == "__main__":
    show(__doc__, filtered, arguments, draw)
