"""The programs of examples/gallery, and what they leave when they run.

RUNE_DOCS_GALLERY names a folder in which that is kept for the next build of the site."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import runpy
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import rune_jit

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
    """Runs a program, which leaves its picture in the folder, and returns and leaves its output.
    It runs in this process: what it imports takes longer than what it computes."""
    printed = io.StringIO()
    argv, path = sys.argv, sys.path
    sys.argv = [str(program), "--out", str(folder), *arguments]
    sys.path = [str(GALLERY), *path]
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error", rune_jit.JitFallbackWarning)
            runpy.run_path(str(program), run_name="__main__")
    finally:
        sys.argv, sys.path = argv, path
    lines = printed.getvalue().splitlines(keepends=True)
    output = "".join(line for line in lines if not line.startswith("wrote "))
    (folder / "output.txt").write_text(output)
    return output


def kept(program: Path) -> tuple[Path, str]:
    """A program's picture and output. Runs it if they are not there."""
    folder = folder_of(program)
    if not (folder / "output.txt").exists():
        run(program, folder)
    return folder / f"{program.stem}.png", (folder / "output.txt").read_text()
