"""Random programs that write give NumPy's arrays, results and arguments alike."""

from __future__ import annotations

from typing import Any

import pytest
from runner import DEVICES
from writes import Writes, check

_SEEDS = {"cpu": 25, "interpreter": 100}


@pytest.mark.parametrize("device", [d for d in DEVICES if d in _SEEDS])
def test_writes(device: str, full: bool) -> None:
    for seed in range(_SEEDS[device] * (40 if full else 1)):
        check(seed, device)


def test_dropped_writes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def drops(function: Any, **options: Any) -> Any:
        return lambda *arguments: function(*(a.copy() for a in arguments))

    monkeypatch.setattr("rune_jit.jit", drops)
    wrong = [seed for seed in range(20) if Writes(seed).mismatch("cpu")]
    assert len(wrong) > 10
    with pytest.raises(AssertionError, match=rf"seed {wrong[0]} on cpu: (?s:.*)def program\("):
        check(wrong[0], "cpu")
