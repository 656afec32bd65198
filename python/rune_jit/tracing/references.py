"""References to traced arrays."""

from __future__ import annotations

import sys
from typing import Any


def held_elsewhere(traced: list[Any]) -> list[Any]:
    """Those of these traced arrays to which something else than this list refers. (A search for
    what refers to them takes milliseconds.)"""
    return [x for x in traced if sys.getrefcount(x) > _IN_LIST_ONLY]


# What getrefcount gives there for an object to which only the list refers.
_IN_LIST_ONLY = max(sys.getrefcount(x) for x in [object()])
