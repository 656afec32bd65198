"""Loops that run apart: if a function runs in segments, each of its loops can be compiled as a
function of its own. This function gets the values of the loop's names.

    d = np.zeros((n, m))                    def loop(a, b, d, n, m):
    for i in range(1, n):                       for i in range(1, n):
        for j in range(1, m):                       for j in range(1, m):
            d[i, j] = ...                               d[i, j] = ...
    print(d[-1, -1])                            return ()
"""

from __future__ import annotations

import ast
import sys
import time
import traceback
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rune_jit import _core
from rune_jit.capture.loops.aliases import Aliases, appended_only, assigned_always
from rune_jit.capture.loops.attributes import Attributes, attributes_of
from rune_jit.capture.loops.calls_apart import LEFT, VALUE, results_of
from rune_jit.capture.loops.dicts import dicts_of, kind, with_calls
from rune_jit.capture.loops.effects import Effects, Refused, scope_of
from rune_jit.capture.loops.functions_apart import function_of
from rune_jit.capture.loops.given import (
    Memory,
    Unsuitable,
    check,
    check_dict,
    check_lists,
    check_stack,
    fill_again,
    items_of,
    settled,
)
from rune_jit.capture.loops.growing import Capacity, Lists, fill, growing_lists
from rune_jit.capture.loops.lent import NOT_OF_STATE, Lent
from rune_jit.capture.loops.library import calls_of, names_of, replaced
from rune_jit.capture.loops.liveness import loaded, stored
from rune_jit.capture.loops.prints import Printed, Prints, show
from rune_jit.capture.loops.reports import are_pythons, is_report
from rune_jit.capture.loops.same_arrays import SharedArrays, shared_arrays
from rune_jit.capture.loops.source import LOOPS
from rune_jit.capture.loops.stacks import stacks_of
from rune_jit.capture.loops.syntax import Loop, uses_of
from rune_jit.capture.loops.unfold import ON_LISTS
from rune_jit.capture.random_methods import generator_of
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.segments import SegmentedTrace
from rune_jit.tracing.tracer import is_array

# Makes a jitted function of a function and a device. calls/jit.py sets it.
compiler: Callable[[types.FunctionType, str], Any] | None = None

# An integer that has had more than this many values becomes an element of an array. Otherwise each
# value would need a program of its own.
_MANY = 3
_MOST_SIGNATURES = 8
# How many bytes of arrays may be copied at each call of a loop that assigns attributes.
_MOST_RESTORED = 2**26
# How many of a loop's first calls may trace and compile: if they run as one program, in segments.
_NEW, _TRIED = 3, 10
# How often a loop that has never run apart is examined.
_MOST_LOOKS = 10
# How often a loop that assigns attributes may raise.
_MOST_FAILURES = 10
_LEAST_ROWS = 256  # the least estimate of a growing list's rows


def _is_super(x: ast.AST) -> bool:
    """Whether x is `super()`, which works only in the method itself."""
    if not isinstance(x, ast.Call) or x.args:
        return False
    return isinstance(x.func, ast.Name) and x.func.id == "super"


class _Given(NamedTuple):
    """What a loop gets from the frame that it is in."""

    values: dict[str, Any]  # of names, with the lists
    lists: dict[str, Any]  # growing lists and stacks
    printed: dict[str, Printed]
    holders: dict[str, Any]  # the objects whose attributes the loop uses, by name


