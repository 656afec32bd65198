"""Random NumPy programs: straight-line functions over a few arrays, made together with the error
that their results may have.

A program is a list of steps `v7 = np.maximum(v3, v5)`. Most steps are exact: any correct
implementation gives the same bits. The others (sums, exp ...) carry the text of their noise, an
absolute error bound as an expression over their operands; results are compared within what such
noise, put in at every step, does to them (see `Expectation`). Steps that are not continuous
(comparisons, floor, casts to integers) are made from exact values only.
"""

from __future__ import annotations

import linecache
import math
import os
import random
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Metal has no float64, and flushes denormals.
ON_METAL = os.environ.get("RUNE_TEST_DEVICE") == "metal"
DTYPES = ("bool", "int32", "int64", "uint8", "float32", *(() if ON_METAL else ("float64",)))
_DIMS = (1, 1, 2, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 64, 100)
_MOST_ELEMENTS = 4000
_LARGE = (70000, 65537, 40000)  # elements of an array that several tasks share


@dataclass(frozen=True)
class Step:
    """`target = expression`; the noise is an expression too, in which `out` is the result."""

    target: int
    expression: str
    noise: str | None = None

    @property
    def operands(self) -> set[int]:
        return {int(name) for name in re.findall(r"\bv(\d+)", self.expression)}


@dataclass
class Program:
    """The inputs are v0, v1 ...; a step's target is the next number."""

    inputs: list[np.ndarray]
    layouts: list[str]
    steps: list[Step] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    exact: set[int] = field(default_factory=set)  # values with the same bits everywhere
    signed_zeros: set[int] = field(
        default_factory=set
    )  # exact values of which also zeros' signs are

    def source(self) -> str:
        """Python code of the function."""
        lines = [f"def program({', '.join(f'v{i}' for i in range(len(self.inputs)))}):"]
        lines += [f"    v{step.target} = {step.expression}" for step in self.steps]
        lines.append(f"    return {', '.join(f'v{i}' for i in self.outputs)},")
        return "\n".join(lines) + "\n"

    def function(self) -> Callable[..., Any]:
        """The program as a function whose source tracebacks can show."""
        source = self.source()
        name = f"<program {abs(hash(source))}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        namespace = {"np": np, "inf": math.inf, "nan": math.nan}
        exec(compile(source, name, "exec"), namespace)
        return namespace["program"]

    def describe(self) -> str:
        """The program and its inputs."""
        text = self.source()
        for i, (array, layout) in enumerate(zip(self.inputs, self.layouts, strict=True)):
            text += f"v{i}: {array.dtype}{list(array.shape)} {layout}\n"
        return text

    def slice_of(self, outputs: list[int]) -> Program:
        """The steps that these values need, with all inputs."""
        needed = set(outputs)
        kept = []
        for step in reversed(self.steps):
            if step.target in needed:
                needed |= step.operands
                kept.append(step)
        return Program(
            self.inputs, self.layouts, kept[::-1], outputs, self.exact, self.signed_zeros
        )


# What noise expressions may call.


def magnitude(x: np.ndarray) -> np.ndarray:
    """|x| where finite, else 0: what a non-finite element does to a sum is exact."""
    x = np.asarray(x, np.float64) if x.dtype != np.float64 else x
    return np.where(np.isfinite(x), np.abs(x), 0.0)


def spread_of_product(x: np.ndarray, **axes: Any) -> np.ndarray:
    """0, but NaN where the order of multiplications may decide whether the product is finite."""
    info = np.finfo(x.dtype)
    size = np.abs(np.where(np.isfinite(x) & (x != 0), x, 1).astype(np.float64))
    log = np.log2(np.where(size == 0, 1, size))
    high = np.sum(np.maximum(log, 0), **axes) + 1
    low = np.sum(np.minimum(log, 0), **axes) - 1
    ordered = (high < info.maxexp - 1) & (low > info.minexp + 1)
    return np.where(ordered, 0.0, np.nan)


_NOISE_NAMES = {
    "np": np,
    "magnitude": magnitude,
    "spread_of_product": spread_of_product,
    "inf": math.inf,
    "nan": math.nan,
}


