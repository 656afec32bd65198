"""Traces of functions that are mostly Python's work end, and NumPy runs the calls."""

import itertools
import math

import numpy as np
from compare import assert_matches

import rune_jit
from rune_jit.calls import entries
from rune_jit.calls.call_trace import CallTrace
from rune_jit.calls.constants import Constants
from rune_jit.tracing.steps import Steps


def _x():
    return np.arange(1.0, 5.0)


def _mostly_python(x):
    near = set()
    for i in range(100):
        for j in range(60):
            if math.hypot(i, j) < 50:
                near.add((i, j))
    return x + len(near)


def _traces(monkeypatch):
    traces = []
    traced = CallTrace.traced
    monkeypatch.setattr(CallTrace, "traced", lambda self: (traces.append(self), traced(self))[1])
    return traces


def test_ifs_and_reads_of_modules_are_steps(monkeypatch):
    traces = _traces(monkeypatch)
    jitted = rune_jit.jit(_mostly_python)
    assert_matches(jitted(_x()), _mostly_python(_x()))
    assert "10,000 steps of Python" in jitted.explain()
    count = len(traces)
    assert_matches(jitted(_x()), _mostly_python(_x()))
    assert len(traces) == count  # NumPy runs the call


def test_a_program_is_made_when_numpy_has_taken_long(monkeypatch):
    monkeypatch.setattr(entries, "_PATIENCE", 0.0)
    jitted = rune_jit.jit(_mostly_python)
    for _ in range(3):
        assert_matches(jitted(_x()), _mostly_python(_x()))
    assert "as one program" in jitted.explain()
    assert "as one program" in _explained(rune_jit.jit(_mostly_python, fallback="error"))


def _explained(jitted):
    jitted(_x())
    return jitted.explain()


def test_operations_allow_further_steps():
    def f(x):
        for i in range(1200):
            if math.hypot(i, i) < 50:
                x = x + i
            x = x - 1
            x = x * 1.0
        return x

    jitted = rune_jit.jit(f)
    assert_matches(jitted(_x()), f(_x()))
    assert "steps of Python" not in jitted.explain()


def test_objects_that_are_searched_are_steps():
    class Cell:
        def __init__(self, weight):
            self.weight = weight
            self.neighbours = []

    class Net:
        def __init__(self):
            self.cells = {i: Cell(i) for i in range(4000)}

        def weighted(self, x, i):
            self.cells[i].neighbours.append(i)
            return x * self.cells[i].weight

    net, other = Net(), Net()
    jitted = rune_jit.jit(Net.weighted)
    for i in (3, 4, 3):
        assert_matches(jitted(net, _x(), i), other.weighted(_x(), i))
    assert [c.neighbours for c in net.cells.values()] == [
        c.neighbours for c in other.cells.values()
    ]
    assert "steps of Python" in jitted.explain()


def test_a_list_whose_numbers_are_needed_one_by_one_is_constant(monkeypatch):
    def f(x, bounds):
        for low, high in itertools.pairwise(bounds):
            x = x + np.zeros(int(high - low)).size
        return x

    counts = []
    add = Constants.add
    monkeypatch.setattr(Constants, "add", lambda *args: (counts.append(args), add(*args))[1])
    bounds = [float(i) for i in range(9)]
    jitted = rune_jit.jit(f)
    assert_matches(jitted(_x(), bounds), f(_x(), bounds))
    assert len(counts) <= 5
    assert "as one program" in jitted.explain()


def test_modules_names_that_a_trace_assigns_are_read_again():
    def f(x):
        before = math.tau
        a = x * math.tau
        math.tau = 2.0
        b = x * math.tau
        math.tau = before
        return a + b + x * math.tau

    jitted = rune_jit.jit(f)
    for _ in range(2):
        assert_matches(jitted(_x()), f(_x()))


def test_operations_on_known_arrays_are_steps():
    def f(x):
        total = 0.0
        for i in range(4000):
            cells = np.dstack(np.mgrid[i : i + 2, 0:3]).reshape(6, 2).tolist()
            total += cells[0][0]
        return x + total

    jitted = rune_jit.jit(f)
    assert_matches(jitted(_x()), f(_x()))
    assert "10,000 steps of Python" in jitted.explain()


def test_elements_of_known_arrays_are_steps():
    def reads(x):
        table, seen = np.arange(100.0), set()
        for i in range(120):
            for j in range(100):
                seen.add(table[j] * i)
        return x + len(seen)

    def writes(x):
        table, seen = np.arange(100.0), set()
        for i in range(120):
            seen.add(i)
            for j in range(100):
                table[j] = j - i
                seen.add(j)
        return x + table[3] + len(seen)

    for f in (reads, writes):
        jitted = rune_jit.jit(f)
        assert_matches(jitted(_x()), f(_x()))
        assert "10,000 steps of Python" in jitted.explain()


def test_code_that_is_read_takes_steps(tmp_path, monkeypatch):
    body = "    for i in range(3):\n        if i > 1:\n            x = x + i * 2.0 - i / 3.0\n"
    lines = [f"def part_{i}(x):\n{body * 8}    return x\n" for i in range(40)]
    calls = "".join(f"    x = part_{i}(x)\n" for i in range(40))
    (tmp_path / "many_parts.py").write_text(
        f"{''.join(lines)}\ndef whole(x):\n{calls}    return x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import many_parts

    steps = []
    note = Steps.note
    monkeypatch.setattr(
        Steps, "note", lambda self, trace, n: (steps.append(n), note(self, trace, n))[1]
    )
    jitted = rune_jit.jit(many_parts.whole)
    assert_matches(jitted(_x()), many_parts.whole(_x()))
    assert max(steps) > 10
