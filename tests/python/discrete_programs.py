# mypy: ignore-errors
"""Programs that ask for values (value_programs.py): differential equations, random numbers,
sequences."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
from value_programs import program

# Differential equations.


@program(lambda r: (np.array([1.0, 0.0]), 3.0))
def runge_kutta_fehlberg(y, end, tol=1e-6):
    def f(t, y):
        return np.array([y[1], -y[0] * (1 + 0.5 * np.sin(t))])

    t, h = 0.0, 0.5
    times, accepted, refused = [t], [y], 0
    while t < end:
        h = min(h, end - t)
        k1 = f(t, y)
        k2 = f(t + h / 4, y + h * k1 / 4)
        k3 = f(t + 3 * h / 8, y + h * (3 * k1 + 9 * k2) / 32)
        k4 = f(t + 12 * h / 13, y + h * (1932 * k1 - 7200 * k2 + 7296 * k3) / 2197)
        k5 = f(t + h, y + h * (439 / 216 * k1 - 8 * k2 + 3680 / 513 * k3 - 845 / 4104 * k4))
        k6 = f(
            t + h / 2,
            y + h * (-8 / 27 * k1 + 2 * k2 - 3544 / 2565 * k3 + 1859 / 4104 * k4 - 11 / 40 * k5),
        )
        error = np.abs(h * (k1 / 360 - 128 / 4275 * k3 - 2197 / 75240 * k4 + k5 / 50 + 2 / 55 * k6))
        worst = error.max()
        if worst <= tol:
            t += h
            y = y + h * (25 / 216 * k1 + 1408 / 2565 * k3 + 2197 / 4104 * k4 - k5 / 5)
            times.append(t)
            accepted.append(y)
        else:
            refused += 1
        h *= min(4.0, max(0.1, 0.9 * (tol / max(worst, 1e-16)) ** 0.2))
    return np.array(times), np.array(accepted), refused


@program(lambda r: (np.array([0.0, 10.0]), np.array([3.0, 12.0])))
def bouncing_ball(position, velocity, dt=0.01):
    bounces = []
    for step in range(300):
        velocity[1] -= 9.81 * dt
        position += velocity * dt
        if position[1] < 0:
            position[1] = -position[1]
            velocity[1] = -0.8 * velocity[1]
            bounces.append(step)
            if len(bounces) > 3:
                break
    return bounces


@program(lambda r: (r.random((16, 2)), 0.05 * r.standard_normal((16, 2))))
def particles_in_a_box(x, v):
    hits = 0
    for _ in range(20):
        x += v
        for wall, sign in ((x < 0, 1), (x > 1, -1)):
            if wall.any():
                hits += np.count_nonzero(wall)
                v[wall] = sign * np.abs(v[wall])
        np.clip(x, 0, 1, out=x)
    return hits


@program(lambda r: (np.array([1.0, 1.0, 1.0]),))
def lorenz_until_crossing(state):
    path = [state]
    crossings = []
    for i in range(200):
        x, y, z = state
        state = state + 0.01 * np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
        if path[-1][0] * state[0] < 0:
            crossings.append(i)
        path.append(state)
    return np.array(path), crossings


# Random numbers.


@program(lambda r: (np.random.default_rng(5), 50))
def rejection_sampling(rng, n):
    accepted = []
    tried = 0
    while len(accepted) < n:
        x, u = rng.uniform(0, 1, 2)
        tried += 1
        if u < 4 * x * (1 - x):
            accepted.append(x)
    return np.array(accepted), tried


@program(lambda r: (np.random.default_rng(6), np.zeros(2)))
def metropolis(rng, x):
    def log_density(x):
        return -0.5 * np.sum(x**2) - 0.1 * x[0] * x[1]

    samples = np.empty((100, 2))
    accepted = 0
    current = log_density(x)
    for i in range(100):
        proposal = x + 0.5 * rng.standard_normal(2)
        new = log_density(proposal)
        if np.log(rng.random()) < new - current:
            x, current = proposal, new
            accepted += 1
        samples[i] = x
    return samples, accepted / 100


@program(lambda r: (r.standard_normal(40),))
def bootstrap(x, seed=1):
    rng = np.random.default_rng(seed)
    means = [rng.choice(x, size=len(x)).mean() for _ in range(50)]
    low, high = np.percentile(means, [2.5, 97.5])
    return low, high, low < x.mean() < high


@program(lambda r: (1000,))
def monte_carlo_pi(n):
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(3):
        p = rng.random((n, 2))
        inside += int(np.sum((p**2).sum(axis=1) <= 1))
    return 4 * inside / (3 * n)


@program(lambda r: (np.array([3.0, 2.0, 1.0, 4.0, 5.5, 0.5]), np.random.default_rng(2)))
def simulated_annealing(values, rng):
    order = np.arange(len(values))

    def cost(o):
        return np.abs(np.diff(values[o])).sum()

    best, temperature = cost(order), 1.0
    current = best
    while temperature > 0.05:
        i, j = rng.integers(0, len(values), 2)
        candidate = order.copy()
        candidate[i], candidate[j] = candidate[j], candidate[i]
        new = cost(candidate)
        if new < current or rng.random() < math.exp((current - new) / temperature):
            order, current = candidate, new
            best = min(best, current)
        temperature *= 0.95
    return order, best


@program(lambda r: (np.random.default_rng(4), 3))
def genetic_algorithm(rng, generations):
    population = rng.random((12, 5))
    log = []
    for g in range(generations):
        fitness = -((population - 0.5) ** 2).sum(axis=1)
        order = np.argsort(fitness)[::-1]
        parents = population[order[:6]]
        log.append(f"{g}: {fitness[order[0]]:.6f}")
        children = (parents[rng.permutation(6)] + parents) / 2
        mutate = rng.random(children.shape) < 0.2
        children[mutate] += 0.1 * rng.standard_normal(mutate.sum())
        population = np.vstack([parents, children])
    return population, log


# Sequences, strings and sorting.


@program(lambda r: (100,))
def sieve(n):
    is_prime = np.ones(n + 1, dtype=bool)
    is_prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if is_prime[i]:
            is_prime[i * i :: i] = False
    return np.nonzero(is_prime)[0]


@program(lambda r: ("kitten", "sitting"))
def edit_distance(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    d[:, 0] = np.arange(len(a) + 1)
    d[0] = np.arange(len(b) + 1)
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            cost = 0 if x == y else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[-1, -1], d


@program(lambda r: (r.integers(0, 4, 10), r.integers(0, 4, 9)))
def longest_common_subsequence(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    for i in range(len(a)):
        for j in range(len(b)):
            if a[i] == b[j]:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = max(table[i + 1, j], table[i, j + 1])
    i, j, found = len(a), len(b), []
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            found.append(a[i - 1])
            i, j = i - 1, j - 1
        elif table[i - 1, j] >= table[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return found[::-1], table[-1, -1]


@program(lambda r: (r.integers(1, 10, 6), r.integers(1, 20, 6), 15))
def knapsack(weight, value, capacity):
    best = np.zeros(capacity + 1, dtype=int)
    for w, v in zip(weight, value, strict=True):
        new = best.copy()
        new[w:] = np.maximum(best[w:], best[:-w] + v)
        best = new
    return best[capacity]


@program(lambda r: (r.integers(0, 3, 60),))
def run_lengths(x):
    at = np.flatnonzero(np.diff(x)) + 1
    starts = np.r_[0, at]
    lengths = np.diff(np.r_[starts, len(x)])
    return [(int(v), int(n)) for v, n in zip(x[starts], lengths, strict=True)]


@program(lambda r: (np.sin(np.arange(120) / 5) + 0.2 * r.standard_normal(120), 0.3))
def find_peaks(x, height):
    peaks = []
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] > x[i + 1] and x[i] > height:
            if peaks and i - peaks[-1] < 5:
                if x[i] > x[peaks[-1]]:
                    peaks[-1] = i
            else:
                peaks.append(i)
    return np.array(peaks), x[peaks]


@program(lambda r: (r.standard_normal(30), 5))
def moving_average(x, n):
    out = np.empty_like(x)
    for i in range(len(x)):
        if i < n - 1:
            out[i] = np.nan
        else:
            out[i] = x[i - n + 1 : i + 1].mean()
    return out


@program(lambda r: (r.standard_normal(25),))
def quicksort(x):
    if len(x) <= 1:
        return x
    pivot = x[len(x) // 2]
    return np.concatenate([quicksort(x[x < pivot]), x[x == pivot], quicksort(x[x > pivot])])


@program(lambda r: (r.integers(0, 100, 16),))
def merge_sort(x):
    if len(x) < 2:
        return x
    left, right = merge_sort(x[: len(x) // 2]), merge_sort(x[len(x) // 2 :])
    out = np.empty(len(x), x.dtype)
    i = j = 0
    for k in range(len(x)):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            out[k] = left[i]
            i += 1
        else:
            out[k] = right[j]
            j += 1
    return out


@program(lambda r: (r.standard_normal(16),))
def insertion_sort_in_place(x):
    swaps = 0
    for i in range(1, len(x)):
        j = i
        while j > 0 and x[j - 1] > x[j]:
            x[j - 1], x[j] = x[j], x[j - 1]
            j -= 1
            swaps += 1
    return swaps


@program(lambda r: (r.standard_normal(32) + 0j,))
def fft_radix_2(x):
    n = len(x)
    if n & (n - 1):
        raise ValueError("length must be a power of two")
    if n == 1:
        return x
    even, odd = fft_radix_2(x[::2]), fft_radix_2(x[1::2])
    t = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + t, even - t])


@program(lambda r: (r.integers(0, 4, 40),))
def to_text(codes):
    text = "".join("ACGT"[c] for c in codes)
    return text, Counter(text), text.count("AC"), {c: text.index(c) for c in "ACGT" if c in text}


@program(lambda r: (r.integers(0, 6, 50),))
def count_values(x):
    counts = {}
    for value in x:
        counts[int(value)] = counts.get(int(value), 0) + 1
    most = max(counts, key=counts.get)
    return counts, most, {v: int(n) for v, n in zip(*np.unique(x, return_counts=True), strict=True)}


@program(lambda r: (r.integers(0, 4, 30), r.standard_normal(30)))
def group_by(keys, values):
    table = defaultdict(list)
    for key in np.unique(keys):
        chosen = values[keys == key]
        table[int(key)].append((chosen.mean(), chosen.std(), chosen.size))
    return dict(table)


@program(lambda r: (r.standard_normal((6, 3)),))
def report(table):
    lines = ["row      mean       max"]
    for i, row in enumerate(table):
        mark = "*" if row.max() > 1 else " "
        lines.append(f"{i:3d} {row.mean():9.4f} {row.max():9.4f}{mark}")
    print("\n".join(lines))
    print("total", round(float(table.sum()), 6), "shape", table.shape, table.dtype)
    return len(lines)


@program(lambda r: (r.standard_normal((30, 3)), r.standard_normal(30)))
def progress(x, y):
    w = np.zeros(3)
    for epoch in range(20):
        residual = x @ w - y
        w -= 0.1 * x.T @ residual / len(y)
        if epoch % 5 == 0:
            print(f"epoch {epoch:>2}: loss={np.mean(residual**2):.6f} w={np.round(w, 3)}")
    print("done")
    return w
