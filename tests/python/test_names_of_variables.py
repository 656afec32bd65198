"""`locals`, `vars` and `dir` give the variables of the user's function, and no others."""

import numpy as np
import pytest
from compare import assert_same

import rune_jit


def of_loops(x):
    total = 0
    for _, (a, _) in enumerate(zip(x, x, strict=True)):
        total = total + a
    least = min(x[j] for j in range(3)) if total > 3 else 0
    small = np.array([i for i in range(5) if i < 3])
    return sorted(locals()), sorted(vars()), dir(), locals()["least"], small


def of_pairs(x):
    for _, _ in np.ndenumerate(x):
        pass
    start = max(0, 2)
    return {**locals()}, "{start}".format(**vars())


def of_inner(x):
    def inner(a, b=2):
        c = a * b
        return locals()

    class Named:
        locals()["k"] = 5

    return inner(x), Named.k, vars(Named)["k"], "k" in dir(Named)


def of_executed(x):
    exec("z = 3")
    return x + 1, locals().get("z")


@pytest.mark.parametrize("function", [of_loops, of_pairs, of_inner, of_executed])
def test_names(function):
    jitted = rune_jit.jit(function, fallback="silent")
    for k in range(3):
        x = np.arange(5.0) + k
        assert_same(jitted(x), function(x))
