"""Containers of the user's classes, which have attributes, in functions that run in segments."""

import contextvars
from collections import OrderedDict

import numpy as np
import pytest

import rune_jit
from rune_jit.calls.replacing import replaced
from rune_jit.capture.grown import Grown


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


class _Counted(dict):
    writes = 0

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.writes += 1


class _CountedInOrder(_Counted, OrderedDict):
    pass


class _Unique(set):
    writes = 0

    def update(self, *others):
        super().update(*others)
        self.writes += 1


@pytest.mark.parametrize("make", [_Counted, _CountedInOrder])
def test_methods_of_dicts_run_only_where_the_function_calls_them(make):
    @rune_jit.jit
    def f(held, x):
        held["x"] = x + 1
        held["total"] = float(x.sum())

    for _ in range(3):
        held = make()
        f(held, np.ones(2))
        assert [*held] == ["x", "total"] and type(held["x"]) is np.ndarray
        assert held.writes == 2


def test_methods_of_sets_run_only_where_the_function_calls_them():
    @rune_jit.jit
    def f(held, x):
        held.update([x.sum()])
        return x.tolist()

    for _ in range(3):
        held = _Unique()
        f(held, np.ones(2))
        assert held == {2.0} and type(*held) is np.float64 and held.writes == 1


_VARIABLE = contextvars.ContextVar("variable", default=0.0)


@pytest.mark.parametrize("make", [lambda x: x, lambda x: (1, x), lambda x: [x]])
def test_context_variables_get_values(make):
    @rune_jit.jit
    def f(x):
        _VARIABLE.set(make(x + 1))
        return _VARIABLE.get()

    for i in range(4):
        x = np.full(3, float(i))
        for held in (f(x), _VARIABLE.get()):
            array = held if type(held) is np.ndarray else held[-1]
            assert type(array) is np.ndarray
            np.testing.assert_array_equal(array, x + 1)


def test_lists_of_traces_that_have_ended_are_left_alone():
    class Holder:
        pass

    held = Holder()
    held.items = Grown([], list.append)  # (it refuses to be read)
    assert replaced(held, lambda x: x, {}) is held
