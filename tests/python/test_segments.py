"""Functions that ask for values: they run in segments, and do what NumPy does."""

import math

import numpy as np
import pytest
from compare import assert_matches
from segment_checks import check, never_numpy, segmented, x

import rune_jit

__all__ = ["never_numpy"]  # a fixture of all tests here


# Branches.


def test_if():
    def f(x):
        if x.sum() > 0:
            return x * 2
        return -x

    assert segmented(f, x()).programs.compiled <= 3
    segmented(f, -x())


def test_both_branches_of_one_jitted_function():
    def f(x):
        return x + 1 if x[0] > 0 else x - 1

    jitted = rune_jit.jit(f)
    for given in (x(), -x(), x(), -x()):
        check(jitted(given), f(given))


def test_and_or_not_and_chained_comparisons():
    def f(x):
        a, b = x.min(), x.max()
        return (a < 0 and b > 1, a or b, not b, -2 < a < 0 < b, a if a > b else b)

    jitted = rune_jit.jit(f)
    got, expected = jitted(x()), f(x())
    assert [bool(v) for v in got] == [bool(v) for v in expected]
    segmented(lambda x: (min(x[0], x[1]), max(x[0], x[3]), bool(x[0])), x())


def test_assert_and_raise():
    def f(x):
        assert x.size, "empty"
        if np.any(x > 5):
            raise ValueError(f"too large: {x.max():.2f}")
        return x * 2

    segmented(f, x())
    segmented(f, x() * 10)


# Loops.


def test_a_loop_compiles_one_program_for_all_iterations():
    def f(a, b, tolerance):
        x = np.zeros_like(b)
        r = b - a @ x
        p, rs, k = r.copy(), r @ r, 0
        while np.sqrt(rs).tolist() > tolerance:
            ap = a @ p
            alpha = rs / (p @ ap)
            x += alpha * p
            r -= alpha * ap
            new = r @ r
            p = r + (new / rs) * p
            rs = new
            k += 1
        return x, k

    generator = np.random.default_rng(0)
    m = generator.standard_normal((30, 30))
    entry = segmented(f, m @ m.T + 30 * np.eye(30), generator.standard_normal(30), 1e-10)
    assert entry.programs.compiled <= 3


def test_cuts_of_known_segments_run_their_programs(monkeypatch):
    """The core runs them: what makes programs is not asked."""

    def f(x, factor):
        sizes = set()
        for k in range(6):
            sizes.update({k})
            x = x * factor + x[::-1]
            if x.max() > 100:
                break
        return x, len(sizes)

    jitted = rune_jit.jit(f)
    for factor in (2.0, 3.0, 4.0):
        check(jitted(x(), factor), f(x(), factor))
    (entry,) = jitted._runner.known.cache.entries()
    estimate = entry.programs.numpy_time
    monkeypatch.delattr(type(entry.programs), "run")
    for factor in (2.0, 5.0):
        check(jitted(x(), factor), f(x(), factor))
    assert entry.programs.numpy_time > estimate


def test_loops_that_never_run_apart_are_looked_at_a_few_times():
    def f(x):
        seen = set()
        for k in range(3):
            seen.update({k})
            x = x * 0.5
            if x.max() > 100:
                break
        return x, len(seen)

    entry = segmented(f, x(), calls=15)
    assert [loop.is_refused for loop in entry.programs.apart.values()] == [True]


def test_numbers_that_change_are_arguments_of_the_program():
    def f(x, dt):
        t, k, trail = 0.0, 0, []
        while t < 1.0 and x.max() < 50:
            x = x + dt * np.sin(x * k + t)
            t += dt
            k += 1
            trail.append(t)
        return x, t, k, trail[:]

    assert segmented(f, x(), 0.01).programs.compiled <= 4


def test_break_continue_and_else():
    def f(x, n):
        seen = []
        for i in range(n):
            x = x * 0.9
            if x.max() < 0.5:
                break
            if float(x.sum()) > 2:
                continue
            seen.append(i)
        else:
            seen.append("all")
        return x, seen

    segmented(f, x(), 40)
    segmented(f, x(), 3)


def test_iteration_over_rows_and_elements():
    def f(x):
        total = 0.0
        for row in x.reshape(3, 2):
            for value in row:
                total += float(value) if value > 0 else 1.0
        return total, [v for v in x if v > 0.5]

    segmented(f, x())


# Values.


def test_conversions():
    def f(x):
        n = int(x[-1])
        return (
            *(float(x[0]), n, bool(x[0]), x[1].item(), x.tolist(), x.tobytes(), math.exp(x[0])),
            *(round(float(x[2]), 3), f"{x[3]:.3f} {x[0] > 0}", repr(x), str(x.sum()), list(x)),
            *(np.arange(n), [10, 20, 30][n], "ab" * n, hash(x[0]), x[0].is_integer(), n + x),
        )

    segmented(f, x())


