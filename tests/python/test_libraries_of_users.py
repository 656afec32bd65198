"""What code in libraries does: descriptors that cache, containers with methods of their own,
modules as values, results that are iterators, and tests of numpy.testing."""

import collections
import itertools
import math
import sys
import types

import numpy as np
import pytest
from compare import assert_matches

import rune_jit
from rune_jit.calls.cache import Cache

TOOLS = types.ModuleType("rune_jit_tools_of_a_test")
NAMES = {np: "numpy", math: "math", TOOLS: "tools"}


@pytest.fixture(autouse=True)
def _tools(monkeypatch):
    monkeypatch.setitem(sys.modules, TOOLS.__name__, TOOLS)


def test_modules_are_keys():
    @rune_jit.jit
    def f(x, module):
        return x * 2, NAMES.get(module), NAMES.get(np), module in NAMES

    for module in (np, math, TOOLS, sys):
        for _ in range(2):
            _, *found = f(np.arange(3.0), module)
            assert found == [NAMES.get(module), "numpy", module in NAMES]


class Keeps:
    def __init__(self, x):
        self.module, self.x = _module_for(x), x.tolist()


def _module_for(x):
    return NAMES_OF_SIZES.get(x.shape[0], TOOLS)


NAMES_OF_SIZES = {3: math}


def test_an_object_keeps_the_module_itself():
    @rune_jit.jit
    def make(x):
        return Keeps(x)

    for size in (3, 4, 3, 4):
        kept = make(np.arange(float(size)))
        assert kept.module is (math if size == 3 else TOOLS)


class _Odd(dict):
    """A dict whose iterator needs its `items`, as SciPy's dok_array."""

    def __iter__(self):
        return iter([self[key] for key in dict.keys(self)])

    def keys(self):
        raise AssertionError("keys")

    def values(self):
        raise AssertionError("values")


def test_methods_of_containers_do_not_run():
    calls = []

    class Counting(list):
        def __iter__(self):
            calls.append("iter")
            return super().__iter__()

        def __len__(self):
            calls.append("len")
            return super().__len__()

    counting, odd = Counting([np.ones(2), 3]), _Odd(a=np.ones(2), b=2)

    @rune_jit.jit
    def f(x):
        return x * counting[1] + odd["a"] + odd["b"]

    for _ in range(3):
        np.testing.assert_array_equal(f(np.arange(2.0)), [3.0, 6.0])
    assert calls == []


def test_the_order_of_an_ordered_dict_is_guarded():
    order = collections.OrderedDict(a=1.0, b=10.0)

    @rune_jit.jit
    def f(x):
        for value in order.values():
            x = x * 2 + value
        return x

    assert f(np.zeros(1))[0] == 12.0
    order.move_to_end("a")
    assert f(np.zeros(1))[0] == 21.0


def test_an_entry_that_needs_itself_is_not_made():
    cache = Cache(4)
    inner = []

    def make(traced):
        inner.append(cache.get("key", make))
        return types.SimpleNamespace(last_used=0)

    entry, is_new = cache.get("key", make)
    assert is_new and entry is not None
    assert inner == [(None, False)]


class _Cached:
    """A property that keeps its result in a dict of the object, whose name its code does not have,
    as those of statsmodels."""

    def __init__(self, function):
        self.fget, self.name = function, "_cache"

    def __get__(self, x, kind=None):
        cache = getattr(x, self.name)
        if self.fget.__name__ not in cache:
            cache[self.fget.__name__] = self.fget(x)
        return cache[self.fget.__name__]


def test_a_descriptor_that_caches_gets_no_traced_arrays():
    class Model:
        def __init__(self, x):
            self.x, self._cache = x, {}

        @_Cached
        def twice(self):
            return self.x * 2

        @rune_jit.jit
        def last(self):
            if self.twice[-1] > 1e9:
                return 0.0
            return math.floor(self.twice[-1])

    for i in range(3):
        model = Model(np.arange(3.0) + i)
        assert model.last() == 4 + 2 * i
        assert type(model._cache["twice"]) is np.ndarray
        assert type(model.twice) is np.ndarray


class _Base:
    def scaled(self, x, by):
        return x * by


class _Derived(_Base):
    @rune_jit.jit
    def scaled(self, x, by):
        out = np.zeros(len(x))
        for pair in np.unique(by, axis=0):
            mask = np.all(by == pair, axis=-1)
            out[mask] = super().scaled(x[mask], pair[0]) if pair[0] < 5 else x[mask]
        return out


