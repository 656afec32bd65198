"""Kernels as text of the Lowered IR, written an instruction at a time; runs them compiled and
interpreted."""

import ctypes

import ml_dtypes
import numpy as np

from rune_jit import _core
from rune_jit.backends import llvm as _llvm

DTYPES = {
    "bool": np.dtype(bool),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Text:
    """Writes the text of a kernel; each call gives the name of the instruction's value."""

    def __init__(self, grid):
        self.grid = grid
        self.lines = []

    def __call__(self, instruction):
        name = f"%{len(self.lines)}"
        has_value = " : " in instruction
        self.lines.append(f"{name} = {instruction}" if has_value else instruction)
        return name

    def memory(self, dtype, index, size, writable=False):
        flag = "true" if writable else "false"
        return self(f"define_global index={index} size={size} writable={flag} : ptr {dtype}")

    def const(self, value, dtype="i64", lanes=1):
        return self(f"const {dtype}({value}) : {typed(dtype, lanes)}")

    def iota(self, lanes):
        values = ",".join(f"i64({i})" for i in range(lanes))
        return self(f"vconst [{values}] : i64x{lanes}")

    def task(self):
        return self(f"special Workgroup_idx bound={self.grid} : i64")

    def store(self, memory, index, value, valid="", nontemporal=False):
        flag = "true" if nontemporal else "false"
        self(f"store nontemporal={flag} {memory} {index} {value} {valid}".rstrip())

    def __str__(self):
        body = "\n".join("  " + line for line in self.lines)
        return f"kernel @k grid={self.grid} local=1 {{\n{body}\n}}\n"


def typed(dtype, lanes):
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def compiled(text):
    ir = _core.render_llvm(str(text))
    (address,), keep = _llvm.compile_module(ir, ["k"], cache=False)
    function = KERNEL(address)
    function.keep = keep
    return function


def call(function, arrays, begin=0, end=1, variables=()):
    scratch = np.zeros(1 << 12, np.uint8)  # for the kernel's `local` memory, behind its arguments
    buffers = (ctypes.c_void_p * (len(arrays) + 1))(*[a.ctypes.data for a in [*arrays, scratch]])
    values = (ctypes.c_int64 * max(len(variables), 1))(*variables)
    function(ctypes.addressof(buffers), ctypes.addressof(values), begin, end)


def run(text, arrays, variables=()):
    """Runs all tasks, compiled; the interpreter must do the same to copies of the arrays."""
    copies = [a.copy() for a in arrays]
    call(compiled(text), arrays, 0, text.grid, variables)
    if not variables:
        _core.interpret(str(text), copies)
        for ours, reference in zip(arrays, copies, strict=True):
            np.testing.assert_array_equal(bits(ours), bits(reference))


def bits(array):
    return array.view(f"u{array.itemsize}")


def same(a, b):
    """Elements of equal bits, or both NaN."""
    equal = bits(a) == bits(b)
    if a.dtype in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
        equal |= np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
    return equal


def some(dtype, size, seed=0):
    """Small values, exact in every dtype, that differ from 0."""
    values = np.random.default_rng(seed).integers(1, 100, size)
    return (values % 2 == 0 if dtype == "bool" else values).astype(DTYPES[dtype])


def specials(dtype):
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        i = np.iinfo(DTYPES[dtype])
        wanted = [0, 1, 2, 3, 7, 10, 100, i.max, i.max - 1, i.max // 2, i.min, i.min + 1]
        wanted += [-1, -2, -7]
        return np.array(sorted({v for v in wanted if i.min <= v <= i.max}), DTYPES[dtype])
    values = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 1e-3, 100.7, -100.3, 127, 128, 255.6]
    values += [256, -129, 32768, 65504, 65519.999, 65520, 70000, 2.0**31 - 1, 2.0**31, -(2.0**31)]
    values += [-(2.0**31) - 1, 2.0**32 - 1, 2.0**32, 9.2e18, 9.3e18, 1.8e19, 1.9e19, -9.3e18, 1e20]
    values += [1e38, 1e-40, 1e39, 1e300, 1e-310, np.inf, -np.inf, np.nan, -np.nan, 3e-8]
    # Halfway between two float16 or bfloat16, but for a bit that float32 does not hold.
    values += [1 + 2**-8 + 2**-30, 1 + 2**-11 + 2**-40, 1 + 3 * 2**-11 - 2**-40]
    values += [2**-25 * (1 + 2**-30)]
    with np.errstate(all="ignore"):
        return np.array(values, np.float64).astype(DTYPES[dtype])


def elementwise(operands, result, instruction, count, lanes):
    """One operation on arrays, `lanes` at a time."""
    k = Text(count // lanes)
    out = k.memory(result, 0, count, True)
    memories = [k.memory(d, i + 1, count) for i, d in enumerate(operands)]
    at = k(f"alu mul {k.task()} {k.const(lanes)} : i64")
    args = [
        k(f"load {m} {at} : {typed(d, lanes)}") for m, d in zip(memories, operands, strict=True)
    ]
    k.store(out, at, k(f"{instruction} {' '.join(args)} : {typed(result, lanes)}"))
    return k


def padded(columns, lanes):
    size = -(-len(columns[0]) // lanes) * lanes
    return [np.ascontiguousarray(np.resize(c, size)) for c in columns]
