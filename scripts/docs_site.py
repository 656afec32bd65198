"""Hooks of mkdocs.yml: pages that are made when the site is built, and links between them.

- Pages outside of docs/ become pages of the site (`OUTSIDE`), and links are rewritten, so that they
  work both in the repository and on the site.
- The programs of examples/gallery run; each has a page with its picture, output and source.
- The table of functions of rune_jit.numpy is written."""

from __future__ import annotations

import ast
import html
import posixpath
import re
from pathlib import Path
from typing import Any

from gallery import GALLERY, ROOT, kept, programs
from mkdocs.structure.files import File

# By path in the repository: the path on the site.
OUTSIDE = {
    "CONTRIBUTING.md": "dev/contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
    **{
        f"benchmarks/{name}": f"benchmarks/{name}"
        for name in (
            "results.md",
            "results.png",
            "npbench.md",
            "loops.md",
            "shapes.md",
            "photo.md",
            "convolution.md",
            "results_cuda.md",
            "dask_arrays.md",
        )
    },
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`(?!\])", re.MULTILINE | re.DOTALL)


def theme_of(program: Path) -> str:
    """The last heading above a program's name in examples/gallery/ORDER."""
    theme = ""
    for line in (GALLERY / "ORDER").read_text().splitlines():
        if line.startswith("# "):
            theme = line[2:]
        if line == program.stem:
            return theme
    raise ValueError(f"{program.name} is not in examples/gallery/ORDER")


def described(program: Path) -> tuple[str, str]:
    """A program's title and what its docstring says after it."""
    doc = ast.get_docstring(ast.parse(program.read_text())) or ""
    title, _, rest = doc.partition("\n")
    return title.rstrip("."), rest.strip()


def page_of(program: Path, output: str) -> str:
    """A program's page."""
    title, rest = described(program)
    source = program.read_text()
    body = source[source.index('"""', 3) + 3 :].strip()
    return (
        f"# {title}\n\n{rest}\n\n![{title}]({program.stem}.png)\n\n"
        "What it printed when this page was made:\n\n"
        f"```text\n{output}```\n\n```python\n{body}\n```\n"
    )


def cards(found: list[Path]) -> str:
    """The gallery's table of contents."""
    lines, theme = [], ""
    for program in found:
        if theme_of(program) != theme:
            theme = theme_of(program)
            lines += ["</div>"] if lines else []
            lines += ["", f"## {theme}", "", '<div class="gallery" markdown="0">']
        title, rest = described(program)
        sentence = html.escape(" ".join(rest.split()).split(". ")[0].rstrip(".") + ".")
        lines.append(
            f'<a href="{program.stem}.html"><img src="{program.stem}.png" alt="" loading="lazy">'
            f"<strong>{html.escape(title)}</strong><span>{sentence}</span></a>"
        )
    return "\n".join([*lines, "</div>"])


def functions_of_numpy() -> str:
    """A table of rune_jit.numpy's functions and their parameters."""
    import inspect

    import rune_jit.numpy as xp

    rows = ["| function | parameters |", "|---|---|"]
    for name in sorted(vars(xp)):
        function = getattr(xp, name)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        signature = inspect.signature(function)
        bare = [
            p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()
        ]
        text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
        rows.append(f"| `{name}` | `{text}` |")
    return "\n".join(rows)


# What mkdocs calls.


def on_config(config: Any) -> Any:
    entries = next(entry["Gallery"] for entry in config.nav if "Gallery" in entry)
    entries += [{described(p)[0]: f"gallery/{p.stem}.md"} for p in programs()]
    return config


def on_files(files: Any, config: Any) -> Any:
    for path, name in OUTSIDE.items():
        if files.get_file_from_path(name) is None:
            files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    for program in programs():
        picture, output = kept(program)
        name = f"gallery/{program.stem}"
        files.append(File.generated(config, f"{name}.png", abs_src_path=str(picture)))
        files.append(File.generated(config, f"{name}.md", content=page_of(program, output)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    site_path = page.file.src_uri
    if site_path == "gallery/index.md":
        page.meta["hide"] = ["toc"]  # the cards get its room
        markdown += cards(list(programs()))
    if site_path.startswith("benchmarks/"):
        page.meta["hide"] = ["toc"]  # wide tables
    if site_path == "api/numpy.md":
        markdown += "\n" + functions_of_numpy() + "\n"
    outside = {name: path for path, name in OUTSIDE.items() if name != "index.md"}
    own_path = outside.get(site_path, f"docs/{site_path}")

    def link(found: re.Match[str]) -> str:
        image, text, target = found.groups()
        path, _, anchor = target.partition("#")
        if not path or ":" in path or site_path.startswith("gallery/"):
            return found.group(0)
        there = posixpath.normpath(posixpath.join(posixpath.dirname(own_path), path))
        on_site = OUTSIDE.get(there, there.removeprefix("docs/"))
        if files.get_file_from_path(on_site) is None:
            if not (ROOT / there).exists():
                raise ValueError(f"{own_path}: cannot link to {target} (there is no such file)")
            return f"`{there}`"  # a file of the repository that is no page
        relative = posixpath.relpath(on_site, posixpath.dirname(site_path) or ".")
        return f"{image}[{text}]({relative}{'#' + anchor if anchor else ''})"

    pieces, end = [], 0
    for block in _CODE.finditer(markdown):  # code stays as it is
        pieces += [_LINK.sub(link, markdown[end : block.start()]), block.group(0)]
        end = block.end()
    return "".join([*pieces, _LINK.sub(link, markdown[end:])])
