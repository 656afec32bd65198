"""`rune_jit.numpy`: complete, and with NumPy's results eagerly and under jit. The standard's own
test suite is run by scripts/array_api_tests.sh."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_array import check

import rune_jit
from rune_jit import Array, jit
from rune_jit import numpy as xp

# Every name of the array API standard 2024.12.
NAMES = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool
broadcast_arrays broadcast_to can_cast ceil clip complex128 complex64 concat conj copysign cos cosh
count_nonzero cumulative_prod cumulative_sum diff divide e empty empty_like equal exp expand_dims
expm1 eye finfo flip float32 float64 floor floor_divide from_dlpack full full_like greater
greater_equal hypot iinfo imag inf int16 int32 int64 int8 isdtype isfinite isinf isnan less
less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor
matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply nan negative newaxis
nextafter nonzero not_equal ones ones_like permute_dims pi positive pow prod real reciprocal
remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt square
squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc uint16
uint32 uint64 uint8 unique_all unique_counts unique_inverse unique_values unstack var vecdot where
zeros zeros_like __array_api_version__ __array_namespace_info__
linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv
linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose
linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals
linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm
fft.fft fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifftn fft.ifftshift fft.ihfft
fft.irfft fft.irfftn fft.rfft fft.rfftfreq fft.rfftn
"""
METHODS = """
__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__
__float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__
__lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__
__sub__ __truediv__ __xor__ to_device T device dtype mT ndim shape size __radd__ __iadd__ __rpow__
__imatmul__ __rlshift__ __ixor__
"""

A = np.array([[0.5, -1.0, 2.0], [3.0, np.nan, -0.0]], np.float32)
B = np.array([[2, 1, 3], [-3, 0, 2]], np.int8)


def test_every_name_is_there() -> None:
    for name in NAMES.split():
        module, _, leaf = name.rpartition(".")
        assert hasattr(getattr(xp, module) if module else xp, leaf), name
    for name in METHODS.split():
        assert hasattr(Array, name), name
    with pytest.raises(AttributeError, match="no attribute 'trapezoid'"):
        xp.trapezoid  # noqa: B018
    signature = inspect.signature(xp.sum)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    plain = signature.replace(parameters=parameters, return_annotation=signature.empty)
    assert str(plain) == "(x, /, *, axis=None, dtype=None, keepdims=False)"


def test_namespace_of_arrays() -> None:
    x = xp.asarray(A)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match="version '2019"):
        x.__array_namespace__(api_version="2019.01")
    same = jit(lambda x: x.to_device(x.device).__array_namespace__() is xp, fallback="error")
    assert same(x) is True
    with pytest.raises(rune_jit.UnsupportedOpError, match="cannot move"):
        jit(lambda x: x.to_device("interpreter"), fallback="error")(x)


def test_inspection() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices() == rune_jit.devices()
    assert info.capabilities()["data-dependent shapes"] is True
    assert set(info.default_dtypes()) >= {"real floating", "integral", "indexing"}
    assert info.dtypes(kind="bool") == {"bool": np.dtype(bool)}
    assert list(info.dtypes(kind=("unsigned integer", "real floating")))[-1] == "float64"


def test_dtypes() -> None:
    for dtype in (xp.float32, xp.bfloat16, xp.bool):
        for other in (None, 1, "no dtype", object(), [], {}, xp.int8, np.uint16):
            assert (dtype == other) is False
    assert xp.asarray(A).dtype == xp.float32
    assert xp.result_type(xp.asarray(B), xp.float32, 1.5) == xp.float32
    assert xp.can_cast(xp.asarray(B), xp.int16) and not xp.can_cast(xp.float64, xp.int16)
    assert xp.isdtype(xp.bfloat16, "real floating") and not xp.isdtype(xp.bfloat16, xp.float32)
    assert xp.isdtype(xp.uint8, ("bool", "integral"))
    assert xp.iinfo(xp.asarray(B)).max == 127 and xp.finfo(xp.float32).bits == 32
    assert type(xp.finfo(xp.complex64).eps) is float
    assert xp.finfo(xp.bfloat16).eps == 2.0**-7
    check(xp.astype(xp.asarray(B), xp.float64), B.astype(np.float64))


