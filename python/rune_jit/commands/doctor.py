"""`doctor`: prints what this installation has, what it lacks, and how to install it."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import rune_jit
from rune_jit import _core
from rune_jit.backends import calibration, files
from rune_jit.config import options, show_config
from rune_jit.device import devices
from rune_jit.pages.units import nbytes


class _Finding(NamedTuple):
    """Something that does not work or is missing. `advice` says what to do."""

    text: str
    advice: str
    is_error: bool = False


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="look for what is wrong or missing",
        description="Prints versions, devices, caches and options, compiles and runs a small"
        " function on each device, and says what is missing and how to get it.",
    )
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    findings: list[_Finding] = []
    for title, describe in _SECTIONS:
        print(f"{title}:")
        for line in describe(findings):
            print(f"  {line}")
    print("findings:" if findings else "findings: none")
    for finding in findings:
        print(f"  {'error' if finding.is_error else 'note'}: {finding.text}")
        print(f"    {finding.advice}")
    return 1 if any(finding.is_error for finding in findings) else 0


def _versions(findings: list[_Finding]) -> Iterator[str]:
    config = show_config("dicts")
    for name in ("rune_jit", "python", "numpy", "llvmlite", "llvm", "system"):
        yield f"{name}: {config[name]}"
    yield f"installed in: {os.path.dirname(rune_jit.__file__)}"


def _machine(findings: list[_Finding]) -> Iterator[str]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield f"cores: {os.cpu_count()}, of which this process may use {usable}"
    calibration.ensure()
    figures = _core.cpu_figures()
    built_in = figures == _core.built_in_cpu_figures()
    yield f"figures of the cost model: {'built in' if built_in else 'measured on this machine'}"
    for name in ("bandwidth_bytes_per_ns", "float32_operations_per_ns"):
        if name in figures:
            yield f"  {name}: {figures[name]:.1f}"
    if built_in and _core.calibration_options()[0] != "off":
        findings.append(
            _Finding(
                "the cost model knows nothing of this machine",
                "make the cache folder writable, or set RUNE_JIT_CALIBRATION to a file",
            )
        )


def _devices(findings: list[_Finding]) -> Iterator[str]:
    known = devices()
    for device in ("cpu", "cuda", "metal"):
        if device not in known:
            where, finding = _why_missing(device)
            yield f"{device}: not available{where}"
            if finding:
                findings.append(finding)
            continue
        error = _try(device)
        yield f"{device}: {'works' if error is None else 'does not work'}"
        if error is not None:
            advice = (
                "see docs/cuda.md and docs/metal.md; for the cpu this is a bug: please report it"
            )
            findings.append(_Finding(f"{device}: {error}", advice, is_error=True))
    yield f"default: {_core.default_device()}"
    if _core.default_device().partition(":")[0] not in _core.targets():
        findings.append(
            _Finding(
                f"RUNE_JIT_DEVICE={_core.default_device()} is no device",
                f"choose one of {', '.join(known)}",
                is_error=True,
            )
        )
    yield "cuda has:"
    for line in _core.describe_cuda().strip().splitlines():
        yield f"  {line}"


def _why_missing(device: str) -> tuple[str, _Finding | None]:
    """Why a device is missing, and what to do about it on this machine. (For CUDA,
    _core.describe_cuda() says why.)"""
    if device == "metal":
        is_mac = platform.system() == "Darwin" and platform.machine() == "arm64"
        advice = "build from source with Xcode's command line tools: docs/metal.md"
        finding = _Finding("metal is missing on Apple silicon", advice) if is_mac else None
        return " (only on Macs with Apple silicon)", finding
    try:
        _core.has_host_memory("cuda")
    except (RuntimeError, ValueError) as error:
        reason, _, hint = str(error).partition("\n")
        has_card = os.path.exists("/dev/nvidiactl")
        advice = hint.removeprefix("hint: ") or "pip install 'rune_jit[cuda]'"
        return "", _Finding(f"a card is here, but {reason}", advice) if has_card else None
    return "", None


def _try(device: str) -> str | None:
    """Compiles and runs a small program on a device. Returns the error, or None."""
    x = np.arange(1000, dtype=np.float32)
    try:
        result = rune_jit.jit(_small, device=device, fallback="error")(x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not np.allclose(result, _small(x)):
        return "it computes wrong results"
    return None


def _small(x: Any) -> Any:
    return np.sqrt(x) * 2 + x.sum()


def _caches(findings: list[_Finding]) -> Iterator[str]:
    folder = _core.calibration_options()[1] or files.user_cache_folder()
    count = size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.stat(os.path.join(parent, name)).st_size
            except OSError:  # another process has removed it
                continue
            count += 1
    yield f"compiled programs: {folder}: {count:,} files, {nbytes(size)}"
    existing = folder
    while not os.path.exists(existing):
        existing = os.path.dirname(existing)
    if not os.access(existing, os.W_OK):
        findings.append(
            _Finding(
                f"{folder} cannot be written, so every process compiles its programs again",
                "make it writable, or choose another folder with RUNE_JIT_CACHE_DIR",
            )
        )
    yield "rune_jit.clear_cache() empties it"


def _environment(findings: list[_Finding]) -> Iterator[str]:
    yield from options().splitlines()
    known = {line.split("=")[0].split()[0] for line in options().splitlines() if line}
    for name in sorted(os.environ):
        if name.startswith("RUNE_JIT_") and name not in known:
            findings.append(
                _Finding(f"{name} is set, but there is no such option", "the options are above")
            )


# Optional packages: name, purpose, how to install it.
_BESIDE = [
    ("rich", "tables of profiles in colour", "pip install 'rune_jit[profile]'"),
    ("scipy", "functions of scipy inside of programs", "pip install scipy"),
]


def _beside(findings: list[_Finding]) -> Iterator[str]:
    for name, purpose, command in _BESIDE:
        if importlib.util.find_spec(name) is None:
            yield f"{name}: missing ({purpose}): {command}"
        else:
            yield f"{name}: {importlib.metadata.version(name)} ({purpose})"
    if sys.version_info >= (3, 13) and not getattr(sys, "_is_gil_enabled", lambda: True)():
        yield "free-threaded Python without its GIL"


_SECTIONS: list[tuple[str, Callable[[list[_Finding]], Iterator[str]]]] = [
    ("versions", _versions),
    ("machine", _machine),
    ("devices", _devices),
    ("caches", _caches),
    ("options", _environment),
    ("packages beside", _beside),
]
