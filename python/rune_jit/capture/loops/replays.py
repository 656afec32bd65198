"""The random numbers of loops of the program whose generators a trace has made from known seeds
(generators.py). Those of all iterations are drawn while the loop is traced, and the program has
them in arrays, of which an iteration takes its row:

    rng = np.random.default_rng(0)          order = [rng.permutation(9) for _ in range(99)]
    for epoch in range(99):                 for epoch in range(99):
        train(x[rng.permutation(9)])            train(x[order[epoch]])"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rune_jit import _core
from rune_jit.capture.loops.branches import convert
from rune_jit.capture.loops.drawing import Drawing
from rune_jit.capture.loops.draws import Draws, draws_of
from rune_jit.capture.loops.liveness import loaded
from rune_jit.capture.loops.nodes import path_of
from rune_jit.capture.loops.ranges import Range
from rune_jit.capture.loops.syntax import Loop, Uses
from rune_jit.rules.known import known
from rune_jit.tracing.trace import Trace


class Replay:
    """The numbers of all iterations of a loop."""

    def __init__(
        self,
        trace: Trace,
        uses: Uses,
        numbers: Range,
        generators: list[Any],
        arrays: list[Any],
        kinds: tuple[str, ...],
    ) -> None:
        self.uses = uses  # what the loop reads from outside, without the generators
        self._trace, self._range, self._kinds = trace, numbers, kinds
        self._generators = generators
        self._rows = [known(array) for array in arrays]
        self._position: Any = 0
        self._site = 0

    @classmethod
    def of(
        cls, trace: Trace, loop: Loop, numbers: Range, names: Mapping[str, Any], module: Any
    ) -> Replay | None:
        """None if the loop draws from other generators, or not so in each iteration. The
        generators are as after the loop otherwise."""
        draws = draws_of(loop.original, names, module) if numbers.is_known else None
        if draws is None or draws.may_end_early or abs(numbers.step) != 1:
            return None
        if any(len(around) > 1 for _, around in draws.sites):
            return None
        methods = draws.methods(names, module)
        if methods is None or not all(_is_seeded(method.__self__) for method in methods):
            return None
        drawing = Drawing(draws)
        _core.suspend_traces()
        try:
            drawn = drawing.draw(methods, names, module)
        finally:
            _core.resume_traces()
        if drawn is None:
            return None
        generators = [method.__self__ for method in methods]
        uses = _without_draws(loop.uses, draws)
        return cls(trace, uses, numbers, generators, drawn.arguments, drawn.key)

    @contextmanager
    def iteration(self, number: Any) -> Iterator[None]:
        """Draws give the numbers of the iteration with this number. Raises LoopRefused if they are
        others than those of each iteration."""
        self._position, self._site = self._range.iterations_before(number), 0
        for generator in self._generators:
            generator.replay = self
        yield
        for generator in self._generators:
            generator.replay = None
        if self._site != len(self._rows):
            self._refuse()

    def take(self) -> Any:
        """What the next draw of the iteration gives."""
        if self._site == len(self._rows):
            self._refuse()
        rows, kind = self._rows[self._site], self._kinds[self._site]
        self._site += 1
        row = rows[self._position]
        if kind == "array":
            return row.copy()
        return row if kind == "NumPy's" else convert(float if kind == "float" else int, row)

    def _refuse(self) -> None:
        assert self._trace.loops is not None
        self._trace.loops.fail("it draws random numbers that not each iteration draws")


def _is_seeded(source: Any) -> bool:
    from rune_jit.capture.generators import SeededGenerator  # not before: it loads numpy.random

    return type(source) is SeededGenerator


def _without_draws(uses: Uses, draws: Draws) -> Uses:
    """What a loop uses if it does not draw its numbers itself."""
    paths = {path_of(x.func) for x, _ in draws.sites}
    names = {path[0] for path in paths} - loaded([draws.loop])
    return uses._replace(
        names=uses.names - names,
        paths=frozenset(x for x in uses.paths if x not in paths and x[0] not in names),
        calls=uses.calls - paths,
    )
