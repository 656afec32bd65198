"""Functions that assign attributes, globals, variables of outer functions, and elements of lists
and dicts: one program, whose results are written back after each call."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit
from rune_jit.calls.segmented import Trial


@pytest.fixture(autouse=True)
def _never_on_numpy_because_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def _random(i: int, *shape: int) -> Any:
    return np.random.default_rng(i).random(shape)


def _state(x: Any) -> Any:
    """What an object holds, objects in it as dicts."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(_state, x))
    if isinstance(x, dict):
        return {key: _state(value) for key, value in x.items()}
    if hasattr(x, "__slots__") and not isinstance(x, np.generic):
        return {key: getattr(x, key) for key in x.__slots__}
    is_object = hasattr(x, "__dict__") and not isinstance(x, (np.ndarray, np.generic))
    return {key: _state(value) for key, value in vars(x).items()} if is_object else x


def _outcome(function: Callable[..., Any], args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


def _follow(make: Callable[[], Any], args: Callable[[int], tuple[Any, ...]], calls: int = 7) -> Any:
    """Calls the object that `make` makes, and its jitted twin."""
    theirs, ours = make(), make()
    jitted = rune_jit.jit(ours, fallback="silent")
    for i in range(calls):
        given, taken = args(i), copy.deepcopy(args(i))
        wanted, found = _outcome(theirs, given), _outcome(jitted, taken)
        assert_matches(_state(found), _state(wanted))
        assert_matches(taken, given)
        assert_matches(_state(ours), _state(theirs))
        if hasattr(theirs, "__dict__"):
            assert list(vars(ours)) == list(vars(theirs))
    return jitted


class _Adam:
    def __init__(self) -> None:
        self.steps, self.first, self.second = 0, None, None

    def __call__(self, w: Any, g: Any) -> Any:
        if self.first is None:
            self.first, self.second = np.zeros_like(w), np.zeros_like(w)
        self.steps += 1
        self.first = 0.9 * self.first + 0.1 * g
        self.second = 0.99 * self.second + 0.01 * g * g
        mean = self.first / (1 - 0.9**self.steps)
        return w - 0.1 * mean / (np.sqrt(self.second / (1 - 0.99**self.steps)) + 1e-8)


class _Kalman:
    def __init__(self) -> None:
        self.x, self.covariance, self.updates = np.zeros(2), np.eye(2), 0
        self.motion, self.sensor = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])

    def predict(self) -> None:
        self.x = self.motion @ self.x
        self.covariance = self.motion @ self.covariance @ self.motion.T + 0.1 * np.eye(2)

    def __call__(self, z: Any) -> Any:
        self.predict()
        seen = self.sensor @ self.covariance @ self.sensor.T + 0.5
        gain = self.covariance @ self.sensor.T @ np.linalg.inv(seen)
        self.x = self.x + gain @ (z - self.sensor @ self.x)
        self.covariance = (np.eye(2) - gain @ self.sensor) @ self.covariance
        self.updates += 1
        return self.x


class _Normalization:
    def __init__(self) -> None:
        self.mean, self.variance, self.seen = np.zeros(3), np.ones(3), 0

    def __call__(self, x: Any) -> Any:
        mean, variance = x.mean(axis=0), x.var(axis=0)
        self.mean = 0.9 * self.mean + 0.1 * mean
        self.variance *= 0.9
        self.variance += 0.1 * variance
        self.seen += len(x)
        return (x - mean) / np.sqrt(variance + 1e-5)


class _Network:
    def __init__(self) -> None:
        self.layers, self.weights = [_Normalization(), _Normalization()], np.ones((3, 2))

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x @ self.weights


