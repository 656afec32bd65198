"""`and`, `or`, `not`, `in` and chained comparisons in loops, as conditions and as values."""

import numpy as np
import pytest
from compare import assert_matches
from loop_checks import both, rolled

import rune_jit

X = np.random.default_rng(0).normal(size=90)
AT = np.arange(90) * 4 // 3  # the last ones are out of bounds


def guarded_by_counter(x, at):
    total = 0.0
    for i in range(x.shape[0]):
        j = i + 1
        if j < x.shape[0] and x[j] > 0:
            total += x[j]
    return total


def guarded_by_number(x, at, k=7):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        j = i + k
        if j >= x.shape[0] or x[j] > x[i]:
            out[i] = 1
    return out


def guarded_by_data(x, at):
    count = 0
    for i in range(x.shape[0]):
        j = at[i]
        if j < x.shape[0] and x[j] > 0 and not (j > 80 or x[j + 1] > 1):
            count += 1
    return count


def neighbours(x, at):
    grid = x[:81].reshape(9, 9) > 0
    out = np.zeros((9, 9), dtype=np.int64)
    for i in range(9):
        for j in range(9):
            for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                if 0 <= i + a < 9 and 0 <= j + b < 9 and grid[i + a, j + b]:
                    out[i, j] += 1
    return out


def runs(x, at):
    i, found = 0, 0.0
    while i < x.shape[0]:
        j = i
        while j + 1 < x.shape[0] and x[j + 1] > x[j]:
            j += 1
        found += (j - i) ** 2
        i = j + 1
    return found


