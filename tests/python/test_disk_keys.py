"""What decides the object code of a kernel is part of its key in the disk cache: machine code for
one host must not run on another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numpy as np
import pytest
from kernel_text import KERNEL, Text, call

from rune_jit import _core
from rune_jit.backends import llvm


def addition(value: float = 1.0) -> str:
    k = Text(1)
    memory = k.memory("f32", 0, 16, True)
    x = k(f"load {memory} {k.const(0)} : f32x16")
    k.store(memory, k.const(0), k(f"alu add {x} {k.const(value, 'f32', 16)} : f32x16"))
    return _core.render_llvm(str(k))


class Features:
    """Those of a host that lacks one."""

    def __init__(self, text: str) -> None:
        self._text = text

    def flatten(self) -> str:
        return self._text


def fewer_features() -> Any:
    features = llvmlite.binding.get_host_cpu_features().flatten().split(",")
    present = [f for f in features if f.startswith("+")]
    last = present[-1]
    return Features(",".join("-" + f[1:] if f == last else f for f in features))


# Each changes one thing that the code depends on.
CHANGES: dict[str, tuple[Any, str, Callable[[], Any]]] = {
    "host features": (llvmlite.binding, "get_host_cpu_features", fewer_features),
    "host processor": (llvmlite.binding, "get_host_cpu_name", lambda: "another"),
    "LLVM version": (llvmlite.binding, "llvm_version_info", lambda: (1, 2, 3)),
    "llvmlite version": (llvmlite, "__version__", lambda: "0.0.1"),
    "options": (llvm, "_OPTIONS", lambda: {**llvm._OPTIONS, "opt": 1}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_code_of_another_host_is_not_used(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    original = llvm._Compiler.object_code

    def counted(self: Any, ir: str) -> bytes:
        compiled.append(self.host)
        return original(self, ir)

    def run() -> None:
        (address,), keep = llvm.compile_module(addition(), ["k"], cache_dir=str(tmp_path))
        x = np.zeros(16, np.float32)
        call(KERNEL(address), [x])
        np.testing.assert_array_equal(x, 1)
        del keep

    monkeypatch.setattr(llvm._Compiler, "object_code", counted)
    monkeypatch.setattr(llvm, "_state", None)
    run()
    run()
    assert len(compiled) == 1
    with monkeypatch.context() as changed:
        owner, attribute, value = CHANGES[name]
        value = value()
        is_function = callable(getattr(owner, attribute))
        changed.setattr(owner, attribute, (lambda: value) if is_function else value)
        changed.setattr(llvm, "_state", None)
        run()
    assert len(compiled) == 2 and compiled[0] != compiled[1]
    monkeypatch.setattr(llvm, "_state", None)
    run()
    assert len(compiled) == 2
    assert len(list(tmp_path.rglob("*.o"))) == 2


def test_other_code_has_another_key(tmp_path: Path) -> None:
    for ir in (addition(), addition(2.0), addition()):
        llvm.compile_module(ir, ["k"], cache_dir=str(tmp_path))
    assert len(list(tmp_path.rglob("*.o"))) == 2


LOOP = """
import numpy as np
import rune_jit


def fill(first, second, third, fourth):
    for i in range(1, 50):
        fourth[i] = first[i - 1] * 2
        third[i] = fourth[i - 1] + 1
        second[i] = third[i - 1] - 3
        first[i] = second[i - 1] + fourth[i]


print(rune_jit.jit(fill, device="cpu").lower(*(np.zeros(50) for _ in range(4))).graph)
"""


def test_another_process_makes_the_same_program(tmp_path: Path) -> None:
    """Whatever order its sets of names have."""
    (tmp_path / "loop.py").write_text(LOOP)
    graphs = set()
    for seed in range(4):
        done = subprocess.run(
            [sys.executable, str(tmp_path / "loop.py")],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        )
        assert "carry" in done.stdout or "loop_nest" in done.stdout
        graphs.add(done.stdout)
    assert len(graphs) == 1
