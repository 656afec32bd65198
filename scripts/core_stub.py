"""Compares python/rune_jit/_core.pyi with the types that the built extension declares.

    python scripts/core_stub.py [--write]

pybind11-stubgen derives the stub from the signatures in the extension's docstrings. With --write
the script replaces the stub; without, it reports a difference as an error.
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

STUB = Path(__file__).resolve().parents[1] / "python/rune_jit/_core.pyi"


def generate() -> str:
    """The stub of the installed extension, formatted as ruff formats."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pybind11_stubgen", "rune_jit._core", "-o", folder]
        command += ["--exit-code", "--numpy-array-use-type-var"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"core_stub.py: pybind11-stubgen failed:\n{result.stdout}{result.stderr}")
        text = (Path(folder) / "rune_jit/_core.pyi").read_text()
    format_command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(STUB), "-"]
    return subprocess.run(
        format_command, input=text, capture_output=True, text=True, check=True
    ).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the stub")
    arguments = parser.parse_args()
    generated = generate()
    if arguments.write:
        STUB.write_text(generated)
        return
    committed = STUB.read_text()
    if generated != committed:
        sys.stdout.writelines(
            difflib.unified_diff(
                committed.splitlines(keepends=True),
                generated.splitlines(keepends=True),
                "_core.pyi",
                "the built extension",
            )
        )
        sys.exit("core_stub.py: _core.pyi is out of date: run scripts/lint.sh --fix")


if __name__ == "__main__":
    main()
