"""Tracer: the array that a traced function gets. It has a shape and a dtype, but no elements."""

from __future__ import annotations

import dis
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from rune_jit import _core
from rune_jit.errors import ConcretizationError, TracerLeakError, UnsupportedOpError
from rune_jit.methods import ArrayMethods
from rune_jit.tracing.conditions import decide
from rune_jit.tracing.context import user_site
from rune_jit.tracing.frames import (
    index_of,
    is_class_asked,
    is_named,
    is_of_xarray,
    is_shuffling,
    namespace_for,
)
from rune_jit.tracing.storage import (
    Step,
    Storage,
    as_number,
    refuse_if_unsure,
    refuse_write_to_numpy,
)
from rune_jit.trees import PLAIN

if TYPE_CHECKING:
    from rune_jit.tracing.trace import Trace


class Tracer(ArrayMethods, _core.TracerBase):
    """Stands for an array (or a Python number) in a traced function.

    Operators, methods and NumPy's functions on it build the graph. Their results have NumPy's
    shapes and dtypes. Writes act like NumPy's, also through views (storage.py). Asking for values
    (``bool``, ``float``, ``numpy.asarray`` ...) raises ConcretizationError.
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 1000
    _trace: Trace
    _storage: Storage
    _steps: tuple[Step, ...]
    _shape: tuple[int, ...]
    _dtype: np.dtype[Any]
    _value: Any  # of this view, in version _version of the storage
    _version: int
    _writeable: bool
    _made_at: str  # the user's line

    if TYPE_CHECKING:

        def __new__(cls, *args: Any, **kwargs: Any) -> Tracer: ...

        def __init__(self, trace: Trace, value: Any, *, scalar: bool | None = None) -> None:
            """An array with its own memory and this value. A 0-d array is a NumPy scalar unless
            `scalar` is False."""

        def _init(  # type: ignore[override]
            self,
            trace: Trace,
            storage: Storage,
            steps: tuple[Step, ...],
            shape: tuple[int, ...],
            dtype: np.dtype[Any],
        ) -> None:
            """Makes this a view of a storage, without a cached value."""

    @classmethod
    def known(cls, trace: Trace, array: np.ndarray, fill: Any = None) -> Tracer:
        """An array whose elements are known until a traced value is written to it. `array` is not
        copied. `fill` is the value of all elements, if known."""
        self = cls.__new__(cls)
        self._init(trace, Storage(array=array, fill=fill), (), array.shape, array.dtype)
        return self

    @classmethod
    def captured(cls, trace: Trace, array: Any) -> Tracer:
        """The traced array in place of a captured array."""
        self = cls.__new__(cls)
        self._init(trace, Storage(captured=array), (), array.shape, array.dtype)
        self._writeable = not isinstance(array, np.ndarray) or array.flags.writeable
        return self

    def _become(self, array: np.ndarray, is_exposed: bool = False) -> None:
        """Makes this an array with its own memory and known elements. `is_exposed`: whether NumPy
        may write to them."""
        scalar = self._storage.scalar
        self._storage, self._steps = Storage(array=array), ()
        self._storage.scalar, self._storage.is_exposed = scalar, is_exposed
        self._value, self._version = None, -1

    def _view(self, step: Step, shape: tuple[int, ...], value: Any = None) -> Tracer:
        """A view of this array. `value` is the view's present value, if known."""
        view = Tracer.__new__(Tracer)
        dtype = self._dtype if step.kind == "index" else step.dtype(self._dtype)
        view._init(self._trace, self._storage, (*self._steps, step), shape, dtype)
        view._writeable = self._writeable and step.kind not in (
            "broadcast_to",
            "broadcast_arrays",
            "diagonal",
            "windows",
        )
        if value is not None:
            view._value, view._version = value, self._storage.version
        return view

    def _array(self) -> np.ndarray | None:
        """NumPy's array while the elements are known (writes to it are writes to this array), or
        None."""
        array = self._storage.array
        if array is not None:
            for step in self._steps:
                array = step.of_array(array, self._trace if self._trace.is_segmented else None)
            is_numpys = self._steps and self._steps[-1].kind == "broadcast_arrays"
            if self._steps and not (self._writeable or is_numpys):
                array.flags.writeable = False  # the view is a new object
        return array

    def _check_trace(self, trace: Trace) -> None:
        """Raises TracerLeakError if the array belongs to another trace."""
        if self._trace is not trace:
            raise TracerLeakError(
                f"a traced array of {self._trace.name}, made at {self._made_at}, is used "
                + ("after its trace ended" if self._trace.done else f"in the trace of {trace.name}")
                + "\nhint: return it from the function instead of storing it"
            )

    @_core.shorten_value_in
    def _value_in(self, trace: Trace) -> Any:
        """The value of the array's present version."""
        storage = self._storage
        if self._trace is not trace:
            if self._trace.is_segmented and storage.array is not None:
                return trace.capture(self._array())  # an array that an earlier call has kept
            self._check_trace(trace)
        if self._version != storage.version or storage.is_exposed:
            value = storage.value
            if value is None or storage.is_exposed:
                value = storage.current(trace)
            for step in self._steps:
                value = step.of(trace.builder, value)
            self._value, self._version = value, storage.version
        return self._value

    # Attributes that need no values.

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class that isinstance finds: numpy.ndarray for the user's code, Tracer for rules, and
        the number's class for numbers of Python and NumPy."""
        frame = sys._getframe(1)
        if not self._storage.scalar or is_of_xarray(frame):
            if is_class_asked(frame):
                return np.ndarray
            of_abc = frame.f_code.co_name == "__instancecheck__"
            # NumPy's shuffle warns if its argument is no Sequence.
            return list if is_shuffling(frame.f_back if of_abc else frame) else Tracer
        if is_class_asked(frame, by_isinstance=False):
            refuse_if_unsure(self, "the class")
        weak: str | None = getattr(self._value, "weak", None)
        return _CLASSES[weak] if weak else self.dtype.type

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        frame = sys._getframe(1)
        if is_of_xarray(frame) or not self._trace.takes_arrays:
            return namespace_for(frame, api_version)
        return super().__array_namespace__(api_version=api_version)  # type: ignore[misc]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @shape.setter
    def shape(self, value: Any) -> None:
        storage = self._storage
        if not self._steps and storage.is_outside:
            if not self._trace.is_segmented:
                raise UnsupportedOpError(
                    "ndarray.shape: cannot trace a write to the shape of an argument\n"
                    "hint: use reshape"
                )
            self._trace.expose(self)
            array: Any = storage.array
            array.shape = value
            self._shape = array.shape
            return
        view: Any = np.reshape(self, value)
        if view._storage is not self._storage and 0 in view._shape:
            self._storage = view._storage  # an array without elements shares no memory
        if view._storage is not self._storage:
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with"
                " the desired shape."
            )
        self._steps, self._shape = view._steps, view._shape
        self._value, self._version = view._value, view._version

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @dtype.setter
    def dtype(self, value: Any) -> None:
        if not self._trace.is_segmented:
            raise UnsupportedOpError(
                "ndarray.dtype: cannot trace a write to dtype\nhint: use astype or view"
            )
        array: Any = self.__array__() if self._steps else self._on_numpy("dtype")
        array.dtype = value
        if self._steps:  # a view, for which NumPy has no object yet
            self._become(array)
        self._dtype, self._shape = array.dtype, array.shape

    def _on_numpy(self, name: str) -> Any:
        """NumPy's array, because the function changes an attribute of it. NumPy computes the rest
        of the call."""
        trace: Any = self._trace
        trace.give_up(f"ndarray.{name} changes the type or shape of an array in place")
        return self._array()

    @property
    def device(self) -> str:
        """The default device. (The device of a program is known only when it is compiled.)"""
        return _core.default_device()

    def to_device(self, device: str, /, *, stream: Any = None) -> Tracer:
        if device == self.device and stream is None:
            return self
        if self._trace.is_segmented:  # NumPy's arrays can only be on the CPU
            self.__array__().to_device(device, stream=stream)  # type: ignore[arg-type]
        raise UnsupportedOpError(
            "to_device: cannot move an array while tracing\nhint: move arguments before the call"
        )

    # Methods that need values.

    def __repr__(self) -> str:
        """The text of the array. After its trace has ended, a description of the tracer."""
        if self._trace.done and self._storage.array is None:
            return f"Tracer({self.dtype.name}{list(self.shape)}, made at {self._made_at})"
        return repr(self._element("repr"))

    def __str__(self) -> str:
        return str(self._element("str"))

    def __format__(self, spec: str) -> str:
        return format(self._element("format"), spec)

    def __index__(self) -> int:
        return index_of(self._element("index"))

    def __trunc__(self) -> Any:
        return math.trunc(self._element("int"))

    def __floor__(self) -> Any:
        return math.floor(self._element("int"))

    def __ceil__(self) -> Any:
        return math.ceil(self._element("int"))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._element("pickle").__reduce_ex__(protocol)

    def _element(self, what: str) -> Any:
        array = self._values(what)
        if self._storage.scalar:
            return array[()] if self._value is None else as_number(self._value, array)
        if array.ndim and what in _CLASSES and _is_storing(sys._getframe(2)):
            np.zeros(1, _CLASSES[what])[0] = array  # (raises what NumPy raises)
        return array

    def _concretization(self, what: str, hint: str) -> NoReturn:
        if not self._trace.done:
            self._trace.need_numbers([self._value_in(self._trace)])
        filename, line = user_site()
        raise ConcretizationError(
            f"{what}: cannot take the value of a traced array ({self.dtype.name}{list(self.shape)},"
            f" made at {self._made_at})\n  at {filename}:{line}\nhint: {hint}"
        )

    def _values(self, what: str) -> np.ndarray:
        """The elements. Raises ConcretizationError if they are known only when the program runs."""
        array = self._array()
        if array is None and self._trace.is_segmented and not self._trace.done:
            return self._trace.value_of(self)
        if array is None:
            if what in _CONVERSIONS:
                _refuse_store()
            hint = f"return the array, and call {what}() on the result"
            self._concretization(what, _HINTS.get(what, hint))
        return array

    def __bool__(self) -> bool:
        trace = self._trace
        if self._storage.array is None and not trace.done:
            if trace.is_segmented:
                return bool(trace.value_of(self))
            value = self._value_in(trace)
            if not trace.decides_numbers:
                trace.need_numbers([value])
            outcome = None
            if self.size == 1:
                outcome = decide(trace, value, sys._getframe(1))
            if outcome is not None:
                return outcome
            trace.need_numbers([value])
        return super().__bool__()

    def _buffer(self) -> np.ndarray:
        """The array for code in C, which may write to it."""
        is_known = self._storage.array is not None or self._trace.is_segmented
        is_pythons = self._storage.scalar and getattr(self._value, "weak", None)
        if self._trace.done or not is_known or is_pythons:
            raise BufferError("a traced array has no memory")  # NumPy then asks for __array__
        return np.array(self._element("buffer")) if self._storage.scalar else self.__array__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self._trace.is_segmented and not self._trace.done and not self._storage.scalar:
            self._trace.expose(self)
        array = self._values("numpy.asarray")
        if copy is not True and (dtype is None or dtype == array.dtype):
            self._storage.touched()
            self._storage.is_exposed = self._storage.array is not None  # the caller may keep it
            return array
        return np.array(array, dtype, copy=copy is not False)

    def __len__(self) -> int:
        if self._storage.scalar:
            raise TypeError(f"object of type '{self._type_name()}' has no len()")
        return super().__len__()

    def __iter__(self) -> Iterator[Any]:
        if self._storage.scalar:
            raise TypeError(f"'{self._type_name()}' object is not iterable")
        if self._trace.is_segmented and self.ndim == 1:
            return self.elements()
        return super().__iter__()

    def __reversed__(self) -> Iterator[Any]:
        if self._storage.scalar:
            raise TypeError(f"'{self._type_name()}' object is not reversible")
        len(self)  # (raises NumPy's error)
        return iter(self[::-1])

    def _type_name(self) -> str:
        """The name of a number's class in Python's messages."""
        kind = self.__class__
        return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__

    def elements(self: Any) -> Iterator[Any]:
        """The elements in C order, in segments. Each is read when Python asks for it."""
        version, values = -1, np.empty(0)
        for i in range(self.size):
            if type(self) is np.ndarray:  # (it takes the place of the traced array after the call)
                values = self.ravel()
            elif version != self._storage.version or self._storage.is_exposed:
                version, values = self._storage.version, self._values("iter").ravel()
            yield values[i]

    def __hash__(self) -> int:
        if self._trace.is_segmented and self._storage.scalar:
            return hash(self._element("hash"))
        if self._trace.is_segmented:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        self._concretization("hash", "pass the argument as static: jit(static_argnums=...)")

    def __getattr__(self, name: str) -> Any:
        if self._storage.scalar and not name.startswith("_") and hasattr(self.__class__, name):
            return getattr(self._element(name), name)
        kind = self.__class__
        is_of_numpy = kind is Tracer or issubclass(kind, (np.generic, np.ndarray))
        if name == "__array_wrap__" and not self._storage.scalar:
            return _wrapped
        is_asked = not name.startswith("_") or is_named(sys._getframe(1), name)
        if is_of_numpy and is_asked and hasattr(np.ndarray, name):
            if self._trace.is_segmented:
                is_resized = name == "resize" and not self._steps
                return getattr(self._on_numpy(name) if is_resized else self.__array__(), name)
            raise UnsupportedOpError(
                f"ndarray.{name}: cannot trace this attribute (a traced array has no elements)\n"
                "hint: use it outside of the jitted function"
            )
        of_numpy = "numpy." if is_of_numpy else ""
        kind_name = "ndarray" if kind is Tracer else kind.__name__
        raise AttributeError(f"'{of_numpy}{kind_name}' object has no attribute {name!r}")


