"""Tables and the plot of a benchmark run."""

from __future__ import annotations

import datetime
import math
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from run import Row

# Above what caches hold.
LARGE_BYTES = 100 << 20
PEERS = ("jax", "torch.compile", "mlx", "tinygrad", "numba", "numexpr")


@dataclass
class Host:
    """The machine, as measured in this run."""

    cpu: str
    cores: int
    load_before: float
    copy: float  # bytes/s
    fma: float  # flops/s
    versions: dict[str, str]
    missing: dict[str, str]
    load_after: float = 0.0
    date: str = field(default_factory=lambda: datetime.date.today().isoformat())


def milliseconds(seconds: float) -> str:
    if seconds < 1e-4:
        return f"{seconds * 1e6:.2f} us"
    value = seconds * 1e3
    return (
        f"{value:.3f} ms" if value < 1 else f"{value:.2f} ms" if value < 100 else f"{value:.0f} ms"
    )


def best_peer(row: Row) -> str | None:
    found = [name for name in PEERS if name in row.times]
    return min(found, key=lambda name: row.times[name].best, default=None)


def copy_seconds(row: Row, host: Host) -> float | None:
    """The better of the two copies of as many bytes in the same rounds. Where the arrays are larger
    than caches, the best copy of the whole run counts, too: noise must not flatter a workload."""
    found = [row.times[name].best for name in ("copy 1", "copy all") if name in row.times]
    if not found:
        return None
    seconds = min(found) * row.workload.bytes / row.copy_bytes
    large = row.workload.bytes >= LARGE_BYTES
    return min(seconds, row.workload.bytes / host.copy) if large else seconds


def limit_seconds(row: Row, host: Host) -> float:
    """What memory and arithmetic allow: copying as many bytes, multiply-adding as often."""
    memory = copy_seconds(row, host)
    rate = host.fma / (2 if row.workload.args[0].dtype.itemsize == 8 else 1)
    return max(memory if memory else row.workload.bytes / host.copy, row.workload.flops / rate)


def one_line(row: Row) -> str:
    """Progress."""
    parts = [f"{name} {milliseconds(t.best)}" for name, t in row.times.items()]
    parts += [f"{name}: {why[:100]}" for name, why in row.failures.items()]
    return f"{row.workload.name:18s} " + ", ".join(parts)


def main_table(host: Host, rows: list[Row]) -> list[list[str]]:
    header = [
        "workload",
        "rune_jit",
        "median",
        "NumPy",
        "x NumPy",
        "best peer",
        "of peer",
        "of copy",
        "of limit",
        "kernels",
        "bytes/least",
        "first call",
    ]
    table = [header]
    for row in rows:
        name = row.workload.name
        if "rune_jit" not in row.times:
            table.append([name, "cannot run", *[""] * (len(header) - 2)])
            continue
        rune = row.times["rune_jit"]
        numpy = row.times["numpy"].best
        peer, copy = best_peer(row), copy_seconds(row, host)
        moved = row.costs["bytes_read"] + row.costs["bytes_written"]
        table.append(
            [
                name,
                milliseconds(rune.best),
                milliseconds(rune.median),
                milliseconds(numpy),
                f"{numpy / rune.best:.1f}",
                f"{peer} {milliseconds(row.times[peer].best)}" if peer else "",
                f"{rune.best / row.times[peer].best:.2f}" if peer else "",
                f"{copy / rune.best:.0%}" if copy else "",
                f"{limit_seconds(row, host) / rune.best:.0%}",
                f"{row.costs['kernels']:.0f}",
                f"{moved / row.workload.bytes:.2f}",
                milliseconds(rune.first),
            ]
        )
    return table


def peer_table(rows: list[Row]) -> list[list[str]]:
    names = [p for p in PEERS if any(p in r.times or p in r.failures for r in rows)]
    table = [["workload", "rune_jit", *names, *(f"{n}, first call" for n in names)]]
    for row in rows:

        def cell(name: str, value: str, row: Row = row) -> str:
            if name not in row.times:
                return "-"
            times = row.times[name]
            return milliseconds(times.best if value == "best" else times.first)

        table.append(
            [
                row.workload.name,
                cell("rune_jit", "best"),
                *(cell(n, "best") for n in names),
                *(cell(n, "first") for n in names),
            ]
        )
    return table if names else []