def merged(x, at):
    a, b = np.sort(x), np.linspace(-2, 2, 50)
    out, i, j = np.empty(a.size + b.size), 0, 0
    for k in range(out.size):
        if j >= b.size or (i < a.size and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


def values(x, at):
    flags, last, count = np.zeros((4, x.shape[0])), False, 0
    for i in range(x.shape[0]):
        inside = -1 < x[i] * 2 <= 1
        ok = x[i] > 0 and at[i] % 3 == 0
        last = x[i] > 1.5 or (last and x[i] > 0.5)
        flags[:, i] = inside, ok, last, not ok
        count += inside
    return flags, last, inside, ok, count


def pythons(x, at):
    last, other, odd, total, k = False, True, False, 0, 0
    for i in range(x.shape[0]):
        k = int(x[i] * 10)
        last = -3 <= k < 4 and k % 2 == 0
        odd = k in (1, 3, -1)
        other = not last
        total += k or 7
        total += (k and 2) + bool(x[i] > 1)
    return last, other, odd, total


def within(x, low, high):
    return x > low and not x > high


def called(x, at):
    count = 0
    for i in range(x.shape[0]):
        count += 2 if within(x[i], 0.1, 0.7) else 1
    return count


def toggled(x, at):
    on = False
    for i in range(x.shape[0]):
        if x[i] > 1:
            on = not on
    return on


FUNCTIONS = [
    guarded_by_counter,
    guarded_by_number,
    guarded_by_data,
    neighbours,
    runs,
    merged,
    values,
    pythons,
    called,
    toggled,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_operators_are_parts_of_loops(function):
    jitted = rune_jit.jit(function)
    for x in (X, -X, X * 3):
        assert_matches(jitted(x, AT), function(x, AT))
    assert "is unrolled" not in jitted.explain()
    assert "is a loop of the program" in jitted.explain()


class Counter:
    def __init__(self):
        self.count = 0

    def hit(self, x):
        self.count += 1
        return x > 0.5


def test_what_an_operand_changes_changes_where_it_is_computed():
    def hits(x, counter):
        found = 0
        for i in range(x.shape[0]):
            if x[i] > 0 and counter.hit(x[i]):
                found += 1
        return found

    def named(x):
        found, y = 0, -1.0
        for i in range(x.shape[0]):
            if x[i] > 0 and (y := x[i] * 2) > 1:
                found += 1
        return found, y

    a, b = Counter(), Counter()
    assert rune_jit.jit(hits)(X, a) == hits(X, b)
    assert a.count == b.count
    assert_matches(rune_jit.jit(named)(X), named(X))


def test_an_operand_that_is_out_of_bounds_raises():
    def f(x, at):
        count = 0
        for i in range(x.shape[0]):
            if x[i] > 0 and x[at[i]] > 0:
                count += 1
        return count

    jitted = rune_jit.jit(f)
    x = np.where(AT < 90, X, -1.0)
    assert_matches(jitted(x, AT), f(x, AT))
    with pytest.raises(IndexError):
        jitted(np.abs(X), AT)


def test_tuples_of_numbers_are_compared_item_by_item():
    def f(x, at, place):
        found = others = listed = 0
        for i in range(x.shape[0] - 1):
            if (at[i] % 3, i % 2) == place:
                found += 1
            if place != (at[i] % 3, 1):
                others += 1
            if (at[i] % 3, i % 2) in ((0, 1), (2, 0)):
                listed += 1
            if (at[i], i) == 5 or (at[i], i) == (1, 2, 3):
                found += 100
        return found, others, listed

    jitted = rune_jit.jit(f)
    for place in ((0, 1), (1, 1), (1, 0), (1, 7)):
        assert jitted(X, AT, place) == f(X, AT, place)
    assert "is a loop of the program" in jitted.explain()


def test_tuples_that_hold_nan_are_compared_as_python_does():
    def f(x):
        found = 0
        for i in range(x.shape[0]):
            y = x[i]
            found += (y, 1) == (y, 1)
            found += (x[i], 1) == (x[i], 1)
        return found

    x = np.where(X > 0, np.nan, X)
    assert rune_jit.jit(f)(x) == f(x)


def steps(x):
    return np.array([1 if v >= 0 else 0 for v in x])[:, None]


def counted_rows(x):
    count = 0
    for v in x:
        if (v > -0.5 and v < 0.9) or not v:
            count += 1
        if bool(v > 0.5):
            count += 10
        count = count + 2 if v > 0 else count
    return count


def best_product(x):
    best, at = np.full((1, 1), np.inf), -1
    for i in range(len(x)):
        product = x[i : i + 1] @ x[i : i + 1].T
        if (product < best and not product > 5) or i == 3:
            best, at = product, i
        if product > 100:
            raise ValueError("large")
    return best, at


def halved(x):
    error, count = np.abs(x[:1]), 0
    while error > 1e-3 and count < 100:
        error = error * 0.5
        count += 1
    return error, count


@pytest.mark.parametrize("function", [steps, counted_rows, best_product, halved])
def test_arrays_of_one_element(function):
    x = np.random.default_rng(0).normal(size=(40, 1))
    rolled(function, x, ulps=8)
    x[7] = 0
    both(function, 3 * x, ulps=8)


def test_arrays_of_more_elements_are_refused_as_in_numpy():
    def f(x):
        count = 0
        for v in x:
            if v > 0:
                count += 1
        return count

    with pytest.raises(ValueError, match="truth value of an array with more than one element"):
        rune_jit.jit(f)(np.ones((9, 2)))


def test_assignments_beside_objects_of_other_kinds():
    """`falls` is a selection. The branches that read it also assign an item of a list."""

    def f(x):
        state = [[], 0]
        while len(x) > 1:
            falls = np.flatnonzero(np.diff(x) < 0)
            state[1] = falls[0] + 1 if falls.size else len(x)
            state[0].append(state[1])
            x = x[state[1] :]
        return state[0]

    both(f, np.array([1, 2, 3, 1, 2, 5, 4, 7]))


def test_ints_that_replace_floats_of_loops_that_may_have_no_iteration():
    """`total` is Python's float, NumPy's or, in the end, an int."""

    def f(x):
        total = 0.0
        for _ in range(2):
            for value in x:
                if x[0] > 8:
                    break
                total = total + value
            for k in range(len(x)):
                if x[k] > 5:
                    total = 2
        return total

    for x in (X * 8, np.full(20, 9.0), np.zeros(20)):
        both(f, x)


class Arms:
    def __init__(self):
        self.counts, self.values = np.zeros(4, int), np.zeros(4)

    def pull(self, rounds):
        for k in range(rounds):
            if (self.counts == 0).any():
                arm = int(np.flatnonzero(self.counts == 0)[0])
            else:
                if k <= 0:
                    arm = arm or abs(k)  # which has no value yet
                arm = int(np.argmax(self.values))
            self.counts[arm] += 1
            self.values[arm] += 1 / self.counts[arm]


def test_a_side_does_not_read_what_the_other_side_has_assigned():
    ours, theirs = Arms(), Arms()
    jitted = rune_jit.jit(ours.pull)
    jitted(9)
    theirs.pull(9)
    for pull in (jitted, theirs.pull):
        with pytest.raises(UnboundLocalError, match="arm"):
            pull(9)
    np.testing.assert_array_equal(ours.counts, theirs.counts)