def _counter() -> Any:
    count = 0

    def count_calls(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * count, count

    return count_calls


class _Momentum:
    """State in a dict."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"count": 0}

    def __call__(self, w: Any) -> Any:
        if "velocity" not in self.state:
            self.state["velocity"] = np.zeros_like(w)
        self.state["velocity"] = 0.9 * self.state["velocity"] - w
        self.state["count"] += 1
        return self.state["velocity"] + w


def _rows(i: int) -> tuple[Any, ...]:
    return (_random(i, 4, 3),)


PROGRAMS: dict[str, tuple[Callable[[], Any], Callable[[int], tuple[Any, ...]]]] = {
    "Adam": (_Adam, lambda i: (_random(i, 4), _random(i + 9, 4))),
    "a Kalman filter": (_Kalman, lambda i: (_random(i, 1),)),
    "running statistics": (_Normalization, _rows),
    "objects in objects": (_Network, _rows),
    "a counter in a closure": (_counter, _rows),
    "a dict": (_Momentum, _rows),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program(name: str) -> None:
    jitted = _follow(*PROGRAMS[name])
    assert "as one program" in jitted.explain()
    assert jitted.cache_info().misses <= 4


_total = 0.0


def _summed(x: Any) -> Any:
    global _total
    _total = _total + x.sum()
    return _total * 2


def test_globals() -> None:
    global _total
    runs = []
    jitted = rune_jit.jit(_summed)
    for function in (_summed, jitted):
        _total = 0.0
        runs.append([(function(_random(i, 3)), _total) for i in range(6)])
    assert_matches(runs[1], runs[0])
    assert "as one program" in jitted.explain()


def _adam_in_dicts(params: Any, grads: Any, state: Any) -> Any:
    state["t"] += 1
    for key in params:
        state["m"][key] = 0.9 * state["m"][key] + 0.1 * grads[key]
        params[key] -= 0.1 * state["m"][key] / (1 - 0.9 ** state["t"])
    return params


def test_dicts_among_the_arguments() -> None:
    def start() -> Any:
        return {"w": np.ones(3), "b": np.zeros(2)}, {"m": {"w": np.zeros(3), "b": np.zeros(2)}}

    (params, state), (ours, our_state) = start(), start()
    state["t"] = our_state["t"] = 0
    moments, weights = our_state["m"], ours["w"]
    jitted = rune_jit.jit(_adam_in_dicts, fallback="error")
    for i in range(5):
        grads = {"w": _random(i, 3), "b": _random(i, 2)}
        _adam_in_dicts(params, grads, state)
        assert jitted(ours, grads, our_state) is ours
        assert_matches(ours, params)
        assert_matches(our_state, state)
        assert our_state["m"] is moments and ours["w"] is weights
    assert jitted.cache_info().misses == 1


def _shuffled(items: Any, table: Any) -> Any:
    items[0], items[1] = items[1], items[0] * 2
    table["new"] = items[0] + 1
    del table["old"]
    return len(items)


def test_lists_and_keys() -> None:
    jitted = rune_jit.jit(_shuffled)
    for i in range(3):
        given = [_random(i, 3), _random(i + 5, 3)], {"old": 1.0, "kept": _random(i, 2)}
        taken = copy.deepcopy(given)
        assert jitted(*taken) == _shuffled(*given)
        assert_matches(taken, given)
        assert list(taken[1]) == list(given[1])
    assert "as one program" in jitted.explain()


# What runs in segments, or on NumPy, and is right.


class _History:
    def __init__(self) -> None:
        self.losses: list[Any] = []
        self.best: Any = None

    def __call__(self, x: Any) -> Any:
        loss = x.sum()
        self.losses.append(loss)
        if self.best is None or float(loss) < float(self.best.sum()):
            self.best = x
        return loss


class _Periodic:
    def __init__(self) -> None:
        self.step, self.sum = 0, np.zeros(3)

    def __call__(self, x: Any) -> Any:
        self.step += 1
        self.sum = self.sum + x[0]
        if self.step % 3 == 0:
            self.sum = self.sum * 0
        return self.sum


class _Window:
    """Views of one array."""

    def __init__(self) -> None:
        self.buffer = np.zeros(4)
        self.tail = self.buffer[1:]

    def __call__(self, x: Any) -> Any:
        self.buffer = np.append(self.buffer[1:], x.sum())
        self.tail = self.buffer[1:]
        self.tail += 1
        return self.buffer * 2


class _Failing:
    def __init__(self) -> None:
        self.done, self.table = 0, np.arange(4.0)

    def __call__(self, x: Any) -> Any:
        self.done += 1
        self.table = self.table + 1
        picked = self.table[(x[0] * 6).astype(np.int64)]
        self.table = self.table * 2
        return picked


class _Slotted:
    __slots__ = ("count", "mean")

    def __init__(self) -> None:
        self.count, self.mean = 0, np.zeros(3)

    def __call__(self, x: Any) -> Any:
        self.count += 1
        self.mean = self.mean + (x.mean(axis=0) - self.mean) / self.count
        return self.mean, self.count


class _Swapped:
    """Two names of one array."""

    def __init__(self) -> None:
        self.now = self.start = np.ones(3)

    def __call__(self, x: Any) -> Any:
        self.now += x[0]
        self.now = self.now + self.start
        return self.now, self.start


@pytest.mark.parametrize(
    "make", [_History, _Periodic, _Window, _Failing, _Slotted, _Swapped], ids=lambda c: c.__name__
)
def test_other_state(make: Callable[[], Any]) -> None:
    _follow(make, _rows, 10)


def test_a_state_that_is_an_argument_too() -> None:
    class Last:
        def __init__(self) -> None:
            self.last = np.ones(3)

        def __call__(self, x: Any) -> Any:
            x += self.last
            self.last = x
            return x

    theirs, ours = Last(), Last()
    jitted = rune_jit.jit(ours)
    x, y = np.ones(3), np.ones(3)
    for _ in range(5):
        np.testing.assert_array_equal(jitted(y), theirs(x))
        assert ours.last is y
        np.testing.assert_array_equal(y, x)


def test_each_object_has_its_state() -> None:
    class Filter:
        def __init__(self, factor: float) -> None:
            self.factor, self.level = factor, 0.0

        @rune_jit.jit
        def step(self, x: Any) -> Any:
            self.level = self.factor * self.level + x.sum()
            return self.level

    one, other = Filter(0.5), Filter(0.25)
    levels = [0.0, 0.0]
    for i in range(6):
        x = _random(i, 3)
        levels = [0.5 * levels[0] + x.sum(), 0.25 * levels[1] + x.sum()]
        assert_matches([one.step(x), other.step(x)], levels)
        assert_matches([one.level, other.level], levels)
    one.level = 0.0  # somebody else assigns it
    assert_matches(one.step(x), x.sum())


def test_state_of_other_shapes() -> None:
    filter_ = _Momentum()
    jitted = rune_jit.jit(filter_)
    twin = _Momentum()
    for shape in ((3,), (3,), (3,), (4,), (4,), (4,)):
        if len(filter_.state.get("velocity", np.zeros(shape))) != shape[0]:
            filter_.state, twin.state = {"count": 0}, {"count": 0}
        x = _random(1, *shape)
        assert_matches(jitted(x), twin(x))
        assert_matches(filter_.state, twin.state)


def test_changing_strings_do_not_make_a_program_each() -> None:
    class Named:
        def __init__(self) -> None:
            self.name = ""

        def __call__(self, x: Any) -> Any:
            self.name = self.name + "a"
            return x + len(self.name)

    jitted = _follow(Named, _rows, 20)
    assert jitted.cache_info().misses < 16


def test_a_program_is_faster_than_segments() -> None:
    x = _random(0, 200, 3)
    layer = _Normalization()
    jitted = rune_jit.jit(layer)
    for _ in range(4):
        jitted(x)
    start = time.perf_counter()
    for _ in range(50):
        jitted(x)
    assert time.perf_counter() - start < 0.5


def test_a_list_that_is_returned_as_it_was_is_the_same_list() -> None:
    def clip(gradients: list[np.ndarray], limit: float) -> list[np.ndarray]:
        total = np.sqrt(sum((g**2).sum() for g in gradients))
        if total > limit:
            return [g * (limit / total) for g in gradients]
        return gradients

    jitted = rune_jit.jit(clip)
    for scale in (1.0, 0.1, 2.0, 0.01, 0.5):
        gradients = [np.full(3, scale), np.full((2, 2), -scale)]
        expected = clip(gradients, 1.0)
        result = jitted(gradients, 1.0)
        assert (result is gradients) == (expected is gradients)
        for ours, theirs in zip(result, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-14)


rate, count = 0.5, 1
settings = {"rate": 0.5, "name": "a"}


class Scheduled:
    def __init__(self) -> None:
        self.rate, self.weights = 0.5, np.zeros(3)

    def step(this, gradient: np.ndarray) -> Any:
        this.weights -= this.rate * gradient
        return this.weights.sum()


def _with_global(x: np.ndarray) -> Any:
    return x * rate + count


def _with_dict(x: np.ndarray) -> Any:
    return x * settings["rate"] if settings["name"] == "a" else x


def _with_condition(x: np.ndarray) -> Any:
    return x if rate > 3 else -x * rate


@pytest.mark.parametrize("function", [_with_global, _with_dict, _with_condition])
def test_numbers_outside_that_differ_at_each_call(function: Callable[..., Any]) -> None:
    global rate, count
    jitted = rune_jit.jit(function)
    x = np.arange(200.0)
    for i in range(12):
        rate, count = 0.5 * i, i
        settings["rate"] = 0.25 * i
        np.testing.assert_array_equal(jitted(x), function(x))
    assert jitted.cache_info().misses <= (16 if function is _with_condition else 3)
    rate = np.float32(2)  # type: ignore[assignment]
    settings["name"] = "b"
    result, expected = jitted(x), function(x)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_numbers_of_variables_and_objects_that_differ_at_each_call() -> None:
    offset = 0.0

    def shifted(x: np.ndarray) -> np.ndarray:
        return x + offset

    moved, stepped = rune_jit.jit(shifted), rune_jit.jit(Scheduled.step)
    ours, theirs = Scheduled(), Scheduled()
    x = np.arange(3.0)
    for i in range(8):
        offset = 0.5 * i
        ours.rate = theirs.rate = 0.1 * i
        np.testing.assert_array_equal(moved(x), shifted(x))
        np.testing.assert_allclose(stepped(ours, x), theirs.step(x), rtol=1e-15)
        np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-15)
    assert moved.cache_info().misses == stepped.cache_info().misses == 3


def test_programs_end_where_what_is_outside_always_differs() -> None:
    global count

    def repeated(x: np.ndarray) -> Any:
        return sum(x * k for k in range(count))

    jitted = rune_jit.jit(repeated)
    for i in range(1, 30):
        count = i
        np.testing.assert_allclose(jitted(np.ones(3)), repeated(np.ones(3)))
    assert jitted.cache_info().misses < 20
    assert "what it reads outside differs" in jitted.explain() or "on NumPy" in jitted.explain()


class Logged:
    def __init__(self) -> None:
        self.mean, self.log = np.zeros(3), []  # type: ignore[var-annotated]

    def update(this, x: np.ndarray) -> np.ndarray:
        this.mean = this.mean * 0.5 + x
        if this.mean.sum() > 3:
            this.log.append(float(this.mean.sum()))
        return this.mean.copy()

    def note(this, x: np.ndarray) -> np.ndarray:
        this.mean = this.mean * 0.5 + x
        this.log.append(1)
        return this.mean.copy()


@pytest.mark.parametrize("method", [Logged.update, Logged.note])
def test_lists_of_objects_that_grow(method: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(method)
    ours, theirs = Logged(), Logged()
    for i in range(8):
        x = np.full(3, float(i % 4))
        np.testing.assert_array_equal(jitted(ours, x), method(theirs, x))
        assert ours.log == theirs.log


class _Scaled:
    """Counts its calls, and only reads its array."""

    def __init__(self) -> None:
        self.factors = np.arange(3.0)
        self.count = 0
        self.rate = 1.0

    def step(self, x: Any) -> Any:
        self.count += 1
        self.rate *= 0.5
        return self.rate * self.factors * x

    def size(self) -> Any:
        return (self.factors**2).sum() * self.rate


def test_methods_assign_numbers_of_objects_that_hold_arrays() -> None:
    step, theirs, ours = rune_jit.jit(_Scaled.step), _Scaled(), _Scaled()
    for i in range(7):
        assert_matches(step(ours, _random(i, 3)), theirs.step(_random(i, 3)))
        assert_matches(_state(ours), _state(theirs))
    assert "one program" in step.explain()


def test_what_is_assigned_elsewhere_is_an_argument() -> None:
    size, ours = rune_jit.jit(_Scaled.size), _Scaled()
    for i in range(20):
        assert_matches(size(ours), _Scaled.size(ours))
        ours.factors, ours.rate = _random(i, 3), ours.rate / 2
    assert size.cache_info().misses <= 4
    assert "one program" in size.explain()


def test_what_changes_at_each_call_and_is_no_argument_makes_no_program_each() -> None:
    class Named:
        name = ""
        factors = np.arange(3.0)

        def size(self) -> Any:
            return self.factors.sum() + len(self.name)

    size, ours = rune_jit.jit(Named.size), Named()
    for i in range(30):
        assert_matches(size(ours), Named.size(ours))
        ours.name = "a" * i
    assert size.cache_info().misses < 16


def test_objects_of_which_each_is_used_little_run_on_numpy() -> None:
    size = rune_jit.jit(_Scaled.size)
    for i in range(200):
        scaled = _Scaled()
        scaled.rate = float(i)  # which is no argument, so each has a program of its own
        assert_matches(size(scaled), _Scaled.size(scaled))
    assert size.cache_info().misses <= 40
    assert "most of its programs serve one call" in size.explain()
    for _ in range(600):  # this one is used much
        assert_matches(size(scaled), _Scaled.size(scaled))
    assert "one program" in size.explain().splitlines()[-1]


class _Checked:
    """An object without arrays, whose methods ask what they are given."""

    def by_isinstance(self, x: Any) -> Any:
        return self._doubled(x)

    def _doubled(self, x: Any) -> Any:
        return x * 2 if isinstance(x, np.ndarray) else x * 3

    def by_pattern(self, x: Any) -> Any:
        return self._matched(x)

    def _matched(self, x: Any) -> Any:
        match x:
            case np.ndarray():
                return x * 2
        return x * 3

    def by_type(self, x: Any) -> Any:
        return self._compared(x)

    def _compared(self, x: Any) -> Any:
        return x * 2 if type(x) is np.ndarray else x * 3

    def in_segments(self, x: Any) -> Any:
        print(x.sum())
        return self._doubled(x + 1)


@pytest.mark.parametrize("name", ["by_isinstance", "by_pattern", "by_type", "in_segments"])
def test_methods_of_objects_without_arrays_know_arrays(name: str) -> None:
    method = getattr(_Checked, name)
    jitted = rune_jit.jit(method, fallback="silent")
    for i in range(4):
        assert_matches(jitted(_Checked(), _random(i, 3)), method(_Checked(), _random(i, 3)))


_scale = np.arange(3.0)


def _scaled_sum(x: Any) -> Any:
    return (_scale * x).sum()


def _over_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    def over_rows(rows: Any) -> Any:
        return np.array([function(row) for row in rows])

    return over_rows


def _shifted(by: Any) -> Callable[..., Any]:
    def shifted(x: Any) -> Any:
        return _scaled_sum(x) + by.sum()

    return shifted


def test_functions_that_are_returned_read_globals_as_they_are() -> None:
    global _scale
    over_rows, shifted = rune_jit.jit(_over_rows), rune_jit.jit(_shifted)
    for i in range(6):
        rows, by = _random(i, 2, 3), _random(i + 9, 4)
        pairs = [(over_rows(_scaled_sum), _over_rows(_scaled_sum), rows)]
        pairs.append((shifted(by), _shifted(by), rows[0]))
        for made, wanted, x in pairs:
            assert_matches(made(x), wanted(x))
            _scale = _scale + 1
            assert_matches(made(x), wanted(x))


class _Filter:
    def __init__(self, order: int = 2) -> None:
        self.order, self.calls, self.mean = order, 0, np.zeros(3)

    def step(self, x: Any) -> Any:
        self.calls += 1
        self.mean = 0.5 * self.mean + x * self.order
        return self.mean / self.calls


def test_what_changes_between_calls_with_known_programs() -> None:
    """Calls like the last one with state take a shorter way, those after a change do not."""

    def replace(f: Any) -> None:
        f.mean = f.mean.astype(np.float32)

    changes: list[Callable[[Any], None]] = [
        lambda f: setattr(f, "order", 3),
        lambda f: setattr(f, "mean", np.ones((2, 3))),
        lambda f: setattr(f, "mean", 2),
        lambda f: setattr(f, "calls", 10**30),
        lambda f: setattr(f, "calls", True),
        lambda f: setattr(f, "calls", 1.5),
        lambda f: setattr(f, "mean", None),
        lambda f: delattr(f, "mean"),
        lambda f: setattr(f, "extra", 1),
        replace,
    ]
    for change in changes:
        jitted = rune_jit.jit(_Filter.step)
        ours, theirs = _Filter(), _Filter()
        for i in range(16):
            if i == 10:
                change(ours), change(theirs)
            x = _random(i, 3)
            found = _outcome(jitted, (ours, x.copy()))
            wanted = _outcome(_Filter.step, (theirs, x))
            assert_matches(found, wanted)
            assert_matches(_state(ours), _state(theirs))


def test_known_programs_of_two_objects_and_shapes() -> None:
    jitted = rune_jit.jit(_Filter.step)
    ours, theirs = [_Filter(), _Filter()], [_Filter(), _Filter()]
    for i in range(40):
        shape = (2, 3) if i > 30 else (3,)
        x = _random(i, *shape)
        assert_matches(jitted(ours[i % 2], x), theirs[i % 2].step(x))
        assert_matches(_state(ours[i % 2]), _state(theirs[i % 2]))


def test_a_new_attribute_that_is_none() -> None:
    class Holder:
        def __init__(self) -> None:
            self.weights = np.ones(3)

    def step(f: Any, x: Any) -> Any:
        f.last = None
        return x * f.weights

    jitted = rune_jit.jit(step)
    for i in range(4):
        f = Holder()
        for _ in range(1 + i % 2):
            assert_matches(jitted(f, _random(i, 3)), _random(i, 3))
            assert vars(f)["last"] is None
