"""Random contractions give NumPy's results on every device."""

from __future__ import annotations

import numpy as np
import pytest
from contractions import contraction
from guarded import PLACEMENTS, guarded
from runner import DEVICES

import rune_jit

_MOST_MULTIPLIES = {"cpu": 2**24}  # devices that are simulated take fewer


@pytest.mark.parametrize("device", DEVICES)
def test_contractions(device: str, full: bool) -> None:
    most = _MOST_MULTIPLIES.get(device, 2**18)
    for seed in range(1000 if full else 50):
        case = contraction(seed, most)
        placement = PLACEMENTS[seed % 2]
        arguments = [guarded(argument, placement) for argument in case.arguments]
        found = rune_jit.jit(case.function, device=device, fallback="error")(*arguments)
        wanted = case.expected()
        if not isinstance(wanted, tuple):
            found, wanted = (found,), (wanted,)
        for f, w in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(f, w, f"seed {seed}\n{case.text}", strict=True)
