"""Random NumPy programs give NumPy's results on every device; what fails is printed with its seed,
its code, its graph and its kernels (run it alone with tests/fuzz/reproduce.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from expectation import Expectation
from generator import generate
from hypothesis import given
from hypothesis import strategies as st
from programs import Program, Step
from runner import DEVICES, MODES, check, failure, smallest

import rune_jit

Calls = Iterator[tuple[Program, list[Any]]]
_SEEDS = st.integers(0, 2**32 - 1)


# One seed of so many runs where a program takes longer.
_EVERY = {"metal-interpreted": 3, "cuda-interpreted": 3, "interpreter-delayed": 3}
_EVERY["segments"] = 3


@pytest.mark.parametrize("mode", MODES)
@given(seed=_SEEDS)
def test_programs(mode: str, seed: int) -> None:
    if seed % _EVERY.get(mode, 1) == 0:
        check(seed, mode)


@pytest.mark.parametrize("mode", DEVICES)
def test_programs_with_dynamic_sizes(mode: str, full: bool) -> None:
    for seed in range(2000 if full else 100):
        check(seed, mode, dynamic=1 + seed % 3)


@pytest.mark.parametrize("mode", DEVICES)
def test_long_programs(mode: str, full: bool) -> None:
    for seed in range(1_000_000, 1_000_000 + (400 if full else 20)):
        check(seed, mode, most_steps=60)


# What once went wrong.


@pytest.mark.parametrize("seed", [112])
def test_programs_that_read_beyond_their_arguments(seed: int) -> None:
    """112: LLVM 22 divides a masked load of 64 bytes, of which the second half loads nothing."""
    check(seed, "cpu")


_COLUMN = np.arange(1, 8, dtype=np.int32).reshape(7, 1)
_FOUND: list[tuple[Callable[..., Any], np.ndarray]] = [
    # One element that all lanes share, needed by some of them only.
    (lambda x: np.concatenate([np.pad(x, [(3, 2), (3, 2)])] * 3, 1), _COLUMN),
    # A constant summed by a group of threads.
    (
        lambda x: np.mean(np.isnan(x == x), axis=(0, 1), dtype=np.float32),
        np.ones((7, 31), np.float32),
    ),
]


@pytest.mark.parametrize("mode", DEVICES)
@pytest.mark.parametrize("case", range(len(_FOUND)))
def test_found(case: int, mode: str) -> None:
    function, x = _FOUND[case]
    actual = rune_jit.jit(function, device=mode, fallback="error")(x)
    np.testing.assert_array_equal(actual, function(x))


# The instrument itself: it must be able to fail, and must let pass what may differ.


def _program(expression: str, noise: str | None, *inputs: np.ndarray) -> Program:
    program = Program(dict(enumerate(inputs)), dict.fromkeys(range(len(inputs)), "C"))
    program.steps = [Step(len(inputs), expression, noise)]
    program.outputs = [len(inputs)]
    if noise is None:
        program.exact = program.signed_zeros = {len(inputs)}
    return program


def test_exact_results_must_have_the_same_bits() -> None:
    x = np.array([1.5, -0.0, np.nan, np.inf], np.float32)
    expectation = Expectation(_program("v0 * 1", None, x))
    assert expectation.mismatch((x,)) is None
    for i, wrong in ((0, 1.5000001), (1, 0.0), (2, 1.0), (3, np.nan), (3, -np.inf)):
        y = x.copy()
        y[i] = wrong
        assert expectation.mismatch((y,)), (i, wrong)
    assert "dtype" in (expectation.mismatch((x.astype(np.float64),)) or "")
    assert "shape" in (expectation.mismatch((x[None],)) or "")
    assert "results" in (expectation.mismatch((x, x)) or "")


def test_sums_may_differ_by_rounding_only() -> None:
    x = np.array([1e8, 1.0, -1e8, 1.0], np.float32)
    expectation = Expectation(_program("np.sum(v0)", "eps * 6 * np.sum(magnitude(v0))", x))
    assert expectation.mismatch((np.float32(2.0),)) is None
    assert expectation.mismatch((np.float32(1e4),))
    assert expectation.mismatch((np.float32(np.nan),))


def test_a_wrong_compiler_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(program: Program, mode: str) -> Calls:
        yield program, [np.zeros_like(r) for r in Expectation(program).results]

    monkeypatch.setattr("runner.run", wrong)
    noticed = [seed for seed in range(30) if failure(generate(seed), "cpu")]
    assert len(noticed) > 20
    with pytest.raises(
        AssertionError, match=rf"seed {noticed[0]} on cpu: v\d+: .* instead of (?s:.*)graph \{{"
    ):
        check(noticed[0], "cpu")


def test_dropped_writes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def drops(program: Program, mode: str) -> Calls:
        results = program.function()(*program.arguments())
        yield program, [*results, *program.arguments()][: len(program.observed)]

    monkeypatch.setattr("runner.run", drops)
    noticed = [seed for seed in range(150) if failure(generate(seed), "cpu")]
    assert len(noticed) > 10
    with pytest.raises(AssertionError, match=rf"seed {noticed[0]} on cpu: argument (?s:.*)program"):
        check(noticed[0], "cpu")


def test_failing_programs_are_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the one step that goes wrong, here each sum."""

    def wrong(program: Program, mode: str) -> Calls:
        right = Expectation(program).results
        yield program, [[r] if "np.sum(" in program.source() else r for r in right]

    monkeypatch.setattr("runner.run", wrong)
    found = [seed for seed in range(60) if "np.sum(" in generate(seed).source()]
    assert found
    for seed in found:
        program, _ = smallest(generate(seed), "cpu", "1 instead of 0")
        assert len(program.steps) == 1 and "np.sum(" in program.source(), program.source()


def test_seeds_make_the_same_program_again() -> None:
    for seed in (1, 77):
        first, second = generate(seed), generate(seed)
        assert first.source() == second.source()
        for i, array in first.inputs.items():
            np.testing.assert_array_equal(array, second.inputs[i])
    assert len({generate(seed).source() for seed in range(50)}) > 45
