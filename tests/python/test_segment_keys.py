"""Functions that compare the results of their argument `key`, in segments."""

import heapq

import numpy as np
import pytest
from segment_checks import never_numpy, segmented

__all__ = ["never_numpy"]  # a fixture of all tests here


class Ranked:
    def __init__(self, x):
        self.x = x

    def value(self, i):
        return self.x[i] * 2, i

    def best(self):
        return sorted(range(len(self.x)), key=self.value, reverse=True)[:4]


def sorted_in_place(x):
    made = [x[i] * 2 for i in range(9)]
    made.sort(key=lambda v: -v)
    return made


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sorted(range(len(x)), key=lambda i: x[i]),
        lambda x: max(range(len(x)), key=lambda i: x[i]),
        lambda x: min(range(len(x)), key=x.__getitem__),
        lambda x: heapq.nlargest(3, range(len(x)), key=lambda i: -x[i]),
        lambda x: sorted([x[1], x[0], x[2]], key=abs),
        lambda x: sorted({"a": x[0], "b": x[1]}.items(), key=lambda pair: pair[1]),
        lambda x: sorted(range(3), key=None),
        lambda x: max([x, x + 1], key=lambda v: v.sum()),
        lambda x: sorted(x, key=lambda v: (v > 0, -v))[:3],
        lambda x: Ranked(x).best(),
        sorted_in_place,
    ],
)
def test_keys_that_are_traced_numbers(function):
    def f(x):
        x[0].tolist()
        return function(x)

    segmented(f, np.random.default_rng(0).normal(size=50))


def test_comparisons_make_no_segments():
    def f(x):
        x[0].tolist()
        return sorted(range(len(x)), key=lambda i: x[i])

    entry = segmented(f, np.random.default_rng(0).normal(size=400), calls=1)
    assert len(entry.programs) == 0
