"""Rendered Metal source, checked by clang against declarations of Metal's library."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from msl_check import check_many, check_msl, is_strict
from msl_emulator import run_msl

import rune_jit
from rune_jit import _core
from rune_jit.errors import DTypeError, InternalError, UnsupportedOpError

ALU_DEF = Path(__file__).resolve().parents[2] / "cpp" / "alu" / "alu.def"
ROW = re.compile(
    r'^RUNE_ALU\(\w+,\s*"(\w+)",\s*(\d),\s*"(\w+)",\s*(\w+),\s*([\w| ]+)', re.MULTILINE
)
ROWS = ROW.findall(ALU_DEF.read_text())
OPS = [(op, int(arity), kinds, result) for op, arity, kinds, result, _ in ROWS]
KINDS = {
    **dict.fromkeys(["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"], "i"),
    **dict.fromkeys(["f16", "f32"], "f"),
    "bool": "b",
}
ALL = [*KINDS, "bf16"]
# Functions that Metal lacks or computes with more error than the float contract allows, and integer
# operations that need guards.
DECOMPOSED = {op for op, *_, flags in ROWS if "Elementary" not in flags} - {"div", "shl", "shr"}


class Text:
    """Writes the text of a kernel; each call gives the name of the instruction's value."""

    def __init__(self, name: str = "k", threads: int = 32) -> None:
        self.head = f"kernel @{name} grid=4 local={threads} {{"
        self.lines: list[str] = []

    def __call__(self, instruction: str) -> str:
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = {instruction}" if " : " in instruction else instruction)
        return name

    def memory(self, dtype: str, index: int, writable: bool = False) -> str:
        return self(
            f"define_global index={index} size=1024 writable={str(writable).lower()} : ptr {dtype}"
        )

    def task(self) -> str:
        task = self("special Global_task_idx bound=128 : i64")
        four = self("const i64(4) : i64")
        return self(f"alu mul {task} {four} : i64")

    def store(self, memory: str, index: str, value: str, valid: str = "") -> None:
        self(f"store nontemporal=false {memory} {index} {value} {valid}")

    def render(self) -> str:
        return _core.render_msl("\n".join([self.head, *self.lines, "}"]))


def lanes_of(lanes: int) -> str:
    return "" if lanes == 1 else f"x{lanes}"


def operation(op: str, arity: int, dtype: str, result: str, lanes: int) -> str:
    dtypes = [dtype] * arity
    if result == "Select":
        dtypes[0] = "bool"
    given = "bool" if result == "Bool" else dtype
    k = Text(f"{op}_{dtype}")
    out = k.memory(given, 0, writable=True)
    inputs = [k.memory(d, i + 1) for i, d in enumerate(dtypes)]
    at = k.task()
    values = [
        k(f"load {memory} {at} : {d}{lanes_of(lanes)}")
        for memory, d in zip(inputs, dtypes, strict=True)
    ]
    k.store(out, at, k(f"alu {op} {' '.join(values)} : {given}{lanes_of(lanes)}"))
    return k.render()


@pytest.mark.parametrize("lanes", [1, 4, 7])
def test_every_operation(lanes: int) -> None:
    sources = []
    for op, arity, kinds, result in OPS:
        for dtype, kind in KINDS.items():
            if kind not in kinds:
                continue
            if op in DECOMPOSED:
                with pytest.raises(InternalError, match=f"{op} on {dtype} was not decomposed"):
                    operation(op, arity, dtype, result, lanes)
            else:
                sources.append(operation(op, arity, dtype, result, lanes))
    assert len(sources) > 200
    check_many(sources)


def conversion(operation: str, source: str, target: str, lanes: str) -> str:
    k = Text(f"{operation}_{source}_{target}")
    out, given = k.memory(target, 0, writable=True), k.memory(source, 1)
    at = k.task()
    x = k(f"load {given} {at} : {source}{lanes}")
    k.store(out, at, k(f"{operation} {x} : {target}{lanes}"))
    return k.render()


def test_every_conversion() -> None:
    check_many([conversion("cast", source, target, "x4") for source in ALL for target in ALL])


def test_bitcasts() -> None:
    groups = ["bool", "i8", "u8"], ["i16", "u16", "f16", "bf16"], ["i32", "u32", "f32"]
    pairs = [pair for group in groups for pair in itertools.product(group, group)]
    check_many([conversion("bitcast", source, target, "") for source, target in pairs])


