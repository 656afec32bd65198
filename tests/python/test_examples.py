"""The examples run and print what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from devices import devices

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run_example(name: str, *arguments: str) -> str:
    no_fallback = ("-W", "error::rune_jit.JitFallbackWarning")
    result = subprocess.run(
        [sys.executable, *no_fallback, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, f"{pattern} is not in\n{text}"
    return float(found.group(1))


@pytest.mark.parametrize("device", devices("cpu"))
def test_photo(device: str, tmp_path: Path, full: bool) -> None:
    image = pytest.importorskip("PIL.Image")
    if device == "metal" and not full:
        pytest.skip("takes a minute on the emulator (--full)")
    text = run_example("photo.py", "--device", device, "--out", str(tmp_path))
    # The transcendental functions of the tone curve round differently: one step of 255 at most.
    assert number(r"difference +at most (\d+) of 255", text) <= 1
    assert number(r"NumPy +([\d.]+) ms", text) > 0
    assert number(r"first call +([\d.]+) ms", text) > number(r"warm call +([\d.]+) ms", text)
    assert 1 <= number(r"kernels +(\d+)", text) <= 8
    before, after, edges = (
        np.asarray(image.open(tmp_path / f"{name}.png")) for name in ("before", "after", "edges")
    )
    assert before.shape == after.shape == (427, 640, 3)
    assert edges.shape == (425, 638)
    assert after.std() > before.std()  # the tone curve adds contrast
    # Edges are where the picture changes: few pixels of the sky, many of the roof.
    assert edges[:40, 300:].mean() < 5 < 20 < edges[100:150, 120:320].mean()


@pytest.mark.parametrize("device", devices("cpu"))
def test_gpu(device: str, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    sizes = ("--size", "96", "--steps", "60")
    text = run_example("gpu.py", "--device", device, *sizes, "--out", str(tmp_path))
    assert number(r"difference +at most (\S+)", text) <= 1e-5
    assert number(r"us a step\nNumPy +(\d+)", text) > 0
    before, after = (number(rf"([\d.]+) {when}", text) for when in ("before", "after"))
    assert abs(before - after) < 1e-3 * before  # no water is lost
    picture = np.asarray(image.open(tmp_path / "water.png"))
    assert picture.shape == (96, 96, 3) and picture[..., 1].std() > 10


@pytest.mark.parametrize("device", devices("cpu"))
def test_digits(device: str) -> None:
    text = run_example("digits.py", "--device", device)
    assert number(r"NumPy +([\d.]+)% right", text) > 93
    assert number(r"rune_jit +([\d.]+)% right", text) > 93
    assert number(r"agreement +([\d.]+)%", text) == 100
    assert number(r"differ by at most (\S+)", text) < 1e-5
    assert number(r"kernels +(\d+)", text) <= 4  # at most one a layer, and softmax


def test_show_source() -> None:
    text = run_example("show_source.py")
    for expected in (
        "==== graph",
        "reduce_axis max axes=[1] %0 : f32[128,1]",
        "==== schedule",
        "stage Map",
        "==== kernels",
        "kernel @",
        "==== Metal source",
        "#include <metal_stdlib>",
        "==== LLVM IR",
        "define void @",
        "==== costs",
        "kernels        1",
        "==== explained",
    ):
        assert expected in text
