"""Random generators and the names of their methods that draw. (This module does not load
numpy.random.)"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

_METHOD_NAMES = (
    # Generator and RandomState
    "beta binomial chisquare choice dirichlet exponential f gamma geometric gumbel hypergeometric"
    " integers laplace logistic lognormal logseries multinomial multivariate_hypergeometric"
    " multivariate_normal negative_binomial noncentral_chisquare noncentral_f normal pareto"
    " permutation permuted poisson power rand randint randn random random_integers random_sample"
    " ranf rayleigh sample standard_cauchy standard_exponential standard_gamma standard_normal"
    " standard_t tomaxint triangular uniform vonmises wald weibull zipf"
    # random.Random
    " betavariate choices expovariate gammavariate gauss getrandbits lognormvariate normalvariate"
    " paretovariate randrange triangular vonmisesvariate weibullvariate"
)
METHODS = frozenset(_METHOD_NAMES.split())
# Methods of NumPy's generators that give the same n numbers in one call as in n calls. The values
# are the numbers of their parameters before `size`.
NUM_PARAMETERS = {
    name: count
    for count, names in enumerate(
        (
            "rand randn random random_sample standard_cauchy standard_exponential standard_normal",
            "chisquare exponential geometric pareto poisson power rayleigh standard_gamma"
            " standard_t weibull",
            "beta binomial gamma gumbel integers laplace logistic lognormal normal randint"
            " uniform vonmises wald",
            "triangular",
        )
    )
    for name in names.split()
}


class Recorded:
    """A generator whose draws in loops of the program a trace records (draws.py)."""

    private: Any = None  # a copy of the generator, which the trace may change
    number: int  # among the generators of its kind


class Outside(Recorded):
    """The stand-in for a generator from outside."""

    draws: Any  # the Draws that records its draws


def generators() -> list[Any]:
    """The classes of generators whose modules are loaded."""
    found = [sys.modules["random"].Random] if "random" in sys.modules else []
    if "numpy.random" in sys.modules:  # (`np.random` would load it)
        found += [np.random.Generator, np.random.RandomState]
    return found


def is_of_python(generator: Any) -> bool:
    """Whether a generator is a random.Random."""
    return "random" in sys.modules and type(generator) is sys.modules["random"].Random


def generator_of(x: Any) -> Any:
    """The generator, if x is one or a method of one, else None."""
    is_method = isinstance(x, (types.MethodType, types.BuiltinMethodType))
    of = x.__self__ if is_method else x
    return of if type(of) in generators() else None


def method_of(path: tuple[str, ...], find: Callable[[str], Any]) -> Any:
    """The method of a generator that draws, if a path of names refers to one, else None. `find`
    returns the value of the first name, or raises KeyError."""
    try:
        value = find(path[0])
        for name in path[1:-1]:  # (without `getattr`, which may run a property)
            value = vars(value)[name]
        if len(path) > 1 and (type(value) in generators() or type(value) is types.ModuleType):
            value = getattr(value, path[-1])
    except (IndexError, KeyError, AttributeError, TypeError):
        return None
    is_method = type(value) not in generators() and generator_of(value) is not None
    return value if is_method and getattr(value, "__name__", None) in METHODS else None
