"""Which arguments are dask's arrays. Importing this module loads neither dask nor the rest of this
package."""

from __future__ import annotations

import sys
from typing import Any

from rune_jit import trees
from rune_jit.errors import UnsupportedOpError


def is_dask_array(x: Any) -> bool:
    """Whether x is one of dask's arrays."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(x, module.Array)


def has_dask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an argument is an array of dask's or holds one."""
    if "dask.array" not in sys.modules:  # then there are no such arrays
        return False
    try:
        return any(map(is_dask_array, trees.flatten([args, kwargs])[0]))
    except UnsupportedOpError:  # which the call raises again
        return False
