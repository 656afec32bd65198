"""The Metal device's queue and caches, on the emulator of tests/metal_emulator."""

from __future__ import annotations

import gc
import mmap
import os
import stat
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from metal_testing import STEPS, chain, count, inject, jit, on_emulator
from processes import output_of

import rune_jit

pytestmark = pytest.mark.usefixtures("faults_end")


@on_emulator
def test_launches_share_command_buffers() -> None:
    function = jit(chain)
    x = np.full((6, 6), 0.1, np.float32)
    function(x)
    launched, committed = count("launched"), count("committed")
    function(x)
    assert count("launched") - launched == STEPS
    assert count("committed") - committed == 2  # 40 launches fill one


@on_emulator
def test_barriers_stand_between_dependent_launches_only() -> None:
    """The emulator runs launches without a barrier between them in reverse."""
    x = np.full((6, 6), 0.1, np.float32)
    barriers = count("barriers")
    jit(chain)(x)
    # Not before the first of a command buffer.
    assert count("barriers") - barriers == STEPS - 2
    function = jit(lambda *a: [np.tanh(x @ x) for x in a])
    arrays = [np.full((i, i), 0.1, np.float32) for i in range(2, 7)]
    assert len(function.lower(*arrays).kernels) == 5
    barriers = count("barriers")
    assert_matches(function(*arrays), [np.tanh(x @ x) for x in arrays])
    assert count("barriers") == barriers


@on_emulator
def test_threads_that_need_no_others_are_dispatched_freely() -> None:
    x = np.ones(1003, np.float32)
    for function, free in ((lambda x: x * 29, 1), (lambda x: x.sum() * 29, 0)):
        before = count("free_dispatches")
        np.testing.assert_array_equal(jit(function)(x), function(x))
        assert count("free_dispatches") - before == free
    assert count("unlabelled") == 0


@on_emulator
def test_commands_are_recorded(tmp_path: Path) -> None:
    program = """
import numpy, rune_jit
function = rune_jit.jit(lambda x: numpy.tanh(x @ x.T) @ x, device="metal", fallback="error")
try:
    function(numpy.ones((5, 6), numpy.float32))
except RuntimeError as error:
    print(error)
"""
    file = tmp_path / "run.gputrace"
    refused = output_of(program, RUNE_JIT_METAL_CAPTURE=str(file))
    assert "cannot record commands" in refused and "MTL_CAPTURE_ENABLED=1" in refused
    assert not file.exists()
    output_of(program, RUNE_JIT_METAL_CAPTURE=str(file), MTL_CAPTURE_ENABLED="1")
    assert "contract_0" in file.read_text()


@on_emulator
def test_sources_are_compiled_once() -> None:
    x = np.ones(77, np.float32)
    jit(lambda x: x * 3 + 1)(x)
    libraries, pipelines = count("libraries"), count("pipelines")
    jit(lambda x: x * 3 + 1)(x)
    assert (count("libraries"), count("pipelines")) == (libraries, pipelines)
    jit(lambda x: x * 3 + 2)(x)
    if libraries < 32:  # else it may have taken the place of another one
        assert (count("libraries"), count("pipelines")) == (libraries + 1, pipelines + 1)


@on_emulator
def test_few_libraries_are_kept() -> None:
    """32, those used last; what programs run on stays with them."""
    x = np.ones(3, np.float32)

    def add(number: int) -> Any:
        return jit(lambda x: x + np.float32(number))(x)

    before = count("libraries")
    first = jit(lambda x: x + np.float32(0.5))
    np.testing.assert_array_equal(first(x), x + np.float32(0.5))
    for number in range(34):
        np.testing.assert_array_equal(add(number), x + number)
        if number == 20:
            add(2)  # used again
    gc.collect()
    assert count("libraries") <= max(before, 32)
    kept = count("libraries")
    add(33), add(2)
    assert count("libraries") == kept
    np.testing.assert_array_equal(first(x), x + np.float32(0.5))


