"""What docs/float_contract.md promises."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compare import assert_matches, run
from devices import ALONE, HAS_FLOAT64, devices

import rune_jit

DEVICES = devices("cpu", "interpreter")
FLOATS = [np.float32, np.float64] if HAS_FLOAT64 else [np.float32]
HERE = Path(__file__).resolve().parent


def encodings(dtype: Any, count: int, seed: int = 0) -> np.ndarray:
    """Normal numbers of all magnitudes, and special values."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    exponents = rng.uniform(info.minexp / 2 + 1, info.maxexp / 2 - 1, count)
    values = (rng.choice([-1, 1], count) * 2.0**exponents).astype(dtype)
    values[:9] = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -2.5]
    rng.shuffle(values)
    return values


def test_every_promise_names_tests_that_exist() -> None:
    text = (HERE.parents[1] / "docs/float_contract.md").read_text()
    promises = re.findall(r"^\| (\*\*.+) \| (.+) \|$", text, re.MULTILINE)
    assert len(promises) == text.count("\n| **")
    for promise, shown in promises:
        names = re.findall(r"`([\w.]+\.py)(?:::(\w+))?`", shown)
        assert names, promise
        for file, test in names:
            if not test:
                assert (HERE / file).exists(), file
                continue
            defined = rf"^(def {test}\b|.*\b{test}\b.* = contract_tests\()"
            assert re.search(defined, (HERE / file).read_text(), re.MULTILINE), (file, test)


@pytest.mark.parametrize("device", DEVICES)
def test_nan_in_reductions(device: str) -> None:
    x = np.zeros((4, 70), np.float32)
    x[0, 33] = np.nan
    x[1, 0], x[1, 69] = np.inf, -np.inf
    x[2] = -0.0
    names = ("max", "min", "sum", "prod", "mean", "argmax", "argmin", "any")

    def f(x: Any) -> Any:
        y = np.roll(x, 1, 1)
        pairs = [u(x, y) for u in (np.maximum, np.minimum, np.fmax, np.fmin)]
        return [getattr(np, name)(x, axis=1) for name in names] + pairs

    with np.errstate(all="ignore"):
        for name, got, want in zip([*names, *"abcd"], run(f, device, x), f(x), strict=True):
            np.testing.assert_array_equal(got, want, err_msg=name)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("device", DEVICES)
def test_basic_operations_have_numpys_bits(device: str, dtype: Any) -> None:
    a, b = encodings(dtype, 4000), encodings(dtype, 4000, 1)

    def f(a: Any, b: Any) -> Any:
        return (
            (a + b, a - b, a * b, a / b, 1 / a, np.sqrt(a), np.reciprocal(b)),
            (np.floor(a), np.ceil(a), np.trunc(a), np.rint(a)),
            (a < b, a <= b, a == b, a != b, a > b, a >= b),
            (a.astype(np.float16), a.astype(np.float32), -a, np.abs(a)),
        )

    with np.errstate(all="ignore"):
        for got, want in zip(run(f, device, a, b), f(a, b), strict=True):
            for i, (g, w) in enumerate(zip(got, want, strict=True)):
                assert_matches(g, w, 0, str(i))


@pytest.mark.parametrize("device", DEVICES)
def test_no_reassociation(device: str) -> None:
    big, one = np.float32([1e20, 1e30, 3]), np.float32([1, 1, 1e-8])
    special = np.float32([np.nan, np.inf, -np.inf, -0.0, 0.0, 2])

    def f(big: Any, one: Any, x: Any) -> Any:
        return (
            (one + big) - big,
            one + (big - big),
            (big * 1e30) * 1e-30,
            (one / 3) * 3,
            (big + 0.1) + 0.2,
            x * 0,
            x + 0.0,
            x - x,
            x / x,
            0 - x,
            -(x - 1),
            x * 1,
            x * -1,
        )

    with np.errstate(all="ignore"):
        for i, (got, want) in enumerate(
            zip(run(f, device, big, one, special), f(big, one, special), strict=True)
        ):
            assert_matches(got, want, 0, str(i))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("device", DEVICES)
def test_no_fused_multiply_add(device: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(1000).astype(dtype) for _ in range(2))
    c = -(a * b)
    exact = a.astype(np.longdouble) * b.astype(np.longdouble) + c
    assert np.count_nonzero(exact) > 500  # what a fused operation would give
    results = run(lambda a, b, c: (a * b + c, c + b * a, a * b - -c), device, a, b, c)
    for result in results:
        assert not result.any()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("device", DEVICES)
