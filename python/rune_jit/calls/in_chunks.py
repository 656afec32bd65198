"""Calls with dask's arrays among the arguments. The function is traced for whole arrays, and its
program is cut into programs of blocks. These are the tasks of the arrays that the call returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import trees
from rune_jit.arrays.array import Array
from rune_jit.calls.arguments import Call
from rune_jit.calls.call_trace import trace_call
from rune_jit.calls.traced import Raised, Traced
from rune_jit.chunked.arrays import ChunkedProgram, stand_in
from rune_jit.chunked.iota import Iota
from rune_jit.chunked.recognition import is_dask_array
from rune_jit.errors import ConcretizationError, DataDependentShapeError, UnsupportedOpError
from rune_jit.tracing.context import ValuesNeeded


class CallInChunks:
    """A call of the function `name`, traced and cut for a device. `take_apart` takes its arguments
    apart."""

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str,
        take_apart: Callable[[tuple[Any, ...], dict[str, Any]], Call],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        device: str,
    ) -> None:
        leaves, structure = trees.flatten([args, kwargs])
        dask_arrays = {}
        for i, leaf in enumerate(leaves):
            if is_dask_array(leaf):
                leaves[i] = stand_in(name, leaf)
                dask_arrays[id(leaves[i])] = leaf
        self._name = name
        self._stood_in = list(leaves)  # keeps the ids
        args, kwargs = trees.unflatten(structure, leaves)
        call = take_apart(args, kwargs)
        numbers = [
            i for i, x in enumerate(call.leaves) if isinstance(x, (bool, int, float, complex))
        ]
        call = call.with_constants(frozenset(numbers) - set(call.static_leaves))
        call = call._replace(in_chunks=True)
        self._traced = _trace(fn, name, call)
        _refuse_effects(name, self._traced)
        self._leaves = [dask_arrays.get(id(leaf), leaf) for leaf in call.leaves]
        self.program: ChunkedProgram | None = None
        if self._traced.graph is not None:
            traced = self._traced
            self.program = ChunkedProgram(
                name, traced.graph, traced.functions, self._inputs(), device
            )

    def _inputs(self) -> list[Any]:
        inputs = []
        for i, leaf in enumerate(self._traced.input_leaves):
            array = _whole(self._leaves[leaf])
            axes = dict(self._traced.transposed_inputs).get(i)
            inputs.append(array if axes is None else array.transpose(axes))
        return inputs + [_whole(array) for array in self._traced.captured]

    def lowered(self) -> ChunkedProgram:
        """The program, to be read."""
        if self.program is None:
            raise UnsupportedOpError(f"{self._name}: cannot lower a function that computes nothing")
        return self.program

    def result(self) -> Any:
        """The function's result, with dask's arrays in place of computed arrays."""
        computed = self.program.outputs() if self.program is not None else []
        results = []
        for kind, what, *_ in self._traced.outputs:
            if kind == "computed":
                results.append(computed[what])
            elif kind == "leaf":
                results.append(self._leaves[what])
            else:
                results.append(np.array(what) if kind == "copy" else what)
        unflatten = self._traced.unflatten
        return results[0] if unflatten is None else unflatten(results)


def _whole(x: Any) -> Any:
    """An argument that is not dask's, as an array that nobody else can change."""
    if is_dask_array(x) or isinstance(x, Iota):
        return x
    return np.array(np.asarray(x) if isinstance(x, Array) else x)


def _trace(fn: Callable[..., Any], name: str, call: Call) -> Traced:
    def no_values(traced: Traced) -> Any:
        raise DataDependentShapeError(
            f"{name}: cannot find a number that depends on arrays in chunks\n"
            "hint: compute it before, and pass it as an argument"
        )

    raised: BaseException
    while True:
        try:
            return trace_call(fn, name, call, no_values, guesses=False)
        except ValuesNeeded as needed:
            call = call.with_constants(needed.leaves)
        except Raised as wrapped:
            raised = wrapped.error
            break
        except ConcretizationError as error:
            if isinstance(error, DataDependentShapeError):
                raise
            raise type(error)(
                f"{error}\nhint: of arrays in chunks no value is known before they are computed:"
                " x.compute() before, or np.where"
            ) from None
    raise raised


def _refuse_effects(name: str, traced: Traced) -> None:
    """Raises UnsupportedOpError if the function does more than return arrays."""
    if traced.writes:
        raise UnsupportedOpError(
            f"{name}: cannot write to an argument or to an array outside of the function when"
            " arguments are in chunks\nhint: work on a copy (x = x.copy()), and return it"
        )
    if traced.assigned is not None:
        raise UnsupportedOpError(
            f"{name}: cannot assign to places outside of the function when arguments are in"
            " chunks\nhint: return the new values"
        )
    if traced.numbers is not None:
        raise UnsupportedOpError(
            f"{name}: cannot draw random numbers of NumPy's or Python's generators when arguments"
            " are in chunks\nhint: use rune_jit.random, or pass the numbers as an argument"
        )
    if traced.checks:
        raise UnsupportedOpError(
            f"{name}: cannot take elements by positions that arrays in chunks decide (a position"
            " may be out of range)\nhint: use np.where, or x.map_blocks"
        )
