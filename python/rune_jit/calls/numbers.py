"""Programs for which random generators from outside draw numbers (capture/drawn.py)."""

from __future__ import annotations

from typing import Any

from rune_jit.capture.drawn import Numbers


class WithNumbers:
    """A CompiledCall, and the random numbers to draw before it runs."""

    def __init__(self, compiled: Any, numbers: Numbers, draws_again: bool) -> None:
        """`draws_again`: whether other code will draw the call's numbers again. Then `call`
        restores the generators."""
        self._compiled, self._numbers, self._draws_again = compiled, numbers, draws_again
        self.is_current, self.broken = compiled.is_current, compiled.broken

    @property
    def last_used(self) -> int:
        return self._compiled.last_used  # type: ignore[no-any-return]

    def call(self, leaves: list[Any]) -> tuple[str, Any]:
        """Like CompiledCall.call. The generators' states have changed only if the status is
        "done"."""
        with self._numbers.lock:
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
        return status, result
