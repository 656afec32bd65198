"""Figures of this machine for the cost model: measured once, kept on disk, read by later processes.

`ensure` runs before the first program of a process is lowered. RUNE_JIT_CALIBRATION turns it off or
names the file of figures; the built-in figures stand where none can be kept.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
from pathlib import Path

from rune_jit import _core, _image

__all__ = ["ensure", "load", "store"]

# Part of the key: raise when a figure's meaning changes.
_FORMAT = "rune_jit figures 1"

_lock = threading.Lock()
_done = False

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


def ensure() -> None:
    """Gives the cost model this machine's figures, if it has not got them."""
    global _done
    if _done:
        return
    with _lock:
        if not _done:
            _apply(*_core.calibration_options())
            _done = True


def _apply(option: str, cache_dir: str) -> None:
    if option == "off":
        return
    key = _key()
    path = Path(option) if option else _default_path(cache_dir, key)
    figures = load(path, key)
    if figures is None:
        # Where nothing can be kept, every process would measure, and each find other figures.
        if not _is_writable(path.parent):
            return
        measured = _core.measure_cpu()
        figures = load(path, key)  # another process may have been first
        if figures is None:
            figures = measured
            store(path, key, figures)
    _core.set_cpu_figures(figures)


def _default_path(cache_dir: str, key: str) -> Path:
    import hashlib

    if not cache_dir:
        import platformdirs

        cache_dir = platformdirs.user_cache_dir("rune_jit")
    return Path(cache_dir) / f"figures-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _key() -> str:
    """One line that says what the figures depend on: the processor, and the cores in use, by the
    figures that are assumed without measuring."""
    processor = _image.processor() or [platform.machine(), platform.processor()]
    words = [_FORMAT, *processor, *(f"{k}={v}" for k, v in _core.cpu_figures().items())]
    return " ".join(" ".join(words).split())


def load(path: Path, key: str) -> dict[str, float] | None:
    """The figures in a file; None if there is none, or it is damaged or of another machine."""
    try:
        first, *lines = path.read_text(encoding="utf-8").splitlines()
        figures = {name: float(value) for name, value in (line.split("=") for line in lines)}
    except (OSError, ValueError):
        return None
    wanted = _core.cpu_figures().keys()
    is_usable = all(0 < value < float("inf") for value in figures.values())
    return figures if first == key and figures.keys() == wanted and is_usable else None


def store(path: Path, key: str, figures: dict[str, float]) -> None:
    """Writes a file of figures, all of it at once."""
    import tempfile

    text = "\n".join([key, *(f"{name}={value!r}" for name, value in figures.items())]) + "\n"
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
