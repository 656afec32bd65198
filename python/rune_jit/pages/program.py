"""The page of a lowered program: the user's lines, the kernels that compute them, and the
reasons."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from rune_jit.pages import document, drawing
from rune_jit.pages.document import colour, escape
from rune_jit.pages.drawing import Box, Edge
from rune_jit.pages.source import Block, blocks
from rune_jit.pages.units import nbytes, ns, percent

_MOST_LINES = 8  # of a box in the picture
_MANY = 30  # with more items, only their titles are shown at first
# Nodes that boxes do not show, because they are index arithmetic or parts of other nodes.
_MOVEMENT = re.compile(
    r"%\d+ = (const_scalar|vconst|expand|reshape|permute|shrink|pad|flip|contiguous)\b"
)
_LONGEST_LINE = 64


class Program(NamedTuple):
    """The contents of a page. `about` is _core.Lowered.describe()."""

    about: dict[str, Any]
    function: Callable[..., Any] | None  # the user's
    inputs: list[str]  # the user's names of the inputs
    kernels: list[str]  # text of the Lowered IR, by launch
    graph: str
    schedule: str
    # By target: the name and source of each program, or why there is none.
    texts: dict[str, list[tuple[str, str]] | str]

    @property
    def items(self) -> list[dict[str, Any]]:
        return self.about["items"]  # type: ignore[no-any-return]


def page(program: Program) -> str:
    about = program.about
    name = about["name"] or "program"
    parts = [
        f"<h1>{escape(name)}</h1>",
        f'<p class="note">lowered for {escape(about["device"])}; nothing has been run, times are'
        " estimates</p>",
        _cards(program),
        _source(program),
        _picture(program),
        *(_kernel(program, number) for number in range(len(program.items))),
        _other_texts(program),
        document.section(
            "Intermediate representations",
            document.folded("graph, after its passes", document.code(program.graph))
            + document.folded("schedule", document.code(program.schedule)),
        ),
    ]
    return document.document(f"{name}: rune_jit", "\n".join(parts))


def _cards(program: Program) -> str:
    items, about = program.items, program.about
    return document.cards(
        [
            ("kernels", str(sum(_is_kernel(item) for item in items))),
            ("estimated time", ns(about["estimated_ns"])),
            ("scalar operations", f"{sum(item['flops'] for item in items):,.0f}"),
            ("read", nbytes(sum(item["bytes_read"] for item in items))),
            ("written", nbytes(sum(item["bytes_written"] for item in items))),
            ("peak of memory", nbytes(about["peak_bytes"])),
        ]
    )


def _is_kernel(item: dict[str, Any]) -> bool:
    return item["kind"] in ("kernel", "library", "loops")


def _label(number: int) -> str:
    return f"K{number}"


def _chip(program: Program, number: int) -> str:
    name = program.items[number]["name"]
    return (
        f'<a class="chip {colour(number)}" href="#k{number}" title="{escape(name)}"'
        f' data-kernel="{number}">{_label(number)}</a>'
    )


# The source.


def _by_line(program: Program) -> dict[str, list[int]]:
    """The items that compute each line of the user's source."""
    found: dict[str, list[int]] = {}
    for number, item in enumerate(program.items):
        places = [location for _, _, location in item["nodes"]] or [item["location"]]
        for place in dict.fromkeys(filter(None, places)):
            found.setdefault(place, []).append(number)
    return found


def _source(program: Program) -> str:
    by_line = _by_line(program)
    found = blocks(program.function, by_line)
    content = "".join(_block(program, block, by_line) for block in found)
    if not content:
        content = "<p>The source of this function cannot be read.</p>"
    note = "A line has the colour of the kernel that computes it; point at one to see its parts."
    return document.section("Source", content, "source", note)


def _block(program: Program, block: Block, by_line: dict[str, list[int]]) -> str:
    name = os.path.basename(block.file)
    rows = []
    for number, line in enumerate(block.lines, block.first):
        kernels = by_line.get(f"{name}:{number}", [])
        lit = f" lit {colour(kernels[0])}" if kernels else ""
        mark = f' data-kernel="{" ".join(map(str, kernels))}"' if kernels else ""
        chips = "".join(_chip(program, k) for k in kernels[:3])
        if len(kernels) > 3:
            rest = ", ".join(_label(k) for k in kernels[3:])
            chips += f'<span class="dim" title="{rest}">+{len(kernels) - 3}</span>'
        rows.append(
            f'<div{mark}><span class="at mono">{number}</span><span class="by">{chips}</span>'
            f'<span class="line mono{lit}">{escape(line)}</span></div>'
        )
    title = f'<p class="note mono">{escape(block.file)}</p>'
    return f'{title}<div class="source">{"".join(rows)}</div>'


