"""Random methods with loops that end early do at each call what they do with NumPy: results,
attributes, and which attributes share arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from attributes import attribute_program
from outcomes import difference_of, outcome

import rune_jit
from rune_jit.calls.trial import Trial
from rune_jit.tracing import programs

_CALLS = 3


def _contents(model: Any) -> list[Any]:
    """The attributes of the objects, and which of them are the same array."""
    found = {**vars(model), **{f"part.{name}": x for name, x in vars(model.part).items()}}
    arrays = [x for _, x in sorted(found.items()) if isinstance(x, np.ndarray)]
    arrays += [x for x in model.rows if isinstance(x, np.ndarray)]
    kept = {name: x for name, x in found.items() if name not in ("part", "rng")}
    drawn = model.rng.bit_generator.state["state"]["state"]
    shared = [[np.may_share_memory(x, y) for y in arrays] for x in arrays]
    return [sorted(kept), [kept[name] for name in sorted(kept)], shared, str(drawn)]


def check(seed: int, device: str = "cpu") -> str:
    """How the calls of a seed's program ran. Raises AssertionError if they differ from NumPy's."""
    source, kind = attribute_program(seed)

    def run(model: Any, x: Any, n: int) -> Any:
        return model.run(x, n)

    def make(x: Any, n: int) -> Any:
        model = kind(x)
        return model.run(x, n), model.a, model.b, model.c, model.t, model.part.u, model.log

    for function in (kind.run, run, make):
        jitted = rune_jit.jit(function, fallback="silent", device=device)
        models = [kind(np.arange(3)), kind(np.arange(3))]
        for call in range(_CALLS):
            found = []
            for f, model in zip((jitted, function), models, strict=True):
                x = np.random.default_rng([seed, call]).integers(-9, 9, 3)
                arguments = (x, 8 + call) if function is make else (model, x, 8 + call)
                found.append([outcome(f, arguments), x, _contents(model)])
            difference = difference_of(*found)
            text = f"seed {seed}, {function.__name__}, call {call}\n{source}\n{jitted.explain()}"
            assert difference is None, f"{difference}\n{text}"
    return str(jitted.explain())


@pytest.fixture(autouse=True)
def _never_on_numpy_because_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    monkeypatch.setattr(programs, "_INTERPRETED", math.inf)


def test_attribute_programs(full: bool) -> None:
    how = [check(seed) for seed in range(10_000 if full else 100)]
    assert sum("of loops" in text for text in how) > len(how) / 10