def test_super_in_a_loop():
    x, by = np.arange(6.0), np.array([[1.0, 2], [1, 2], [3, 4], [7, 1], [3, 4], [1, 2]])
    for _ in range(3):
        np.testing.assert_array_equal(_Derived().scaled(x, by), [0.0, 1, 6, 3, 12, 5])


ITERATORS = {
    "generator": lambda x, y: (v.astype(float, copy=False) for v in (x, y)),
    "zip": lambda x, y: zip((x, y), [x * 2, y + 1], strict=True),
    "enumerate": lambda x, y: enumerate((x, x + y), 5),
    "map": lambda x, y: map(lambda v: v, (x, y)),
    "list": lambda x, y: iter([x, y]),
    "reversed": lambda x, y: reversed((x, y)),
    "chain": lambda x, y: itertools.chain((x,), (y,)),
    "islice": lambda x, y: itertools.islice((x, y, x), 1, 3),
}


@pytest.mark.parametrize("name", ITERATORS)
def test_iterators_give_arrays(name):
    if sys.version_info >= (3, 14) and name in ("chain", "islice"):
        pytest.skip("iterators of itertools cannot be made again")

    def plain(x):
        if isinstance(x, (list, tuple)) or hasattr(x, "__next__"):
            return [plain(item) for item in x]
        return type(x), np.asarray(x).tolist()

    x, y = np.arange(3.0), np.arange(1.0, 4.0)
    f = rune_jit.jit(ITERATORS[name])
    for _ in range(3):
        assert plain(f(x, y)) == plain(ITERATORS[name](x, y))


def test_comparisons_of_numpy_testing():
    @rune_jit.jit
    def f(x):
        np.testing.assert_equal(x * 2, x + x)
        np.testing.assert_equal({"a": x}, {"a": x * 1})
        with np.testing.assert_raises(ValueError):
            x.reshape(7)
        return x * 3

    @rune_jit.jit
    def wrong(x):
        np.testing.assert_equal(x * 2, x + x + 1)
        return x

    for _ in range(3):
        np.testing.assert_array_equal(f(np.arange(4.0)), np.arange(4.0) * 3)
        with pytest.raises(AssertionError, match="Arrays are not equal"):
            wrong(np.arange(4.0))


def test_attributes_of_compiled_functions_are_assigned():
    blas = pytest.importorskip("scipy.linalg.blas")

    def mark(x, value):
        blas.dgemm.mark = value
        return x * 2

    f = rune_jit.jit(mark)
    try:
        for value in ("a", "b", "a", "a"):
            blas.dgemm.mark = None
            f(np.arange(3.0), value)
            assert blas.dgemm.mark == value
    finally:
        del blas.dgemm.mark


def test_a_parameter_of_a_host_function_may_be_called_name():
    distance = pytest.importorskip("scipy.spatial.distance")

    @rune_jit.jit
    def f(y):
        distance.is_valid_y(y, throw=True, name="y")
        return y * 2

    np.testing.assert_array_equal(f(np.arange(3.0)), [0.0, 2.0, 4.0])


def test_jitted_functions_below_a_host_function_run_by_themselves(monkeypatch):
    pytest.importorskip("scipy.linalg")
    from scipy.linalg import _basic, solveh_banded

    monkeypatch.setattr(_basic, "_asarray_validated", rune_jit.jit(_basic._asarray_validated))

    @rune_jit.jit
    def f(dtype):
        banded = np.array([[0.0, -1, -1], [2, 2, 2]], dtype=dtype, order="F")
        right = np.ones(3, dtype=dtype)
        solution = solveh_banded(banded, right)
        return banded, right, solution

    for _ in range(3):
        banded, right, solution = f(np.float64)
        np.testing.assert_array_equal(banded, [[0.0, -1, -1], [2, 2, 2]])
        np.testing.assert_array_equal(right, [1, 1, 1])
        np.testing.assert_allclose(solution, [1.5, 2.0, 1.5])


def test_made_up_values_do_not_crash_scipy():
    # (SciPy crashes with a footprint of zeros.)
    ndimage = pytest.importorskip("scipy.ndimage")
    x = np.arange(15).reshape(3, 5) % 7
    footprint, structure = np.array([[1, 0, 1], [1, 1, 0]]), np.zeros((2, 3), int)

    @rune_jit.jit
    def f(x, footprint, structure):
        return ndimage.grey_erosion(x * 2, footprint=footprint, structure=structure)

    expected = ndimage.grey_erosion(x * 2, footprint=footprint, structure=structure)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, footprint, structure), expected)


