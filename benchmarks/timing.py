"""Times several contestants in turns, so that noise hits all alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_SAMPLE_SECONDS = 5e-4  # shorter calls are repeated within a sample
_LEAST_ROUNDS = 3
_TURN_SECONDS = 0.03  # samples of one contestant taken in succession
_WARM_SECONDS = 0.005  # calls before them that do not count
_POLL_SECONDS = 0.02  # several of the clock ticks by which Linux accounts a thread's time
_MOST_POLLS = 25


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


def _wait_until_idle() -> None:
    """Returns once no thread of this process runs: another library's spin for more work for up to
    0.1 s after its last call (OpenBLAS)."""
    for _ in range(_MOST_POLLS):
        before = time.process_time()
        time.sleep(_POLL_SECONDS)
        if time.process_time() - before < _POLL_SECONDS / 10:
            return


def _turn(call: Callable[[], Any], repeats: int, seconds: float) -> list[float]:
    """Seconds of one call, by sample; at least one."""
    _wait_until_idle()
    end = time.perf_counter() + _WARM_SECONDS
    call()
    while time.perf_counter() < end:
        call()
    end = time.perf_counter() + seconds
    samples = []
    while not samples or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        samples.append((time.perf_counter() - start) / repeats)
    return samples


def _repeats(call: Callable[[], Any]) -> int:
    call()
    seconds = min(once(call)[0] for _ in range(2))
    return max(1, int(_SAMPLE_SECONDS / max(seconds, 1e-8)))


def interleave(
    calls: dict[str, Callable[[], Any]], times: dict[str, Times], seconds: float
) -> None:
    """Adds samples in rounds of one turn each until `seconds` for each contestant are spent. Those
    that have used up twice their share sit out, once they had a few turns."""
    turn = min(_TURN_SECONDS, seconds / 4)
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
                times[name].samples += _turn(call, repeats[name], turn)
                spent[name] += time.perf_counter() - start
    finally:
        if was_enabled:
            gc.enable()