@pytest.mark.parametrize("dtype", ALL)
def test_masked_accesses(dtype: str) -> None:
    k = Text()
    out, given = k.memory(dtype, 0, writable=True), k.memory(dtype, 1)
    at = k.task()
    limit = k("const i64(1000) : i64")
    valid = k(f"alu cmplt {at} {limit} : bool")
    k.store(out, at, k(f"load {given} {at} {valid} : {dtype}x4"), valid)
    index = k("vconst [i64(3),i64(1),i64(0),i64(2)] : i64x4")
    mask = k("vconst [bool(true),bool(false),bool(true),bool(true)] : boolx4")
    k.store(out, index, k(f"load {given} {index} {mask} : {dtype}x4"), mask)
    check_msl(k.render())


LITERALS = [
    "f32(nan)", "f32(inf)", "f32(-inf)", "f32(-0.0)", "f32(1e-45)", "f32(3.4028235e+38)",
    "f32(-1.5)",
    "f16(nan)", "f16(-inf)", "f16(-0.0)", "f16(6e-08)", "f16(65504.0)", "bf16(nan)", "bf16(1.5)",
    "i8(-128)", "i16(-32768)", "i32(-2147483648)",
    "i64(-9223372036854775808)", "i64(9223372036854775807)",
    "u32(4294967295)", "u64(18446744073709551615)", "u8(255)", "bool(true)",
]  # fmt: skip


NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "bool": np.bool_}


def test_literals() -> None:
    """They arrive as exact bits, each in a buffer of its own."""
    k = Text("literals")
    at = k("const i64(0) : i64")
    results, expected = [], []
    for number, literal in enumerate(LITERALS):
        dtype, _, text = literal[:-1].partition("(")
        k.store(k.memory(dtype, number, writable=True), at, k(f"const {literal} : {dtype}"))
        kind = NUMPY.get(dtype) or np.dtype(dtype.replace("i", "int").replace("u", "uint"))
        value = text == "true" if dtype == "bool" else float(text) if "f" in dtype else int(text)
        expected.append(np.array([value], kind))
        results.append(np.full(1024, value == 0, kind))
    source = k.render()
    check_msl(source)
    assert "as_type<float>(0x80000000u)" in source
    run_msl(source, "literals", results, [1], [1])
    for literal, result, value in zip(LITERALS, results, expected, strict=True):
        assert result[:1].tobytes() == value.tobytes(), literal


def test_reduction_with_shared_memory() -> None:
    k = Text("row_sum")
    out, given = k.memory("f32", 0, writable=True), k.memory("f32", 1)
    shared = k("local size=32 : ptr f32")
    thread = k("special Local_thread_idx bound=32 : i64")
    group = k("special Workgroup_idx bound=4 : i64")
    zero = k("const f32(0.0) : f32")
    total = k(f"acc {zero} : f32")
    eight = k("const i64(8) : i64")
    i = k(f"range {eight} : i64")
    width = k("const i64(32) : i64")
    at = k(f"alu mulacc {i} {width} {thread} : i64")
    x = k(f"load {given} {at} : f32")
    y = k(f"alu add {total} {x} : f32")
    k(f"assign {total} {y}")
    k("endrange")
    k.store(shared, thread, total)
    k("barrier")
    first = k("const i64(0) : i64")
    is_first = k(f"alu cmpeq {thread} {first} : bool")
    k(f"if {is_first}")
    k(f"assign {total} {zero}")
    j = k("unroll iterations=32 : i64")
    z = k(f"load {shared} {j} : f32")
    larger = k(f"alu max {total} {z} : f32")
    k(f"assign {total} {larger}")
    k("endrange")
    k.store(out, group, total)
    k("endif")
    source = k.render()
    check_msl(source)
    assert source.count("threadgroup_barrier(") == 1
    assert "threadgroup float m2[32];" in source


def test_long_constant_vectors_are_tables() -> None:
    k = Text()
    out = k.memory("f32", 0, writable=True)
    at = k.task()
    rows = [[0.5 * i for i in range(8)], [float("inf"), *range(7)], [-1.0, 2.0, 3.0, 4.0]]
    for row in rows:
        values = ",".join(f"f32({float(x)})" for x in row)
        k.store(out, at, k(f"vconst [{values}] : f32x{len(row)}"))
    source = k.render()
    check_msl(source)
    tables = re.findall(r"^constant float \w+\[8\] = .*$", source, re.MULTILINE)
    assert tables == ["constant float k_c4[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 2.5f, 3.0f, 3.5f};"]
    result = np.zeros(1024, np.float32)
    run_msl(source, "k", [result], [1], [1])
    np.testing.assert_array_equal(result[:8], rows[2] + rows[1][4:])


def test_symbolic_variables() -> None:
    k = Text()
    out = k.memory("i64", 0, writable=True)
    n = k('define_var {name="n" min=1 max=1000} : i64')
    i = k(f"range {n} : i64")
    k.store(out, i, n)
    k("endrange")
    source = k.render()
    check_msl(source)
    assert "constant long* vars [[buffer(1)]]" in source


