"""`if` statements in loops of the program, with conditions that are known only when the program
runs. The trace runs both sides, one after the other. A write to an array takes place only if the
condition of its side holds (tracing/loops.py). The program selects the values of the names that the
sides assign. source.py adds calls of this module around each `if`."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from rune_jit import trees
from rune_jit.capture.loops.conditions import IF, OPERANDS
from rune_jit.capture.loops.effects import ALLOWED, Effects
from rune_jit.capture.loops.jumps import RESULT
from rune_jit.capture.loops.jumps import UNSET as UNSET_NAME
from rune_jit.capture.loops.kinds import UNBOUND, UNSET, is_view, kind_of, mixture, unsure_sum
from rune_jit.capture.loops.optionals import is_last
from rune_jit.capture.loops.places import Changed, Held, Place
from rune_jit.capture.loops.source import BRANCHES
from rune_jit.capture.loops.structures import are_alike, is_mutable, made_like, parts_of
from rune_jit.capture.loops.syntax import Branch
from rune_jit.capture.loops.unfold import NUMBER
from rune_jit.capture.shim import STANDING_FOR
from rune_jit.rules.indexing.selection import length
from rune_jit.tracing.conditions import decide
from rune_jit.tracing.context import current_trace, require_trace
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.loops import Loops
from rune_jit.tracing.rows import part, steps_within
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.storage import same_steps
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_traced_array


def branch(number: int, test: Any) -> Any:
    """An iterable over the sides of an `if` that run. `number` is that of the `if`, `test` is its
    condition."""
    trace, loops, of, test = current_trace(), loops_now(), BRANCHES[number], condition_of(test)
    if trace is not None:
        trace.note_steps()
    if trace is not None and trace.loops is not None and of.is_of_flag and is_traced(test):
        if number in trace.loops.plans.decided and not trace.loops.within:
            is_set = decide(trace, test._value_in(trace), sys._getframe(1), is_flag=True)
            return _YES if (test if is_set is None else is_set) else _NO
        return _Both(trace, trace.loops, of, test, sys._getframe(1))
    if trace is not None and loops is not None and is_unknown(test):
        return _Both(trace, loops, of, test, sys._getframe(1))
    return _YES if test else _NO


def is_traced(x: Any) -> bool:
    """Whether x is a number that is known only when the program runs."""
    return type(x) is Tracer and x._storage.array is None and x.ndim == 0


def is_unknown(x: Any) -> bool:
    """Whether x is such a number and the body of a loop is being traced."""
    return is_traced(x) and loops_now() is not None


def condition_of(x: Any) -> Any:
    """x as a condition: the element if x is a traced array of one element, else x itself."""
    if type(x) is not Tracer or x._storage.array is not None or not x.ndim:
        return x
    return x.reshape(())[()] if all(type(n) is int and n == 1 for n in x.shape) else x


def loops_now() -> Loops | None:
    """The loops of the trace, if the body of one is being traced."""
    trace = current_trace()
    if trace is None or trace.loops is None or not trace.loops.within:
        return None
    return trace.loops


class Conditions:
    """Replaces `and`, `or` and `not` (conditions.py). If the first operand is known only when the
    program runs, the second one is computed under the condition that it is needed."""

    def __init__(
        self,
        is_unknown: Callable[[Any], bool],
        refuse: Callable[[str], NoReturn] | None = None,
    ) -> None:
        """`is_unknown` tells whether a value is known only when the program runs. `refuse` refuses
        the loop of the conditions, if that is not the innermost loop that is being traced."""
        self._is_unknown, self._refuse_loop = is_unknown, refuse

    def may(self, x: Any, wanted: bool, number: int) -> bool:
        """Whether the first operand of `and` or `or` may be as wanted, so that the second operand
        is needed."""
        x = condition_of(x)
        if not self._is_unknown(x):
            return bool(x) == wanted
        trace, uses = require_trace(), OPERANDS[number]
        assert trace.loops is not None
        if uses is None:
            self._fail(trace.loops, "it assigns a name in the operand of `and` or `or`")
        holds = self._truth(trace, x)
        if not wanted:
            holds = trace.builder.ufunc("logical_not", [holds])[0]
        held = Effects.seen_by(uses, sys._getframe(1)) if uses.calls or uses.methods else None
        trace.loops.begin_operand(trace.builder, holds, held, x._storage.of_counters)
        return True

    def both(self, x: Any, y: Any) -> Any:
        """`x and y` as a condition; y is None if x is false."""
        return self._joined(np.logical_and, False, x, y)

    def either(self, x: Any, y: Any) -> Any:
        """`x or y` as a condition; y is None if x is true."""
        return self._joined(np.logical_or, True, x, y)

    def _joined(self, function: np.ufunc, decides: bool, x: Any, y: Any) -> Any:
        """function(x, y). If one operand is known and equal to `decides`, it is the result; if it
        is known and not equal, the other operand is."""
        x, y = condition_of(x), condition_of(y)
        if self._is_unknown(x):
            self._end_operand()
        for known, other in ((x, y), (y, x)):
            if not self._is_unknown(known):
                return known if bool(known) == decides else other
        made = function(x, y)
        made._storage.of_counters = x._storage.of_counters and y._storage.of_counters
        return made

    def negated(self, x: Any) -> Any:
        """`not x` as a condition."""
        x = condition_of(x)
        if not self._is_unknown(x):
            return not x
        made: Any = np.logical_not(x)
        made._storage.of_counters = x._storage.of_counters
        return made

    def all(self, x: Any, y: Any) -> Any:
        """`x and y`; y is None if x is false."""
        return self._value(x, y, True)

    def any(self, x: Any, y: Any) -> Any:
        """`x or y`; y is None if x is true."""
        return self._value(x, y, False)

    def _value(self, x: Any, y: Any, is_and: bool) -> Any:
        test = condition_of(x)
        if not self._is_unknown(test):
            return y if bool(x) == is_and else x
        self._end_operand()
        trace = require_trace()
        assert trace.loops is not None
        a, b = (y, x) if is_and else (x, y)
        return select(trace, trace.loops, "an operand", self._truth(trace, test), a, b)

    def inverse(self, x: Any) -> Any:
        """`not x`."""
        x = condition_of(x)
        if not self._is_unknown(x):
            return not x
        trace = require_trace()
        return python_bool(trace, trace.builder.ufunc("equal", [x._value_in(trace), 0])[0])

    def _end_operand(self) -> None:
        trace = require_trace()
        assert trace.loops is not None
        held = trace.loops.end_operand(trace.builder)
        try:
            changed = held is not None and bool(held.changed())
        except Changed:
            changed = True
        if changed:
            self._fail(trace.loops, "an operand of `and` or `or` has an assignment")

    def _fail(self, loops: Loops, why: str) -> NoReturn:
        (self._refuse_loop or loops.fail)(why)

    @staticmethod
    def _truth(trace: Trace, x: Tracer) -> Any:
        return trace.builder.ufunc("not_equal", [x._value_in(trace), 0])[0]


def python_bool(trace: Trace, value: Any) -> Tracer:
    """A traced bool, from NumPy's to Python's."""
    number = trace.builder.python_number(value, True)
    return Tracer(trace, trace.builder.operator("not_equal", [number, 0]), scalar=True)


class _One:
    """The only side of an `if` that runs."""

    rebinds = False

    def __init__(self, side: bool) -> None:
        self._sides = (side,)

    def __iter__(self) -> Iterator[bool]:
        return iter(self._sides)


_YES, _NO = _One(True), _One(False)


class _Both:
    """Both sides, one after the other."""

    def __init__(
        self, trace: Trace, loops: Loops, branch: Branch, test: Tracer, frame: Any
    ) -> None:
        self.rebinds = False
        self.values: tuple[Any, ...] = ()
        self.unbound: frozenset[str] = frozenset()  # the ones of the names that have no value
        self.results: tuple[Any, ...] = ()
        self._may_decide = False  # whether each side may have a program of its own instead
        self._trace, self._loops, self._branch = trace, loops, branch
        self._arrays: list[_Selected] = []
        self._test, self._frame = test, frame

    def __iter__(self) -> Iterator[bool]:
        number = self._test._storage.flag_of
        if number is None or self._loops.within:
            return self._sides()
        self._may_decide = self._trace.decides
        return self._behind(number)

    def _behind(self, number: int) -> Iterator[bool]:
        """The sides of an `if` whose condition is a flag of the loop before it."""
        with self._loops.part_of(number):
            yield from self._sides()

    def _sides(self) -> Iterator[bool]:
        builder, loops = self._trace.builder, self._loops
        for body in loops.open:
            body.decides = True
        value = self._test._value_in(self._trace)
        if self._test.dtype != bool:
            value = builder.ufunc("not_equal", [value, 0])[0]
        holds = builder.value(value)
        before = self._now(self._branch.restored)
        held = Effects.seen_by(self._branch.uses, self._frame)
        of_counters = self._test._storage.of_counters
        with loops.where(builder, holds, of_counters):
            yield True
        first, places = self._now(self._branch.results), self._changed(held)
        held.restore()
        self.values, self.rebinds = before, True
        restored = zip(self._branch.restored, before, strict=True)
        self.unbound = frozenset(name for name, x in restored if x is UNBOUND)
        with loops.where(builder, builder.ufunc("logical_not", [holds])[0], of_counters):
            yield False
        second, others = self._now(self._branch.results), self._changed(held)
        for name, (place, _) in (places | others).items():
            a, b = (x.get(name, (place, held.held(place)))[1] for x in (places, others))
            place.write(self._selected(name, holds, a, b))
        self._frame = None
        names = self._branch.results
        self.results = tuple(
            self._selected(name, holds, a, b)
            for name, a, b in zip(names, first, second, strict=True)
        )
        if self._may_decide:
            found = [(x.a._storage, x.b._storage, x.made._storage) for x in self._arrays]
            loops.selected[self._branch.number] = found

    def _changed(self, held: Held) -> dict[str, tuple[Place, Any]]:
        """The places that a side has assigned, by name, and their values."""
        try:
            return {place.name: (place, place.read()) for place in held.changed()}
        except Changed as error:
            self._loops.fail(f"{error} under a condition")

    def _now(self, names: tuple[str, ...]) -> tuple[Any, ...]:
        """The values of the names."""
        values = self._frame.f_locals
        return tuple(values.get(name, UNBOUND) for name in names)

    def _selected(self, name: str, holds: Any, a: Any, b: Any) -> Any:
        if a is b:
            return a
        if (name == RESULT or is_last(name)) and (a is UNSET or b is UNSET):
            return b if a is UNSET else a  # (it is only read if it has been set)
        is_bound = a is not UNBOUND and b is not UNBOUND
        if self._may_decide and not (is_bound and _are_of_one_kind(self._trace, a, b)):
            self._loops.plans.decided.add(self._branch.number)
            raise LoopRefused  # the trace begins again
        if not is_bound:
            self._loops.fail(f"{name} gets a value under a condition only")
        return select(self._trace, self._loops, name, holds, a, b, self._arrays)


class _Selected(NamedTuple):
    """An array that the program selects."""

    a: Tracer
    b: Tracer
    made: Tracer

    def part(self, a: Tracer, b: Tracer, into: Tracer | None = None) -> Tracer | None:
        """The selection of other arrays. None unless both are the same part of these arrays. `into`
        is that of `rows.part`."""
        steps, of_b = steps_within(self.a, a), steps_within(self.b, b)
        if steps is None or of_b is None or not same_steps(steps, of_b):
            return None
        return part(self.made, steps, a, into)


def select(
    trace: Trace,
    loops: Loops,
    name: str,
    holds: Any,
    a: Any,
    b: Any,
    arrays: list[_Selected] | None = None,
) -> Any:
    """`a` if `holds`, else `b`: numbers or arrays of the same type, or structures of these.
    `name` is for errors. `arrays` are those that have been selected by the same condition. If `a`
    and `b` share the memory of such arrays in the same way, the result shares it, too."""
    if a is b or is_view(a, b):
        return a
    arrays = [] if arrays is None else arrays
    if are_alike(a, b):
        pairs = zip((parts_of(a) or {}).values(), (parts_of(b) or {}).values(), strict=True)
        made = made_like(a, [select(trace, loops, name, holds, x, y, arrays) for x, y in pairs])
        if is_mutable(made):
            loops.identities.note(loops.within[-1], (made, a, b))
        return made
    if is_traced_array(a) and is_traced_array(b):
        for known in arrays:
            if (made := known.part(a, b)) is not None:
                return made
    made = selected(trace, holds, a, b, True)
    if made is None:
        loops.fail(f"{name} is of another type under a condition")
    elif is_traced_array(a):
        made._storage.order_known = made.ndim < 2
        loops.share_selected(made._storage, a._storage, b._storage)
        if loops.numbers is not None:
            loops.numbers.select(trace, holds, a, b, made)
        whole = _Selected(a, b, made)
        others = [x for x in arrays if whole.part(x.a, x.b, x.made) is None]
        arrays[:] = *others, whole
    return made


def selected(trace: Trace, holds: Any, a: Any, b: Any, may_mix: bool = False) -> Tracer | None:
    """`a` if `holds`, else `b`: numbers or arrays. None if they have no common type. The result is
    marked as unsure if one is Python's number and the other one NumPy's, and, with `may_mix`, if
    one is Python's int and the other one Python's float."""
    builder = trace.builder
    is_one_kind, unsure = _common_kind(trace, a, b, may_mix)
    if not is_one_kind:
        return None
    x, y = trace.operand(a), trace.operand(b)
    if unsure is None:
        return Tracer(trace, builder.select(holds, x, y), scalar=not is_traced_array(a))
    is_python = builder.select(holds, builder.is_python(x), builder.is_python(y))
    value = builder.select(holds, *(builder.astype(builder.value(v), unsure[1]) for v in (x, y)))
    builder.mark_unsure(value, unsure[0], is_python)
    return Tracer(trace, value, scalar=True)


def _common_kind(trace: Trace, a: Any, b: Any, may_mix: bool) -> tuple[bool, Any]:
    """Whether a and b have a common kind, and what `unsure_sum` gives if their kinds differ."""
    kind, other = kind_of(trace, a), kind_of(trace, b)
    unsure = unsure_sum(kind, other)
    if unsure is None and may_mix and type(a) is not type(b):
        unsure = mixture(a if type(a) is int else b, kind, other)
    return kind is not None and (kind == other or unsure is not None), unsure


def _are_of_one_kind(trace: Trace, a: Any, b: Any) -> bool:
    """Whether `_select` can select a or b."""
    if a is b or is_view(a, b):
        return True
    if are_alike(a, b):
        pairs = zip((parts_of(a) or {}).values(), (parts_of(b) or {}).values(), strict=True)
        return all(_are_of_one_kind(trace, x, y) for x, y in pairs)
    return _common_kind(trace, a, b, True)[0]


_choices: dict[str, int] = {}  # by line of a call of `choose`: a number, as a loop has one


def choose(test: Any, then: Any, other: Any, operands: tuple[Any, ...]) -> Any:
    """then(*operands) if `test`, else other(*operands). If only the program knows `test`, calls
    both, and the program selects."""
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    if trace is None or loops is None or not is_traced(test):
        return (then if test else other)(*operands)
    number = _choices.setdefault(trace.line, -1 - len(_choices))
    if loops.plans.refusal(number):
        return (then if test else other)(*operands)
    if loops.within:
        return _chosen(trace, loops, test, then, other, operands)
    with loops.part_of(number):
        return _chosen(trace, loops, test, then, other, operands)


def _chosen(
    trace: Trace, loops: Loops, test: Tracer, then: Any, other: Any, operands: tuple[Any, ...]
) -> Any:
    builder = trace.builder
    for body in loops.open:
        body.decides = True
    holds = builder.ufunc("not_equal", [test._value_in(trace), 0])[0]
    with loops.where(builder, holds):
        first, structure = trees.flatten(then(*operands))
    with loops.where(builder, builder.ufunc("logical_not", [holds])[0]):
        second, other_structure = trees.flatten(other(*operands))
    if structure != other_structure:
        loops.fail("cond: the functions return other structures")
    return trees.unflatten(
        structure,
        [select(trace, loops, "a result", holds, a, b) for a, b in zip(first, second, strict=True)],
    )


# How often one place in the source, outside of the program's loops, may use a value that is known
# only when the program runs. A place that runs more often is in an unrolled loop. Segments give
# such a loop smaller programs.
_MOST_OF_A_PLACE = 4


def may_choose(trace: Trace, depth: int = 2) -> bool:
    """Whether the place that called the caller can go on without the value of a traced number. (Or
    another frame, `depth` frames away.)"""
    if trace.is_segmented:
        return False
    if loops_now() is not None:
        return True
    frame = sys._getframe(depth)
    place = frame.f_code, frame.f_lasti
    trace.choices[place] = trace.choices.get(place, 0) + 1
    return trace.choices[place] <= _MOST_OF_A_PLACE


def convert(kind: Any, x: Any, depth: int = 2) -> Any:
    """Python's int(x) or float(x), or bool(x) or round(x) in a loop. `x` may be a number that is
    known only when the program runs. `depth` is that of may_choose."""
    trace, loops = current_trace(), loops_now()
    if kind is round and trace is not None and loops is not None and is_traced(x):
        if x.dtype.kind != "f":
            return round(x)
        trace.guess()
        rounded = trace.builder.ufunc("rint", [trace.builder.value(trace.operand(x))])[0]
        return Tracer(trace, trace.builder.python_number(rounded, True), scalar=True)
    if kind is bool and trace is not None and loops is not None and is_traced(condition_of(x)):
        x = condition_of(x)
        return python_bool(trace, trace.builder.ufunc("not_equal", [x._value_in(trace), 0])[0])
    if trace is None or (kind is float and not trace.has_float64):
        return kind(x)
    if not may_choose(trace, depth) or kind not in (int, float):
        return kind(x)
    if type(x) is Size and kind is int and loops is not None:
        return x
    if not is_traced(x) and (type(x) is not Size or loops is None):
        return kind(x)
    if type(x) is Tracer and x.dtype.kind == "c":
        return kind(x)  # (raises)
    if kind is int and type(x) is Tracer and (x.dtype.kind == "f" or x.dtype.itemsize == 8):
        if loops is None and not trace.may_guess:
            return kind(x)
        trace.guess()
    return Tracer(trace, trace.builder.python_number(trace.operand(x), kind is int), scalar=True)


_PYTHONS = {"b": bool, "i": int, "u": int, "f": float}  # by kind of dtypes


def number_of(x: Any) -> Any:
    """x.item()"""
    loops = loops_now()
    if loops is not None and not isinstance(x, (Tracer, np.ndarray, np.generic)):
        loops.fail(f"it calls the method item of a {type(x).__name__}")
    if type(x) is not Tracer or x._storage.array is not None or x.dtype.kind not in _PYTHONS:
        return x.item()
    kind = _PYTHONS[x.dtype.kind]
    if any(n != 1 for n in x.shape if type(n) is int):
        return x.item()
    trace = require_trace()
    if kind is bool and may_choose(trace):
        return python_bool(trace, x.reshape(())._value_in(trace))
    return convert(kind, x.reshape(()), 3)


ALLOWED += [convert, length, number_of]

# The functions that source.py calls around an `if`, by name.
CONDITIONS = {IF: Conditions(is_unknown), UNSET_NAME: UNSET, ".convert": convert, NUMBER: number_of}
LENGTHS = {"len": length}
STANDING_FOR.update((id(f), getattr(builtins, n)) for n, f in LENGTHS.items())
