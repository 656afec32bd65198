"""Runs programs by seed and prints those that fail: reproduce.py [--mode MODE] [--count N] SEED"""

from __future__ import annotations

import argparse
import collections
import sys
import time

from programs import generate
from runner import MODES, failure, reduce


def main() -> int:
    """Exit status 1 if a program fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=1, help="how many seeds from there on")
    parser.add_argument("--mode", choices=MODES, action="append", help="default: all")
    parser.add_argument("--most-steps", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after")
    parser.add_argument("--all", action="store_true", help="print failures of equal text, too")
    options = parser.parse_args()
    failures: collections.Counter[str] = collections.Counter()
    start = time.time()
    done = 0
    for seed in range(options.seed, options.seed + options.count):
        if time.time() - start > options.seconds:
            break
        for mode in options.mode or MODES:
            program = generate(seed, options.most_steps)
            done += 1
            problem = failure(program, mode)
            if problem is None:
                continue
            program = reduce(program, mode)
            problem = failure(program, mode) or problem
            first = problem.splitlines()[0]
            kind = (
                first.split("`")[0].split("(")[0][:60]
                if "instead" not in first
                else program.steps[-1].expression
            )
            failures[kind] += 1
            if options.all or failures[kind] == 1:
                print(f"seed {seed} on {mode}: {problem[:1500]}\n{program.describe()}", flush=True)
    print(f"{done} programs in {time.time() - start:.0f} s, {sum(failures.values())} failures")
    for kind, count in failures.most_common():
        print(f"  {count:4} {kind}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
