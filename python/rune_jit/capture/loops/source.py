"""Compiles the source of functions again, with calls around each loop. These calls tell the trace
when a loop begins, iterates and ends.

    for i in range(n):                  .loop0 = .loop(7, .iterable(range, n))
        s = s + x[i]                    for i in .loop0:
    return s                                if .loop0.rebinds: (s,) = .loop0.values
                                            s = s + x[i]
                                        if .loop0.rebinds: (s,) = .loop0.results
                                        return s

    while s < 1:                        .loop1 = .while(8)
        s = s * 2                       while .loop1.goes_on(s < 1):
                                            if .loop1.rebinds: (s,) = .loop1.values
                                            s = s * 2
                                        if .loop1.rebinds: (s,) = .loop1.results

Jumps have become flags before that (jumps.py), and `if .loop0.stops(.stop): break` ends a loop. The
new code keeps the line numbers and the variables of outer functions. A function keeps its own code
if the source is not available, or is not the source of that code."""

from __future__ import annotations

import ast
import contextlib
import dis
import os
import types
from typing import Any, NamedTuple

from rune_jit.capture.loops.asking import asking, callees_of, original, with_callees
from rune_jit.capture.loops.callees import Callees, modules_of
from rune_jit.capture.loops.calls_apart import Apart, keep_loops, place_of
from rune_jit.capture.loops.code_objects import captured_in, compiled_alone, inner
from rune_jit.capture.loops.conditions import Values, condition
from rune_jit.capture.loops.definitions import UNREADABLE, definition_of, lambda_of
from rune_jit.capture.loops.filters import Filters
from rune_jit.capture.loops.fronts import extend_at_end
from rune_jit.capture.loops.grids import Grids
from rune_jit.capture.loops.handlers import Guards, as_traced, is_transparent
from rune_jit.capture.loops.iterated import NamedRanges, iterated
from rune_jit.capture.loops.jumps import RESULT, Jumps, is_flag, limit_of
from rune_jit.capture.loops.liveness import Live, LiveIf, live_names, loaded, stored
from rune_jit.capture.loops.made_lists import MadeLists, lists_of
from rune_jit.capture.loops.matches import Matches
from rune_jit.capture.loops.nodes import (
    assign,
    at,
    call,
    copied,
    walk,
    within,
)
from rune_jit.capture.loops.optionals import Optionals
from rune_jit.capture.loops.raises import RAISES, Raises, wanted
from rune_jit.capture.loops.rebinding import both_ways, with_rebinding
from rune_jit.capture.loops.reports import Reports, is_hidden
from rune_jit.capture.loops.split_tuples import SplitTuples
from rune_jit.capture.loops.stacks import Stacks
from rune_jit.capture.loops.syntax import (
    REFLECTIVE,
    Branch,
    Loop,
    Uses,
    function_refusal,
    is_branch,
    loop_refusal,
    make_loop,
    names_variables,
    uses_of,
    without_returns,
)
from rune_jit.capture.loops.unfold import CONVERSIONS, METHODS, Unfolder
from rune_jit.capture.names import all_codes
from rune_jit.tracing.context import current_trace, may_handle_errors
from rune_jit.tracing.steps import steps_to_read

# The global names of the functions that loops call. Source cannot contain them.
ENTRY, WHILE_ENTRY = ".loop", ".while"


class Source(NamedTuple):
    """The facts about a function's code that follow from its source."""

    refusal: str | None  # why a loop of the program may not call it
    uses: Uses
    locals: frozenset[str]
    nonlocals: frozenset[str] = frozenset()  # the ones of `locals` that are declared nonlocal


LOOPS: list[Loop] = []  # by number
# By code: the numbers of its loops. (Other code of an edited file may have loops at their places.)
_loops_of: dict[types.CodeType, list[int]] = {}
BRANCHES: list[Branch] = []
_codes: dict[types.CodeType, types.CodeType] = {}  # by code: the code with calls around loops
_apart: dict[types.CodeType, types.CodeType] = {}  # by code: the code that runs loops apart
_with_stacks: dict[types.CodeType, types.CodeType] = {}  # where arrays may be read lists
STACK_CODES: dict[types.CodeType, types.CodeType] = {}  # the inverse of _with_stacks
STACK_LOOPS: dict[int, types.CodeType] = {}  # by loop: the function's code, if it has such lists
_sources: dict[types.CodeType, Source] = {}


def with_loops(function: types.FunctionType) -> types.CodeType:
    """The function's code with calls around its loops, or its own code if it has no loops."""
    trace = current_trace()
    plans = trace.loops.plans if trace is not None and trace.loops is not None else None
    if plans is not None and function.__code__ in plans.with_stacks:
        return _read_with_stacks(function)
    if function.__code__ in _codes:
        return _codes[function.__code__]
    if trace is not None:
        trace.note_steps(steps_to_read(function.__code__))
    return _read(function) if _is_of_interest(function) else asking(function)


