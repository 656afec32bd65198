"""A profile as a page: tables, and pictures of the memory in use and of the intervals."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rune_jit.pages import document
from rune_jit.pages.document import colour, escape
from rune_jit.pages.units import nbytes, ns
from rune_jit.profiling import tables
from rune_jit.profiling.records import Interval, Memory

if TYPE_CHECKING:
    from rune_jit.profiling.profile import Profile

_WIDTH, _ROW = 1160, 18
# The most intervals of a picture (the longest are shown), and the most points of a curve.
_MOST_INTERVALS = 4000
_MOST_POINTS = 2000


def write(profile: Profile, path: str | os.PathLike[str]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(profile))


def in_frame(profile: Profile) -> str:
    return document.in_frame(page(profile))


def page(profile: Profile) -> str:
    kernels = tables.kernel_table(profile)
    all_ns = sum(kernel.total_ns for kernel in profile.kernels)
    shares = [kernel.total_ns / all_ns if all_ns else 0.0 for kernel in profile.kernels]
    parts = [
        "<h1>Profile</h1>",
        f'<p class="note">{escape(tables.headline(profile))}</p>',
        _cards(profile),
        *(f"<p>{escape(remark)}</p>" for remark in tables.remarks(profile)),
        document.section(
            "Kernels",
            document.table(kernels.headers, kernels.rows, kernels.numbers, shares),
        ),
        document.section("Time", _timeline(profile), note=_TIME_NOTE),
    ]
    for device, use in profile.memory.items():
        if len(use.points):
            title = f"Memory in use on {device}"
            parts.append(document.section(title, _memory(use, profile.seconds * 1e9)))
    parts += [
        document.section(table.title, document.table(table.headers, table.rows, table.numbers))
        for table in tables.other_tables(profile)
    ]
    return document.document("rune_jit profile", "\n".join(parts))


_TIME_NOTE = (
    "One block of rows for each thread: compilations, calls, runs of programs, steps. The wheel"
    " zooms; point at a bar for its name and time."
)


def _cards(profile: Profile) -> str:
    calls = sum(count for count, _ in profile.calls.values())
    peak = max((use.peak for use in profile.memory.values()), default=0)
    return document.cards(
        [
            ("recorded", ns(profile.seconds * 1e9)),
            ("calls of jitted functions", f"{calls:,}"),
            ("in programs", ns(sum(kernel.total_ns for kernel in profile.kernels))),
            ("compilations", f"{len(profile.compilations)}"),
            ("calls on NumPy", f"{sum(row[2] for row in profile.numpy_calls):,}"),
            ("peak of memory in use", nbytes(peak)),
        ]
    )


def _timeline(profile: Profile) -> str:
    """Rows of bars: for each thread a row of calls, one of programs, and one of steps."""
    shown = _intervals(profile)
    left_out = len(shown) - _MOST_INTERVALS
    shown = sorted(shown, key=lambda i: -i.ns)[:_MOST_INTERVALS]
    kinds = ("compilation", "call", "program", "step")
    threads = list(dict.fromkeys(i.thread for i in sorted(shown, key=lambda i: i.begin_ns)))
    names = profile.threads
    end = max([profile.seconds * 1e9, *(i.begin_ns + i.ns for i in shown)])
    colours: dict[str, int] = {}
    marks, y = [], 4.0
    for thread in threads:
        name = names.get(thread, f"thread {thread}")
        marks.append(f'<text class="dim" x="4" y="{y + 12:.0f}">{escape(name)}</text>')
        y += _ROW
        for kind in kinds:
            row = [i for i in shown if i.thread == thread and i.kind == kind]
            if not row:
                continue
            for i in row:
                number = colours.setdefault(i.name, len(colours))
                x, width = _WIDTH * i.begin_ns / end, max(_WIDTH * i.ns / end, 0.02)
                about = f"{i.name}: {ns(i.ns)}" + (f", {i.detail}" if i.detail else "")
                marks.append(
                    f'<rect class="shape {colour(number)}" x="{x:.3f}" y="{y:.0f}"'
                    f' width="{width:.3f}" height="{_ROW - 4}"'
                    f' style="stroke-width: {min(0.6, width / 8):.3f}">'
                    f"<title>{escape(about)}</title></rect>"
                )
                if width > 8 * len(i.name) + 6:
                    marks.append(f'<text x="{x + 4:.1f}" y="{y + 11:.0f}">{escape(i.name)}</text>')
            y += _ROW
        y += 6
    if not shown:
        return "<p>Nothing was called.</p>"
    height = int(y) + 4
    picture = (
        f'<svg viewBox="0 0 {_WIDTH} {height}" preserveAspectRatio="xMidYMin meet"'
        f' xmlns="http://www.w3.org/2000/svg">{"".join(marks)}</svg>'
    )
    more = f'<p class="note">The {left_out:,} shortest are not shown.</p>' if left_out > 0 else ""
    return document.zoomed(picture, min(max(height, 120), 600)) + more


def _intervals(profile: Profile) -> list[Interval]:
    compilations = [
        Interval(
            "compilation", f"compile {c.function}", c.cause, c.event.begin_ns, c.event.ns,
            c.event.thread,
        )
        for c in profile.compilations
    ]  # fmt: skip
    return profile.intervals + compilations


def _memory(use: Memory, end_ns: float) -> str:
    points = [(0.0, float(use.begin)), *use.points.tolist()]
    if len(points) > _MOST_POINTS:  # keep the highest point of each section
        size = -(-len(points) // _MOST_POINTS)
        stretches = [points[i : i + size] for i in range(0, len(points), size)]
        points = [max(stretch, key=lambda point: point[1]) for stretch in stretches]
    height = 160
    low, high = min(0.0, min(y for _, y in points)), max(1.0, max(y for _, y in points))

    def place(at: float, live: float) -> tuple[float, float]:
        return _WIDTH * at / end_ns, 10 + (height - 30) * (1 - (live - low) / (high - low))

    path, level = [], place(0, points[0][1])[1]
    for at, live in points:
        x, y = place(at, live)
        path.append(f"L{x:.2f} {level:.2f} L{x:.2f} {y:.2f}")
        level = y
    floor = place(0, low)[1]
    outline = f"M0 {floor:.2f} {' '.join(path)} L{_WIDTH} {level:.2f} L{_WIDTH} {floor:.2f} Z"
    picture = (
        f'<svg viewBox="0 0 {_WIDTH} {height}" xmlns="http://www.w3.org/2000/svg">'
        f'<path class="area" d="{outline}"/>'
        f'<line class="axis" x1="0" y1="{floor:.2f}" x2="{_WIDTH}" y2="{floor:.2f}"/>'
        f'<text class="dim" x="4" y="{floor + 15:.0f}">0</text>'
        f'<text class="dim" x="{_WIDTH - 4}" y="{floor + 15:.0f}" text-anchor="end">'
        f"{escape(ns(end_ns))}</text>"
        f'<text x="4" y="22">{escape(nbytes(high))}</text></svg>'
    )
    return document.zoomed(picture, height + 20)
