"""The warnings of a jitted function. Each is given once."""

from __future__ import annotations

import warnings
from typing import Any

from rune_jit.errors import ConcretizationError, JitFallbackWarning, UnsupportedOpError
from rune_jit.tracing.context import user_site


class Reports:
    """The warnings of the function `name`; `fallback` is jit's option."""

    def __init__(self, name: str, fallback: str) -> None:
        self.may_fall_back = fallback != "error"
        self._name, self._fallback = name, fallback
        self._warned: set[Any] = set()

    def clear(self) -> None:
        """Forgets which warnings were given, so that they are given again."""
        self._warned.clear()

    def fall_back(self, error: UnsupportedOpError | ConcretizationError) -> None:
        """Warns that a signature runs on NumPy. Raises the error under fallback="error"."""
        if not self.may_fall_back:
            raise error
        if self._fallback == "warn":
            site = getattr(error, "user_site", None) or user_site()
            self.once(f"runs on NumPy: {error}", JitFallbackWarning, site)

    def once(self, text: str, category: type[Warning], site: tuple[str, int]) -> None:
        """Gives a warning at a line of the user's source, unless it was given before."""
        if self._fallback != "silent" and (site, text) not in self._warned:
            self._warned.add((site, text))
            warnings.warn_explicit(f"{self._name} {text}", category, *site)
