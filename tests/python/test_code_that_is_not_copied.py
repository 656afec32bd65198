"""Code that a trace does not copy, such as methods of objects without arrays, sees what the
function has assigned: globals, variables of outer functions, attributes, items. So it is in
programs and in segments, and where the objects' functions are jitted, too."""

from __future__ import annotations

import linecache
import sys
import types
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit

# By what is assigned, the source of a module whose function `f` is called.
MODULES = {
    "a global": """
SCALE = 1.0
class Api:
    def apply(self, x): return x * SCALE
    @property
    def scale(self): return SCALE
    def __call__(self, x): return x + SCALE
api = Api()
def f(x):
    global SCALE
    SCALE = x.sum()
    return api.apply(x), SCALE, api.scale, api(x)
""",
    "a number that is a global": """
count = 0
class Api:
    def apply(self, x): return x * count
    def __len__(self): return count
api = Api()
def f(x):
    global count
    count += 1
    return api.apply(x), count, len(api)
""",
    "a global that methods assign, too": """
total = 0.0
class Sum:
    def add(self, x):
        global total
        total = total * 2 + x.sum()
sums = Sum()
def f(x):
    global total
    total = total + 1
    sums.add(x)
    total = total + 1
    sums.add(x)
    return total
""",
    "a global that is deleted": """
scale = 1.0
class Api:
    def apply(self, x):
        try:
            return x * scale
        except NameError:
            return x - 1
api = Api()
def f(x):
    global scale
    scale = 2.0
    first = api.apply(x)
    del scale
    second = api.apply(x)
    scale = x.sum()
    return first, second, api.apply(x)
""",
    "a global that other functions make and delete": """
class Api:
    def apply(self, x):
        try:
            return x * scale
        except NameError:
            return x - 1
api = Api()
OPS = [api.apply, Api().apply]
def make(x):
    global scale
    scale = x
def remove():
    global scale
    del scale
def f(x):
    first = api.apply(x)
    make(2.0)
    second = api.apply(x)
    make(x.sum())
    third = OPS[0](x)
    remove()
    fourth = OPS[1](x)
    make(x)
    fifth = [op(x) for op in OPS]
    remove()
    return first, second, third, fourth, fifth
""",
    "a global through globals()": """
scale = 1.0
class Api:
    def apply(self, x): return x * scale
api = Api()
def f(x):
    globals()["scale"] = x.sum()
    return api.apply(x), scale
""",
    "a global that functions in a list read": """
state = np.zeros(2)
class Bus:
    def __init__(self): self.listeners = []
    def emit(self, x): return [g(x) for g in self.listeners]
bus = Bus()
def read(x): return x + state
bus.listeners.append(read)
def f(x):
    global state
    state = state + x
    return bus.emit(x), state
""",
    "an attribute": """
class Config: pass
config = Config()
config.scale, config.count = 1.0, 0
class Api:
    def apply(self, x): return x * config.scale + config.count
api = Api()
def f(x):
    config.scale = x.sum()
    config.count += 1
    return api.apply(x)
""",
    "an attribute of a class": """
class Config:
    state = np.ones(2)
    @classmethod
    def get(cls, x): return x * cls.state
    @classmethod
    def set(cls, x): cls.state = cls.state + x
def f(x):
    Config.set(x)
    return Config.get(x), Config.state
""",
    "an attribute of a module": """
import types
config = types.ModuleType("config")
config.scale = 1.0
class Api:
    def apply(self, x): return x * config.scale
api = Api()
def f(x):
    config.scale = x.sum()
    return api.apply(x)
""",
    "a variable of an outer function": """
def make():
    count, state = 0, np.ones(2)
    class Api:
        def apply(self, x): return x * state + count
    api = Api()
    def f(x):
        nonlocal count, state
        count += 1
        state = state + x
        return api.apply(x), count, state
    return f
f = make()
""",
    "a view in a variable of an outer function": """
def make():
    grid = np.arange(4.0)
    inner = grid[1:-1]
    class Api:
        def apply(self, x): return x * inner
    api = Api()
    def f(x):
        nonlocal inner
        change = grid[:-2] + grid[2:]
        inner += 0.1 * change + x
        return api.apply(x), grid.sum()
    return f
f = make()
""",
    "items of a dict": """
config = {"scale": 1.0, "state": np.ones(2)}
class Api:
    def apply(self, x): return x * config["scale"] + config["state"]
api = Api()
def f(x):
    config["scale"] = x.sum()
    config["state"] = config["state"] + 1
    return api.apply(x)
""",
    "an item of a list": """
log = []
class Log:
    def count(self, x): return x * len(log)
view = Log()
def f(x):
    log.append(1)
    return view.count(x)
""",
    "a global that objects made there read": """
scale = 0.0
class Point:
    def __init__(self, x): self.x = x * scale
    def get(self): return self.x + scale
    @staticmethod
    def of(x): return x - scale
def f(x):
    global scale
    scale = scale + x.sum()
    point = Point(x)
    scale = scale + 1
    return point.get(), scale, Point.of(x)
""",
    "an attribute of a function": """
class Api:
    def apply(self, x): return x * f.count
api = Api()
def f(x):
    f.count += 1
    return api.apply(x)
f.count = 0
""",
    "an array that is an attribute of a function": """
def mean(x):
    mean.state = mean.state * 0.5 + x * 0.5
    return mean.state
mean.state = np.zeros(2)
def f(x): return mean(x) + mean.state
""",
}


