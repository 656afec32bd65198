"""Compiles LLVM IR text to machine code in this process, through llvmlite.

The IR is ready for code generation, except in modules that ask for LLVM's passes. One lock guards
LLVM. It is also held around fork, so that a child process never inherits it locked.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import os
import platform
import re
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from rune_jit.backends import object_cache

__all__ = ["CompiledCode", "compile_module"]

# Level 0 aborts on AVX-512 masks. Level 3 takes longer to compile and gives no faster code. Small
# position-independent code addresses constants relative to the instruction. The default of a JIT
# would load the 64-bit address of each constant first.
_OPTIONS = {"opt": 2, "reloc": "pic", "codemodel": "small", "jit": True}

# The attribute of functions that LLVM's passes should improve (cpp/render/llvm_ir.h).
_ASKS_FOR_PASSES = '"rune-optimize"'

# Longer modules are compiled in parts of about so many characters, each of which takes about 0.1 s.
_PART = 100_000
# Shorter modules take about 0.01 s, or 0.1 s if they ask for LLVM's passes.
_SHORT = 10_000

_lock = threading.RLock()
_library_numbers = itertools.count()
_state: _Compiler | None = None
# For the module that is being compiled: the number of finished parts, and of all parts.
progress = (0, 0)
# Code to unload, whose owners died while another thread had the lock.
_unused: collections.deque[Any] = collections.deque()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


class CompiledCode:
    """Keeps machine code loaded. The code is unloaded when this object dies."""

    __slots__ = ("_tracker",)

    def __init__(self, tracker: Any) -> None:
        self._tracker = tracker

    def __del__(self) -> None:
        # When the interpreter shuts down, threads may still run the code.
        if sys.is_finalizing():
            self._tracker.detach()
            return
        # The owner of the lock may wait for this thread, in which the garbage collector runs.
        _unused.append(self._tracker)
        if _lock.acquire(blocking=False):
            try:
                _unload_unused()
            finally:
                _lock.release()


def _unload_unused() -> None:
    while _unused:
        _unused.popleft().close()


class _Compiler:
    """LLVM's code generator and linker for this machine."""

    def __init__(self) -> None:
        import llvmlite  # type: ignore[import-untyped]
        import llvmlite.binding as llvm  # type: ignore[import-untyped]

        self._llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        target = llvm.Target.from_default_triple()
        cpu, features = _host_cpu(llvm)
        self._machine = target.create_target_machine(cpu=cpu, features=features, **_OPTIONS)
        self._triple = target.triple
        self._data_layout = str(self._machine.target_data)
        self._jit: Any = None
        self._needs_libgcc = platform.machine() == "x86_64" and "+f16c" not in features
        #: Everything except the IR on which the object code depends.
        self.host = repr(
            (
                (llvmlite.__version__, llvm.llvm_version_info),
                (self._triple, llvm.get_host_cpu_name(), features),
                sorted(_OPTIONS.items()),
            )
        )

    def object_code(self, ir: str) -> bytes:
        """The object code of a module. Raises RuntimeError with LLVM's message and the line of IR
        to which it refers."""
        llvm = self._llvm
        try:
            # A new context, because other users of llvmlite share the global one.
            with llvm.create_context() as context, llvm.parse_assembly(ir, context) as module:
                module.triple = self._triple
                module.data_layout = self._data_layout
                module.verify()
                if _ASKS_FOR_PASSES in ir:
                    self._optimize(module)
                return self._machine.emit_object(module)  # type: ignore[no-any-return]
        except RuntimeError as error:
            raise RuntimeError(_describe(str(error), ir)) from None

    def _optimize(self, module: Any) -> None:
        """Runs LLVM's usual passes, except those that make vectors. (The IR has its vectors
        already.)"""
        tuning = self._llvm.PipelineTuningOptions(speed_level=2)
        tuning.loop_vectorization = tuning.slp_vectorization = False
        builder = self._llvm.create_pass_builder(self._machine, tuning)
        builder.getModulePassManager().run(module, builder)

    def link(self, codes: list[bytes], names: list[str]) -> tuple[list[int], CompiledCode]:
        """The addresses of functions in objects, by name, and an object that keeps the code
        loaded."""
        builder = self._llvm.JITLibraryBuilder()
        for code in codes:
            builder = builder.add_object_img(code)
        builder.add_current_process()
        for name in names:
            builder.export_symbol(name)
        try:
            tracker = builder.link(self._linker(), f"rune_jit_{next(_library_numbers)}")
        except RuntimeError as error:
            raise RuntimeError(_describe(str(error), "")) from None
        _unload_unused()
        return [tracker[name] for name in names], CompiledCode(tracker)

    def _linker(self) -> Any:
        if self._jit is None:
            if sys.platform == "linux":
                # The process may have loaded libm for one module only. (musl has no such file. Its
                # C library contains libm.)
                with contextlib.suppress(RuntimeError):
                    self._llvm.load_library_permanently("libm.so.6")
                # Without the feature, conversions from and to float16 are calls.
                if self._needs_libgcc:
                    self._llvm.load_library_permanently("libgcc_s.so.1")
            # JITLink places all sections of an object near each other, as small code needs.
            self._jit = self._llvm.create_lljit_compiler(self._machine, use_jit_link=True)
        return self._jit


