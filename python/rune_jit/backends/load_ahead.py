"""Importing this module begins to load LLVM on another core, while the package is imported.

Loading takes as long as compiling a small program. It is left to the first module that needs it
where there is one core, or where an earlier process of the same command has filled the cache.
"""

from __future__ import annotations

import contextlib
import threading

from rune_jit import _core
from rune_jit.backends import llvm as _llvm

__all__: list[str] = []

# A kernel in small: compiling it makes the system map the parts of LLVM that all kernels need.
_KERNEL = """
define void @k(ptr noalias readonly %buffers, i64 %n) nounwind "prefer-vector-width"="512" {
entry:
  %p = load ptr, ptr %buffers, align 8
  %any = icmp slt i64 0, %n
  br i1 %any, label %outer, label %return
outer:
  %t = phi i64 [ 0, %entry ], [ %t.next, %end ]
  br label %loop
loop:
  %i = phi i64 [ 0, %outer ], [ %next, %loop ]
  %a = phi <16 x float> [ splat (float 0.0), %outer ], [ %sum, %loop ]
  %at = mul i64 %i, 16
  %q = getelementptr float, ptr %p, i64 %at
  %x = load <16 x float>, ptr %q, align 4
  %less = fcmp olt <16 x float> %a, %x
  %y = select <16 x i1> %less, <16 x float> %a, <16 x float> %x
  %f = call <16 x float> @llvm.fma.v16f32(<16 x float> %x, <16 x float> %y, <16 x float> %a)
  %b = bitcast <16 x float> %f to <16 x i32>
  %s = shl <16 x i32> %b, splat (i32 3)
  %c = bitcast <16 x i32> %s to <16 x float>
  %sum = fdiv <16 x float> %c, %x
  store <16 x float> %sum, ptr %q, align 4
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 64
  br i1 %more, label %loop, label %end
end:
  %lo = shufflevector <16 x float> %sum, <16 x float> poison, <2 x i32> <i32 0, i32 1>
  %hi = shufflevector <16 x float> %sum, <16 x float> poison, <2 x i32> <i32 8, i32 9>
  %h = fadd <2 x float> %lo, %hi
  %e = extractelement <2 x float> %h, i32 0
  %v = insertelement <16 x float> poison, float %e, i32 0
  %w = shufflevector <16 x float> %v, <16 x float> poison, <16 x i32> zeroinitializer
  %r = getelementptr float, ptr %p, i64 %t
  store <16 x float> %w, ptr %r, align 4
  %t.next = add i64 %t, 1
  %t.more = icmp slt i64 %t.next, %n
  br i1 %t.more, label %outer, label %return
return:
  ret void
}
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
"""


def _begin() -> None:
    try:
        is_for_cpu, cores, cache, cache_dir = _core.options_at_import()
    except ValueError:
        return  # the first call raises it
    if not is_for_cpu or cores == 1 or (cache and _llvm.is_filled(cache_dir)):
        return
    # The thread imports nothing, so that it and the main thread never wait for each other.
    from rune_jit.backends import elf, llvm_library  # noqa: F401

    def load() -> None:
        # An error comes again to the call that needs LLVM.
        with contextlib.suppress(Exception):
            _llvm.load(_KERNEL, ["k"])

    # No daemon: a process must not end while LLVM runs.
    with contextlib.suppress(RuntimeError):  # no thread can start: too many, or the process ends
        threading.Thread(target=load, name="rune_jit: load LLVM").start()


_begin()
