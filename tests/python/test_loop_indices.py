"""Positions in arrays that loops of the program compute: sums of counters that may be negative, and
positions and bounds of slices that data decide."""

import itertools
import linecache

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

RNG = np.random.default_rng(5)


def loops_of(jitted, *args):
    """The kernels that are loops."""
    return [k for k in jitted.lower(*args).kernels if "@loops_" in k]


def same_as_numpy(function, *args):
    """Checks a function that writes to its first argument, and returns the jitted one."""
    jitted = rune_jit.jit(function)
    for _ in range(2):
        mine, theirs = np.copy(args[0]), np.copy(args[0])
        assert_matches(jitted(mine, *args[1:]), function(theirs, *args[1:]))
        assert_matches(mine, theirs)
    assert "is unrolled" not in jitted.explain()
    return jitted


def convolved(out, a, taps):
    for i in range(a.shape[0]):
        for j in range(taps.shape[0]):
            if i - j >= 0:
                out[i] += a[i - j] * taps[j]


def wrapped(out, a, taps):
    for i in range(a.shape[0]):
        for j in range(taps.shape[0]):
            out[i] += a[i - j] * taps[j]


def scattered(out, a, taps):
    for i in range(a.shape[0]):
        for j in range(taps.shape[0]):
            if i + j < out.shape[0]:
                out[i + j] += a[i] * taps[j]


@pytest.mark.parametrize("function", [convolved, wrapped, scattered])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_differences_of_counters(function, dtype):
    a, taps = RNG.random(20).astype(dtype), RNG.random(5).astype(dtype)
    same_as_numpy(function, np.zeros(20, dtype), a, taps)


def test_a_difference_out_of_bounds_raises_as_in_numpy():
    def f(out, a):
        for i in range(a.shape[0]):
            for j in range(4):
                out[i] += a[i - 2 * j]

    a = RNG.random(5)
    with pytest.raises(IndexError, match="index -6 is out of bounds for axis 0 with size 5"):
        f(np.zeros(5), a)
    with pytest.raises(IndexError, match="index -6 is out of bounds for axis 0 with size 5"):
        rune_jit.jit(f)(np.zeros(5), a)


def test_a_nest_of_several_results_is_one_kernel():
    def f(out, at, a):
        for k in range(2):
            for i in range(6):
                for j in range(2):
                    out[k, i] += a[k, at[i, j]] @ a[k, at[i, j]]

    at = RNG.integers(0, 6, (6, 2)).astype(np.int32)
    a = RNG.integers(0, 5, (2, 6, 3, 3)) + 1j  # sums without rounding
    jitted = same_as_numpy(f, np.zeros((2, 6, 3, 3), complex), at, a)
    assert len(loops_of(jitted, np.zeros((2, 6, 3, 3), complex), at, a)) == 1


# Positions, bounds and numbers that data decide.

COUNTS = np.array([0, 3, 1, 0, 7, 2, 0])
STARTS = np.concatenate([[0], np.cumsum(COUNTS)])
COLUMNS = RNG.integers(0, 9, COUNTS.sum())
VALUES = RNG.random(COUNTS.sum())


def rows_as_slices(out, starts, columns, values, x):
    for i in range(starts.size - 1):
        cols = columns[starts[i] : starts[i + 1]]
        vals = values[starts[i] : starts[i + 1]]
        out[i] = vals @ x[cols]


def rows_as_loops(out, starts, columns, values, x):
    for i in range(starts.size - 1):
        total = 0.0
        for j in range(starts[i], starts[i + 1]):
            total += values[j] * x[columns[j]]
        out[i] = total


def rows_in_place(out, starts, columns, values, x):
    for i in range(starts.size - 1):
        for j in range(starts[i], starts[i + 1]):
            out[i] += values[j] * x[columns[j]]


@pytest.mark.parametrize("function", [rows_as_slices, rows_as_loops, rows_in_place])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint32])
def test_compressed_rows(function, dtype):
    args = STARTS.astype(dtype), COLUMNS.astype(dtype), VALUES, RNG.random(9)
    same_as_numpy(function, np.zeros(len(COUNTS)), *args)


