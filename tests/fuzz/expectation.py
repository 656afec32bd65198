"""What the results of a random program may be.

Values marked exact must have NumPy's bits. For the others NumPy runs the program again, several
times, with noise put in at every step that has some; a result may differ from NumPy's by
a multiple of what the noise did to it. Elements whose kind (NaN, infinity, finite) the noise
changes are not compared, nor those where a step has put unbounded noise in (NaN as its size: a
partial sum may overflow, say): there the runs have unlike values instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from inputs import ON_METAL, is_float
from programs import NAMES, Program, Step


def magnitude(x: Any) -> np.ndarray:
    """|x| as float64 where finite, else 0: what a non-finite element does to a sum is exact."""
    x = np.asarray(x, np.float64)
    return np.where(np.isfinite(x), np.abs(x), 0.0)


def bounded(size: Any, like: np.ndarray) -> np.ndarray:
    """0, but NaN where partial sums of this size may overflow in a dtype."""
    return np.where(size < float(ml_dtypes.finfo(like.dtype).max) / 2, 0.0, np.nan)


def spread_of_product(x: np.ndarray, reduce: Any = np.sum, **options: Any) -> np.ndarray:
    """0, but NaN where the order of multiplications may decide whether the product is finite."""
    info = ml_dtypes.finfo(x.dtype)
    size = np.where(np.isfinite(x) & (x != 0), np.abs(np.asarray(x, np.float64)), 1)
    log = np.log2(np.where(size == 0, 1, size))
    high = reduce(np.maximum(log, 0), **options) + 1
    low = reduce(np.minimum(log, 0), **options) - 1
    ordered = (high < info.maxexp - 1) & (low > info.minexp + 1)
    return np.where(ordered, 0.0, np.nan)


_NOISE_NAMES = {
    **NAMES,
    "magnitude": magnitude,
    "bounded": bounded,
    "spread_of_product": spread_of_product,
}


_TINY = np.finfo(np.float32).smallest_normal


class Expectation:
    """NumPy's results of a program, and how far noise moves them."""

    _RUNS = 8
    _UNKNOWN = (np.nan, 0.0, np.inf, -np.inf)
    # So many that two values hardly ever move alike in all runs.
    _SHIFTS = (*range(-8, 0), *range(1, 9))
    _FACTOR = 4.0
    _has_denormals = False  # which Metal takes for zero

    def __init__(self, program: Program) -> None:
        self._program = program
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            self.results = self._run(None)
            self._noisy: list[list[Any]] = []
            if any(step.noise for step in program.steps):
                self._noisy = [self._run(k) for k in range(self._RUNS)]
                # Each value moves both ways: one that is close to a bound crosses it.
                self._noisy.append(self._run(0, opposite=True))

    def _run(self, run: int | None, opposite: bool = False) -> list[Any]:
        rng = np.random.default_rng(run)

        def add_noise(step: Step, values: dict[str, Any], before: np.ndarray | None) -> None:
            if not step.noise:
                return
            assert run is not None
            out = values[f"v{step.target}"]
            info = ml_dtypes.finfo(out.dtype)
            names = {**values, "out": np.asarray(out), "before": before, "eps": float(info.eps)}
            size = np.asarray(eval(step.noise, _NOISE_NAMES, names), np.float64)
            shift = rng.choice(self._SHIFTS, size=np.shape(out)) * (-1 if opposite else 1)
            noisy = out + shift * (size + float(info.smallest_subnormal))
            noisy = np.where(np.isfinite(out), noisy, out)  # infinities and NaN stay
            # Of several kinds, so that no later step makes them all the same: all of one kind, and
            # in other runs mixed.
            kinds = self._UNKNOWN
            unknown = kinds[run] if run < len(kinds) else rng.choice(kinds, size=np.shape(out))
            noisy = np.where(np.isfinite(size), noisy, unknown).astype(out.dtype)
            if step.writes:
                out[...] = noisy
            else:
                values[f"v{step.target}"] = noisy if np.ndim(out) else noisy[()]

        def note_denormals(step: Step, values: dict[str, Any], _: np.ndarray | None) -> None:
            self._has_denormals |= _has_denormals(np.asarray(values[f"v{step.target}"]))

        noting = note_denormals if ON_METAL else None
        values = self._program.execute(noting if run is None else add_noise)
        return [values[f"v{i}"] for i in self._program.observed]

    def mismatch(self, actual: Sequence[Any]) -> str | None:
        """What is wrong with these values of the observed, or None."""
        if len(actual) != len(self.results):
            return f"{len(actual)} results instead of {len(self.results)}"
        for i, (got, want) in enumerate(zip(actual, self.results, strict=True)):
            problem = self._compare(i, got, want)
            # Whether what is zero there is zero here decides what follows from it.
            if problem and not self._has_denormals:
                argument = "" if i < len(self._program.outputs) else "argument "
                return f"{argument}v{self._program.observed[i]}: {problem}"
        return None

    def _compare(self, i: int, got: Any, want: Any) -> str | None:
        if np.shape(got) != np.shape(want):
            return f"shape {np.shape(got)} instead of {np.shape(want)}"
        got, want = np.asarray(got), np.asarray(want)
        if got.dtype != want.dtype:
            return f"dtype {got.dtype} instead of {want.dtype}"
        if _is_flushed(want.dtype):
            got, want = (np.where(np.abs(x) < _TINY, np.copysign(0, x), x) for x in (got, want))
        value = self._program.observed[i]
        if value in self._program.exact or not is_float(want.dtype):
            wrong = (got != want) & ~((got != got) & (want != want))
            if value in self._program.signed_zeros and is_float(want.dtype):
                wrong |= (got == want) & (np.signbit(got) != np.signbit(want))
        else:
            wrong = self._outside_noise(i, got, want)
        if not wrong.any():
            return None
        where = tuple(int(k[0]) for k in np.nonzero(np.atleast_1d(wrong)))
        at = np.atleast_1d(got)[where], np.atleast_1d(want)[where]
        count = f"{wrong.sum()} of {wrong.size} differ"
        return f"{at[0]!r} instead of {at[1]!r} at {list(where)} ({count})"

    def _outside_noise(self, i: int, got: np.ndarray, want: np.ndarray) -> np.ndarray:
        info = ml_dtypes.finfo(want.dtype)
        flushed = _is_flushed(want.dtype)
        least = float(info.smallest_normal if flushed else info.smallest_subnormal)
        tolerance = 4 * float(info.eps) * magnitude(want) + least
        known = np.ones(want.shape, bool)
        with np.errstate(all="ignore"):
            for run in self._noisy:
                noisy = np.asarray(run[i])
                known &= _same_class(noisy, want)
                distance = np.abs(noisy.astype(np.float64) - want.astype(np.float64))
                tolerance = np.maximum(
                    tolerance, self._FACTOR * np.where(np.isfinite(distance), distance, 0)
                )
            finite = np.isfinite(want)
            centre = np.where(finite, want.astype(np.float64), 0)
            far = np.abs(got.astype(np.float64) - centre) > tolerance
            # Close to the largest number, results may round to infinity.
            known &= ~finite | (magnitude(want) + tolerance < float(info.max))
        return known & (~_same_class(got, want) | (finite & far))


def _is_flushed(dtype: Any) -> bool:
    """Whether denormals of a dtype are zero: those of float32, in which Metal computes bfloat16."""
    return ON_METAL and (dtype == np.float32 or dtype == ml_dtypes.bfloat16)


def _has_denormals(x: np.ndarray) -> bool:
    return _is_flushed(x.dtype) and bool(np.any((x != 0) & (np.abs(x) < _TINY)))


def _same_class(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Both NaN, both the same infinity, or both finite."""
    same_infinity = np.isinf(a) & (a == b)
    return (np.isnan(a) & np.isnan(b)) | same_infinity | (np.isfinite(a) & np.isfinite(b))
