"""What a function does with files and processes happens at each call, also what libraries do."""

from __future__ import annotations

import glob
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

folder = "."
_ONES = np.ones(3)


def _dump() -> None:
    with open(f"{folder}/a", "wb") as file:
        pickle.dump([1], file)


_WRITING: dict[str, Callable[[], Any]] = {
    "numpy.save": lambda: np.save(f"{folder}/a.npy", _ONES),
    "numpy.savez": lambda: np.savez(f"{folder}/a.npz", a=_ONES),
    "numpy.savetxt": lambda: np.savetxt(f"{folder}/a", _ONES),
    "tofile": lambda: _ONES.tofile(f"{folder}/a"),
    "memmap": lambda: np.memmap(f"{folder}/a", float, "w+", shape=(3,)),
    "pickle": _dump,
    "pathlib": lambda: pathlib.Path(f"{folder}/a").write_text("a"),
    "mkdir": lambda: pathlib.Path(f"{folder}/a").mkdir(),
    "makedirs": lambda: os.makedirs(f"{folder}/a", exist_ok=True),
    "shutil": lambda: shutil.copy(__file__, f"{folder}/a"),
    "tempfile": lambda: tempfile.mkstemp(dir=folder)[1],
    "subprocess": lambda: subprocess.run([sys.executable, "-c", f"open({folder + '/a'!r}, 'w')"]),
}


@pytest.mark.parametrize("name", list(_WRITING))
def test_files_are_written_at_each_call(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "folder", str(tmp_path / "made"))
    write = _WRITING[name]

    def f(x: Any) -> Any:
        write()
        return x * 2

    jitted = rune_jit.jit(f, fallback="silent")
    for _ in range(3):
        os.mkdir(folder)
        np.testing.assert_array_equal(jitted(np.ones(2)), [2, 2])
        assert len(os.listdir(folder)) == 1
        shutil.rmtree(folder)


_READING: dict[str, Callable[[], Any]] = {
    "numpy.load": lambda: np.load(f"{folder}/a.npy")[0],
    "numpy.loadtxt": lambda: np.loadtxt(f"{folder}/a.txt"),
    "numpy.fromfile": lambda: np.fromfile(f"{folder}/a.npy", np.uint8).sum(),
    "numpy.memmap": lambda: np.memmap(f"{folder}/a.npy", np.uint8, "r").sum(),
    "json": lambda: json.loads(pathlib.Path(f"{folder}/a.txt").read_text()),
    "listdir": lambda: len(os.listdir(folder)),
    "glob": lambda: len(glob.glob(f"{folder}/*")),
    "iterdir": lambda: len(list(pathlib.Path(folder).iterdir())),
    "getsize": lambda: os.path.getsize(f"{folder}/b"),
    "stat": lambda: os.stat(f"{folder}/b").st_size,
    "exists": lambda: sum(os.path.exists(f"{folder}/{i}") for i in range(4)),
    "getcwd": lambda: len(os.getcwd()),
    "localtime": lambda: time.localtime(time.time() * 1000).tm_sec + time.perf_counter(),
}


@pytest.mark.parametrize("name", list(_READING))
def test_files_are_read_at_each_call(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "folder", str(tmp_path))
    read = _READING[name]
    jitted = rune_jit.jit(lambda x: x + read(), fallback="silent")
    found = set()
    for i in range(4):
        np.save(tmp_path / "a.npy", np.full(1, float(3**i)))
        (tmp_path / "a.txt").write_text(str(i))
        (tmp_path / "b").write_text("a" * i)
        (tmp_path / str(i)).mkdir()
        monkeypatch.chdir(tmp_path / str(i) if i % 2 else tmp_path)
        found.add(float(jitted(np.zeros(1))[0]))
    assert len(found) == (2 if name == "getcwd" else 4)


def test_effects_happen_once_in_the_first_call(tmp_path: pathlib.Path) -> None:
    def f(x: Any, name: str) -> Any:
        os.mkdir(name)
        return x * 2

    jitted = rune_jit.jit(f, fallback="silent")
    for i in range(3):
        assert jitted(np.ones(1), str(tmp_path / str(i)))[0] == 2
    with pytest.raises(FileExistsError):
        jitted(np.ones(1), str(tmp_path / "0"))


def test_imports_are_not_effects() -> None:
    """They read files."""

    def f(x: Any) -> Any:
        import wave  # which no other test uses

        return x * wave.WAVE_FORMAT_PCM

    sys.modules.pop("wave", None)
    jitted = rune_jit.jit(f)
    assert jitted(np.ones(1))[0] == 1 and "as one program" in jitted.explain()


def test_the_error_names_the_event() -> None:
    jitted = rune_jit.jit(lambda x: (np.save("a.npy", _ONES), x)[1], fallback="error")
    with pytest.raises(rune_jit.UnsupportedOpError, match="open: cannot trace what a function"):
        jitted(np.ones(1))
    assert not os.path.exists("a.npy")
