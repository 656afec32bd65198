"""Files that several processes may read and write at the same time, and the folder for them."""

from __future__ import annotations

import contextlib
import os

__all__ = ["replace", "user_cache_folder"]


def user_cache_folder() -> str:
    import platformdirs

    return platformdirs.user_cache_dir("rune_jit")


def replace(path: str, data: bytes) -> None:
    """Writes a file that only the user may read, or replaces it. Other processes see either the old
    file or the whole new one. Raises OSError."""
    temporary = f"{path}.{os.urandom(8).hex()}.tmp"
    try:
        with open(temporary, "xb", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
