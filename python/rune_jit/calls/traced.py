"""Traces a call. Makes its graph, and relates the graph's inputs and outputs to the call's
arguments and results."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rune_jit import trees
from rune_jit.arrays.array import Array
from rune_jit.calls.arguments import STATE, Call, is_defined_often, is_fortran_ordered, may_repeat
from rune_jit.calls.outputs import plan_output
from rune_jit.calls.views import View, Views, with_bases, with_places
from rune_jit.capture import effects, threads
from rune_jit.capture.drawn import Numbers
from rune_jit.capture.draws import Draws
from rune_jit.capture.guards import Watch
from rune_jit.capture.loops.growing import Filled
from rune_jit.capture.loops.list_results import with_lists, with_made_lists
from rune_jit.capture.loops.streams import FIRST_WORDS
from rune_jit.capture.matching import Met
from rune_jit.capture.printed import Prints, Shown
from rune_jit.capture.rebinder import Rebinder
from rune_jit.capture.state import Contents, Held, Path, containers, places
from rune_jit.errors import (
    ConcretizationError,
    RuneJitError,
    UnsupportedOpError,
    noted_refusals,
)
from rune_jit.tracing.context import ValuesNeeded, user_site_of
from rune_jit.tracing.loop_plans import LoopPlans, LoopRefused
from rune_jit.tracing.loops import Loops
from rune_jit.tracing.orders import Orders
from rune_jit.tracing.rows import origin_of, pack, storage_viewed
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer


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
    fortran_inputs: list[int]  # inputs in Fortran order, whose transposes the graph takes
    fortran_results: list[int]  # results of the graph that are transposes of the function's
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
    makes_lists: bool = False  # whether its results have MadeLists

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

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


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
) -> Traced:
    """Traces `fn` for the arguments of one call. If this fails, all outside changes are undone.

    `run` compiles and runs a trace for this call, where the trace must know something about data.
    `guesses` and `decides` are those of Trace. `must_pay`: a large program must save much of
    NumPy's time. `room`: the most items of lists whose length data decide.

    Raises ValuesNeeded if `fn` uses the values of numbers among the arguments; UnsupportedOpError
    or ConcretizationError if a program cannot do what `fn` does; Raised if `fn` raises."""
    # First, captured arrays are inputs. If that fails, calls compare their contents.
    for captured_are_traced in (True, False):
        plans = LoopPlans()
        while True:
            trace = Trace(name, captured_are_traced, call.sizes, guesses, Loops(plans))
            watch = Watch(fn, not decides, call.slots)
            trace.decides, trace.builder.must_pay = decides, must_pay
            trace.decides_numbers = call.decides
            trace.in_chunks = call.in_chunks
            trace.rebind = Rebinder(trace, watch)
            trace.prints = Prints(trace, trace.loops) if decides and trace.loops else None
            trace.draws = Draws(trace, call.leaves, max(room, FIRST_WORDS))
            trace.room = room
            held = Held(call.slots)
            try:
                traced = _trace_once(fn, call, trace, watch, run)
                if held.restore():
                    raise _cannot_assign(trace)
                watch.told_apart.check()
            except KeyboardInterrupt:
                watch.restore()
                held.restore()
                raise
            except (Exception, ValuesNeeded, LoopRefused) as error:
                held.restore()
                begins_again = trace.loops is not None and trace.loops.begin_again(error)
                begins_again = begins_again or watch.told_apart.are_met()
                watch.restore()
                if begins_again:
                    continue
                pays = trace.builder.pays
                if plans.with_loops is not None and not pays:  # too large to unroll the loops
                    error, pays = plans.with_loops, True
                error.loops = plans.lines()  # type: ignore[union-attr]
                # (A loop that is a program of its own in segments need not pay.)
                error.pays = pays or bool(plans.apart)  # type: ignore[union-attr]
                stood_in = captured_are_traced and bool(trace.stand_ins) and not call.slots
                refused = isinstance(error, (UnsupportedOpError, ConcretizationError, ValuesNeeded))
                is_found = isinstance(error, ValuesNeeded) or getattr(error, "slots", None)
                if is_found or (refused and not pays):
                    raise error
                if trace.has_guessed and not hasattr(error, "conditions"):
                    # A guess may be the reason for the error.
                    return trace_call(fn, name, call, run, False, decides, must_pay, room)
                if not stood_in and (refused or isinstance(error, (RuneJitError, LoopRefused))):
                    raise error
                if not stood_in:
                    assert isinstance(error, Exception)
                    raise Raised(error) from error
                break
            if plans.apart is not None and len(traced.graph or ()) > _LONG:
                watch.restore()
                needed = ConcretizationError(f"{name}: {plans.apart}")
                needed.loops = plans.lines()  # type: ignore[attr-defined]
                raise needed
            return traced
    raise AssertionError("a trace returns or raises")


def _trace_once(
    fn: Callable[..., Any], call: Call, trace: Trace, watch: Watch, run: Callable[[Traced], Any]
) -> Traced:
    statics = set(call.static_leaves)
    traced_leaves: list[Any] = []
    input_leaves: list[int] = []
    for position, leaf in enumerate(call.leaves):
        if position in statics:
            traced_leaves.append(leaf)
            continue
        if not isinstance(leaf, (np.ndarray, Array)):
            trace.numbers[len(input_leaves)] = position
        input_leaves.append(position)
        shape = trace.sizes.shape_of(leaf, position)
        traced_leaves.append(_input_tracer(trace, leaf, position, shape))
    trace.may_repeat = may_repeat(call)
    trace.begins_in = sys._getframe().f_code
    trace.takes_arrays = any(isinstance(leaf, Array) for leaf in call.leaves)
    # The contents of slots come first, because slots may be attributes of objects among the other
    # arguments.
    count = len((call.plain or call).leaves)
    state: list[Any] = []
    if call.slots:
        for position in filter(lambda position: position >= count, statics):
            traced_leaves[position] = trace.rebind.inside(call.leaves[position])
        state = trees.unflatten(call.treedef, traced_leaves)[-1:]
        trace.rebind.hold(call.slots, state[0])
    for position in filter(lambda position: position < count, statics):
        traced_leaves[position] = trace.rebind.inside(call.leaves[position])
    functions = [(i, call.leaves[i]) for i in statics.difference(call.constants)]
    functions = [(i, x) for i, x in functions if is_defined_often(x)]
    for position, function in functions:
        same = trace.definitions.get(function.__code__, frozenset())
        trace.definitions[function.__code__] = same | {position}
    arguments = trees.unflatten(call.treedef, traced_leaves)
    arguments[len(arguments) - len(state) :] = state
    contents = Contents(arguments, {*map(id, traced_leaves)})
    given = {id(x): path for path, x in places(arguments)}
    watch.told_apart.note(x for _, x in places(arguments))
    values = dict(zip(call.names, arguments, strict=True))
    values.pop(STATE, None)
    values |= {name: trace.rebind.inside(value) for name, value in call.statics.items()}
    if call.bound is None:
        args, kwargs = values["args"], values["kwargs"]
    else:
        bound = inspect.BoundArguments(
            call.bound.signature,
            {name: values[name] for name in call.bound.arguments},
        )
        args, kwargs = bound.args, bound.kwargs

    def evaluate(value: Any) -> int:
        so_far = _finish(trace, call, Tracer(trace, value), input_leaves, [])
        as_number = ("computed", 0, True, False)
        return run(so_far._replace(outputs=[as_number], writes=[]))  # type: ignore[no-any-return]

    def conditions() -> Traced:
        """A program that only checks the conditions so far."""
        for _, storage in trace.inputs(input_leaves):
            storage.value = storage.original
        made = _finish(trace, call, None, input_leaves, watch.guards_now())
        return made._replace(is_conditions=True)

    trace.evaluate = evaluate
    with trace.active(), noted_refusals() as refusals:

        def raise_what_was_caught() -> None:
            """Raises an error of the trace that the function has caught."""
            if trace.needed:
                raise ValuesNeeded(trace.needed)
            if refusals:
                raise refusals[0]

        try:
            try:
                with effects.refused(trace), threads.noticed():
                    result = trace.rebind(fn)(*args, **kwargs)
            finally:
                trace.rebind.finish()
            if trace.loops is not None and trace.loops.within:
                trace.loops.fail("the function has handled an error of its body")
            raise_what_was_caught()
            trace.draws.end()
            trace.rebind.end()
            result, makes_lists = with_made_lists(trace, result)
            if trace.may_raise_on_host and trace.rebind.may_handle_errors():
                raise UnsupportedOpError(
                    f"{trace.name}: cannot trace a function that may handle errors of calls on the"
                    " host (they are known only when the program runs)\n"
                    "hint: move the calls out of `try` and `with`"
                )
        except UnsupportedOpError as error:
            if getattr(error, "user_site", None) is None:
                error.user_site = user_site_of(error)  # type: ignore[attr-defined]
            raise
        except ConcretizationError as error:
            if _are_conditions_sure(trace, call, trace.decides_numbers):
                watch.restore()
                error.conditions = conditions()  # type: ignore[attr-defined]
            raise
        except Exception as error:
            if isinstance(error.__cause__, UnsupportedOpError):  # NumPy wraps errors
                error.__cause__.user_site = user_site_of(error)  # type: ignore[attr-defined]
                raise error.__cause__ from None
            raise_what_was_caught()
            if type(error) is TypeError and trace.numbers:
                # Code in C may accept only Python's numbers, not traced ones: `deque(maxlen=n)`.
                raise ValuesNeeded(frozenset(trace.numbers.values())) from error
            if watch.is_of_library(error):
                raise UnsupportedOpError(f"{trace.name}: cannot trace this ({error})") from error
            if isinstance(error, RuneJitError) or not _are_conditions_sure(trace, call):
                raise
            watch.restore()
            return conditions()  # calls with the same conditions run on NumPy, which raises this
        trace.check_captured()
    for _, function in functions:
        if vars(function):  # assigned by the trace
            trace.need_identity(function)
    watch.refuse_changes(trace.name)
    of_state = {id(leaf) for leaf in call.leaves[len(call.plain.leaves) :]} if call.slots else set()
    if of_state & trace.stand_ins.keys():
        raise UnsupportedOpError(
            f"{trace.name}: cannot trace an array that is both captured and in a place that"
            " the function assigns\nhint: reach it by one name"
        )
    changes = contents.changes()
    leaves_after, treedef_after = trees.flatten(arguments, call.receiver)
    if changes is None or (
        not changes
        and (
            treedef_after != call.treedef
            or any(a is not b for a, b in zip(leaves_after, traced_leaves, strict=True))
        )
    ):
        raise _cannot_assign(trace)
    assigned = trace.rebind.assigned()
    if trace.loops is not None:
        new = [(change.assigned, change.appended) for change in changes]
        trace.loops.check_identities(
            (result, assigned, new), lambda x: id(x) in given or trace.rebind.is_copy(x)
        )
    made = (result, assigned, [(change.assigned, change.appended) for change in changes])
    watch.told_apart.refuse_keys(trace, arguments, made)
    result, returns_argument = with_places(trace, watch, given, result)
    shown, rows = trace.prints.end() if trace.prints is not None else (None, [])
    if not changes and not assigned and not returns_argument and shown is None:
        traced = _finish(trace, call, result, input_leaves, watch.guards_now(), makes_lists)
        return traced._replace(met=watch.met())
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
    is_met = any(id(x) in trace.stand_ins or watch.knows(x) for x in arrays)
    copied = any(trace.rebind.is_copy(x) for _, x in containers(stored))
    if is_met or copied or contents.holds(stored):
        raise _cannot_assign(trace)  # it would get a new list or dict, or methods read it
    _refuse_views(trace, stored)
    whole = (result, held, elements, rows)
    traced = _finish(trace, call, whole, input_leaves, watch.guards_now(), makes_lists)
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
    return traced._replace(assigned=assigned_there, met=watch.met())


def _are_conditions_sure(trace: Trace, call: Call, may_guess: bool = False) -> bool:
    """Whether the trace has assumed outcomes of conditions, and nothing else that it has assumed
    may be the cause of an error. With `may_guess`, its guesses are not the cause."""
    tried = trace.has_guessed and not may_guess
    tried |= bool(trace.captured_are_traced and trace.stand_ins and not call.slots)
    loops = trace.loops is not None and (trace.loops.within or trace.loops.rolled)
    return bool(trace.conditions) and not (tried or loops)


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


def _finish(
    trace: Trace,
    call: Call,
    result: Any,
    input_leaves: list[int],
    guards: list[Any],
    makes_lists: bool = False,
) -> Traced:
    leaves, treedef = trees.flatten(result, call.receiver)
    given = [*call.leaves, *trace.captured]
    takes_numpys = not call.in_chunks and not any(isinstance(x, Array) for x in given)
    leaves = [
        Tracer(trace, trace.operand(leaf)) if isinstance(leaf, Size) else leaf for leaf in leaves
    ]
    views: list[View] | None = None
    are_constants = trees.PLAIN.issuperset(map(type, leaves))
    if trace.decides and not are_constants:
        leaves, views = with_bases(trace, leaves, call.leaves)
    outputs: list[tuple[Any, ...]] = []
    computed: list[Any] = []
    planned: dict[int, tuple[Any, ...]] = {}
    fortran_results: list[int] = []
    orders = Orders(trace.fortran_leaves)
    if are_constants:
        outputs = [("constant", leaf) for leaf in leaves]
    for leaf in () if are_constants else leaves:
        number = len(computed)
        outputs.append(plan_output(trace, leaf, computed, planned))
        is_array = len(computed) > number and isinstance(leaf, Tracer) and leaf.ndim > 1
        if is_array and takes_numpys and orders.is_fortran(leaf):
            fortran_results.append(number)
            computed[number] = _transposed(trace, computed[number])
    writes = []
    contiguous = []
    for target, storage in trace.inputs(input_leaves):
        if storage.layout_used:
            contiguous.append(target)
        if storage.value.id != storage.original.id:
            writes.append((target, len(computed)))
            computed.append(storage.value)
    checks: list[tuple[Any, ...]] = []
    for value, *what in trace.checks(trace.rebind.may_handle_errors()):
        checks.append(tuple(what))
        computed.append(value)
    leaf_guards = [(input_leaves[i], dtype) for i, dtype in trace.builder.guards]
    unflatten: Any = None
    if not treedef.is_leaf():
        is_flat = type(result) is tuple and all(trees.flatten(x)[1].is_leaf() for x in result)
        unflatten = tuple if is_flat else functools.partial(trees.unflatten, treedef)
    if makes_lists:
        unflatten = functools.partial(with_lists, unflatten)
    if views is not None:
        unflatten = Views(views, unflatten)
    graph = trace.builder.finish(computed) if computed or trace.functions else None
    return Traced(
        graph,
        input_leaves,
        trace.captured,
        frozenset(i for i, array in enumerate(trace.captured) if id(array) in trace.constants),
        outputs,
        unflatten,
        leaf_guards,
        guards,
        writes,
        contiguous,
        [i for i, leaf in enumerate(input_leaves) if leaf in trace.fortran_leaves],
        fortran_results,
        trace.functions,
        checks,
        trace.loops.plans.lines() if trace.loops is not None else [],
        trace.conditions,
        leaves_usual=trace.loops is not None and trace.loops.plans.leaves_usual,
        numbers=trace.draws.numbers(),
        has_loops=trace.loops is not None and trace.loops.rolled > 0,
        makes_lists=makes_lists,
    )


def _input_tracer(trace: Trace, leaf: Any, position: int, shape: tuple[Any, ...]) -> Tracer:
    weak = type(leaf).__name__ if type(leaf) in (int, float, complex) else None
    dtype = np.result_type(type(leaf)) if weak else leaf.dtype
    is_array = isinstance(leaf, (np.ndarray, Array))
    if is_fortran_ordered(leaf):
        trace.fortran_leaves.add(position)
        value = _transposed(trace, trace.builder.input(dtype, list(shape)[::-1], weak))
    else:
        value = trace.builder.input(dtype, list(shape), weak)
    tracer = Tracer(trace, value, scalar=not is_array)
    if is_array:
        trace.leaves.append(tracer._storage)
    tracer._storage.leaf = position
    return tracer


def _transposed(trace: Trace, value: Any) -> Any:
    return trace.builder.transpose(value, tuple(range(len(value.shape)))[::-1])
