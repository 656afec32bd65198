"""Functions in segments that NumPy runs from some place or call on, because that is faster."""

import gc
import itertools
import math
import time
import types

import numpy as np
import pytest
from compare import assert_matches
from segment_checks import check, never_numpy, outcome, segmented, x

import rune_jit
from rune_jit.calls import entries
from rune_jit.calls import function as jit_function
from rune_jit.calls.call_trace import CallTrace
from rune_jit.calls.trial import Trial
from rune_jit.capture import rebinder
from rune_jit.capture.loops import apart
from rune_jit.tracing import programs, timed

__all__ = ["never_numpy"]  # a fixture of all tests here


@pytest.fixture(autouse=True)
def no_loops_apart():
    """All iterations run in segments, also in tests that undo what others set."""
    jit_function._runner_class()  # (the first in a process sets the compiler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apart, "compiler", None)
        yield


def test_many_programs_end_in_numpy():
    def f(x):
        sums = []
        for n in range(1, 40):
            y = x
            for _ in [0] * n:
                y = 0.5 * y + x
            sums.append(float(y.sum()))
        return sums, x

    jitted = rune_jit.jit(f)
    for _ in range(2):
        check(jitted(x(50)), f(x(50)))
    (entry,) = jitted._runner.known.cache.entries()
    assert "programs" in entry.runs_on_numpy


def test_writes_to_elements_after_numpy_took_over(monkeypatch):
    monkeypatch.setattr(timed, "_MOST_COMPILED", 0)

    def f(x, at):
        if x[0] < 0:
            x[0] += 1
        for i in range(3):
            x[i] = x[at[i]] * 2
            x[at[i]] = i
        return x, x[at[0]]

    jitted = rune_jit.jit(f)
    at = np.array([1, 3, -1])
    for _ in range(3):
        check(jitted(x(), at), f(x(), at))
        check(jitted(x(4), at), f(x(4), at))


@pytest.mark.parametrize("dtype", [int, float, complex])
def test_arrays_that_are_no_elements_after_numpy_took_over(dtype, monkeypatch):
    monkeypatch.setattr(timed, "_MOST_COMPILED", 0)

    def f(x):
        held = [x * 2]
        if x.sum() > 0:
            out = np.zeros(3, dtype)
            out[0] = held[0]
        return x

    jitted = rune_jit.jit(f)
    for _ in range(2):
        check(outcome(jitted, (x(),), {}), outcome(f, (x(),), {}))


def test_a_long_loop_without_reads_is_cut():
    def f(x, n):
        for _ in range(n):
            x = np.abs(x) * 0.99 + 0.1
        return x, x[0].tolist()

    assert segmented(f, x(), 300, calls=2).programs.compiled <= 5


def test_explain_says_how_many_programs():
    jitted = rune_jit.jit(lambda x: [(x + 1).sum().tolist()])
    jitted(x())
    assert jitted.explain().startswith("<lambda>: in segments (1 program): tolist: cannot take")
    other = rune_jit.jit(lambda x: x * x.sum().tolist())
    other(x())
    assert other.explain().startswith("<lambda>: in segments (2 programs): tolist: cannot take")


def test_fallback_error_refuses():
    def f(x):
        return x if x[0] > 0 else -x

    with pytest.raises(rune_jit.ConcretizationError):
        rune_jit.jit(f, fallback="error")(x())


def test_the_faster_way_is_kept(monkeypatch):
    monkeypatch.undo()

    def slow(x):
        return x if x[0].tolist() < 0 else -x

    def unrolled(x):
        for _ in [0] * 600:  # which is no range, and therefore no loop of the program
            x = x[::-1] * 0.5 + 1
        return x

    for function, name in ((slow, "segments"), (unrolled, "program")):
        verdicts = []
        monkeypatch.setattr(Trial, "verdict", lambda self: verdicts.append(0) or "it is slower")  # noqa: B023
        jitted = rune_jit.jit(function)
        for _ in range(7):
            check(jitted(x()), function(x()))
        assert len(verdicts) == 1, name
        assert jitted.explain() == f"{function.__name__}: on NumPy: it is slower"
        assert jitted.cache_info().fallbacks == 1


