"""Options of all tests, and the selection of those that run on one device only."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

# The scheduler's decisions shall not depend on the machine that tests run on.
os.environ["RUNE_JIT_CALIBRATION"] = "off"
os.environ.setdefault("RUNE_JIT_NUM_THREADS", "2")
# A failing test shows where in rune_jit.
os.environ["RUNE_JIT_TRACEBACKS"] = "1"

# The files that found most of the bugs that were planted run first.
_FIRST = (
    "test_call_keys.py",
    "test_guarded.py",
    "test_llvm.py",
    "test_float_contract.py",
    "test_nodes.py",
    "test_dynamic.py",
    "test_dynamic_results.py",
    "test_slices.py",
    "test_programs.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true", help="fuzz for minutes, with new seeds; no samples"
    )
    parser.addoption(
        "--sample", type=int, default=40, metavar="N",
        help="with RUNE_TEST_DEVICE and without --full: about N of tests that differ in parameters"
        " only (40)",
    )  # fmt: skip


def pytest_collection_finish() -> None:
    # The 20,000 tests themselves, which every later collection of garbage and search for referrers
    # would visit.
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: runs with --full only")


@pytest.fixture(autouse=True)
def no_error_is_hidden() -> Iterator[None]:
    """Errors of rune_jit's own code fail a test although NumPy runs the call then."""
    from internal_errors import refused

    with refused():
        yield


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether --full was given."""
    return bool(request.config.getoption("--full"))


def _is_on_device(item: pytest.Item) -> bool:
    device = os.environ["RUNE_TEST_DEVICE"]
    if item.path.name.startswith(f"test_{device}_device"):
        return True
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return any(parameters.get(name) == device for name in ("device", "mode"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--full"):
        left_out = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    rank = {name: i for i, name in enumerate(_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))
    if not os.environ.get("RUNE_TEST_DEVICE"):
        return
    by_function: dict[str, list[pytest.Item]] = {}
    dropped = []
    for item in items:
        if _is_on_device(item):
            by_function.setdefault(item.nodeid.split("[")[0], []).append(item)
        else:
            dropped.append(item)
    kept = []
    sample = config.getoption("--sample")
    for tests in by_function.values():
        step = 1 if config.getoption("--full") else max(1, len(tests) // sample)
        kept += tests[::step]
        dropped += [test for i, test in enumerate(tests) if i % step]
    config.hook.pytest_deselected(items=dropped)
    items[:] = kept
