"""Containers of the user's classes, which have attributes, in functions that run in segments."""

import numpy as np
import pytest

import rune_jit


class _Log(list):
    def put(self, x):
        self.append(x + 1)
        self.last = x * 2


class _Table(dict):
    def put(self, x):
        self["x"] = x + 1
        self.last = [x * 2]


@pytest.mark.parametrize("make", [_Log, _Table])
def test_containers_with_attributes_get_values(make):
    @rune_jit.jit
    def f(held, x):
        held.put(x)
        return float(x[0])

    for _ in range(3):
        held = make()
        f(held, np.ones(2))
        items = [*held.values()] if make is _Table else held
        assert type(items[0]) is np.ndarray
        last = held.last[0] if make is _Table else held.last
        assert type(last) is np.ndarray
