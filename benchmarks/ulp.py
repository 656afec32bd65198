"""Measures the error of float functions in units of the last place.

    python benchmarks/ulp.py                      # float32 on every 997th encoding, a minute
    python benchmarks/ulp.py --every 1            # all 2^32 encodings, minutes a function
    python benchmarks/ulp.py --function tan --function exp --every 1 --out table.md

The error of a result y against the true value r is |y - r| / ulp(r), where ulp(r) is the distance
of float32 numbers at r (Muller et al., Handbook of Floating-Point Arithmetic, 2.6). The true value
is NumPy's float64 result, whose own error is below 2^-28 ulp of float32. float16 and bfloat16 are
checked on all their encodings always; float64 on random and special arguments against long double.
On one core, RUNE_JIT_NUM_THREADS=1 is faster.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import rune_jit

UNARY = (
    *("sqrt", "cbrt", "reciprocal", "deg2rad", "rad2deg"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan"),
    *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
)
BINARY = ("power", "arctan2", "hypot", "divide", "remainder", "fmod")
CHUNK = 1 << 18


@dataclass
class Worst:
    """The largest error met, where, and how many results were looked at."""

    function: str
    dtype: str
    inputs: int = 0
    ulps: float = 0.0
    at: str = ""
    wrong: int = 0  # NaN, infinity or the sign of zero where there should be another

    def add(self, arguments: tuple[np.ndarray, ...], got: np.ndarray, true: np.ndarray) -> None:
        self.inputs += got.size
        plain = plain_errors(got, true)
        odd = np.flatnonzero(~(plain < 1e6) | (true == 0))
        plain[odd], wrong = errors(got[odd], true[odd])
        self.wrong += int(np.count_nonzero(wrong))
        worst = int(np.argmax(plain))
        if wrong.any():
            first = int(odd[np.argmax(wrong)])
            self.at = f"! {_numbers(arguments, first)} gives {got[first]}, not {true[first]}"
        elif plain[worst] > self.ulps and not self.at.startswith("!"):
            self.at = _numbers(arguments, worst)
        self.ulps = max(self.ulps, float(plain[worst]))


def _numbers(arguments: tuple[np.ndarray, ...], i: int) -> str:
    return ", ".join(repr(float(x[i])) for x in arguments)


def plain_errors(got: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Errors in units of the last place where both values are finite; elsewhere anything."""
    limits = ml_dtypes.finfo(got.dtype)
    with np.errstate(all="ignore"):  # signalling NaNs, infinities
        difference = np.abs(got.astype(true.dtype) - true)
        if true.dtype != np.float64:
            _, exponent = np.frexp(true)
            exponent = np.maximum(exponent - 1, int(limits.minexp))
            return np.ldexp(difference, int(limits.nmant) - exponent)
        # The reciprocal of a unit, by bits.
        exponent = (true.view(np.int64) >> 52) & 0x7FF
        np.maximum(exponent, 1023 + int(limits.minexp), out=exponent)
        np.subtract(2 * 1023 + int(limits.nmant), exponent, out=exponent)
        np.left_shift(exponent, 52, out=exponent)
        difference *= exponent.view(np.float64)
    return difference


