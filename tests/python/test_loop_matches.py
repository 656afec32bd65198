"""`match` statements in loops of the program (capture/loops/matches.py)."""

from __future__ import annotations

import enum

import numpy as np
import pytest
from compare import assert_same

import rune_jit


class Move(enum.IntEnum):
    LEFT = 0
    UP = 1


def walk(codes):
    x, y, other = 0, 0, 0
    trail = np.zeros((len(codes), 2), np.int64)
    for i in range(len(codes)):
        match codes[i]:
            case Move.LEFT:
                x -= 1
            case Move.UP:
                y += 1
            case 2 | 3 if i % 2:
                x += 2
            case -1:
                continue
            case 9:
                break
            case rest:
                other += rest
        trail[i] = x, y
    return trail, other


def called(codes):
    def worth(code):
        match int(code):
            case 0:
                return 1.5
            case 1 | 2:
                return 2.0
            case _:
                return -1.0

    total = 0.0
    for code in codes:
        total += worth(code)
    return total


def machine(codes):
    state, changes = 0, 0
    for code in codes:
        match state:
            case 0 if code > 3:
                state = 1
                changes += 1
            case 1 if code > 5:
                state = 2
            case 2:
                state = 0
    return state, changes


@pytest.mark.parametrize("function", [walk, called, machine], ids=lambda f: f.__name__)
def test_a_match_is_part_of_a_loop(function):
    jitted = rune_jit.jit(function)
    for seed in range(4):
        codes = np.random.default_rng(seed).integers(-1, 9 + seed // 3, 60)
        assert_same(jitted(codes), function(codes))
    assert "as one program" in jitted.explain()
    assert "match statement" not in jitted.explain()


def by_structure(x, item):
    total = 0.0
    for v in x:
        match item:
            case {"scale": k}:
                total += v * k
            case [a, b]:
                total += v * a + b
            case np.ndarray():
                total += v * item.sum()
            case True:
                total += v
            case float() | None:
                total -= v
    match item:
        case n if n is None:
            return total, 1
    return total, n is item


def test_other_patterns_mean_what_they_mean():
    x = np.arange(6.0)
    for item in ({"scale": 2.0}, (1.0, 2.0), x, True, 1, 1.5, None):
        jitted = rune_jit.jit(by_structure, fallback="silent")
        assert_same(jitted(x, item), by_structure(x, item))


def names(x):
    match x.ndim:
        case 1:
            y = x + 1
        case _:
            y = x
    return sorted(locals()), y


def test_no_name_is_added():
    x = np.arange(3.0)
    assert_same(rune_jit.jit(names, fallback="silent")(x), names(x))
