"""Memory of a CUDA device that is shared with other libraries: DLPack and __cuda_array_interface__.

With a card, with torch and CuPy as far as they are installed. On every machine, on the fake driver
of tests/cuda_fake, which finds uses of freed memory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import output_of
from test_cuda_device import on_cuda

import rune_jit

FAKE = Path(os.environ.get("RUNE_OPT", "/nowhere")).parent / "cuda_fake.so"

_FAKE_PROGRAM = """
import ctypes, gc, os, numpy as np, rune_jit
fake = ctypes.CDLL(os.environ["RUNE_JIT_CUDA_DRIVER"])
fake.rune_fake_misuse.restype = ctypes.c_char_p
fake.rune_fake_get.restype = ctypes.c_long

class Other:  # another library's array
    def __init__(self, array):
        self.array = array
    def __dlpack_device__(self):
        return self.array.__dlpack_device__()
    def __dlpack__(self, **options):
        self.options = options
        return self.array.__dlpack__(**options)

x = np.arange(12, dtype=np.float32).reshape(3, 4)
a = rune_jit.asarray(x, device="cuda:1")
assert a.__dlpack_device__() == (2, 1)
other = Other(a)
b = rune_jit.from_dlpack(other)
assert other.options["max_version"] == (1, 0) and other.options["stream"] > 2
assert b.device == "cuda:1" and b.shape == (3, 4) and b.dtype == x.dtype
address = a.__cuda_array_interface__["data"][0]
assert b.__cuda_array_interface__["data"] == (address, False)
del a, other
gc.collect()
np.testing.assert_array_equal(np.asarray(b), x)  # the memory lives as long as a user of it
c = rune_jit.from_dlpack(Other(b), copy=True)
assert c.__cuda_array_interface__["data"][0] != address
np.testing.assert_array_equal(np.asarray(c), x)
d = rune_jit.from_dlpack(Other(b), device="cpu")
assert d.device == "cpu"
np.testing.assert_array_equal(np.asarray(d), x)
assert "dltensor_versioned" in repr(b.__dlpack__(max_version=(1, 0)))
assert "dltensor_versioned" not in repr(b.__dlpack__())
capsule = b.__dlpack__()
Other.__dlpack__ = lambda self, **options: capsule
rune_jit.from_dlpack(Other(b))
try:
    rune_jit.from_dlpack(Other(b))
except ValueError as error:
    print(error)
# A consumer on a stream of its own: it waits for the launches, and its work is waited for.
waits = fake.rune_fake_get(b"cuStreamWaitEvent")
capsule = b.__dlpack__(stream=77, max_version=(1, 0))
assert fake.rune_fake_get(b"cuStreamWaitEvent") == waits + 1
del capsule
assert fake.rune_fake_get(b"cuCtxSynchronize") == 1
try:
    rune_jit.asarray(x).__cuda_array_interface__
except AttributeError as error:
    print(error)
# What a consumer has of an Array outlives a write to the Array.
w = rune_jit.asarray(x, device="cuda")
at = w.__cuda_array_interface__["data"][0]
w[0] = 5
v = rune_jit.asarray(x + 1, device="cuda")
assert v.__cuda_array_interface__["data"][0] != at
def count(name):
    return fake.rune_fake_get(name)

copied, waited = count(b"cuMemcpyPeerAsync"), count(b"cuStreamSynchronize")
e = b.to_device("cuda")
assert e.device == "cuda" and count(b"cuMemcpyPeerAsync") == copied + 1
assert count(b"cuStreamSynchronize") == waited  # nobody waits
np.testing.assert_array_equal(np.asarray(e), x)

class Stream:
    def __init__(self, attribute, value):
        setattr(self, attribute, value)

protocol = Stream("__cuda_stream__", lambda: (0, 64))
for stream in 64, Stream("cuda_stream", 64), Stream("ptr", 64), protocol:
    ordered = count(b"cuStreamWaitEvent")
    with rune_jit.use_stream(stream):
        assert count(b"cuStreamWaitEvent") == ordered + 1
    assert count(b"cuStreamWaitEvent") == ordered + 2
for stream in 0, 1, Stream("cuda_stream", 0):  # all is ordered with the legacy default stream
    with rune_jit.use_stream(stream, "cuda:1"):
        assert count(b"cuStreamWaitEvent") == ordered + 2
for stream, device in ("a", "cuda"), (True, "cuda"), (64, "cpu"):
    try:
        with rune_jit.use_stream(stream, device):
            raise AssertionError
    except (TypeError, ValueError) as error:
        assert str(error).startswith("use_stream: cannot use "), error
