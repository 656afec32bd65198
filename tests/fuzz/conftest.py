"""How long the fuzz tests look: a fixed selection of programs, or with --full ever new ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings

# Programs are made from seeds, so that shrinking them means nothing; runner.reduce does it.
_COMMON = {
    "deadline": None,
    "database": None,
    "phases": (Phase.explicit, Phase.generate),
    "suppress_health_check": list(HealthCheck),
}
settings.register_profile("quick", max_examples=1500, derandomize=True, **_COMMON)
settings.register_profile("full", max_examples=15000, print_blob=True, **_COMMON)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="fuzz for minutes, with new seeds")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("full" if config.getoption("--full", default=False) else "quick")


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether --full was given."""
    return bool(request.config.getoption("--full"))