# One call of a program, on a device with a fault.
ONE_CALL = """
import ctypes, os, mmap, numpy, rune_jit
library = ctypes.CDLL(rune_jit._core.__file__)
library.rune_metal_emulator_inject.argtypes = [ctypes.c_char_p, ctypes.c_long]
if "FAULT" in os.environ:
    assert library.rune_metal_emulator_inject(os.environ["FAULT"].encode(), 1)
x = numpy.frombuffer(mmap.mmap(-1, 1 << 18), numpy.float32)
function = rune_jit.jit(lambda x: x + 1, device="metal", fallback="error")
numpy.testing.assert_array_equal(function(x), x + 1)
print(*(library.rune_metal_emulator_count(n) for n in (b"adopted", b"archived", b"violations")))
"""


@on_emulator
def test_pipelines_are_kept_on_disk(tmp_path: Path) -> None:
    program = """
import ctypes, sys, numpy, rune_jit
x = numpy.ones((5, 6), numpy.float32)
function = rune_jit.jit(lambda x: numpy.tanh(x @ x.T) @ x, device="metal", fallback="error")
numpy.testing.assert_allclose(function(x), numpy.tanh(x @ x.T) @ x, rtol=1e-6)
count = ctypes.CDLL(rune_jit._core.__file__).rune_metal_emulator_count
print(count(b"pipelines"), count(b"archived"), count(b"from_archives"))
"""

    def run(**environment: str) -> list[int]:
        output = output_of(program, RUNE_JIT_CACHE_DIR=str(tmp_path), **environment)
        return [int(n) for n in output.split()]

    assert run(RUNE_JIT_CACHE="0") == [2, 0, 0]
    assert not list(tmp_path.glob("metal/*"))
    assert run() == [2, 2, 0]
    assert run() == [2, 0, 2]  # nothing is compiled
    (file,) = tmp_path.glob("metal/*")
    assert [stat.S_IMODE(p.stat().st_mode) for p in (file.parent, file)] == [0o700, 0o600]
    file.write_text("broken")
    assert run() == [2, 2, 0]
    assert run() == [2, 0, 2]
    file.parent.chmod(0o777)  # others could write what is run here
    assert run() == [2, 0, 0]


@on_emulator
def test_few_pipelines_are_kept_on_disk(tmp_path: Path) -> None:
    """What was used longest ago goes when there are more than 256 MiB."""
    folder = tmp_path / "metal"
    folder.mkdir(mode=0o700)
    files = [folder / f"{i}.archive" for i in range(3)]
    for age, file in enumerate(files):
        with file.open("wb") as out:
            out.truncate(120 << 20)
        os.utime(file, (time.time() - 100 + age,) * 2)
    output_of(ONE_CALL, RUNE_JIT_CACHE_DIR=str(tmp_path))
    assert [file.exists() for file in files] == [False, True, True]
    assert len(list(folder.iterdir())) == 3
    output_of("import rune_jit; rune_jit.clear_cache()", RUNE_JIT_CACHE_DIR=str(tmp_path))
    assert not list(folder.iterdir())
    output_of(ONE_CALL, RUNE_JIT_CACHE_DIR=str(tmp_path),
                FAULT="fail_archives")  # fmt: skip
    assert not list(folder.iterdir())


@on_emulator
def test_nothing_leaks() -> None:
    function = jit(lambda x: (x.sum(), np.exp(x)))
    x = np.ones(5000, np.float32)
    function(x)
    gc.collect()
    before = {what: count(what) for what in ("buffers", "libraries", "pipelines", "archives")}
    for _ in range(30):
        function(x)
    gc.collect()
    assert {what: count(what) for what in before} == before
    for what in ("command_buffers", "encoders", "functions", "options"):
        deadline = time.monotonic() + 5
        while count(what) and time.monotonic() < deadline:  # the GPU's thread may still hold one
            time.sleep(0.01)
        assert count(what) == 0, what
    assert count("violations") == 0


@on_emulator
def test_buffers_of_similar_sizes_are_reused() -> None:
    function = jit(lambda x: x * 31)
    for size in (40_000, 41_000, 5, 63):  # in steps of an eighth of a power of two, from 256 bytes
        x = np.ones(size, np.float32)
        np.testing.assert_array_equal(function(x), x * 31)
        if size in (40_000, 5):
            gc.collect()
            buffers = count("buffers")
    gc.collect()
    assert count("buffers") == buffers


