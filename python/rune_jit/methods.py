"""The attributes and methods of NumPy's arrays, for Arrays and traced arrays. They follow from
shape and dtype, or call NumPy's function with the same name."""

from __future__ import annotations

import functools
import operator as op
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

# Ufuncs of Python's operators. The binary ones have reflected and in-place forms, too.
BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}


class ArrayMethods:
    """Base of classes with the interface of numpy.ndarray. A subclass has `shape`, `dtype`, `copy`,
    indexing, NumPy's protocols and, by `install_operators`, Python's operators."""

    __slots__ = ()
    shape: Any
    dtype: Any

    if TYPE_CHECKING:

        def __array__(self, dtype: Any = ..., copy: bool | None = ...) -> np.ndarray: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def _binary(self, other: Any, /) -> Any: ...
        def _unary(self) -> Any: ...
        def _method(self, *args: Any, **kwargs: Any) -> Any: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _binary
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _binary
        __rpow__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __matmul__ = (
            __divmod__
        ) = _binary
        __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __rmatmul__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = __rdivmod__ = _binary
        __neg__ = __pos__ = __abs__ = __invert__ = _unary
        all = any = argmax = argmin = argpartition = argsort = cumprod = cumsum = _method
        diagonal = max = mean = min = nonzero = prod = ravel = repeat = round = _method
        searchsorted = squeeze = std = sum = swapaxes = take = trace = var = _method
        copy = astype = _method

    # Attributes that follow from shape and dtype.

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size: int = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    def __len__(self) -> int:
        """The size of the first axis. Raises TypeError for a 0-d array."""
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        """The items along the first axis. Raises TypeError for a 0-d array."""
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, x: Any) -> bool:
        """Whether any element is equal to x."""
        return bool(np.any(self == x))

    def __delitem__(self, index: Any) -> None:
        raise ValueError("cannot delete array elements")

    def _with_object(self, name: str, other: Any, reflected: bool) -> Any:
        """The result of an operator with an object that is not an operand. NotImplemented: the
        object's own operator decides."""
        return NotImplemented

    # The elements.

    def _values(self, what: str) -> np.ndarray:
        """The elements, for the conversion `what`. Raises ConcretizationError if they are known
        only when a program runs."""
        raise NotImplementedError

    def _element(self, what: str) -> Any:
        """The result of `_values`, as a scalar for NumPy's scalars. (A scalar converts in another
        way than a 0-d array: a complex one to a float, with a warning.)"""
        return self._values(what)

    def item(self, *args: Any) -> Any:
        return self._values("item").item(*args)

    def tolist(self) -> Any:
        return self._values("tolist").tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        return self._values("tobytes").tobytes(order)

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        self._values("tofile").tofile(fid, sep, format)

    def __bool__(self) -> bool:
        return bool(self._values("bool"))

    def __int__(self) -> int:
        return int(self._element("int"))

    def __float__(self) -> float:
        return float(self._element("float"))

    def __complex__(self) -> complex:
        return complex(self._element("complex"))

    def __index__(self) -> int:
        return op.index(self._values("index"))

    # Methods that call NumPy's functions with other arguments.

    @property
    def T(self) -> Any:
        return np.transpose(self)

    @property
    def mT(self) -> Any:
        return np.matrix_transpose(self)

    @property
    def real(self) -> Any:
        return np.real(self)

    @real.setter
    def real(self, value: Any) -> None:
        np.real(self)[...] = value

    @property
    def imag(self) -> Any:
        return np.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if not np.iscomplexobj(self):
            raise TypeError("array does not have imaginary part to set")
        np.imag(self)[...] = value

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        wanted = shape[0] if len(shape) == 1 else shape
        options = {} if order == "C" else {"order": order}
        if copy is not None:
            options["copy"] = copy
        return np.reshape(self, wanted, **options)

    def transpose(self, *axes: Any) -> Any:
        wanted = axes[0] if len(axes) == 1 else (axes or None)
        return np.transpose(self, wanted)

    def flatten(self, order: Any = "C") -> Any:
        return np.ravel(self, order=order).copy()

    def dot(self, other: Any, out: Any = None) -> Any:
        return np.dot(self, other) if out is None else np.dot(self, other, out)

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any) -> Any:
        given = kwargs if out is None else {**kwargs, "out": out}
        return np.clip(self, min, max, **given)

    def choose(self, *choices: Any, **kwargs: Any) -> Any:
        """numpy.choose of this array."""
        return np.choose(self, choices[0] if len(choices) == 1 else choices, **kwargs)

    def conj(self) -> Any:
        return np.conjugate(self)

    conjugate = conj

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return np.compress(condition, self, axis, out)

    def fill(self, value: Any) -> None:
        if isinstance(value, (list, tuple)) or np.ndim(value):
            raise ValueError("setting an array element with a sequence.")
        self[...] = value

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:
        np.put(self, indices, values, mode=mode)  # type: ignore[arg-type]

    def sort(self, axis: int = -1, *args: Any, **kwargs: Any) -> None:
        self._reorder("sort", np.sort(self, axis, *args, **kwargs))

    def partition(self, kth: Any, axis: int = -1, *args: Any, **kwargs: Any) -> None:
        self._reorder("partition", np.partition(self, kth, axis, *args, **kwargs))

    def _reorder(self, name: str, new: Any) -> None:
        try:
            self[...] = new
        except ValueError:
            if self.flags.writeable:  # type: ignore[attr-defined]
                raise
            raise ValueError(f"{name} array is read-only") from None

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __round__(self, ndigits: int | None = None) -> Any:
        return np.round(self, ndigits or 0)


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: ArrayMethods, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"numpy.{name} of this array."
    return method


