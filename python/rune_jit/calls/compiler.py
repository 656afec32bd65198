"""Makes the programs of a function: traces a call, lowers the graph for a device, and binds the
program to the call's inputs."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.arrays.array import Array
from rune_jit.arrays.memory import from_numpy
from rune_jit.backends import calibration
from rune_jit.calls.arguments import Call, input_names
from rune_jit.calls.call_trace import trace_call
from rune_jit.calls.numbers import WithNumbers
from rune_jit.calls.segmented import Segmented
from rune_jit.calls.traced import Traced
from rune_jit.capture.loops.streams import FIRST_WORDS, MOST_WORDS
from rune_jit.device import has_dtype, has_host_memory, is_dtype
from rune_jit.errors import DataDependentShapeError
from rune_jit.tracing.programs import Programs
from rune_jit.tracing.steps import Steps

# How often a signature may be traced again because a size that depends on data has changed.
_MOST_REFUTED = 8
# If the number of nodes times the elements of arguments is at most this, interpreting takes less
# time than compiling.
_LITTLE = 5_000_000


class Compiler:
    """Traces and compiles calls of the function `fn` for a device. None: the device of their
    Arrays."""

    def __init__(self, fn: Callable[..., Any], name: str, device: str | None) -> None:
        self.name = name
        self._fn, self._device = fn, device
        self._room = 0
        self.steps = Steps()  # in the traces of a call
        # Programs of segments, by signature. All values of the signature's constants share them.
        self._programs: weakref.WeakValueDictionary[Any, Programs] = weakref.WeakValueDictionary()

    def trace(
        self, call: Call, refuted: int = 0, decides: bool = False, must_pay: bool = False
    ) -> Traced:
        """The trace of a call. `refuted`: how often an assumption of earlier traces about data
        failed. trace_call describes `decides`, `must_pay` and further errors.

        Raises:
            DataDependentShapeError: if assumptions about data have failed too often.
        """

        def run(traced: Traced) -> Any:
            lowered = self._lower_once(call, traced)
            compiled = self.bind(call, traced, lowered.compile(), draws_again=True)
            status, result = compiled.call(call.leaves)
            if status != "done":
                raise DataDependentShapeError(
                    f"{self.name}: cannot find a size that depends on data (arguments overlap, are"
                    " read-only or are not contiguous)\nhint: pass copies: x.copy()"
                )
            return result

        if refuted > _MOST_REFUTED:
            raise DataDependentShapeError(
                f"{self.name}: cannot make a program for each size that data may have (another one"
                f" at {refuted} calls)\nhint: give np.bincount a minlength that is large enough"
            )
        guesses = refuted == 0
        devices = {leaf.device for leaf in call.leaves if isinstance(leaf, Array)}
        devices = {self._device} if self._device else devices or {_core.default_device()}
        has_float64 = all(has_dtype(device, np.dtype(np.float64)) for device in devices)
        given = self._fn, self.name, call, run, guesses, decides, must_pay, self._room
        return trace_call(*given, has_float64, self.steps)

    def lower(self, call: Call, traced: Traced) -> Any:
        """Lowers the graph of a trace for the device. `compile()` of the result is the
        executable."""
        calibration.ensure()
        device, names = self._device_for(call, traced), self.names_of_inputs(call, traced)
        return _core.lower(traced.graph, device, names, traced.functions, self.name)

    def _lower_once(self, call: Call, traced: Traced) -> Any:
        """Like `lower`, for a graph that runs once. On the CPU a graph of little work is
        interpreted, because compiling it takes longer."""
        given = [call.leaves[i] for i in traced.input_leaves] + traced.captured
        is_little = len(traced.graph) * sum(map(np.size, given)) <= _LITTLE
        if not is_little or any(isinstance(x, Array) for x in given):
            return self.lower(call, traced)
        if self._device_for(call, traced) != "cpu":
            return self.lower(call, traced)
        names = self.names_of_inputs(call, traced)
        return _core.lower(traced.graph, "interpreter", names, traced.functions, self.name)

    def names_of_inputs(self, call: Call, traced: Traced) -> list[str]:
        """The names of a program's inputs in errors and reports."""
        captured = [f"captured array {i}" for i in range(len(traced.captured))]
        return input_names(call, traced.input_leaves) + captured

    def bind(self, call: Call, traced: Traced, executable: Any, draws_again: bool = False) -> Any:
        """Makes a CompiledCall of an executable. It takes a call's leaves and makes its results.
        `draws_again`: whether further code will draw the call's random numbers again."""
        outputs, device = traced.outputs, None
        if self._devices_of(call, traced):  # Arrays in, Arrays out
            device = self._device_for(call, traced)
            outputs = [
                ("copy", from_numpy(o[1], device)) if o[0] == "copy" and is_dtype(o[1].dtype) else o
                for o in outputs
            ]
        compiled = _core.CompiledCall(
            executable,
            traced.input_leaves,
            self._captured(call, traced) if executable else [],
            outputs,
            traced.unflatten,
            traced.leaf_guards,
            traced.guards,
            traced.writes,
            traced.contiguous,
            traced.transposed_inputs if executable else [],
            traced.transposed_results,
            traced.checks,
            device,
        )
        if traced.numbers is None:
            return compiled
        return WithNumbers(compiled, traced.numbers, draws_again or traced.is_conditions)

    def make_room(self) -> bool:
        """Lets further programs have room for more items of lists whose length data decide. Returns
        whether that is possible."""
        has_more = self._room < MOST_WORDS
        self._room = min(max(8 * self._room, 8 * FIRST_WORDS), MOST_WORDS)
        return has_more

    def segmented(self, error: Exception, signature: Any = None) -> Segmented:
        """Makes the entry that runs calls of a signature in segments, because of `error`."""
        programs = self._programs.get(signature)
        if programs is None:
            programs = Programs(self._device or _core.default_device(), self.name)
            self._programs[signature] = programs
        return Segmented(self._fn, self.name, programs, str(error))

    def _captured(self, call: Call, traced: Traced) -> list[Any]:
        """The captured arrays for calls of the program. Constants are copied to its device."""
        if not traced.constants or has_host_memory(device := self._device_for(call, traced)):
            return traced.captured
        return [
            from_numpy(array, device) if i in traced.constants else array
            for i, array in enumerate(traced.captured)
        ]

    def _device_for(self, call: Call, traced: Traced) -> str:
        """The device of the program: the option of `jit`, or the device of its Arrays."""
        if self._device is not None:
            return self._device
        devices = self._devices_of(call, traced)
        if len(set(devices.values())) > 1:
            places = ", ".join(f"{owner} on {device}" for owner, device in devices.items())
            raise ValueError(
                f"{self.name}: cannot use Arrays of several devices together ({places})\n"
                "hint: x.to_device(device) moves one, jit(..., device=...) says where to run"
            )
        return next(iter(devices.values()), _core.default_device())

    def _devices_of(self, call: Call, traced: Traced) -> dict[str, str]:
        """The devices of the Arrays among arguments and captured arrays."""
        leaves = [call.leaves[i] for i in traced.input_leaves] + traced.captured
        if not any(isinstance(leaf, Array) for leaf in leaves):
            return {}
        owners = self.names_of_inputs(call, traced)
        return {
            owner: leaf.device
            for owner, leaf in zip(owners, leaves, strict=True)
            if isinstance(leaf, Array)
        }
