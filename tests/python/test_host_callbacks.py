"""Calls to NumPy on the host inside compiled programs."""

import itertools
import logging
import math

import numpy as np
import pytest
from compare import assert_matches
from devices import HAS_FLOAT64, devices

import rune_jit
from rune_jit import ConcretizationError, UnsupportedOpError, ir

RNG = np.random.default_rng(0)


def many(x, y):
    """Several callbacks, kernels between them, results that are not used, views as operands."""
    rows = np.sort(x * 2, axis=0)
    inverse = np.linalg.inv(y @ y.T + 3 * np.eye(y.shape[0], dtype=y.dtype))
    values, _ = np.linalg.eigh(inverse + inverse.T)
    _, r = np.linalg.qr(y.T[::-1])
    order = np.argsort(rows.sum(1))
    sign, logarithm = np.linalg.slogdet(inverse)
    return rows + 1, inverse.sum(0), values, np.abs(r), rows[order], sign * logarithm, order


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_several_callbacks_with_kernels_between(device):
    jitted = rune_jit.jit(many, fallback="error", device=device)
    for _ in range(3):
        x, y = RNG.standard_normal((5, 4)), RNG.standard_normal((4, 4))
        rtol, atol = 1e-9, 1e-12
        if not HAS_FLOAT64:
            x, y, rtol, atol = x.astype(np.float32), y.astype(np.float32), 1e-4, 1e-5
        for found, wanted in zip(jitted(x, y), many(x, y), strict=True):
            assert type(found) is type(wanted) and found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
    assert jitted.cache_info().misses == 1
    lowered = jitted.lower(x, y)
    assert "host callback numpy.linalg.eigh" in lowered.explain()
    assert lowered.cost_analysis()["kernels"] == len(lowered.kernels)
    assert 'name="numpy.sort"' in lowered.schedule


def test_an_error_reaches_the_caller_and_nothing_is_written():
    def f(a, out):
        out[...] = np.linalg.cholesky(a)
        return out.sum()

    jitted = rune_jit.jit(f, fallback="error")
    out = np.zeros((3, 3))
    assert jitted(4 * np.eye(3), out) == 6
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        jitted(-np.eye(3), out)
    np.testing.assert_array_equal(out, 2 * np.eye(3))
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        jitted(np.ones((2, 3)), out)


@pytest.mark.parametrize("dtype", (np.float32, np.float64)[: 1 + HAS_FLOAT64])
@pytest.mark.parametrize("upper", (False, True))
def test_large_cholesky_factors_are_those_of_numpy(dtype, upper):
    x = RNG.standard_normal((520, 600)).astype(dtype)
    a = x @ x.T
    a[10, 20] += 1  # one of the triangles is not read
    jitted = rune_jit.jit(lambda a: np.linalg.cholesky(a, upper=upper), fallback="error")
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    for given in (a, np.asfortranarray(a), a.T, np.repeat(a, 2, axis=0)[::2]):
        expected, found = np.linalg.cholesky(given, upper=upper), jitted(given)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    a[515, 515] = -1
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        jitted(a)


def test_known_arrays_are_handed_over_as_they_are_at_the_call():
    def f(x):
        u = np.zeros(4)
        rows = np.sort([x, u], axis=0)
        u[0] = 9
        near = np.convolve(u, x) + np.interp(x, u[::-1], u, period=7)[0]
        u += 1
        return rows, near, u

    x = np.array([3.0, 1.0, 2.0, -1.0])
    jitted = rune_jit.jit(f, fallback="error")
    for _ in range(2):
        for found, wanted in zip(jitted(x), f(x), strict=True):
            np.testing.assert_allclose(found, wanted)