def test_print(capsys):
    def f(x):
        print("sum", x.sum(), x > 0)
        return x + 1

    jitted = rune_jit.jit(f)
    for _ in range(2):
        jitted(x())
        ours = capsys.readouterr().out
        f(x())
        assert ours == capsys.readouterr().out


def test_elements_that_are_read_and_kept():
    def f(x):
        first, second = x[0], x[1]
        if first < 0 and second < 0:
            first, second = second, first * second
        return first, second, bool(x[2]), float(second)

    segmented(f, x())


def test_elements_and_rows_of_all_places_share_programs():
    def f(x):
        sums = []
        for i, row in enumerate(x):
            if row.max() > x[i, 0] and row[1] != x[-1 - i, 2]:
                sums.append(float(row.sum()))
        return sums[:]

    assert segmented(f, np.random.default_rng(0).random((20, 3))).programs.compiled <= 4
    count = segmented(lambda x: [i for i in range(len(x)) if x[i] * 2 > 1], x(40))
    assert count.programs.compiled == 1


# Shapes that depend on data.


def test_masks_nonzero_and_unique():
    def f(x):
        positive = x[x > 0]
        at = np.nonzero(x > 0)
        values, counts = np.unique(np.rint(x), return_counts=True)
        sorted_part = np.sort(positive)[::-1]
        x[x < 0] = len(positive)
        return (
            *(positive, at, values, counts, sorted_part, positive.mean(), len(positive)),
            *(np.flatnonzero(x > 1), np.argwhere(x > 1), positive[:2] * 3, positive[0], x),
            *(np.concatenate([positive, x]), [v * 2 for v in positive], positive.shape),
        )

    segmented(f, x())


def test_a_shrinking_set():
    def f(x):
        rounds = 0
        while x.size:
            x = x[x > x.mean() + 1e-12]
            rounds += 1
        return x, rounds

    segmented(f, x(50))


# In-place writes.


def test_writes_to_arguments_and_views():
    def f(x, out):
        view = x[1:4]
        view *= 2
        if view.sum() > 0:
            x[0] = view[0]
        out[...] = x[: len(out)]
        view += 1
        return x, view.copy(), out[0]

    segmented(f, x(), np.zeros(3))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.T + 1,
        lambda x: x[::-1] * 2,
        lambda x: x[:, ::2] - 1,
        lambda x: x[:, [0, 1]],
        lambda x: x[[2, 0]],
        lambda x: x[..., [0, 1], None],
        lambda x: np.maximum(x.T, 1) + x.T,
        lambda x: np.maximum(x[:4, :4], x[:4, :4].T),
        lambda x: np.stack([x, (x * 1j).imag], -1),
        lambda x: (x.T * (1 + 1j)).real.round(),
        lambda x: np.concatenate([x[::-1], x]),
        lambda x: np.where(x > 2, x, x[::-1]),
        lambda x: np.broadcast_to(x[0], (4, 6)) + x,
        lambda x: np.einsum("ij,ij->i", x, x),
        lambda x: x.sum(axis=0, keepdims=True),
    ],
)
@pytest.mark.parametrize("lay_out", [np.array, np.asfortranarray, lambda x: x[::-1]])
def test_reshaped_arrays_are_views_where_numpys_are(make, lay_out):
    def f(x):
        first = float(x[0, 0])
        array = make(x)
        part = array.reshape(-1)
        part[:3] = first + 50
        return array, part

    def one_program(x):
        array = make(x)
        part = array.reshape(-1)
        part[:3] = 50
        return array, part

    def given():
        return lay_out(np.arange(24.0).reshape(4, 6).copy())

    for function in (f, one_program):
        check(rune_jit.jit(function)(given()), function(given()))


def test_results_are_the_arguments_and_arrays_of_their_own():
    def f(x, y):
        if x[0] < 0:
            x += 1
        return x, y.copy(), y

    jitted = rune_jit.jit(f)
    a, b = x(), x()
    for _ in range(2):
        got = jitted(a, b)
        assert got[0] is a
        assert got[2] is b
        assert not np.may_share_memory(got[1], b)


def test_arrays_written_before_an_error_are_written():
    def f(x):
        x[0] = 7
        if x.sum() > 0:
            raise RuntimeError("stop")
        return x

    segmented(f, x())


def test_overlapping_arguments():
    def f(a, b):
        if a[0] < 0:
            a += b
        return a

    jitted = rune_jit.jit(f)
    ours, theirs = x(), x()
    check(jitted(ours[1:], ours[:-1]), f(theirs[1:], theirs[:-1]))
    check(ours, theirs)


# Arrays of rune_jit.


def test_arrays_in_arrays_out():
    def f(x):
        while x.sum() > 1:
            x = x * 0.5
        return x

    got = rune_jit.jit(f)(rune_jit.asarray(np.ones(4)))
    assert isinstance(got, rune_jit.Array)
    np.testing.assert_allclose(got, f(np.ones(4)))


