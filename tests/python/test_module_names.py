"""Programs in files that have the names of modules of Python's library, and that import."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune_jit

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


@pytest.mark.parametrize("way", ["import", "import_module"])
def test_packages_whose_import_a_trace_would_refuse(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / f"of_files_{way}"
    package.mkdir()
    code = "import os.path\nfrom . import {}\nFOUND = os.path.isfile(__file__) and {}.ONE == 1\n"
    (package / "__init__.py").write_text(code.format("rest", "rest"))
    (package / "rest.py").write_text("import os\nONE = 1 + os.path.isfile('/no such file')\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def by_statement(x: Any) -> Any:
        import of_files_import  # type: ignore[import-not-found]

        return x + of_files_import.FOUND

    def by_function(x: Any) -> Any:
        return x + importlib.import_module("of_files_import_module").FOUND

    function = by_statement if way == "import" else by_function
    jitted = rune_jit.jit(function, fallback="error")
    np.testing.assert_array_equal(jitted(np.ones(3)), np.full(3, 2.0))
