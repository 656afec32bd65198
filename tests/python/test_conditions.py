"""`if` on values of arrays outside of loops: a program for each way through the function."""

import copy

import numpy as np
import pytest
from segment_checks import check, outcome

import rune_jit
from rune_jit.calls.paths import Paths, UncompiledWay
from rune_jit.calls.segmented import Segmented
from rune_jit.calls.trial import Trial


def paths(function, *calls):
    """Calls a function and its jitted form with these arguments, twice each; checks that results,
    errors and arguments are NumPy's. The jitted form's entry for the last call."""
    jitted = rune_jit.jit(function)
    for args in (*calls, *calls):
        ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
        got, expected = outcome(jitted, ours, {}), outcome(function, theirs, {})
        check(got, expected)
        check(list(ours), list(theirs))
    return next(iter(jitted._runner.known.cache.entries()), None)


UP, DOWN = np.arange(1.0, 7.0), -np.arange(1.0, 7.0)


def test_both_sides_have_a_program():
    def f(x):
        return x * 2 if x.sum() > 0 else -x

    entry = paths(f, (UP,), (DOWN,), (UP,))
    assert isinstance(entry, Paths)
    assert len(entry) == 2


def test_a_program_runs_while_its_conditions_hold():
    def f(x):
        f.runs += 1
        if x.sum() > 0:
            return x + 1
        return x - 1

    f.runs = 0

    def g(x):
        if x.sum() > 0:
            return np.sqrt(x)
        return x - 1

    jitted = rune_jit.jit(g)
    for _ in range(5):
        np.testing.assert_allclose(jitted(UP), np.sqrt(UP))
    assert jitted.cache_info().misses == 1
    assert jitted._fast_hits > 0  # no Python runs
    np.testing.assert_array_equal(jitted(DOWN), DOWN - 1)
    np.testing.assert_allclose(jitted(UP), np.sqrt(UP))
    assert jitted.cache_info().misses == 2
    assert "2 programs" in jitted.explain()


def test_nested_conditions_and_early_returns():
    def f(x, limit):
        norm = np.sqrt(x @ x)
        if norm == 0:
            return x, 0
        y = x / norm
        if y.max() > limit and not y.min() < -limit:
            y = y.clip(0, limit)
        elif y[0] < 0 or y[-1] > 0.9:
            y = y[::-1]
        return y, norm

    calls = [(x, 0.5) for x in (UP, DOWN, 0 * UP, UP - 3.5, np.eye(6)[0], np.eye(6)[5])]
    entry = paths(f, *calls)
    assert isinstance(entry, Paths)
    assert 3 <= len(entry) <= 8


def test_a_way_that_raises_runs_on_numpy():
    def f(x, out):
        out[0] = 1
        if np.any(x < 0):
            raise ValueError(f"{(x < 0).sum()} numbers are negative")
        if not x[0] < 4:
            raise AssertionError("large")
        out[1:] = np.sqrt(x[1:])
        return out.sum()

    calls = [(x, np.zeros(6)) for x in (UP, DOWN, UP + 5, UP, -UP)]
    entry = paths(f, *calls)
    assert isinstance(entry, Paths)
    assert sum(isinstance(p, UncompiledWay) for p in entry._programs) == 2
    assert (
        sum(p.segmented is not None for p in entry._programs if isinstance(p, UncompiledWay)) == 1
    )
    assert len(entry) == 3


def test_arguments_are_written_on_the_way_that_is_taken_only():
    def f(x, y):
        y += 1
        if x.max() > 2:
            y[:2] = 7
        else:
            x *= 0
        return y.sum()

    assert isinstance(paths(f, (UP, UP), (DOWN, UP), (UP, UP)), Paths)


def test_state_is_assigned_on_the_way_that_is_taken():
    class Counter:
        def __init__(self):
            self.total, self.calls, self.last = 0.0, 0, None

        def add(self, x):
            if x.sum() > 0:
                self.total += x.sum()
            else:
                self.last = x * 2
            self.calls += 1
            return self.total

    ours, theirs = Counter(), Counter()
    add = rune_jit.jit(Counter.add)
    for x in (UP, DOWN, UP, UP, DOWN, UP):
        check(add(ours, x.copy()), theirs.add(x.copy()))
        check(vars(ours), vars(theirs))


_calls = 0


def test_a_way_that_raises_assigns_globals_once():
    def f(x):
        global _calls
        _calls += 1
        if x.sum() > 0:
            x = x + 1
        return np.ones(6) + x

    jitted = rune_jit.jit(f)
    for count, n in enumerate((6, 5, 6, 5, 5)):
        check(outcome(jitted, (UP[:n],), {}), outcome(f, (UP[:n],), {}))
        assert _calls == 2 * (count + 1)


