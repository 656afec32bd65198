"""Errors of rune_jit's own code that default settings hide, because NumPy computes in its place."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rune_jit.calls.running import Runner
from rune_jit.errors import RuneJitError
from rune_jit.rules import host
from rune_jit.tracing.context import is_own_file


@contextmanager
def refused() -> Iterator[None]:
    """Raises AssertionError at the end if NumPy ran a call, or an operation of a call in segments,
    because rune_jit's own code had raised what NumPy did not. (BufferError is what Python asks of
    arrays without memory.)"""
    found: list[Exception] = []

    def noting(run: Callable[..., Any]) -> Callable[..., Any]:
        def run_and_note(owner: Any, error: Exception, *rest: Any) -> Any:
            result = run(owner, error, *rest)
            frames = traceback.extract_tb(error.__traceback__)
            is_own = bool(frames) and is_own_file(frames[-1].filename)
            if is_own and not isinstance(error, (RuneJitError, BufferError)):
                found.append(error)
            return result

        return run_and_note

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "_call_that_raised", noting(Runner._call_that_raised))
        patch.setattr(host, "_run_instead", noting(host._run_instead))
        yield
    for error in found:
        raise AssertionError(f"rune_jit raised {error!r}, NumPy did not") from error
