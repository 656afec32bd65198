"""jit(dynamic=...): one program for a range of sizes, against NumPy."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from devices import HAS_FLOAT64, devices

import rune_jit
from rune_jit import ConcretizationError, Dim, DynamicSizeError, UnsupportedOpError

DEVICES = devices("cpu", "interpreter")
SIZES = [1, 2, 3, 17, 1000, 1024]


def same(actual: Any, expected: Any, what: str = "") -> None:
    got, want = optree.tree_leaves(actual), optree.tree_leaves(expected)
    assert optree.tree_structure(actual) == optree.tree_structure(expected)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        where = f"{what}, result {i}"
        assert type(g) is type(w), where
        assert np.shape(g) == np.shape(w), where
        assert np.asarray(g).dtype == np.asarray(w).dtype, where
        atol = 2e-5 * max(1, np.max(np.abs(w), initial=0, where=np.isfinite(w)))
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=atol, err_msg=where)


def check(
    function: Callable[..., Any], make: Callable[..., Any], device: str, **options: Any
) -> None:
    """The function gives NumPy's results for all sizes, by one program."""
    options = {"dynamic": {0: {0: Dim("n", max=1024)}}, "fallback": "error", **options}
    jitted = rune_jit.jit(function, device=device, **options)
    for n in SIZES:
        arguments = make(n, np.random.default_rng(n))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's own, of 0 / 0
            expected = function(*arguments)
        try:
            results = jitted(*arguments)
        except rune_jit.DTypeError as error:
            if HAS_FLOAT64 or "float64" not in str(error):
                raise
            pytest.skip("the device has no float64")
        same(results, expected, f"n={n}")
        arrays = [r for r in optree.tree_leaves(results) if isinstance(r, np.ndarray)]
        assert all(r.flags.c_contiguous for r in arrays)
    info = jitted.cache_info()
    assert (info.misses, info.fallbacks, info.size) == (1, 0, 1)


def rows(n: int, rng: Any) -> list[np.ndarray]:
    return [rng.standard_normal((n, 4)).astype(np.float32)]


@pytest.mark.parametrize("device", DEVICES)
def test_elementwise_and_arrays_made(device: str) -> None:
    def f(x: Any) -> Any:
        n = x.shape[0]
        return (
            np.tanh(x) * 2 + x[:, :1],
            np.where(x > 0, x, -x)[:, 1:],
            np.zeros(x.shape),
            np.ones((n, 3), np.int8),
            np.full(n, x[:, 0].sum()),
            np.zeros_like(x) + np.arange(4, dtype=np.float32),
            np.arange(n) * 2,
            np.arange(n, dtype=np.float32) + x[:, 0],
            np.broadcast_to(np.float32(3), (n, 2)) * x[:, :2],
            x.reshape(n, 2, 2)[:, ::-1],
            x.reshape(-1, 2, 2).sum(1),
            np.stack([x, -x], 1),
            np.concatenate([x, x * 2], 1),
            x[:, None] * x[:, :, None],
            np.clip(x, -0.5, 0.5).astype(np.float64),
        )

    check(f, rows, device)


@pytest.mark.parametrize("device", DEVICES)
def test_reductions(device: str) -> None:
    """What is stored beyond a size is part of no reduction, whatever its neutral element."""

    def f(x: Any) -> Any:
        results: list[Any] = []
        for sign in (1, -1):
            y = x * sign + np.float32(sign) * 10  # all of one sign
            for axis in (None, 0, 1):
                results += [
                    y.max(axis),
                    y.min(axis),
                    y.sum(axis),
                    y.mean(axis),
                    y.var(axis),
                    (y / 10).prod(axis),
                    (y > 0).any(axis),
                    (y > 0).all(axis),
                ]
            results += [np.argmin(y, 0), np.argmax(y, 0), np.argmax(y, 1), np.argmax(y[:, 0])]
        exps = np.exp(x - x.max(0))
        results += [exps / exps.sum(0), x.std(0), x.std(ddof=1), x.var(0, ddof=0.5)]
        results += [np.cumsum(x, 0), np.maximum.accumulate(x, 0), np.count_nonzero(x > 0)]
        return results

    check(f, rows, device)


