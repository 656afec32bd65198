"""Writes the section "NumPy's own tests" of docs/conformance.md from the reports of
scripts/numpy_tests.sh.

report.py REPORTS_FOLDER OUTPUT FILE...
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

HEADING = "# NumPy's own tests"
_HEAD = """{heading}

These are the results of NumPy's own tests (NumPy {numpy}, Python {python}). While they run, each
call of one of NumPy's functions that has an array among its arguments is traced by itself and run
as a program, on the interpreter (tests/numpy_suite/jitted_calls.py). NumPy runs the calls that
cannot be traced: those on arrays of objects, text, dates and records, and those whose results have
shapes that depend on data. This command writes this part of the file:

    scripts/numpy_tests.sh

Of the {passed} tests that pass without rune_jit, {percent:.2f} % pass with it. In these tests
{compiled} calls were compiled, and NumPy ran {refused} calls.

| file | tests that pass with NumPy | of these, fail with `jit` |
|---|---|---|
{rows}

## What does not pass

"""


def _reasons(path: Path) -> list[tuple[str, list[str]]]:
    """(reason, patterns of "test: message") in the file."""
    reasons: list[tuple[str, list[str]]] = []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("  "):
            reasons[-1][1].append(line.strip())
        elif line:
            reasons.append((line, []))
    return reasons


def _short(test: str) -> str:
    return re.sub(r"\[.*", "", test.split("::", 1)[1])


def main(folder: str, output: str, *files: str) -> None:
    reports: dict[tuple[str, str], Any] = {}
    for file in files:
        for run in ("plain", "jitted"):
            path = Path(folder) / f"{run}-{file.replace('/', '-')}.json"
            reports[run, file] = json.loads(path.read_text())
    rows, failing = [], {}
    passed = compiled = refused = 0
    for file in files:
        plain, jitted = reports["plain", file], reports["jitted", file]
        good = [test for test, outcome in plain["outcomes"].items() if outcome == "passed"]
        bad = [test for test in good if jitted["outcomes"].get(test) != "passed"]
        failing |= {test: jitted["reasons"].get(test, "did not run") for test in bad}
        rows.append(f"| {file} | {len(good)} | {len(bad)} |")
        passed += len(good)
        compiled += sum(jitted["compiled"].values())
        refused += sum(jitted["refused"].values())
    groups: dict[str, Counter[str]] = {}
    reasons = _reasons(Path(__file__).with_name("reasons.txt"))
    for test, message in failing.items():
        text = f"{test}: {message}"
        found = next((r for r, ps in reasons if any(re.search(p, text, re.S) for p in ps)), None)
        groups.setdefault(found or "Other reasons.", Counter())[_short(test)] += 1
    head = _HEAD.format(
        heading=HEADING,
        numpy=np.__version__,
        python=platform.python_version(),
        percent=100 * (1 - len(failing) / passed),
        passed=passed,
        compiled=compiled,
        refused=refused,
        rows="\n".join(rows),
    )
    sections = []
    for reason in [
        *(r for r, _ in reasons if r in groups),
        *(groups.keys() - dict(reasons).keys()),
    ]:
        tests = groups[reason]
        names = [f"`{name}`" + (f" ({n})" if n > 1 else "") for name, n in sorted(tests.items())]
        sections.append(f"- {reason} {sum(tests.values())} tests: {', '.join(names)}")
    path = Path(output)
    before = path.read_text().split(f"\n{HEADING}\n")[0].rstrip() if path.exists() else ""
    path.write_text(f"{before}\n\n{head}" + "\n".join(sections) + "\n")


main(*sys.argv[1:])
