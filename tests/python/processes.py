"""Python code that runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run_program(
    program: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs the code, which finds the modules that this process finds."""
    path = os.pathsep.join(part for part in sys.path if part)
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def output_of(program: str, *arguments: str, **environment: str) -> str:
    """What the code prints. It must end without an error."""
    done = run_program(program, *arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
