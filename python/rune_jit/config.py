"""Describes this installation: versions, targets, options."""

from __future__ import annotations

import platform
from typing import Any, Literal, overload

import numpy as np

from rune_jit import _core


@overload
def show_config(mode: Literal["print"] = ...) -> None: ...
@overload
def show_config(mode: Literal["dicts"]) -> dict[str, Any]: ...
def show_config(mode: str = "print") -> dict[str, Any] | None:
    """Prints versions, targets and options, or returns them.

    Args:
        mode: "print", or "dicts".

    Returns:
        With mode="dicts", a dict from names to values. Otherwise None.

    Raises:
        ValueError: for another mode.

    Source: numpy.show_config.

    Examples:
        >>> import rune_jit
        >>> rune_jit.show_config("dicts")["default device"]
        'cpu'
    """
    import llvmlite  # type: ignore[import-untyped]
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    config = {
        "rune_jit": _core.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "llvmlite": llvmlite.__version__,
        "llvm": ".".join(str(part) for part in llvm.llvm_version_info),
        "machine": platform.machine(),
        "system": platform.platform(),
        "targets": _core.targets(),
        "cuda": _core.describe_cuda(),
        "default device": _core.default_device(),
        "options": options(),
    }
    if mode == "dicts":
        return config
    if mode != "print":
        raise ValueError(f'show_config: cannot use mode={mode!r} ("print" or "dicts")')
    for key, value in config.items():
        text = str(value)
        print(
            f"{key}:"
            + ("\n  " + text.strip().replace("\n", "\n  ") if "\n" in text else f" {text}")
        )
    return None


def clear_cache() -> None:
    """Removes the compiled programs on disk.

    They are in RUNE_JIT_CACHE_DIR or in the user's cache folder. This process keeps its programs in
    memory. `f.clear_cache()` forgets those of a function.

    Raises:
        OSError: if a file cannot be removed.

    Examples:
        >>> import rune_jit
        >>> rune_jit.clear_cache()  # doctest: +SKIP
    """
    from rune_jit.backends import object_cache

    object_cache.clear(_core.calibration_options()[1])


def options() -> str:
    """The environment variables that rune_jit reads.

    Returns:
        One line for each variable: its name, value and meaning.

    Examples:
        >>> import rune_jit
        >>> print(rune_jit.options())  # doctest: +ELLIPSIS
        RUNE_JIT_DUMP=...
    """
    return _core.describe_options()
