"""Random numbers that a compiled loop makes itself, from words of a bit generator. The generator
makes many words before such a loop runs. The loop takes as many as it needs, also under conditions
(samplers.py):

    for i in range(n):                       words = rng.bit_generator.random_raw(4096)
        if e[i] < 0 or rng.random() < p:     for i in range(n):
            flip(i)                              if e[i] < 0 or random(words, at, held) < p:
                                                     flip(i)

After the loop, the generator is set to the state in which it has made just the words that were
taken."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import math
import threading
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rune_jit.capture.algorithms import as_users
from rune_jit.capture.loops import samplers
from rune_jit.capture.random_methods import NUM_PARAMETERS, generators, is_of_python
from rune_jit.rules.known import known

# The samplers with other names than "kind of generator_name of method".
_OTHERS = {
    "mt_random_sample": "mt_random",
    "mt_rand": "mt_random",
    "mt_randn": "mt_standard_normal",
    "python_random": "mt_random",
}
_OF_ZIGGURAT = ("pcg_standard_normal", "pcg_normal")
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64")
FIRST_WORDS, MOST_WORDS = 2**12, 2**23


class Sampler(NamedTuple):
    """The sampler, and its arguments, for one call of a generator's method."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shape: tuple[int, ...] | None  # of the result; None for a number

    @property
    def num_words(self) -> int:
        """How many words to provide for each number, with some in reserve."""
        return 4 if self.name.startswith("mt") else 2

    def call(self, rebind: Callable[[Any], Any], words: list[Any]) -> Any:
        """Makes the numbers in a trace. `rebind` makes the trace's copy of a function."""
        sampler = rebind(_traced(self.name))
        if self.shape is None:
            return sampler(*words, *self.args, **self.kwargs)
        kind = np.int64 if "int" in self.name else np.float64
        made = known(np.empty(math.prod(self.shape), kind))
        rebind(_traced("fill"))(sampler, words, made, self.args, self.kwargs)
        return made.reshape(self.shape)


