"""Programs of several kernels, which are launched as CUDA graphs: on every machine on the fake
driver of tests/cuda_fake, which counts launches, and on a card.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_cuda_device import on_cuda
from test_cuda_sharing import run_on_fake
from threads import in_threads

import rune_jit


def centred(x: np.ndarray) -> np.ndarray:
    for _ in range(3):
        x = x - x.mean(axis=0)
        x = x / (1 + np.abs(x).mean(axis=1, keepdims=True))
    return x


_FAKE_PROGRAM = """
import ctypes, gc, os, sys, numpy as np, rune_jit
from test_cuda_graphs import centred
fake = ctypes.CDLL(os.environ["RUNE_JIT_CUDA_DRIVER"])
fake.rune_fake_misuse.restype = ctypes.c_char_p
fake.rune_fake_get.restype = ctypes.c_long
counters = "cuLaunchKernel", "cuGraphLaunch", "cuGraphInstantiate", "cuGraphExecKernelNodeSetParams"
early = "cuGraphAddDependencies", "cuLaunchKernel that begins early"

def counts():
    return np.array([fake.rune_fake_get(name.encode()) for name in counters])

a, b = (rune_jit.asarray(np.ones((200, 300), np.float32), device="cuda") for _ in range(2))
f = rune_jit.jit(centred, fallback="error")
kernels = f.lower(a).cost_analysis()["kernels"]
assert kernels >= 3
begin = counts()
result = f(a)
first = counts() - begin
graphs = int(sys.argv[1])
assert list(first) == [kernels, graphs, graphs, 0], first
# From compute capability 9.0 on each kernel may begin before the end of the one before.
of_graph, single = (fake.rune_fake_get(name.encode()) for name in early)
if int(sys.argv[2]) < 90:
    assert of_graph == single == 0, (of_graph, single)
elif graphs:
    assert of_graph == kernels - 1, of_graph
else:
    assert single == kernels, single
begin = counts()
del result
result = f(a)  # at the same address
assert list(counts() - begin) == [kernels, graphs, 0, 0], counts() - begin
begin = counts()
other = f(b)
changed = list(counts() - begin)
assert changed[:3] == [kernels, graphs, 0] and (changed[3] > 0) == bool(graphs), changed
# A short kernel is a graph of its own, but for the time after a long one, with which it overlaps.
double = rune_jit.jit(lambda x: x * 2, fallback="error")
other.block_until_ready()
for built in graphs, 0:
    begin = counts()
    other = double(a)
    assert list(counts() - begin)[:3] == [1, graphs, built], counts() - begin
begin = counts()
long = double(rune_jit.asarray(np.ones(1 << 20), device="cuda"))
for _ in range(8):
    other = double(a)
assert list(counts() - begin) == [9, 0, 0, 0], counts() - begin
other = double(a)
assert list(counts() - begin)[:2] == [10, graphs], counts() - begin
del f, double, result, other, long
gc.collect()
assert fake.rune_fake_get(b"cuGraphExecDestroy") == fake.rune_fake_get(b"cuGraphDestroy")
assert fake.rune_fake_get(b"cuGraphDestroy") == counts()[2]
assert fake.rune_fake_misuse() == b"", fake.rune_fake_misuse()
print("done")
"""


def run_with_graphs(program: str, graphs: int, architecture: int = 90, **environment: str) -> None:
    run_on_fake(
        program, str(graphs), str(architecture), RUNE_JIT_CUDA_GRAPHS=str(graphs),
        RUNE_FAKE_ARCHITECTURE=str(architecture), **environment,
    )  # fmt: skip


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("graphs", [0, 1])
def test_on_the_fake_driver(graphs: int, architecture: int) -> None:
    run_with_graphs(_FAKE_PROGRAM, graphs, architecture)


@on_cuda
def test_arguments_that_change() -> None:
    f = rune_jit.jit(centred, device="cuda", fallback="error")
    x = np.random.default_rng(0).standard_normal((200, 300)).astype(np.float32)
    a, expected = rune_jit.asarray(x, device="cuda"), x.astype(np.float64)
    kept = []
    for _ in range(5):
        a, expected = f(a), centred(expected)
        kept.append((a, expected))
    for got, wanted in kept:
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-6)


@on_cuda
def test_threads() -> None:
    f = rune_jit.jit(centred, device="cuda", fallback="error")
    x = np.random.default_rng(0).standard_normal((200, 300)).astype(np.float32)

    def work(scale: float) -> None:
        a = rune_jit.asarray(x * np.float32(scale), device="cuda")
        expected = centred(x.astype(np.float64) * scale)
        for _ in range(50):
            np.testing.assert_allclose(np.asarray(f(a)), expected, rtol=1e-4, atol=1e-6)

    in_threads(work, (1.0, 2.0, 3.0, 4.0))


_LOOPS_PROGRAM = """
import ctypes, os, sys, numpy as np, rune_jit
from test_cuda_graphs import sweeps, steps
fake = ctypes.CDLL(os.environ["RUNE_JIT_CUDA_DRIVER"])
fake.rune_fake_misuse.restype = ctypes.c_char_p
fake.rune_fake_get.restype = ctypes.c_long
counters = "cuLaunchKernel", "cuGraphLaunch", "cuMemcpyHtoDAsync"

def counts():
    return np.array([fake.rune_fake_get(name.encode()) for name in counters])

