"""Lists that loops make longer, whose items share memory with variables or with other items."""

from __future__ import annotations

import numpy as np
from loop_checks import refused, rolled

import rune_jit


def x(n: int = 9) -> np.ndarray:
    return np.random.default_rng(n).random((n, 3))


def test_a_variable_and_the_last_item_are_one_array() -> None:
    def f(x):
        s, found = np.zeros(3), []
        for i in range(x.shape[0]):
            s = s + x[i]
            found.append(s)
        s += 100
        found[-1][0] = 7
        found[2][1] = 5
        return np.array(found), s, found[-1] is s

    rolled(f, x())


def test_variables_that_exchange_arrays() -> None:
    def f(x, late):
        a, b, found = x[0].copy(), x[1].copy(), []
        for _ in range(x.shape[0]):
            a, b = b, a + b
            found.append(b if late else a)
        a += 1
        b[0] = 3
        return np.array(found), a, b

    rolled(f, x(), True)
    rolled(f, x(), False)


def test_an_item_that_a_variable_takes_over_later() -> None:
    def f(x):
        v, w, q = np.zeros(3), x[0].copy(), x[1].copy()
        found = []
        for _ in range(x.shape[0]):
            v, w = w, v + w
            found.append(v)
            v, q = q, w
        is_same = found[-1] is v, found[-1] is q
        v[0] = 7
        q[1] = 5
        return found, v, w, q, is_same

    rolled(f, x())


def test_variables_that_end_as_one_array() -> None:
    def f(x):
        v, w, q, u = x[0].copy(), x[0] * 2, x[2].copy(), x[0].copy()
        for _ in range(6):
            u, w = u, v
            u, v, q = v, u, w
            u = w * 2
        is_same = v is w, w is q, u is v
        w[0] = 3
        return v, w, q, u, is_same

    rolled(f, x())
    v, w, q, u, _ = rune_jit.jit(f)(x())
    assert w is q and not np.shares_memory(w, v) and not np.shares_memory(u, v)


def test_what_is_appended_before_it_changes() -> None:
    def f(x):
        s, found = x, []
        for _ in range(5):
            found.append(s)
            s = s * 2
        found[0] += 1
        return found, s

    rolled(f, x())


def test_an_array_that_changes_after_it_is_appended() -> None:
    def f(x):
        s, found = np.zeros(3), []
        for i in range(x.shape[0]):
            s = s + x[i]
            found.append(s)
            s *= 2
        return np.array(found), s

    rolled(f, x())


def test_one_array_is_appended_many_times() -> None:
    def f(x):
        s, found = np.zeros(3), []
        for i in range(x.shape[0]):
            s += x[i]
            found.append(s)
        return np.array(found), found[0] is found[-1]

    def parts(x):
        s, found = np.zeros(3), []
        for i in range(x.shape[0]):
            s += x[i]
            found.append(s[1:])
        return np.array(found)

    rolled(f, x())
    refused("an array to a list that it writes to", parts, x())


def test_views_see_what_is_written() -> None:
    def item(x):
        found = []
        for i in range(x.shape[0]):
            found.append(x[i])
        found[3] += 5
        return x, np.array(found)

    def array(x):
        found = []
        for i in range(x.shape[0]):
            found.append(x[i])
        x[3] = 0
        return np.array(found)

    refused("may be the same", item, x())
    refused("may be the same", array, x())


def test_an_array_in_two_lists() -> None:
    def at_once(x):
        a, b = [], []
        for i in range(x.shape[0]):
            y = x[i] * 2
            a.append(y)
            b.append(y)
        a[2] += 1
        return np.array(a), np.array(b)

    def later(x):
        a, b, s = [], [], x[0]
        for i in range(x.shape[0]):
            a.append(s)
            s = s + x[i]
            b.append(s)
        a[2] += 1
        return np.array(a), np.array(b)

    refused("it appends an array twice", at_once, x())
    refused("it appends an array twice", later, x())


def test_windows() -> None:
    def f(x):
        found = []
        for i in range(x.shape[0] - 3):
            found.append(x[i : i + 4])
        return np.stack(found), np.concatenate(found, axis=1)

    rolled(f, x())


def test_a_variable_that_may_be_the_last_item() -> None:
    def f(x):
        v, w, q, found = x[0] + 1, x[2] * 1, x[1] * 2, []
        for i in range(5):
            if x[i, 0] > 0.5:
                q = w
            v, w = w, v + w
            found.append(w)
        v += 1
        return v, w, q, found

    for n in range(9, 19):  # (data decide whether v and q are one array)
        given = x(n)
        got, expected = rune_jit.jit(f)(given), f(given)
        for a, b in zip(got[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(a, b)
