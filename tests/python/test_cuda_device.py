"""Programs and Arrays on an NVIDIA card. Without one these tests are skipped, but for those of the
error messages; the host's side of the backend is tested on a fake driver
(tests/cpp/backends/cuda). With RUNE_TEST_DEVICE=cuda the tables of operations and of nodes, random
programs and so on run on the card, too (tests/python/devices.py).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from device_checks import check_indices_out_of_range, check_many_buffers
from node_graphs import Graph
from processes import output_of, run_program
from threads import in_threads

import rune_jit
from rune_jit import ir

AVAILABLE = "cuda" in rune_jit.devices()
on_cuda = pytest.mark.skipif(not AVAILABLE, reason="no NVIDIA card, driver or NVRTC")


def jit(function: Callable[..., Any]) -> Any:
    return rune_jit.jit(function, device="cuda", fallback="error")


def test_without_a_driver_the_error_says_what_to_install() -> None:
    program = """
import numpy, rune_jit
try:
    rune_jit.jit(lambda x: x + 1, device="cuda")(numpy.ones(3))
except RuntimeError as error:
    print(error)
print(rune_jit.devices())
rune_jit.show_config()
"""
    printed = output_of(program, RUNE_JIT_CUDA_DRIVER="/nowhere/libcuda.so.1")
    assert printed.count("cuda: cannot load NVIDIA's driver (/nowhere/libcuda.so.1:") == 2
    assert "hint: install NVIDIA's driver" in printed
    assert "['cpu'" in printed and "'cuda'" not in printed.split("]")[0]


def test_import_loads_no_driver() -> None:
    program = "import rune_jit; print('libcuda' in open('/proc/self/maps').read())"
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("this system does not list a process's libraries")
    assert output_of(program) == "False\n"


@on_cuda
def test_arrays_stay_on_the_device() -> None:
    x = np.arange(12, dtype=np.float64).reshape(3, 4)
    a = rune_jit.asarray(x, device="cuda")
    assert a.device == "cuda"
    b = rune_jit.jit(lambda a: np.tanh(a) @ a.T)(a)
    assert isinstance(b, rune_jit.Array) and b.device == "cuda"
    np.testing.assert_allclose(np.asarray(b), np.tanh(x) @ x.T, rtol=1e-12)
    c = (b + 1).sum()
    np.testing.assert_allclose(float(c), (np.tanh(x) @ x.T + 1).sum(), rtol=1e-12)
    assert b.to_device("cpu").device == "cpu"


@on_cuda
@pytest.mark.parametrize("count", [1, 1000, 131_072, 131_073, 2_097_152, 5_000_003])
def test_copies_of_all_sizes(count: int) -> None:
    x = np.arange(count, dtype=np.float32)
    a = rune_jit.asarray(x, device="cuda")
    np.testing.assert_array_equal(np.asarray(a), x)
    np.testing.assert_array_equal(jit(lambda x: x * 2)(x), x * 2)


@on_cuda
def test_many_kernels_and_temporaries() -> None:
    def chain(x: Any) -> Any:
        for _ in range(45):
            x = np.tanh(x @ x)
        return x

    x = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32) / 4
    assert_matches(jit(chain)(x), chain(x), 500)


@on_cuda
def test_in_place_writes_reach_the_callers_arrays() -> None:
    def smooth(x: Any) -> None:
        x[1:-1] = (x[:-2] + x[2:]) / 2

    x, y = np.arange(10.0) ** 2, np.arange(10.0) ** 2
    jit(smooth)(x)
    smooth(y)
    np.testing.assert_array_equal(x, y)
    a = rune_jit.asarray(np.arange(10.0) ** 2, device="cuda")
    jit(smooth)(a)
    np.testing.assert_array_equal(np.asarray(a), y)


@on_cuda
def test_host_functions_within_a_program() -> None:
    x = np.random.default_rng(0).random((20, 30))
    actual = jit(lambda x: np.sort(x * 2, axis=1)[:, ::-1] + 1)(x)
    np.testing.assert_array_equal(actual, np.sort(x * 2, axis=1)[:, ::-1] + 1)


@on_cuda
def test_indices_out_of_range_raise() -> None:
    check_indices_out_of_range(jit)


@on_cuda
def test_many_buffers() -> None:
    check_many_buffers(jit)


@on_cuda
def test_threads() -> None:
    function = jit(lambda x: np.sqrt(x * x + 1).sum(-1))

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((4, 200 + seed)).astype(np.float32)
        for _ in range(50):
            got = function(rune_jit.asarray(x, device="cuda"))
            np.testing.assert_allclose(np.asarray(got), np.sqrt(x * x + 1).sum(-1), rtol=1e-5)

    in_threads(work, range(8))


@on_cuda
def test_more_memory_than_there_is() -> None:
    with pytest.raises(MemoryError, match=r"cuda: cannot allocate \d+ bytes \(\d+ bytes of the"):
        jit(lambda x: np.broadcast_to(x, (1 << 36,)) + 1)(np.float64(1))
    gc.collect()
    np.testing.assert_array_equal(jit(lambda x: x + 1)(np.ones(3)), np.full(3, 2.0))


@on_cuda
def test_an_access_outside_of_memory_names_the_kernel() -> None:
    program = """
