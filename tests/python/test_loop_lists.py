"""Lists that loops make longer, and comprehensions: loops of the program where one run of the body
can stand for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare import assert_same
from loop_checks import both, refused, rolled

import rune_jit


def x(n: int = 9) -> np.ndarray:
    return np.random.default_rng(n).random((n, 3))


# What is appended.


def test_arrays_of_a_list_are_one_array() -> None:
    def f(x):
        found = []
        for i in range(x.shape[0]):
            found.append(x[i] * 2)
        return (
            np.array(found),
            np.asarray(found, np.float32),
            np.stack(found, axis=-1),
            np.concatenate(found),
            np.concatenate([y.reshape(1, 3) for y in found], axis=1),
            np.vstack(found),
            np.sum(found, axis=0),
            sum(found),
            len(found),
            found[-1],
        )

    rolled(f, x(), ulps=4)


@pytest.mark.parametrize("axis", (-3, -2, -1, 0, 1, 2))
def test_axes(axis: int) -> None:
    def f(x):
        found = []
        for i in range(x.shape[0]):
            found.append(np.outer(x[i], x[i, :2]))
        return np.stack(found, axis), np.concatenate(found[1:5], max(axis, -2) % 2)

    rolled(f, x())


def test_the_compiled_program_stacks_nothing() -> None:
    def f(x):
        found = []
        for i in range(x.shape[0]):
            found.append(np.sin(x[i]))
        return np.array(found)

    program = rune_jit.jit(f).lower(x(2000))
    assert str(program.graph).count("\n") < 60


def test_a_list_is_returned() -> None:
    def f(x):
        found = []
        for i in range(x.shape[0]):
            found.append(x[i] * 2)
        return found

    rolled(f, x())


def test_numbers_keep_their_types() -> None:
    def f(x):
        numpys, floats, ints, flags, counts, names = [], [], [], [], [], []
        for i in range(x.shape[0]):
            numpys.append(x[i, 0])
            floats.append(float(x[i, 0]))
            ints.append(int(x[i, 0] * 100))
            flags.append(x[i, 0] > 0.5)
            counts.append(2 * i + 1)
            names.append("a")
        types = [type(y[2]).__name__ for y in (numpys, floats, ints, flags, counts)]
        return numpys, floats, ints, flags, counts, names, types, np.array(ints), x[counts[:3]]

    rolled(f, x())


def test_values_have_parts() -> None:
    def f(x):
        found = []
        for i in range(x.shape[0]):
            found.append((x[i], [x[i].sum(), i]))
        return found, np.array([b[0] for _, b in found])

    rolled(f, x(), ulps=2)


def test_several_values_are_appended() -> None:
    def f(x):
        found = []
        for i in range(x.shape[0]):
            found.append(x[i] * 2)
            found.append(x[i] * 3)
        return np.array(found), found

    rolled(f, x())


def test_an_inner_loop_appends_to_an_outer_list() -> None:
    def flat(x):
        found = []
        for i in range(x.shape[0]):
            for j in range(5):
                found.append(x[i, 0] * j)
        return np.array(found)

    def nested(x):
        found = []
        for i in range(x.shape[0]):
            row = []
            for j in range(5):
                row.append(x[i, 0] * j)
            found.append(row)
        return np.array(found), found

    rolled(flat, x())
    rolled(nested, x())


def test_a_list_has_items_before_and_behind() -> None:
    def f(x):
        found = [x[0]]
        for i in range(1, x.shape[0]):
            found.append(x[i] * 2)
        found.append(x[-1])
        return np.array(found), np.stack(found), np.concatenate(found), np.vstack(found)

    rolled(f, x())


def test_while_loops_with_counters_append() -> None:
    def f(x):
        found, i = [], 0
        while i < 6:
            x = x * 2
            found.append(x)
            i += 1
        return np.array(found)

    rolled(f, x())


def test_functions_that_a_loop_calls_have_lists() -> None:
    def powers(v):
        found = []
        for k in range(5):
            found.append(v * k)
        return np.array(found)

    def f(x):
        total = np.zeros((5, 3))
        for i in range(x.shape[0]):
            total += powers(x[i])
        return total

    rolled(f, x())


# The last item.


def test_the_last_item_is_read() -> None:
    def arrays(x):
        found, sums = [x[0]], [0.0]
        for i in range(x.shape[0]):
            found.append(found[-1][::-1] * 0.5 + x[i])
            sums.append(sums[-1] + found[-1].sum())
        found[-1][0] = 5
        for i in range(x.shape[0]):
            found.append(found[-1] + i)
        return np.array(found), found, np.array(sums), sums

    def inner(x):
        rows, found = [], [x[0, 0]]
        for i in range(x.shape[0]):
            row = [x[i, 0]]
            for j in range(5):
                row.append(row[-1] * 0.5 + j)
                found.append(found[-1] + row[-2] if j > 9 else found[-1] - row[-1])
            rows.append(np.array(row))
        return np.array(rows), np.array(found)

    def the_same(x):
        found = [x[0].copy()]
        for _ in range(6):
            found.append(found[-1])
        found[0][1] = 9
        return np.array(found), found[0] is found[-1]

    rolled(arrays, x(), ulps=64)
    both(inner, x(), ulps=64)
    rolled(the_same, x())


def test_the_last_item_is_written_to() -> None:
    def f(x):
        found = [x[0].copy()]
        for _ in range(x.shape[0]):
            y = found[-1]
            y += 1
            found.append(y * 0.5)
        return np.array(found)

    refused("is written to before it stands for another array", f, x())


def test_a_list_with_two_names() -> None:
    def f(x):
        found = [x[0]]
        other = found
        for i in range(x.shape[0]):
            found.append(found[-1] + x[i])
            other.append(other[-1] * 2)
        return np.array(found)

    refused("it appends to a list that has two names", f, x())


def test_an_empty_list_has_no_last_item() -> None:
    def f(x):
        found = []
        for i in range(x.shape[0]):
            found.append(found[-1] + x[i])
        return found

    with pytest.raises(IndexError, match="list index out of range"):
        rune_jit.jit(f)(x())


# Comprehensions.


def test_comprehensions() -> None:
    def f(x):
        i = 5
        rows = np.array([np.sin(x[i]).sum() for i in range(x.shape[0])])
        table = np.array([[x[i, 0] * j for j in range(20)] for i in range(30)])
        sums = [a + b for a, b in zip(x, x[::-1])]  # noqa: B905
        return rows, table, sums, i

    rolled(f, x(30), ulps=4)


def test_comprehensions_keep_their_names() -> None:
    def f(x):
        i, found = 3, None
        found = [i, [x[i] * i for i in range(20)], i]
        late = [lambda y, i=i: y * i for i in range(20)]
        return found, late[2](x), i, [y for y in "abc"]

    both(f, x(20))


# What one run of the body cannot stand for.


def test_lists_that_are_read() -> None:
    def by_another_name(x):
        found = []
        other = found
        for i in range(x.shape[0]):
            found.append(x[i] * 2)
            x[i, 0] = len(other)
        return np.array(found), x

    def an_item(x):
        found = [x[0]]
        for i in range(x.shape[0]):
            found.append(found[i] * 0.5 + x[i])
        return np.array(found)

    refused("it changes a list", by_another_name, x())
    refused("is unrolled", an_item, x())


def test_lists_under_conditions() -> None:
    def some(x):
        found = []
        for i in range(x.shape[0]):
            if x[i, 0] > 0.5:
                found.append(x[i])
        return np.array(found)

    def left(x):
        found = []
        for i in range(x.shape[0]):
            if x[i, 0] > 0.9:
                break
            found.append(x[i])
        return len(found)

    def inner(x):
        total = np.zeros(3)
        for i in range(x.shape[0]):
            found = []
            if x[i, 0] > 0.5:
                for j in range(5):
                    found.append(x[i, 0] * j)
            total += len(found)
        return total

    def behind(x):
        found = []
        for i in range(x.shape[0]):
            if x[i, 0] > 0.9:
                break
        else:
            found.append(x[0])
        return len(found)

    for f in (some, left, inner, behind):
        refused("it appends to a list under a condition", f, x())


def test_lists_from_elsewhere() -> None:
    def by_a_function(x):
        found = []

        def add(y):
            found.append(y)

        for i in range(x.shape[0]):
            add(x[i] * 2)
        return np.array(found)

    class Recorder:
        def __init__(self):
            self.count = 0

        def append(self, y):
            self.count += 1

    def an_object(x):
        recorder = Recorder()
        for i in range(x.shape[0]):
            recorder.append(x[i])
        return recorder.count * x

    rolled(by_a_function, x())
    refused("it calls the method append", an_object, x())


def test_a_list_among_the_arguments() -> None:
    def f(found, x):
        for i in range(x.shape[0]):
            found.append(x[i] * 2)
        return len(found)

    wanted: list[Any] = [x(1)]
    found: list[Any] = [x(1)]
    jitted = rune_jit.jit(f)
    for _ in range(3):
        assert_same(jitted(found, x()), f(wanted, x()))
    assert_same(found, wanted)


def test_shapes_that_differ() -> None:
    def f(x):
        found = []
        for i in range(x.shape[0]):
            found.append(x[:i] * 2)
        return found

    refused("it appends arrays of different shapes to a list", f, x())


def test_an_index_out_of_bounds() -> None:
    def f(x):
        found = []
        for i in range(20):
            found.append(x[i] * 2)
        return found

    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 9"):
        rune_jit.jit(f)(x())


# Appending under conditions on the counter.


class Costs:
    def __init__(self) -> None:
        self.costs: list[Any] = []

    def fit(self, x: Any, n: int) -> Any:
        w = np.zeros(3)
        for i in range(n):
            w = w * 0.9 + x[i % 9]
            if i % 20 == 0:
                self.costs.append((w**2).sum())
        return w


def every_twentieth(x: Any, n: int) -> Any:
    costs = Costs()
    return costs.fit(x, n), costs.costs


def snapshots(x: Any, n: int) -> Any:
    saved, times = [x[0]], []
    for k in range(n, 0, -1):
        x = x * 0.5 + k
        if k % 7 == 3 or k == n:
            saved.append(x[k % 9].copy())
            times.append((k, x.sum()))
    return saved, times, np.array(saved[1:])


def inner(x: Any, n: int) -> Any:
    found = []
    for i in range(n):
        for j in range(6):
            x = x * 0.9 + 1
            if j % 2 == 1:
                found.append(x[0, 0] + i)
    return found


def last_item(x: Any, n: int) -> Any:
    found = [0.5]
    for i in range(n):
        if i % 4 == 1:
            found.append(found[-1] * 0.5 + x[i % 9, 1])
    return found, found[-1]


@pytest.mark.parametrize("n", [5, 40, 300])
@pytest.mark.parametrize("f", [every_twentieth, snapshots, inner, last_item])
def test_the_counter_decides_whether_a_list_becomes_longer(f: Any, n: int) -> None:
    rolled(f, x(), n, ulps=256)


def other_conditions(x: Any, n: int) -> Any:
    by_data, by_both, twice, never = [], [], [], []
    for i in range(n):
        if x[i % 9, 0] > 0.5:
            by_data.append(i)
        if i % 2 == 0 and x[i % 9, 1] > 0.5:
            by_both.append(x[i % 9, 1])
        if i % 3 == 0:
            twice.append(x[i % 9, 2])
        else:
            twice.append(-1.0)
        if i > 1000:
            never.append(i)
    return by_data, by_both, twice, never


def under_a_name(x: Any, n: int) -> Any:
    found, best = [], x[0]
    for i in range(n):
        x = np.roll(x, 1)
        if i % 4 == 1:
            best = x * 2
            found.append(best)
    best[0] = 99
    return found, best


def by_the_outer_counter(x: Any, n: int) -> Any:
    found = []
    for i in range(n):
        for j in range(5):
            if i % 2 == 0:
                found.append(x[i % 9, 0] * j)
    return found


@pytest.mark.parametrize("f", [other_conditions, under_a_name, by_the_outer_counter])
def test_other_conditions(f: Any) -> None:
    both(f, x(), 30)
