"""How long the fuzz tests look: a fixed selection of programs, or with --full ever new ones; fewer
on a device that tests run on alone (RUNE_TEST_DEVICE)."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

# Programs are made from seeds, so that shrinking them means nothing; runner.reduce does it.
_COMMON = {
    "deadline": None,
    "database": None,
    "phases": (Phase.explicit, Phase.generate),
    "suppress_health_check": list(HealthCheck),
}
_FEWER = 10 if os.environ.get("RUNE_TEST_DEVICE") else 1
settings.register_profile("quick", max_examples=250 // _FEWER, derandomize=True, **_COMMON)
settings.register_profile("full", max_examples=5000 // _FEWER, print_blob=True, **_COMMON)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("full" if config.getoption("--full", default=False) else "quick")
