"""Objects whose attributes a function reads without naming them as attributes in its code. Objects
of one structure share a program only if it does not depend on these attributes."""

from __future__ import annotations

import inspect
import operator
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit


class _Normal:
    __match_args__ = ("mean", "covariance")

    def __init__(self, mean: Any, covariance: Any) -> None:
        self.mean, self.covariance = mean, covariance


def _getattribute(x: Any) -> Any:
    rng = np.random.RandomState(1)
    return rng.multivariate_normal(
        x.__getattribute__("mean"), object.__getattribute__(x, "covariance")
    )


def _getmembers(x: Any) -> Any:
    held = dict(inspect.getmembers(x))
    return np.random.RandomState(1).multivariate_normal(held["mean"], held["covariance"])


def _getattr_static(x: Any) -> Any:
    mean, covariance = (inspect.getattr_static(x, name) for name in x.__match_args__)
    return np.random.RandomState(1).multivariate_normal(mean, covariance)


def _getstate(x: Any) -> Any:
    held = x.__reduce_ex__(2)[2]
    return np.random.RandomState(1).multivariate_normal(held["mean"], held["covariance"])


def _names_in_a_pattern(x: Any) -> Any:
    match x:
        case object(mean=m, covariance=c):
            return np.random.RandomState(1).multivariate_normal(m, c)


def _places_in_a_pattern(x: Any) -> Any:
    match x:
        case _Normal(m, c):
            return np.random.RandomState(1).multivariate_normal(m, c)


def _evaluated(x: Any) -> Any:
    return np.random.RandomState(1).multivariate_normal(eval("x.mean"), eval("x.covariance"))


def _called(x: Any) -> Any:
    mean, covariance = (
        operator.methodcaller("__getattribute__", name)(x) for name in ("mean", "covariance")
    )
    return np.random.RandomState(1).multivariate_normal(mean, covariance)


@pytest.mark.parametrize(
    "function",
    [
        _getattribute,
        _getmembers,
        _getattr_static,
        _getstate,
        _names_in_a_pattern,
        _places_in_a_pattern,
        _evaluated,
        _called,
    ],
    ids=lambda f: f.__name__,
)
def test_each_object_has_its_own_attributes(function: Any) -> None:
    # (The numbers that are drawn are constants of a program.)
    objects = [_Normal(np.full(2, float(i)), np.eye(2) * (i + 1)) for i in range(3)]
    jitted = rune_jit.jit(function)
    for i in (0, 0, 1, 0, 1, 2, 1, 2, 0):
        assert_same(jitted(objects[i]), function(objects[i]))


def test_an_attribute_that_appears_later_matches_a_pattern() -> None:
    def f(x: Any) -> Any:
        match x:
            case object(scale=s):
                return x.mean * s
        return x.mean

    one = _Normal(np.ones(2), np.eye(2))
    jitted = rune_jit.jit(f)
    for _ in range(3):
        assert_same(jitted(one), f(one))
    one.scale = 3.0  # type: ignore[attr-defined]
    for _ in range(3):
        assert_same(jitted(one), f(one))
