"""Random NumPy programs: straight-line functions over a few arrays.

A program is a list of steps `v7 = np.maximum(v3, v5)`, and of writes `v7[1:] += v3`, which other
values see that share the memory: views, and arrays that are arguments. Most steps are exact: any
correct implementation gives the same bits. The others (sums, exp ...) carry the text of their
noise, an absolute error bound as an expression over their operands (see expectation.py). Steps
that are not continuous (comparisons, floor, casts to integers) are made from exact values only.
"""

from __future__ import annotations

import linecache
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

NAMES = {"np": np, "inf": math.inf, "nan": math.nan, "bfloat16": ml_dtypes.bfloat16}


def names_in(text: str) -> set[int]:
    """The numbers of the values that a text names."""
    return {int(number) for number in re.findall(r"\bv(\d+)", text)}


@dataclass(frozen=True)
class Step:
    """`v<target> = text`, or, if it writes, the statement `text`, which changes v<target>. In the
    noise, an expression too, `out` is the result, and `before` what a write found."""

    target: int
    text: str
    noise: str | None = None
    writes: bool = False

    @property
    def operands(self) -> set[int]:
        return names_in(self.text)

    @property
    def line(self) -> str:
        return self.text if self.writes else f"v{self.target} = {self.text}"


def memory_of(array: Any) -> Any:
    """The array that owns the elements."""
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def copy_with_layout(array: Any) -> Any:
    """A copy with the same strides, alignment and flags, in memory of its own; numbers are as they
    are."""
    if not isinstance(array, np.ndarray):
        return array
    base = memory_of(array)
    memory = base.copy(order="K")
    if not array.size or memory.strides != base.strides:
        made = array.copy()
    else:
        offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        made = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
    made.flags.writeable = array.flags.writeable
    return made


@dataclass
class Program:
    """The inputs are v0, v1 ...; the steps make the others."""

    inputs: dict[int, Any]  # arrays and Python's numbers
    layouts: dict[int, str]
    steps: list[Step] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    exact: set[int] = field(default_factory=set)  # values with the same bits everywhere
    # Exact values of which also zeros' signs are.
    signed_zeros: set[int] = field(default_factory=set)
    # Inputs' axes with rune_jit.Dims.
    dynamic: dict[int, dict[int, Any]] = field(default_factory=dict)

    @property
    def observed(self) -> list[int]:
        """The values to compare: the outputs, and the arguments where a step may write to one."""
        written = any(step.writes for step in self.steps)
        return [*self.outputs, *(self.inputs if written else ())]

    def arguments(self) -> list[Any]:
        """Fresh ones, laid out as the inputs are."""
        return [copy_with_layout(array) for array in self.inputs.values()]

    def with_other_data(self) -> Program | None:
        """The same with its inputs' elements in reverse order, or None if NumPy refuses that."""
        inputs = dict(self.inputs)
        for i, array in inputs.items():
            if isinstance(array, np.ndarray) and array.flags.writeable:
                inputs[i] = copy_with_layout(array)
                inputs[i][...] = np.flip(array)
        other = replace(self, inputs=inputs)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                other.execute()
        except (ValueError, IndexError):  # as many elements as a mask had ...
            return None
        return other

    def source(self) -> str:
        """Python code of the function."""
        lines = [f"def program({', '.join(f'v{i}' for i in self.inputs)}):"]
        lines += [f"    {step.line}" for step in self.steps]
        lines.append(f"    return {', '.join(f'v{i}' for i in self.outputs)},")
        return "\n".join(lines) + "\n"

    def function(self) -> Callable[..., Any]:
        """The program as a function whose source tracebacks can show."""
        source = self.source()
        name = f"<program {abs(hash(source))}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        namespace = dict(NAMES)
        exec(compile(source, name, "exec"), namespace)
        return namespace["program"]  # type: ignore[return-value]

    def describe(self) -> str:
        """The program and its inputs."""
        text = self.source()
        for i, array in self.inputs.items():
            if not isinstance(array, np.ndarray):
                text += f"v{i}: {array!r}\n"
                continue
            text += f"v{i}: {array.dtype}{list(array.shape)} {self.layouts[i]}"
            text += f" {self.dynamic[i]}" if i in self.dynamic else ""
            text += f" {array.tolist()}\n" if array.size <= 24 else "\n"
        return text

    def execute(
        self, after: Callable[[Step, dict[str, Any], np.ndarray | None], None] | None = None
    ) -> dict[str, Any]:
        """NumPy's values, by name, as they are in the end. `after` is called after each step, with
        a copy of what a write found."""
        values: dict[str, Any] = {}
        for i, array in zip(self.inputs, self.arguments(), strict=True):
            values[f"v{i}"] = array
        for step in self.steps:
            before = values[f"v{step.target}"].copy() if step.writes and after else None
            exec(step.line, NAMES, values)
            if after:
                after(step, values, before)
        return values

    def slice_of(self, outputs: list[int]) -> Program:
        """What these values need: their steps, and the writes to memory that they or arguments
        share."""
        memory = {int(name[1:]): id(memory_of(x)) for name, x in self.execute().items()}
        needed = set(outputs)
        live = {memory[i] for i in [*outputs, *self.inputs]}
        kept = []
        for step in reversed(self.steps):
            if step.target in needed or (step.writes and memory[step.target] in live):
                kept.append(step)
                needed |= {step.target, *step.operands}
                live |= {memory[i] for i in step.operands}
        return replace(self, steps=kept[::-1], outputs=outputs)
