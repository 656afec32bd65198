"""Random programs that write: to arguments, through views of views, at slices, arrays of indices
and masks. Every operation is exact, so that NumPy's bits are the only right ones.

A program is a list of statements over a0, a1 (arguments), i0, i1 (arrays of indices, arguments,
too) and v0, v1 ... (views and copies). What NumPy refuses is left out.
"""

from __future__ import annotations

import linecache
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import rune_jit

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64")
_REFUSED = (
    "cannot trace a write of an array to itself",  # NumPy reads what it has written
    ".at: cannot trace",  # NumPy rounds after each
    "cannot trace a write to an array that was reshaped",  # not in C order
    "the result's shape depends on data",
)
_DIMS = (2, 3, 4, 5, 2, 3, 1, 7)


class Writes:
    """Makes one program from one seed."""

    def __init__(self, seed: int, most: int = 10) -> None:
        self.rng = random.Random(seed)
        data = np.random.default_rng(seed)
        shape = tuple(self.rng.choice(_DIMS) for _ in range(self.rng.choice([1, 2, 2, 3])))
        self.arguments: dict[str, np.ndarray] = {}
        for name in ("a0", "a1"):
            dtype = self.rng.choice(DTYPES)
            low = 0 if dtype in ("uint8", "bool") else -5
            self.arguments[name] = self._lay_out(data.integers(low, 6, shape).astype(dtype))
            if self.rng.random() < 0.5:
                shape = shape[self.rng.randrange(len(shape)) :]
        least = min(min(a.shape) for a in self.arguments.values())
        for name, count in (("i0", 3), ("i1", (2, 1) if self.rng.random() < 0.3 else 3)):
            index = data.integers(-least, least, count)
            self.arguments[name] = index.astype(self.rng.choice(["int64", "int32", "int8"]))
        self.lines: list[str] = []
        self.shapes: dict[str, Any] = dict(self.arguments)  # values as they are after the lines
        tries = 0
        while len(self.lines) < self.rng.randint(2, most) and tries < 60:
            tries += 1
            self._try(self._statement())

    def _lay_out(self, array: np.ndarray) -> np.ndarray:
        choice = self.rng.random()
        if choice < 0.2:
            return np.asfortranarray(array)
        if choice < 0.4:
            return array[::-1].copy()[::-1]
        if choice < 0.5:
            return np.repeat(array, 2, axis=-1)[..., ::2]
        return array

    # Running.

    def source(self) -> str:
        names = [*self.arguments, *(line.split(" = ")[0] for line in self.lines if line[0] == "v")]
        results = ", ".join(n for n in dict.fromkeys(names) if n.isalnum())
        lines = [f"def program({', '.join(self.arguments)}):", *self.lines, f"return {results}"]
        return "\n    ".join(lines) + "\n"

    def function(self) -> Callable[..., Any]:
        source = self.source()
        name = f"<writes {abs(hash(source))}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        namespace: dict[str, Any] = {"np": np}
        exec(compile(source, name, "exec"), namespace)
        return namespace["program"]  # type: ignore[no-any-return]

    def fresh(self) -> list[np.ndarray]:
        """The arguments, with layouts as they were made."""
        made = []
        for array in self.arguments.values():
            base = array
            while isinstance(base.base, np.ndarray):
                base = base.base
            memory = base.copy(order="K")
            offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
            made.append(
                np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
                if array.size and memory.strides == base.strides
                else array.copy()
            )
        return made

    def _try(self, line: str | None) -> None:
        """Keeps a statement that NumPy runs."""
        if line is None:
            return
        self.lines.append(line)
        arguments = self.fresh()
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                results = self.function()(*arguments)
        except (TypeError, ValueError, IndexError, OverflowError):
            self.lines.pop()
            return
        names = self.source().rsplit("return ", 1)[1].strip().split(", ")
        self.shapes = dict(zip(names, results, strict=True))

    def mismatch(self, device: str) -> str | None:
        """How the compiled program differs from NumPy's, or None."""
        ours, numpys = self.fresh(), self.fresh()
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            expected = self.function()(*numpys)
            try:
                actual = rune_jit.jit(self.function(), device=device, fallback="error")(*ours)
            except rune_jit.UnsupportedOpError as error:
                if any(reason in str(error) for reason in _REFUSED):
                    return None
                return f"UnsupportedOpError: {error}"
            except ValueError as error:
                empty = str(error).startswith("shape mismatch") and str(error).count("0") > 1
                return None if empty else f"ValueError: {error}"  # NumPy looks at elements first
            except Exception as error:  # NumPy ran it
                return f"{type(error).__name__}: {error}"
        names = self.source().rsplit("return ", 1)[1].strip().split(", ")
        pairs = [*zip(names, actual, expected, strict=True)]
        pairs += [(f"argument {n}", a, e) for n, a, e in zip(names, ours, numpys, strict=False)]
        for name, a, e in pairs:
            if np.asarray(a).dtype != np.asarray(e).dtype or np.shape(a) != np.shape(e):
                return f"{name}: {np.asarray(a).dtype}{np.shape(a)} instead of {e.dtype}{e.shape}"
            if not np.array_equal(a, e, equal_nan=np.asarray(e).dtype.kind == "f"):
                return f"{name}: {a!r} instead of {e!r}"
        return None

    # Statements.

    def _arrays(self) -> list[str]:
        return [n for n, v in self.shapes.items() if n[0] != "i" and np.ndim(v) > 0]

    def _name(self) -> str:
        return self.rng.choice(self._arrays())

    def _statement(self) -> str | None:
        makers = [self._view, self._view, self._copy, self._assign, self._assign, self._augment]
        makers += [self._augment, self._function, self._masked]
        return self.rng.choice(makers)()

    def _slice(self, dim: int) -> str:
        bounds = ["", "", *(str(self.rng.randint(-dim - 1, dim + 1)) for _ in range(2))]
        step = self.rng.choice(["", "", "-1", "2", "-2"])
        return f"{self.rng.choice(bounds)}:{self.rng.choice(bounds)}:{step}"

    def _items(self, name: str, arrays: bool) -> str:
        shape = np.shape(self.shapes[name])
        items = []
        for dim in shape[: self.rng.randint(1, len(shape))]:
            choice = self.rng.random()
            if arrays and choice < 0.4:
                items.append(self.rng.choice(["i0", "i1", "i0[:1]", "[0, -1]", "i1[0]", "i0 % 1"]))
            elif choice < 0.6 and dim:
                items.append(str(self.rng.randrange(-dim, dim)))
            else:
                items.append(self._slice(dim))
        if self.rng.random() < 0.15:
            items.insert(self.rng.randint(0, len(items)), self.rng.choice(["None", "..."]))
        return ", ".join(items)

    def _mask(self, name: str) -> str:
        shape = np.shape(self.shapes[name])
        axes = self.rng.randint(1, len(shape))
        first = f"{name}[{', '.join([':'] * axes + ['0'] * (len(shape) - axes))}]"
        return f"{first} {self.rng.choice(['>', '<', '==', '!='])} {self.rng.randint(-1, 3)}"

    def _value(self, target: str) -> str:
        """Something that can be assigned to elements of an array without an inexact cast."""
        dtype = self.shapes[target].dtype
        choice = self.rng.random()
        if choice < 0.3:
            return str(self.rng.randint(0 if dtype.kind in "ub" else -3, 3))
        names = [n for n in self._arrays() if np.can_cast(self.shapes[n].dtype, dtype, "same_kind")]
        source = self.rng.choice(names or [target])
        if choice < 0.6:
            source += f"[{self._items(source, self.rng.random() < 0.5)}]"
        return source if self.rng.random() < 0.7 else f"({source} + {source})"

    def _new(self, expression: str) -> str:
        return f"v{sum(n[0] == 'v' for n in self.shapes)} = {expression}"

    def _view(self) -> str:
        name = self._name()
        ndim = np.ndim(self.shapes[name])
        views = [f"{name}[{self._items(name, False)}]"] * 3
        views += [f"{name}.T", f"{name}[::-1]", f"{name}.reshape(-1)", f"np.ravel({name})"]
        views += [f"{name}.swapaxes(0, {ndim - 1})", f"{name}[None]", f"np.flip({name})"]
        views += [f"{name}.reshape({self.shapes[name].shape[0]}, -1)", f"np.squeeze({name})"]
        return self._new(self.rng.choice(views))

    def _copy(self) -> str:
        name = self._name()
        copies = [f"{name}[{self._items(name, True)}]", f"{name}.copy()", f"{name} * 2"]
        copies += [f"np.zeros_like({name})", f"np.where({self._mask(name)}, {name}, 1)"]
        return self._new(self.rng.choice(copies))

    def _assign(self) -> str:
        name = self._name()
        return f"{name}[{self._items(name, self.rng.random() < 0.6)}] = {self._value(name)}"

    def _augment(self) -> str:
        name = self._name()
        operator = self.rng.choice(["+", "-", "*", "|", "^"])
        value = self._value(name)
        if self.rng.random() < 0.3:
            return f"{name} {operator}= {value}"
        return f"{name}[{self._items(name, self.rng.random() < 0.6)}] {operator}= {value}"

    def _masked(self) -> str | None:
        name = self._name()
        mask = self._mask(name)
        choice = self.rng.random()
        if choice < 0.25:
            return f"{name}[{mask}] {self.rng.choice(['+', '*'])}= {self.rng.randint(0, 2)}"
        if choice < 0.5:
            try:
                count = int(np.sum(eval(mask, {}, dict(self.shapes))))
            except IndexError:  # an axis of size 0
                return None
            source = self._value(name)
            return f"{name}[{mask}] = np.ravel({source})[:{count}]"
        if choice < 0.65:
            return f"{name}[{mask}] = {name}[{self._mask(name)}]"
        if choice < 0.8 and np.ndim(self.shapes[name]) > 1:
            return (
                f"{name}[{mask}, {self.rng.choice(['0', ':1', '...'])}] = {self.rng.randint(0, 3)}"
            )
        return f"{name}[{mask}] = {self._value(name)}"

    def _function(self) -> str:
        name = self._name()
        value, other = self._value(name), self._name()
        size = self.shapes[name].size
        return self.rng.choice(
            [
                f"np.{self.rng.choice(['add', 'subtract', 'maximum'])}.at({name}, i0, {value})",
                f"np.put({name}, i0 % {max(size, 1)}, {value})",
                f"np.putmask({name}, {self._mask(name)}, {value})",
                f"np.place({name}, {self._mask(name)}, {value})",
                f"np.copyto({name}, 1 * {value}, where={self._mask(name)})",
                f"np.add({name}, {value}, out={other})",
                f"np.multiply({name}, {value}, out={name}, where={self._mask(name)})",
                f"np.maximum({name}[1:], {name}[:-1], out={name}[1:])",
                f"{name}.fill({self.rng.randint(0, 3)})",
                f"{name}.flat[{self._slice(size)}] = {value}",
                f"np.fill_diagonal({name}, {value})",
                f"np.put_along_axis({name}, np.argmax({name}, 0)[None], {other}.size % 3, 0)",
            ]
        )


def check(seed: int, device: str, most: int = 10) -> None:
    """Raises AssertionError with the smallest program of the seed that goes wrong."""
    program = Writes(seed, most)
    problem = program.mismatch(device)
    if problem is None:
        return
    for count in range(1, len(program.lines) + 1):
        lines, program.lines = program.lines, program.lines[:count]
        problem = program.mismatch(device) or problem
        if program.mismatch(device):
            break
        program.lines = lines
    arguments = "".join(f"{n} = {a!r} {a.strides}\n" for n, a in program.arguments.items())
    raise AssertionError(f"seed {seed} on {device}: {problem}\n{program.source()}{arguments}")