def test_bounds_of_slices_are_pythons():
    def f(out, x, bounds):
        for i in range(2):
            for k in range(2):
                out[i, k, 0] = x[bounds[i] : bounds[k]].sum()
                out[i, k, 1] = x[: bounds[i]].sum() + 10 * x[bounds[k] :].sum()
                out[i, k, 2] = len(x[bounds[i] : bounds[k]]) if i == k else 0
            out[i, 0, 2] += 1

    def g(out, x, bounds):
        for i in range(2):
            for k in range(2):
                out[i, k, 0] = x[bounds[i] : bounds[k]].sum()
                out[i, k, 1] = x[: bounds[i]].sum() + 10 * x[bounds[k] :].sum()

    x = RNG.integers(0, 100, 13)
    same_as_numpy(g, np.zeros((2, 2, 3), int), x, np.array([-7, 5]))
    starts, stops = (-20, -7, -1, 0, 3, 12, 13, 14, 50), (-20, -3, 0, 5, 13, 40)
    for function in (f, g):
        jitted = rune_jit.jit(function)
        for bounds in itertools.product(starts, stops):
            args = x, np.array(bounds)
            got, want = np.zeros((2, 2, 3), int), np.zeros((2, 2, 3), int)
            jitted(got, *args)
            function(want, *args)
            assert_matches(got, want, what=str(bounds))


def test_a_slice_is_a_view():
    def f(out, x, starts):
        for i in range(starts.shape[0] - 1):
            part = x[starts[i] : starts[i + 1]]
            x[starts[i]] = 5.0
            out[i] = part.sum()

    same_as_numpy(f, np.zeros(3), np.arange(9.0), np.array([0, 2, 6, 8]))


def counted(out, x):
    for value in x:
        out[int(value * 16)] += 1


def sorted_by_counts(out, x):
    counts = np.zeros(256, dtype=np.int64)
    for i in range(x.size):
        counts[x[i]] += 1
    place = np.cumsum(counts) - counts
    for i in range(x.size):
        value = x[i]
        out[place[value]] = value
        place[value] += 1


def test_elements_at_computed_positions():
    same_as_numpy(counted, np.zeros(16, dtype=np.int64), RNG.random(100))
    data = RNG.integers(0, 256, 90, dtype=np.uint8)
    same_as_numpy(sorted_by_counts, np.zeros_like(data), data)


def test_a_write_at_a_computed_position_touches_one_element():
    data = RNG.integers(0, 1000, 50)
    text = rune_jit.jit(lambda out, at: fill(out, at)).lower(np.zeros(1000), data).kernels
    assert not any("range" in line and "1000" in line for line in loops_text(text))


def fill(out, at):
    for i in range(at.shape[0]):
        out[at[i]] = out[at[i]] + 1.0


def loops_text(kernels):
    return [line for k in kernels if "@loops_" in k for line in k.splitlines()]


@pytest.mark.parametrize("bad", [5, -6, 1 << 40])
def test_a_position_out_of_bounds_raises_as_in_numpy(bad):
    out, at = np.zeros(5), np.array([0, 1, bad, 2])
    with pytest.raises(IndexError) as theirs:
        fill(out.copy(), at)
    with pytest.raises(IndexError) as ours:
        rune_jit.jit(fill)(out, at)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_no_integer_raises_as_in_python(bad):
    def f(out, x):
        for i in range(x.shape[0]):
            out[i] = int(x[i]) % 7

    x = np.array([1.5, -2.5, 3.0, 7.9])
    jitted = same_as_numpy(f, np.zeros(4), x)
    x[2] = bad
    mine, theirs = np.zeros(4), np.zeros(4)
    try:
        f(theirs, x)
    except (ValueError, OverflowError) as error:
        with pytest.raises(type(error), match=str(error)):
            jitted(mine, x)
    else:
        jitted(mine, x)
    assert_matches(mine, theirs)


def test_a_sum_that_may_have_no_term():
    """It is Python's 0 then, and NumPy's number else."""

    def f(out, starts, x):
        for i in range(starts.shape[0] - 1):
            total = 0
            for j in range(starts[i], starts[i + 1]):
                total += x[j]
            out[i] = 2.0 - total + 1

    same_as_numpy(f, np.zeros(len(COUNTS)), STARTS, VALUES)
    same_as_numpy(f, np.zeros(len(COUNTS)), STARTS, COLUMNS)

    def told_apart(out, starts, x, single):
        for i in range(starts.shape[0] - 1):
            total = 0.0
            for j in range(starts[i], starts[i + 1]):
                total += x[j]
            out[i] = (total * single)[0]

    single = np.array([1 / 3], np.float32)
    mine, theirs = np.zeros(len(COUNTS)), np.zeros(len(COUNTS))
    rune_jit.jit(told_apart)(mine, STARTS, VALUES, single)
    told_apart(theirs, STARTS, VALUES, single)
    assert_matches(mine, theirs)


