"""Results of np.broadcast_arrays: NumPy lets code write to them, with a warning."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit


class Held:
    errors: Any = None


def written(x: Any, errors: Any) -> Any:
    x, errors = np.broadcast_arrays(x, errors)
    first = x.max().tolist()
    errors[0] = first
    return x, errors


def written_in_one_program(x: Any, errors: Any) -> Any:
    x, errors = np.broadcast_arrays(x, errors)
    errors[0] = 7.0
    return x + errors


def stored(x: Any, errors: Any) -> Any:
    held = Held()
    x, held.errors = np.broadcast_arrays(x, errors)
    first = x.max().tolist()
    return held.errors.flags.writeable, held.errors, first


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("errors", [0.5, np.ones(1), np.arange(4.0), np.ones((3, 4))])
@pytest.mark.parametrize("use", [written, written_in_one_program, stored])
def test_writes(use: Any, errors: Any) -> None:
    jitted = rune_jit.jit(use)
    for _ in range(3):
        ours, theirs = (copy.deepcopy((np.arange(4.0), errors)) for _ in range(2))
        assert_matches(jitted(*ours), use(*theirs))
        assert_matches(ours, theirs)


def test_read_only_arguments() -> None:
    x, errors = np.arange(4.0), np.ones(1)
    errors.flags.writeable = False
    jitted = rune_jit.jit(written)
    for _ in range(3):
        with pytest.raises(ValueError, match="read-only"):
            jitted(x, errors)