def _wrapped(array: Any, context: Any = None, return_scalar: bool = False, /) -> Any:
    """`__array_wrap__` of a numpy.ndarray (not of a subclass)."""
    if not (isinstance(array, Tracer) and not array._storage.scalar):
        return np.empty(0).__array_wrap__(array, context, return_scalar)
    return array[()] if return_scalar and array.ndim == 0 else array


Tracer.__name__ = "numpy.ndarray"  # in Python's messages
_core.set_tracer_types(Tracer, Storage, Step)

# The types of Python's numbers, and these by weak type.
NUMBERS: tuple[Any, ...] = (bool, int, float, complex)
_CLASSES = {kind.__name__: kind for kind in NUMBERS}

_STORE = frozenset(dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap)


# Hints for errors, by the operation that asks for values.
_HINTS = {
    "bool": "write np.where(condition, a, b) or rune_jit.cond instead of if/and/or; if an argument"
    " decides, pass it as static: jit(static_argnums=...)",
    "float": "keep it an array: x.astype(np.float64), or np functions instead of math's",
    "complex": "keep it an array: x.astype(np.complex128), or np functions instead of cmath's",
    "int": "keep it an array: x.astype(np.int64), or pass the number as static:"
    " jit(static_argnums=...)",
    "index": "sizes, axes and loop bounds must be known while tracing: pass the argument as static"
    " with jit(static_argnums=...), or take it from x.shape",
    "numpy.asarray": "use np.stack([...]) instead of np.array([...]), x.astype(np.float32) instead"
    " of np.float32(x), and the traced array itself instead of np.asarray(x)",
}

