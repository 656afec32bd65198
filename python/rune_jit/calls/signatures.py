"""The signatures of a jitted function. Each has an entry: a program, segments or NumPy."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import trees
from rune_jit.arrays.array import Array
from rune_jit.backends.compilation import Stopwatch
from rune_jit.calls.arguments import Call
from rune_jit.calls.cache import Cache
from rune_jit.calls.causes import Causes
from rune_jit.calls.compiler import Compiler
from rune_jit.calls.constants import Constants
from rune_jit.calls.costs import Costs
from rune_jit.calls.entries import Fallback, Postponed, Untraced, way
from rune_jit.calls.paths import Paths, UncompiledWay
from rune_jit.calls.reports import Reports
from rune_jit.calls.segmented import Segmented
from rune_jit.calls.sharing import Sharing, alike
from rune_jit.calls.state import StateFound, States, WithState
from rune_jit.calls.traced import Raised, Traced
from rune_jit.calls.trial import Trial
from rune_jit.calls.untried import FEW, Untried
from rune_jit.errors import (
    ConcretizationError,
    NumPyOnlyError,
    SlowCompilationWarning,
    StateChangedError,
    UnsupportedOpError,
)
from rune_jit.tracing.context import ValuesNeeded, is_own, user_site
from rune_jit.tracing.tracebacks import forget_frames
from rune_jit.tracing.tracer import are_atomic

# A program of more nodes is compared with NumPy. (Its loops have been unrolled.)
_LARGE = 2000
# So is a program with more guards, or with guards of more items of containers, which each call
# compares.
_MANY_GUARDS = 200
_MANY_ITEMS = 1000
# So is a program that takes and returns more of Python's numbers.
_MANY_NUMBERS = 8
# A program that computes only Python's numbers, with at most so many nodes, is not worth compiling.
# Python takes less time than a call of a program.
_FEW_NODES = 32
_FEW_NUMBERS = "it computes a few of Python's numbers, which takes less time than calling a program"
# If a function has had so many more traces than calls without a trace, NumPy runs the first calls
# of new signatures.
_MOST_MISSES = 4
# If NumPy runs the calls of so many more signatures of a kind of calls after a trace than programs
# do, it runs those of new signatures without one.
_MOST_LOST = 8
# How many calls a program may leave to Python.
_MOST_LEFT = 3
# For how many keys it is remembered that another key's program has served one call.
_MOST_USED_ONCE = 64


class Signatures:
    """The entries of a function, by the keys of calls (Call.key). An entry is a program
    (CompiledCall, WithState, WithNumbers or Paths), a Segmented, or a Fallback, which runs on
    NumPy. At most `size` entries are kept."""

    def __init__(self, compiler: Compiler, size: int, reports: Reports) -> None:
        self.cache = Cache(size)
        self.causes = Causes()
        self.hits = self.misses = 0
        self.unproved = 0  # hits of entries that are or may be slower than NumPy
        self.fast_hits = 0  # calls that ran without this object; the owner counts them
        self._compiler, self._reports = compiler, reports
        self._name = compiler.name
        self.clear()

    def clear(self) -> None:
        """Forgets every signature."""
        self.cache.clear()
        self.causes.clear()
        self._constants, self._states, self._sharing = Constants(), States(), Sharing()
        self._changed_state: set[Any] = set()  # kinds of calls whose first trace changed state
        self._refuted: dict[Any, int] = {}  # by key: how often an assumption about data failed
        self._notes: dict[Any, list[str]] = {}  # by key: what explain() says of the program
        # How many calls a program with LoopPlans.leaves_usual has left to Python, by key.
        self._left: dict[Any, int] = {}
        self._used_once: dict[Any, bool] = {}  # keys that another key's program served
        # Trials of programs that may be slower than NumPy (_may_be_slow), by key.
        self._trials: dict[Any, Trial] = {}
        self._judged: set[Any] = set()  # keys whose trials are over
        # By types of leaves: for how many more signatures NumPy runs the calls than programs do.
        self._lost: dict[Any, int] = {}
        self._is_due: set[Any] = set()  # keys whose programs are made, however large they are
        self._too_large: dict[Any, str] = {}  # by kind of calls: why they were postponed
        self._wanted: set[Any] = set()  # keys that are traced in any case
        # How many calls a program with limited room for items has left to Python, by key.
        self._short: dict[Any, int] = {}
        self.untried = Untried()
        self._costs = Costs()

    def describe(self) -> list[str]:
        """A line for each signature, which says how its calls run, and lines about its program."""
        entries = self.cache.by_key()
        postponed = (x.reason for x in entries.values() if isinstance(x, Untraced))
        reasons = dict.fromkeys((*self.untried.reasons, *postponed))
        lines = [f"{self._name}: on NumPy: {why}" for why in reasons]
        for key, entry in entries.items():
            if isinstance(entry, Untraced):
                continue
            lines.append(f"{self._name}: {way(entry)[1]}")
            if type(entry) is not Fallback:
                lines += [f"  {line}" for line in self._notes.get(key, [])]
            if isinstance(entry, Segmented):
                lines += [f"  a segment {report}" for report in entry.programs.reports]
        return lines

    # Calls with further parts of their keys.

    def of(self, call: Call) -> Call:
        """The call with the constants that traces of its signature need."""
        return self._constants.of(call)

    def with_state(self, call: Call) -> Call:
        """The call with these constants, and with the contents of the places that such calls
        assign."""
        return self._constants.of(self._states.of(self._name, call))

    # Entries.

    def entry(self, call: Call) -> tuple[Call, Any, bool]:
        """The call with the constants that it needs, its entry, and whether the entry was made now.
        For a call that runs on NumPy only this time, the entry is None or a Raised."""
        evictions = self.cache.evictions
        while True:
            make = functools.partial(self._make, call)
            try:
                fresh, entry = False, self.cache.peek(call.key) or self._shared(call)
                if entry is None:
                    entry, fresh = self.cache.get(call.key, make)
            except ValuesNeeded as needed:
                call = self._constants.add(call, needed.leaves)
                forget_frames(needed)
                continue
            except StateFound:
                call = self.with_state(call.plain or call)
                continue
            except Raised as raised:
                return call, raised, False
            if self.cache.evictions != evictions:
                known = self.cache.by_key()
                self._notes = {key: lines for key, lines in self._notes.items() if key in known}
                self._judged &= known.keys()
                self._states.keep(known)
                self._sharing.keep(known)
            return call, entry, fresh

    def traced(self, call: Call) -> tuple[Call, Traced]:
        """The trace of a call, and the call with the constants that the trace needs."""
        while True:
            try:
                return call, self._compiler.trace(call, self._refuted.get(call.key, 0))
            except ValuesNeeded as needed:
                call = self._constants.add(call, needed.leaves)
            except Raised as raised:
                error = raised.error
                break
        raise error

    def trial(self, call: Call) -> Trial | None:
        """The trial of the call's program against NumPy, if it is not over."""
        return self._trials.get(call.key) if self._trials else None

    def end_trial(self, call: Call) -> None:
        """Makes NumPy the entry of a call's key if it was faster."""
        self._judged.add(call.key)
        trial = self._trials.pop(call.key, None)  # (another thread may have ended it)
        if trial is None:
            return
        reason = trial.verdict()
        self._count(call, bool(reason))
        if reason:
            self.cache.replace(call.key, Fallback(reason))
            self.unproved += trial.calls

    def _count(self, call: Call, is_lost: bool) -> None:
        """Counts a traced signature whose calls NumPy runs if `is_lost`, and else a program."""
        types = call.kind[0]
        self._lost[types] = max(0, self._lost.get(types, 0) + (1 if is_lost else -1))

    def compile_now(self, call: Call, entry: Postponed) -> None:
        """Lets the next call like this one make its program, however large it is."""
        self._is_due.add(call.key)
        self.cache.discard(call.key, entry)

    def replace_stale(self, call: Call, entry: Any) -> Call:
        """Forgets a program that is out of date, or adds the program of another way. Returns the
        call to look up again."""
        self.causes.stale(call.key, entry)
        if isinstance(entry, Paths) and entry.is_current() and not entry.is_untried:
            try:
                if self._add_path(call, entry):
                    return call
            except (ValuesNeeded, StateFound) as found:  # for all ways
                self.cache.discard(call.key, entry)
                if isinstance(found, ValuesNeeded):
                    call = self._constants.add(call, found.leaves)
                else:
                    call = self.with_state(call.plain or call)
                self._wanted.add(call.key)
                return call
        self.cache.discard(call.key, entry)
        if entry.is_current():
            self._refuted[call.key] = self._refuted.get(call.key, 0) + 1
            self._sharing.forget(call)
            return call
        why = self._states.note_changes(call, entry, self.hits + self.fast_hits)
        if why and self._reports.may_fall_back:
            error = UnsupportedOpError(f"{self._name}: {why}")
            self.cache.replace(call.key, self._compiler.segmented(error, call.signature))
            return call
        return self.with_state(call.plain or call)

    # Making entries.

    def _shared(self, call: Call) -> Any:
        """An entry with the program of calls that differ from this one only in objects, if there is
        one that can run this call. It is kept from the second such call on, because some objects
        are used only once."""
        entry = None if self._constants.are_refused(call) else self._entry_of_others(call)
        if entry is None:
            return None
        if self._used_once.pop(call.key, False):
            self.cache.add(call.key, entry)
            return entry
        self._used_once[call.key] = True
        for oldest in list(self._used_once)[:-_MOST_USED_ONCE]:
            for known in (self._used_once, self._trials, self._notes):
                known.pop(oldest, None)
            self._states.discard(oldest)
            self._constants.discard(oldest)
        return entry

    def _entry_of_others(self, call: Call) -> Any:
        keys: dict[Any, Any] = {}
        for key in self._sharing.keys_of_programs(call, keys):
            known = self.cache.peek(key)
            if isinstance(known, Fallback) and not known.until_it_returns:  # NumPy was faster
                return known
        if slots := self._sharing.slots(call, keys):
            self._states.add(call, slots)
        programs, may_fall_back = [], self._reports.may_fall_back
        for shared, traced in self._sharing.find(call, keys):
            trial = self._trials.get(shared.call.key)
            if trial is None and may_fall_back and shared.call.key not in self._judged:
                trial = Trial(traced.has_loops)  # because finding it takes time, too
                self._trials[shared.call.key] = trial
            if trial is not None:
                if trial.is_over:
                    self.end_trial(shared.call)
                    return self._entry_of_others(call)
                self._trials[call.key] = trial
            self._notes[call.key] = traced.loops
            programs.append(self._program(call, traced, shared.executable))
            if not isinstance(programs[-1], Paths):
                return programs[-1]
        if not programs:
            return self._sharing.refused(call, keys)
        for other in programs[:0:-1]:
            programs[0].add(other.last)
        programs[0].is_untried = False  # (none was made for this call)
        return programs[0]

    def _make(self, call: Call, done: Callable[[], None]) -> Any:
        """Makes the entry of the first call with a key. Calls `done` after the user's code has
        run."""
        traced = self._wanted, self._is_due, self._refuted
        if self._reports.may_fall_back and not any(call.key in keys for keys in traced):
            too_large = self._too_large.get(call.kind) if self._too_large else None
            lost = self._lost.get(call.kind[0], 0) - _MOST_LOST if self._lost else 0
            elements = sum(x.size for x in call.leaves if isinstance(x, (np.ndarray, Array)))
            if not too_large and (entry := self._costs.postponed(max(0, lost), elements)):
                return entry
            few = self.misses > max(_MOST_MISSES, self.hits + self.fast_hits - self.unproved)
            if (why := too_large or (FEW if few else None)) and self.untried.takes(call.key, why):
                return None
        self._wanted.discard(call.key)
        start = time.perf_counter()
        with Stopwatch(self._name, is_own=is_own) as watch:
            entry = self._compile(call, done, watch)
        self._costs.note(time.perf_counter() - start)
        if isinstance(entry, Fallback) or call.key not in self._trials:
            self._count(call, isinstance(entry, Fallback))
        return entry

    def _compile(self, call: Call, done: Callable[[], None], watch: Stopwatch) -> Any:
        may_fall_back = self._reports.may_fall_back
        self.misses += 1
        try:
            is_varied = self.misses > self.hits + self.fast_hits
            self._constants.count(self._name, call, is_varied)
            self._states.count(call)
            refuted = self._refuted.get(call.key, 0)
            must_pay = may_fall_back and call.key not in self._is_due
            traced = self._compiler.trace(call, refuted, may_fall_back, must_pay)
            watch.note("trace")
            self._notes[call.key] = traced.loops
            done()
            if may_fall_back and _is_of_few_numbers(call, traced):
                self.causes.note(self._name, call, watch, f"NumPy: {_FEW_NUMBERS}")
                return Fallback(_FEW_NUMBERS)
            executable = None
            if traced.graph is not None:
                self._costs.has_loops = traced.has_loops
                lowered = self._compiler.lower(call, traced)
                watch.note("passes")
                executable = lowered.compile()
                watch.note("code")
                if report := watch.report(traced.graph, traced.loops):
                    self._notes[call.key] = [report, *traced.loops]
                    self._reports.once(report, SlowCompilationWarning, user_site())
            if may_fall_back and _may_be_slow(call, traced):
                self._trials[call.key] = Trial(traced.has_loops)
        except (ValuesNeeded, StateFound):
            self.misses -= 1
            raise
        except (UnsupportedOpError, ConcretizationError) as error:
            entry = self._without_program(call, error, watch)
            forget_frames(error)
            return entry
        self.causes.note(self._name, call, watch, "program", len(traced.graph or ()))
        self._sharing.add(call, traced, executable)
        return self._program(call, traced, executable)

    def _without_program(
        self, call: Call, error: UnsupportedOpError | ConcretizationError, watch: Stopwatch
    ) -> Any:
        """The entry of a call whose trace has raised this error."""
        if isinstance(error, StateChangedError):
            if not call.slots and (kind := alike(call)) not in self._changed_state:
                self._changed_state.add(kind)
                return None
            self.misses -= 1  # The next trace counts instead.
            self._states.add(call, error.slots)
            self.misses += 1
        conditions = getattr(error, "conditions", None)
        is_one_way = conditions and isinstance(self.cache.peek(call.key), Paths)
        if call.slots and not is_one_way:
            self._states.refuse(call)
        if not self._reports.may_fall_back or isinstance(error, NumPyOnlyError):
            self._reports.fall_back(error)
            self.causes.note(self._name, call, watch, f"NumPy: {error}")
            return Fallback(str(error))
        self._notes[call.key] = getattr(error, "loops", [])
        if not getattr(error, "pays", True):
            self.causes.note(self._name, call, watch, f"NumPy: {error}")
            self._too_large[call.kind] = str(error)
            return Postponed(str(error))
        self.causes.note(self._name, call, watch, f"segments: {error}")
        segmented = self._compiler.segmented(error, call.signature)
        segmented.conditions = conditions
        self._sharing.refuse(call, segmented)
        if conditions is None:
            self._constants.note_segments(call, str(error))
        return segmented

    def _program(self, call: Call, traced: Traced, executable: Any) -> Any:
        """Makes the entry of a call with a program."""
        compiled = self._compiler.bind(call, traced, executable)
        if traced.leaves_usual:
            self._left.setdefault(call.key, 0)
        if traced.is_conditions:
            compiled = UncompiledWay(compiled)
        elif traced.assigned is not None:
            compiled = WithState(compiled, traced.assigned)
        if traced.has_room:
            self._short.setdefault(call.key, 0)
        return Paths(compiled) if traced.conditions else compiled

    def note_unsuitable(self, call: Call) -> None:
        """Called when a program has left a call to Python. If this happens often, and is no error,
        such calls run in segments from now on."""
        if (short := self._short.get(call.key)) is not None:
            self._short[call.key] = short + 1
        if short == _MOST_LEFT - 1 and self._compiler.make_room():
            del self._short[call.key]
            self.cache.discard(call.key, self.cache.peek(call.key))
            self._sharing.forget(call)
        if call.key not in self._left or not self._reports.may_fall_back:
            return
        self._left[call.key] += 1
        if self._left[call.key] >= _MOST_LEFT:
            error = UnsupportedOpError(
                f"{self._name}: in many calls a loop needs Python (it reports something, or leaves"
                " a variable unassigned)"
            )
            self.cache.replace(call.key, self._compiler.segmented(error, call.signature))

    def _add_path(self, call: Call, paths: Paths) -> bool:
        """Traces a call that takes none of the known ways. Adds its program to the ways, or
        replaces the entry. Returns False if the call must be looked up again. Raises ValuesNeeded,
        StateFound."""
        if paths.are_too_many:
            reason = f"{self._name}: it takes {len(paths)} ways through its conditions"
            segmented = self._compiler.segmented(UnsupportedOpError(reason), call.signature)
            self.cache.replace(call.key, segmented)
            return True
        self._wanted.add(call.key)
        try:
            other = self._make(call, lambda: None)
        except Raised:
            return False
        if isinstance(other, Paths):
            paths.add(other.last)
        elif isinstance(other, Segmented) and other.conditions is not None:
            lowered = self._compiler.lower(call, other.conditions)
            compiled = self._compiler.bind(call, other.conditions, lowered.compile())
            paths.add(UncompiledWay(compiled, other))
        elif other is not None:
            self.cache.replace(call.key, other)
        return other is not None


