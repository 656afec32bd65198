# mypy: ignore-errors
# ruff: noqa
import numpy as np
from collections import defaultdict


def partition_count(x, target):
    ways = defaultdict(int)
    ways[0] = 1
    for v in x:
        new = defaultdict(int)
        for s, c in ways.items():
            new[s] += c
            new[s + v] += c
        ways = new
    return ways[target], len(ways)


def count_digits(x):
    counts = {}
    for v in x:
        d = int(v) % 10
        if d in counts:
            counts[d] += 1
        else:
            counts[d] = 1
    return counts


def two_sum(x, target):
    seen = {}
    for i, v in enumerate(x):
        if target - v in seen:
            return seen[target - v], i
        seen[v] = i
    return None


def unique_in_order(x):
    seen, out = set(), []
    for v in x.tolist():
        if v not in seen:
            seen.add(v)
            out.append(v)
    return np.array(out)


CALLS = [
    ("partition_count", lambda r: (r.integers(1, 9, 7), 12)),
    ("count_digits", lambda r: (r.integers(0, 99, 30),)),
    ("count_digits", lambda r: (r.random(30) * 100,)),
    ("two_sum", lambda r: (r.integers(0, 30, 12), 31)),
    ("unique_in_order", lambda r: (r.integers(0, 9, 20),)),
]
