"""scipy.special's ufuncs that are compositions of NumPy's. Each function takes arrays with the
dtypes of one of the ufunc's loops. Other ufuncs run on the host (ufuncs.py)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.rules import error_function


def _number(x: Any, value: float) -> Any:
    return x.dtype.type(value)


def _expit(x: Any) -> Any:
    return _number(x, 1) / (_number(x, 1) + np.exp(-x))


def _logit(x: Any) -> Any:
    ends = np.log(x / (_number(x, 1) - x))
    distance = (x - _number(x, 0.5)) * _number(x, 2)  # from the middle, near which log loses digits
    middle = np.log1p(distance) - np.log1p(-distance)
    return np.where((x < 0.3) | (x > 0.65), ends, middle)


def _log_expit(x: Any) -> Any:
    return np.minimum(x, _number(x, 0)) - np.log1p(np.exp(-np.abs(x)))


def _xlogy(x: Any, y: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), _number(x, 0), x * np.log(y))


def _xlog1py(x: Any, y: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), _number(x, 0), x * np.log1p(y))


def _entr(x: Any) -> Any:
    beyond = np.where(x == 0, _number(x, 0), _number(x, -np.inf))
    return np.where((x > 0) | np.isnan(x), -x * np.log(x), beyond)


def _rel_entr(x: Any, y: Any) -> Any:
    inside, missing = (x > 0) & (y > 0), np.isnan(x) | np.isnan(y)
    at_zero = np.where((x == 0) & (y >= 0), _number(x, 0), _number(x, np.inf))
    # If the quotient overflows or underflows, use the difference of logarithms.
    quotient = x / y
    is_normal = (quotient > np.finfo(x.dtype).tiny) & np.isfinite(quotient)
    logarithm = np.where(is_normal, np.log(quotient), np.log(x) - np.log(y))
    return np.where(missing, _number(x, np.nan), np.where(inside, x * logarithm, at_zero))


def _kl_div(x: Any, y: Any) -> Any:
    inside = np.isfinite(_rel_entr(x, y))
    return np.where(inside, _rel_entr(x, y) - x + y, _rel_entr(x, y))


def _exprel(x: Any) -> Any:
    tiny = np.abs(x) < np.finfo(x.dtype).eps
    far = np.where(np.isposinf(x), x, np.expm1(x) / np.where(tiny, _number(x, 1), x))
    return np.where(tiny, _number(x, 1), far)


def _huber(delta: Any, r: Any) -> Any:
    half, distance = _number(r, 0.5), np.abs(r)
    near = np.where(distance <= delta, half * r * r, delta * (distance - half * delta))
    return np.where(delta < 0, _number(r, np.inf), near)


def _pseudo_huber(delta: Any, r: Any) -> Any:
    zero, one = _number(r, 0), _number(r, 1)
    quotient = r / np.where(delta == 0, one, delta)
    square = quotient * quotient
    value = delta * delta * (square / (np.sqrt(one + square) + one))
    value = np.where((delta == 0) | (r == 0), zero, value)
    return np.where((delta < 0) | np.isinf(r), _number(r, np.inf), value)


_BY_NAME: dict[str, Callable[..., Any]] = {
    "erf": error_function.erf,
    "erfc": error_function.erfc,
    "ndtr": error_function.ndtr,
    "expit": _expit,
    "logit": _logit,
    "log_expit": _log_expit,
    "xlogy": _xlogy,
    "xlog1py": _xlog1py,
    "entr": _entr,
    "rel_entr": _rel_entr,
    "kl_div": _kl_div,
    "exprel": _exprel,
    "huber": _huber,
    "pseudo_huber": _pseudo_huber,
    **{name: getattr(np, name) for name in ("cbrt", "exp2", "expm1", "log1p")},
}


def rule_of(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """The composition for a ufunc of scipy.special, or None."""
    rule = _BY_NAME.get(ufunc.__name__)
    if rule is None or getattr(np, ufunc.__name__, None) is ufunc:
        return None
    ufuncs = sys.modules.get("scipy.special._ufuncs")
    return rule if getattr(ufuncs, ufunc.__name__, None) is ufunc else None
