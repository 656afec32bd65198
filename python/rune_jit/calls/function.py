"""A jitted function: traced once for each signature of its arguments, it runs as the program."""

from __future__ import annotations

import functools
import sys
import time
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from rune_jit import _core, recording, trees
from rune_jit.arrays.array import Array
from rune_jit.arrays.conversion import call_numpy, holds_array
from rune_jit.arrays.memory import from_numpy
from rune_jit.backends import calibration
from rune_jit.backends.compilation import Stopwatch
from rune_jit.calls import reloading
from rune_jit.calls.arguments import Call, input_names, take_apart
from rune_jit.calls.bound import BoundJit, found_by_name, is_pickled_by_value
from rune_jit.calls.cache import Cache
from rune_jit.calls.causes import Causes
from rune_jit.calls.constants import Constants
from rune_jit.calls.dynamic import DynamicAxes
from rune_jit.calls.entries import Fallback, Postponed, way
from rune_jit.calls.in_chunks import CallInChunks, has_dask
from rune_jit.calls.lowered import Lowered
from rune_jit.calls.options import CacheInfo, JitOptions
from rune_jit.calls.parameters import Parameters
from rune_jit.calls.paths import Apart, Paths
from rune_jit.calls.segmented import Segmented, Trial
from rune_jit.calls.sharing import Sharing, alike
from rune_jit.calls.state import Again, StateFound, States, WithState
from rune_jit.calls.traced import Raised, Traced, trace_call
from rune_jit.calls.untried import Untried
from rune_jit.device import check_name, has_host_memory, is_dtype
from rune_jit.errors import (
    ConcretizationError,
    DataDependentShapeError,
    JitFallbackWarning,
    NumPyOnlyError,
    ResultsChangedError,
    SlowCompilationWarning,
    StateChangedError,
    UnkeyedError,
    UnsupportedOpError,
)
from rune_jit.tracing.context import ValuesNeeded, current_trace, is_own, user_site, user_site_of
from rune_jit.tracing.programs import Programs

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

I = TypeVar("I")  # noqa: E741
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


_FEW = "most of its programs serve one call"
_UNSUITABLE = "its program does not take these arguments"

# How many nodes a program has whose calls are compared with NumPy's: loops have been unrolled.
_LARGE = 2000

# How often a signature is traced again because a size that depends on data has changed.
_MOST_REFUTED = 8
# How many traces a function may have that are more than the calls without one. Beyond, NumPy runs
# the first calls of new signatures.
_MOST_MISSES = 4
# How many programs for arrays in chunks explain() tells of.
_MOST_CHUNKED = 32

# Of how many keys it is known that another key's program has served one call, and of how many what
# a call with state needs again.
_MOST_KEYS = 64

# Of so many calls that NumPy runs, one finds out whether what the function assigns is of the types
# and shapes that it was of.
_LOOKS_AT_STATE = 32


