"""Programs in files that have the names of modules of Python's library."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = """
import numpy as np
import rune_jit

RATE = 1.0


def scaled(x):
    return x * RATE


@rune_jit.jit
def program(x, steps):
    for _ in range(steps):
        x = np.sin(x) + 1
    return scaled(x)
"""


@pytest.mark.parametrize("name", ["wave", "queue", "no_module_of_python"])
def test_what_a_file_is_called_does_not_matter(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{name}.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(name)
    try:
        assert module.__file__ == str(tmp_path / f"{name}.py")
        x = np.ones(1000)
        for rate in (1.0, 5.0):
            module.RATE = rate
            wanted = module.program.__wrapped__(x, 50)
            np.testing.assert_allclose(module.program(x, 50), wanted, rtol=1e-12)
        assert "is a loop of the program" in module.program.explain()
    finally:
        del sys.modules[name]
