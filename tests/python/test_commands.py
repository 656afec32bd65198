"""`python -m rune_jit doctor` and `inspect`: what they print, their exit codes and their errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rune_jit
from rune_jit.commands import main

PROGRAM = """
import numpy as np
import rune_jit

def scale(x, by=2.0):
    return np.sqrt(x) * by

@rune_jit.jit(device="interpreter")
def jitted(x):
    return x + 1

def branches(x):
    return x if x.sum() > 0 else -x

class Model:
    @staticmethod
    def predict(x):
        return np.exp(x).sum()

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "users_program.py").write_text(PROGRAM)
    (tmp_path / "broken_program.py").write_text("import nothing_of_this_name")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "users_program", raising=False)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main.main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_inspect_explains(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "inspect", "users_program:scale", "--args", "np.ones((10, 20))")
    import users_program

    assert (code, err) == (0, "")
    assert out == rune_jit.jit(users_program.scale).lower(np.ones((10, 20))).explain()
    assert "1 kernels" in out and "f64[10,20]" in out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["f32[100,100]"], "f32[100,100]"),
        (["float64[7]"], "f64[7]"),
        (["bf16[8]"], "bf16[8]"),
        (["i64[5]", "by=f32[5]"], "i64[5]"),
        (["np.zeros((3, 4), np.float32)", "3"], "f32[3,4]"),
        (["x=f64[2]"], "f64[2]"),
        (["f32[]"], "f32[]"),
    ],
)
def test_arguments(
    arguments: list[str], expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "inspect", "users_program.py:scale", "--args", *arguments)
    assert (code, err) == (0, "")
    assert expected in out


def test_jitted_functions_keep_their_options(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("inspect", "users_program:jitted", "--args", "f32[3]")
    assert run(capsys, *arguments)[1].startswith("interpreter:")
    assert run(capsys, *arguments, "--device", "cpu")[1].startswith("cpu:")


def test_inspect_writes_a_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        capsys, "inspect", "users_program:Model.predict", "--args", "f32[50]", "--html", "page.html"
    )
    assert (code, err) == (0, "")
    assert out == f"wrote {folder / 'page.html'}\n"
    assert "return np.exp(x).sum()" in (folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["scale"], 2, "cannot find 'scale' (no function is named)\nhint: module:function"),
        (["nowhere:f"], 2, "cannot find module 'nowhere' (looked in "),
        (["broken_program:f"], 1, "cannot import 'broken_program' (No module named 'nothing_of"),
        (["nowhere.py:f"], 2, "cannot read nowhere.py (No such file or directory)"),
        (["users_program:skale"], 2, "cannot find 'skale' in users_program\nhint: it has Model, "),
        (["users_program:number"], 2, "cannot lower users_program:number (int is not callable)"),
        (["users_program:scale", "--args", "nope"], 2, "cannot understand the argument 'nope' (Na"),
        (["users_program:scale", "--args", "f33[3]"], 2, "hint: a Python expression such as "),
        (["users_program:scale"], 1, "TypeError: missing a required argument: 'x'"),
        (["users_program:scale", "--device", "gpu"], 2, "the devices are 'cpu', 'metal', 'cuda'"),
        (["users_program:branches", "--args", "f32[3]"], 1, "ConcretizationError: bool: cannot"),
        (
            ["users_program:scale", "--args", "f32[3]", "--html", "no/page.html"],
            1,
            "cannot write no/page.html (No such file or directory)",
        ),
    ],
)
def test_refusals(
    arguments: list[str],
    code: int,
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, out, err = run(capsys, "inspect", *arguments)
    assert found == code and out == "" and err.startswith("inspect: ") and message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [[], ["inspekt"], ["inspect"], ["doctor", "--fast"]])
def test_command_lines_that_mean_nothing(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main.main(arguments)
    assert end.value.code == 2
    assert "usage: python -m rune_jit" in capsys.readouterr().err


def test_doctor_finds_nothing_wrong_here(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "doctor")
    assert (code, err) == (0, ""), out
    for expected in [
        f"rune_jit: {rune_jit.__version__}",
        f"numpy: {np.__version__}",
        "cpu: works",
        "compiled programs: ",
        "RUNE_JIT_DEVICE",
        "cores: ",
    ]:
        assert expected in out


def doctor(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rune_jit", "doctor"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_doctor_finds_what_is_wrong(tmp_path: Path) -> None:
    found = doctor(RUNE_JIT_DEVICE="gpu", RUNE_JIT_DEVIEC="cpu", RUNE_JIT_CACHE_DIR=str(tmp_path))
    assert found.returncode == 1, found.stdout + found.stderr
    assert "error: RUNE_JIT_DEVICE=gpu is no device" in found.stdout
    assert "note: RUNE_JIT_DEVIEC is set, but there is no such option" in found.stdout
    assert f"compiled programs: {tmp_path}" in found.stdout


def test_doctor_says_what_missing_drivers_need() -> None:
    found = doctor(RUNE_JIT_CUDA_DRIVER="/nowhere/libcuda.so.1")
    assert "cuda: not available\n" in found.stdout
    assert "cuda: cannot load NVIDIA's driver (/nowhere/libcuda.so.1" in found.stdout
    assert "hint: install NVIDIA's driver" in found.stdout


def test_help_names_the_commands() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "rune_jit", "--help"], capture_output=True, text=True
    )
    assert found.returncode == 0
    assert "python -m rune_jit doctor" in found.stdout and "exit codes" in found.stdout


def test_doctor_tells_of_a_card_without_memory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have its memory: it is a device, and programs cannot run on it now."""

    def has_host_memory(name: str) -> bool:
        if name == "cuda":
            raise MemoryError("cuda: cannot make a context (the device has no memory left)")
        return True

    def fail(device: str) -> str | None:
        return "MemoryError: no memory" if device == "cuda" else None

    monkeypatch.setattr("rune_jit.device.has_host_memory", has_host_memory)
    monkeypatch.setattr("rune_jit.commands.doctor._try", fail)
    assert "cuda" in rune_jit.devices()
    code, out, _ = run(capsys, "doctor")
    assert code == 1
    assert "cuda: does not work" in out and "error: cuda: MemoryError: no memory" in out
