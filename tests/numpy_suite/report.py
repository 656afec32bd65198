"""Writes the section "NumPy's own tests" of docs/conformance.md. results.json holds the results of
all files; the reports of scripts/numpy_tests.sh replace those of the files that it ran. Where the
message of a failure is not known, results.json has the reason in its place.

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

These are the results of NumPy's own tests (NumPy {numpy}, Python {python}). Each
call of a NumPy function with an array among its arguments calls the jitted function instead, with
default settings, on the interpreter. The same holds for operators, indexing and methods of arrays
(tests/numpy_suite). This command runs all tests, or those in the given files, and writes this part
of the file:

    scripts/numpy_tests.sh [FILE...]

Of the {passed} tests that pass without rune_jit, {percent:.2f} % pass with it. The last three
columns say how the calls ran: as a program, in segments, or on NumPy.

| file | tests that pass with NumPy | of these, fail with `jit` | program | segments | NumPy |
|---|---|---|---|---|---|
{rows}

## What does not pass

"""
_RESULTS = Path(__file__).with_name("results.json")
_WAYS = ("program", "segments", "NumPy")


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
    return test.partition("[")[0]


def _result(folder: str, file: str) -> dict[str, Any]:
    """The counts of a test file, and its tests that fail only with jit, with their messages."""
    name = f"{file.replace('/', '-')}.json"
    plain, jitted = (
        json.loads((Path(folder) / f"{run}-{name}").read_text()) for run in ("plain", "jitted")
    )
    good = [test for test, outcome in plain["outcomes"].items() if outcome == "passed"]
    bad = [test for test in good if jitted["outcomes"].get(test) != "passed"]
    return {
        "passed": len(good),
        "calls": {way: jitted["calls"].get(way, 0) for way in _WAYS},
        "failing": {
            test.split("::", 1)[1]: jitted["reasons"].get(test, "did not run") for test in bad
        },
    }


def main(folder: str, output: str, *files: str) -> None:
    results = json.loads(_RESULTS.read_text()) if _RESULTS.exists() else {}
    results |= {file: _result(folder, file) for file in files}
    results = dict(sorted(results.items()))
    _RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    failing: list[tuple[str, str]] = []
    rows = []
    for file, result in results.items():
        failing += result["failing"].items()
        cells = [file, result["passed"], len(result["failing"]), *result["calls"].values()]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    passed = sum(result["passed"] for result in results.values())
    groups: dict[str, Counter[str]] = {}
    reasons = _reasons(Path(__file__).with_name("reasons.txt"))
    for test, message in failing:
        text = f"{test}: {message}"
        found = next(
            (r for r, ps in reasons if message == r or any(re.search(p, text, re.S) for p in ps)),
            None,
        )
        groups.setdefault(found or "Other reasons.", Counter())[_short(test)] += 1
    head = _HEAD.format(
        heading=HEADING,
        numpy=np.__version__,
        python=platform.python_version(),
        percent=100 * (1 - len(failing) / passed),
        passed=passed,
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
    print(f"{len(failing)} of {passed} tests of all files fail")
    path.write_text(f"{before}\n\n{head}" + "\n".join(sections) + "\n")


main(*sys.argv[1:])