class Expectation:
    """NumPy's results of a program, and how far noise moves them."""

    _RUNS = 6
    # So many that two values hardly ever move alike in all runs.
    _SHIFTS = (*range(-8, 0), *range(1, 9))
    _FACTOR = 4.0

    def __init__(self, program: Program) -> None:
        self._program = program
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            self.results = self._run(None)
            self._noisy: list[list[Any]] = []
            if any(step.noise for step in program.steps):
                rng = np.random.default_rng(0)
                self._noisy = [self._run(rng, k) for k in range(self._RUNS)]

    def _run(self, rng: np.random.Generator | None, run: int = 0) -> list[Any]:
        values: dict[str, Any] = {f"v{i}": x for i, x in enumerate(self._program.inputs)}
        for step in self._program.steps:
            out = eval(step.expression, _NOISE_NAMES, values)
            if rng is not None and step.noise:
                info = np.finfo(out.dtype)
                names = {**values, "out": np.asarray(out), "eps": float(info.eps)}
                size = np.asarray(eval(step.noise, _NOISE_NAMES, names))
                sign = rng.choice(self._SHIFTS, size=np.shape(out))
                noisy = out + sign * (size + float(info.smallest_subnormal))
                noisy = np.where(np.isfinite(out), noisy, out)  # infinities and NaN stay
                # Of several kinds, so that no later step makes them all the same.
                unknown = (np.nan, 0.0, np.inf, -np.inf)[run % 4]
                out = np.where(np.isfinite(size), noisy, unknown).astype(out.dtype)
            values[f"v{step.target}"] = out
        return [values[f"v{i}"] for i in self._program.outputs]

    def mismatch(self, actual: tuple[Any, ...]) -> str | None:
        """What is wrong with these results, or None."""
        if len(actual) != len(self.results):
            return f"{len(actual)} results instead of {len(self.results)}"
        for i, (got, want) in enumerate(zip(actual, self.results, strict=True)):
            problem = self._compare(i, got, want)
            if problem:
                return f"v{self._program.outputs[i]}: {problem}"
        return None

    def _compare(self, i: int, got: Any, want: Any) -> str | None:
        if np.shape(got) != np.shape(want):
            return f"shape {np.shape(got)} instead of {np.shape(want)}"
        got, want = np.asarray(got), np.asarray(want)
        if got.dtype != want.dtype:
            return f"dtype {got.dtype} instead of {want.dtype}"
        value = self._program.outputs[i]
        if value in self._program.exact or want.dtype.kind != "f":
            wrong = (got != want) & ~((got != got) & (want != want))
            if value in self._program.signed_zeros and want.dtype.kind == "f":
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
        info = np.finfo(want.dtype)
        tolerance = 4 * float(info.eps) * magnitude(want) + float(info.smallest_subnormal)
        known = np.ones(want.shape, bool)
        with np.errstate(all="ignore"):
            for run in self._noisy:
                noisy = np.asarray(run[i])
                known &= _same_class(noisy, want)
                distance = np.abs(noisy.astype(np.float64) - want)
                tolerance = np.maximum(
                    tolerance, self._FACTOR * np.where(np.isfinite(distance), distance, 0)
                )
            finite = np.isfinite(want)
            far = np.abs(got.astype(np.float64) - np.where(finite, want, 0)) > tolerance
            # Close to the largest number, results may round to infinity.
            known &= ~finite | (magnitude(want) + tolerance < float(info.max))
        return known & (~_same_class(got, want) | (finite & far))


