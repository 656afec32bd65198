"""Text of the IRs that random programs make: it reads back as it was, verifies, and however it is
changed, readers refuse it with an error at worst."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutate import REFUSALS, read, texts_of

import rune_jit
from rune_jit import _core


@pytest.mark.parametrize("device", ("cpu", "interpreter"))
@given(seed=st.integers(0, 2**32 - 1))
def test_text_reads_back(device: str, seed: int) -> None:
    for text in texts_of(seed, device):
        printed, violations = _core.reprint(text)
        assert printed == text, f"seed {seed}"
        assert violations == [], f"seed {seed}\n{text}"


def test_graphs_read_back_as_objects() -> None:
    for seed in range(40):
        for text in texts_of(seed, "cpu")[:1]:
            assert str(_core.parse_graph(text)) == text


@given(text=st.text(max_size=200))
def test_any_text_is_refused_or_read(text: str) -> None:
    for start in ("", "graph {\n", "kernel @k grid=1 local=1 {\n", "schedule {\n"):
        read(start + text)


def test_errors_name_line_and_column() -> None:
    text = texts_of(0, "cpu")[0].replace("return", "retrun")
    with pytest.raises(rune_jit.ParseError, match=r"line \d+, column \d+"):
        _core.reprint(text)
    assert rune_jit.InternalError not in REFUSALS


def test_changed_text_never_ends_the_process(tmp_path: Path, full: bool) -> None:
    """In a process of its own, which leaves the text that it was reading."""
    current = tmp_path / "text"
    script = Path(__file__).with_name("mutate.py")
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, str(script), "0", "100000" if full else "4000", str(current)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr[-3000:]}\nreading\n{current.read_text()[:5000]}"
    accepted, refused = (int(word) for word in done.stdout.split() if word.isdigit())
    assert accepted > 0
    assert refused > 0
