"""Runs random programs: compiled, with arguments between inaccessible pages; on the interpreter's
GPU mapping, on Metal's and CUDA's, and with the CPU's kernels interpreted, where every access is
checked against its bounds and for races; on a device that does everything as late as it may; and in
segments."""

from __future__ import annotations

import os
import random
import re
import traceback
import types
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from dynamic import with_dynamic_axes, with_other_sizes
from expectation import Expectation
from generator import generate
from guarded import PLACEMENTS, guarded
from programs import Program
from shrink import shrink

import rune_jit
from rune_jit import _core
from rune_jit.calls.segmented import Segmented
from rune_jit.calls.traced import Raised
from rune_jit.tracing import programs, segments, timed

# RUNE_TEST_DEVICE: as in tests/python/devices.py.
_ALONE = os.environ.get("RUNE_TEST_DEVICE")
DEVICES = (_ALONE,) if _ALONE else ("cpu", "interpreter")
_INTERPRETED = ("cpu-interpreted", "metal-interpreted", "cuda-interpreted", "interpreter-delayed")
MODES = DEVICES if _ALONE else (*DEVICES, *_INTERPRETED, "segments")
_NUMPY = {
    "f32": "float32",
    "f64": "float64",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
    "i8": "int8",
    "i16": "int16",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f16": "float16",
    "bf16": "bfloat16",
}
# What is refused for a reason that the message tells.
_REFUSED = (
    "cannot trace a write of an array to itself",  # NumPy reads what it has written
    ".at: cannot trace",  # NumPy rounds after each
    "cannot trace a write to an array that was reshaped",  # not in C order
    "the result's shape depends on data",
    "cannot find a size that depends on data",
    "NumPy has no common dtype for all orders",
)


class Refused(Exception):
    """The program does something that is documented not to be traced."""


def run(program: Program, mode: str) -> Iterator[tuple[Program, list[Any]]]:
    """The values of the observed; where that is cheap, also of a warm call, on other data. The
    first call's arguments end at inaccessible memory, the second one's begin there."""
    if mode == "cpu-interpreted":
        yield program, _run_cpu_kernels(program)
        return
    at_end, at_start = PLACEMENTS
    if mode == "segments":
        yield program, _call(program, _in_segments(program), at_end)
        return
    jitted = jit(program, mode, fallback="error")
    yield program, _call(program, jitted, at_end)
    other: Program | None = None
    if program.dynamic:
        other = with_other_sizes(program, len(program.steps))
    elif mode == "cpu":
        other = program.with_other_data() or program
    if other:
        yield other, _call(other, jitted, at_start)


def jit(program: Program, device: str, **options: Any) -> Any:
    """The program as a compiled function, with its dynamic axes."""
    dynamic = {f"v{i}": axes for i, axes in program.dynamic.items() if i in program.inputs}
    return rune_jit.jit(program.function(), device=device, dynamic=dynamic or None, **options)


def _in_segments(program: Program) -> Any:
    """The program as a function that runs in segments, with a cut after about each third
    operation."""
    made = programs.Programs("cpu")
    made.interprets = len(program.steps) % 4 == 0
    segmented = Segmented(program.function(), "program", made, "a test")
    chance = random.Random(len(program.steps))

    def cut(trace: segments.SegmentedTrace) -> None:
        if chance.random() < 0.3:
            trace.values([])

    def run(*arguments: Any) -> Any:
        with (
            mock.patch.object(segments.SegmentedTrace, "after_operation", cut),
            mock.patch.object(timed, "_SLOW", np.inf),
            mock.patch.object(programs, "_SLOW_COMPILATION", np.inf),
            mock.patch.object(timed, "_MOST_COMPILED", np.inf),
        ):
            return segmented.call(arguments, {})

    return run


def _call(program: Program, function: Any, placement: str) -> list[Any]:
    arguments = [guarded(argument, placement) for argument in program.arguments()]
    results = function(*arguments)
    return [*results, *arguments][: len(program.observed)]


def _run_cpu_kernels(program: Program) -> list[Any]:
    """Interprets the kernels that the CPU would run, if kernels are all that it would run."""
    jitted = rune_jit.jit(program.function(), device="cpu", fallback="error")
    arguments = program.arguments()
    call = jitted._runner.take_apart(tuple(arguments), {})
    try:
        # Sizes that data decide are this data's, and nothing is assumed.
        traced = jitted._runner.compiler.trace(call, refuted=1)
    except Raised as error:
        raise error.error from error
    except rune_jit.UnsupportedOpError as error:
        if "which raises in Python" in str(error):
            raise Refused(str(error)) from error
        raise
    if traced.functions or len(program.observed) > len(program.outputs):
        raise Refused("only kernels are interpreted")
    computed: list[np.ndarray] = []
    if traced.graph is not None:
        leaves = [call.leaves[i] for i in traced.input_leaves] + traced.captured
        for i, axes in traced.transposed_inputs:
            leaves[i] = leaves[i].transpose(axes)
        computed = interpret_program(_core.lower(traced.graph, "cpu"), leaves)
    transposed = dict(traced.transposed_results)
    results: list[Any] = []
    for plan in traced.outputs:
        results.append(
            computed[plan[1]]
            if plan[0] == "computed"
            else call.leaves[plan[1]]
            if plan[0] == "leaf"
            else plan[1]
        )
    shapes = [np.shape(r) for r in Expectation(program).results]
    made = []
    for plan, r, s in zip(traced.outputs, results, shapes, strict=True):
        axes = transposed.get(plan[1]) if plan[0] == "computed" else None
        if axes is None:
            made.append(np.reshape(r, s))
        else:
            made.append(np.reshape(r, [s[axes.index(i)] for i in range(len(s))]).transpose(axes))
    return made


