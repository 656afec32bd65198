"""The names of methods that draw random numbers, and the base of stand-ins for generators."""

from __future__ import annotations

from typing import Any

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


class Outside:
    """The stand-in for a generator from outside."""

    draws: Any  # the drawn.Draws that records its draws
    number: int
    private: Any  # a copy of the generator, which the trace may change