del b, c, d, e, w, v
gc.collect()
assert fake.rune_fake_misuse() == b"", fake.rune_fake_misuse()
print("done")
"""


def run_on_fake(program: str, *arguments: str, **environment: str) -> str:
    """What the code prints, on a fake driver. Its last line must be "done"."""
    if not FAKE.exists():
        pytest.skip("the build has no tests (cuda_fake.so is beside RUNE_OPT)")
    fake = {"RUNE_JIT_CUDA_DRIVER": str(FAKE), "RUNE_JIT_NVRTC": str(FAKE)}
    printed = output_of(program, *arguments, **fake, **environment)
    assert printed.endswith("done\n"), printed
    return printed


def test_on_the_fake_driver() -> None:
    printed = run_on_fake(_FAKE_PROGRAM)
    assert "cannot use this capsule (it has been used before)" in printed
    assert "the elements are on cpu, not on a CUDA device" in printed


LAYOUTS: dict[str, Any] = {
    "C order": lambda t: t,
    "offset": lambda t: t[1:],
    "transposed": lambda t: t.T,
    "columns": lambda t: t[:, 1:3],
    "one element": lambda t: t[0, :1],
    "0-d": lambda t: t[1, 2],
    "empty": lambda t: t[:0],
}


@on_cuda
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_torch(layout: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = (np.arange(20).reshape(4, 5) % 7).astype(dtype)
    tensor = LAYOUTS[layout](torch.from_numpy(x).to("cuda"))
    expected = LAYOUTS[layout](x)
    array = rune_jit.asarray(tensor)
    assert array.device == "cuda"
    np.testing.assert_array_equal(np.asarray(array), expected, strict=True)
    if tensor.is_contiguous() and expected.size:
        assert array.__cuda_array_interface__["data"][0] == tensor.data_ptr()
    for back in (torch.from_dlpack(array), torch.as_tensor(array, device="cuda")):
        assert back.device.type == "cuda"
        np.testing.assert_array_equal(back.cpu().numpy(), expected, strict=True)
        assert not expected.size or back.data_ptr() == array.__cuda_array_interface__["data"][0]


@on_cuda
def test_memory_that_begins_anywhere() -> None:
    torch = pytest.importorskip("torch")
    numbers = torch.arange(64 * 64 + 1, dtype=torch.float32, device="cuda") % 7
    x = numbers[1:].reshape(64, 64)
    assert x.data_ptr() % 16
    expected = x.cpu().numpy() @ x.cpu().numpy() + x.cpu().numpy()
    a = rune_jit.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(rune_jit.jit(lambda a: a @ a + a)(a)), expected)


@on_cuda
def test_torch_bfloat16() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6, dtype=torch.bfloat16, device="cuda")
    array = rune_jit.from_dlpack(tensor)
    assert array.dtype == "bfloat16"
    np.testing.assert_array_equal(np.asarray(array * 2, dtype=np.float32), np.arange(6) * 2)
    assert torch.equal(torch.from_dlpack(array), tensor)


@on_cuda
def test_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    x = np.arange(12.0).reshape(3, 4)
    array = rune_jit.from_dlpack(cupy.asarray(x))
    np.testing.assert_array_equal(np.asarray(array), x)
    shared = cupy.from_dlpack(array)
    assert shared.data.ptr == array.__cuda_array_interface__["data"][0]
    np.testing.assert_array_equal(cupy.asnumpy(shared), x)
    np.testing.assert_array_equal(cupy.asnumpy(cupy.asarray(array)), x)


@on_cuda
def test_order_with_torchs_streams() -> None:
    """Each side's work is seen by the other without a wait between them, on any stream."""
    torch = pytest.importorskip("torch")
    step = rune_jit.jit(lambda x: np.sqrt(x * x + 1))
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            tensor = torch.zeros(1 << 24, device="cuda")
            for count in range(1, 30):
                array = step(rune_jit.from_dlpack(tensor))
                tensor = torch.from_dlpack(array) * 1.0
                assert count < 29 or abs(float(tensor[-1]) - 29**0.5) < 1e-3
                del array


@on_cuda
def test_use_stream() -> None:
    """Programs see what a stream did before, and it sees none of what they read change before."""
    torch = pytest.importorskip("torch")
    stream = torch.cuda.Stream()
    doubled = rune_jit.jit(lambda x: x * 2)
    with torch.cuda.stream(stream):
        tensor = torch.zeros(1 << 24, device="cuda")
        array = rune_jit.from_dlpack(tensor)
        results = []
        for _ in range(20):
            tensor.add_(1)
            with rune_jit.use_stream(stream):
                results.append(doubled(array))
    for count, result in enumerate(results, 1):
        assert np.all(np.asarray(result) == 2 * count), count
