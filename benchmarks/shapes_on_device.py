"""Plain operations at sizes that nobody tunes for, on a card, against CuPy, JAX and torch: the
cases of shapes.py on longer arrays, and operations along rows of odd lengths.

    python benchmarks/shapes_on_device.py                      # all, and writes shapes_cuda.md
    python benchmarks/shapes_on_device.py --only "rows,sum f64"    # as shapes.py has it

Results are checked against CuPy's before anything is timed, of long ones a million elements. A
time is that of one call among many that are issued without waiting between them. JAX compiles each
operation. Torch takes part where its functions have NumPy's names.
"""

from __future__ import annotations

import argparse
import datetime
import math
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpu
import numpy as np
import shapes
import workloads
from report import geometric_mean
from shapes import Case

_LIMIT = 1.15  # ratios above this are listed
_SECONDS = 0.02  # of a contestant's samples
_SAMPLE_SECONDS = 0.004
_SHAPES = ((4003, 4001), (1_000_003, 13), (13, 1_000_003), (65, 33))


def _softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def _layernorm(x):
    m = np.mean(x, axis=1, keepdims=True)
    v = np.mean((x - m) * (x - m), axis=1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5)


_ROWS: dict[str, Callable[..., Any]] = {
    "softmax": _softmax,
    "layernorm": _layernorm,
    "np.cumsum(x, axis=1)": lambda x: np.cumsum(x, axis=1),
    "np.cumsum(x, axis=0)": lambda x: np.cumsum(x, axis=0),
    "np.diff(x)": lambda x: x[:, 1:] - x[:, :-1],
    "np.argmin(x, axis=1)": lambda x: np.argmin(x, axis=1),
    "np.any(x > 9, axis=1)": lambda x: np.any(x > 9, axis=1),
    "x - x.mean(0)": lambda x: x - x.mean(0),
    "stencil": lambda x: x[1:-1, 1:-1] * 4 - x[2:, 1:-1] - x[:-2, 1:-1] - x[1:-1, 2:],
}
_ROW_SHAPES = ((16_383, 1001), (4099, 5003), (211, 50_257), (300_007, 63))
_LONG: dict[str, Callable[..., Any]] = {
    "chain": workloads.chain,
    "x[1:] * 2": lambda x: x[1:] * 2,
    "x[::-1] + x": lambda x: x[::-1] + x,
    "x[::3] + 1": lambda x: x[::3] + 1,
    "np.cumsum(x)": lambda x: np.cumsum(x),
    "x.sum()": lambda x: x.sum(),
    "x @ x": lambda x: x @ x,
    "np.argmax(x)": lambda x: np.argmax(x),
}
_CUBES: dict[str, Callable[..., Any]] = {
    "x.sum((0, 2))": lambda x: x.sum((0, 2)),
    "x.sum(1)": lambda x: x.sum(1),
    "x.max((1, 2))": lambda x: x.max((1, 2)),
    "x transposed 2, 0, 1": lambda x: x.transpose(2, 0, 1) + 1,
    "x transposed 0, 2, 1": lambda x: x.transpose(0, 2, 1) + 1,
    "x transposed 1, 0, 2": lambda x: x.transpose(1, 0, 2) + 1,
}
_INDEXED: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "x[i], rows of 65": (((100_003, 65), (200_003,)), lambda x, i: x[i] * 2),
    "x[i], numbers": (((1_000_003,), (5_000_011,)), lambda x, i: x[i] * 2),
    "np.bincount, 1000 bins": (
        ((1000,), (10_000_019,)),
        lambda x, i: np.bincount(i, minlength=1000),
    ),
    "np.bincount, 100003 bins": (
        ((100_003,), (10_000_019,)),
        lambda x, i: np.bincount(i, minlength=100_003),
    ),
    "np.bincount of weights, 1000 bins": (
        ((1000,), (10_000_019,), 10_000_019),
        lambda x, i, w: np.bincount(i, weights=w, minlength=1000),
    ),
    "np.histogram, 100 bins": (((10_000_019,),), lambda x: np.histogram(x, 100)[0]),
}


_memo: dict[Any, np.ndarray] = {}


