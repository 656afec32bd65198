# mypy: ignore-errors
# ruff: noqa
"""Heat equation, written as a script: state lives in the module."""

import numpy as np

NX, DX, ALPHA = 41, 0.05, 0.01
dt = 0.4 * DX * DX / ALPHA
u = np.zeros(NX)
history = []
step_count = 0


def init(kind="gauss"):
    global u, step_count
    x = np.linspace(0, 2, NX)
    if kind == "gauss":
        u = np.exp(-((x - 1) ** 2) / 0.05)
    elif kind == "step":
        u = np.where(x > 1, 1.0, 0.0)
    else:
        raise KeyError(kind)
    step_count = 0
    history.clear()


def advance(n):
    global u, step_count
    for _ in range(n):
        un = u.copy()
        u[1:-1] = un[1:-1] + ALPHA * dt / DX**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        step_count += 1
        if step_count % 5 == 0:
            history.append(u.max())
    return u


def simulate(kind, n):
    init(kind)
    final = advance(n)
    return final.sum() * DX, len(history)


CALLS = [
    ("simulate", lambda r: ("gauss", 10)),
    ("simulate", lambda r: ("step", 12)),
    ("advance", lambda r: (3,)),
    ("simulate", lambda r: ("what", 3)),
    ("advance", lambda r: (7,)),
]
