"""Errors and warnings of functions that run in segments: they are NumPy's, and come where NumPy's
do."""

import logging
import operator as op
import warnings

import numpy as np
import pytest
from segment_checks import check, never_numpy, segmented, x

import rune_jit

__all__ = ["never_numpy"]  # a fixture of all tests here


# Errors of deferred operations.


def test_index_errors_reach_the_handler():
    def f(x, at):
        try:
            return x[at]
        except IndexError as error:
            return str(error), bool(x.sum() > 0)

    jitted = rune_jit.jit(f)
    for at in ([1, 2], [1, 9], [0, 3], [-7, 0]):
        check(jitted(x(), np.array(at)), f(x(), np.array(at)))

    def g(x, at):
        if x.max() > 0:
            try:
                y = x[at] * 2
            except IndexError as error:
                return str(error)
            return y
        return x

    segmented(g, x(), np.array([1, 9]))


def test_index_errors_that_numpy_finds_when_it_assigns_a_number():
    class Sums:
        pass

    def f(x, at, sums):
        total = x[0].tolist()
        for i in range(len(at)):
            sums.values[i] = total
            total += x[at[i]]

    for function in (rune_jit.jit(f), f):
        sums = Sums()
        sums.values = np.zeros(4)
        with pytest.raises(IndexError, match="index 9 is out of bounds") as found:
            function(x(), np.array([1, 2, 9, 3]), sums)
        assert found.value.__cause__ is found.value.__context__ is None
        np.testing.assert_allclose(sums.values, [-1, -1.4, -1.2, 0])


def test_what_is_written_before_an_index_error():
    def f(x, at):
        x[0] = x.max().tolist()
        x[at[0]] += 1
        x[at[1]] = 3

    for function in (rune_jit.jit(f), f):
        values = x()
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            function(values, np.array([4, 9]))
        np.testing.assert_allclose(values, [2, -0.4, 0.2, 0.8, 2.4, 2])


def test_index_errors_are_never_lost():
    def f(x, at):
        if x.max() > 0:
            x[at]
        return x

    jitted = rune_jit.jit(f)
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 6"):
        jitted(x(), np.array([9]))


def test_errors_of_calls_on_the_host_reach_the_handler():
    def f(a):
        try:
            return np.linalg.solve(a, np.ones(2))
        except np.linalg.LinAlgError as error:
            return str(error)

    segmented(f, np.ones((2, 2)))
    segmented(f, np.eye(2))


def test_positions_out_of_bounds():
    def f(x, last):
        for i in [*range(last)]:
            x[i] = float(x.sum())
        return x

    jitted = rune_jit.jit(f)
    for call in (jitted, f):
        x = np.ones(3)
        with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
            call(x, 4)
        np.testing.assert_array_equal(x, [3, 5, 9])


@pytest.mark.parametrize("at", [[2, 0, 6], [-7, 0], range(4, 8), ([0, 1], [1, 3])])
def test_known_positions_out_of_bounds_raise_before_other_code_runs(at):
    def read(x, log):
        x[0].tolist()
        y = (x + 1).reshape(-1, 3) if isinstance(at, tuple) else x + 1
        log.append(y[at][:1])
        return y

    def write(x, log):
        x[0].tolist()
        y = (x + 1).reshape(-1, 3) if isinstance(at, tuple) else x + 1
        y[at] = 5
        log.append(y)
        return y

    segmented(read, x(), [])
    segmented(write, x(), [])


@pytest.mark.parametrize("at", [0, 1, (), ..., slice(None), slice(1, 2), [0]])
def test_numbers_take_no_items(at):
    def f(x, log):
        log.append(x.sum() % 61)
        try:
            log[0][at] = 3
        except TypeError as error:
            log.append(str(error))
        return x * 2

    jitted = rune_jit.jit(f)
    for _ in range(3):
        wanted, found = [], []
        check(jitted(x(), found), f(x(), wanted))
        assert found == wanted
        assert type(found[0]) is np.float64


