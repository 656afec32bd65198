"""docs/dev/adding_an_op.md: its recipes name the files that their changes touch, and work.

tests/recipes/ holds the change of each recipe as a patch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# By patch: the heading of its recipe.
RECIPES = {
    "scalar_op": "A scalar operation",
    "node": "A node with a lowering of its own",
    "rewrite_rule": "A rewrite rule",
    "target": "A target",
}


def named_files(heading: str) -> list[str]:
    """The files in the table below a heading."""
    text = (ROOT / "docs/dev/adding_an_op.md").read_text()
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, heading
    cells = re.findall(r"^\| (`[^|]*) \|", section.group(1), re.MULTILINE)
    return [file for cell in cells for file in re.findall(r"`([^`]+)`", cell)]


def patch(name: str) -> Path:
    return ROOT / "tests/recipes" / f"{name}.patch"


def touched_files(name: str) -> list[str]:
    return re.findall(r"^\+\+\+ b/(.*)$", patch(name).read_text(), re.MULTILINE)


def test_every_patch_has_a_recipe() -> None:
    assert {path.stem for path in (ROOT / "tests/recipes").iterdir()} == set(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_name_the_files_that_they_touch(name: str) -> None:
    assert sorted(named_files(RECIPES[name])) == sorted(touched_files(name))


def test_a_scalar_operation_takes_at_most_four_places() -> None:
    assert len([file for file in named_files("A scalar operation") if "tests/" not in file]) <= 4


def test_no_switch_over_scalar_operations_has_a_default() -> None:
    """So that -Werror=switch names the switches that a new operation has to be added to."""
    for path in [*ROOT.glob("cpp/**/*.cpp"), *ROOT.glob("cpp/**/*.h")]:
        text = path.read_text()
        for match in re.finditer(
            r"^( *)switch \([^\n]*\) \{\n(.*?)^\1\}", text, re.MULTILINE | re.DOTALL
        ):
            body = match.group(2)
            assert not ("case AluOp::" in body and "default:" in body), f"{path}: {match.group(0)}"


def apply(name: str, tree: Path) -> None:
    command = ["git", "apply", "-C1", str(patch(name))]
    subprocess.run(
        command, cwd=tree, check=True, env={**os.environ, "GIT_CEILING_DIRECTORIES": "/"}
    )


def copy_tree(tree: Path) -> None:
    for folder in ("cpp", "docs", "metal", "python", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / folder, tree / folder, ignore=ignored)
    for file in ("CMakeLists.txt", "CMakePresets.json", "README.md"):
        shutil.copy(ROOT / file, tree / file)


@pytest.mark.parametrize("name", RECIPES)
def test_patches_apply(name: str, tmp_path: Path) -> None:
    for file in touched_files(name):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / file).exists():  # not a file that the recipe adds
            shutil.copy(ROOT / file, tmp_path / file)
    apply(name, tmp_path)


@pytest.mark.full
def test_patched_tree_builds_and_computes(tmp_path: Path) -> None:
    """With all of the changes at once."""
    copy_tree(tmp_path)
    for name in RECIPES:
        apply(name, tmp_path)
    build = tmp_path / "build"
    options = [
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
        "-DRUNE_BUILD_TOOLS=ON",
    ]
    pybind11 = pytest.importorskip("pybind11")
    options += [
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dpybind11_DIR={pybind11.get_cmake_dir()}",
    ]
    subprocess.run(["cmake", "-S", tmp_path, "-B", build, *options], check=True)
    subprocess.run(
        ["cmake", "--build", build, "-j2", "--target=_core", "--target=rune-opt"], check=True
    )
    (core,) = build.glob("_core*.so")
    shutil.copy(core, tmp_path / "python/rune_jit")
    env = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "python"),
        "RUNE_OPT": str(build / "rune-opt"),
    }
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    tests = ["tests/python/test_scalar_ops.py", "tests/python/test_nodes.py"]
    subprocess.run(
        [*pytest_, *tests, "-k", "softplus or position or every"], cwd=tmp_path, env=env, check=True
    )
    program = tmp_path / "exp.ir"
    program.write_text(
        "graph { %0 = placeholder index=0 : f32[4] %1 = unary exp %0 : f32[4] return %1 }"
    )
    render = [build / "rune-opt", program, "--target=opencl", "--render=opencl"]
    text = subprocess.run(render, capture_output=True, text=True, check=True).stdout
    assert "__kernel" in text
    lit = [sys.executable, "-m", "lit.main", "-q", str(tmp_path / "tests/ir/simplify")]
    subprocess.run(
        lit, cwd=tmp_path, env={**env, "RUNE_LIT_OUTPUT": str(build / "lit")}, check=True
    )
