"""NumPy's ufuncs and functions under jit, each at least once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from compare import assert_matches, check

import rune_jit

RNG = np.random.default_rng(7)
X = RNG.standard_normal((4, 5))
Y = RNG.standard_normal((4, 5))
V = RNG.standard_normal(5)
HOLES = np.where(X > 1, np.nan, X)
SQUARE = X[:, :4] @ X[:, :4].T + 4 * np.eye(4)
I = RNG.integers(-4, 5, (4, 5))  # noqa: E741
B = X > 0


# Ufuncs.

UFUNCS = {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc)}
_SAMPLES = {
    "bool": np.array([[True, False, True], [False, False, True]]),
    "int8": np.array([[1, -3, 7], [2, 5, -6]], np.int8),
    "uint16": np.array([[1, 3, 7], [2, 5, 6]], np.uint16),
    "int64": np.array([[1, -3, 7], [2, 5, -6]]),
    "float32": np.array([[0.5, -0.25, np.nan], [-0.0, np.inf, 1]], np.float32),
    "float64": np.array([[0.5, -0.25, np.nan], [-0.0, np.inf, 1]]),
}


def _samples(ufunc: np.ufunc) -> Iterator[tuple[np.ndarray, ...]]:
    """Operands of each dtype that the ufunc takes."""
    for sample in _SAMPLES.values():
        operands = [sample, sample[::-1, ::-1], sample][: ufunc.nin]
        if ufunc.signature == "(n?,k),(k,m?)->(n?,m?)":
            operands[1] = operands[1].T
        elif ufunc.signature == "(m,n),(n)->(m)":
            operands[1] = operands[1][0]
        elif ufunc.signature == "(n),(n,m)->(m)":
            operands[1] = operands[1].T
        if ufunc is np.power and sample.dtype.kind == "i":
            operands[1] = abs(operands[1])
        if ufunc is np.ldexp:
            operands = [_SAMPLES["float64"], _SAMPLES["int8"]]
        try:
            with np.errstate(all="ignore"):
                ufunc(*operands)
        except TypeError:
            continue
        yield tuple(operands)


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_every_ufunc(name: str) -> None:
    ufunc = UFUNCS[name]
    samples = list(_samples(ufunc))
    if not samples:
        assert name == "isnat"  # of dates only
        return

    def calls(*samples: Any) -> list[Any]:
        results = []
        for operands in samples:
            plain = ufunc(*operands)
            results.append(plain)
            first = plain[0] if isinstance(plain, tuple) else plain
            rest = (None,) * (ufunc.nout - 1)
            out = np.zeros(first.shape, first.dtype)
            ufunc(*operands, out=(out, *rest))
            results.append(out)
            if ufunc.signature is None:
                where = np.array([True, False, True])
                out = np.full(first.shape, 9).astype(first.dtype)
                ufunc(*operands, out=(out, *rest), where=where)
                results.append(out)
        return results

    check(calls, *samples)


@pytest.mark.parametrize(
    "name", sorted(n for n, f in UFUNCS.items() if f.nin == 2 and f.nout == 1 and not f.signature)
)
def test_every_method(name: str) -> None:
    ufunc = UFUNCS[name]

    def methods(a: Any) -> list[Any]:
        # NumPy's loops must take their own results for all but outer.
        results = [ufunc.outer(a[0], a[1])]
        if ufunc(a, a).dtype == a.dtype or ufunc(a, a).dtype == bool:
            results += [ufunc.accumulate(a, axis=1), ufunc.reduceat(a, [0, 2], axis=1)]
            if ufunc.identity is not None:
                results.append(ufunc.reduce(a, axis=(0, 1)) if ufunc.identity == 0 else a)
            results.append(ufunc.reduce(a, axis=1, keepdims=True))
            results.append(ufunc.reduce(a, axis=-1, initial=1))
        return results

    done = 0
    for operands in _samples(ufunc):
        try:
            with np.errstate(all="ignore"):
                methods(operands[0])
        except (TypeError, ValueError):
            continue  # power of negative integers; loops that take other dtypes than they give
        check(methods, operands[0])
        done += 1
    assert done or name == "ldexp"


@pytest.mark.parametrize("name", sorted(n for n, f in UFUNCS.items() if not f.signature))
def test_every_at(name: str) -> None:
    """What an index names twice is computed twice; NumPy's errors where it has no loop."""
    ufunc = UFUNCS[name]
    at = np.array([0, 2, 0, -1])

    def write(a: Any, values: Any) -> Any:
        ufunc.at(a, at, *([values] if ufunc.nin == 2 else []))
        ufunc.at(a, (slice(1, None),), *([values[0]] if ufunc.nin == 2 else []))
        return a

    for operands in _samples(ufunc):
        a, values = operands[0].ravel()[:5], np.resize(operands[-1], 4)
        try:
            with np.errstate(all="ignore"):
                expected = write(a.copy(), values)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error).__mro__[-4]):
                rune_jit.jit(write, fallback="error")(a.copy(), values)
            continue
        with np.errstate(all="ignore"):
            found = rune_jit.jit(write, fallback="error")(a.copy(), values)
        assert_matches(found, expected)


