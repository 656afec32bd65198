"""When to exercise an American put.

A binomial tree: from the last day backwards, the value of the option at each price is the mean of
two later values, or what exercising pays at once. The loop over days carries a whole row of the
tree. Source: Cox, Ross and Rubinstein, 1979.
"""

from __future__ import annotations

import numpy as np
from show import show

import rune_jit

STRIKE, RATE, VOLATILITY, YEARS = 100.0, 0.05, 0.3, 1.0


@rune_jit.jit
def american_put(price, days):
    """The option's price, and each day's highest price of the share at which one exercises."""
    dt = YEARS / days
    up = np.exp(VOLATILITY * np.sqrt(dt))
    likely = (np.exp(RATE * dt) - 1 / up) / (up - 1 / up)
    discount = np.exp(-RATE * dt)
    nodes = np.arange(days + 1)
    values = np.maximum(STRIKE - price * up ** (2.0 * nodes - days), 0)
    boundary = np.zeros(days)
    for back in range(days):
        day = days - 1 - back
        shares = price * up ** (2.0 * nodes - day)
        waiting = discount * (likely * np.roll(values, -1) + (1 - likely) * values)
        now = STRIKE - shares
        exercised = (now > waiting) & (nodes <= day)
        values = np.where(exercised, now, waiting)
        boundary[day] = np.where(exercised, shares, 0).max()
    return values[0], boundary


def arguments(scale):
    return 100.0, 400 * scale


def draw(figure, result):
    value, boundary = result
    axes = figure.subplots()
    days = np.arange(len(boundary))[boundary > 0] / len(boundary)
    axes.fill_between(days, boundary[boundary > 0], 60, color="tab:orange", alpha=0.4)
    axes.plot(days, boundary[boundary > 0], color="tab:red")
    axes.axhline(STRIKE, color="gray", linestyle=":")
    title = f"exercise below the line; price of the option {float(value):.3f}"
    axes.set(xlabel="time, years", ylabel="price of the share", ylim=(60, 110), title=title)


if __name__ == "__main__":
    show(__doc__, american_put, arguments, draw)
