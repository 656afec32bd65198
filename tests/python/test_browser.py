"""The pages in Chromium: they look as they should in light and in dark, report no errors, load
nothing, and are not wider than the window."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_pages import W, X, example

import rune_jit

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_BROWSER = next(filter(None, map(shutil.which, _NAMES)), None)
pytestmark = pytest.mark.skipif(
    _BROWSER is None, reason="there is no Chromium (apt-get install chromium)"
)

# Says in the page what has happened to it.
_PROBE = """<script>
const problems = [];
addEventListener("error", e => problems.push(e.message || "cannot load " + e.target.src), true);
addEventListener("unhandledrejection", e => problems.push(String(e.reason)));
for (const kind of ["error", "warn"]) console[kind] = (...what) => problems.push(what.join(" "));
addEventListener("load", () => setTimeout(() => {
  const root = document.documentElement;
  root.dataset.found = JSON.stringify({
    problems,
    loaded: performance.getEntriesByType("resource").map(e => e.name),
    drawings: [...document.querySelectorAll("svg")].map(e => e.getBoundingClientRect().height),
    overflow: root.scrollWidth - root.clientWidth,
  });
}, 100));
</script>"""


def chromium(page: Path, *options: str) -> str:
    command = [str(_BROWSER), "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"]
    command += [f"--user-data-dir={page.parent / 'browser'}", *options, page.as_uri()]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def opened(page: Path, width: int) -> Any:
    """What the probe says of a page."""
    probed = page.with_name(f"probed-{page.name}")
    text = page.read_text(encoding="utf-8")
    probed.write_text(text.replace("<head>", f"<head>{_PROBE}", 1), encoding="utf-8")
    size = f"--window-size={width},1000"
    dom = chromium(probed, "--dump-dom", "--virtual-time-budget=3000", size)
    found = re.search(r'data-found="([^"]*)"', dom)
    assert found, dom[:1000]
    return json.loads(found[1].replace("&quot;", '"').replace("&lt;", "<").replace("&amp;", "&"))


def screenshot(page: Path, scheme: str) -> Any:
    """The pixels of a page, rows x columns x 3."""
    image = pytest.importorskip("PIL.Image")
    path = page.with_name(f"{page.stem}-{scheme}.png")
    setting = f"--blink-settings=preferredColorScheme={'01'[scheme == 'light']}"
    chromium(page, f"--screenshot={path}", "--window-size=1000,1400", "--hide-scrollbars", setting)
    with image.open(path) as opened_image:
        return np.asarray(opened_image.convert("RGB"))


def program_page(folder: Path) -> Path:
    path = folder / "program.html"
    rune_jit.jit(example, device="cpu").lower(X, W).to_html(path)
    return path


def profile_page(folder: Path) -> Path:
    path = folder / "profile.html"
    jitted = rune_jit.jit(example, device="cpu")
    with rune_jit.profile() as profile:
        for _ in range(3):
            jitted(X, W)
    profile.to_html(path)
    return path


PAGES = pytest.mark.parametrize("make", [program_page, profile_page])


@PAGES
def test_pages_load_without_errors(make: Any, tmp_path: Path) -> None:
    page = make(tmp_path)
    for width in (1400, 600):
        found = opened(page, width)
        assert found["problems"] == [] and found["loaded"] == []
        assert len(found["drawings"]) >= 2 and min(found["drawings"]) > 20
        assert found["overflow"] <= 0, width


@PAGES
def test_pages_are_light_and_dark(make: Any, tmp_path: Path) -> None:
    page = make(tmp_path)
    light, dark = screenshot(page, "light"), screenshot(page, "dark")
    assert light.shape == dark.shape == (1400, 1000, 3)
    assert np.median(light) > 230 and np.median(dark) < 50
    for pixels in (light, dark):
        colours = pixels.astype(int)
        # Coloured, not grey: parts of the drawings, and what is of a kernel.
        assert (colours.max(2) - colours.min(2) > 20).mean() > 0.01
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50


def test_what_is_wrong_with_a_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "wrong.html"
    page.write_text(
        "<!DOCTYPE html><html><head></head><body><div style='width:3000px'>wide</div>"
        "<img src='none.png'><script>console.error('first'); nothing.at_all</script></body></html>"
    )
    found = opened(page, 800)
    assert "first" in found["problems"]
    assert any("nothing is not defined" in text for text in found["problems"])
    assert any("none.png" in text for text in [*found["problems"], *found["loaded"]])
    assert found["overflow"] > 2000 and found["drawings"] == []
    assert len(np.unique(screenshot(page, "light").reshape(-1, 3), axis=0)) < 300
