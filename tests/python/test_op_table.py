"""scripts/op_table.py, with which scripts/test_metal.sh reports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "op_table.py"
RESULTS = """<testsuites><testsuite>
<testcase classname="tests.python.test_ops" name="test_op[metal-add-float32]"/>
<testcase classname="tests.python.test_ops" name="test_op[metal-add-int8]"><failure/></testcase>
<testcase classname="tests.python.test_ops" name="test_op[metal-std of axes-float32]">
<skipped/></testcase>
<testcase classname="tests.python.test_nodes" name="test_node[cast-metal]"/>
<testcase classname="tests.python.test_nodes" name="test_node[pad-metal]"><error/></testcase>
</testsuite></testsuites>"""


def run(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True)


def test_rows_are_operations_and_columns_dtypes(tmp_path: Path) -> None:
    file = tmp_path / "results.xml"
    file.write_text(RESULTS)
    result = run(file)
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["operation", "float32", "int8"]
    assert rows[1] == ["add", "ok", "FAIL"]
    assert rows[2] == ["std", "of", "axes", "-"]
    assert "test_nodes::test_node  1       1       0" in result.stdout


def test_no_results_are_an_error(tmp_path: Path) -> None:
    file = tmp_path / "results.xml"
    file.write_text("<testsuites/>")
    assert run(file).returncode == 1