def _same_class(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Both NaN, both the same infinity, or both finite."""
    same_infinity = np.isinf(a) & (a == b)
    return (np.isnan(a) & np.isnan(b)) | same_infinity | (np.isfinite(a) & np.isfinite(b))


# Inputs.

_SPECIAL = {
    "float32": [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        *(() if ON_METAL else (1e-45, -1e-40)),
        1.1754944e-38,
        3.4028235e38,
        -3.4e38,
        0.5,
        2.5,
        1e30,
        16777217.0,
    ],
    "float64": [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        5e-324,
        -1e-310,
        2.2250738585072014e-308,
        1.7e308,
        0.5,
        2.5,
        1e300,
        9007199254740993.0,
    ],
    "int32": [-(2**31), 2**31 - 1, 0, -1, 1, 31, 32, 33],
    "int64": [-(2**63), 2**63 - 1, 0, -1, 1, 63, 64, 2**53 + 1],
    "uint8": [0, 1, 255, 128, 127, 7, 8, 9],
    "bool": [True, False],
}


def _data(
    rng: np.random.Generator, dtype: str, shape: tuple[int, ...], special: bool
) -> np.ndarray:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind == "f":
        values = rng.normal(0, 3, shape).astype(dtype)
        if rng.integers(2):
            values = np.rint(values).astype(dtype)
    elif kind == "i":
        values = rng.integers(-9, 10, shape).astype(dtype)
    else:
        values = rng.integers(0, 20, shape).astype(dtype)
    if special:
        chosen = np.array(_SPECIAL[dtype], dtype)[rng.integers(0, len(_SPECIAL[dtype]), shape)]
        values = np.where(rng.random(shape) < 0.3, chosen, values)
    return np.asarray(values)


def _lay_out(rng: random.Random, array: np.ndarray) -> tuple[np.ndarray, str]:
    """The same elements in another layout."""
    layout = rng.choice(
        ["C"] * 5 + ["F", "strided", "reversed", "offset", "misaligned", "read-only", "broadcast"]
    )
    if array.ndim == 0:
        return array, "C"
    if layout == "F":
        return np.asfortranarray(array), layout
    if layout == "strided":
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2 + 1), array.dtype)
        wide[..., ::2][..., : array.shape[-1]] = array
        return wide[..., ::2][..., : array.shape[-1]], layout
    if layout == "reversed":
        return np.ascontiguousarray(array[::-1])[::-1], layout
    if layout == "offset":
        flat = np.concatenate([array.ravel()[:1], array.ravel()])
        return flat[flat.size - array.size :].reshape(array.shape), layout
    if layout == "misaligned":
        raw = np.zeros(array.nbytes + 1, np.uint8)
        raw[1:] = np.frombuffer(array.tobytes(), np.uint8)
        return raw[1:].view(array.dtype).reshape(array.shape), layout
    if layout == "read-only":
        array = array.copy()
        array.flags.writeable = False
    if layout == "broadcast" and array.size:
        return np.broadcast_to(array[:1], array.shape), layout
    return array, layout if layout == "read-only" else "C"


class Generator:
    """Makes one program from one seed."""

    def __init__(self, seed: int, most_steps: int = 14) -> None:
        self.rng = random.Random(seed)
        self.values: list[Any] = []
        self.large = self.rng.random() < 0.06
        self.special = self.rng.random() < 0.4
        inputs, layouts = [], []
        data = np.random.default_rng(seed)
        shape = self._shape()
        for _ in range(self.rng.choice([1, 1, 2, 2, 3])):
            if inputs:
                shape = self._related(shape)
            array = _data(
                data, self.rng.choice([*DTYPES, "float32", "float32"]), shape, self.special
            )
            array, layout = _lay_out(self.rng, array)
            inputs.append(array)
            layouts.append(layout)
        self.values = list(inputs)
        self.program = Program(inputs, layouts)
        everything = set(range(len(inputs)))
        self.program.exact |= everything
        self.program.signed_zeros |= everything
        for _ in range(self.rng.randint(2, most_steps)):
            self._step()
        self._choose_outputs()

    # Shapes.

    def _shape(self) -> tuple[int, ...]:
        if self.large:
            n = self.rng.choice(_LARGE)
            return self.rng.choice([(n,), (n // 256, 256), (257, n // 257), (2, n // 2)])
        shape: list[int] = []
        for _ in range(self.rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])):
            dim = 0 if self.rng.random() < 0.02 else self.rng.choice(_DIMS)
            if math.prod(shape) * dim <= _MOST_ELEMENTS:
                shape.append(dim)
        return tuple(shape)

    def _related(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that probably broadcasts or multiplies with the first."""
        choice = self.rng.random()
        if choice < 0.4:
            return shape
        if choice < 0.6:
            return tuple(1 if self.rng.random() < 0.4 else d for d in shape)
        if choice < 0.75:
            return shape[self.rng.randint(0, len(shape)) :]
        if choice < 0.9 and shape and not self.large:
            return (shape[-1], self.rng.choice(_DIMS))
        return (7,) if self.large else self._shape()

    # Steps.

    def _pick(
        self, accept: Callable[[Any], bool] = lambda v: True, exact: bool = False
    ) -> int | None:
        """A value, more probably a late one."""
        known = [
            i
            for i, v in enumerate(self.values)
            if accept(v) and (not exact or i in self.program.exact)
        ]
        if not known:
            return None
        return known[-1 - min(int(self.rng.expovariate(0.4)), len(known) - 1)]

    def _step(self) -> None:
        makers = [
            (5, self._binary),
            (3, self._unary),
            (3, self._transcendental),
            (2, self._discontinuous),
            (3, self._reduction),
            (2, self._reshape),
            (2, self._transpose),
            (4, self._index),
            (1, self._flip),
            (2, self._concatenate),
            (1, self._pad),
            (1, self._broadcast),
            (2, self._where),
            (1, self._matmul),
            (1, self._cast),
            (1, self._repeat),
            (2, self._row_wise),
        ]
        maker = self.rng.choices([m for _, m in makers], [w for w, _ in makers])[0]
        maker()

    def _add(self, expression: str, noise: str | None = None, zeros: bool = True) -> bool:
        """Adds a step unless NumPy refuses it or its result is too large or of another dtype."""
        names = {f"v{i}": v for i, v in enumerate(self.values)}
        most = 4 * max(_MOST_ELEMENTS, *(v.size for v in self.program.inputs))
        shapes = [self.values[i].shape for i in Step(0, expression).operands]
        try:
            if "@" not in expression and math.prod(np.broadcast_shapes(*shapes)) > most:
                return False
        except ValueError:
            pass  # operands of concatenate
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                out = eval(expression, _NOISE_NAMES, names)
        except (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError):
            return False
        if str(out.dtype) not in DTYPES or out.size > most:
            return False
        step = Step(len(self.values), expression, noise if out.dtype.kind == "f" else None)
        self.values.append(out)
        self.program.steps.append(step)
        if out.dtype.kind != "f" or (not step.noise and step.operands <= self.program.exact):
            self.program.exact.add(step.target)
            if zeros and step.operands <= self.program.signed_zeros:
                self.program.signed_zeros.add(step.target)
        return True

    def _binary(self) -> None:
        a, b = self._pick(), self._pick()
        name = self.rng.choice(
            ["+", "-", "*", "/", "np.maximum", "np.minimum", "np.fmax", "np.fmin", "&", "|", "^"]
        )
        if name == "/" and b not in self.program.signed_zeros:
            return  # the sign of a zero decides between infinities
        left, right = f"v{a}", f"v{b}"
        if self.rng.random() < 0.3:
            right = self.rng.choice(
                [
                    "1",
                    "2",
                    "-1",
                    "0.5",
                    "3",
                    "0",
                    "255",
                    "-2.5",
                    "0.0",
                    "1.0",
                    "True",
                    "np.float32(3)",
                ]
            )
            if self.rng.random() < 0.3 and name != "/":
                left, right = right, left
        # The two zeros are equal, so that either may be the larger.
        zeros = name in "+-*/&|^"
        self._add(
            f"{name}({left}, {right})" if name.startswith("np") else f"{left} {name} {right}",
            zeros=zeros,
        )

    def _unary(self) -> None:
        a = self._pick()
        name = self.rng.choice(
            [
                "-{}",
                "abs({})",
                "np.square({})",
                "np.sqrt({})",
                "~{}",
                "{} ** 2",
                "np.positive({})",
                "np.conjugate({})",
                "np.clip({}, -2, 3)",
                "np.nan_to_num({})",
            ]
        )
        self._add(name.format(f"v{a}"), zeros="clip" not in name)

    def _transcendental(self) -> None:
        a = self._pick(lambda v: v.dtype.kind == "f" or v.dtype in (np.int32, np.int64))
        if a is None:
            return
        name = self.rng.choice(
            [
                "exp",
                "exp2",
                "expm1",
                "log",
                "log2",
                "log1p",
                "sin",
                "cos",
                "tanh",
                "arctan",
                "sinh",
                "cbrt",
            ]
        )
        noise = "eps * magnitude(out)"
        if name in ("sin", "cos") and a not in self.program.exact:
            # Of a large argument that is not exact, nothing is known.
            noise += f" + np.where(eps * magnitude(v{a}) > 1e-5, np.nan, 0)"
        self._add(f"np.{name}(v{a})", noise)

    def _discontinuous(self) -> None:
        a = self._pick(exact=True)
        b = self._pick(exact=True)
        if a not in self.program.signed_zeros or b not in self.program.signed_zeros:
            forms = ["{0} < {1}", "{0} >= {1}", "{0} == {1}", "np.isnan({0})"]
        else:
            forms = [
                "{0} < {1}",
                "{0} <= {1}",
                "{0} > {1}",
                "{0} >= {1}",
                "{0} == {1}",
                "{0} != {1}",
                "{0} // {1}",
                "{0} % {1}",
                "np.fmod({0}, {1})",
                "np.logical_and({0}, {1})",
                "np.logical_xor({0}, {1})",
                "np.left_shift({0}, {1})",
                "np.right_shift({0}, {1})",
                "np.floor({0})",
                "np.ceil({0})",
                "np.trunc({0})",
                "np.rint({0})",
                "np.sign({0})",
                "np.isnan({0})",
                "np.isfinite({0})",
                "np.signbit({0})",
                "np.logical_not({0})",
                "np.copysign({0}, {1})",
                "{0} // 3",
                "{0} % -3",
                "7 // {0}",
                "{0} > 0",
                "1.0 / {0}",
            ]
        self._add(self.rng.choice(forms).format(f"v{a}", f"v{b}"))

    def _axes(self, ndim: int) -> tuple[str, Any]:
        """Keyword arguments of a reduction as text, and the axes."""
        choice = self.rng.random()
        keep = ", keepdims=True" if self.rng.random() < 0.4 else ""
        if choice < 0.25 or ndim == 0:
            return f"axis=None{keep}", None
        if choice < 0.75:
            axis: Any = self.rng.randrange(-ndim, ndim)
        else:
            axis = tuple(sorted(self.rng.sample(range(ndim), self.rng.randint(1, ndim))))
        return f"axis={axis}{keep}", axis

    def _reduction(self) -> None:
        a = self._pick()
        value = self.values[a]
        axes, axis = self._axes(value.ndim)
        name = self.rng.choice(
            [
                "sum",
                "sum",
                "max",
                "min",
                "prod",
                "mean",
                "var",
                "any",
                "all",
                "std",
                "count_nonzero",
            ]
        )
        if name in ("any", "all", "count_nonzero") and a not in self.program.exact:
            return
        count = max(
            1,
            value.size if axis is None else math.prod(value.shape[i] for i in np.atleast_1d(axis)),
        )
        k = 4 + math.sqrt(count)
        size = f"np.sum(magnitude(v{a}), {axes})"
        noise = {
            "sum": f"eps * {k} * {size}",
            "mean": f"eps * {k} * {size} / {count} + 0 * {size}",
            "prod": f"eps * {count} * magnitude(out) + spread_of_product(v{a}, {axes})",
            "var": f"eps * {k} * magnitude(out) + (eps * {k} * {size} / {count}) ** 2"
            f" + 0 * np.sum(magnitude(v{a}).astype(out.dtype) ** 2, {axes})",
            "std": f"eps * {k} * magnitude(out) + eps * {k} * {size} / {count}"
            f" + 0 * np.sum(magnitude(v{a}).astype(out.dtype) ** 2, {axes})",
        }.get(name)
        if name in ("sum", "mean") and value.dtype.kind == "f":
            # A partial sum may overflow that the whole does not.
            noise += f" + 0 * np.sum(magnitude(v{a}).astype(v{a}.dtype), {axes})"
        self._add(f"np.{name}(v{a}, {axes})", noise, zeros=False)

    def _row_wise(self) -> None:
        """A reduction that is broadcast back."""
        a = self._pick(lambda v: v.ndim > 0 and v.dtype.kind == "f")
        if a is None:
            return
        axis = self.rng.randrange(-self.values[a].ndim, self.values[a].ndim)
        name = self.rng.choice(["max", "min"])
        if self._add(f"np.{name}(v{a}, axis={axis}, keepdims=True)", zeros=False):
            self._add(f"v{a} - v{len(self.values) - 1}", zeros=False)

    def _reshape(self) -> None:
        a = self._pick()
        size = self.values[a].size
        dims = []
        left = size
        while left > 1 and len(dims) < 4 and self.rng.random() < 0.75:
            divisors = [d for d in range(1, min(left, 300) + 1) if left % d == 0]
            dims.append(self.rng.choice(divisors))
            left //= dims[-1]
        dims.append(left)
        self.rng.shuffle(dims)
        self._add(f"v{a}.reshape({', '.join(map(str, dims))})")

    def _transpose(self) -> None:
        a = self._pick(lambda v: v.ndim > 1)
        if a is None:
            return
        axes = list(range(self.values[a].ndim))
        self.rng.shuffle(axes)
        self._add(f"np.transpose(v{a}, {axes})")

    def _item(self, dim: int) -> str:
        choice = self.rng.random()
        if choice < 0.25:
            return ":"
        if choice < 0.35 and dim:
            return str(self.rng.randrange(-dim, dim))
        bounds = ["", *(str(self.rng.randint(-dim - 1, dim + 1)) for _ in range(2))]
        step = self.rng.choice(["", "", "1", "-1", "2", "-2", "3"])
        return f"{self.rng.choice(bounds)}:{self.rng.choice(bounds)}:{step}"

    def _index(self) -> None:
        a = self._pick(lambda v: v.ndim > 0)
        if a is None:
            return
        items = [
            self._item(dim)
            for dim in self.values[a].shape[: self.rng.randint(1, self.values[a].ndim)]
        ]
        if self.rng.random() < 0.2:
            items.insert(self.rng.randint(0, len(items)), "None")
        if self.rng.random() < 0.1:
            items.insert(0, "...")
        expression = f"v{a}[{', '.join(items)}]"
        names = {f"v{a}": self.values[a]}
        try:
            size = eval(expression, {}, names).size
        except IndexError:
            return
        if size or self.rng.random() < 0.05:  # empty arrays make dull programs
            self._add(expression)

    def _flip(self) -> None:
        a = self._pick(lambda v: v.ndim > 0)
        if a is not None:
            axis = self.rng.randrange(self.values[a].ndim)
            self._add(
                self.rng.choice(
                    [
                        f"np.flip(v{a})",
                        f"np.flip(v{a}, {axis})",
                        f"np.roll(v{a}, {self.rng.randint(-5, 5)}, {axis})",
                    ]
                )
            )

    def _concatenate(self) -> None:
        a = self._pick(lambda v: v.ndim > 0)
        if a is None:
            return
        axis = self.rng.randrange(self.values[a].ndim)
        rest = self.values[a].shape[:axis] + self.values[a].shape[axis + 1 :]
        others = [
            self._pick(
                lambda v: (
                    v.ndim == self.values[a].ndim and v.shape[:axis] + v.shape[axis + 1 :] == rest
                )
            )
            for _ in range(self.rng.randint(1, 3))
        ]
        operands = [a, *others]
        self.rng.shuffle(operands)
        text = ", ".join(f"v{i}" for i in operands)
        if self.rng.random() < 0.3:
            self._add(f"np.stack([{text}], {self.rng.randint(0, self.values[a].ndim)})")
        else:
            self._add(f"np.concatenate([{text}], {axis})")

    def _pad(self) -> None:
        a = self._pick(lambda v: v.ndim > 0)
        if a is None:
            return
        widths = [(self.rng.randint(0, 3), self.rng.randint(0, 3)) for _ in self.values[a].shape]
        if self.values[a].dtype == bool or self.rng.random() < 0.7:
            self._add(f"np.pad(v{a}, {widths})")
        else:
            self._add(f"np.pad(v{a}, {widths}, constant_values={self.rng.choice(['1', '7'])})")

    def _broadcast(self) -> None:
        a = self._pick(lambda v: v.size < 200)
        if a is None:
            return
        shape = [self.rng.choice((2, 3, 5)) if d == 1 else d for d in self.values[a].shape]
        if self.rng.random() < 0.6:
            shape.insert(0, self.rng.choice((1, 2, 5)))
        self._add(f"np.broadcast_to(v{a}, {tuple(shape)})")

    def _where(self) -> None:
        condition = self._pick(lambda v: v.dtype == bool)
        if condition is None:
            a = self._pick(exact=True)
            if not self._add(f"v{a} > 0"):
                return
            condition = len(self.values) - 1
        a, b = self._pick(), self._pick()
        other = self.rng.choice([f"v{b}", f"v{b}", "0", "1.5", "nan"])
        self._add(f"np.where(v{condition}, v{a}, {other})")

    def _matmul(self) -> None:
        a = self._pick(lambda v: v.ndim > 0)
        if a is None:
            return
        inner = self.values[a].shape[-1]
        b = self._pick(lambda v: v.ndim > 0 and v.shape[-2 if v.ndim > 1 else -1] == inner)
        right = f"v{b}"
        if b is None or self.rng.random() < 0.3:
            b, right = a, f"v{a}.T" if self.values[a].ndim == 2 else f"v{a}"
        other = self.values[b]
        if self.values[a].size * other.size // max(1, inner) > 400_000:
            return
        k = 4 + math.sqrt(max(1, inner))
        size = f"(magnitude(v{a}) @ magnitude({right}))"
        cast = f"(magnitude(v{a}).astype(out.dtype) @ magnitude({right}).astype(out.dtype))"
        self._add(f"v{a} @ {right}", f"eps * {k} * {size} + 0 * {cast}", zeros=False)

    def _cast(self) -> None:
        a = self._pick()
        dtype = self.rng.choice(DTYPES)
        kind = np.dtype(dtype).kind
        if self.values[a].dtype.kind == "f" and kind != "f":
            if a not in self.program.exact:
                return
            # Casts of what does not fit have no defined result.
            self._add(f"np.where((v{a} > -1) & (v{a} < 200), v{a}, 7).astype(np.{dtype})")
        else:
            self._add(f"v{a}.astype(np.{dtype})")

    def _repeat(self) -> None:
        a = self._pick(lambda v: v.ndim > 0 and v.size < 1000)
        if a is None:
            return
        axis = self.rng.randrange(self.values[a].ndim)
        forms = [
            f"np.repeat(v{a}, 2, {axis})",
            f"np.tile(v{a}, 2)",
            f"np.expand_dims(v{a}, {axis})",
            f"v{a}.swapaxes(0, {axis})",
        ]
        if self.values[a].dtype != bool and self.values[a].dtype.kind != "u":
            forms.append(f"np.diff(v{a}, axis={axis})")
        self._add(self.rng.choice(forms))

    def _choose_outputs(self) -> None:
        made = [step.target for step in self.program.steps] or [0]
        outputs = {made[-1]}
        for _ in range(self.rng.choice([0, 0, 1, 2, 3])):
            outputs.add(self.rng.choice(made))
        self.program.outputs = sorted(outputs)
        kept = self.program.slice_of(self.program.outputs)
        self.program.steps = kept.steps


def generate(seed: int, most_steps: int = 14) -> Program:
    """The program of a seed; the same in every process."""
    return Generator(seed, most_steps).program
