"""Compiles CUDA source text by NVRTC, which needs no card."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import pytest

from rune_jit import _core

ARCHITECTURE = 90


@functools.cache
def require_nvrtc() -> None:
    """Skips the test where NVRTC is not installed."""
    try:
        _core.compile_cuda("", ARCHITECTURE)
    except RuntimeError as error:
        pytest.skip(str(error).splitlines()[0] + " (pip install nvidia-cuda-nvrtc)")


def check_cuda(source: str) -> None:
    """Raises AssertionError with NVRTC's messages if the text is no valid CUDA, or has warnings."""
    require_nvrtc()
    try:
        code, log = _core.compile_cuda(source, ARCHITECTURE)
    except RuntimeError as error:
        raise AssertionError(str(error)) from None
    assert code
    # The assembler moves loads of what never changes in front of the wait for the kernels before.
    # Only tables of the math library may be loaded so.
    for kernel in code.split(b".entry ")[1:]:
        if b"griddepcontrol.wait" in kernel:
            assert b"ld.global.nc" not in kernel or b"__cudart_" in code, source
    assert not log, f"{log}\n--- source ---\n{source}"


def check_many(sources: Iterable[str]) -> None:
    """check_cuda for many texts in one run of NVRTC; each alone if they do not pass together."""
    sources = list(dict.fromkeys(sources))
    parts = []
    for number, source in enumerate(sources):
        # Kernels of several texts may have one name.
        text = source.replace('extern "C" ', "")
        parts.append(f"namespace source{number} {{\n{text}\n}}")
    try:
        check_cuda("\n".join(parts))
    except AssertionError:
        for source in sources:
            check_cuda(source)
        raise
