"""The bounded cache of a jitted function's programs, by the keys of calls. If several threads need
a program, one of them makes it."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from rune_jit.calls.entries import Untraced

# How long a thread waits for another thread that traces the user's function, in seconds. (The other
# one may itself wait for this thread.)
_LONGEST_WAIT = 2.0


class _Making:
    """An entry that a thread is making."""

    def __init__(self) -> None:
        self.finished = threading.Event()
        self.thread = threading.get_ident()
        self.runs_user_code = True


class Cache:
    """Entries by key. An entry has the attribute `last_used`, a number that grows with each use. If
    there are more than `most` entries, the least recently used one is removed. Those that are
    `Untraced` are removed before others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._entries: dict[Any, Any] = {}
        self._making: dict[Any, _Making] = {}
        self.evictions = 0
        self.changes = 0  # how often an entry was removed or replaced
        _caches.add(self)

    def get(self, key: Any, make: Callable[[Callable[[], None]], Any]) -> tuple[Any, bool]:
        """The entry of a key, and whether it was made now.

        make(traced) makes an entry or returns None. It calls `traced` after it has run the user's
        code. Other threads that need the entry wait. If that could be a deadlock, they make their
        own. If `make` itself needs the entry, it gets None."""
        while True:
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None:
                    return entry, False
                making = self._making.get(key)
                if making is None:
                    mine = self._making[key] = _Making()
                    break
            if making.thread == threading.get_ident():
                return None, False
            if not making.finished.wait(_LONGEST_WAIT) and making.runs_user_code:
                mine = _Making()
                break

        def traced() -> None:
            mine.runs_user_code = False

        try:
            entry = make(traced)
            if entry is not None:
                self.add(key, entry)
            return entry, True
        finally:
            with self._lock:
                if self._making.get(key) is mine:
                    del self._making[key]
            mine.finished.set()

    def add(self, key: Any, entry: Any) -> None:
        """Adds the entry of a new key."""
        with self._lock:
            self._entries[key] = entry
            while len(self._entries) > self._most:
                others = ((_worth(x), k) for k, x in self._entries.items() if k != key)
                del self._entries[min(others, key=lambda worth_and_key: worth_and_key[0])[1]]
                self.evictions += 1
                self.changes += 1

    def peek(self, key: Any) -> Any:
        """The entry of a key, or None."""
        with self._lock:
            return self._entries.get(key)

    def replace(self, key: Any, entry: Any) -> None:
        """Replaces the entry of a key."""
        with self._lock:
            self._entries[key] = entry
            self.changes += 1

    def discard(self, key: Any, entry: Any) -> None:
        """Removes an entry that is out of date."""
        with self._lock:
            self.changes += 1
            if self._entries.get(key) is entry:
                del self._entries[key]

    def entries(self) -> list[Any]:
        return list(self.by_key().values())

    def by_key(self) -> dict[Any, Any]:
        """The entries by key."""
        with self._lock:
            return dict(self._entries)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self.changes += 1

    def after_fork(self) -> None:
        """Called in a child process, which lacks the threads that held the lock or made entries."""
        self._lock = threading.Lock()
        self._making = {}


def _worth(entry: Any) -> tuple[bool, int]:
    return not isinstance(entry, Untraced), entry.last_used


_caches: weakref.WeakSet[Cache] = weakref.WeakSet()


def _after_fork() -> None:
    for cache in list(_caches):
        cache.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