def errors(got: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By element, of any values: the error; whether the kind of value is another."""
    limits = ml_dtypes.finfo(got.dtype)
    wide = true.dtype.type
    # What rounds to infinity: half a unit beyond the largest number.
    overflow = wide(float(limits.max)) * (1 + wide(float(limits.epsneg)) / 4)
    true = np.where(np.abs(true) >= overflow, np.copysign(wide(np.inf), true), true)
    with np.errstate(invalid="ignore"):
        y = got.astype(wide)
    both_finite = np.isfinite(true) & np.isfinite(y)
    same = (y == true) | (np.isnan(y) & np.isnan(true))
    zeros = (true == 0) & (y == 0) & (np.signbit(y) != np.signbit(true))
    return np.where(both_finite, plain_errors(got, true), 0), (~both_finite & ~same) | zeros


def encodings(every: int) -> Iterator[np.ndarray]:
    """float32 numbers, `every`-th of all encodings."""
    step = CHUNK * every
    for start in range(0, 1 << 32, step):
        bits = np.arange(start, min(start + step, 1 << 32), every, dtype=np.uint64)
        yield bits.astype(np.uint32).view(np.float32)


def compiled(name: str) -> Callable[..., Any]:
    return rune_jit.jit(getattr(np, name), fallback="error")


def check(worst: Worst, function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> None:
    wide = np.longdouble if arguments[0].dtype == np.float64 else np.float64
    with np.errstate(all="ignore"):
        true = getattr(np, worst.function)(*(x.astype(wide) for x in arguments))
    worst.add(arguments, np.asarray(function(*arguments)), true)


def float32_unary(name: str, every: int) -> Worst:
    worst, function = Worst(name, "float32"), compiled(name)
    for x in encodings(every):
        check(worst, function, (x,))
    return worst


def narrow_unary(name: str, dtype: Any) -> Worst:
    worst = Worst(name, np.dtype(dtype).name)
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    check(worst, compiled(name), (x,))
    return worst


def samples(dtype: str, count: int, seed: int) -> np.ndarray:
    """Random encodings, numbers of moderate size, and special values."""
    rng = np.random.default_rng(seed)
    integer = {"float32": np.uint32, "float64": np.uint64}[dtype]
    bits = rng.integers(0, np.iinfo(integer).max, count, dtype=integer, endpoint=True)
    moderate = rng.normal(size=count) * 10.0 ** rng.integers(-3, 4, count)
    special = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, np.pi, np.pi / 2]
    return np.concatenate([bits.view(dtype), moderate.astype(dtype), np.array(special, dtype)])


def random_arguments(name: str, dtype: str, count: int) -> Worst:
    worst, function = Worst(name, dtype), compiled(name)
    operands = getattr(np, name).nin
    for seed in range(max(1, count // CHUNK)):
        rng = np.random.default_rng(seed)
        x = samples(dtype, min(count, CHUNK) // 2, seed)
        rest = [rng.permutation(samples(dtype, min(count, CHUNK) // 2, seed + 999))] * (
            operands - 1
        )
        check(worst, function, (x, *rest))
    return worst


def table(results: list[Worst]) -> str:
    rows = [
        "| function | dtype | inputs | largest error, ulp | at | other kinds of value |",
        "|---|---|---|---|---|---|",
    ]
    for w in results:
        inputs = "all 2^32" if w.inputs == 1 << 32 else f"{w.inputs:,}"
        rows.append(
            f"| {w.function} | {w.dtype} | {inputs} | {w.ulps:.3f} | {w.at} | {w.wrong or 'none'} |"
        )
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=997, help="stride over float32's encodings")
    parser.add_argument("--function", action="append", help="only these")
    parser.add_argument("--count", type=int, default=1 << 20, help="random arguments a function")
    parser.add_argument("--json", type=Path, help="append each result to this file as it is known")
    parser.add_argument("--out", type=Path, help="write the table to this file")
    options = parser.parse_args()
    results: list[Worst] = []

    def measured(compute: Callable[..., Worst], *args: Any) -> None:
        name = args[0]
        if options.function and name not in options.function:
            return
        start = time.perf_counter()
        results.append(compute(*args))
        w = results[-1]
        took = time.perf_counter() - start
        kinds = f"{w.wrong} wrong, {w.at}"
        print(f"{w.function:10} {w.dtype:9} {w.ulps:6.3f} ulp, {kinds} ({took:.0f} s)", flush=True)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(asdict(w)) + "\n")

    for name in UNARY:
        for dtype in (np.float16, ml_dtypes.bfloat16):
            measured(narrow_unary, name, dtype)
        measured(random_arguments, name, "float64", options.count)
    for name in BINARY:
        for dtype in ("float32", "float64"):
            measured(random_arguments, name, dtype, options.count)
    for name in UNARY:
        measured(float32_unary, name, options.every)
    if options.out:
        options.out.write_text(table(results))


if __name__ == "__main__":
    main()