def test_ufunc_options() -> None:
    def options(x: Any, i: Any, mask: Any) -> list[Any]:
        total = np.zeros(4, np.float32)
        np.add.reduce(x, axis=1, out=total)
        running = np.zeros((4, 5))
        np.add.accumulate(x, axis=1, out=running)
        return [
            total,
            running,
            np.add(i, i, dtype=np.float32),
            np.sqrt(i, dtype=np.float32, casting="unsafe") * 0,
            np.multiply(x, 2.5, dtype=np.int32, casting="unsafe"),
            np.add.reduce(x, axis=0, where=mask),
            np.maximum.reduce(x, axis=1, where=mask, initial=-1.5),
            np.logical_or.reduce(i, axis=1, where=mask),
            np.add.reduce(i, axis=(0, 1), dtype=np.int8),
            np.divide(1, i, where=i != 0, out=np.zeros(i.shape)),
            np.add.accumulate(i.astype(np.int8), axis=-1),
            i**2 ** abs(i),
        ]

    check(options, X, I, B)
    for bad in (
        lambda x: np.add(x, 1, dtype=np.int32),
        lambda x: np.add(x, 1, casting="no", dtype=np.float32),
        lambda x: np.maximum.reduce(x, where=x > 0),
        lambda x: np.power(x.astype(np.int64), x.astype(np.int64) - 100),
        lambda x: np.add.accumulate(x, axis=3),
    ):
        with pytest.raises(Exception) as numpys:
            bad(X)
        with pytest.raises(numpys.type):
            rune_jit.jit(bad, fallback="error")(X)


