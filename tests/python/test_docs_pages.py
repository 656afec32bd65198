"""The documentation's code runs: the blocks of all pages, and the examples in docstrings. Commands
and options that pages name exist."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pages
import pytest

import rune_jit

ROOT = pages.ROOT
PAGES = {path.relative_to(ROOT).as_posix(): path for path in pages.pages()}
MODULES = ("", ".numpy", ".random", ".ir")


def test_there_are_pages() -> None:
    assert {"README.md", "docs/index.md", "docs/control_flow.md", "docs/loops.md"} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", rune_jit.SlowCompilationWarning)  # on a busy machine
        pages.run(PAGES[name], tmp_path)


PAGE = """
```python
print("a", 1)
```

<!-- test: output -->
```text
{output}
```

<!-- test: raises {error} -->
```python
int("{text}")
```
"""


@pytest.mark.parametrize(
    "output, error, text, message",
    [
        ("a ...", "ValueError", "x", None),
        ("b", "ValueError", "x", "the block printed"),
        ("a 1", "TypeError", "x", "raises ValueError"),
        ("a 1", "ValueError", "7", "raises nothing"),
    ],
)
def test_blocks_that_are_wrong_are_found(
    output: str, error: str, text: str, message: str | None, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(output=output, error=error, text=text))
    if message is None:
        assert pages.run(page, tmp_path) == 3
    else:
        with pytest.raises(AssertionError, match=message):
            pages.run(page, tmp_path)


def test_functions_of_a_page_have_their_source(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Text.\n\n```python\nimport inspect\n\n\ndef f(x):\n    return x\n\n\n"
        'assert inspect.getsource(f).startswith("def f")\n```\n'
    )
    assert pages.run(page, tmp_path) == 1


def text_of_all() -> str:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    return "\n".join(path.read_text() for path in found)


def test_commands_name_what_exists() -> None:
    text = text_of_all()
    files = re.findall(
        r"(?:python|bash) ((?:examples|benchmarks|scripts|tests)/\S+\.(?:py|sh))", text
    )
    files += re.findall(r"(?<![\w/])scripts/\w+\.(?:sh|py)", text)
    assert len(files) > 10
    assert [name for name in files if not (ROOT / name).exists()] == []
    project = (ROOT / "pyproject.toml").read_text()
    extras = re.findall(r"pip install [^\n]*\[([\w,]+)\]", text)
    named = {extra for found in extras for extra in found.split(",")}
    assert named >= {"examples", "dev"}
    assert [e for e in named if not re.search(rf"^{e} = \[", project, re.MULTILINE)] == []


def test_variables_exist() -> None:
    named = set(re.findall(r"RUNE_JIT_[A-Z_]+[A-Z]", text_of_all()))
    assert len(named) > 10
    assert [name for name in sorted(named) if name not in rune_jit.options()] == []


# Docstrings.


def public(module_name: str) -> dict[str, object]:
    module = importlib.import_module(f"rune_jit{module_name}")
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    return {n: getattr(module, n) for n in names if not isinstance(getattr(module, n), ModuleType)}


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_described(module: str) -> None:
    missing = [
        name
        for name, value in public(module).items()
        if callable(value) and not inspect.getdoc(value)
    ]
    assert missing == []


# What is made by NumPy's functions of the same names, or has nothing to show.
_NO_EXAMPLE = {"targets", "use_stream", "JitFunction", "Tracer", "InternalError", "CacheInfo"}


def test_functions_have_examples_and_say_what_they_raise() -> None:
    for module in ("", ".random"):
        for name, value in public(module).items():
            if not callable(value) or name in _NO_EXAMPLE or issubclass_of(value, Exception):
                continue
            doc = inspect.getdoc(value) or ""
            assert "Examples:" in doc and ">>> " in doc, name


def issubclass_of(value: object, kind: type) -> bool:
    return isinstance(value, type) and issubclass(value, kind)


def documented_modules() -> list[str]:
    """The modules of the package whose docstrings have examples."""
    package = ROOT / "python/rune_jit"
    return sorted(
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in package.rglob("*.py")
        if re.search(r"^ +>>> ", path.read_text(), re.MULTILINE)
    )


@pytest.mark.parametrize("name", documented_modules())
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(name.removesuffix(".__init__"))
    with np.printoptions(legacy=False):
        outcome = doctest.testmod(module)
    assert outcome.attempted and outcome.failed == 0


def test_sections_name_parameters() -> None:
    """What a docstring lists under `Args:` are the function's parameters, in order."""
    checked = 0
    for path in (ROOT / "python/rune_jit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            section = re.search(
                r"^Args:\n(.*?)(?=^\S|\Z)", ast.get_docstring(node) or "", re.DOTALL | re.MULTILINE
            )
            if section is None:
                continue
            listed = re.findall(r"^    \*{0,2}(\w+):", section.group(1), re.MULTILINE)
            a = node.args
            has = [p.arg for p in (*a.posonlyargs, *a.args) if p.arg != "self"]
            has += [a.vararg.arg] if a.vararg else []
            has += [p.arg for p in a.kwonlyargs] + ([a.kwarg.arg] if a.kwarg else [])
            assert sorted(listed) == sorted(has), f"{path.name}: {node.name}"
            checked += 1
    assert checked > 15
