"""Programs that take turns with NumPy, to find out which is faster."""

import dataclasses
from contextlib import nullcontext

import numpy as np

import rune_jit
from rune_jit.calls import costs, entries, signatures, untried
from rune_jit.calls import trial as trial_module
from rune_jit.calls.trial import Trial


def test_a_trial_ends_early_where_the_difference_is_clear(monkeypatch):
    monkeypatch.undo()
    trial = Trial()
    for seconds, of_numpy in ((1.0, False), (0.1, True)):
        assert not trial.is_over
        trial.note(seconds, of_numpy)
    assert trial.is_over
    assert trial.verdict() == "it takes 100 ms there, 1e+03 ms compiled"
    trial.note(0.01)  # of a call that another thread has made meanwhile
    assert trial.is_over
    assert not trial.is_numpys_turn


def test_a_trial_takes_turns_where_it_is_not():
    trial, turns = Trial(), []
    while not trial.is_over:
        turns.append(trial.is_numpys_turn)
        trial.note(0.010 if turns[-1] else 0.012, of_numpy=turns[-1])
    assert turns == [False, True, False, True]


def test_a_long_program_with_loops_is_not_compared_with_numpy(monkeypatch):
    class Filter:
        def __init__(self):
            self.y = np.zeros(3)

        def run(self, x):
            for i in range(len(x)):
                self.y = self.y * 0.5 + x[i]
            return self.y

    turns = []
    monkeypatch.setattr(trial_module, "_LONG", 0.0)
    monkeypatch.setattr(Trial, "numpys_turn", lambda self: turns.append(self) or nullcontext())
    ours, theirs = Filter(), Filter()
    run, x = rune_jit.jit(ours.run), np.ones((50, 3))
    for _ in range(5):
        np.testing.assert_array_equal(run(x), theirs.run(x))
    assert not turns
    assert "is a loop of the program" in run.explain()


def _misses_of_changing_sizes() -> int:
    """How many calls are traced if each of 19 sizes has two calls, which prove nothing."""

    def halves(x):
        return [v / 2 for v in x.tolist()]

    jitted = rune_jit.jit(halves)
    for n in range(1, 20):
        for _ in range(2):
            assert jitted(np.ones(n)) == [0.5] * n
    return jitted.cache_info().misses


def test_calls_that_prove_nothing_are_no_reason_for_more_traces():
    assert _misses_of_changing_sizes() <= 5


def test_a_long_call_on_numpy_is_followed_by_a_trace(monkeypatch):
    monkeypatch.setattr(untried, "_LONG", 0.0)
    assert _misses_of_changing_sizes() == 19


@dataclasses.dataclass
class _Position:  # an equal one is the same key
    x: int
    y: int

    def __hash__(self):
        return hash((self.x, self.y))


class _Grid:
    def __init__(self, n):
        self.size, self.taken = np.array([n, n]), np.zeros((n, n))

    def is_free(self, position):
        is_inside = 0 <= position.x < self.size[0] and 0 <= position.y < self.size[1]
        return is_inside and self.taken[position.x, position.y] == 0


