"""Complex numbers: every function against NumPy, over special values of both parts."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit

DEVICES = ["cpu", "interpreter"]
DTYPES = [np.complex64, np.complex128]


def special(dtype: Any) -> np.ndarray:
    """Every pair of special values of the two parts, in one dimension."""
    limits = np.finfo(dtype)
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
    parts += [float(limits.tiny), float(-limits.tiny), float(limits.max), float(-limits.max)]
    pairs = np.array(list(itertools.product(parts, parts)))
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(pairs).view(np.complex128)[:, 0].astype(dtype)


def random(dtype: Any, *shape: int, seed: int = 0) -> np.ndarray:
    parts = np.random.default_rng(seed).normal(size=(*shape, 2)) * 3
    return np.ascontiguousarray(parts).view(np.complex128)[..., 0].astype(dtype)


def run(f: Any, *args: Any, device: str = "cpu") -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", rune_jit.JitFallbackWarning)
        return rune_jit.jit(f, device=device, fallback="error")(*args)


def expected(f: Any, *args: Any) -> Any:
    with np.errstate(all="ignore"):
        return f(*args)


def check(found: Any, wanted: Any, ulps: float = 16) -> None:
    """Equal types; special values alike in both parts, also signs of zeros; finite numbers within
    some units in the last place of their modulus."""
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for x, y in zip(found, wanted, strict=True):
            check(x, y, ulps)
        return
    assert type(found) is type(wanted)
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, wanted)
        return
    eps = np.finfo(wanted.dtype).eps
    with np.errstate(all="ignore"):
        parts = np.nan_to_num(np.abs([wanted.real, wanted.imag]), posinf=0)
        size = np.max(parts, axis=0)
        least = np.finfo(wanted.dtype).tiny
        for x, y in ((found.real, wanted.real), (found.imag, wanted.imag)):
            close = np.abs(x - y) <= ulps * (eps * size + least)
            alike = (x == y) & ((x != 0) | (np.signbit(x) == np.signbit(y)))
            alike |= np.isnan(x) & np.isnan(y)
            # A sign of a zero may be lost only where the other part is larger by far.
            good = np.where(np.isfinite(y) & (y != 0), close, alike | (close & (size > 0)))
            if not good.all():
                i = tuple(np.argwhere(~good)[0])
                raise AssertionError(f"{found[i]} instead of {wanted[i]} at {i}")


def within(x: np.ndarray) -> np.ndarray:
    """Without numbers whose products overflow or vanish. With them, NumPy's loops for some layouts
    of arrays differ from those for others: they round once for two operations."""
    size = np.abs([x.real, x.imag])
    return x[np.all(~np.isfinite(size) | (size == 0) | ((size > 1e-9) & (size < 1e9)), axis=0)]


UNARY = [
    "negative", "positive", "absolute", "square", "sqrt", "exp", "exp2", "expm1", "log", "log2",
    "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan",
    "arcsinh", "arccosh", "arctanh", "reciprocal", "sign", "rint", "conjugate", "isnan", "isinf",
    "isfinite", "logical_not",
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_ufunc_of_special_values(name: str, dtype: Any, device: str) -> None:
    f = getattr(np, name)
    values = special(dtype)
    for x in (within(values) if name == "square" else values, random(dtype, 50)):
        check(run(f, x, device=device), expected(f, x))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["real", "imag", "angle", "iscomplex", "isreal", "abs", "conj"])
def test_parts_and_angles(name: str, dtype: Any, device: str) -> None:
    f = getattr(np, name)
    x = special(dtype)
    check(run(f, x, device=device), expected(f, x))


BINARY = [
    "add", "subtract", "multiply", "divide", "equal", "not_equal", "less", "less_equal",
    "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or",
    "logical_xor", "power",
]  # fmt: skip


def binary_values(name: str, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    x = special(dtype)
    if name in ("multiply", "divide", "power"):
        x = within(x)
    return x[:, None], x[None, :]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary_ufunc_of_special_values(name: str, dtype: Any, device: str) -> None:
    f = getattr(np, name)
    x, y = binary_values(name, dtype)
    check(run(f, x, y, device=device), expected(f, x, y))
    x, y = random(dtype, 40), random(dtype, 40, seed=1)
    check(run(f, x, y, device=device), expected(f, x, y))


@pytest.mark.parametrize("name", ["floor", "arctan2", "bitwise_and", "fmod", "heaviside", "cbrt"])
def test_ufuncs_without_a_complex_loop(name: str) -> None:
    ufunc = getattr(np, name)
    x = random(np.complex128, 3)
    with pytest.raises(TypeError):
        rune_jit.jit(lambda *xs: ufunc(*xs), fallback="error")(*[x] * ufunc.nin)


@pytest.mark.parametrize("exponent", [-99, -3, -1, 0, 1, 2, 3, 4, 7, 100, 0.5, -1.0, 2.5, 1j, 0j])
def test_powers(exponent: Any) -> None:
    x = np.append(random(np.complex128, 20) / 3, [0, 1j, np.nan, np.inf])
    for f in (lambda x: x**exponent, lambda x: np.power(x, exponent)):
        check(run(f, x), expected(f, x), ulps=400)


PROMOTED: list[Any] = [
    *(np.ones(2, d) for d in "?bBhHiIlLefdFD"),
    *(True, 3, 2.5, 1j, np.float32(2), np.int8(3), np.complex64(1j), np.complex128(2)),
]


@pytest.mark.parametrize("i", range(len(PROMOTED)))
@pytest.mark.parametrize("dtype", [*DTYPES, np.float32, np.float16, np.int8, np.int64, bool])
def test_promotion(dtype: Any, i: int) -> None:
    x, y = np.ones(2, dtype), PROMOTED[i]
    functions = [
        lambda x, y: x + y,
        lambda x, y: y * x,
        lambda x, y: np.where(x == y, x, y),
        lambda x, y: np.concatenate([x, np.broadcast_to(y, (2,))]),
    ]
    for f in functions:
        check(run(f, x, y), expected(f, x, y))  # an argument
        check(run(lambda x, f=f: f(x, y), x), expected(f, x, y))  # a constant


def test_python_complex_arguments() -> None:
    def f(x: Any, c: Any) -> Any:
        return x * c, c + 1, c * 2j, -c, c.real, c.imag, c.conjugate(), c == 1j

    x = random(np.complex64, 5)
    for c in (1j, 2 - 3j, complex(np.nan, np.inf)):
        found, wanted = run(f, x, c), f(x, c)
        check(found[0], wanted[0])
        assert [type(v) for v in found] == [type(v) for v in wanted]
        assert repr(found[1:]) == repr(wanted[1:])


def test_one_program_for_all_complex_numbers() -> None:
    f = rune_jit.jit(lambda x, c: x * c)
    for k in range(4):
        f(np.ones(3), complex(k, 1))
    assert f.cache_info().misses == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("to", [bool, np.int8, np.int64, np.float16, np.float32, float, *DTYPES])
def test_casts(dtype: Any, to: Any) -> None:
    x = random(dtype, 30)
    x[:4] = [0, 1j, 1, np.nan + 1j] if np.dtype(to).kind in "fcb" else [0, 1j, 1, 2 + 1j]
    loses = np.dtype(to).kind not in "cb"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = rune_jit.jit(lambda x: x.astype(to), fallback="error")(x)
    assert [w.category for w in caught] == [np.exceptions.ComplexWarning] * loses
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(found, x.astype(to))
    real = np.arange(6).astype(to)
    check(run(lambda x: x.astype(dtype), real), real.astype(dtype))


REDUCTIONS: list[Any] = [
    np.sum, np.prod, np.mean, np.var, np.std, np.any, np.all, np.max, np.min, np.argmax, np.argmin,
    np.cumsum, np.cumprod, np.count_nonzero, np.ptp, np.nansum, np.nanmean, np.nanvar, np.sort,
    np.argsort, np.median, np.linalg.norm,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("f", REDUCTIONS, ids=lambda f: f.__name__)
def test_reductions(f: Any, axis: Any, dtype: Any) -> None:
    if f in (np.sort, np.argsort) and axis is None:
        axis = -1
    x = random(dtype, 7, 9)
    x[2, 3] = x[4, 5]
    check(run(lambda x: f(x, axis=axis), x), expected(lambda x: f(x, axis=axis), x), ulps=300)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [0, 1, 5, 3000])
def test_sums_of_any_length(n: int, device: str) -> None:
    x = random(np.complex128, n)
    f = lambda x: (x.sum(), (x * x.conj()).sum(), x.mean() if n else x.sum())  # noqa: E731
    check(run(f, x, device=device), expected(f, x), ulps=3000)


CONTRACTIONS: list[tuple[Any, tuple[int, ...], tuple[int, ...]]] = [
    (lambda a, b: a @ b, (4, 5), (5, 6)),
    (lambda a, b: a @ b, (5,), (5,)),
    (lambda a, b: a @ b, (4, 5), (5,)),
    (lambda a, b: a @ b, (3, 4, 5), (3, 5, 2)),
    (lambda a, b: a.conj().T @ b, (5, 4), (5, 6)),
    (np.dot, (4, 5), (5,)),
    (np.vdot, (4, 5), (4, 5)),
    (np.inner, (4, 5), (3, 5)),
    (np.outer, (4,), (5,)),
    (np.kron, (2, 2), (3, 2)),
    (np.vecdot, (3, 5), (3, 5)),
    (lambda a, b: np.tensordot(a, b, 1), (4, 5), (5, 3)),
    (lambda a, b: np.einsum("ij,jk->ki", a, b), (4, 5), (5, 3)),
    (lambda a, b: np.einsum("ij,kl->il", a, b), (4, 5), (5, 3)),
    (lambda a, b: np.einsum("bij,bj->bi", a, b), (3, 4, 5), (3, 5)),
    (lambda a, b: a @ b, (40, 70), (70, 30)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("i", range(len(CONTRACTIONS)))
@pytest.mark.parametrize("dtypes", [("F", "F"), ("D", "D"), ("D", "d"), ("f", "F"), ("l", "D")])
def test_contractions(i: int, dtypes: Any, device: str) -> None:
    f, a_shape, b_shape = CONTRACTIONS[i]
    a, b = random("D", *a_shape), random("D", *b_shape, seed=1)
    a, b = (
        x.astype(d) if np.dtype(d).kind == "c" else x.real.astype(d)
        for x, d in zip((a, b), dtypes, strict=True)
    )
    check(run(f, a, b, device=device), expected(f, a, b), ulps=300)


MOVEMENT: list[Any] = [
    lambda x: x.T,
    lambda x: x[::-1, 1::2],
    lambda x: x.reshape(-1)[3:7],
    lambda x: np.concatenate([x, 2 * x], axis=1),
    lambda x: np.stack([x, x.real]),
    lambda x: np.pad(x, 2),
    lambda x: np.pad(x, 1, constant_values=1 + 2j),
    lambda x: np.roll(x, 1),
    lambda x: np.tile(x, 2),
    lambda x: np.flip(x),
    lambda x: x[np.array([2, 0, 0])],
    lambda x: np.take(x, [1, 1, 0], axis=1),
    lambda x: np.diagonal(x),
    lambda x: np.tril(x),
    lambda x: np.where(x.real > 0, x, 1j),
    lambda x: np.broadcast_to(x[0], (3, 4)) + 0,
    lambda x: np.array([x[0, 0], 1, 2j]),
    lambda x: np.zeros_like(x) + np.ones(4, complex) * np.full((3, 1), 2 - 1j),
    lambda x: x + np.eye(3, 4, dtype=complex),
    lambda x: np.linspace(x[0, 0], x[1, 1], 5),
    lambda x: x * np.arange(4),
    lambda x: x * np.linspace(0, 1j, 4),
    lambda x: np.diff(x),
    lambda x: np.round(x, 1),
    lambda x: np.isclose(x, x + 1e-12j),
    lambda x: np.allclose(x, x),
    lambda x: np.array_equal(x, x),
    lambda x: np.nan_to_num(x),
    lambda x: np.clip(x, 0, 1 + 1j),
    lambda x: np.trapezoid(x),
    lambda x: np.real_if_close(x.real),
    lambda x: np.iscomplexobj(x) + x.real,
    lambda x: np.linalg.inv(x[:, :3]),
    lambda x: np.linalg.solve(x[:, :3], x[:, 3]),
    lambda x: np.linalg.eigvals(x[:, :3]).sum(),
    lambda x: x.view(x.real.dtype) * 2,
    lambda x: x.real.copy().view(x.dtype) * 1j,
    lambda x: np.correlate(x[0], x[1], "full"),
    lambda x: np.correlate(x[0, :2], x[1], "full"),
    lambda x: np.convolve(x[0], x[1].real),
    lambda x: np.interp(x.real, np.arange(4.0), x[0], right=2j),
    lambda x: np.searchsorted(np.sort(x[0]), x),
    lambda x: np.isin(x, x[0]),
    lambda x: np.fft.fft(x),
    lambda x: np.fft.ifft(x, axis=0) * 2,
    lambda x: np.fft.rfft(x.real),
    lambda x: np.fft.irfft(x),
    lambda x: np.fft.fftn(x),
    lambda x: np.fft.fft2(x),
    lambda x: np.fft.fftshift(x),
]


@pytest.mark.parametrize("i", range(len(MOVEMENT)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions(i: int, dtype: Any) -> None:
    x = random(dtype, 3, 4)
    check(run(MOVEMENT[i], x), expected(MOVEMENT[i], x), ulps=1000)


def strided(x: np.ndarray) -> list[np.ndarray]:
    wide = np.zeros((6, 10), x.dtype)
    wide[::2, 1:9:2] = x
    return [x, wide[::2, 1:9:2], np.asfortranarray(x), x[::-1, ::-1]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_strided_arguments(dtype: Any, device: str) -> None:
    f = lambda x: x * 2j + x.imag  # noqa: E731
    for x in strided(random(dtype, 3, 4)):
        check(run(f, x, device=device), f(x))


def fill_real(x: Any) -> None:
    x.real = 3


def write_imag_part(x: Any) -> None:
    x.imag[1:, ::2] = x.real[1:, ::2] + 1


def write_through_view(x: Any) -> None:
    y = x[1].real
    y += 10
    x[1] *= 2
    y[0] = -1


def write_real_to_complex(x: Any) -> None:
    x[0] = 5
    x[1] = x[2].real
    x[:, 3] = 1j


def write_by_indices(x: Any) -> None:
    x[np.array([0, 2, 0])] = np.arange(12).reshape(3, 4) * 1j
    np.add.at(x, (np.array([1, 1]), np.array([0, 0])), 2 + 1j)
    np.multiply.at(x, (np.array([1, 1]), np.array([1, 1])), 2 + 1j)


def write_by_mask(x: Any) -> None:
    x[x.real > 0] = 0
    x[np.abs(x) > 2] += 1j


def write_in_loops(x: Any) -> None:
    for i in range(3):
        for j in range(4):
            x[i, j] = x[i, j] * (i + j * 1j)


def write_by_out(x: Any) -> None:
    np.multiply(x, 1j, out=x)
    np.exp(x.real, out=x.imag)


def write_to_imag_of_view(x: Any) -> None:
    x.T.imag[0] = 7
    x.reshape(-1).real[5:] = 1


def write_to_numbers(x: Any) -> None:
    y = x.view(x.real.dtype)
    y[:, ::3] = 5
    y.view(x.dtype)[0, 0] *= 2j


WRITES = [
    fill_real, write_imag_part, write_through_view, write_real_to_complex, write_by_indices,
    write_by_mask, write_in_loops, write_by_out, write_to_imag_of_view, write_to_numbers,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("f", WRITES, ids=lambda f: f.__name__)
def test_writes_to_arguments(f: Any, dtype: Any) -> None:
    for layout in range(1 if f is write_to_numbers else 3):
        found = strided(random(dtype, 3, 4))[layout]
        wanted = strided(random(dtype, 3, 4))[layout]
        run(f, found)
        f(wanted)
        check(found, wanted)


def test_writes_to_new_arrays() -> None:
    def f(x: Any) -> Any:
        out = np.zeros((2, 3), dtype=complex)
        out[0] = x
        out[1].imag = x
        out.real[0, 1] = 9
        known = np.zeros(3, complex)
        known.imag = 2
        known.real[1:] += 1
        return out, known, known * x

    check(run(f, np.arange(3.0)), f(np.arange(3.0)))


def test_a_write_of_complex_to_real_warns_and_takes_the_real_part() -> None:
    def f(x: Any, z: Any) -> None:
        x[1:] = z[1:]

    x, z = np.ones(3), random("D", 3)
    with pytest.warns(np.exceptions.ComplexWarning):
        rune_jit.jit(f, fallback="error")(x, z)
    np.testing.assert_array_equal(x, [1, *z.real[1:]])
    with pytest.raises(TypeError):
        rune_jit.jit(lambda x: x.__iadd__(1j), fallback="error")(x)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", [1e30, np.nan, 300.7 + 1j, -5.5])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float32])
def test_numbers_written_to_elements_that_they_may_not_fit(dtype: Any, value: Any) -> None:
    def f(x: Any) -> Any:
        y = np.zeros(len(x), dtype)
        for i in range(len(x)):
            y[i] = x[i]
        return y

    def outcome(function: Any, x: Any) -> Any:
        try:
            return function(x)
        except (ValueError, OverflowError) as error:
            return type(error).__name__, str(error)

    jitted = rune_jit.jit(f)
    for last in (1, value):
        x = np.array([1, 2, 3, 4, last], complex)
        assert_same(outcome(jitted, x), outcome(f, x))


def test_captured_arrays_and_constants() -> None:
    table = random("D", 4)
    number = np.complex64(2 - 1j)

    def f(x: Any) -> Any:
        return x * table + number, np.exp(-2j * np.pi * np.arange(4) / 4) * x

    check(run(f, np.arange(4.0)), f(np.arange(4.0)))


def test_imag_of_real_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        run(lambda x: x.imag.__setitem__(0, 1), np.ones(3))
    with pytest.raises(TypeError):
        run(lambda x: setattr(x, "imag", 1), np.ones(3))


def test_dynamic_sizes() -> None:
    f = rune_jit.jit(lambda x: (x * 1j, x.sum(), x.real, x @ x), dynamic={"x": {0: "n"}})
    for n in (3, 8, 21):
        x = random("D", n)
        check(f(x), (x * 1j, x.sum(), x.real, x @ x), ulps=300)


def test_empty_arrays() -> None:
    x = np.zeros((0, 3), complex)
    f = lambda x: (x * 2, x.sum(axis=0), x.T @ x, np.concatenate([x, x]))  # noqa: E731
    check(run(f, x), f(x))


def test_host_functions_see_complex_arrays() -> None:
    f = lambda x: np.vectorize(lambda z: z.conjugate())(x * 1j) + 1  # noqa: E731
    x = random("D", 3)
    check(run(f, x), np.conj(x * 1j) + 1)


def test_metal_has_complex64_alone() -> None:
    text = rune_jit.jit(lambda x: x * x, device="metal").lower(np.ones(3, "F")).source("metal")
    assert "float" in text
    with pytest.raises(TypeError, match="complex128"):
        rune_jit.jit(lambda x: x * x, device="metal", fallback="error").lower(np.ones(3, "D"))


def test_python_cannot_order_complex_arguments() -> None:
    with pytest.raises(TypeError):
        rune_jit.jit(lambda c: c < 1j, fallback="error")(2j)


def test_arrays_on_devices() -> None:
    x = random("D", 5)
    a = rune_jit.asarray(x)
    check(np.asarray(np.exp(a) * 2j), np.exp(x) * 2j)
    check(np.asarray(rune_jit.jit(lambda a: a.real + a.imag)(a)), x.real + x.imag)