# Functions: (name, function of the arguments). Some are traced, some run on the host.
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sorting": (
        lambda x, v: [
            np.sort(x), np.sort(x, axis=None), np.argsort(x, axis=0), np.partition(x, 2),
            np.argpartition(v, 1)[:1], np.lexsort((x[0], v)), np.searchsorted(np.sort(v), x),
            np.sort(x)[:, ::-1], x[np.arange(4)[:, None], np.argsort(x)],
            np.digitize(x, [0.0, 1.0]), np.digitize(x, np.sort(v)),
        ],
        (X, V),
    ),
    "statistics": (
        lambda x, v, i: [
            np.histogram(x, bins=4, range=(-2, 2)), np.histogram(x, 3), np.median(x, axis=0),
            np.percentile(x, [10, 50], axis=1), np.quantile(v, 0.3), np.cov(x), np.cov(x, x),
            np.corrcoef(x), np.average(x, axis=1, weights=v), np.ptp(x, axis=1), np.cov(x[0]),
            np.cov(x, rowvar=False), np.histogram2d(x[0], v, bins=3), np.mean(x, where=i > 0),
            np.var(x, where=i > 0, axis=0), np.std(x, mean=0.5),
            np.bincount([1, 2, 2], minlength=5),
        ],
        (X, V, I),
    ),
    "holes": (
        lambda h: [
            np.nansum(h, axis=0), np.nanprod(h), np.nanmax(h, axis=1), np.nanmin(h), np.nanmean(h),
            np.nanvar(h, axis=1), np.nanstd(h), np.nanmedian(h), np.nanpercentile(h, 30),
            np.nancumsum(h), np.nancumprod(h, axis=1), np.nanargmax(h), np.nan_to_num(h),
            np.isposinf(h), np.isneginf(h),
        ],
        (HOLES,),
    ),
    "running": (
        lambda x, i: [
            np.cumsum(x), np.cumsum(x, axis=0), np.cumsum(i > 0), np.cumprod(x, axis=1),
            x.cumsum(1), np.cumsum(i.astype(np.int8), axis=1), np.cumsum(x, dtype=np.float32),
            np.cumulative_sum(x, axis=1, include_initial=True), np.cumulative_prod(x[0]),
            np.diff(x), np.diff(x, n=2, axis=0), np.diff(x, prepend=0.0), np.ediff1d(x),
            np.trapezoid(x), np.trapezoid(x, x[0]), np.trapezoid(x, dx=0.1, axis=0),
            np.gradient(x), np.gradient(x, 0.5, axis=1), np.gradient(x[0], x[1]), np.unwrap(x * 5),
            np.gradient(x, edge_order=2), np.cumsum(x[:0]), np.maximum.accumulate(x, axis=1),
        ],
        (X, I),
    ),
    "products": (
        lambda x, y, v: [
            np.kron(x, y), np.kron(v, x), np.cross(x[:, :3], y[:, :3]), np.convolve(v, x[0]),
            np.convolve(v, x[0], "same"), np.correlate(v, x[0], "full"), np.vander(v, 3),
            np.vdot(x, y), np.inner(x, y), np.outer(v, v), np.tensordot(x, y, ([0], [0])),
            np.einsum("ij,kj->ik", x, y), np.linalg.multi_dot([x, y.T, x]), np.matvec(x, v),
            np.vecmat(v, x.T), np.vecdot(x, y), np.linalg.matmul(x, y.T), np.linalg.outer(v, v),
            np.linalg.cross(x[:, :3], y[:, :3]), np.linalg.vecdot(x, y), np.linalg.trace(x),
        ],
        (X, Y, V),
    ),
    "linear algebra": (
        lambda s, b: [
            np.linalg.inv(s), np.linalg.solve(s, b), np.linalg.cholesky(s), np.linalg.det(s),
            np.linalg.slogdet(s), np.linalg.eigvalsh(s), abs(np.linalg.eigh(s)[1]),
            np.linalg.svd(s, compute_uv=False), np.linalg.svdvals(b), abs(np.linalg.qr(b)[1]),
            np.linalg.pinv(b), np.linalg.matrix_power(s, 3), np.linalg.matrix_rank(s),
            np.linalg.norm(b), np.linalg.norm(b, axis=1), np.linalg.norm(b, "nuc"),
            np.linalg.norm(b[0], 3), np.linalg.cond(s), np.linalg.lstsq(s, b)[0],
            np.linalg.inv(np.stack([s, s + 1])), np.linalg.vector_norm(b, axis=0),
            np.linalg.matrix_norm(b), np.linalg.eigh(s).eigenvalues,
        ],
        (SQUARE, X),
    ),
    "rounding and choice": (
        lambda x, i: [
            np.round(x, 2), np.around(x), np.round(i, -1), np.fix(x), np.sinc(x), np.i0(x),
            np.select([x > 1, x > 0], [x, -x], 3.0), np.choose(i % 2, [x, -x]),
            np.piecewise(x, [x < 0], [-1.0, 1.0]), np.interp(x, [-1.0, 0.0, 2.0], [3.0, 4.0, 5.0]),
            np.clip(i, 0, None), np.isclose(x, x + 1e-9), np.allclose(x, x), np.isin(i, [1, 2]),
            np.linspace(x[0], x[1, 1], 4),
            np.heaviside(x, 0.5), np.frexp(x), np.modf(x), divmod(i, 3), np.spacing(x),
        ],
        (X, I),
    ),
    "places": (
        lambda x, i: [
            np.take_along_axis(x, np.argsort(x, axis=1), axis=1), np.take(x, [1, 0], axis=1),
            np.take(x, i, mode="wrap"), np.take(x, i, mode="clip"), np.tril(x), np.triu(x, 1),
            np.repeat(x, [1, 0, 2, 1], axis=0), np.pad(x, 1, mode="linear_ramp"), np.roll(x, 2),
            np.unravel_index(abs(i), (3, 2)), np.unstack(x), np.matrix_transpose(x),
            np.permute_dims(x, (1, 0)), np.astype(x, np.float32), np.concat([x, x]),
            np.resize(x, 7),
            np.block([[x, x], [x, x]]), np.insert(x, 1, 0.0), np.delete(x, 1, axis=0),
            np.packbits(i > 0), np.diagflat(x[0]), np.apply_along_axis(np.sort, 0, x),
        ],
        (X, I),
    ),
}  # fmt: skip


