"""Makes a failing program small: fewer outputs and steps, results of steps as further inputs, plain
layouts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from programs import Program, Step


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A program that still fails, of which nothing can be left out."""
    changed = True
    while changed:
        changed = False
        for candidate in _smaller(program):
            if candidate.steps and fails(candidate):
                program, changed = candidate, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """The larger cuts first."""
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        if len(program.outputs) > 1:
            for output in program.outputs:
                yield program.slice_of([output])
        for step in program.steps:  # the first that goes wrong
            sliced = program.slice_of([step.target])
            if len(sliced.steps) < len(program.steps):
                yield sliced
        for step in reversed(program.steps):
            if not step.writes:
                yield _cut(program, step)
        for step in reversed(program.steps):
            if step.writes or step.target not in program.outputs:
                yield replace(program, steps=[s for s in program.steps if s is not step])
        used = {i for step in program.steps for i in step.operands} | set(program.outputs)
        for i in set(program.inputs) - used:
            yield replace(program, inputs={k: x for k, x in program.inputs.items() if k != i})
        for i, array in program.inputs.items():
            if program.layouts[i] != "C":
                yield replace(
                    program,
                    inputs={**program.inputs, i: np.array(array, order="C")},
                    layouts={**program.layouts, i: "C"},
                )


def _cut(program: Program, step: Step) -> Program:
    """What a step made becomes an input."""
    made = {}

    def keep(done: Step, values: dict[str, np.ndarray], before: np.ndarray | None) -> None:
        if done is step:
            made[step.target] = np.array(values[f"v{step.target}"], order="C")

    program.execute(keep)
    smaller = replace(
        program,
        inputs={**program.inputs, **made},
        layouts={**program.layouts, step.target: "C"},
        steps=[s for s in program.steps if s is not step],
    )
    return smaller.slice_of(program.outputs)
