"""Faults of the Metal device, on the emulator of tests/metal_emulator: an exception each, and the
next call works."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from compare import assert_matches
from metal_testing import count, inject, jit, on_emulator
from processes import output_of

import rune_jit

pytestmark = pytest.mark.usefixtures("faults_end")


@on_emulator
def test_a_failed_command_buffer() -> None:
    function = jit(lambda x: x * 5)
    x = np.ones(9, np.float32)
    function(x)
    inject("fail_command_buffers", 1)
    with pytest.raises(RuntimeError, match=r"kernel map_0 \(.*Address Fault(.|\n)*void map_0"):
        function(x)
    np.testing.assert_array_equal(function(x), x * 5)


@on_emulator
def test_a_failed_compilation() -> None:
    function = jit(lambda x: x * 7 + 3)
    x = np.ones(9, np.float32)
    inject("fail_libraries", 1)
    with pytest.raises(
        RuntimeError, match=r"cannot compile kernel map_0: .*injected(.|\n)*void map_0"
    ):
        function(x)
    np.testing.assert_array_equal(function(x), x * 7 + 3)


@on_emulator
@pytest.mark.parametrize("limit", [1, 16, 100, 64])
def test_a_pipeline_with_few_threads(limit: int) -> None:
    """Elementwise kernels run in smaller threadgroups, others are scheduled again for them."""
    inject("max_threads", limit)
    x = np.random.default_rng(limit).standard_normal((40, 300)).astype(np.float32)
    before = count("violations")
    for number, function in enumerate(
        [
            lambda x: x * limit + 3,
            lambda x: x.sum(-1) + limit,
            lambda x: (x - x.max()) / limit,
            lambda x: x[:, :40] @ x[:, 40:80] - limit,
        ]
    ):
        assert_matches(jit(function)(x), function(x), 64 if number else 0)
    assert count("violations") == before


@on_emulator
def test_a_pipeline_of_other_simd_groups() -> None:
    x = np.ones(1000, np.float32)
    inject("simd_width", 64)
    with pytest.raises(RuntimeError, match=r"kernel reduce_0 in SIMD-groups of 64 .*for 32\)"):
        jit(lambda x: x.sum() - 41)(x)
    np.testing.assert_array_equal(jit(lambda x: x * 41)(x), x * 41)
    inject("simd_width", 32)
    assert jit(lambda x: x.sum() - 41)(x) == 959


@on_emulator
def test_a_pipeline_without_threads() -> None:
    inject("max_threads", 0)
    with pytest.raises(RuntimeError, match=r"kernel reduce_0 with \d+ threads .*allows 0\)"):
        jit(lambda x: x.sum() - 23)(np.ones(1000, np.float32))


@on_emulator
def test_no_memory() -> None:
    function = jit(lambda x: x + 13)
    x = np.ones((1 << 20) + 7, np.float32)
    # Once: what is cached goes, and the second attempt has room.
    inject("fail_allocations", 1)
    np.testing.assert_array_equal(function(x), x + 13)
    inject("fail_allocations", 1000)
    y = np.ones((1 << 21) + 7, np.float32)
    with pytest.raises(MemoryError, match=r"cannot allocate \d+ bytes \(the device has no memory"):
        function(y)
    inject("fail_allocations", 0)
    np.testing.assert_array_equal(function(y), y + 13)


@on_emulator
def test_a_lost_device() -> None:
    function = jit(lambda x: x - 17)
    x = np.ones(9, np.float32)
    function(x)
    inject("lost", 1)
    with pytest.raises(RuntimeError, match=r"cannot launch kernel map_0 \(.* may be lost\)"):
        function(x)
    inject("lost", 0)
    np.testing.assert_array_equal(function(x), x - 17)


@on_emulator
def test_a_device_that_is_lost_while_it_runs() -> None:
    function = jit(lambda x: x - 37)
    x = rune_jit.asarray(np.ones(9, np.float32), device="metal")
    np.asarray(function(x))
    inject("latency_us", 1_000_000)  # the timer may be late
    y = function(x)
    waits = threading.Timer(0.02, inject, ["lost", 1])
    waits.start()
    with pytest.raises(RuntimeError, match=r"kernel map_0 \(Device was removed(.|\n)*void map_0"):
        np.asarray(y)
    waits.join()
    with pytest.raises(RuntimeError, match="may be lost"):
        function(x)
    inject("lost", 0)
    np.testing.assert_array_equal(np.asarray(function(x)), np.full(9, -36))


@on_emulator
def test_a_command_buffer_that_takes_too_long() -> None:
    """Of several kernels, in one call that waits and in one that does not."""
    function = jit(lambda x: np.tanh(x @ x) @ x)
    x = np.full((6, 6), 0.1, np.float32)
    expected = function(x)
    inject("time_outs", 1)
    with pytest.raises(RuntimeError, match=r"one of the kernels \w+, \w+ \(.*GPU Timeout"):
        function(x)
    np.testing.assert_array_equal(function(x), expected)
    z = rune_jit.asarray(x, device="metal")
    inject("time_outs", 1)
    late = function(z)
    good = function(z)  # in the same command buffer
    for array in (late, good):
        with pytest.raises(RuntimeError, match=r"GPU Timeout(.|\n)*void contract"):
            np.asarray(array)
    np.testing.assert_array_equal(np.asarray(function(z)), expected)


@on_emulator
def test_a_gpu_without_simd_reductions_and_matrix_units() -> None:
    """Programs are lowered for what the device reports, not for what GPUs can do in general."""
    program = """
import ctypes, numpy, rune_jit
ctypes.CDLL(rune_jit._core.__file__).rune_metal_emulator_inject(b"old_gpu", 1)
function = rune_jit.jit(lambda x: (x @ x.T).sum(-1) - x.max(), device="metal", fallback="error")
x = numpy.arange(20 * 100, dtype=numpy.float32).reshape(20, 100) % 7
assert "simd" in function.lower(x).source("metal")
numpy.testing.assert_array_equal(function(x), (x @ x.T).sum(-1) - x.max())
"""
    output_of(program)


@on_emulator
def test_no_device() -> None:
    program = """
import ctypes, numpy, rune_jit
library = ctypes.CDLL(rune_jit._core.__file__)
library.rune_metal_emulator_inject(b"no_device", 1)
function = rune_jit.jit(lambda x: x + 1, device="metal", fallback="error")
x = numpy.ones(3, numpy.float32)
try:
    function(x)
except RuntimeError as error:
    assert "cannot open a Metal device" in str(error), error
else:
    raise SystemExit("no error")
library.rune_metal_emulator_inject(b"no_device", 0)
assert (function(x) == 2).all()
"""
    output_of(program)