def with_loops_apart(function: types.FunctionType) -> types.CodeType:
    """The code of a function that runs in segments. Its loops may run apart (apart.py)."""
    code = function.__code__
    if code not in _apart:
        _apart[code] = made = with_loops(function)
        if made is not code and code.co_name != "<lambda>" and _is_of_interest(function):
            with contextlib.suppress(*UNREADABLE):
                _apart[code] = _transformed(function, is_apart=True)
    return _apart[code]


def source_of(function: types.FunctionType) -> Source | None:
    """The Source of a function, which may have code from `with_loops`. None if not known."""
    function = original(function)
    _read(function)
    code = function.__code__
    if code not in _sources and code.co_name == "<lambda>":
        with contextlib.suppress(*UNREADABLE):
            _read_lambda(function)
    return _sources.get(code)


def _is_of_interest(function: types.FunctionType) -> bool:
    """Whether a function, or an inner one, has loops, branches, conversions, handlers or prints."""
    return any(map(_has_loops, all_codes(function.__code__)))


def _has_loops(code: types.CodeType) -> bool:
    if not (CONVERSIONS | METHODS | {"print"}).isdisjoint(code.co_names) or may_handle_errors(code):
        return True
    names = {dis.opname[operation] for operation in code.co_code[::2]}
    return "FOR_ITER" in names or any("JUMP" in name and "_IF_" in name for name in names)


def _read(function: types.FunctionType) -> types.CodeType:
    code = function.__code__
    if code.co_name == "<lambda>":
        return asking(function)
    if code not in _codes:
        _codes[code] = code
        with contextlib.suppress(*UNREADABLE):
            made = _codes[code] = _transformed(function)
            _codes[made] = made
    return _codes[code]


def _read_with_stacks(function: types.FunctionType) -> types.CodeType:
    code = function.__code__
    if code not in _with_stacks:
        _with_stacks[code] = code
        with contextlib.suppress(*UNREADABLE):
            made = _with_stacks[code] = _transformed(function, with_stacks=True)
            _codes[made], STACK_CODES[made] = made, code
    return _with_stacks[code]


# Functions with these nodes keep their statements.
_UNCHANGED = (ast.Yield, ast.YieldFrom, ast.Await)


def _read_lambda(function: types.FunctionType) -> None:
    """Notes the source of a lambda."""
    x = lambda_of(function)
    if x is not None:
        arguments = frozenset(y.arg for y in walk(x.args) if type(y) is ast.arg)
        body = ast.copy_location(ast.Expr(x.body), x)
        _sources[function.__code__] = Source(
            function_refusal([body]), uses_of([body]), arguments | stored([body])
        )


def _transformed(
    function: types.FunctionType, is_apart: bool = False, with_stacks: bool = False
) -> types.CodeType:
    code, tree = function.__code__, definition_of(function)
    if tree is None:
        return code
    callees, may_have_stacks = callees_of(function), False
    if any(isinstance(x, _UNCHANGED) or names_variables(x) for x in walk(tree)):
        return with_callees(tree, code, function.__qualname__, callees)
    if not loaded(tree.body) & REFLECTIVE:
        Matches().visit(tree)
        extend_at_end(tree)
        lists = tree.made_lists = lists_of(tree, with_stacks)  # type: ignore[attr-defined]
        stacks = {name for name in lists if lists[name].size is not None}
        tree.stacks = frozenset(stacks)  # type: ignore[attr-defined]
        may_have_stacks = (
            not is_apart and not with_stacks and len(lists_of(tree, True)) > len(lists)
        )
    Filters().visit(tree)
    calls = _with_apart if is_apart else _with_calls
    first = len(LOOPS)
    made = calls(tree, code, function.__qualname__, tree.body, callees)
    if may_have_stacks:
        STACK_LOOPS.update(dict.fromkeys(range(first, len(LOOPS)), code))
    return made


def code_of(
    definition: ast.FunctionDef, like: types.CodeType, names: dict[str, Any]
) -> types.CodeType:
    """The code of a definition that contains one loop and uses no variables of outer functions. The
    code belongs to the file of `like`, and `names` are its global variables."""
    code, callees = compiled_alone(definition, like), Callees(modules_of(names))
    for codes, calls in ((_codes, _with_calls), (_apart, _with_apart)):
        tree = copied(definition)
        loops = [s for s in tree.body if isinstance(s, (ast.For, ast.While))]
        within = [x for s in loops for x in s.body]
        codes[code] = calls(tree, code, definition.name, within, callees)
    return code


