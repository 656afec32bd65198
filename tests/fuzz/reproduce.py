"""Runs programs by seed and prints those that fail: reproduce.py [--mode MODE] [--count N] SEED"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from runner import DEVICES, MODES, Refused, report  # which needs tests/ itself


def main() -> int:
    """Exit status 1 if a program fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=1, help="how many seeds from there on")
    parser.add_argument("--mode", choices=MODES, action="append", help="default: all")
    parser.add_argument("--most-steps", type=int, default=14)
    parser.add_argument(
        "--dynamic",
        type=int,
        nargs="*",
        choices=(1, 2, 3),
        help="with so many dynamic sizes (default: each seed its number of them)",
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after")
    parser.add_argument("--all", action="store_true", help="print failures of equal text, too")
    parser.add_argument("--ir", action="store_true", help="print the graph and the kernels, too")
    options = parser.parse_args()
    failures: collections.Counter[str] = collections.Counter()
    done: collections.Counter[str] = collections.Counter()
    refused: collections.Counter[str] = collections.Counter()
    start = time.time()
    for seed in range(options.seed, options.seed + options.count):
        if time.time() - start > options.seconds:
            break
        dynamic = options.dynamic
        if dynamic is not None:
            dynamic = (dynamic or (1, 2, 3))[seed % len(dynamic or (1, 2, 3))]
        for mode in options.mode or (MODES if dynamic is None else DEVICES):
            try:
                text = report(seed, mode, options.most_steps, dynamic or 0)
            except Refused as error:
                refused[str(error).splitlines()[0][:100]] += 1
                continue
            done[mode] += 1
            if text is None:
                continue
            kind = _kind(text)
            failures[kind] += 1
            if options.all or failures[kind] == 1:
                shown = text if options.ir else text.split("\ngraph {")[0]
                print(shown[:20000], end="\n\n", flush=True)
    print(f"{dict(done)} programs in {time.time() - start:.0f} s, {failures.total()} failures")
    for counter, title in ((failures, "failures"), (refused, "refused")):
        for kind, count in counter.most_common():
            print(f"  {title}: {count:4} {kind}")
    return 1 if failures else 0


def _kind(text: str) -> str:
    """The first line without what is different in each program."""
    first = text.splitlines()[0].split(": ", 1)[1]
    if "instead" not in first:
        return first.split("`")[0].split("(")[0][:60]
    return text.split("\n    return ")[0].splitlines()[-1].split("=", 1)[-1][:40]


if __name__ == "__main__":
    sys.exit(main())