def load(name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = types.ModuleType("module_under_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    file = f"<{name}>"
    monkeypatch.setitem(linecache.cache, file, (len(source), None, source.splitlines(True), file))
    vars(module)["np"] = np
    exec(compile(source, file, "exec"), vars(module))
    return module


@pytest.mark.parametrize("all_are_jitted", [False, True], ids=["f", "all functions"])
@pytest.mark.parametrize("in_segments", [False, True], ids=["program", "segments"])
@pytest.mark.parametrize("name", MODULES)
def test_it_sees_what_is_assigned(
    name: str, in_segments: bool, all_are_jitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = MODULES[name]
    if in_segments:
        for indent in ("    ", "        "):
            head = f"\n{indent[4:]}def f(x):\n"
            source = source.replace(head, f"{head}{indent}str(x.sum())\n")
    source = source.replace("def f(x): return", "def f(x):\n    return")
    plain, jitted = (load(name, source, monkeypatch) for _ in range(2))
    functions = {k: x for k, x in vars(jitted).items() if isinstance(x, types.FunctionType)}
    for key, function in functions.items() if all_are_jitted else ():
        setattr(jitted, key, rune_jit.jit(function, fallback="silent"))
    call = jitted.f if all_are_jitted else rune_jit.jit(jitted.f, fallback="silent")
    for i in range(5):
        x = np.ones(2) * (i + 1)
        assert_same(call(x), plain.f(x))


class Twice:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.multiply(self.x, 2)


class JittedTwice(Twice):
    __array__ = rune_jit.jit(Twice.__array__, fallback="silent")


@pytest.mark.parametrize("kind", [Twice, JittedTwice])
def test_objects_that_numpy_asks_for_an_array(kind: Any) -> None:
    def f(x: Any) -> Any:
        str(x.sum())
        return np.asarray(kind(x)) + 1, x + kind(x), np.sum(kind(x)), np.array([kind(x)] * 2)

    jitted = rune_jit.jit(f, fallback="silent")
    for i in range(3):
        assert_same(jitted(np.ones(2) * i), f(np.ones(2) * i))


STATE = np.ones(2)
CONFIG = {"state": np.ones(2)}


class Reader:
    """Its methods read what the function gets as arguments."""

    def __init__(self) -> None:
        self.items = [np.ones(2)]

    def of_global(self, x: Any) -> Any:
        return x + float(STATE.sum())

    def of_dict(self, x: Any) -> Any:
        return x + CONFIG["state"]

    def of_items(self, x: Any) -> Any:
        return x + sum(self.items), len(self.items)


READER = Reader()


def write_global(x: Any) -> Any:
    STATE[0] += x[0]
    str(x.sum())
    return READER.of_global(x)


def write_argument(state: Any, x: Any) -> Any:
    state += x
    str(x.sum())
    return READER.of_global(x)


def write_dict(config: Any, x: Any) -> Any:
    str(x.sum())
    config["state"] = config["state"] + x
    return READER.of_dict(x)


def write_dict_in_a_program(config: Any, x: Any) -> Any:
    config["state"] = config["state"] + x
    return READER.of_dict(x)


def write_items(items: Any, x: Any) -> Any:
    str(x.sum())
    items.append(x * 2)
    items[0] = items[0] + 1
    return READER.of_items(x)


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (write_global, lambda: ()),
        (write_argument, lambda: (STATE,)),
        (write_dict, lambda: (CONFIG,)),
        (write_dict_in_a_program, lambda: (CONFIG,)),
        (write_items, lambda: (READER.items,)),
    ],
)
def test_arguments_that_methods_reach_in_another_way(function: Any, argument: Any) -> None:
    found = []
    for call in (function, rune_jit.jit(function, fallback="silent")):
        STATE[:], CONFIG["state"], READER.items = 1, np.ones(2), [np.ones(2)]
        calls = [call(*argument(), np.ones(2) * (i + 1)) for i in range(4)]
        found.append((calls, STATE.copy(), dict(CONFIG), READER.items))
    assert_same(found[1], found[0])


def test_a_global_that_nothing_else_reads_is_state_of_a_program() -> None:
    def f(x: Any) -> Any:
        global COUNT
        COUNT = COUNT + x.sum()
        return x * COUNT

    jitted = rune_jit.jit(f)
    for _ in range(3):
        jitted(np.ones(2))
    assert jitted.explain() == "f: as one program"
    assert COUNT == 6.0


COUNT: Any = 0.0


@pytest.mark.parametrize("described", [[1.0, 2.0], (1, 2)])
def test_the_common_type_of_an_array_and_what_describes_no_type(described: Any) -> None:
    function = rune_jit.jit(lambda x: np.zeros(2, np.result_type(x, described)), fallback="silent")
    for _ in range(2):
        with pytest.raises(TypeError, match=r"1\.?0?' as a data type|2- or 3-tuples"):
            function(np.ones(2))
