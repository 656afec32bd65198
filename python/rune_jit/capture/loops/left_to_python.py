"""Rare events that a loop of the program leaves to Python. The program checks whether such an event
would happen. If it would, Python runs the call from its start. (raises.py, reports.py and
optionals.py add the calls of this module.)"""

from __future__ import annotations

import sys
from typing import Any

from rune_jit.capture.loops.branches import condition_of, is_traced, loops_now
from rune_jit.capture.loops.effects import ALLOWED
from rune_jit.capture.loops.kinds import UNSET
from rune_jit.capture.loops.optionals import CHOSEN, HELD
from rune_jit.capture.loops.raises import RAISES
from rune_jit.capture.loops.reports import REPORTS, is_report
from rune_jit.tracing.context import current_trace


def _raises(test: Any, wanted: bool) -> Any:
    """The condition of an `if` whose body ends with `raise` and runs if `test` is as `wanted`. If
    only the program knows `test`, adds a check to it and returns a condition that skips the
    body."""
    trace, loops, test = current_trace(), loops_now(), condition_of(test)
    if trace is not None and loops is not None and loops.num_conditions and not is_traced(test):
        if bool(test) is not wanted:
            return test
        trace.raise_if(True)
        return not wanted
    is_behind = is_traced(test) and test._storage.flag_of is not None  # (after the flag's loop)
    if trace is None or not is_traced(test) or not (loops is not None or is_behind):
        return test
    value = trace.builder.ufunc("not_equal" if wanted else "equal", [test._value_in(trace), 0])[0]
    trace.raise_if(value)
    return not wanted


def _reports(path: str) -> bool:
    """Whether to run a statement that reports something by the function with this path. A loop of
    the program skips it if data decide whether it runs, and adds a check. Otherwise refuses the
    loop."""
    trace, loops = current_trace(), loops_now()
    if trace is None or loops is None:
        return True
    if not loops.data_decide or not is_report(path, sys._getframe(1)):
        if path == "print" and trace.builder.must_pay:
            loops.plans.apart = "a loop prints"  # (prints.py)
        loops.fail(f"it uses {path}")
    loops.plans.leaves_usual = True
    trace.raise_if(True)
    return False


def _chosen_last(is_assigned: Any, last: Any, before: Any) -> Any:
    """The value after an inner loop of a variable that is None before the loop and that the loop
    assigns under conditions. In a program this is `last`, with a check that it is assigned."""
    trace, loops = current_trace(), loops_now()
    if trace is None or loops is None or not is_traced(is_assigned):
        return last if is_assigned else before
    loops.plans.leaves_usual = True
    trace.raise_if(trace.builder.ufunc("equal", [is_assigned._value_in(trace), 0])[0])
    return last


def _held(is_assigned: Any, last: Any) -> Any:
    """The value in a loop of a variable that is None before the loop and that the loop assigns
    under conditions. In a program this is `last`, with a check that it is assigned."""
    trace, loops = current_trace(), loops_now()
    if trace is None or loops is None or not is_traced(is_assigned):
        return last if is_assigned else None
    if last is UNSET:  # its type is known after the first iteration
        loops.peel_outer()
        loops.fail("it reads a variable that may be None")
    trace.raise_if(trace.builder.ufunc("equal", [is_assigned._value_in(trace), 0])[0])
    return last


ALLOWED += [_raises, _reports, _chosen_last, _held]

# The functions that loops call, by name.
LEFT_TO_PYTHON = {RAISES: _raises, REPORTS: _reports, CHOSEN: _chosen_last, HELD: _held}