class LoopApart:
    """A loop of a function that runs in segments, and the functions that it has become."""

    def __init__(self, loop: Loop, device: str) -> None:
        self._device = device
        self._functions: dict[Any, Any] = {}  # jitted ones, by the key that `_call` makes
        self._values: dict[str, set[int]] = {}  # of integers, by name
        self._misses: dict[int, int] = {}  # by function: how often it has been traced
        self._calls = self._looks = self._failures = 0
        loop = loop._replace(results=results_of(loop))
        self.is_refused = (
            loop.original is None
            or any(x[:1] == "." for x in loop.results)
            or any(_is_super(x) for x in ast.walk(loop.original))
        )
        self._prints = None if loop.original is None else Prints.of(loop.original)
        if self._prints is not None:
            made = self._prints.loop
            loop = loop._replace(original=made, uses=uses_of([made]))
        self._original = self._base = loop
        self._attributes: Attributes | None = None  # of the objects that the loop uses
        self._lent = Lent()
        self._lends = True  # whether the loop's function gets other generators
        # Calls that may call functions of Python's library, and the functions that they do call.
        self._of_library = calls_of(loop.original) if loop.original is not None else []
        self._called: tuple[str | None, ...] = ()
        self._dicts: dict[str, type] = {}  # the dicts and sets that the loop adds items to
        self._shared: SharedArrays | None = None
        self._use(loop)

    def _use(self, loop: Loop) -> None:
        """Makes `loop` the one that runs: the original, or what one of the finders made of it."""
        self._loop = loop
        original = [loop.original] if loop.original is not None else []
        # A loop within a loop that runs apart calls replacements already. function_of adds them.
        names = loaded(original) | stored(original)
        self._names = sorted(x for x in names if not x.startswith(ON_LISTS))
        self._read_only = frozenset(loaded(original) - stored(original))
        of_else = {x.broken for x in original if hasattr(x, "broken")}
        self._assigned = assigned_always(loop.original) | {VALUE, LEFT} | of_else
        # Growing lists: first those that the loop only appends to,
        self._appended = appended_only(loop.original) if loop.original is not None else frozenset()
        self._capacities = {name: Capacity() for name in self._appended}
        # then those that it reads as well.
        self._stacks = stacks_of(loop.original) if loop.original is not None else {}
        self._capacities |= {name: Capacity(is_stack=True) for name in self._stacks}
        numbered = self._shared.names if self._shared is not None else ()
        self._aliases = (
            Aliases(loop.original, loop.results, self._stacks, numbered)
            if loop.original is not None
            else None
        )
        # (These include the iterable, and the handlers, which run when an iteration raises.)
        self._uses = uses_of(original)

    @property
    def is_used(self) -> bool:
        """Whether the loop has run apart and still may."""
        return self._calls > 0 and not self.is_refused

    def run(self, trace: SegmentedTrace, frame: Any) -> tuple[Any, ...] | None:
        """Runs the loop. Returns the values of the names that are read after it, or None if it has
        not run apart. Raises what the loop raises."""
        if self.is_refused or compiler is None or trace.gave_up:
            return None
        module = getattr(frame.f_globals, "real", frame.f_globals)
        if module is not frame.f_globals and frame.f_globals.assigned():
            return None
        if not self._calls:
            self._looks += 1
            self.is_refused = self._looks > _MOST_LOOKS
            if self.is_refused:
                return None
            self._find_attributes(frame.f_locals, module, frame.f_code)
        given = self._taken(trace, frame, module)
        if given is None:
            return None
        found = self._run_on(given, trace, module, frame.f_code)
        if found is None or self._attributes is None:
            return found
        count = len(found) - len(self._attributes.assigned)
        self._attributes.assign(given.holders, found[count:])
        return found[:count]

    def _taken(self, trace: SegmentedTrace, frame: Any, module: dict[str, Any]) -> _Given | None:
        """What the loop gets in this frame. None if it cannot run apart on it."""
        held, holders = frame.f_locals, dict[str, Any]()
        if self._attributes is not None:
            initial = self._attributes.initial(held)
            if initial is None:
                return None
            variables, holders = initial
            held = {**held, **variables}
        scope = scope_of(frame, module)
        if not self._calls:
            self._find_algorithms(held, module)
            self._find_shared(trace, held, scope)
        elif self._are_others(held, module):
            return None
        printed: dict[str, Printed] = {}
        if self._prints is not None:
            if not (is_report("print", frame) and are_pythons(self._prints.calls, frame)):
                return None
            printed = self._prints.lists(self._attributes is not None)
            held = {**held, **self._prints.names()}
        if self._shared is not None:
            held = {**held, **self._shared.initial(held)}
        values = {name: settled(trace, held[name]) for name in self._names if name in held}
        if any(x not in values and x not in self._assigned for x in self._loop.results):
            return None
        # (The loop's function would take a variable without a value for a global variable.)
        missing = self._read_only.difference(values)
        if not missing.isdisjoint(_variables(frame.f_code)):
            return None
        lists = {n: x for n, x in values.items() if n in self._appended and type(x) is list}
        lists |= {n: x for n, x in values.items() if n in self._stacks}
        try:
            self._check(trace, values, lists)
            find = _finding({**held, **values}, scope)
            if self._aliases is None or self._aliases.are_possible(values, find):
                return None
            if self._shared is not None and not self._shared.fits(values, find):
                return None
            if not self._calls:
                self._look(values | dict.fromkeys(self._dicts, ()), scope, module)
        except Unsuitable:
            return None
        except Refused:
            self.is_refused = True
            return None
        return _Given(values, lists, printed, holders)

    def _run_on(
        self, given: _Given, trace: SegmentedTrace, module: dict[str, Any], code: types.CodeType
    ) -> tuple[Any, ...] | None:
        """As `run`, with the values of attributes after the other results."""
        arguments, lists = given.values, given.lists
        growing = {name: (arguments.pop(name), self._capacities[name]) for name in sorted(lists)}
        growing |= {name: (x, self._capacities[name]) for name, x in given.printed.items()}
        paired: dict[str, list[Any]] = {}
        if self._shared is not None:
            paired = {name: [] for name in sorted(self._shared.lists)}
            growing |= {name: (x, self._capacities[name]) for name, x in paired.items()}
        arguments |= {n: items_of(x) for n, x in sorted(lists.items()) if n in self._stacks}
        with Memory(trace, arguments) as memory:
            values = memory.values
            for name in self._stacks.keys() & growing.keys():  # (they may hold traced numbers)
                fill_again(growing[name][0], values[name])
            restore = None if self._attributes is None else _restoring(values, growing)
            if self._attributes is not None and restore is None:
                self.is_refused = True
                return None
            try:
                with self._lent.in_place_of(values if self._lends else {}) as lent:
                    values |= lent
                    results = self._call(trace, values, growing, module, code)
            except Exception as error:
                if self._had_no_iteration(error):
                    return None
                if restore is None:
                    raise
                restore()  # (Python runs the loop again, and assigns attributes until it raises.)
                self._failures += 1
                self.is_refused = self._failures > _MOST_FAILURES
                return None
            finally:  # (a loop that raises has printed and appended, too)
                show(given.printed.values())
                if self._shared is not None:
                    objects = self._shared.objects(arguments)
                    for name, pairs in paired.items():
                        lists[name] += [objects.setdefault(int(of), x) for x, of in pairs]
            if self._shared is not None:
                return self._shared_results(results, objects, memory)
            return memory.inside(results)

    def _had_no_iteration(self, error: Exception) -> bool:
        """Whether the loop's function raised an error at its end, since a name that each iteration
        assigns had no value. (Python raises the error where the name is read, if at all.)"""
        loop = self._loop.original
        if type(error) is not UnboundLocalError or not isinstance(loop, ast.For):
            return False
        frame, line = [*traceback.walk_tb(error.__traceback__)][-1]
        is_at_end = line == loop.lineno < loop.body[0].lineno
        return is_at_end and frame.f_code.co_name == f"loop_{loop.lineno}"

    def _check(self, trace: SegmentedTrace, given: dict[str, Any], lists: dict[str, Any]) -> None:
        """Raises Unsuitable if the loop's function cannot take one of the values. `lists` are those
        to which the loop appends."""
        check_lists(lists, given)
        for name, value in given.items():
            if name in self._dicts:
                check_dict(trace, value)
            elif name in self._stacks:
                check_stack(trace, value, self._stacks[name])
            elif name not in lists and generator_of(value) is None:
                check(trace, value)

    def _are_others(self, held: Any, module: dict[str, Any]) -> bool:
        """Whether the loop has other dicts, or calls other functions of Python's library, than when
        it was examined."""
        if self._of_library and names_of(self._of_library, held, module) != self._called:
            return True
        return any(type(held.get(name)) is not of for name, of in self._dicts.items())

    def _find_attributes(self, held: Any, module: dict[str, Any], code: types.CodeType) -> None:
        """Finds out which attributes of objects the loop uses, and replaces them by variables."""
        loop = self._original
        assert loop.original is not None
        self._base = loop
        self._attributes = attributes_of(loop.original, held, module, code)
        if self._attributes is not None:
            made = self._attributes.loop
            results = (*loop.results, *self._attributes.assigned)
            self._base = loop._replace(original=made, uses=uses_of([made]), results=results)
            self._of_library = calls_of(made)

    def _find_algorithms(self, held: Any, module: dict[str, Any]) -> None:
        """Finds out which functions of Python's library and which dicts the loop uses. Replaces
        their calls by calls that can be compiled."""
        loop = self._base
        assert loop.original is not None
        self._called = names_of(self._of_library, held, module)
        self._dicts = dicts_of(loop.original, held)
        if any(self._called) or self._dicts:
            made = replaced(loop.original, self._of_library, self._called)
            made = with_calls(made, frozenset(self._dicts))
            loop = loop._replace(original=made, uses=uses_of([made]))
        self._shared = None
        self._use(loop)

    def _find_shared(self, trace: SegmentedTrace, held: Any, scope: Callable[[str], Any]) -> None:
        """Finds out whether names that are read after the loop, or items of lists, may share
        arrays."""
        loop = self._loop
        if loop.original is None or self._aliases is None:
            return
        given = {name: settled(trace, held[name]) for name in self._names if name in held}
        find = _finding(given, scope)
        if not self._aliases.are_possible(given, find):
            return
        found = shared_arrays(loop.original, loop.results, self._aliases, given, find)
        if found is not None:
            self._shared = found
            results = (*loop.results, *found.numbers)
            uses = uses_of([found.loop])
            self._use(loop._replace(original=found.loop, results=results, uses=uses))

    def _shared_results(
        self, results: tuple[Any, ...], objects: dict[int, Any], memory: Memory
    ) -> tuple[Any, ...]:
        """The results, where names with equal numbers get one array (same_arrays.py)."""
        assert self._shared is not None
        names = self._loop.results[: -len(self._shared.numbers) or None]
        number_of = dict(zip(self._shared.results, results[len(names) :], strict=True))
        found = [*memory.inside(results[: len(names)])]
        for i, name in enumerate(names):
            if name in number_of:
                found[i] = objects.setdefault(int(number_of[name]), found[i])
        return tuple(found)

    def _call(
        self,
        trace: SegmentedTrace,
        given: dict[str, Any],
        lists: Lists,
        module: dict[str, Any],
        code: types.CodeType,
    ) -> tuple[Any, ...]:
        """Runs the loop with these values."""
        elements = frozenset(name for name, x in given.items() if self._varies(name, x))
        for _, capacity in lists.values():
            sizes = [x.size for x in given.values() if is_array(x) and type(x.size) is int]
            capacity.likely = max([_LEAST_ROWS, *(2 * size for size in sizes)])
        learned = tuple([(n, capacity.learned, kind(x)) for n, (x, capacity) in lists.items()])
        key = (*given, elements, learned)
        function = self._functions.get(key)
        if function is None:
            stacks = {name: self._stacks.get(name) for name in lists}
            assert compiler is not None and self._loop.original is not None
            loop, results = self._loop.original, self._loop.results
            made = function_of(loop, results, [*given], elements, stacks, module, code)
            function = self._functions[key] = compiler(made, self._device)
        arguments = [np.array(x) if name in elements else x for name, x in given.items()]
        began = time.thread_time()
        _core.suspend_traces()
        try:
            with growing_lists(lists):
                results = function(*arguments)
        finally:
            _core.resume_traces()
            trace.note_apart(time.thread_time() - began)
        self._note(trace, function)
        if lists:
            results, filled = results
            fill(lists, filled, function.cache_info().fallbacks > 0)
        return tuple(results)

    def _look(
        self, given: dict[str, Any], scope: Callable[[str], Any], module: dict[str, Any]
    ) -> None:
        """Raises Refused if the loop reaches more than its arguments, numbers, modules and
        functions. Other objects may hold traced values, or arrays with writes that are pending."""
        effects = Effects(may_draw=True)
        others = {name: x for name, x in given.items() if generator_of(x) is None}
        effects.look(self._uses, others, scope, module)
        # (The generators among the arguments may be the same objects as others that it reaches.)
        self._lends = not effects.generators and not effects.names_any_of(NOT_OF_STATE)
        if effects.reaches_others_than(given.values()):
            raise Refused("it uses objects")

    def _varies(self, name: str, x: Any) -> bool:
        """Whether x is an integer and the name has had many values, with this one."""
        if type(x) is not int or not -(2**62) < x < 2**62:
            return False
        seen = self._values.setdefault(name, set())
        if len(seen) <= _MANY:
            seen.add(x)
        return len(seen) > _MANY

    def _note(self, trace: SegmentedTrace, function: Any) -> None:
        """Notes how a call has run. Refuses the loop for later calls if it has compiled too many
        programs, for example one for each length of an array."""
        self._calls += 1
        info = function.cache_info()
        is_tried = self._calls <= (_TRIED if info.segmented else _NEW)
        if is_tried or info.misses != self._misses.get(id(function)):
            trace.programs.loops_made += 1
            self._misses[id(function)] = info.misses
        if info.fallbacks == info.size:  # (NumPy is faster for the loop alone)
            trace.note_computed()
        if info.size > _MOST_SIGNATURES:
            self.is_refused = True


