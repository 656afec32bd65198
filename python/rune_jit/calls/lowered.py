"""The result of `f.lower(*args)`: a program whose stages can be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Lowered:
    """A function traced and lowered for one signature and device; nothing is compiled or run."""

    def __init__(self, core: Any, make_call: Callable[[Any], Callable[..., Any]]) -> None:
        self._core = core
        self._make_call = make_call

    @property
    def graph(self) -> str:
        """Text of the graph after the graph passes."""
        return self._core.graph  # type: ignore[no-any-return]

    @property
    def schedule(self) -> str:
        """Text of the Scheduled IR."""
        return self._core.schedule  # type: ignore[no-any-return]

    @property
    def kernels(self) -> list[str]:
        """Text of the Lowered IR, one string a launch."""
        return self._core.kernels  # type: ignore[no-any-return]

    @property
    def device(self) -> str:
        return self._core.device  # type: ignore[no-any-return]

    def source(self, target: str | None = None) -> str:
        """The kernels' source for a target (`rune_jit.targets()`), whether or not this machine has
        it; by default for the target that was lowered for."""
        return self._core.source(target)  # type: ignore[no-any-return]

    def cost_analysis(self) -> dict[str, float]:
        """kernels, programs (kernels that differ in nothing but constants are one), flops,
        bytes_read, bytes_written, peak_bytes, estimated_ns ..."""
        return self._core.cost_analysis()  # type: ignore[no-any-return]

    def explain(self) -> str:
        """Each kernel with its loops, where they run, buffers and estimated cost; the critical path
        and peak memory; and which values were fused, which not, what that saves, and why."""
        return self._core.explain()  # type: ignore[no-any-return]

    def compile(self) -> Callable[..., Any]:
        """The compiled function, for arguments of the lowered signature only."""
        return self._make_call(self._core.compile())

    def __repr__(self) -> str:
        return f"<Lowered for {self.device}: {len(self.kernels)} kernels>"
