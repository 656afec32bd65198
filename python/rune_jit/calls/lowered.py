"""The result of `f.lower(*args)`: a program whose stages can be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any


class Lowered:
    """A function that is traced and lowered for one signature and one device, and not compiled.

    `rune_jit.jit(f).lower(*args)` makes it.

    Examples:
        >>> import numpy as np, rune_jit
        >>> program = rune_jit.jit(lambda x: np.sin(x) + 1).lower(np.ones(1000))
        >>> program
        <Lowered for cpu: 1 kernels>
        >>> program.cost_analysis()["bytes_read"]
        8000.0
    """

    def __init__(
        self,
        core: Any,
        make_call: Callable[[Any], Callable[..., Any]],
        function: Callable[..., Any] | None = None,
        inputs: Sequence[str] = (),
    ) -> None:
        self._core = core
        self._make_call = make_call
        self._function, self._inputs = function, list(inputs)

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
        """Text of the Lowered IR: one string for each launch of a kernel."""
        return self._core.kernels  # type: ignore[no-any-return]

    @property
    def device(self) -> str:
        """The name of the device for which it is lowered."""
        return self._core.device  # type: ignore[no-any-return]

    def source(self, target: str | None = None) -> str:
        """The kernels' source.

        Args:
            target: one of `rune_jit.targets()`. This machine need not have it. Default: the target
                of the device for which it is lowered.

        Raises:
            ValueError: if there is no target of this name.
        """
        return self._core.source(target)  # type: ignore[no-any-return]

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimate of what the program costs.

        Returns:
            Figures by name: kernels (launches), programs (kernels that differ only in constants
            count as one), flops, bytes_read and bytes_written by the kernels, peak_bytes (memory
            beside arguments and results), estimated_ns (time of a call in nanoseconds), and more.
        """
        return self._core.cost_analysis()  # type: ignore[no-any-return]

    def explain(self) -> str:
        """Describes what the program does, and why.

        Returns:
            A text. It lists each kernel with its loops, where they run, its buffers and estimated
            cost; the critical path and the peak memory; which values were fused and which were
            not, what that saves, and why.
        """
        return self._core.explain()  # type: ignore[no-any-return]

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes one page of HTML, which needs no network.

        It has the function's source, each line in the colour of the kernel that computes it; a
        picture of the kernels; and for each kernel its loops, memory traffic, limits, source for
        every target, and why its neighbours were not fused.

        >>> import numpy as np, rune_jit
        >>> program = rune_jit.jit(lambda x: np.sin(x) + 1).lower(np.ones(1000))
        >>> program.to_html("program.html")  # doctest: +SKIP
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._page())

    def _repr_html_(self) -> str:
        from rune_jit.pages import document

        return document.in_frame(self._page())

    def _page(self) -> str:
        from rune_jit.pages import program  # slow to import

        return program.page(
            program.Program(
                about=self._core.describe(),
                function=self._function,
                inputs=self._inputs,
                kernels=self.kernels,
                graph=self.graph,
                schedule=self.schedule,
                texts=self._texts(),
            )
        )

    def _texts(self) -> dict[str, list[tuple[str, str]] | str]:
        own = self._core.describe()["target"]
        texts: dict[str, list[tuple[str, str]] | str] = {}
        for target in dict.fromkeys([own, "cpu", "cuda", "metal"]):
            try:
                texts[target] = self._core.texts(target)
            except (TypeError, ValueError, NotImplementedError) as error:  # what it lacks
                texts[target] = str(error).partition("\n")[0]
        return texts

    def compile(self) -> Callable[..., Any]:
        """Compiles the program.

        Returns:
            A function for arguments of the lowered signature. It raises TypeError for others.
        """
        return self._make_call(self._core.compile())

    def __repr__(self) -> str:
        return f"<Lowered for {self.device}: {len(self.kernels)} kernels>"
