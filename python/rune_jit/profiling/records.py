"""The rows of a profile's tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Kernel(NamedTuple):
    """A step of a program: a kernel, or what else a program does. Of one run are `flops` and
    `bytes`, which the compiler has counted; times are in ns."""

    function: str
    program: int  # which of the function's programs, from 1
    name: str
    kind: str  # "kernel", "library", "loops", "callback", "transfer" or "wait"
    location: str  # the user's line, "file.py:12", or empty
    device: str
    calls: int
    total_ns: float
    least_ns: float
    most_ns: float
    flops: float
    bytes: float
    estimated_ns: float  # of a run, by the cost model
    peak_flops_per_ns: float  # of the device for this dtype
    peak_bytes_per_ns: float  # of the device for data of this size
    by_device: bool  # the times are the device's, not what the host waited
    is_dynamic: bool  # flops and bytes are those of the largest sizes that the program takes

    @property
    def mean_ns(self) -> float:
        return self.total_ns / self.calls

    @property
    def gflops(self) -> float:
        """Billions of scalar operations a second."""
        return self.flops * self.calls / self.total_ns if self.total_ns else 0.0

    @property
    def gbytes(self) -> float:
        """Billions of bytes that a second moves."""
        return self.bytes * self.calls / self.total_ns if self.total_ns else 0.0

    @property
    def share_of_flops(self) -> float:
        """The share of the most that the device can do."""
        return self.gflops / self.peak_flops_per_ns if self.peak_flops_per_ns else 0.0

    @property
    def share_of_bytes(self) -> float:
        return self.gbytes / self.peak_bytes_per_ns if self.peak_bytes_per_ns else 0.0

    @property
    def limit(self) -> str:
        """Which limit of the device is nearer: "memory", "arithmetic", or neither is near."""
        share = max(self.share_of_flops, self.share_of_bytes)
        if share < _FAR:
            return ""
        return "memory" if share == self.share_of_bytes else "arithmetic"


# A share of both limits below this is far from either: starting the kernel takes the time, or its
# accesses wait for one another.
_FAR = 0.4


class Interval(NamedTuple):
    """A call, a run of a program, or a step of it: ns since the profile's begin, and ns."""

    kind: str  # "call", "program" or "step"
    name: str
    detail: str
    begin_ns: float
    ns: float
    thread: int


class Memory(NamedTuple):
    """Bytes in use on a device. Of a device with its own memory they are counted from the
    profile's begin."""

    begin: int
    end: int
    peak: int
    points: np.ndarray  # float64[n, 2]: ns since the profile's begin, bytes from then on
