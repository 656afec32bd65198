"""The rows of a profile's tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Kernel(NamedTuple):
    """A step of a program: a kernel, a transfer, a host call or a wait. `flops` and `bytes` are the
    compiler's counts for one run. Times are in ns."""

    function: str
    program: int  # number among the function's programs, from 1
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
    estimated_ns: float  # for one run, by the cost model
    peak_flops_per_ns: float  # of the device for this dtype
    peak_bytes_per_ns: float  # of the device for data of this size
    by_device: bool  # whether the device measured the times, not the host
    is_dynamic: bool  # whether flops and bytes are for the largest sizes of the program

    @property
    def mean_ns(self) -> float:
        return self.total_ns / self.calls

    @property
    def gflops(self) -> float:
        """Billions of scalar operations a second."""
        return self.flops * self.calls / self.total_ns if self.total_ns else 0.0

    @property
    def gbytes(self) -> float:
        """Billions of bytes moved in a second."""
        return self.bytes * self.calls / self.total_ns if self.total_ns else 0.0

    @property
    def share_of_flops(self) -> float:
        """The share of the device's peak arithmetic rate."""
        return self.gflops / self.peak_flops_per_ns if self.peak_flops_per_ns else 0.0

    @property
    def share_of_bytes(self) -> float:
        return self.gbytes / self.peak_bytes_per_ns if self.peak_bytes_per_ns else 0.0

    @property
    def limit(self) -> str:
        """The nearer limit of the device, "memory" or "arithmetic", or an empty text if neither is
        near."""
        share = max(self.share_of_flops, self.share_of_bytes)
        if share < _FAR:
            return ""
        return "memory" if share == self.share_of_bytes else "arithmetic"


# If the shares of both limits are below this, neither is near: launching the kernel takes the time,
# or its accesses wait for each other.
_FAR = 0.4


class Interval(NamedTuple):
    """A call, a run of a program, or a step of it. It begins at some ns since the profile's begin,
    and takes some ns."""

    kind: str  # "call", "program" or "step"
    name: str
    detail: str
    begin_ns: float
    ns: float
    thread: int


class Memory(NamedTuple):
    """Bytes in use on a device. For a device with its own memory, only bytes allocated since the
    profile's begin count."""

    begin: int
    end: int
    peak: int
    points: np.ndarray  # float64[n, 2]: (ns since the profile's begin, bytes from then on)
