# mypy: ignore-errors
# ruff: noqa
import enum
import numpy as np
from collections import Counter


class State(enum.Enum):
    IDLE = 0
    RUN = 1
    FAULT = 2


def machine(signal):
    s = State.IDLE
    hist = []
    for x in signal:
        match s:
            case State.IDLE if x > 0.5:
                s = State.RUN
            case State.RUN if x > 0.9:
                s = State.FAULT
            case State.RUN if x < 0.2:
                s = State.IDLE
            case State.FAULT:
                s = State.IDLE
        hist.append(s)
    return hist, Counter(h.name for h in hist)


def match_ints(codes):
    x, y, heading = 0, 0, 0
    trail = np.zeros((len(codes), 2), int)
    for i, c in enumerate(codes):
        match c:
            case 0:
                x += 1
            case 1:
                y += 1
            case 2:
                x -= 1
            case 3 | 4:
                y -= 2
            case _:
                heading += 1
        trail[i] = x, y
    return trail, heading


def match_struct(items):
    total = 0
    for it in items:
        match it:
            case {"kind": "sq", "s": s}:
                total += s * s
            case {"kind": "rect", "w": w, "h": h} if w > 0:
                total += w * h
            case [a, b, *rest]:
                total += a * b + sum(rest)
            case np.ndarray():
                total += it.sum()
            case int() | float():
                total += it
            case _:
                total -= 1
    return total


CALLS = [
    ("machine", lambda r: (r.random(20),)),
    ("match_ints", lambda r: (r.integers(0, 7, 15),)),
    (
        "match_struct",
        lambda r: (
            [
                {"kind": "sq", "s": 2.0},
                {"kind": "rect", "w": 2, "h": 3},
                [1, 2, 3, 4],
                r.random(3),
                5,
                "x",
                None,
            ],
        ),
    ),
]
