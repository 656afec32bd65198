"""The instrument itself: what guarded.py gives ends where it says, and is what was asked for."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from guarded import PLACEMENTS, guarded

import rune_jit

READ = """
import ctypes, sys
sys.path.insert(0, {path!r})
import numpy as np
from guarded import guarded
x = guarded(np.arange(3, dtype=np.int16), {placement!r})
ctypes.string_at(x.ctypes.data, x.nbytes)
print("inside")
sys.stdout.flush()
ctypes.string_at(x.ctypes.data + {offset}, 1)
"""


@pytest.mark.parametrize(("placement", "offset"), [("end", 6), ("start", -1), ("end", 1 << 19)])
def test_an_access_outside_ends_the_process(placement: str, offset: int) -> None:
    path = str(Path(__file__).parents[1])
    script = READ.format(path=path, placement=placement, offset=offset)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.stdout == b"inside\n"
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_arrays_are_as_they_were(placement: str) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    misaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32)
    arrays = [
        x,
        x.T,
        x[::-1, ::2],
        x[1:, 1:],
        np.broadcast_to(x[:1], (3, 6)),
        x[0, 0:1].reshape(()),
    ]
    for array in (*arrays, misaligned, x[:0], x.astype(bool)):
        copy = guarded(array, placement)
        np.testing.assert_array_equal(copy, array, strict=True)
        assert copy.strides == array.strides and copy.flags.aligned == array.flags.aligned
        assert copy.flags.writeable == array.flags.writeable
        assert not copy.size or not np.shares_memory(copy, array)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int64", "float32"])
def test_borders(dtype: str, placement: str) -> None:
    """What lies beyond a border is not read, neither by vectors nor by single elements: lanes that
    are far apart, columns, gathers, rows shorter than a vector."""

    def moved(x: np.ndarray, i: np.ndarray) -> list[np.ndarray]:
        padded = np.pad(x, ((3, 2), (1, 4)))
        columns = np.pad(x[:, ::3], ((0, 0), (2, 2)))
        return [
            *(padded, padded.T, padded[::-1, ::-1], padded[::2, ::5], padded[:, 1:3]),
            *(columns, columns.T, np.pad(x.T, 2), np.pad(x.ravel(), 7)[::3]),
            np.concatenate([x[:, ::2].T, x[:, 1::2].T, x[:, :1].T]),
            np.concatenate([x[:2], x[:2, ::-1], x[-1:]]).T,
            np.where(i[:, None] < 3, x[np.minimum(i, 3)], x[0]),
            *(np.roll(x, 2, axis) for axis in (0, 1)),
        ]

    for shape in ((4, 6), (5, 17), (33, 3), (7, 64)):
        x = (np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype)
        i = np.arange(shape[0])
        found = rune_jit.jit(moved)(guarded(x, placement), guarded(i, placement))
        for actual, wanted in zip(found, moved(x, i), strict=True):
            np.testing.assert_array_equal(actual, wanted, strict=True)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_narrow_rows_under_a_mask(placement: str) -> None:
    """LLVM reads eight elements by a mask that it may keep in sixteen bits, eight of them not 0."""

    def angles(x: np.ndarray) -> list[np.ndarray]:
        return [np.unwrap(x * 2.5), np.angle(x), np.isclose(x, x), np.sinc(x)]

    x = guarded(np.arange(24).reshape(4, 6) % 3 > 0, placement)
    for found, wanted in zip(rune_jit.jit(angles)(x), angles(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
