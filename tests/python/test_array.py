"""rune_jit.Array: NumPy's semantics, protocols, and how programs take and return it."""

from __future__ import annotations

import copy
import ctypes
import operator
import pickle
from typing import Any

import numpy as np
import optree
import pytest
from compare import assert_matches
from devices import devices
from op_cases import CASES

import rune_jit
from rune_jit import Array, ConcretizationError, asarray, jit

A = np.array([[0.5, -1.0, 2.0], [3.0, np.nan, -0.0]], np.float32)


def check(actual: Any, expected: Any) -> None:
    """An Array (or several) with the values of NumPy's result."""
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple) and len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            check(a, e)
        return
    assert type(actual) is Array, type(actual)
    assert_matches(np.asarray(actual), np.asarray(expected))


def test_attributes() -> None:
    x = asarray(A)
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, np.float32)
    assert (x.nbytes, x.itemsize, x.device, len(x)) == (24, 4, "cpu", 2)
    check(x.T, A.T)
    check(x.mT, A.T)
    assert repr(x) == "Array" + repr(A)[5:] and str(x) == str(A)
    assert x.tolist()[0] == A.tolist()[0] and x[0, 0].item() == 0.5
    assert x.block_until_ready() is x
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError, match="asarray"):
        Array()


def test_numbers() -> None:
    x = asarray(np.int64(3))
    assert (int(x), float(x), bool(x), complex(x), operator.index(x)) == (3, 3.0, True, 3 + 0j, 3)
    assert 2.0 in asarray(A) and 7 not in asarray(A)
    assert [10, 20, 30, 40][x] == 40 and f"{x:03d}" == "003"
    with pytest.raises(ValueError, match="ambiguous"):
        bool(asarray(A))
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(TypeError):
        iter(x)


def test_memory_is_shared() -> None:
    a = np.arange(4.0)
    x = asarray(a)
    assert np.shares_memory(np.asarray(x), a) and np.shares_memory(np.asarray(x[1:3]), a)
    for other in (rune_jit.array(a), x.copy(), x.astype(float), x.flatten(), asarray(x, copy=True)):
        assert not np.shares_memory(np.asarray(other), a)
    turned = np.arange(6).reshape(2, 3).T
    assert np.shares_memory(np.asarray(asarray(turned)), turned)
    check(asarray(turned), turned)
    moved = x.to_device("interpreter")
    moved[0] = 7
    check(x, np.arange(4.0))
    check(asarray([asarray(1.0), 2.0]), np.array([1.0, 2.0]))
    check(asarray(a.astype(">f8")), a)
    with pytest.raises(ValueError, match="uncopied"):
        asarray(x, np.int8, copy=False)
    with pytest.raises(rune_jit.DTypeError, match="is not numeric"):
        asarray(["a"])


def test_operators() -> None:
    x, b = asarray(A), np.float32([2, 3, -4])
    y = asarray(b)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "ge", "eq", "ne"):
        f = getattr(operator, name)
        with np.errstate(all="ignore"):
            for left, right in ((x, y), (x, b), (b, x), (x, 2), (2.5, x), (x, np.float64(3))):
                check(f(left, right), f(np.asarray(left)[()], np.asarray(right)[()])
                      if not isinstance(left, float) and not isinstance(right, int)
                      else f(left if isinstance(left, float) else A,
                             right if isinstance(right, int) else A))  # fmt: skip
    i = np.arange(6, dtype=np.int8).reshape(2, 3)
    for f in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
        check(f(asarray(i), 3), f(i, 3))
    check(~asarray(i), ~i)
    check(-x, -A)
    check(abs(x), abs(A))
    check(x @ y, A @ b)
    check(A @ y, A @ b)
    check(divmod(asarray(i), 4), divmod(i, 4))
    check(asarray(i) ** 2, i**2)
    with pytest.raises(TypeError):
        x + "a"


def test_constants_are_told_apart() -> None:
    x = asarray(np.ones(2))
    for zero in (0.0, -0.0, np.float64(0.0), np.float64(-0.0), 0, False):
        check(x * zero, np.ones(2) * zero)
        check(np.clip(x, None, zero), np.clip(np.ones(2), None, zero))
        assert np.signbit(np.clip(x, None, zero)).tolist() == [np.signbit(zero)] * 2
        check(np.full_like(x, zero), np.full_like(np.ones(2), zero))
    for number in (np.nan, np.float32(np.nan), 2, 2.0, np.int8(2), True, 2**63):
        check(x + number, np.ones(2) + number)
    x = asarray(np.ones(2, np.uint8))
    check(np.add(x, [1, 2]), np.add(np.ones(2, np.uint8), [1, 2]))
    with pytest.raises(OverflowError):
        x + 300


