"""Figures that do not depend on the machine: how many kernels a function takes, and that they move
the fewest bytes: each input read once, each result written once, no intermediate stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

TARGETS = ("cpu", "metal", "cuda", "interpreter")


def _array(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).random(shape).astype(dtype)


X = _array(64, 128)
GAIN, BIAS = _array(128), _array(128)


def chain(x: Any, y: Any) -> Any:
    return np.tanh(np.maximum(np.sqrt(np.abs((x + y) * 2 - x) / 3), 0.5) - y)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layernorm(x: Any, gain: Any, bias: Any) -> Any:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * gain + bias


def rmsnorm(x: Any, gain: Any) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain


def logsumexp(x: Any) -> Any:
    largest = x.max(-1, keepdims=True)
    return np.log(np.exp(x - largest).sum(-1, keepdims=True)) + largest


def blur(x: Any) -> Any:
    return (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[1:-1, 1:-1]) / 5


def movement(x: Any) -> Any:
    y = np.pad(x.T[::-1], 1).reshape(-1)[5:-7]
    return np.concatenate([y, y[::2]]) * 2


def dense(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


ONE_KERNEL: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "chain of eight": (chain, (X, X + 1)),
    "chain with broadcasts": (lambda x, g, b: (x * g + b) * x, (X, GAIN, BIAS)),
    "chain of mixed types": (
        lambda x, n, m: np.where(m, x * n, x),
        (X, _array(64, 128, dtype=np.int16), X > 0.5),
    ),
    "softmax of rows": (softmax, (X,)),
    "layernorm": (layernorm, (X, GAIN, BIAS)),
    "rmsnorm": (rmsnorm, (X, GAIN)),
    "logsumexp": (logsumexp, (X,)),
    "mean and variance": (lambda x: (x.mean(), x.var()), (X,)),
    "mean and variance of rows": (lambda x: (x.mean(-1), x.var(-1)), (X,)),
    "sum, largest and smallest": (lambda x: (x.sum(1), x.max(1), x.min(1)), (X,)),
    "prologue and epilogue": (lambda x: np.sqrt((x * x).sum(1)) + 1, (X,)),
    "blur by shifted slices": (blur, (X,)),
    "movement": (movement, (X,)),
    "matmul with epilogue": (dense, (X, _array(128, 96), _array(96))),
    "several results": (lambda x: (x + 1, x * 2, -x), (X,)),
}


def _bytes(tree: Any) -> int:
    arrays = tree if isinstance(tree, tuple) else (tree,)
    return sum(np.asarray(a).nbytes for a in arrays)


@pytest.mark.parametrize("device", TARGETS)
@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel_moves_the_fewest_bytes(name: str, device: str) -> None:
    function, arguments = ONE_KERNEL[name]
    lowered = rune_jit.jit(function, device=device, fallback="error").lower(*arguments)
    costs = lowered.cost_analysis()
    assert len(lowered.kernels) == costs["kernels"] == 1
    assert costs["bytes_read"] == _bytes(arguments)
    assert costs["bytes_written"] == _bytes(function(*arguments))
    assert costs["peak_bytes"] == costs["bytes_read"] + costs["bytes_written"]
    if device == "cpu":
        assert costs["barriers"] == 0


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_what_is_one_kernel_computes_numpys_result(name: str) -> None:
    function, arguments = ONE_KERNEL[name]
    for device in ("cpu", "interpreter"):
        actual = rune_jit.jit(function, device=device, fallback="error")(*arguments)
        expected = function(*arguments)
        for a, e in zip(
            np.atleast_1d(actual) if not isinstance(actual, tuple) else actual,
            np.atleast_1d(expected) if not isinstance(expected, tuple) else expected,
            strict=True,
        ):
            np.testing.assert_allclose(a, e, rtol=3e-5, atol=1e-5)


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return np.maximum(x @ w1 + b1, 0) @ w2 + b2


@pytest.mark.parametrize("device", TARGETS)
def test_an_mlp_takes_one_kernel_a_matmul(device: str) -> None:
    arguments = X, _array(128, 96), _array(96), _array(96, 10), _array(10)
    costs = rune_jit.jit(mlp, device=device).lower(*arguments).cost_analysis()
    hidden = 64 * 96 * 4  # written by the first, read by the second
    assert costs["kernels"] == 2
    assert costs["bytes_read"] == _bytes(arguments) + hidden
    assert costs["bytes_written"] == 64 * 10 * 4 + hidden


@pytest.mark.parametrize("device", TARGETS)
def test_long_rows_stay_one_kernel(device: str) -> None:
    x = np.broadcast_to(np.float32(1), (4096, 1024))
    for function in (softmax, logsumexp):
        costs = rune_jit.jit(function, device=device).lower(x).cost_analysis()
        assert costs["kernels"] == 1
        assert costs["bytes_read"] == x.size * 4


@pytest.mark.parametrize("device", TARGETS)
def test_a_long_sum_is_split_and_still_reads_once(device: str) -> None:
    x = np.broadcast_to(np.float32(1), (16_000_000,))
    costs = rune_jit.jit(np.sum, device=device).lower(x).cost_analysis()
    assert costs["kernels"] == 2
    partial = costs["bytes_written"] - 4
    assert costs["bytes_read"] == x.size * 4 + partial
    assert partial < 16_384


def test_results_that_are_not_used_cost_nothing() -> None:
    def f(x: Any) -> Any:
        np.exp(x).sum()
        return x + 1

    costs = rune_jit.jit(f).lower(X).cost_analysis()
    assert costs["kernels"] == 1
    assert costs["flops"] == X.size


def test_equal_expressions_are_computed_once() -> None:
    costs = rune_jit.jit(lambda x: (x + 1) * (x + 1)).lower(X).cost_analysis()
    assert costs["flops"] == 2 * X.size


def test_temporaries_share_memory() -> None:
    def f(x: Any) -> Any:
        for _ in range(6):
            x = np.tanh(x @ x)
        return x

    x = _array(64, 64)
    costs = rune_jit.jit(f).lower(x).cost_analysis()
    assert costs["kernels"] == 6
    assert costs["peak_bytes"] <= 4 * x.nbytes  # the argument, the result, two that alternate


def _compiled_functions(
    monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], x: np.ndarray
) -> tuple[Any, list[int]]:
    """The result of a call, and of how many functions each compiled module consists."""
    import rune_jit.backends.llvm as compiler

    functions: list[int] = []
    compile_module = compiler.compile_module

    def record(ir: str, names: list[str], **cache: Any) -> Any:
        functions.append(len(names))
        return compile_module(ir, names, **cache)

    monkeypatch.setattr(compiler, "compile_module", record)
    result = rune_jit.jit(function, device="cpu", fallback="error")(x)
    return result, functions


def test_a_program_is_one_module(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (40, 24, 56, 72, 88)

    def layers(x: Any) -> Any:
        for size in sizes:
            x = np.maximum(x @ np.ones((x.shape[1], size), np.float32) / 64, 0)
        return x

    x = _array(64, 64)
    result, functions = _compiled_functions(monkeypatch, layers, x)
    np.testing.assert_allclose(result, layers(x), rtol=1e-5)
    assert functions == [rune_jit.jit(layers).lower(x).cost_analysis()["programs"]]


def test_equal_kernels_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(x: Any) -> Any:
        for _ in range(9):
            x = (x @ x) / 64
        return x

    x = _array(64, 64)
    assert rune_jit.jit(steps).lower(x).cost_analysis()["kernels"] == 9
    result, functions = _compiled_functions(monkeypatch, steps, x)
    assert functions == [1]
    np.testing.assert_allclose(result, steps(x), rtol=1e-3, atol=1e-30)


def test_kernels_that_differ_in_constants_are_compiled_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = _array(60, 64)
    limits = [np.float32(v) for v in (np.inf, -0.0, 1e-45, -np.inf, np.nan, 0.5)]

    def steps(x: Any) -> Any:
        for i in range(60):
            x = np.where(x > limits[i % 6], x * 0.5 + a[i], x)
            x = x - x.max(0) / np.float32(2 * i + 3)
        return x

    x = _array(64, 64)
    x[0, :3] = 7, -0.0, 1e-45
    for device in ("cpu", "interpreter"):
        lowered = rune_jit.jit(steps, device=device, fallback="error").lower(x)
        costs = lowered.cost_analysis()
        assert costs["kernels"] >= 20
        assert costs["programs"] <= 12
        title = f"{costs['kernels']:.0f} kernels of {costs['programs']:.0f} programs"
        assert title in lowered.explain()
        np.testing.assert_allclose(lowered.compile()(x), steps(x), rtol=1e-5, atol=1e-6)
    _, functions = _compiled_functions(monkeypatch, steps, x)
    assert sum(functions) <= 8


def _rows_of_one_input(x: Any, a: Any) -> Any:
    for i in (3, 9, 0, 5):
        x = np.tanh(x @ x * np.float32(0.1) + a[i, :8] * a[i + 2, 3:11])
    return x


def _rows_and_columns(x: Any, a: Any) -> Any:
    for i in range(6):
        x = x @ a[i : i + 8, 2 * i : 2 * i + 8] * np.float32(0.2)
    return x


def _many_steps(x: Any, a: Any) -> Any:
    for i in [0, 1, 2, 3, 4]:  # no range, which would be a loop of the program
        y = a[i, :8] + a.T[2 * i, :8] + a[:8, i * i] * a[7 - i : 15 - i, 3 * i]
        x = np.tanh(x @ x * np.float32(0.1) + y)
    return x


def _distances_that_differ(x: Any, a: Any) -> Any:
    for i in [0, 1, 2, 3]:
        x = np.tanh(x @ x * np.float32(0.1) + a[i, :8] * a[i * i, 8:16])
    return x


@pytest.mark.parametrize(
    ("steps", "programs"),
    [
        (_rows_of_one_input, 3),
        (_rows_and_columns, 3),
        (_many_steps, 5),
        (_distances_that_differ, 3),
    ],
)
def test_kernels_that_read_other_parts_of_inputs(steps: Any, programs: int) -> None:
    """Where parts lie is an argument, if all parts of an input move alike."""
    x, a = _array(8, 8), _array(24, 24)
    for device in ("cpu", "interpreter"):
        lowered = rune_jit.jit(steps, device=device, fallback="error").lower(x, a)
        assert lowered.cost_analysis()["programs"] <= programs
        np.testing.assert_allclose(lowered.compile()(x, a), steps(x, a), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "uint64"])
def test_constants_of_launches_of_every_size(dtype: str) -> None:
    large = 100 if dtype == "int8" else 1000
    values = [1, 2, large, 3, 5, 6, 7, 8, 9]

    def steps(x: Any) -> Any:
        for i in values:
            x = np.minimum(np.cumsum(x, 0, dtype=dtype), np.array(8, dtype)) + np.array(i, dtype)
        return x

    x = _array(16, 16).astype(dtype)
    for device in ("cpu", "interpreter"):
        jitted = rune_jit.jit(steps, device=device, fallback="error")
        costs = jitted.lower(x).cost_analysis()
        assert costs["programs"] < costs["kernels"]
        np.testing.assert_array_equal(jitted(x), steps(x))


def test_long_programs_are_several_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def chain_of_6000(x: Any) -> Any:
        for _ in [None] * 3000:  # no range, which would be a loop of the program
            x = x * np.float32(1.0001) + np.float32(0.25)
        return x

    costs = rune_jit.jit(chain_of_6000).lower(X).cost_analysis()
    assert costs["kernels"] == 3
    assert costs["flops"] == 6000 * X.size
    result, _ = _compiled_functions(monkeypatch, chain_of_6000, X)
    np.testing.assert_array_equal(result, chain_of_6000(X))

    def many_results(x: Any) -> Any:
        return tuple(x * np.float32(i) for i in range(150))

    assert rune_jit.jit(many_results).lower(X).cost_analysis()["kernels"] == 3
    for i, result in enumerate(rune_jit.jit(many_results)(X)):
        np.testing.assert_array_equal(result, X * np.float32(i))


def test_a_chain_that_reductions_read_is_not_computed_again_for_each() -> None:
    def steps(n: int) -> Callable[[Any], Any]:
        def f(x: Any) -> Any:
            for _ in [None] * n:  # no range, which would be a loop of the program
                x = np.abs(x - x.sum(0)[:, None] * 0.5)
            return x

        return f

    x = _array(128, 128)
    short, long = (rune_jit.jit(steps(n)).lower(x).cost_analysis()["flops"] for n in (200, 400))
    assert long < 2.5 * short


ROWS_KEPT: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "last axis": (softmax, (37, 130)),
    "one row": (softmax, (1, 1000)),
    "rows of one": (softmax, (5, 1)),
    "first axis": (lambda x: np.exp(x - x.max(0)) / np.exp(x - x.max(0)).sum(0), (130, 37)),
    "two axes": (lambda x: (lambda e: e / e.sum((1, 2), keepdims=True))(np.exp(x)), (6, 9, 33)),
    "outer axes": (lambda x: (lambda e: e / e.sum((0, 2), keepdims=True))(np.exp(x)), (6, 9, 33)),
    "shifted": (lambda x: (lambda e: e[:, ::-1] / e.sum(1, keepdims=True))(np.exp(x)), (9, 70)),
    "part": (lambda x: (lambda e: e[:, 1:] - e.sum(1, keepdims=True))(np.exp(x)), (9, 70)),
    "square": (lambda x: (lambda e: e / e.sum(1) + e)(np.exp(x)), (40, 40)),
    "kept twice": (lambda x: softmax(softmax(x) * 3), (12, 100)),
    "and stored": (lambda x: (lambda e: (e, e / e.sum(1, keepdims=True)))(np.exp(x)), (9, 70)),
}


@pytest.mark.parametrize("name", ROWS_KEPT)
def test_rows_that_are_kept(name: str) -> None:
    function, shape = ROWS_KEPT[name]
    x = _array(*shape)
    x.flat[0], x.flat[-1] = np.inf if name == "part" else 5, -np.inf
    for device in ("cpu", "interpreter"):
        actual = rune_jit.jit(function, device=device, fallback="error")(x)
        with np.errstate(invalid="ignore"):
            expected = function(x)
        for a, e in zip(np.atleast_2d(actual), np.atleast_2d(expected), strict=True):
            np.testing.assert_allclose(a, e, rtol=3e-5, atol=1e-6)


def test_exponentials_of_a_softmax_are_computed_once() -> None:
    lowered = rune_jit.jit(softmax, device="cpu").lower(X)
    assert "keeps={" in str(lowered.schedule)
    assert "local size=128" in "".join(map(str, lowered.kernels))


def test_long_trees_are_several_kernels() -> None:
    def sum_of_terms(x: Any) -> Any:
        terms = [np.abs(x - np.float32(i)) for i in range(1000)]
        while len(terms) > 1:
            terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)] + terms[
                len(terms) & ~1 :
            ]
        return terms[0]

    x = _array(8, 16)
    jitted = rune_jit.jit(sum_of_terms, fallback="error")
    lowered = jitted.lower(x)
    assert 2 <= lowered.cost_analysis()["kernels"] <= 4
    assert lowered.cost_analysis()["flops"] <= 1.1 * 3000 * x.size
    np.testing.assert_array_equal(jitted(x), sum_of_terms(x))


CONCATENATIONS: dict[str, Callable[..., Any]] = {
    "first axis": lambda x: np.stack([x * x + np.float32(i) for i in range(40)]),
    "middle axis": lambda x: np.stack([x * x + np.float32(i) for i in range(40)], axis=1),
    "last axis": lambda x: np.stack([np.abs(x) - np.float32(i) for i in range(40)], axis=-1),
    "several lengths": lambda x: np.concatenate(
        [x[:, : 1 + i % 4] * np.float32(i) for i in range(150)], axis=1
    ),
    "empty operands": lambda x: np.concatenate([x[: i % 3] - np.float32(i) for i in range(90)]),
    "read again": lambda x: (lambda s: (s, s[::-1] * 2, s.sum(1)))(
        np.stack([x[0] * np.float32(i) for i in range(70)])
    ),
    "arguments": lambda x: np.stack([x[i % 6, i % 5] for i in range(30)]),
}


@pytest.mark.parametrize("name", CONCATENATIONS)
def test_concatenations_of_many_operands(name: str) -> None:
    """Each operand is computed once, in a kernel of its own; equal ones are compiled once."""
    function, x = CONCATENATIONS[name], _array(6, 5)
    for device in ("cpu", "interpreter"):
        jitted = rune_jit.jit(function, device=device, fallback="error")
        costs = jitted.lower(x).cost_analysis()
        assert costs["programs"] <= 24
        actual, expected = (r if isinstance(r, tuple) else (r,) for r in (jitted(x), function(x)))
        assert costs["flops"] <= 3 * sum(e.size for e in expected) + 3 * x.size
        for a, e in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-6)


def test_sums_down_long_rows_go_by_strips():
    rng = np.random.default_rng(5)
    x = rng.random((4099, 4096), dtype=np.float32)  # strips of eight, and three rows left over

    def down(x):
        return np.sum(x, axis=0), np.max(x, axis=0)

    total, largest = rune_jit.jit(down, fallback="error")(x)
    assert np.max(np.abs(total - np.sum(x, axis=0, dtype=np.float64))) < 1e-2
    assert np.array_equal(largest, np.max(x, axis=0))


def test_large_grids_are_launched_whole() -> None:
    x = np.empty(1 << 27, np.uint8)
    for target in ("metal", "cuda"):
        text = rune_jit.jit(np.negative).lower(x).source(target)
        (groups,) = re.findall(r"(\d+) workgroups", text)
        assert int(groups) > 1 << 16, target


def life(g: Any) -> Any:
    rolls = [np.roll(np.roll(g, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    near = sum(rolls) - g
    return ((near == 3) | ((g == 1) & (near == 2))).astype(g.dtype)


def diffusion(u: Any) -> Any:
    u = u.copy()
    near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    u[1:-1, 1:-1] += 0.1 * (near - 4 * u[1:-1, 1:-1])
    return u


@pytest.mark.parametrize("step", [life, diffusion])
@pytest.mark.parametrize("steps", [5, 20])
def test_steps_of_stencils_are_a_kernel_each_at_most(step: Callable[..., Any], steps: int) -> None:
    """Moved values, borders among them, are stored no more than what they are moved from."""

    def run(x: Any) -> Any:
        for _ in range(steps):
            x = step(x)
        return x

    x = (_array(64, 64) > 0.5).astype(np.int32) if step is life else _array(64, 64)
    jitted = rune_jit.jit(run)
    assert jitted.lower(x).cost_analysis()["kernels"] <= steps
    np.testing.assert_allclose(jitted(x), run(x), rtol=1e-5)
