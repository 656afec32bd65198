"""Functions of compiled libraries in traced functions."""

from __future__ import annotations

import array
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches, check

import rune_jit
from rune_jit.capture import libraries, objects
from rune_jit.rules import host

special = pytest.importorskip("scipy.special")
linalg = pytest.importorskip("scipy.linalg")
ndimage = pytest.importorskip("scipy.ndimage")
signal = pytest.importorskip("scipy.signal")
fft = pytest.importorskip("scipy.fft")
spatial = pytest.importorskip("scipy.spatial")

RNG = np.random.default_rng(0)
X = RNG.random((6, 6))
IMAGE = RNG.random((8, 8))

ELEMENTWISE: dict[str, Callable[[Any], Any]] = {
    "expit": lambda x: special.expit(x * 40),
    "logit": lambda x: special.logit(x / 5 + 0.5),
    "log_expit": lambda x: special.log_expit(x * 40),
    "xlogy": lambda x: special.xlogy(x, abs(x)),
    "xlog1py": lambda x: special.xlog1py(x, abs(x)),
    "entr": lambda x: special.entr(x),
    "rel_entr": lambda x: special.rel_entr(x, abs(x) + 1),
    "kl_div": lambda x: special.kl_div(x, abs(x) + 1),
    "exprel": lambda x: special.exprel(x),
    "huber": lambda x: (special.huber(0.5, x), special.pseudo_huber(0.5, x)),
    "cbrt": lambda x: (special.cbrt(x), special.exp2(x), special.expm1(x), special.log1p(abs(x))),
}
NUMBERS = np.array([0.0, -0.0, 1.0, -1.0, 0.25, -2.0, 1e-300, 1e-9, 2.0, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore")
def test_special_functions_are_kernels(name: str, dtype: type) -> None:
    function, x = ELEMENTWISE[name], NUMBERS.astype(dtype)
    jitted = rune_jit.jit(function, fallback="error")
    assert "callback" not in jitted.lower(x).explain()
    assert_matches(jitted(x), function(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_error_functions(dtype: type) -> None:
    parts = [0.0, -0.0, np.inf, -np.inf, 0.25, 0.84375, 1.25, 1 / 0.35, 26.5, 28.0, 1e-9]
    x = np.array([*parts, *RNG.uniform(-7, 7, 2000), *RNG.uniform(-30, 30, 500)]).astype(dtype)
    limits = {"erf": math.erf, "erfc": math.erfc}
    jitted = rune_jit.jit(lambda v: (special.erf(v), special.erfc(v)), fallback="error")
    assert "callback" not in jitted.lower(x).explain()
    for found, exact in zip(jitted(x), limits.values(), strict=True):
        wanted = np.array([exact(float(v)) for v in x])
        one_ulp = np.maximum(np.spacing(np.abs(wanted.astype(dtype))), np.finfo(dtype).tiny)
        assert (np.abs(found - wanted) <= 4 * one_ulp).all()
    with_nan = jitted(np.append(x[:-1], dtype(np.nan)).astype(dtype))
    assert all(np.isnan(found[-1]) for found in with_nan)
    normal = rune_jit.jit(lambda v: special.ndtr(v), fallback="error")
    assert_matches(normal(x), special.ndtr(x))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "other special functions": lambda x: special.gammaln(x + 1) + special.erf(x) * special.j0(x),
    "a special function of a list": lambda x: special.erf([x[0, 0], 1.0]),
    "a filter": lambda x: ndimage.gaussian_filter(x, 1.0) + 1,
    "a known image": lambda x: ndimage.map_coordinates(IMAGE, np.ones((2, 3))) + x[0, 0],
    "an interpolated image": lambda x: ndimage.map_coordinates(IMAGE, x[:2] * 3, order=1),
    "a zoom": lambda x: ndimage.zoom(x, 2),
    "linear algebra": lambda x: (linalg.inv(x) @ x, linalg.solve(x, x[0]), linalg.expm(x)),
    "decompositions": lambda x: (linalg.lu(x), linalg.svd(x)[1], linalg.cho_factor(x @ x.T)[0]),
    "a filter of a signal": lambda x: signal.lfilter([1.0, x[0, 0]], [1.0, 0.2], x),
    "a filter designed meanwhile": lambda x: signal.filtfilt(*signal.butter(2, 0.3), np.tile(x, 4)),
    "a transform": lambda x: fft.dct(x[0]) * 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_called_at_their_place(name: str) -> None:
    function = FUNCTIONS[name]
    jitted = rune_jit.jit(function, fallback="error")
    for x in (X, X[::-1].copy()):
        assert_matches(jitted(x), function(x), ulps=1e5)
    assert jitted.cache_info().misses == 1


def _smoothed_in_place(x: Any) -> Any:
    result = np.zeros_like(x)
    ndimage.uniform_filter(x, 3, output=result)
    return result


class _Model:
    def overwritten(self, x: Any) -> Any:
        first = np.asarray(x)
        first[0] = 99
        return x + first


MODEL = _Model()
# These run on NumPy as a whole.
OTHERS: dict[str, Callable[[Any], Any]] = {
    "an output": _smoothed_in_place,
    "a write to the argument": lambda x: MODEL.overwritten(x),
    "a Python number": lambda x: ndimage.label(x > 0.5),
    "a count that data decides": lambda x: signal.find_peaks(x[0])[0],
    "a view of an argument": lambda x: linalg.hankel(x[0], x[1]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_else_libraries_do(name: str) -> None:
    function = OTHERS[name]
    jitted = rune_jit.jit(function, fallback="silent")
    for x in (X, X[::-1].copy(), X * 0):
        given, expected = x.copy(), x.copy()
        found, wanted = jitted(given), function(expected)
        assert_matches(found, wanted)
        assert_matches(given, expected)
        if isinstance(wanted, tuple):
            assert [type(item) for item in found] == [type(item) for item in wanted]


def _set_first(x: Any, value: float) -> None:
    x[0] = value


def _set_column(frame: Any, value: float) -> None:
    frame["a"] = [value, 1.0, 2.0]


def test_what_holds_arrays_of_its_own_is_read_at_each_call() -> None:
    pandas = pytest.importorskip("pandas")
    series, frame = pandas.Series([1.0, 2.0, 4.0]), pandas.DataFrame({"a": [1.0, 2.0, 3.0]})
    masked, buffer = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), array.array("d", [1, 2, 3])
    v = np.arange(3.0)
    cases: list[tuple[Callable[[Any], Any], Any, Callable[[Any, float], None], Any]] = [
        (lambda x: np.asarray(series) + x, v, _set_first, series),
        (lambda x: series.sum() * x, v, _set_first, series),
        (lambda x: np.add(x, series), v, _set_first, series),
        (lambda x: frame["a"].to_numpy() + x, v, _set_column, frame),
        (lambda s: np.asarray(s) * 2, series, _set_first, series),
        (lambda s: s.mean(), series, _set_first, series),
        (lambda x: masked.filled(0) + x, v, _set_first, masked),
        (lambda x: np.add(x, masked), v, _set_first, masked),
        (lambda x: np.frombuffer(buffer) + x, v, _set_first, buffer),
    ]
    for function, argument, change, holder in cases:
        jitted = rune_jit.jit(function, fallback="silent")
        for value in (5.0, 6.0, 7.0):
            found, wanted = jitted(argument), function(argument)
            assert type(found) is type(wanted)
            assert np.array_equal(found, wanted)
            change(holder, value)


NUMPYS: dict[str, Callable[[Any], Any]] = {
    "a matrix": lambda x: np.matrix([[1.0, 2.0], [3.0, 4.0]]) * x[:2, :2],
    "native bytes": lambda x: x.astype("<f4") + np.zeros(6, "=f8") + np.ones(6, "<i4"),
    "other bytes": lambda x: x.astype(">f4") * 2,
    "a masked array": lambda x: np.ma.masked_where(x > 0.5, x).sum(),
    "asanyarray": lambda x: np.asanyarray(np.ma.masked_where(x > 0.5, x)).sum(),
    "broadcast_arrays": lambda x: np.broadcast_arrays(
        np.ma.masked_where(x > 0.5, x), np.ones((2, 6, 6)), subok=True
    )[0].sum(),
    "records": lambda x: np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])["b"] + x,
}


@pytest.mark.parametrize("name", NUMPYS)
def test_numpys_other_arrays(name: str) -> None:
    function = NUMPYS[name]
    jitted = rune_jit.jit(function, fallback="silent")
    for x in (X, X + 1):
        found, wanted = jitted(x), function(x)
        assert type(found) is type(wanted) and found.dtype == wanted.dtype
        assert np.array_equal(found, wanted)


def test_results_of_other_shapes_than_while_tracing() -> None:
    def f(x: Any) -> Any:
        return signal.medfilt(x)[: len(x)], signal.argrelmax(x + np.array([0, 9, 0, 0, 0, 0.0]))[0]

    jitted = rune_jit.jit(f, fallback="silent")
    for x in (np.zeros(6), np.array([0, 0, 0, 0, 5.0, 0]), np.arange(6.0)):
        assert_matches(jitted(x), f(x))


def test_generalized_ufuncs_may_leave_elements_of_out_as_they_are() -> None:
    numba = pytest.importorskip("numba")

    @numba.guvectorize(["void(float64[:], float64, float64[:])"], "(n),()->(n)", nopython=True)
    def mark(x: Any, limit: Any, out: Any) -> None:
        for i in range(len(x)):
            if x[i] > limit:
                out[i] += x[i]

    @numba.guvectorize("(n),()->(n)", nopython=True)
    def mark_any(x: Any, limit: Any, out: Any) -> None:
        for i in range(len(x)):
            out[i] = x[i] > limit

    def fresh(x: Any) -> Any:
        out = np.ones_like(x)
        mark(x, 0.5, out)
        return out * 2

    def in_place(x: Any) -> Any:
        mark(x, 0.5, out=x[:, ::-1])
        return x.sum()

    def in_segments(x: Any) -> Any:
        out = np.full(x.shape, x.max().item())
        mark(x.T, 0.5, out.T)
        return out

    def without_types(x: Any) -> Any:
        out = np.zeros_like(x)
        mark_any(x * 2, 0.5, out)
        return out * 2

    for function in (fresh, in_place, in_segments, without_types):
        jitted = rune_jit.jit(function, fallback="silent")
        for seed in range(3):
            given = np.random.default_rng(seed).random((4, 5))
            wanted = given.copy()
            assert_matches(jitted(given), function(wanted))
            assert np.array_equal(given, wanted)
        assert "on NumPy" not in jitted.explain()
    assert rune_jit.jit(fresh, fallback="error")(X)[0, 0] in (2.0, 2.0 + 2 * X[0, 0])


def test_functions_of_fortran_get_arrays() -> None:
    interpolate = pytest.importorskip("scipy.interpolate")
    at = np.linspace(0, 5, 6)

    def f(y: Any) -> Any:
        spline = interpolate.splrep(at, y * 2)
        return interpolate.splev(at[:-1] + 0.5, spline) + 1

    jitted = rune_jit.jit(f, fallback="silent")
    for y in X[:3]:
        assert_matches(jitted(y), f(y))


def test_methods_of_compiled_objects_get_arrays() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    solvers = pytest.importorskip("scipy.sparse.linalg")

    def f(a: Any, b: Any) -> Any:
        if b.max().item() < 0:
            return b
        x = solvers.splu(sparse.csc_matrix(a)).solve(b * 2)
        return x + b

    jitted = rune_jit.jit(f, fallback="silent")
    for i in range(3):
        a = X + 6 * np.eye(6)
        assert_matches(jitted(a, X[i]), f(a, X[i]))


def test_array_wrap() -> None:
    def f(x: Any, y: Any) -> Any:
        wrap = getattr(x, "__array_wrap__", y.__array_wrap__)
        return wrap(y * 2) + 1, wrap(np.sum(y, keepdims=True).reshape(()), None, True)

    jitted = rune_jit.jit(f, fallback="error")
    for _ in range(2):
        found, wanted = jitted(X, X[0]), f(X, X[0])
        assert list(map(type, found)) == list(map(type, wanted))
        assert_matches(found, wanted)
    with pytest.raises(TypeError, match="ndarray"):
        rune_jit.jit(lambda x: x.__array_wrap__(2.0))(X)


def test_functions_that_numpy_calls_and_that_call_compiled_code() -> None:
    def moments(row: Any) -> Any:
        return [special.comb(4, k, exact=True) * row[k] for k in range(len(row))]

    def f(x: Any) -> Any:
        return np.apply_along_axis(moments, 0, x) + x

    jitted = rune_jit.jit(f)
    for i in range(3):
        x = RNG.random((4, 3)) + i
        assert_matches(jitted(x), f(x))


class _Library(types.ModuleType):
    """A module that has no docstring, as libraries of C that cffi loads."""

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        raise AttributeError("__doc__")


_LIBRARY = _Library("library")
_LIBRARY.scale = 3.0  # type: ignore[attr-defined]


def test_modules_without_a_docstring() -> None:
    check(lambda x: x * _LIBRARY.scale, np.ones(3))


def test_state_of_installed_packages(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "keeping.py").write_text(
        "import numpy as np\n"
        "class Canvas:\n"
        "    def __init__(self, size):\n"
        "        self.size = size\n"
        "class Kept:\n"
        "    canvases = {}\n"
        "    last = None\n"
        "    @classmethod\n"
        "    def add(cls, canvas):\n"
        "        cls.canvases[len(cls.canvases)] = cls.last = canvas\n"
        "order = []\n"
        "SCALES = {'half': 0.5, 'third': 0}\n"
        "def canvas(size):\n"
        "    Kept.add(Canvas(size))\n"
        "def mark(x):\n"
        "    order.append(x)\n"
        "def clear():\n"
        "    Kept.canvases.clear()\n"
        "cache = {}\n"
        "def scaled(x):\n"
        "    if 'half' not in cache:\n"
        "        cache['half'] = SCALES['half']\n"
        "    return x * cache['half']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(libraries, "INSTALLED", (str(tmp_path),))
    import keeping  # type: ignore[import-not-found]

    def of_canvas(x: Any) -> Any:
        keeping.canvas(3)
        return x * 2

    def of_mark(x: Any) -> Any:
        keeping.mark(1.0)
        return [*reversed(x.tolist())]

    def of_settings(x: Any) -> Any:
        keeping.SCALES["third"] += 1
        return x * 2

    def of_clear(x: Any) -> Any:
        keeping.clear()
        return x * 2

    def of_scaled(x: Any) -> Any:
        return keeping.scaled(x)

    def state() -> Any:
        kept, canvases = keeping.Kept, keeping.Kept.canvases.values()
        sizes = [x.size for x in canvases]
        return sizes, kept.last in canvases, [*keeping.order], dict(keeping.SCALES)

    for jit in (lambda f: f, rune_jit.jit):
        keeping.Kept.canvases.clear()
        keeping.order.clear()
        keeping.SCALES["third"] = 0
        found = []
        for function in map(jit, (of_canvas, of_mark, of_settings, of_clear, of_canvas)):
            for _ in range(3):
                function(np.arange(3.0))
                found.append(state())
        if jit is not rune_jit.jit:
            expected = found
    assert found == expected
    scaled = rune_jit.jit(fallback="error")(of_scaled)
    np.testing.assert_array_equal(scaled(np.arange(3.0)), np.arange(3.0) / 2)


def test_figures_of_matplotlib() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    def draw(x: Any, title: str) -> Any:
        pyplot.figure()
        for i in range(20):
            x = x + np.sin(x)
            if i % 10 == 9:
                pyplot.plot(x)
        pyplot.title(title)
        return x

    def shown() -> Any:
        figures = [pyplot.figure(i).axes[0] for i in pyplot.get_fignums()]
        pyplot.close("all")
        return [(x.get_title(), [y.get_color() for y in x.lines]) for x in figures]

    jitted = rune_jit.jit(draw)
    for function in (draw, jitted):
        for title in "abc":
            function(np.linspace(0, 1, 50), title)
        found = shown()
        if function is draw:
            expected = found
    assert found == expected


def test_numbers_of_packages_that_do_not_know_traced_arrays(
    tmp_path: Any, monkeypatch: Any
) -> None:
    """As SymPy's: they refuse what is no number, and NumPy computes with them as elements."""
    (tmp_path / "exact.py").write_text(
        "class Exact:\n"
        "    def __init__(self, value):\n"
        "        self.value = value\n"
        "    def __mul__(self, other):\n"
        "        if type(other).__module__ == 'numpy':\n"
        "            return NotImplemented\n"
        "        return Exact(self.value * float(other))\n"
        "    __rmul__ = __mul__\n"
        "    def __float__(self):\n"
        "        return self.value\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for module in (libraries, objects):
        monkeypatch.setattr(module, "INSTALLED", (str(tmp_path),))
    from exact import Exact  # type: ignore[import-not-found]

    half = Exact(0.5)

    def of_argument(x: Any, scale: Any) -> Any:
        return (scale * (x + 1)).astype(float) + x

    def of_variable(x: Any) -> Any:
        y = x + 1
        return (half * y).astype(float) + x

    x = np.arange(3.0)
    for function, *given in ((of_argument, half), (of_variable,)):
        jitted = rune_jit.jit(function)
        for _ in range(3):
            np.testing.assert_array_equal(jitted(x, *given), function(x, *given))


def test_calls_in_unrolled_loops_are_asked_once(monkeypatch: Any) -> None:
    """About the shapes of their results. Each answer takes as long as a call."""
    linalg = pytest.importorskip("scipy.linalg")
    ask, asked = host._HostFunction.ask, []

    def noted(self: Any, *args: Any) -> Any:
        asked.append(args)
        return ask(self, *args)

    monkeypatch.setattr(host._HostFunction, "ask", noted)

    def f(a: Any, x: Any) -> Any:
        for i in range(1, 4):
            x = linalg.solve(a + i * np.eye(3), x) + linalg.expm(np.eye(3) * (i % 2))[0]
        return x, linalg.solve(a, x[:, None]), linalg.solve(a, np.arange(3.0))

    a = np.random.default_rng(0).normal(size=(3, 3)) + 3 * np.eye(3)
    check(f, a, np.ones(3))
    assert len(asked) == 3 * 4  # three kinds of calls, four made-up values


def test_the_traces_of_a_call_ask_a_function_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def darts(x: Any) -> Any:
        distances = spatial.distance.cdist(x, x) + 1e3 * np.eye(len(x))
        chosen, i = [0], 1
        while i < len(x):  # (the loop is refused, and the call is traced again)
            if distances[i, chosen].min() > 0.1:
                chosen.append(i)
            i += 1
        return chosen

    asked: list[Any] = []
    answers = host._answers
    monkeypatch.setattr(host, "_answers", lambda *given: asked.append(given) or answers(*given))
    x = RNG.random((40, 2))
    jitted = rune_jit.jit(darts, fallback="silent")
    assert jitted(x) == darts(x)
    assert len(asked) == 1
