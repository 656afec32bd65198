"""A profile as tables of text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from rune_jit.pages.units import nbytes, ns, percent
from rune_jit.profiling.records import Kernel

if TYPE_CHECKING:
    from rune_jit.profiling.profile import Profile

# The most rows of a table of text. Pages show all rows.
_MOST_ROWS = 20


class Table(NamedTuple):
    """A table of texts. `numbers`: columns that are aligned to the right. `spare`: columns that are
    left out if there is little room, in this order."""

    title: str
    headers: list[str]
    numbers: list[bool]
    rows: list[list[str]]
    spare: tuple[int, ...] = ()

    def within(self, width: int) -> Table:
        """The table without the spare columns that do not fit."""
        table = self
        for column in self.spare:
            rows = [table.headers, *table.rows]
            needed = sum(max(map(len, cells)) + 3 for cells in zip(*rows, strict=True))
            if needed <= width:
                break
            i = table.headers.index(self.headers[column])
            table = table._replace(
                headers=table.headers[:i] + table.headers[i + 1 :],
                numbers=table.numbers[:i] + table.numbers[i + 1 :],
                rows=[row[:i] + row[i + 1 :] for row in table.rows],
            )
        return table


def headline(profile: Profile) -> str:
    """A line that says where the time went."""
    compiling = sum(c.event.ns for c in profile.compilations)
    steps = profile.kernels
    kernels = sum(k.total_ns for k in steps if k.kind in _ON_DEVICE)
    callbacks = sum(k.total_ns for k in steps if k.kind == "callback")
    numpy = sum(row[3] for row in profile.numpy_calls)
    calls = sum(total for _, total in profile.calls.values())
    return (
        f"{ns(profile.seconds * 1e9)}: {ns(calls)} in jitted functions, of which"
        f" {ns(kernels)} in kernels, {ns(callbacks)} in functions that programs call,"
        f" {ns(compiling)} in compilations, {ns(numpy)} on NumPy"
    )


def kernel_row(kernel: Kernel, all_ns: float) -> list[str]:
    has_rates = kernel.kind in ("kernel", "library", "loops")
    moves = bool(kernel.bytes)
    return [
        kernel.name + ("" if kernel.kind == "kernel" else f" ({kernel.kind})"),
        kernel.function
        + (f" ({kernel.program})" if kernel.program > 1 else "")
        + (" *" if kernel.is_dynamic else ""),
        short_line(kernel.location),
        f"{kernel.calls:,}",
        ns(kernel.total_ns),
        percent(kernel.total_ns / all_ns) if all_ns else "",
        ns(kernel.mean_ns),
        _rate(kernel.gbytes, kernel.share_of_bytes) if moves else "",
        _rate(kernel.gflops, kernel.share_of_flops) if has_rates else "",
        kernel.limit if has_rates else "",
    ]


def _rate(rate: float, share: float) -> str:
    """A rate, with its share of the limit if that is known."""
    return f"{rate:.1f} ({percent(share)})" if share else f"{rate:.1f}"


KERNEL_HEADERS = [
    "kernel", "function", "line", "calls", "total", "share", "mean",
    "GB/s", "GFLOP/s", "near",
]  # fmt: skip


def kernel_table(profile: Profile) -> Table:
    kernels = profile.kernels
    all_ns = sum(kernel.total_ns for kernel in kernels)
    rows = [kernel_row(kernel, all_ns) for kernel in kernels]
    numbers = [False] * 3 + [True] * 6 + [False]
    return Table("Kernels", KERNEL_HEADERS, numbers, rows, spare=(9, 5, 1))


def other_tables(profile: Profile) -> list[Table]:
    """All tables with rows, except that of kernels."""
    calls = [
        [name, f"{count:,}", ns(total), ns(total / count)]
        for name, (count, total) in profile.calls.items()
    ]
    compilations = [
        [
            c.function,
            short_line(c.site),
            c.cause,
            ns(c.event.ns),
            ", ".join(f"{part} {ns(seconds * 1e9)}" for part, seconds in c.parts.items()),
            f"{c.operations:,}" if c.operations else "",
            c.outcome,
        ]
        for c in profile.compilations
    ]

    def sums(rows: list[tuple[str, str, int, float]]) -> list[list[str]]:
        return [[name, short_line(what), f"{n:,}", ns(total)] for name, what, n, total in rows]

    memory = [
        [device, nbytes(use.begin), nbytes(use.peak), nbytes(use.end)]
        for device, use in profile.memory.items()
    ]
    tables = [
        Table(
            "Calls", ["function", "calls", "total", "mean"], [False, True, True, True], calls
        ),
        Table(
            "Compilations",
            ["function", "called at", "cause", "time", "parts", "operations", "became"],
            [False, False, False, True, False, True, False],
            compilations,
            spare=(4, 5, 6),
        ),
        Table(
            "Reads of traced values", ["function", "value", "times", "total"],
            [False, False, True, True], sums(profile.reads),
        ),
        Table(
            "NumPy's functions between programs", ["function", "called", "times", "total"],
            [False, False, True, True], sums(profile.numpy_functions),
        ),
        Table(
            "Calls that ran on NumPy", ["function", "reason", "calls", "total"],
            [False, False, True, True], sums(profile.numpy_calls),
        ),
        Table(
            "Memory in use", ["device", "at begin", "peak", "at end"],
            [False, True, True, True], memory,
        ),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def remarks(profile: Profile) -> list[str]:
    """Remarks that a reader of the tables must know."""
    found = []
    if any(kernel.share_of_bytes or kernel.share_of_flops for kernel in profile.kernels):
        found.append(
            "GB/s and GFLOP/s: what the program must move and do, with the share of what this"
            " machine can, for data of this size and for this dtype."
        )
    if any(kernel.is_dynamic for kernel in profile.kernels):
        found.append("* takes many sizes: the rates are those that the largest would give.")
    hosts = {k.device for k in profile.kernels if not k.by_device and k.kind in _ON_DEVICE}
    for device in sorted(hosts):
        found.append(
            f"Times on {device} are the host's, which waits for each kernel: the device's are"
            " shorter by the time of a launch."
        )
    if profile.left_out:
        found.append(
            f"{profile.left_out:,} intervals, events and points of memory were too many to keep;"
            " the sums have them."
        )
    return found


_ON_DEVICE = ("kernel", "library", "loops")


def short_line(text: str) -> str:
    """A line of the user's source, or a text that ends with one, without the file's folder."""
    before, at, line = text.rpartition(" at ")
    _, slash, name = line.rpartition("/")
    return before + at + (name if slash and ":" in name else line)


def text(profile: Profile) -> str:
    parts = [headline(profile)]
    for table in [kernel_table(profile), *other_tables(profile)]:
        parts.append(_plain(table))
    return "\n\n".join([*parts, *remarks(profile)])


def _plain(table: Table) -> str:
    shown = [table.headers, *table.rows[:_MOST_ROWS]]
    widths = [max(len(row[i]) for row in shown) for i in range(len(table.headers))]
    lines = [table.title]
    for row in shown:
        cells = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, table.numbers, strict=True)
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    if more := len(table.rows) - _MOST_ROWS:
        lines += [f"  and {more} more"] if more > 0 else []
    return "\n".join(lines)


def show(profile: Profile) -> None:
    """Prints the tables. Uses rich if it is installed."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text
    except ImportError:
        sys.stdout.write(text(profile) + "\n")
        return
    console = Console(file=sys.stdout)
    if not (console.is_terminal or console.is_jupyter):  # a file has no width
        sys.stdout.write(text(profile) + "\n")
        return
    console.print(Text(headline(profile), style="bold"))
    for whole in [kernel_table(profile), *other_tables(profile)]:
        table = whole.within(console.width)
        shown = RichTable(
            title=table.title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD
        )
        for i, (header, is_number) in enumerate(zip(table.headers, table.numbers, strict=True)):
            longest = max(len(row[i]) for row in table.rows[:_MOST_ROWS] or [[header] * (i + 1)])
            shown.add_column(
                header,
                justify="right" if is_number else "left",
                overflow="fold",
                no_wrap=is_number,
                min_width=min(longest, 22) if i == 0 else None,
            )
        for row in table.rows[:_MOST_ROWS]:
            shown.add_row(*map(Text, row))
        console.print(shown)
        if len(table.rows) > _MOST_ROWS:
            console.print(f"  and {len(table.rows) - _MOST_ROWS} more")
    for remark in remarks(profile):
        console.print(Text(remark))