@pytest.mark.parametrize("device", DEVICES)
def test_size_as_a_number(device: str) -> None:
    def f(x: Any) -> Any:
        n = x.shape[0]
        assert n >= 1 and n > 0 and not n > 1024 and n != 1025 and n == x.shape[0] and n
        small = x[:, 0].astype(np.float16)
        return (
            x.sum() / n,
            x.sum(0) / np.sqrt(n),
            x * (n - 1) / (2 * n),
            n // 2 + 3,
            x.size,
            np.size(x, 0),
            small / n,
            x.shape,
            -n,
            n**2 % 7,
            (x.astype(np.int32) + n).sum(),
        )

    check(f, rows, device)


@pytest.mark.parametrize("device", DEVICES)
def test_order_and_indices(device: str) -> None:
    """Reads and writes by number along the axis, from both ends."""

    def f(x: Any, i: Any) -> Any:
        n = x.shape[0]
        y = x.copy()
        y[i] = 7
        z = np.zeros(n)
        np.add.at(z, i, 1.5)
        return (
            x[0],
            x[-1],
            x[0, 1] + x[-1, -1],
            x[i],
            x[i][::-1],
            np.take(x, i % n - n, axis=0),
            x[::-1],
            np.flip(x),
            np.roll(x, 3, 0),
            np.roll(x, (-1, 2), (0, 1)),
            np.argmax(x),
            np.argmin(x, keepdims=True),
            np.argmax(x[:, None, :]),
            y,
            z,
        )

    def make(n: int, rng: Any) -> list[np.ndarray]:
        return [*rows(n, rng), rng.integers(-n, n, 50)]

    check(f, make, device)


@pytest.mark.parametrize("device", DEVICES)
def test_sizes_in_terms_of_a_size(device: str) -> None:
    """What cuts, extends, joins and merges the axis has sizes that follow from its own."""

    def f(x: Any) -> Any:
        n = x.shape[0]
        assert n + 1 > n and 2 * n - n == n and (n - 1) * 2 + 2 == 2 * n and n + 1 != n
        return (
            x[1:],
            x[:-1] - x[1:],
            np.diff(x, axis=0),
            np.concatenate([x, x[::-1], x[:1]]),
            np.concatenate([x[1:].sum(0, keepdims=True), x]),
            np.pad(x, 1),
            np.pad(x, [(2, 0), (0, 3)], mode="edge"),
            np.repeat(x, 3, 0),
            x.ravel() * 2,
            x.reshape(-1),
            x.reshape(n * 2, 2).sum(1),
            x.reshape(2 * n, -1)[::-1],
            np.vstack([x, x]).mean(0),
            np.zeros((n + 1, 2)),
            np.ones(2 * n - 1).sum(),
            np.arange(n + 2) * 2,
            x[: n - 1],
            x[n - 1 :],
            np.cumsum(np.pad(x[:, 0], (1, 0))),
            np.roll(x, 1, 0),
            x[np.arange(n), np.arange(n) % 4],
            np.append(x[:, 0], 3),
            (n + 1, n * 2, 1 - n, n - n, -n),
            np.stack([x[:, 0], x[:, 1]]).T,
            np.hstack([x, x]),
            np.flip(np.pad(x[:, 0], (0, 5))),
            np.argmax(np.concatenate([x[:, 0], x[:, 1]])),
            np.concatenate([x, x]) @ np.ones((4, 2), np.float32),
            np.dot(x[:, 0], x[::-1, 1]),
        )

    check(f, rows, device)


def test_sizes_with_a_least_value() -> None:
    """Slices whose length the Dim's min tells; writes to them."""

    @rune_jit.jit(dynamic={"x": {0: Dim("n", min=4)}}, fallback="error")
    def f(x: Any) -> Any:
        y = x.copy()
        y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
        y[-2:] += 1
        return y, x[:4], x[-3:], x[2:-2].sum(0), x[1:].max(), y[3], np.squeeze(x[:1])

    for n in (4, 5, 100, 256):
        x = np.random.default_rng(n).standard_normal((n, 3))
        same(f(x), f.__wrapped__(x), f"n={n}")
    assert f.cache_info().misses == 1


