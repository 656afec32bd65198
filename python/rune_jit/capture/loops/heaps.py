"""The algorithms of heapq, for heaps that arrays represent (reading.py). Loops call them like the
user's functions (library.py). They order the items exactly as heapq does, so that the list is the
same afterwards.

Source: Python's documentation of heapq; Knuth, "The Art of Computer Programming" (1973), 5.2.3."""

from __future__ import annotations

from typing import Any

from rune_jit.capture.loops.reading import are_items, item, length, less, native, popped, push, put


def heappush(heap: Any, value: Any) -> None:
    if are_items(heap):
        native("heappush", heap, value)
    else:
        push(heap, value)
        _rise(heap, 0, length(heap) - 1)


def heappop(heap: Any) -> Any:
    if are_items(heap):
        first = native("heappop", heap)
    else:
        first = item(heap, 0)
        last = popped(heap, True)
        if length(heap) > 0:
            put(heap, 0, last)
            _sink(heap, 0)
    return first


def heapreplace(heap: Any, value: Any) -> Any:
    return native("heapreplace", heap, value) if are_items(heap) else _replaced(heap, value)


def heappushpop(heap: Any, value: Any) -> Any:
    if are_items(heap):
        first = native("heappushpop", heap, value)
    else:
        first = value
        if length(heap) > 0 and less(heap, item(heap, 0), value):
            first = _replaced(heap, value)
    return first


def heapify(x: Any) -> None:
    if are_items(x):
        native("heapify", x)
    else:
        at = length(x) // 2 - 1
        while at >= 0:
            _sink(x, at)
            at = at - 1


def _replaced(heap: Any, value: Any) -> Any:
    first = item(heap, 0)
    put(heap, 0, value)
    _sink(heap, 0)
    return first


def _rise(heap: Any, top: Any, at: Any) -> None:
    """Moves an item up towards `top`, as long as its parent is larger."""
    value = item(heap, at)
    goes_on = at > top
    while goes_on:
        parent = (at - 1) // 2
        above = item(heap, parent)
        if less(heap, value, above):
            put(heap, at, above)
            at = parent
            goes_on = at > top
        else:
            goes_on = False
    put(heap, at, value)


def _sink(heap: Any, at: Any) -> None:
    """Moves an item down to a leaf, where the smaller child takes its place at each step. Then
    moves it up from there."""
    top, end = at, length(heap)
    value = item(heap, at)
    child = 2 * at + 1
    while child < end:
        right = child + 1
        if right < end and not less(heap, item(heap, child), item(heap, right)):
            child = right
        put(heap, at, item(heap, child))
        at = child
        child = 2 * at + 1
    put(heap, at, value)
    _rise(heap, top, at)
