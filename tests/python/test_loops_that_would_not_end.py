"""A loop whose condition depends on data does not begin where NumPy would have raised before it, or
where the program assumed another outcome of a condition: it might not end."""

import numpy as np
import pytest
from compare import outcome

import rune_jit
from rune_jit.calls.trial import Trial

STEPS = np.array([1, 1, 1, 1, 0])  # (an index out of bounds reads the last one)


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch):
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def collatz(x):
    n = x[0]
    if n < 1:
        raise ValueError(f"bad {n}")
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def root(a):
    if a[0] < 0:
        raise ValueError("negative")
    x = a[0] + 1.0
    while abs(x * x - a[0]) > 1e-9:
        x = 0.5 * (x + a[0] / x)
    return x


def after_an_index(at):
    step = STEPS[at[0]]
    i = 0
    while i < 10:
        i += step
    return i


def after_a_loop(at):
    step = 0
    for k in at:
        step = STEPS[k]
    i = 0
    while i < 10:
        i += step
    return i


def within_a_loop(at):
    total = 0
    for k in range(len(at)):
        step = STEPS[at[k]]
        i = 0
        while i < 10:
            i += step
        total += i
    return total


def within_a_while(at):
    total = 0
    while total < 50:
        step = STEPS[at[total % 4]]
        i = 0
        while i < 10:
            i += step
        total += i
    return total


def after_an_iteration(at):
    step = total = 0
    for k in range(len(at)):
        i = 0
        while i < 10 * (k > 1):
            i += step
        step = STEPS[at[k]]
        total += i
    return total


def under_a_condition(at):
    step, total = 1, 0
    if at[1] > 2:
        step = STEPS[at[0]]
    while total < 10:
        total += step
    return total


CASES = [
    *((collatz, [n]) for n in (6, 7, -3, 0, 9)),
    *((root, [n]) for n in (4.0, 9.0, -4.0, 2.0)),
    *(
        (function, at)
        for function in (
            *(after_an_index, after_a_loop, within_a_loop, within_a_while),
            *(after_an_iteration, under_a_condition),
        )
        for at in ([0, 1, 2, 3], [9, 9, 9, 9], [1, 9, 1, 1], [3, 3, 3, 9], [0, 0, 0, 0])
    ),
]


@pytest.mark.parametrize("device", ["cpu", "interpreter"])
@pytest.mark.parametrize("function", dict.fromkeys(f for f, _ in CASES))
def test_loops(function, device):
    jitted = rune_jit.jit(function, fallback="silent", device=device)
    for given in [x for f, x in CASES if f is function] * 2:
        found, wanted = (outcome(f, np.array(given)) for f in (jitted, function))
        assert (type(found), str(found)) == (type(wanted), str(wanted))
