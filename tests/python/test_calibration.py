"""Figures of the machine for the cost model: measured, kept, and used."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import numpy as np
import pytest

import rune_jit
from rune_jit import _core
from rune_jit.backends import calibration as _calibration

FIGURES = {"bandwidth_bytes_per_ns": 20.0, "launch_ns": 100.0}
MEASURED = {"bandwidth_bytes_per_ns": 35.0, "launch_ns": 80.0}


@pytest.fixture
def core(monkeypatch):
    """A stand-in for the core that counts measurements and keeps the figures it is given; `end`
    does what is due when the process ends."""

    def measure():
        stand_in.measurements += 1
        return dict(stand_in.measured)

    def end():
        for call, *args in stand_in.at_exit:
            call(*args)
        stand_in.at_exit.clear()

    stand_in = types.SimpleNamespace(
        measurements=0,
        measured=MEASURED,
        used=None,
        at_exit=[],
        end=end,
        cpu_figures=lambda: dict(FIGURES),
        measure_cpu=measure,
        set_cpu_figures=lambda figures: setattr(stand_in, "used", figures),
    )
    monkeypatch.setattr(_calibration, "_core", stand_in)
    monkeypatch.setattr(
        _calibration.atexit, "register", lambda *call: stand_in.at_exit.append(call)
    )
    return stand_in


def test_one_process_measures_and_the_next_reads(core, tmp_path):
    _calibration._apply("", str(tmp_path))
    assert (core.measurements, core.used) == (1, MEASURED)
    (file,) = tmp_path.iterdir()  # nothing temporary is left
    core.used = None
    _calibration._apply("", str(tmp_path))
    assert (core.measurements, core.used) == (1, MEASURED)
    assert file.name.startswith("figures-")


def test_the_next_processes_keep_the_best_of_each_figure(core, tmp_path):
    file = tmp_path / "figures"
    busy = {"bandwidth_bytes_per_ns": 10.0, "launch_ns": 160.0}
    mixed = {"bandwidth_bytes_per_ns": 12.0, "launch_ns": 79.0}  # 79 is 80 within the noise
    best = {"bandwidth_bytes_per_ns": 35.0, "launch_ns": 80.0}
    core.measured = busy
    _calibration._apply(str(file), "")
    core.end()
    assert core.measurements == 1
    for measured, used in [(MEASURED, busy), (mixed, best), (busy, best), (busy, best)]:
        _calibration._apply(str(file), "")
        assert core.used == used
        core.measured = measured
        core.end()
    assert core.measurements == 5
    _calibration._apply(str(file), "")
    core.end()
    assert core.measurements == 5
    os.utime(file, (0, file.stat().st_mtime - 2 * 24 * 3600))
    for _ in range(2):  # once a day
        _calibration._apply(str(file), "")
        core.end()
        assert core.measurements == 6


def test_another_process_that_measured_meanwhile_counts(core, tmp_path):
    file = tmp_path / "figures"
    for _ in range(2):
        _calibration._apply(str(file), "")
    figures = {"bandwidth_bytes_per_ns": 40.0, "launch_ns": 90.0}
    key = file.read_text().splitlines()[0]
    _calibration.store(file, key, _calibration.Kept(figures, 3))
    core.end()
    best = {"bandwidth_bytes_per_ns": 40.0, "launch_ns": 80.0}
    assert _calibration.load(file, key) == _calibration.Kept(best, 4)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("35.0", "many"),
        lambda text: text.replace("35.0", "-1"),
        lambda text: text.replace("35.0", "nan"),
        lambda text: text.replace("35.0", "inf"),
        lambda text: "another processor\n" + text.split("\n", 1)[1],
        lambda text: text + "unknown=1\n",
    ],
)
def test_a_damaged_file_is_measured_again(core, tmp_path, damage):
    file = tmp_path / "figures"
    _calibration._apply(str(file), "")
    whole = file.read_text()
    file.write_text(damage(whole))
    _calibration._apply(str(file), "")
    assert core.measurements == 2
    assert file.read_text() == whole


def test_figures_that_cannot_be_kept_are_not_measured(core, tmp_path):
    (tmp_path / "file").write_text("")
    _calibration._apply(str(tmp_path / "file" / "figures"), "")
    assert (core.measurements, core.used) == (0, None)


def test_off_measures_and_writes_nothing(core, tmp_path):
    _calibration._apply("off", str(tmp_path))
    assert (core.measurements, core.used, list(tmp_path.iterdir())) == (0, None, [])


def test_tests_run_with_the_built_in_figures():
    assert _core.calibration_options()[0] == "off"


PROGRAM = """
import sys, numpy as np, rune_jit
from rune_jit import _core
assumed = _core.cpu_figures()
run = rune_jit.jit(lambda x: x + 1)
assert run(np.arange(3.0)).tolist() == [1, 2, 3]
used = _core.cpu_figures()
assert used.keys() == assumed.keys()
for name, value in used.items():
    assert assumed[name] / 4.5 <= value <= assumed[name] * 4.5, (name, value)
print(used)
"""


def test_a_process_measures_before_its_first_program(tmp_path):
    def run():
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "RUNE_JIT_CALIBRATION": str(tmp_path / "here")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = run()
    kept = (tmp_path / "here").read_text()
    assert "measurements=1" in kept
    assert run() == first  # and measures when it ends
    assert "measurements=2" in (tmp_path / "here").read_text()


def test_a_figure_must_be_positive_and_finite():
    figures = _core.cpu_figures()
    for value in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="calibration: cannot use launch_ns"):
            _core.set_cpu_figures({**figures, "launch_ns": value})
    assert _core.cpu_figures() == figures


def test_a_slower_machine_has_higher_estimates():
    x = np.ones(1 << 20, np.float32)
    figures = _core.cpu_figures()

    def estimate():
        return rune_jit.jit(lambda x: np.sin(x) + 1).lower(x).cost_analysis()["estimated_ns"]

    before = estimate()
    try:
        slower = {k: v / 2 if k.endswith("_per_ns") else v for k, v in figures.items()}
        _core.set_cpu_figures(slower)
        assert estimate() > 1.5 * before
    finally:
        _core.set_cpu_figures(figures)
    assert estimate() == before