@pytest.mark.parametrize("name", ["kernel", "float", "exp", "max", "threadgroup", "__x", "a__b"])
def test_names_are_no_words_of_metal(name: str) -> None:
    check_msl(Text(name).render())


def test_float64_names_the_way_out() -> None:
    k = Text("doubles")
    k.memory("f64", 0)
    with pytest.raises(
        DTypeError, match=r"cannot render float64 in kernel doubles(.|\n)*hint: cast to"
    ):
        k.render()


def test_indices_of_large_arrays_have_64_bits() -> None:
    """And a thread's number among more than 2^32 is put together from two."""
    for elements, index in ((1000, "(int)tid.x"), (1 << 31, "(long)tid.x"),
                            ((1 << 32) + 5, "(long)gid.x * 256 + (long)lid.x")):  # fmt: skip
        x = np.broadcast_to(np.uint8(0), (elements,))
        source = rune_jit.jit(lambda x: x * np.uint8(3), device="metal").lower(x).source("metal")
        assert index in source
        check_msl(source)
        # Two of its threadgroups, on the part of the arrays that these access.
        x, y = np.arange(512, dtype=np.uint8), np.zeros(512, np.uint8)
        run_msl(source, "map_0", [x, y], [2], [256])
        np.testing.assert_array_equal(y, x * np.uint8(3))


def test_many_buffers() -> None:
    for count in (31, 32, 541):
        k = Text("many")
        memory = [k.memory("f32", i, writable=i == 0) for i in range(count)]
        at = k("const i64(0) : i64")
        k.store(memory[0], at, k(f"load {memory[-1]} {at} : f32"))
        source = k.render()
        check_msl(source)
        assert ("constant many_buffers* more [[buffer(29)]]" in source) == (count > 31)
    k.memory("f32", 541)
    with pytest.raises(UnsupportedOpError, match=r"with 542 buffers \(MSL allows 541\)"):
        k.render()


def body(statement: str) -> str:
    return (
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void k(device const float* b0 [[buffer(0)]], device float* b1 [[buffer(1)]],\n"
        "              constant long* vars [[buffer(2)]],\n"
        "              uint3 gid [[threadgroup_position_in_grid]]) {\n"
        f"  {statement}\n}}\n"
    )


def test_the_check_accepts_metal() -> None:
    check_msl(body("b1[gid.x] = fma(precise::exp(b0[gid.x]), 2.0f, (float)vars[0]);"))
    check_msl(body("thread float x = 1; thread float* p = &x; b1[0] = *p;"))


REFUSED = {
    "function that Metal lacks": ("b1[0] = erf(b0[0]);", "erf"),
    "undeclared name": ("b1[0] = b7[0];", "b7"),
    "wrong argument": ("b1[0] = precise::exp(b1);", "cannot initialize|no matching"),
    "ambiguous overload": ("b1[0] = max(b0[0], 1);", "ambiguous"),
    "half for float": ("b1[0] = as_type<float>((ushort)1);", "sizes differ"),
    "write to const": ("b0[0] = 1.0f;", "not assignable|read-only"),
}
REFUSED_BY_ADDRESS_SPACE = {
    "double": ("double x = 1; b1[0] = (float)x;", "double"),
    "long double": ("b1[0] = 1.0L;", "long double"),
    "long long": ("long long x = 1; b1[0] = x;", "long long"),
    "write to constant": ("vars[0] = 1;", "not assignable|read-only"),
    "pointer without address space": ("float* p = b1; p[0] = 1;", "__generic"),
    "threadgroup pointer to device": ("threadgroup float* p = b1; p[0] = 1;", "cannot initialize"),
    "device pointer to threadgroup": (
        "threadgroup float m[2]; device float* p = m;",
        "cannot initialize",
    ),
    "loss of const": ("device float* p = b0; p[0] = 1;", "cannot initialize"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_check_refuses(case: str) -> None:
    statement, message = REFUSED[case]
    with pytest.raises(AssertionError, match=message):
        check_msl(body(statement))
    with pytest.raises(AssertionError, match=message):
        check_many([body("b1[1] = 0.0f;"), body(statement)])


@pytest.mark.parametrize("case", REFUSED_BY_ADDRESS_SPACE)
def test_the_strict_check_refuses(case: str) -> None:
    if not is_strict():
        pytest.skip("this clang checks Metal as plain C++, without address spaces")
    statement, message = REFUSED_BY_ADDRESS_SPACE[case]
    with pytest.raises(AssertionError, match=message):
        check_msl(body(statement))


def test_parameters_need_an_address_space() -> None:
    if not is_strict():
        pytest.skip("this clang checks Metal as plain C++, without address spaces")
    source = body("").replace("device const float* b0", "const float* b0")
    with pytest.raises(AssertionError, match="pointer arguments to kernel functions"):
        check_msl(source)