def test_conditions_in_loops_run_in_segments():
    def f(x):
        steps = {}
        while x.sum() > 1:
            x = x / 2
            steps[len(steps)] = x[0]
        return x, steps

    assert isinstance(paths(f, (UP,), (DOWN,)), Segmented)


def test_loops_in_callers_count():
    def positive(x):
        return bool(x > 0)

    def f(x):
        return [positive(v) for v in x]

    assert isinstance(paths(f, (UP,), (DOWN,)), Segmented)


def test_too_many_ways_run_in_segments():
    def f(x):
        a = 1 if x[0] > 0 else 2
        b = 1 if x[1] > 0 else 2
        c = 1 if x[2] > 0 else 2
        d = 1 if x[3] > 0 else 2
        return x * a + b - c * d

    signs = np.array(np.meshgrid(*[[1.0, -1.0]] * 4)).reshape(4, -1).T
    assert isinstance(paths(f, *[(x,) for x in signs]), Segmented)


def test_conditions_of_numbers_are_constants():
    def f(x, n):
        if n > 2:
            x = x * n
        if x.sum() > 0:
            return x + n
        return x

    jitted = rune_jit.jit(f)
    for x, n in ((UP, 1), (UP, 3), (DOWN, 3), (DOWN, 1), (UP, 1)):
        check(jitted(x, n), f(x, n))


def test_truth():
    def f(x, y):
        result = []
        if x[0]:
            result.append("x")
        if y:
            result.append("y")
        return result, bool(x[1])

    def g(x):
        return 1 if x else 2

    for value in (0.0, np.nan, 1.0, -0.0):
        paths(f, (np.array([value, 1.0]), np.array([[value]])))
    paths(f, (np.array([0j, 1j]), np.array([True])), (np.array([1j, 0j]), np.array([False])))
    paths(g, (UP,))  # ValueError
    paths(g, (np.array([3]),), (np.array([0]),))


def test_index_errors():
    def f(x, at):
        y = x[at]
        if y.sum() > 3:
            return y
        return x[at + 1]

    paths(f, (UP, np.array([1, 2])), (UP, np.array([0, 0])), (UP, np.array([5, 0])))
    paths(f, (UP, np.array([1, 9])), (DOWN, np.array([5, 0])), (UP, np.array([0, 1])))


def test_captured_arrays_and_globals():
    threshold = np.array([2.0])

    def f(x):
        if x.mean() > threshold[0]:
            return x - threshold
        return x + threshold

    jitted = rune_jit.jit(f)
    for value in (2.0, 5.0, -3.0, 2.0, 5.0):
        threshold[0] = value
        check(jitted(UP), f(UP))


def test_calls_on_the_host(monkeypatch):
    monkeypatch.setattr(Trial, "verdict", lambda self: None)

    def f(a):
        if abs(np.linalg.det(a)) < 1e-12:
            return np.zeros(2)
        return np.linalg.solve(a, np.ones(2))

    entry = paths(f, (np.eye(2) * 2,), (np.zeros((2, 2)),), (np.eye(2),))
    assert isinstance(entry, Paths)


def test_one_program_only():
    def f(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(rune_jit.ConcretizationError):
        rune_jit.jit(f, fallback="error")(UP)
    with pytest.raises(rune_jit.ConcretizationError):
        rune_jit.jit(f).lower(UP)


def test_what_prints_runs_in_segments(capsys):
    def f(x):
        if x.sum() > 0:
            print("up")
        return x

    jitted = rune_jit.jit(f)
    for x in (UP, DOWN, UP):
        check(jitted(x), x)
    assert capsys.readouterr().out == "up\nup\n"


def test_locals_have_the_names_of_the_function():
    def checked(x):
        y = x + 1
        assert y[0] == 2 and y[1] == 2
        return locals()

    def chosen(x):
        y = x if x.sum() > 0 and x[0] > 0 else x + 1
        z = [row * 2 for row in y if row > 0 and row < 9]
        return y, z, sorted(vars()), dir()

    def formatted(x):
        y = x.sum()
        if 0 < y < 9 or x[0] > 8:
            y = y + 1
        return "{y:.2f} {x}".format(**locals()), len(locals())

    for function in (checked, chosen, formatted):
        jitted, x = rune_jit.jit(function), np.ones(3)
        for _ in range(3):
            got, want = jitted(x), function(x)
            assert str(got) == str(want)