def _free_places(is_free, count):
    """How often `is_free` agrees with NumPy, for `count` new positions that are asked often."""
    grid, agreed = _Grid(8), 0
    for k in range(count):
        position = _Position(k % 9, k // 9)
        agreed += sum(is_free(grid, position) == grid.is_free(position) for _ in range(20))
    return agreed


def test_numpy_that_was_faster_for_many_signatures_runs_new_ones(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(costs, "_SECONDS", float("inf"))
    monkeypatch.setattr(signatures, "_may_be_slow", lambda call, traced: True)
    monkeypatch.setattr(Trial, "verdict", lambda self: "NumPy is faster")
    jitted = rune_jit.jit(_Grid.is_free, fallback="silent")
    assert _free_places(jitted, 30) == 600
    traced = jitted.cache_info().misses
    assert traced < 20
    assert _free_places(jitted, 60) == 1200
    assert jitted.cache_info().misses <= traced + 2
    assert costs.SLOWER in jitted.explain()


class _Clock:
    """A clock for the calls of untraced signatures."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.undo()
        monkeypatch.setattr(entries.time, "thread_time", lambda: self.now)

    def run(self, entry, *calls):
        """Runs calls that take so many seconds. Returns the entry."""
        for seconds in calls:
            with entry.timed():
                self.now += seconds
        return entry


def test_a_signature_is_traced_when_its_calls_have_taken_as_long_as_a_trace(monkeypatch):
    entry = _Clock(monkeypatch).run(entries.Untraced("", 0.1, 1e-3), *[0.5e-3] * 10)
    assert not entry.is_due
    assert 50 < entry.calls_without_look < 190
    entry.note_more(190)
    assert entry.is_due


def test_a_signature_is_traced_if_its_first_two_calls_take_long(monkeypatch):
    clock = _Clock(monkeypatch)
    assert not clock.run(entries.Untraced("", 0.1, 1e-3), 5e-3).is_due
    assert not clock.run(entries.Untraced("", 0.1, 1e-3), 5e-3, 0.5e-3, 5e-3).is_due
    assert clock.run(entries.Untraced("", 0.1, 1e-3), 5e-3, 2e-3).is_due
    assert clock.run(entries.Untraced("", 0.1, 1e-3), 0.2).shortest == 0.2


def test_new_signatures_are_postponed_if_calls_are_short(monkeypatch):
    clock, found = _Clock(monkeypatch), costs.Costs()
    for _ in range(10):
        assert found.postponed(0, 10) is None  # traces have taken little time
        found.note(1e-3)
    for lost, is_due in ((1, True), (2, False)):
        entry = found.postponed(lost, 10)
        clock.run(entry, 0.6e-3, 0.6e-3)
        assert entry.is_due == is_due
    for _ in range(7):
        found.note(0.1)
    trace = 0.61 / 16
    entry = clock.run(found.postponed(0, 10), trace / 50, trace / 50)
    assert entry.is_due
    assert found.postponed(0, 10) is None
    for _ in range(15):
        found.note(trace)
    entry = found.postponed(0, 10)  # the 32nd one, whose calls are measured again
    clock.run(entry, trace / 200, trace / 200)
    assert not entry.is_due
    found.note(trace)
    assert found.postponed(0, 10) is not None


def _noted(*seconds, has_loops=False):
    found = costs.Costs()
    for x in seconds:
        found.has_loops = has_loops
        found.note(x)
    return found


def test_few_traces_that_take_long_postpone_new_signatures(monkeypatch):
    clock, found = _Clock(monkeypatch), _noted(0.4, 0.4, 0.4)
    assert not clock.run(found.postponed(0, 10), 1e-3, 1e-3).is_due
    assert _noted(0.4, 0.4).postponed(0, 10) is None
    found = _noted(2.0)
    assert not clock.run(found.postponed(0, 10), 5e-3, 5e-3).is_due
    assert clock.run(found.postponed(0, 10), 50e-3, 50e-3).is_due
    assert found.postponed(0, 10) is None  # calls take long


def test_calls_that_may_take_long_are_not_postponed_after_few_traces(monkeypatch):
    monkeypatch.undo()
    assert _noted(2.0, 2.0).postponed(0, 10**7) is None
    assert _noted(2.0, 2.0, has_loops=True).postponed(0, 10) is None


def test_signatures_with_short_calls_are_not_traced(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(costs, "_SECONDS", 0.0)
    monkeypatch.setattr(costs, "_MANY_CALLS", 1e-9)
    total = rune_jit.jit(lambda x, names: x.sum() + len(names))
    for _ in range(3):
        for n in range(1, 30):
            for _ in range(5):
                assert total(np.ones(n), "ab") == n + 2
    assert total.cache_info().misses == 4
    assert total.explain().count(costs.SHORT) == 1


def test_lost_trials_are_no_reason_for_more_traces(monkeypatch):
    monkeypatch.setattr(Trial, "verdict", lambda self: "NumPy is faster")
    jitted = rune_jit.jit(lambda x: np.linalg.inv(x) + 1)
    for n in range(1, 20):
        for _ in range(5):
            np.testing.assert_allclose(jitted(2 * np.eye(n)), np.eye(n) / 2 + 1)
    assert jitted.cache_info().misses <= 5


def test_traces_after_which_numpy_runs_are_no_reason_for_more(monkeypatch):
    def scaled(x, unit):
        return x * len(unit)

    jitted = rune_jit.jit(scaled)
    for _ in range(200):
        np.testing.assert_array_equal(jitted(np.ones(3), "m"), np.ones(3))
    for n in range(1, 50):
        assert jitted(2, "m" * n) == 2 * n
    assert jitted.cache_info().misses <= 10
    assert costs.SLOWER in jitted.explain()
