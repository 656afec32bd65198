"""Rendered Metal source, executed by the emulator (tests/metal_emulator) and compared with NumPy
and with the Lowered IR's interpreter. Each kernel runs with its threads in both orders."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compare import assert_matches
from msl_check import check_msl
from msl_emulator import MetalError, Msl, compile_msl, run_msl
from op_cases import CASES, SPECIAL, SPECIAL_BINARY, SPECIAL_UNARY
from test_msl import Text

import rune_jit
from rune_jit import _core

DTYPES = {
    "bool": np.dtype(bool), "f16": np.dtype(np.float16), "f32": np.dtype(np.float32),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    **{f"{k}{b}": np.dtype(f"{n}{b}") for k, n in (("i", "int"), ("u", "uint"))
       for b in (8, 16, 32, 64)},
}  # fmt: skip
_HEAD = re.compile(r"kernel @(\w+) grid=(\d+) local=(\d+)(?: arguments=\[([-\d,]+)\])?")
_ARGUMENTS = re.compile(r"\n    (in|out)puts=\[([^\]]*)\]")
_TYPE = re.compile(r"\n    (%\d+) = .* : (\w+)\[([\d,]*)\]")
KERNEL = re.compile(r"(?<=\)\]\]\nvoid )(\w+)(?=\()")


def ints(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n]


def poisoned(shape: list[int], dtype: np.dtype) -> np.ndarray:
    """Memory as a fresh buffer's, whose contents mean nothing."""
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[:] = 0xFE
    return array


class Program:
    """A function traced and lowered for Metal."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        jitted = rune_jit.jit(function, device="metal", fallback="error")
        self.call = jitted._runner.take_apart(args, {})
        self.traced = jitted._runner.compiler.trace(self.call)
        self.schedule, self.kernels, self.source, self.names = "", [], "", []
        if self.traced.graph is None:  # the results are arguments
            return
        lowered = _core.lower(self.traced.graph, "metal")
        self.schedule, self.kernels = lowered.schedule, lowered.kernels
        self.source = lowered.source("metal")
        self.names = KERNEL.findall(self.source)

    def rename(self, prefix: str) -> str:
        """The source with a prefix to the kernels' names."""
        self.names = [prefix + name for name in self.names]
        self.source = KERNEL.sub(lambda match: prefix + match[1], self.source)
        return self.source

    def run(self, library: Msl | None = None) -> Any:
        """The function's result; each kernel runs twice, in both orders."""
        first: list[np.ndarray] = []
        if self.traced.graph is not None:
            library = library or compile_msl(self.source)
            first, second = (self._run(library, reverse) for reverse in (False, True))
            for a, b in zip(first, second, strict=True):
                np.testing.assert_array_equal(a, b)
        for i, axes in self.traced.transposed_results:
            first[i] = first[i].transpose(axes)
        results = []
        for plan in self.traced.outputs:
            if plan[0] == "computed":
                value = first[plan[1]]
                results.append(value[()] if value.ndim == 0 else value)
            else:
                results.append(self.call.leaves[plan[1]] if plan[0] == "leaf" else plan[1])
        return results[0] if self.traced.unflatten is None else self.traced.unflatten(results)

    def _run(self, library: Msl, reverse: bool) -> list[np.ndarray]:
        leaves = [self.call.leaves[i] for i in self.traced.input_leaves]
        for i, axes in self.traced.transposed_inputs:
            leaves[i] = leaves[i].transpose(axes)
        inputs = [np.ascontiguousarray(x) for x in leaves + list(self.traced.captured)]
        values = {
            value: inputs[int(index)].copy()
            for value, index in re.findall(r"(%\d+) = placeholder index=(\d+)", self.schedule)
        }
        stored = {value: (dtype, shape) for value, dtype, shape in _TYPE.findall(self.schedule)}
        items = re.split(r"\n  item ", self.schedule)[1:]
        for item, text in zip(items, self.kernels, strict=True):
            launched = re.search(r"\n    kernel=(\d+)", item)
            assert launched
            name = self.names[int(launched[1])]
            arguments = []
            for kind, buffers in _ARGUMENTS.findall(item):
                for value in buffers.split(","):
                    if kind == "out":
                        dtype, shape = stored[value]
                        values[value] = poisoned(ints(shape), DTYPES[dtype])
                    arguments.append(values[value])
            head = _HEAD.match(text)
            assert head
            if head[4]:  # the scalars of the launch come after the arrays
                arguments.append(np.array(ints(head[4]), np.int64))
            library.run(name, arguments, ints(head[2]), ints(head[3]), reverse)
        outputs = re.search(r"\n  outputs=\[([^\]]*)\]", self.schedule)
        types = dict(re.findall(r"(%\d+) = .* : (\w+\[[\d,]*\])", str(self.traced.graph)))
        returned = re.search(r"return ([^\n]*)", str(self.traced.graph))
        assert outputs and returned
        results = []
        for value, result in zip(outputs[1].split(","), returned[1].split(), strict=True):
            dtype, _, shape = types[result][:-1].partition("[")
            if 0 in ints(shape):  # nothing computes it
                values[value] = np.empty(ints(shape), DTYPES[dtype])
            results.append(values[value].reshape(ints(shape)))
        return results


