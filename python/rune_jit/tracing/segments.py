"""Traces in segments. Where the function asks for a value, the graph so far (a segment) is compiled
and run, and the trace goes on with the stored values. The pattern of the graph is the key of its
program, so that the iterations of a loop share one. Python runs the function at each call."""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rune_jit import _core, recording
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import user_site
from rune_jit.tracing.frames import callers, is_handler_active, replace_locals, user_frame
from rune_jit.tracing.layouts_now import laid_out_as_numpys
from rune_jit.tracing.programs import Programs
from rune_jit.tracing.references import held_elsewhere
from rune_jit.tracing.storage import Step, Storage, as_number, is_empty_mask
from rune_jit.tracing.timed import FEW_CUTS, SHORTEST_LOOP, TimedTrace
from rune_jit.tracing.tracer import Tracer
from rune_jit.tracing.undoing import Writes, do_checks_hold, first_wrong


class SegmentedTrace(TimedTrace):
    """A trace of one call, in which Python may ask for any value."""

    is_segmented = True

    def __init__(self, name: str, programs: Programs) -> None:
        super().__init__(name, programs)
        self.builder = _core.GraphBuilder(counts_uses=True)
        self.writes = Writes(self.builder)
        self.until: types.CodeType | None = None  # of rune_jit's frame that called the function
        self.error: BaseException | None = None  # the last one that NumPy would raise, too
        self._cuts = 0  # how many segments have run
        self._replace_at = 0  # the value of _cuts at which traced numbers are replaced again
        self._cut_at = 0  # number of nodes at the end of the last segment
        self._first_site: Any = None  # where this segment's first node was made
        # Values of integers in indices in this segment, by (integer, size of the axis).
        self._positions: dict[tuple[int, int], Any] = {}
        self._foreign: dict[int, np.ndarray] = {}  # arrays in _memory from outside
        self._owners: list[tuple[Storage, Any]] = []  # outside arrays, which get writes
        # Finds the arrays that the function may reach through objects. NumPy may read them.
        self.held_arrays: Callable[[], list[np.ndarray]] = list
        # Replaces traced arrays in objects by the values of a dict, whose keys are ids.
        self.replace_held: Callable[[list[Tracer], dict[int, Any]], None] = lambda held, by_id: None
        self._held: list[np.ndarray] | None = None
        # By id of a storage that shares memory with no other: the number of owners at that time.
        self._alone: dict[int, int] = {}
        self._exposed: list[tuple[Any, np.ndarray]] = []  # Arrays, and their memory
        self._in_numpy: dict[int, np.ndarray] = {}  # the memory that NumPy may use, by id
        self.functions_inside: list[tuple[Any, Any]] = []  # weak references: copies, originals
        self.stand_ins_inside: list[Any] = []

    # Values in memory.

    def in_memory(self, array: Any, is_own: bool = True) -> Any:
        """The value of an array whose elements do not change until the segment has run."""
        value = self.builder.input(array.dtype, list(np.shape(array)))
        self._memory[value.id] = array
        if not is_own:
            self._foreign[id(array)] = array
        return value

    def argument(self, array: Any, elements: np.ndarray) -> Tracer:
        """The traced array in place of an argument or captured array, which gets the writes.
        `elements` are the array itself, or the elements of a rune_jit.Array."""
        tracer = Tracer(self, self.in_memory(elements, is_own=False), scalar=False)
        tracer._writeable = elements.flags.writeable
        storage = tracer._storage
        storage.original = storage.value
        storage.captured = array
        sharing = self._sharing(array)
        self._owners.append((storage, array))
        if self.gave_up:
            self.expose(tracer)
        elif any(s.is_exposed or _is_written(s) for s in sharing) or self._is_held(array):
            self.before_write(storage)
        return tracer

    def _sharing(self, array: Any) -> list[Storage]:
        """The storages of arguments and captured arrays that may share memory with an array."""
        if not isinstance(array, np.ndarray):
            return []
        owners = [(s, x) for s, x in self._owners if isinstance(x, np.ndarray)]
        return [s for s, x in owners if np.may_share_memory(x, array)]

    def _is_held(self, array: Any) -> bool:
        """Whether an array that the function may find in an object may share memory with this
        one."""
        if not isinstance(array, np.ndarray):
            return False
        if self._held is None:
            self._held = self.held_arrays()
        return any(np.may_share_memory(x, array) for x in self._held)

    def before_write(self, storage: Storage) -> None:
        """Called before a write to an argument or captured array. If others share its memory, or
        NumPy may read it through an object, all of these read and write the memory from now on."""
        if self._alone.get(id(storage)) == len(self._owners):
            return
        sharing = self._sharing(storage.captured)
        if len(sharing) < 2 and not self._is_held(storage.captured):
            self._alone[id(storage)] = len(self._owners)
            return
        self.flush()
        for x in sharing:
            if x.array is None:
                self._keep(x.captured)
                x.array, x.is_exposed = x.captured, True
                x.touched()

    def result(self, array: Any) -> Any:
        """Makes a traced array or scalar of a result of NumPy."""
        if type(array) is not np.ndarray and not isinstance(array, np.generic):
            return array
        if not _core.is_supported_dtype(array.dtype) or self.gave_up or is_empty_mask(array):
            return array
        made = Tracer(self, self.in_memory(array), scalar=not isinstance(array, np.ndarray))
        if not array.flags.c_contiguous:
            made._storage.laid_out_by = (lambda: [array]), 0
        return made

    def stand_in(self, array: Any) -> Any:
        known = self.stand_ins.get(id(array))
        if known is None and self.gave_up and type(array) is np.ndarray:
            return array
        if known is None:
            known = self.stand_ins[id(array)] = self.argument(array, np.asarray(array))
            # NumPy's copy of a device's memory is read-only. And NumPy cannot run the function.
            if isinstance(getattr(array, "_memory", None), _core.DeviceMemory):
                known._writeable = self.programs.has_met_device = True
        return known

    def capture(self, array: Any) -> Any:
        """The present value of a captured array, which may change before the segment runs."""
        if not _core.is_supported_dtype(array.dtype):
            raise UnsupportedOpError(f"operand: cannot trace arrays of {array.dtype}")
        if id(array) in self.stand_ins or not isinstance(array, np.ndarray):
            return self.stand_in(array)._value_in(self)
        if any(map(_is_written, self._sharing(array))):
            self.flush()
        return self.snapshot(array)

    def snapshot(self, array: np.ndarray) -> Any:
        return self.in_memory(array.copy())

    def constant(self, array: np.ndarray) -> Any:
        value = self.in_memory(array)
        if array.dtype.kind in "iu" and 0 < array.size < 1000:
            self.builder.assume_range(value, int(array.min()), int(array.max()))
        return value

    def part_in_memory(self, step: Step, value: Any) -> Any:
        """A part of an array as an input, so that segments that read other parts share a program.
        Small parts of arrays in memory are copied. Large parts become inputs if slices at this
        place in the code have had other bounds; the array is then computed first. None for other
        parts."""
        varies = self._varies(step.argument)
        array = self.values([value])[0] if varies else self._memory.get(value.id)
        if not isinstance(array, np.ndarray):
            return None
        part = step.of_array(array)
        if part.size <= _SMALL_PART:
            return self.in_memory(part.copy())
        return self.in_memory(part) if varies else None

    def _varies(self, items: Iterable[Any]) -> bool:
        """Whether the bounds of slices at this place in the code differ between executions. (This
        is assumed for NumPy's integers, which come from data.)"""
        bounds = [x for s in items if type(s) is slice for x in (s.start, s.stop)]
        if all(x is None for x in bounds):
            return False
        frame = user_frame()
        site = frame and (frame.f_code, frame.f_lasti, "slice")
        surely = any(isinstance(x, np.integer) for x in bounds)
        return self.programs.varies(site, bounds, surely)

    def position(self, number: int, axis: int, size: int) -> Any:
        """The value of an integer in an index, for an axis of this size. None if the integer is
        part of the program: it is, until the same place in the code has used another integer."""
        frame = user_frame()
        site = frame and (frame.f_code, frame.f_lasti, axis)
        if not -size <= number < size or not self.programs.varies(site, number):
            return None
        number %= size
        at = self._positions.get((number, size))
        if at is None:
            at = self._positions[number, size] = self.in_memory(np.array(number))
            self.builder.assume_range(at, 0, size - 1)
        return at

    # Cuts.

    def values(self, wanted: list[Any]) -> list[Any]:
        """The elements of values, as arrays and NumPy's scalars that must not be written to. If
        they are not in memory, runs the segment, which stores all values that later segments may
        read. Raises the errors that its checks find: IndexError, ValueError."""
        has_checks = self.has_checks
        if not has_checks and (wanted or len(self.builder) == self._cut_at):
            found = [self._memory.get(value.id, _ABSENT) for value in wanted]
            if not any([x is _ABSENT for x in found]):
                return found
        checks: list[tuple[Any, tuple[Any, ...], int | None]] = []
        if has_checks:
            taken = self.builder.take_checks()
            checks += [(value, ("index", axis, size), at) for value, axis, size, _, at in taken]
            checks += [(value, ("equal", message), None) for value, message in self._equal]
            checks.sort(key=lambda check: check[0].id)  # as Python would make them
            self._equal.clear()
        every = [*wanted, *(value for value, *_ in checks)]
        before = dict(self._memory) if checks else self._memory
        found = self.programs.known.run(self.builder, every, self._memory)
        if type(found) is not list:  # a segment, if its program is not known
            segment = found
            results = self.programs.run(segment, self._memory)
            self._memory.update(zip(segment.outputs, results, strict=True))
            _core.mark_stored(self.builder, segment)
            found = [self._memory[value.id] for value in every]
            self._memory = {i: self._memory[i] for i in segment.held}
        writes, self.writes = self.writes, Writes(self.builder)
        self._cut_at, self._first_site = len(self.builder), None
        self.builder.quiet_until = 0
        self._positions.clear()
        for array, (value, check, at) in zip(found[len(wanted) :], checks, strict=True):
            try:
                if at is not None and array:
                    self._memory = before | self._memory
                    array = first_wrong(self.values([self.builder.with_id(at)])[0], check[2])
                _core.check(check, np.asarray(array))
            except Exception as error:
                self.error, self._memory = error, before | self._memory
                writes.undo_after(value.id)
                self.flush()  # (the operations before have run)
                raise
        self._cuts += 1
        is_due = self._cuts % FEW_CUTS == 0 or self.programs.compiled != self._before[0]
        if self.gave_up is not None:
            if self._cuts >= self._replace_at:
                self.replace(self.traced_arrays())
        elif is_due and not self.done:
            self.give_up_if_slow()
        return found[: len(wanted)]

    def after_operation(self) -> None:
        """Called after each operation. Ends the segment if it has a check that fails, or one of
        which this is not known and whose error the function may handle. Also ends it in long loops,
        at the place where it began, so that the segments of a loop are equal."""
        if has_checks := self.has_checks:
            holds = do_checks_hold(self.builder.checks, self._memory)
            if holds and not (self._equal or self._may_raise):
                self.builder.take_checks()
            elif holds is False or is_handler_active():
                self.values([])
            has_checks = self.has_checks
        pending = len(self.builder) - self._cut_at
        if pending > SHORTEST_LOOP or self._first_site is None:
            frame = user_frame()
            site = frame and (frame.f_code, frame.f_lasti)
            if self._first_site is None:
                self._first_site = site
            elif site == self._first_site or pending > _LONGEST_SEGMENT:
                self.values([])
                has_checks = self.has_checks
        is_quiet = self._first_site is not None and not has_checks
        self.builder.quiet_until = self._cut_at + SHORTEST_LOOP if is_quiet else 0

    def give_up(self, why: str) -> None:
        """Lets NumPy compute the rest of the call."""
        if self.gave_up:
            return
        self.gave_up = why
        traced = self.traced_arrays()
        self.values([x._value_in(self) for x in traced if x._storage.array is None])
        for x in (x for x in traced if not x._storage.scalar):
            self.expose(x)
        self.replace(traced)
        self.callees.clear()  # (the next lookup may end the trace)

    def traced_arrays(self) -> list[Tracer]:
        return [x for x in gc.get_referrers(self) if type(x) is Tracer]

    def replace(self, traced: list[Tracer]) -> None:
        """Puts NumPy's arrays and numbers into the variables of running functions, and numbers into
        objects. Operations on traced arrays elsewhere give NumPy's arrays. Those on traced numbers
        give traced numbers, which are slow. So this is called again from time to time."""
        self._replace_at = sys.maxsize
        by_id = self.replace_in_frames(traced)
        if held := [x for x in held_elsewhere(traced) if x._storage.scalar]:
            self.replace_held(held, by_id)
        self._replace_at = 2 * self._cuts

    def replace_in_frames(self, traced: list[Tracer]) -> dict[int, Any]:
        """Puts NumPy's arrays and numbers into the variables of running functions. Returns them by
        id of the traced ones."""
        by_id = dict(zip(map(id, traced), self.finish(traced), strict=True))
        for frame in () if self.until is None else callers(self.until):
            replace_locals(frame, lambda x: by_id.get(id(x), x) if type(x) is Tracer else x)
        return by_id

    def take_back(self, storage: Storage) -> None:
        """Undoes `expose`: segments read the storage's array again."""
        memory: Any = storage.array
        owner = self._owned(storage)
        if owner is not None and not isinstance(owner, np.ndarray):
            storage.touched()  # an Array in a device's memory
            return
        storage.value = self.in_memory(memory, is_own=owner is None)
        storage.original = storage.value
        storage.array, storage.is_exposed = None, False
        storage.version += 1

    def run_now(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Calls a function on NumPy's arrays, at its place between programs."""
        try:
            if (recorder := recording.active) is None:
                return function(*args, **kwargs)
            run = functools.partial(function, *args, **kwargs)
            what = getattr(function, "__name__", type(function).__name__)
            return recorder.timed("inside", self.name, f"{what} at {_user_line()}", run)
        except Exception as error:
            self.error = error
            raise

    def value_of(self, tracer: Tracer) -> np.ndarray:
        """The elements of a traced array, which must not be written to."""
        return np.asarray(self._read(tracer._value_in(self)))

    def _read(self, value: Any, what: str = "") -> Any:
        """The elements of a value that Python asks for. `what` is its name in profiles."""
        if (recorder := recording.active) is None:
            return self.values([value])[0]
        what = f"{what or value.dtype.name + str(list(value.shape))} at {_user_line()}"
        run = functools.partial(self.values, [value])
        return recorder.timed("read", self.name, what, run)[0]

    def flush(self) -> None:
        """Runs the pending operations, and copies new contents to arguments and captured arrays."""
        written = [(storage, array) for storage, array in self._owners if _is_written(storage)]
        for (storage, array), new in zip(
            written, self.values([storage.value for storage, _ in written]), strict=True
        ):
            storage.original = storage.value
            if isinstance(array, _core.ArrayBase):
                memory = array._memory  # type: ignore[attr-defined]
                if isinstance(memory, np.ndarray):
                    self._keep(memory)
                _core.write_array(array, np.asarray(new))
                continue
            self._keep(array)
            array[...] = new
        for owner, memory in self._exposed:
            if owner._memory is not memory:  # a copy of a device's memory
                _core.write_array(owner, memory)

    def _keep(self, array: np.ndarray) -> None:
        """Copies all parts of an array in _memory, because the array is about to change."""
        for i, held in self._memory.items():
            if isinstance(held, np.ndarray) and np.may_share_memory(held, array):
                self._memory[i] = held.copy()

    def expose(self, tracer: Tracer) -> None:
        """Gives a traced array memory that NumPy may read and write from now on."""
        storage = tracer._storage
        if storage.array is not None:
            storage.is_exposed = True
            self._in_numpy[id(storage.array)] = storage.array
            return
        owner = self._owned(storage)
        memory = getattr(owner, "_memory", owner)
        if isinstance(memory, np.ndarray):
            self.flush()
            self._keep(memory)
        else:
            memory = np.array(self.values([storage.current(self)])[0], order="C")
            memory = laid_out_as_numpys(tracer, memory)
        if storage.array is not None:  # `values` has let NumPy take over
            return
        if owner is not None and isinstance(owner, _core.ArrayBase):
            self._exposed.append((owner, memory))
        storage.array, storage.is_exposed = memory, True
        self._in_numpy[id(memory)] = memory
        storage.touched()

    # Methods with another meaning than in a trace of a whole program.

    def need_numbers(self, values: Any) -> None:
        pass

    def must_be_equal(self, a: Any, b: Any, message: str) -> None:
        super().must_be_equal(a, b, message)
        self.builder.quiet_until = 0

    def assume_size(self, value: Any, guess: int | None = None) -> int:
        return int(self._read(value, "a size or position"))

    # The end.

    def forget_names(self) -> None:
        """Forgets the traced arrays in place of captured ones, and the last error with its
        traceback."""
        self.error = None
        self.stand_ins.clear()
        self._iotas.clear()
        self.rebind = None

    def finish(self, leaves: list[Any]) -> list[Any]:
        """The leaves of a result, with arrays and numbers in place of traced ones."""
        self.flush()
        traced = [x for x in leaves if isinstance(x, Tracer)]
        for x in traced:
            if x._trace is not self and x._storage.array is None:
                x._check_trace(self)
        scalars = [x for x in traced if x._storage.scalar and x._storage.array is None]
        storages = {id(x._storage): x._storage for x in traced if not x._storage.scalar}
        storages = {i: x for i, x in storages.items() if x.array is None and self._owned(x) is None}
        tracers = {id(x._storage): x for x in traced}  # (the segment may change the storages)
        values = [x._value_in(self) for x in scalars]
        found = self.values([*values, *(x.current(self) for x in storages.values())])
        taken: set[int] = {*self._foreign, *map(id, self._memory.values())}
        for storage, array in zip(storages.values(), found[len(scalars) :], strict=True):
            is_shared = id(array) in taken or not isinstance(array, np.ndarray)
            array = np.array(array, order="C") if is_shared else array
            storage.array = laid_out_as_numpys(tracers[id(storage)], array)
            storage.is_exposed = True
            taken.add(id(storage.array))
        triples = zip(scalars, values, found, strict=False)
        numbers = {id(x): as_number(value, array) for x, value, array in triples}
        return [self._outside(x, numbers) if isinstance(x, Tracer) else x for x in leaves]

    def _owned(self, storage: Storage) -> Any:
        """The argument or captured array that a storage represents, or None."""
        return next((array for known, array in self._owners if known is storage), None)

    def has_exposed(self, x: np.ndarray) -> bool:
        """Whether x is the memory of a traced array that NumPy may read and write."""
        return id(x) in self._in_numpy

    def _outside(self, x: Tracer, numbers: dict[int, Any]) -> Any:
        if id(x) in numbers:
            return numbers[id(x)]
        if x._storage.scalar:  # a result of a loop that is a program of its own
            number: Any = x._array()
            return number[()] if x._value is None else as_number(x._value, number)
        owner = self._owned(x._storage)
        if owner is not None and not x._steps:
            return owner
        if owner is not None and x._storage.array is None:
            if isinstance(owner, _core.ArrayBase):
                return np.array(self.values([x._value_in(self)])[0])
            x._storage.array, x._storage.is_exposed = owner, True
        try:
            array: Any = x._array()
        except ValueError:  # a reshape that copies, because of the array's layout
            array = np.array(self.values([x._value_in(self)])[0])
        if x._steps:  # (so that it is one object, even if it is asked for again)
            x._become(array, is_exposed=True)
        return array


# The most nodes of a segment.
_LONGEST_SEGMENT = 1000
_ABSENT = object()
_SMALL_PART = 64  # elements; larger parts are not copied


def _user_line() -> str:
    return "{}:{}".format(*user_site())


def _is_written(storage: Storage) -> bool:
    """Whether the trace has written to an argument or captured array, and not yet to its memory."""
    return storage.value is not None and storage.value.id != storage.original.id
