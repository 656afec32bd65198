"""Object code that is kept on disk for later processes.

The code runs in this process. So a file is read only if no other user could have written it. A file
contains a digest of its key and code, followed by the code.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import stat
import warnings

from rune_jit.backends import files

__all__ = ["Entry", "clear"]

# Part of every key. Increase it when the layout of files changes.
_FORMAT = "rune_jit object 4"
_MAX_BYTES = 256 << 20
# The size of the cache is checked once in so many writes.
_WRITES_PER_TRIM = 128

_writes = itertools.count()
_refused: set[str] = set()


class Entry:
    """The place in the cache for the object code of one module, compiled for one host."""

    def __init__(self, cache_dir: str, host: str, ir: str) -> None:
        self._folder = _folder(cache_dir)
        self._key = hashlib.sha256("\0".join([_FORMAT, host, ir]).encode()).digest()
        self._path = os.path.join(self._folder, f"{self._key.hex()}.o")

    def read(self) -> bytes | None:
        """The code, or None if there is no file, it is damaged, or other users may have written it.
        In the last case it gives a RuntimeWarning, once for each path."""
        try:
            if _is_refused(self._folder, os.stat(self._folder)):
                return None
            with open(self._path, "rb") as file:
                if _is_refused(self._path, os.fstat(file.fileno())):
                    return None
                data = file.read()
        except OSError:
            return None
        digest, code = data[:32], data[32:]
        if self._digest(code) != digest:
            return None
        with contextlib.suppress(OSError):  # the disk is read-only
            os.utime(self._path)
        return code

    def write(self, code: bytes) -> None:
        """Keeps the code. Does nothing if the cache cannot be written."""
        with contextlib.suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if _is_refused(self._folder, os.stat(self._folder)):
                return
            files.replace(self._path, self._digest(code) + code)
            if next(_writes) % _WRITES_PER_TRIM == 0:
                _trim(self._folder, _MAX_BYTES)

    def _digest(self, code: bytes) -> bytes:
        return hashlib.sha256(self._key + code).digest()


def clear(cache_dir: str = "") -> None:
    """Removes the files of all devices from `cache_dir`, or from the user's cache folder."""
    for folder in (_folder(cache_dir), os.path.join(_place(cache_dir), "metal")):
        if os.path.isdir(folder):
            _trim(folder, -1)


def _folder(cache_dir: str) -> str:
    return os.path.join(_place(cache_dir), "objects")


def _place(cache_dir: str) -> str:
    return cache_dir or files.user_cache_folder()


def _is_refused(path: str, status: os.stat_result) -> bool:
    if status.st_uid != os.geteuid():
        reason = f"it belongs to user {status.st_uid}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        reason = f"others may write to it: its mode is {stat.S_IMODE(status.st_mode):03o}"
    else:
        return False
    if path not in _refused:
        _refused.add(path)
        warnings.warn(
            f"cache: cannot use {path} ({reason})\nhint: only what this user alone may write is"
            " used; remove it, or choose another folder with RUNE_JIT_CACHE_DIR",
            RuntimeWarning,
            stacklevel=2,
        )
    return True


def _trim(folder: str, max_bytes: int) -> None:
    """If the cache exceeds the limit, removes the least recently used entries until a tenth of the
    limit is free."""
    entries = []
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):  # another process has removed it
            status = entry.stat()
            entries.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= max_bytes:
        return
    for _, size, path in sorted(entries):
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size
        if total <= max_bytes - max_bytes // 10:
            return
