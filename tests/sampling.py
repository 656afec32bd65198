"""Samples of what takes too long to test as a whole; --full takes it all (see conftest.py)."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def some(items: Sequence[T], count: int, key: str, full: bool) -> list[T]:
    """`count` of the items, the same ones in every run, others for other keys, in their order; with
    `full` all of them."""
    if full or count >= len(items):
        return list(items)
    chosen = random.Random(zlib.crc32(key.encode())).sample(range(len(items)), count)
    return [items[i] for i in sorted(chosen)]