# A constant, a product, a part of a split axis or another size's bound may equal a bound.


def test_parts_of_a_split_axis_are_no_size() -> None:
    f = rune_jit.jit(lambda x, y: (x * 2, y.sum()), dynamic={"x": {0: "n"}})
    x, y = np.ones(5000), np.ones(131_345)
    doubled, total = f(x, y)
    np.testing.assert_array_equal(doubled, x * 2)
    assert total == 131_345
    # Whatever the parts are: every bound up to some size, and what splits may choose.
    y = np.arange(1 << 17, dtype=np.int64)
    for most in (*range(5, 40), 64, 128, 512, 1024, 2048, 4096, 8192, 16384, 65536):
        g = rune_jit.jit(
            lambda x, y: (x * 2, y.sum(), y.cumsum(), y.max(), np.bincount(y[:40000] % 9)),
            dynamic={"x": {0: Dim("n", max=most)}},
            fallback="error",
        )
        same(g(x[:5], y), g.__wrapped__(x[:5], y), f"max={most}")


@pytest.mark.parametrize("device", DEVICES)
def test_bounds_that_equal_other_sizes(device: str) -> None:
    """A constant or another Dim's bound is not a size, even if it equals its bound."""
    n, m = Dim("n", max=64), Dim("m", max=64)

    @rune_jit.jit(dynamic={"x": {0: n}, "y": {0: m}}, fallback="error", device=device)
    def f(x: Any, y: Any, w: Any) -> Any:
        return (
            x[:, None] * y,
            np.concatenate([x, y, w[0]]),
            w @ w + w,
            w.sum(0),
            x.sum() + y.sum(),
            np.pad(x, (0, 64)),
            np.arange(64, dtype=np.float32) + w[0],
            x[:, None] + w[0],
            np.outer(y, x).sum(1),
        )

    w = np.arange(4096, dtype=np.float32).reshape(64, 64)
    for a, b in ((1, 64), (64, 1), (64, 64), (5, 5), (5, 7)):
        x, y = np.arange(a, dtype=np.float32), np.arange(b, dtype=np.float32) - 3
        same(f(x, y, w), f.__wrapped__(x, y, w), f"{a} {b}")
    assert f.cache_info().misses == 1
    for wrong in (lambda x, y: x + y, lambda x, y: x + np.ones(64), lambda x, y: x @ y):
        g = rune_jit.jit(wrong, dynamic={"x": {0: n}, "y": {0: m}}, fallback="error")
        with pytest.raises(UnsupportedOpError, match=r"\bn\b"):
            g(np.ones(64), np.ones(64))


@pytest.mark.parametrize("device", DEVICES)
def test_dynamic_axes_in_any_order(device: str) -> None:
    """In one array, before, between and after others, and merged with those inside of them."""
    axes = {"x": {1: "n"}, "y": {0: "m", 2: "n"}, "z": {0: "n", 1: "m"}}

    @rune_jit.jit(dynamic=axes, fallback="error", device=device)
    def f(x: Any, y: Any, z: Any) -> Any:
        n, m = z.shape
        return (
            x.T @ x,
            y * x[0],
            y.sum(0),
            y.sum(1) + z.T,
            np.swapaxes(y, 0, 2),
            z[:, :1] - z[:1],
            np.concatenate([x, x], 1)[:, ::-1],
            np.pad(z, [(1, 0), (0, 2)]).sum(),
            np.zeros((3, m, 2, n)).shape,
            np.moveaxis(y, 1, 2).reshape(m, 3 * n),
            z.reshape(n, m, 1) * np.ones(5, np.float32),
            y[:, 1],
            np.cumsum(y, 2),
            y.max((0, 2)),
            np.stack([z, z * 2], 1),
            z.T[..., None].repeat(2, 1),
        )

    for n, m in ((3, 5), (5, 3), (1, 1), (40, 2), (2, 40), (7, 7)):
        rng = np.random.default_rng(n)
        x, y, z = (rng.random(s, np.float32) for s in ((4, n), (m, 3, n), (n, m)))
        same(f(x, y, z), f.__wrapped__(x, y, z), f"n={n} m={m}")
    assert f.cache_info().misses == 1