def test_a_host_function_gets_the_elements_of_a_selection():
    signal = pytest.importorskip("scipy.signal")
    x = np.arange(16.0)

    @rune_jit.jit
    def f(x):
        return signal.medfilt(x[x > 3], 3) * 2

    for _ in range(3):
        np.testing.assert_array_equal(f(x), signal.medfilt(x[x > 3], 3) * 2)


def test_the_dict_of_a_module():
    TOOLS.by, TOOLS.scale = 3.0, lambda x: x * TOOLS.by

    @rune_jit.jit
    def f(x):
        if x[0] > 10:
            return 0
        return TOOLS.__dict__["scale"](x), vars(TOOLS)["by"], np.linalg.__dict__["norm"](x)

    for by in (3.0, 4.0, 3.0):
        TOOLS.by = by
        scaled, found, norm = f(np.array([3.0, 4.0]))
        np.testing.assert_array_equal(scaled, [3 * by, 4 * by])
        assert (found, norm) == (by, 5.0)


def test_a_module_with_compiled_code_in_its_dict():
    sparse = pytest.importorskip("scipy.sparse")
    linalg = pytest.importorskip("scipy.sparse.linalg")

    @rune_jit.jit
    def f(x):
        matrix = sparse.csr_array(np.diag(x + 1))
        return linalg.eigsh(matrix, k=2, which="SM", v0=np.ones(len(x)))[0]

    for _ in range(2):
        np.testing.assert_allclose(np.sort(f(np.arange(6.0))), [1.0, 2.0])


def test_methods_that_cython_has_compiled_get_arrays():
    tree = pytest.importorskip("sklearn.tree")
    x = np.linspace(0, 1, 20, dtype=np.float32)[:, None]
    fitted = tree.DecisionTreeRegressor(max_depth=2).fit(x, x[:, 0]).tree_

    @rune_jit.jit
    def f(x):
        return fitted.predict(x * 1)

    for _ in range(3):
        np.testing.assert_array_equal(f(x), fitted.predict(x))


def test_integers_with_thousands_of_digits():
    f = rune_jit.jit(lambda n: n + 1)
    for i in range(5):
        assert f(10 ** (5000 + i)) == 10 ** (5000 + i) + 1


def test_results_can_be_made_writable_again():
    f = rune_jit.jit(lambda x: x * 2)
    for size in (3, 100, 100_000):
        result = f(np.arange(float(size)))
        result.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            result[0] = 5.0
        result.flags.writeable = True
        result[0] = 5.0
        other, _ = np.broadcast_arrays(result, np.ones((2, size)))
        other.flags.writeable = True


class _Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


class _Pair(_Point):
    pass


def _class_of(x):
    return type(x)


WEIGHTS = {_Point: 3.0, _Pair: 5.0}
MET = set()


def test_classes_find_what_dicts_outside_have_for_them():
    def f(x):
        p, pair = _Point(x[0], x[1]), _Pair(x[1], x[2])
        return p.x * WEIGHTS[_class_of(p)], WEIGHTS.get(_class_of(pair)), _class_of(p) in WEIGHTS

    def in_segments(x):
        try:
            int("a" * int(x.size))
        except ValueError:
            p = _Point(x[0], x[1])
        MET.add(_class_of(p))
        return f(x), _Point in MET

    x = np.arange(1.0, 4.0)
    jitted, segmented = rune_jit.jit(f, fallback="error"), rune_jit.jit(in_segments)
    for _ in range(3):
        assert jitted(x) == f(x)
        assert segmented(x) == in_segments(x)
        MET.clear()


def test_objects_that_use_traced_arrays_when_a_function_reads_them():
    signal = pytest.importorskip("scipy.signal")

    class Taps:
        def __init__(self, x):
            self.x = x

        def __len__(self):
            return len(self.x)

        def __getitem__(self, i):
            return self.x[i] * 2

    def f(x):
        return signal.lfilter([1.0, 2.0], [1.0], Taps(x * 3))

    jitted, x = rune_jit.jit(f), np.random.default_rng(0).normal(size=6)
    for _ in range(3):
        assert_matches(jitted(x), f(x))
