"""Programs for which random generators from outside draw numbers (capture/drawn.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rune_jit.capture.drawn import Numbers


class WithNumbers:
    """A CompiledCall, and what is drawn before it runs."""

    def __init__(
        self,
        compiled: Any,
        numbers: Numbers,
        draws_again: bool,
        more_words: Callable[[], bool] | None,
    ) -> None:
        """`draws_again`: other code draws the numbers of the call, too; `more_words`: called if the
        program may have had too few, returns whether another one has more."""
        self._compiled, self._numbers = compiled, numbers
        self._draws_again, self._more_words = draws_again, more_words
        self._memory = numbers.memory
        self.broken = compiled.broken

    @property
    def last_used(self) -> int:
        return self._compiled.last_used  # type: ignore[no-any-return]

    def is_current(self) -> bool:
        return not self._memory.is_too_small and self._compiled.is_current()

    def call(self, leaves: list[Any]) -> tuple[str, Any]:
        """As CompiledCall.call. The generators have drawn if it is "done" only."""
        if self._memory.is_too_small:
            return "stale", None
        with self._memory.lock:
            restore = self._numbers.draw(leaves)
            is_done = False
            try:
                status, result = self._compiled.call(leaves)
                is_done = status == "done" and not self._draws_again
                if is_done:
                    self._numbers.finish()
            finally:
                if not is_done:
                    restore()
        if status == "unsuitable" and self._more_words is not None:
            self._memory.is_too_small = self._more_words()
        return status, result
