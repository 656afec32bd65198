"""The code blocks of the documentation's pages, and how they are run.

A comment before a block says what is special about it (it is invisible on the page):

    <!-- test: raises ValueError -->      the block raises this
    <!-- test: needs cuda -->             without the device, its name is replaced by "cpu"
    <!-- test: library torch -->          without the library, the block is compiled only
    <!-- test: output -->                 the block is what the block before printed; ... is any
    text

A page's blocks share their names, in order. They are run from a file with the page's lines, so that
functions have their source and tracebacks name the page's lines."""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import importlib.util
import io
import re
import types
from pathlib import Path

import rune_jit

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r"(?:<!-- test: (.*?) -->\n+)?^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_MARKS = {"", "raises", "needs", "library", "output"}


@dataclasses.dataclass
class Block:
    """A fenced block of a page: where it begins, what its comment says, what is in it."""

    line: int
    language: str
    mark: str
    argument: str
    text: str


def pages() -> list[Path]:
    """All pages with fenced code."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if blocks(path)]


def blocks(path: Path) -> list[Block]:
    text, found = path.read_text(), []
    for match in _BLOCK.finditer(text):
        mark, _, argument = (match.group(1) or "").partition(" ")
        if mark not in _MARKS:
            raise ValueError(f"{path.name}: cannot understand `test: {match.group(1)}`")
        line = text[: match.start(3)].count("\n")
        found.append(Block(line, match.group(2), mark, argument, match.group(3)))
    return found


def run(path: Path, folder: Path) -> int:
    """Runs a page's blocks; how many there were. Raises AssertionError for what a page promises and
    does not hold."""
    found = [b for b in blocks(path) if b.language == "python" or b.mark == "output"]
    text = [""] * (path.read_text().count("\n") + 1)
    for block in found:
        block.text = _on_this_machine(block)
        if block.language == "python":
            lines = block.text.splitlines()
            text[block.line : block.line + len(lines)] = lines
    source = folder / f"{path.stem}.py"
    source.write_text("\n".join(text))
    module = types.ModuleType(f"page_{path.stem}")
    printed = ""
    for block in found:
        if block.mark == "output":
            _check_output(f"{path.name}:{block.line}", block.text, printed)
            continue
        code = compile("\n" * block.line + block.text, str(source), "exec")
        if block.mark == "library" and importlib.util.find_spec(block.argument) is None:
            continue
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            _execute(f"{path.name}:{block.line}", block, code, module)
        printed = stream.getvalue()
    return len(found)


def _on_this_machine(block: Block) -> str:
    if block.mark == "needs" and block.argument not in rune_jit.devices():
        return block.text.replace(f'"{block.argument}"', '"cpu"')
    return block.text


def _execute(place: str, block: Block, code: types.CodeType, module: types.ModuleType) -> None:
    if block.mark != "raises":
        exec(code, vars(module))
        return
    try:
        exec(code, vars(module))
    except Exception as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        assert block.argument in names, f"{place} raises {names[0]}: {error}"
    else:
        raise AssertionError(f"{place} raises nothing")


def _check_output(place: str, wanted: str, printed: str) -> None:
    checker = doctest.OutputChecker()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert checker.check_output(wanted, printed, flags), f"{place}: the block printed\n{printed}"
