"""Tuples, lists and dicts whose items loops read at positions and keys that data decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loop_checks import rolled

import rune_jit

MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]
SIDES = ((-1, 0), (0, 1), (1, 0), (0, -1))
PRICES = {1: 1.5, 5: 2.25, 7: 4.0, -3: 0.5}
WEIGHTS = (1, 2, 3, 4)
CODES = np.random.default_rng(0).integers(0, 4, 60)


def walk(codes: Any) -> Any:
    i = j = 0
    for code in codes:
        di, dj = MOVES[code]
        i += di
        j += dj
    return i, j


def walk_by_keys(codes: Any) -> Any:
    moves = {0: (0, 1.5), 1: (1, 0.5), 2: (0, -1.0), 3: (-1, 0.0)}
    i, j = 0, 0.0
    for code in codes:
        di, dj = moves[int(code)]
        i += di
        j += dj
    return i, j


def walk_by_a_local_list(codes: Any) -> Any:
    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    place = [0, 0]
    for code in codes:
        di, dj = moves[code]
        place[0] += di
        place[1] += dj * 2
    return place


def cost(codes: Any) -> Any:
    total = 0.0
    for code in codes:
        total += PRICES[code] * WEIGHTS[code % 4]
    return total


def test_tables_are_read() -> None:
    rolled(walk, CODES)
    rolled(walk, CODES - 4)
    rolled(walk_by_keys, CODES)
    rolled(walk_by_a_local_list, CODES)
    rolled(cost, np.array([*PRICES])[CODES])


def test_a_walk_over_a_grid() -> None:
    def ant(size: int, steps: int) -> Any:
        grid = np.zeros((size, size), int)
        i = j = size // 2
        side = 0
        for _ in range(steps):
            side = (side - 1) % 4 if grid[i, j] else (side + 1) % 4
            grid[i, j] ^= 1
            i = (i + SIDES[side][0]) % size
            j = (j + SIDES[side][1]) % size
        return grid, i, j

    rolled(ant, 12, 400)


@pytest.mark.parametrize(
    ("function", "codes"),
    [(walk, CODES + 1), (walk, CODES - 5), (walk_by_keys, CODES - 1), (cost, CODES)],
)
def test_what_is_not_in_the_table_raises(function: Any, codes: Any) -> None:
    jitted = rune_jit.jit(function)
    with pytest.raises((IndexError, KeyError)) as expected:
        function(codes)
    for _ in range(3):
        with pytest.raises(expected.type) as found:
            jitted(codes)
        assert str(found.value) == str(expected.value)


def test_tables_that_the_loop_replaces_or_changes() -> None:
    def replaces(codes: Any) -> Any:
        table, total = (1, 2, 3, 4), 0
        for code in codes:
            total += table[code]
            table = (table[1], table[2], table[3], table[0] + 1)
        return total, table

    def changes(codes: Any) -> Any:
        table, total = {0: 1, 1: 2, 2: 3, 3: 4}, 0.0
        for code in codes:
            total += table[code]
            table[2] += 1
        return total, table

    def appends(codes: Any) -> Any:
        table, total = [5, 6, 7, 8], 0.0
        for code in codes:
            total += table[code + 1 - len(table)]
            table.append(int(code))
        return total, table

    def assigns(codes: Any) -> Any:
        table, total = [(1, 2), (3, 4), (5, 6), (7, 8)], 0
        for i, code in enumerate(codes):
            first, second = table[code]
            total += first * second
            table[1] = (second, i)
        return total, table

    for function in (replaces, changes, appends, assigns):
        jitted = rune_jit.jit(function)
        for _ in range(3):
            assert jitted(CODES[:20]) == function(CODES[:20])


def test_tables_of_other_things() -> None:
    def names(codes: Any) -> Any:
        name, found = "", {0: "a", 1: "b", 2: "c", 3: "d"}
        for code in codes:
            name = found[int(code)]
        return name

    def mixed(codes: Any) -> Any:
        total, table = 0.0, (1, 2.5, np.float32(3), True)
        for code in codes:
            total += table[code]
        return total

    for function in (names, mixed):
        assert rune_jit.jit(function)(CODES) == function(CODES)