# The picture.


def _picture(program: Program) -> str:
    about = program.about
    values = about["values"]
    boxes: list[Box] = []
    edges: list[Edge] = []
    writer: dict[int, int] = {}  # by value: the box that makes it
    first_item = 0
    read = {v for item in program.items for v in item["reads"]}
    for value in sorted(read):
        of = values.get(value, {})
        if of.get("input") is not None:
            writer[value] = len(boxes)
            boxes.append(Box(_input_name(program, of["input"]), [_type_of(of)], "plain"))
        elif of.get("is_constant"):
            writer[value] = len(boxes)
            boxes.append(Box("constant", [_type_of(of)], "plain"))
    first_item = len(boxes)
    for number, item in enumerate(program.items):
        boxes.append(_item_box(program, number, item))
    for number, item in enumerate(program.items):
        box = first_item + number
        for value in item["reads"]:
            if value in writer:
                kept = values.get(value, {})
                is_input = writer[value] < first_item
                edges.append(Edge(writer[value], box, "" if is_input else _type_of(kept)))
        joined = {edge.start for edge in edges if edge.end == box}
        for earlier in item["after"]:
            if first_item + earlier not in joined:
                edges.append(Edge(first_item + earlier, box, ""))
        for value in item["writes"]:
            writer[value] = box
    for position, value in enumerate(about["outputs"]):
        box = len(boxes)
        boxes.append(Box(f"result {position}", [_type_of(values.get(value, {}))], "plain"))
        if value in writer:
            edges.append(Edge(writer[value], box, ""))
    svg, height = drawing.draw(boxes, edges)
    return document.section(
        "Kernels and what they pass on",
        document.zoomed(svg, int(min(max(height, 200), 760))),
        "picture",
        "The wheel zooms, dragging moves, a click on a kernel goes to its description.",
    )


def _item_box(program: Program, number: int, item: dict[str, Any]) -> Box:
    lines = [f"{ns(item['estimated_ns'])}, {nbytes(_traffic(item))}"] if _is_kernel(item) else []
    computing = [text for _, text, _ in item["nodes"] if not _MOVEMENT.match(text)]
    most = _MOST_LINES if len(program.items) <= _MANY else 1
    lines += computing[:most]
    if (more := len(computing) - most) > 0:
        lines.append(f"... and {more} more")
    short = [x if len(x) <= _LONGEST_LINE else x[: _LONGEST_LINE - 3] + "..." for x in lines]
    title = f"{_label(number)} {item['name']}"
    return Box(title, short, f"shape {colour(number)}", str(number), f"#k{number}")


def _input_name(program: Program, position: int) -> str:
    known = program.inputs
    name = known[position] if position < len(known) else f"input {position}"
    return name.removeprefix("argument ")


def _type_of(value: dict[str, Any]) -> str:
    return f"{value['dtype']}{value['shape']}" if value else ""


def _traffic(item: dict[str, Any]) -> float:
    return item["bytes_read"] + item["bytes_written"]  # type: ignore[no-any-return]


# One kernel.


def _kernel(program: Program, number: int) -> str:
    item = program.items[number]
    lines = dict.fromkeys(filter(None, [loc for _, _, loc in item["nodes"]] or [item["location"]]))
    parts = [
        f"<h3>{_chip(program, number)} {escape(item['name'])}"
        f' <span class="dim">{escape(item["kind"])} on {escape(item["device"])}'
        f"{', ' if lines else ''}{escape(', '.join(lines))}</span></h3>"
    ]
    if _is_kernel(item):
        parts.append('<div class="columns">')
        parts.append(f"<div>{_roofline(number, item)}<p>{escape(_position(item))}</p></div>")
        parts.append(f"<div>{_buffers(program, item)}</div></div>")
    parts.append(_fusions(program, number))
    is_short = len(item["text"]) < 4000 and len(program.items) <= _MANY
    parts.append(document.folded("loops and decisions", document.code(item["text"]), is_short))
    parts += _texts(program, number)
    return (
        f'<section class="kernel {colour(number)}" id="k{number}" data-kernel="{number}">'
        f"{''.join(parts)}</section>"
    )


def _roofline(number: int, item: dict[str, Any]) -> str:
    moved, flops, time = _traffic(item), item["flops"], item["estimated_ns"]
    if not (moved and flops and time and item["peak_bytes_per_ns"]):
        return ""
    points = [(_label(number), flops / moved, flops / time, colour(number))]
    return drawing.roofline(points, item["peak_flops_per_ns"], item["peak_bytes_per_ns"])


