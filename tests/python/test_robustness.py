"""Whatever a jitted function is called with or does, the answer is NumPy's or a clear error."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit import DTypeError, JitFallbackWarning, TracerLeakError, UnsupportedOpError

X = np.arange(12.0).reshape(3, 4)


@pytest.fixture(params=["cpu", "interpreter"])
def jit(request: pytest.FixtureRequest) -> Any:
    """rune_jit.jit on a device, raising for what cannot be traced."""
    return functools.partial(rune_jit.jit, device=request.param, fallback="error")


# dtypes.


@pytest.mark.parametrize(
    "dtype",
    [
        "clongdouble",
        "object",
        "datetime64[s]",
        "timedelta64[s]",
        "U3",
        "S3",
        "longdouble",
        "V4",
        ">f4",
        ">i8",
        ">c16",
        "i4,f4",
    ],
)
def test_dtypes_that_are_not_supported(dtype: str) -> None:
    a = np.zeros(3, dtype)
    with pytest.raises(
        UnsupportedOpError, match=r"cannot trace an argument of .*\(argument b, shape \(3,\)\)"
    ):
        rune_jit.jit(lambda a, b: a, fallback="error")(X, a)
    with pytest.warns(JitFallbackWarning, match="argument a"):
        result = rune_jit.jit(lambda a: a[::-1])(a)
    assert result.dtype == a.dtype
    np.testing.assert_array_equal(result, a[::-1])


def test_dtypes_that_a_device_lacks() -> None:
    f = rune_jit.jit(lambda weights, d: weights + d["bias"], device="metal")
    with pytest.raises(
        DTypeError, match=r"argument d of dtype float64 and shape \[3\] on metal\nhint:"
    ):
        f.lower(np.ones(3, np.float32), {"bias": np.ones(3)})
    with pytest.raises(DTypeError, match=r"float64 on metal .*test_robustness.py:\d+\)\nhint: "):
        rune_jit.jit(lambda x: x.astype(np.float64) + 1, device="metal").lower(
            np.ones(3, np.float32)
        )
    with pytest.raises((RuntimeError, DTypeError)):  # no Metal here, or no float64 there
        f(X, {"bias": X})


@pytest.mark.parametrize(
    ("device", "error", "message"),
    [
        ("tpu", ValueError, "the devices are 'cpu'"),
        ("cpu:x", ValueError, "cannot read `cpu:x`"),
        ("cuda:99", RuntimeError, "cannot"),
        ("null", RuntimeError, "runs nothing"),
        (3, TypeError, "device=3"),
    ],
)
def test_devices_that_cannot_run(device: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        rune_jit.jit(lambda x: x + 1, device=device)(X)


# Arrays of all kinds.


def _misaligned(x: np.ndarray) -> np.ndarray:
    raw = np.zeros(x.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(x.tobytes(), np.uint8)
    return raw[1:].view(x.dtype).reshape(x.shape)


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": lambda x: x.T,
    "Fortran": np.asfortranarray,
    "strided": lambda x: x[:, ::2],
    "negative strides": lambda x: x[::-1, ::-2],
    "offset": lambda x: x[1:, 1:],
    "read-only": _read_only,
    "misaligned": _misaligned,
    "broadcast": lambda x: np.broadcast_to(x[0], (5, 4)),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x.ravel(), 4),
    "buffer": lambda x: np.frombuffer(bytearray(x.tobytes())).reshape(x.shape),
    "empty": lambda x: x[:0],
    "0-d": lambda x: x[1:2, 1].reshape(()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(jit: Any, layout: str) -> None:
    x = LAYOUTS[layout](X)
    before = x.copy()

    def f(v: Any) -> Any:
        return v * 2 + 1, v.sum(), v[..., None].T, np.concatenate([v.ravel(), v.ravel()])

    for _ in range(2):
        for got, want in zip(jit(f)(x), f(x), strict=True):
            np.testing.assert_allclose(got, want)
            assert np.shape(got) == np.shape(want)
    np.testing.assert_array_equal(x, before)


def test_one_jitted_function_takes_all_layouts(jit: Any) -> None:
    f = jit(lambda v: v * 2 + 1)
    for _ in range(2):
        for make in LAYOUTS.values():
            x = make(X)
            np.testing.assert_array_equal(f(x), x * 2 + 1)


def test_arguments_that_overlap(jit: Any) -> None:
    x = np.arange(20.0)
    f = jit(lambda a, b, c: a * b - c)
    np.testing.assert_array_equal(f(x[:10], x[5:15], x[9::-1]), x[:10] * x[5:15] - x[9::-1])


def test_headers_that_change_between_calls(jit: Any) -> None:
    f = jit(lambda a: a + 1)
    x = X.copy()
    assert f(x).shape == (3, 4)
    y = x.reshape(4, 3)
    assert f(y).shape == (4, 3)
    x.flags.writeable = False
    np.testing.assert_array_equal(f(x), X + 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.asmatrix([[1, 2], [3, 4]]),
        lambda: np.ma.array([1, 2], mask=[0, 1]),
        lambda: np.rec.array([(1, 2.0)])[["f0"]],
    ],
)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_subclasses_of_ndarray(make: Callable[[], Any]) -> None:
    x = make()
    with pytest.raises(UnsupportedOpError, match="argument v"):
        rune_jit.jit(lambda v: v, fallback="error")(x)
    with pytest.warns(JitFallbackWarning):
        result = rune_jit.jit(lambda v: v[:1])(x)
    assert type(result) is type(x[:1])


def test_nan_and_infinity(jit: Any) -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, np.nan])

    def f(v: Any) -> Any:
        return (
            v.max(),
            v.min(),
            v.sum(),
            np.maximum(v, 0),
            np.fmax(v, 0),
            v > 0,
            v == v,
            np.sqrt(v),
            v / v,
        )

    with np.errstate(all="ignore"):
        expected = f(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actual = jit(f)(x)
    for got, want in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_integer_division_never_traps(jit: Any, dtype: str) -> None:
    info = np.iinfo(dtype)
    a = np.array([info.min, info.max, 0, 1, 7] * 5, dtype)
    b = np.repeat(np.array([0, 1, info.max, info.min, 3], dtype), 5)
    if info.min < 0:
        b[b == 1] = -1

    def f(x: Any, y: Any) -> Any:
        return x // y, x % y, np.fmod(x, y), x << y, x >> y, abs(x), -x

    with np.errstate(all="ignore"):
        expected = f(a, b)
    for got, want in zip(jit(f)(a, b), expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_empty_and_0d(jit: Any) -> None:
    empty = np.zeros((0, 3))
    added, total, product, joined = jit(
        lambda x: (x + 1, x.sum(), x.T @ x, np.concatenate([x, x]))
    )(empty)
    assert added.shape == joined.shape == (0, 3)
    assert total == 0
    np.testing.assert_array_equal(product, np.zeros((3, 3)))
    with pytest.raises(ValueError, match="no identity"):
        jit(lambda x: x.max())(empty)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(jit(lambda x: x.mean())(empty))
    one = np.array(2.0)
    assert [type(r) for r in jit(lambda x: (x + 1, x[None], x.sum()))(one)] == [
        np.float64,
        np.ndarray,
        np.float64,
    ]


def test_arrays_that_memory_cannot_hold(jit: Any) -> None:
    huge = np.broadcast_to(np.float32(1), (10**7, 10**8))
    with pytest.raises(MemoryError, match=r"argument of shape .*bytes"):
        jit(lambda x: x[0, :3] + 1)(huge)
    with pytest.raises((MemoryError, UnsupportedOpError), match=r"bytes|workgroups"):
        jit(lambda x: np.broadcast_to(x, (10**7, 10**8)) + 1)(np.float32(1))
    with pytest.raises(ValueError, match="elements"):
        jit(lambda x: np.broadcast_to(x, (2**40, 2**40)).sum())(np.float32(1))
    assert jit(lambda x: x + 1)(1.0) == 2.0  # still alive


# Values that are no arrays.


def test_integers_beyond_64_bits(jit: Any) -> None:
    np.testing.assert_array_equal(jit(lambda x, n: x * n)(X, 2**70), X * 2**70)
    with pytest.raises(OverflowError, match="out of bounds for int64"):
        jit(lambda x, n: x + n)(np.arange(3), 2**70)
    with pytest.raises(IndexError, match="index-sized integer"):
        jit(lambda x: x[2**70])(X)
    np.testing.assert_array_equal(jit(lambda x: x[-(2**70) : 2**70] + 1)(X), X + 1)


@pytest.mark.parametrize("value", [Fraction(1, 2), Decimal(1), object()])
def test_numbers_that_cannot_be_traced(value: Any) -> None:
    with pytest.raises((UnsupportedOpError, TypeError)):
        rune_jit.jit(lambda x, n: x + n, fallback="error")(np.arange(3), value)


def test_generators_are_not_frozen() -> None:
    with pytest.raises(UnsupportedOpError, match=r"argument g.*once"):
        rune_jit.jit(lambda g: sum(g), fallback="error")(x for x in [X, X])
    f = rune_jit.jit(lambda g: sum(g), fallback="silent")
    np.testing.assert_array_equal(f(x for x in [X, X]), X + X)
    np.testing.assert_array_equal(f(iter([X])), X)


def test_results_that_compute_later_are_not_frozen() -> None:
    class Holder:
        def __init__(self, value: Any) -> None:
            self.value = value

    def generate(x: Any) -> Any:
        yield x + 1

    for function, read in (
        (lambda x: (v + 1 for v in x), lambda r: next(r)),
        (lambda x: lambda: x + 1, lambda r: r()[0]),
        (lambda x: Holder(x + 1), lambda r: r.value[0]),
        (generate, lambda r: next(r)[0]),
    ):
        with pytest.raises(UnsupportedOpError, match="cannot return a"):
            rune_jit.jit(function, fallback="error")(X)
        f = rune_jit.jit(function, fallback="silent")
        for _ in range(2):
            np.testing.assert_array_equal(read(f(X)), X[0] + 1)


# Calls.


def test_wrong_calls_are_pythons_errors(jit: Any) -> None:
    f = jit(lambda a, /, b, *, c=1: a + b * c)
    np.testing.assert_array_equal(f(X, X, c=2), X * 3)
    np.testing.assert_array_equal(f(X, b=X), X * 2)
    for args, kwargs in [
        ((), {}),
        ((X,), {}),
        ((X, X, X), {}),
        ((X, X), {"d": 1}),
        ((X, X), {"b": X}),
        ((), {"a": X, "b": X}),
    ]:
        with pytest.raises(TypeError):
            f.__wrapped__(*args, **kwargs)
        with pytest.raises(TypeError, match="argument"):
            f(*args, **kwargs)
    assert jit(lambda: 5)() == 5


def test_many_arguments_and_results(jit: Any) -> None:
    arguments = [np.full(100, i) for i in range(60)]
    np.testing.assert_array_equal(jit(lambda *a: sum(a))(*arguments), np.full(100, 1770))
    results = jit(lambda x: [x * i for i in range(60)])(X)
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, X * i)


def test_exceptions_in_the_function_leave_nothing_behind(jit: Any) -> None:
    class Mine(Exception):
        pass

    fail = [True]

    @jit
    def f(x: Any) -> Any:
        y = x + 1
        if fail[0]:
            raise Mine("as it is")
        return y

    for _ in range(2):
        with pytest.raises(Mine, match="as it is"):
            f(X)
    fail[0] = False
    np.testing.assert_array_equal(f(X), X + 1)
    assert f.cache_info().size == 1


def test_recursion(jit: Any) -> None:
    def deep(x: Any, n: int) -> Any:
        return x if n == 0 else deep(x + 1, n - 1)

    np.testing.assert_array_equal(jit(deep, static_argnums=1)(X, 300), X + 300)
    with pytest.raises(RecursionError):
        jit(lambda x: deep(x, -1))(X)
    np.testing.assert_array_equal(jit(lambda x: x + 1)(X), X + 1)


def test_leaked_tracers(jit: Any) -> None:
    queue: Any = SimpleQueue()

    def leak(x: Any) -> Any:
        queue.put(x + 1)
        return x * 2

    jit(leak)(X)
    leaked = [queue.get()]
    assert leaked[0].shape == (3, 4)
    assert "float64[3, 4]" in repr(leaked[0])
    for use in (
        lambda v: v + 1,
        np.sin,
        lambda v: v[0],
        lambda v: v.sum(),
        lambda v: np.concatenate([v, v]),
        lambda v: jit(lambda x: x + v)(X),
        lambda v: jit(lambda x: x + 1)(v),
    ):
        with pytest.raises(TracerLeakError, match="hint: return it"):
            use(leaked[0])


# Messages: `op: cannot ...` with both values, or NumPy's own words.

MESSAGES = [
    (
        lambda x: x @ x,
        ValueError,
        r"matmul: cannot multiply \[3,4\] with \[3,4\] \(contracted dimension: 4 and 3\)",
    ),
    (lambda x: x @ 2, ValueError, r"matmul: cannot .*\nhint: use \*"),
    (lambda x: x.reshape(5, -1), ValueError, r"reshape: cannot reshape \[3,4\] to \[5,-1\]"),
    (lambda x: x.reshape(-2, -3), ValueError, r"can only specify one unknown dimension"),
    (
        lambda x: np.concatenate([x, x], axis=2),
        np.exceptions.AxisError,
        "concatenate: cannot use axis 2",
    ),
    (
        lambda x: x.sum(axis=2**40),
        (ValueError, OverflowError),
        "sum: cannot use axis 1099511627776",
    ),
    (lambda x: x.transpose(0, 0), ValueError, r"transpose: cannot use axes \[0,0\]"),
    (
        lambda x: np.broadcast_to(x, (2, 4)),
        ValueError,
        r"broadcast_to: cannot .*dimension -2: 3 and 2\)\nhint:",
    ),
    (lambda x: x[4], IndexError, "index 4 is out of bounds for axis 0 with size 3"),
    (lambda x: x[::0], ValueError, "step cannot be zero"),
    (lambda x: x[1.5:], TypeError, "float"),
    (lambda x: x + "a", TypeError, "unsupported operand"),
    (lambda x: x + None, TypeError, "unsupported operand"),
    (lambda x: x.no_such_thing, AttributeError, "no_such_thing"),
    (lambda x: x.astype("no_such_dtype"), TypeError, "no_such_dtype"),
    (lambda x: np.stack([]), ValueError, "at least one array"),
    (lambda x: np.pad(x, -1), ValueError, "negative"),
    (lambda x: list(x.sum()), TypeError, "not iterable"),
    (lambda x: np.repeat(x, 2**62), (ValueError, MemoryError), "elements"),
]


@pytest.mark.parametrize("case", range(len(MESSAGES)))
def test_messages(case: int) -> None:
    function, error, message = MESSAGES[case]
    with pytest.raises(error, match=message):
        rune_jit.jit(function, fallback="error")(X)


def test_this_file_is_the_users_line(tmp_path: Path) -> None:
    """Warnings of a fallback name the file and line of the user's code."""
    module = tmp_path / "user_code.py"
    module.write_text(
        "import threading\n\ndef f(x):\n    y = x + 1\n    threading.Thread()\n    return y\n"
    )
    namespace: dict[str, Any] = {}
    exec(compile(module.read_text(), str(module), "exec"), namespace)
    with pytest.warns(JitFallbackWarning, match="Thread") as record:
        rune_jit.jit(namespace["f"])(X)
    assert (record[0].filename, record[0].lineno) == (str(module), 5)


