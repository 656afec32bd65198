"""Errors of float functions in units of the last place, on samples of what benchmarks/ulp.py checks
in full."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest

import rune_jit

_FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "ulp.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ulp", _FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["ulp"] = module
    spec.loader.exec_module(module)
    return module


ulp = _load()
# As in docs/float_contract.md; float64 as libm, whose largest errors are those of cbrt.
_BASIC = ("sqrt", "reciprocal")
_FLOAT64 = {"cbrt": 4.0}


@pytest.mark.parametrize("name", ulp.UNARY)
def test_float32(name: str, full: bool) -> None:
    worst = ulp.float32_unary(name, 61 if full else 9973)
    assert worst.wrong == 0, worst.at
    assert worst.ulps <= (0.5 if name in _BASIC else 2), worst.at


def test_huge_arguments_near_multiples_of_half_pi() -> None:
    """Whose reduced arguments are tiny."""
    x = np.float32([1.2614587862244266e38, 5.3193724e16, 1.6367e10, 16367173 * 2.0**72])
    for name in ("sin", "cos", "tan"):
        worst = ulp.Worst(name, "float32")
        ulp.check(worst, ulp.compiled(name), (x,))
        assert worst.wrong == 0 and worst.ulps <= 2, worst.at


@pytest.mark.parametrize("name", ulp.UNARY)
def test_narrow_floats_on_all_encodings(name: str) -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        worst = ulp.narrow_unary(name, dtype)
        assert worst.wrong == 0, worst.at
        assert worst.ulps <= (0.5 if name in _BASIC else 1.01), worst.at


@pytest.mark.parametrize("name", ulp.UNARY)
def test_float64(name: str) -> None:
    worst = ulp.random_arguments(name, "float64", 1 << 14)
    assert worst.wrong == 0, worst.at
    assert worst.ulps <= _FLOAT64.get(name, 2), worst.at


@pytest.mark.parametrize("name", ulp.BINARY)
def test_pairs(name: str) -> None:
    for dtype in ("float32", "float64"):
        worst = ulp.random_arguments(name, dtype, 1 << 16)
        assert worst.wrong == 0, worst.at
        assert worst.ulps <= 2, worst.at


def test_errors_are_measured_in_units_of_the_result() -> None:
    """The instrument itself: errors of known size, and values of another kind."""
    true = np.array([1.0, 1.0, 2.0**-149, 3.0, 0.0, np.inf, np.nan, 2.0**200])
    got = np.array([1, 1 + 2**-22, 0, np.nan, -0.0, np.inf, np.nan, np.inf], np.float32)
    error, wrong = ulp.errors(got, true)
    assert list(error) == [0, 2, 1, 0, 0, 0, 0, 0]
    assert list(wrong) == [False, False, False, True, True, False, False, False]
    worst = ulp.Worst("name", "float32")
    worst.add((true,), got, true)
    assert (worst.ulps, worst.wrong, worst.inputs) == (2, 2, 8)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no wider type for true values")
def test_float64_functions_are_within_two_ulp() -> None:
    rng = np.random.default_rng(3)
    wide = np.exp(rng.uniform(-700, 700, 20_000))
    turns = np.r_[rng.uniform(-10, 10, 20_000), 10 ** rng.uniform(0, 300, 5_000)]
    near = rng.uniform(-2, 2, 20_000)
    arguments = {
        "exp": rng.uniform(-700, 700, 20_000),
        "exp2": rng.uniform(-1000, 1000, 20_000),
        "expm1": np.r_[near, rng.uniform(-40, 700, 20_000)],
        "log": np.r_[wide, np.abs(near)],
        "log2": np.r_[wide, np.abs(near)],
        "log10": np.r_[wide, np.abs(near)],
        "log1p": np.r_[wide, near / 2.1],
        "sin": turns,
        "cos": turns,
        "tan": turns,
        "tanh": np.r_[near, 10 * near],
    }
    for name, x in arguments.items():
        function = getattr(np, name)
        true = function(x.astype(np.longdouble))
        unit = np.spacing(np.abs(true.astype(np.float64)))
        error = np.abs(rune_jit.jit(function)(x) - true) / unit
        assert error.max() < 2, (name, x[error.argmax()])


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no wider type for true values")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [1.5, -0.5, -1.5])
def test_powers_by_roots(exponent: float, dtype: str) -> None:
    """Whose kernels take roots instead of calling pow. Multiplying x by 4 scales the result by a
    power of two, so that numbers from 1 to 4 have all errors."""
    power = rune_jit.jit(lambda x: x**exponent)
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(1, 4, 50_000), 10 ** rng.uniform(-37, 37, 5_000)]).astype(dtype)
    true = x.astype(np.longdouble) ** np.longdouble(exponent)
    inside = (true > np.finfo(dtype).tiny) & (true < np.finfo(dtype).max)
    error = np.abs(power(x) - true) / np.spacing(np.where(inside, true, 1).astype(dtype))
    assert error[inside].max() < 2, x[inside][error[inside].argmax()]

    limits = np.finfo(dtype)
    zeros = [0.0, -0.0, np.inf, -np.inf, np.nan, -1, limits.smallest_subnormal, -limits.tiny]
    special = np.array(zeros, dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(power(special), special**exponent)
        assert np.array_equal(np.signbit(power(special[:4])), np.signbit(special[:4] ** exponent))