# Conversions that NumPy calls when a traced array is assigned to an element of NumPy's array.
_CONVERSIONS = ("bool", "float", "complex", "int", "numpy.asarray")


def _is_storing(frame: Any) -> bool:
    """Whether a frame is about to assign to an item, as in `array[0] = tracer`."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] in _STORE


def _refuse_store() -> None:
    """Raises UnsupportedOpError if the frame that called a method such as Tracer.__float__ is about
    to assign to an item."""
    if _is_storing(sys._getframe(3)):  # the caller of the method that called Tracer._values
        refuse_write_to_numpy("setitem")


def is_traced_array(x: Any) -> bool:
    """Whether x is a traced array and not a traced number."""
    return type(x) is Tracer and not x._storage.scalar


def is_array(x: Any) -> bool:
    """Whether x is an array of NumPy or a traced array, and not a number."""
    return isinstance(x, np.ndarray) or is_traced_array(x)


def is_number(x: Any, *kinds: str) -> bool:
    """Whether x is a traced Python number of one of these kinds."""
    return type(x) is Tracer and x._storage.scalar and x._value_in(x._trace).weak in kinds


# Types of objects that hold no other objects. (Lists may have many of them.)
ATOMIC: frozenset[Any] = PLAIN | ({*np.sctypeDict.values()} - {np.object_, np.void})


def are_atomic(items: Iterable[Any]) -> bool:
    """Whether all items are numbers, texts, None, or tuples of these."""
    others = set(map(type, items)) - ATOMIC
    if others != {tuple}:
        return not others
    tuples = [x for x in items if type(x) is tuple]
    return ATOMIC.issuperset(map(type, itertools.chain.from_iterable(tuples)))


# Whether x is a tracer or a nested list or tuple that holds one.
contains_tracer: Callable[[Any], bool] = _core.contains_tracer
# The tracers in nested lists, tuples, dicts and slices.
tracers_in: Callable[[Any], list[Tracer]] = _core.tracers_in
# The operands that decide the layout of a result. Empty if all are in C order.
order_of: Callable[[Any], tuple[Tracer, ...]] = _core.order_of
# Whether x is a tracer or size whose value is not known while tracing, or holds one in nested
# lists, tuples, dicts and slices.
contains_traced: Callable[[Any], bool] = _core.contains_traced


def is_data_integer(x: Any) -> bool:
    """Whether x is a traced integer that depends on data. (An integer that depends only on numbers
    among the arguments does not count, because it can become a constant.)"""
    return (
        type(x) is Tracer
        and x._storage.scalar
        and x._storage.array is None
        and x.dtype.kind in "iu"
        and not x._trace.is_of_numbers(x._value_in(x._trace))
    )
