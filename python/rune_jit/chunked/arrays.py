"""dask's arrays: makes stand-ins for a trace, and makes the arrays that a plan computes. This
package does not import dask, because a caller who passes such an array has imported it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rune_jit.chunked import memory, report
from rune_jit.chunked.graphs import Source, Tasks, add_output
from rune_jit.chunked.parts import in_numbers, in_parts
from rune_jit.chunked.plan import Plan
from rune_jit.chunked.reading import Reader
from rune_jit.chunked.recognition import is_dask_array
from rune_jit.errors import UnsupportedOpError


def stand_in(name: str, array: Any) -> np.ndarray:
    """An array for a trace, with the dtype and shape of a dask array, that takes no memory. Raises
    UnsupportedOpError for arrays that no program can take."""
    if any(isinstance(size, float) for size in array.shape):  # NaN
        raise UnsupportedOpError(
            f"{name}: cannot cut an array of unknown chunks {array.chunks} into blocks\n"
            "hint: x.compute_chunk_sizes() finds them, np.where keeps the shape"
        )
    if not hasattr(array.dask, "layers"):
        raise UnsupportedOpError(
            f"{name}: cannot cut an array of dask's query planner into blocks\n"
            'hint: dask.config.set({"array.query-planning": False}) before dask.array is imported'
        )
    if type(array._meta) is not np.ndarray:
        raise UnsupportedOpError(
            f"{name}: cannot compute with chunks of {type(array._meta).__name__}"
            " (chunks are NumPy's arrays)\nhint: x.map_blocks(numpy.asarray) converts them"
        )
    element = np.zeros((), array.dtype)
    return np.lib.stride_tricks.as_strided(element, array.shape, (0,) * array.ndim)


class ChunkedProgram:
    """A graph that is cut into blocks for arguments in chunks. It has not run. `jit(f).lower(...)`
    returns it for dask's arrays. `plan.text` lists all blocks with the boxes that they read, and
    the graphs of their programs.

    Raises UnsupportedOpError if the graph cannot be cut, or if a task does not fit in the workers'
    memory."""

    def __init__(
        self,
        name: str,
        graph: Any,
        functions: Sequence[tuple[str, Any]],
        arguments: Sequence[Any],
        device: str,
    ) -> None:
        self.name, self.device = name, device
        self.arguments = list(map(in_parts, arguments))  # dask's arrays, NumPy's, and Iotas
        self._dtypes = [np.dtype(dtype) for dtype in graph.output_dtypes]
        self._functions = [function for _, function in functions]
        self._are_dask = [is_dask_array(x) for x in self.arguments]
        chunks = [
            x.chunks if is_dask else tuple((size,) for size in x.shape)
            for x, is_dask in zip(self.arguments, self._are_dask, strict=True)
        ]
        self.plan = Plan(graph, device, chunks)
        self._text = str(graph)
        self._reader = Reader(self.plan, self.arguments)
        memory.refuse_what_does_not_fit(name, self.plan, self._reader)

    def summary(self) -> str:
        """One line with the numbers of blocks and passes."""
        passes = self.plan.passes
        blocks = sum(len(one.blocks) for one in passes)
        return (
            f"in blocks: {len(passes)} passes over {blocks} blocks,"
            f" {len(self.plan.programs)} programs"
        )

    def explain(self) -> str:
        """A text that lists the passes in order, with the arrays that they read and the memory that
        they need."""
        return report.explain(self.name, self.plan, self._reader, self.device)

    def __repr__(self) -> str:
        return f"<ChunkedProgram {self.name}: {self.summary()}>"

    def outputs(self) -> list[Any]:
        """The results, as dask's arrays."""
        from dask.array import Array
        from dask.base import tokenize
        from dask.graph_manipulation import bind
        from dask.highlevelgraph import HighLevelGraph

        marked = list(zip(self.arguments, self._are_dask, strict=True))
        dask_arrays = [x for x, is_dask in marked if is_dask]
        names = [x.name if is_dask else None for x, is_dask in marked]
        identity = [(x.name, x.chunks) if is_dask else x for x, is_dask in marked]
        digest = tokenize(self._text, self._functions, self.device, identity)
        token = f"rune-{self.name.strip('<>')}-{digest}"
        dependencies = list(dask_arrays)

        def array(name: str, source: Source, tasks: dict[Any, Any]) -> Any:
            # dask finds the layer of an array by the array's name.
            graph = HighLevelGraph.from_collections(name, dict(tasks), dependencies=dependencies)
            make: Any = Array  # it has no type annotations
            return make(graph, name, source.chunks, dtype=source.dtype)

        def read_again(level: int, tasks: dict[Any, Any], reduced: list[Source]) -> list[Any]:
            # Under the same names, dask would keep the arguments in memory from one pass to the
            # next.
            waited_for = [
                array(add_output(tasks, source, f"{token}-level{level}-{i}"), source, tasks)
                for i, source in enumerate(reduced)
                if all(item in (None, 0) for _, item in source.keys.values())
            ]
            again = [
                bind(x, waited_for or None, seed=f"{token}-{level}") if is_dask else None
                for x, is_dask in marked
            ]
            dependencies.extend(x for x in again if x is not None)
            return [x.name if x is not None else None for x in again]

        tasks, sources = Tasks(
            self.plan,
            self._functions,
            self._reader,
            self.arguments,
            names,
            token,
            self.device,
        ).run(read_again)
        given = [self.plan.arrays[number].argument for number in self.plan.outputs]
        named = [add_output(tasks, s, f"{token}-out{i}") for i, s in enumerate(sources)]
        found = [
            self.arguments[argument]
            if argument is not None and self._are_dask[argument]
            else array(name, source, tasks)
            for name, source, argument in zip(named, sources, given, strict=True)
        ]
        return list(map(in_numbers, found, self._dtypes))