def test_conversions():
    def f(out, x):
        total = 0
        share = 0.0
        for i in range(x.shape[0]):
            total += int(x[i]) % 100
            share = share + float(x[i]) / 3.0
            out[i] = total + share
        return total, share

    for dtype in (np.uint8, np.int32, np.float32, bool):
        x = RNG.integers(0, 200, 30).astype(dtype)
        same_as_numpy(f, np.zeros(30), x)


def test_quotients_of_numbers_that_are_not_0():
    def f(out, x):
        mean = 0.0
        for i in range(x.shape[0]):
            mean = mean + (float(x[i]) - mean) / (i + 1)
            out[i] = mean / float(i + 3) + (i + 7) // (i + 2) + 100 % (x.shape[0] - i)

    same_as_numpy(f, np.zeros(20), RNG.random(20))


@pytest.mark.parametrize(
    "use", ["w += 10", "a[2] = 7", "for j in range(5):\n        w[0] += a[j, 1]"]
)
def test_an_array_that_a_condition_selects_is_the_array_itself(use):
    source = f"""
def f(a, b):
    w = a[1]
    for i in range(5):
        if b[i] > 2:
            w = a[i]
    {use}
    return w
"""
    function = from_source(source)
    a, b = np.arange(20).reshape(5, 4), np.array([1, 3, 5, 0, 1])
    for at in (b, np.zeros(5, int)):
        mine, theirs = a.copy(), a.copy()
        np.testing.assert_array_equal(rune_jit.jit(function)(mine, at), function(theirs, at))
        np.testing.assert_array_equal(mine, theirs)


def from_source(source):
    """The function f of a text."""
    name = f"<{hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = {}
    exec(compile(source, name, "exec"), namespace)
    return namespace["f"]


def test_a_number_that_may_be_pythons_is_no_operand_of_numpys_host_functions():
    def f(x):
        total = 0
        for i in range(x.shape[0]):
            if x[i] > 100:
                total = total + x[i]
        return total * 2 + 3

    for x in (np.arange(4.0), np.arange(4.0) + 98):
        result, expected = rune_jit.jit(f)(x), f(x)
        assert type(result) is type(expected) and result == expected


def test_intervals():
    """What outer counters keep within an array: m[i, i + length - 1], as in matrix chains."""

    def chain(m, dims):
        n = len(m)
        for length in range(2, n + 1):
            for i in range(n - length + 1):
                j = i + length - 1
                m[i, j] = np.inf
                for k in range(i, j):
                    cost = m[i, k] + m[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1]
                    if cost < m[i, j]:
                        m[i, j] = cost
        return m

    def ends(m, dims):
        n = len(m)
        for length in range(2, n + 1):
            for i in range(n - length + 1):
                if dims[i] == dims[i + length - 1]:
                    m[i + length - 1, 0] += dims[i]
                m[-i - length, i] += 1
        return m

    same_as_numpy(chain, np.zeros((9, 9)), RNG.integers(5, 40, 10))
    same_as_numpy(ends, np.zeros((9, 9)), RNG.integers(0, 3, 9))


def test_writes_to_slices_that_data_decide():
    def turned(t, first, last):
        for k in range(len(first)):
            i, j = first[k], last[k]
            t[i : j + 1] = t[i : j + 1][::-1]
        return t

    def filled(t, first, last):
        for k in range(len(first)):
            t[first[k] : last[k]] = k
            t[first[k] :] += 2
            t[: last[k]] *= 2
        return t

    def rows(t, first, last):
        for k in range(len(first)):
            t[first[k] : last[k], 1] = t[0, 0] + k
        return t

    first, last = np.sort(RNG.integers(-12, 13, (2, 40)), axis=0)
    for function in (turned, filled):
        same_as_numpy(function, np.arange(10), first, last)
        same_as_numpy(function, np.arange(10), last, first)
    same_as_numpy(rows, np.zeros((10, 3)), first, last)


def test_slices_between_two_counters():
    def turned(t, x):
        for i in range(1, len(t) - 2):
            for j in range(i + 1, len(t) - 1):
                if x[i] > x[j]:
                    t[i : j + 1] = t[i : j + 1][::-1]
        return t

    def sums(out, x):
        n = len(x)
        for i in range(n):
            for j in range(n):
                out[i, j] = x[i:j].sum() + x[i - j : i + j].sum()
        return out

    same_as_numpy(turned, np.arange(12), RNG.standard_normal(12))
    same_as_numpy(sums, np.zeros((9, 9)), RNG.integers(0, 9, 9).astype(float))


