"""Functions that ask for values: they run in segments, and do what NumPy does."""

import copy
import math
import types

import numpy as np
import pytest
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
        while np.sqrt(rs).item() > tolerance:
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


def test_numbers_that_change_are_arguments_of_the_program():
    def f(x, dt):
        t, k, trail = 0.0, 0, []
        while t < 1.0 and x.max() < 50:
            x = x + dt * np.sin(x * k + t)
            t += dt
            k += 1
            trail.append(t)
        return x, t, k, trail

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
        return sums

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


# Errors of deferred operations.


def test_index_errors_reach_the_handler():
    def f(x, at):
        try:
            return x[at]
        except IndexError as error:
            return str(error), bool(x.sum() > 0)

    segmented(f, x(), np.array([1, 9]))

    def g(x, at):
        if x.max() > 0:
            try:
                y = x[at] * 2
            except IndexError as error:
                return str(error)
            return y
        return x

    segmented(g, x(), np.array([1, 9]))


def test_index_errors_are_never_lost():
    def f(x, at):
        if x.max() > 0:
            x[at]
        return x

    jitted = rune_jit.jit(f)
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 6"):
        jitted(x(), np.array([9]))


def test_errors_of_calls_on_the_host_reach_the_handler():
    def f(a):
        try:
            return np.linalg.solve(a, np.ones(2))
        except np.linalg.LinAlgError as error:
            return str(error)

    segmented(f, np.ones((2, 2)))
    segmented(f, np.eye(2))


# State.


def test_lists_dicts_and_attributes_get_values():
    losses, table, state = [], {}, types.SimpleNamespace(last=None, count=0)

    def f(x):
        loss = (x * x).sum()
        losses.append(loss)
        table["max"] = x.max()
        state.last = x * 2
        state.count += 1
        if loss > 100:
            return None
        return loss

    jitted = rune_jit.jit(f)
    for _ in range(3):
        jitted(x())
    ours = copy.deepcopy((losses, table, state))
    losses.clear()
    state.count = 0
    for _ in range(3):
        f(x())
    check(ours, (losses, table, state))


def test_sets_and_keys_get_values():
    seen, table, state = set(), {"first": 1}, types.SimpleNamespace(ends=frozenset())

    def f(x):
        seen.add((x.sum(), 2))
        table[x.max()] = x.min()
        state.ends = frozenset([x[0], 5])
        return {x[1], 7}, {x[2]: x[3]}

    jitted = rune_jit.jit(f)
    ours = [jitted(x(n)) for n in (4, 5)], seen.copy(), table.copy(), state.ends
    seen.clear()
    del table[np.float64(2.0)]
    theirs = [f(x(n)) for n in (4, 5)], seen, table, state.ends
    assert repr(ours) == repr(theirs)


class Slotted:
    __slots__ = ("__last", "total")

    def step(self, x):
        self.total = x.sum()
        if self.total > 100:
            self.total = 0
        self.__last = x * 2

    def state(self):
        return [self.total, self.__last]


def test_slots_get_values():
    ours, theirs = Slotted(), Slotted()
    jitted = rune_jit.jit(ours.step)
    for n in (4, 5):
        jitted(x(n))
        theirs.step(x(n))
        check(ours.state(), theirs.state())


def test_arrays_of_objects_get_values():
    def f(x):
        rows, one = np.empty((2, 2), object), np.empty((), object)
        rows[0, 0], rows[1, 1], one[()] = x * 2, float(x[0]), x.max()
        return [*rows.ravel(), one.item(), *np.empty_like(rows[0]), *np.empty_like(x, object)]

    segmented(f, x())

    def g(x):
        rows = np.empty(2, object)
        rows[0], rows[1] = x * 2, x.sum()
        return rows

    rows = rune_jit.jit(g)(x())
    check(list(rows), list(g(x())))


def test_classes_that_are_returned_are_numpys():
    def f(x):
        return float(x[0]), [type(x[0]), {"kind": np.float32}], type(x), np.ndarray

    kinds = rune_jit.jit(f)(x())[1:]
    assert kinds[0][0] is np.float64
    assert kinds[0][1]["kind"] is np.float32
    assert kinds[1] is kinds[2] is np.ndarray


def test_messages_name_the_types_of_numbers():
    def f(x):
        messages = []
        for wrong in (len, list, range, hash, lambda _: hash(x), lambda v: len(v > 0)):
            try:
                messages.append(wrong(x[0]))
            except TypeError as error:
                messages.append(str(error))
        return messages

    segmented(f, x())


def test_globals_closures_and_defaults():
    total = 0.0
    weights = np.arange(6.0)

    def f(x, seen=[]):  # noqa: B006
        nonlocal total
        total += float(x.sum())
        seen.append(float(x[0]))
        weights[0] += 1
        return weights * x, list(seen)

    jitted = rune_jit.jit(f)
    first, second = jitted(x()), jitted(x())
    assert total == pytest.approx(2 * x().sum())
    assert weights[0] == 2
    assert second[1] == [-1.0, -1.0]
    np.testing.assert_allclose(second[0], weights * x())
    np.testing.assert_allclose(first[0][1:], second[0][1:])