def asks(x, n):
    total = 0.0
    for _ in [0] * n:
        x = np.abs(x[::-1]) * 0.5 + 1
        total += x[0].tolist()
    return total


def test_little_work_is_interpreted(monkeypatch):
    """Until interpreting it has taken as long as compiling it."""
    monkeypatch.undo()
    monkeypatch.setattr(timed, "_SLOW", math.inf)
    monkeypatch.setattr(Trial, "is_over", False)
    jitted = rune_jit.jit(asks)
    for n, most in ((5, 0), (5, 0), (3000, 3)):
        check(jitted(x(20), n), asks(x(20), n))
        *_, entry = jitted._runner.known.cache.entries()
        assert entry.programs.compiled <= most
    assert entry.programs.compiled > 0
    large = rune_jit.jit(asks)
    check(large(x(300_000), 2), asks(x(300_000), 2))
    (entry,) = large._runner.known.cache.entries()
    assert entry.programs.compiled > 0


def test_nothing_is_compiled_where_numpy_is_faster(monkeypatch):
    """Even if interpreted programs are taken to need no time; otherwise a second trial decides, of
    compiled ones."""
    monkeypatch.undo()
    verdicts = []
    for faster in (True, False):
        monkeypatch.setattr(
            Trial,
            "verdict",
            lambda self: verdicts.append(0) or ("it is slower" if faster else None),  # noqa: B023
        )
        verdicts.clear()
        jitted = rune_jit.jit(asks)
        for _ in range(12):
            check(jitted(x(20), 3), asks(x(20), 3))
        (entry,) = jitted._runner.known.cache.entries()
        assert (entry.programs.compiled > 0) is not faster
        assert len(verdicts) == (1 if faster else 2)


def test_a_program_is_of_limited_size():
    def f(x):
        for _ in [0] * 8000:
            x = x[::-1] * 0.5 + 1
        return x

    large = np.linspace(0, 1, 40_000)  # for which NumPy takes long
    assert "more than 30000 operations" in segmented(f, large, calls=1).reason


def small_steps(x, n):
    """So many operations that compiling them takes longer than they take NumPy in many calls."""
    for _ in [0] * n:
        x = np.abs(x[::-1]) * 0.5 + 1
    return x