def test_lists_of_positions_in_terms_of_counters():
    def givens(a):
        for i in range(1, len(a)):
            a[[i - 1, i]] = np.array([[0.6, 0.8], [-0.8, 0.6]]) @ a[[i - 1, i]]
            a[:, [i - 1, i]] *= 2
            a[[0, i]] = a[[i, 0]]
        return a

    def columns(out, a):
        for i in range(1, len(a)):
            out[i] = a.T[[i - 1, 0, -i]]
        return out

    same_as_numpy(givens, np.arange(36.0).reshape(6, 6))
    same_as_numpy(columns, np.zeros((6, 3, 6)), np.arange(36.0).reshape(6, 6))


@pytest.mark.parametrize("order", ("C", "F"))
def test_the_place_of_an_element_of_a_table(order):
    def assigned(c):
        total = np.float64(0)
        for _ in range(5):
            i, j = np.unravel_index(np.argmin(c), c.shape)
            total += c[i, j]
            c[i, :] = np.inf
            c[:, j] = np.inf
        return total

    def places(out, at):
        for k in range(len(at)):
            a, b, c = np.unravel_index(at[k], (3, 4, 5), order=order)
            out[k, 0], out[k, 1], out[k, 2] = a, b, c
            out[k, 3] = np.unravel_index(at[k], 60)[0]
        return out, a

    same_as_numpy(assigned, RNG.random((6, 7)))
    same_as_numpy(places, np.zeros((9, 4), int), RNG.integers(0, 60, 9))
    wrong = RNG.integers(0, 60, 9)
    for number in (60, -1):
        wrong[4] = number
        with pytest.raises(ValueError, match=f"index {number} is out of bounds"):
            rune_jit.jit(places)(np.zeros((9, 4), int), wrong)


@pytest.mark.parametrize("dtype", (float, np.float32, np.int16, np.uint8, bool))
def test_extremes_of_slices_that_may_be_empty(dtype):
    def seam(out, cost):
        rows, columns = cost.shape
        for i in range(1, rows):
            for j in range(columns):
                if j == 0:
                    out[i, j] = np.argmin(cost[i - 1, j : j + 2])
                else:
                    out[i, j] = np.argmax(cost[i - 1, j - 1 : j + 2]) + j - 1
                near = cost[i - 1 : i + 1, max(0, j - 1) : min(columns, j + 2)]
                out[i, j] += near.min() + near.max(axis=1)[0]
        return out

    def between(out, x, first, last):
        for k in range(len(first)):
            if first[k] < last[k]:
                out[k] = x[first[k] : last[k]].max()
        return out

    def unchecked(out, x, first, last):
        for k in range(len(first)):
            out[k] = x[first[k] : last[k]].max()
        return out

    same_as_numpy(seam, np.zeros((5, 6)), RNG.integers(0, 9, (5, 6)).astype(dtype))
    x, (first, last) = RNG.integers(0, 9, 10).astype(dtype), RNG.integers(0, 10, (2, 30))
    same_as_numpy(between, np.zeros(30), x, first, last)
    same_as_numpy(unchecked, np.zeros(30), x, np.minimum(first, last), np.maximum(first, last) + 1)
    with pytest.raises(ValueError, match="zero-size array"):
        rune_jit.jit(unchecked)(np.zeros(30), x, first, first)


def test_extremes_of_infinities_and_nans():
    def windows(out, x):
        for k in range(len(x)):
            near = x[max(0, k - 2) : k + 1]
            out[k, 0], out[k, 1] = near.min(), near.max()
            out[k, 2], out[k, 3] = np.argmin(near), np.argmax(near)
        return out

    x = np.array([np.inf, np.inf, np.inf, -np.inf, -np.inf, -np.inf, 1, np.nan, 2, np.nan, 3, 4])
    same_as_numpy(windows, np.zeros((12, 4)), x)


def test_the_last_batch_is_shorter():
    def f(x, order, size):
        w, count = np.zeros(2), 0
        for s in range(0, len(x), size):
            at = order[s : s + size]
            w = 0.5 * w + x[at].sum(axis=0) / len(at)
            count += len(order[s : s + size])
        return w, count

    rng = np.random.default_rng(0)
    x, order = rng.normal(size=(10, 2)), rng.permutation(10)
    for size in (2, 3, 4):
        w, count = rune_jit.jit(f, fallback="error")(x, order, size)
        np.testing.assert_allclose(w, f(x, order, size)[0], rtol=1e-13)
        assert count == 10
