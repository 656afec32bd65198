"""Draws graphs of boxes, in layers from top to bottom."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from rune_jit.pages.document import escape

_GAP, _LAYER_GAP = 24, 46
# The greatest width of rows, unless the picture would become too tall.
_NARROW, _ASPECT = 1100.0, 1.5
_LANE = 10.0  # the width of an edge that crosses a layer
_CHARACTER, _LINE = 6.7, 15  # sizes in a fixed-width font of 11 pixels

_Point = tuple[float, float]


class Box(NamedTuple):
    title: str
    lines: list[str]
    style: str  # CSS classes
    kernel: str = ""  # the kernel's number, for the pointer
    link: str = ""

    @property
    def width(self) -> float:
        longest = max([len(self.title) * 1.12, *map(len, self.lines)])
        return max(60.0, longest * _CHARACTER + 20)

    @property
    def height(self) -> float:
        return 26 + _LINE * len(self.lines) + (4 if self.lines else 0)


class Edge(NamedTuple):
    start: int
    end: int
    text: str


def draw(boxes: list[Box], edges: list[Edge]) -> tuple[str, float]:
    """The picture as SVG, and its height."""
    layers, paths = _layers(len(boxes), edges)
    widths = [box.width for box in boxes]
    heights = [box.height for box in boxes]
    count = max((i for layer in layers for i in layer), default=-1) + 1
    widths += [_LANE] * (count - len(boxes))
    heights += [0.0] * (count - len(boxes))
    area = sum((w + _GAP) * (h + _LAYER_GAP) for w, h in zip(widths, heights, strict=True))
    layers = _wrapped(layers, widths, max(_NARROW, math.sqrt(_ASPECT * area)))
    rows = [sum(widths[i] for i in layer) + _GAP * (len(layer) - 1) for layer in layers]
    whole = max(rows, default=0) + 40
    places: dict[int, tuple[float, float]] = {}
    floors: dict[int, float] = {}  # the lower end of a box's layer
    y = 16.0
    for layer, width in zip(layers, rows, strict=True):
        x = (whole - width) / 2
        tall = max(heights[i] for i in layer)
        for i in layer:
            places[i], floors[i] = (x, y), y + tall
            x += widths[i] + _GAP
            if i >= len(boxes):  # a lane, which a line crosses from top to bottom
                heights[i] = tall
        y += tall + _LAYER_GAP
    height = max(y - _LAYER_GAP, 0) + 16
    parts = [
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path class="head" d="M0 0 L8 4 L0 8 Z"/></marker></defs>'
    ]
    labelled: set[tuple[int, str]] = set()
    labels = []
    for edge, path in zip(edges, paths, strict=True):
        tops = [(places[i][0] + widths[i] / 2, places[i][1]) for i in path]
        points = [(tops[0][0], floors[path[0]])]
        for (x, y), i in zip(tops[1:-1], path[1:-1], strict=True):
            points += [(x, y), (x, y + heights[i])]
        points.append((tops[-1][0], tops[-1][1] - 2))
        parts.append(_line(tops[0][1] + heights[path[0]], points))
        if edge.text and (edge.start, edge.text) not in labelled:
            labels.append(_label(points, edge.text))
        labelled.add((edge.start, edge.text))
    parts += [_box(box, *places[i]) for i, box in enumerate(boxes)]
    parts += labels
    return (
        f'<svg viewBox="0 0 {whole:.0f} {height:.0f}" preserveAspectRatio="xMidYMin meet"'
        f' xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>',
        height,
    )


def _layers(count: int, edges: list[Edge]) -> tuple[list[list[int]], list[list[int]]]:
    """The layers of boxes, and the path of each edge. Each box is below all its predecessors, and
    boxes of a layer are ordered by their predecessors' positions. An edge has a lane in each layer
    that it crosses. Lanes are numbered from `count` on."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for edge in edges:
        before[edge.end].append(edge.start)
        after[edge.start].append(edge.end)
    rank = [0] * count
    missing = [len(b) for b in before]
    ready = [i for i in range(count) if not missing[i]]
    order = []
    while ready:
        i = ready.pop(0)
        order.append(i)
        for j in after[i]:
            rank[j] = max(rank[j], rank[i] + 1)
            missing[j] -= 1
            if not missing[j]:
                ready.append(j)
    for i in reversed(order):  # boxes without predecessors stand just above their readers
        if not before[i] and after[i]:
            rank[i] = min(rank[j] for j in after[i]) - 1
    layers: list[list[int]] = [[] for _ in range(max(rank, default=-1) + 1)]
    for i in range(count):
        layers[rank[i]].append(i)
    paths = []
    before = [[] for _ in range(count)]
    after = [[] for _ in range(count)]
    for edge in edges:
        path = [edge.start]
        for crossed in range(rank[edge.start] + 1, rank[edge.end]):
            path.append(len(before))
            layers[crossed].append(len(before))
            before.append([])
            after.append([])
        path.append(edge.end)
        for i, j in itertools.pairwise(path):
            after[i].append(j)
            before[j].append(i)
        paths.append(path)
    at = {i: float(k) for layer in layers for k, i in enumerate(layer)}
    for _ in range(4):
        for neighbours in (before, after):
            for row in layers if neighbours is before else layers[::-1]:
                row.sort(key=lambda i: _mean([at[j] for j in neighbours[i]], at[i]))
                middle = (len(row) - 1) / 2
                at.update({i: k - middle for k, i in enumerate(row)})
    return [layer for layer in layers if layer], paths


