"""Lists to which loops append under conditions, or as often as data decide: the loops are programs
of their own in calls in segments (capture/loops/growing.py)."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from compare import assert_same
from growing_checks import compared, data, loops_apart  # noqa: F401
from segment_checks import never_numpy  # noqa: F401

import rune_jit
from rune_jit.capture.loops import growing


def peaks(x):
    out = []
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] > x[i + 1] and x[i] > 0.2:
            out.append(i)
    return out


def crossings(x):
    out = []
    for i in range(len(x) - 1):
        if x[i] * x[i + 1] < 0:
            out.append(i + x[i] / (x[i] - x[i + 1]))
    return np.array(out)


def run_lengths(x):
    x = x > 0
    values, lengths, count = [], [], 1
    for i in range(1, len(x)):
        if x[i] == x[i - 1]:
            count += 1
        else:
            values.append(x[i - 1])
            lengths.append(count)
            count = 1
    values.append(x[-1])
    lengths.append(count)
    return np.array(values), np.array(lengths)


def accepted(z):
    x, logp, out, rejected = 0.0, 0.0, [], []
    for i in range(0, len(z) - 1):
        y = x + z[i]
        new = -0.5 * y * y
        if z[i + 1] < new - logp:
            x, logp = y, new
            out.append(x)
        else:
            rejected.append((i, y))
    return out, rejected, len(out) / len(z)


def events(x):
    inside, out = False, []
    for i, v in enumerate(x):
        if v > 0.5 and not inside:
            inside = True
            out.append((i, v, True))
        elif v < -0.5 and inside:
            inside = False
            out.append((i, v, False))
    return out, [type(y) for item in out for y in item]


def bright(x):
    points, image = [], x[:144].reshape(12, 12)
    for i in range(1, 11):
        for j in range(1, 11):
            if image[i, j] > image[i - 1, j] and image[i, j] > image[i, j - 1]:
                points.append([i, j])
    points[0].append(-1)
    return points


def rows(x):
    a, out = x[:144].reshape(12, 12), []
    for i in range(12):
        if a[i].sum() > 0:
            out.append(a[i] * 2)
    out[0][:] = 7.0
    return out, len(out), x


def halved(x):
    roots = []
    for k in range(len(x)):
        low, high = 0.0, 10.0
        for _ in range(30):
            middle = 0.5 * (low + high)
            if middle**3 < x[k]:
                low = middle
            else:
                high = middle
        if high > 1.0:
            roots.append(low)
    return roots


def first_hits(x):
    hits, steps = [], x[:144].reshape(12, 12)
    for p in range(12):
        s = 0.0
        for k in range(12):
            s += steps[p, k]
            if s > 1.0:
                hits.append(k)
                break
    return hits


def small_steps(x):
    t, step, times = 0.0, 0.02 + 0.001 * abs(x[0]), [-1.0]
    while t < 1.0:
        t = t + step
        if t > 0.3:
            times.append(t)
    times.append(9)
    return times


def python_or_numpy(x):
    s, out = 0.0, []
    for i in range(len(x)):
        if x[i] > 1.0:
            s = s + x[i]
        if i % 2 == 0 and x[i] < 1.5:
            out.append(s)
    return out, [type(y) for y in out]


def python_before_numpy(x):
    s, out = 0.0, []
    for i in range(len(x)):
        if x[i] > x[i - 1]:
            out.append(s)
            s = s + x[i]
    return out, [type(y) for y in out]


@pytest.mark.parametrize(
    "function",
    [
        *(peaks, crossings, run_lengths, accepted, events, bright, rows, halved, first_hits),
        *(small_steps, python_or_numpy, python_before_numpy),
    ],
)
def test_what_loops_append_under_conditions(function, ran):
    jitted = compared(function)
    assert ran or "as one program" in jitted.explain()  # (test_made_lists.py)
    assert all("as one program" in x for x in ran), ran


def snapshots(u):
    saved, energies = [], []
    for k in range(200):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
        if k % 20 == 0:
            saved.append(u.copy())
            energies.append(u @ u)
    return u, np.array(saved), energies


def logged(u):
    w, log = np.zeros(4), []
    for k in range(300):
        r = w - u[:4]
        w -= 0.01 * r
        if k % 50 == 49:
            log.append((k, float(np.sum(r**2))))
    return w, log


@pytest.mark.parametrize("function", [snapshots, logged])
def test_what_the_counter_decides_needs_no_program_of_its_own(function, ran):
    compared(function)
    assert not ran


def test_one_program_has_such_a_loops_iterations_one_by_one():
    x = data(0)[0][:30]
    assert_same(rune_jit.jit(snapshots, fallback="error")(x), snapshots(x), ulps=16, scaled=True)


def test_what_is_known_is_no_loop_of_the_program(ran):
    def sieve(x):
        is_prime, found = np.ones(200, dtype=bool), []
        for i in range(2, 200):
            if is_prime[i]:
                found.append(i)
                is_prime[i * i :: i] = False
        return x[:3] * 2, found

    jitted = compared(sieve)
    assert "as one program" in jitted.explain()
    assert not ran


def views(x):
    a, out = x[:144].reshape(12, 12), []
    for i in range(12):
        if a[i].sum() > 0:
            out.append(a[i])
    out[0][0] = 99.0
    return out, x


def same_array(x):
    u, out = x[:5].copy(), []
    for i in range(40):
        u = u * 1.01
        if x[i] > 0:
            out.append(u)
    u[0] = 5.0
    return out, u


def written_later(x):
    out = []
    for i in range(40):
        v = x[:3] + i
        if x[i] > 0:
            out.append(v)
        v[0] = 100.0
    return out


def two_names(x):
    out = []
    other = out
    for i in range(40):
        if x[i] > 0:
            out.append(i)
        else:
            other.append(-i)
    return out


def in_a_tuple(x):
    out = []
    pair = (out, 1)
    for i in range(40):
        if x[i] > 0 and len(pair[0]) < 3:
            out.append(i)
    return out


def texts(x):
    out = []
    for i in range(40):
        if x[i] > 1:
            out.append("high")
        elif x[i] < -1:
            out.append(None)
    return out


def other_types(x):
    out = []
    for i in range(40):
        if x[i] > 1:
            out.append(i)
        elif x[i] < -1:
            out.append(x[i])
        elif x[i] < -0.9:
            out.append((i, i))
    return out


def int_or_float(x):
    out = []
    for i in range(40):
        if x[i] > 0:
            out.append(min(1, x[i]))
    return out, [type(y) for y in out]


def large_integers(x):
    out, n = [], 1
    for i in range(80):
        n = n * 3
        if x[i] > 0:
            out.append(n)
    return out


def other_lengths(x):
    out = []
    for i in range(40):
        if x[i] > 0:
            out.append(x[i:] + 1)
    return out


def ragged(x):
    found = []
    for i in range(12):
        row = []
        for j in range(12):
            if x[12 * i + j] > 0:
                row.append(j)
        found.append(row)
    return found


def last_item(x):
    out = [0]
    for i in range(100):
        if x[i] > 0 and i - out[-1] > 3:
            out.append(i)
    return out


def handled(x):
    out = []
    try:
        for i in range(len(x) + 5):
            if x[i] > 1:
                out.append(i)
    except IndexError:
        out.append(-1)
    return out


@pytest.mark.parametrize(
    "function",
    [
        *(views, same_array, written_later, two_names, in_a_tuple, texts, other_types),
        *(int_or_float, large_integers, other_lengths, ragged, last_item, handled),
    ],
)
def test_what_no_array_holds(function):
    compared(function)


def test_an_error_leaves_the_items_before_it():
    def f(x, out):
        for i in range(len(x) + 1):
            if x[i] > 0:
                out.append(i)
        return out

    compared(f, lambda k: (*data(k), [5.0]))


def test_a_list_from_outside():
    def f(x, out):
        for i in range(len(x)):
            if x[i] > 0:
                out.append(x[i])
        out.append("end")
        return out

    compared(f, lambda k: (*data(k), ["begin", k]))


def test_lists_longer_than_expected(monkeypatch, ran):
    """NumPy runs a call for which the arrays have too few rows; the next program has more."""
    monkeypatch.setattr(growing, "_FIRST_ROWS", 16)

    def f(x):
        out = []
        for i in range(len(x)):
            for _ in range(2):
                if x[i] > -1:
                    out.append(x[i])
        return out[:]

    x = np.random.default_rng(0).normal(size=150)
    jitted = rune_jit.jit(f)
    for k in range(6):
        assert_same(jitted(x + 0.01 * k), f(x + 0.01 * k))
    assert "as one program" in ran[-1]


def test_a_list_is_filled_once_in_calls_of_a_loop_that_is_called_again():
    def f(x, n):
        out, total = [], 0.0
        while len(out) < n:
            total = total + float(x.sum())
            for i in range(len(x)):
                if x[i] > 0.5:
                    out.append(i)
        return out, total

    compared(f, lambda k: (*data(k), 150))


def test_threads_have_lists_of_their_own():
    from concurrent.futures import ThreadPoolExecutor

    jitted = rune_jit.jit(peaks)
    xs = [data(k)[0][:150] for k in range(8)]
    expected = [peaks(copy.copy(x)) for x in xs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(jitted, xs)) == expected
