"""Checks Metal source text with clang, on machines without Metal.

The text is parsed against `tests/metal_stub/metal_stdlib`. With clang 17 or later, in C++ for
OpenCL mode, whose address spaces are Metal's: a pointer without or with a wrong address space, a
write to const memory, `double`, and functions that Metal lacks are errors. An older clang checks
the text as plain C++, without the address spaces.
"""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

STUB = Path(__file__).resolve().parent.parent / "metal_stub"
# Types that C++ for OpenCL knows and Metal does not; and the address space of pointers without one.
FOREIGN = re.compile(r"__generic|'[^']*\blong long\b[^']*'|'[^']*\blong double\b[^']*'")
# Known to Metal only.
ATTRIBUTE = re.compile(r"\[\[kernel, max_total_threads_per_threadgroup\(\d+\)\]\]")
COMMON = ["-nostdinc", "-fsyntax-only", "-isystem", str(STUB), "-Wno-unknown-attributes",
          "-Wno-psabi", "-Wno-unused-command-line-argument"]  # fmt: skip
STRICT = [
    "-x", "clcpp", "-cl-std=clc++2021", "-target", "x86_64-unknown-linux-gnu", "-cl-no-stdinc",
    "-cl-single-precision-constant", "-Xclang",
    "-cl-ext=-all,+cl_khr_fp16,+__cl_clang_non_portable_kernel_param_types,"
    "+__opencl_c_generic_address_space",
    "-Xclang", "-ast-dump",
]  # fmt: skip
PLAIN = ["-x", "c++", "-std=c++17", "-Wno-unknown-pragmas"]


@functools.cache
def clang() -> tuple[str, bool]:
    """The compiler, and whether it can do the strict check. Skips the test without one."""
    for name in ("clang++-19", "clang++-18", "clang++-17", "clang++"):
        path = shutil.which(name)
        if path is None:
            continue
        version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        found = re.search(r"clang version (\d+)", version)
        return path, bool(found) and "Apple" not in version and int(found.group(1)) >= 17
    pytest.skip("no clang++ on this machine to check Metal source with")


def is_strict() -> bool:
    return clang()[1]


_passed: set[str] = set()


def _diagnose(source: str) -> str | None:
    path, strict = clang()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.metal"
        file.write_text(ATTRIBUTE.sub("kernel", source))
        command = [path, *(STRICT if strict else PLAIN), *COMMON, str(file)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if result.returncode != 0:
        return result.stderr.replace(folder + "/", "")
    foreign = [line for line in result.stdout.splitlines() if FOREIGN.search(line)]
    if foreign:
        return "types or pointers that Metal does not have:\n" + "\n".join(foreign[:10])
    return None


def _key(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def check_msl(source: str) -> None:
    """Raises AssertionError with clang's messages if the text is no valid Metal."""
    key = _key(source)
    if key in _passed:
        return
    message = _diagnose(source)
    if message is not None:
        raise AssertionError(f"{message}\n--- source ---\n{source}")
    _passed.add(key)


def check_many(sources: Iterable[str]) -> None:
    """check_msl for many texts in one run of clang; each alone if they do not pass together."""
    fresh = [s for s in sources if _key(s) not in _passed]
    if not fresh:
        return
    include = "#include <metal_stdlib>"
    parts = [include]
    for number, source in enumerate(fresh):
        assert include in source, f"no {include} in the source:\n{source}"
        parts.append(f"namespace source{number} {{\n{source.replace(include, '')}\n}}")
    if _diagnose("\n".join(parts)) is None:
        _passed.update(map(_key, fresh))
        return
    for source in fresh:
        check_msl(source)
