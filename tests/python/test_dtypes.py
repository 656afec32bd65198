"""dtypes of results, with NumPy as the oracle: every ufunc on some pairs of dtypes and Python
scalars, with --full on all."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sampling import some

import rune_jit
from rune_jit.rules.ufuncs import is_traced

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]
PAIRS = list(itertools.product(DTYPES, DTYPES))
SCALARS = {
    "True": True,
    "2": 2,
    "300": 300,
    "-1": -1,
    "2**40": 2**40,
    "2**70": 2**70,
    "2.5": 2.5,
    "1e300": 1e300,
    "nan": float("nan"),
}
UFUNCS = [
    f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature is None and is_traced(f)
]
UNARY = sorted({f for f in UFUNCS if f.nin == 1}, key=lambda f: f.__name__)
BINARY = sorted({f for f in UFUNCS if f.nin == 2}, key=lambda f: f.__name__)

# Traced functions refuse this by design: a sign known only at run time decides whether NumPy
# raises.
_REFUSED = {"power"}


def _outcome(function: Any, *args: Any) -> Any:
    """dtypes of the results, or the type of the exception."""
    try:
        with np.errstate(all="ignore"):
            results = function(*args)
    except rune_jit.UnsupportedOpError:
        return "unsupported"
    except (TypeError, OverflowError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else type(error)
    return [r.dtype for r in results] if isinstance(results, (tuple, list)) else [results.dtype]


def _traced(function: Any, *args: Any) -> Any:
    def call(*xs: Any) -> Any:
        results = function(*xs)
        return results if isinstance(results, tuple) else (results,)

    def types(*xs: Any) -> list[np.dtype]:
        seen: list[np.dtype] = []

        def record(*tracers: Any) -> Any:
            results = call(*tracers)
            seen.extend(r.dtype for r in results)
            return results

        rune_jit.jit(record, fallback="error").trace(*xs)
        return seen

    try:
        return types(*args)
    except rune_jit.UnsupportedOpError:
        return "unsupported"
    except (TypeError, OverflowError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else type(error)


def _check(function: Any, name: str, *args: Any) -> None:
    expected, actual = _outcome(function, *args), _traced(function, *args)
    if actual == "unsupported" and name in _REFUSED:
        return
    assert actual == expected, (name, [getattr(a, "dtype", a) for a in args])


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda f: f.__name__)
def test_unary_ufunc(ufunc: np.ufunc) -> None:
    for dtype in DTYPES:
        _check(ufunc, ufunc.__name__, np.ones(2, dtype))


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda f: f.__name__)
def test_binary_ufunc(ufunc: np.ufunc, full: bool) -> None:
    for a, b in some(PAIRS, 16, ufunc.__name__, full):
        _check(ufunc, ufunc.__name__, np.ones(2, a), np.ones(2, b))


@pytest.mark.parametrize("scalar", SCALARS.values(), ids=SCALARS)
@pytest.mark.parametrize("ufunc", BINARY, ids=lambda f: f.__name__)
def test_ufunc_with_a_python_scalar(ufunc: np.ufunc, scalar: Any, full: bool) -> None:
    for dtype in some(DTYPES, 2, f"{ufunc.__name__} {scalar}", full):
        x = np.ones(2, dtype)
        _check(lambda v: ufunc(v, scalar), ufunc.__name__, x)
        _check(lambda v: ufunc(scalar, v), ufunc.__name__, x)


_NAMES = (
    "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt le gt ge eq ne matmul iadd"
    " isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift"
)
OPERATORS = [divmod, *(getattr(operator, name) for name in _NAMES.split())]


@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_operator(function: Any, full: bool) -> None:
    """Python's operators, on arrays and numbers in both orders."""
    for a, b in some(PAIRS, 16, function.__name__, full):
        _check(function, function.__name__, np.ones(2, a), np.ones(2, b))
    for dtype in some(DTYPES, 2, function.__name__, full):
        x = np.ones(2, dtype)
        scalars = (*SCALARS.values(), np.float32(2), np.int8(1))
        for scalar in scalars if function is not operator.matmul else ():
            _check(lambda v, s=scalar: function(v, s), function.__name__, x)
            _check(lambda v, s=scalar: function(s, v), function.__name__, x)


