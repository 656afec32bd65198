"""Linear algebra of small matrices in loops (rules/small_matrices.py): parts of the loop's kernel,
with NumPy's results and exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matrix_programs as programs
import numpy as np
import optree
import pytest

import rune_jit

OF_STACKS = [
    programs.chained_solutions,
    programs.chained_inverses,
    programs.determinants,
    programs.cholesky_factors,
    programs.several_right_hand_sides,
]
DTYPES: list[Any] = [np.float64, np.float32, np.int64]


def _check(function: Callable[..., Any], *args: Any, calls: int = 1) -> Any:
    """Compares results, or what is raised; returns the jitted function."""
    jitted = rune_jit.jit(function)
    for _ in range(calls):
        with np.errstate(all="ignore"):
            try:
                expected = function(*args)
            except np.linalg.LinAlgError as error:
                with pytest.raises(np.linalg.LinAlgError) as raised:
                    jitted(*args)
                assert str(raised.value) == str(error)
                continue
            actual = jitted(*args)
        pairs = zip(optree.tree_leaves(actual), optree.tree_leaves(expected), strict=True)
        for got, want in pairs:
            assert type(got) is type(want)
            assert np.asarray(got).dtype == np.asarray(want).dtype
            of_single = np.asarray(want).dtype == np.float32 or args[0].dtype == np.float32
            rtol, atol = (2e-3, 1e-4) if of_single else (1e-8, 1e-10)
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
    return jitted


def _stack(n: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    a = (4 * rng.standard_normal((12, n, n))).astype(dtype)
    a += 12 * np.eye(n, dtype=dtype)[::-1]  # pivots are not on the diagonal
    return a, (4 * rng.standard_normal((12, n))).astype(dtype)


def _is_one_loop(jitted: Any, function: Callable[..., Any]) -> bool:
    of_function = function.__code__.co_filename.rpartition("/")[2]
    lines = [line.strip() for line in jitted.explain().splitlines() if of_function in line]
    lines = [line for line in lines if line.startswith("loop at")]
    return bool(lines) and all("is a loop of the program" in line for line in lines)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("function", OF_STACKS)
def test_matrices_in_loops(function: Callable[..., Any], n: int, dtype: Any) -> None:
    if n == 1 and function is programs.several_right_hand_sides:
        pytest.skip("two columns of one")
    jitted = _check(function, *_stack(n, dtype))
    assert _is_one_loop(jitted, function), jitted.explain()


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
@pytest.mark.parametrize("function", [*OF_STACKS[:4], programs.errors_are_counted])
def test_matrices_that_numpy_refuses(function: Callable[..., Any], bad: float) -> None:
    a, b = _stack(3, np.float64)
    a[7] = bad
    _check(function, a, b, calls=3)


def test_a_singular_matrix_after_regular_ones() -> None:
    a, b = _stack(3, np.float64)
    jitted = rune_jit.jit(programs.chained_solutions)
    np.testing.assert_allclose(jitted(a, b), programs.chained_solutions(a, b))
    a[3, 1] = a[3, 2]
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        jitted(a, b)
    a[3] = np.eye(3)
    np.testing.assert_allclose(jitted(a, b), programs.chained_solutions(a, b))


def test_conditions_on_matrices() -> None:
    a, b = _stack(3, np.float64)
    a[[2, 5]] = 0
    jitted = _check(programs.only_regular_ones, a, b, calls=3)
    assert _is_one_loop(jitted, programs.only_regular_ones), jitted.explain()
    a[5] = 1
    _check(programs.only_regular_ones, a, b, calls=3)


def test_kalman_filter() -> None:
    rng = np.random.default_rng(0)
    f, h = np.eye(4) + np.eye(4, k=2) / 10, np.eye(2, 4)
    arguments = rng.standard_normal((60, 2)), f, h, np.eye(4) / 100, np.eye(2) / 10, np.zeros(4)
    jitted = _check(programs.kalman_filter, *arguments, np.eye(4))
    assert _is_one_loop(jitted, programs.kalman_filter), jitted.explain()


def test_newton_and_least_squares() -> None:
    jitted = _check(programs.newton, np.array([1.5, 1.0]), 1e-10)
    assert _is_one_loop(jitted, programs.newton), jitted.explain()
    rng = np.random.default_rng(0)
    a = rng.standard_normal((200, 3))
    y = (a @ [1, -2, 0.5] + rng.standard_normal(200) > 0) * 1.0
    jitted = _check(programs.reweighted_least_squares, a, y)
    assert _is_one_loop(jitted, programs.reweighted_least_squares), jitted.explain()


def test_dtypes_that_numpy_refuses_or_converts() -> None:
    a, b = _stack(2, np.float64)
    _check(programs.chained_solutions, a.astype(np.int8), b.astype(np.float32))
    _check(programs.chained_solutions, a.astype(complex), b.astype(complex))
    with pytest.raises(TypeError, match="float16"):
        rune_jit.jit(programs.chained_solutions)(a.astype(np.float16), b.astype(np.float16))


PIVOTED = [
    programs.with_pivoting,
    programs.exchanged_rows,
    programs.factors_with_pivoting,
    programs.gaussian_elimination,
]


@pytest.mark.parametrize("n", [2, 7])
@pytest.mark.parametrize("function", PIVOTED)
def test_rows_that_data_decide_are_exchanged(function: Callable[..., Any], n: int) -> None:
    a, b = _stack(n, np.float64)
    jitted = _check(function, a[0], b[0])
    if n > 2:
        assert _is_one_loop(jitted, function), jitted.explain()


def test_simplex() -> None:
    rng = np.random.default_rng(0)
    tableau = np.zeros((5, 7))
    tableau[:4, :6], tableau[:4, 6], tableau[4, :6] = rng.random((4, 6)) + 0.1, 1, -1
    jitted = _check(programs.simplex, tableau, 20)
    assert _is_one_loop(jitted, programs.simplex), jitted.explain()
