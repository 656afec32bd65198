"""The page of a program (`Lowered.to_html`): every kernel, the user's lines, and nothing from
outside."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import profiled_programs as programs
import pytest
from page_checks import Checker, check_page

import rune_jit
from rune_jit.pages import drawing, source
from rune_jit.pages.drawing import Box, Edge


def page_of(lowered: rune_jit.Lowered, tmp_path: Path) -> tuple[str, Checker]:
    path = tmp_path / "program.html"
    lowered.to_html(path)
    page = path.read_text(encoding="utf-8")
    return page, check_page(page)


def helper(x: Any) -> Any:
    return np.tanh(x) * 3


def example(x: Any, w: Any) -> Any:
    # a comment with <b> & "quotes"
    y = helper(x @ w)
    z = np.sort(y, axis=0)
    return z - z.mean(axis=1, keepdims=True), w.sum()


X, W = np.ones((40, 30), np.float32), np.ones((30, 20), np.float32)


def test_every_kernel_appears(tmp_path: Path) -> None:
    lowered = rune_jit.jit(example, device="cpu").lower(X, W)
    page, checker = page_of(lowered, tmp_path)
    items = lowered._core.describe()["items"]
    kernels = [item for item in items if item["kind"] == "kernel"]
    assert len(kernels) == len(lowered.kernels) >= 3
    for number, item in enumerate(items):
        assert f"k{number}" in checker.identities
        assert f"K{number} {item['name']}" in checker.text
        assert html.escape(item["text"]) in page
    for text in lowered.kernels:
        assert html.escape(text) in page
    for target in ("cpu", "cuda", "metal"):
        assert f"source for {target}" in checker.text
    for _, text in lowered._core.texts("cpu"):
        assert html.escape(text) in page
    assert html.escape(lowered.graph) in page and html.escape(lowered.schedule) in page
    assert "numpy.sort" in checker.text


def test_lines_have_the_kernels_that_compute_them(tmp_path: Path) -> None:
    lowered = rune_jit.jit(example, device="cpu").lower(X, W)
    page, _ = page_of(lowered, tmp_path)
    rows = re.findall(r'<div( data-kernel="([\d ]+)")?><span class="at mono">(\d+)</span>', page)
    shown = {int(line): set(map(int, k.split())) for _, k, line in rows}
    items = lowered._core.describe()["items"]
    expected: dict[int, set[int]] = {}
    for number, item in enumerate(items):
        for _, _, location in item["nodes"]:
            expected.setdefault(int(location.rpartition(":")[2]), set()).add(number)
    assert expected
    assert {line: kernels for line, kernels in shown.items() if kernels} == expected
    first = example.__code__.co_firstlineno
    assert set(range(first, first + 5)) <= set(shown)
    assert helper.__code__.co_firstlineno + 1 in shown  # a line of another function


def test_what_the_user_wrote_is_escaped(tmp_path: Path) -> None:
    page, _ = page_of(rune_jit.jit(example, device="cpu").lower(X, W), tmp_path)
    assert (
        "<b>"
        not in page.partition("</style>")[2]
        .replace('<div class="cards"><div><b>', "")
        .split("<section", 1)[1]
    )
    assert "a comment with &lt;b&gt; &amp; &quot;quotes&quot;" in page


def test_reasons_why_neighbours_are_apart(tmp_path: Path) -> None:
    lowered = rune_jit.jit(example, device="cpu").lower(X, W)
    _, checker = page_of(lowered, tmp_path)
    fusions = lowered._core.describe()["fusions"]
    assert fusions
    explained = lowered.explain()
    for fusion in fusions:
        assert fusion["reason"] in explained
        assert fusion["reason"] in checker.text


def test_the_facts_are_those_of_explain() -> None:
    lowered = rune_jit.jit(example, device="cpu").lower(X, W)
    about, costs = lowered._core.describe(), lowered.cost_analysis()
    assert sum(item["flops"] for item in about["items"]) == costs["flops"]
    assert sum(item["bytes_read"] for item in about["items"]) == costs["bytes_read"]
    assert about["peak_bytes"] == costs["peak_bytes"]
    explained = lowered.explain()
    for item in about["items"]:
        assert item["text"] in explained


@pytest.mark.parametrize(
    "make",
    [
        lambda: rune_jit.jit(programs.unrolled, device="cpu").lower(np.ones(10), 3),
        lambda: rune_jit.jit(programs.elementwise, device="metal").lower(np.ones(9, np.float32)),
        lambda: rune_jit.jit(lambda x: x[0] + 1).lower(np.ones((2, 2))),
        lambda: rune_jit.jit(programs.elementwise, device="cpu", dynamic={"x": {0: "n"}}).lower(
            np.ones(10)
        ),
        lambda: rune_jit.jit(loops, device="cpu").lower(np.ones((50, 50))),
        lambda: rune_jit.jit(exec_function(), device="cpu").lower(np.ones(3)),
        lambda: rune_jit.jit(programs.elementwise, device="cpu").lower(np.ones(0)),
    ],
)
def test_other_programs(make: Any, tmp_path: Path) -> None:
    lowered = make()
    _, checker = page_of(lowered, tmp_path)
    for number, item in enumerate(lowered._core.describe()["items"]):
        assert f"K{number} {item['name']}" in checker.text


def loops(a: Any) -> Any:
    for i in range(1, 50):
        a[i] = a[i] + a[i - 1] * 0.5
    return a


def exec_function() -> Any:
    """One whose source cannot be read."""
    names: dict[str, Any] = {}
    exec("def unknown(x):\n    return x * 2 + 1", names)
    return names["unknown"]


def test_float64_has_no_text_for_metal(tmp_path: Path) -> None:
    _, checker = page_of(rune_jit.jit(programs.elementwise).lower(np.ones(3)), tmp_path)
    assert "metal: jit: cannot hold argument 0 of dtype float64" in checker.text


def test_notebooks_show_it_in_a_frame() -> None:
    lowered = rune_jit.jit(programs.elementwise, device="cpu").lower(np.ones(3))
    frame = lowered._repr_html_()
    srcdoc = re.fullmatch(
        r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts" [^>]*></iframe>', frame
    )
    assert srcdoc
    check_page(html.unescape(srcdoc[1]))


def test_boxes_stand_below_what_they_follow() -> None:
    boxes = [Box(str(i), ["a line"] * i, "plain") for i in range(5)]
    edges = [Edge(0, 1, "f32[3]"), Edge(1, 2, ""), Edge(0, 2, ""), Edge(3, 2, ""), Edge(2, 4, "")]
    svg, height = drawing.draw(boxes, edges)
    tops = [float(y) for y in re.findall(r'<rect class="plain" x="[\d.]+" y="([\d.]+)"', svg)]
    for edge in edges:
        assert tops[edge.start] + boxes[edge.start].height < tops[edge.end]
    assert max(top + box.height for top, box in zip(tops, boxes, strict=True)) <= height
    assert drawing.draw([], [])[1] >= 0


def test_sources_of_files_that_are_gone() -> None:
    assert (
        source.blocks(None, ["nowhere.py:3", "<string>:1", "", "profiled_programs.py:999999"]) == []
    )
    (block,) = source.blocks(None, ["profiled_programs.py:1"])
    assert block.first == 1 and block.lines[0].startswith('"""Functions that test_profile.py')
