"""Random number generators of NumPy and Python, whose state a trace must not change.

Loads both random modules, which `import rune_jit` does not."""

from __future__ import annotations

import functools
import pickle
import random
from typing import Any

import numpy as np

from rune_jit.rules.known import known
from rune_jit.tracing.context import current_trace

KINDS = (np.random.Generator, np.random.RandomState, random.Random)
# The global generators, which functions use without naming one: NumPy's (None) and Python's.
GLOBAL = (None, random)


def state_of(source: Any) -> Any:
    """The state of a generator, to be compared and set again; None is NumPy's global one."""
    if isinstance(source, np.random.Generator):
        return pickle.dumps(source.bit_generator.state)
    if source is None or isinstance(source, np.random.RandomState):
        state: Any = (np.random if source is None else source).get_state()
        kind, keys, *rest = state
        return (kind, keys.tobytes(), *rest)
    return source.getstate()


def set_state(source: Any, state: Any) -> None:
    """Makes state_of(source) what it was."""
    if isinstance(source, np.random.Generator):
        source.bit_generator.state = pickle.loads(state)
    elif source is None or isinstance(source, np.random.RandomState):
        kind, keys, *rest = state
        target = np.random if source is None else source
        target.set_state((kind, np.frombuffer(keys, np.uint32), *rest))
    else:
        source.setstate(state)


class SeededGenerator(np.random.Generator):
    """A generator that a trace has made from a known seed. The trace may write to its arrays."""

    # What gives the numbers of an iteration of a loop of the program (loops/replays.py).
    replay: Any = None


def _sampling(name: str) -> Any:
    method = getattr(np.random.Generator, name)

    @functools.wraps(method)
    def sample(self: SeededGenerator, *args: Any, **kwargs: Any) -> Any:
        if self.replay is not None and current_trace() is not None:
            return self.replay.take()
        result = method(self, *args, **kwargs)
        is_new = type(result) is np.ndarray and all(result is not x for x in kwargs.values())
        return known(result) if is_new and current_trace() is not None else result

    return sample


for _name in vars(np.random.Generator):
    if not _name.startswith("_") and _name not in ("bit_generator", "shuffle", "spawn"):
        setattr(SeededGenerator, _name, _sampling(_name))
