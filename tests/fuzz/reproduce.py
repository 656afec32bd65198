"""Runs programs by seed and prints those that fail:
reproduce.py [--generator GENERATOR] [--mode MODE] [--count N] SEED"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("RUNE_JIT_CALIBRATION", "off")  # as in the tests

import test_attribute_programs
import test_block_programs
import test_complex_programs
import test_draw_programs
import test_exchange_programs
import test_heap_programs
import test_history_programs
import test_list_programs
import test_loop_programs
import test_nests
import test_program_variants
import test_stateful_programs
from runner import DEVICES, MODES, Refused, report  # which needs tests/ itself

from rune_jit.calls import costs
from rune_jit.calls.segmented import Trial

_GENERATORS: dict[str, Callable[[int, str], Any]] = {
    "loops": test_loop_programs.check,
    "lists": test_list_programs.check,
    "stateful": test_stateful_programs.check,
    "complex": test_complex_programs.check,
    "nests": test_nests.check,
    "blocks": test_block_programs.check,
    "draws": test_draw_programs.check,
    "exchanges": test_exchange_programs.check,
    "heaps": test_heap_programs.check,
    "histories": test_history_programs.check,
    "attributes": test_attribute_programs.check,
    "variants": test_program_variants.check,
}
_SLOW = 20.0  # seconds of processors


def main() -> int:
    """Exit status 1 if a program fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument(
        "--generator", choices=("programs", *_GENERATORS), default="programs",
        help="which programs; all but the first run on devices only (default: programs)",
    )  # fmt: skip
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
    faulthandler.register(signal.SIGPROF, all_threads=False)  # shows where a program hangs
    for seed in range(options.seed, options.seed + options.count):
        if time.time() - start > options.seconds:
            break
        dynamic = options.dynamic
        if dynamic is not None:
            dynamic = (dynamic or (1, 2, 3))[seed % len(dynamic or (1, 2, 3))]
        plain = options.generator == "programs" and dynamic is None
        for mode in options.mode or (MODES if plain else DEVICES):
            began = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, 3 * _SLOW)
            try:
                if options.generator == "programs":
                    text = report(seed, mode, options.most_steps, dynamic or 0)
                else:
                    text = _report(options.generator, seed, mode)
            except Refused as error:
                refused[str(error).splitlines()[0][:100]] += 1
                continue
            if (seconds := time.process_time() - began) > _SLOW:
                print(f"seed {seed} on {mode} took {seconds:.0f} s", flush=True)
            done[mode] += 1
            if done[mode] % 1000 == 0:
                print(f"{dict(done)} programs, up to seed {seed}", flush=True)
            if text is None:
                continue
            kind = _kind(text) if options.generator == "programs" else f"seed {seed}"
            failures[kind] += 1
            if options.all or failures[kind] == 1:
                shown = text if options.ir else text.split("\ngraph {")[0]
                print(shown[:20000], end="\n\n", flush=True)
    print(f"{dict(done)} programs in {time.time() - start:.0f} s, {failures.total()} failures")
    for counter, title in ((failures, "failures"), (refused, "refused")):
        for kind, count in counter.most_common():
            print(f"  {title}: {count:4} {kind}")
    return 1 if failures else 0


def _report(generator: str, seed: int, mode: str) -> str | None:
    """None if the program of the seed runs as NumPy runs it; otherwise what goes wrong."""
    start = f"seed {seed} on {mode}: "
    try:
        # However fast NumPy is, these programs are compiled.
        never = mock.patch.object(costs, "_SECONDS", math.inf)
        with never, mock.patch.object(Trial, "verdict", lambda self: None):
            result = _GENERATORS[generator](seed, mode)
    except AssertionError as error:
        return f"{start}{error}"
    except Exception:
        return f"{start}{traceback.format_exc(limit=-6)}"
    if result is None and generator == "loops":
        raise Refused("no results to compare")
    if result is not None and generator == "blocks":
        raise Refused(result.split(":")[0])
    return None


def _kind(text: str) -> str:
    """The first line without what is different in each program."""
    first = text.splitlines()[0].split(": ", 1)[1]
    if "instead" not in first:
        return first.split("`")[0].split("(")[0][:60]
    return text.split("\n    return ")[0].splitlines()[-1].split("=", 1)[-1][:40]


if __name__ == "__main__":
    sys.exit(main())