def on_emulator(function: Callable[..., Any], *args: Any) -> Any:
    return Program(function, *args).run()


def merge(sources: list[str]) -> str:
    """One library of kernels rendered apart, each helper once. Kernels' names must differ."""
    helpers: dict[str, None] = {}
    kernels, head, marker = [], "", "using namespace metal;\n"
    for source in sources:
        head, _, body = source.partition(marker)
        if not body:
            continue
        start = body.index("\n// ")
        for block in re.split(r"(?m)^(?=inline )", body[:start]):
            helpers[block.strip()] = None
        kernels.append(body[start:])
    return "\n".join([head + marker, *helpers, *kernels])


# --- Programs of the table of operations ----------------------------------------------------------

# float32, and one integer dtype a case.
_CASES = [
    (case, dtype)
    for case in CASES
    for dtype in ("float32", "int32", "int8")
    if dtype in case.dtypes and not (dtype == "int8" and "int32" in case.dtypes)
]
_CHUNK = 60


@cache
def programs(chunk: int) -> tuple[dict[tuple[str, str], Program | Exception], Msl]:
    """The programs of some cases in one library, which costs the compiler far less than many."""
    found: dict[tuple[str, str], Program | Exception] = {}
    sources = []
    for case, dtype in _CASES[chunk * _CHUNK : (chunk + 1) * _CHUNK]:
        try:
            program = Program(case.function, *case.arguments(dtype))
            sources.append(program.rename(f"p{len(found)}_"))
            found[case.name, dtype] = program
        except rune_jit.DTypeError as error:
            found[case.name, dtype] = error
    return found, Msl(merge(sources))


@pytest.mark.parametrize(
    "number", range(len(_CASES)), ids=[f"{case.name}-{dtype}" for case, dtype in _CASES]
)
def test_op(number: int) -> None:
    case, dtype = _CASES[number]
    found, library = programs(number // _CHUNK)
    program = found[case.name, dtype]
    arguments = case.arguments(dtype)
    if isinstance(program, Exception):
        # NumPy computes it in float64, which Metal does not have.
        assert "float64" in str(program)
        assert "f64" in str(rune_jit.jit(case.function, device="cpu").lower(*arguments).graph)
        return
    with np.errstate(all="ignore"):
        expected = case.function(*arguments)
    assert_matches(program.run(library), expected, case.ulps)


@pytest.mark.parametrize("name", [*SPECIAL_UNARY, *SPECIAL_BINARY])
def test_special_values(name: str) -> None:
    function = getattr(np, name)
    x = SPECIAL.astype(np.float32)
    arguments = [x]
    if name in SPECIAL_BINARY:
        arguments = [a.ravel() for a in np.meshgrid(x, x)]
    with np.errstate(all="ignore"):
        expected = np.asarray(function(*arguments))
    # Metal flushes denormal float32 to zero.
    if expected.dtype == np.float32:
        expected[np.abs(expected) < np.finfo(np.float32).tiny] *= 0
    actual = np.asarray(on_emulator(function, *arguments))
    assert_matches(actual, expected)
    if name in SPECIAL_UNARY and actual.dtype == np.float32:
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(actual)[zeros], np.signbit(expected)[zeros])


def layernorm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * scale + shift


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) / np.float32(4)) @ v


_LARGE: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "elementwise": (lambda x, y: np.tanh(x) * y + x, [(70, 33), (33,)]),
    "sum of all": (lambda x: x.sum(), [(20_000,)]),
    "mean and max of columns": (lambda x: (x.mean(0), x.max(0)), [(300, 7)]),
    "softmax": (softmax, [(5, 777)]),
    "layernorm": (layernorm, [(9, 300), (300,), (300,)]),
    "matmul": (lambda a, b: a @ b, [(33, 65), (65, 17)]),
    "attention": (attention, [(2, 16, 16), (2, 24, 16), (2, 24, 16)]),
    "argmax": (lambda x: (x.argmax(-1), x.argmin()), [(6, 130)]),
    "flip, pad, concatenate": (
        lambda x, y: np.concatenate([np.pad(x, 2)[::-1], y]),
        [(6, 6), (3, 10)],
    ),
}


