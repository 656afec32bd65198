"""Makes dask's tasks for a program that is cut into blocks."""

from __future__ import annotations

import functools
import hashlib
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rune_jit.chunked.blocks import Block, Combine, Edges, HostCall, Operand, Piece, Program
from rune_jit.chunked.plan import Box, Chunks, Pass, Plan, Result
from rune_jit.chunked.reading import Layout, Part, Reader, Reading, Way

Key = tuple[Any, ...]

# The most partial results that one task combines.
_FAN_IN = 16


class Source:
    """An array that blocks read. For each chunk it has the key of a task, and which item of the
    task's result is the chunk (None: all of it)."""

    def __init__(self, layout: Layout) -> None:
        self.dtype: np.dtype[Any] = layout.dtype
        self.chunks: Chunks = layout.chunks
        self.layout = layout
        self._ends = [list(itertools.accumulate(axis)) for axis in layout.chunks]
        self.keys: dict[tuple[int, ...], tuple[Any, int | None]] = {}

    def region_of(self, place: tuple[int, ...]) -> tuple[slice, ...]:
        """The place of a chunk in the array."""
        starts = [ends[i - 1] if i else 0 for ends, i in zip(self._ends, place, strict=True)]
        ends = [ends[i] for ends, i in zip(self._ends, place, strict=True)]
        return tuple(map(slice, starts, ends))

    def region(self, part: Part) -> tuple[slice, ...]:
        """The place of a part of a chunk in the array."""
        starts = (chunk.start for chunk in self.region_of(part.place))
        return tuple(
            slice(start + low, start + high)
            for start, (low, high) in zip(starts, part.box, strict=True)
        )


# A function of a level, the tasks of earlier levels and their reduced arrays. Returns the names
# under which the level's blocks read the arguments.
Between = Callable[[int, dict[Any, Any], list[Source]], Sequence[Any]]