def _array(dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    if (dtype, shape) not in _memo:
        if len(_memo) > 4:
            _memo.clear()
        rng = np.random.default_rng(0)
        _memo[dtype, shape] = rng.standard_normal(shape, np.float32).astype(dtype)
    return _memo[dtype, shape]


def _cases() -> Iterator[Case]:
    for dtype in (np.float32, np.float64):
        bits = "f32" if dtype is np.float32 else "f64"
        if dtype is np.float64:
            yield from _indexed()
        for shape in _SHAPES:
            x = _array(dtype, shape)
            where = f"{'x'.join(map(str, shape))} {bits}"
            for name, map_ in shapes._MAPS.items():
                yield Case("maps", f"{name}, {where}", map_, [x, x[::-1].copy()])
            for name in shapes._REDUCTIONS:
                for axis in (None, 0, 1):
                    label = f"np.{name}(x, axis={axis}), {where}"
                    yield Case("reductions", label, shapes.reduction(name, axis), [x])
            for name, move in shapes._MOVEMENT.items():
                yield Case("movement", f"{name}, {where}", move, [x])
        for name, (operands, product) in shapes._PRODUCTS.items():
            args = [_array(dtype, shape) for shape in operands]
            yield Case("products", f"{name} {bits}", product, args)
        for shape in _ROW_SHAPES:
            where = f"{'x'.join(map(str, shape))} {bits}"
            for name, row in _ROWS.items():
                yield Case("rows", f"{name}, {where}", row, [_array(dtype, shape)])
        for name, long in _LONG.items():
            yield Case("long", f"{name}, 16777259 {bits}", long, [_array(dtype, (16_777_259,))])
        for shape in ((255, 257, 259), (1001, 33, 513), (33, 1001, 513)):
            where = f"{'x'.join(map(str, shape))} {bits}"
            for name, cube in _CUBES.items():
                yield Case("cubes", f"{name}, {where}", cube, [_array(dtype, shape)])


def _indexed() -> Iterator[Case]:
    for name, (operands, indexed) in _INDEXED.items():
        args = [_array(np.float64, operands[0])]
        if len(operands) > 1:
            index = np.random.default_rng(1).integers(0, operands[0][0], operands[1])
            args = [_array(np.float32, operands[0]), index]
        if len(operands) > 2:
            args.append(_array(np.float64, (operands[2],)))
        yield Case("indexed", name, indexed, args)


def _rebound(fn: Callable[..., Any], names: Any) -> Callable[..., Any]:
    """The same code with another library as `np`."""
    return types.FunctionType(
        fn.__code__, {**fn.__globals__, "np": names}, fn.__name__, None, fn.__closure__
    )


class _TorchNames:
    """Torch's functions that NumPy has under the same name, with the same meaning."""

    def __init__(self, torch: Any) -> None:
        self.exp, self.sqrt, self.abs, self.tanh = torch.exp, torch.sqrt, torch.abs, torch.tanh
        self.where, self.einsum, self.outer = torch.where, torch.einsum, torch.outer
        self.maximum, self.minimum = torch.maximum, torch.minimum
        self.sum = lambda x, axis=None, keepdims=False: torch.sum(x, axis, keepdims)
        self.mean = lambda x, axis=None, keepdims=False: torch.mean(x, axis, keepdims)
        self.std = lambda x, axis=None: torch.std(x, axis, correction=0)
        self.max = lambda x, axis=None, keepdims=False: (
            torch.max(x) if axis is None else torch.amax(x, axis, keepdims)
        )
        self.cumsum, self.any, self.pad = torch.cumsum, torch.any, self._pad
        self.argmax = lambda x, axis=None: torch.argmax(x, axis)
        self.argmin = lambda x, axis=None: torch.argmin(x, axis)
        self.roll = lambda x, shift, axis: torch.roll(x, shift, axis)
        self.concatenate = lambda parts, axis: torch.cat(parts, axis)
        self.bincount, self._torch = torch.bincount, torch

    def _pad(self, x: Any, width: int) -> Any:
        return self._torch.nn.functional.pad(x, (width,) * (2 * x.ndim))


def _contestants(case: Case, device: str, libraries: dict[str, Any]) -> dict[str, Any]:
    """The call of each, by name."""
    made: dict[str, Any] = {}
    for name, adapter in libraries.items():
        if name == "rune_jit":
            run = adapter._rune.jit(case.fn, fallback="error")
            args = [adapter._rune.asarray(x, device=device) for x in case.args]
        elif name == "cupy":
            run = _rebound(case.fn, adapter._cupy)
            args = [adapter._cupy.asarray(x) for x in case.args]
        elif name == "jax":
            run = adapter._jax.jit(_rebound(case.fn, adapter._jnp))
            args = [adapter._jax.device_put(x, adapter._device) for x in case.args]
        else:
            run = _rebound(case.fn, _TorchNames(adapter._torch))
            args = [adapter._torch.from_numpy(x).to(device) for x in case.args]
        made[name] = (adapter, lambda run=run, args=args: run(*args))
    return made


def _some(x: Any) -> np.ndarray:
    """At most about a million elements, with the first and the last."""
    flat = np.asarray(x).reshape(-1)
    step = max(1, flat.size // 1_000_000)
    return np.concatenate([flat[::step], flat[-1:]]).astype(np.float64)


def _measure(case: Case, device: str, libraries: dict[str, Any]) -> str:
    problems, calls, want = [], {}, None
    for name, (adapter, call) in _contestants(case, device, libraries).items():
        try:
            found = _some(adapter.to_numpy(call()))
            if want is None:
                want = found
            tolerance = 1e-10 if case.args[0].dtype == np.float64 else 2e-4
            scale = float(np.abs(want).max())
            np.testing.assert_allclose(found, want, tolerance, tolerance * scale)
            once = min(gpu._sample(adapter, call, 1) for _ in range(3))
            calls[name] = (adapter, call, max(1, min(200, int(_SAMPLE_SECONDS / once))))
        except Exception as error:  # a peer may lack the operation
            problems.append(f"{name}: {type(error).__name__} {str(error).strip().splitlines()[:3]}")
    end = time.perf_counter() + _SECONDS * len(calls)
    while True:
        for name, (adapter, call, repeats) in calls.items():
            seconds = gpu._sample(adapter, call, repeats)
            case.seconds[name] = min(case.seconds.get(name, math.inf), seconds)
        if time.perf_counter() > end:
            return "; ".join(problems)


def _report(cases: list[Case]) -> str:
    lines = [
        "| group | operations | above 1.05 | above 1.15 | above 1.3 | geometric mean | worst |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for group in dict.fromkeys(case.group for case in cases):
        ratios = [c.ratio for c in cases if c.group == group and not math.isnan(c.ratio)]
        counts = " | ".join(str(sum(r > bound for r in ratios)) for bound in (1.05, 1.15, 1.3))
        mean = f"{geometric_mean(ratios):.2f} | {max(ratios):.2f}" if ratios else "- | -"
        lines.append(f"| {group} | {len(ratios)} | {counts} | {mean} |")
    listed = sorted((case for case in cases if case.ratio > _LIMIT), key=lambda c: -c.ratio)
    if listed:
        lines += ["", "| operation | rune_jit, us | best of the others, us | ratio |"]
        lines += ["|---|---|---|---|"]
    for c in listed:
        best = min((x, name) for name, x in c.seconds.items() if name != "rune_jit")
        lines.append(
            f"| `{c.name}` | {c.seconds['rune_jit'] * 1e6:.1f} | {best[0] * 1e6:.1f} ({best[1]})"
            f" | {c.ratio:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", help="names and groups, separated by commas")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds of the whole run")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    libraries: dict[str, Any] = {}
    for adapter in (gpu.CuPy, gpu.RuneJit, gpu.Jax, gpu.Torch):
        try:
            libraries[adapter.name] = adapter(options.device)
        except Exception as error:  # a broken installation must not end the run
            print(f"without {adapter.name}: {error}", file=sys.stderr)
    cases = []
    end = time.perf_counter() + options.limit
    for case in shapes.chosen(_cases(), options.only):
        if time.perf_counter() > end:
            print("stopped: the limit of time", file=sys.stderr)
            break
        problems = _measure(case, options.device, libraries)
        times = "  ".join(f"{name} {x * 1e6:.1f}" for name, x in case.seconds.items())
        print(f"{case.ratio:6.2f}  {case.group} {case.name}: {times}  {problems}", flush=True)
        case.args = []
        cases.append(case)
    text = _report(cases)
    print(text)
    if not options.only:
        lines = ["# Plain operations at odd sizes on a card", ""]
        versions = ", ".join(f"{name} {a.version}" for name, a in libraries.items())
        lines += [
            f"{datetime.date.today()}, {gpu.card(options.device)}, {versions}. The time of a call",
            "among many without a wait between them, divided by the best of the others. `python",
            "benchmarks/shapes_on_device.py` prints all.",
            "",
            text,
        ]
        name = f"shapes_{options.device.partition(':')[0]}.md"
        (Path(__file__).parent / name).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
