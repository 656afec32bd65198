"""Random programs on arrays in chunks: their source, arguments and chunks, by seed."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

_UNARY = ("-{a}", "abs({a})", "{a} * 0.5 + 1", "np.tanh({a})", "np.sqrt(abs({a}))", "{a} > 0.25")
_BINARY = (
    "{a} + {b}",
    "{a} * {b}",
    "{a} - {b} * 0.5",
    "np.maximum({a}, {b})",
    "np.where({a} > {b}, {a}, {b} * 2)",
)
_REDUCTIONS = ("sum", "mean", "max", "min", "std", "var", "any", "all", "argmax", "argmin", "prod")
_MOST_ELEMENTS = 3000


class BlockProgram(NamedTuple):
    text: str
    arguments: list[np.ndarray]
    chunks: list[Any]  # by argument, its chunks by axis; None: it is NumPy's

    def function(self) -> Any:
        scope: dict[str, Any] = {"np": np}
        exec(self.text, scope)
        return scope["f"]


def _chunks(rng: random.Random, size: int) -> tuple[int, ...]:
    count = rng.choice((1, 1, 2, 3, 4))
    if size == 0 or count == 1:
        return (size,)
    if rng.random() < 0.5:  # of one size, with a ragged end
        each = -(-size // count)
        ends = [*range(each, size, each), size]
    else:
        ends = [*sorted(rng.choices(range(size + 1), k=count - 1)), size]
    return tuple(b - a for a, b in zip([0, *ends], ends, strict=False))


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        values = np.random.default_rng(seed)
        ndim = self.rng.choice((1, 2, 2, 3))
        shape = tuple(self.rng.randint(1, (24, 12, 7)[ndim - 1]) for _ in range(ndim))
        self.arguments, self.chunks = [], []
        for i in range(self.rng.choice((1, 1, 2, 3))):
            own = shape
            if i > 0:  # one that broadcasts, or is of another number of dimensions
                own = tuple(1 if self.rng.random() < 0.3 else n for n in shape)
                own = own[self.rng.choice((0, 0, 1)) :]
            dtype = self.rng.choice((np.float32, np.float32, np.float64, np.int32))
            array = values.integers(-8, 8, own).astype(dtype)
            if dtype is not np.int32:
                array /= 8
            self.arguments.append(array)
            is_dask = i == 0 or self.rng.random() < 0.6
            self.chunks.append(tuple(_chunks(self.rng, n) for n in own) if is_dask else None)
        self.lines: list[str] = []
        self.values = {f"x{i}": a for i, a in enumerate(self.arguments)}

    def make(self) -> BlockProgram:
        steps = self.rng.randint(1, 8)
        tries = 0
        while steps and tries < 60:
            tries += 1
            steps -= self._step()
        names = [line.split(" = ")[0] for line in self.lines if line.startswith("v")]
        wanted = [names[-1]] if names else ["x0 + 1"]
        if names and self.rng.random() < 0.4:
            wanted.append(self.rng.choice(names))
        body = "\n".join(f"    {line}" for line in [*self.lines, f"return ({', '.join(wanted)},)"])
        text = f"def f({', '.join(f'x{i}' for i in range(len(self.arguments)))}):\n{body}\n"
        return BlockProgram(text, self.arguments, self.chunks)

    def _step(self) -> bool:
        """Adds a line, unless what it says cannot be or is too large."""
        rng = self.rng
        names = list(self.values)
        a = rng.choice(names[-3:])
        made = rng.choice(
            (self._unary, self._binary, self._binary, self._reduce, self._reduce, self._move,
             self._move, self._write, self._join, self._product)
        )(a)  # fmt: skip
        if made is None:
            return False
        lines = made if isinstance(made, list) else [made]
        name = f"v{len(self.values)}"
        scope = {"np": np, **{k: v.copy() for k, v in self.values.items()}}
        lines = [*lines[:-1], f"{name} = {lines[-1]}"]
        try:
            with np.errstate(all="ignore"):
                exec("\n".join(lines), scope)
        except (ValueError, IndexError, TypeError, ZeroDivisionError):
            return False
        result = scope[name]
        if np.size(result) > _MOST_ELEMENTS or not np.all(np.isfinite(result)):
            return False
        if np.any(np.abs(np.asarray(result, np.float64)) > 1e6):
            return False
        if np.asarray(result).dtype == np.float16:  # as of sqrt of bools: too coarse to compare
            return False
        self.values[name] = np.asarray(result)
        self.lines += lines
        return True

    def _unary(self, a: str) -> str:
        return self.rng.choice(_UNARY).format(a=a)

    def _binary(self, a: str) -> str:
        return self.rng.choice(_BINARY).format(a=a, b=self.rng.choice(list(self.values)))

    def _axis(self, a: str) -> int:
        return self.rng.randrange(max(1, self.values[a].ndim))

    def _reduce(self, a: str) -> str | None:
        ndim = self.values[a].ndim
        if ndim == 0:
            return None
        function = self.rng.choice(_REDUCTIONS)
        axis: Any = self._axis(a)
        if self.rng.random() < 0.2:
            axis = None
        elif ndim > 1 and self.rng.random() < 0.2 and not function.startswith("arg"):
            axis = (0, 1)
        if function == "prod":
            a = f"({a} * 0.25 + 1)"
        keepdims = self.rng.random() < 0.4
        return f"np.{function}({a}, axis={axis}, keepdims={keepdims})"

    def _move(self, a: str) -> str | None:
        rng, shape = self.rng, self.values[a].shape
        if not shape:
            return None
        axis = self._axis(a)
        size = shape[axis]
        before = ":, " * axis
        low = rng.randint(0, size)
        high = rng.randint(low, size)
        return rng.choice(
            (
                f"{a}.T",
                f"np.transpose({a}, {rng.sample(range(len(shape)), len(shape))})",
                f"{a}[{before}{low}:{high}]",
                f"{a}[{before}::{rng.choice((-1, 2, 3, -2))}]",
                f"{a}[{before}None]",
                f"np.flip({a}, {axis})",
                f"np.roll({a}, {rng.randint(-size, size)}, {axis})",
                f"np.pad({a}, {rng.randint(0, 3)})",
                f"{a}.reshape(-1)",
                f"{a}.reshape({shape[0]}, -1)",
                f"{a}.reshape(-1, {rng.choice((1, 2, 3, shape[-1]))})",
                f"np.diff({a}, axis={axis})",
                f"np.broadcast_to({a}, {(rng.randint(1, 3), *shape)})",
                f"np.expand_dims({a}, {axis})",
                f"np.cumsum({a}, axis={axis})",
                f"np.take({a}, {[rng.randrange(size) for _ in range(2)] if size else []}, {axis})",
                f"np.repeat({a}, 2, {axis})",
                f"np.sort({a}, axis={axis})",
                f"np.median({a}, axis={axis}, keepdims={rng.random() < 0.5})",
                f"np.quantile({a}, [0.25, 0.5], axis={axis})",
                f"np.cumsum({a}, axis={axis})[{before}::-1]",
                f"np.arange({shape[-1]}) * {a}",
            )
        )

    def _write(self, a: str) -> list[str] | None:
        rng, shape = self.rng, self.values[a].shape
        if not shape or min(shape) < 3:
            return None
        axis = self._axis(a)
        before = ":, " * axis
        copy = f"w{len(self.values)}"
        near = f"{a}[{before}:-2] + {a}[{before}2:]"
        if rng.random() < 0.3:
            at = rng.randrange(shape[axis])
            return [f"{copy} = {a}.copy()", f"{copy}[{before}{at}] = 1", f"{copy} * 1"]
        sweeps = rng.randint(1, 4)
        lines = [f"{copy} = {a} * 1.0"]
        for _ in range(sweeps):
            lines.append(f"{copy}[{before}1:-1] = ({near.replace(a, copy)}) * 0.5")
        return [*lines, f"{copy} * 1"]

    def _join(self, a: str) -> str:
        b = self.rng.choice(list(self.values))
        axis = self._axis(a)
        return self.rng.choice(
            (f"np.concatenate([{a}, {b}], axis={axis})", f"np.stack([{a}, {a} * 2], axis={axis})")
        )

    def _product(self, a: str) -> str:
        b = self.rng.choice(list(self.values))
        return self.rng.choice(
            (f"{a} @ {b}", f"{a}.T @ {b}", f"{a} @ {b}.T", f"np.tensordot({a}, {b}, 1)")
        )


def block_program(seed: int) -> BlockProgram:
    return _Maker(seed).make()
