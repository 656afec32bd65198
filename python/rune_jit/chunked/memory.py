"""How much memory a program in blocks needs, and whether it fits.

A task holds its arguments, the boxes that it copies from several chunks, its program's temporaries,
and its results. Beside the running tasks, a process holds chunks and edges of chunks until the last
block that reads them is done, and arrays for later passes."""

from __future__ import annotations

import itertools
import math
import os
import sys
from typing import Any, NamedTuple

from rune_jit.chunked.blocks import Program
from rune_jit.chunked.plan import Box, Plan
from rune_jit.chunked.reading import Reader, Reading, Way
from rune_jit.errors import UnsupportedOpError


class Worker(NamedTuple):
    """A process that runs tasks."""

    limit: int  # of memory, in bytes
    threads: int
    processes: int
    source: str  # where the limit comes from


def worker() -> Worker:
    """The worker that would run tasks: the smallest worker of distributed's client, if there is
    one, otherwise this process. dask's configuration `rune_jit.memory-limit` (bytes, or a text such
    as "2 GB") overrides its limit."""
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
        client = distributed.default_client()
    except ValueError:  # there is no client
        return None
    if client.asynchronous:  # it answers later
        return None
    try:
        workers = list(client.scheduler_info(-1)["workers"].values())
    except TypeError:  # an older version, which always returns all workers
        workers = list(client.scheduler_info()["workers"].values())
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


class PassMemory(NamedTuple):
    """The memory of a pass, in bytes."""

    task: int  # the most of one task, with everything that it reads
    computed: int  # the same without chunks and edges that other tasks may read, too
    tasks: int  # how many there are
    shared: int  # chunks and edges in a process while tasks run
    kept: int  # arrays for passes of later levels

    def of(self, who: Worker) -> int:
        """The memory of the pass in one process of `who`."""
        running = self.computed * min(who.threads, self.tasks)
        return running + self.shared + -(-self.kept // who.processes)


def of_passes(
    plan: Plan, reader: Reader, who: Worker, device: str | None = None
) -> list[PassMemory]:
    """The memory of each pass. If a device is given, programs are lowered for it, and their
    temporaries and the shared chunks count. Otherwise the figures are lower bounds, which are found
    quickly."""
    scratch = [0] * len(plan.programs)
    if device is not None:
        scratch = [
            int(Program(text, device).lower().cost_analysis()["peak_bytes"])
            for text in plan.programs
        ]
    result = []
    for number, one in enumerate(plan.passes):
        results = sum(
            math.prod(map(max, plan.arrays[r.array].chunks)) * plan.arrays[r.array].dtype.itemsize
            for r in one.results
        )
        # Blocks with the same program have boxes of the same sizes.
        first = {block.program: i for i, block in enumerate(one.blocks)}
        task = computed = 0
        for program, block in first.items():
            size = results + (0 if program is None else scratch[program])
            size += sum(_own_bytes(reader, r) for r in reader.readings[number][block])
            computed = max(computed, size)
            shared = sum(_shared_by(reader, reader.readings[number][block]).values())
            task = max(task, size + shared)
        alive = _alive(reader, number, who) if device is not None else 0
        kept = _kept(plan, number)
        result.append(PassMemory(task, computed, len(one.blocks), alive, kept))
    return result


def _own_bytes(reader: Reader, reading: Reading) -> int:
    """The memory for a box that a task reads. A part of one chunk in memory needs none. Other boxes
    are copied, and chunks of files are held beside the copy."""
    layout = reader.layouts[reading.array]
    files = [layout.bytes_of(part.place) for part in reading.parts if part.way is Way.FILE]
    is_view = len(reading.parts) == 1 and not files
    own = 0 if is_view else elements(reading.box) * layout.dtype.itemsize
    if len(reading.parts) > 1:  # a part, and the chunk in its file
        return own + 2 * max(files, default=0)
    return own + max(files, default=0)


def _shared_by(reader: Reader, readings: list[Reading]) -> dict[Any, int]:
    """The bytes of each chunk and edge that a task reads."""
    found: dict[Any, int] = {}
    for array, _, parts in readings:
        layout = reader.layouts[array]
        for part in parts:
            if part.way is Way.CHUNK:
                found[array, part.place] = layout.bytes_of(part.place)
            elif part.way is Way.EDGE:
                found[array, part.place, part.box] = elements(part.box) * layout.dtype.itemsize
    return found


def _alive(reader: Reader, number: int, who: Worker) -> int:
    """The most bytes of chunks and edges that a process holds at a time, if each process runs
    consecutive blocks in order. A chunk is held from the first task that reads it, or an edge of
    it, to the end of the last one."""
    readings = reader.readings[number]
    count = -(-len(readings) // who.processes)
    start = (len(readings) - count) // 2
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    size: dict[Any, int] = {}
    for i, one in enumerate(readings[start : start + count]):
        for key, own in _shared_by(reader, one).items():
            keys = {key: own}
            array, place, *edge = key
            if edge and reader.layouts[array].stored is None:  # cut off a chunk in memory
                keys[array, place] = reader.layouts[array].bytes_of(place)
            for each, total in keys.items():
                first.setdefault(each, i)
                last[each], size[each] = i, total
    change = [0] * (count + who.threads + 1)
    for key, begin in first.items():
        change[begin] += size[key]
        change[last[key] + who.threads] -= size[key]
    return max(itertools.accumulate(change))


def elements(box: Box) -> int:
    """The number of elements in a box."""
    return math.prod(high - low for low, high in box)


def _kept(plan: Plan, number: int) -> int:
    """The bytes of whole arrays that are held after a pass: results of reductions, and arrays for a
    later pass that must also wait for such results. (An array that only the next pass reads is
    computed block by block when it is needed.)"""
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


def refuse_what_does_not_fit(name: str, plan: Plan, reader: Reader) -> None:
    """Raises UnsupportedOpError if a single task, together with the arrays that passes keep, does
    not fit in a worker's memory."""
    who = worker()
    for number, size in enumerate(of_passes(plan, reader, who)):
        if size.task + -(-size.kept // who.processes) <= who.limit:
            continue
        raise UnsupportedOpError(
            f"{name}: cannot compute pass {number} in {text_of(who.limit)}, {who.source} (a task"
            f" takes {text_of(size.task)}, arrays for later passes {text_of(size.kept)})\n"
            "hint: make chunks smaller (x.rechunk) along axes that are not read as a whole, or give"
            ' the limit: dask.config.set({"rune_jit.memory-limit": "64 GB"})'
        )


def text_of(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
