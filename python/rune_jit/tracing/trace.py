"""A trace: the graph under construction, the captured arrays, and the place in the user's code."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from rune_jit import _core
from rune_jit.chunked.iota import Iota
from rune_jit.errors import DataDependentShapeError, UnsupportedOpError
from rune_jit.tracing import progressions
from rune_jit.tracing.context import ValuesNeeded, active
from rune_jit.tracing.loops import HostCall, Loops
from rune_jit.tracing.sizes import AxisSize, Size, TracedSizes
from rune_jit.tracing.steps import Steps
from rune_jit.tracing.storage import Step, Storage
from rune_jit.tracing.tracer import Tracer, contains_tracer

_Value: Any = _core.Value


# The most nodes of one program. Compiling more takes minutes.
_MOST_NODES = 30_000
# If NumPy has computed more operations than this, repeating the trace takes long.
_MANY_COMPUTED = 1000
# Where arrays are in chunks, up to so many consecutive integers are a constant.
_MOST_COUNTED = 1 << 12
# How many sizes that depend on data one program may assume. To find each, the program so far runs.
# A place in the code that asks for a third size is probably in a loop of many iterations.
_MOST_SIZES, _MOST_AT_ONE_PLACE = 8, 2


class Unless(NamedTuple):
    """An array that a loop has assigned to a name, unless the loop had no iteration."""

    storage: Storage
    version: int  # of the storage after the loop
    has_run: Tracer  # whether the loop had an iteration
    before: Tracer  # what the name stood for before the loop


class Trace:
    """A graph under construction for one call signature of one function.

    `captured_are_traced`: whether the function gets traced arrays in place of the arrays that it
    captures. `sizes` are the dynamic axes of the arguments. `guesses`: whether the trace may assume
    something about data, because no assumption has failed for calls like this one.
    """

    is_segmented = False  # whether Python may ask for values: segments.py
    gave_up: str | None = None  # why NumPy computes the rest of a call in segments
    # Ends a trace that has given up, if it can: calls/early_end.py.
    end_early: Callable[[], bool] = staticmethod(lambda: False)
    writes: Any  # in segments, those since the last cut

    def __init__(
        self,
        name: str,
        captured_are_traced: bool = True,
        sizes: Sequence[AxisSize] = (),
        guesses: bool = True,
        loops: Loops | None = None,
    ) -> None:
        self.name = name
        self.loops = loops  # None: all loops are unrolled
        # Computes a traced number at this call, by running the program so far.
        self.evaluate: Callable[[Any], int] | None = None
        self.caller: types.CodeType | None = None  # the code that calls the traced function
        self._guesses = guesses
        self._has_guessed = False
        self.in_chunks = False  # whether arrays may be larger than memory
        self.takes_arrays = False  # whether an argument is a rune_jit.Array
        self.may_repeat = False  # whether two arguments may be one array
        self.decides = False  # whether it assumes outcomes of conditions: conditions.py
        self.decides_numbers = False  # whether also of those on numbers among the arguments
        self.conditions = 0  # how many outcomes it has assumed
        self.decided: dict[int, bool] = {}  # these outcomes, by id of the value
        self.captured_are_traced = captured_are_traced
        self.builder = _core.GraphBuilder(most=_MOST_NODES)
        if self.may_guess:
            self.builder.check_integers(loops.plans.checked if loops is not None else set())
        self.line = _core.user_line()  # of the last operation: "file.py:12"
        self.done = False
        # Captured arrays, Arrays and Iotas, in the order of their inputs. By the snapshots the
        # trace finds out whether NumPy has changed an array.
        self.captured: list[Any] = []
        self.constants: set[int] = set()  # ids of the captured arrays that nobody else can change
        self._snapshots: list[Any] = []
        self.stand_ins: dict[int, Tracer] = {}  # traced arrays in place of captured ones, by id
        self._iotas: dict[Any, Any] = {}  # by size and dtype
        self.functions: list[tuple[str, Any]] = []  # host functions: (name, callable)
        self.asked: list[Any] = []  # what host functions gave for made-up arguments
        self.rebind: Any = None  # copies functions: capture.rebinder
        self.draws: Any = None  # random numbers: capture.draws. None in segments
        self.room = 0  # the most items of a list whose length data decide
        self.has_float64 = True  # whether the device has this dtype, as Python's floats
        self.prints: Any = None  # capture.printed; None if it may not print
        self.callees: dict[int, tuple[Any, Any]] = {}  # by id: a callee, and its replacement
        self.choices: dict[Any, int] = {}  # by place: how often it chose without a value
        self._equal: list[tuple[Any, str]] = []  # (two numbers, error message)
        self.unless: dict[int, Unless] = {}  # by id of a storage
        self._may_raise = False  # whether a host function may raise
        self.steps = Steps()  # of Python
        self._computed = 0  # number of operations that NumPy computed
        self._assumed: list[Any] = []  # pairs (number, assumed number)
        # By place in the code: how often it has asked for a number.
        self._asked_at: collections.Counter[Any] = collections.Counter()
        self.leaves: list[Storage] = []  # of the arguments that are arrays
        # Leaves that are not in C order: their axes in memory, and whether they have gaps.
        self.orders: dict[int, tuple[tuple[int, ...], bool]] = {}
        self.layouts: dict[Storage, Any] = {}  # in one program (layouts_now.py)
        self.numbers: dict[int, int] = {}  # leaves that are numbers, by input
        self.needed: frozenset[int] = frozenset()  # those whose values were asked for
        # Leaves that are functions, by code. Calls whose functions have the same code share the
        # trace, so it must not depend on the function's identity.
        self.definitions: dict[types.CodeType, frozenset[int]] = {}
        self.sizes = TracedSizes(self.builder, sizes)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Makes this the current trace of the thread; at the end the trace is done."""
        try:
            with active(self):
                yield
        finally:
            self.done = True

    def note_computed(self) -> None:
        """Counts an operation that NumPy has computed because its operands are known. It is a step
        of Python, since the program will not compute it. Raises UnsupportedOpError if there are
        too many."""
        self._computed += 1
        self.note_steps()
        if self._computed > _MOST_NODES:
            raise UnsupportedOpError(
                f"{self.name}: cannot compute more than {_MOST_NODES:,} operations while tracing ("
                "on arrays that depend on no argument)\n"
                "hint: compute such arrays outside; f.explain() names loops that are unrolled"
            )

    @property
    def pays(self) -> bool:
        """Whether the trace did not end because a program would take longer to make than it saves
        in many calls."""
        return self.builder.pays and not (self.steps.are_too_many and self.builder.must_pay)

    def note_steps(self, count: int = 1) -> None:
        """Counts steps of Python. Raises UnsupportedOpError if they are too many."""
        self.steps.note(self, count)

    @property
    def is_mostly_known(self) -> bool:
        """Whether NumPy has computed many operations, and more than the trace has recorded, or most
        of the function is Python's work. Then another trace takes about as long as many calls."""
        return self.steps.are_too_many or self._computed > max(_MANY_COMPUTED, len(self.builder))

    def stand_in(self, array: Any) -> Tracer:
        """The traced array in place of a captured array, which is an input that each call reads
        again."""
        known = self.stand_ins.get(id(array))
        if known is None:
            known = self.stand_ins[id(array)] = Tracer.captured(self, array)
        return known

    def capture(self, array: Any) -> Any:
        """The present value of a captured array."""
        if not _core.is_supported_dtype(array.dtype):
            raise UnsupportedOpError(f"operand: cannot trace arrays of {array.dtype}")
        return self.stand_in(array)._value_in(self)

    def unwatch(self, array: np.ndarray) -> None:
        """Lets NumPy write to a captured array during the trace."""
        at = next(i for i, captured in enumerate(self.captured) if captured is array)
        self._snapshots[at] = array

    def add_captured(self, array: Any) -> Any:
        """Makes a new input of an array, and returns its value."""
        self.captured.append(array)
        # An Array needs no comparison: writes reach it only after the run.
        self._snapshots.append(array.copy() if isinstance(array, np.ndarray) else array)
        value = self.builder.input(array.dtype, list(array.shape))
        if self.in_chunks and isinstance(array, np.ndarray):  # each call is traced
            self._assume_range(value, array)
        return value

    def _assume_range(self, value: Any, array: np.ndarray) -> None:
        """Tells the builder the range of an array's integers."""
        if array.dtype.kind in "iu" and array.size:
            low, high = int(array.min()), int(array.max())
            if low >= -(2**62) and high < 2**62:  # it fits int64 when a size is added
                self.builder.assume_range(value, low, high)

    def constant(self, array: np.ndarray) -> Any:
        """The value of an array that nobody else can change."""
        # In segments the array is an input, since the next segment may have other elements. In
        # chunks it is an input, since blocks with other elements share the program.
        reads = self.is_segmented or self.in_chunks
        if not reads and (progression := progressions.find(array)) is not None:
            return progression.value(self.builder)
        value = self.capture(array)
        self.constants.add(id(array))
        self._assume_range(value, array)
        return value

    def snapshot(self, array: np.ndarray) -> Any:
        """The value of an array's present elements. NumPy may write to the array afterwards."""
        return self.constant(array.copy())

    def before_write(self, storage: Storage) -> None:
        """Called before a write to a captured array. (SegmentedTrace overrides this.)"""

    def position(self, number: int, axis: int, size: int) -> Any:
        """The value of an integer in an index, if the integer is an argument of the program."""
        return None

    def part_in_memory(self, step: Step, value: Any) -> Any:
        """The view of a value in memory as a value of its own, or None."""
        return None

    def call_host(
        self,
        name: str,
        function: Any,
        operands: list[Any],
        types: list[tuple[Any, Any]],
        may_raise: bool,
        rows: int | None = None,
        side_by_side: bool = False,
    ) -> list[Any]:
        """The results of a call of `function` when the program runs. It gets the operands' arrays,
        and returns a sequence of arrays with the given (dtype, shape). If it may raise, it is
        called even if nobody uses the results.

        `rows`: operand 0 and the results share so many first axes, and a call may get a part of
        them. `side_by_side`: whether several calls may run at the same time."""
        if self.loops is not None and self.loops.open:
            call = HostCall(name, function, operands, types, may_raise, side_by_side)
            return self.loops.call_host(self.builder, call)
        self.functions.append((name, function))
        self._may_raise |= may_raise
        number = len(self.functions) - 1
        return self.builder.host_callback(name, number, operands, types, may_raise, rows)

    def iota(self, size: Any, dtype: type[np.integer[Any]] = np.int64) -> Any:
        """The integers 0 .. size - 1. For a symbolic size, dtype must be int64."""
        key = size, dtype
        if key not in self._iotas:
            if not self.in_chunks:
                value = self.builder.iota([size], np.dtype(dtype))
            elif size > _MOST_COUNTED:
                counted = Iota(size, np.dtype(dtype))
                self.captured.append(counted)
                self._snapshots.append(counted)
                value = self.builder.input(counted.dtype, [size])
                self.builder.assume_range(value, 0, size - 1)
            else:
                value = self.constant(np.arange(size, dtype=dtype))
            self._iotas[key] = value
        return self._iotas[key]

    def checks(self, are_handled: bool) -> Iterator[tuple[Any, ...]]:
        """The checks of the program's values: (value, kind, ...). The first ones check the trace's
        assumptions, the others raise errors. `are_handled`: whether the function may handle
        exceptions, so that Python must run a call that raises."""
        checks = self.builder.checks

        def of(number: int | None) -> Iterator[Any]:
            for value, axis, _, of_raise, _ in checks:
                if axis is None and of_raise == number:
                    yield self._pair(self.builder.astype(value, np.dtype(np.int64)), 0)

        # The flag of a `raise` comes before the assumptions that follow it, which may rely on it.
        for number, pair in enumerate(self._assumed):
            for raises in of(number):
                yield raises, "raise"
            yield self._pair(*pair), "assumed"
        for raises in of(len(self._assumed)):
            yield raises, "raise"
        for pair in of(None):
            yield pair, "assumed"
        for value, axis, size, *_ in checks:
            if axis is None:
                continue
            if are_handled:
                yield self._pair(self.builder.astype(value, np.dtype(np.int64)), 0), "raise"
            elif isinstance(size, Size):
                now = self.builder.astype(self.builder.size_value(size), np.dtype(np.uint64))
                yield self.builder.stack([value, now], 0), "index", axis, None
            else:
                yield value, "index", axis, size
        for value, message in self._equal:
            yield (value, "raise") if are_handled else (value, "equal", message)

    @property
    def may_raise_on_host(self) -> bool:
        """Whether a call of a function on the host may raise an error."""
        return self._may_raise

    @property
    def has_checks(self) -> bool:
        """Whether a call may raise an error that depends on data."""
        return self._may_raise or bool(self._equal) or self.builder.has_checks

    @property
    def num_checks(self) -> int:
        """The number of checks that may raise an error."""
        return len(self._equal) + len(self.builder.checks)

    def must_be_equal(self, a: Any, b: Any, message: str) -> None:
        """Makes calls raise ValueError if two traced integers differ. The integers replace the {}
        in the message."""
        self._equal.append((self._pair(a, b), message))

    def _pair(self, a: Any, b: Any) -> Any:
        both = [self.builder.full([], x, np.dtype(np.int64)) for x in (a, b)]
        return self.builder.stack(both, 0)

    # Only a trace in segments can do these: segments.py.

    def values(self, wanted: list[Any]) -> list[Any]:
        raise AssertionError("a trace of a whole program")

    def value_of(self, tracer: Tracer) -> np.ndarray:
        raise AssertionError("a trace of a whole program")

    def expose(self, tracer: Tracer) -> None:
        raise AssertionError("a trace of a whole program")

    @property
    def is_in_loop(self) -> bool:
        """Whether the body of a loop of the program is being traced."""
        return self.loops is not None and bool(self.loops.open)

    @property
    def is_within_loop(self) -> bool:
        """Whether such a body, or a peeled iteration of such a loop, is being traced."""
        return self.loops is not None and bool(self.loops.within)

    @property
    def may_guess(self) -> bool:
        """Whether the trace may assume something about data."""
        return self._guesses and not self.is_segmented

    def guess(self) -> None:
        """Notes that the trace assumes something about data, which the program checks. Raises
        UnsupportedOpError if an assumption has failed for calls like this one."""
        if not self._guesses:
            raise UnsupportedOpError("the data do not have what the trace assumed")
        self._has_guessed = True

    @property
    def has_guessed(self) -> bool:
        """Whether the trace has assumed something about data."""
        return self._has_guessed or self.builder.has_checked_integers

    def raise_if(self, raises: Any) -> None:
        """Notes that the function raises an exception if a traced 0-d bool is true."""
        for body in self.loops.open if self.loops is not None else ():
            body.raises = True
        self.builder.raise_if(self.builder.value(raises), len(self._assumed))

    def assume_size(self, value: Any, guess: int | None = None) -> int:
        """Like `assume`, for a number that becomes a size. If there is a guess, and no guess has
        been wrong yet, returns the guess without running the program so far.

        Raises what `assume` raises, and DataDependentShapeError if there are too many such sizes.
        """
        if guess is not None and self._guesses:
            self._refuse_in_loops()
            self._has_guessed = True
            self._assumed.append((value, guess))
            return guess
        frame = _core.user_frame()
        place = frame and (frame.f_code, frame.f_lasti)
        self._asked_at[place] += 1
        is_repeated = self._asked_at[place] > _MOST_AT_ONE_PLACE
        if is_repeated or len(self._assumed) - self.conditions >= _MOST_SIZES:
            raise DataDependentShapeError(
                f"{self.name}: cannot trace more than {_MOST_SIZES} sizes that depend on data, or"
                f" {_MOST_AT_ONE_PLACE} at one place in the code\n"
                "hint: give np.bincount a minlength that is large enough"
            )
        return self.assume(value)

    def assume(self, value: Any) -> int:
        """The number that a traced int64 is at this call. The program so far computes it. Later
        calls check that it is the same, and are traced again if it is not.

        Raises what the program raises, and DataDependentShapeError if it cannot run."""
        self._refuse_in_loops()
        assert self.evaluate is not None
        number = self.evaluate(value)
        self._assumed.append((value, number))
        return number

    def assumptions(self) -> list[Any]:
        """For each assumed number: whether it is that number."""
        return [self.builder.ufunc("equal", pair)[0] for pair in self._assumed]

    def _refuse_in_loops(self) -> None:
        if self.loops is not None:
            self.loops.refuse("it needs a number that depends on data")

    def is_of_numbers(self, value: Any) -> bool:
        """Whether a value is a number among the arguments, or computed from such numbers alone."""
        inputs = self.builder.inputs_behind(value)
        return inputs is not None and all(i in self.numbers for i in inputs)

    def need_numbers(self, values: Iterable[Any]) -> None:
        """Raises ValuesNeeded if any of these values are numbers among the arguments, or computed
        from such numbers alone."""
        for value in values:
            if self.is_of_numbers(value):
                self.needed |= {self.numbers[i] for i in self.builder.inputs_behind(value) or ()}
        if self.needed:
            raise ValuesNeeded(self.needed)

    def need_identity(self, function: types.FunctionType) -> None:
        """Raises ValuesNeeded if a function is an argument, or has the code of one. Called where
        the trace depends on the function's identity."""
        if function.__code__ in self.definitions:
            self.needed |= self.definitions[function.__code__]
            raise ValuesNeeded(self.needed)

    def inputs(self, input_leaves: list[int]) -> Iterator[tuple[int, Storage]]:
        """The storages of array inputs that were read or written, with the positions of the
        inputs."""
        for storage in self.leaves:
            assert storage.leaf is not None
            yield input_leaves.index(storage.leaf), storage
        by_id = {id(array): i for i, array in enumerate(self.captured)}
        for tracer in self.stand_ins.values():
            storage = tracer._storage
            if storage.original is not None:
                yield len(input_leaves) + by_id[id(storage.captured)], storage

    def check_captured(self) -> None:
        """Raises UnsupportedOpError if NumPy wrote to a captured array, after undoing the write.
        The program reads captured arrays only once, before it starts."""
        for array, snapshot in zip(self.captured, self._snapshots, strict=True):
            if array is not snapshot and _core.broken_guards([("content", array, None, snapshot)]):
                array[...] = snapshot
                raise UnsupportedOpError(
                    f"{self.name}: cannot trace a write to an array of shape {array.shape} that is"
                    " not traced, after an operation has read it\n"
                    "hint: pass the array as an argument"
                )
        self._snapshots.clear()

    @_core.shorten_operand
    def operand(self, x: Any) -> Any:
        """Converts x for the builder: to a Value, or to a Python bool, int, float or complex."""
        kind = type(x)
        if kind is Tracer:
            return x._value_in(self)
        if kind is float or kind is int or kind is bool or kind is complex:
            return x
        if kind is Size:
            return self.builder.size_value(x)
        if isinstance(x, np.ndarray):
            if type(x) is not np.ndarray:
                raise UnsupportedOpError(f"operand: cannot trace a {type(x).__name__}")
            return self.capture(x)
        if isinstance(x, _core.ArrayBase):
            return self.capture(x)
        if isinstance(x, np.generic):
            return self.builder.constant(x)
        if isinstance(x, bool):
            return bool(x)
        if isinstance(x, int):
            return int(x)
        if isinstance(x, float):
            return float(x)
        if isinstance(x, complex):
            return complex(x)
        if isinstance(x, (list, tuple)):
            return self._sequence(x)
        raise UnsupportedOpError(f"operand: cannot trace a {type(x).__name__}")

    def _sequence(self, items: list[Any] | tuple[Any, ...]) -> Any:
        """numpy.asarray of a nested sequence, which may hold tracers."""
        if not contains_tracer(items):
            return self.constant(np.array(items))
        return self.builder.stack([self.operand(item) for item in items], 0)

    def traced(self, x: Any) -> Tracer:
        """The traced array of an operand that is not a Python number."""
        return Tracer(self, self.operand(x))

    def array(self, x: Any) -> Any:
        """Like `operand`, but always returns a Value, which is not a Python number."""
        value = self.operand(x)
        if type(value) is _Value and value.weak is None:
            return value
        return self.builder.value(value)