# (name, function of a namespace and two arrays)
CASES: list[tuple[str, Callable[..., Any]]] = [
    ("elementwise", lambda m, a, b: m.add(m.sin(a), m.pow(m.abs(b), 2))),
    ("with numbers", lambda m, a, b: (m.multiply(2, b), m.maximum(a, 0.5), m.where(a > 0, a, 1))),
    ("clip", lambda m, a, b: (m.clip(a, 0, 1), m.clip(b, max=1), m.clip(b, -1, 1))),
    ("reductions", lambda m, a, b: (m.sum(b), m.mean(a, axis=1), m.max(b, axis=0, keepdims=True))),
    ("variance", lambda m, a, b: (m.var(a[0], correction=1), m.std(b, axis=0))),
    ("searching", lambda m, a, b: (m.argmax(b, axis=1), m.count_nonzero(b), m.any(b > 2))),
    ("shapes", lambda m, a, b: (m.reshape(a, (3, 2)), m.permute_dims(a, (1, 0)), a.mT, m.flip(b))),
    ("joins", lambda m, a, b: (m.concat([a, b], axis=1), m.stack([b, b]), m.tile(b, (2, 1)))),
    ("split", lambda m, a, b: m.unstack(a, axis=1)),
    ("broadcast", lambda m, a, b: tuple(m.broadcast_arrays(a, b[:, :1]))),
    ("products", lambda m, a, b: (m.matmul(a, b.T), m.tensordot(b, b, axes=2), m.vecdot(b, b))),
    ("indexing", lambda m, a, b: (m.take(a, m.asarray([1, 0]), axis=0), b[1], a[:, ::-1])),
    ("triangles", lambda m, a, b: (m.tril(a), m.triu(b, k=1), m.moveaxis(a, 0, 1))),
    ("creation", lambda m, a, b: a + m.arange(3.0) * m.ones((2, 1)) + m.full((3,), 2)),
    ("transposed", lambda m, a, b: m.linalg.matrix_transpose(a)),
    ("eye", lambda m, a, b: m.eye(2, 3) * a),
    ("like", lambda m, a, b: (m.zeros_like(a), m.full_like(b, 3), m.ones_like(b, dtype=m.float64))),
    ("constants", lambda m, a, b: (a * m.pi, m.linspace(0, 1, 3) + b, m.diff(b))),
    ("sort", lambda m, a, b: (m.sort(b, axis=0), m.argsort(a[0]))),
    ("cumulative", lambda m, a, b: m.cumulative_sum(b, axis=1, include_initial=True)),
    ("roll", lambda m, a, b: m.roll(b, 1)),
    ("linalg", lambda m, a, b: (m.linalg.inv(m.eye(2) * 2.0), m.linalg.vector_norm(a[0]))),
    ("diagonal", lambda m, a, b: m.linalg.diagonal(m.reshape(b, (3, 2, 1)) + a[:, :1], offset=0)),
    ("fft", lambda m, a, b: m.fft.fft(a[0])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function"), CASES, ids=[name for name, _ in CASES])
def test_functions(name: str, function: Callable[..., Any]) -> None:
    x, y = xp.asarray(A), xp.asarray(B)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = function(np, A, B)
        check(function(xp, x, y), expected)
        check(jit(lambda a, b: function(xp, a, b), fallback="silent")(x, y), expected)


def test_shapes_that_depend_on_data() -> None:
    b = xp.asarray(B)
    check(xp.unique_values(b), np.unique(B))
    check(tuple(xp.unique_counts(b)), tuple(np.unique_counts(B)))
    check(xp.nonzero(b), np.nonzero(B))
    check(b[b > 0], B[B > 0])
    check(xp.repeat(b[0], b[0]), np.repeat(B[0], B[0]))


def test_descending() -> None:
    x = xp.asarray([1, 3, 1, 2])
    check(xp.sort(x, descending=True), np.array([3, 2, 1, 1]))
    check(xp.argsort(x, descending=True), np.array([1, 3, 0, 2]))


def test_creation() -> None:
    for device in ("cpu", "interpreter"):
        assert xp.zeros(2, device=device).device == device
        assert xp.asarray([1.0], device=device).device == device
        assert xp.ones_like(xp.ones(2), device=device).device == device
    x = xp.ones(2, device="interpreter")
    assert xp.zeros_like(x).device == "interpreter"
    check(xp.arange(1, stop=7, step=2, dtype=xp.int8), np.arange(1, 7, 2, np.int8))
    check(xp.arange(3.5), np.arange(3.5))
    check(xp.from_dlpack(A), A)
    check(xp.sin(A[0, 0]), np.sin(A[0, 0]))
    check(xp.sin(A), np.sin(A))


def test_strict_where_numpy_is() -> None:
    with pytest.raises(TypeError):
        xp.bitwise_and(xp.asarray(A), xp.asarray(A))
    with pytest.raises(ValueError, match="broadcast"):
        xp.add(xp.ones(2), xp.ones(3))
    with pytest.raises(TypeError):
        xp.add(xp.ones(2), "a")
