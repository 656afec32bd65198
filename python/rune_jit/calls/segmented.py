"""Calls in segments (tracing/segments.py). Python runs the function at each call on traced arrays,
and gets values where it asks for them. Measured times decide whether NumPy is faster."""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import itertools
import sys
import time
import traceback
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rune_jit import _core, recording
from rune_jit.arrays.conversion import call_numpy
from rune_jit.calls.early_end import EarlyEnd
from rune_jit.calls.replacing import (
    has_attributes,
    holders_and_made,
    objects_with,
    plain_by_id,
    references,
    replace_functions,
    replace_in,
    replace_stand_ins,
    replaced,
)
from rune_jit.calls.trial import FOR_TRIAL, Trial
from rune_jit.capture import threads
from rune_jit.capture.class_tests import class_test_behind
from rune_jit.capture.matching import reachable
from rune_jit.capture.objects import (
    arrays_in,
    arrays_of_objects,
    held_arrays,
    held_containers,
    is_replaceable,
)
from rune_jit.capture.rebinder import Rebinder
from rune_jit.capture.unwatched import Unwatched
from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.indexing.selection import Selection
from rune_jit.rules.indexing.write import Flat
from rune_jit.tracing.context import is_own
from rune_jit.tracing.frames import replace_locals
from rune_jit.tracing.programs import Programs
from rune_jit.tracing.segments import SegmentedTrace
from rune_jit.tracing.storage import is_empty_mask
from rune_jit.tracing.tracer import ATOMIC, Tracer, contains_tracer


