"""The functions and methods of Python and NumPy whose calls have no effects, or whose only effect
is a write to an array."""

from __future__ import annotations

import bisect
import builtins
import types
from typing import Any

import numpy as np

from rune_jit.capture.shim import ModuleView
from rune_jit.trees import attribute

_BUILTIN_NAMES = (
    "abs all any bool complex divmod dict enumerate float frozenset int len list max min pow range"
    " reversed round set slice sorted sum tuple zip"
)
# Python's functions that depend only on their arguments, and not on the arguments' classes.
BUILTINS = frozenset(_BUILTIN_NAMES.split())
_READING_NAMES = (
    "all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum diagonal dot"
    " flatten max mean min nonzero prod ravel repeat reshape round searchsorted squeeze std sum"
    " swapaxes take trace transpose var"
)
# Methods of arrays that change nothing, unless they get an array as `out`.
READING_METHODS = frozenset(_READING_NAMES.split())
_WRITING_NAMES = "at copyto fill_diagonal place put put_along_axis putmask shuffle"
# Functions of NumPy that write to an argument other than `out`.
WRITING_FUNCTIONS = frozenset(_WRITING_NAMES.split())
# Functions of NumPy that have other effects, or depend on more than their arguments.
_EXCEPT = (
    "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile memmap open_memmap seterr"
    " seterrcall setbufsize set_printoptions printoptions info show_config test vectorize"
    " frompyfunc fromfunction fromiter nditer apply_along_axis apply_over_axes piecewise"
    " array2string array_repr array_str fromregex DataSource"
)
_NOT_OF_NUMPY = frozenset(_EXCEPT.split())
# NumPy's objects that make arrays when they are indexed.
_INDEXED = (np.c_, np.index_exp, np.mgrid, np.ogrid, np.r_, np.s_)
_RAISING = ("builtins", "numpy")  # packages whose exceptions have no effects
_OF_ABSTRACT_CLASSES = ("numbers", "collections.abc")


def is_pure(x: Any) -> bool:
    """Whether x is a function, a class or another object of Python's or NumPy's whose use has no
    effects other than writes to arrays."""
    if isinstance(x, np.ufunc) or x is np.errstate or any(x is known for known in _INDEXED):
        return True
    module, name = attribute(x, "__module__"), attribute(x, "__name__")
    if isinstance(x, type):
        is_exception = issubclass(x, BaseException) and str(module).split(".")[0] in _RAISING
        is_known = issubclass(x, (np.generic, np.dtype)) or x is np.ndarray or is_exception
        is_known |= module in _OF_ABSTRACT_CLASSES
        return is_known or (module == "builtins" and name in BUILTINS)
    if isinstance(x, (types.ModuleType, ModuleView)) or not callable(x):
        return False
    if module == "builtins":
        return name in BUILTINS and getattr(builtins, name, None) is x
    if module in ("math", "cmath") or x in (bisect.bisect_left, bisect.bisect_right):
        return True
    in_numpy = isinstance(module, str) and module.split(".")[0] == "numpy"
    return in_numpy and "random" not in str(module) and name not in _NOT_OF_NUMPY
