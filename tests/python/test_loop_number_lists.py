"""Lists of numbers of which loops read and assign items."""

from __future__ import annotations

import math

import numpy as np
import pytest
from compare import assert_matches
from loop_checks import both, refused, rolled

import rune_jit


def x(n: int = 40) -> np.ndarray:
    return np.random.default_rng(n).random(n)


def numbers(n: int = 40, most: int = 7) -> np.ndarray:
    return np.random.default_rng(n).integers(0, most, n)


def test_items_at_positions_of_data() -> None:
    def f(v):
        count, first = [0] * 7, [-1] * 7
        for i in range(len(v)):
            count[v[i]] += 1
            if first[v[i]] < 0:
                first[v[i]] = i
        return count, first

    rolled(f, numbers())


def test_items_that_are_read_only() -> None:
    def f(v):
        days = [31, 28, 31, 30, 31, 30, 31]
        total, sizes = 0, [2, 3]
        for i in range(len(v)):
            total += days[v[i]] * len(v[: sizes[0]])
        return total

    rolled(f, numbers())


def test_exchanges() -> None:
    def f(v):
        order = list(range(len(v)))
        v = v.copy()
        for k in range(len(v) - 1):
            p = k + np.argmax(v[k:])
            if p != k:
                v[k], v[p] = v[p], v[k]
                order[k], order[p] = order[p], order[k]
        return v, order

    rolled(f, x())


def test_flags() -> None:
    def f(v):
        visited, fresh = [False] * 7, 0
        for i in range(len(v)):
            if not visited[v[i]]:
                visited[v[i]] = True
                fresh += 1
        return visited, fresh

    rolled(f, numbers())


def test_items_that_are_pythons_or_numpys() -> None:
    def f(v):
        largest, last = [0.0] * 5, [-1] * 5
        for i in range(len(v)):
            if v[i] > largest[i % 5]:
                largest[i % 5] = v[i]
                last[i % 5] = i
        return largest, last, np.array(largest), largest[0] + 1.0

    rolled(f, x())
    rolled(f, x() - 0.9)


def test_integers_and_numpys_integers() -> None:
    def f(v, n):
        best = [0] * 31
        for i in range(len(v)):
            for c in range(30, v[i] - 1, -1):
                best[c] = max(best[c], best[c - v[i]] + n[i])
        return best[30], best

    rolled(f, numbers(20) + 1, numbers(20, 50))


def test_shortest_ways() -> None:
    def f(w):
        n = len(w)
        distance = [math.inf] * n
        distance[0] = 0.0
        for _ in range(n - 1):
            changed = False
            for u in range(n):
                for v in range(n):
                    if w[u, v] < 0.3 and distance[u] + w[u, v] < distance[v]:
                        distance[v] = distance[u] + w[u, v]
                        changed = True
            if not changed:
                break
        return np.array(distance)

    rolled(f, x(144).reshape(12, 12))


def test_lists_of_lists() -> None:
    def f(a, b):
        table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
        for i in range(len(a)):
            row = table[i]
            for j in range(len(b)):
                if a[i] == b[j]:
                    table[i + 1][j + 1] = row[j] + 1
                else:
                    table[i + 1][j + 1] = max(table[i][j + 1], table[i + 1][j])
        return table[len(a)][len(b)], np.array(table), len(table[0])

    rolled(f, numbers(12), numbers(15))


def test_loops_one_after_the_other() -> None:
    def f(v):
        total = [0.0] * len(v)
        for i in range(len(v)):
            total[i] = float(v[i]) * 2
        for i in range(1, len(v)):
            total[i] = total[i] + total[i - 1]
        return np.array(total), total[-1], sum(total[:3])

    rolled(f, x())


def test_integers_that_become_large() -> None:
    def f(v):
        sums = [1] * 90
        for i in range(2, 90):
            sums[i] = sums[i - 1] + sums[i - 2] + int(v[i % 40])
        return sums

    both(f, numbers())


def test_names_of_one_list() -> None:
    def f(v):
        a = [0] * 7
        b, c = a, (a, 1)
        for i in range(len(v)):
            a[v[i]] += 1
            b[v[i]] += 1
        return a, b, c, a is b

    rolled(f, numbers())


def test_negative_positions_and_positions_out_of_bounds() -> None:
    def f(v):
        a = [0] * 7
        for i in range(len(v)):
            a[v[i] - 7] += 1
        return a

    rolled(f, numbers())
    jitted = rune_jit.jit(f)
    for _ in range(2):
        assert jitted(numbers()) == f(numbers())
    for _ in range(2):
        with pytest.raises(IndexError, match="list index out of range"):
            jitted(numbers() + 9)


def test_lists_that_are_used_otherwise() -> None:
    def f(v):
        a, total = [0] * 7, 0
        for i in range(len(v)):
            a[v[i]] += 1
            total += sum(a)
        return a, total

    refused("", f, numbers())

    def g(v):
        a, rest = [0] * 7, []
        for i in range(len(v)):
            a[v[i]] += 1
            rest.append(a[:2])
        return a, rest

    refused("", g, numbers())