@pytest.mark.parametrize("name", _LARGE)
def test_larger_shapes(name: str) -> None:
    function, shapes = _LARGE[name]
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    assert_matches(on_emulator(function, *arguments), function(*arguments), 64)


def test_reductions_have_barriers() -> None:
    program = Program(softmax, np.ones((2, 500), np.float32))
    assert program.source.count("threadgroup_barrier(") >= 2
    assert program.source.count("threadgroup float ") >= 2


SIMD_OPS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "u32", "i64", "u64", "i8", "u16", "bool"])
def test_simd_reductions(dtype: str) -> None:
    """Every operation that a SIMD-group combines its threads' values by, NaN and zeros too."""
    rng = np.random.default_rng(0)
    names = [n for n in SIMD_OPS if dtype not in ("i8", "u16", "bool") or n in ("max", "min")]
    numpy_dtype = DTYPES[dtype]
    x = rng.integers(1, 3, 128).astype(numpy_dtype)
    if numpy_dtype.kind in "iu":
        info = np.iinfo(numpy_dtype)
        x[rng.permutation(128)[:40]] = rng.integers(info.min, info.max, 40, numpy_dtype)
    if numpy_dtype.kind == "f":
        x[:32] = rng.integers(-1, 1, 32)
        x[:16] *= -1
        x[40] = np.nan
        x[70], x[80], x[100] = np.inf, -1, -0.0
    k = Text("simd", threads=128)
    given = k.memory(dtype, 0)
    out = [k.memory(dtype, i + 1, writable=True) for i in range(len(names))]
    task = k("special Global_task_idx bound=512 : i64")
    value = k(f"load {given} {task} : {dtype}")
    for name, memory in zip(names, out, strict=True):
        k.store(memory, task, k(f"simd_reduce {name} width=32 {value} : {dtype}"))
    source = k.render()
    check_msl(source)
    results = [np.zeros(128, numpy_dtype) for _ in names]
    run_msl(source, "simd", [x, *results], [1], [128])
    for name, result in zip(names, results, strict=True):
        with np.errstate(all="ignore"):
            expected = SIMD_OPS[name].reduce(x.reshape(4, 32), axis=1, dtype=numpy_dtype)
        np.testing.assert_array_equal(result, expected.repeat(32), err_msg=name)


@pytest.mark.parametrize("dtype", ["f32", "i32", "u32"])
def test_atomic_stores(dtype: str) -> None:
    """Threads of several groups combine values with the same elements."""
    names = ["add"] if dtype == "f32" else ["add", "max", "min"]
    numpy_dtype = DTYPES[dtype]
    x = np.random.default_rng(0).integers(0, 100, 128).astype(numpy_dtype)
    k = Text("atomics", threads=32)
    given = k.memory(dtype, 0)
    out = [k.memory(dtype, i + 1, writable=True) for i in range(len(names))]
    task = k("special Global_task_idx bound=512 : i64")
    value = k(f"load {given} {task} : {dtype}")
    seven = k("const i64(7) : i64")
    place = k(f"alu and {task} {seven} : i64")
    for name, memory in zip(names, out, strict=True):
        k(f"store nontemporal=false atomic={name} {memory} {place} {value}")
    source = k.render()
    check_msl(source)
    results = [np.full(8, 50, numpy_dtype) for _ in names]
    run_msl(source, "atomics", [x, *results], [4], [32])
    for name, result in zip(names, results, strict=True):
        expected = np.full(8, 50, numpy_dtype)
        SIMD_OPS[name].at(expected, np.arange(128) % 8, x)
        np.testing.assert_array_equal(result, expected, err_msg=name)
    call = r"atomic_fetch_\w+_explicit\(\(device \w+\*\)&(\w+\[\w+\]), (\w+), \w+\)"
    plain = re.sub(call, r"\1 += \2", source)
    assert plain != source
    with pytest.raises(MetalError, match="data race"):
        run_msl(plain, "atomics", [x, *results], [4], [32])


