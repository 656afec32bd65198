"""The functions of Python's module bisect for numbers that only the program knows. Loops of the
program call them like the user's functions."""

from __future__ import annotations

from typing import Any


def bisect_left(a: Any, x: Any, low: Any, high: Any) -> Any:
    while low < high:
        middle = (low + high) // 2
        if a[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


def bisect_right(a: Any, x: Any, low: Any, high: Any) -> Any:
    while low < high:
        middle = (low + high) // 2
        if x < a[middle]:
            high = middle
        else:
            low = middle + 1
    return low