# Methods that are NumPy's functions with the same name.
METHODS = (
    *("all", "any", "argmax", "argmin", "argpartition", "argsort", "cumprod", "cumsum"),
    *("diagonal", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "round"),
    *("searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var"),
)
for _name in METHODS:
    setattr(ArrayMethods, _name, _method(_name))


def _with_modulus(power: Callable[..., Any]) -> Callable[..., Any]:
    def operator(self: Any, other: Any, modulus: Any = None) -> Any:
        if modulus is None:
            return power(self, other)
        try:
            number = np.asarray(self)[()] if isinstance(self, np.generic) else op.index(self)
        except TypeError:
            number = np.asarray(self)[()]
        return pow(number, other, modulus)  # for Python ints. (For others it raises NumPy's error.)

    return operator


def install_operators(
    kind: type[ArrayMethods],
    is_operand: Callable[[type], bool],
    operation: Callable[[str], Callable[[tuple[Any, ...]], Any]],
    apply_in_place: Callable[[str, Any, Any], Any],
) -> None:
    """Gives a class Python's operators.

    `operation` takes the name of an operator ("add", "neg" ...) and returns a function of a tuple
    of operands. `apply_in_place` takes the name, the array that is written to and the other
    operand. `is_operand` tells which types the other operand may have. For other types Python uses
    their own operators.
    """
    takes: Callable[[Any], bool] = functools.lru_cache(is_operand)

    def binary(name: str, reflected: bool) -> Callable[..., Any]:
        apply = operation(name)

        def operator(self: Any, other: Any) -> Any:
            if not takes(type(other)):
                if name in ("eq", "ne") and (other is None or isinstance(other, str)):
                    differs = name == "ne"  # all elements differ
                    shape = getattr(self, "shape", None)  # a Size has none, as a Python number
                    if shape:
                        return np.full_like(self, differs, dtype=bool)
                    return differs if other is None or shape is None else np.bool_(differs)
                return self._with_object(name, other, reflected)
            return apply((other, self) if reflected else (self, other))

        return operator

    def in_place(name: str) -> Callable[..., Any]:
        def operator(self: Any, other: Any) -> Any:
            if not takes(type(other)):
                return self._with_object(f"i{name}", other, False)
            return apply_in_place(name, self, other)

        return operator

    def unary(name: str) -> Callable[..., Any]:
        apply = operation(name)
        return lambda self: apply((self,))

    operators = {f"__{name}__": binary(name, False) for name in COMPARISONS}
    operators |= {f"__{name}__": unary(name) for name in UNARY}
    for name in (*BINARY, "matmul", "divmod"):
        operators[f"__{name}__"] = binary(name, False)
        operators[f"__r{name}__"] = binary(name, True)
    for name in (*BINARY, "matmul"):
        operators[f"__i{name}__"] = in_place(name)
    for name in ("__pow__", "__ipow__"):
        operators[name] = _with_modulus(operators[name])
    for name, operator in operators.items():
        operator.__name__ = name
        setattr(kind, name, operator)