def test_windows_and_joined_arrays() -> None:
    windows = np.lib.stride_tricks.sliding_window_view
    single = V.astype(np.float32)

    def functions(x: Any, v: Any, i: Any) -> list[Any]:
        last = x.copy()
        last.partition(4, axis=1)
        return [
            windows(x, (2, 3)), windows(x, 2, axis=-1), windows(x, (2, 2), axis=(0, 0)),
            windows(v + 1, 3).max(axis=-1), x[np.ix_(i, [0, 2])], x[np.ix_(np.arange(2), i)],
            np.r_[v[2:0:-1], v, 0, 1:4], np.r_[v, 0], np.c_[v, v, np.arange(5)], np.c_[x, x],
            np.r_[x, x], np.r_[0:3], x[range(4), i], last[:, -1], x.argsort(axis=0).argsort(0),
            (i % 2).choose([i, -i]), x[:, :3].argpartition(1)[:, 1],
        ]  # fmt: skip

    check(functions, X, single, np.array([1, 0, 3, 2]))
    for bad in (
        lambda x: windows(x, (9, 1)),
        lambda x: windows(x, 2),
        lambda x: windows(x, 2, axis=5),
        lambda x: windows(x, -1, axis=0),
        lambda x: np.ix_(x),
    ):
        with pytest.raises(Exception) as numpys:
            bad(X)
        with pytest.raises(numpys.type):
            rune_jit.jit(bad, fallback="error")(X)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    check(function, *arguments)


def test_creation() -> None:
    """Arrays made in a traced function can be written to."""

    def create(x: Any) -> list[Any]:
        made = [
            np.zeros(3), np.empty((2, 3), np.float32) * 0, np.ones(2, int), np.full((2,), x[0, 0]),
            np.zeros_like(x), np.full_like(x, 2), np.arange(4.0), np.linspace(0, 1, 5),
            np.logspace(0, 1, 3), np.geomspace(1, 8, 4), np.eye(3), np.identity(2), np.tri(3),
            np.array([x[0, 0], x[1, 1]]), np.asarray([1.0, 2.0]), *np.meshgrid([1.0, 2.0], [3.0]),
            *np.mgrid[0.0:2.0, 0.0:3.0], *np.ogrid[0.0:2.0, 0.0:3.0], *np.indices((2, 2)),
            np.fromfunction(lambda i, j: i + j, (2, 3)), np.hanning(5), np.diag([1.0, 2.0]),
            np.array([[1.0], [2.0]]).repeat(2, axis=1), np.copy(x),
        ]  # fmt: skip
        for array in made:
            array[..., -1] = x[0, 0]
        return made

    check(create, X)


BELOW_ONE = 1 - 2.0**-52