def test_sums_are_as_good_as_pairwise(device: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    n = 1 << (20 if device == "cpu" else 14)
    f = rune_jit.jit(lambda x: (x.sum(), x.mean(), (x * x).sum()), device=device)
    for x in (rng.standard_normal(n), rng.random(n) + 1e4, np.full(n, 0.1)):
        x = x.astype(dtype)
        total, mean, squares = f(x)
        bound = float(np.finfo(dtype).eps) * math.log2(n) * math.fsum(np.abs(x).tolist())
        assert abs(float(total) - math.fsum(x.tolist())) <= bound
        assert abs(float(mean) - math.fsum(x.tolist()) / n) <= bound / n * 2
        exact = math.fsum((x * x).tolist())
        assert abs(float(squares) - exact) <= float(np.finfo(dtype).eps) * math.log2(n) * exact
        assert f(x) == (total, mean, squares)  # at each run


@pytest.mark.parametrize("device", DEVICES)
def test_updates_in_order(device: str) -> None:
    values = np.float32([1e8, 1, -1e8, 1, 3, 1e-3] * 4)
    indices = np.array([0, 0, 0, 1, 0, 1] * 4)
    expected = np.zeros(2, np.float32)
    np.add.at(expected, indices, values)

    def f(i: Any, v: Any) -> Any:
        out = np.zeros(2, np.float32)
        np.add.at(out, i, v)
        return out

    assert_matches(run(f, device, indices, values), expected, 0)


@pytest.mark.skipif(ALONE == "metal", reason="flushes denormal float32")
@pytest.mark.parametrize("dtype", FLOATS)
def test_denormals(dtype: Any) -> None:
    tiny = np.finfo(dtype).tiny
    x = (np.arange(1, 200) * (tiny / 64)).astype(dtype)
    found = run(lambda x: (x * 0.5, x + x, x / 3, x - x / 7), "cpu", x)
    assert_matches(found[2], x / dtype(3), 0)
    assert run(lambda x: x * 0.5, "cpu", x)[0] > 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("device", DEVICES)
def test_halves_round_after_each_operation(device: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(2000).astype(dtype) for _ in range(3))

    def f(a: Any, b: Any, c: Any) -> Any:
        return a * b + c, (a + b) - c, a / b * c, np.sqrt(np.abs(a)) - b

    with np.errstate(all="ignore"):
        for i, (got, want) in enumerate(zip(run(f, device, a, b, c), f(a, b, c), strict=True)):
            assert_matches(got.astype(np.float32), want.astype(np.float32), 0, str(i))
    total = run(lambda a: a.sum(), device, a)
    exact = math.fsum(a.astype(np.float64).tolist())
    assert abs(float(total) - exact) <= float(ml_dtypes.finfo(dtype).eps) * (abs(exact) + 0.1)


@pytest.mark.parametrize("device", DEVICES)
def test_integers_never_trap(device: str) -> None:
    info = np.iinfo(np.int32)
    x = np.array([info.min, info.max, -1, 0, 1, 7, -7], np.int32)
    y = np.array([-1, 1, 0, 0, 40, -3, 2], np.int32)
    floats = np.float32([np.nan, np.inf, -np.inf, 1e20, -1e20, 2.9, -2.9])

    def f(x: Any, y: Any, floats: Any) -> Any:
        return x + x, x * x, -x, np.abs(x), x // y, x % y, floats.astype(np.int32)

    with np.errstate(all="ignore"):
        for i, (got, want) in enumerate(
            zip(run(f, device, x, y, floats), f(x, y, floats), strict=True)
        ):
            np.testing.assert_array_equal(got, want, err_msg=str(i))
    shifts = np.array([31, 32, 40, 100, 0, 1, 33], np.int32)
    left, right = run(lambda x, s: (x << s, x >> s), device, x, shifts)
    np.testing.assert_array_equal(left, np.where(shifts > 31, 0, x << (shifts & 31)))
    np.testing.assert_array_equal(right, np.where(shifts > 31, x >> 31, x >> (shifts & 31)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_casts_out_of_range(device: str, dtype: Any) -> None:
    """As NumPy casts scalars."""
    x = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 3e9, -3.5, 300, -129, 65537], dtype)
    targets = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    results = run(lambda x: [x.astype(t) for t in targets], device, x)
    with np.errstate(all="ignore"):
        for target, result in zip(targets, results, strict=True):
            np.testing.assert_array_equal(result, [v.astype(target) for v in x], err_msg=target)


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
@pytest.mark.parametrize("function", (np.rad2deg, np.deg2rad, np.degrees, np.radians))
def test_angles_have_numpys_bits(function: Any, dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal(10_000).astype(dtype) * 100
    np.testing.assert_array_equal(rune_jit.jit(function)(x), function(x))
