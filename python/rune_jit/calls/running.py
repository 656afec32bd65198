"""What traces and runs the calls of a jitted function that _core.Dispatcher does not know."""

from __future__ import annotations

import functools
import sys
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rune_jit import _core
from rune_jit.arrays.conversion import holds_array
from rune_jit.calls.arguments import Call, take_apart
from rune_jit.calls.compiler import Compiler
from rune_jit.calls.entries import Fallback, Postponed, Untraced, way
from rune_jit.calls.lowered import Lowered
from rune_jit.calls.numbers import WithNumbers
from rune_jit.calls.options import CacheInfo
from rune_jit.calls.paths import Paths
from rune_jit.calls.reports import Reports
from rune_jit.calls.segmented import Segmented, on_numpy
from rune_jit.calls.signatures import Signatures
from rune_jit.calls.state import LastCalls, WithState, changes_one_twice
from rune_jit.calls.traced import Raised
from rune_jit.calls.trial import FOR_TRIAL
from rune_jit.capture.loops import apart
from rune_jit.chunked.recognition import has_dask
from rune_jit.errors import (
    ResultsChangedError,
    SlowCompilationWarning,
    StateChangedError,
    UnkeyedError,
    UnsupportedOpError,
)
from rune_jit.tracing.context import user_site, user_site_of

if TYPE_CHECKING:
    from rune_jit.calls.function import JitFunction
    from rune_jit.calls.in_chunks import CallInChunks

_UNSUITABLE = "its program does not take these arguments"

# One of so many calls on NumPy checks whether the outside values that the function assigns have the
# types and shapes that they had before.
_LOOKS_AT_STATE = 32
# How many programs for arrays in chunks explain() describes.
_MOST_DESCRIBED = 32


def compile_loops_with(compiler: Callable[[Any, str], Any]) -> None:
    """Lets loops that run apart from a function in segments be compiled by `compiler`, which takes
    a function and a device and returns a jitted function."""
    apart.compiler = compiler