def test_python_integers_and_known_arrays():
    def f(x, b):
        u = np.zeros(4, np.uint8)
        x = x - (u - int(b[1]) * 2)
        u[3] += 1
        return x, u

    x, b = np.array([3, 2, 3, 2], np.uint8), np.array([1, 0, 3])
    for found, wanted in zip(rune_jit.jit(f, fallback="error")(x, b), f(x, b), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_arguments_without_elements_and_numbers():
    jitted = rune_jit.jit(
        lambda x, q, empty: (np.percentile(x, q), np.sort(empty), np.linalg.det(empty)),
        fallback="error",
    )
    x = RNG.standard_normal(9)
    for q in (10, 90):
        found = jitted(x, q, np.empty((0, 0)))
        assert found[0] == np.percentile(x, q) and found[1].shape == (0, 0) and found[2] == 1
    assert jitted.cache_info().misses == 1


@pytest.mark.parametrize("device", ["cpu", "interpreter"])
def test_what_may_raise_is_called_though_nobody_uses_it(device):
    def unused(a, x):
        np.linalg.inv(a)
        np.sort(x)
        return x + 1

    def nothing(a):
        np.linalg.cholesky(a)

    x, singular = np.arange(3.0), np.zeros((3, 3))
    jitted = rune_jit.jit(unused, fallback="error", device=device)
    np.testing.assert_array_equal(jitted(np.eye(3), x), x + 1)
    explained = jitted.lower(np.eye(3), x).explain()
    assert "numpy.linalg.inv" in explained and "numpy.sort" not in explained
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        jitted(singular, x)
    jitted = rune_jit.jit(nothing, fallback="error", device=device)
    assert jitted(np.eye(3)) is None
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        jitted(singular)


X, MASK, PLACES = np.arange(5.0), np.arange(5) > 2, np.array([1, 3])


@pytest.mark.parametrize(
    ("function", "arguments", "alternative"),
    [
        (np.unique, (X,), r"np\.sort"),
        (np.nonzero, (X,), r"np\.where"),
        (lambda x: np.histogram(x, bins="auto"), (X,), "a number of bins"),
        (lambda x: np.histogram_bin_edges(x, "fd"), (X,), "a number of bins"),
        (lambda x, m: np.insert(x, m, 9), (X, MASK), "indices"),
        (np.delete, (X, MASK), r"np\.where"),
        (np.delete, (X, PLACES), r"np\.where"),
        (np.polymul, (X, X), r"np\.convolve"),
        (np.repeat, (X, PLACES), "static"),
        (lambda a, b: np.linalg.lstsq(a, b)[1], (np.eye(4, 2), X[:4]), r"np\.where"),
    ],
)
def test_what_depends_on_data(function, arguments, alternative):
    with pytest.raises(ConcretizationError, match=f"hint: .*{alternative}"):
        rune_jit.jit(function, fallback="error")(*arguments)


def test_indices_of_known_shape():
    def functions(x, i, edges):
        return [
            np.insert(x, i, 9), np.insert(x, i[0], [7, 8]), np.delete(x, i[1]),
            np.delete(x, [0, 0]), np.delete(x, slice(1, 3)),
            *np.histogram(x, edges), *np.histogram(x, 3),
        ]  # fmt: skip

    edges = np.array([0, 1.5, 4])
    jitted = rune_jit.jit(functions, fallback="error")
    for i in (PLACES, PLACES + 1):
        for found, wanted in zip(jitted(X, i, edges), functions(X, i, edges), strict=True):
            np.testing.assert_array_equal(found, wanted)
    with pytest.raises(IndexError):
        jitted(X, PLACES + 7, edges)


def test_probes_that_do_not_suit():
    """Weights whose sum is zero, matrices without full rank, points that are one."""

    def functions(x, w):
        return (
            np.cov(np.outer(x, x) + np.eye(5), aweights=w), np.cov(x, fweights=(w * 2).astype(int)),
            np.quantile(x, 0.5, weights=w, method="inverted_cdf"), np.polyfit(x, x**2, 2),
            *np.polyfit(x, x**3, 1, w=w, cov=True), np.average(x, weights=w),
        )  # fmt: skip

    w = np.array([1.0, 2, 1, 0, 3])
    for found, wanted in zip(
        rune_jit.jit(functions, fallback="error")(X, w), functions(X, w), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


HALVES = np.vectorize(lambda t, u=2: math.floor(t) / u if t > 0 else -t * 0.5)


def test_vectorize():
    def function(x):
        @np.vectorize(otypes=[float])
        def inverse(t):
            return 1 / t if t else 0

        doubled = np.fromiter((t * 2 for t in x), float)
        return (
            HALVES(x), HALVES(x, u=4.0), HALVES(x[1]), np.vectorize(divmod)(x, 2.0), inverse(x),
            np.vectorize(np.sum, signature="(n)->()")(x[:, None] + x), doubled,
        )  # fmt: skip

    jitted = rune_jit.jit(function, fallback="error")
    for x in (X - 2, X + 0.5):
        assert_matches(jitted(x), function(x))
    assert "numpy.vectorize" in jitted.lower(X).explain()
    assert jitted.cache_info().misses == 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.vectorize(lambda t: t if t > 0 else 0)(x), "dtype of the result depends"),
        (lambda x: np.vectorize(lambda t: t + x.sum())(x), "uses traced arrays"),
    ],
)
def test_what_vectorize_cannot(function, message):
    with pytest.raises(UnsupportedOpError, match=message):
        rune_jit.jit(function, fallback="error")(X)
    np.testing.assert_array_equal(rune_jit.jit(function, fallback="silent")(X), function(X))


