"""Makes random programs from seeds. What steps there are is in elementwise.py, movement.py,
reductions.py, selection.py and writes.py: functions that add some to a program."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import elementwise
import movement
import numpy as np
import reductions
import selection
import writes
from inputs import (
    DTYPES,
    MOST_ELEMENTS,
    is_float,
    lay_out,
    random_data,
    random_dtype,
    random_shape,
    related_shape,
)
from programs import NAMES, Program, Step, memory_of, names_in

_FAMILIES = (elementwise, movement, reductions, selection, writes)
_NUMBERS = (int, float, bool)
_REFUSALS = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError)


class Generator:
    """Makes one program. Each has its own mixture of steps, so that some consist of few kinds."""

    def __init__(self, seed: int, most_steps: int = 14) -> None:
        self.rng = random.Random(seed)
        self.values: list[Any] = []  # as they are after the steps so far
        large = self.rng.random() < 0.06
        special = self.rng.random() < 0.4
        inputs, layouts = [], []
        data = np.random.default_rng(seed)
        shape = random_shape(self.rng, large)
        for _ in range(self.rng.choice([1, 1, 2, 2, 3])):
            if inputs:
                shape = related_shape(self.rng, shape, large)
            array = random_data(data, random_dtype(self.rng), shape, special)
            array, layout = lay_out(self.rng, array)
            inputs.append(array)
            layouts.append(layout)
        self.most = 4 * max(MOST_ELEMENTS, *(v.size for v in inputs))
        if self.rng.random() < 0.2:
            inputs.append(self.rng.choice((2, -3, 7, True, 0.5, -1.25, 0.0, 300)))
            layouts.append("C")
        self.program = Program(dict(enumerate(inputs)), dict(enumerate(layouts)))
        self.values = self.program.arguments()
        everything = set(range(len(inputs)))
        self.program.exact |= everything
        self.program.signed_zeros |= everything
        self._makers = self._mixture()
        for _ in range(self.rng.randint(2, most_steps)):
            self._step()
        self._choose_outputs()

    def _mixture(self) -> tuple[list[Callable[[Generator], None]], list[float]]:
        makers, weights = [], []
        for family in _FAMILIES:
            much = self.rng.choice((0, 0, 1, 5) if family is writes else (0.1, 1, 1, 1, 5))
            for weight, maker in family.MAKERS:
                makers.append(maker)
                weights.append(weight * much)
        return makers, weights

    def _step(self) -> None:
        makers, weights = self._makers
        with suppress(LookupError):  # no value has what the step needs
            self.rng.choices(makers, weights)[0](self)

    # What makers of steps call.

    def pick(self, accept: Callable[[Any], bool] = lambda v: True, exact: bool = False) -> int:
        """A value, more probably a late one. Raises LookupError if there is none."""
        known = [
            i for i, v in self.arrays() if accept(v) and (not exact or i in self.program.exact)
        ]
        if not known:
            raise LookupError
        return known[-1 - min(int(self.rng.expovariate(0.4)), len(known) - 1)]

    def arrays(self) -> list[tuple[int, Any]]:
        """The values, with their numbers, that are no Python numbers."""
        return [(i, v) for i, v in enumerate(self.values) if type(v) not in _NUMBERS]

    def numbers(self) -> list[str]:
        """The Python numbers."""
        return [f"v{i}" for i, v in enumerate(self.values) if type(v) in _NUMBERS]

    def axis(self, value: Any) -> int:
        """An axis of a value that has some."""
        return self.rng.randrange(-value.ndim, value.ndim)

    def add(self, text: str, noise: str | None = None, zeros: bool = True) -> bool:
        """Adds a step unless NumPy refuses it or its result is too large or of another dtype.
        `zeros`: zeros have the same sign everywhere if those of the operands have."""
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                out = eval(text, NAMES, self.names())
        except _REFUSALS:
            return False
        if not isinstance(out, (np.ndarray, np.generic)):
            return False  # of bfloat16, now and then a Python number
        if out.dtype not in DTYPES or out.size > self.most:
            return False
        step = Step(len(self.values), text, noise if is_float(out.dtype) else None)
        self.values.append(out)
        self.program.steps.append(step)
        self._mark({step.target}, step, zeros)
        return True

    def write(self, text: str, target: int, noise: str | None = None, zeros: bool = True) -> bool:
        """Adds a statement that writes to a value, unless NumPy refuses it."""
        memory = memory_of(self.values[target])
        saved = memory.copy()
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                exec(text, NAMES, self.names())
        except _REFUSALS:
            if memory.flags.writeable:
                memory[...] = saved
            return False
        noise = noise if is_float(self.values[target].dtype) else None
        step = Step(target, text, noise, writes=True)
        self.program.steps.append(step)
        sharing = {i for i, v in enumerate(self.values) if memory_of(v) is memory}
        self._mark(sharing, step, zeros)
        return True

    def can_broadcast(self, *values: int) -> bool:
        """Whether to a shape that is not too large."""
        try:
            shape = np.broadcast_shapes(*(self.values[i].shape for i in values))
        except ValueError:
            return False
        return math.prod(shape) <= self.most

    def names(self) -> dict[str, Any]:
        """The values, by the names that texts use."""
        return {f"v{i}": v for i, v in enumerate(self.values)}

    def _mark(self, changed: set[int], step: Step, zeros: bool) -> None:
        """Whether the values that a step made or changed are exact."""
        exact, signed_zeros = self.program.exact, self.program.signed_zeros
        sources = names_in(step.text)
        is_exact = not step.noise and sources <= exact
        floats = {i for i in changed if is_float(self.values[i].dtype)}
        exact |= changed - floats  # made of exact values only
        signed_zeros |= changed - floats
        if not is_exact:
            exact -= floats
        elif not step.writes:
            exact |= floats
        if not (is_exact and zeros and sources <= signed_zeros):
            signed_zeros -= floats
        elif not step.writes:
            signed_zeros |= floats

    def _choose_outputs(self) -> None:
        made = [step.target for step in self.program.steps] or [0]
        outputs = {made[-1]}
        for _ in range(self.rng.choice([0, 0, 1, 2, 3])):
            outputs.add(self.rng.choice(made))
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            self.program = self.program.slice_of(sorted(outputs))


def generate(seed: int, most_steps: int = 14) -> Program:
    """The program of a seed; the same in every process."""
    return Generator(seed, most_steps).program
