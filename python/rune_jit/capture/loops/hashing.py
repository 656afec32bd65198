"""The algorithms of dicts and sets, for those that arrays represent (mapping.py). Loops call them
like the user's functions (library.py). The keys are rows of an array, in the order in which they
were added. A hash table has the row of each key. The search for a key begins at the slot of its
hash and ends at the first free slot.

Source: Knuth, "The Art of Computer Programming" (1973), 6.4."""

from __future__ import annotations

from typing import Any

from rune_jit.capture.loops.mapping import (
    assign,
    counts,
    default_of,
    first_slot,
    holds,
    insert,
    is_other,
    next_slot,
    on_dict,
    value_at,
)
from rune_jit.capture.loops.reading import are_items


def dict_contains(d: Any, key: Any, is_in: Any) -> Any:
    return on_dict("contains", d, key, is_in) if are_items(d) else _contains(d, key, is_in)


def dict_get(d: Any, key: Any, default: Any) -> Any:
    if are_items(d):
        value = on_dict("get", d, key, default)
    else:
        at = _slot(d, key)
        value = default
        if holds(d, at, True):
            value = value_at(d, at, False)
    return value


def dict_item(d: Any, key: Any) -> Any:
    if are_items(d):
        value = on_dict("item", d, key)
    elif counts(d):
        value = dict_get(d, key, 0)
    else:
        at = _slot(d, key)
        if default_of(d) is not None and holds(d, at, False):
            insert(d, at, key)
            assign(d, at, default_of(d))
        value = value_at(d, at, True)
    return value


def dict_add(d: Any, key: Any) -> None:
    if are_items(d):
        on_dict("add", d, key)
    else:
        at = _slot(d, key)
        if holds(d, at, False):
            insert(d, at, key)


def dict_put(d: Any, value: Any, key: Any) -> None:
    if are_items(d):
        on_dict("put", d, value, key)
    else:
        at = _slot(d, key)
        if holds(d, at, False):
            insert(d, at, key)
        assign(d, at, value)


def _contains(d: Any, key: Any, is_in: Any) -> Any:
    return holds(d, _slot(d, key), is_in)


def _slot(d: Any, key: Any) -> Any:
    """The slot of a key, or the free slot that the key would get."""
    at = first_slot(d, key)
    while is_other(d, at, key):
        at = next_slot(d, at)
    return at
