"""Random number generators of NumPy and Python. A trace must not change their state.

This module imports both random modules, which `import rune_jit` does not."""

from __future__ import annotations

import copy
import functools
import pickle
import random
from typing import Any, NoReturn

import numpy as np

from rune_jit.capture.random_methods import METHODS, Outside, Recorded
from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.known import known
from rune_jit.tracing.context import current_trace
from rune_jit.trees import attribute

KINDS = (np.random.Generator, np.random.RandomState, random.Random)
# The global generators, which functions use without an object: NumPy's (None) and Python's.
GLOBAL = (None, random)


def state_of(source: Any) -> Any:
    """The state of a generator, in a form that can be compared. None is NumPy's global one."""
    if isinstance(source, np.random.Generator):
        return pickle.dumps(source.bit_generator.state)
    if source is None or isinstance(source, np.random.RandomState):
        return pickle.dumps((np.random if source is None else source).get_state(legacy=False))
    return source.getstate()


def set_state(source: Any, state: Any) -> None:
    """Restores a state that `state_of` has returned."""
    if isinstance(source, np.random.Generator):
        source.bit_generator.state = pickle.loads(state)
    elif source is None or isinstance(source, np.random.RandomState):
        (np.random if source is None else source).set_state(pickle.loads(state))
    else:
        source.setstate(state)


class SeededGenerator(Recorded, np.random.Generator):
    """A generator that a trace has made from a known seed. The trace may write to its arrays."""

    plain: np.random.Generator  # NumPy's of the same numbers (some of its methods call others)

    @property
    def bit_generator(self) -> Any:
        if _is_in_loop():
            _refuse("bit_generator")
        return self.plain.bit_generator


class SeededState(Recorded, np.random.RandomState):
    """As SeededGenerator, for a RandomState."""

    plain: np.random.RandomState


class SeededRandom(Recorded, random.Random):
    """As SeededGenerator, for Python's generator."""

    plain: random.Random


def seeded(made: Any) -> Any:
    """The stand-in for a generator with a known seed."""
    if type(made) is random.Random:
        stand_in: Any = SeededRandom.__new__(SeededRandom)
    else:
        kind = SeededGenerator if type(made) is np.random.Generator else SeededState
        stand_in = kind(getattr(made, _BITS[type(made)]))
    stand_in.plain = made
    return stand_in


def _is_in_loop() -> bool:
    trace = current_trace()
    return trace is not None and trace.draws is not None and trace.draws.is_in_loop


def _sampling(base: type, name: str) -> Any:
    method = getattr(base, name)

    @functools.wraps(method)
    def sample(self: Any, *args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        draws = None if trace is None else trace.draws
        if draws is not None and (draws.is_in_loop or draws.selects(name, args)):
            if name in _OF_STATE:
                _refuse(name)
            return draws.draw(self, name, args, kwargs)
        result = method(self.plain, *args, **kwargs)
        is_new = type(result) is np.ndarray and all(result is not x for x in kwargs.values())
        return known(result) if is_new and trace is not None else result

    return sample


_OF_STATE = ("get_state", "getstate", "seed", "set_state", "setstate", "spawn")
for _seeded in (SeededGenerator, SeededState, SeededRandom):
    for _name in dir(_seeded.__bases__[1]):
        if not _name.startswith("_") and _name != "bit_generator":
            setattr(_seeded, _name, _sampling(_seeded.__bases__[1], _name))


def _assign(self: Any, name: str, value: Any) -> None:
    if name not in (*Recorded.__annotations__, *Outside.__annotations__):
        raise UnsupportedOpError(
            f"{name}: cannot trace the assignment of an attribute of a random generator\n"
            "hint: keep the value elsewhere"
        )
    object.__setattr__(self, name, value)


class _Generator(Outside, np.random.Generator):
    pass


class _RandomState(Outside, np.random.RandomState):
    pass


class _Random(Outside, random.Random):
    pass


# By class of generators: the class of their stand-ins.
_CLASSES: dict[type, Any] = {x.__bases__[1]: x for x in (_Generator, _RandomState, _Random)}


def is_source(x: Any) -> bool:
    """Whether x is a generator for which a trace has a stand-in."""
    return type(x) in _CLASSES


def refuse_hidden_state(x: Any) -> None:
    """Raises UnsupportedOpError if x is a bit generator or a SeedSequence from outside, or a method
    of one."""
    kinds = np.random.BitGenerator, np.random.SeedSequence
    of = attribute(x, "__self__", x)
    if isinstance(of, kinds):
        raise UnsupportedOpError(
            f"{type(of).__name__}: cannot trace the use of one from outside (it would change once,"
            " not at each call)\nhint: pass a numpy.random.Generator"
        )


def method_of_source(x: Any) -> tuple[Any, str] | None:
    """The generator and the method's name, if x is a method of a generator, else None."""
    source = attribute(x, "__self__")
    if is_source(source) and callable(x):
        return source, x.__name__
    name = _functions().get(id(x))
    return None if name is None else (np.random.mtrand._rand, name)


@functools.cache
def _functions() -> dict[int, str]:
    """By id of a function of numpy.random: the method of the global generator that does the same.
    Only for functions that are not themselves methods."""
    named = (("seed", "seed"), ("sample", "random_sample"), ("ranf", "random_sample"))
    return {id(getattr(np.random, x)): name for x, name in named}


def kind_of(source: Any) -> Any:
    """The classes that decide which states a generator can have."""
    bits = getattr(source, _BITS[type(source)], None)
    return type(source), type(bits)


def copy_of(source: Any) -> Any:
    """A new generator with the same state."""
    if type(source) is random.Random:
        made = random.Random()
        made.setstate(source.getstate())
        return made
    copied = type(source)(copy.deepcopy(getattr(source, _BITS[type(source)])))
    if type(source) is np.random.RandomState:
        copied.set_state(source.get_state(legacy=False))
    return copied


_BITS = {
    np.random.Generator: "bit_generator",
    np.random.RandomState: "_bit_generator",
    random.Random: "",
}


def stand_in_of(source: Any) -> Any:
    """A new stand-in for a generator from outside. It has a private copy of the generator."""
    private = copy_of(source)
    if type(source) is random.Random:
        made = _Random.__new__(_Random)
    else:
        made = _CLASSES[type(source)](getattr(private, _BITS[type(source)]))
    made.private = private
    return made


def _drawing(name: str) -> Any:
    def draw(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.draws.draw(self, name, args, kwargs)

    return draw


def _refuse(name: str) -> NoReturn:
    raise UnsupportedOpError(
        f"{name}: cannot trace this attribute of a random generator\n"
        "hint: use it outside, and pass its result as an argument"
    )


def _refusing(name: str) -> Any:
    return property(lambda self: _refuse(name))


for _base, _class in _CLASSES.items():
    _class.__setattr__ = _assign
    for _name in dir(_base):
        is_drawing = _name in METHODS or (_name == "seed" and _base is not np.random.Generator)
        if is_drawing or _name == "shuffle":
            setattr(_class, _name, _drawing(_name))
        elif _name[0] != "_":
            setattr(_class, _name, _refusing(_name))
