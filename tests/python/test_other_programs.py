"""What programs of other people do with arrays: each gives what NumPy gives, by default settings,
at its first calls and with other arguments."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

RNG = np.random.default_rng(0)


def _check(function: Callable[..., Any], *calls: Any) -> Any:
    """Compares the outcomes of calls, and what they leave of their arguments."""
    jitted = rune_jit.jit(function, fallback="silent")
    for args in (*calls, *calls):
        theirs, ours = (_copied(args) for _ in range(2))
        wanted, found = _outcome(function, theirs), _outcome(jitted, ours)
        assert_matches(found, wanted)
        assert_matches(ours, theirs)
    return jitted


def _copied(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.copy()
    return type(x)(map(_copied, x)) if isinstance(x, (list, tuple)) else x


def _outcome(function: Callable[..., Any], args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


X = RNG.random(6)
M = RNG.random((4, 4))


def _reinterpreted(x: Any) -> Any:
    bits = x.view(dtype=np.int64)
    bits[::2] ^= 1 << 52  # reaches x
    return x * 2, bits


def _writeable_diagonal(m: Any) -> Any:
    result = np.zeros(m.shape)
    diagonal = np.diag(result)
    diagonal.flags.writeable = True
    diagonal[:] = m.sum(axis=0)
    return result


def _strided(x: Any) -> Any:
    made = np.zeros(6)
    windows = np.lib.stride_tricks.as_strided(made, (3, 2), (16, 8))
    made[1:] = x[1:]
    return windows.sum(axis=1)


def _bytes_of(x: Any) -> Any:
    y = x * 2
    return hashlib.sha256(y).hexdigest(), zlib.crc32(y), memoryview(y)[1], bytes(y)[:4]


def _by_buffer(x: Any) -> Any:
    y = x + 1
    view = memoryview(y)
    view[0] = 7.0
    return y.sum()


def _duck(x: Any) -> Any:
    if not hasattr(x, "__array_interface__") or hasattr(x, "to_numpy"):
        raise TypeError("not an array")
    return x + 1


def _particular(x: Any) -> Any:
    if getattr(x, "__array_struct__", None) is None:
        raise TypeError("not NumPy's")
    return x + 1


def _wrong_shape(x: Any) -> Any:
    if x.ndim != 2:
        raise ValueError(f"cannot use {x.ndim} dimensions")
    return x + 1


def _of_masked(x: Any) -> Any:
    chosen = np.asarray(x[x > 0.5], float)
    return np.sort(chosen)[::-1], len(chosen)


class _Value:
    """Of which NumPy makes arrays of objects."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __radd__(self, other: Any) -> Any:
        return other + self.value


class _Deciding(_Value):
    __array_priority__ = 10


def _with_objects(x: Any) -> Any:
    known = float(x[0]) > -1
    return [str(v) for v in x + _Value(1.0)], x[1:] + _Deciding(2.0), x * Fraction(1, 2), known


def _with_nothing(x: Any) -> Any:
    scale = float(x[0])
    return (x.sum() + scale) * None


def _flat(m: Any) -> Any:
    labels = (m * 3).astype(np.int64)
    ranks = np.unique(labels, return_inverse=True)[1]
    labels.flat = ranks
    return labels.flat == 0, m.flat > m.T.flat, np.asarray(m.flat), 0 in ranks, 7.5 in m


def _raises_after_values(x: Any) -> Any:
    if float(x.sum()) > -1:
        raise RuntimeError("too much")
    return x


