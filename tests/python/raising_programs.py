"""Programs that raise exceptions under conditions in loops. (pytest rewrites assertions in modules
of tests.)"""

from __future__ import annotations

import sys

import numpy as np

log: list[int] = []


class Refusal(Exception):
    pass


def only_checks(x):
    for i in range(len(x)):
        if x[i] < 0:
            raise Refusal(f"negative at {i}: {x[i]}")
    return x.sum()


def effects_before(x):
    x[0] = 7.0
    for i in range(len(x)):
        x[i] = x[i] * 2
        if x[i] < 0:
            log.append(i)
            x[-1] = 99
            raise Refusal("bad", i)
    return x


def checked_root(v, i):
    if v < 0:
        raise Refusal(f"{v} at {i}")
    elif v > 100:
        return 10.0
    return np.sqrt(v)


def in_what_it_calls(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = checked_root(x[i], i)
    return out


def second_side(x):
    s = 0.0
    for v in x:
        if v >= 0:
            s += v
        else:
            raise Refusal from KeyError("cause")
    return s


def assertion(x):
    s = 0.0
    for v in x:
        assert v >= 0, "negative"
        s += v
    return s


def several(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] < 0 and i > 2:
            raise ValueError(i)
        if not (x[i] < 1e6 or i == 0):
            raise OverflowError(i)
        s += x[i]
    return s


def no_convergence(x):
    v, count = x[0], 0
    while v > 1e-3:
        if count > 50:
            raise RuntimeError("no convergence")
        v = v * x[1]
        count += 1
    return v, count


def divergence(x):
    v, count = x[0], 0
    while True:
        v = v * x[1]
        count += 1
        if v < 1e-3:
            break
        if v > 1e6 or v == 0:
            raise RuntimeError("diverges")
    return v, count


def nested(x):
    y = x.reshape(-1, 2) * 1.0
    for i in range(y.shape[0]):
        for j in range(2):
            if y[i, j] < 0:
                if y[i, j] < -10:
                    raise KeyError(i, j)
                y[i, j] = 0.0
    return y


def before_an_index(x):
    s = 0.0
    for i in range(len(x)):
        k = int(x[i])
        if k < 0 or k >= len(x):
            raise ValueError("out of range")
        s += x[k]
    return s


def before_a_division(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] == 0:
            raise ZeroDivisionError(i)
        s += 1.0 / float(x[i])
    return s


def beside_jumps(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 5:
            continue
        if x[i] < 0:
            raise ValueError(i)
        if x[i] > 4:
            break
        s += x[i]
    return s


def caught(x):
    s = 0.0
    try:
        for i in range(len(x)):
            if x[i] < 0:
                raise Refusal(i)
            s += x[i]
    except Refusal as error:
        return -1.0 - error.args[0]
    return s


def caught_by_the_caller(x):
    try:
        return only_checks(x)
    except Refusal as error:
        return error.args[0]


def positive_parts(x):
    if x.min() < 0:
        x = np.abs(x)
    s = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            raise Refusal(i)
        s += x[i]
    return s


def after_the_loop(x):
    y = 1.0
    for k in range(40):
        new = 0.5 * (y + x[5] / y) * (1 if x[17] >= 0 else -1)
        change = abs(new - y)
        if change < 1e-12:
            return new, k
        y = new
    raise Refusal(f"no convergence in {k} steps: {change < 1e-12}")


def else_of_a_loop(x):
    for k in range(len(x)):
        if x[k] < 0.75 * x[17]:
            break
    else:
        raise Refusal(f"none in {k}")
    return x[k] + k


def else_of_an_inner_loop(x):
    s = 0.0
    for i in range(len(x)):
        for k in range(60):
            if k * k > x[i] * (x[i] > 0) + (x[i] < 0) * 1e9:
                break
        else:
            raise Refusal(f"no root of {i}: {k}")
        s += k
    return s


def exits(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            log.append("negative")
            sys.exit(f"at {i}")
        s += np.sqrt(x[i])
    return s


def mode_that_is_known(x, mode="strict"):
    s = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            if mode == "strict":
                raise Refusal(i)
            s -= 1.0
        s += x[i]
    return s