def test_containers_among_the_arguments():
    def f(parameters, history):
        if parameters["w"].sum() > 0:
            parameters["w"] -= 0.5
        parameters["b"] = parameters["w"] * 2
        history.append(parameters["w"].sum())
        return parameters

    segmented(f, {"w": np.ones(3)}, [np.float64(0.0)])


def test_containers_among_the_arguments_stay_the_same():
    kept, state = None, types.SimpleNamespace()

    def f(x, parameters):
        nonlocal kept
        parameters["sum"] = float(x.sum())
        kept, state.rows, state.all = parameters, parameters["rows"], [parameters]
        return parameters, [parameters["rows"]]

    jitted = rune_jit.jit(f)
    for _ in range(2):
        given = {"rows": [np.ones(3), 2]}
        rows = given["rows"]
        first, (second,) = jitted(x(), given)
        assert first is kept is state.all[0] is given
        assert second is state.rows is given["rows"] is rows
        assert list(given) == ["rows", "sum"]


def test_generators_and_iterators():
    def f(x, numbers):
        return x[0] > 0, [float(x[i]) * next(numbers) for i in range(3)]

    jitted = rune_jit.jit(f)
    numbers = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert jitted(x(), numbers)[1] == pytest.approx([-1.0, -0.8, 0.6])
    assert jitted(x(), numbers)[1] == pytest.approx([-4.0, -2.0, 1.2])


def test_random_numbers_differ_from_call_to_call():
    def f(x):
        if x[0] < 0:
            return x + np.random.default_rng().random(6)
        return x

    jitted = rune_jit.jit(f)
    assert not np.array_equal(jitted(x()), jitted(x()))


def test_rejection_sampling():
    def f(n, seed):
        generator = np.random.default_rng(seed)
        points = np.zeros((0, 2))
        while len(points) < n:
            new = generator.uniform(-1, 1, (n, 2))
            points = np.concatenate([points, new[(new**2).sum(axis=1) < 1]])
        return points[:n]

    jitted = rune_jit.jit(f)
    check(jitted(20, 3), f(20, 3))


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
            total += x.sum().item()
        return x, total

    def rows(a, b):
        x = np.zeros_like(b)
        for _ in range(3):
            for i in [*range(len(b))]:
                new = (b[i] - a[i] @ x + a[i, i] * x[i]) / a[i, i]
                a[i] += 0.001 * i
                a[:, i] *= 1.0
                if abs((new - x[i]).item()) < 1e-12:
                    return x, i
                x[i] = new
        return x, a

    def columns_of_known_arrays(x):
        table, kept = np.arange(12.0).reshape(3, 4), []
        for i in [*range(3)]:
            row = table[i]
            row += i
            kept.append((x * row).sum().item())
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
        (entry,) = f._known.cache.entries()
        assert entry.runs_on_numpy is None and entry.programs.compiled <= 12


def test_positions_out_of_bounds():
    def f(x, last):
        for i in [*range(last)]:
            x[i] = float(x.sum())
        return x

    jitted = rune_jit.jit(f)
    for call in (jitted, f):
        x = np.ones(3)
        with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
            call(x, 4)
        np.testing.assert_array_equal(x, [3, 5, 9])


class _Network:
    """Holds one array by two names."""

    def __init__(self):
        self.weights = np.ones(3)
        self.parameters = {"weights": self.weights}
        self.losses = []

    def step(self, gradient):
        self.parameters["weights"] -= gradient
        self.losses.append(float(gradient.sum()))
        np.multiply(self.weights, 0.5, out=self.weights)
        return self.weights.sum()


def test_arrays_of_objects_that_are_written_in_place_stay_the_same_arrays():
    step = rune_jit.jit(_Network.step)
    ours, theirs = _Network(), _Network()
    for i in range(6):
        gradient = np.arange(3.0) * i
        check(step(ours, gradient), theirs.step(gradient))
        check(ours.weights, theirs.weights)
        assert ours.parameters["weights"] is ours.weights
        assert ours.losses == theirs.losses


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


@pytest.mark.parametrize("at", [[2, 0, 6], [-7, 0], range(4, 8), ([0, 1], [1, 3])])
def test_known_positions_out_of_bounds_raise_before_other_code_runs(at):
    def read(x, log):
        x[0].item()
        y = (x + 1).reshape(-1, 3) if isinstance(at, tuple) else x + 1
        log.append(y[at][:1])
        return y

    def write(x, log):
        x[0].item()
        y = (x + 1).reshape(-1, 3) if isinstance(at, tuple) else x + 1
        y[at] = 5
        log.append(y)
        return y

    segmented(read, x(), [])
    segmented(write, x(), [])