import numpy as np
from node_graphs import Graph
from rune_jit import ir
import rune_jit
g = Graph()
x = np.ones(3, np.float32)
v = g.custom("wild", g.input(x), dtype=np.float32, cuda="*((float*)16 + (long long)$0)")
program = ir.Program(g.finish(v), "cuda")
for call in (lambda: program.run(x), lambda: rune_jit.asarray(x, device="cuda")):
    try:
        call()
        print("no error")
    except RuntimeError as error:
        print(error)
"""
    printed = output_of(program)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in printed and "kernel " in printed
    assert "cuda: cannot use the device any more" in printed
    assert "no error" not in printed


@on_cuda
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_is_told() -> None:
    program = """
import os, numpy as np, rune_jit
a = rune_jit.asarray(np.ones(3), device="cuda")
if os.fork() == 0:
    try:
        np.asarray(a)
    except RuntimeError as error:
        print(error, flush=True)
    del a
    print(rune_jit.jit(lambda x: x + 1)(np.ones(2)).sum(), flush=True)
    os._exit(0)
os.wait()
print(np.asarray(a).sum())
"""
    printed = output_of(program)
    assert "cannot use the device in a forked process" in printed
    assert printed.endswith("4.0\n3.0\n")


@on_cuda
def test_compiled_code_is_kept_on_disk(tmp_path: Any) -> None:
    program = """
import numpy as np, rune_jit
print(rune_jit.jit(lambda x: np.exp(x) * 3, device="cuda")(np.zeros(5, np.float32)).sum())
"""
    for _ in range(2):
        assert output_of(program, RUNE_JIT_CACHE_DIR=str(tmp_path)) == "15.0\n"
        assert len(list((tmp_path / "objects").iterdir())) == 1
    # Without NVRTC, too, the kept code would run; its version is part of the key.
    environment = {"RUNE_JIT_CACHE_DIR": str(tmp_path), "RUNE_JIT_NVRTC": "/nowhere/libnvrtc.so"}
    assert "cannot compile without NVRTC" in run_program(program, **environment).stderr


@on_cuda
def test_two_devices() -> None:
    try:
        rune_jit.asarray(np.ones(1), device="cuda:1")
    except RuntimeError:
        pytest.skip("this machine has one card")
    g = Graph()
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    there = g.node("copy", g.node("unary", "neg", g.input(x)), device="cuda:1", clone=False)
    back = g.node("copy", g.node("unary", "exp2", there), device="cuda", clone=False)
    program = ir.Program(g.finish(there, g.node("binop", "add", back, back)), "cuda")
    for got, want in zip(program.run(x), (-x, 2 * np.exp2(-x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    a = rune_jit.asarray(x, device="cuda:1")
    b = rune_jit.jit(lambda x: np.sqrt(x))(a)
    assert b.device == "cuda:1"
    np.testing.assert_allclose(np.asarray(b.to_device("cuda")), np.sqrt(x), rtol=1e-6)
