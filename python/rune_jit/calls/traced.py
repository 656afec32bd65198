"""What the trace of a call gives: a graph, and the relation of its inputs and outputs to the call's
arguments and results (call_trace.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rune_jit.capture.drawn import Numbers
from rune_jit.capture.matching import Met
from rune_jit.capture.printed import Shown
from rune_jit.capture.state import Path


class Traced(NamedTuple):
    """The trace of a call: a graph, and the relation of its inputs and outputs to arguments and
    results."""

    graph: Any  # None if nothing is computed
    input_leaves: list[int]
    captured: list[Any]  # numpy.ndarrays and Arrays
    constants: frozenset[int]  # numbers of captured arrays that nobody else can change
    outputs: list[tuple[Any, ...]]
    unflatten: Any
    leaf_guards: list[tuple[int, Any]]
    guards: list[Any]  # on the state outside of the function
    writes: list[tuple[int, int]]  # (input, result of the program)
    contiguous: list[int]  # inputs that must be C-contiguous
    # Inputs whose transposes the graph takes, and results that are transposed after a run.
    transposed_inputs: list[tuple[int, tuple[int, ...]]]
    transposed_results: list[tuple[int, tuple[int, ...]]]
    functions: list[tuple[str, Any]]  # host functions
    checks: list[tuple[Any, ...]]  # of the program's last results (bind_dispatch.cpp)
    loops: list[str]  # how loops run, for explain()
    # The number of conditions whose outcomes are assumed; and whether the program only checks
    # these.
    conditions: int = 0
    is_conditions: bool = False
    # What is written to outside places after each run. If there is anything, the program's result
    # is a tuple of the function's result, the slots' values, values for lists and dicts, and values
    # to print.
    assigned: Assigned | None = None
    met: Met | None = None  # decides whether the program can serve other objects
    leaves_usual: bool = False  # LoopPlans.leaves_usual
    numbers: Numbers | None = None  # that are drawn before each run
    has_loops: bool = False  # whether it has loops of the program
    makes_lists: bool = False  # whether its results have MadeLists (list_results.py)

    @property
    def has_room(self) -> bool:
        """Whether the program has limited room for items or random words whose number data
        decide."""
        has_words = self.numbers is not None and self.numbers.has_words
        has_state = self.assigned is not None and self.assigned.has_room
        return has_words or has_state or self.makes_lists


class Assigned(NamedTuple):
    """The values that a function assigns to outside places."""

    slots: tuple[int, ...]
    # For each list or dict: its path, the removed keys, the assigned keys, and how appended items
    # are packed.
    changes: tuple[tuple[Path, tuple[Any, ...], tuple[Any, ...], list[Any]], ...]
    # Makes the program's result of its leaves. None unless results are lists or dicts of the
    # arguments.
    unflatten: Callable[[Any], Any] | None
    shown: Shown | None  # what is printed
    grown: dict[int, list[Any]]  # by slot of a list: how appended items are packed
    has_room: bool  # whether data decide how many items are appended


class Raised(Exception):
    """The function raised `error` while it was traced. NumPy may raise it, too, or only the
    trace."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error
