"""Figures of this machine for the cost model: measured once, kept on disk, read by later processes.

`ensure` runs before the first program of a process is lowered. RUNE_JIT_CALIBRATION turns it off or
names the file of figures; the built-in figures stand where none can be kept. A machine that is busy
while it is measured looks slower than it is, so the next few processes, and then one a day, measure
again when they end, and the best of each figure is kept.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import threading
import time
from pathlib import Path
from typing import NamedTuple

from rune_jit import _core
from rune_jit.backends import files as _files
from rune_jit.backends import image as _image

__all__ = ["Kept", "ensure", "load", "store"]

# Part of the key: raise when a figure's meaning changes, or how it is measured.
_FORMAT = "rune_jit figures 4"
# In the file, how many processes have measured.
_COUNT = "measurements"
# So many processes measure one after the other; after that, one when the file is so old.
_MEASUREMENTS, _SECONDS = 5, 24 * 3600
# A smaller gain is noise: decisions, and programs compiled by them, stay as they are.
_LEAST_GAIN = 1.05

_lock = threading.Lock()
_done = False

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


class Kept(NamedTuple):
    """Figures by name, and how many processes have measured them."""

    figures: dict[str, float]
    measurements: int


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
    kept = load(path, key)
    # Where nothing can be kept, every process would measure, and each find other figures.
    is_writable = _is_writable(path.parent)
    if kept is None and is_writable:
        kept = _measure(path, key)
    elif kept is not None and is_writable and _is_due(path, kept):
        atexit.register(_measure, path, key)
    if kept is not None:
        _core.set_cpu_figures(kept.figures)


def _is_due(path: Path, kept: Kept) -> bool:
    with contextlib.suppress(OSError):
        return kept.measurements < _MEASUREMENTS or time.time() - path.stat().st_mtime > _SECONDS
    return False


def _measure(path: Path, key: str) -> Kept:
    """Measures the machine; of the new figures and those in the file, the best are kept."""
    measured = _core.measure_cpu()
    before = load(path, key)  # another process may have measured meanwhile
    if before is None:
        kept = Kept(measured, 1)
    else:
        best = {name: _better(name, old, measured[name]) for name, old in before.figures.items()}
        kept = Kept(best, before.measurements + 1)
    store(path, key, kept)
    return kept


def _better(name: str, old: float, new: float) -> float:
    """The higher rate, or the shorter time; the old one unless the new one tells them apart."""
    gain = new / old if name.endswith("_per_ns") else old / new
    return new if gain > _LEAST_GAIN else old


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


def load(path: Path, key: str) -> Kept | None:
    """The figures in a file; None if there is none, or it is damaged or of another machine."""
    try:
        first, *lines = path.read_text(encoding="utf-8").splitlines()
        figures = {name: float(value) for name, value in (line.split("=") for line in lines)}
    except (OSError, ValueError):
        return None
    is_usable = all(0 < value < float("inf") for value in figures.values())
    measurements = figures.pop(_COUNT, 0)
    if first != key or figures.keys() != _core.cpu_figures().keys() or not is_usable:
        return None
    return Kept(figures, int(measurements))


def store(path: Path, key: str, kept: Kept) -> None:
    """Writes a file of figures, all of it at once."""
    values = {**kept.figures, _COUNT: kept.measurements}
    text = "\n".join([key, *(f"{name}={value!r}" for name, value in values.items())]) + "\n"
    with contextlib.suppress(OSError):
        _files.replace(str(path), text.encode())


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
