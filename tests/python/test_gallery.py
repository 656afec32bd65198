"""The programs of examples/gallery: compiled with default settings they give what NumPy gives, and
make their pictures."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

import numpy as np
import pytest
from test_examples import EXAMPLES, number

GALLERY = EXAMPLES / "gallery"
_SPEC = importlib.util.spec_from_file_location(
    "gallery", EXAMPLES.parent / "scripts" / "gallery.py"
)
assert _SPEC and _SPEC.loader
gallery = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(gallery)
ORDER = [program.stem for program in gallery.programs()]

# The largest difference from NumPy's result over its largest element. Without a tolerance the
# results have NumPy's bits.
TOLERANCE = {
    "binomial_tree": 1e-13,
    "bootstrap": 1e-13,
    "develop": 1 / 255,  # of rounding to 8 bits
    "epidemic": 1e-12,
    "kmeans": 1e-12,
    "mcmc": 1e-12,
    "mlp": 1e-10,
    "nbody": 1e-12,
    "option_prices": 1e-11,
    "spectrogram": 1e-12,
    "wave": 1e-12,
}


def test_every_program_is_listed() -> None:
    programs = {path.stem for path in GALLERY.glob("*.py")} - {"show"}
    assert programs == set(ORDER) and len(ORDER) == len(programs) >= 12
    assert set(TOLERANCE) <= programs


@pytest.mark.parametrize("name", ORDER)
def test_programs(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    image = pytest.importorskip("PIL.Image")
    program = GALLERY / f"{name}.py"
    # scripts/test.sh builds the site of what the programs leave here.
    folder = gallery.folder_of(program) if "RUNE_DOCS_GALLERY" in os.environ else tmp_path
    text = gallery.run(program, folder, "--seconds", "0")
    assert number(r"difference +(\S+) of", text) <= TOLERANCE.get(name, 0)
    assert number(r"NumPy +([\d.]+) ms", text) > 0
    assert number(r"rune_jit +([\d.]+) ms", text) > 0
    assert "as one program" in text
    picture = np.asarray(image.open(folder / f"{name}.png").convert("L"))
    assert picture.shape == (480, 640) and picture.std() > 5


@pytest.mark.parametrize("name", ORDER)
def test_programs_are_short_and_plain(name: str) -> None:
    source = (GALLERY / f"{name}.py").read_text()
    assert 30 <= len(source.splitlines()) <= 100
    assert len(re.findall(r"^@rune_jit\.jit$", source, re.MULTILINE)) == 1
    assert re.match(r'"""[^\n]+\.\n\n', source) or re.match(r'"""[^\n]+\?\n\n', source)
