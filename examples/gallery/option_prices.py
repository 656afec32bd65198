"""Prices of Asian options by Monte Carlo.

An Asian option pays by the mean price of a share over a year. Each path is a geometric Brownian
motion; the control variate (the same option on the geometric mean, whose price is known) takes most
of the error away. The normal numbers are an argument. Source: Kemna and Vorst, 1990.
"""

from __future__ import annotations

import math

import numpy as np
from show import show

import rune_jit

PRICE, RATE, VOLATILITY, YEARS = 100.0, 0.03, 0.25, 1.0


def normal_cdf(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def geometric_price(strike, steps):
    """The known price of an option on the geometric mean."""
    deviation = VOLATILITY * math.sqrt(YEARS * (steps + 1) * (2 * steps + 1) / (6 * steps**2))
    drift = (RATE - VOLATILITY**2 / 2) * YEARS * (steps + 1) / (2 * steps)
    upper = (math.log(PRICE / strike) + drift + deviation**2) / deviation
    mean = PRICE * math.exp(drift + deviation**2 / 2)
    value = mean * normal_cdf(upper) - strike * normal_cdf(upper - deviation)
    return math.exp(-RATE * YEARS) * value


@rune_jit.jit
def price(numbers, strikes, known):
    """The price and its standard error for each strike, from numbers[paths, steps]."""
    paths, steps = numbers.shape
    dt = YEARS / steps
    growth = (RATE - VOLATILITY**2 / 2) * dt + VOLATILITY * math.sqrt(dt) * numbers
    logs = math.log(PRICE) + np.cumsum(growth, axis=1)
    arithmetic, geometric = np.exp(logs).mean(axis=1), np.exp(logs.mean(axis=1))
    discount = math.exp(-RATE * YEARS)
    payoff = discount * np.maximum(arithmetic[:, None] - strikes, 0)
    control = discount * np.maximum(geometric[:, None] - strikes, 0)
    values = payoff - control + known
    return values.mean(axis=0), values.std(axis=0) / np.sqrt(paths), payoff.std(axis=0)


def arguments(scale):
    numbers = np.random.default_rng(0).normal(size=(20_000 * scale, 50))
    strikes = np.linspace(80, 120, 9)
    return numbers, strikes, np.array([geometric_price(k, 50) for k in strikes])


def draw(figure, result):
    prices, errors, _ = result
    left, right = figure.subplots(1, 2)
    strikes = np.linspace(80, 120, len(prices))
    left.plot(strikes, prices, "o-")
    left.set(xlabel="strike", title="price")
    right.bar(strikes, errors, width=3)
    right.set(xlabel="strike", title="standard error")


if __name__ == "__main__":
    show(__doc__, price, arguments, draw)