def interpret_program(lowered: Any, inputs: list[Any]) -> list[np.ndarray]:
    """Runs a lowered program's kernels on the interpreter, in the order of its schedule."""
    schedule = lowered.schedule
    memory: dict[str, np.ndarray] = {}
    types = {}
    for value, dtype, shape in re.findall(r"\n    (%\d+) = .* : (\w+)\[([\d,]*)\]", schedule):
        size = int(np.prod([int(d) for d in shape.split(",") if d], dtype=np.int64))
        types[value] = size, _NUMPY.get(dtype)
        if size == 0:  # no kernel writes an empty array
            memory[value] = np.empty(0, _NUMPY[dtype])
    for value, index in re.findall(r"(%\d+) = placeholder index=(\d+)", schedule):
        memory[value] = np.ascontiguousarray(inputs[int(index)]).ravel()
    items = re.split(r"\n  item \d+ launch ", schedule)[1:]
    assert len(items) == len(lowered.kernels)
    for item, kernel in zip(items, lowered.kernels, strict=True):
        arguments: dict[str, np.ndarray] = {}  # one for what is read and written
        for value in re.findall(r"%\d+", "".join(re.findall(r"\n    (?:in|out)puts=.*", item))):
            if value not in memory:
                constant = re.search(rf"\n    {value} = vconst values=\[([^\]]*)\]", schedule)
                assert not constant, "a constant array"
                size, dtype = types[value]
                memory[value] = np.full(size, 7, dtype)
            arguments[value] = memory[value]
        _core.interpret(kernel, list(arguments.values()))
    outputs = re.search(r"\n  outputs=\[([^\]]*)\]", schedule)
    assert outputs
    return [memory[v] for v in outputs[1].split(",")]


def _needs_float64(program: Program, mode: str, error: rune_jit.DTypeError) -> bool:
    """Whether Metal refuses a program that computes in float64, which NumPy often does."""
    graph = rune_jit.jit(program.function(), device="cpu").lower(*program.arguments()).graph
    return mode.startswith("metal") and "float64" in str(error) and "f64" in str(graph)


def failure(program: Program, mode: str) -> str | None:
    """What goes wrong when the program runs, or None. Raises Refused."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            for ran, actual in run(program, mode):
                problem = Expectation(ran).mismatch(actual)
                if problem:
                    return problem if ran is program else f"{problem} (on other data)"
    except rune_jit.DTypeError as error:
        return None if _needs_float64(program, mode, error) else f"DTypeError: {error}"
    except (rune_jit.UnsupportedOpError, TypeError) as error:
        refused = (rune_jit.UnsupportedOpError, rune_jit.ConcretizationError)
        if program.dynamic and isinstance(error, refused):
            raise Refused(str(error)) from error
        if any(reason in str(error) for reason in _REFUSED):
            raise Refused(str(error)) from error
        return f"{type(error).__name__}: {error}"
    except Refused:
        raise
    except MemoryError as error:
        if program.dynamic:  # memory is for the largest sizes, which no array here need have
            raise Refused("its largest sizes do not fit in memory") from error
        return f"MemoryError: {error}"
    except Exception as error:  # every other exception is a failure: NumPy ran the program
        return f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
    return None


def smallest(program: Program, mode: str, problem: str) -> tuple[Program, str]:
    """A small program that fails in the same way, and how it does."""

    def fails(candidate: Program) -> str | None:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                candidate.execute()
            found = failure(candidate, mode)
        except Exception:  # NumPy refuses it, or we do
            return None
        return found if found and _kind(found) == _kind(problem) else None

    program = shrink(program, lambda candidate: fails(candidate) is not None)
    return program, fails(program) or problem


def _kind(problem: str) -> str:
    """Failures of one kind have one cause, as far as the text can tell."""
    return "differs" if " instead of " in problem else problem[:25]


def _named(function: Any, name: str) -> Any:
    """The function, with a name for faulthandler to print should the process die in it."""
    return types.FunctionType(function.__code__.replace(co_name=name), function.__globals__)


def report(seed: int, mode: str, most_steps: int = 14, dynamic: int = 0) -> str | None:
    """None if the program of the seed runs, with so many dynamic sizes; otherwise what goes wrong
    with a small part of it, its inputs, graph, schedule and kernels. Raises Refused."""
    program = generate(seed, most_steps)
    if dynamic:
        sized = with_dynamic_axes(program, seed, dynamic)
        if sized is None:
            raise Refused("the inputs have no size that can be dynamic")
        program = sized
    problem = _named(failure, f"seed_{seed}_on_{mode}")(program, mode)
    if problem is None:
        return None
    program, problem = smallest(program, mode, problem)
    text = f"seed {seed} on {mode}: {problem}\n{program.describe()}"
    device = "cpu" if mode in ("cpu-interpreted", "segments") else mode
    try:
        lowered = jit(program, device).lower(*program.arguments())
        text += "\n".join([lowered.graph, lowered.schedule, *lowered.kernels])
    except Exception as error:
        text += f"\n(lowering: {type(error).__name__}: {error})"
    return text


def check(seed: int, mode: str, most_steps: int = 14, dynamic: int = 0) -> None:
    """Raises AssertionError with the report of a program that goes wrong."""
    try:
        text = report(seed, mode, most_steps, dynamic)
    except Refused:
        return
    assert text is None, text
