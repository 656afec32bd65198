"""Random functions with loops that draw random numbers give NumPy's results, and leave generators
in the states in which NumPy leaves them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from draws import draw_program
from outcomes import outcome

import rune_jit
from rune_jit.calls.segmented import Trial

_CALLS = 3


def _leaves(x: Any) -> list[Any]:
    return [z for y in x for z in _leaves(y)] if isinstance(x, (list, tuple)) else [x]


def _state(x: Any) -> Any:
    if isinstance(x, random.Random):
        return x.getstate()
    state = x.get_state(legacy=False) if hasattr(x, "get_state") else x.bit_generator.state
    return {k: str(v) for k, v in state.items()}


def _difference(actual: Any, expected: Any) -> str | None:
    ours, theirs = _leaves(actual), _leaves(expected)
    if len(ours) != len(theirs):
        return f"{len(ours)} values instead of {len(theirs)}"
    for a, b in zip(ours, theirs, strict=True):
        if type(a) is not type(b):
            return f"a {type(a).__name__} for a {type(b).__name__}"
        is_same = a == b if isinstance(b, str) else np.allclose(a, b, 1e-9, 1e-12, equal_nan=True)
        if not is_same or getattr(a, "dtype", None) != getattr(b, "dtype", None):
            return f"{a!r} instead of {b!r}"
    return None


def check(seed: int, device: str) -> str:
    """How the program of a seed ran. Raises AssertionError if its results or the generators' states
    differ from NumPy's."""
    program = draw_program(seed)
    function = program.function()
    jitted = rune_jit.jit(function, device=device, fallback="silent")
    generators = program.arguments(0)[1:-1]
    for call in range(_CALLS):
        outcomes = []
        for f in (function, jitted):
            x, *given, number = program.arguments(call)
            for mine, new in zip(generators, given, strict=True):
                _set(mine, new)
            result = outcome(f, (x, *generators, number))
            outcomes.append(([result, x], [_state(g) for g in generators]))
        (wanted, theirs), (found, ours) = outcomes
        difference = _difference(found, wanted) or (theirs != ours and "the states differ")
        text = f"seed {seed}, call {call}\n{program.source}\n{jitted.explain()}"
        assert not difference, f"{difference}\n{text}"
    return jitted.explain()


def _set(mine: Any, new: Any) -> None:
    if isinstance(mine, random.Random):
        mine.setstate(new.getstate())
    elif hasattr(mine, "set_state"):
        mine.set_state(new.get_state(legacy=False))
    else:
        mine.bit_generator.state = new.bit_generator.state


def test_draw_programs(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    hows = [check(seed, "cpu") for seed in range(2000 if full else 30)]
    assert sum("more of loops" in how or "as one program" in how for how in hows) > len(hows) / 3
