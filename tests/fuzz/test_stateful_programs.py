"""Random functions with branches, state, reads and exceptions do at each call what they do with
NumPy: results, what is printed, and what they leave in arguments, objects and globals."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from typing import Any

import numpy as np
import pytest
from outcomes import sharing
from stateful import arguments, program

import rune_jit
from rune_jit.calls.segmented import Trial
from rune_jit.tracing import programs

_CALLS = 5


def _run(seed: int, jit: Any) -> tuple[str, list[Any], Any]:
    """The program's text, what each call did, and the jitted function."""
    source, names = program(seed)
    model = names["Model"]()
    step = jit(model.step)
    did = []
    for call in range(_CALLS):
        given = arguments(seed, call)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                result: Any = step(*given)
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
        state = _plain(vars(model))
        outside = names["calls"], names["Model"].made
        memory = sharing(result, given, list(vars(model).values()))
        did.append([_plain(result), _plain(given), state, outside, printed.getvalue(), memory])
    return source, did, step


def _plain(x: Any) -> Any:
    """x with copies of the arrays in it, each with its type."""
    if isinstance(x, (list, tuple)):
        return type(x), [_plain(item) for item in x]
    if isinstance(x, dict):
        return [(key, _plain(value)) for key, value in x.items()]
    if isinstance(x, set):
        return sorted(repr(_plain(item)) for item in x)
    if isinstance(x, (np.ndarray, np.generic)):
        return type(x), x.dtype, x.shape, np.asarray(x).tolist()
    return type(x), None if callable(x) else x


def _difference(a: Any, b: Any) -> tuple[str, Any, Any]:
    """The first place where two values differ, and what is there."""
    if type(a) is type(b) and isinstance(a, (list, tuple)) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            if repr(x) != repr(y):
                place, x, y = _difference(x, y)
                return f"[{i}]{place}", x, y
    return "", a, b


def check(seed: int, device: str = "cpu") -> str:
    """How the calls of a seed's program ran: "program", "segments" or "NumPy". Raises
    AssertionError if they differ from NumPy's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        source, wanted, _ = _run(seed, lambda f: f)
        _, found, jitted = _run(seed, lambda f: rune_jit.jit(f, fallback="silent", device=device))
    for call, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        if repr(ours) != repr(theirs):
            place, a, b = _difference(ours, theirs)
            text = source[source.index("    def step") :]
            raise AssertionError(
                f"{a} instead of {b} at {place} of call {call}\n{text}\n{jitted.explain()}"
            )
    how = jitted.explain()
    return "program" if "as one program" in how else "segments" if "segments" in how else "NumPy"


@pytest.fixture(autouse=True)
def _never_on_numpy_because_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    monkeypatch.setattr(programs, "_INTERPRETED", math.inf)


@pytest.mark.parametrize("device", ("cpu", "interpreter"))
def test_stateful_programs(device: str, full: bool) -> None:
    ways = [check(seed, device) for seed in range(20_000 if full else 60)]
    assert ways.count("program") > len(ways) / 20 and ways.count("segments") > len(ways) / 4


@pytest.mark.parametrize("seed", [9640, 501_323, 16_001_536, 23_001_615, 820_000_665, 950_700_622])
def test_found(seed: int) -> None:
    """9640: np.errstate(divide="raise") in a function that assigns a global variable. 501323: a
    loop appends to an attribute and to a list. 950700622: a loop appends a global number where its
    arrays are numbered. The others: texts of errors of out= arrays."""
    check(seed, "cpu")
