"""The common parts of all pages. All texts from outside go through `escape`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def escape(text: object) -> str:
    """Text as HTML, also within attributes."""
    return html.escape(str(text), quote=True)


def document(title: str, body: str) -> str:
    """A whole page. `body` is HTML."""
    import importlib.resources  # slow

    files = importlib.resources.files("rune_jit.pages")
    style = files.joinpath("page.css").read_text(encoding="utf-8")
    script = files.joinpath("page.js").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<main>\n{body}\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def in_frame(page: str) -> str:
    """A whole page as a part of another one, such as a notebook, without sharing its styles."""
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts"'
        f' style="width: 100%; height: 720px; border: 0"></iframe>'
    )


def section(title: str, content: str, identity: str = "", note: str = "") -> str:
    attribute = f' id="{escape(identity)}"' if identity else ""
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section{attribute}>\n<h2>{escape(title)}</h2>{below}\n{content}\n</section>"


def cards(pairs: Iterable[tuple[str, str]]) -> str:
    """A row of figures with captions."""
    items = "".join(
        f"<div><b>{escape(figure)}</b><span>{escape(meaning)}</span></div>"
        for meaning, figure in pairs
    )
    return f'<div class="cards">{items}</div>'


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[bool],
    bars: Sequence[float] = (),
) -> str:
    """A table of texts. Columns in `numbers` are aligned to the right. `bars`: a share for each
    row, drawn behind its first cell."""
    head = "".join(
        f"<th{' class=number' if is_number else ''}>{escape(header)}</th>"
        for header, is_number in zip(headers, numbers, strict=True)
    )
    lines = []
    for i, row in enumerate(rows):
        cells = []
        for j, (cell, is_number) in enumerate(zip(row, numbers, strict=True)):
            style = ""
            if bars and j == 0:
                share = 100 * min(max(bars[i], 0), 1)
                style = f' class="bar" style="--share: {share:.1f}%"'
            elif is_number:
                style = " class=number"
            cells.append(f"<td{style}>{escape(cell)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def folded(title: str, content: str, is_open: bool = False) -> str:
    """Content that a click shows."""
    return (
        f"<details{' open' if is_open else ''}><summary>{escape(title)}</summary>"
        f"{content}</details>"
    )


def code(text: str) -> str:
    return f"<pre><code>{escape(text)}</code></pre>"


def zoomed(svg: str, height: int) -> str:
    """A picture that the wheel zooms and dragging moves."""
    return (
        f'<div class="zoom"><div class="picture" style="height: {height}px">{svg}</div>'
        '<div class="buttons"><button data-zoom="1.4" aria-label="zoom in">+</button>'
        '<button data-zoom="0.714" aria-label="zoom out">\N{MINUS SIGN}</button>'
        '<button data-zoom="0">fit</button></div></div>'
    )


def colour(number: int) -> str:
    """The CSS class for the colour of a kernel. There are twelve colours, which repeat."""
    return f"c{number % 12}"
