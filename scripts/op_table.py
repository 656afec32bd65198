"""Prints which operations passed for which dtypes, from the JUnit file of a pytest run.

    python scripts/op_table.py results.xml

A row is an operation of tests/python/test_ops.py, a column a dtype; below them is a row for each
other test function. Exits with 1 if there are no results.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from xml.etree import ElementTree

_CASE = re.compile(r"test_op\[\w+-(.+)-(\w+)\]")
_MARKS = {"passed": "ok", "failed": "FAIL", "skipped": "-"}


def outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
        for row in [header, *rows]
    ]
    return "\n".join(line.rstrip() for line in lines)


def main(path: str) -> int:
    operations: dict[str, dict[str, str]] = defaultdict(dict)
    others: dict[str, Counter[str]] = defaultdict(Counter)
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name", "")
        match = _CASE.fullmatch(name)
        if match and case.get("classname", "").endswith("test_ops"):
            operations[match[1]][match[2]] = outcome(case)
        else:
            place = case.get("classname", "").rpartition(".")[2] + "::" + name.partition("[")[0]
            others[place][outcome(case)] += 1
    dtypes = sorted({dtype for found in operations.values() for dtype in found})
    rows = [
        [name, *(_MARKS.get(found.get(dtype, ""), "") for dtype in dtypes)]
        for name, found in sorted(operations.items())
    ]
    print(table(["operation", *dtypes], rows))
    print("(ok; FAIL; - not on this device; nothing: not in this sample, --full runs all)\n")
    rows = [[place, *(str(n[kind]) for kind in _MARKS)] for place, n in sorted(others.items())]
    print(table(["other tests", *_MARKS], rows))
    return 0 if operations or others else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
