"""How well the cost model predicts: estimated against measured nanoseconds of each workload.

    python benchmarks/estimates.py
    python benchmarks/estimates.py --workload softmax --workload gather --rounds 50

Measured is the best of some warm calls, which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import peers
import workloads


def best_ns(call: Any, rounds: int, seconds: float) -> float:
    call()
    best = math.inf
    end = time.perf_counter() + seconds
    for number in range(rounds):
        if number >= 3 and time.perf_counter() > end:
            break
        start = time.perf_counter_ns()
        call()
        best = min(best, time.perf_counter_ns() - start)
    return best


def estimate(rune: peers.RuneJit, name: str, rounds: int) -> tuple[float, float, float]:
    """Kernels of one call, its estimated and its measured nanoseconds."""
    workload = workloads.build(name)
    jitted = rune.jitted(workload)
    costs = jitted.lower(*workload.args).cost_analysis()
    measured = best_ns(lambda: jitted(*workload.args), rounds, seconds=0.5)
    return costs["kernels"], costs["estimated_ns"], measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", action="append", choices=workloads.names())
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    rune = peers.RuneJit()
    ratios = []
    print(f"{'workload':18} kernels {'estimated':>12} {'measured':>12}  estimated/measured")
    for name in options.workload or workloads.names():
        kernels, estimated, measured = estimate(rune, name, options.rounds)
        ratios.append(estimated / measured)
        print(f"{name:18} {kernels:7.0f} {estimated:12.0f} {measured:12.0f}  {ratios[-1]:.2f}")
    low, median, high = np.quantile(ratios, [0.1, 0.5, 0.9])
    print(f"median ratio {median:.2f}, of eight in ten workloads between {low:.2f} and {high:.2f}")
    for factor in (2, 3):
        within = sum(1 / factor <= ratio <= factor for ratio in ratios)
        print(f"within a factor of {factor}: {within} of {len(ratios)}")


if __name__ == "__main__":
    main()
