"""The options of `jit`, and the counts of `cache_info()`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypedDict

from rune_jit.calls.dynamic import Dim

# By parameter (name or position), the axes whose sizes are dynamic: their names or Dims.
Dynamic = Mapping[str | int, Mapping[int, str | Dim]]


class JitOptions(TypedDict, total=False):
    """The options of `jit`, which its docstring describes."""

    device: str | None
    static_argnums: int | Iterable[int]
    static_argnames: str | Iterable[str]
    donate_argnums: int | Iterable[int]
    fallback: Literal["warn", "silent", "error"]
    dynamic: Dynamic | None
    cache_size: int


class CacheInfo(NamedTuple):
    """Counts of a jitted function, from its `cache_info()`.

    Attributes:
        hits: calls that ran a program that was compiled before.
        misses: traces.
        fallbacks: signatures that run on NumPy.
        size: known signatures.
        evictions: signatures that were forgotten because there were more than cache_size.
        segmented: signatures that run in segments.
    """

    hits: int  # calls that ran a program compiled before
    misses: int  # traces
    fallbacks: int  # signatures that run on NumPy
    size: int  # signatures known
    evictions: int  # signatures forgotten because there were too many
    segmented: int = 0  # signatures that run in segments