def test_residuals_that_may_be_missing():
    """numpy.linalg.lstsq gives none for a matrix without full rank."""
    full, deficient = np.array([[1.0, 0], [1, 2], [2, 1]]), np.ones((3, 2))
    jitted = rune_jit.jit(
        lambda a, b: (np.linalg.lstsq(a, b)[0], np.linalg.lstsq(a, b)[1].sum()), fallback="error"
    )
    for a in (full, deficient):
        for b in (np.arange(3.0), np.arange(6.0).reshape(3, 2)):
            solution, residuals = np.linalg.lstsq(a, b)[:2]
            found = jitted(a, b)
            np.testing.assert_allclose(found[0], solution)
            np.testing.assert_allclose(found[1], residuals.sum(), atol=1e-12)


TEXT = """graph {
  %0 = placeholder index=0 : f32[4]
  %1 = unary neg %0 : f32[4]
  %2 = host_callback "halves" call=0 result=0 %1 %0 : f32[2]
  %3 = host_callback "halves" call=0 result=1 %1 %0 : i64[2]
  %4 = cast f32 %3 : f32[2]
  %5 = binop add %2 %4 : f32[2]
  return %5
}
"""


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_nodes(device):
    graph = ir.parse(TEXT)
    assert str(graph) == TEXT
    x = np.arange(4, dtype=np.float32)

    def halves(negative, positive):
        assert not negative.flags.writeable
        return negative[:2], positive[2:].astype(np.int64)

    program = ir.Program(graph, device, functions=[("halves", halves)])
    np.testing.assert_array_equal(program.run(x)[0], [2, 2])
    with pytest.raises(ValueError, match="halves: cannot store float32"):
        ir.Program(graph, device, functions=[("halves", lambda a, b: (a, b))]).run(x)
    with pytest.raises(ValueError, match=r"cannot run halves \(call 0 has no function\)"):
        ir.Program(graph).run(x)
    with pytest.raises(ValueError, match="operand 0 has no elements"):
        ir.parse(
            "graph { %0 = placeholder index=0 : f32[0]"
            ' %1 = host_callback "f" call=0 result=0 %0 : f32[2] return %1 }'
        )


class _Counter:
    def __init__(self) -> None:
        self.n = 0

    def next(self, v):
        self.n += 1
        return v * self.n


def _with_list(x):
    seen = []
    return np.vectorize(lambda v: seen.append(v) or v * 2)(x), len(seen)


def _with_variable(x):
    n = 0

    def numbered(v):
        nonlocal n
        n += 1
        return v * n

    return np.vectorize(numbered)(x), n


def _with_object(x):
    counter = _Counter()
    return np.vectorize(counter.next)(x), counter.n


def _with_generator(x):
    rng = np.random.default_rng(0)
    return np.vectorize(lambda v: v + rng.normal())(x)


