"""What is installed, what the source archive holds, and that versions agree."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path, PurePosixPath

import pytest

import rune_jit

ROOT = Path(__file__).resolve().parents[2]


def installed() -> importlib.metadata.Distribution:
    try:
        distribution = importlib.metadata.distribution("rune_jit")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("rune_jit is imported from a folder, not installed")
    if Path(str(distribution.locate_file("rune_jit"))) != Path(rune_jit.__file__).parent:
        pytest.skip("rune_jit is imported from elsewhere than it is installed")
    return distribution


def test_versions_agree() -> None:
    cmake = re.search(r"project\(rune_jit VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    changelog = re.search(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cmake and changelog
    assert cmake.group(1) == changelog.group(1) == rune_jit.__version__


def test_installed_version() -> None:
    assert installed().version == rune_jit.__version__


def test_installed_files() -> None:
    names = [PurePosixPath(str(file)) for file in installed().files or []]
    package = [name for name in names if name.parts[0] == "rune_jit" and name.suffix != ".pyc"]
    folder = ROOT / "python"
    sources = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}
    assert sources <= {name.as_posix() for name in package}
    assert [name for name in package if name.name.startswith("_core") and name.suffix == ".so"]
    for file in ("py.typed", "pages/page.css", "pages/page.js"):
        assert PurePosixPath("rune_jit", file) in package
    others = {name.parts[0] for name in names} - {"rune_jit"}
    assert all(part.endswith(".dist-info") for part in others), others
    assert {name.suffix for name in package} <= {".py", ".pyi", ".so", ".typed", ".css", ".js"}


def test_licence_is_installed() -> None:
    distribution = installed()
    assert distribution.metadata["License-Expression"] == "Apache-2.0"
    assert any(file.name == "LICENSE" for file in distribution.files or [])


def test_requirements() -> None:
    requirements = installed().requires or []
    runtime = {re.split(r"[<>=; ]", text)[0] for text in requirements if "extra ==" not in text}
    assert runtime == {"numpy", "llvmlite", "ml_dtypes", "optree", "platformdirs"}
    extras = set(installed().metadata.get_all("Provides-Extra") or [])
    of_users = {"cuda", "cuda12", "cublas", "cublas12", "dask", "profile", "bench", "examples"}
    assert extras == of_users | {"test", "lint", "docs", "wheel", "dev"}


def test_ci_runs_the_oldest_versions() -> None:
    """The lower bounds of pyproject.toml are what the workflow's `versions` job tests."""
    project = (ROOT / "pyproject.toml").read_text()
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    oldest_python = re.search(r'^requires-python = ">=(.+)"', project, re.MULTILINE)
    assert oldest_python and f'python: "{oldest_python.group(1)}"' in workflow
    for name in ("numpy", "llvmlite"):
        bound = re.search(rf'^  "{name}>=([0-9.]+)', project, re.MULTILINE)
        assert bound and f'{name}: "=={bound.group(1)}.*"' in workflow, name


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python always has the GIL"
)
def test_a_free_threaded_python_turns_the_gil_on() -> None:
    program = "import sys, rune_jit; assert sys._is_gil_enabled()"
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_source_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = pytest.importorskip("scikit_build_core.build")
    monkeypatch.chdir(ROOT)
    archive = tmp_path / build.build_sdist(str(tmp_path))
    with tarfile.open(archive) as tar:
        paths = [PurePosixPath(name) for name in tar.getnames()]
    names = {PurePosixPath(*path.parts[1:]).as_posix() for path in paths}
    wanted = ("CMakeLists.txt", "LICENSE", "README.md", "cpp/alu/alu.def", "metal/CMakeLists.txt")
    assert set(wanted) <= names
    assert "python/rune_jit/calls/jit.py" in names
    assert not [name for name in names if name.startswith(("tests/", "build/", "benchmarks/"))]
