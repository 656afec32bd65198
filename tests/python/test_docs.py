"""The developer documentation names what exists, and its examples are read by the parsers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import rune_jit

ROOT = Path(__file__).resolve().parents[2]
IR = (ROOT / "docs/dev/ir.md").read_text()
PIPELINE = (ROOT / "docs/dev/pipeline.md").read_text()
ROWS = re.findall(r"^\| (.+) \|$", IR, re.MULTILINE)


def table_of(header: str, macro: str) -> list[tuple[str, str]]:
    """(enumerator, text) of each row of a node table in a header."""
    source = (ROOT / header).read_text()
    rows = re.findall(rf"^ +{macro}\((\w+), \"(\w+)\",", source, re.MULTILINE)
    assert rows
    return rows


NODES = table_of("cpp/graph/node.h", "RUNE_NODE")
INSTRUCTIONS = table_of("cpp/lower/instr.h", "RUNE_INSTR")


def section(title: str) -> str:
    found = re.search(rf"^## {title}.*?(?=^## |\Z)", IR, re.MULTILINE | re.DOTALL)
    assert found, title
    return found.group(0)


@pytest.mark.parametrize(("name", "text"), NODES)
def test_every_node_is_described(name: str, text: str) -> None:
    rows = re.findall(r"^\|(.+?)\|.+\|$", section("The high-level graph"), re.MULTILINE)
    assert any(f"`{text}`" in row and name in row for row in rows)


@pytest.mark.parametrize(("name", "text"), INSTRUCTIONS)
def test_every_instruction_is_described(name: str, text: str) -> None:
    assert f"| `{text}` ({name}) |" in section("The Lowered IR")


def test_every_structure_of_the_schedule_is_described() -> None:
    headers = ("schedule.h", "kernel.h")
    source = "".join((ROOT / "cpp/schedule" / name).read_text() for name in headers)
    names = set(re.findall(r"^(?:struct|enum class) (\w+)", source, re.MULTILINE))
    names -= {"ThreadCombination", "StageKind", "FusionType", "ItemAccesses"}
    assert len(names) > 15
    missing = [name for name in names if f"`{name}`" not in section("The Scheduled IR")]
    assert not missing


def test_every_pass_is_described_in_order() -> None:
    source = (ROOT / "cpp/driver/pipeline.cpp").read_text()
    passes = re.findall(r"^    \{\"(\w+)\", k", source, re.MULTILINE)
    assert len(passes) >= 15
    described = re.findall(r"^\| `(\w+)` \| (?:graph|schedule|lowered)", PIPELINE, re.MULTILINE)
    assert described == passes


def test_every_folder_is_described() -> None:
    folders = {p.parent.relative_to(ROOT).as_posix() for p in (ROOT / "cpp").rglob("*.cpp")}
    folders = {"cpp/backends/*" if "backends" in folder else folder for folder in folders}
    missing = [folder for folder in folders if f"`{folder}`" not in PIPELINE]
    assert not missing


def rune_opt() -> str:
    path = os.environ.get("RUNE_OPT") or shutil.which("rune-opt")
    if not path:
        pytest.skip("rune-opt was not found: name it with RUNE_OPT")
    return path


def examples(title: str) -> list[str]:
    """The example lines of a section's tables."""
    rows = re.findall(r"^\|.*\| `([^`]+)` \|$", section(title), re.MULTILINE)
    assert len(rows) > 20
    return rows


def read(text: str) -> str:
    result = subprocess.run(
        [rune_opt(), "-", "--no-verify"], input=text, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("line", examples("The high-level graph"))
def test_graph_examples_are_read(line: str) -> None:
    position = int(re.match(r"%(\d+) = ", line).group(1))  # type: ignore[union-attr]
    before = "".join(f"  %{i} = placeholder index={i} : f32[4]\n" for i in range(position))
    line = line.replace("[m,n]", "[4,4]")
    assert line in read(f"graph {{\n{before}  {line}\n  return\n}}\n")


@pytest.mark.parametrize("line", examples("The Lowered IR"))
def test_instruction_examples_are_read(line: str) -> None:
    found = re.match(r"%(\d+) = ", line)
    position = int(found.group(1)) if found else 24
    before = "".join(f"  %{i} = const f32(0.0) : f32\n" for i in range(position))
    assert line in read(f"kernel @k grid=1 local=1 {{\n{before}  {line}\n}}\n")


def test_readme_names_the_targets_and_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    for target in rune_jit.targets():
        if target != "test-cores":
            assert f"`{target}`" in readme, target
    assert "pip install '.[examples]' && python examples/photo.py" in readme
    assert "scripts/test.sh" in readme