def test_index_out_of_range() -> None:
    """IndexError with the size of the call, not the largest one."""
    f = rune_jit.jit(lambda x, i: x[i], dynamic={"x": {0: "n"}}, fallback="error")
    last = rune_jit.jit(lambda x: x[-3], dynamic={"x": {0: "n"}}, fallback="error")
    for n in (3, 9):
        x = np.arange(n)
        np.testing.assert_array_equal(f(x, np.array([n - 1, -n])), [n - 1, 0])
        assert last(x) == n - 3
        for bad in (n, -n - 1, 4095):
            with pytest.raises(IndexError, match=f"index {bad} .* axis 0 with size {n}$"):
                f(x, np.array([0, bad]))
    with pytest.raises(IndexError, match="index -3 is out of bounds for axis 0 with size 2"):
        last(np.arange(2))
    first = rune_jit.jit(lambda x: x[:2] + x[1], dynamic={"x": {0: Dim("n", min=2)}})
    np.testing.assert_array_equal(first(np.arange(5)), [1, 2])


@pytest.mark.parametrize("device", DEVICES)
def test_products(device: str) -> None:
    w = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)

    def f(x: Any, y: Any, i: Any) -> Any:
        return (
            x @ w,
            x.T @ y,
            y @ x.T @ x,
            x[:, 0] @ y,
            np.einsum("ni,nj->ij", x, y),
            np.einsum("ni,ni->n", x, y),
            (x @ w).mean(0),
            w.T[i],
            np.take(w, i, axis=1).T,
        )

    def make(n: int, rng: Any) -> list[np.ndarray]:
        return [*rows(n, rng), *rows(n, rng), rng.integers(-4, 4, n)]

    dim = Dim("n", min=1, max=1024)
    check(f, make, device, dynamic={"x": {0: dim}, "y": {0: "n"}, "i": {-1: "n"}})


@pytest.mark.skipif(not HAS_FLOAT64, reason="the device has no float64")
@pytest.mark.parametrize("device", DEVICES)
def test_other_axes_than_the_first(device: str) -> None:
    """Sizes on which strides depend, several in one array, views of them in memory of any order."""

    axes = {"q": {0: Dim("b", max=4), 2: "n"}, "k": {0: "b", -1: "m"}, "bias": {1: "m"}}

    @rune_jit.jit(dynamic=axes, fallback="error", device=device)
    def f(q: Any, k: Any, bias: Any) -> Any:
        scores = np.swapaxes(q, 1, 2) @ k + bias  # [b,n,m]
        exps = np.exp(scores - scores.max(-1, keepdims=True))
        weights = exps / exps.sum(-1, keepdims=True)
        bias += 1
        return (
            weights @ np.swapaxes(k, 1, 2),
            weights,
            np.swapaxes(q, 0, 2) * 2,
            np.argmax(scores, -1),
            scores.mean((0, 2)),
            np.cumsum(scores, 1),
            k[..., ::-1],
            k[:, :, -1],
            np.var(k),
            q.shape,
            np.ones((3, q.shape[2], k.shape[2])),
        )

    for b, n, m in ((2, 3, 5), (1, 1, 1), (3, 70, 200), (4, 2, 33)):
        rng = np.random.default_rng(n)
        q, k = (rng.standard_normal((b, 6, s)).astype(np.float32) for s in (n, m))
        bias = np.asfortranarray(rng.standard_normal((1, m)).astype(np.float32))
        mine, theirs = bias.copy("K"), bias.copy("K")
        same(f(q[:, ::-1], k, mine), f.__wrapped__(q[:, ::-1], k, theirs), f"{b} {n} {m}")
        np.testing.assert_array_equal(mine, theirs)
    assert f.cache_info().misses == 1
    x = rune_jit.asarray(np.arange(12.0).reshape(3, 4))
    g = rune_jit.jit(lambda x: x - x.mean(1, keepdims=True), dynamic={"x": {1: "n"}})
    np.testing.assert_allclose(np.asarray(g(x[:, 1:])), [[-1, 0, 1]] * 3)