def test_lists_of_many_numbers_are_no_arguments_of_a_program():
    """A program would take each number; what the function makes arrays of runs in segments."""

    def mean(numbers):
        return sum(numbers) / len(numbers)

    def distances(points, factor):
        x = np.asarray(points)
        d = np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))
        points[0][0] = 7.0
        return d * factor

    numbers = [0.5 * i for i in range(5000)]
    points = [[float(i), 1.0, i % 3] for i in range(200)]
    for function, args in (
        (mean, (numbers,)),
        (mean, (tuple(numbers),)),
        (distances, (points, 2.0)),
    ):
        jitted = rune_jit.jit(function)
        for _ in range(6):
            ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
            got, expected = jitted(*ours), function(*theirs)
            assert type(got) is type(expected)
            np.testing.assert_allclose(got, expected, rtol=1e-13)
            assert ours == theirs
        with pytest.raises(rune_jit.UnsupportedOpError, match="numbers as arguments"):
            rune_jit.jit(function, fallback="error").lower(*args)


def test_classes_without_a_module() -> None:
    made = type(
        "Made", (), {"__module__": None, "factor": 2.0, "__call__": lambda self, x: x * 3}
    )()

    def of_variable(x: Any) -> Any:
        return made(x) * made.factor

    def of_argument(x: Any, scale: Any) -> Any:
        return [*reversed((scale(x) * scale.factor).tolist())]

    x = np.arange(3.0)
    for function, *given in ((of_variable,), (of_argument, made)):
        jitted = rune_jit.jit(function)
        for _ in range(2):
            np.testing.assert_array_equal(jitted(x, *given), function(x, *given))
        assert "NumPy" not in jitted.explain()