def _along_axis(x):
    sums = []
    rows = np.apply_along_axis(lambda r: (sums.append(r.sum()), r * 2)[1], 0, x.reshape(3, 1))
    return rows, sums


_SEEN = []


def _noted(v):
    _SEEN.append(v)
    return v * 2


def _with_list_outside(x):
    return np.vectorize(_noted, otypes=[float])(x), len(_SEEN)


def _along_rows(x):
    count = [0]

    def double(row):
        count[0] += 1
        return row * 2

    return np.apply_along_axis(lambda row: double(row), 1, np.outer(x, x)), count


def _with_while_loop(x):
    @np.vectorize
    def halvings(n):
        count = 0
        while n != 1:  # without end for 0
            n, count = n // 2, count + 1
        return count

    return halvings(abs(x) + 1)


def _with_endless_iterator(x):
    def first(v):
        for i in itertools.count():
            if v * i > 5:
                return i

    return np.vectorize(first)(abs(x))


_LOGGER = logging.getLogger("callbacks")


def _printing(x):
    return np.vectorize(lambda v: print("value", v) or v, otypes=[float])(x)


def _logging(x):
    return np.vectorize(lambda v: _LOGGER.warning("value %s", v) or v, otypes=[float])(x)


def _logging_by_module(x):
    return np.vectorize(lambda v: logging.warning("value %s", v) or v, otypes=[float])(x)


@pytest.mark.parametrize("function", [_printing, _logging, _logging_by_module])
def test_functions_that_write_texts_write_those_of_the_values(function, capfd, caplog):
    jitted = rune_jit.jit(function, fallback="silent")
    for i in range(4):
        x = np.array([1.5, -2.0, 3.0]) * (i + 1)
        written = []
        for called in (function, jitted):
            called(x)
            written.append((capfd.readouterr().out, caplog.messages))
            caplog.clear()
        assert written[0] == written[1]


@pytest.mark.parametrize(
    "function",
    [
        *(_with_list, _with_variable, _with_object, _with_generator, _along_axis),
        *(_with_list_outside, _along_rows, _with_while_loop, _with_endless_iterator),
    ],
)
def test_functions_with_effects_run_in_segments(function):
    jitted = rune_jit.jit(function, fallback="silent")
    for i in range(4):
        x = np.array([1.0, -2.0, 3.0]) * (i + 1)
        outcomes = []
        for called in (jitted, function):
            _SEEN[:] = [0.0] * i
            outcomes.append(called(x))
        assert_matches(*outcomes)
    with pytest.raises(rune_jit.UnsupportedOpError, match="may have effects"):
        rune_jit.jit(function, fallback="error")(np.ones(3))


def test_functions_that_only_read_are_called_by_one_program():
    table, weights = {0: 2.0, 1: 3.0}, np.arange(3.0)

    def f(x):
        looked_up = np.vectorize(lambda v: table.get(int(v > 0), 0.0) + weights[1])(x)
        return looked_up, np.apply_along_axis(lambda r: np.sort(r)[::-1] - r.mean(), 0, x)

    assert_matches(rune_jit.jit(f, fallback="error")(np.arange(3.0)), f(np.arange(3.0)))


def _to_the_argument(x):
    def f(v):
        x[0] += 4
        return v + 1

    return np.vectorize(f)(x), x


def _to_what_is_made(x):
    y = x * 2

    def f(row):
        y[1] -= row.sum()
        return row.sum() + y[0]

    return np.apply_along_axis(f, 0, y), y


def _along_the_argument(x):
    def f(row):
        x[-1] = 7
        return row.sum()

    return np.apply_along_axis(f, 0, x), x + 1


@pytest.mark.parametrize("function", [_to_the_argument, _to_what_is_made, _along_the_argument])
def test_functions_may_write_to_the_array_that_numpy_reads(function):
    jitted = rune_jit.jit(function, fallback="silent")
    for i in range(4):
        x, y = (np.array([1.0, -2.0, 3.0]) * (i + 1) for _ in range(2))
        assert_matches(jitted(x), function(y))
        assert_matches(x, y)