def _may_be_slow(call: Call, traced: Traced) -> bool:
    """Whether the work of a call beside the program's kernels may take longer than NumPy."""
    watched = sum(len(held) for kind, *_, held in traced.guards if kind in ("items", "equal"))
    if len(traced.guards) > _MANY_GUARDS or watched > _MANY_ITEMS:
        return True
    if traced.functions or call.slots or traced.numbers or traced.assigned is not None:
        return True
    if traced.graph is None:
        return False
    inputs = [call.leaves[i] for i in traced.input_leaves]
    numbers = [x for x in inputs if not isinstance(x, (np.ndarray, Array))]
    results = [output for output in traced.outputs if output[0] == "computed" and not output[3]]
    if len(numbers) + len(results) > _MANY_NUMBERS:
        return True
    return len(traced.graph) > _LARGE or trees.has_records(call.treedef)


def _is_of_few_numbers(call: Call, traced: Traced) -> bool:
    """Whether a program would do no more than a few operations on Python's numbers."""
    if traced.graph is None or len(traced.graph) > _FEW_NODES:
        return False
    if call.slots or traced.assigned is not None or traced.loops or traced.conditions:
        return False
    if traced.captured or traced.functions or traced.numbers:
        return False
    computed = [output for output in traced.outputs if output[0] == "computed"]
    inputs = [call.leaves[i] for i in traced.input_leaves]
    return all(output[2] for output in computed) and are_atomic(inputs)
