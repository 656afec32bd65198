"""Writes docs/conformance.md from the reports of scripts/array_api_tests.sh.

report.py REPORTS_FOLDER SKIPS_FILE SUITE_CHECKOUT EXAMPLES OUTPUT
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

_RUNS = {
    "rune_jit.numpy": "eager",
    "jitted_namespace": "each function wrapped in `rune_jit.jit`",
}
# tests/numpy_suite/report.py writes this section and what follows it. They are kept.
_OTHER_SECTION = "# NumPy's own tests"
_OUTCOMES = ("passed", "failed", "skipped", "xfailed", "xpassed")
_HEAD = """# Conformance to the Python array API standard

These are the results of the standard's public test suite
([data-apis/array-api-tests](https://github.com/data-apis/array-api-tests), commit {commit}) for
`rune_jit.numpy`: version 2024.12 of the standard, {examples} examples for each test, NumPy {numpy},
Python {python}. This command, which is given a checkout of the suite, writes this part of the file:

    EXAMPLES={examples} scripts/array_api_tests.sh SUITE_CHECKOUT

The suite runs twice. The first run calls the functions of `rune_jit.numpy` directly. The second run
wraps each of them in `rune_jit.jit`, which traces and compiles a program for the arrays of each
call (tests/array_api/jitted_namespace.py). Operators and methods of arrays run compiled programs in
both runs.

| run | {outcomes} |
|---|{rules}|
{rows}
"""
_FALLBACKS = """
## What is not compiled under `jit`

In the second run, at least one call of each of these functions could not be compiled: an operation
of it cannot be traced, or the shape of its result depends on data. NumPy ran such a call
(`fallback="silent"`). If `jit` raised ConcretizationError, the call ran without `jit`.

{names}
"""


def _rows(reports: dict[str, dict]) -> str:
    rows = []
    for module, name in _RUNS.items():
        summary = reports[module]["summary"]
        rows.append(f"| {name} | " + " | ".join(str(summary.get(o, 0)) for o in _OUTCOMES) + " |")
    return "\n".join(rows)


def _skips_of_file(path: Path) -> list[tuple[str, int]]:
    """(reason, number of tests) for each comment of the skips file after the first."""
    skips: list[tuple[str, int]] = []
    for block in path.read_text().split("\n\n")[1:]:
        lines = block.strip().splitlines()
        reason = " ".join(line[2:] for line in lines if line.startswith("# "))
        skips.append((reason, sum(line.startswith("array_api_tests") for line in lines)))
    return skips


def _skips_of_suite(report: dict) -> Counter[str]:
    """Reasons that the suite itself gives for skipping tests."""
    reasons: Counter[str] = Counter()
    for test in report["tests"]:
        for stage in ("setup", "call"):
            text = test.get(stage, {}).get("longrepr", "")
            if test["outcome"] == "skipped" and "Skipped: " in text:
                reason = text.split("Skipped: ", 1)[1].strip("')\n ").split("\n")[0]
                if "--skips-file" not in reason:
                    reasons[f"{test['nodeid'].removeprefix('array_api_tests/')}: {reason}"] += 1
    return reasons


def _failures(reports: dict[str, dict]) -> list[str]:
    return [
        f"- {_RUNS[module]}: `{test['nodeid']}`"
        for module, report in reports.items()
        for test in report["tests"]
        if test["outcome"] in ("failed", "error")
    ]


def _git(folder: str) -> str:
    command = ["git", "-C", folder, "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main(folder: str, skips: str, suite: str, examples: str, output: str) -> None:
    reports = {m: json.loads((Path(folder) / f"{m}.json").read_text()) for m in _RUNS}
    text = _HEAD.format(
        commit=_git(suite),
        examples=examples,
        numpy=np.__version__,
        python=platform.python_version(),
        outcomes=" | ".join(_OUTCOMES),
        rules="|".join("---" for _ in _OUTCOMES),
        rows=_rows(reports),
    )
    failures = _failures(reports)
    text += "\n## Failures\n\n" + ("\n".join(failures) or "None.") + "\n"
    text += "\n## Skips\n\n"
    text += "tests/array_api/skips.txt lists tests that NumPy does not pass either:\n\n"
    text += "".join(f"- {count} tests: {reason}\n" for reason, count in _skips_of_file(Path(skips)))
    text += "\nThe suite itself skips these tests:\n\n"
    text += "".join(
        f"- `{reason}`\n" for reason in sorted(_skips_of_suite(reports["rune_jit.numpy"]))
    )
    names = sorted(set((Path(folder) / "fallbacks.txt").read_text().split()))
    text += _FALLBACKS.format(names=", ".join(f"`{name}`" for name in names) or "None.")
    path = Path(output)
    other = path.read_text().partition(f"\n{_OTHER_SECTION}\n") if path.exists() else ("", "", "")
    path.write_text(text + "".join(other[1:]))


if __name__ == "__main__":
    main(*sys.argv[1:])
