"""Results lie in memory as NumPy lays them out: in Fortran order if all operands do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
from compare import assert_matches

import rune_jit

RNG = np.random.default_rng(3)

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "map": lambda x, y: x * y + 1,
    "row": lambda x, y: x - y[0],
    "column": lambda x, y: x / (y[:, :1] + 9),
    "of a row and a column": lambda x, y: x[:1] * y[:, :1],
    "scalar": lambda x, y: np.exp(x[0, 0]) + y,
    "where": lambda x, y: np.where(x > y, x, 0),
    "chain": lambda x, y: np.clip(np.round(np.tanh(x) * 3), -1, 2).astype(np.float32),
    "slices": lambda x, y: x[::2, 1::3] * 2,
    "reversed": lambda x, y: x.T + y.T[::-1],
    "transposed": lambda x, y: (x + y).T,
    "transposed twice": lambda x, y: (x.T + y.T).T,
    "copy": lambda x, y: x.T.copy() + y.T.copy(),
    "copy K": lambda x, y: np.copy(x) + y,
    "roll": lambda x, y: np.roll(x, 3, axis=1),
    "roll flat": lambda x, y: np.roll(x, 3),
    "pad": lambda x, y: np.pad(y, 1),
    "concatenate": lambda x, y: np.concatenate([x, y], axis=1),
    "stacked": lambda x, y: np.vstack([x, y[:1]]) + 1,
    "differences": lambda x, y: np.diff(x, axis=1),
    "product": lambda x, y: x.T @ y,
    "rows by index": lambda x, y: x[[2, 0, 1]] * 2,
    "repeated": lambda x, y: np.repeat(x, 2, axis=0),
    "reshaped": lambda x, y: (x * 2).reshape(-1, 2) + 1,
    "view of a reshape": lambda x, y: (x * 2).reshape(2, -1),
    "two": lambda x, y: (x + y, (x + y).sum(axis=1), x.max(axis=0, keepdims=True)),
    "broadcast": lambda x, y: x[None] + np.stack([y, y]),
    "sum": lambda x, y: np.stack([x, y]).sum(axis=0),
    "order F": lambda x, y: (np.exp(x, order="F"), np.matmul(x, y.T, order="f")),
    "order C": lambda x, y: np.divmod(x, y, order="C"),
    "order A": lambda x, y: np.add(x + 1, y, order="A"),
}


def order_of(x: np.ndarray) -> str:
    return "F" if x.flags.fnc else "C"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_lie_as_numpys(name: str) -> None:
    function = FUNCTIONS[name]
    jitted = rune_jit.jit(function, fallback="error")
    for shape in ((6, 8), (70, 130)):
        for orders in ("FF", "CC", "FC", "CF"):
            x, y = (np.array(RNG.standard_normal(shape), order=o) for o in orders)
            got, want = jitted(x, y), function(x, y)
            assert_matches(got, want, 64)
            both = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
            for a, b in both:
                # In C order is what NumPy lays out in an order of its own.
                if np.ndim(b) == 2 and name not in ("broadcast", "sum"):
                    assert order_of(a) == order_of(b), (name, orders)


def zeros_like(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] += x[1:]
    return y


def loop(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    return y


ANY_AXES: dict[str, Callable[[Any], Any]] = {
    "map": lambda x: x + 1,
    "zeros": lambda x: np.zeros_like(x),
    "ones": lambda x: np.ones_like(x, dtype=np.int32),
    "full": lambda x: np.full_like(x, x[0, 0, 0]),
    "full F": lambda x: np.full_like(x, 2, order="F"),
    "written": zeros_like,
    "loop": loop,
    "stack": lambda x: (np.stack([x, x]), np.stack([x, x], axis=-1)),
    "nan_to_num": lambda x: np.nan_to_num(x),
    "new axis": lambda x: (x[:, None] + 1, x[None] * 2, x[..., None] - 1),
    "swapped": lambda x: (np.swapaxes(x, 0, 1) * 2, np.moveaxis(x, 0, -1) + x.sum()),
    "broadcast": lambda x: (x * x[:1], x - x[..., 0, None], x[None] + x[:, None, :1]),
    "comparison": lambda x: np.where(x > 2, x, 0),
    "reductions": lambda x: (x.sum(axis=0), x.max(axis=1), x.mean(axis=2, keepdims=True)),
    "scans": lambda x: (np.cumsum(x, axis=1), np.sort(x, axis=0), np.diff(x)),
    "columns": lambda x: x[:, [1, 0]],
    "concatenation": lambda x: np.concatenate([x, x], axis=1),
    "copies": lambda x: (np.copy(x), x.copy(), x.copy("K"), x.astype(np.float32)),
    "gradient": lambda x: np.gradient(x, axis=1),
    "Fourier transform": lambda x: np.fft.fft(x, axis=0),
    "part": lambda x: (x * 2)[:, 1:, ::2],
    "rounded": lambda x: (np.round(x, 1), np.round(x), x.astype(int).round(-1)),
    "padded": lambda x: (np.pad(x, 1), np.pad(x, 1, mode="edge")),
    "vectorized": lambda x: np.vectorize(lambda a, b: a + b)(x, 2.0),
    "einsum": lambda x: (np.einsum("ijk,ijk->ijk", x, x), np.einsum("ijk,k->ij", x, x[0, 0])),
}
# Of an array of regular matrices.
DECOMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "solve": lambda x: np.linalg.solve(x[0], x[1].T).T,
    "inv": lambda x: np.linalg.inv(x).T,
    "kron": lambda x: np.kron(x[0].T, x[1]).T,
    "scipy cholesky": lambda x: scipy.linalg.cholesky(x[0] @ x[0].T),
    "scipy pinv": lambda x: scipy.linalg.pinv(x[0, :2].T).T,
    "scipy solve": lambda x: scipy.linalg.solve(x[0].T, x[1]),
    "scipy triangular": lambda x: scipy.linalg.solve_triangular(x[0], x[1].T),
    "scipy svd": lambda x: scipy.linalg.svd(x[0]),
    "scipy filter": lambda x: scipy.ndimage.gaussian_filter(x[0].T, 1) * 2,
}
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": lambda x: x,
    "F": lambda x: np.asfortranarray(x),
    "swapped": lambda x: np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1),
    "rotated": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0),
    "gaps": lambda x: np.repeat(x, 2, axis=2)[..., ::2],
    "gaps F": lambda x: np.asfortranarray(np.repeat(x, 2, axis=0))[::2],
    "reversed": lambda x: x[::-1].T[::-1].T,
    "one row": lambda x: np.asfortranarray(x)[:1],
}


def axes_in_memory(x: np.ndarray) -> list[int]:
    axes = [axis for axis, size in enumerate(x.shape) if size > 1]
    return sorted(axes, key=lambda axis: -abs(x.strides[axis]))


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_axes_of_linear_algebra_lie_as_numpys(name: str) -> None:
    function = DECOMPOSITIONS[name]
    x = RNG.standard_normal((2, 4, 4)) + 9 * np.eye(4)
    in_segments = lambda x: function(x) if x[0, 0].tolist() else None  # noqa: E731
    for jitted in (rune_jit.jit(function, fallback="error"), rune_jit.jit(in_segments)):
        for lies in (np.asarray, np.asfortranarray):
            got, want = jitted(lies(x)), function(lies(x))
            both = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
            for a, b in both:
                np.testing.assert_allclose(a, b)
                assert axes_in_memory(a) == axes_in_memory(b)


@pytest.mark.parametrize("name", ANY_AXES)
def test_axes_lie_as_numpys(name: str) -> None:
    function = ANY_AXES[name]
    jitted = rune_jit.jit(function, fallback="error")
    for layout in LAYOUTS.values():
        x = layout(RNG.integers(1, 9, (4, 3, 5)).astype(float))
        got, want = jitted(x), function(x)
        assert_matches(got, want, 64)
        both = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
        for a, b in both:
            assert axes_in_memory(a) == axes_in_memory(b)


def test_large_arrays_lie_as_numpys() -> None:
    def f(x: Any) -> Any:
        return np.sort(x, axis=0), np.concatenate([x, x]), np.where(x > 0.5, x, 0)

    jitted = rune_jit.jit(f, fallback="error")
    x = np.asfortranarray(RNG.random((300, 300)))
    for a, b in zip(jitted(x), f(x), strict=True):
        assert axes_in_memory(a) == axes_in_memory(b)


def test_arguments_in_an_order_of_their_own_are_written_to() -> None:
    def run(x: Any) -> Any:
        x[1:] += x[0]
        x[:, 1] = 5
        return x, x.T + 1

    jitted = rune_jit.jit(run, fallback="error")
    for layout in LAYOUTS.values():
        x, y = (layout(np.arange(60.0).reshape(4, 3, 5)) for _ in range(2))
        got, want = jitted(x), run(y)
        assert got[0] is x
        assert_matches(got, want)
        assert_matches(x, y)


def test_unknown_orders_raise_numpys_error() -> None:
    for like in (np.zeros_like, np.empty_like, lambda x, order: np.full_like(x, 1, order=order)):
        with pytest.raises(ValueError, match=r"order must be one of 'C', 'F', 'A', or 'K'"):
            rune_jit.jit(lambda x, like=like: like(x, order="Q"))(np.ones((2, 2)))


def test_one_result_in_fortran_order_is_one() -> None:
    x = np.asfortranarray(RNG.standard_normal((5, 7)))

    def twice(x: Any) -> Any:
        y = x + 1
        return y, y, y.T

    a, b, c = rune_jit.jit(twice, fallback="error")(x)
    assert a is b
    assert order_of(a) == "F" and order_of(c) == "C"


def test_what_is_written_to_is_right_in_any_order() -> None:
    def run(x: Any) -> Any:
        y = x * 2
        y[1:, 2] = x[0, 0]
        x[0] = 5
        return y, x + y, y.T

    for order in "CF":
        x = np.array(RNG.standard_normal((30, 40)), order=order)
        own = x.copy(order)
        want = run(x)
        assert_matches(rune_jit.jit(run, fallback="error")(own), want)
        assert_matches(own, x)


def test_loops_of_arrays_in_fortran_order() -> None:
    def run(x: Any, w: Any) -> Any:
        for _ in range(5):
            x = x * w + 1
            w = w - x[:1] / 9
        return x, w

    x, w = (np.array(RNG.standard_normal((20, 30)), order="F") for _ in range(2))
    got, want = rune_jit.jit(run, fallback="error")(x, w), run(x, w)
    assert_matches(got, want)


@pytest.mark.parametrize("function", [np.argmax, np.argmin])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_positions_of_extremes(function: Any, dtype: Any) -> None:
    """The first of several; of NaN, the first NaN."""
    for axis in (None, 0, 1, -1):
        jitted = rune_jit.jit(lambda x, axis=axis: function(x, axis=axis), fallback="error")
        kept = rune_jit.jit(
            lambda x, axis=axis: function(x, axis=axis, keepdims=True), fallback="error"
        )
        for shape in ((3, 20011), (129, 1031), (40, 513), (700, 640), (21001, 2)):
            for order in "CF":
                x = np.array(RNG.integers(-40, 40, shape), dtype, order=order)
                np.testing.assert_array_equal(jitted(x), function(x, axis=axis))
                if x.dtype.kind == "f":
                    x[-1, -1] = x[shape[0] // 2, shape[1] // 3 :] = np.nan
                    np.testing.assert_array_equal(jitted(x), function(x, axis=axis))
                    x[:, -1] = np.nan
                    x[:, 0] = -np.inf if function is np.argmin else np.inf
                else:
                    x[:, -1] = 99 if function is np.argmax else -99
                np.testing.assert_array_equal(jitted(x), function(x, axis=axis))
                assert np.shape(jitted(x)) == np.shape(function(x, axis=axis))
                np.testing.assert_array_equal(kept(x), function(x, axis=axis, keepdims=True))


def test_long_chains() -> None:
    """Each result is used twice, so there are more ways through the operations than operations."""

    def run(x: Any) -> Any:
        for _ in [*range(700)]:
            y = x / 2
            x = (x + y) * 0.625
        return x

    x = np.array(RNG.random((5, 6)), order="F")
    assert_matches(rune_jit.jit(run, fallback="error")(x), run(x))


def test_the_work_is_in_proportion_to_the_operations() -> None:
    def steps(n: int) -> int:
        """How often functions are called or generators go on, in Python."""

        def run(x: Any) -> Any:
            for _ in [*range(n)]:
                x = x + 1.5
            return x

        traced = rune_jit.jit(run, fallback="error")
        count = 0

        def note(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += event == "call"

        gc.disable()  # (A collection calls functions of other libraries.)
        sys.setprofile(note)
        try:
            traced.trace(np.ones((3, 4)))
        finally:
            sys.setprofile(None)
            gc.enable()
        return count

    steps(1)  # the first trace of a process imports
    few, many, most = steps(200), steps(400), steps(600)
    assert most - many <= 1.2 * (many - few)


LAID_OUT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "with gaps": lambda base: base[::2],
    "backwards": lambda base: base[::-1],
    "transposed": lambda base: base.reshape(4, 6).T,
    "a column": lambda base: base.reshape(4, 6)[:, 1],
    "columns": lambda base: base.reshape(4, 6)[:, ::2],
    "in Fortran's order": lambda base: np.asfortranarray(base.reshape(4, 6)),
    "axes swapped": lambda base: base.reshape(2, 3, 4).transpose(1, 0, 2),
}
IN_AN_ORDER: dict[str, Callable[[Any], Any]] = {
    "astype C": lambda x: x.astype(float, order="C", copy=False),
    "astype F": lambda x: x.astype(float, order="F", copy=False),
    "astype A": lambda x: x.astype(float, order="A", copy=False),
    "astype of a transpose": lambda x: x.T.astype(float, order="C", copy=False),
    "asfortranarray": np.asfortranarray,
    "ravel": np.ravel,
    "ravel F": lambda x: x.ravel("F"),
    "ravel of a transpose": lambda x: x.T.ravel(),
}


@pytest.mark.parametrize("how", IN_AN_ORDER)
@pytest.mark.parametrize("lies", LAID_OUT)
def test_what_is_in_another_order_is_copied(how: str, lies: str) -> None:
    asked, base = IN_AN_ORDER[how], np.arange(24.0)

    def writes(x: Any) -> Any:
        made = asked(x)
        made[...] = 7
        return made

    def made(x: Any) -> Any:
        y = x + 1
        writes(y)
        return y

    returns, written, of_own = rune_jit.jit(asked), rune_jit.jit(writes), rune_jit.jit(made)
    for _ in range(2):
        x, y = (LAID_OUT[lies](base.copy()) for _ in range(2))
        wanted, got = asked(x), returns(x)
        assert_matches(got, wanted)
        assert got.strides == wanted.strides
        assert np.shares_memory(got, x) == np.shares_memory(wanted, x)
        assert_matches(of_own(x), made(x))
        written(x), writes(y)
        assert_matches(x, y)