def test_numpy_functions() -> None:
    x, i = asarray(A), asarray(np.array([3, 1, 2]))
    check(np.sin(x), np.sin(A))
    check(np.add(x, 1, dtype=np.float64), np.add(A, 1, dtype=np.float64))
    check(np.sum(x, axis=0), A.sum(0))
    check(x.max(axis=1, keepdims=True), A.max(1, keepdims=True))
    check(np.concatenate([x, A]), np.concatenate([A, A]))
    check(np.where(x > 0, x, 0), np.where(A > 0, A, np.float32(0)))
    check(np.multiply.outer(i, i), np.multiply.outer([3, 1, 2], [3, 1, 2]))
    check(np.sort(i), np.array([1, 2, 3]))  # NumPy's own, until it can be traced
    check(np.linalg.inv(asarray(np.eye(2) * 2)), np.eye(2) / 2)
    check(np.nonzero(i > 1), np.nonzero(np.array([3, 1, 2]) > 1))
    check(np.unique(i), np.array([1, 2, 3]))
    check(asarray(A + 1j).imag, np.imag(A + 1j))
    assert np.shape(x) == (2, 3) and np.result_type(x, np.float64) == np.float64
    out = asarray(np.zeros((2, 3), np.float32))
    assert np.add(x, 1, out=out) is out
    check(out, A + 1)


def test_table_of_operations(full: bool) -> None:
    """Each operation of op_cases.py outside of any jit, on Arrays: with --full on all dtypes."""
    for i, case in enumerate(CASES):
        dtypes = case.dtypes if full else [case.dtypes[i % len(case.dtypes)]] if i % 4 == 0 else []
        for dtype in dtypes:
            arguments = case.arguments(dtype)
            with np.errstate(all="ignore"):
                expected = case.function(*arguments)
                actual = case.function(*map(asarray, arguments))
            leaves = optree.tree_leaves(actual)
            assert all(type(x) is Array for x in leaves), case.name
            for array, value in zip(leaves, optree.tree_leaves(expected), strict=True):
                assert_matches(np.asarray(array)[()], np.asarray(value)[()], case.ulps)


@pytest.mark.parametrize(
    "index",
    [1, -1, (0, 2), slice(None, None, -1), (..., 1), (None, 0), ([1, 0, 1],), A > 1,
     (slice(1), [0, 2]), np.array([[1], [0]]), ()],
)  # fmt: skip
def test_getitem_and_setitem(index: Any) -> None:
    x = asarray(A)
    check(x[index], A[index])
    if isinstance(index, np.ndarray):
        check(x[asarray(index)], A[index])
    before, y, expected = x[:], x.copy(), A.copy()
    y[index] = 7
    expected[index] = 7
    check(y, expected)
    check(x, A)
    check(before, A)


def test_writes() -> None:
    x = y = asarray(np.arange(3))
    x += 1
    x[0] += asarray(5)
    assert x is y
    check(y, np.array([6, 2, 3]))
    with pytest.raises(TypeError, match="same_kind"):
        x += 1.5
    with pytest.raises(ValueError, match=r"shape \(3,\) doesn't match the broadcast shape \(2,3\)"):
        x += np.ones((2, 3), int)
    a = np.arange(3)
    a.flags.writeable = False
    for write in (lambda x: x.fill(1), lambda x: operator.iadd(x, 1), lambda x: np.put(x, 0, 1)):
        for run in (write, jit(write)):
            with pytest.raises(ValueError, match="read-only"):
                run(asarray(a))
    with pytest.raises(IndexError):
        x[5]
    with pytest.raises(IndexError):
        x[[0, 5]]


def test_protocols() -> None:
    x = asarray(A)
    view = memoryview(x)
    assert view.shape == (2, 3) and view.format == "f"
    y = x.copy()
    (ctypes.c_float * 6).from_buffer(y)[0] = 5
    np.asarray(y)[0, 1] = np.from_dlpack(y)[0, 0] + 1
    check(y[0], np.float32([5, 6, 2]))
    assert np.shares_memory(np.from_dlpack(x), np.asarray(x))
    assert x.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert "dltensor_versioned" not in repr(x.__dlpack__())
    assert "dltensor" in repr(x.__dlpack__(copy=False))
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    source = np.arange(3.0)
    check(rune_jit.from_dlpack(source), source)
    assert np.shares_memory(np.asarray(rune_jit.from_dlpack(source)), source)
    assert not np.shares_memory(np.asarray(rune_jit.from_dlpack(source, copy=True)), source)
    for same in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x), x.to_device("cpu")):
        check(same, A)
    with pytest.raises(ValueError, match="stream"):
        x.to_device("cpu", stream=1)


