# mypy: ignore-errors
# ruff: noqa
import heapq, math
import numpy as np
from collections import Counter, defaultdict, deque


def build_adj(edges, n):
    adj = {i: [] for i in range(n)}
    for u, v in edges:
        adj[int(u)].append(int(v))
        adj[int(v)].append(int(u))
    return adj


def bfs_levels(edges, n, start):
    adj = build_adj(edges, n)
    level = {start: 0}
    q = deque([start])
    while q:
        u = q.popleft()
        for v in adj[u]:
            if v not in level:
                level[v] = level[u] + 1
                q.append(v)
    out = np.full(n, -1)
    for k, v in level.items():
        out[k] = v
    return out


def components(edges, n):
    adj = defaultdict(list)
    for e in edges:
        adj[e[0]].append(e[1])
        adj[e[1]].append(e[0])
    seen = set()
    comps = []
    for s in range(n):
        if s in seen:
            continue
        stack, comp = [s], []
        seen.add(s)
        while stack:
            u = stack.pop()
            comp.append(u)
            for v in adj[u]:
                if v not in seen:
                    seen.add(v)
                    stack.append(v)
        comps.append(sorted(comp))
    return comps, len(comps), max((len(c) for c in comps), default=0)


def dijkstra_dict(w):
    n = w.shape[0]
    graph = {i: {j: w[i, j] for j in range(n) if w[i, j] > 0.3 and j != i} for i in range(n)}
    dist = {0: 0.0}
    done = set()
    heap = [(0.0, 0)]
    while heap:
        d, u = heapq.heappop(heap)
        if u in done:
            continue
        done.add(u)
        for v, c in graph[u].items():
            nd = d + c
            if nd < dist.get(v, math.inf):
                dist[v] = nd
                heapq.heappush(heap, (nd, v))
    return [dist.get(i, math.inf) for i in range(n)]


def degrees_dd(edges):
    deg = defaultdict(int)
    for a, b in edges:
        deg[a] += 1
        deg[b] += 1
    return max(deg.values(), default=0), len(deg), sorted(deg)


def _edges(r, n=9, m=12):
    return r.integers(0, n, (m, 2))


CALLS = [
    ("bfs_levels", lambda r: (_edges(r), 9, 0)),
    ("bfs_levels", lambda r: (_edges(r, 15, 14), 15, 3)),
    ("components", lambda r: (_edges(r, 9, 6).tolist(), 9)),
    ("components", lambda r: (_edges(r, 9, 6), 9)),
    ("dijkstra_dict", lambda r: (r.random((7, 7)),)),
    ("degrees_dd", lambda r: (_edges(r),)),
    ("degrees_dd", lambda r: (_edges(r, 20, 50),)),
]