def test_two_names_and_containers() -> None:
    @rune_jit.jit(dynamic={"pairs": {0: "n"}, "y": {0: "m"}}, fallback="error")
    def f(pairs: Any, y: Any, scale: float) -> Any:
        a, b = pairs
        return (a + b) * scale + y.max(), y / a.shape[0], a.sum() / y.shape[0]

    for n, m in ((3, 5), (5, 3), (4, 4), (1, 7)):
        a, y = np.arange(n, dtype=np.float32), np.arange(m) - 3.0
        same(f((a, a * 2), y, 0.5), f.__wrapped__((a, a * 2), y, 0.5))
    assert f.cache_info().misses == 1


def test_writes_reach_arguments() -> None:
    @rune_jit.jit(dynamic={"x": {0: "n"}}, fallback="error")
    def f(x: Any, y: Any) -> None:
        x[:, 1] = 7
        x += y

    for n in (2, 5):
        x = np.ones((n, 3), np.float32)
        f(x, np.float32(2))
        np.testing.assert_array_equal(x, [[3, 9, 3]] * n)


def test_bounds() -> None:
    f = rune_jit.jit(lambda x: x * 2, dynamic={0: {0: "n"}})
    for n in (256, 1, 257, 512, 400, 100_000):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(f(x), x * 2)
    assert f.cache_info().misses == 3  # up to 256, 512, 131072
    same(f(np.ones(0, np.float32)), np.ones(0, np.float32))
    assert f.cache_info().misses == 4
    with pytest.raises(TypeError):
        f(np.ones(2), np.ones(2))  # Python's own
    g = rune_jit.jit(lambda x, y: x + y, dynamic={0: {0: Dim("n", 2, 10)}, 1: {0: "n"}})
    for n in (1, 11):
        with pytest.raises(ValueError, match=rf'cannot use {n} as the dynamic size "n" \(axis 0'):
            g(np.ones(n), np.ones(n))
    with pytest.raises(ValueError, match=r"3 and 4 as the dynamic size .n. \(axis 0 of argument x"):
        g(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match=r"axis 0 of argument y, which has 0 dim"):
        g(np.ones(3), np.ones(()))


def test_wrong_options() -> None:
    def wrong(dynamic: Any, match: str, error: type[Exception] = ValueError) -> None:
        with pytest.raises(error, match=match):
            rune_jit.jit(lambda x, y: x, dynamic=dynamic)

    wrong({"z": {0: "n"}}, "cannot use 'z' in dynamic=")
    wrong({2: {0: "n"}}, "cannot use 2 in dynamic=")
    wrong({"x": "n"}, "cannot use 'n' as the dynamic axes of x", TypeError)
    wrong("n", "cannot use dynamic='n'", TypeError)
    wrong({"x": {0: 5}}, "cannot use 5 as a dynamic size", TypeError)
    wrong({"x": {0: Dim("n", 1, 2), 1: Dim("n", 1, 3)}}, "cannot use both")
    wrong({"x": {0: "not a name"}}, "cannot use 'not a name' as a name")
    with pytest.raises(ValueError, match=r"cannot bound n by \[5, 4\]"):
        Dim("n", 5, 4)


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda x: range(x.shape[0]), DynamicSizeError),
        (lambda x: [row for row in x], DynamicSizeError),
        (lambda x: len(x), DynamicSizeError),
        (lambda x: x if x.shape[0] > 5 else -x, DynamicSizeError),
        (lambda x: x if x.shape == (5, 4) else -x, DynamicSizeError),
        (lambda x: np.zeros(x.shape[0] // 2), ConcretizationError),
        (lambda x: x if x.shape[0] - 1 else -x, DynamicSizeError),
        (lambda x: float(x.shape[0]), DynamicSizeError),
        (lambda x: np.array(x.shape[0], copy=True) * x, DynamicSizeError),
        (lambda x: np.eye(x.shape[0]), DynamicSizeError),
        (lambda x: x[::-2], UnsupportedOpError),
        (lambda x: x[5:], UnsupportedOpError),
        (lambda x: x[:5], UnsupportedOpError),
        (lambda x: x[1:-1], UnsupportedOpError),
        (lambda x: x[1:].max(), UnsupportedOpError),  # of no elements, if n is 1
        (lambda x: x.T.ravel(), UnsupportedOpError),
        (lambda x: x.reshape(4, -1), UnsupportedOpError),
        (lambda x: np.tile(x, (2, 1)), UnsupportedOpError),
        (lambda x: np.sort(x, 0), UnsupportedOpError),
        (lambda x: x + np.ones((5, 4)), UnsupportedOpError),
        (lambda x: np.concatenate([x, np.ones((5, 4))], 1), UnsupportedOpError),
        (lambda x: np.squeeze(x), UnsupportedOpError),
        (lambda x: np.trace(x), UnsupportedOpError),
        (lambda x: x[2:].shape, UnsupportedOpError),  # computes nothing
        (lambda x: x.sum() / len(x[1:]), UnsupportedOpError),
    ],
)
def test_what_needs_the_size(use: Callable[[Any], Any], error: type[Exception]) -> None:
    """An error that names the size, or NumPy's result with a warning; never that of the bound."""
    options: dict[str, Any] = {"dynamic": {"x": {0: Dim("n", max=1024)}}}
    x = np.arange(20.0).reshape(5, 4)
    with pytest.raises(error, match="hint: ") as raised:
        rune_jit.jit(use, fallback="error", **options)(x)
    if error is not ConcretizationError:
        assert re.search(r"\bn\b", str(raised.value))
        with pytest.warns(rune_jit.JitFallbackWarning):
            same(rune_jit.jit(use, **options)(x), use(x))