SPREAD = [2, 8, 16, 4, 32, 1]  # Apple's, see cpp/render/msl.cpp


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_matrix_products(dtype: str) -> None:
    """Tiles spread over SIMD-groups: on the emulator and by the interpreter, in both orders."""
    k = Text("matmul", threads=64)
    a, b, c = k.memory(dtype, 0), k.memory(dtype, 1), k.memory("f32", 2, writable=True)
    places = k.memory("i32", 3)
    two, tile = k("const i64(2) : i64"), k("const i64(64) : i64")
    task = k("special Global_task_idx bound=256 : i64")
    first = k(f"alu mul {task} {two} : i64")
    at = k(f"load {places} {first} : i32x2")
    x, y = (k(f"load {m} {at} : {dtype}x2") for m in (a, b))
    z = k(f"load {c} {at} : f32x2")
    spread = f"[{','.join([str(SPREAD).replace(' ', '')] * 3)}]"
    once = k(f"wmma m=8 n=8 k=8 spread={spread} {x} {y} {z} : f32x2")
    i = k(f"range {two} : i64")
    k.store(c, at, k(f"wmma m=8 n=8 k=8 spread={spread} {x} {y} {once} : f32x2"))
    k("endrange")
    assert tile and i
    source = k.render()
    check_msl(source)
    rng = np.random.default_rng(0)
    tiles = [rng.integers(-4, 5, (16, 8, 8)).astype(t) for t in (DTYPES[dtype],) * 2 + ("f4",)]
    bits = np.arange(64)
    place = sum(stride * (bits >> i & 1) for i, stride in enumerate(SPREAD))
    # Of thread t: the elements of its lanes, in the tile of its SIMD-group.
    places_array = (place.reshape(2, 32).T[None] + 64 * np.arange(8)[:, None, None]).astype("i4")
    expected = tiles[2].copy()
    wide = [x.astype("f4") for x in tiles[:2]]
    expected[:8] += 2 * (wide[0] @ wide[1])[:8]
    for reverse in (False, True):
        out = tiles[2].copy()
        memory = [np.resize(x.reshape(-1), 1024) for x in (tiles[0], tiles[1], out, places_array)]
        run_msl(source, "matmul", memory, [4], [64], reverse)
        np.testing.assert_array_equal(memory[2].reshape(16, 8, 8), expected)
    memory = [np.resize(x.reshape(-1), 1024) for x in (tiles[0], tiles[1], tiles[2], places_array)]
    _core.interpret("\n".join([k.head, *k.lines, "}"]), [m.view(np.uint8) for m in memory])
    np.testing.assert_array_equal(memory[2].reshape(16, 8, 8), expected)


def half_matmul(a: Any, b: Any) -> Any:
    return a.astype(np.float16) @ b.astype(np.float16)


# Whether SIMD-groups multiply tiles: at any size from a tile on, whatever stands around.
_CONTRACTIONS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], str]] = {
    "whole tiles": (lambda a, b: a @ b, [(64, 32), (32, 128)], "float"),
    "one tile": (lambda a, b: a @ b, [(8, 8), (8, 8)], "float"),
    "odd sizes": (lambda a, b: a @ b, [(13, 11), (11, 19)], "float"),
    "columns of pairs": (lambda a, b: a @ b, [(9, 15), (15, 70)], "float"),
    "rows that are columns": (lambda a, b: a.T @ b.T, [(17, 33), (29, 17)], "float"),
    "batches": (lambda a, b: a @ b, [(3, 10, 9), (3, 9, 12)], "float"),
    "batch of one side": (lambda a, b: a @ b, [(2, 10, 9), (9, 12)], "float"),
    "result transposed": (lambda a, b: (a @ b).T, [(24, 16), (16, 40)], "float"),
    "around it": (
        lambda a, b, c: np.maximum(np.tanh(a) @ (b * 2 - 1) + c, 0),
        [(20, 18), (18, 21), (21,)],
        "float",
    ),
    "padded operand": (lambda a, b: np.pad(a, 1) @ b[::-1], [(14, 15), (17, 16)], "float"),
    "flat columns": (lambda a, b: np.einsum("ij,jkl->ikl", a, b), [(9, 9), (9, 3, 10)], "float"),
    "halves": (half_matmul, [(16, 24), (24, 9)], "half"),
    "less than a tile": (lambda a, b: a @ b, [(7, 30), (30, 30)], ""),
    "a vector": (lambda a, b: a @ b, [(30, 30), (30,)], ""),
}


@pytest.mark.parametrize("name", _CONTRACTIONS)
def test_contractions(name: str) -> None:
    function, shapes, tile = _CONTRACTIONS[name]
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    program = Program(function, *arguments)
    calls = program.source.count(" = rune_simd_matmul_")
    assert (calls > 0) == bool(tile)
    assert program.source.count(f" = rune_simd_matmul_{tile}(") == calls
    check_msl(program.source)
    assert_matches(program.run(), function(*arguments), 64)


def test_what_lies_beyond_an_operand_is_not_multiplied() -> None:
    """Infinities and NaN reach their own rows and columns only."""
    a, b = np.ones((9, 10), np.float32), np.ones((10, 11), np.float32)
    a[8, 9], b[9, 10], b[0, 0] = np.inf, np.nan, -np.inf
    np.testing.assert_array_equal(on_emulator(lambda a, b: a @ b, a, b), a @ b)