GROUPS = {
    "graph passes": (
        "functionalize",
        "place_on_devices",
        "decompose_nodes",
        "fold_constants",
        "simplify",
        "eliminate_common_subexpressions",
        "eliminate_dead_code",
        "split_scans",
        "split_scatters",
        "form_online_reductions",
        "split_reductions",
        "nest_long_cats",
        "simplify_divided",
        "materialize_outputs",
    ),
    "schedule": ("fuse", "find_dependencies", "analyze", "map_to_machine", "plan_memory"),
    "lower": (
        "lower",
        "partition_loops",
        "widen_narrow_floats",
        "decompose",
        "divide_by_reciprocals",
        "skip_mismatches",
        "eliminate_dead_instructions",
    ),
}


def stage_table(stages: dict[str, dict[str, float]]) -> list[list[str]]:
    """Milliseconds. Passes without a group, such as new ones, are a column of their own."""
    table = [
        [
            "program",
            "import",
            "first call, cold",
            "from disk cache",
            "jax: import",
            "jax: first call",
            "trace",
            *GROUPS,
            "other passes",
            "render",
            "load LLVM",
            "render and compile",
            "first run",
            "second run",
        ]
    ]
    for name, marks in stages.items():
        passes = {k[5:]: v for k, v in marks.items() if k.startswith("pass ")}
        sums = [sum(passes.pop(p, 0.0) for p in group) for group in GROUPS.values()]
        values = [
            marks["import"],
            marks["cold"],
            marks["disk cache"],
            marks.get("jax, import", math.nan),
            marks.get("jax, first call", math.nan),
            marks["trace"],
            *sums,
            sum(passes.values()),
            marks["render"],
            marks["load LLVM"],
            marks["render and compile"],
            marks["first run"],
            marks["second run"],
        ]
        table.append([name, *(f"{v:.2f}" for v in values)])
    return table if stages else []


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def summary(host: Host, rows: list[Row], stages: dict[str, dict[str, float]]) -> list[str]:
    """The figures that this project sets itself, with what was reached."""
    by_name = {row.workload.name: row for row in rows if "rune_jit" in row.times}
    lines = []

    def verdict(text: str, reached: bool) -> None:
        lines.append(f"{'reached' if reached else 'MISSED '}: {text}")

    if "chain_f32" in by_name:
        row = by_name["chain_f32"]
        copy = copy_seconds(row, host)
        if copy:
            part = copy / row.times["rune_jit"].best
            verdict(f"chain_f32 at {part:.0%} of the copy bandwidth (goal 80%)", part >= 0.8)
    if "softmax" in by_name:
        times = by_name["softmax"].times
        factor = times["numpy"].best / times["rune_jit"].best
        verdict(f"softmax {factor:.1f} times NumPy (goal 5)", factor >= 5)
    if "chain_f32" in stages:
        cold = stages["chain_f32"]["cold"]
        verdict(f"first call of chain_f32 {cold:.0f} ms (goal 200)", cold < 200)
    against_jax = {n: m for n, m in stages.items() if "jax, first call" in m}
    for text, mark, importing, goal in (
        ("first call", "cold", False, 0.5),
        ("import and first call", "cold", True, 0.5),
        ("first call from the disk cache", "disk cache", False, 0.2),
    ):
        parts = {
            n: (m[mark] + importing * m["import"])
            / (m["jax, first call"] + importing * m["jax, import"])
            for n, m in against_jax.items()
        }
        if parts:
            worst = max(parts, key=lambda n: parts[n])
            verdict(
                f"{text} over JAX's, which loads its compiler when imported: at most"
                f" {parts[worst]:.2f}, {worst} (goal {goal})",
                parts[worst] <= goal,
            )
    if "tiny_call" in by_name:
        call = by_name["tiny_call"].times["rune_jit"].best * 1e6
        verdict(f"call on three elements {call:.2f} us (goal 15)", call < 15)
    ratios = {
        n: r.times["rune_jit"].best / r.times[p].best
        for n, r in by_name.items()
        if (p := best_peer(r))
    }
    if ratios:
        mean = geometric_mean(list(ratios.values()))
        worst = max(ratios, key=lambda n: ratios[n])
        verdict(f"geometric mean over the best peer {mean:.2f} (goal 0.8)", mean <= 0.8)
        verdict(
            f"worst workload over its best peer: {worst} {ratios[worst]:.2f} (goal 1.2)",
            ratios[worst] <= 1.2,
        )
    gains = [r.times["numpy"].best / r.times["rune_jit"].best for r in by_name.values()]
    if gains:
        lines.append(f"geometric mean over NumPy: {geometric_mean(gains):.1f} times as fast")
    missing = [r.workload.name for r in rows if "rune_jit" not in r.times]
    if missing:
        lines.append("rune_jit cannot run: " + ", ".join(missing))
    for row in by_name.values():
        want, got = row.workload.kernels, row.costs["kernels"]
        if want is not None and got != want:
            verdict(f"{row.workload.name} takes {got:.0f} kernels (goal {want})", False)
    return lines


