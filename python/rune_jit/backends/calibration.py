"""This machine's figures for the cost model, measured once and kept in a file.

`ensure` runs before the first program of a process is lowered. RUNE_JIT_CALIBRATION names the file.
With RUNE_JIT_CALIBRATION=off the built-in figures apply. They also apply if no file can be written,
because otherwise each process would measure other figures and compile other programs.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading

from rune_jit import _core
from rune_jit.backends import files

__all__ = ["calibrate", "ensure"]

# Part of the key. Increase it when a figure's meaning or measurement changes.
_FORMAT = "rune_jit figures 6"

_lock = threading.Lock()
_done = False

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


def ensure() -> None:
    """Gives the cost model this machine's figures, unless it has them."""
    global _done
    if _done:
        return
    with _lock:
        if not _done:
            _apply(*_core.calibration_options())
            _done = True


def calibrate() -> dict[str, float]:
    """Measures this machine for the cost model, which takes about 30 ms, and keeps the figures.

    The machine is also measured before its first program. Call this function if the machine was
    busy then. Programs that are compiled later, in this process and in others, use the new figures.
    Compiled programs do not change.

    The figures are kept in the file that RUNE_JIT_CALIBRATION names, or in the cache folder
    (RUNE_JIT_CACHE_DIR). With RUNE_JIT_CALIBRATION=off they hold for this process only.

    Returns:
        The figures by name: rates of all cores together (`..._per_ns`), and the times of a launch
        and of dealing work to the cores (`..._ns`, nanoseconds).

    Raises:
        OSError: if the file cannot be written.

    Examples:
        >>> import rune_jit
        >>> figures = rune_jit.calibrate()  # doctest: +SKIP
        >>> print(figures["bandwidth_bytes_per_ns"], "GB/s")  # doctest: +SKIP
        42.3 GB/s
    """
    global _done
    option, cache_dir = _core.calibration_options()
    with _lock:
        figures: dict[str, float] = _core.measure_cpu()
        _core.set_cpu_figures(figures)
        _done = True
        if option != "off":
            _store(*_place(option, cache_dir), figures)
    return figures


def _apply(option: str, cache_dir: str) -> None:
    if option == "off":
        return
    path, key = _place(option, cache_dir)
    figures = _load(path, key)
    if figures is None:
        try:
            _store(path, key, {})  # raises if no file can be written
            figures = _core.measure_cpu()
            _store(path, key, figures)
        except OSError:
            return
    _core.set_cpu_figures(figures)


def _place(option: str, cache_dir: str) -> tuple[str, str]:
    """The path of the file of figures, and its key, which is the first line: the processor and the
    built-in figures, which contain the number of cores and the width of vectors."""
    words = [_FORMAT, _processor(), *(f"{k}={v}" for k, v in _core.built_in_cpu_figures().items())]
    key = " ".join(" ".join(words).split())
    if not option:
        import hashlib

        name = f"figures-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        option = os.path.join(cache_dir or files.user_cache_folder(), name)
    return os.path.abspath(option), key


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line
    return f"{platform.machine()} {platform.processor()}"


def _load(path: str, key: str) -> dict[str, float] | None:
    """The figures in a file. None if there is no file, or if it is damaged or from another
    machine."""
    try:
        with open(path, encoding="utf-8") as file:
            first, *lines = file.read().splitlines()
        figures = {name: float(value) for name, value in (line.split("=") for line in lines)}
    except (OSError, ValueError):
        return None
    is_usable = all(0 < value < float("inf") for value in figures.values())
    if first != key or figures.keys() != _core.built_in_cpu_figures().keys() or not is_usable:
        return None
    return figures


def _store(path: str, key: str, figures: dict[str, float]) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    text = "\n".join([key, *(f"{name}={value!r}" for name, value in figures.items())]) + "\n"
    files.replace(path, text.encode())