def _with_apart(
    tree: ast.FunctionDef,
    code: types.CodeType,
    qualname: str,
    within: list[ast.stmt],
    callees: Callees,
) -> types.CodeType:
    """The code of a definition in which the loops of the statements `within` run apart."""
    loops = [LOOPS[number] for number in _loops_of.get(code, ())]
    known = {place_of(x.original): x for x in loops if x.original is not None and not x.refusal}
    apart = Apart(code.co_filename, known, within)
    apart.visit(tree)
    return with_callees(tree, code, qualname, callees)


def _with_calls(
    tree: ast.FunctionDef,
    code: types.CodeType,
    qualname: str,
    within: list[ast.stmt],
    callees: Callees,
) -> types.CodeType:
    """The code of a definition with calls around its loops, or `code` if that is impossible. Keeps
    the original loops of the statements `within`, which may run apart."""
    by_place: dict[tuple[str, int], Source] = {}
    keep_loops(within, code.co_filename)
    MadeLists(getattr(tree, "made_lists", {})).generic_visit(tree)
    NamedRanges().visit(tree)
    Stacks(getattr(tree, "stacks", frozenset())).visit(tree)
    SplitTuples().visit(tree)
    Optionals().visit(tree)
    Grids().visit(tree)
    Unfolder().visit(tree)
    reports = Reports()
    reports.visit(tree)
    raises = Raises()
    raises.visit(tree)
    first = len(LOOPS)
    _Transformer(code.co_filename, raises).visit_function(tree, code, by_place)
    _loops_of.setdefault(code, []).extend(range(first, len(LOOPS)))
    raises.show()
    reports.show()
    Guards().visit(tree)
    tree.body = [Values().visit(s) for s in tree.body]
    made = with_callees(tree, code, qualname, callees)
    if made is code:
        return code
    for old in all_codes(code):
        _note(old, by_place)
    for new in all_codes(made):
        _note(new, by_place)
        _codes[new] = new
    return made


def _note(code: types.CodeType, by_place: dict[tuple[str, int], Source]) -> None:
    source = by_place.get((code.co_name, code.co_firstlineno))
    if source is not None:
        _sources[code] = source