def on_numpy(
    function: Callable[..., Any], name: str, why: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Runs a function on NumPy. Its `name`, and `why`, are for profiles."""
    if (recorder := recording.active) is None:
        return call_numpy(function, args, kwargs)
    run = functools.partial(call_numpy, function, args, kwargs)
    return recorder.timed("numpy", name, why.partition("\n")[0], run)


class Segmented:
    """A signature whose calls run in segments, or on NumPy if NumPy is faster."""

    def __init__(
        self, function: Callable[..., Any], name: str, programs: Programs, reason: str
    ) -> None:
        self.use = _core.LastUse()
        self.programs = programs
        self.reason = reason  # why the function is not one program
        self.runs_on_numpy: str | None = None  # why
        # A trace of the conditions alone. It finds out whether a call takes the way for which this
        # entry was made.
        self.conditions: Any = None
        self._function, self._name, self._trial = function, name, Trial()
        self._is_new = True  # the first call reads sources and loads modules

    @property
    def last_used(self) -> int:
        return self.use.tick

    @property
    def is_decided(self) -> bool:
        """Whether it has been found out whether NumPy is faster."""
        return self._trial.is_over or self.runs_on_numpy is not None

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """function(*args, **kwargs). Raises what the function raises."""
        self.use.is_now()
        if self.runs_on_numpy:
            return on_numpy(self._function, self._name, self.runs_on_numpy, args, kwargs)
        is_numpys_turn = self._trial.is_numpys_turn
        if is_numpys_turn and not self.programs.has_met_device:
            try:
                with self._trial.numpys_turn():
                    return on_numpy(self._function, self._name, FOR_TRIAL, args, kwargs)
            finally:
                if self._trial.is_over:
                    self._choose()
        start = time.perf_counter()
        compile_time = self.programs.compile_time
        made = self.programs.compiled, self.programs.loops_made
        try:
            return call_numpy(lambda *args, **kwargs: self._in_segments(args, kwargs), args, kwargs)
        finally:  # also after calls that raise
            is_new = self._is_new or self.programs.loops_made != made[1]
            is_comparable = self.programs.interprets or self.programs.compiled == made[0]
            if is_comparable and not (is_new or is_numpys_turn):
                start += self.programs.compile_time - compile_time  # interpretation does not count
                self._trial.note(time.perf_counter() - start)
            self._is_new = False

    def _choose(self) -> None:
        self.runs_on_numpy = self._trial.verdict()
        if self.runs_on_numpy is None and self.programs.interprets:  # again, compiled
            self.programs.interprets, self._trial = False, Trial()

    def _in_segments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arrays = list(arrays_in((args, kwargs)).values())
        if any(np.may_share_memory(a, b) for a, b in itertools.combinations(arrays, 2)):
            return self._function(*args, **kwargs)
        trace = SegmentedTrace(self._name, self.programs)
        of_trace, interrupted, before = sys.getrefcount(trace), False, references()
        ended: collections.Counter[types.CodeType] = collections.Counter()
        try:
            return _call_in_segments(trace, self._function, args, kwargs)
        except KeyboardInterrupt:
            interrupted = True
            raise
        except BaseException as error:
            ended = _clear_own_frames(error)
            raise
        finally:
            self.runs_on_numpy = trace.gave_up
            trace.forget_names()
            # Beside this function, only traced arrays refer to the trace. If there are more
            # references, the function has stored some, often in the object whose method it is.
            if sys.getrefcount(trace) > of_trace and not interrupted:
                _replace_reachable(trace, [getattr(self._function, "__self__", None), args, kwargs])
            if sys.getrefcount(trace) > of_trace and not interrupted:
                with trace.active():
                    outside(trace, arrays_of_objects(self._function, [*args, *kwargs.values()]))
            if sys.getrefcount(trace) > of_trace:
                _replace_kept(trace, interrupted)
            replace_functions(trace.functions_inside, ended)
            if not interrupted:
                roots = [getattr(self._function, "__self__", None), args, kwargs]
                replace_stand_ins(trace.stand_ins_inside, before, roots, _MOST_REACHED)


def _call_in_segments(
    trace: SegmentedTrace,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    watch = Unwatched(function, trace)
    trace.rebind = rebinder = Rebinder(trace, watch, copies_holders=False)
    trace.held_arrays = lambda: held_arrays(function, [*args, *kwargs.values()])
    trace.replace_held = lambda held, by_id: replace_in(objects_with(held), by_id)
    containers = _Containers(trace, lambda: held_containers(function, [*args, *kwargs.values()]))
    try:
        if (why := class_test_behind(function)) is not None:
            raise UnsupportedOpError(why)
        inside = rebinder(function)
    except UnsupportedOpError as error:  # about its code
        trace.give_up(str(error))
    if trace.gave_up:
        return function(*args, **kwargs)
    interrupted, trace.until = False, _call_in_segments.__code__
    trace.end_early = early_end = EarlyEnd(trace, rebinder, containers.has_copies)
    failed: BaseException | None = None
    with trace.active(), threads.noticed():
        try:
            for x in (*args, *kwargs.values()):
                watch.look(x)
            traced_args = tuple(map(containers.inside, args))
            traced_kwargs = {key: containers.inside(value) for key, value in kwargs.items()}
            containers.count()
            is_over = trace.gave_up is not None  # (because of an argument)
            result = None if is_over else inside(*traced_args, **traced_kwargs)
            result = replaced(result, lambda x: containers.outside(rebinder.lasting(x)), {})
        except KeyboardInterrupt:  # pending operations are not computed
            interrupted = True
            raise
        except BaseException as error:
            _settle(trace, error)
            if not _is_of_store(error, trace.error):
                raise
            failed = error.__cause__.with_traceback(error.__traceback__)  # type: ignore[union-attr]
        finally:
            del trace.end_early  # (it refers to the trace)
            if early_end.is_done:
                _core.numpy_ended()
            else:
                rebinder.finish()
                trace.functions_inside, trace.stand_ins_inside = rebinder.forget()
            if not interrupted:
                containers.replace_kept()
                containers.write_back()
                trace.flush()
        if failed is not None:
            raise failed
        if not is_over:
            return outside(trace, result)
    return function(*args, **kwargs)


def _is_of_store(error: BaseException, of_check: BaseException | None) -> bool:
    """Whether NumPy has raised an error because a check raised `of_check` when NumPy asked for a
    number, in order to assign it to an element."""
    is_cause = of_check is not None and error.__cause__ is of_check
    return is_cause and str(error) == "setting an array element with a sequence."


def _settle(trace: SegmentedTrace, error: BaseException | None) -> None:
    """Puts NumPy's arrays and numbers into exceptions that leave a call, and into the variables of
    functions that they have ended."""
    for one in _with_contexts(error):
        if contains_tracer([*one.args, *vars(one).values()]):
            outside(trace, one)
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if is_own(frame.f_code.co_filename):
                continue  # _clear_own_frames
            held = [x for x in frame.f_locals.values() if type(x) is Tracer and x._trace is trace]
            if held:
                plain = dict(zip(map(id, held), trace.finish(held), strict=True))
                replace_locals(frame, functools.partial(_in_place_of, plain))


def _in_place_of(by_id: dict[int, Any], x: Any) -> Any:
    return by_id.get(id(x), x)


def _with_contexts(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and its chain of contexts."""
    while error is not None:
        yield error
        error = error.__context__


def _clear_own_frames(error: BaseException | None) -> collections.Counter[types.CodeType]:
    """Clears the variables of rune_jit's functions that exceptions have ended, which may hold
    traced arrays. Returns the code objects of the user's functions that they have ended, with
    counts."""
    tracebacks = (one.__traceback__ for one in _with_contexts(error))
    frames = {frame for tb in tracebacks for frame, _ in traceback.walk_tb(tb)}
    for frame in frames:
        if is_own(frame.f_code.co_filename):
            with contextlib.suppress(RuntimeError):  # the frame is still running
                frame.clear()
    # Frames refer to functions from Python 3.11 on.
    return collections.Counter(x.f_code for x in frames if sys.version_info >= (3, 11))


class _Containers:
    """The arguments that the function gets: copies of lists, tuples and dicts, with traced arrays.
    Changes of copies are made to the originals. Containers in `held` (ids) are not copied."""

    def __init__(self, trace: SegmentedTrace, held: Callable[[], set[int]]) -> None:
        self._trace, self._held = trace, functools.cache(held)
        self._copies: dict[int, tuple[Any, Any, Any]] = {}  # by id: container, copy, content
        self._originals: dict[int, Any] = {}  # containers, by the ids of their copies
        self._references: dict[int, int] = {}  # number of references to each copy, by id

    def has_copies(self) -> bool:
        return bool(self._copies)

    def outside(self, x: Any) -> Any:
        """The original of x if x is a copy, otherwise x."""
        return self._originals.get(id(x), x)

    def count(self) -> None:
        """Counts the references to copies before the function runs."""
        for container, copy, _ in self._copies.values():
            self._originals[id(copy)] = container
            self._references[id(copy)] = sys.getrefcount(copy)

    def replace_kept(self) -> None:
        """Replaces copies that the function has stored somewhere by their originals."""
        known = {id(x) for made in self._copies.values() for x in made}
        for _, copy, _ in self._copies.values():
            if sys.getrefcount(copy) <= self._references.get(id(copy), 0):
                continue
            for holder in gc.get_referrers(copy):
                is_container = isinstance(holder, (list, dict, deque)) and id(holder) not in known
                if isinstance(holder, types.CellType):
                    holder.cell_contents = self.outside(copy)
                elif is_container or has_attributes(holder):
                    replaced(holder, self.outside, {})

    def inside(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            is_traced = is_replaceable(x) and not is_empty_mask(x)
            return self._trace.stand_in(x) if is_traced else x
        if type(x) not in (list, dict, tuple):
            return self._trace.rebind.inside(x)
        if not arrays_in(x):
            return x
        if id(x) in self._copies:
            return self._copies[id(x)][1]
        if type(x) is tuple:
            return tuple(map(self.inside, x))
        if id(x) in self._held():
            return x
        copy = type(x)()
        self._copies[id(x)] = x, copy, copy
        if type(x) is list:
            copy.extend(map(self.inside, x))
        else:
            copy.update((key, self.inside(value)) for key, value in x.items())
        self._copies[id(x)] = x, copy, copy.copy()
        return copy

    def write_back(self) -> None:
        """Makes the changes of the copies to the originals."""
        for container, copy, before in self._copies.values():
            new, old = (list(x.items() if type(x) is dict else x) for x in (copy, before))
            if len(new) == len(old) and all(map(_is_same, new, old)):
                continue
            plain = outside(self._trace, replaced(copy.copy(), self.outside, {}))
            container.clear()
            (container.extend if type(container) is list else container.update)(plain)


def _is_same(a: Any, b: Any) -> bool:
    if type(a) is tuple and type(b) is tuple:  # of a dict
        return a[0] is b[0] and a[1] is b[1]
    return a is b


def outside(trace: SegmentedTrace, result: Any) -> Any:
    """A result with NumPy's arrays and numbers in place of traced ones. Lists, dicts and objects in
    it keep their identity."""
    tracers: dict[int, Tracer] = {}
    plain: dict[int, Any] = {}

    def collect(x: Any) -> Any:
        if type(x) is Selection:
            x = x.settled()
        if type(x) is np.ndarray and (owner := _seen_as(trace, x)) is not None:
            plain[id(x)] = owner
        if type(x) is Flat:
            flats.append(x)
        array = x.base if type(x) is Flat else x
        if type(array) is Tracer:
            tracers[id(array)] = array
        return x

    flats: list[Flat] = []
    result = replaced(result, collect, {})
    plain.update(zip(tracers, trace.finish(list(tracers.values())), strict=True))
    plain.update({id(x): x.over(plain[id(x.base)]) for x in flats})
    return replaced(result, lambda x: plain.get(id(x), x), {})


def _seen_as(trace: SegmentedTrace, x: np.ndarray) -> Any:
    """The array that np.asarray would have returned, if code that is not copied has called it for a
    traced array and x is what it got; else None."""
    array: Any = getattr(x.base, "obj", None)  # (the base is a memoryview)
    is_whole = type(array) is np.ndarray and x.__array_interface__ == array.__array_interface__
    return array if is_whole and trace.has_exposed(array) else None


# Traced arrays are searched in so many objects, before all objects of the process are searched.
_MOST_REACHED = 300


def _replace_reachable(trace: SegmentedTrace, roots: list[Any]) -> None:
    """Replaces traced arrays in the objects that the roots hold, unless there are too many
    objects."""
    reached = (x for x in reachable(roots) if type(x) not in ATOMIC)
    if len([*itertools.islice(reached, _MOST_REACHED + 1)]) <= _MOST_REACHED:
        with trace.active():
            outside(trace, roots)


def _replace_kept(trace: SegmentedTrace, interrupted: bool) -> None:
    """Replaces traced arrays that the function has stored somewhere by arrays and numbers. Those
    that cannot be replaced, for example in a frame, keep their elements, unless the call was
    `interrupted`."""
    kept: list[Any] = trace.traced_arrays()
    holders, made = holders_and_made(kept)
    kept += made
    if interrupted:
        held = set(map(id, gc.get_referents(*holders)))
        kept = [x for x in kept if id(x) in held]
    with trace.active():
        by_id = plain_by_id(trace, kept)
    replace_in(holders, by_id)
    for x in kept:
        if type(x) is Tracer:
            x._become(np.asarray(by_id[id(x)]))
