"""Every instruction of the Lowered IR, on the CPU and in the interpreter, against NumPy.

An instruction without a case fails test_every_instruction_has_a_case."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rune_jit import UnsupportedOpError, ir

Case = tuple[str, list[Any], dict[str, int], list[Any]]
X = np.arange(8, dtype=np.float32) - 3
ONE_THREAD = "grid=1 local=1"


def case_accumulator_over_ranges() -> Case:
    """acc, assign, range, unroll: sums of rows of x, times 2."""
    text = f"""kernel @sums {ONE_THREAD} {{
      %0 = define_global index=0 size=8 writable=false : ptr f32
      %1 = define_global index=1 size=2 writable=true : ptr f32
      %2 = const i64(2) : i64
      %3 = const i64(4) : i64
      %4 = const f32(0.0) : f32
      barrier
      %6 = range %2 : i64
        %7 = acc %4 : f32
        %8 = unroll iterations=4 : i64
          %9 = alu mul %6 %3 : i64
          %10 = alu add %9 %8 : i64
          %11 = load %0 %10 : f32
          %12 = alu add %7 %11 : f32
          assign %7 %12
        endrange
        barrier
        %16 = alu add %7 %7 : f32
        store nontemporal=false %1 %6 %16
      endrange
    }}"""
    return text, [X, np.zeros(2, np.float32)], {}, [2 * X.reshape(2, 4).sum(1)]


def case_break() -> Case:
    """break: for each bound, the squares of x added up until the sum exceeds it."""
    text = f"""kernel @until {ONE_THREAD} {{
      %0 = define_global index=0 size=8 writable=false : ptr f32
      %1 = define_global index=1 size=3 writable=false : ptr f32
      %2 = define_global index=2 size=3 writable=true : ptr f32
      %3 = const i64(3) : i64
      %4 = const i64(8) : i64
      %5 = const f32(0.0) : f32
      %6 = acc %5 : f32
      %7 = range %3 : i64
        assign %6 %5
        %9 = load %1 %7 : f32
        %10 = range %4 : i64
          %11 = alu cmplt %9 %6 : bool
          break %11
          %13 = load %0 %10 : f32
          %14 = alu mul %13 %13 : f32
          %15 = alu add %6 %14 : f32
          assign %6 %15
        endrange
        store nontemporal=false %2 %7 %6
      endrange
    }}"""
    limits = np.array([-1, 10, 1000], np.float32)
    sums = np.array([0, 13, (X * X).sum()], np.float32)
    return text, [X, limits, np.zeros(3, np.float32)], {}, [sums]


def case_vectors() -> Case:
    """vconst, splat, shuffle, masked and indexed access, cast, bitcast."""
    text = f"""kernel @vectors {ONE_THREAD} {{
      %0 = define_global index=0 size=8 writable=false : ptr f32
      %1 = define_global index=1 size=4 writable=true : ptr i32
      %2 = define_global index=2 size=4 writable=true : ptr f32
      %3 = const i64(0) : i64
      %4 = const i64(1) : i64
      %5 = vconst [i64(7),i64(0),i64(5),i64(2)] : i64x4
      %6 = vconst [bool(true),bool(false),bool(true),bool(true)] : boolx4
      %7 = load %0 %5 %6 : f32x4
      %8 = shuffle indices=[3,2,1,0] %7 : f32x4
      %9 = load %0 %4 : f32
      %10 = splat %9 : f32x4
      %11 = alu mul %8 %10 : f32x4
      store nontemporal=true %2 %3 %11
      %13 = shuffle indices=[0] %11 : f32
      %14 = shuffle indices=[3] %11 : f32
      %15 = shuffle indices=[0,1] %13 %14 : f32x2
      %16 = bitcast %15 : i32x2
      store nontemporal=false %1 %3 %16
      %18 = cast %11 : i32x4
      %19 = vconst [bool(false),bool(false),bool(true),bool(true)] : boolx4
      store nontemporal=false %1 %3 %18 %19
    }}"""
    masked = np.array([X[7], 0, X[5], X[2]], np.float32)[::-1] * X[1]
    integers = masked.astype(np.int32)
    integers[:2] = masked[[0, 3]].view(np.int32)
    return text, [X, np.zeros(4, np.int32), np.zeros(4, np.float32)], {}, [integers, masked]


def case_prefetches() -> Case:
    """Of one element, of lanes, and of what is outside of the memory: no effect."""
    text = f"""kernel @ahead {ONE_THREAD} {{
      %0 = define_global index=0 size=8 writable=false : ptr f32
      %1 = define_global index=1 size=4 writable=true : ptr f32
      %2 = const i64(0) : i64
      %3 = const i64(1000000000) : i64
      %4 = vconst [i64(7),i64(0),i64(-5),i64(8)] : i64x4
      prefetch %0 %2
      prefetch %0 %3
      prefetch %0 %4
      %8 = load %0 %2 : f32x4
      store nontemporal=false %1 %2 %8
    }}"""
    return text, [X, np.zeros(4, np.float32)], {}, [X[:4]]


def case_variables_and_conditions() -> Case:
    """define_var, if, special, const over a grid: y[i] = x[i] + n for i < n; others stay."""
    text = """kernel @conditions grid=8 local=1 {
      %0 = define_global index=0 size=8 writable=true : ptr i64
      %1 = special Workgroup_idx bound=8 : i64
      %2 = define_var {name="n" min=0 max=9} : i64
      %3 = alu cmplt %1 %2 : bool
      if %3
        %5 = load %0 %1 : i64
        %6 = alu add %5 %2 : i64
        store nontemporal=false %0 %1 %6
      endif
    }"""
    x = np.arange(8)
    return text, [x], {"n": 5}, [np.where(x < 5, x + 5, x)]


def case_scratch_memories() -> Case:
    """local, barrier: a reversal through scratch memory."""
    text = f"""kernel @scratch {ONE_THREAD} {{
      %0 = define_global index=0 size=8 writable=true : ptr f32
      %1 = local size=8 : ptr f32
      %2 = local size=8 : ptr f32
      %3 = const i64(0) : i64
      %4 = const i64(8) : i64
      %5 = const i64(7) : i64
      %6 = range %4 : i64
        %7 = load %0 %6 : f32
        store nontemporal=false %1 %6 %7
      endrange
      barrier
      %11 = range %4 : i64
        %12 = alu sub %5 %11 : i64
        %13 = load %1 %12 : f32
        store nontemporal=false %2 %11 %13
      endrange
      barrier
      %17 = load %2 %3 : f32x8
      store nontemporal=false %0 %3 %17
    }}"""
    return text, [X], {}, [X[::-1]]


CASES: dict[str, Callable[[], Case]] = {
    name.removeprefix("case_"): f for name, f in list(globals().items()) if name.startswith("case_")
}

# On threads: what only devices of a grid have.
THREADS = """kernel @threads grid=2 local=4 {
  %0 = define_global index=0 size=8 writable=true : ptr f32
  %1 = local size=4 : ptr f32
  %2 = special Global_task_idx bound=8 : i64
  %3 = special Local_thread_idx bound=4 : i64
  %4 = load %0 %2 : f32
  store nontemporal=false %1 %3 %4
  barrier
  %7 = const i64(3) : i64
  %8 = alu sub %7 %3 : i64
  %9 = load %1 %8 : f32
  store nontemporal=false %0 %2 %9
}"""
PRIVATE = """kernel @reversed grid=2 local=4 {
  %0 = define_global index=0 size=16 writable=true : ptr f32
  %1 = private size=2 : ptr f32
  %2 = special Global_task_idx bound=8 : i64
  %3 = const i64(0) : i64
  %4 = const i64(1) : i64
  %5 = const i64(2) : i64
  %6 = alu mul %2 %5 : i64
  %7 = alu add %6 %4 : i64
  %8 = load %0 %6 : f32
  %9 = load %0 %7 : f32
  store nontemporal=false %1 %3 %8
  store nontemporal=false %1 %4 %9
  %12 = range %5 : i64
    %13 = alu sub %4 %12 : i64
    %14 = load %1 %13 : f32
    %15 = alu add %6 %12 : i64
    store nontemporal=false %0 %15 %14
  endrange
}"""
SIMD = """kernel @simd grid=2 local=4 {
  %0 = define_global index=0 size=8 writable=true : ptr f32
  %1 = special Global_task_idx bound=8 : i64
  %2 = load %0 %1 : f32
  %3 = simd_reduce max width=2 %2 : f32
  store nontemporal=false %0 %1 %3
}"""
SIMD_SHUFFLE = """kernel @simd grid=2 local=4 {
  %0 = define_global index=0 size=8 writable=true : ptr f32
  %1 = special Global_task_idx bound=8 : i64
  %2 = load %0 %1 : f32
  %3 = const i64(1) : i64
  %4 = simd_shuffle width=2 %2 %3 : f32
  store nontemporal=false %0 %1 %4
}"""
WMMA = f"""kernel @tile {ONE_THREAD} {{
  %0 = define_global index=0 size=8 writable=false : ptr f16
  %1 = define_global index=1 size=8 writable=false : ptr f16
  %2 = define_global index=2 size=4 writable=true : ptr f32
  %3 = const i64(0) : i64
  %4 = load %0 %3 : f16x8
  %5 = load %1 %3 : f16x8
  %6 = load %2 %3 : f32x4
  %7 = wmma m=2 n=2 k=4 spread=[[1,2,4],[1,2,4],[1,2]] %4 %5 %6 : f32x4
  store nontemporal=false %2 %3 %7
}}"""
CUSTOM = f"""kernel @mine {ONE_THREAD} {{
  %0 = define_global index=0 size=4 writable=true : ptr f32
  %1 = const i64(0) : i64
  %2 = load %0 %1 : f32x4
  %3 = custom "square" text="fmul $T $0, $0" %2 : f32x4
  store nontemporal=false %0 %1 %3
}}"""


@pytest.mark.parametrize("device", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", CASES)
def test_instruction(name: str, device: str) -> None:
    text, memories, values, expected = CASES[name]()
    before = [m.copy() for m in memories]
    results = ir.Kernel(text, device).run(*memories, **values)
    for actual, want in zip(results, expected, strict=True):
        np.testing.assert_array_equal(actual, want)
        assert actual.dtype == want.dtype
    for memory, old in zip(memories, before, strict=True):
        np.testing.assert_array_equal(memory, old)


def test_threads() -> None:
    (result,) = ir.Kernel(THREADS, "interpreter").run(X)
    np.testing.assert_array_equal(result, X.reshape(2, 4)[:, ::-1].ravel())


def test_memory_of_a_thread() -> None:
    pairs = np.arange(16, dtype=np.float32)
    (result,) = ir.Kernel(PRIVATE, "interpreter").run(pairs)
    np.testing.assert_array_equal(result, pairs.reshape(8, 2)[:, ::-1].ravel())


def test_simd_reduce() -> None:
    (result,) = ir.Kernel(SIMD, "interpreter").run(X)
    np.testing.assert_array_equal(result, X.reshape(4, 2).max(1).repeat(2))
    with pytest.raises(UnsupportedOpError, match="simd_reduce: cannot render for the CPU"):
        ir.Kernel(SIMD.replace("local=4", "local=1").replace("width=2", "width=1"), "cpu")


def test_simd_shuffle() -> None:
    (result,) = ir.Kernel(SIMD_SHUFFLE, "interpreter").run(X)
    np.testing.assert_array_equal(result, X.reshape(4, 2)[:, 1].repeat(2))
    with pytest.raises(UnsupportedOpError, match="simd_shuffle: cannot render for the CPU"):
        ir.Kernel(SIMD_SHUFFLE.replace("local=4", "local=1").replace("width=2", "width=1"), "cpu")


ATOMIC = """kernel @k grid=2 local=4 {
  %0 = define_global index=0 size=8 writable=false : ptr f32
  %1 = define_global index=1 size=2 writable=true : ptr f32
  %2 = special Global_task_idx bound=8 : i64
  %3 = load %0 %2 : f32
  %4 = const i64(1) : i64
  %5 = alu and %2 %4 : i64
  store nontemporal=false atomic=max %1 %5 %3
}
"""


def test_atomic_store() -> None:
    out = np.array([-9, 0], np.float32)
    (result,) = ir.Kernel(ATOMIC, "interpreter").run(X, out)
    np.testing.assert_array_equal(result, np.maximum(out, X.reshape(4, 2).max(0)))
    with pytest.raises(RuntimeError, match=r"another workgroup|data race"):
        ir.Kernel(ATOMIC.replace(" atomic=max", ""), "interpreter").run(X, out)
    one = ATOMIC.replace("grid=2 local=4", "grid=8 local=1")
    with pytest.raises(UnsupportedOpError, match="store: cannot render atomic max for the CPU"):
        ir.Kernel(one, "cpu")


def test_wmma() -> None:
    a = X.astype(np.float16)
    (result,) = ir.Kernel(WMMA, "interpreter").run(a, a, X[:4])
    matrix = X.reshape(2, 4) @ X.reshape(4, 2) + X[:4].reshape(2, 2)
    np.testing.assert_array_equal(result, matrix.ravel())
    with pytest.raises(UnsupportedOpError, match="wmma: cannot render for the CPU"):
        ir.Kernel(WMMA, "cpu")


def test_custom() -> None:
    (result,) = ir.Kernel(CUSTOM, "cpu").run(X[:4])
    np.testing.assert_array_equal(result, X[:4] ** 2)
    with pytest.raises(UnsupportedOpError, match="cannot run custom operation square"):
        ir.Kernel(CUSTOM, "interpreter")


def test_every_instruction_has_a_case() -> None:
    texts = [case()[0] for case in CASES.values()] + [
        THREADS,
        PRIVATE,
        SIMD,
        SIMD_SHUFFLE,
        WMMA,
        CUSTOM,
    ]
    tested = set(re.findall(r"^\s*(?:%\d+ = )?([a-z_]+)", "\n".join(texts), re.MULTILINE))
    assert set(ir.instruction_kinds()) <= tested


def test_a_kernel_that_is_not_valid() -> None:
    with pytest.raises(ValueError, match="cannot compile bad"):
        ir.Kernel(f"kernel @bad {ONE_THREAD} {{ %0 = const i64(0) : i64 if %0 endif }}", "cpu")
