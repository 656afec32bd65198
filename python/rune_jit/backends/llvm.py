"""Compiles LLVM IR text to machine code in this process, with a disk cache of object code.

The IR is meant for code generation alone: no IR optimisation pass runs. All of LLVM is used under
one lock, which is also held around fork, so that a child never inherits it locked. LLVM is loaded
by the first module that is not in the cache as an image (`_image.py`), or, where that is likely to
come, on another core while the package is imported (`_load_ahead.py`). Nothing else that a cached
program can do without is loaded before: pathlib, for one, takes as long as the program.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import hashlib
import itertools
import os
import platform
import re
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from rune_jit.backends import files as _files
from rune_jit.backends import image as _image

if TYPE_CHECKING:
    from rune_jit.backends import llvm_library as _llvm_library

__all__ = [
    "CompiledCode",
    "clear_cache",
    "compile_module",
    "compile_modules",
    "is_filled",
    "load",
]

T = TypeVar("T")
Module = tuple[str, list[str]]  # IR, and the names of the functions that are called
Compiled = tuple[list[int], "CompiledCode | _image.Image"]

# Code generation at level 2: level 0 aborts on AVX-512 masks, and 3 adds time but no speed.
_OPT_LEVEL = 2
# Part of every cache key: raise when what surrounds the IR in the object changes.
_FORMAT = b"rune_jit object 3\n"
_MAX_CACHE_BYTES = 256 << 20
# Writes between two looks at the size of the cache.
_WRITES_PER_TRIM = 128

_lock = threading.RLock()
_library_numbers = itertools.count()
_writes = itertools.count()
_has_noted_command = False
_state: _Compiler | None = None
# Trackers of code that died while the lock was taken.
_unused: collections.deque[int] = collections.deque()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


class CompiledCode:
    """Keeps machine code loaded; it is unmapped when this object dies."""

    __slots__ = ("_llvm", "_tracker")

    def __init__(self, llvm: _llvm_library.Library, tracker: int) -> None:
        self._llvm = llvm
        self._tracker = tracker

    def __del__(self) -> None:
        # At interpreter shutdown threads may still run the code, and LLVM may be gone.
        if sys.is_finalizing():
            return
        _unused.append(self._tracker)
        # Garbage is collected in any thread, also in one that the lock's owner waits for.
        if _lock.acquire(blocking=False):
            try:
                _unmap_unused(self._llvm)
            finally:
                _lock.release()


def _unmap_unused(llvm: _llvm_library.Library) -> None:
    while _unused:
        llvm.call("LLJIT_Dylib_Tracker_Dispose", _unused.popleft())


class _Generator:
    """Generates code, in one thread at a time: a context and a target machine."""

    def __init__(self, compiler: _Compiler) -> None:
        self._compiler = compiler
        self._llvm = llvm = compiler.llvm
        # Not the context that all users of LLVM in this process share.
        self._context = llvm.ContextCreate()
        # Position-independent small code: constants are addressed relative to the instruction. The
        # default of a JIT would load each constant's 64-bit address first.
        options = (_OPT_LEVEL, b"pic", b"small", False, True, b"")
        self.machine = llvm.CreateTargetMachine(
            compiler.target, compiler.triple, b"", compiler.features.encode(), *options
        )

    def dispose(self) -> None:
        self._llvm.DisposeTargetMachine(self.machine)
        self._llvm.ContextDispose(self._context)

    def object_code(self, module: Module) -> bytes:
        ir, _ = module
        llvm = self._llvm
        parsed, message = llvm.call("ParseAssembly", self._context, ir.encode())
        try:
            if not parsed or message:
                raise RuntimeError(_describe(message, ir))
            llvm.SetTarget(parsed, self._compiler.triple)
            llvm.SetDataLayout(parsed, self._compiler.data_layout)
            is_invalid, message = llvm.call("VerifyModule", parsed)
            if is_invalid:
                raise RuntimeError(_describe(message, ir))
            buffer, message = llvm.call("TargetMachineEmitToMemory", self.machine, parsed, True)
            if not buffer:
                raise RuntimeError(_describe(message, ir))
            try:
                return ctypes.string_at(llvm.GetBufferStart(buffer), llvm.GetBufferSize(buffer))
            finally:
                llvm.DisposeMemoryBuffer(buffer)
        finally:
            if parsed:
                llvm.DisposeModule(parsed)

    def image(self, module: Module) -> bytes:
        """What the cache keeps of a module: its image, or its object code if it has no image."""
        code = self.object_code(module)
        if not _image.SUPPORTED:
            return code
        from rune_jit.backends.elf import image_of

        return image_of(code, module[1]) or code


class _Compiler:
    """LLVM in this process: its code generator and its linker."""

    def __init__(self) -> None:
        # Not `from rune_jit import`, which waits in another thread until the package is imported.
        from rune_jit.backends.llvm_library import Library

        self.llvm = llvm = Library()
        llvm.InitializeNativeTarget()
        llvm.InitializeNativeAsmPrinter()
        llvm.InitializeNativeAsmParser()
        # The features and not the CPU's name: in virtual machines the name promises too much.
        self.features = llvm.call("GetHostCPUFeatures")[1]
        self.triple = llvm.call("GetDefaultTargetTriple")[1].encode()
        self.target, message = llvm.call("GetTargetFromTriple", self.triple)
        if not self.target:
            raise RuntimeError(_describe(message, ""))
        self.generator = _Generator(self)
        data = llvm.CreateTargetMachineData(self.generator.machine)
        self.data_layout = llvm.call("CopyStringRepOfTargetData", data)[1].encode()
        llvm.DisposeTargetData(data)
        version = f"{llvm.GetVersionInfo():x}"
        parts = [version, self.triple.decode(), self.features, str(_OPT_LEVEL)]
        self.key = "\n".join(parts).encode()

    @functools.cached_property
    def _jit(self) -> int:
        llvm = self.llvm
        if sys.platform == "linux":
            # exp and others are looked up in the process, where libm may be private to a module.
            llvm.call("LoadLibraryPermanently", b"libm.so.6")
            # Of processors before 2012: float16 conversions are calls.
            if platform.machine() == "x86_64" and "+f16c" not in self.features:
                llvm.call("LoadLibraryPermanently", b"libgcc_s.so.1")
        # JITLink places all sections of an object together, as the small code model needs.
        jit, message = llvm.call("CreateLLJITCompiler", self.generator.machine, False, True)
        if not jit:
            raise RuntimeError(_describe(message, ""))
        return int(jit)

    def generate(
        self, generate_one: Callable[[_Generator, T], bytes], modules: list[T]
    ) -> list[bytes]:
        """What `generate_one` makes of each module, in a thread of its own. Raises the error of the
        first module that has one, when all threads have ended."""
        codes = [b""] * len(modules)
        errors: dict[int, BaseException] = {}

        def run(i: int, generator: _Generator) -> None:
            try:
                codes[i] = generate_one(generator, modules[i])
            except BaseException as error:
                errors[i] = error

        def run_beside(i: int) -> None:
            generator = _Generator(self)
            run(i, generator)
            generator.dispose()

        threads = []
        for i in range(1, len(modules)):
            thread = threading.Thread(target=run_beside, args=(i,))
            try:
                thread.start()
            except RuntimeError:  # no thread can start: too many, or the process ends
                run_beside(i)
            else:
                threads.append(thread)
        run(0, self.generator)
        for thread in threads:
            thread.join()
        if errors:
            raise errors[min(errors)]
        return codes

    def link(self, code: bytes, names: list[str]) -> tuple[list[int], CompiledCode]:
        from rune_jit.backends.llvm_library import LinkElement, SymbolAddress

        elements = (LinkElement * 2)(
            LinkElement(LinkElement.OBJECT, code, len(code)),
            LinkElement(LinkElement.LIBRARY, b"", 0),
        )
        exports = (SymbolAddress * len(names))(*(SymbolAddress(n.encode(), 0) for n in names))
        library = f"rune_jit_{next(_library_numbers)}".encode()
        linked = (elements, len(elements), None, 0, exports, len(exports))
        tracker, message = self.llvm.call("LLJIT_Link", self._jit, library, *linked)
        if not tracker:
            raise RuntimeError(_describe(message, ""))
        _unmap_unused(self.llvm)
        return [symbol.address for symbol in exports], CompiledCode(self.llvm, tracker)


def _describe(message: str, ir: str) -> str:
    """LLVM's message with the line of IR that it speaks of."""
    text = f"llvm: cannot compile a generated kernel ({message.strip()})"
    lines = ir.splitlines()
    position = re.search(r"<string>:(\d+):\d+", message)
    if position and int(position[1]) <= len(lines):
        text += f"\n  line {position[1]}: {lines[int(position[1]) - 1].strip()}"
    return text + "\nhint: this is an error of rune_jit; please report it with the message above"