def test_small_operations_are_not_compiled_before_that_pays(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(entries, "_PATIENCE", 1000.0)
    jitted = rune_jit.jit(small_steps)
    for _ in range(3):
        check(jitted(x(), 2000), small_steps(x(), 2000))
        check(jitted(x(), 10), small_steps(x(), 10))
    many, few = jitted.explain().splitlines()
    assert many.startswith("small_steps: on NumPy: trace: cannot make one program of more than")
    assert few == "small_steps: as one program"
    assert jitted.cache_info().fallbacks == 1
    # Who asks for one program gets it.
    assert len(jitted.lower(x(), 2000).graph) > 3000
    check(rune_jit.jit(small_steps, fallback="error")(x(), 2000), small_steps(x(), 2000))


def test_small_operations_are_compiled_when_that_pays(monkeypatch):
    monkeypatch.setattr(entries, "_PATIENCE", 0.05)
    jitted = rune_jit.jit(small_steps)
    for _ in range(1000):
        check(jitted(x(), 2000), small_steps(x(), 2000))
        if "as one program" in jitted.explain():
            break
    else:
        raise AssertionError(jitted.explain())
    assert jitted.cache_info().misses == 2
    for _ in range(3):
        check(jitted(x(), 2000), small_steps(x(), 2000))


def test_too_many_small_operations_stay_with_numpy(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(entries, "_PATIENCE", 0.0)
    jitted = rune_jit.jit(small_steps)
    for _ in range(6):
        check(jitted(x(), 9000), small_steps(x(), 9000))
    assert jitted.cache_info().misses == 2
    assert "on NumPy" in jitted.explain()


def test_small_operations_in_segments_end_in_numpy(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(timed, "_SLOW", math.inf)
    monkeypatch.setattr(programs, "_INTERPRETED", math.inf)

    def f(x):
        sums = []
        for n in range(1, 20):
            y = x
            for _ in [0] * (10 * n):
                y = np.sin(y)
            sums.append(float(y.sum()))
            time.sleep(0)
        return sums

    jitted = rune_jit.jit(f)
    check(jitted(x(50)), f(x(50)))
    (entry,) = jitted._runner.known.cache.entries()
    assert "longer to compile" in entry.runs_on_numpy


def test_many_operations_on_arrays_that_depend_on_no_argument():
    """NumPy computes them while the function is traced, which takes ten times as long."""

    def relax():
        u = np.zeros(60)
        u[0] = change = 1.0
        count = 0
        while change > 1e-9:
            try:
                old = u.copy()
                u[1:-1] = (old[2:] + old[:-2]) / 2
                change = np.abs(u - old).max()
            finally:
                count += 1
        return u, count

    jitted = rune_jit.jit(relax)
    expected, count = relax()
    assert count > 10_000
    for _ in range(2):
        u, n = jitted()
        assert n == count
        np.testing.assert_array_equal(u, expected)
        info = jitted.cache_info()
        assert info.fallbacks + info.segmented == 1, jitted.explain()


class Neighbours:
    """Methods of each object have a program of their own."""

    def __init__(self, x):
        self.x = x

    def distances(self, rows):
        found = []
        for row in rows:
            try:
                pairs = (zip(row, other, strict=True) for other in self.x)
                found.append(sum(sum((a - b) ** 2 for a, b in pair) for pair in pairs))
            finally:
                pass
        return np.array(found)


def test_one_object_shows_that_a_program_is_too_large():
    """Methods of the others are not traced until they are called often."""

    class Jitted(Neighbours):
        distances = rune_jit.jit(Neighbours.distances)

    x = np.arange(120.0).reshape(40, 3)
    for _ in range(5):
        result = Jitted(x).distances(x[:20])
        np.testing.assert_array_equal(result, Neighbours(x).distances(x[:20]))
    info = Jitted.distances.cache_info()
    assert info.misses == 1
    assert info.fallbacks == 5
    often = Jitted(x)
    for _ in range(10):
        often.distances(x[:20])
    assert Jitted.distances.cache_info().misses == 2
    Jitted.distances.clear_cache()
    Jitted(x).distances(x[:3])
    assert Jitted.distances.cache_info().misses == 3


def test_objects_and_numbers_show_that_calls_run_in_segments(monkeypatch):
    """Calls that are given new objects are not traced again, though their numbers are constants."""

    class Log:
        def __init__(self):
            self.lines = []

    traced, counts = [], []
    trace_once = CallTrace.traced

    def counted(attempt):
        traced.append(attempt)
        return trace_once(attempt)

    monkeypatch.setattr(CallTrace, "traced", counted)

    @rune_jit.jit
    def f(x, n, log):
        for _ in range(n):
            log.lines.append(str(x.sum()))
        return x * n

    values = np.arange(6.0)
    for _ in range(6):
        log = Log()
        np.testing.assert_array_equal(f(values, 2, log), values * 2)
        assert log.lines == [str(values.sum())] * 2
        counts.append(len(traced))
    assert counts[2:] == [counts[1]] * 4


def _raises(x):
    y = x * 2
    raise KeyError("total", float(y.sum()), y)


def _raises_in_numpy(x):
    known = float(x.sum())
    return (x * known) @ np.ones(7)


def _handles(x):
    try:
        return np.linalg.inv(x * float(x[0, 0]))
    except np.linalg.LinAlgError as error:
        return str(error), x + 1


def _generates(x):
    first = float(x[0, 0])

    def rows():
        for row in x:
            yield row * first

    return rows()


def _reads(x):
    return x[0].tolist(), len(time.tzname)


@pytest.mark.parametrize("function", [_raises, _raises_in_numpy, _handles, _generates, _reads])
def test_the_objects_of_the_process_are_not_searched(function, monkeypatch):
    """What exceptions, generators and modules hold of the trace is found without that."""

    def outcome(f):
        try:
            result = f(np.ones((3, 3)))
        except (KeyError, ValueError) as error:
            frame = error.__traceback__
            while frame.tb_next:
                frame = frame.tb_next
            return type(error), error.args[1:], {**frame.tb_frame.f_locals}
        return list(result)

    jitted = rune_jit.jit(function, fallback="silent")
    searches = []
    real = gc.get_referrers
    monkeypatch.setattr(gc, "get_referrers", lambda *x: searches.append(x) or real(*x))
    assert_matches(outcome(jitted), outcome(function))
    assert_matches(outcome(jitted), outcome(function))
    assert not searches


def test_times_on_numpy_are_those_of_numpy_alone(monkeypatch):
    """What a jitted function calls that is jitted, too, may only have become slow by that."""
    monkeypatch.setattr(Trial, "is_over", property(lambda self: len(self._numpys) == 2))

    @rune_jit.jit
    def halvings(y):
        count = 0
        while float(np.abs(y)) > 0.25:
            y = y / 2
            count += 1
        return count

    @rune_jit.jit
    def counts(x):
        return [halvings(v * 2) for v in x]

    expected = [3, 2, 1, 3, 4, 4]
    known = [(check(counts(x()), expected), halvings.cache_info().size)[1] for _ in range(5)]
    assert known == [0, 0, 0, 0, 1]  # the third and fifth calls are NumPy's


def test_times_of_programs_with_state_on_numpy(monkeypatch):
    monkeypatch.setattr(Trial, "is_over", property(lambda self: len(self._numpys) == 2))

    class Filter:
        def __init__(self):
            self.total = np.zeros(4)

        @rune_jit.jit
        def gain(self, x):
            return 1 / (1 + x * x)

        @rune_jit.jit
        def update(self, x):
            self.total = self.total + self.gain(x) * x
            return self.total

    ours, total, calls = Filter(), np.zeros(4), []
    for _ in range(8):
        total = total + x(4) / (1 + x(4) * x(4))
        np.testing.assert_allclose(ours.update(x(4)), total)
        info = Filter.gain.cache_info()
        calls.append(info.hits + info.misses)
    # The first call is NumPy's because it assigns; after it, the second turn.
    assert calls[:4] == [1, 1, 1, 1] and calls[-1] == 2


def scaled(x):
    return x / max(x.max().tolist(), 1.0)


def shifted(x):
    return x - min(x.min().tolist(), 0.0)


@pytest.mark.parametrize("size", [50, 20_000])
def test_small_arrays_do_not_pay_for_reading_many_functions(size, monkeypatch):
    """A call that read the sources of all methods of a library took seconds."""
    read = []

    def noted(function):
        read.append(function.__name__)
        return with_loops_apart(function)

    with_loops_apart = rebinder.with_loops_apart
    monkeypatch.setattr(rebinder, "with_loops_apart", noted)
    monkeypatch.setattr(timed, "_SLOW_READING", 0.0)

    def f(x):
        y = scaled(x)
        return shifted(y) + 1

    jitted = rune_jit.jit(f)
    for _ in range(2):
        check(jitted(x(size)), f(x(size)))
    is_small = size == 50
    assert ("reading its functions' sources takes long" in jitted.explain()) == is_small
    assert ("shifted" in read) != is_small


def test_time_that_other_threads_take_does_not_hide_slow_calls(monkeypatch):
    """A compilation waits for other threads: that is time of the clock, but none of this thread."""
    monkeypatch.undo()
    ticks = itertools.count(0, 1000)
    clock = types.SimpleNamespace(thread_time=time.thread_time, perf_counter=lambda: next(ticks))
    monkeypatch.setattr(programs, "time", clock)
    monkeypatch.setattr(timed, "_SLOW", 0.01)

    jitted = rune_jit.jit(asks)
    check(jitted(x(20), 3000), asks(x(20), 3000))
    *_, entry = jitted._runner.known.cache.entries()
    assert "less time than tracing" in entry.runs_on_numpy
