"""Traces a call: makes the graph, and relates its inputs and outputs to the call's arguments and
results. An attempt may find out something, so that the next one succeeds."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import trees
from rune_jit.arrays.array import Array
from rune_jit.calls.arguments import STATE, Call, is_defined_often, may_repeat
from rune_jit.calls.inputs import input_tracer, inverse
from rune_jit.calls.outputs import plan_output
from rune_jit.calls.repeated import are_apart, flattened
from rune_jit.calls.traced import Assigned, Raised, Traced
from rune_jit.calls.views import View, Views, with_bases, with_choices, with_numbers, with_places
from rune_jit.capture import effects, threads
from rune_jit.capture.draws import Draws
from rune_jit.capture.guards import Watch
from rune_jit.capture.loops.growing import Filled
from rune_jit.capture.loops.list_results import with_lists, with_made_lists, with_packed_lists
from rune_jit.capture.loops.streams import FIRST_WORDS
from rune_jit.capture.printed import Prints
from rune_jit.capture.rebinder import Rebinder
from rune_jit.capture.state import Change, Contents, Held, containers, places
from rune_jit.containers import refuse_endless
from rune_jit.errors import ConcretizationError, RuneJitError, UnsupportedOpError, noted_refusals
from rune_jit.tracing.context import ValuesNeeded, user_site_of
from rune_jit.tracing.layouts_now import axes_of
from rune_jit.tracing.loop_plans import LoopPlans, LoopRefused
from rune_jit.tracing.loops import Loops
from rune_jit.tracing.rows import origin_of, pack, storage_viewed
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.steps import Steps
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracebacks import clearing_frames, forget_frames
from rune_jit.tracing.tracer import Tracer

# If a program has more operations, a loop that could be a program of its own in segments should be
# one.
_LONG = 100


def trace_call(
    fn: Callable[..., Any],
    name: str,
    call: Call,
    run: Callable[[Traced], Any],
    guesses: bool = True,
    decides: bool = False,
    must_pay: bool = False,
    room: int = 0,
    has_float64: bool = True,
    steps: Steps | None = None,
) -> Traced:
    """Traces `fn` for the arguments of one call. If this fails, all outside changes are undone.

    `run` compiles and runs a trace for this call, where the trace must know something about data.
    `guesses` and `decides` are those of Trace. `must_pay`: a large program must save much of
    NumPy's time. `room`: the most items of lists whose length data decide. `has_float64`: whether
    the device has this dtype.

    Raises ValuesNeeded if `fn` uses the values of numbers among the arguments; UnsupportedOpError
    or ConcretizationError if a program cannot do what `fn` does; Raised if `fn` raises."""
    steps = steps or Steps()
    asked: list[Any] = []
    # First, captured arrays are inputs. If that fails, calls compare their contents.
    for captured_are_traced in (True, False):
        plans = LoopPlans()
        while True:
            trace = Trace(name, captured_are_traced, call.sizes, guesses, Loops(plans))
            watch = Watch(fn, not decides, call.slots)
            trace.decides, trace.builder.must_pay, trace.steps = decides, must_pay, steps
            watch.note_steps = trace.note_steps
            trace.decides_numbers, trace.asked = call.decides, asked
            trace.in_chunks = call.in_chunks
            trace.rebind = Rebinder(trace, watch)
            trace.prints = Prints(trace, trace.loops) if decides and trace.loops else None
            trace.draws = Draws(trace, call.leaves, max(room, FIRST_WORDS))
            trace.room, trace.has_float64 = room, has_float64
            held = Held(call.slots)
            try:
                traced = CallTrace(fn, call, trace, watch, run).traced()
                if held.restore():
                    raise _cannot_assign(trace)
                watch.told_apart.check()
            except KeyboardInterrupt:
                watch.restore()
                held.restore()
                raise
            except BaseException as error:
                held.restore()
                # (Without these loops or guesses there would be more operations.)
                is_full = trace.builder.is_full and isinstance(error, UnsupportedOpError)
                begins_again = (
                    trace.loops is not None and not is_full and trace.loops.begin_again(error)
                )
                watch.restore()
                steps.end(trace)
                if begins_again or watch.told_apart.are_met():
                    forget_frames(error)
                    continue
                pays = trace.pays
                if plans.with_loops is not None and not trace.builder.pays:  # too large to unroll
                    error, pays = plans.with_loops, True
                error.loops = plans.lines()  # type: ignore[attr-defined]
                # (A loop that is a program of its own in segments need not pay.)
                is_apart = bool(plans.apart) and not trace.steps.are_too_many
                error.pays = pays or is_apart  # type: ignore[attr-defined]
                stood_in = captured_are_traced and bool(trace.stand_ins) and not call.slots
                stood_in &= not (is_full and must_pay)
                refused = isinstance(error, (UnsupportedOpError, ConcretizationError))
                if refused and (seeds := trace.draws.seeds):
                    error = ValuesNeeded(seeds)
                is_found = isinstance(error, ValuesNeeded) or getattr(error, "slots", None)
                if is_found or (refused and not pays):
                    raise error
                is_final = trace.is_mostly_known or is_full or hasattr(error, "conditions")
                if trace.has_guessed and not is_final:
                    # A guess may be the reason for the error.
                    given = False, decides, must_pay, room, has_float64, steps
                    return trace_call(fn, name, call, run, *given)
                if not stood_in and (refused or isinstance(error, (RuneJitError, LoopRefused))):
                    raise error
                if not stood_in:
                    raise Raised(error) from error
                break
            if plans.apart is not None and len(traced.graph or ()) > _LONG:
                watch.restore()
                needed = ConcretizationError(f"{name}: {plans.apart}")
                needed.loops = plans.lines()  # type: ignore[attr-defined]
                raise needed
            return traced
    raise AssertionError("a trace returns or raises")


class CallTrace:
    """One trace of a function for the arguments of a call."""

    def __init__(
        self,
        fn: Callable[..., Any],
        call: Call,
        trace: Trace,
        watch: Watch,
        run: Callable[[Traced], Any],
    ) -> None:
        self._fn, self._call, self._trace, self._watch, self._run = fn, call, trace, watch, run
        self._inputs: list[int] = []  # leaves of the call that are inputs of the graph
        self._leaves: list[Any] = []  # with traced arrays and numbers in the place of the inputs
        self._makes_lists = False  # whether the result has MadeLists
        self._lists: list[Any] = []  # the paths of MadeLists and PackedLists in the result
        # Leaves that are functions which the program takes as they are.
        functions = [(i, call.leaves[i]) for i in {*call.static_leaves}.difference(call.constants)]
        self._functions = [(i, x) for i, x in functions if is_defined_often(x)]

    def traced(self) -> Traced:
        trace = self._trace
        arguments = self._arguments()
        contents = Contents(arguments, {*map(id, self._leaves)})
        given = {id(x): path for path, x in places(arguments)}
        self._watch.told_apart.note(x for _, x in places(arguments))
        args, kwargs = self._bound(arguments)
        trace.evaluate, trace.caller = self._evaluate, CallTrace._result.__code__
        with trace.active(), noted_refusals() as refusals:
            try:
                result = self._result(args, kwargs, refusals)
            except (KeyboardInterrupt, ValuesNeeded, LoopRefused):
                raise
            except BaseException as error:  # (SystemExit, too)
                return self._conditions_before(error, refusals)
            trace.check_captured()
        changes = self._changes(contents, arguments)
        assigned = trace.rebind.assigned()
        made = (result, assigned, [(change.assigned, change.appended) for change in changes])
        trace.note_steps(refuse_endless(made))
        if trace.loops is not None:
            trace.loops.check_identities(made, lambda x: id(x) in given or trace.rebind.is_copy(x))
        self._watch.told_apart.refuse_keys(trace, arguments, made)
        whole, (result, returns_argument) = result, with_places(trace, self._watch, given, result)
        if trace.decides and not self._call.in_chunks:
            result, packed = with_packed_lists(trace, result)
            self._lists += packed
        if are_apart(whole, made[1:], result):
            raise _cannot_assign(trace)
        shown, rows = trace.prints.end() if trace.prints is not None else (None, [])
        if changes or assigned or returns_argument or shown is not None:
            return self._with_state(
                result, rows, changes, assigned, contents, returns_argument, shown
            )
        traced = self._finish(result, self._watch.guards_now())
        return traced._replace(met=self._watch.met())

    # The arguments.

    def _arguments(self) -> list[Any]:
        """The call's tree of arguments, with traced values."""
        call, trace = self._call, self._trace
        statics = set(call.static_leaves)
        for position, leaf in enumerate(call.leaves):
            if position in statics:
                self._leaves.append(leaf)
                continue
            if not isinstance(leaf, (np.ndarray, Array)):
                trace.numbers[len(self._inputs)] = position
            self._inputs.append(position)
            shape = trace.sizes.shape_of(leaf, position)
            self._leaves.append(input_tracer(trace, leaf, position, shape))
        trace.may_repeat = may_repeat(call)
        trace.takes_arrays = any(isinstance(leaf, Array) for leaf in call.leaves)
        # The contents of slots come first, because slots may be attributes of objects among the
        # other arguments.
        count = len((call.plain or call).leaves)
        state: list[Any] = []
        if call.slots:
            for position in filter(lambda position: position >= count, statics):
                self._leaves[position] = trace.rebind.inside(call.leaves[position])
            state = trees.unflatten(call.treedef, self._leaves)[-1:]
            trace.rebind.hold(call.slots, state[0])
        for position in filter(lambda position: position < count, statics):
            self._leaves[position] = trace.rebind.inside(call.leaves[position])
        for position, function in self._functions:
            same = trace.definitions.get(function.__code__, frozenset())
            trace.definitions[function.__code__] = same | {position}
        arguments: list[Any] = trees.unflatten(call.treedef, self._leaves)
        arguments[len(arguments) - len(state) :] = state
        return arguments

    def _bound(self, arguments: list[Any]) -> tuple[Any, Any]:
        """The function's arguments by position and by name."""
        call = self._call
        values = dict(zip(call.names, arguments, strict=True))
        values.pop(STATE, None)
        values |= {name: self._trace.rebind.inside(x) for name, x in call.statics.items()}
        if call.bound is None:
            return values["args"], values["kwargs"]
        given = {name: values[name] for name in call.bound.arguments}
        bound = inspect.BoundArguments(call.bound.signature, given)
        return bound.args, bound.kwargs

    # The run of the function.

    def _result(self, args: Any, kwargs: Any, refusals: list[Any]) -> Any:
        """Runs the function on traced arguments."""
        trace = self._trace
        try:
            with effects.refused(trace), threads.noticed(), clearing_frames(trace.decides):
                result = trace.rebind(self._fn)(*args, **kwargs)
        finally:
            trace.rebind.finish()
        if trace.loops is not None and trace.loops.within:
            trace.loops.fail("the function has handled an error of its body")
        self._raise_what_was_caught(refusals)
        trace.draws.end()
        trace.rebind.end()
        if trace.may_raise_on_host and trace.rebind.may_handle_errors():
            raise UnsupportedOpError(
                f"{trace.name}: cannot trace a function that may handle errors of calls on the"
                " host (they are known only when the program runs)\n"
                "hint: move the calls out of `try` and `with`"
            )
        result, self._lists = with_made_lists(trace, result)
        self._makes_lists = bool(self._lists)
        return result

    def _raise_what_was_caught(self, refusals: list[Any]) -> None:
        """Raises an error of the trace that the function has caught."""
        if self._trace.needed:
            raise ValuesNeeded(self._trace.needed)
        if refusals:
            raise refusals[0]

    def _conditions_before(self, error: BaseException, refusals: list[Any]) -> Traced:
        """The program that only checks the conditions before the function's error, so that calls
        with the same conditions run on NumPy, which raises it. Raises an error if the trace may be
        its cause."""
        trace, watch = self._trace, self._watch
        if isinstance(error, UnsupportedOpError):
            if getattr(error, "user_site", None) is None:
                error.user_site = user_site_of(error)  # type: ignore[attr-defined]
            raise error
        if isinstance(error, ConcretizationError):
            if self._are_conditions_sure(trace.decides_numbers):
                watch.restore()
                error.conditions = self._conditions()  # type: ignore[attr-defined]
            raise error
        if isinstance(error.__cause__, UnsupportedOpError):  # NumPy wraps errors
            error.__cause__.user_site = user_site_of(error)  # type: ignore[attr-defined]
            raise error.__cause__ from None
        self._raise_what_was_caught(refusals)
        if type(error) is TypeError and trace.numbers:
            # Code in C may accept only Python's numbers, not traced ones: `deque(maxlen=n)`.
            raise ValuesNeeded(frozenset(trace.numbers.values())) from error
        if watch.is_of_library(error):
            raise UnsupportedOpError(f"{trace.name}: cannot trace this ({error})") from error
        if isinstance(error, RuneJitError) or not self._are_conditions_sure():
            raise error
        watch.restore()
        return self._conditions()

    def _are_conditions_sure(self, may_guess: bool = False) -> bool:
        """Whether the trace has assumed outcomes of conditions, and nothing else that it has
        assumed may be the cause of an error. With `may_guess`, its guesses are not the cause."""
        trace = self._trace
        tried = trace.has_guessed and not may_guess
        tried |= bool(trace.captured_are_traced and trace.stand_ins and not self._call.slots)
        loops = trace.loops is not None and (trace.loops.within or trace.loops.rolled)
        return bool(trace.conditions) and not (tried or loops)

    def _conditions(self) -> Traced:
        """A program that only checks the conditions so far."""
        for _, storage in self._trace.inputs(self._inputs):
            storage.value = storage.original
        made = self._finish(None, self._watch.guards_now())
        return made._replace(is_conditions=True)

    def _evaluate(self, value: Any) -> int:
        """Runs the program so far, of which `value` is a number."""
        so_far = self._finish(Tracer(self._trace, value), [])
        as_number = ("computed", 0, True, False)
        return self._run(so_far._replace(outputs=[as_number], writes=[]))  # type: ignore[no-any-return]

    # What the function has changed.

    def _changes(self, contents: Contents, arguments: list[Any]) -> list[Change]:
        """The changes of lists and dicts among the arguments. Raises UnsupportedOpError if a
        program cannot repeat what the function has changed."""
        call, trace = self._call, self._trace
        for _, function in self._functions:
            if vars(function):  # assigned by the trace
                trace.need_identity(function)
        self._watch.refuse_changes(trace.name)
        of_state: set[int] = set()
        if call.slots:
            of_state = {id(leaf) for leaf in call.leaves[len(call.plain.leaves) :]}
        if of_state & trace.stand_ins.keys():
            raise UnsupportedOpError(
                f"{trace.name}: cannot trace an array that is both captured and in a place that"
                " the function assigns\nhint: reach it by one name"
            )
        changes = contents.changes()
        if changes:
            return changes
        pairs = zip(call.leaves, self._leaves, strict=True)
        receiver = next((inside for real, inside in pairs if real is call.receiver), None)
        leaves, treedef = trees.flatten(arguments, receiver)
        if (
            changes is None
            or treedef != call.treedef
            or any(a is not b for a, b in zip(leaves, self._leaves, strict=True))
        ):
            raise _cannot_assign(trace)
        return changes

    def _with_state(
        self,
        result: Any,
        rows: Any,
        changes: list[Change],
        assigned: dict[Any, Any],
        contents: Contents,
        returns_argument: bool,
        shown: Any,
    ) -> Traced:
        """The trace of a function that assigns outside places, changes or returns lists or dicts of
        the arguments, or prints."""
        call, trace = self._call, self._trace
        slots = [i for i, slot in enumerate(call.slots) if slot.key in assigned]
        held = [assigned[call.slots[i].key] for i in slots]
        grown: dict[int, list[Any]] = {}
        has_room = any(type(x) is Filled for x in held)
        for place, i in enumerate(slots):
            if call.slots[i].kind == "grown" and type(held[place]) is list:
                _refuse_views(trace, held[place])
                held[place], grown[i] = pack(trace, held[place])
        _refuse_views(trace, [change.appended for change in changes])
        packed = [pack(trace, change.appended) for change in changes]
        elements = [
            [*change.assigned.values(), *leaves]
            for change, (leaves, _) in zip(changes, packed, strict=True)
        ]
        stored = (held, elements)
        arrays = [x for x in call.leaves if changes and type(x) is np.ndarray]
        is_met = any(id(x) in trace.stand_ins or self._watch.knows(x) for x in arrays)
        copied = any(trace.rebind.is_copy(x) for _, x in containers(stored))
        if is_met or copied or contents.holds(stored):
            raise _cannot_assign(trace)  # it would get a new list or dict, or methods read it
        _refuse_views(trace, stored)
        whole = (result, held, elements, rows)
        self._lists = [(0, *path) for path in self._lists]
        traced = self._finish(whole, self._watch.guards_now())
        unflatten = None
        if returns_argument and isinstance(traced.unflatten, Views):
            unflatten = traced.unflatten.unflatten
            traced = traced._replace(unflatten=traced.unflatten._replace(unflatten=tuple))
        elif returns_argument:
            unflatten, traced = traced.unflatten, traced._replace(unflatten=tuple)
        keys = [tuple(map(trace.rebind.outside, change.assigned)) for change in changes]
        paths = tuple(
            (c.path, c.removed, new, hows)
            for c, new, (_, hows) in zip(changes, keys, packed, strict=True)
        )
        assigned_there = Assigned(tuple(slots), paths, unflatten, shown, grown, has_room)
        return traced._replace(assigned=assigned_there, met=self._watch.met())

    def _finish(self, result: Any, guards: list[Any]) -> Traced:
        """Ends the graph with the leaves of the result, writes to arguments, and checks."""
        call, trace = self._call, self._trace
        leaves, unflatten = flattened(result, call.receiver)
        given = [*call.leaves, *trace.captured]
        takes_numpys = not call.in_chunks and not any(isinstance(x, Array) for x in given)
        leaves = [Tracer(trace, trace.operand(x)) if isinstance(x, Size) else x for x in leaves]
        views: list[View] | None = None
        are_constants = trees.PLAIN.issuperset(map(type, leaves))
        if trace.decides and not are_constants:
            unflatten = with_numbers(trace, leaves, unflatten)
            unflatten = with_choices(trace, leaves, unflatten)
            leaves, views = with_bases(trace, leaves, call.leaves)
        outputs: list[Any] = [("constant", x) for x in leaves if are_constants]
        computed: list[Any] = []
        planned: dict[int, tuple[Any, ...]] = {}
        transposed: list[tuple[int, tuple[int, ...]]] = []
        for leaf in () if are_constants else leaves:
            number = len(computed)
            outputs.append(plan_output(trace, leaf, computed, planned))
            is_array = len(computed) > number and isinstance(leaf, Tracer) and leaf.ndim > 1
            if is_array and takes_numpys and (axes := axes_of(leaf)) is not None:
                transposed.append((number, inverse(axes)))
                computed[number] = trace.builder.transpose(computed[number], axes)
        writes = []
        contiguous = []
        for target, storage in trace.inputs(self._inputs):
            if storage.layout_used:
                contiguous.append(target)
            if storage.value.id != storage.original.id:
                writes.append((target, len(computed)))
                computed.append(storage.value)
        checks: list[tuple[Any, ...]] = []
        # (An index of a list that an array represents is not that of the error. A list to which a
        # program appends, or that it prints, gets no items if the program raises.)
        loops = trace.loops
        has_lists = loops is not None and bool(loops.plans.with_stacks or loops.growing)
        for value, *what in trace.checks(has_lists or trace.rebind.may_handle_errors()):
            checks.append(tuple(what))
            computed.append(value)
        leaf_guards = [(self._inputs[i], dtype) for i, dtype in trace.builder.guards]
        if self._lists:
            unflatten = functools.partial(with_lists, unflatten, self._lists)
        if views is not None:
            unflatten = Views(views, unflatten)
        graph = trace.builder.finish(computed) if computed or trace.functions else None
        return Traced(
            graph,
            self._inputs,
            trace.captured,
            frozenset(i for i, array in enumerate(trace.captured) if id(array) in trace.constants),
            outputs,
            unflatten,
            leaf_guards,
            guards,
            writes,
            contiguous,
            [(i, trace.orders[x][0]) for i, x in enumerate(self._inputs) if x in trace.orders],
            transposed,
            trace.functions,
            checks,
            trace.loops.plans.lines() if trace.loops is not None else [],
            trace.conditions,
            leaves_usual=trace.loops is not None and trace.loops.plans.leaves_usual,
            numbers=trace.draws.numbers(),
            has_loops=trace.loops is not None and trace.loops.rolled > 0,
            makes_lists=self._makes_lists,
        )


def _cannot_assign(trace: Trace) -> UnsupportedOpError:
    return UnsupportedOpError(
        f"{trace.name}: cannot trace a write to a container among the arguments\n"
        "hint: return the new value"
    )


def _refuse_views(trace: Trace, assigned: Any) -> None:
    """Raises UnsupportedOpError if a view is assigned, since writes to one must reach the
    others."""
    for leaf in trees.flatten(assigned)[0]:
        is_row_outside = origin_of(leaf) is not None and storage_viewed(leaf).is_outside
        if isinstance(leaf, Tracer) and (leaf._steps or is_row_outside):
            raise UnsupportedOpError(
                f"{trace.name}: cannot trace the assignment of a view to a place outside (writes to"
                " one must reach the other)\nhint: assign a copy: x.copy()"
            )