def _chosen(m: Any) -> Any:
    points = m[m[:, 0] > 0.2]
    return points.min(axis=0), points.max(axis=0), points.mean(), float(points.sum())


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "a view as another dtype is written to": (_reinterpreted, [X]),
    "a diagonal is made writeable": (_writeable_diagonal, [M]),
    "a view by strides of what is written later": (_strided, [X]),
    "the bytes of an array": (_bytes_of, [X]),
    "a buffer that is written to": (_by_buffer, [X]),
    "what an array has": (_duck, [X]),
    "the module of an array's class": (_particular, [X]),
    "an exception for a shape": (_wrong_shape, [X]),
    "elements under a mask as an array": (_of_masked, [X]),
    "operators with objects": (_with_objects, [X]),
    "an operator with None": (_with_nothing, [X]),
    "what flat has": (_flat, [M]),
    "an exception after values": (_raises_after_values, [X]),
    "reductions of rows under a mask": (_chosen, [M]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    function, args = PROGRAMS[name]
    other = [RNG.random(a.shape) for a in args]
    _check(function, args, other)


def test_what_a_trace_alone_raises_is_not_raised() -> None:
    jitted = rune_jit.jit(_particular)
    with pytest.warns(
        rune_jit.JitFallbackWarning, match=r"cannot trace this .TypeError: not NumPy"
    ):
        np.testing.assert_array_equal(jitted(X), X + 1)
    np.testing.assert_array_equal(jitted(X), X + 1)
    assert "on NumPy" in jitted.explain()
    with pytest.raises(TypeError, match="not NumPy's"):
        rune_jit.jit(_particular, fallback="error")(X)


def test_an_exception_leaves_what_numpy_leaves() -> None:
    log: list[str] = []

    def check(x: Any) -> Any:
        log.append("checked")
        if x.shape[0] > 3:
            raise ValueError("too long")
        return x

    jitted = rune_jit.jit(check)
    for count in (1, 2):
        with pytest.raises(ValueError, match="too long"):
            jitted(X)
        assert log == ["checked"] * count


_Pair = collections.namedtuple("_Pair", "a b")


class _Result(_Pair):
    """A tuple with more than its items, as SciPy's tests return."""

    def __new__(cls, a: Any, b: Any, *, more: Any) -> Any:
        self = super().__new__(cls, a, b)
        self.more = more
        return self


class _Labelled(_Pair):
    pass


def _labelled(x: Any) -> Any:
    result = _Labelled(x.sum(), x + 1)
    result.label, result.half = "sum", x / 2
    return result


@pytest.mark.parametrize("asks", [False, True], ids=["one program", "segments"])
def test_tuples_with_attributes(asks: bool) -> None:
    def result(x: Any) -> Any:
        positive = x.sum().tolist() > 0 if asks else True
        return _Result(x.sum(), x * 2, more=x - 1), _labelled(x) if positive else None

    jitted = rune_jit.jit(result)
    for x in (X, RNG.random(6), X):
        (found, labelled), (wanted, label) = jitted(x), result(x)
        assert type(found) is _Result and type(labelled) is _Labelled
        assert_matches(tuple(found), tuple(wanted))
        assert_matches(found.more, wanted.more)
        assert_matches(vars(labelled), vars(label))
    assert ("as one program" in jitted.explain()) != asks


@dataclasses.dataclass
class _Record:
    name: str
    values: Any
    count: int = 0

    def __post_init__(self) -> None:
        self.total = self.values.sum()


def test_records_keep_the_order_of_their_attributes() -> None:
    def make(x: Any) -> Any:
        return _Record("a", x * 2)

    jitted = rune_jit.jit(make)
    for x in (X, RNG.random(6)):
        found, wanted = jitted(x), make(x)
        assert list(vars(found)) == list(vars(wanted))
        assert_matches(vars(found), vars(wanted))


class _Bunch(dict[str, Any]):
    """A dict with attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def test_containers_of_other_classes_hold_arrays() -> None:
    def make(x: Any) -> Any:
        return _Bunch(mean=x.mean(), parts=[x + 1])

    jitted = rune_jit.jit(make)
    for x in (X, RNG.random(6)):
        found = jitted(x)
        assert type(found) is _Bunch
        assert_matches(dict(found), dict(make(x)))


def test_signatures_that_raise_are_not_traced_each_time() -> None:
    limit = [1]

    def check(x: Any) -> Any:
        if limit[0]:
            raise ValueError("not yet")
        return x + 1

    jitted = rune_jit.jit(check)
    for _ in range(5):
        with pytest.raises(ValueError, match="not yet"):
            jitted(X)
    assert jitted.cache_info().misses == 1
    limit[0] = 0
    for _ in range(3):
        np.testing.assert_array_equal(jitted(X), X + 1)
    assert "as one program" in jitted.explain()


def test_a_list_that_compiled_code_changes() -> None:
    optimize = pytest.importorskip("scipy.optimize")

    def fit(x: Any) -> Any:
        return optimize.minimize(lambda v: ((v - x) ** 2).sum(), x * 0, method="SLSQP").x

    jitted = rune_jit.jit(fit)
    for _ in range(3):
        np.testing.assert_allclose(jitted(X), fit(X), rtol=1e-5)


def test_compiled_functions_get_arrays() -> None:
    signal = pytest.importorskip("scipy.signal")
    stats = pytest.importorskip("scipy.stats")
    peaks = _check(lambda x: signal.find_peaks(x * 2)[0] + 1, [X], [RNG.random(9)])
    assert "segments" in peaks.explain() or "NumPy" in peaks.explain()
    _check(lambda x, y: tuple(stats.kendalltau(x, y)), [X, X**2], [X, -X])
    _check(lambda x: signal.windows.dpss(8, 2.0) * x[0], [X])


def test_ufuncs_of_other_libraries() -> None:
    special = pytest.importorskip("scipy.special")
    _check(lambda x: special.lqn(3, float(x[0])), [X])
    _check(lambda x: special.jv(2, x) + special.ellipk(x / 2), [X], [X * 2])


def _grown(n: int, x: Any) -> Any:
    return n * n, n + 1, -n, abs(n), n // 2 * 3 + 1, x * n


def _cubed(n: int, x: Any) -> Any:
    return n**3 * n, x * n


def _scrambled(seed: int, x: Any) -> Any:
    return (seed * 6364136223846793005 + 1442695040888963407) % 2**64, x


@pytest.mark.parametrize("function", [_grown, _cubed, _scrambled])
def test_integers_do_not_wrap(function: Callable[..., Any]) -> None:
    numbers = (3, 2**31 - 1, 2**31, -(2**31) - 1, 2**40, 2**63 - 1)
    _check(function, *((n, X) for n in numbers))


def test_small_integers_share_a_program() -> None:
    jitted = rune_jit.jit(_grown)
    for n in range(5):
        assert jitted(n, X)[:5] == _grown(n, X)[:5]
    assert jitted.cache_info().misses == 1


def _written_selection(x: Any) -> Any:
    chosen = x[x > 0.2]
    chosen[0:] = float(x[0]) + 5
    other = x.copy()
    same = other
    other += x[x > -1]
    return chosen, (chosen > 4).sum(), same


def _written_diagonal(m: Any) -> Any:
    diagonal = np.diag(m)
    if float(m[0, 0]) > -1:
        diagonal += diagonal
    return diagonal


@pytest.mark.parametrize("function, x", [(_written_selection, X), (_written_diagonal, M)])
def test_writes_in_segments(function: Callable[..., Any], x: Any) -> None:
    _check(function, [x], [x + 1])