@pytest.mark.parametrize("scalar", [2, 2.5])
@pytest.mark.parametrize(
    "ufunc", [np.add, np.divide, np.maximum, np.less], ids=lambda f: f.__name__
)
def test_ufunc_with_a_python_argument(ufunc: np.ufunc, scalar: Any) -> None:
    """Python numbers that are arguments are weak too, though their values are not known."""
    for dtype in DTYPES:
        _check(ufunc, ufunc.__name__, np.ones(2, dtype), scalar)


@pytest.mark.parametrize(
    "function",
    [np.sum, np.prod, np.mean, np.var, np.std, np.max, np.any, np.argmax],
    ids=lambda f: f.__name__,
)
def test_reduction(function: Any) -> None:
    for dtype in DTYPES:
        _check(function, function.__name__, np.ones((2, 3), dtype))


@pytest.mark.parametrize(
    "function",
    [
        np.concatenate,
        lambda ab: np.where(True, *ab),
        lambda ab: np.matmul(*ab),
        lambda ab: np.stack(ab),
    ],
    ids=["concatenate", "where", "matmul", "stack"],
)
def test_joining(function: Any) -> None:
    for a in DTYPES:
        for b in DTYPES:
            _check(lambda x, y: function([x, y]), "join", np.ones((2, 2), a), np.ones((2, 2), b))


_CHOICES = {
    "where": lambda a, b: np.where([True, False], a, b),
    "dot": np.dot,
    "inner": np.inner,
    "result_type": lambda a, b: np.zeros(1, np.result_type(a, b)),
}


@pytest.mark.parametrize("function", _CHOICES.values(), ids=_CHOICES)
def test_joining_with_python_scalars(function: Any) -> None:
    for scalar in SCALARS.values():
        if scalar == 2**70:  # NumPy makes objects of it
            continue
        for dtype in [*DTYPES, ml_dtypes.bfloat16]:
            x = np.ones(2, dtype)
            for call in (lambda v, s=scalar: function(v, s), lambda v, s=scalar: function(s, v)):
                if _outcome(call, x) == [np.dtype(object)]:
                    with pytest.raises(TypeError, match="no common dtype"):
                        rune_jit.jit(call, fallback="error")(x)
                else:
                    _check(call, str(scalar), x)


def test_integers_that_wrap() -> None:
    """numpy.where makes arrays of Python ints, of int64 or uint64, and casts those; from NumPy 2.5
    on it refuses what is out of bounds."""
    for dtype in DTYPES[1:9]:
        x = np.ones(3, dtype)
        for number in (300, -1, 2**40 + 7, 2**63 + 5, -(2**63), 2**64):
            _check(lambda v, n=number: np.where([True, False, True], v, n), str(number), x)
            if isinstance(_outcome(lambda v, n=number: np.where(v > 0, n, v), x), list):
                choose = rune_jit.jit(lambda v, n=number: np.where(v > 0, n, v), fallback="error")
                np.testing.assert_array_equal(choose(x), np.where(x > 0, number, x))


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16])
def test_bfloat16_in_joins(dtype: Any) -> None:
    x, y = np.ones(2, ml_dtypes.bfloat16), np.ones(2, dtype)
    for function in (
        lambda a, b: np.concatenate([a, b]),
        lambda a, b: np.stack([b, a]),
        lambda a, b: np.where([True, False], a, b),
        lambda a, b: np.append(a, b),
        lambda a, b: np.zeros(1, np.result_type(b, a)),
        lambda a, b: np.hstack([a, b]),
    ):
        _check(function, "join", x, y)
        _check(function, "join", y, x)
    for product in (np.inner, lambda a, b: np.tensordot(a, b, 1)):
        objects = np.tensordot(x, y, 1).dtype == object
        if objects:
            with pytest.raises(TypeError, match="no common dtype"):
                rune_jit.jit(product, fallback="error")(x, y)
        else:
            _check(product, "product", x, y)


