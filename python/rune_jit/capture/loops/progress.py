"""Progress bars of tqdm around the iterables of loops. The loop becomes a loop of the program, and
the bar is shown after the program has run:

    for i in tqdm(range(n)):            for i in range(n):
        ...                                 ...
                                        for _ in tqdm(range(n)): pass"""

from __future__ import annotations

from typing import Any, NamedTuple

from rune_jit.capture.objects import is_bar
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.tracer import contains_tracer


class Bar(NamedTuple):
    """A call of tqdm or trange. For trange, `iterable` is None."""

    function: Any
    iterable: Any
    arguments: tuple[Any, ...]  # without the iterable
    named: dict[str, Any]

    def show(self, count: int) -> None:
        """Shows a bar that has made `count` steps."""
        arguments = (count,) if self.iterable is None else (range(count), *self.arguments)
        for _ in self.function(*arguments, **self.named):
            pass


def bar_of(function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Bar | None:
    """The Bar for a call in a trace. None if the call is of another function, or if no bar can be
    shown later, so that tqdm itself runs."""
    trace = current_trace()
    if trace is None or trace.prints is None or not arguments or not is_bar(function):
        return None
    is_range = function.__name__ == "trange"
    others = () if is_range else arguments[1:]
    if contains_tracer([*others, *named.values()]):
        raise refuse_bar()
    if is_range:
        return Bar(function, None, arguments, named)
    return Bar(function, arguments[0], others, named)


def refuse_bar() -> UnsupportedOpError:
    """The error for a bar whose loop does not become a loop of the program."""
    return UnsupportedOpError(
        "tqdm: cannot trace a progress bar (its loop is unrolled, or may end early)"
    )
