"""Calls on the host that cores share."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from processes import output_of

from rune_jit.rules.side_by_side import call_side_by_side


@pytest.mark.parametrize("count", (0, 1, 2, 50))
@pytest.mark.parametrize("seconds", (0, 0.001))
def test_each_call_is_made_once(count: int, seconds: float) -> None:
    made: list[int] = []

    def call(i: int) -> None:
        time.sleep(seconds)
        made.append(i)

    call_side_by_side(count, call)
    assert sorted(made) == list(range(count))


@pytest.mark.parametrize("failing", ([0], [0, 5], [5], [7, 8, 30], [49]))
def test_the_first_error_is_raised(failing: list[int]) -> None:
    made: list[int] = []

    def call(i: int) -> None:
        time.sleep(0.002 if i in failing[:1] else 0.0005)
        made.append(i)
        if i in failing:
            raise ValueError(i)

    with pytest.raises(ValueError) as raised:
        call_side_by_side(50, call)
    assert raised.value.args == (failing[0],)
    assert set(range(failing[0])) <= set(made)


def test_calls_have_the_error_state_of_the_caller() -> None:
    states: list[str] = []

    def call(i: int) -> None:
        time.sleep(0.001)
        states.append(np.geterr()["over"])
        np.seterr(over="print")  # of this call alone, if others run beside it

    with np.errstate(over="raise"):
        call_side_by_side(1, lambda i: None)
        call_side_by_side(30, lambda i: call(i) if i else time.sleep(0.001))
        assert np.geterr()["over"] == "raise"
    assert states == ["raise"] * 29


def test_a_handler_of_errors_sees_calls_in_order() -> None:
    made: list[tuple[int, int]] = []

    def call(i: int) -> None:
        time.sleep(0.001)
        made.append((i, threading.get_ident()))

    with np.errstate(call=lambda *_: None):
        call_side_by_side(30, call)
    assert made == [(i, threading.get_ident()) for i in range(30)]


_TOGETHER = """
import threading, time
from rune_jit.rules.side_by_side import call_side_by_side

both = threading.Barrier(2)

def call(i):
    time.sleep(0.01)
    if i in (1, 2):
        both.wait(60)

call_side_by_side(9, call)
print("together")
"""


def test_two_calls_run_at_the_same_time() -> None:
    """They wait for each other."""
    assert output_of(_TOGETHER, RUNE_JIT_NUM_THREADS="2") == "together\n"
