"""What calls do beside their results, they do at each call."""

import collections
import contextvars
import copy
import dataclasses
import datetime
import functools
import io
import itertools
import logging
import os
import queue
import sys
import time
import uuid
import warnings

import numpy as np
import pytest

import rune_jit
from rune_jit.calls.trial import Trial

X = np.array([1.0, 2.0, 3.0])
LOGGER = logging.getLogger(__name__)


class Handler(logging.Handler):
    def __init__(self, records):
        super().__init__()
        self.records = records

    def emit(self, record):
        self.records.append(record.getMessage())


class Account:
    __slots__ = ("_amount", "history", "observed")

    def __init__(self):
        self._amount, self.history, self.observed = 0, [], []

    @property
    def amount(self):
        return self._amount

    @amount.setter
    def amount(self, value):
        self._amount = value
        self.observed.append(value)


class Observed:
    def __init__(self, seen):
        self._value, self._seen = 0, seen

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, new):
        self._value = new
        self._seen.append(new)


class Registry:
    names = []  # noqa: RUF012


# Each makes a function and what it changes.


def of_list(change):
    def make():
        held = [4]

        def f(x):
            change(held)
            return x * 2

        return f, held

    return make


def deques():
    held = collections.deque(maxlen=3)

    def f(x):
        held.append(len(held) + x.shape[0])
        return x * 2

    return f, held


def sets():
    held = set()

    def f(x):
        held.add(len(held))
        return x * 2

    return f, held


def counters():
    held = collections.Counter()

    def f(x):
        held["calls"] += 1
        held.update("ab")
        return x * 2

    return f, held


def default_dicts():
    held = collections.defaultdict(list)

    def f(x):
        held[x.ndim].append(x.shape)
        return x * 2

    return f, held


def lists_of_classes():
    Registry.names.clear()

    def f(x):
        Registry.names.append("f")
        return x * len(Registry.names)

    return f, Registry.names


def properties():
    seen = []
    observed = Observed(seen)

    def f(x):
        observed.value += 1
        return x * 2

    return f, seen


def slots():
    account = Account()

    def f(x):
        account.amount += 3
        account.history.append(x.size)
        return x * account.amount

    return f, [account.history, account.observed]


def attributes_of_functions():
    def f(x):
        g.calls = getattr(g, "calls", 0) + 1
        return x * g.calls

    def g():
        pass

    return f, vars(g)


def items():
    class Table:
        def __init__(self):
            self.read = []

        def __getitem__(self, i):
            self.read.append(i)
            return 2.0

    table = Table()

    def f(x):
        return x * table[1]

    return f, table.read


def iterators():
    numbers = itertools.count()

    def f(x):
        return x * next(numbers)

    return f, []


def generators():
    def numbers():
        yield from range(100)

    made = numbers()

    def f(x):
        return x * next(made)

    return f, []


def files():
    written = io.StringIO()

    def f(x):
        written.write("a")
        return x * 2

    class Text:
        def __eq__(self, other):
            return str(self) == str(other)

        def __str__(self):
            return written.getvalue()

    return f, Text()


def loggers():
    records = []
    LOGGER.handlers[:] = [Handler(records)]
    LOGGER.setLevel(logging.INFO)

    def f(x):
        LOGGER.info("shape %s", x.shape)
        return x * 2

    return f, records


def queues():
    waiting = queue.Queue()

    def f(x):
        waiting.put(1)
        return x * waiting.qsize()

    return f, waiting.queue


def contexts():
    variable = contextvars.ContextVar("variable", default=0)

    def f(x):
        variable.set(variable.get() + 1)
        return x * variable.get()

    return f, []


def environment():
    os.environ["RUNE_JIT_TEST"] = ""

    def f(x):
        os.environ["RUNE_JIT_TEST"] += "a"
        return x * len(os.environ["RUNE_JIT_TEST"])

    return f, []


def arguments():
    @dataclasses.dataclass
    class Body:
        position: np.ndarray
        history: list

        def move(self):
            self.position = self.position + 1
            self.history.append("moved")

    body = Body(X.copy(), [])

    def f(x):
        body.move()
        return body.position

    return f, body.history


CASES = {
    "append": of_list(lambda held: held.append(len(held))),
    "insert": of_list(lambda held: held.insert(0, 5)),
    "extend": of_list(lambda held: held.extend(range(2))),
    "slice": of_list(lambda held: held.__setitem__(slice(0, 0), [1, 2])),
    "pop": of_list(lambda held: (held.append(3), held.pop(0))),
    "sort": of_list(lambda held: (held.append(-len(held)), held.sort())),
    **{f.__name__: f for f in (deques, sets, counters, default_dicts, lists_of_classes)},
    **{f.__name__: f for f in (properties, slots, attributes_of_functions, items, iterators)},
    **{f.__name__: f for f in (generators, files, loggers, queues, contexts, environment)},
    "dataclasses": arguments,
}


@pytest.mark.parametrize("name", CASES)
def test_effects(name):
    results = []
    for wrap in (lambda f: f, rune_jit.jit):
        f, held = CASES[name]()
        f = wrap(f)
        results.append(([f(X.copy()).tolist() for _ in range(6)], copied(held)))
    assert results[0] == results[1]


def copied(held):
    if isinstance(held, list):
        return [copied(x) if isinstance(x, list) else x for x in held]
    return copy.copy(held) if isinstance(held, (dict, set, collections.deque)) else str(held)


