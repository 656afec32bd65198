# mypy: ignore-errors
# ruff: noqa: SIM102
"""Programs that ask for values (value_programs.py): graphs and grids."""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np
from value_programs import program

# Graphs and grids.


def maze(r):
    walls = r.random((12, 12)) < 0.25
    walls[0, 0] = walls[-1, -1] = False
    return walls


@program(lambda r: (maze(r), (0, 0), (11, 11)))
def breadth_first_search(walls, start, goal):
    distance = np.full(walls.shape, -1)
    distance[start] = 0
    queue = deque([start])
    while queue:
        i, j = queue.popleft()
        if (i, j) == goal:
            return distance[i, j], distance
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            a, b = i + di, j + dj
            if 0 <= a < walls.shape[0] and 0 <= b < walls.shape[1]:
                if not walls[a, b] and distance[a, b] < 0:
                    distance[a, b] = distance[i, j] + 1
                    queue.append((a, b))
    return None, distance


@program(lambda r: (maze(r),))
def wavefront(walls):
    reached = np.zeros_like(walls)
    reached[0, 0] = True
    steps = 0
    while not reached[-1, -1]:
        grown = reached.copy()
        grown[1:] |= reached[:-1]
        grown[:-1] |= reached[1:]
        grown[:, 1:] |= reached[:, :-1]
        grown[:, :-1] |= reached[:, 1:]
        grown &= ~walls
        if (grown == reached).all():
            return -1, reached
        reached = grown
        steps += 1
    return steps, reached


def weights(r, n=12):
    w = r.integers(1, 20, (n, n)).astype(float)
    w[r.random((n, n)) < 0.6] = np.inf
    np.fill_diagonal(w, 0)
    return w


@program(lambda r: (weights(r), 0))
def dijkstra(w, source):
    n = len(w)
    distance = np.full(n, np.inf)
    distance[source] = 0
    before = np.full(n, -1)
    done = np.zeros(n, bool)
    for _ in range(n):
        u = np.argmin(np.where(done, np.inf, distance))
        if np.isinf(distance[u]) or done[u]:
            break
        done[u] = True
        for v in range(n):
            if not done[v] and distance[u] + w[u, v] < distance[v]:
                distance[v] = distance[u] + w[u, v]
                before[v] = u
    return distance, before


@program(lambda r: (weights(r), 0))
def dijkstra_with_heap(w, source):
    best = {source: 0.0}
    heap = [(0.0, source)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > best[u]:
            continue
        for v in np.nonzero(np.isfinite(w[u]))[0]:
            new = d + w[u, v]
            if new < best.get(v, np.inf):
                best[int(v)] = float(new)
                heapq.heappush(heap, (float(new), int(v)))
    return sorted(best.items())


@program(lambda r: (weights(r, 10),))
def floyd_warshall(d):
    d = d.copy()
    for k in range(len(d)):
        new = np.minimum(d, d[:, k, None] + d[None, k])
        if np.any(np.diag(new) < 0):
            raise ValueError("negative cycle")
        if np.array_equal(new, d):
            continue
        d = new
    return d


@program(lambda r: (weights(r, 10), 0))
def bellman_ford(w, source):
    distance = np.full(len(w), np.inf)
    distance[source] = 0
    for rounds in range(len(w)):
        new = np.minimum(distance, (distance[:, None] + w).min(axis=0))
        if (new == distance).all():
            return distance, rounds
        distance = new
    raise ValueError("negative cycle")


@program(lambda r: (r.random((10, 10)) < 0.55,))
def connected_components(image):
    labels = np.zeros(image.shape, int)
    current = 0
    for i, j in zip(*np.nonzero(image), strict=True):
        if labels[i, j]:
            continue
        current += 1
        stack = [(i, j)]
        while stack:
            a, b = stack.pop()
            if not (0 <= a < 10 and 0 <= b < 10) or not image[a, b] or labels[a, b]:
                continue
            labels[a, b] = current
            stack += [(a + 1, b), (a - 1, b), (a, b + 1), (a, b - 1)]
    sizes = np.bincount(labels.ravel())[1:]
    return labels, current, sizes


@program(lambda r: (r.integers(0, 3, (9, 9)), 4, 4, 7))
def flood_fill(image, i, j, color):
    old = image[i, j]
    if old == color:
        return image

    def fill(a, b):
        if a < 0 or b < 0 or a >= image.shape[0] or b >= image.shape[1]:
            return 0
        if image[a, b] != old:
            return 0
        image[a, b] = color
        return 1 + fill(a + 1, b) + fill(a - 1, b) + fill(a, b + 1) + fill(a, b - 1)

    return fill(i, j)


@program(lambda r: (20, r.integers(0, 20, (15, 2))))
def union_find(n, edges):
    parent = np.arange(n)

    def find(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for a, b in edges:
        ra, rb = find(a), find(b)
        if ra != rb:
            parent[ra] = rb
    roots = np.array([find(i) for i in range(n)])
    return roots, len(np.unique(roots))


@program(lambda r: ((r.random((14, 14)) < 0.2).astype(float),))
def page_rank(links, damping=0.85):
    n = len(links)
    out = links.sum(axis=1)
    p = np.divide(links, out[:, None], out=np.full_like(links, 1 / n), where=out[:, None] > 0)
    rank = np.ones(n) / n
    iterations = 0
    while True:
        new = (1 - damping) / n + damping * rank @ p
        iterations += 1
        if np.abs(new - rank).sum() < 1e-9:
            return new, np.argsort(-new), iterations
        rank = new


@program(lambda r: (np.triu(r.random((9, 9)) < 0.3, 1),))
def topological_sort(a):
    degree = a.sum(axis=0)
    ready = [i for i in range(len(a)) if degree[i] == 0]
    order = []
    while ready:
        i = ready.pop()
        order.append(i)
        for j in np.flatnonzero(a[i]):
            degree[j] -= 1
            if degree[j] == 0:
                ready.append(j)
    if len(order) != len(a):
        raise ValueError("cycle")
    return order


@program(lambda r: ((r.random((16, 16)) < 0.35).astype(np.int8),))
def game_of_life(board):
    seen = {}
    generation = 0
    while board.tobytes() not in seen and generation < 40:
        seen[board.tobytes()] = generation
        near = sum(
            np.roll(np.roll(board, i, 0), j, 1)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        board = ((near == 3) | ((board == 1) & (near == 2))).astype(np.int8)
        generation += 1
    return board, generation, board.sum()


@program(lambda r: (np.zeros((24, 24)),))
def laplace_until_converged(u):
    u[0] = 1.0
    sweeps = 0
    error = 1.0
    while error > 1e-3:
        old = u.copy()
        u[1:-1, 1:-1] = 0.25 * (old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2])
        error = np.max(np.abs(u - old))
        sweeps += 1
    return u, sweeps


@program(lambda r: (r.integers(0, 8, (8, 8)),))
def sandpile(grid):
    topples = 0
    while (grid > 3).any():
        high = grid > 3
        topples += int(high.sum())
        grid[high] -= 4
        grid[1:][high[:-1]] += 1
        grid[:-1][high[1:]] += 1
        grid[:, 1:][high[:, :-1]] += 1
        grid[:, :-1][high[:, 1:]] += 1
    return grid, topples