def test_size_outside_of_its_trace() -> None:
    kept: list[Any] = []
    f = rune_jit.jit(lambda x: kept.append(x.shape[0]) or x * 2, dynamic={0: {0: "n"}})
    f(np.ones(3))
    with pytest.raises(rune_jit.TracerLeakError):
        kept[0] + 1
    with pytest.raises(rune_jit.TracerLeakError):
        rune_jit.jit(lambda x: x + kept[0], dynamic={0: {0: "n"}})(np.ones(3))


def test_arrays_methods_and_pickle() -> None:
    class Model:
        @rune_jit.jit(dynamic={"x": {0: "n"}}, fallback="error")
        def scaled(self, x: Any) -> Any:
            return x - x.mean(0)

    model = Model()
    for n in (3, 6):
        x = np.random.default_rng(n).standard_normal((n, 2))
        same(model.scaled(x), x - x.mean(0))
        on_device = rune_jit.asarray(x)
        result = model.scaled(on_device)
        assert isinstance(result, rune_jit.Array)
        np.testing.assert_allclose(np.asarray(result), x - x.mean(0))
    assert Model.scaled.cache_info().misses == 2  # of arrays, and of Arrays
    copy = pickle.loads(pickle.dumps(rune_jit.jit(np.negative, dynamic={0: {0: Dim("n", 1, 9)}})))
    with pytest.raises(ValueError, match="cannot use 10 as the dynamic size"):
        copy(np.ones(10))


def test_lowered_program_takes_all_sizes() -> None:
    f = rune_jit.jit(lambda x: x.sum(0), dynamic={0: {0: "n"}})
    lowered = f.lower(np.ones((5, 3), np.float32))
    assert "define_var" in str(f.trace(np.ones((5, 3), np.float32)))
    run = lowered.compile()
    for n in (1, 40):
        x = np.random.default_rng(n).random((n, 3), np.float32)
        np.testing.assert_allclose(run(x), x.sum(0), rtol=1e-5)


def test_size_zero_between_others() -> None:
    """A call of size 0 has a program of its own, which no other size must run."""
    f = rune_jit.jit(lambda x: (x * 2, x.sum() + 1), dynamic={"x": {0: "n"}}, fallback="error")
    for n in (0, 5, 0, 7, 0):
        doubled, total = f(np.ones(n))
        assert doubled.tolist() == [2.0] * n and total == n + 1
    assert f.cache_info().misses == 2
