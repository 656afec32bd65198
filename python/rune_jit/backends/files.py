"""Files that several processes write and read at once."""

from __future__ import annotations

import contextlib
import os

__all__ = ["replace"]


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def replace(path: str, data: bytes) -> None:
    """Puts a file there that only the user may read, in place of one that may be there: at no time
    does it have a part of `data`. Raises OSError."""
    # Not tempfile, which takes longer to load than a cached program.
    temporary = f"{path}.{os.urandom(8).hex()}.tmp"
    try:
        with open(temporary, "xb", opener=_open_private) as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
