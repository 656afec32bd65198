"""The parameters of a jitted function, and which of them `jit`'s options name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np


class Parameters:
    """The parameters of the function `name`. There are none if Python does not know its
    signature."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._function = name
        try:
            self.signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            self.signature = None
        # A ufunc's `out` accepts other values by name than by position.
        if self.signature and isinstance(getattr(function, "__self__", function), np.ufunc):
            parameters = [
                p.replace(kind=p.KEYWORD_ONLY) if p.name == "out" else p
                for p in self.signature.parameters.values()
            ]
            parameters.sort(key=lambda p: p.kind)
            self.signature = self.signature.replace(parameters=parameters)
        self._all = list(self.signature.parameters.values()) if self.signature else []
        self.names = [p.name for p in self._all]
        # The least and the greatest number of positional arguments of a call without keywords.
        plain = [p for p in self._all if p.kind is p.POSITIONAL_OR_KEYWORD]
        self._most = len(plain) if len(plain) == len(self._all) else -1
        self._least = sum(p.default is p.empty for p in plain)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments | None:
        """The arguments of a call by name, or None if the signature is not known. Raises Python's
        TypeError if the arguments do not fit the signature."""
        if self.signature is None:
            return None
        if not kwargs and self._least <= len(args) <= self._most:  # a tenth of what bind takes
            given = dict(zip(self.names, args, strict=False))
            return inspect.BoundArguments(self.signature, given)
        return self.signature.bind(*args, **kwargs)

    def at(self, argnums: int | Iterable[int], option: str) -> list[str]:
        """The names of the parameters at these positions. Raises ValueError for positions beyond
        the last parameter. `option` is for its message."""
        names = []
        for number in [argnums] if isinstance(argnums, int) else argnums:
            if not -len(self.names) <= number < len(self.names):
                raise ValueError(
                    f"jit: cannot use {option}={number} of {self._function}"
                    f" (it has {len(self.names)} parameters)"
                )
            names.append(self.names[number])
        return names

    def static(
        self, argnums: int | Iterable[int], argnames: str | Iterable[str]
    ) -> tuple[str, ...]:
        """The names of the static parameters. Raises ValueError if a parameter does not exist."""
        names = self.at(argnums, "static_argnums")
        for name in [argnames] if isinstance(argnames, str) else argnames:
            if name not in self.names:
                raise ValueError(
                    f"jit: cannot use static_argnames={name!r} of {self._function} (its parameters:"
                    f" {', '.join(self.names)})"
                )
            names.append(name)
        return tuple(dict.fromkeys(names))

    def keyed(
        self, static_names: tuple[str, ...], dynamic: list[list[int]]
    ) -> tuple[list[str | None], list[bool], list[list[int]], int, int, bool]:
        """By position: the names for keywords, which parameters are static, and their dynamic axes.
        Also the positions of *args and **kwargs, and whether the first may be a method's object."""
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        names = [p.name if p.kind in by_name else None for p in self._all]
        static = [name in static_names for name in self.names]
        star = sum(p.kind in by_position for p in self._all)
        has_kwargs = bool(self._all) and self._all[-1].kind is inspect.Parameter.VAR_KEYWORD
        star_star = len(self._all) - has_kwargs
        return names, static, dynamic, star, star_star, self.names[:1] == ["self"]
