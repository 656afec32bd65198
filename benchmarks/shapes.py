"""Plain operations at sizes that nobody tunes for, against NumPy: odd, short and long axes, both
layouts, float32 and float64.

    python benchmarks/shapes.py                             # all, and writes shapes.md
    python benchmarks/shapes.py --only products             # a group
    python benchmarks/shapes.py --only "sum f64,a @ b"      # whose names have all words of a part

Results are checked against NumPy's before anything is timed; both are timed in turns in this
process, and the shortest call of each counts.
"""

from __future__ import annotations

import argparse
import datetime
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import machine
import numpy as np
import timing
from report import geometric_mean

import rune_jit

_DTYPES = (np.float32, np.float64)
# Of arrays of two axes; those with "F" lie by columns.
_SHAPES = ((997, 1003, "C"), (100_003, 7, "C"), (7, 100_003, "C"), (501, 2003, "F"), (65, 33, "C"))
_SLOWER = 1.05  # ratios above this count as slower
_LIMIT = 1.15  # and above this are listed

_MAPS: dict[str, Callable[..., Any]] = {
    "x * y + 1": lambda x, y: x * y + 1,
    "np.exp(x)": lambda x, y: np.exp(x),
    "np.sqrt(np.abs(x))": lambda x, y: np.sqrt(np.abs(x)),
    "x - y[0]": lambda x, y: x - y[0],
    "x / (y[:, :1] + 9)": lambda x, y: x / (y[:, :1] + 9),
    "np.where(x > y, x, y)": lambda x, y: np.where(x > y, x, y),
    "np.tanh(x)": lambda x, y: np.tanh(x),
}
_REDUCTIONS = ("sum", "max", "mean", "std", "argmax")
_MOVEMENT: dict[str, Callable[..., Any]] = {
    "x.T copied": lambda x: x.T.copy(),
    "x.T + x.T[::-1]": lambda x: x.T + x.T[::-1],
    "np.roll(x, 3, axis=1)": lambda x: np.roll(x, 3, axis=1),
    "np.concatenate([x, x], axis=1)": lambda x: np.concatenate([x, x], axis=1),
    "x[::2, 1::3] * 2": lambda x: x[::2, 1::3] * 2,
    "np.pad(x, 1)": lambda x: np.pad(x, 1),
}
# By name: the shapes of the operands, and the function.
_PRODUCTS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "a @ b, 900x1000x1100": (((900, 1000), (1000, 1100)), lambda a, b: a @ b),
    "a @ b, 257x263x269": (((257, 263), (263, 269)), lambda a, b: a @ b),
    "a @ b, 127x129x131": (((127, 129), (129, 131)), lambda a, b: a @ b),
    "a @ b, 33x35x37": (((33, 35), (35, 37)), lambda a, b: a @ b),
    "a @ b, 4096x64x64": (((4096, 64), (64, 64)), lambda a, b: a @ b),
    "a @ b, 64x4096x64": (((64, 4096), (4096, 64)), lambda a, b: a @ b),
    "a @ b, 5000x11x3": (((5000, 11), (11, 3)), lambda a, b: a @ b),
    "a.T @ b, 700": (((700, 700), (700, 700)), lambda a, b: a.T @ b),
    "a @ b.T, 700": (((700, 700), (700, 700)), lambda a, b: a @ b.T),
    "a @ a.T, 700x500": (((700, 500),), lambda a: a @ a.T),
    "a.T @ a, 1000x300": (((1000, 300),), lambda a: a.T @ a),
    "a @ x, 1500x1300": (((1500, 1300), (1300,)), lambda a, x: a @ x),
    "a.T @ x, 1500x1300": (((1500, 1300), (1500,)), lambda a, x: a.T @ x),
    "row @ a, 1x900x1100": (((1, 900), (900, 1100)), lambda x, a: x @ a),
    "x @ y, 1000003": (((1_000_003,), (1_000_003,)), lambda x, y: x @ y),
    "a @ b, 50 times 31x37x41": (((50, 31, 37), (50, 37, 41)), lambda a, b: a @ b),
    "einsum, batch of dots": (((3001, 65), (3001, 65)), lambda a, b: np.einsum("ij,ij->i", a, b)),
    "np.outer, 1001x1003": (((1001,), (1003,)), lambda x, y: np.outer(x, y)),
}


@dataclass
class Case:
    """One operation on arrays of one size."""

    group: str
    name: str
    fn: Callable[..., Any]
    args: list[np.ndarray]
    seconds: dict[str, float] = field(default_factory=dict)  # of a call, by contestant

    @property
    def ratio(self) -> float:
        """The time of this project's code over the shortest of the others'."""
        others = [x for name, x in self.seconds.items() if name != "rune_jit"]
        return self.seconds.get("rune_jit", math.nan) / min(others, default=math.nan)