def test_items_of_other_types() -> None:
    def f(v):
        a = [0] * 7
        for i in range(len(v)):
            a[v[i]] = 0.5 * i
        return a

    refused("", f, numbers())

    def g(v):
        a = [0, 0.5, "", None, 1, 2, 3]
        for i in range(len(v)):
            a[v[i]] = i
        return a

    refused("", g, numbers())


def test_a_list_of_the_caller() -> None:
    def f(v, given):
        a = [0] * 7
        if len(v) > 3:
            a = given
        for i in range(len(v)):
            a[v[i]] += 1
        return a

    given, wanted = [0] * 7, [0] * 7
    jitted = rune_jit.jit(f)
    for _ in range(3):
        assert f(numbers(), wanted) == jitted(numbers(), given)
        assert given == wanted


def test_a_position_out_of_bounds_ends_a_loop() -> None:
    def f(v):
        found, k = [0.0] * len(v), 0
        for i in range(len(v)):
            found[i] = float(v[i])
        while found[k] < 2:
            k += 1
        return k

    jitted = rune_jit.jit(f)
    for _ in range(2):
        assert jitted(x() + (np.arange(40) == 20) * 2) == 20
    for _ in range(2):
        with pytest.raises(IndexError, match="list index out of range"):
            jitted(x())


def test_a_function_that_is_called_in_a_loop() -> None:
    def digits(n):
        found = [0] * 4
        for k in range(4):
            found[3 - k] = n % 10
            n = n // 10
        return found[0] + found[3]

    def f(v):
        out = np.zeros(len(v), int)
        for i in range(len(v)):
            out[i] = digits(int(v[i]))
        return out

    rolled(f, numbers(40, 9999))


def test_a_list_that_has_another_name_and_becomes_longer() -> None:
    def f(v):
        a = [0.0]
        b = a
        for i in range(len(v)):
            a.append(v[i])
            v[i] = b[-2] + b[0] + len(b)
        return a, v

    refused("it changes a list", f, x())


def test_iterations_that_run_apart() -> None:
    def f(v):
        a, total = [0.0] * 3, 0
        for i in range(len(v)):
            if v[i] > 0.5:
                a[0] = 1.0
                a[i % 3] = a[0] + i
            total = total + v[i]
        return a, total

    def g(v):
        longest, current = [0] * 7, 0
        for i in range(len(v)):
            if i > 0 and v[i] == v[i - 1]:
                current += 1
            else:
                current = 1
            if current > longest[v[i]]:
                longest[v[i]] = current
        return longest

    def h(v):
        best, last = [0.0] * len(v), 0
        for i in range(len(v)):
            best[i] = float(v[i])
        for i in range(len(v)):
            if best[i] > best[last]:
                last = i
        return last

    ends = np.r_[0.1, x()[1:-1], 0.9]
    for values in (x(), 1 - x(), ends, ends[::-1].copy()):
        rolled(f, values)
        rolled(h, values)
    rolled(g, numbers(40, 3))


def test_lists_that_a_body_makes() -> None:
    def f(v):
        out = np.zeros((len(v), 3))
        for i in range(len(v)):
            a = [0.0, 0.0, 0.0]
            if v[i] > 0.5:
                a[0] = 1.0
                for k in range(3):
                    a[k] = a[k] + v[k]
            out[i] = a
        return out

    for values in (x(), 1 - x()):
        both(f, values)


def test_large_numbers_under_conditions() -> None:
    def f(v):
        a, total = [2**40, 2**41, 3], 0.0
        for i in range(len(v)):
            if v[i] > 0.5:
                a[0] = 2**42
            total += v[i]
        return a, total

    for values in (x(), x() / 2, 1 - x() / 2):
        both(f, values)


def test_loops_that_break() -> None:
    def f(v):
        a, k = [0] * 40, 0
        while True:
            a[k] += 1
            if v[k] > 0.9 or k == 39:
                break
            k += 1
        for i in range(len(v)):
            a[i] += 2
            if i == 0 and len(v) > 3:
                break
        return a, k, sum(a)

    both(f, x())
    both(f, x() / 2)


def test_items_of_what_a_call_returns_are_assigned():
    def f(x):
        count = [0, 0]
        for v in x:
            v.reshape(-1)[0] = 7
            count[0] += 1
        return count

    mine, theirs = np.ones((9, 3)), np.ones((9, 3))
    assert_matches(rune_jit.jit(f)(mine), f(theirs))
    assert_matches(mine, theirs)


def test_a_loop_that_changes_new_lists_in_unrolled_iterations_is_refused():
    """Each item of each list would be a result of a program."""

    def f(a, b):
        before = list(range(len(b) + 1))
        for i in [*range(1, len(a) + 1)]:
            now = [i] + [0] * len(b)
            for j in range(1, len(b) + 1):
                now[j] = min(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1]))
            before = now
        return before[-1]

    a, b = numbers(20, 4), numbers(15, 4)
    jitted = rune_jit.jit(f)
    for _ in range(3):
        assert_matches(jitted(a, b), f(a, b))
    assert "it changes a list in each iteration of a loop that is unrolled" in jitted.explain()