class _Transformer:
    """Puts calls around the loops of a function and of its inner functions."""

    def __init__(self, filename: str, raises: Raises) -> None:
        self._file, self._raises = os.path.basename(filename), raises

    def visit_function(
        self,
        function: ast.FunctionDef,
        code: types.CodeType,
        by_place: dict[tuple[str, int], Source],
    ) -> None:
        lines = [function.lineno, *(x.lineno for x in function.decorator_list)]
        by_place[function.name, min(lines)] = Source(
            function_refusal(function.body),
            uses_of(as_traced(function.body))._replace(globals=_declared(function, ast.Global)),
            (stored(function.body) - _declared(function, ast.Global))
            | {x.arg for x in walk(function.args) if type(x) is ast.arg},
            _declared(function, ast.Nonlocal),
        )
        # (Other functions may read these after the function has returned.)
        nonlocals = _declared(function, ast.Nonlocal)
        module_names = _declared(function, ast.Global)
        declared = frozenset(
            name
            for x in walk(function)
            if isinstance(x, (ast.Global, ast.Nonlocal))
            for name in x.names
            if name not in nonlocals | module_names
        )
        jumps = Jumps(self._raises)
        function.body = without_returns(jumps.of_function(function.body), RESULT)
        reads = loaded(function.body) & REFLECTIVE
        reason = f"the function calls {', '.join(sorted(reads))}" if reads else None
        live = live_names(function)
        loops = {
            loop: self._loop(
                loop,
                of_loop,
                jumps.steps.get(loop, {}),
                reason or loop_refusal(loop, declared),
                module_names,
                nonlocals,
                captured_in(code, loop),
            )
            for loop, of_loop in live.loops.items()
        }
        seen = nonlocals | captured_in(code)
        branches = {
            s: self._branch(
                s,
                of_if._replace(at_else=of_if.at_else | seen, after=of_if.after | seen),
                module_names,
            )
            for s, of_if in live.ifs.items()
            if not is_hidden(s) and is_branch(s) and not stored([s]) & declared
            if not reason
        }
        for statement in function.body:
            for x in walk(statement):
                is_other = isinstance(x, (ast.Try, ast.With)) or type(x).__name__ == "TryStar"
                if is_other and not is_transparent(x):
                    for loop in walk(x):
                        if isinstance(loop, (ast.For, ast.While)) and loop in loops:
                            why = loops[loop].refusal or "it is in a try or with statement"
                            loops[loop] = loops[loop]._replace(refusal=why)
        for of_loop in loops.values():
            LOOPS[of_loop.number] = of_loop
        function.body = self._block(function.body, loops | branches, code, by_place)

    def _loop(
        self,
        loop: ast.For | ast.While,
        live: Live,
        steps: dict[str, int],
        refusal: str | None,
        module_names: frozenset[str],
        nonlocals: frozenset[str],
        captured: frozenset[str],
    ) -> Loop:
        """The facts about a loop. `nonlocals` are variables of outer functions, and `captured` are
        variables that inner functions use. Other functions may read both at any time."""
        where = f"{self._file}:{loop.lineno}"
        seen = nonlocals | captured
        live = live._replace(at_start=live.at_start | seen, after=live.after | seen)
        made = make_loop(len(LOOPS), where, loop, live, steps, refusal, module_names)
        if stored([loop]) & captured:  # (inner functions would not see the loop's function)
            made = made._replace(original=None)
        LOOPS.append(made)
        return made

    def _branch(self, s: ast.If, live: LiveIf, module_names: frozenset[str]) -> Branch:
        first = stored(s.body) - module_names
        results = (first | (stored(s.orelse) - module_names)) & live.after
        # (A name that only the first side assigns keeps its old value if the second side runs.)
        restored = first & (live.at_else | results)
        where = f"{self._file}:{s.lineno}"
        of_flag = isinstance(s.test, ast.Name) and is_flag(s.test.id)
        made = Branch(
            len(BRANCHES),
            where,
            of_flag,
            tuple(sorted(restored)),
            tuple(sorted(results)),
            uses_of(as_traced([*s.body, *s.orelse]))._replace(
                globals=stored([*s.body, *s.orelse]) & module_names
            ),
        )
        BRANCHES.append(made)
        return made

    def _block(
        self,
        statements: list[ast.stmt],
        known: dict[Any, Any],
        code: types.CodeType,
        by_place: dict[tuple[str, int], Source],
    ) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for s in statements:
            if isinstance(s, ast.FunctionDef):
                self.visit_function(s, inner(code, s.name, s), by_place)
            elif isinstance(s, ast.ClassDef):
                for method in s.body:
                    if isinstance(method, ast.FunctionDef):
                        of_class = inner(code, s.name, s)
                        self.visit_function(method, inner(of_class, method.name, method), by_place)
            elif not isinstance(s, ast.AsyncFunctionDef):
                for block in ("body", "orelse", "finalbody"):
                    if getattr(s, block, None):
                        setattr(s, block, self._block(getattr(s, block), known, code, by_place))
                for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
                    part.body = self._block(part.body, known, code, by_place)
            if isinstance(s, ast.For) and s in known:
                result += _around_for(s, known[s])
            elif isinstance(s, ast.While) and s in known:
                result += _around_while(s, known[s])
            elif isinstance(s, ast.If) and s in known:
                result += both_ways(s, known[s])
            elif isinstance(s, ast.If) and (raises := wanted(s)) is not None:
                made = call(RAISES, condition(s.test), ast.Constant(raises))
                s.test = at(s.test, made if raises else ast.UnaryOp(ast.Not(), made))
                result.append(s)
            else:
                result.append(s)
        return result


def _declared(
    function: ast.FunctionDef, kind: type[ast.Global] | type[ast.Nonlocal]
) -> frozenset[str]:
    """The names that a function itself, not an inner one, declares global or nonlocal."""
    return frozenset(x for s in within(function.body) if isinstance(s, kind) for x in s.names)


def _around_while(s: ast.While, loop: Loop) -> list[ast.stmt]:
    name, given = f"{WHILE_ENTRY}{loop.number}", []
    limit = limit_of(s, loop.steps)
    if limit:
        given = [copied(x) for x in (limit[0].left, limit[0].comparators[0])]
    begin = call(WHILE_ENTRY, ast.Constant(loop.number), *given)
    first = at(s.test, assign(name, begin))
    s.test = at(s.test, call((name, "goes_on"), condition(s.test, name)))
    return [first, *with_rebinding(s, loop, name, s.test)]


def _around_for(s: ast.For, loop: Loop) -> list[ast.stmt]:
    begin = call(ENTRY, ast.Constant(loop.number), iterated(s.iter))
    if loop.refusal:
        s.iter = at(s.iter, begin)
        return [s]
    name = f"{ENTRY}{loop.number}"
    first = ast.Assign([ast.Name(name, ast.Store())], begin)
    location, s.iter = s.iter, at(s.iter, ast.Name(name, ast.Load()))
    return [at(location, first), *with_rebinding(s, loop, name, location)]
