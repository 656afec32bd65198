"""Signatures whose first calls NumPy runs: those of functions that get another signature at most
calls, and those whose programs would be too large."""

from __future__ import annotations

from typing import Any

# How many calls of a signature come before its trace, and of how many signatures they are counted.
_CALLS, _MOST = 8, 256


class Untried:
    """The signatures of a function that have not been traced yet, though they were met."""

    def __init__(self) -> None:
        self._calls: dict[Any, tuple[int, str]] = {}  # by key: how many, and why

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def reasons(self) -> list[str]:
        return list(dict.fromkeys(why for _, why in self._calls.values()))

    def why(self, key: Any) -> str | None:
        """Why NumPy runs a call, if it does because its signature is one of these."""
        return self._calls[key][1] if key in self._calls else None

    def is_repeated(self, key: Any) -> bool:
        """Whether NumPy ran a call of this signature before the last one, too."""
        return self._calls.get(key, (0, ""))[0] > 1

    def takes(self, key: Any, why: str) -> bool:
        """Notes a call of a signature that is not traced; whether NumPy is to run it."""
        calls = self._calls.pop(key, (0, why))[0] + 1
        if calls > _CALLS:
            return False
        self._calls[key] = calls, why
        for oldest in list(self._calls)[: max(0, len(self._calls) - _MOST)]:
            del self._calls[oldest]
        return True

    def clear(self) -> None:
        self._calls.clear()