def _array(dtype: type, shape: tuple[int, ...], order: Any = "C") -> np.ndarray:
    values = np.random.default_rng(0).standard_normal(shape)
    return np.array(values, dtype, order=order)


def _cases() -> Iterator[Case]:
    for dtype in _DTYPES:
        bits = "f32" if dtype is np.float32 else "f64"
        for rows, columns, order in _SHAPES:
            x = _array(dtype, (rows, columns), order)
            where = f"{rows}x{columns}{'' if order == 'C' else ' by columns'} {bits}"
            if rows > columns or order == "F":
                y = x[::-1].copy(order)
                for name, map_ in _MAPS.items():
                    yield Case("maps", f"{name}, {where}", map_, [x, y])
            for name in _REDUCTIONS:
                for axis in (None, 0, 1):
                    label = f"np.{name}(x, axis={axis}), {where}"
                    yield Case("reductions", label, reduction(name, axis), [x])
            for name, move in _MOVEMENT.items():
                yield Case("movement", f"{name}, {where}", move, [x])
        for name, (shapes, product) in _PRODUCTS.items():
            args = [_array(dtype, shape) for shape in shapes]
            yield Case("products", f"{name} {bits}", product, args)


def reduction(name: str, axis: int | None) -> Callable[..., Any]:
    return lambda x: getattr(np, name)(x, axis=axis)


def _check(case: Case, got: Any, want: Any) -> None:
    tolerance = 1e-4 if case.args[0].dtype == np.float32 else 1e-10
    scale = float(np.abs(want).max())
    np.testing.assert_allclose(got, want, tolerance, tolerance * scale, err_msg=case.name)


def _measure(case: Case, seconds: float) -> None:
    compiled = rune_jit.jit(case.fn, fallback="error")
    calls = {"rune_jit": lambda: compiled(*case.args), "numpy": lambda: case.fn(*case.args)}
    _check(case, calls["rune_jit"](), calls["numpy"]())
    times = {name: timing.Times(0.0) for name in calls}
    timing.interleave(calls, times, seconds)
    case.seconds = {name: taken.best for name, taken in times.items()}


def chosen(cases: Iterator[Case], only: str | None) -> Iterator[Case]:
    """Those that --only names."""
    parts = [part.split() for part in only.split(",")] if only else [[]]
    for case in cases:
        if any(all(word in f"{case.group} {case.name}" for word in part) for part in parts):
            yield case


def _report(cases: list[Case]) -> str:
    lines = ["| group | operations | slower | above 1.15 | geometric mean | worst |"]
    lines.append("|---|---|---|---|---|---|")
    for group in dict.fromkeys(case.group for case in cases):
        members = [case for case in cases if case.group == group]
        counts = [sum(case.ratio > bound for case in members) for bound in (_SLOWER, _LIMIT)]
        mean = geometric_mean([case.ratio for case in members])
        worst = max(case.ratio for case in members)
        row = f"| {group} | {len(members)} | {counts[0]} | {counts[1]} "
        lines.append(f"{row}| {mean:.2f} | {worst:.2f} |")
    listed = sorted((case for case in cases if case.ratio > _LIMIT), key=lambda c: -c.ratio)
    if listed:
        lines += ["", "| operation | NumPy, ms | ratio |", "|---|---|---|"]
        lines += [
            f"| `{c.name}` | {c.seconds['numpy'] * 1e3:.3f} | {c.ratio:.2f} |" for c in listed
        ]
    return "\n".join(lines)


def _write(cases: list[Case]) -> None:
    lines = [
        "# Plain operations at odd sizes",
        "",
        f"Time divided by NumPy's, measured on {datetime.date.today()}; cores: {machine.cores()}",
        f"of {machine.cpu_name()}, NumPy {np.__version__}. More than {_SLOWER} counts as slower;",
        f"operations above {_LIMIT} are listed. `python benchmarks/shapes.py` prints all of them.",
        "",
        _report(cases),
    ]
    (Path(__file__).parent / "shapes.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", help="names and groups, separated by commas")
    parser.add_argument("--seconds", type=float, default=0.15, help="for each contestant")
    options = parser.parse_args()
    cases = []
    for case in chosen(_cases(), options.only):
        _measure(case, options.seconds)
        milliseconds = case.seconds["numpy"] * 1e3
        print(f"{case.ratio:6.2f} {milliseconds:9.3f} ms  {case.name}", flush=True)
        cases.append(case)
    print(_report(cases))
    if not options.only:
        _write(cases)


if __name__ == "__main__":
    main()
