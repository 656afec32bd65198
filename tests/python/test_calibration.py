"""Figures of the machine for the cost model: measured, kept, and used."""

from __future__ import annotations

import types

import numpy as np
import pytest
from processes import output_of

import rune_jit
from rune_jit import _core
from rune_jit.backends import calibration as _calibration

FIGURES = {"bandwidth_bytes_per_ns": 20.0, "launch_ns": 100.0}
MEASURED = {"bandwidth_bytes_per_ns": 35.0, "launch_ns": 80.0}


@pytest.fixture
def core(monkeypatch):
    """A stand-in for the core that counts measurements and keeps the figures it is given."""

    def measure():
        stand_in.measurements += 1
        return dict(stand_in.measured)

    stand_in = types.SimpleNamespace(
        measurements=0,
        measured=MEASURED,
        used=None,
        options=("", ""),
        calibration_options=lambda: stand_in.options,
        built_in_cpu_figures=lambda: dict(FIGURES),
        measure_cpu=measure,
        set_cpu_figures=lambda figures: setattr(stand_in, "used", figures),
    )
    monkeypatch.setattr(_calibration, "_core", stand_in)
    return stand_in


def test_one_process_measures_and_the_next_reads(core, tmp_path):
    _calibration._apply("", str(tmp_path))
    assert (core.measurements, core.used) == (1, MEASURED)
    (file,) = tmp_path.iterdir()  # nothing temporary is left
    core.used, core.measured = None, FIGURES
    _calibration._apply("", str(tmp_path))
    assert (core.measurements, core.used) == (1, MEASURED)
    assert file.name.startswith("figures-")


def test_calibrate_measures_again_and_keeps_that(core, tmp_path):
    for core.options in [("", str(tmp_path)), (str(tmp_path / "folder" / "figures"), "")]:
        core.measured = MEASURED
        _calibration._apply(*core.options)
        core.measured = {"bandwidth_bytes_per_ns": 31.0, "launch_ns": 90.0}
        assert _calibration.calibrate() == core.measured == core.used
        core.used = None
        _calibration._apply(*core.options)
        assert core.used == core.measured


def test_calibrate_raises_where_figures_cannot_be_kept(core, tmp_path):
    (tmp_path / "file").write_text("")
    core.options = (str(tmp_path / "file" / "figures"), "")
    with pytest.raises(OSError, match="file"):
        _calibration.calibrate()
    core.options = ("off", str(tmp_path / "none"))
    assert _calibration.calibrate() == core.used == MEASURED
    assert not (tmp_path / "none").exists()


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
assumed = _core.built_in_cpu_figures()
assert _core.cpu_figures() == assumed
run = rune_jit.jit(lambda x: x + 1)
assert run(np.arange(3.0)).tolist() == [1, 2, 3]
used = _core.cpu_figures()
assert used.keys() == assumed.keys()
for name, value in used.items():
    assert assumed[name] / 4.5 <= value <= assumed[name] * 4.5, (name, value)
print(used)
if len(sys.argv) > 1:
    print(rune_jit.calibrate())
    assert rune_jit.jit(lambda x: x + 2)(np.arange(3.0)).tolist() == [2, 3, 4]
    assert run(np.arange(3.0)).tolist() == [1, 2, 3]
"""


def test_a_process_measures_before_its_first_program(tmp_path):
    def run(*arguments):
        figures = str(tmp_path / "here")
        return output_of(PROGRAM, *arguments, RUNE_JIT_CALIBRATION=figures).splitlines()

    first = run()
    kept = (tmp_path / "here").read_text()
    assert run() == first
    assert (tmp_path / "here").read_text() == kept
    again, measured = run("calibrate")
    assert [again] == first
    assert run() == [measured]


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
