"""Random numbers of loops of the program, if the trace has made their generators from known seeds
(generators.py). The numbers of all iterations are drawn while the loop is traced. They become
constant arrays of the program, and each iteration takes its row:

    rng = np.random.default_rng(0)          order = [rng.permutation(9) for _ in range(99)]
    for epoch in range(99):                 for epoch in range(99):
        train(x[rng.permutation(9)])            train(x[order[epoch]])"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

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

# How many numbers the iterations draw at most. Each takes about a microsecond whenever the function
# is traced, and it is traced for each seed. Loops that draw more run apart.
_MOST_DRAWS = 500


class Rows(NamedTuple):
    """Random numbers: one array for each call that draws. The first axes of an array are the
    iterations of the loops around the call."""

    generators: list[Any]
    arrays: list[Any]
    kinds: tuple[str, ...]  # "float", "int", "NumPy's" or "array"


class Replay:
    """The numbers of all iterations of a loop and of the loops in it."""

    def __init__(self, trace: Trace, loop: Loop, numbers: Range, draws: Draws, rows: Rows) -> None:
        self.uses = _without_draws(loop.uses, draws)  # the loop's uses without the draws
        self._trace, self._range, self._rows = trace, numbers, rows
        sites = [(i, around, rows.arrays[i].shape) for i, (_, around) in enumerate(draws.sites)]
        self._sequence = list(_sequence(sites, 1))  # the draws of an iteration, in their order
        self._around = [around for _, around in draws.sites]
        self._position: Any = 0
        self._next = 0

    @classmethod
    def of(
        cls, trace: Trace, loop: Loop, numbers: Range, names: Mapping[str, Any], module: Any
    ) -> Replay | None:
        """Draws the numbers of a loop, so that the generators are in their state after the loop.
        None if the loop draws from other generators, or if its iterations draw differently."""
        draws = draws_of(loop.original, names, module) if numbers.is_known else None
        if draws is None or draws.may_end_early or abs(numbers.step) != 1:
            return None
        if len(numbers.known) * len(draws.sites) > _MOST_DRAWS:
            return None
        methods = draws.methods(names, module)
        if methods is None or not all(_is_seeded(method.__self__) for method in methods):
            return None
        outer = methods[0].__self__.replay
        rows = _drawn(draws, methods, names, module) if outer is None else outer._inner(draws)
        if rows is None or any(x.shape[0] != len(numbers.known) for x in rows.arrays):
            return None
        return cls(trace, loop, numbers, draws, rows)

    @contextmanager
    def iteration(self, number: Any) -> Iterator[None]:
        """A block in which draws return the numbers of the iteration with this number. Raises
        LoopRefused if the block does not make exactly the draws of an iteration."""
        self._position, self._next = self._range.iterations_before(number), 0
        outer = [generator.replay for generator in self._rows.generators]
        for generator in self._rows.generators:
            generator.replay = self
        yield
        for generator, replay in zip(self._rows.generators, outer, strict=True):
            generator.replay = replay
        if self._next != len(self._sequence):
            self._refuse()

    def take(self) -> Any:
        """The result of the next draw of the iteration."""
        if self._next == len(self._sequence):
            self._refuse()
        site, index = self._sequence[self._next]
        self._next += 1
        kind, row = self._rows.kinds[site], self._rows.arrays[site][(self._position, *index)]
        if kind == "array":
            return row.copy()
        return row if kind == "NumPy's" else convert(float if kind == "float" else int, row)

    def _inner(self, draws: Draws) -> Rows | None:
        """The numbers, in this iteration, of the inner loop that draws next. None if `draws` are
        not the next ones."""
        if self._next == len(self._sequence):
            return None
        first, index = self._sequence[self._next]
        sites = range(first, first + len(draws.sites))
        depths = {
            len(self._around[i]) - len(around)
            for i, (_, around) in zip(sites, draws.sites, strict=True)
        }
        depth = depths.pop()
        if depths or depth < 1 or any(index[depth - 1 :]):
            return None
        for i in sites:
            shape = self._rows.arrays[i].shape[depth : len(self._around[i])]
            self._next += math.prod(shape)
        at = (self._position, *index[: depth - 1])
        arrays = [self._rows.arrays[i][at] for i in sites]
        return Rows(self._rows.generators, arrays, self._rows.kinds[first : sites.stop])

    def _refuse(self) -> None:
        assert self._trace.loops is not None
        self._trace.loops.fail("it draws random numbers in some iterations only")


def _drawn(draws: Draws, methods: list[Any], names: Mapping[str, Any], module: Any) -> Rows | None:
    """Draws the numbers of all iterations of an outermost loop. None if that is not possible."""
    _core.suspend_traces()
    try:
        drawn = Drawing(draws).draw(methods, names, module)
    finally:
        _core.resume_traces()
    if drawn is None:
        return None
    sites = zip(drawn.arguments, draws.sites, strict=True)
    if sum(math.prod(x.shape[: len(around)]) for x, (_, around) in sites) > _MOST_DRAWS:
        drawn.restore()
        return None
    generators = list({id(x.__self__): x.__self__ for x in methods}.values())
    return Rows(generators, [known(array) for array in drawn.arguments], drawn.key)


def _sequence(
    sites: list[tuple[int, tuple[int, ...], tuple[int, ...]]], depth: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The draws in one iteration of a loop, in their order. Each is the number of its site, and the
    numbers of the iterations of the inner loops around it. `sites` has the number of each site, the
    loops around it and the shape of its array; `depth` is the number of the loops left out."""

    def loop_of(site: tuple[int, tuple[int, ...], tuple[int, ...]]) -> int:
        return site[1][depth] if len(site[1]) > depth else -1

    for loop, found in itertools.groupby(sites, loop_of):
        group = list(found)
        if loop < 0:
            yield from ((number, ()) for number, *_ in group)
            continue
        inner = list(_sequence(group, depth + 1))
        for k in range(group[0][2][depth]):
            yield from ((number, (k, *index)) for number, index in inner)


def _is_seeded(source: Any) -> bool:
    from rune_jit.capture.generators import SeededGenerator  # not before: it loads numpy.random

    return type(source) is SeededGenerator


def _without_draws(uses: Uses, draws: Draws) -> Uses:
    """The uses of a loop that takes its numbers from arrays instead of drawing them."""
    paths = {path_of(x.func) for x, _ in draws.sites}
    names = {path[0] for path in paths} - loaded([draws.loop])
    return uses._replace(
        names=uses.names - names,
        paths=frozenset(x for x in uses.paths if x not in paths and x[0] not in names),
        calls=uses.calls - paths,
    )
