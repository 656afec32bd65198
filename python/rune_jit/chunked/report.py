"""What people are told of a program that is cut into blocks."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from rune_jit.chunked.blocks import Program
from rune_jit.chunked.iota import Iota
from rune_jit.chunked.plan import Axis, Box, Pass, Plan


def explain(name: str, plan: Plan, arguments: Sequence[Any], device: str) -> str:
    """The passes, what their blocks compute and read, and the memory of a task."""
    lines = [f"{name}: {len(plan.passes)} passes, {len(plan.programs)} programs of blocks"]
    scratch = [_scratch(text, device) for text in plan.programs]
    worst = 0
    for number, one in enumerate(plan.passes):
        grid = " x ".join(str(len(axis)) for axis in one.grid) or "1"
        lines.append(f"pass {number}: {len(one.blocks)} blocks ({grid})")
        for result in one.results:
            info = plan.arrays[result.array]
            shape = tuple(map(sum, info.chunks))
            block = tuple(max(axis) for axis in info.chunks)
            if result.combine is None:
                lines.append(f"  computes {info.dtype}{list(shape)} in blocks of {list(block)}")
            else:
                along = math.prod(len(one.grid[axis]) for axis in result.reduced)
                lines.append(
                    f"  reduces to {info.dtype}{list(shape)}: {result.combine} of {along} parts,"
                    " in the order of the blocks"
                )
        lines += _reads(plan, one, arguments)
        bytes_of = [_bytes_of_block(plan, one, i, arguments) for i in range(len(one.blocks))]
        most = max(
            size + scratch[block.program] for size, block in zip(bytes_of, one.blocks, strict=True)
        )
        worst = max(worst, most)
        lines.append(f"  memory of a task: at most {_mib(most)}")
    threads = os.cpu_count() or 1
    lines.append(
        f"predicted peak memory: {_mib(worst)} a task that runs, {_mib(worst * threads)} for"
        f" {threads} threads, beside what dask holds for later tasks"
    )
    return "\n".join(lines)


def _scratch(text: str, device: str) -> int:
    """Bytes of the temporaries of a program."""
    return int(Program(text, device).lower().cost_analysis()["peak_bytes"])


def _reads(plan: Plan, one: Pass, arguments: Sequence[Any]) -> list[str]:
    """Of each array that blocks read: the largest box, and how far it exceeds the block."""
    largest: dict[int, Box] = {}
    for block in one.blocks:
        for array, box in block.operands:
            if array not in largest or _elements(box) > _elements(largest[array]):
                largest[array] = box
    lines = []
    for array, box in largest.items():
        info = plan.arrays[array]
        sizes = [high - low for low, high in box]
        text = f"  reads boxes of up to {sizes} of "
        text += "what was reduced" if info.argument is None else f"input {info.argument}"
        halo = [size - max(axis) for size, axis in zip(sizes, info.chunks, strict=True)]
        if any(more > 0 for more in halo):
            text += f" (halo {[max(0, more) for more in halo]})"
        lines.append(text)
    return lines


def _elements(box: Box) -> int:
    return math.prod(high - low for low, high in box)


def _bytes_of_block(plan: Plan, one: Pass, number: int, arguments: Sequence[Any]) -> int:
    """Bytes of the chunks that a task reads, of the boxes that it puts together, and of results."""
    total = 0
    chunks: set[tuple[int, tuple[int, ...]]] = set()
    for array, box in one.blocks[number].operands:
        info = plan.arrays[array]
        axes = info.chunks
        argument: Any = arguments[info.argument] if info.argument is not None else None
        if isinstance(argument, Iota):
            total += _elements(box) * info.dtype.itemsize
            continue
        if hasattr(argument, "chunks"):
            axes = argument.chunks
        touched = [[i for i, *_ in Axis(a).parts(*r)] for a, r in zip(axes, box, strict=True)]
        sizes = [sum(axis[i] for i in t) for axis, t in zip(axes, touched, strict=True)]
        key = array, tuple(i for t in touched for i in t)
        if key not in chunks:
            chunks.add(key)
            total += math.prod(sizes) * info.dtype.itemsize
        if _elements(box) != math.prod(sizes):
            total += _elements(box) * info.dtype.itemsize
    for result in one.results:
        info = plan.arrays[result.array]
        total += math.prod(max(axis) for axis in info.chunks) * info.dtype.itemsize
    return total


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
