"""How long the CPU's allocator keeps the memory of freed arrays."""

from __future__ import annotations

import sys

import pytest
from processes import output_of

PROGRAM = """
import time, numpy, rune_jit

def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6

function = rune_jit.jit(lambda x: x + 1, fallback="error")
x = numpy.ones(1 << 24, numpy.float32)
function(x[:10])
before = megabytes()
function(x)
assert megabytes() > before + 60  # kept for the next call
{then}
"""


def run(then: str, **environment: str) -> None:
    output_of(PROGRAM.format(then=then), **environment)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_unused_memory_goes_back_after_a_while() -> None:
    run(
        """
deadline = time.monotonic() + 20
while megabytes() > before + 40:
    assert time.monotonic() < deadline
    time.sleep(0.1)
function(x)  # the allocator keeps memory again, and releases it again
deadline = time.monotonic() + 20
while megabytes() > before + 40:
    assert time.monotonic() < deadline
    time.sleep(0.1)
""",
        RUNE_JIT_ALLOCATOR_CACHE_SECONDS="1",
    )


def test_memory_in_use_is_kept_for_reuse() -> None:
    run(
        """
end = time.monotonic() + 2.5
while time.monotonic() < end:
    function(x)
    assert megabytes() > before + 60
    time.sleep(0.05)
""",
        RUNE_JIT_ALLOCATOR_CACHE_SECONDS="1",
    )


def test_a_limit_of_zero_seconds_is_none() -> None:
    run("time.sleep(1)\nassert megabytes() > before + 60", RUNE_JIT_ALLOCATOR_CACHE_SECONDS="0")


def test_memory_is_released_on_request() -> None:
    run("rune_jit.release_memory()\nassert megabytes() < before + 20")