def _position(item: dict[str, Any]) -> str:
    moved, flops, time = _traffic(item), item["flops"], item["estimated_ns"]
    text = f"About {ns(time)}: {flops:,.0f} operations, {nbytes(moved)} moved."
    if not (moved and time and item["peak_bytes_per_ns"]):
        return text
    rate, share = moved / time, moved / time / item["peak_bytes_per_ns"]
    arithmetic = flops / time / item["peak_flops_per_ns"]
    text += (
        f" That is {rate:.1f} GB/s, {percent(share)} of the limit for data of this size, and"
        f" {flops / time:.1f} GFLOP/s, {percent(arithmetic)} of the limit."
    )
    if max(share, arithmetic) < 0.1:
        return text + " Neither limit is near: starting the kernel takes most of the time."
    nearer = "Memory" if share > arithmetic else "Arithmetic"
    return text + f" {nearer} is the nearer limit."


def _buffers(program: Program, item: dict[str, Any]) -> str:
    values = program.about["values"]
    rows = []
    for how in ("reads", "writes"):
        for value in item[how]:
            of = values.get(value, {})
            size = nbytes(of["bytes"]) if of else ""
            rows.append([how, f"%{value}", _owner(program, value), _type_of(of), size])
    return document.table(
        ["access", "value", "which is", "type", "size"], rows, [False] * 4 + [True]
    )


def _owner(program: Program, value: int) -> str:
    of = program.about["values"].get(value, {})
    if of.get("input") is not None:
        return _input_name(program, of["input"])
    if of.get("is_constant"):
        return "a constant"
    outputs = program.about["outputs"]
    if value in outputs:
        return f"result {outputs.index(value)}"
    by = [_label(k) for k, item in enumerate(program.items) if value in item["writes"]]
    return f"temporary of {by[0]}" if by else "temporary"


def _fusions(program: Program, number: int) -> str:
    """The values that were fused into a kernel, the values that were not, and the reasons."""
    computed = {v: k for k, item in enumerate(program.items) for v, _, _ in item["nodes"]}
    item = program.items[number]
    own = {v for v, _, _ in item["nodes"]} | {*item["writes"]}
    rows = []
    for fusion in program.about["fusions"]:
        producer, consumer = fusion["producer"], fusion["consumer"]
        if producer not in own and consumer not in own:
            continue
        other = computed.get(consumer if producer in own else producer)
        who = _label(other) if other is not None and other != number else ""
        rows.append(
            [
                "fused" if fusion["taken"] else "not fused",
                f"%{producer} into %{consumer}",
                who,
                fusion["kind"],
                fusion["reason"],
                ns(fusion["ns"]),
                nbytes(fusion["bytes"]),
            ]
        )
    if not rows:
        return ""
    rows.sort(key=lambda row: row[0] == "fused")
    headers = ["", "values", "with", "kind", "why", "time saved", "memory saved"]
    table = document.table(headers, rows, [False] * 5 + [True] * 2)
    refused = sum(row[0] == "not fused" for row in rows)
    title = f"neighbours: {len(rows) - refused} fused, {refused} not"
    return document.folded(title, table, refused > 0 and len(program.items) <= _MANY)


def _texts(program: Program, number: int) -> list[str]:
    found = []
    launch = sum(_is_kernel(item) for item in program.items[:number])
    item = program.items[number]
    if not _is_kernel(item):
        return []
    if launch < len(program.kernels):
        found.append(document.folded("Lowered IR", document.code(program.kernels[launch])))
    for target, texts in program.texts.items():
        if isinstance(texts, str):
            continue
        text = _text_of(program, target, item)
        if text is not None:
            found.append(document.folded(f"source for {target}", document.code(text)))
    return found


def _text_of(program: Program, target: str, item: dict[str, Any]) -> str | None:
    """The text of a kernel for a target, if its name identifies its program there."""
    texts = program.texts[target]
    assert not isinstance(texts, str)
    if target == program.about["target"] and item["program"] is not None:
        number: int = item["program"]
        return texts[number][1]
    named = [text for name, text in texts if name == item["name"]]
    return named[0] if len(named) == 1 else None


def _other_texts(program: Program) -> str:
    """The texts that no kernel above shows, because a target divides the program in another way."""
    parts = []
    for target, texts in program.texts.items():
        if isinstance(texts, str):
            parts.append(f"<p>{escape(target)}: {escape(texts)}</p>")
            continue
        if target == program.about["target"]:
            continue
        shown = {item["name"] for item in program.items if _is_kernel(item)}
        names = [name for name, _ in texts]
        rest = [(name, t) for name, t in texts if name not in shown or names.count(name) > 1]
        for name, text in rest:
            parts.append(document.folded(f"{target}: {name}", document.code(text)))
    if not parts:
        return ""
    note = "Kernels that are divided in another way there, and targets that cannot run the program."
    return document.section("Sources for other targets", "".join(parts), "texts", note)