x = rune_jit.asarray(np.ones((20, 30), np.float32), device="cuda")
joins = int(sys.argv[1])
# Iterations, graphs of the first call and of the second one. Of 3000 iterations of three
# kernels each, 20 are one graph: as many as have up to 64 kernels, in pairs that exchange memory.
for function, n, in_first, in_second in (
    (steps, 1000, 0, 1), (steps, 3000, 150, 150), (sweeps, 100, 99, 100)
):
    f = rune_jit.jit(lambda x: function(x, n), fallback="error")
    begin = counts()
    f(x)
    assert (counts() - begin)[1] == in_first * joins, counts() - begin
    begin = counts()
    f(x)
    launches, graphs, uploads = counts() - begin
    kernels = f.lower(x).cost_analysis()["kernels"]
    assert kernels >= 3 * n and launches == kernels, (launches, kernels)
    assert graphs == in_second * joins, graphs
    assert uploads == 0, uploads
assert fake.rune_fake_misuse() == b"", fake.rune_fake_misuse()
print("done")
"""


def steps(x: np.ndarray, n: int) -> np.ndarray:
    wave = np.sin(np.arange(x.shape[1], dtype=np.float32)) ** 2  # a constant
    for i in range(n):
        x = x - x.mean(axis=0) * wave
        x = x / (1 + np.abs(x).mean(axis=1, keepdims=True)) + i
        x = x - np.abs(x).max(axis=0)
    return x


def sweeps(x: np.ndarray, n: int) -> np.ndarray:
    """Too many iterations for one graph, of which each has a loop."""
    for _ in range(n):
        for i in range(100):
            x = x - (x.mean(axis=0) + x.mean(axis=1, keepdims=True)) / (i + 2)
    return x


@pytest.mark.parametrize("graphs", [0, 1])
def test_loops_on_the_fake_driver(graphs: int) -> None:
    """All iterations are one graph, or some of them if these are too many, or the loops in an
    iteration. Constants lie on the card between calls."""
    run_with_graphs(_LOOPS_PROGRAM, graphs)


_ENDLESS_PROGRAM = """
import ctypes, os, sys, numpy as np, rune_jit
from test_cuda_graphs import ENDLESS
fake = ctypes.CDLL(os.environ["RUNE_JIT_CUDA_DRIVER"])
fake.rune_fake_misuse.restype = ctypes.c_char_p
fake.rune_fake_get.restype = ctypes.c_long

def waits():
    return fake.rune_fake_get(b"cuMemcpyDtoHAsync")

for function, arguments in ENDLESS:
    x = np.random.default_rng(0).random((20, 40))
    expected = function(x.copy(), *arguments)
    f = rune_jit.jit(function, fallback="error")
    for _ in range(2):
        before = waits()
        got = f(rune_jit.asarray(x, device="cuda"), *arguments)
        waited = waits() - before
        for g, e in zip(got, expected, strict=True):
            np.testing.assert_allclose(np.asarray(g), e, rtol=1e-12, err_msg=function.__name__)
        if int(sys.argv[1]):
            assert waited <= 4 + expected[1] // 16, (function, waited)
        else:
            assert waited >= expected[1] // 2, (function, waited)
assert fake.rune_fake_misuse() == b"", fake.rune_fake_misuse()
print("done")
"""


def settle(x: np.ndarray, tolerance: float) -> tuple:
    error, steps = 1.0, 0
    while error > tolerance:
        new = x.copy()
        new[1:-1, 1:-1] = 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
        error = np.max(np.abs(new - x))
        x = new
        steps += 1
    return x, steps


def settle_or_end(x: np.ndarray, n: int, tolerance: float) -> tuple:
    steps = 0
    for _ in range(n):
        new = (x[::-1] + x[:, ::-1] + x) / 3
        error = np.max(np.abs(new - x))
        x = new
        steps += 1
        if error < tolerance:
            break
    return x, steps


def two_arrays(x: np.ndarray, tolerance: float) -> tuple:
    y, steps, error = x[::-1] + 1, 0, 1.0
    while error > tolerance:
        x, y = (x[::-1] + y) / 3, (y[:, ::-1] + x) / 3
        error = np.max(np.abs(x - y))
        steps += 1
    return x, steps, y


def inner_loop(x: np.ndarray, tolerance: float) -> tuple:
    error, steps = 1.0, 0
    while error > tolerance:
        before = x
        for k in range(3):
            x = (x + x.mean(axis=0) * k + x.mean(axis=1, keepdims=True)) / (k + 2)
        error = np.abs(x - before).sum()
        steps += 1
    return x, steps


def with_a_counter(x: np.ndarray, n: int, tolerance: float) -> tuple:
    row = x[0]
    for i in range(1, n, 2):
        x = x / i + x[i] + x[:, ::-1]
        x = x / np.max(np.abs(x))
        error = np.max(np.abs(x[i] - row))
        row = x[i]
        if error < tolerance:
            break
    return x, i, row


# Programs whose data end a loop, and their arguments.
ENDLESS = [
    (settle, (4e-2,)),
    (settle, (2.0,)),  # no iteration
    (settle_or_end, (7, 0.0)),
    (settle_or_end, (200, 1e-2)),
    (settle_or_end, (0, 1.0)),
    (two_arrays, (1e-1,)),
    (two_arrays, (1e-4,)),
    (inner_loop, (1e-2,)),
    (with_a_counter, (20, 0.0)),
    (with_a_counter, (20, 2e-1)),
]


def test_loops_that_data_end() -> None:
    """The card decides about the next iteration."""
    run_with_graphs(_ENDLESS_PROGRAM, 1, RUNE_FAKE_EMULATE="1")


def test_an_old_driver_runs_loops_that_data_end() -> None:
    """It has no conditional nodes: the host decides."""
    run_with_graphs(
        _ENDLESS_PROGRAM.replace("sys.argv[1]", "0"), 1, RUNE_FAKE_EMULATE="1",
        RUNE_FAKE_DRIVER_VERSION="12030", RUNE_FAKE_NVRTC_VERSION="12030",
    )  # fmt: skip
