"""Compares functions and objects that change state with NumPy, call by call."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit
from rune_jit.calls.trial import Trial


@pytest.fixture(autouse=True)
def never_on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions run compiled even where NumPy would be faster."""
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def random(i: int, *shape: int) -> Any:
    return np.random.default_rng(i).random(shape)


def state_of(x: Any) -> Any:
    """What an object holds, objects in it as dicts."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(state_of, x))
    if isinstance(x, dict):
        return {key: state_of(value) for key, value in x.items()}
    if hasattr(x, "__slots__") and not isinstance(x, np.generic):
        return {key: getattr(x, key) for key in x.__slots__}
    is_object = hasattr(x, "__dict__") and not isinstance(x, (np.ndarray, np.generic))
    return {key: state_of(value) for key, value in vars(x).items()} if is_object else x


def outcome(function: Callable[..., Any], args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


def follow(make: Callable[[], Any], args: Callable[[int], tuple[Any, ...]], calls: int = 7) -> Any:
    """Calls the object that `make` makes, and its jitted twin."""
    theirs, ours = make(), make()
    jitted = rune_jit.jit(ours, fallback="silent")
    for i in range(calls):
        given, taken = args(i), copy.deepcopy(args(i))
        wanted, found = outcome(theirs, given), outcome(jitted, taken)
        assert_matches(state_of(found), state_of(wanted))
        assert_matches(taken, given)
        assert_matches(state_of(ours), state_of(theirs))
        if hasattr(theirs, "__dict__"):
            assert list(vars(ours)) == list(vars(theirs))
    return jitted