@on_emulator
def test_the_cache_leaves_room_for_what_is_in_use() -> None:
    output_of("""
import ctypes, gc, numpy, rune_jit
library = ctypes.CDLL(rune_jit._core.__file__)
library.rune_metal_emulator_count.restype = ctypes.c_long
library.rune_metal_emulator_inject.argtypes = [ctypes.c_char_p, ctypes.c_long]
library.rune_metal_emulator_inject(b"working_set", 1 << 20)
def make(kibibytes):
    return rune_jit.asarray(numpy.ones(kibibytes << 8, numpy.float32), device="metal")
def buffers():
    gc.collect()
    return library.rune_metal_emulator_count(b"buffers")
del (old := {0: make(192)})[0]
assert buffers() == 1  # of the cache
small = make(64)
assert buffers() == 2
large = make(800)
assert buffers() == 2  # its place was needed
over = make(2048)  # more than the device recommends
assert buffers() == 3
""")


@on_emulator
def test_calls_wait_for_memory() -> None:
    """Results that nobody reads die while the GPU still writes them. Their memory counts."""
    output_of("""
import ctypes, numpy, rune_jit
library = ctypes.CDLL(rune_jit._core.__file__)
library.rune_metal_emulator_count.restype = ctypes.c_long
library.rune_metal_emulator_inject.argtypes = [ctypes.c_char_p, ctypes.c_long]
limit = 8 << 20
library.rune_metal_emulator_inject(b"working_set", limit)
function = rune_jit.jit(lambda x: x + 1, device="metal", fallback="error")
x = rune_jit.asarray(numpy.ones(1 << 16, numpy.float32), device="metal")
y = numpy.asarray(function(x))
library.rune_metal_emulator_inject(b"latency_us", 20000)
for _ in range(200):
    function(x)
numpy.testing.assert_array_equal(numpy.asarray(function(x)), y)
peak = library.rune_metal_emulator_count(b"peak_bytes")
assert limit // 2 < peak <= limit, peak
# What is in use may be more than the limit.
kept = [function(x) for _ in range(40)]
for result in kept:
    numpy.testing.assert_array_equal(numpy.asarray(result), y)
""")


@on_emulator
def test_a_gpu_of_a_virtual_machine(tmp_path: Path) -> None:
    """Its archives end the process; its buffers of host memory may have no bytes."""
    cache = {"RUNE_JIT_CACHE_DIR": str(tmp_path)}
    assert output_of(ONE_CALL, **cache).split() == ["1", "1", "0"]
    assert output_of(ONE_CALL, FAULT="paravirtual", **cache).split() == ["0", "0", "0"]
    assert output_of(ONE_CALL, FAULT="old_gpu", **cache).split() == ["1", "0", "0"]
    function = jit(lambda x: x * 43)
    x = np.frombuffer(mmap.mmap(-1, 1 << 18), np.float32)
    inject("empty_adoptions", 1)
    np.testing.assert_array_equal(function(x), x * 43)


@on_emulator
def test_a_forked_child() -> None:
    """It has no GPU: calls, reads and the end of arrays must not wait for one."""
    program = """
import gc, os, signal, numpy, rune_jit
import ctypes
library = ctypes.CDLL(rune_jit._core.__file__)
library.rune_metal_emulator_inject.argtypes = [ctypes.c_char_p, ctypes.c_long]
function = rune_jit.jit(lambda x: x + 1, device="metal", fallback="error")
x = rune_jit.asarray(numpy.ones(3, numpy.float32), device="metal")
y = function(x)
numpy.asarray(y)
library.rune_metal_emulator_inject(b"latency_us", 100000)
y = function(x)  # still runs when the process forks
child = os.fork()
if child == 0:
    signal.alarm(20)
    ones = numpy.ones(4, numpy.float32)
    for use in (lambda: function(x), lambda: numpy.asarray(y), lambda: function(ones),
                lambda: rune_jit.asarray(ones, device="metal")):
        try:
            use()
        except RuntimeError as error:
            assert "cannot use the GPU in a forked process" in str(error), error
        else:
            os._exit(1)
    del x, y
    gc.collect()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert (numpy.asarray(y) == 2).all()
"""
    output_of(program)