@pytest.mark.parametrize(
    "x, y, tolerance",
    [
        (np.array(1, np.float32), BELOW_ONE, {"atol": 0, "rtol": 0}),
        (np.array(1, np.float32), 2, {"atol": 0, "rtol": BELOW_ONE / 2}),
        (np.arange(3, dtype=np.float16), 1.0001, {"atol": 0, "rtol": 1e-5}),
        (np.array(1, np.float32), np.float64(BELOW_ONE), {"atol": 0, "rtol": 0}),
        (np.array([-128, 1], np.int8), -128, {}),
        (np.arange(3), True, {}),
        (np.arange(3.0), 1 + 1e-9j, {}),
        (1.0, np.arange(3.0), {}),
    ],
)
def test_isclose_of_pythons_numbers(x: Any, y: Any, tolerance: dict[str, Any]) -> None:
    check(lambda a, b: (np.isclose(a, b, **tolerance), np.allclose(a, b, **tolerance)), x, y)


@pytest.mark.parametrize("function", [np.mean, np.nanmean, np.var, np.std, np.nanvar, np.nanstd])
def test_too_few_elements_warn_at_each_call(function: Callable[..., Any]) -> None:
    jitted, few = rune_jit.jit(function, fallback="error"), np.zeros((0, 3))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="Mean of empty|Degrees of freedom"):
            np.testing.assert_array_equal(jitted(few, axis=0), [np.nan] * 3)
    if function not in (np.mean, np.nanmean):
        with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
            rune_jit.jit(function, fallback="error")(X, axis=0, ddof=4)


@pytest.mark.parametrize("function", [np.mean, np.var, np.std, np.nanvar])
def test_statistics_of_real_numbers_as_complex_ones(function: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(lambda x: function(x, axis=0, dtype=np.complex128), fallback="silent")
    wanted = function(X, axis=0, dtype=np.complex128)
    found = jitted(X)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("dtype", ["O", "U5", "longdouble"])
def test_casts_of_numbers_that_only_numpy_makes(dtype: str) -> None:
    x = np.int64(3)
    found = rune_jit.jit(lambda x: x.astype(dtype), fallback="silent")(x)
    assert type(found) is type(x.astype(dtype)) and found == x.astype(dtype)


def _calls_that_numpy_may_refuse() -> list[Callable[[Any], Any]]:
    at = np.array([0, 7, -2])
    return [
        lambda x: np.add.reduce(np.full(2, -0.0) * abs(x[0, 0]), initial=None),
        lambda x: np.add.reduce(x[0, :0], initial=None),
        lambda x: np.frexp(x, out=(..., ...)),
        lambda x: np.sum(x, axis=0, keepdims="yes"),
        lambda x: np.isin(x, [1.0, 2.0], kind="table"),
        lambda x: np.isin(x.astype(int), np.array([-(2**62), 2**62]), kind="table"),
        lambda x: np.searchsorted(x[0], x[1], sorter=np.argsort(x[0])),
        lambda x: np.searchsorted(x[0], x[1], sorter=np.array([0, 1])),
        lambda x: np.put(x, [0], 1, mode="other"),
        lambda x: np.take(x, at, mode="wrap"),
        lambda x: np.take(x, at, axis=1, mode="clip"),
        lambda x: np.take(x[:, 0], x[:, 0] > 0),
        lambda x: np.nanargmax(x, axis=0, out=np.zeros(5)),
        lambda x: np.pad(x, 1, mode="edge", constant_values=1),
        lambda x: np.pad(x, 1, mode="edge", reflect_type="even"),
        lambda x: x.T.reshape(20, copy=False),
        lambda x: x.reshape(20, copy=False),
        lambda x: np.einsum("ij,kj,kl->il", x, x, x, optimize=["other"]),
    ]


@pytest.mark.parametrize("number", range(18))
def test_numpy_decides_what_is_an_error(number: int) -> None:
    function = _calls_that_numpy_may_refuse()[number]
    results = []
    for f in (function, rune_jit.jit(function, fallback="silent")):
        try:
            results.append((np.asarray(f(X.copy())), type(None)))
        except Exception as error:
            results.append((np.zeros(0), type(error)))
    (wanted, wanted_error), (found, found_error) = results
    assert found_error is wanted_error
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
    assert_matches(found, wanted)


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_positions_beyond_the_end(mode: Any) -> None:
    at = np.array([[0, 7, -2], [4, -9, 100]], np.int8)
    check(lambda x, at: (np.take(x, at, mode=mode), np.take(x, at, 1, mode=mode)), X, at)
