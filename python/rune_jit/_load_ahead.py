"""Importing this module begins to load LLVM on another core, while the package is imported.

Loading takes as long as compiling a small program. It is left to the first module that needs it
where there is one core, or where an earlier process of the same command has filled the cache.
"""

from __future__ import annotations

import contextlib
import threading

from rune_jit import _core, _llvm

__all__: list[str] = []

# A kernel in small: compiling it makes the system map the parts of LLVM that all kernels need.
_KERNEL = """
define void @k(ptr noalias readonly %buffers, i64 %n) nounwind "prefer-vector-width"="512" {
entry:
  %p = load ptr, ptr %buffers, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a = phi <16 x float> [ splat (float 0.0), %entry ], [ %sum, %loop ]
  %at = mul i64 %i, 16
  %q = getelementptr float, ptr %p, i64 %at
  %x = load <16 x float>, ptr %q, align 4
  %less = fcmp olt <16 x float> %a, %x
  %y = select <16 x i1> %less, <16 x float> %a, <16 x float> %x
  %sum = call <16 x float> @llvm.fma.v16f32(<16 x float> %x, <16 x float> %y, <16 x float> %a)
  store <16 x float> %sum, ptr %q, align 4
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
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
    from rune_jit import _llvm_library  # noqa: F401

    def load() -> None:
        # An error comes again to the call that needs LLVM.
        with contextlib.suppress(Exception):
            _llvm.load(_KERNEL)

    # No daemon: a process must not end while LLVM runs.
    with contextlib.suppress(RuntimeError):  # no thread can start: too many, or the process ends
        threading.Thread(target=load, name="rune_jit: load LLVM").start()


_begin()
