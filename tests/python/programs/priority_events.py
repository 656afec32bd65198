# mypy: ignore-errors
# ruff: noqa
import numpy as np, heapq, bisect, itertools
from collections import deque, Counter, defaultdict


class Event:
    __slots__ = ("time", "kind", "who")

    def __init__(self, time, kind, who):
        self.time, self.kind, self.who = time, kind, who

    def __lt__(self, other):
        return self.time < other.time

    def __repr__(self):
        return f"Event({self.time:.2f}, {self.kind})"


def mm1(lam, mu, n, seed):
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / lam, n))
    service = rng.exponential(1 / mu, n)
    q = [Event(t, "arrive", i) for i, t in enumerate(arrivals)]
    heapq.heapify(q)
    waiting, busy, wait = deque(), False, np.zeros(n)
    log = []
    while q:
        e = heapq.heappop(q)
        log.append(e.kind)
        if e.kind == "arrive":
            if busy:
                waiting.append((e.who, e.time))
            else:
                busy = True
                heapq.heappush(q, Event(e.time + service[e.who], "leave", e.who))
        else:
            if waiting:
                who, since = waiting.popleft()
                wait[who] = e.time - since
                heapq.heappush(q, Event(e.time + service[who], "leave", who))
            else:
                busy = False
    return wait.mean(), Counter(log), wait


def percentile_table(x, cuts):
    s = sorted(x.tolist())
    pos = [bisect.bisect_left(s, c) for c in cuts]
    runs = [(k, len(list(g))) for k, g in itertools.groupby(x > 0.5)]
    d = defaultdict(list)
    for v in x:
        d[int(v * 4)].append(v)
    return pos, runs, {k: np.mean(v) for k, v in sorted(d.items())}


CALLS = [
    ("mm1", lambda r: (1.0, 1.2, 20, 3)),
    ("mm1", lambda r: (2, 3, 8, 5)),
    ("percentile_table", lambda r: (r.random(12), [0.2, 0.5])),
    ("percentile_table", lambda r: (r.random(7), (0.9,))),
]