@pytest.mark.parametrize("device", ["cpu", "interpreter", "metal-interpreted", "cuda-interpreted"])
def test_casts_of_bfloat16(device: str) -> None:
    """Numbers that an integer dtype does not have become 0, and float64 is rounded once."""
    x = np.array([0.5, -1, 127.5, -129, 255, 256, 3e4, 7e4, -3e9, 1e19, np.nan, -np.inf])
    integers = [d for d in DTYPES if np.dtype(d).kind in "iu"]
    of = rune_jit.jit(lambda x: [x.astype(d) for d in integers], device=device, fallback="error")
    brain = x.astype(ml_dtypes.bfloat16)
    with np.errstate(invalid="ignore"):
        for dtype, got in zip(integers, of(brain), strict=True):
            np.testing.assert_array_equal(got, brain.astype(dtype), strict=True)
    if device == "metal-interpreted":  # which has no float64
        return
    halfway = np.array([1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, -1 - 2.0**-8 + 2.0**-40, 1e300, 1e-60])
    to = rune_jit.jit(lambda x: x.astype(ml_dtypes.bfloat16), device=device, fallback="error")
    got, wanted = to(halfway), halfway.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(got.view(np.uint16), wanted.view(np.uint16))


def test_three_operands_promote_together() -> None:
    """int16 and uint16 alone are int32, which with float32 would be float64."""
    arrays = [np.ones(2, d) for d in ("int16", "uint16", "float32")]
    _check(lambda *xs: np.concatenate(xs), "concatenate", *arrays)


@pytest.mark.parametrize("ufunc", UNARY + BINARY, ids=lambda f: f.__name__)
def test_bfloat16_as_ml_dtypes(ufunc: np.ufunc, full: bool) -> None:
    """Beside every dtype and Python scalar; of ints beyond 64 bits NumPy makes objects."""
    x = np.ones(2, ml_dtypes.bfloat16)
    if ufunc.nin == 1:
        _check(ufunc, ufunc.__name__, x)
        return
    for dtype in some([*DTYPES, ml_dtypes.bfloat16], 4, ufunc.__name__, full):
        _check(ufunc, ufunc.__name__, x, np.ones(2, dtype))
        _check(ufunc, ufunc.__name__, np.ones(2, dtype), x)
    scalars = [s for s in SCALARS.values() if not s >= 2**64 or isinstance(s, float)]
    for scalar in some(scalars, 2, ufunc.__name__, full):
        _check(lambda v, s=scalar: ufunc(v, s), ufunc.__name__, x)
        _check(lambda v, s=scalar: ufunc(s, v), ufunc.__name__, x)


@pytest.mark.parametrize("dtype", ["int16", "uint64", "float32"])
@pytest.mark.parametrize("kind", ["int", "float"])
def test_twenty_numbers_are_one_program(dtype: str, kind: str) -> None:
    """Python numbers in calls are run-time arguments, weak ones."""
    traced: list[Any] = []

    def scale(x: Any, s: Any) -> Any:
        traced.append(None)
        return x * s + s

    jitted = rune_jit.jit(scale, fallback="error")
    x = np.arange(5).astype(dtype)
    floats = [0.37 * i for i in range(18)] + [np.inf, np.nan]
    for number in range(20) if kind == "int" else floats:
        with np.errstate(invalid="ignore"):
            expected = x * number + number
        actual = jitted(x, number)
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)
    assert len(traced) == 1


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("uint8", 300), ("uint8", -1), ("int8", 128), ("uint64", -1), ("int64", 2**63)],
)
def test_python_ints_out_of_range_raise(dtype: str, number: int) -> None:
    x = np.ones(2, dtype)
    with pytest.raises(OverflowError):
        np.add(x, number)
    with pytest.raises(OverflowError, match="out of bounds"):
        rune_jit.jit(lambda v: v + number).trace(x)


@pytest.mark.parametrize("dtype", ["clongdouble", "datetime64[s]", "U3", "object", ">f4", ">c8"])
def test_unsupported_dtypes_are_named(dtype: str) -> None:
    x = np.zeros(2, dtype)
    with pytest.raises(rune_jit.UnsupportedOpError, match=r"cannot trace an argument of"):
        rune_jit.jit(lambda v: v, fallback="error")(x)
