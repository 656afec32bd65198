"""How much memory a program in blocks takes, and whether that fits.

A task holds the chunks that it reads, the boxes that it puts together of several chunks, what its
program computes in between, and its results. Beside the tasks that run, a worker holds chunks that
neighbouring blocks read, too, until the last one has, and arrays that later passes read."""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from rune_jit.chunked.blocks import Program
from rune_jit.chunked.iota import Iota
from rune_jit.chunked.plan import Axis, BlockInfo, Box, Pass, Plan
from rune_jit.errors import UnsupportedOpError


class Worker(NamedTuple):
    """A process that runs tasks."""

    limit: int  # bytes
    threads: int
    processes: int
    source: str  # of the limit


def worker() -> Worker:
    """Who would compute: the smallest worker of distributed's client, if there is one, else this
    process. dask's configuration `rune_jit.memory-limit` (bytes, or a text such as "2 GB") goes
    before what they have."""
    import dask
    from dask.utils import parse_bytes

    found = _of_distributed() or _this_process()
    limit = dask.config.get("rune_jit.memory-limit", None)
    if limit is not None:
        found = found._replace(limit=int(parse_bytes(limit)), source="rune_jit.memory-limit")
    return found


def _of_distributed() -> Worker | None:
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        workers = list(distributed.default_client().scheduler_info(-1)["workers"].values())
    except (ValueError, TypeError, KeyError):  # no client, or an older one
        return None
    limits = [(int(w["memory_limit"] or 0), int(w["nthreads"])) for w in workers]
    limits = [pair for pair in limits if pair[0] > 0]
    if not limits:
        return None
    limit, threads = min(limits)
    return Worker(limit, threads, len(workers), "a worker's memory limit")


def _this_process() -> Worker:
    import dask
    from dask.system import CPU_COUNT

    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    scheduler = dask.config.get("scheduler", None)
    threads = 1 if scheduler in ("sync", "single-threaded", "synchronous") else 0
    threads = threads or int(dask.config.get("num_workers", None) or CPU_COUNT)
    return Worker(size, threads, 1, "this machine's memory")


def elements(box: Box) -> int:
    return math.prod(high - low for low, high in box)


class Reads:
    """What blocks read, and how many bytes that is."""

    def __init__(self, plan: Plan, arguments: Sequence[Any]) -> None:
        self._plan, self._arguments = plan, arguments
        self._axes: dict[int, list[tuple[Axis, Sequence[int]]]] = {}

    def chunks(self, array: int, box: Box) -> tuple[list[tuple[int, ...]], int]:
        """The numbers of the chunks of which a box of an array has elements, by axis, and their
        bytes together."""
        info = self._plan.arrays[array]
        if array not in self._axes:
            chunks = info.chunks
            if info.argument is not None:
                chunks = getattr(self._arguments[info.argument], "chunks", chunks)
            self._axes[array] = [(Axis(sizes), sizes) for sizes in chunks]
        touched, size = [], info.dtype.itemsize
        for (axis, sizes), (low, high) in zip(self._axes[array], box, strict=True):
            numbers = tuple(number for number, *_ in axis.parts(low, high))
            touched.append(numbers)
            size *= sum(sizes[number] for number in numbers)
        return touched, size

    def is_iota(self, array: int) -> bool:
        argument = self._plan.arrays[array].argument
        return argument is not None and isinstance(self._arguments[argument], Iota)

    def bytes_of(self, one: Pass, block: BlockInfo) -> int:
        """Of the chunks that a task reads, the boxes that it puts together, and its results."""
        total = 0
        known: set[Any] = set()
        for array, box in block.operands:
            info = self._plan.arrays[array]
            own = elements(box) * info.dtype.itemsize
            if self.is_iota(array):
                total += own
                continue
            touched, size = self.chunks(array, box)
            if (array, *touched) not in known:
                known.add((array, *touched))
                total += size
                if info.argument is not None:  # what a file holds lies beside what is made of it
                    total += size // math.prod(map(len, touched))
            if math.prod(map(len, touched)) > 1:
                total += own
        for result in one.results:
            info = self._plan.arrays[result.array]
            total += math.prod(max(axis) for axis in info.chunks) * info.dtype.itemsize
        return total


