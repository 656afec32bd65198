"""Random generators of a loop that runs apart (apart.py). The loop's function gets others in their
place, which have the same state while it runs. They are the same objects at each call, so one
program serves all calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rune_jit.capture.random_methods import generator_of

# Attributes of a generator that may read or change more than its state.
NOT_OF_STATE = ("bit_generator", "spawn")


class Lent:
    """The generators for one loop."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}  # by number in a call, and by kind
        self._lock = threading.RLock()  # held while the loop runs

    @contextmanager
    def in_place_of(self, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """A block in which others take the place of the generators, and of the methods of
        generators, among `values`. Yields these others by name."""
        found = {name: of for name, x in values.items() if (of := generator_of(x)) is not None}
        if not found:
            yield {}
            return
        # (Not imported before, since it loads numpy.random.)
        from rune_jit.capture.generators import copy_of, kind_of, set_state, state_of

        with self._lock:
            pairs: dict[int, tuple[Any, Any]] = {}
            for of in found.values():
                if id(of) not in pairs:
                    key = len(pairs), kind_of(of)
                    if key not in self._made:
                        self._made[key] = copy_of(of)
                    pairs[id(of)] = of, self._made[key]
                    set_state(self._made[key], state_of(of))
            lent = {name: pairs[id(of)][1] for name, of in found.items()}
            try:
                yield {
                    name: x if values[name] is found[name] else getattr(x, values[name].__name__)
                    for name, x in lent.items()
                }
            finally:
                for of, other in pairs.values():
                    set_state(of, state_of(other))
