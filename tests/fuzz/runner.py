"""Runs random programs: compiled, on the interpreter's GPU mapping, and with the CPU's kernels
interpreted, where every access is checked against its bounds."""

from __future__ import annotations

import os
import re
import traceback
from typing import Any

import numpy as np
from programs import Expectation, Program, generate

import rune_jit
from rune_jit import _core

# RUNE_TEST_DEVICE: as in tests/python/devices.py.
_ALONE = os.environ.get("RUNE_TEST_DEVICE")
DEVICES = (_ALONE,) if _ALONE else ("cpu", "interpreter")
MODES = DEVICES if _ALONE else (*DEVICES, "cpu-interpreted")
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
}


def run(program: Program, mode: str) -> tuple[Any, ...]:
    """The program's results, twice computed where that is cheap."""
    if mode == "cpu-interpreted":
        return _run_cpu_kernels(program)
    jitted = rune_jit.jit(program.function(), device=mode, fallback="error")
    first = jitted(*program.inputs)
    if mode == "cpu":
        again = jitted(*program.inputs)  # warm: by the dispatcher
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b, err_msg="two calls differ")
    return first


def _run_cpu_kernels(program: Program) -> tuple[Any, ...]:
    """Interprets the kernels that the CPU would run."""
    jitted = rune_jit.jit(program.function(), device="cpu", fallback="error")
    call = jitted._take_apart(tuple(program.inputs), {})
    traced = jitted._trace(call)
    computed: list[np.ndarray] = []
    if traced.graph is not None:
        leaves = [call.leaves[i] for i in traced.input_leaves] + traced.captured
        computed = interpret_program(_core.lower(traced.graph, "cpu"), leaves)
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
    return tuple(np.reshape(r, s) for r, s in zip(results, shapes, strict=True))


def interpret_program(lowered: Any, inputs: list[Any]) -> list[np.ndarray]:
    """Runs a lowered program's kernels on the interpreter, in the order of its schedule."""
    schedule = lowered.schedule
    memory: dict[str, np.ndarray] = {}
    for value, dtype, shape in re.findall(r"\n    (%\d+) = .* : (\w+)\[([\d,]*)\]", schedule):
        if re.search(r"\b0\b", shape):  # no kernel writes an empty array
            memory[value] = np.empty(0, _NUMPY[dtype])
    for value, index in re.findall(r"(%\d+) = placeholder index=(\d+)", schedule):
        memory[value] = np.ascontiguousarray(inputs[int(index)]).ravel()
    items = re.split(r"\n  item \d+ kernel ", schedule)[1:]
    assert len(items) == len(lowered.kernels)
    for item, kernel in zip(items, lowered.kernels, strict=True):
        arguments = []
        pattern = r"\n    (input|output) (%\d+) dtype=(\w+) layout=\{shape=\[([\d,]*)\]"
        for _, value, dtype, shape in re.findall(pattern, item):
            if value not in memory:
                size = int(np.prod([int(d) for d in shape.split(",") if d], dtype=np.int64))
                constant = re.search(rf"\n    {value} = vconst values=\[([^\]]*)\]", schedule)
                assert not constant, "a constant array"
                memory[value] = np.full(size, 7, _NUMPY[dtype])
            arguments.append(memory[value])
        _core.interpret(kernel, arguments)
    outputs = re.search(r"\n  outputs=\[([^\]]*)\]", schedule)
    assert outputs
    return [memory[v] for v in outputs[1].split(",")]


def _needs_float64(program: Program, mode: str, error: rune_jit.DTypeError) -> bool:
    """Whether Metal refuses a program that computes in float64, which NumPy often does."""
    graph = rune_jit.jit(program.function(), device="cpu").lower(*program.inputs).graph
    return mode == "metal" and "float64" in str(error) and "f64" in str(graph)


def failure(program: Program, mode: str) -> str | None:
    """What goes wrong when the program runs, or None."""
    try:
        with np.errstate(all="ignore"):
            actual = run(program, mode)
    except rune_jit.DTypeError as error:
        return None if _needs_float64(program, mode, error) else f"DTypeError: {error}"
    except Exception as error:  # every other exception is a failure: NumPy ran the program
        return f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
    return Expectation(program).mismatch(actual)


def reduce(program: Program, mode: str) -> Program:
    """The smallest slice that still fails: that of the first step that does."""
    for step in program.steps:
        smaller = program.slice_of([step.target])
        if failure(smaller, mode):
            return smaller
    return program


def check(seed: int, mode: str, most_steps: int = 14) -> None:
    """Raises AssertionError with the program, its graph and its kernels if it goes wrong."""
    program = generate(seed, most_steps)
    problem = failure(program, mode)
    if problem is None:
        return
    program = reduce(program, mode)
    problem = failure(program, mode) or problem
    text = f"seed {seed} on {mode}: {problem}\n{program.describe()}"
    device = "cpu" if mode == "cpu-interpreted" else mode
    try:
        lowered = rune_jit.jit(program.function(), device=device).lower(*program.inputs)
        text += "\n".join([lowered.graph, lowered.schedule, *lowered.kernels])
    except Exception as error:
        text += f"\n(lowering: {type(error).__name__}: {error})"
    raise AssertionError(text)