@pytest.mark.parametrize("device", devices("cpu", "interpreter"))
def test_on_device(device: str) -> None:
    x, a = rune_jit.device_put(A.copy(), device), A.copy()
    pairs = [
        (x + 1, a + 1), (np.abs(x) @ x.T, np.abs(a) @ a.T), (x[0], a[0]), (x[:, 1], a[:, 1]),
        (x[[1, 0]], a[[1, 0]]), (x[x > 1], a[a > 1]), (x.reshape(3, 2), a.reshape(3, 2)),
        (x.astype(np.int32)[0], a[0].astype(np.int32)), (np.sort(x), np.sort(a)),
        (jit(lambda p, q: (p + q).sum(axis=0))(x, a), (a + a).sum(axis=0)),
        (jit(lambda p: np.ones(3, np.float32))(x), np.ones(3, np.float32)),
    ]  # fmt: skip
    z = x.copy()
    z += 1
    z[0] = 9
    pairs.append((z, np.stack([np.full(3, 9, np.float32), a[1] + 1])))

    def write(p: Any) -> Any:
        p[1] = p[0]
        return p

    y = z.copy()
    assert jit(write, fallback="error")(y) is y
    pairs += [(y, np.full((2, 3), 9, np.float32)), (z[1], a[1] + 1)]
    for array, expected in pairs:
        assert array.device == device
        check(array, expected)
    others = [np.asarray(x), np.asarray(memoryview(x))]
    if x.__dlpack_device__()[0] == 1:  # the only memory that NumPy takes
        others.append(np.from_dlpack(x))
    for other in others:
        np.testing.assert_array_equal(other, np.asarray(x.to_device("cpu")))
    assert pickle.loads(pickle.dumps(x)).device == copy.copy(x).device == device
    if device == "metal":
        assert asarray(1.5, device=device).dtype == np.float32
        assert rune_jit.numpy.zeros(2, device=device).dtype == np.float32
        info = rune_jit.numpy.__array_namespace_info__()
        assert info.default_dtypes(device=device)["real floating"] == np.float32
        with pytest.raises(rune_jit.DTypeError, match="cannot hold float64"):
            asarray(np.float64(1.5), device=device)


def test_devices() -> None:
    x = rune_jit.device_put(A, "interpreter")
    assert rune_jit.devices()[0] == "cpu" and x.device == "interpreter"
    assert (x + 1).device == jit(lambda x: x * 2)(x).device == x.copy().device == "interpreter"
    y = asarray(A)
    with pytest.raises(ValueError, match="argument b on cpu"):
        jit(lambda a, b: a + b)(x, y)
    on_cpu = jit(lambda a, b: a + b, device="cpu")(x, y)
    assert on_cpu.device == "cpu"
    check(on_cpu, A + A)
    with pytest.raises(ValueError, match="cannot find `none`"):
        x.to_device("none")


def test_jit_returns_what_comes_in() -> None:
    @jit
    def f(a: Any, b: Any) -> Any:
        return (a + b).sum(), {"b": b, "k": np.arange(3), "n": 5}

    for a, b in ((asarray(A), asarray(A)), (asarray(A), A), (A, asarray(A))):
        total, rest = f(a, b)
        check(total, (A + A).sum())
        assert rest["b"] is b and rest["n"] == 5
        check(rest["k"], np.arange(3))
    total, rest = f(A, A)
    assert type(total) is np.float32 and type(rest["k"]) is np.ndarray
    assert f.cache_info().misses == 4


def test_jit_writes_to_arrays() -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        x[0] = y[1]
        y += x
        return x

    a, b = A.copy(), A.copy()
    x, y = asarray(A.copy()), asarray(A.copy())
    shared = x[:]
    assert f(x, y) is x
    f(a, b)
    check(x, a)
    check(y, b)
    check(shared, a)
    f(x, x)  # one array, two names: as NumPy does it
    f(a, a)
    check(x, a)
    assert f(x[::-1], x) is not x  # memory that overlaps
    f(a[::-1], a)
    check(x, a)


def test_captured_arrays() -> None:
    held = asarray(np.arange(3.0))

    @jit
    def f(x: Any) -> Any:
        return x + held + np.asarray(held) + np.sin(held) + held[0] + (1 * held)

    for _ in range(2):
        h = np.array(held)
        check(f(np.ones(3)), np.ones(3) + h + h + np.sin(h) + h[0] + h)
        held[0] = 7.0
    assert f.cache_info().misses == 1
    with pytest.raises(ConcretizationError, match="float: cannot take the value"):
        jit(lambda x: x * float(held[0]), fallback="error")(A)

    class Model:
        weights = held

        def step(self, x: Any) -> Any:
            self.weights += 1
            held[1] = x[0]
            return x + held

    result = jit(Model().step, fallback="error")(asarray(np.ones(3)))
    check(held, np.array([8.0, 1.0, 3.0]))
    check(result, np.ones(3) + np.array(held))

    g = jit(lambda x: (held.copy() + held.astype(np.float32), held))
    for _ in range(2):
        total, same = g(1.0)
        check(total, np.array(held) * 2)
        check(same, np.array(held))
        held[2] = -1.0


def test_fallback_takes_and_returns_arrays() -> None:
    def f(x: Any) -> Any:
        x[0] = 5
        return np.unique(x), x

    x = asarray(np.arange(3))
    unique, same = jit(f)(x)
    check(unique, np.unique([5, 1, 2]))
    assert same is x
    check(x, np.array([5, 1, 2]))
