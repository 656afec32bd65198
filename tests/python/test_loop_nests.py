"""Loops that are compiled to one kernel: what their bodies need of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_checks import both, rolled

import rune_jit


def _softmax_by_rows(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        r = x[i] - x[i].mean()
        y[i] = np.exp(r) / np.exp(r).sum()
    return y


def _rows_from_rows_before(x: Any) -> Any:
    y = x.copy()
    for i in range(1, x.shape[0]):
        r = np.exp(y[i] - y[i - 1])
        y[i] = r / r.sum() + x[-i]
    return y


def _products(x: Any) -> Any:
    y = x.copy()
    for i in range(x.shape[0]):
        y[i] = y[i] @ (x.T @ x)
    return y


def _swapped(x: Any) -> Any:
    a, b = x[:-1].copy(), x[1:] * 2
    for _ in range(7):
        a, b = b, a * 0.5 + b
    return a, b


def _columns(x: Any) -> Any:
    y = x.copy()
    for j in range(2, x.shape[1]):
        y[:, j] = 0.5 * y[:, j - 1] - 0.25 * y[:, j - 2] + x[:, j]
    return y


def _energy_of_pairs(p: Any) -> Any:
    energy = 0.0  # a Python number before the first pair, NumPy's afterwards
    for i in range(p.shape[0]):
        for j in range(i + 1, p.shape[0]):
            energy += 1 / np.sqrt(((p[i] - p[j]) ** 2).sum())
    return energy


PROGRAMS = [_softmax_by_rows, _rows_from_rows_before, _products, _swapped, _columns]


@pytest.mark.parametrize("shape", [(5, 3), (37, 130), (300, 40)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__.strip("_"))
@pytest.mark.parametrize("device", ["cpu", "interpreter"])
def test_program(program: Callable[[Any], Any], shape: tuple[int, int], device: str) -> None:
    if device == "interpreter" and shape[0] * shape[1] > 5000:
        pytest.skip("the interpreter runs large arrays slowly")
    x = np.random.default_rng(0).random(shape) / shape[1]
    got = rune_jit.jit(program, device=device)(x)
    want = program(x)
    for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_iterations_that_are_independent_are_shared_by_cores() -> None:
    x = np.random.default_rng(0).random((4000, 500))
    function = rune_jit.jit(_softmax_by_rows)
    np.testing.assert_allclose(function(x), _softmax_by_rows(x), rtol=1e-12)
    (loops,) = (k for k in function.lower(x).kernels if "@loops_" in k)
    assert "special Workgroup_idx" in loops
    in_order = rune_jit.jit(_rows_from_rows_before).lower(x)
    assert not any("@loops_" in k and "Workgroup_idx" in k for k in in_order.kernels)


def test_independent_iterations_write_arrays_of_a_dynamic_size() -> None:
    """An argument may have far fewer elements than its size allows."""

    def columns(x: Any) -> Any:
        y = x + 1
        for j in range(x.shape[1]):
            y[:, j] = np.sqrt(y[:, j]) + j
            x[:, j] = np.sqrt(x[:, j]) * np.abs(x[:, j] - j)
        return y

    function = rune_jit.jit(columns, dynamic={"x": {0: rune_jit.Dim("n", max=300_000)}})
    for n in (10, 3000, 1):
        x = np.random.default_rng(n).random((n, 64))
        mine, theirs = x.copy(), x.copy()
        np.testing.assert_allclose(function(mine), columns(theirs), rtol=1e-12)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_compilation_does_not_depend_on_the_number_of_iterations() -> None:
    texts = []
    for n in (8000, 80000):
        lowered = rune_jit.jit(_columns).lower(np.ones((3, n)))
        texts.append([len(kernel.splitlines()) for kernel in lowered.kernels])
    assert texts[0] == texts[1]
    costs = rune_jit.jit(_columns).lower(np.ones((3, 5000))).cost_analysis()
    assert costs["kernels"] == 1
    assert costs["flops"] == 4 * 3 * 4998


def test_a_part_that_is_turned_is_read_before_it_is_written() -> None:
    """The box that is written and the one that is read begin at the same element."""

    def turn(a: Any) -> Any:
        for i in range(6):
            a[i : i + 3, 1:4, 2] = a[i, 1:4, 2:5] * 2
        return a

    a = np.random.default_rng(0).random((9, 5, 5))
    want = a.copy()
    for i in range(6):
        want[i : i + 3, 1:4, 2] = want[i, 1:4, 2:5].copy() * 2
    function = rune_jit.jit(turn)
    np.testing.assert_array_equal(function(a), want)
    assert "is a loop of the program" in function.explain()


def _histogram(at: Any, weights: Any) -> Any:
    out = np.zeros(10)
    for i in range(at.shape[0]):
        out[at[i]] += weights[i]
    return out


def _linked_list(following: Any, x: Any) -> Any:
    at, total = 0, 0.0
    for _ in range(50):
        total += x[at]
        at = following[at]
    return total


def _under_a_condition(at: Any, x: Any) -> Any:
    out = np.zeros(at.shape[0])
    for i in range(at.shape[0]):
        if at[i] < x.shape[0]:
            out[i] = x[at[i]]
    return out


@pytest.mark.parametrize("program", [_histogram, _linked_list, _under_a_condition])
def test_indices_that_are_data(program: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    most = 15 if program is _under_a_condition else 10
    at, x = rng.integers(-10, most, 100), rng.random(100 if program is _histogram else 10)
    function = rune_jit.jit(program)
    np.testing.assert_allclose(function(at, x), program(at, x), rtol=1e-12)
    assert "is a loop of the program" in function.explain()


@pytest.mark.parametrize("wrong", [10, -11])
def test_an_index_out_of_bounds_in_any_iteration_is_an_error(wrong: int) -> None:
    function = rune_jit.jit(_histogram)
    at, weights = np.random.default_rng(0).integers(0, 10, 100), np.ones(100)
    function(at, weights)
    at[57] = wrong
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
        function(at, weights)


def test_a_number_may_change_its_type_in_the_first_iterations() -> None:
    p = np.random.default_rng(0).random((30, 3))
    function = rune_jit.jit(_energy_of_pairs)
    np.testing.assert_allclose(function(p), _energy_of_pairs(p), rtol=1e-12)
    assert "is unrolled" not in function.explain()


def _distance(a: Any, b: Any) -> Any:
    d = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    d[:, 0], d[0] = np.arange(len(a) + 1), np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[-1, -1]


def _sign(x: Any) -> Any:
    return 1.0 if x > 0 else (-1.0 if x < 0 else 0.0)


def _signs(a: Any, b: Any) -> Any:
    out = np.zeros(len(a))
    for i in range(len(a)):
        out[i] = _sign(a[i] - b[3])
    return out


@pytest.mark.parametrize("program", [_distance, _signs])
def test_conditional_expressions(program: Callable[..., Any]) -> None:
    a, b = np.random.default_rng(0).integers(0, 4, (2, 40))
    function = rune_jit.jit(program)
    np.testing.assert_array_equal(function(a, b), program(a, b))
    assert "is a loop of the program" in function.explain()


def test_rows_of_an_array_that_an_iteration_makes() -> None:
    """The name of a row has the value of an earlier trace when the loop over rows begins."""

    def program(a: Any, b: Any) -> None:
        n = a.shape[0]
        for i in range(n - 1):
            for row in a + 0.0:
                for j in range(i + 1, n):
                    row[j] = b[0]
                    np.add(b, np.flip(b[:]), out=b)

    a, b, expected = np.ones((5, 5)), np.arange(5.0), np.arange(5.0)
    rune_jit.jit(program, fallback="error")(a, b)
    program(a, expected)
    np.testing.assert_array_equal(b, expected)


def test_a_loop_of_a_function_that_is_called_before_the_loop_around_it():
    def forces(x):
        a = np.zeros_like(x)
        for i in range(8):
            a[i % 3] += x[i % 3] * 0.1
        return a

    def leapfrog(x, n):
        v = np.zeros_like(x)
        a = forces(x)
        for _ in range(n):
            v = v - 0.5 * a
            x = x + 0.1 * v
            a = forces(x)
            v = v - 0.5 * a
        return x, v

    def sweeps(u, n):
        for _ in range(n):
            for j in range(1, len(u) - 1):
                c = np.zeros(len(u))
                for i in range(1, len(u) - 1):
                    c[i] = c[i - 1] + u[i, j]
                u[:, j] = c / 9
            u = u.T.copy()
        return u

    rolled(leapfrog, np.random.default_rng(0).random((3, 2)), 20, ulps=32)
    both(sweeps, np.random.default_rng(0).random((8, 8)), 5, ulps=32)


def test_rows_that_a_name_keeps_from_an_iteration_that_ran_apart() -> None:
    def nest(a, b):
        total = 0
        c = np.zeros(9, np.int64)
        for _ in range(9):
            m = 0
            while m < 8:
                if total > 3:
                    break
                for k, row in enumerate(a + 1):
                    c[m] += a[m, k]
                    if b[8] > 3:
                        row[1] = 0
                m += 1
            total = b[1]
        return total, c

    rolled(nest, np.arange(81).reshape(9, 9) % 5, np.arange(9))
