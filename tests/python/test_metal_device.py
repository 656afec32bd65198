"""Programs on the Metal device: on a Mac its GPU, elsewhere the emulator of tests/metal_emulator.

Elsewhere the extension must be the one that -DRUNE_METAL_EMULATOR=ON builds. The tables of
operations and of nodes run on it with RUNE_TEST_DEVICE=metal (tests/python/devices.py).
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from device_checks import check_indices_out_of_range, check_many_buffers
from metal_testing import (
    AVAILABLE,
    EMULATED,
    STEPS,
    chain,
    count,
    inject,
    jit,
    on_emulator,
    on_metal,
)
from op_cases import SPECIAL, SPECIAL_BINARY, SPECIAL_UNARY
from threads import in_threads

import rune_jit

pytestmark = pytest.mark.usefixtures("faults_end")


def test_without_metal_the_error_says_so() -> None:
    if AVAILABLE:
        pytest.skip("this build has Metal")
    with pytest.raises(RuntimeError, match=r"cannot open a Metal device(.|\n)*hint: .*source"):
        jit(lambda x: x + 1)(np.ones(3, np.float32))


# --- Results --------------------------------------------------------------------------------------


@on_metal
def test_special_values() -> None:
    x = SPECIAL.astype(np.float32)
    y, z = (a.ravel() for a in np.meshgrid(x, x))
    names = SPECIAL_UNARY[:12], SPECIAL_BINARY[:12]

    def function(x: Any, y: Any, z: Any) -> Any:
        return [getattr(np, n)(x) for n in names[0]] + [getattr(np, n)(y, z) for n in names[1]]

    with np.errstate(all="ignore"):
        expected = function(x, y, z)
    for value in expected:
        if value.dtype == np.float32:  # denormals are flushed
            value[np.abs(value) < np.finfo(np.float32).tiny] *= 0
    assert_matches(jit(function)(x, y, z), expected)


@on_metal
def test_products_and_sums_are_rounded_each() -> None:
    """Metal contracts them to fused operations unless a pragma forbids it."""
    x, y, z = np.random.default_rng(0).standard_normal((3, 5000)).astype(np.float32)
    z -= x * y  # so that most of the product is cancelled
    fused = (x.astype(np.float64) * y + z).astype(np.float32)
    assert (fused != x * y + z).mean() > 0.2
    np.testing.assert_array_equal(jit(lambda x, y, z: x * y + z)(x, y, z), x * y + z)


@on_metal
def test_many_kernels_and_temporaries() -> None:
    x = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32) / 4
    assert len(jit(chain).lower(x).kernels) == STEPS
    assert_matches(jit(chain)(x), chain(x), 500)


@on_metal
def test_constants() -> None:
    table = np.arange(12, dtype=np.int32).reshape(3, 4) ** 2
    x = np.array([2, 0, 1, 2], np.int32)
    function = jit(lambda x: (x[:, None] * np.array([1, 5, 7], np.int32), table.sum(0) + x[:1]))
    got = function(x)
    np.testing.assert_array_equal(got[0], x[:, None] * np.array([1, 5, 7]))
    np.testing.assert_array_equal(got[1], table.sum(0) + x[:1])


@on_metal
def test_indices_out_of_range_raise() -> None:
    check_indices_out_of_range(jit)


@on_metal
def test_more_buffers_than_slots() -> None:
    check_many_buffers(jit)


@on_metal
def test_memory_of_whole_pages_is_used_in_place() -> None:
    pages = mmap.mmap(-1, 1 << 20)
    x = np.frombuffer(pages, np.float32)[: (1 << 18) - 100]
    x[:] = np.arange(x.size)
    function = jit(lambda x, y: x * 3 + y[0])
    adopted = count("adopted") if EMULATED else 0
    for add in range(3):
        x += add
        np.testing.assert_array_equal(function(x, x), x * 3 + x[0])
    if EMULATED:
        assert count("adopted") - adopted == 3
    y = x[5:]  # begins within a page
    np.testing.assert_array_equal(function(y, y), y * 3 + y[0])


@on_metal
def test_threads() -> None:
    function = jit(lambda x: np.sqrt(x * x + 1).sum(-1))

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((4, 200)).astype(np.float32)
        for _ in range(10):
            assert_matches(function(x), np.sqrt(x * x + 1).sum(-1), 64)

    in_threads(work, range(4))


@on_metal
def test_float64_names_the_array_and_the_way_out() -> None:
    single, double = np.ones(3, np.float32), np.ones(3)
    for function, argument, named in (
        (lambda weights: weights + 1, double, "cannot hold argument weights of dtype float64"),
        (lambda x: x + double, single, "cannot hold captured array 0 of dtype float64"),
        (lambda x: x / 3, np.ones(3, np.int32), r"cannot compute float64 on metal \(\[3\], at "),
    ):
        with pytest.raises(rune_jit.DTypeError, match=named + "(.|\n)*hint: .*device=.cpu"):
            jit(function)(argument)
    np.testing.assert_array_equal(jit(lambda x: x + 1)(single), single + 1)


def host_and_device(x: Any) -> Any:
    """Two functions of the host, kernels before, between and after them."""
    return np.linalg.inv(np.sort(np.tanh(x * 2), axis=0) + np.eye(5, dtype=np.float32) * 3) @ x + 1


@on_metal
def test_functions_of_the_host() -> None:
    x = np.random.default_rng(0).standard_normal((5, 5)).astype(np.float32)
    function = jit(host_and_device)
    for _ in range(2):
        np.testing.assert_allclose(function(x), host_and_device(x), rtol=1e-4, atol=1e-5)
    resident = function(rune_jit.asarray(x, device="metal"))
    assert isinstance(resident, rune_jit.Array)
    np.testing.assert_allclose(np.asarray(resident), host_and_device(x), rtol=1e-4, atol=1e-5)
    broken = jit(lambda x: np.linalg.cholesky(-x @ x.T) + 1)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        broken(x)
    np.testing.assert_allclose(function(x), host_and_device(x), rtol=1e-4, atol=1e-5)


@on_emulator
def test_functions_of_the_host_wait_for_the_gpu() -> None:
    x = np.random.default_rng(0).standard_normal((5, 5)).astype(np.float32)
    function = jit(host_and_device)
    expected = function(x)
    inject("latency_us", 30_000)
    np.testing.assert_array_equal(function(x), expected)
    inject("fail_command_buffers", 1)  # before the first of them
    with pytest.raises(RuntimeError, match=r"kernel map_0 \(.*Address Fault(.|\n)*void map_0"):
        function(x)
    np.testing.assert_array_equal(function(x), expected)
