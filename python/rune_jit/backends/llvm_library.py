"""LLVM as functions: the library that comes with llvmlite, called without llvmlite's modules.

Those wrap far more of it, and importing them takes longer than compiling a program. The functions
are named and declared as in llvmlite, whose minor version is fixed for their sake.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, c_bool, c_char_p, c_int, c_size_t, c_uint, c_uint8, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any

from rune_jit.backends import image as _image

__all__ = ["Library", "LinkElement", "SymbolAddress"]


class LinkElement(ctypes.Structure):
    """What is linked: object code, or an earlier library by its name ("": this process)."""

    OBJECT, LIBRARY = 2, 3
    _fields_ = (("kind", c_uint8), ("value", c_char_p), ("length", c_size_t))


class SymbolAddress(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("address", c_uint64))


_MESSAGE = POINTER(c_char_p)
# Result, then arguments. What ends with _MESSAGE writes a string there, which the caller owns.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "ContextCreate": (c_void_p,),
    "ContextDispose": (None, c_void_p),
    "CopyStringRepOfTargetData": (None, c_void_p, _MESSAGE),
    "CreateLLJITCompiler": (c_void_p, c_void_p, c_bool, c_bool, _MESSAGE),
    "CreateTargetMachine": (
        *(c_void_p, c_void_p, c_char_p, c_char_p, c_char_p),
        *(c_int, c_char_p, c_char_p, c_int, c_int, c_char_p),
    ),
    "CreateTargetMachineData": (c_void_p, c_void_p),
    "DisposeMemoryBuffer": (None, c_void_p),
    "DisposeModule": (None, c_void_p),
    "DisposeString": (None, c_char_p),
    "DisposeTargetData": (None, c_void_p),
    "DisposeTargetMachine": (None, c_void_p),
    "GetBufferSize": (c_size_t, c_void_p),
    "GetBufferStart": (c_void_p, c_void_p),
    "GetDefaultTargetTriple": (None, _MESSAGE),
    "GetHostCPUFeatures": (c_int, _MESSAGE),
    "GetTargetFromTriple": (c_void_p, c_char_p, _MESSAGE),
    "GetVersionInfo": (c_uint,),
    "InitializeNativeAsmParser": (None,),
    "InitializeNativeAsmPrinter": (None,),
    "InitializeNativeTarget": (None,),
    "LLJIT_Dylib_Tracker_Dispose": (c_bool, c_void_p, _MESSAGE),
    "LLJIT_Link": (
        *(c_void_p, c_void_p, c_char_p, POINTER(LinkElement), c_size_t),
        *(POINTER(SymbolAddress), c_size_t, POINTER(SymbolAddress), c_size_t, _MESSAGE),
    ),
    "LoadLibraryPermanently": (c_bool, c_char_p, _MESSAGE),
    "ParseAssembly": (c_void_p, c_void_p, c_char_p, _MESSAGE),
    "SetDataLayout": (None, c_void_p, c_char_p),
    "SetTarget": (None, c_void_p, c_char_p),
    "TargetMachineEmitToMemory": (c_void_p, c_void_p, c_void_p, c_int, _MESSAGE),
    "VerifyModule": (c_bool, c_void_p, _MESSAGE),
}


def _open(path: str) -> int | None:
    """The library's handle; None leaves it to ctypes, which holds the GIL all the while."""
    if sys.platform == "win32":
        return None
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype, dlopen.argtypes = c_void_p, (c_char_p, c_int)
    return dlopen(os.fsencode(path), os.RTLD_NOW)  # type: ignore[no-any-return]


class Library:
    """LLVM's functions as attributes, and those that write a message through `call`."""

    def __init__(self) -> None:
        path = _image.library_path()
        if path is None:
            raise ImportError("llvm: cannot find the package llvmlite, which brings the compiler")
        library = ctypes.CDLL(path, handle=_open(path))
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, f"LLVMPY_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def call(self, name: str, *arguments: Any) -> tuple[Any, str]:
        """The function's result, and the string that it wrote."""
        text = c_char_p()
        result = getattr(self, name)(*arguments, ctypes.byref(text))
        message = text.value.decode() if text.value is not None else ""
        if text:
            self.DisposeString(text)
        return result, message
