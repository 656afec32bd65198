# mypy: ignore-errors
# ruff: noqa
import numpy as np, functools, logging, warnings

log = logging.getLogger("app")
calls = {}


def counted(f):
    @functools.wraps(f)
    def wrapper(*a, **k):
        calls[f.__name__] = calls.get(f.__name__, 0) + 1
        log.info("call %s with %d arguments", f.__name__, len(a) + len(k))
        return f(*a, **k)

    return wrapper


def deprecated(msg):
    def deco(f):
        def inner(*a, **k):
            warnings.warn(msg, DeprecationWarning, stacklevel=2)
            return f(*a, **k)

        return inner

    return deco


def nonneg(f):
    def check(x, *a):
        if np.any(np.asarray(x) < 0):
            raise ValueError(f"{f.__name__}: negative input: min={np.min(x):.3f}")
        return f(x, *a)

    return check


@counted
@nonneg
def geometric_mean(x):
    return np.exp(np.log(x).mean())


@counted
@deprecated("use geometric_mean")
def gmean(x, scale=1.0):
    return geometric_mean(np.abs(x)) * scale


def main(x):
    try:
        g = geometric_mean(x)
    except ValueError as e:
        log.warning("failed: %s", e)
        g = gmean(x, scale=2)
    return g, dict(calls)


CALLS = [
    ("main", lambda r: (r.random(5) + 0.1,)),
    ("main", lambda r: (r.normal(size=8),)),
    ("main", lambda r: (r.random((3, 4)),)),
    ("main", lambda r: ([1.0, 2.0, 4.0],)),
    ("main", lambda r: (np.array([-1, 4, 5]),)),
]
