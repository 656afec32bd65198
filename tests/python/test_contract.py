"""The ways in which a traced function could silently differ from the function itself: what it reads
outside. A scenario (scenarios.py) is a script that yields results, with jit and without."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scenarios import X, collection, contract_tests, eager

import rune_jit

TRACED, traced = collection()
ON_NUMPY, on_numpy = collection()


# Captured arrays are read at each call, also where they meet nothing traced.


@traced
def captured_arrays_alone(jit: Any) -> Iterator[Any]:
    w, v = np.arange(3.0), np.ones((2, 3))
    f = jit(lambda x: (x + w.sum(), x * (w @ v.T)[1], np.exp(w), np.sqrt(v[0, 1:]) + w[-1]))
    for value in range(3):
        w[1] = v[0, 2] = 10 * value
        yield f(X)
    if jit is not eager:
        assert f.cache_info().misses == 1


@traced
def captured_arrays_returned(jit: Any) -> Iterator[Any]:
    w = np.arange(3.0)
    f = jit(lambda x: w)
    assert f(X) is w
    w[0] = 5
    yield f(X)


@traced
def captured_arrays_decide(jit: Any) -> Iterator[Any]:
    """Their values are needed while tracing: each content has its own trace."""
    w, index = np.array([3.0, 4.0]), [np.array([0, 2])]

    def f(x: Any) -> Any:
        y = x * 2 if w.sum() > 5 else x
        return y + float(w[0]) + np.arange(int(w[1])).sum() + x[index[0]].sum()

    g = jit(f)
    yield g(X)
    w[:] = 1, 2
    yield g(X)
    index[0][0] = 3
    yield g(X)


@traced
def captured_masks(jit: Any) -> Iterator[Any]:
    m = X > 1
    f = jit(lambda x: np.where(m, x, 0) + m.sum())
    yield f(X)
    m[:2] = True
    yield f(X)


@traced
def captured_arrays_change_shape(jit: Any) -> Iterator[Any]:
    w = np.arange(6.0)
    f = jit(lambda x: (x + w.sum(), w + 1))
    yield f(X)
    w.shape = (2, 3)
    yield f(X)
    w.resize((3, 3), refcheck=False)
    yield f(X)


@traced
def arrays_in_attributes_and_containers(jit: Any) -> Iterator[Any]:
    holder = types.SimpleNamespace(w=np.ones(4), deep={"a": [np.zeros(4)]})
    f = jit(lambda x: x + holder.w + holder.w.sum() + holder.deep["a"][0].max())
    yield f(X)
    holder.w[0] = 7
    yield f(X)
    holder.deep["a"][0][2] = -3
    holder.deep["a"][0][1] = 3
    yield f(X)
    holder.w = np.zeros(4)
    yield f(X)
    holder.deep["a"][0] = np.full(2, 8)
    yield f(X)


@traced
def captured_buffers_are_written(jit: Any) -> Iterator[Any]:
    buffer, total = np.zeros(4), np.zeros(())

    def f(x: Any) -> Any:
        buffer[1:] += x[1:]
        total[...] = buffer.sum()
        return buffer * 2

    g = jit(f)
    for _ in range(3):
        yield g(X), buffer, total


@traced
def default_arrays(jit: Any) -> Iterator[Any]:
    w = np.ones(4)

    def f(x: Any, v: Any = w, *, u: Any = w[:2]) -> Any:
        return x + v.sum() + u[0]

    g = jit(f)
    yield g(X)
    w[0] = 9
    yield g(X), g(X, 3 * w)
    f.__defaults__ = (np.zeros(4),)
    if g is not f:
        g.__wrapped__.__defaults__ = f.__defaults__
    yield g(X)


class Layer:
    def __init__(self, n: int) -> None:
        self.w = np.arange(float(n * n)).reshape(n, n)
        self.b = np.ones(n)
        self.calls = {"n": n}

    def apply(self, x: Any) -> Any:
        return np.tanh(x @ self.w + self.b * self.b.sum()) * self.calls["n"]


SHIFT = np.ones(4)


class Network:
    def __init__(self) -> None:
        self.layers = [Layer(4), Layer(4)]
        self.scales = {"x": np.full(4, 0.1)}
        self.buffer = np.zeros(4)
        self.parent = self

    def shifted(self, x: Any) -> Any:
        y = np.zeros(4)
        y[1:] = x[:-1]
        return self.square(y) + SHIFT

    @staticmethod
    def square(x: Any) -> Any:
        y = np.empty_like(SHIFT)
        y[:] = x * x
        return y

    def run(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer.apply(x) + self.scales["x"].max() + self.shifted(x)
        self.buffer[:] += x
        self.layers[1].b[0] = x[0]
        return x, self.buffer.sum(), self.parent.buffer


@traced
def objects_that_hold_arrays(jit: Any) -> Iterator[Any]:
    """Their arrays are inputs: no call compares what is in them."""
    SHIFT[:] = 1
    network = Network()
    f = jit(network.run)
    g = jit(lambda x, network: network.run(x)[0] * 2)
    for i in range(4):
        yield f(X / 9), network.buffer, network.layers[1].b
        yield g(X / 9, network), network.buffer
        network.layers[0].w[i] = 1
        SHIFT[i] = 5
        network.scales["x"][0] = i
    if jit is not eager:
        assert f.cache_info().misses == g.cache_info().misses == 1
        kinds = {
            kind for kind, *_ in f._runner.compiler.trace(f._runner.take_apart((X,), {})).guards
        }
        assert "content" not in kinds
    network.scales["x"] = np.ones(4)
    network.layers.append(Layer(4))
    yield f(X / 9), g(X / 9, network)
    yield jit(lambda: network)() is network


@traced
def objects_that_change(jit: Any) -> Iterator[Any]:
    class Model:
        def __init__(self) -> None:
            self.w, self.history = np.ones(4), [np.zeros(4)]

        def run(self, x: Any) -> Any:
            self.w = self.w + x
            self.history.append(self.w)
            return self.w * 2

    model = Model()
    f = jit(model.run)
    for _ in range(3):
        yield f(X), model.w, model.history


# Captured Python values are guarded.

SCALE = 2.0
TABLE: dict[str, Any] = {"a": 1, "n": [1, (2, [3])]}


@traced
def rebound_globals(jit: Any) -> Iterator[Any]:
    global SCALE
    f = jit(lambda x: x * SCALE / (1 if SCALE else 2))
    for value in (2.0, 3.0, 0.0, -0.0, float("nan"), 2, True):
        SCALE = value
        yield np.signbit(f(X)), f(X)
    SCALE = float("nan")
    f(X)
    if jit is not eager:
        misses = f.cache_info().misses
        SCALE = -float("nan") * -1
        f(X)
        f(X)
        assert f.cache_info().misses <= misses + 1
    SCALE = 2.0


@traced
def dicts_lists_and_sets(jit: Any) -> Iterator[Any]:
    options = {"scale": 1.0, "shift": [1, 2], "names": {"a"}, "nested": {"k": (1, [5])}}

    def f(x: Any) -> Any:
        y = x * options["scale"] + sum(options["shift"]) + options["nested"]["k"][1][0]
        return y if "b" in options["names"] else -y

    g = jit(f)
    yield g(X)
    options["scale"] = 3.0
    yield g(X)
    options["shift"].append(10)
    yield g(X)
    options["shift"][0] = -1
    yield g(X)
    options["names"].add("b")
    yield g(X)
    options["nested"]["k"][1][0] = 6
    yield g(X)
    del options["nested"]["k"][1][:]
    options["nested"]["k"] = (0, [1])
    yield g(X)


class Base:
    factor = 2
    table: ClassVar[dict[str, int]] = {"k": 1}
    w = np.ones(4)

    def __init__(self, offset: Any) -> None:
        self.offset = offset

    @property
    def twice(self) -> Any:
        return self.offset * 2

    @staticmethod
    def square(x: Any) -> Any:
        return x * x + Base.factor

    @classmethod
    def scaled(cls, x: Any) -> Any:
        return x * cls.factor

    def helper(self, x: Any) -> Any:
        return self.scaled(x) + self.twice + self.table["k"] + self.w.sum() + self.square(x)


@traced
def class_and_instance_attributes(jit: Any) -> Iterator[Any]:
    class Model(Base):
        pass

    model, other = Model(1), Model(100)
    f = jit(lambda x: model.helper(x))
    yield f(X)
    model.offset = 5
    yield f(X)
    Model.factor = 10
    yield f(X)
    model.factor = 11
    yield f(X)
    Base.table["k"] = 7
    yield f(X)
    Base.w[0] = 3
    yield f(X)
    Model.helper = lambda self, x: x - self.offset  # type: ignore[method-assign]
    yield f(X)
    model = other
    yield f(X)
    Base.table["k"], Base.w[0] = 1, 1


@traced
def two_instances(jit: Any) -> Iterator[Any]:
    class Model:
        def __init__(self, w: Any, n: int) -> None:
            self.w, self.n = w, n

        def __eq__(self, other: Any) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

        def run(self, x: Any) -> Any:
            return x * self.n + self.w.sum()

        run = jit(run)

    a, b = Model(np.ones(2), 1), Model(np.zeros(2), 2)
    yield a.run(X), b.run(X), a.run(X)
    a.w, b.n = b.w, 7
    yield a.run(X), b.run(X), Model.run(a, x=X)


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@traced
def slots_and_partials(jit: Any) -> Iterator[Any]:
    slotted = Slotted(2)
    part = functools.partial(lambda x, s, k: x * s.value + k, s=slotted, k=1)
    f = jit(lambda x: part(x))
    g = jit(part)
    yield f(X), g(X)
    slotted.value = 3
    yield f(X), g(X)
    part = functools.partial(part, k=5)
    yield f(X)


helpers = types.ModuleType("helpers")
exec(
    "import numpy as np\n"
    "SCALE, W = 2, np.ones(3)\n"
    "def fill(x):\n"
    "  y = np.zeros(3)\n"
    "  y[1] = x[1] * SCALE\n"
    "  return y + W.sum()\n",
    helpers.__dict__,
)


@traced
def functions_of_other_modules(jit: Any) -> Iterator[Any]:
    helpers.SCALE, helpers.W = 2, np.ones(3)
    f = jit(lambda x: helpers.fill(x) + helpers.W)
    yield f(X)
    helpers.SCALE = 5
    yield f(X)
    helpers.W[0] = 2
    yield f(X)
    helpers.W = np.zeros(3)
    yield f(X)
    fill, helpers.fill = helpers.fill, lambda x: x[:3]
    yield f(X)
    helpers.fill = fill


@traced
def functions_of_functions(jit: Any) -> Iterator[Any]:
    def outer(k: Any) -> Any:
        table = [k]

        def inner(x: Any) -> Any:
            return x + table[0]

        inner.table = table  # type: ignore[attr-defined]
        return inner

    adders = {"a": outer(1), "b": outer(2)}
    which = "a"
    f = jit(lambda x: adders[which](x))
    yield f(X)
    which = "b"
    yield f(X)
    adders["b"].table[0] = 50
    yield f(X)
    adders["b"] = outer(-1)
    yield f(X)
    f = jit(lambda x, function: function(x))
    yield f(X, adders["a"]), f(X, adders["b"])
    adders["a"].table[0] = 7
    yield f(X, adders["a"])


@traced
def static_values_that_compare_equal(jit: Any) -> Iterator[Any]:
    f = jit(lambda x, s: x * 0 + np.copysign(1, s[0]) + (0.5 if type(s[1]) is int else 0))
    if jit is not eager:
        f = jit(f.__wrapped__, static_argnums=1)
    for s in ((0.0, 1), (-0.0, 1), (0.0, 1.0), (0.0, True), (np.float64(-0.0), 1)):
        yield f(X, s)
    g = jit(lambda x, s=None: x + (1 if s is True else 2 if s is False else 3))
    yield g(X, True), g(X, False), g(X, None), g(X)


@dataclasses.dataclass(frozen=True)
class Config:
    scale: float
    name: str = "a"


class Pair(NamedTuple):
    left: Any
    right: Any


@traced
def records(jit: Any) -> Iterator[Any]:
    f = jit(lambda x, c: x * c.scale)
    yield f(X, Config(2.0)), f(X, Config(2)), f(X, Config(3.0)), f(X, Config(2.0))
    if jit is not eager:
        assert f.cache_info().misses == 3
    g = jit(lambda p: Pair(p.right, p.left * 2)._replace(right=p.left + 1))
    yield g(Pair(X, 2)), g(Pair(X + 1, 3.5))


@dataclasses.dataclass
class State:
    position: Any
    velocity: Any
    name: str = "a"
    extra: Any = dataclasses.field(default_factory=list)

    def energy(self, scale: Any) -> Any:
        return (self.velocity**2).sum() * scale

    energy = rune_jit.jit(energy)  # type: ignore[assignment]


@traced
def dataclasses_as_trees(jit: Any) -> Iterator[Any]:
    def step(state: State, dt: Any) -> State:
        state.velocity *= 0.5
        moved = state.position + state.velocity * dt + len(state.extra)
        return dataclasses.replace(state, position=moved if state.name == "a" else -moved)

    f = jit(step)
    state = State(X.copy(), X + 1, "a", [1, "b"])
    for _ in range(3):
        state = f(state, 0.1)
        yield state.position, state.velocity, state.name, state.extra
        yield state.energy(2.0)
    if jit is not eager:
        assert f.cache_info().misses == 1
    state.name = "b"
    yield f(state, 0.1).position
    state.extra.append(0)
    yield f(state, 0.1).position
    yield jit(lambda s: s["a"].position + s["b"][0].velocity.sum())({"a": state, "b": [state]})


@traced
def dataclasses_that_change(jit: Any) -> Iterator[Any]:
    def step(state: State) -> Any:
        state.name += "!"
        return state.position * len(state.name)

    f, state = jit(step), State(X.copy(), X.copy())
    yield f(state), f(state), state.name


test_traced, test_on_numpy = contract_tests(TRACED, ON_NUMPY)