def _cache_folder(cache_dir: str) -> str:
    if not cache_dir:
        import platformdirs

        cache_dir = platformdirs.user_cache_dir("rune_jit")
    return os.path.join(cache_dir, "objects")


def _read(path: str) -> bytes | None:
    """The object code of a cache entry; None if there is none or it is damaged."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    digest, code = data[:32], data[32:]
    if hashlib.sha256(code).digest() != digest:
        return None
    with contextlib.suppress(OSError):  # of a cache that may only be read
        os.utime(path)
    return code


def _write(path: str, code: bytes) -> None:
    """Adds an entry. A cache that cannot be written is no error."""
    try:
        # Objects are code that will run: only the user may put them here.
        folder = os.path.dirname(path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _files.replace(path, hashlib.sha256(code).digest() + code)
        if next(_writes) % _WRITES_PER_TRIM == 0:
            _trim(folder, _MAX_CACHE_BYTES)
    except OSError:
        pass


def _command_path(folder: str) -> str:
    """The file that says that a process of this command, of this script, has filled the cache."""
    parts = list(sys.orig_argv)
    with contextlib.suppress(OSError, AttributeError, IndexError):
        script = os.stat(sys.argv[0])
        parts.append(f"{script.st_dev} {script.st_ino} {script.st_mtime_ns}")
    key = hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()
    return os.path.join(folder, f"{key}.command")


def is_filled(cache_dir: str = "") -> bool:
    """Whether an earlier process of this command has put what it compiled into the cache."""
    path = _command_path(_cache_folder(cache_dir))
    try:
        os.utime(path)  # or it would be removed as an entry that is not used
    except OSError:
        return os.path.exists(path)
    return True


def _note_command(folder: str) -> None:
    global _has_noted_command
    if not _has_noted_command:
        _has_noted_command = True
        with contextlib.suppress(OSError), open(_command_path(folder), "wb"):
            pass


def _trim(folder: str, max_bytes: int) -> None:
    """Removes the entries used longest ago until a tenth of the limit is free."""
    entries = []
    for entry in os.scandir(folder):
        try:
            status = entry.stat()
        except OSError:
            continue  # removed by another process
        entries.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= max_bytes:
        return
    for _, size, path in sorted(entries):
        try:
            os.unlink(path)
        except OSError:
            continue
        total -= size
        if total <= max_bytes - max_bytes // 10:
            return


def clear_cache(cache_dir: str = "") -> None:
    """Removes every entry of the cache in `cache_dir`, or of the user's cache folder."""
    folder = _cache_folder(cache_dir)
    if os.path.isdir(folder):
        _trim(folder, -1)


