"""Times several contestants in interleaved rounds, so that noise hits all alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_SAMPLE_SECONDS = 5e-4  # shorter calls are repeated within a sample
_LEAST_ROUNDS = 3


@dataclass
class Times:
    """Seconds of one call, by round."""

    first: float  # the call that compiles
    samples: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def _sample(call: Callable[[], Any], repeats: int) -> float:
    call()  # lets another library's threads fall asleep, and warms the caches for this one
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def _repeats(call: Callable[[], Any]) -> int:
    call()
    seconds = min(once(call)[0] for _ in range(2))
    return max(1, int(_SAMPLE_SECONDS / max(seconds, 1e-8)))


def interleave(
    calls: dict[str, Callable[[], Any]], times: dict[str, Times], seconds: float
) -> None:
    """Adds samples in rounds until `seconds` for each contestant are spent. Those that have used up
    twice their share sit out, once they have a few samples."""
    repeats = {name: _repeats(call) for name, call in calls.items()}
    spent = dict.fromkeys(calls, 0.0)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        end = time.perf_counter() + seconds * len(calls)
        rounds = 0
        while rounds < _LEAST_ROUNDS or time.perf_counter() < end:
            rounds += 1
            for name, call in calls.items():
                if rounds > _LEAST_ROUNDS and spent[name] > 2 * seconds:
                    continue
                start = time.perf_counter()
                times[name].samples.append(_sample(call, repeats[name]))
                spent[name] += time.perf_counter() - start
    finally:
        if was_enabled:
            gc.enable()
