"""Formats times, sizes and shares for people."""

from __future__ import annotations


def ns(value: float) -> str:
    """A time, given in ns, with three digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(value) >= size:
            return f"{_digits(value / size)} {unit}"
    return f"{value:.0f} ns"


def nbytes(value: float) -> str:
    """A size, given in bytes, with three digits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= size:
            return f"{_digits(value / size)} {unit}"
    return f"{value:.0f} B"


def percent(value: float) -> str:
    if 0 < value < 0.0005:
        return "<0.1 %"
    return f"{100 * value:.1f} %" if value < 0.0995 else f"{100 * value:.0f} %"


def _digits(value: float) -> str:
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"
