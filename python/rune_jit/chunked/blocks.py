"""The code that tasks run: the program of a block, and the combination of partial results. Tasks
can be pickled and sent to other processes. Each process compiles a program once."""

from __future__ import annotations

import functools
import multiprocessing
import threading
import zlib
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from rune_jit import _core
from rune_jit.backends import calibration
from rune_jit.chunked import files
from rune_jit.chunked.parts import parts_of

Range = tuple[int, int]
Box = tuple[Range, ...]


class Program:
    """A program, identified by its text. Each task of a block holds one, so that dask can fuse the
    task with those that read its chunks."""

    def __init__(self, text: str, device: str) -> None:
        self.text, self.device = text, device

    def __reduce__(self) -> Any:
        return _unpack, (zlib.compress(self.text.encode()), self.device)

    def __repr__(self) -> str:
        return f"<program of a block for {self.device}>"

    def lower(self) -> Any:
        calibration.ensure()
        return _core.lower(_core.parse_graph(self.text), self.device, name="block")

    def run(self, operands: list[Any]) -> list[np.ndarray]:
        executable = _executables.get(self)
        if _has_neighbours():
            return executable.run_alone(operands)  # type: ignore[no-any-return]
        return [np.asarray(x) for x in executable.run(operands)]


def _has_neighbours() -> bool:
    """Whether this thread or process belongs to a scheduler, which runs several programs at the
    same time. Each should then use one core."""
    is_main = threading.current_thread() is threading.main_thread()
    return not is_main or multiprocessing.parent_process() is not None


def _unpack(text: bytes, device: str) -> Program:
    return Program(zlib.decompress(text).decode(), device)


class _Executables:
    """The most recently used compiled programs of this process, by text and device."""

    _MOST = 512

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._locks: dict[tuple[str, str], threading.Lock] = {}

    def get(self, program: Program) -> Any:
        key = program.text, program.device
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:  # one thread compiles, the others wait
            with self._lock:
                if key in self._known:
                    return self._known[key]
            made = program.lower().compile()
            with self._lock:
                self._known[key] = made
                self._locks.pop(key, None)
                if len(self._known) > self._MOST:
                    self._known.popitem(last=False)
        return made


_executables = _Executables()


class Piece(NamedTuple):
    """A part of an operand that lies in one chunk."""

    argument: int  # the task's argument that holds the chunk
    item: int | None  # which item of this argument is the chunk; None: all of it
    source: tuple[slice, ...]  # the piece in the chunk
    target: tuple[slice, ...]  # the piece in the operand
    is_file: bool = False  # read from an array in files; `source` is in that array


class Operand(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    pieces: tuple[Piece, ...]
    iota: Range | None = None  # if the operand is consecutive integers

    def of(self, arguments: tuple[Any, ...]) -> np.ndarray:
        if self.iota is not None:
            return np.arange(*self.iota, dtype=self.dtype)
        whole = None
        for piece in self.pieces:
            chunk = arguments[piece.argument]
            if piece.item is not None:
                chunk = chunk[piece.item]
            if piece.is_file:
                part = self._checked(files.elements(chunk, piece.source))
            else:
                part = self._checked(chunk)[piece.source]
            if len(self.pieces) == 1:
                return part
            if whole is None:
                whole = np.empty(self.shape, self.dtype)
            whole[piece.target] = part
        assert whole is not None
        return whole

    def _checked(self, chunk: Any) -> np.ndarray:
        array = np.asarray(chunk)
        if array.dtype != self.dtype:
            raise TypeError(
                f"jit: cannot compute with a chunk of {array.dtype} (its array says {self.dtype})"
            )
        return array.view(self.dtype)  # in the machine's byte order


class Block:
    """A task that runs a program on boxes of its arguments, which are chunks."""

    def __init__(self, program: Program, operands: list[Operand]) -> None:
        self.program, self.operands = program, operands

    def __call__(self, *arguments: Any) -> Any:
        results = self.program.run([operand.of(arguments) for operand in self.operands])
        return results[0] if len(results) == 1 else tuple(results)


class Edges:
    """A task that returns parts of a chunk, which need less memory than the chunk. `item`: which
    item of its argument is the chunk. `region`: the chunk's place in an array in files, if it is
    read from there."""

    def __init__(
        self, parts: list[Box], item: int | None, region: tuple[slice, ...] | None
    ) -> None:
        self.parts, self.item, self.region = parts, item, region

    def __call__(self, source: Any) -> list[np.ndarray]:
        chunk = source if self.item is None else source[self.item]
        if self.region is not None:
            chunk = files.elements(chunk, self.region)
        array = np.asarray(chunk)
        return [array[tuple(slice(*r) for r in part)].copy() for part in self.parts]


class HostCall:
    """A task that calls a host function on boxes of its arguments, which are chunks. It returns the
    function's results with these numbers."""

    def __init__(self, function: Any, results: list[int], operands: list[Operand]) -> None:
        self.function, self.results, self.operands = function, results, operands

    def __call__(self, *arguments: Any) -> Any:
        arrays = [operand.of(arguments).view() for operand in self.operands]
        for array in arrays:
            array.flags.writeable = False
        found = self.function(*arrays)
        # Results that are views of arguments are read-only. They are copied, so that they do not
        # keep chunks and files alive.
        picked = [x if x.flags.writeable else x.copy() for x in map(np.asarray, found)]
        picked = [parts_of(picked[i]) for i in self.results]
        return picked[0] if len(picked) == 1 else tuple(picked)


_UFUNCS = {"add": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


class Combine:
    """A task that combines partial results in the order of its arguments. `items`: which items of
    the arguments are the partial results, if blocks have several results."""

    def __init__(self, operations: list[str], items: list[int] | None) -> None:
        self.operations, self.items = operations, items

    def __call__(self, *parts: Any) -> Any:
        several = len(self.operations) > 1
        results = []
        for i, operation in enumerate(self.operations):
            item = i if several else None
            if self.items is not None:
                item = self.items[i]
            arrays = [part if item is None else part[item] for part in parts]
            results.append(functools.reduce(_UFUNCS[operation], arrays))
        return tuple(results) if several else results[0]