@pytest.mark.parametrize(
    "write",
    [
        lambda zeros: zeros.__setitem__(0, 3.0),
        lambda zeros: np.negative(zeros, out=zeros),
        lambda zeros: zeros.fill(1.0),
    ],
)
def test_the_imaginary_part_of_a_real_array_is_read_only(write):
    def f(x):
        zeros = x.imag
        x.tolist()
        write(zeros)
        return zeros

    jitted = rune_jit.jit(f)
    for _ in range(3):
        with pytest.raises(ValueError, match="read-only"):
            jitted(x())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "at",
    [
        lambda x: slice(x.max()),
        lambda x: slice(x.max(), None),
        lambda x: -7,
        lambda x: [0, 6],
        lambda x: 2.0,
        lambda x: None,
        lambda x: "a",
        lambda x: x.max(),
        lambda x: x.max() > 0,
        lambda x: x > 0,
        lambda x: ...,
    ],
)
def test_positions_that_are_no_integers(at):
    def read(x):
        x[0].tolist()
        return x[at(x)]

    def write(x):
        x[0].tolist()
        x[at(x)] = 5
        return x

    def read_flat(x):
        x[0].tolist()
        return (x + 1).flat[at(x)]

    def write_flat(x):
        x[0].tolist()
        x.flat[at(x)] = 5
        return x

    for function in (read, write, read_flat, write_flat):
        segmented(function, x())


def test_floats_as_positions_of_lists():
    def read(x, items):
        return items[x.max()]

    def read_part(x, items):
        return items[: x.max()]

    def write(x, items):
        items[x.max()] = 3

    def count(x, items):
        return range(x.max())

    for function in (read, read_part, write, count):
        segmented(function, x(), [1, 2, 3])


def test_arrays_that_are_not_sorted_in_place():
    def f(x, how):
        x[0].tolist()
        getattr(np.broadcast_to(x * 2, (3, 6)), how[0])(*how[1:])

    for how in (("sort",), ("partition", 2), ("fill", 1)):
        segmented(f, x(), how)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.compress(),
        lambda x: x.choose(-3),
        lambda x: x.reshape(out=x),
        lambda x: x.sum(7),
        lambda x: x.fill([1.5]),
        lambda x: x.fill(x),
        lambda x: np.max(x, axis=[0]),
        lambda x: x.mean([0]),
        lambda x: 1.0 in x.max(),
        lambda x: np.repeat(x, x[0] * 0 + 2),
        lambda x: op.delitem(x, 0),
    ],
)
def test_other_arguments(call):
    def f(x):
        x[0].tolist()
        return call(x * 2)

    segmented(f, x())


@pytest.mark.parametrize(
    "use",
    [
        lambda y, held: y[held["pair"]],
        lambda y, held: y.__setitem__(held["pair"], 2),
        lambda y, held: y.__setitem__(0, held["pair"]),
        lambda y, held: y + held,
        lambda y, held: y.reshape(held["pair"]),
    ],
)
def test_containers_that_hold_themselves(use):
    def f(x):
        x[0].tolist()
        held = {"x": x * 2}
        held["pair"] = (1, held)
        return use(x * 3, held)

    segmented(f, x())


def test_reports_name_callers_by_their_level(caplog):
    def f(x):
        def report():
            warnings.warn("large", stacklevel=3)
            logging.warning("large", stacklevel=3)

        report()
        return x * 2

    def call(function):
        return function(x())

    jitted = rune_jit.jit(f, fallback="silent")
    line = call.__code__.co_firstlineno + 1
    for _ in range(2):  # (NumPy runs the third call)
        with pytest.warns(UserWarning, match="large") as found:
            call(jitted)
        assert [(x.filename, x.lineno) for x in found] == [(__file__, line)]
        assert [(x.filename, x.lineno) for x in caplog.records] == [
            ("test_segment_errors.py", line)
        ]
        caplog.clear()
    assert "in segments" in jitted.explain()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[i],
        lambda x, i: (x * 2)[np.argsort(i) + i],
        lambda x, i: x.reshape(2, 3)[:, i],
        lambda x, i: np.stack([x[i + k] for k in range(3)]),
    ],
)
def test_the_first_of_several_wrong_indices_is_reported(function):
    def f(x, i):
        x[0].tolist()
        return function(x, i)

    for wrong in ([1, 7, 9], [1, -8, 2], [[0, -7], [9, 1]]):
        segmented(f, x(), np.array(wrong))