def _variables(code: types.CodeType) -> tuple[str, ...]:
    """The variables of a function and of the functions around it that it uses."""
    return (*code.co_varnames, *code.co_cellvars, *code.co_freevars)


def _finding(given: dict[str, Any], scope: Callable[[str], Any]) -> Callable[[str], Any]:
    """Finds the value of a name in `given`, or else in the scope."""
    return lambda name: given[name] if name in given else scope(name)


def _restoring(values: dict[str, Any], lists: Lists) -> Callable[[], None] | None:
    """Returns a function that gives the arrays, containers and random generators the contents that
    they have now. None if the arrays are too large to be copied at each call."""
    parts = [y for x in values.values() for y in (x if type(x) is tuple else (x,))]
    arrays = [x for x in parts if isinstance(x, np.ndarray) and x.flags.writeable]
    if sum(x.nbytes for x in arrays) > _MOST_RESTORED:
        return None
    kept = [(x, x.copy()) for x in arrays]
    contents = [(items, items_of(items)) for items, _ in lists.values()]
    sources = [of for x in parts if (of := generator_of(x)) is not None]
    if sources:
        # (Not imported before, since it loads numpy.random.)
        from rune_jit.capture.generators import set_state, state_of

        states = [(of, state_of(of)) for of in sources]

    def restore() -> None:
        for of, state in states if sources else ():
            set_state(of, state)
        for array, before in kept:
            array[...] = before
        for items, content in contents:
            items.clear()
            if isinstance(items, (dict, set)):
                items.update(content)
            else:
                items.extend(content)

    return restore


def run_apart(number: int) -> tuple[Any, ...] | None:
    """Runs the loop with this number apart. Returns the values of the names that are read after it,
    or None if Python has to run the loop."""
    trace = current_trace()
    if not isinstance(trace, SegmentedTrace):
        return None
    trace.note_steps()
    known = trace.programs.apart
    if number not in known:
        known[number] = LoopApart(LOOPS[number], trace.programs.device)
    return known[number].run(trace, sys._getframe(1))  # type: ignore[no-any-return]
