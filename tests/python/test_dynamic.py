"""jit(dynamic=...): options, the calls that a program takes, sizes beside each other, errors."""

from __future__ import annotations

import functools
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same
from devices import HAS_FLOAT64, devices

import rune_jit
from rune_jit import ConcretizationError, Dim, DynamicSizeError, UnsupportedOpError

DEVICES = devices("cpu", "interpreter")
same = functools.partial(assert_same, ulps=170, scaled=True)


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


@pytest.mark.parametrize("device", DEVICES)
def test_arrays_without_elements(device: str) -> None:
    f = rune_jit.jit(
        lambda x: (x[1:] * 2, x[:-1][::-1], x + 1),
        device=device,
        dynamic={"x": {0: Dim("n", min=1, max=4)}},
        fallback="error",
    )
    for n in (4, 1, 2, 1):
        same(f(np.arange(n, dtype=np.float32)), f.__wrapped__(np.arange(n, dtype=np.float32)))


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
    """An error that names the size, or NumPy's result; never that of the bound."""
    options: dict[str, Any] = {"dynamic": {"x": {0: Dim("n", max=1024)}}}
    x = np.arange(20.0).reshape(5, 4)
    with pytest.raises(error, match="hint: ") as raised:
        rune_jit.jit(use, fallback="error", **options)(x)
    if error is not ConcretizationError:
        assert re.search(r"\bn\b", str(raised.value))
        same(rune_jit.jit(use, **options)(x), use(x))


def test_a_size_that_is_one_at_this_call() -> None:
    def use(x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, (1, 4)) + 1

    options: dict[str, Any] = {"dynamic": {"x": {0: Dim("n", max=1024)}}}
    x = np.arange(4.0).reshape(1, 4)
    with pytest.raises(UnsupportedOpError, match=r"\(dimension 0: n to 1\)"):
        rune_jit.jit(use, fallback="error", **options)(x)
    same(rune_jit.jit(use, **options)(x), use(x))


def test_an_element_that_is_set_to_as_many_as_the_size() -> None:
    def use(x: np.ndarray) -> np.ndarray:
        y = np.zeros(3, bool)
        y[0] = x
        return y

    options: dict[str, Any] = {"dynamic": {"x": {0: Dim("n", max=2)}}}
    x = np.ones(1, bool)
    with pytest.raises(UnsupportedOpError, match=r"\bn\b"):
        rune_jit.jit(use, fallback="error", **options)(x)
    same(rune_jit.jit(use, **options)(x), use(x))


def test_size_outside_of_its_trace() -> None:
    kept: list[Any] = []
    f = rune_jit.jit(
        lambda x: kept.append(x.shape[0]) or x * 2, dynamic={0: {0: "n"}}, fallback="error"
    )
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
    copy = pickle.loads(pickle.dumps(rune_jit.jit(np.round, dynamic={0: {0: Dim("n", 1, 9)}})))
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


def test_sizes_are_compared_with_other_objects_as_integers_are() -> None:
    def f(x: Any) -> Any:
        n = x.shape[0]
        assert (n == None, n != None, n == "a", n in (None, "a")) == (False, True, False, False)  # noqa: E711
        return x * 2

    same(rune_jit.jit(f, dynamic={"x": {0: "n"}}, fallback="error")(np.ones(3)), np.full(3, 2.0))