def compile_modules(
    modules: list[Module], *, cache: bool = True, cache_dir: str = ""
) -> list[Compiled]:
    """For each module, the addresses of its functions, in order, and what keeps their code loaded.

    Each is compiled in a thread of its own. With `cache`, object code is kept in `cache_dir`, or in
    the user's cache folder. Raises RuntimeError with LLVM's message and the line of IR if LLVM
    rejects a module.
    """
    with _lock:
        if not cache:
            return _linked(modules)
        host = _image.host_key() or _compiler().key
        folder = _cache_folder(cache_dir)
        paths = []
        for ir, names in modules:
            parts = [_FORMAT, host, ",".join(names).encode(), ir.encode()]
            key = hashlib.sha256(b"\0".join(parts)).hexdigest()
            paths.append(os.path.join(folder, f"{key}.o"))
        codes = {i: code for i, path in enumerate(paths) if (code := _read(path)) is not None}
        missing = [i for i in range(len(modules)) if i not in codes]
        if missing:
            made = _compiler().generate(_made, [(modules[i], paths[i]) for i in missing])
            codes.update(zip(missing, made, strict=True))
            _note_command(folder)
        return [_loaded(codes[i], module) for i, module in enumerate(modules)]


def compile_module(ir: str, names: list[str], **options: Any) -> Compiled:
    """What compile_modules returns of one module."""
    return compile_modules([(ir, names)], **options)[0]


def _made(generator: _Generator, entry: tuple[Module, str]) -> bytes:
    """What the cache keeps of a module, now also under the path of its entry."""
    module, path = entry
    code = generator.image(module)
    _write(path, code)
    return code


def _loaded(code: bytes, module: Module) -> Compiled:
    _, names = module
    if not _image.is_image(code):
        return _compiler().link(code, names)
    try:
        image = _image.Image(code, len(names))
    except OSError:  # LLVM may have other ways to executable memory
        return _linked([module])[0]
    return image.addresses, image


def _linked(modules: list[Module]) -> list[Compiled]:
    compiler = _compiler()
    codes = compiler.generate(_Generator.object_code, modules)
    return [compiler.link(code, names) for code, (_, names) in zip(codes, modules, strict=True)]


def load(ir: str, names: list[str]) -> None:
    """Loads LLVM, and compiles a module for the sake of later ones, unless it is loaded."""
    with _lock:
        _image.host_key()  # remembers it
        if _state is None:
            _compiler().generator.image((ir, names))


def _compiler() -> _Compiler:
    global _state
    if _state is None:
        _state = _Compiler()
    return _state
