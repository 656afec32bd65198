"""Functions that run in segments and get arrays whose memory objects hold, too."""

import collections
import copy
import types
from typing import NamedTuple

import numpy as np
import pytest
from segment_checks import check, never_numpy, x

import rune_jit

__all__ = ["never_numpy"]  # a fixture of all tests here


class Holder:
    field, parts = None, ()


@pytest.mark.parametrize("way", ["closure", "argument", "method", "part", "list"])
def test_arguments_whose_memory_objects_hold(way):
    """What is written to the argument shows in the object."""

    def calls(jit):
        holder, shown = Holder(), []

        def step(values, held=holder):
            values[1:] += 1
            shown.append(copy.deepcopy([float(values[0])]))
            total = (held.parts[0] if way == "list" else held.field).sum()
            values[0] = total
            return total, (held.parts[0] if way == "list" else held.field) * 2

        class Model(Holder):
            def step(self, values):
                return step(values, self)

        model = Model()
        run = jit(model.step if way == "method" else step)
        grid, results = np.arange(6.0), []
        for _ in range(4):
            for one in (holder, model):
                one.field, one.parts = grid[1:] if way == "part" else grid, [grid]
            args = (grid, holder) if way == "argument" else (grid,)
            results.append((run(*args), grid.copy()))
        return results, shown

    check(calls(rune_jit.jit), calls(lambda f: f))


class Pair(NamedTuple):
    field: object
    other: object


class Slots:
    __slots__ = ("field",)


@pytest.mark.parametrize("written", ["argument", "object"])
@pytest.mark.parametrize("holder", [Holder(), Slots(), Pair, types.SimpleNamespace(), "deque"])
def test_objects_that_share_memory_with_arguments(holder, written):
    """Writes to the one show in the other. Earlier operations have read the old elements."""

    def f(values, holder):
        first = values.tolist()[0]
        total = values.sum() * first
        field = holder[0] if is_sequence else holder.field
        (values if written == "argument" else field)[1] += first
        return total, values * 2, field + 1

    jitted, is_sequence = rune_jit.jit(f), holder in (Pair, "deque")
    for _ in range(3):
        calls = []
        for function in (jitted, f):
            grid = x()
            if is_sequence:
                held = Pair(grid, 0) if holder is Pair else collections.deque([grid])
            else:
                held, held.field = holder, grid[:]
            calls.append((function(grid, held), grid))
        check(*calls)
    assert "in segments" in jitted.explain()


def _generator(values):
    while True:
        values[1] += 3
        yield values.sum()


@pytest.mark.parametrize("make", [_generator, lambda values: values.flat])
def test_iterators_over_the_memory_of_arguments(make):
    def f(values, iterator):
        total = values.sum()
        first = next(iterator)
        values[1] += 2
        if isinstance(iterator, np.flatiter):
            iterator[2] = first + 5
        return total, first, next(iterator), values.sum()

    jitted = rune_jit.jit(f)
    for _ in range(3):
        ours, theirs = x(), x()
        check((jitted(ours, make(ours)), ours), (f(theirs, make(theirs)), theirs))
    assert "in segments" in jitted.explain()


@pytest.mark.parametrize("start", [0, 1, 2])
def test_results_in_the_memory_of_operands_are_written_once(start):
    def f(values, holder):
        first = values.tolist()[0]
        np.multiply(holder.field, values, out=holder.field)
        holder.field -= values
        return first, values * 2

    jitted = rune_jit.jit(f)
    for _ in range(3):
        calls = []
        for function in (jitted, f):
            grid = np.arange(2.0, 10.0)
            holder = types.SimpleNamespace(field=grid[start : start + 4])
            calls.append((function(grid[2:6], holder), grid))
        check(*calls)
    assert "in segments" in jitted.explain()


def test_arguments_that_code_which_is_not_copied_returns():
    def f(values):
        global last_index  # (so that the function is not copied)
        last_index = values.tolist()[0]
        return np.asarray(values), np.asarray(values)[:2], values

    jitted = rune_jit.jit(f)
    for _ in range(3):
        values = np.arange(4.0)
        same, part, itself = jitted(values)
        assert same is values and itself is values
        assert part.base is not None and np.shares_memory(part, values)
    assert "in segments" in jitted.explain()


def test_arguments_in_lists_that_loops_apart_make():
    """The loop makes a list that holds an argument, to which the function writes later."""

    def f(x):
        for turn in range(2):  # noqa: B007
            points = [x] + [x + 0.5]  # noqa: RUF005
        for _ in range(3):
            middle = points[0] + points[1]
            x += 1
            if middle[0] < -100:
                middle = middle * 2
        return middle, points[0] is x, points

    jitted = rune_jit.jit(f)
    for _ in range(3):
        ours, theirs = np.array([-1.0, 1.5]), np.array([-1.0, 1.5])
        check((*jitted(ours), ours), (*f(theirs), theirs))
    assert "in segments" in jitted.explain()