def about(host: Host) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in host.versions.items())
    lines = [
        f"{host.date}, {host.cpu}, {host.cores} cores, Python {platform.python_version()},"
        f" {versions}",
        f"Copy {host.copy / 1e9:.1f} GB/s (read and written together), multiply-adds"
        f" {host.fma / 1e9:.0f} GFLOP/s float32, load {host.load_before:.1f} before and"
        f" {host.load_after:.1f} after the run",
    ]
    if max(host.load_before, host.load_after) > 0.5 * host.cores:
        lines.append(
            "other work had the cores during this run: figures that need all of them vary from run"
            " to run, by a factor of two and more"
        )
    lines += [f"not measured: {name} ({why})" for name, why in host.missing.items()]
    return lines


def _markdown_table(table: list[list[str]]) -> str:
    if not table:
        return ""
    rows = ["| " + " | ".join(row) + " |" for row in table]
    rows.insert(1, "|" + "|".join("---" if i == 0 else "---:" for i in range(len(table[0]))) + "|")
    return "\n".join(rows) + "\n"


def markdown(host: Host, rows: list[Row], stages: dict[str, dict[str, float]]) -> str:
    failures = [
        f"- {row.workload.name}, {name}: `{why[:160]}`"
        for row in rows
        for name, why in row.failures.items()
        if not why.startswith("Unsupported:")
    ]
    parts = [
        "# Benchmark results\n",
        "Written by `python benchmarks/run.py`; compare figures within one run only.\n",
        "\n".join(f"- {line}" for line in about(host)) + "\n",
        "## Goals\n",
        "\n".join(f"- {line}" for line in summary(host, rows, stages)) + "\n",
        "## Warm calls\n",
        "Times are the best of several turns, results checked first. `of peer`: time over the"
        " best peer's (below 1 is faster). `of copy`: time of copying as many bytes over the time."
        " `of limit`: the same for the slower of that copy and the multiply-adds. `bytes/least`:"
        " bytes moved by the kernels over inputs and outputs touched once.\n",
        _markdown_table(main_table(host, rows)),
        "## Other libraries\n",
        _markdown_table(peer_table(rows)),
        "## First call, ms\n",
        "Fresh processes, best of three; NumPy is imported before. Stages are timed one by one with"
        " a cold cache.\n",
        _markdown_table(stage_table(stages)),
        "## Workloads\n",
        "\n".join(f"- {row.workload.name}: {row.workload.what}" for row in rows) + "\n",
    ]
    if failures:
        parts += ["## Left out\n", "\n".join(failures) + "\n"]
    return "\n".join(parts)


def show(
    host: Host, rows: list[Row], stages: dict[str, dict[str, float]], *, goals: bool = True
) -> None:
    tables = {
        "warm calls": main_table(host, rows),
        "other libraries": peer_table(rows),
        "first call, ms": stage_table(stages),
    }
    print("\n".join(about(host)))
    for title, table in tables.items():
        if table:
            print_table(title, table)
    if goals:
        print("\n".join(summary(host, rows, stages)))


def print_table(title: str, table: list[list[str]]) -> None:
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        print(f"\n{title}")
        for row in table:
            print(
                "  ".join(
                    cell.ljust(w) if i == 0 else cell.rjust(w)
                    for i, (cell, w) in enumerate(zip(row, widths, strict=True))
                )
            )
        return
    rich_table = Table(title=title)
    for i, name in enumerate(table[0]):
        rich_table.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
    for row in table[1:]:
        rich_table.add_row(*row)
    console: Any = Console()
    if not console.is_terminal:
        console = Console(width=240)
    console.print(rich_table)


def plot(rows: list[Row], path: Path) -> None:
    """Speed over NumPy by workload, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [row for row in rows if "rune_jit" in row.times]
    names = ["rune_jit", *(p for p in PEERS if any(p in row.times for row in shown))]
    figure, axes = plt.subplots(figsize=(max(6, 0.6 * len(shown)), 5), layout="constrained")
    width = 0.8 / len(names)
    for k, name in enumerate(names):
        places = [i + k * width for i, row in enumerate(shown) if name in row.times]
        gains = [
            row.times["numpy"].best / row.times[name].best for row in shown if name in row.times
        ]
        axes.bar(places, gains, width, label=name)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_ylabel("times as fast as NumPy")
    axes.set_xticks(
        [i + 0.4 - width / 2 for i in range(len(shown))],
        [r.workload.name for r in shown],
        rotation=60,
        ha="right",
    )
    axes.legend()
    figure.savefig(path, dpi=120)