def test_positions_are_no_part_of_a_segment():
    """Python integers in indices that differ from iteration to iteration."""

    def elements(x, n):
        total = 0.0
        for i in [*range(n)]:
            x = x * 0.5
            x[i] = i + total
            x[-1 - i] += 1
            total += x.sum().tolist()
        return x, total

    def rows(a, b):
        x = np.zeros_like(b)
        for _ in range(3):
            for i in [*range(len(b))]:
                new = (b[i] - a[i] @ x + a[i, i] * x[i]) / a[i, i]
                a[i] += 0.001 * i
                a[:, i] *= 1.0
                if abs((new - x[i]).tolist()) < 1e-12:
                    return x, i
                x[i] = new
        return x, a

    def columns_of_known_arrays(x):
        table, kept = np.arange(12.0).reshape(3, 4), []
        for i in [*range(3)]:
            row = table[i]
            row += i
            kept.append((x * row).sum().tolist())
        return table, kept

    rng = np.random.default_rng(0)
    cases = [
        (elements, lambda: (np.ones(100), 40)),
        (rows, lambda: (np.eye(60) * 60 + rng.random((60, 60)), np.ones(60))),
        (columns_of_known_arrays, lambda: (np.arange(4.0),)),
    ]
    for function, make in cases:
        args = make()
        f = rune_jit.jit(function)
        copies = [np.copy(x) if isinstance(x, np.ndarray) else x for x in args]
        got, expected = f(*copies), function(*args)
        for a, b in zip((*got, *copies), (*expected, *args), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        (entry,) = f._runner.known.cache.entries()
        assert entry.runs_on_numpy is None and entry.programs.compiled <= 12


def _shuffled(x):
    np.random.RandomState(3).shuffle(x)
    return x * 2


def _shuffled_by_a_generator(x):
    generator = np.random.default_rng(3)
    generator.shuffle(x)
    return x + generator.random()


def _shuffled_rows(x):
    rows = np.array([x[i] * 1.5 for i in range(3)])
    np.random.RandomState(3).shuffle(rows)
    first, second, third = rows
    return first + second * 2 + third * 3


def _shuffled_globally(x):
    y = x + 1
    np.random.shuffle(y[1:])
    y[0] += y[1]
    return y * float(x[0, 0])


def _swapped(x):  # as NumPy does: the second row is a view of what the first one has become
    x[0], x[1] = x[1], x[0]
    rows = list(x)
    rows[2][:] = 7
    return x.copy()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "shuffled",
    [_shuffled, _shuffled_by_a_generator, _shuffled_rows, _shuffled_globally, _swapped],
)
def test_shuffled_rows(shuffled):
    jitted = rune_jit.jit(shuffled)
    for seed in range(4):
        given, expected = (np.arange(24.0).reshape(6, 4) + seed for _ in range(2))
        np.random.seed(seed)
        result = jitted(given)
        np.random.seed(seed)
        np.testing.assert_array_equal(result, shuffled(expected))
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize(
    "extreme",
    [
        lambda x: min(x),
        lambda x: max(x) * 2,
        lambda x: x - round(min(x) - 0.5),
        lambda x: [max(row) - min(row) for row in x.reshape(2, 3)],
        lambda x: min(x[0], max(x[1:3])),
        lambda x: max(v * 2 for v in x),
        lambda x: min(x, default=3.0),
        lambda x: min(x[:1]) + max([x[0]]),
        lambda x: [min(x[: i + 1]) for i in range(4)],
    ],
)
def test_extremes_of_iterables(extreme):
    jitted = rune_jit.jit(extreme)
    for given in (np.array([3.0, 1.5, 2.7, 9.1, -2.0, 4.0]), np.array([1.0, np.nan, 0, 2, 3, 4])):
        for _ in range(2):
            result, expected = jitted(given), extreme(given)
            assert type(result) is type(expected)
            np.testing.assert_array_equal(result, expected)


def test_frombuffer_shares_the_memory_of_its_argument():
    def f(x, samples):
        v = np.frombuffer(x, x.dtype)
        v[1] = 0
        doubled = x * 2
        np.frombuffer(doubled, np.uint8)[0] = 7
        return doubled, np.frombuffer(samples, "<i2").astype(np.float32) / 32768, x.sum()

    samples = np.arange(8, dtype=np.int16).tobytes()
    theirs = np.arange(6.0)
    expected = f(theirs, np.frombuffer(samples, np.uint8))
    jitted = rune_jit.jit(f)
    for _ in range(3):
        ours = np.arange(6.0)
        assert_matches(jitted(ours, np.frombuffer(samples, np.uint8)), expected)
        assert_matches(ours, theirs)
    assert "in segments" in jitted.explain()
