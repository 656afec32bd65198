"""Traces that run in segments: where the function asks for a value, the graph so far is compiled
and run, and the trace goes on with what it stored.

A segment is found again by the pattern of its graph, so that the iterations of a loop share one
program. Python runs at each call; what it sees are values."""

from __future__ import annotations

import functools
import gc
import sys
import time
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rune_jit import _core, recording
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import user_site
from rune_jit.tracing.frames import callers, is_handler_active, replace_locals, user_frame
from rune_jit.tracing.programs import Programs
from rune_jit.tracing.storage import Step, Storage, as_number, base_laid_out_now, is_empty_mask
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer


class SegmentedTrace(Trace):
    """A trace of one call whose values are known whenever they are asked for."""

    is_segmented = True

    def __init__(self, name: str, programs: Programs) -> None:
        super().__init__(name)
        self.builder = _core.GraphBuilder(counts_uses=True)
        self.programs = programs
        self.until: types.CodeType | None = None  # of the frame that called the function
        self.error: BaseException | None = None  # the last one that NumPy raises, too
        self._began = time.thread_time()
        self._before = programs.compiled, programs.compile_thread_time, programs.numpy_time
        self._cuts = 0  # how many there have been
        self._replace_at = 0  # at how many numbers are replaced again after giving up
        self._cut_at = 0  # how many nodes there were at the last one
        self._first_site: Any = None  # where the first node after that was made
        # By integer in an index and size of the axis, its value in this segment.
        self._positions: dict[tuple[int, int], Any] = {}
        self._memory: dict[int, Any] = {}  # arrays and scalars, by id of the value
        self._foreign: dict[int, np.ndarray] = {}  # arrays in it that are not the trace's own
        self._owners: list[tuple[Storage, Any]] = []  # arrays and Arrays that writes must reach
        # Finds the arrays that the function may reach through objects: NumPy reads them.
        self.held_arrays: Callable[[], list[np.ndarray]] = list
        # Puts what a dict has by id in the place of traced arrays that objects have.
        self.replace_held: Callable[[list[Tracer], dict[int, Any]], None] = lambda held, by_id: None
        self._held: list[np.ndarray] | None = None
        # By id of a storage: how many owners there were when it shared memory with no other.
        self._alone: dict[int, int] = {}
        self._exposed: list[tuple[Any, np.ndarray]] = []  # Arrays, with what others may write to
        self.functions_inside: list[tuple[Any, Any]] = []  # weak: copies, and of what

    def note_computed(self) -> None:
        self._computed += 1
        if self._computed % _SHORTEST_LOOP == 0:
            self._give_up_if_slow()

    def note_read(self) -> None:
        """Notes that the source of a function has been read, which takes milliseconds."""
        if self.gave_up or not self._takes_longer_than(_SLOW_READING):
            return
        if 0 < max(map(np.size, self._memory.values()), default=0) < _SMALL_ARRAY:
            self.give_up("its arrays are small, and to read its functions' sources takes long")

    def _takes_longer_than(self, seconds: float) -> bool:
        """Whether this call has taken longer than NumPy would, by at least so many seconds."""
        programs, (_, compile_time, numpy_time) = self.programs, self._before
        elapsed = time.thread_time() - self._began - (programs.compile_thread_time - compile_time)
        return elapsed > seconds + _SLOWER * (programs.numpy_time - numpy_time)

    # What is in memory.

    def in_memory(self, array: Any, is_own: bool = True) -> Any:
        """The value of an array that has its elements now and until it is read."""
        value = self.builder.input(array.dtype, list(np.shape(array)))
        self._memory[value.id] = array
        if not is_own:
            self._foreign[id(array)] = array
        return value

    def argument(self, array: Any, elements: np.ndarray) -> Tracer:
        """The traced array that stands for an argument or a captured array, or an Array with these
        elements: what is written to it reaches the array."""
        tracer = Tracer(self, self.in_memory(elements, is_own=False), scalar=False)
        tracer._writeable = elements.flags.writeable
        storage = tracer._storage
        storage.original = storage.value
        storage.captured = array
        sharing = self._sharing(array)
        self._owners.append((storage, array))
        if self.gave_up:
            self.expose(tracer)
        elif any(s.is_exposed or _is_written(s) for s in sharing):
            self.before_write(storage)
        return tracer

    def _sharing(self, array: Any) -> list[Storage]:
        """Those of arguments and captured arrays that may have memory in common with an array."""
        if not isinstance(array, np.ndarray):
            return []
        owners = [(s, x) for s, x in self._owners if isinstance(x, np.ndarray)]
        return [s for s, x in owners if np.may_share_memory(x, array)]

    def _is_held(self, array: Any) -> bool:
        """Whether an array that the function may find in an object may have memory in common with
        this one."""
        if not isinstance(array, np.ndarray):
            return False
        if self._held is None:
            self._held = self.held_arrays()
        return any(np.may_share_memory(x, array) for x in self._held)

    def before_write(self, storage: Storage) -> None:
        """Lets arguments and captured arrays that share memory with one that is about to be
        written to, and that one, read and write it at once: each shows what the others get. So does
        one that NumPy may read through an object."""
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
        """Makes a traced array or scalar of what NumPy computed."""
        if isinstance(array, np.ndarray) and type(array) is not np.ndarray:
            return array
        if not isinstance(array, (np.ndarray, np.generic)):
            return array
        if not _core.is_supported_dtype(array.dtype):
            return array
        if self.gave_up or is_empty_mask(array):
            return array
        return Tracer(self, self.in_memory(array), scalar=not isinstance(array, np.ndarray))

    def stand_in(self, array: Any) -> Tracer:
        known = self.stand_ins.get(id(array))
        if known is None:
            known = self.stand_ins[id(array)] = self.argument(array, np.asarray(array))
            # Of a device's memory NumPy has a copy that is not, and NumPy cannot run the function.
            is_of_device = isinstance(getattr(array, "_memory", None), _core.DeviceMemory)
            known._writeable |= is_of_device
            self.programs.has_met_device |= is_of_device
        return known

    def capture(self, array: Any) -> Any:
        """The present value of an array that may change before the segment runs."""
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
        """A part of an array in memory: segments that read another part are alike. It is copied if
        it is small. Others become values if slices with other bounds have stood at the same place
        in the code; the array is then computed first. None for other parts."""
        varies = self._varies(step.argument)
        array = self.values([value])[0] if varies else self._memory.get(value.id)
        if not isinstance(array, np.ndarray):
            return None
        part = step.of_array(array)
        if part.size <= _SMALL_PART:
            return self.in_memory(part.copy())
        return self.in_memory(part) if varies else None

    def _varies(self, items: Iterable[Any]) -> bool:
        """Whether the bounds of slices at this place in the code differ. (NumPy's integers tell
        that data decide them.)"""
        bounds = [x for s in items if type(s) is slice for x in (s.start, s.stop)]
        if all(x is None for x in bounds):
            return False
        frame = user_frame()
        site = frame and (frame.f_code, frame.f_lasti, "slice")
        known = self.programs.positions
        if known.setdefault(site, bounds) != bounds or any(
            isinstance(x, np.integer) for x in bounds
        ):
            known[site] = _VARIES
        return known[site] is _VARIES

    def position(self, number: int, axis: int, size: int) -> Any:
        """The value of an integer in an index, for an axis of this size. None if it is part of the
        program, as integers are until another one has stood at the same place in the code: segments
        that read or write another position then are alike."""
        frame = user_frame()
        site = frame and (frame.f_code, frame.f_lasti, axis)
        known = self.programs.positions
        before = known.setdefault(site, number)
        if before == number or not -size <= number < size:
            return None
        known[site] = _VARIES
        number %= size
        at = self._positions.get((number, size))
        if at is None:
            at = self._positions[number, size] = self.in_memory(np.array(number))
            self.builder.assume_range(at, 0, size - 1)
        return at

    # Cuts.

    def values(self, wanted: list[Any]) -> list[Any]:
        """The elements of values, as arrays and NumPy's scalars that must not be written to. Runs
        the segment, which stores whatever later ones may read.

        Raises what the checks of the segment find: IndexError, ValueError."""
        has_checks = self.has_checks
        if not has_checks and (wanted or len(self.builder) == self._cut_at):
            found = [self._memory.get(value.id, _ABSENT) for value in wanted]
            if not any([x is _ABSENT for x in found]):
                return found
        checks: list[tuple[Any, tuple[Any, ...]]] = []
        if has_checks:
            taken = self.builder.take_checks()
            checks += [(value, ("index", axis, size)) for value, axis, size, _ in taken]
            checks += [(value, ("equal", message)) for value, message in self._equal]
            self._equal.clear()
        every = [*wanted, *(value for value, _ in checks)]
        found = self.programs.known.run(self.builder, every, self._memory)
        if type(found) is not list:  # a segment whose program is not known
            segment = found
            results = self.programs.run(segment, self._memory)
            self._memory.update(zip(segment.outputs, results, strict=True))
            _core.mark_stored(self.builder, segment)
            found = [self._memory[value.id] for value in every]
            self._memory = {i: self._memory[i] for i in segment.held}
        self._cut_at, self._first_site = len(self.builder), None
        self.builder.quiet_until = 0
        self._positions.clear()
        try:
            for array, (_, check) in zip(found[len(wanted) :], checks, strict=True):
                _core.check(check, np.asarray(array))
        except Exception as error:
            self.error = error
            raise
        self._cuts += 1
        is_due = self._cuts % _FEW_CUTS == 0 or self.programs.compiled != self._before[0]
        if self.gave_up is not None:
            if self._cuts >= self._replace_at:
                self._replace_traced()
        elif is_due and not self.done:
            self._give_up_if_slow()
        return found[: len(wanted)]

    def after_operation(self) -> None:
        """Cuts where a check waits whose error the function may handle, and in long loops: at the
        place where the segment began, so that the segments of a loop are alike."""
        has_checks = self.has_checks
        if has_checks and is_handler_active():
            self.values([])
            has_checks = self.has_checks
        pending = len(self.builder) - self._cut_at
        if pending > _SHORTEST_LOOP or self._first_site is None:
            frame = user_frame()
            site = frame and (frame.f_code, frame.f_lasti)
            if self._first_site is None:
                self._first_site = site
            elif site == self._first_site or pending > _LONGEST_SEGMENT:
                self.values([])
                has_checks = self.has_checks
        is_quiet = self._first_site is not None and not has_checks
        self.builder.quiet_until = self._cut_at + _SHORTEST_LOOP if is_quiet else 0

    def _give_up_if_slow(self) -> None:
        """Lets NumPy compute the rest of the call if segments do not pay."""
        programs, compiled = self.programs, self._before[0]
        if programs.compiled - compiled > _MOST_COMPILED:
            self.give_up(f"it made more than {_MOST_COMPILED} programs in one call")
        elif programs.compiled > compiled and not programs.pay:
            self.give_up("its programs take longer to compile than they save in many calls")
        elif self._takes_longer_than(_SLOW):
            self.give_up("its operations take less time than tracing them")

    def give_up(self, why: str) -> None:
        """Lets NumPy compute the rest of the call."""
        if self.gave_up:
            return
        self.gave_up = why
        traced = [x for x in gc.get_referrers(self) if type(x) is Tracer]
        self.values([x._value_in(self) for x in traced if x._storage.array is None])
        for x in traced:
            if not x._storage.scalar:
                self.expose(x)
        self._replace(traced)

    def _replace_traced(self) -> None:
        self._replace([x for x in gc.get_referrers(self) if type(x) is Tracer])

    def _replace(self, traced: list[Tracer]) -> None:
        """Gives variables of functions that run NumPy's arrays and numbers, and objects numbers.
        Traced arrays elsewhere give NumPy's at the next operation, but traced numbers give traced
        ones, which takes long: those that are operands now do so until the next time."""
        self._replace_at = sys.maxsize
        by_id = dict(zip(map(id, traced), self.finish(traced), strict=True))
        for frame in () if self.until is None else callers(self.until):
            replace_locals(frame, lambda x: by_id.get(id(x), x) if type(x) is Tracer else x)
        self.replace_held([x for x in traced if x._storage.scalar], by_id)
        self._replace_at = 2 * self._cuts

    def note_apart(self, seconds: float) -> None:
        """Notes how long a loop has run that is a program of its own."""
        self._began += seconds

    def take_back(self, storage: Storage) -> None:
        """Lets segments read again the array that `expose` has given a storage."""
        memory: Any = storage.array
        owner = self._owned(storage)
        if owner is not None and not isinstance(owner, np.ndarray):
            storage.touched()  # an Array of a device
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
        """The elements of a value that Python asks for; `what` it is for profiles."""
        if (recorder := recording.active) is None:
            return self.values([value])[0]
        what = f"{what or value.dtype.name + str(list(value.shape))} at {_user_line()}"
        run = functools.partial(self.values, [value])
        return recorder.timed("read", self.name, what, run)[0]

    def flush(self) -> None:
        """Runs what waits, and writes to arguments and captured arrays what has been written."""
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
            if owner._memory is not memory:  # a copy of a device's
                _core.write_array(owner, memory)

    def _keep(self, array: np.ndarray) -> None:
        """Copies what has been read from an array that is about to change."""
        for i, held in self._memory.items():
            if isinstance(held, np.ndarray) and np.may_share_memory(held, array):
                self._memory[i] = held.copy()

    def expose(self, tracer: Tracer) -> None:
        """Gives a traced array memory that others may read and write from now on."""
        storage = tracer._storage
        if storage.array is not None:
            storage.is_exposed = True
            return
        owner = self._owned(storage)
        memory = getattr(owner, "_memory", owner)
        if isinstance(memory, np.ndarray):
            self.flush()
            self._keep(memory)
        else:
            memory = np.array(self.values([storage.current(self)])[0], order="C")
            lies = base_laid_out_now(tracer)
            if lies is not None and not lies.flags.c_contiguous:
                memory, elements = np.empty_like(lies, subok=False), memory
                memory[...] = elements
        if storage.array is not None:  # NumPy has taken over meanwhile
            return
        if owner is not None and isinstance(owner, _core.ArrayBase):
            self._exposed.append((owner, memory))
        storage.array, storage.is_exposed = memory, True
        storage.touched()

    # What a trace of a whole program does otherwise.

    def need_numbers(self, values: Any) -> None:
        pass

    def must_be_equal(self, a: Any, b: Any, message: str) -> None:
        super().must_be_equal(a, b, message)
        self.builder.quiet_until = 0

    def assume_size(self, value: Any, guess: int | None = None) -> int:
        return int(self._read(value, "a size or position"))

    # The end.

    def forget_names(self) -> None:
        """Forgets the traced arrays that stand for others, and what an error's traceback holds."""
        self.error = None
        self.stand_ins.clear()
        self._iotas.clear()
        self.rebind = None

    def finish(self, leaves: list[Any]) -> list[Any]:
        """The leaves of a result, with arrays and numbers instead of traced ones."""
        self.flush()
        traced = [x for x in leaves if isinstance(x, Tracer)]
        scalars = [x for x in traced if x._storage.scalar and x._storage.array is None]
        storages = {id(x._storage): x._storage for x in traced if not x._storage.scalar}
        storages = {i: x for i, x in storages.items() if x.array is None and self._owned(x) is None}
        values = [x._value_in(self) for x in scalars]
        found = self.values([*values, *(x.current(self) for x in storages.values())])
        taken: set[int] = {*self._foreign, *map(id, self._memory.values())}
        for storage, array in zip(storages.values(), found[len(scalars) :], strict=True):
            is_shared = id(array) in taken or not isinstance(array, np.ndarray)
            storage.array = np.array(array) if is_shared else array
            storage.is_exposed = True
            taken.add(id(storage.array))
        numbers = {
            id(x): as_number(value, array)
            for x, value, array in zip(scalars, values, found, strict=False)
        }
        return [self._outside(x, numbers) if isinstance(x, Tracer) else x for x in leaves]

    def _owned(self, storage: Storage) -> Any:
        """The argument or captured array that a storage is."""
        return next((array for known, array in self._owners if known is storage), None)

    def _outside(self, x: Tracer, numbers: dict[int, Any]) -> Any:
        if id(x) in numbers:
            return numbers[id(x)]
        if x._storage.scalar:  # of a loop's trace that has ended
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
            return x._array()
        except ValueError:  # reshaped, and laid out otherwise than the trace has assumed
            return np.array(self.values([x._value_in(self)])[0])


# When a call goes on with NumPy: after so many compilations, or after so many seconds (more while
# it reads sources, which later calls do not) and times NumPy's estimated time.
_MOST_COMPILED = 24
_SLOW, _SLOW_READING, _SLOWER = 0.2, 0.5, 2.0
_SMALL_ARRAY = 10_000  # elements: larger ones may take NumPy long before a segment has told
# After so many cuts a call asks the clock, whose answer may take as long as an operation.
_FEW_CUTS = 8
# How many nodes a segment of a loop without reads has at least, and any segment at most.
_SHORTEST_LOOP, _LONGEST_SEGMENT = 100, 1000
_VARIES, _ABSENT = object(), object()
# How many elements are copied rather than read by a segment.
_SMALL_PART = 64


def _user_line() -> str:
    return "{}:{}".format(*user_site())


def _is_written(storage: Storage) -> bool:
    """Whether an argument or captured array has other elements than its memory."""
    return storage.value is not None and storage.value.id != storage.original.id