def test_dataclasses_among_the_arguments():
    @dataclasses.dataclass
    class Body:
        position: np.ndarray
        history: list
        notes: dict

    def f(body):
        body.history.append(body.position[0])
        body.notes["seen"] = body.notes.get("seen", 0) + 1
        return body.position * 2

    ours, theirs = (Body(X.copy(), [], {}) for _ in range(2))
    jitted = rune_jit.jit(f)
    for _ in range(4):
        np.testing.assert_array_equal(jitted(ours), f(theirs))
        assert ours.history == theirs.history
        assert ours.notes == theirs.notes


def test_reports_in_segments_are_of_the_line_that_makes_them(caplog):
    def f(x):
        if x.sum() > 0:
            warnings.warn("large", stacklevel=1)
            logging.warning("large")
        return x * 2

    jitted = rune_jit.jit(f, fallback="silent")
    for _ in range(4):
        with pytest.warns(UserWarning, match="large") as found:
            jitted(X)
        line = f.__code__.co_firstlineno + 2
        assert [(x.filename, x.lineno) for x in found] == [(__file__, line)]
        assert [(x.filename, x.lineno) for x in caplog.records] == [("test_effects.py", line + 1)]
        caplog.clear()


def test_warnings_are_given_at_each_call():
    def f(x):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return x * 2

    jitted = rune_jit.jit(f)
    for _ in range(4):
        with pytest.warns(DeprecationWarning, match="old"):
            jitted(X)


def test_standard_streams(capsys):
    def f(x):
        sys.stdout.write("a")
        print("b", file=sys.stderr)
        return x * 2

    jitted = rune_jit.jit(f)
    for _ in range(4):
        jitted(X)
    assert capsys.readouterr() == ("aaaa", "b\nb\nb\nb\n")


def test_open(tmp_path):
    def f(x):
        with open(tmp_path / "log", "a") as file:
            file.write("a")
        return x * 2

    jitted = rune_jit.jit(f)
    for _ in range(4):
        jitted(X)
    assert (tmp_path / "log").read_text() == "aaaa"


def test_results_that_differ_from_call_to_call():
    @rune_jit.jit
    def f(x):
        return x * 2, uuid.uuid4(), time.perf_counter_ns()

    @rune_jit.jit
    def g(x):
        return x * 2, datetime.datetime.now()

    for function in (f, g):
        results = [function(X)[1:] for _ in range(4)]
        assert len(set(results)) == 4


def test_memoized_values_do_not_keep_a_function_from_being_one_program():
    table = {}

    def window(n):
        if n not in table:
            table[n] = np.hanning(n)
        return table[n]

    @rune_jit.jit
    def f(x):
        return x * window(len(x))

    for _ in range(3):
        np.testing.assert_allclose(f(X), X * np.hanning(3))
    assert "as one program" in f.explain()


def test_a_program_only_may_make_lists_longer_while_it_is_traced():
    traces = []

    @functools.partial(rune_jit.jit, fallback="error")
    def f(x):
        traces.append(x.shape)
        return x * 2

    for _ in range(3):
        f(X)
    assert traces == [(3,)]


def test_class_and_messages_of_arrays():
    def f(x):
        try:
            x.nonsense  # noqa: B018
        except AttributeError as error:
            text = str(error)
        return x.__class__.__name__, x.__class__ is np.ndarray, isinstance(x, x.__class__), text

    def g(x):
        try:
            x[0].nonsense  # noqa: B018
        except AttributeError as error:
            return str(error), x[0].__class__.__name__

    for function in (f, g):
        assert rune_jit.jit(function)(X) == function(X)


def test_truncation():
    def f(x):
        import math

        return math.trunc(x[0]), math.floor(x[1]), math.ceil(x[2]), math.trunc(x.sum())

    jitted = rune_jit.jit(f)
    for x in (X * 1.5, -X * 1.5):
        assert jitted(x) == f(x)
        assert [type(v) for v in jitted(x)] == [type(v) for v in f(x)]


def test_texts_of_objects_are_not_asked_for():
    """Their classes compute them, and may change something."""

    class Filter:
        def __init__(self):
            self.gain, self.asked = np.ones(3), 0

        def __repr__(self):
            self.asked += 1
            return "a filter"

        @rune_jit.jit
        def step(self, x, options):
            return x * self.gain

    filters = [Filter(), Filter()]
    for options in ({"a": 1}, {"a": filters[1], "b": [filters]}, filters[0]):
        for each in filters:
            np.testing.assert_array_equal(each.step(np.arange(3.0), options), np.arange(3.0))
            each.gain = (
                each.gain.astype("f4") if each.gain.dtype == "f8" else each.gain.astype("f8")
            )
    Filter.step.explain()
    assert [each.asked for each in filters] == [0, 0]


def test_what_computes_nothing_and_prints_is_compared_with_numpy(monkeypatch, capsys):
    monkeypatch.setattr(Trial, "verdict", lambda self: "it is faster there")

    @rune_jit.jit
    def size():
        print(f"{np.zeros((4, 5)).nbytes} bytes")

    for _ in range(8):
        size()
    assert capsys.readouterr().out == 8 * "160 bytes\n"
    assert size.explain() == "size: on NumPy: it is faster there"