def sampler_of(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sampler | None:
    """The sampler for a call of a generator's method; None if there is none."""
    name, size = _sampler(method), kwargs.get("size")
    kwargs = {key: x for key, x in kwargs.items() if key != "size"}
    sampler = getattr(samplers, name, None)
    if sampler is None or (name in _OF_ZIGGURAT and not _fill()):
        return None
    if method.__name__ in ("rand", "randn") and args:
        args, size = (), args
    names = frozenset(sampler.__code__.co_varnames[3 : sampler.__code__.co_argcount])
    most = NUM_PARAMETERS.get(method.__name__)
    if len(args) > len(names) and len(args) - 1 == most:
        *args, size = args  # type: ignore[assignment]
    if len(args) > len(names) or not names.issuperset(kwargs):
        return None
    if size is None:
        return Sampler(name, tuple(args), kwargs, None)
    shape = size if isinstance(size, tuple) else (size,)
    is_known = all(isinstance(n, (int, np.integer)) for n in shape)
    is_plain = not any(np.ndim(x) for x in (*args, *kwargs.values()))
    if most is None or not is_known or not is_plain or is_of_python(method.__self__):
        return None
    return Sampler(name, tuple(args), kwargs, tuple(map(int, shape)))


def _kind(source: Any) -> str:
    if is_of_python(source):
        return "python"
    if type(source) is np.random.RandomState:
        return "mt" if source.get_state(legacy=False)["bit_generator"] == "MT19937" else ""
    name = type(getattr(source, "bit_generator", None)).__name__
    return "pcg" if type(source) in generators() and name in _BIT_GENERATORS else ""


def _sampler(method: Any) -> str:
    """The name of the sampler for a method. There may be no sampler of this name."""
    name = f"{_kind(method.__self__)}_{method.__name__}"
    return _OTHERS.get(name, name)


@functools.cache
def _module() -> dict[str, Any]:
    made = as_users(samplers)
    for name in ("widths", "inside", "heights"):
        made[name] = getattr(samplers, name)
    return made


def _traced(name: str) -> types.FunctionType:
    found: types.FunctionType = _module()[name]
    return found


@functools.cache
def _fill() -> bool:
    """Fills the tables of the ziggurat with those of NumPy. To find the width of each layer, lets
    NumPy make a normal number from a word that selects the layer. Returns whether the tables are
    the expected ones."""
    words: list[int] = []
    make = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(lambda state: words.pop())
    double = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(lambda state: 0.0)
    pointers = [ctypes.cast(x, ctypes.c_void_p) for x in (make, make, double, make)]
    interface = (ctypes.c_void_p * 5)(None, *(x.value for x in pointers))  # a bitgen_t
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype = ctypes.py_object
    capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    given = types.SimpleNamespace(
        capsule=capsule(ctypes.addressof(interface), b"BitGenerator", None), lock=threading.Lock()
    )
    normal = np.random.Generator(given).standard_normal  # type: ignore[arg-type]
    for layer in range(256):
        words[:] = [layer | (2**40 << 9)]
        samplers.widths[layer] = normal() / 2**40
    edges = samplers.widths * 2.0**52
    samplers.heights[:] = np.exp(-0.5 * edges * edges)
    samplers.heights[0] = 1.0
    samplers.inside[0] = int(edges[255] / edges[0] * 2.0**52)
    samplers.inside[2:] = (edges[1:-1] / edges[2:] * 2.0**52).astype(np.int64)
    return bool(edges[255] == 3.6541528853610088)


@dataclasses.dataclass
class _Source:
    """Makes words with a generator."""

    _generator: Any


class _Pcg(_Source):
    def begin(self, count: int) -> tuple[Any, Any, Any]:
        """Makes words. Returns them with the initial `at` and `held` of samplers.py."""
        bits = self._generator.bit_generator
        self._state = bits.state
        words = bits.random_raw(count)
        bits.state = self._state
        has = np.array([0, self._state["has_uint32"]], np.int64)
        return words, has, np.array([self._state["uinteger"]], np.uint64)

    def end(self, at: Any, held: Any) -> None:
        """Advances the generator past the words that have been taken."""
        bits = self._generator.bit_generator
        bits.random_raw(int(at[0]), output=False)
        bits.state = bits.state | {"has_uint32": int(at[1]), "uinteger": int(held[0])}


class _Mt(_Source):
    def begin(self, count: int) -> tuple[Any, Any, Any]:
        state = self._generator.get_state(legacy=False)
        words = self._words(count)
        self._generator.set_state(state)
        held = [state["gauss"], 1.0]
        return words, np.array([0, 2 * state["has_gauss"]], np.int64), np.array(held)

    def _words(self, count: int) -> Any:
        return self._generator.randint(0, 2**32, count, np.uint32).astype(np.uint64)

    def end(self, at: Any, held: Any) -> None:
        self._words(int(at[0]))
        state = self._generator.get_state(legacy=False)
        gauss = float(held[0]) if at[1] > 0 else 0.0
        if at[1] == 1:
            gauss *= math.sqrt(-2.0 * math.log(held[1]) / held[1])
        self._generator.set_state(state | {"has_gauss": int(at[1] > 0), "gauss": gauss})


class _Python(_Source):
    def begin(self, count: int) -> tuple[Any, Any, Any]:
        state = self._generator.getstate()
        words = self._generator.getrandbits(32 * count).to_bytes(4 * count, "little")
        self._generator.setstate(state)
        made = np.frombuffer(words, np.uint32).astype(np.uint64)
        return made, np.zeros(2, np.int64), np.zeros(2)

    def end(self, at: Any, held: Any) -> None:
        self._generator.getrandbits(32 * int(at[0]))


def source_of_words(generator: Any) -> Any:
    return {"pcg": _Pcg, "mt": _Mt, "python": _Python}[_kind(generator)](generator)
