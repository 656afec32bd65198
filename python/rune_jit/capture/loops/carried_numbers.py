"""The numbers of arrays (tracing/array_numbers.py) that a loop carries."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.tracing.array_numbers import ArrayNumbers
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_traced_array


class CarriedNumbers:
    """For one loop: the numbers of the arrays that names stand for, and the number from which the
    body counts. Without `numbers`, the loop carries none of these."""

    def __init__(self, trace: Trace, numbers: ArrayNumbers | None) -> None:
        self._trace, self._numbers = trace, numbers
        self._carried: dict[str, int] = {}  # by name of an array: what carries its number
        self._base: int | None = None  # what carries the number from which the body counts
        self._bases_before = numbers.num_bases if numbers is not None else 0

    def begin(self, counter: Any, initial: list[Any]) -> None:
        """Called at the start of the body of a loop that carries arrays or such loops, before
        `carry`. Appends to `initial`, as `carry` and `add` do, the numbers before the loop."""
        if self._numbers is None:
            return
        self._counter, self._initial, self._base = counter, initial, len(initial)
        base = self._carry(self._numbers.now(self._trace))
        self._numbers.begin(base)

    @property
    def lacks_base(self) -> bool:
        """Whether the body has a loop that carries arrays, so that `begin` must be called."""
        if self._numbers is None or self._base is not None:
            return False
        return self._numbers.num_bases > self._bases_before

    def _carry(self, before: Any) -> Any:
        index = len(self._initial)
        self._initial.append(before)
        return self._trace.builder.carry(self._counter, index, before)

    def carry(self, name: str, before: Tracer, given: Tracer) -> None:
        """Lets the loop carry the number of a name's array, `given` in the body."""
        if self._numbers is not None:
            self._carried[name] = len(self._initial)
            number = self._carry(self._numbers.of(self._trace, before))
            self._numbers.note(self._trace, given, number, is_given=True)

    def finals(self, finals: list[Any], after: dict[str, Any]) -> None:
        """Sets the carried numbers after an iteration."""
        if self._numbers is None or self._base is None:
            return
        for name, index in self._carried.items():
            finals[index] = self._numbers.of(self._trace, after[name])
        finals[self._base] = self._numbers.now(self._trace)

    def add(
        self, name: str, before: Any, after: Any, finals: list[Any], initial: list[Any]
    ) -> None:
        """Lets the loop carry the number of an array that no iteration reads. `before`: what the
        name stands for if the loop has no iteration."""
        if self._numbers is None or not is_traced_array(after):
            return
        self._carried[name] = len(initial)
        finals.append(self._numbers.of(self._trace, after))
        is_known = is_traced_array(before)
        none = self._trace.builder.constant(np.int64(0))
        initial.append(self._numbers.of(self._trace, before) if is_known else none)

    def end(self, results: list[Any]) -> None:
        """Called when the loop has ended, with its results."""
        if self._numbers is not None and self._base is not None:
            self.leave()
            self._numbers.begin(results[self._base])

    def made(self, name: str, array: Tracer, results: list[Any]) -> None:
        """Gives an array after the loop the number that the loop has carried."""
        if self._numbers is not None and name in self._carried:
            self._numbers.note(self._trace, array, results[self._carried[name]])

    def leave(self) -> None:
        """Called when the trace of the body has ended."""
        if self._numbers is not None:
            self._numbers.end(self._bases_before)
