"""The text of explain() for a program that is cut into blocks."""

from __future__ import annotations

import math

from rune_jit.chunked import memory
from rune_jit.chunked.plan import Box, Pass, Plan
from rune_jit.chunked.reading import Reader


def explain(name: str, plan: Plan, reader: Reader, device: str) -> str:
    """Describes the passes, what their blocks compute and read, and the memory that they need."""
    lines = [f"{name}: {len(plan.passes)} passes, {len(plan.programs)} programs of blocks"]
    who = memory.worker()
    most = 0
    sizes = memory.of_passes(plan, reader, who, device)
    for number, (one, size) in enumerate(zip(plan.passes, sizes, strict=True)):
        grid = " x ".join(str(len(axis)) for axis in one.grid) or "1"
        lines.append(f"pass {number}: {len(one.blocks)} blocks ({grid})")
        if one.call is not None:
            lines.append(f"  calls {one.call.name} on the host")
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
        lines += _reads(plan, one)
        text = f"  memory of a task: at most {memory.text_of(size.task)}"
        if size.shared:
            text += f"; chunks and edges for several tasks: {memory.text_of(size.shared)}"
        if size.kept:
            text += f"; arrays for later passes: {memory.text_of(size.kept)}"
        lines.append(text)
        most = max(most, size.of(who))
    lines.append(
        f"predicted peak memory: {memory.text_of(most)} in each of {who.processes} processes of"
        f" {who.threads} threads, beside Python itself and results that are not stored"
        f" (limit {memory.text_of(who.limit)}: {who.source})"
    )
    return "\n".join(lines)


def _reads(plan: Plan, one: Pass) -> list[str]:
    """For each array that blocks read: the largest box, and how far it exceeds the block."""
    largest: dict[int, Box] = {}
    for block in one.blocks:
        for array, box in block.operands:
            if array not in largest or memory.elements(box) > memory.elements(largest[array]):
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