@on_emulator
def test_pipelines_are_compiled_at_the_same_time() -> None:
    inject("pipeline_us", 100_000)
    inject("made_at_once", 0)
    x = np.full((6, 6), 0.1, np.float32)
    function = jit(lambda x: np.sort(np.tanh(x @ x) @ x).sum() + (x + 47).sum())
    assert_matches(function(x), np.sort(np.tanh(x @ x) @ x).sum() + (x + 47).sum(), 64)
    assert count("made_at_once") >= 2


@on_emulator
def test_programs_are_made_for_the_number_of_cores() -> None:
    program = """
import ctypes, os, numpy, rune_jit
library = ctypes.CDLL(rune_jit._core.__file__)
library.rune_metal_emulator_inject.argtypes = [ctypes.c_char_p, ctypes.c_long]
library.rune_metal_emulator_inject(b"gpu_cores", int(os.environ["CORES"]))
function = rune_jit.jit(lambda x: x.sum(-1), device="metal", fallback="error")
x = numpy.ones((64, 4096), numpy.float32)
before = library.rune_metal_emulator_count(b"launched")
numpy.testing.assert_array_equal(function(x), x.sum(-1))
print(library.rune_metal_emulator_count(b"launched") - before)
"""
    # Many cores share the sums of a row; what the system does not tell is taken to be 10 cores.
    launches = [int(output_of(program, CORES=cores)) for cores in ("0", "10", "80")]
    assert launches == [1, 1, 2]


@on_emulator
def test_memory_is_released_on_request() -> None:
    output_of("""
import ctypes, gc, numpy, rune_jit
library = ctypes.CDLL(rune_jit._core.__file__)
library.rune_metal_emulator_count.restype = ctypes.c_long
kept = rune_jit.asarray(numpy.ones(100, numpy.float32), device="metal")
large = rune_jit.asarray(numpy.ones(1 << 18, numpy.float32), device="metal")
del large
gc.collect()
assert library.rune_metal_emulator_count(b"buffer_bytes") >= 1 << 20
rune_jit.release_memory()
assert 400 <= library.rune_metal_emulator_count(b"buffer_bytes") < 1 << 16
assert (numpy.asarray(kept) == 1).all()
""")


@on_emulator
def test_arrays_may_die_before_the_gpu_is_done() -> None:
    function = jit(lambda x: np.tanh(x @ x))
    x = rune_jit.asarray(np.full((6, 6), 0.1, np.float32), device="metal")
    expected = np.asarray(function(x))
    before = count("violations")
    inject("latency_us", 30_000)
    for _ in range(3):
        y = function(function(x))
        z = function(x)
        del y
        gc.collect()
        np.testing.assert_array_equal(np.asarray(z), expected)
    assert count("violations") == before


@on_emulator
def test_results_wait_for_the_gpu() -> None:
    function = jit(lambda x: x * 2)
    x = np.arange(10, dtype=np.float32)
    function(x)
    inject("latency_us", 50_000)
    begin = time.monotonic()
    for i in range(3):
        np.testing.assert_array_equal(function(x + i), (x + i) * 2)
    assert time.monotonic() - begin >= 0.15


@on_emulator
def test_arrays_are_waited_for_when_they_are_read() -> None:
    function = jit(lambda x: np.tanh(x @ x) @ x)
    x = rune_jit.asarray(np.full((6, 6), 0.1, np.float32), device="metal")
    expected = np.asarray(function(x))
    inject("latency_us", 100_000)
    begin = time.monotonic()
    y = function(x)
    assert time.monotonic() - begin < 0.09
    np.testing.assert_array_equal(np.asarray(y), expected)
    assert time.monotonic() - begin >= 0.1


@on_emulator
def test_an_array_that_failed_raises_whenever_it_is_read() -> None:
    function = jit(lambda x: x * 19)
    x = rune_jit.asarray(np.ones(9, np.float32), device="metal")
    np.asarray(function(x))
    inject("fail_command_buffers", 1)
    y = function(x)
    with pytest.raises(RuntimeError, match=r"kernel map_0 \(.*Address Fault(.|\n)*void map_0"):
        np.asarray(y)
    z = function(y)  # computed from it
    for broken in (y, z, y):
        with pytest.raises(RuntimeError, match="Address Fault"):
            np.asarray(broken)
    np.testing.assert_array_equal(np.asarray(function(x)), np.full(9, 19))