class Tasks:
    """Makes the tasks: one for each block of each pass, tasks that cut edges off chunks, and tasks
    that combine partial results.

    `functions` are the host functions, by the number of the call. `reader` knows what blocks read.
    `arguments` are arrays or Iotas. `names` has the names of dask's arrays, and None for others.
    """

    def __init__(
        self,
        plan: Plan,
        functions: Sequence[Any],
        reader: Reader,
        arguments: Sequence[Any],
        names: Sequence[Any],
        token: str,
        device: str,
    ) -> None:
        self._plan, self._token, self._functions = plan, token, functions
        self._readings = reader.readings
        self._tasks: dict[Any, Any] = {}
        self._programs = [Program(text, device) for text in plan.programs]
        self._sources: list[Source] = []
        for info, layout in zip(plan.arrays, reader.layouts, strict=True):
            if info.argument is None:
                self._sources.append(Source(layout))
            else:
                argument, name = arguments[info.argument], names[info.argument]
                self._sources.append(self._argument(layout, argument, name))

    def run(self, between: Between) -> tuple[dict[Any, Any], list[Source]]:
        """The tasks, and the Source of each output. `between` is called before each level but the
        first."""
        level = 0
        reduced: list[Source] = []
        for number, one in enumerate(self._plan.passes):
            if one.level > level and one.call is None:
                level = one.level
                self._rename(between(level, self._tasks, reduced))
                reduced = []
            self._add_pass(number, one)
            is_whole = one.call is not None and not one.grid
            reduced += [
                self._sources[r.array] for r in one.results if r.combine is not None or is_whole
            ]
        return self._tasks, [self._sources[array] for array in self._plan.outputs]

    def _rename(self, names: Sequence[Any]) -> None:
        """Lets further blocks read the arguments under these names."""
        for info, source in zip(self._plan.arrays, self._sources, strict=True):
            if info.argument is not None and (name := names[info.argument]) is not None:
                source.keys = {at: ((name, *at), None) for at in source.keys}

    def _argument(self, layout: Layout, array: Any, name: str | None) -> Source:
        source = Source(layout)
        if name is not None:
            for at in itertools.product(*(range(len(axis)) for axis in array.chunks)):
                source.keys[at] = (name, *at), None
            return source
        if layout.is_iota:
            return source
        digest = hashlib.blake2b(
            np.ascontiguousarray(array).tobytes() + f"{array.dtype} {array.shape}".encode(),
            digest_size=16,
        ).hexdigest()
        self._tasks[key := f"rune-array-{digest}"] = array
        source.keys[(0,) * len(array.shape)] = key, None
        return source

    def _add_pass(self, number: int, one: Pass) -> None:
        name = f"{self._token}-{number}"
        single = one.results[0] if len(one.results) == 1 else None
        at_key: dict[tuple[int, ...], Key] = {}
        readings = iter(self._readings[number])
        edges: dict[Any, dict[Box, int]] = {}
        for place, block in zip(one.places(), one.blocks, strict=True):
            # If a pass computes only one array, its tasks are the chunks.
            is_chunk = single is not None and single.combine is None
            key = (name, *(single.chunk(place) if single is not None and is_chunk else place))
            at_key[place] = key
            operands, keys = self._operands(name, next(readings), edges)
            task: Any
            if one.call is not None:
                task = HostCall(self._functions[one.call.number], one.call.results, operands)
            else:
                assert block.program is not None
                task = Block(self._programs[block.program], operands)
            self._tasks[key] = (task, *keys)
        self._add_edges(edges)
        several = single is None
        groups: dict[tuple[int, ...], list[int]] = {}
        for item, result in enumerate(one.results):
            if result.combine is not None:
                groups.setdefault(result.reduced, []).append(item)
                continue
            keys_of = self._sources[result.array].keys
            for place, key in at_key.items():
                keys_of[result.chunk(place)] = key, item if several else None
        for reduced, items in groups.items():
            self._combine(f"{name}-{items[0]}", one, reduced, items, at_key, several)

    def _operands(
        self, name: str, readings: list[Reading], edges: dict[Any, dict[Box, int]]
    ) -> tuple[list[Operand], list[Any]]:
        """The operands of a block, and the keys of the tasks from whose results they are taken.
        `name` is the pass's. Adds the parts that are edges to `edges`: by key, the array, the chunk
        and the parts."""
        operands: list[Operand] = []
        arguments: dict[Any, int] = {}

        def piece(array: int, part: Part) -> Piece:
            source = self._sources[array]
            taken = tuple(slice(*r) for r in part.box)
            if part.way is Way.FILE:
                number = arguments.setdefault(source.layout.stored, len(arguments))
                return Piece(number, None, source.region(part), part.target, is_file=True)
            if part.way is Way.CHUNK:
                key, item = source.keys[part.place]
                return Piece(arguments.setdefault(key, len(arguments)), item, taken, part.target)
            key = (f"{name}-edges-{array}", *part.place)
            known = edges.setdefault((key, array, part.place), {})
            number = arguments.setdefault(key, len(arguments))
            return Piece(number, known.setdefault(part.box, len(known)), (), part.target)

        for array, box, parts in readings:
            shape, dtype = tuple(high - low for low, high in box), self._sources[array].dtype
            if self._sources[array].layout.is_iota:
                operands.append(Operand(shape, dtype, (), box[0]))
            else:
                operands.append(Operand(shape, dtype, tuple(piece(array, p) for p in parts)))
        return operands, list(arguments)

    def _add_edges(self, edges: dict[Any, dict[Box, int]]) -> None:
        for (key, array, place), parts in edges.items():
            source = self._sources[array]
            if source.layout.stored is not None:
                cut = Edges(list(parts), None, source.region_of(place))
                self._tasks[key] = (cut, source.layout.stored)
            else:
                chunk, item = source.keys[place]
                self._tasks[key] = (Edges(list(parts), item, None), chunk)

    def _combine(
        self,
        name: str,
        one: Pass,
        reduced: tuple[int, ...],
        items: list[int],
        at_key: dict[tuple[int, ...], Key],
        several: bool,
    ) -> None:
        """Adds the tasks that combine the partial results, in the order of the blocks."""
        operations = [str(one.results[item].combine) for item in items]
        parts: dict[tuple[int, ...], list[Key]] = {}
        for place, key in at_key.items():
            kept = tuple(0 if axis in reduced else i for axis, i in enumerate(place))
            parts.setdefault(kept, []).append(key)
        for kept, keys in parts.items():
            picked: list[int] | None = items if several else None
            level = itertools.count()
            while len(keys) > 1 or picked is not None:
                depth = next(level)
                groups = [keys[i : i + _FAN_IN] for i in range(0, len(keys), _FAN_IN)]
                keys = [(f"{name}-{depth}", *kept, i) for i in range(len(groups))]
                for key, group in zip(keys, groups, strict=True):
                    self._tasks[key] = (Combine(operations, picked), *group)
                picked = None
            for position, item in enumerate(items):
                result: Result = one.results[item]
                where = position if len(items) > 1 else None
                self._sources[result.array].keys[result.chunk(kept)] = keys[0], where


def add_output(tasks: dict[Any, Any], source: Source, name: str) -> str:
    """The name of the dask array for an output. If its tasks have several results, adds further
    tasks, under `name`, that take the chunks from these."""
    if source.layout.is_iota:
        (size,) = map(sum, source.chunks)
        tasks[(name, 0)] = (functools.partial(np.arange, size, dtype=source.dtype),)
        return name
    own = {key[0] for key, item in source.keys.values() if item is None and isinstance(key, tuple)}
    if len(own) == 1 and all(key[1:] == at for at, (key, _) in source.keys.items()):
        return str(own.pop())
    for at, (key, item) in source.keys.items():
        tasks[(name, *at)] = key if item is None else (operator.getitem, key, item)
    return name
