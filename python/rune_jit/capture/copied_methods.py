"""The methods of objects that a trace copies."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from rune_jit.capture.guards import Watch
from rune_jit.capture.names import Names


class CopiedMethods:
    """Gives copies of objects the trace's versions of their methods, once code has their names. A
    large class may have a hundred methods, and it takes milliseconds to read the source of one."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._foreign = Names()  # names in code of other packages, which `watch` does not learn

    def learn(self, code: types.CodeType) -> None:
        """Notes that code of another package may run in the trace, before it does."""
        self._foreign.learn(code)

    def give(
        self,
        copy: Any,
        held: dict[str, Any],
        before: dict[str, Any],
        copied: Callable[[Any], Any],
    ) -> None:
        """Adds the methods of an object's copy to its attributes, now or when more code is learned.
        `held` are the attributes, `before` are those that the trace has not assigned, and `copied`
        copies a function."""
        methods = _methods_of(type(copy), held)

        def read(name: str) -> None:
            if name not in held:
                raw = methods[name]
                if isinstance(raw, staticmethod):
                    before[name] = held[name] = copied(raw.__func__)
                else:
                    before[name] = held[name] = types.MethodType(copied(raw), copy)

        if any(self._watch.is_foreign(base.__module__) for base in type(copy).__mro__[:-1]):
            for name in methods:  # (code of the other package may call all of them)
                read(name)
        self._watch.on_names(methods, read, of_object=True)
        self._foreign.on(methods, read)


def _methods_of(kind: type, held: dict[str, Any]) -> dict[str, Any]:
    """The functions of a class and its bases that attributes in `held` do not hide."""
    methods: dict[str, Any] = {}
    for base in kind.__mro__[:-1]:
        for name, raw in vars(base).items():
            function = raw.__func__ if isinstance(raw, staticmethod) else raw
            if type(function) is not types.FunctionType or name[:2] == "__":
                continue
            if name not in held and getattr(kind, name, None) is function:
                methods[name] = raw
    return methods
