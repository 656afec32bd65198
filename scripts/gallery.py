"""The programs of examples/gallery, and what they leave when they run.

RUNE_DOCS_GALLERY names a folder in which that is kept for the next build of the site."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "examples/gallery"
KEPT = Path(os.environ.get("RUNE_DOCS_GALLERY", ROOT / "build/gallery"))


def programs() -> Iterator[Path]:
    """In the order of examples/gallery/ORDER, which gives their themes."""
    for line in (GALLERY / "ORDER").read_text().splitlines():
        if line and not line.startswith("#"):
            yield GALLERY / f"{line}.py"


def folder_of(program: Path) -> Path:
    """Where a program's picture and output are kept: another folder for other sources."""
    sources = program.read_bytes() + (GALLERY / "show.py").read_bytes()
    return KEPT / hashlib.sha256(sources).hexdigest()[:16]


def run(program: Path, folder: Path, *arguments: str) -> str:
    """Runs a program, which leaves its picture in the folder, and returns and leaves its output."""
    path = os.pathsep.join(p for p in sys.path if p)
    no_fallback = ("-W", "error::rune_jit.JitFallbackWarning")
    result = subprocess.run(
        [sys.executable, *no_fallback, str(program), "--out", str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path},
    )
    if result.returncode:
        raise RuntimeError(f"{program.name} failed:\n{result.stderr}")
    lines = result.stdout.splitlines(keepends=True)
    output = "".join(line for line in lines if not line.startswith("wrote "))
    (folder / "output.txt").write_text(output)
    return output


def kept(program: Path) -> tuple[Path, str]:
    """A program's picture and output. Runs it if they are not there."""
    folder = folder_of(program)
    if not (folder / "output.txt").exists():
        run(program, folder)
    return folder / f"{program.stem}.png", (folder / "output.txt").read_text()