class JitFunction(_core.Dispatcher, Generic[P, R]):
    """A function that runs as compiled programs: what `jit` returns.

    It is called as the function, with the function's signature, name and docstring. `__wrapped__`
    is the function itself, which runs on NumPy. As an attribute of a class it is a method. It can
    be pickled, by name.
    """

    _fast_hits: int  # calls that ran without a Python frame; _core.Dispatcher defines it

    def __init__(self, fn: Callable[P, R], **options: Unpack[JitOptions]) -> None:
        self._wrap(fn, options)
        for other in reloading.older(self):
            other._wrap(fn, options)
            other._forget()

    def _wrap(self, fn: Callable[P, R], options: JitOptions) -> None:
        """Makes this what `jit(fn, **options)` returns, whatever it was before."""
        device, dynamic = options["device"], options["dynamic"]
        if device is not None:
            check_name(device)
        self._options = options
        functools.update_wrapper(self, fn)
        self.__wrapped__ = fn
        self._fn = fn
        self._code = getattr(fn, "__code__", None)
        self._name = getattr(fn, "__name__", type(fn).__name__)
        self._device = device
        self._fallback = options["fallback"]
        parameters = Parameters(self._name, fn)
        self._bound = parameters.bind
        self._static_names = parameters.static(
            options["static_argnums"], options["static_argnames"]
        )
        parameters.at(options["donate_argnums"], "donate_argnums")  # checks them
        self._dynamic: DynamicAxes | None = None
        if dynamic is not None:
            self._dynamic = DynamicAxes(self._name, dynamic, parameters.names)
        axes = self._dynamic.by_position() if self._dynamic else []
        self._set_parameters(*parameters.keyed(self._static_names, axes), trees.describe)
        self._cache = Cache(options["cache_size"])  # of CompiledCall or Fallback
        self._changed_state: set[Any] = set()  # kinds of calls whose first trace did
        self._refuted: dict[Any, int] = {}  # by key: how often data was not what the trace assumed
        self._notes: dict[Any, list[str]] = {}  # by key: what explain() says of the program
        self._chunked: dict[str, None] = {}  # what explain() says of calls with dask's arrays
        self._constants = Constants()
        self._states = States()
        self._causes = Causes()
        self._sharing = Sharing()
        self._again: dict[Any, Again] = {}  # by CallKey
        self._used_once: dict[Any, bool] = {}  # keys of calls with the program of others
        # By key: of programs so large, or with so much to write back, that NumPy may be faster.
        self._trials: dict[Any, Trial] = {}
        self._is_due: set[Any] = set()  # keys whose programs are made however large they are
        self._too_large: dict[Any, str] = {}  # by kind of calls that were postponed, why
        self._unkeyed: Segmented | None = None  # for calls whose arguments have no key
        self._wanted: set[Any] = set()  # keys that are traced in any case
        self._refused: dict[str, Fallback] = {}  # for those with arguments that have no trace
        # Of segments, by signature: one for all values of the signature's constants.
        self._programs: weakref.WeakValueDictionary[Any, Programs] = weakref.WeakValueDictionary()
        self._hits = self._misses = 0
        self._untried = Untried()
        self._warned: set[Any] = set()

    if TYPE_CHECKING:  # _core.Dispatcher calls without a Python frame

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: JitFunction[Concatenate[I, Q], R], instance: I, owner: type | None = None
    ) -> BoundJit[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundJit(self, instance)

    def __repr__(self) -> str:
        info = self.cache_info()
        return f"<jit {self._name}: {info.size} signatures, {info.hits} hits>"

    def __reduce__(self) -> Any:
        # What another process finds under the function's name need not be taken along. A script's
        # own names it finds only if it ran the script, which cloudpickle does not take for granted.
        name = getattr(self, "__qualname__", "")
        by_name = found_by_name(self.__module__, name) is self
        if by_name and not (self.__module__ == "__main__" and is_pickled_by_value()):
            return name
        return _unpickle, (self._fn, self._options)

    # Inspection.

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """Traces for these arguments and lowers for the device. Runs nothing, except for what
        computes a size that depends on data.

        Returns:
            The program, to be read or compiled. If an argument is an array of dask's, how it is cut
            into blocks instead: `explain()` and `plan.text` of it can be read.

        Raises:
            UnsupportedOpError: for what cannot be traced.
            ConcretizationError: if the function needs the value of a traced array.
            DTypeError: for a dtype that the device lacks. What the function itself raises is
                raised, too.

        Examples:
            >>> import numpy as np, rune_jit
            >>> rune_jit.jit(lambda x: x * 2).lower(np.ones(3)).cost_analysis()["kernels"]
            1.0
        """
        if has_dask(args, kwargs):
            cut: Any = self._in_chunks(args, kwargs).lowered()
            return cut  # type: ignore[no-any-return]
        call, traced = self._traced(self._take_apart(args, kwargs))
        if traced.graph is None:
            raise UnsupportedOpError(f"{self._name}: cannot lower a function that computes nothing")
        core = self._lower(call, traced)

        def make_call(executable: Any) -> Callable[..., Any]:
            compiled = self._bind(call, traced, executable)

            @functools.wraps(self._fn)
            def run(*args: Any, **kwargs: Any) -> Any:
                now = self._take_apart(args, kwargs)
                if now.key != call.key:
                    raise TypeError(
                        f"{self._name}: cannot run arguments of another signature than the one"
                        " that was lowered"
                    )
                status, result = compiled.call(now.leaves)
                return result if status == "done" else self._eager_call(args, kwargs)

            return run

        names = input_names(call, traced.input_leaves)
        names += [f"captured array {i}" for i in range(len(traced.captured))]
        return Lowered(core, make_call, self._fn, names)

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The graph for these arguments, before any pass; `str()` of it is its text.

        Raises:
            UnsupportedOpError: for what cannot be traced. `lower` has the others.

        Examples:
            >>> import numpy as np, rune_jit
            >>> "sin" in str(rune_jit.jit(np.sin).trace(np.ones(3)))
            True
        """
        return self._traced(self._take_apart(args, kwargs))[1].graph

    def cache_info(self) -> CacheInfo:
        """Hits, misses, fallbacks and the number of known signatures."""
        entries = self._cache.entries()
        ways = [way(entry)[0] for entry in entries]
        hits = self._hits + self._fast_hits
        evictions, segmented = self._cache.evictions, ways.count("segments")
        fallbacks = ways.count("NumPy") + len(self._untried)
        return CacheInfo(hits, self._misses, fallbacks, len(entries), evictions, segmented)

    def explain(self) -> str:
        """How calls run, one line a known signature: as a program, in segments or on NumPy, and
        why; and one line for each loop that a trace has met: whether it is a loop of the program,
        or would be, or why not. (`lower(...).explain()` says what a program does.)

        Examples:
            >>> import numpy as np, rune_jit
            >>> f = rune_jit.jit(lambda x: x * x.sum().item())
            >>> f(np.ones(3))
            array([3., 3., 3.])
            >>> print(f.explain())  # doctest: +ELLIPSIS
            <lambda>: in segments (2 programs): item: cannot take the value of a traced array (...)
        """
        lines = [f"{self._name}: {summary}" for summary in self._chunked]
        lines += [f"{self._name}: on NumPy: {why}" for why in self._untried.reasons]
        for key, entry in self._cache.by_key().items():
            lines.append(f"{self._name}: {way(entry)[1]}")
            if not isinstance(entry, Fallback):
                lines += [f"  {line}" for line in self._notes.get(key, [])]
            if isinstance(entry, Segmented):
                lines += [f"  a segment {report}" for report in entry.programs.reports]
        for entry in ([self._unkeyed] if self._unkeyed else []) + [*self._refused.values()]:
            lines.append(f"{self._name}: {way(entry)[1]}")
        return "\n".join(lines)

    def clear_cache(self) -> None:
        """Forgets every signature: the next call traces again."""
        self._cache.clear()
        self._forget()
        self._changed_state.clear()
        self._is_due.clear()
        self._refuted.clear()
        self._notes.clear()
        self._chunked.clear()
        self._constants.clear()
        self._states.clear()
        self._causes.clear()
        self._sharing.clear()
        self._used_once.clear()
        self._again.clear()
        self._too_large.clear()
        self._unkeyed = None
        self._refused.clear()
        self._trials.clear()
        self._untried.clear()
        self._warned.clear()

    # One call.

    def _eager_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], why: str = _UNSUITABLE
    ) -> Any:
        """The function's result by NumPy; `why` is for profiles."""
        if (recorder := recording.active) is None:
            return call_numpy(self._fn, args, kwargs)
        run = functools.partial(call_numpy, self._fn, args, kwargs)
        return recorder.timed("numpy", self._name, why.partition("\n")[0], run)

    def _slow_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Inside another trace the function is part of the graph under construction.
        trace = current_trace()
        if trace is not None:
            return trace.rebind(self._fn)(*args, **kwargs)
        if _core.is_disabled():
            return self._eager_call(args, kwargs, "RUNE_JIT_DISABLE is set")
        if has_dask(args, kwargs):
            return self._in_chunks(args, kwargs).result()
        if getattr(self._fn, "__code__", None) is not self._code:  # edited: all is as at first
            self._forget()
            self._wrap(self._fn, self._options)
        if self._untried.skips:
            return self._eager_call(args, kwargs, _FEW)
        if self._again and (result := self._call_again(args, kwargs)) is not None:
            self._hits += 1
            return result[0]
        try:
            bound = self._bound(args, kwargs)
        except TypeError:
            # Python's own message
            return self._eager_call(args, kwargs, "the arguments do not fit its signature")
        try:
            call = self._constants.of(self._states.of(self._name, self._apart(args, kwargs, bound)))
        except UnsupportedOpError as error:
            if self._fallback == "error" or not isinstance(
                error, (StateChangedError, UnkeyedError)
            ):
                self._fall_back(error)
                self._refused.setdefault(str(error), Fallback(str(error)))
                return self._eager_call(args, kwargs, str(error))
            if self._unkeyed is None:
                self._unkeyed = self._segmented(error)
            return self._in_segments(self._unkeyed, args, kwargs)
        for _ in range(2):  # once more if the entry is stale
            start = time.perf_counter()
            call, entry, fresh = self._entry(call)
            if isinstance(entry, Raised):
                return self._call_that_raised(entry.error, call.key, args, kwargs)
            if entry is None:
                reason = self._untried.why(call.key) or "it changed what only its first call may"
                return self._eager_call(args, kwargs, reason)
            if not fresh and not isinstance(entry, Fallback):
                self._untried.traced()
            if isinstance(entry, Segmented):
                self._hits += not fresh
                if entry.runs_on_numpy:
                    self._remember_numpy(call, entry, args, kwargs)
                return self._in_segments(entry, args, kwargs)
            if isinstance(entry, Postponed):
                if not entry.is_due:
                    return self._postponed_call(call, entry, args, kwargs)
                self._is_due.add(call.key)
                self._cache.discard(call.key, entry)
                continue
            if isinstance(entry, Fallback):
                entry.use.is_now()
                if not entry.until_it_returns:
                    self._remember_numpy(call, entry, args, kwargs)
                result = self._eager_call(args, kwargs, entry.reason)
                if entry.until_it_returns:
                    self._cache.discard(call.key, entry)
                return result
            trial = self._trials.get(call.key) if self._trials else None
            if trial and trial.is_over:  # of calls like this one
                self._end_trial(call.key)
                continue
            if trial and trial.is_numpys_turn:
                result = self._eager_call(args, kwargs, "to find out whether NumPy is faster")
                trial.note(time.perf_counter() - start)
                if trial.is_over:
                    self._end_trial(call.key)
                return result
            try:
                status, result = entry.call(call.leaves)
            except ResultsChangedError:
                break
            except Exception:
                if not isinstance(entry, (WithState, Paths)):
                    raise
                break  # nothing has been written yet: NumPy writes what it does before it raises
            ran = entry.last if isinstance(entry, Paths) else entry
            if status == "done":
                self._hits += not fresh
                if isinstance(ran, WithState):
                    result = ran.write_back(call, args, kwargs, result)
                if trial:
                    if not fresh:
                        trial.note(time.perf_counter() - start)
                    return result
                if self._cache.peek(call.key) is None:
                    return result
                if isinstance(ran, WithState) or call.slots:
                    if ran is entry and call.slots:
                        self._note_again(call, ran)
                    return result
                ways = entry.without_python if isinstance(entry, Paths) else [entry]
                self._remember(args, kwargs, call.leaves, ways, call.sizes, call.constants)
                return result
            if status == "apart" and ran.segmented is not None:
                return self._in_segments(ran.segmented, args, kwargs)
            if status in ("unsuitable", "apart"):
                break
            self._causes.stale(call.key, entry)
            if isinstance(entry, Paths) and entry.is_current() and self._add_path(call, entry):
                continue
            self._cache.discard(call.key, entry)
            if entry.is_current():
                self._refuted[call.key] = self._refuted.get(call.key, 0) + 1
                self._sharing.forget(call)
            else:
                why = self._states.note_changes(call, entry, self._hits + self._fast_hits)
                if why and self._fallback != "error":
                    segmented = self._segmented(
                        UnsupportedOpError(f"{self._name}: {why}"), call.signature
                    )
                    self._cache.replace(call.key, segmented)
                    continue
                call = self._constants.of(self._states.of(self._name, call.plain or call))
        return self._eager_call(args, kwargs)

    def _note_again(self, call: Call, program: Any) -> None:
        """Keeps what the next call like this one needs, which asks for less then."""
        again = Again.of(call, program, self._cache.changes)
        signature = call.plain.signature[0]
        if again is not None:
            self._again[signature] = again
            for oldest in list(self._again)[:-_MOST_KEYS]:
                self._again.pop(oldest, None)

    def _call_again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
        """The result of a call with state like one that ran before, None if there was none."""
        try:
            key, leaves = self._keyed(args, kwargs)
        except Exception:  # of the arguments: Python says what is wrong
            return None
        again = self._again.get(key)
        if again is None or again.changes != self._cache.changes:
            return None
        return again.run(leaves)

    def _postponed_call(
        self, call: Call, entry: Postponed, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        entry.use.is_now()
        start = time.thread_time()
        try:
            return self._eager_call(args, kwargs, entry.reason)
        finally:
            seconds = time.thread_time() - start
            if calls := entry.note(seconds):
                entry.note_more(self._remember_numpy(call, entry, args, kwargs, calls), seconds)

    def _remember_numpy(
        self,
        call: Call,
        entry: Fallback | Segmented,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        most: int = sys.maxsize,
    ) -> int:
        """Lets the next calls like this one, at most so many, run the function itself, without a
        Python frame of ours. Returns how many."""
        plain = call.plain or call
        if self._cache.peek(call.key) is None:
            return 0
        if holds_array(args, kwargs) or any(i >= len(plain.leaves) for i in call.constants):
            return 0
        is_hit = isinstance(entry, Segmented)
        if call.slots:  # of which the key does not tell
            most = min(most, _LOOKS_AT_STATE)
        is_remembered = self._remember_on_numpy(
            args, kwargs, plain.leaves, call.sizes, call.constants, entry.use, is_hit, most
        )
        return most if is_remembered else 0

    def _in_segments(self, entry: Segmented, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return entry.call(args, kwargs)
        finally:
            for report in entry.programs.take_reports():
                self._warn_once(f"in a segment {report}", SlowCompilationWarning, user_site())

    def _call_that_raised(
        self, error: Exception, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call whose trace has raised an error. NumPy decides whether the function raises it; if
        not, calls of this signature run on NumPy."""
        if self._fallback == "error":
            raise error
        try:
            result = self._eager_call(args, kwargs, f"its trace raised {type(error).__name__}")
        except Exception as own:
            reason = f"it raised {type(own).__name__}: {own}"
            self._cache.replace(key, Fallback(reason, until_it_returns=True))
            raise
        reason = f"{self._name}: cannot trace this ({type(error).__name__}: {error})"
        refusal = UnsupportedOpError(reason)
        refusal.user_site = user_site_of(error)  # type: ignore[attr-defined]
        self._fall_back(refusal)
        self._cache.replace(key, Fallback(reason))
        return result

    def _end_trial(self, key: Any) -> None:
        reason = self._trials.pop(key).verdict()
        if reason:
            self._cache.replace(key, Fallback(reason))

    def _apart(self, args: tuple[Any, ...], kwargs: dict[str, Any], bound: Any) -> Call:
        return take_apart(
            self._name, bound, self._static_names, args, kwargs, self._key, self._dynamic
        )

    def _take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """A call, without what the function assigns outside."""
        bound = self._bound(args, kwargs)
        return self._constants.of(self._apart(args, kwargs, bound))

    def _in_chunks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallInChunks:
        """A call with arrays of dask's, traced and cut; it raises what cannot be."""
        device = self._device or _core.default_device()
        call = CallInChunks(self._fn, self._name, self._take_apart, args, kwargs, device)
        self._misses += 1
        if call.program is not None and len(self._chunked) < _MOST_CHUNKED:
            self._chunked[call.program.summary()] = None
        return call

    def _entry(self, call: Call) -> tuple[Call, Any, bool]:
        """The call with the constants that it needs, its entry in the cache, and whether that was
        made now. There is no entry for a call that runs on NumPy this time: None, or what was
        Raised."""
        evictions = self._cache.evictions
        while True:
            make = functools.partial(self._make_entry, call)
            try:
                fresh, entry = False, self._cache.peek(call.key) or self._shared_entry(call)
                if entry is None:
                    entry, fresh = self._cache.get(call.key, make)
            except ValuesNeeded as needed:
                call = self._constants.add(call, needed.leaves)
                continue
            except StateFound:
                call = self._constants.of(self._states.of(self._name, call.plain or call))
                continue
            except Raised as raised:
                return call, raised, False
            if self._cache.evictions != evictions:
                self._forget()
                known = self._cache.by_key()
                self._notes = {key: lines for key, lines in self._notes.items() if key in known}
                self._states.keep(known)
                self._sharing.keep(known)
            return call, entry, fresh

    def _shared_entry(self, call: Call) -> Any:
        """The entry of a call that differs from others in which objects it is given only: their
        program, if it is right for this call, too. It is kept from the second such call on: some
        objects are used once."""
        entry = self._entry_of_others(call)
        if entry is None:
            return None
        if self._used_once.pop(call.key, False):
            self._cache.add(call.key, entry)
            return entry
        self._used_once[call.key] = True
        for oldest in list(self._used_once)[:-_MOST_KEYS]:
            for known in (self._used_once, self._trials, self._notes):
                known.pop(oldest, None)
            self._states.discard(oldest)
            self._constants.discard(oldest)
        return entry

    def _entry_of_others(self, call: Call) -> Any:
        if slots := self._sharing.slots(call):
            self._states.add(call, slots)
        programs = []
        for shared, traced in self._sharing.find(call):
            known = self._cache.peek(shared.call.key)
            if isinstance(known, Fallback) and not known.until_it_returns:  # NumPy was faster
                return known
            if trial := self._trials.get(shared.call.key):
                if trial.is_over:
                    self._end_trial(shared.call.key)
                    return self._entry_of_others(call)
                self._trials[call.key] = trial
            self._notes[call.key] = traced.loops
            programs.append(self._program(call, traced, shared.executable))
            if not isinstance(programs[-1], Paths):
                return programs[-1]
        if not programs:
            return self._sharing.refused(call)
        for other in programs[:0:-1]:
            programs[0].add(other.last)
        return programs[0]

    def _make_entry(self, call: Call, done: Callable[[], None]) -> Any:
        """What is kept for a call that is the first one of its key."""
        few = self._misses > max(_MOST_MISSES, self._hits + self._fast_hits)
        is_new = call.key not in self._wanted and call.key not in self._is_due
        too_large = self._too_large.get(call.kind) if self._too_large else None
        is_new &= bool(few or too_large) and self._fallback != "error"
        if is_new and self._untried.takes(call.key, too_large or _FEW):
            return None
        self._wanted.discard(call.key)
        with Stopwatch(self._name, is_own=is_own) as watch:
            return self._compile(call, done, watch)

    def _compile(self, call: Call, done: Callable[[], None], watch: Stopwatch) -> Any:
        self._misses += 1
        try:
            self._constants.count(self._name, call)
            self._states.count(call)
            traced = self._trace(call, decides=self._fallback != "error")
            watch.note("trace")
            self._notes[call.key] = traced.loops
            done()
            executable = None
            if traced.graph is not None:
                lowered = self._lower(call, traced)
                watch.note("passes")
                executable = lowered.compile()
                watch.note("code")
                if report := watch.report(traced.graph, traced.loops):
                    self._notes[call.key] = [report, *traced.loops]
                    self._warn_once(report, SlowCompilationWarning, user_site())
                is_slow = len(traced.graph) > _LARGE or traced.assigned is not None or call.slots
                if is_slow and self._fallback != "error":
                    self._trials[call.key] = Trial()
        except (ValuesNeeded, StateFound):
            self._misses -= 1
            raise
        except (UnsupportedOpError, ConcretizationError) as error:
            if isinstance(error, StateChangedError):
                if not call.slots and (kind := alike(call)) not in self._changed_state:
                    self._changed_state.add(kind)
                    return None
                self._states.add(call, error.slots)
            if call.slots:
                self._states.refuse(call)
            if self._fallback == "error" or isinstance(error, NumPyOnlyError):
                self._fall_back(error)
                self._causes.note(self._name, call, watch, f"NumPy: {error}")
                return Fallback(str(error))
            self._notes[call.key] = getattr(error, "loops", [])
            if not getattr(error, "pays", True):
                self._causes.note(self._name, call, watch, f"NumPy: {error}")
                self._too_large[call.kind] = str(error)
                return Postponed(str(error))
            self._causes.note(self._name, call, watch, f"segments: {error}")
            segmented = self._segmented(error, call.signature)
            segmented.conditions = getattr(error, "conditions", None)
            self._sharing.refuse(call, segmented)
            return segmented
        self._causes.note(self._name, call, watch, "program", len(traced.graph or ()))
        self._sharing.add(call, traced, executable)
        return self._program(call, traced, executable)

    def _program(self, call: Call, traced: Traced, executable: Any) -> Any:
        """The entry of a call that has a program."""
        compiled = self._bind(call, traced, executable)
        if traced.is_conditions:
            compiled = Apart(compiled)
        elif traced.assigned is not None:
            compiled = WithState(compiled, traced.assigned)
        return Paths(compiled) if traced.conditions else compiled

    def _add_path(self, call: Call, paths: Paths) -> bool:
        """Traces a call that takes none of the known ways, and adds its program to them, or puts
        another entry in their place. False if that must begin anew."""
        if paths.are_too_many:
            reason = f"{self._name}: it takes {len(paths)} ways through its conditions"
            self._cache.replace(
                call.key, self._segmented(UnsupportedOpError(reason), call.signature)
            )
            return True
        self._wanted.add(call.key)
        try:
            other = self._make_entry(call, lambda: None)
        except (ValuesNeeded, StateFound, Raised):
            return False
        if isinstance(other, Paths):
            paths.add(other.last)
        elif isinstance(other, Segmented) and other.conditions is not None:
            lowered = self._lower(call, other.conditions)
            compiled = self._bind(call, other.conditions, lowered.compile())
            paths.add(Apart(compiled, other))
        elif other is not None:
            self._cache.replace(call.key, other)
        return other is not None

    def _traced(self, call: Call) -> tuple[Call, Traced]:
        """The trace of a call, and the call with the constants that the trace needs."""
        while True:
            try:
                return call, self._trace(call)
            except ValuesNeeded as needed:
                call = self._constants.add(call, needed.leaves)
            except Raised as raised:
                error = raised.error
                break
        raise error

    def _trace(self, call: Call, decides: bool = False) -> Traced:
        def run(traced: Traced) -> Any:
            compiled = self._bind(call, traced, self._lower(call, traced).compile())
            status, result = compiled.call(call.leaves)
            if status != "done":
                raise DataDependentShapeError(
                    f"{self._name}: cannot trace a size that depends on arrays of this layout"
                )
            return result

        times = self._refuted.get(call.key, 0)
        if times > _MOST_REFUTED:
            raise DataDependentShapeError(
                f"{self._name}: cannot make a program for each size that data may have (another one"
                f" at {times} calls)\nhint: give np.bincount a minlength that is large enough"
            )
        must_pay = decides and call.key not in self._is_due
        return trace_call(self._fn, self._name, call, run, times == 0, decides, must_pay)

    def _lower(self, call: Call, traced: Traced) -> Any:
        device = self._device_for(call, traced)
        names = input_names(call, traced.input_leaves)
        names += [f"captured array {i}" for i in range(len(traced.captured))]
        calibration.ensure()
        return _core.lower(traced.graph, device, names, traced.functions, self._name)

    def _bind(self, call: Call, traced: Traced, executable: Any) -> Any:
        outputs, device = traced.outputs, None
        if _devices_of(call, traced):  # Arrays in, Arrays out
            device = self._device_for(call, traced)
            outputs = [
                ("copy", from_numpy(o[1], device)) if o[0] == "copy" and is_dtype(o[1].dtype) else o
                for o in outputs
            ]
        return _core.CompiledCall(
            executable,
            traced.input_leaves,
            self._captured(call, traced) if executable else [],
            outputs,
            traced.unflatten,
            traced.leaf_guards,
            traced.guards,
            traced.writes,
            traced.contiguous,
            traced.turned if executable else [],
            traced.checks,
            device,
        )

    def _captured(self, call: Call, traced: Traced) -> list[Any]:
        """The captured arrays as calls of the program take them: constants lie on its device."""
        if not traced.constants or has_host_memory(device := self._device_for(call, traced)):
            return traced.captured
        return [
            from_numpy(array, device) if i in traced.constants else array
            for i, array in enumerate(traced.captured)
        ]

    def _segmented(self, error: Exception, signature: Any = None) -> Segmented:
        """What runs calls of a signature for which there is no program."""
        programs = self._programs.get(signature)
        if programs is None:
            programs = Programs(self._device or _core.default_device(), self._name)
            self._programs[signature] = programs
        return Segmented(self._fn, self._name, programs, str(error))

    def _fall_back(self, error: UnsupportedOpError | ConcretizationError) -> None:
        """Warns that a signature runs on NumPy; raises under fallback="error"."""
        if self._fallback == "error":
            raise error
        reason = str(error)
        if self._fallback == "warn":
            site = getattr(error, "user_site", None) or user_site()
            self._warn_once(f"runs on NumPy: {reason}", JitFallbackWarning, site)

    def _warn_once(self, text: str, category: type[Warning], site: tuple[str, int]) -> None:
        if self._fallback != "silent" and (site, text) not in self._warned:
            self._warned.add((site, text))
            warnings.warn_explicit(f"{self._name} {text}", category, *site)

    # Options.

    def _device_for(self, call: Call, traced: Traced) -> str:
        """Where the program runs: as the option says, or where its Arrays are."""
        if self._device is not None:
            return self._device
        devices = _devices_of(call, traced)
        if len(set(devices.values())) > 1:
            places = ", ".join(f"{owner} on {device}" for owner, device in devices.items())
            raise ValueError(
                f"{self._name}: cannot use Arrays of several devices together ({places})\n"
                "hint: x.to_device(device) moves one, jit(..., device=...) says where to run"
            )
        return next(iter(devices.values()), _core.default_device())


def _unpickle(function: Callable[..., Any], options: JitOptions) -> JitFunction[Any, Any]:
    return JitFunction(function, **options)


def _devices_of(call: Call, traced: Traced) -> dict[str, str]:
    """The devices of the Arrays among arguments and captured arrays."""
    leaves = [call.leaves[i] for i in traced.input_leaves] + traced.captured
    if not any(isinstance(leaf, Array) for leaf in leaves):
        return {}
    owners = input_names(call, traced.input_leaves)
    owners += [f"captured array {i}" for i in range(len(traced.captured))]
    return {
        owner: leaf.device
        for owner, leaf in zip(owners, leaves, strict=True)
        if isinstance(leaf, Array)
    }
