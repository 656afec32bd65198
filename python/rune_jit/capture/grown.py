"""Lists from outside of a function that it makes longer and does not read. What it appends is a
result of the program, and is appended to the list after each run. Where data decide how much that
is, the program has arrays for it (loops/growing.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from rune_jit.capture.state import Slot
from rune_jit.errors import StateChangedError
from rune_jit.tracing.context import current_trace


class Grown:
    """The stand-in for such a list in a trace. It has what the trace has appended."""

    def __init__(self, real: list[Any], append: Callable[[list[Any], Any], None]) -> None:
        """`append` does what a trace does to append to a list of its own."""
        self._real, self._append = real, append
        self.new: list[Any] = []
        self.result: Any = self.new  # at the end of the trace: this list, or a Filled

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # which `isinstance` asks for
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
        """One of the last items, which the trace has appended."""
        trace = current_trace()
        is_complete = trace is None or trace.loops is None or not trace.loops.open
        if is_complete and type(at) is int and -len(self.new) <= at < 0:
            return self.new[at]
        return self._refuse()

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises StateChangedError: what the list holds is an argument of the function."""
        error = StateChangedError(
            "list: cannot trace a function that reads a list and makes it longer\n"
            "hint: return what it appends"
        )
        error.slots = [Slot("content", self._real)]
        raise error


for _name in dir(list):
    if _name not in dir(object) and _name not in vars(Grown):
        setattr(Grown, _name, Grown._refuse)
for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__", "__array__"):
    setattr(Grown, _name, Grown._refuse)
for _name in ("__repr__", "__str__", "__format__", "__reduce_ex__"):
    setattr(Grown, _name, Grown._refuse)


def changes_list(items: list[Any]) -> StateChangedError:
    """The error of a trace that makes a list from outside longer."""
    error = StateChangedError(
        "list: cannot trace a function that makes a list longer (the program would not do so at"
        " later calls)\nhint: return what it appends"
    )
    error.slots = [Slot("grown", items)]
    return error


def is_list(x: Any) -> bool:
    return type(x) is list or type(x) is Grown
