"""Functions that run in segments and change objects, containers and globals."""

import collections
import copy
import functools
import types

import numpy as np
import pytest
from segment_checks import check, never_numpy, segmented, x

import rune_jit

__all__ = ["never_numpy"]  # a fixture of all tests here


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


Pair = collections.namedtuple("Pair", "first second")
KEEPS = {
    "tuple": lambda rows, total: (rows, (total, 1)),
    "named tuple": lambda rows, total: Pair(rows, [(total,)]),
    "queue": lambda rows, total: collections.deque([(rows, total)], maxlen=3),
    "error": lambda rows, total: ValueError(rows, (total,)),
    "partial": lambda rows, total: functools.partial(np.add, rows, out=None, where=total > 0),
    "defaults": lambda rows, total: lambda a=rows, *, b=(total,): (a, b),
}


@pytest.mark.parametrize("way", KEEPS)
@pytest.mark.parametrize("others", [0, 400])  # (many objects are not searched one by one)
def test_what_holds_values_for_good(way, others):
    kept = types.SimpleNamespace(others=[[i] for i in range(others)], last=None)

    def f(x):
        total = x.sum()
        kept.last = KEEPS[way](x.reshape(-1, 1), total)
        if total > 1e9:
            return None
        return float(total)

    def contents():
        last = kept.last
        if isinstance(last, functools.partial):
            return last.args, last.keywords
        if isinstance(last, types.FunctionType):
            return last.__defaults__, last.__kwdefaults__
        return list(getattr(last, "args", last))

    jitted = rune_jit.jit(f)
    for n in (4, 5):
        result = jitted(x(n))
        ours = contents()
        assert result == f(x(n))
        check(ours, contents())


OBJECTS = np.empty(2, object)


def test_arrays_of_objects_outside_get_values():
    """Python's garbage collector does not know what such arrays hold."""
    held = types.SimpleNamespace(inner=np.empty((2, 400), object))

    def f(x):
        OBJECTS[0] = OBJECTS[0] + x
        OBJECTS[1] += x.sum()
        held.inner[1, 7] = [x * 2]
        return OBJECTS[0] * 2

    jitted = rune_jit.jit(f)
    found = []
    for function in (f, jitted):
        OBJECTS[:] = [x(4), np.ones(2)]
        found.append([])
        for _ in range(3):
            found[-1].append((function(x(4)), *OBJECTS.copy(), *held.inner[1, 7]))
    for ours, theirs in zip(*found, strict=True):
        check(ours, theirs)


def adds(held, z, x):
    held.w += z
    return held.w


def adds_into(held, z, x):
    return np.add(held.w, z, out=held.w)


def adds_to_item(held, z, x):
    held.parts[0] += z
    return held.parts[0]


@pytest.mark.parametrize("use", [adds, adds_into, adds_to_item])
@pytest.mark.parametrize("make", [np.zeros, np.ones])
def test_known_arrays_added_to_an_objects_array(use, make):
    def f(held, x):
        w = use(held, make(4), x)
        first = x.max().tolist()
        w -= x
        held.parts[0] *= first
        return held.w * 2

    def held():
        w = np.ones(4)
        return types.SimpleNamespace(w=w, parts=[w])

    jitted = rune_jit.jit(f)
    for _ in range(3):
        ours, theirs = held(), held()
        check(jitted(ours, x(4)), f(theirs, x(4)))
        check(ours, theirs)
        assert ours.w is ours.parts[0]


class Slotted:
    __slots__ = ("__last", "total")

    def step(self, x):
        self.total = x.sum()
        if self.total > 100:
            self.total = 0
        self.__last = x * 2

    def state(self):
        return [self.total, self.__last]


@pytest.mark.parametrize("view", [lambda y: y.reshape(2, 2), lambda y: y[1:], lambda y: y[::-1].T])
def test_a_view_that_is_kept_and_returned_is_one_array(view):
    class Kept:
        pass

    kept = Kept()

    def f(x):
        y = x * 2
        kept.whole, kept.view = y, view(y)
        return kept.view, [kept.view], y

    jitted = rune_jit.jit(f)
    for _ in range(4):
        result, (again,), whole = jitted(np.arange(4.0))
        assert result is again is kept.view
        assert whole is kept.whole
        assert result.base is whole or result.base.base is whole
        result[0] = 9
        assert (whole == 9).any()


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
        return [*rows.ravel(), one.tolist(), *np.empty_like(rows[0]), *np.empty_like(x, object)]

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


def test_selections_that_are_kept():
    kept = chosen = None

    def f(x):
        nonlocal kept, chosen
        for limit in np.unique(np.round(x)):
            chosen = x[x > limit]
            kept = {"parts": (chosen, limit)}
            if chosen.size == 2:
                break

    jitted, done = rune_jit.jit(f, fallback="silent"), []
    for function in (f, jitted, jitted, jitted):
        function(x())
        assert kept["parts"][0] is chosen
        done.append((type(chosen), chosen.tolist(), kept["parts"][1]))
    assert done[1:] == done[:1] * 3


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


@pytest.mark.parametrize(
    "whole, part",
    [
        (lambda n: np.arange(1.0 * n), lambda a: a[1:-1]),
        (lambda n: np.zeros((n, 2))[:, 0], lambda a: a[1:-1]),
        (lambda n: np.zeros(n, [("a", "f8"), ("b", "f8")])["b"], lambda a: a[1:-1]),
        (lambda n: np.arange(1.0 * n), lambda a: a[::-1][1:-1]),
    ],
)
@pytest.mark.parametrize("part_first", [False, True])
def test_captured_arrays_that_share_memory(whole, part, part_first):
    """Writes to one of them show in the others."""

    def calls(jit):
        grid = whole(8)
        inner = part(grid)
        shown = []

        def step(k):
            nonlocal inner
            if part_first:
                inner *= 0.5
            change = grid[:-2] + grid[2:] - 2 * grid[1:-1]
            inner += 0.1 * change + k
            shown.append(copy.deepcopy([float(grid[3]), grid.sum()]))
            grid[0] = inner[-1]
            inner[0] += grid[0]
            return inner.sum(), grid[:3].copy()

        run = jit(step)
        return [(run(float(k)), grid.copy(), inner.copy()) for k in range(4)], shown

    check(calls(rune_jit.jit), calls(lambda f: f))


class _Layer:
    def __init__(self, dtype=None):
        self.dtype = np.float64 if dtype is None else dtype
        self.activation = np.tanh


def _kinds(held):
    """The classes of everything in containers and objects."""
    if isinstance(held, dict):
        return {key: _kinds(item) for key, item in held.items()}
    if isinstance(held, (list, tuple)):
        return [*map(_kinds, held)]
    if isinstance(held, (types.SimpleNamespace, _Layer)):
        return _kinds(vars(held))
    return type(held), held


def test_stored_functions_and_classes_are_numpys():
    def f(x, state, table, items):
        if x.sum().tolist() < 0:
            return None
        state.dtype, state.functions = np.float32, [np.cos, (np.add, special.erf)]
        state.layer = _Layer()
        table["layer"] = {"kind": np.int64, "layer": _Layer(np.float32)}
        items.append(np.mean)
        items.append(_Layer())
        return _Layer(np.sin)

    special = pytest.importorskip("scipy.special")
    jitted = rune_jit.jit(f)
    for _ in range(4):
        ours, theirs = ((types.SimpleNamespace(), {}, []) for _ in range(2))
        results = jitted(x(), *ours), f(x(), *theirs)
        assert _kinds(ours) == _kinds(theirs)
        assert _kinds(results[0]) == _kinds(results[1])
    assert "in segments" in jitted.explain()
