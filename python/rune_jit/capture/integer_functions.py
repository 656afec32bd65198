"""Functions of Python's module math for integers that only the program knows. Loops of the program
call them like the user's functions."""

from __future__ import annotations

from typing import Any


def gcd(a: Any, b: Any) -> Any:
    a, b = abs(int(a)), abs(int(b))
    while b != 0:
        a, b = b, a % b
    return a


def lcm(a: Any, b: Any) -> Any:
    common = gcd(a, b)
    result = 0
    if common != 0:
        result = abs(int(a)) // common * abs(int(b))
    return result