class PassMemory(NamedTuple):
    """Bytes that a pass takes."""

    task: int  # at most
    tasks: int  # how many there are
    shared: int  # chunks that wait for further blocks
    kept: int  # arrays that passes of later levels read

    def of(self, who: Worker) -> int:
        """In a worker."""
        running = self.task * min(who.threads, self.tasks)
        return running + self.shared + -(-self.kept // who.processes)


def of_passes(plan: Plan, arguments: Sequence[Any], device: str | None) -> list[PassMemory]:
    """What each pass takes. Programs' own temporaries count if a device is given, for which they
    are lowered; else the figures are lower bounds, found quickly."""
    reads = Reads(plan, arguments)
    scratch = [0] * len(plan.programs)
    if device is not None:
        scratch = [
            int(Program(text, device).lower().cost_analysis()["peak_bytes"])
            for text in plan.programs
        ]
    result = []
    for number, one in enumerate(plan.passes):
        first = {block.program: block for block in one.blocks}  # whose boxes have the same sizes
        most = max(
            reads.bytes_of(one, block) + (0 if program is None else scratch[program])
            for program, block in first.items()
        )
        shared = _shared(reads, one) if device is not None else 0
        result.append(PassMemory(most, len(one.blocks), shared, _kept(plan, number)))
    return result


def _shared(reads: Reads, one: Pass) -> int:
    """The most bytes of chunks that wait for further blocks, if blocks run in order."""
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    size: dict[Any, int] = {}
    for number, block in enumerate(one.blocks):
        for array, box in block.operands:
            if reads.is_iota(array):
                continue
            touched, total = reads.chunks(array, box)
            each = total // max(1, math.prod(map(len, touched)))
            for chunk in itertools.product(*touched):
                key = array, chunk
                first.setdefault(key, number)
                last[key] = number
                size[key] = max(size.get(key, 0), each)
    change = [0] * (len(one.blocks) + 2)
    for key, begin in first.items():
        change[begin + 1] += size[key]
        change[last[key] + 1] -= size[key]
    alive = most = 0
    for delta in change:
        alive += delta
        most = max(most, alive)
    return most


def _kept(plan: Plan, number: int) -> int:
    """Bytes of the arrays computed by a pass or before it that lie there as a whole: results of
    reductions, and what a later pass reads that needs such results of the same time or later. What
    only feeds the next pass is computed when that needs it."""
    combined = {r.array for one in plan.passes for r in one.results if r.combine is not None}
    total = 0
    for i, one in enumerate(plan.passes[: number + 1]):
        for result in one.results:
            readers = [p for p in plan.passes[max(i + 1, number) :] if result.array in p.reads]
            waits = result.array in combined or any(
                p.level > one.level + 1 or _made_since(plan, one.level, p.reads & combined)
                for p in readers
            )
            if readers and waits:
                total += plan.arrays[result.array].nbytes
    return total


def _made_since(plan: Plan, level: int, arrays: set[int]) -> bool:
    return any(
        result.array in arrays
        for one in plan.passes
        if one.level >= level
        for result in one.results
    )


def refuse_what_does_not_fit(name: str, plan: Plan, arguments: Sequence[Any]) -> None:
    """Raises UnsupportedOpError if a task alone, or an array that passes keep, is larger than the
    memory of those who would compute it."""
    who = worker()
    for number, pass_memory in enumerate(of_passes(plan, arguments, None)):
        least = pass_memory.task + -(-pass_memory.kept // who.processes)
        if least <= who.limit:
            continue
        raise UnsupportedOpError(
            f"{name}: cannot compute pass {number} in {text_of(who.limit)}, {who.source} (a task"
            f" takes {text_of(pass_memory.task)}, arrays for later passes"
            f" {text_of(pass_memory.kept)})\nhint: make chunks smaller (x.rechunk) along axes that"
            " are not read as a whole, or say what there is:"
            ' dask.config.set({"rune_jit.memory-limit": "64 GB"})'
        )


def text_of(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