def _wrapped(layers: list[list[int]], widths: list[float], limit: float) -> list[list[int]]:
    """The layers, divided into several rows where they are wider than the limit."""
    found = []
    for layer in layers:
        row: list[int] = []
        width = 0.0
        for i in layer:
            width += widths[i] + _GAP
            if row and width > limit:
                found.append(row)
                row, width = [], widths[i] + _GAP
            row.append(i)
        found.append(row)
    return found


def _mean(values: list[float], default: float) -> float:
    return math.fsum(values) / len(values) if values else default


def _box(box: Box, x: float, y: float) -> str:
    kernel = f' data-kernel="{escape(box.kernel)}"' if box.kernel else ""
    text = [f'<text x="{x + 10:.1f}" y="{y + 17:.1f}">{escape(box.title)}</text>']
    text += [
        f'<text class="mono dim" x="{x + 10:.1f}" y="{y + 34 + _LINE * k:.1f}">'
        f"{escape(line)}</text>"
        for k, line in enumerate(box.lines)
    ]
    drawn = (
        f'<g{kernel}><rect class="{escape(box.style)}" x="{x:.1f}" y="{y:.1f}"'
        f' width="{box.width:.1f}" height="{box.height:.1f}" rx="6"/>{"".join(text)}</g>'
    )
    return f'<a href="{escape(box.link)}">{drawn}</a>' if box.link else drawn


def _line(top: float, points: list[tuple[float, float]]) -> str:
    """A smooth line from top to bottom, which is straight where it crosses a layer."""
    (x0, y0), *rest = points
    path = f"M{x0:.1f} {top:.1f} L{x0:.1f} {y0:.1f}"
    for n, (x1, y1) in enumerate(rest):
        if n % 2:  # within a layer
            path += f" L{x1:.1f} {y1:.1f}"
        else:
            bend = max(14.0, (y1 - y0) / 2)
            path += f" C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"
        x0, y0 = x1, y1
    return f'<path class="edge" d="{path}" marker-end="url(#head)"/>'


def _label(points: list[tuple[float, float]], text: str) -> str:
    (x0, y0), (x1, y1) = points[:2]
    return (
        f'<text class="mono dim halo" text-anchor="middle" x="{(x0 + x1) / 2:.1f}"'
        f' y="{(y0 + y1) / 2 + 4:.1f}">{escape(text)}</text>'
    )


def _grid_line(start: _Point, end: _Point, power: int, anchor: str, label: _Point) -> str:
    """A line of a picture's grid, and the label of its power of ten."""
    return (
        f'<line class="axis" x1="{start[0]:.1f}" y1="{start[1]:.1f}" '
        f'x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>'
        f'<text class="dim" text-anchor="{anchor}" x="{label[0]:.1f}" y="{label[1]:.1f}">'
        f"{10.0**power:g}</text>"
    )


def roofline(points: list[tuple[str, float, float, str]], peak: float, bandwidth: float) -> str:
    """A roofline plot: a device's limits, and kernels as points (name, flops per byte, flops per
    ns, CSS classes). `peak` is in flops per ns, and `bandwidth` in bytes per ns."""
    width, height, left, bottom = 420, 210, 46, 34
    ridge = peak / bandwidth
    xs = [ridge, *(p[1] for p in points)]
    ys = [peak, *(p[2] for p in points)]
    low_x, high_x = math.floor(math.log10(min(xs)) - 0.4), math.ceil(math.log10(max(xs)) + 0.4)
    high_y = math.ceil(math.log10(max(ys)) + 0.1)
    low_y = min(math.floor(math.log10(min(ys)) - 0.2), high_y - 2)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low_x) / (high_x - low_x)
        up = (math.log10(y) - low_y) / (high_y - low_y)
        return left + across * (width - left - 14), height - bottom - up * (height - bottom - 14)

    parts = []
    for power in range(low_x, high_x + 1):
        x, _ = place(10.0**power, 10.0**low_y)
        foot = height - bottom
        parts.append(_grid_line((x, 14), (x, foot), power, "middle", (x, foot + 15)))
    for power in range(low_y, high_y + 1):
        _, y = place(10.0**low_x, 10.0**power)
        parts.append(_grid_line((left, y), (width - 14, y), power, "end", (left - 5, y + 4)))
    # The point where the slope enters the picture, at the left or the lower side.
    start_x = max(10.0**low_x, 10.0**low_y / bandwidth)
    corners = [(start_x, start_x * bandwidth), (ridge, peak), (10.0**high_x, peak)]
    path = " L".join("{:.1f} {:.1f}".format(*place(*corner)) for corner in corners)
    parts.append(f'<path class="roof" d="M{path}"/>')
    for name, x, y, style in points:
        px, py = place(x, y)
        parts.append(
            f'<circle class="shape {escape(style)}" cx="{px:.1f}" cy="{py:.1f}" r="5">'
            f"<title>{escape(name)}</title></circle>"
        )
        side = 'text-anchor="end" x="{:.1f}"' if px > width - 90 else 'x="{:.1f}"'
        at = px - 9 if px > width - 90 else px + 9
        parts.append(f'<text class="halo" {side.format(at)} y="{py + 4:.1f}">{escape(name)}</text>')
    parts.append(
        f'<text class="dim" text-anchor="middle" x="{(left + width) / 2}" y="{height - 4}">'
        "flops for each byte</text>"
        f'<text class="dim" text-anchor="end" x="{width - 14}" y="10">GFLOP/s</text>'
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" style="max-width: {width}px; width: 100%"'
        f' xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
