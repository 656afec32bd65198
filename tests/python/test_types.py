"""mypy finds the types of a user's program: the results of `jit(f)`, of Arrays and of the public
functions. typed_program.py says in comments what it shall find."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("typed_program.py")
PACKAGE = Path(__file__).resolve().parents[2] / "python"


def checked(tmp_path: Path) -> dict[int, list[str]]:
    """By line of the program: the types and the errors' codes that mypy reports."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--config-file="]
    command += [f"--cache-dir={tmp_path}", "--show-error-codes", str(PROGRAM)]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE)}
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert "rror: " not in result.stderr, result.stderr
    found: dict[int, list[str]] = {}
    for line in result.stdout.splitlines():
        where = re.search(r"typed_program\.py:(\d+): (note|error): (.*)", line)
        if where is None:
            # The generated stub need not pass strict checks.
            assert "_core.pyi:" in line or re.match(r"Found \d+ errors? in", line), line
            continue
        number, kind, text = int(where.group(1)), where.group(2), where.group(3)
        if revealed := re.search(r'Revealed type is "(.*)"', text):
            found.setdefault(number, []).append(
                re.sub(r"\b(?:\w+\.)+(?=\w)", "", revealed.group(1))
            )
        elif kind == "error":
            code = re.search(r"\[([\w-]+)\]$", text)
            found.setdefault(number, []).append("error: " + (code.group(1) if code else text))
    return found


def test_types_of_a_program(tmp_path: Path) -> None:
    found = checked(tmp_path)
    lines = PROGRAM.read_text().splitlines()
    wanted: dict[int, list[str]] = {}
    for number, line in enumerate(lines, start=1):
        if comment := re.search(r"  # (?:: (.*)|error: (.*))$", line):
            revealed, codes = comment.groups()
            wanted[number] = [revealed] if revealed else [f"error: {c}" for c in codes.split(", ")]
    assert len(wanted) > 50
    different = {
        f"{number}: {lines[number - 1].strip()}": found.get(number)
        for number in sorted({*wanted, *found})
        if sorted(set(found.get(number, []))) != sorted(set(wanted.get(number, [])))
    }
    assert different == {}
