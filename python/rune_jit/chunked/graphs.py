"""The tasks of a program that is cut into blocks, as dask's graphs have them."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rune_jit.chunked.blocks import Block, Combine, HostCall, Operand, Piece, Program
from rune_jit.chunked.iota import Iota
from rune_jit.chunked.plan import Axis, Box, Chunks, Pass, Plan, Result

Key = tuple[Any, ...]

# How many partial results one task combines.
_FAN_IN = 16


class Source:
    """An array that blocks read: its chunks, and the key of each with the item that it is of what
    the key stands for (None: all of it)."""

    def __init__(self, dtype: np.dtype[Any], chunks: Chunks) -> None:
        self.dtype, self.chunks = dtype, chunks
        self.axes = [Axis(sizes) for sizes in chunks]
        self.iota = False
        self.stored: str | None = None  # the key of the array in files whose chunks these are
        self.keys: dict[tuple[int, ...], tuple[Any, int | None]] = {}


# Takes a level, the tasks of the levels before and what these have reduced, and returns the names
# under which the level's blocks read the arguments.
Between = Callable[[int, dict[Any, Any], list[Source]], Sequence[Any]]


def tasks_of(
    plan: Plan,
    functions: Sequence[Any],
    arguments: Sequence[Any],
    names: Sequence[Any],
    token: str,
    device: str,
    between: Between,
) -> tuple[dict[Any, Any], list[Source]]:
    """The tasks, and by output its chunks: one task a block and pass, and those that combine parts.

    `functions` are those of the host, by the number of the call; `arguments` are arrays, or Iotas;
    `names` the names of those that are dask's, else None.
    `between` is called before each level but the first.
    """
    return _Tasks(plan, functions, arguments, names, token, device).run(between)


class _Tasks:
    def __init__(
        self,
        plan: Plan,
        functions: Sequence[Any],
        arguments: Sequence[Any],
        names: Sequence[Any],
        token: str,
        device: str,
    ) -> None:
        self._plan, self._token, self._functions = plan, token, functions
        self._tasks: dict[Any, Any] = {}
        self._programs = [Program(text, device) for text in plan.programs]
        self._sources: list[Source] = []
        for info in plan.arrays:
            if info.argument is None:
                self._sources.append(Source(info.dtype, info.chunks))
            else:
                argument, name = arguments[info.argument], names[info.argument]
                self._sources.append(self._argument(info.dtype, argument, name))

    def run(self, between: Between) -> tuple[dict[Any, Any], list[Source]]:
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

    def _argument(self, dtype: np.dtype[Any], array: Any, name: str | None) -> Source:
        if name is not None:
            source = Source(dtype, array.chunks)
            source.stored = _array_in_files(array)
            for at in itertools.product(*(range(len(axis)) for axis in array.chunks)):
                source.keys[at] = (name, *at), None
            return source
        source = Source(dtype, tuple((size,) for size in array.shape))
        if isinstance(array, Iota):
            source.iota = True
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
        for place, block in zip(one.places(), one.blocks, strict=True):
            # The chunks of an array that a pass computes alone are its tasks.
            is_chunk = single is not None and single.combine is None
            key = (name, *(single.chunk(place) if single is not None and is_chunk else place))
            at_key[place] = key
            operands, keys = self._operands(block.operands)
            task: Any
            if one.call is not None:
                task = HostCall(self._functions[one.call.number], one.call.results, operands)
            else:
                assert block.program is not None
                task = Block(self._programs[block.program], operands)
            self._tasks[key] = (task, *keys)
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

    def _operands(self, boxes: list[tuple[int, Box]]) -> tuple[list[Operand], list[Any]]:
        operands: list[Operand] = []
        arguments: dict[Any, int] = {}
        for array, box in boxes:
            source = self._sources[array]
            shape = tuple(high - low for low, high in box)
            if source.iota:
                operands.append(Operand(shape, source.dtype, (), box[0]))
                continue
            axes = [axis.parts(*r) for axis, r in zip(source.axes, box, strict=True)]
            if source.stored is not None and _takes_most_of_chunks(source, axes, shape):
                number = arguments.setdefault(source.stored, len(arguments))
                piece = Piece(number, None, tuple(slice(*r) for r in box), ())
                operands.append(Operand(shape, source.dtype, (piece,), is_stored=True))
                continue
            pieces = []
            for parts in itertools.product(*axes):
                key, item = source.keys[tuple(part[0] for part in parts)]
                argument = arguments.setdefault(key, len(arguments))
                taken, placed = tuple(p[1] for p in parts), tuple(p[2] for p in parts)
                pieces.append(Piece(argument, item, taken, placed))
            operands.append(Operand(shape, source.dtype, tuple(pieces)))
        return operands, list(arguments)

    def _combine(
        self,
        name: str,
        one: Pass,
        reduced: tuple[int, ...],
        items: list[int],
        at_key: dict[tuple[int, ...], Key],
        several: bool,
    ) -> None:
        """Adds the tasks that combine the parts of these results, in the order of the blocks."""
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


def _array_in_files(x: Any) -> str | None:
    """The key of the zarr array whose chunks a dask array is, as dask.array.from_zarr makes it:
    tasks then read it themselves."""
    key = f"original-{x.name}"
    layer = x.dask.layers.get(key)
    node: Any = None if layer is None else layer.get(key)
    found = getattr(node, "value", node)
    is_zarr = type(found).__module__.partition(".")[0] == "zarr"
    return key if is_zarr and found.shape == x.shape and found.dtype == x.dtype else None


def _takes_most_of_chunks(
    source: Source, axes: Sequence[Sequence[Any]], shape: tuple[int, ...]
) -> bool:
    """Whether a box has most elements of the chunks that it touches: files are read by chunks, and
    blocks that need parts of the same chunk share the task that reads it."""
    touched = math.prod(
        sum(sizes[number] for number, *_ in parts)
        for parts, sizes in zip(axes, source.chunks, strict=True)
    )
    return bool(touched <= 1.25 * math.prod(shape))


def add_output(tasks: dict[Any, Any], source: Source, name: str) -> str:
    """The name of the array whose chunks an output is: its tasks' own, or `name` and further tasks
    that take them from tasks of several results."""
    if source.iota:
        (size,) = map(sum, source.chunks)
        tasks[(name, 0)] = (functools.partial(np.arange, size, dtype=source.dtype),)
        return name
    own = {key[0] for key, item in source.keys.values() if item is None and isinstance(key, tuple)}
    if len(own) == 1 and all(key[1:] == at for at, (key, _) in source.keys.items()):
        return str(own.pop())
    for at, (key, item) in source.keys.items():
        tasks[(name, *at)] = key if item is None else (operator.getitem, key, item)
    return name
