"""Sources that Python warns of when it compiles them: reading them again does not warn again."""

from __future__ import annotations

import importlib.util
import pathlib
import warnings

import numpy as np
import pytest

import rune_jit

SOURCES = {
    "is": "total = total + x[i] if mode is 'plain' else total",
    "assert": "assert (i >= 0, 'positive')\n        total = total + x[i]",
    "escape": "label = '\\d'\n        total = total + x[i]",
    "subscript": "total = total + x[i] * (1.0 if i < 9 else 'text'['a'])",
    "call": "total = total + (x[i] if i < 9 else 3(x))",
    "none": "total = total + x[i] if mode is not None else total",
}


@pytest.mark.parametrize("name", SOURCES)
def test_no_second_warning(name: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / f"warned_{name}.py"
    path.write_text(
        "def f(x, mode='plain'):\n    total = 0.0\n    for i in range(5):\n"
        f"        {SOURCES[name]}\n    return total if float(total) > 0 else x\n"
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings(record=True) as first:
        warnings.simplefilter("always")
        spec.loader.exec_module(module)
    assert bool(first) == (name != "none")
    jitted = rune_jit.jit(module.f)
    with warnings.catch_warnings(record=True) as second:
        warnings.simplefilter("always")
        for _ in range(3):
            assert jitted(np.ones(5)) == 5.0
    assert not [str(x.message) for x in second]