class Runner:
    """The programs of a jitted function, and how its calls run.

    A call runs the program of its signature, or it is traced, runs in segments or runs on NumPy.
    """

    def __init__(self, function: JitFunction[Any, Any]) -> None:
        self._function = weakref.ref(function)  # which owns this object
        self._fn, self._name, self._device = function._fn, function._name, function._device
        self._may_run_on_numpy = function._may_run_on_numpy
        self._bound, self._static_names = function._bound, function._static_names
        self._dynamic = function._dynamic
        self.compiler = Compiler(self._fn, self._name, self._device)
        self._reports = Reports(self._name, function._options["fallback"])
        self.known = Signatures(self.compiler, function._options["cache_size"], self._reports)
        self._last_calls = LastCalls()
        self._unkeyed: Segmented | None = None  # for calls whose arguments have no key
        self._refused: dict[str, Fallback] = {}  # for those with arguments that cannot be traced
        self._chunked: dict[str, None] = {}  # lines of explain() about calls with dask's arrays

    @property
    def _dispatcher(self) -> JitFunction[Any, Any]:
        """The jitted function, which knows the programs of the most frequent calls."""
        function = self._function()
        assert function is not None
        return function

    # Inspection. JitFunction's methods of these names say what they return.

    def lower(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
        if has_dask(args, kwargs):
            cut: Any = self.in_chunks(args, kwargs).lowered()
            return cut  # type: ignore[no-any-return]
        call, traced = self.known.traced(self.take_apart(args, kwargs))
        if traced.graph is None:
            raise UnsupportedOpError(
                f"{self._name}: cannot lower a function that computes nothing\n"
                "hint: return what NumPy's functions compute of its arguments"
            )
        core = self.compiler.lower(call, traced)
        owner: Any = self._dispatcher  # The result keeps it.

        def make_call(executable: Any) -> Callable[..., Any]:
            compiled = self.compiler.bind(call, traced, executable)

            @functools.wraps(self._fn)
            def run(*args: Any, **kwargs: Any) -> Any:
                now = owner._runner.take_apart(args, kwargs)
                if now.key != call.key:
                    raise TypeError(
                        f"{self._name}: cannot run arguments of another signature than the one"
                        " that was lowered"
                    )
                status, result = compiled.call(now.leaves)
                return result if status == "done" else self.eager_call(args, kwargs)

            return run

        return Lowered(core, make_call, self._fn, self.compiler.names_of_inputs(call, traced))

    def trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.known.traced(self.take_apart(args, kwargs))[1].graph

    def cache_info(self) -> CacheInfo:
        entries = self.known.cache.entries()
        ways = [way(entry)[0] for entry in entries]
        hits = self.known.hits + self._dispatcher._fast_hits
        evictions, segmented = self.known.cache.evictions, ways.count("segments")
        fallbacks = ways.count("NumPy") + len(self.known.untried)
        return CacheInfo(hits, self.known.misses, fallbacks, len(entries), evictions, segmented)

    def explain(self) -> str:
        lines = [f"{self._name}: {summary}" for summary in self._chunked]
        lines += self.known.describe()
        for entry in ([self._unkeyed] if self._unkeyed else []) + [*self._refused.values()]:
            lines.append(f"{self._name}: {way(entry)[1]}")
        return "\n".join(lines)

    def clear(self) -> None:
        self.known.clear()
        self._last_calls.clear()
        self._unkeyed = None
        self._refused.clear()
        self._chunked.clear()
        self._reports.clear()

    # One call.

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _core.is_on_numpy() and self._may_run_on_numpy:
            return self.eager_call(args, kwargs, "a function that calls it is timed on NumPy")
        if _core.is_disabled():
            return self.eager_call(args, kwargs, "RUNE_JIT_DISABLE is set")
        if has_dask(args, kwargs):
            return self.in_chunks(args, kwargs).result()
        if self._last_calls and (result := self._call_like_last(args, kwargs)) is not None:
            self.known.hits += 1
            self._dispatcher._note_look(False)
            return result[0]
        try:
            bound = self._bound(args, kwargs)
        except TypeError:
            # Python's own message
            return self.eager_call(args, kwargs, "the arguments do not fit its signature")
        try:
            call = self.known.with_state(self._apart(args, kwargs, bound))
        except UnsupportedOpError as error:
            return self._refused_call(error, args, kwargs)
        return self._call(call, args, kwargs)

    def _call(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        known = self.known
        known.fast_hits = self._dispatcher._fast_hits
        self.compiler.steps.begin()
        for _ in range(2):  # once more if the entry is stale
            start = time.perf_counter()
            evictions = known.cache.evictions
            call, entry, fresh = known.entry(call)
            if known.cache.evictions != evictions:
                self._dispatcher._forget()
            if isinstance(entry, Raised):
                return self._call_that_raised(entry.error, call.key, args, kwargs)
            if entry is None:
                self._dispatcher._note_look(not known.untried.is_repeated(call.key))
                reason = known.untried.why(call.key) or "it changed what only its first call may"
                with known.untried.timed(call.key):
                    return self.eager_call(args, kwargs, reason)
            if isinstance(entry, Segmented):
                is_hit = not (fresh or entry.runs_on_numpy)
                known.hits += is_hit
                known.unproved += is_hit and not entry.is_decided
                self._dispatcher._note_look(entry.runs_on_numpy is not None)
                if entry.runs_on_numpy:
                    self._remember_numpy(call, entry, args, kwargs)
                return self._in_segments(entry, args, kwargs)
            if isinstance(entry, Postponed) and entry.is_due:
                known.compile_now(call, entry)
                continue
            if isinstance(entry, Fallback):
                return self._call_on_numpy(call, entry, args, kwargs)
            trial = known.trial(call)
            if trial and trial.is_over:  # for calls like this one
                known.end_trial(call)
                continue
            if trial and trial.is_numpys_turn:
                with trial.numpys_turn():
                    result = self.eager_call(args, kwargs, FOR_TRIAL)
                if trial.is_over:
                    known.end_trial(call)
                return result
            if changes_one_twice(entry, call, args, kwargs):
                break
            try:
                status, result = entry.call(call.leaves)
            except ResultsChangedError:
                break
            except Exception:
                self._dispatcher._note_look(self._reports.may_fall_back)
                if not isinstance(entry, (WithState, WithNumbers, Paths)):
                    raise
                break  # nothing has been written yet; NumPy writes and raises
            ran = entry.last if isinstance(entry, Paths) else entry
            if status == "done":
                known.hits += not fresh
                self._dispatcher._note_look(False)
                if isinstance(ran, WithState):
                    result = ran.write_back(call, args, kwargs, result)
                if not trial:
                    self._remember_program(call, entry, args, kwargs)
                elif not fresh:
                    trial.note(time.perf_counter() - start)
                return result
            if status == "uncompiled" and ran.segmented is not None:
                return self._in_segments(ran.segmented, args, kwargs)
            if status in ("unsuitable", "uncompiled"):
                known.note_unsuitable(call)
                break
            call = known.replace_stale(call, entry)
        self._dispatcher._note_look(self._reports.may_fall_back)
        return self.eager_call(args, kwargs)

    # How a call runs if not as its program.

    def eager_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], why: str = _UNSUITABLE
    ) -> Any:
        return on_numpy(self._fn, self._name, why, args, kwargs)

    def _call_on_numpy(
        self, call: Call, entry: Fallback, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        entry.use.is_now()
        if isinstance(entry, Postponed):
            if isinstance(entry, Untraced) and entry.is_new:
                self._dispatcher._note_look(True)
            try:
                with entry.timed():
                    return self.eager_call(args, kwargs, entry.reason)
            finally:
                if calls := entry.calls_without_look:
                    entry.note_more(self._remember_numpy(call, entry, args, kwargs, calls))
        self._dispatcher._note_look(self._reports.may_fall_back)
        if not entry.until_it_returns:
            self._remember_numpy(call, entry, args, kwargs)
        result = self.eager_call(args, kwargs, entry.reason)
        if entry.until_it_returns:
            self.known.cache.discard(call.key, entry)
        return result

    def _in_segments(self, entry: Segmented, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return entry.call(args, kwargs)
        finally:
            for report in entry.programs.take_reports():
                self._reports.once(f"in a segment {report}", SlowCompilationWarning, user_site())

    def _refused_call(
        self, error: UnsupportedOpError, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs a call that has no key in segments, or on NumPy if that is not possible."""
        is_unkeyed = isinstance(error, (StateChangedError, UnkeyedError))
        if not (is_unkeyed and self._reports.may_fall_back):
            self._reports.fall_back(error)
            self._refused.setdefault(str(error), Fallback(str(error)))
            self._dispatcher._note_look(self._reports.may_fall_back)
            return self.eager_call(args, kwargs, str(error))
        if self._unkeyed is None:
            self._unkeyed = self.compiler.segmented(error)
        if self._unkeyed.runs_on_numpy:
            self._dispatcher._note_look(self._reports.may_fall_back)
        return self._in_segments(self._unkeyed, args, kwargs)

    def _call_that_raised(
        self, error: BaseException, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs a call whose trace has raised an error on NumPy. If NumPy does not raise, all calls
        of this signature run on NumPy."""
        if not self._reports.may_fall_back:
            raise error
        self._dispatcher._note_look(self._reports.may_fall_back)
        try:
            result = self.eager_call(args, kwargs, f"its trace raised {type(error).__name__}")
        except KeyboardInterrupt:
            raise
        except BaseException as own:
            reason = f"it raised {type(own).__name__}: {own}"
            self.known.cache.replace(key, Fallback(reason, until_it_returns=True))
            raise
        reason = f"{self._name}: cannot trace this ({type(error).__name__}: {error})"
        refusal = UnsupportedOpError(reason)
        refusal.user_site = user_site_of(error)  # type: ignore[attr-defined]
        self._reports.fall_back(refusal)
        self.known.cache.replace(key, Fallback(reason))
        return result

    # Shortcuts for the next calls like this one.

    def _call_like_last(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
        """Runs a call with state that is like an earlier one. Returns its result, or None if there
        was no such call."""
        try:
            key, leaves = self._dispatcher._keyed(args, kwargs)
        except Exception:  # the arguments are wrong: Python raises the right error
            return None
        return self._last_calls.run(
            key, self.known.cache.changes, leaves, args, kwargs, self._bound
        )

    def _remember_program(
        self, call: Call, entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Lets the next calls like this one run the program without a search for it."""
        if self.known.cache.peek(call.key) is None:
            return
        ran = entry.last if isinstance(entry, Paths) else entry
        if call.slots or isinstance(ran, (WithNumbers, WithState)):
            self._last_calls.add(call, entry, self.known.cache.changes)
        else:
            ways = entry.without_python if isinstance(entry, Paths) else [entry]
            self._dispatcher._remember(args, kwargs, call.leaves, ways, call.sizes, call.constants)

    def _remember_numpy(
        self,
        call: Call,
        entry: Fallback | Segmented,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        most: int = sys.maxsize,
    ) -> int:
        """Lets at most so many of the next calls like this one run the function itself, without a
        Python frame of rune_jit. Returns how many."""
        plain = call.plain or call
        if self.known.cache.peek(call.key) is None:
            return 0
        if holds_array(args, kwargs) or any(i >= len(plain.leaves) for i in call.constants):
            return 0
        if call.slots:  # the key does not contain them
            most = min(most, _LOOKS_AT_STATE)
        is_remembered = self._dispatcher._remember_on_numpy(
            args, kwargs, plain.leaves, call.sizes, call.constants, entry.use, most
        )
        return most if is_remembered else 0

    # Taking calls apart.

    def _apart(self, args: tuple[Any, ...], kwargs: dict[str, Any], bound: Any) -> Call:
        return take_apart(
            self._name,
            bound,
            self._static_names,
            args,
            kwargs,
            self._dispatcher._key,
            self._dynamic,
        )

    def take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Takes a call apart, without the outside state that the function assigns."""
        return self.known.of(self._apart(args, kwargs, self._bound(args, kwargs)))

    def in_chunks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallInChunks:
        """Traces a call with dask's arrays and cuts it into blocks. Raises an error if that is not
        possible."""
        from rune_jit.calls.in_chunks import CallInChunks  # slow to import

        device = self._device or _core.default_device()
        call = CallInChunks(self._fn, self._name, self.take_apart, args, kwargs, device)
        self.known.misses += 1
        if call.program is not None and len(self._chunked) < _MOST_DESCRIBED:
            self._chunked[call.program.summary()] = None
        return call