def _host_cpu(llvm: Any) -> tuple[str, str]:
    """This machine's CPU for LLVM: a name and features.

    On x86 and Linux the name is empty, because in virtual machines it implies features that are
    switched off. The features suffice. On Apple's CPUs LLVM may know only the name. Without it,
    code would be for the first 64-bit ARM."""
    features = llvm.get_host_cpu_features().flatten()
    is_apple = sys.platform == "darwin" and platform.machine() == "arm64"
    return (llvm.get_host_cpu_name() if is_apple else ""), features


def _describe(message: str, ir: str) -> str:
    """LLVM's message, with the line of IR to which it refers."""
    text = f"llvm: cannot compile a generated kernel ({message.strip()})"
    lines = ir.splitlines()
    position = re.search(r"<string>:(\d+):\d+", message)
    if position and int(position[1]) <= len(lines):
        text += f"\n  line {position[1]}: {lines[int(position[1]) - 1].strip()}"
    return text + "\nhint: this is an error of rune_jit; please report it with the message above"


def compile_module(
    ir: str, names: list[str], *, cache: bool = True, cache_dir: str = ""
) -> tuple[list[int], CompiledCode]:
    """Compiles a module. Returns the addresses of its functions, in the order of `names`, and an
    object that keeps the code loaded.

    With `cache`, object code is kept on disk in `cache_dir`, or in the user's cache folder. Raises
    RuntimeError with LLVM's message and the line of IR if LLVM rejects the module. Ctrl-C ends it
    at once, also while LLVM compiles."""
    parts = list(_parts(ir))
    job = _Job(parts, names, cache, cache_dir)
    if len(ir) <= _SHORT or threading.current_thread() is not threading.main_thread():
        result = job.run()
    else:
        # LLVM cannot be interrupted, and signals wait until the main thread is back in Python. So
        # LLVM runs on another thread, which stops after its present part.
        from concurrent.futures import ThreadPoolExecutor  # slow to import

        executor = ThreadPoolExecutor(1, thread_name_prefix="rune_jit compiler")
        try:
            result = executor.submit(job.run).result()
        finally:
            job.is_stopped = True
            executor.shutdown(wait=False)
    _waits.seconds = getattr(_waits, "seconds", 0.0) + job.waited
    return result


def take_waits() -> float:
    """How long this thread's compilations have waited for other threads since the last call, in
    seconds."""
    waited: float = getattr(_waits, "seconds", 0.0)
    _waits.seconds = 0.0
    return waited


_waits = threading.local()


class _Job:
    """A compilation."""

    def __init__(self, parts: list[str], names: list[str], cache: bool, cache_dir: str) -> None:
        self._parts, self._names = parts, names
        self._cache, self._cache_dir = cache, cache_dir
        self.is_stopped = False  # for another thread to set
        self.waited = 0.0  # for other compilations, in seconds

    def run(self) -> tuple[list[int], CompiledCode]:
        global _state, progress
        start = time.perf_counter()
        with _lock:
            self.waited = time.perf_counter() - start
            if _state is None:
                _state = _Compiler()
            compiler = _state
            codes = []
            for i, part in enumerate(self._parts):
                if self.is_stopped:
                    raise RuntimeError("llvm: the compilation was ended")
                progress = i, len(self._parts)
                codes.append(self._object_code(compiler, part))
            return compiler.link(codes, self._names)

    def _object_code(self, compiler: _Compiler, part: str) -> bytes:
        if not self._cache:
            return compiler.object_code(part)
        entry = object_cache.Entry(self._cache_dir, compiler.host, part)
        code = entry.read()
        if code is None:
            code = compiler.object_code(part)
            entry.write(code)
        return code


def _parts(ir: str) -> Iterator[str]:
    """Divides a module into several. Each has some of its functions and all of its declarations."""
    end = ir.rfind("\n}\n") + 3
    if end <= _PART:
        yield ir
        return
    declarations, part = ir[end:], ""
    for i, function in enumerate(ir[:end].split("\ndefine ")):
        part += f"\ndefine {function}" if i else function
        if len(part) > _PART:
            yield part + declarations
            part = ""
    if part:
        yield part + declarations
