# mypy: ignore-errors
# ruff: noqa
import numpy as np

W = np.eye(3)
SCALE = 2.0
NAMES = ["a"]
OPTIONS = {"bias": True, "b": np.ones(3)}


class Box:
    value = np.zeros(2)
    n = 0


def set_scale(s):
    global SCALE
    SCALE = s
    NAMES.append(f"s{s}")
    return SCALE


def replace_w(w):
    global W
    W = w
    OPTIONS["b"] = OPTIONS["b"] + 1
    OPTIONS["bias"] = not OPTIONS["bias"]
    Box.value = Box.value + w[0, :2]
    Box.n += 1


def apply(x):
    y = x @ W * SCALE
    if OPTIONS["bias"]:
        y = y + OPTIONS["b"]
    return y, len(NAMES), Box.value, Box.n


def new_global(x):
    global CREATED
    CREATED = x * 2
    globals()["OTHER"] = x.sum()
    return CREATED + OTHER


def deleter(x):
    global CREATED
    try:
        del CREATED
        return "deleted"
    except NameError as e:
        return str(e)


CALLS = [
    ("apply", lambda r: (r.random(3),)),
    ("set_scale", lambda r: (3.0,)),
    ("apply", lambda r: (r.random(3),)),
    ("replace_w", lambda r: (r.random((3, 3)),)),
    ("apply", lambda r: (r.random((2, 3)),)),
    ("new_global", lambda r: (r.random(2),)),
    ("deleter", lambda r: (1,)),
    ("deleter", lambda r: (1,)),
    ("set_scale", lambda r: (np.float64(0.5),)),
    ("apply", lambda r: (r.random(3),)),
    ("set_scale", lambda r: (2,)),
    ("apply", lambda r: (r.integers(0, 3, 3),)),
]
