"""Lists from outside that a function appends to and does not read. The appended values are results
of the program, and are appended to the list after each run. If data decide how many there are, the
program represents them by arrays (loops/growing.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from rune_jit.capture.state import Slot
from rune_jit.errors import StateChangedError
from rune_jit.tracing.context import current_trace


class Grown:
    """The stand-in for such a list in a trace. It has only the values that the trace appends."""

    def __init__(self, real: list[Any], append: Callable[[list[Any], Any], None]) -> None:
        """`append` is the trace's function to append to a list of its own."""
        self._real, self._append = real, append
        self.new: list[Any] = []
        self.result: Any = self.new  # at the end of the trace: `new`, or a Filled

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # (for isinstance)
        return list

    def append(self, value: Any) -> None:
        self._append(self.new, value)

    def extend(self, values: Iterable[Any]) -> None:
        for value in values:
            self.append(value)

    def __iadd__(self, values: Iterable[Any]) -> Grown:
        self.extend(values)
        return self

    def __getitem__(self, at: Any) -> Any:
        """An item that the trace has appended, by its position from the end."""
        trace = current_trace()
        is_complete = trace is None or trace.loops is None or not trace.loops.open
        if is_complete and type(at) is int and -len(self.new) <= at < 0:
            return self.new[at]
        return self.refuse()

    def refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises StateChangedError. The next trace takes the list's contents as an argument."""
        error = StateChangedError(
            "list: cannot trace a function that reads a list and appends to it\n"
            "hint: return what it appends"
        )
        error.slots = [Slot("content", self._real)]
        raise error


for _name in dir(list):
    if _name not in dir(object) and _name not in vars(Grown):
        setattr(Grown, _name, Grown.refuse)
for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__", "__array__"):
    setattr(Grown, _name, Grown.refuse)
for _name in ("__repr__", "__str__", "__format__", "__reduce_ex__"):
    setattr(Grown, _name, Grown.refuse)


def changes_list(items: list[Any]) -> StateChangedError:
    """The error of a trace that appends to a list from outside."""
    error = StateChangedError(
        "list: cannot trace an append to a list (the program would not repeat it at later"
        " calls)\nhint: return what it appends"
    )
    error.slots = [Slot("grown", items)]
    return error


def is_list(x: Any) -> bool:
    return type(x) is list or type(x) is Grown
