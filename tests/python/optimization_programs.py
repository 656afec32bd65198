# mypy: ignore-errors
# ruff: noqa: B007
"""Programs that ask for values (value_programs.py): roots and optimization, clusters and
mixtures."""

from __future__ import annotations

from collections import deque

import numpy as np
from value_programs import program

# Roots and optimization.


@program(lambda r: (2.0, 1e-12))
def newton_square_root(a, tol):
    x = np.float64(a)
    steps = 0
    while abs(x * x - a) > tol:
        x = x - (x * x - a) / (2 * x)
        steps += 1
    return x, steps


@program(lambda r: (np.array([1.5, 1.0]),))
def newton_system(x):
    for _ in range(20):
        f = np.array([x[0] ** 2 + x[1] ** 2 - 4, x[0] * x[1] - 1])
        if np.linalg.norm(f) < 1e-10:
            break
        jacobian = np.array([[2 * x[0], 2 * x[1]], [x[1], x[0]]])
        x = x - np.linalg.solve(jacobian, f)
    return x


@program(lambda r: (np.array([1.0, -3.0, 0.5, -2.0]), 0.0, 5.0))
def secant(c, x0, x1):
    f0, f1 = np.polyval(c, x0), np.polyval(c, x1)
    for i in range(100):
        if f1 == f0:
            raise ZeroDivisionError("flat")
        x2 = x1 - f1 * (x1 - x0) / (f1 - f0)
        if abs(x2 - x1) < 1e-10:
            return x2
        x0, f0, x1, f1 = x1, f1, x2, np.polyval(c, x2)
    return x1


def bisect(f, a, b, tol=1e-9):
    fa, fb = f(a), f(b)
    if fa * fb > 0:
        raise ValueError(f"no sign change in [{a}, {b}]")
    while b - a > tol:
        m = (a + b) / 2
        fm = f(m)
        if fm == 0:
            return m
        if fa * fm < 0:
            b, fb = m, fm
        else:
            a, fa = m, fm
    return (a + b) / 2


@program(lambda r: (np.array([1.0, 0.0, -2.0, -5.0]),))
def bisection(c):
    return bisect(lambda x: np.polyval(c, x), 2.0, 3.0)


@program(lambda r: (np.array([1.0, 0.0, 1.0]),))
def bisection_without_root(c):
    return bisect(lambda x: np.polyval(c, x), 2.0, 3.0)


@program(lambda r: (np.linspace(-5, 5, 64), np.zeros(64) + 1.5))
def bisection_of_many(lo, target):
    lo, hi = np.zeros_like(target), lo**2 + 3
    while np.any(hi - lo > 1e-8):
        mid = 0.5 * (lo + hi)
        above = mid**2 > target
        hi[above] = mid[above]
        lo[~above] = mid[~above]
    return 0.5 * (lo + hi)


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def rosenbrock_gradient(x):
    return np.array([-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)])


@program(lambda r: (np.array([-1.2, 1.0]),))
def armijo_descent(x):
    steps = []
    for _ in range(30):
        g = rosenbrock_gradient(x)
        if np.linalg.norm(g) < 1e-6:
            break
        f0 = rosenbrock(x)
        t = 1.0
        while rosenbrock(x - t * g) > f0 - 1e-4 * t * (g @ g):
            t *= 0.5
        x = x - t * g
        steps.append(t)
    return x, steps, rosenbrock(x)


@program(lambda r: (np.array([-1.2, 1.0]), np.array([1.0, 0.5])))
def wolfe_line_search(x, p):
    c1, c2 = 1e-4, 0.9
    lo, hi, t = 0.0, np.inf, 1.0
    f0, slope = rosenbrock(x), rosenbrock_gradient(x) @ p
    if slope >= 0:
        p, slope = -p, -slope
    for _ in range(50):
        if rosenbrock(x + t * p) > f0 + c1 * t * slope:
            hi = t
        elif rosenbrock_gradient(x + t * p) @ p < c2 * slope:
            lo = t
        else:
            break
        t = (lo + hi) / 2 if np.isfinite(hi) else 2 * lo
    return t, x + t * p


@program(lambda r: (np.array([-1.2, 1.0]),))
def bfgs(x):
    n = len(x)
    h = np.eye(n)
    g = rosenbrock_gradient(x)
    for it in range(100):
        if np.max(np.abs(g)) < 1e-5:
            break
        p = -h @ g
        t, f = 1.0, rosenbrock(x)
        while rosenbrock(x + t * p) > f + 1e-4 * t * g.dot(p):
            t /= 2
            if t < 1e-12:
                break
        s = t * p
        new = rosenbrock_gradient(x + s)
        y = new - g
        sy = s @ y
        if sy > 1e-10:
            rho = 1 / sy
            left = np.eye(n) - rho * np.outer(s, y)
            h = left @ h @ left.T + rho * np.outer(s, s)
        x, g = x + s, new
    return x, it < 99


@program(lambda r: (np.array([-1.0, 1.5]),))
def nelder_mead(x0):
    simplex = [x0] + [x0 + 0.5 * np.eye(2)[i] for i in range(2)]
    values = [rosenbrock(x) for x in simplex]
    for _ in range(40):
        order = np.argsort(values)
        simplex, values = [simplex[i] for i in order], [values[i] for i in order]
        if abs(values[-1] - values[0]) < 1e-10:
            break
        center = np.mean(simplex[:-1], axis=0)
        reflected = center + (center - simplex[-1])
        fr = rosenbrock(reflected)
        if values[0] <= fr < values[-2]:
            simplex[-1], values[-1] = reflected, fr
        elif fr < values[0]:
            expanded = center + 2 * (center - simplex[-1])
            fe = rosenbrock(expanded)
            simplex[-1], values[-1] = (expanded, fe) if fe < fr else (reflected, fr)
        else:
            contracted = center + 0.5 * (simplex[-1] - center)
            fc = rosenbrock(contracted)
            if fc < values[-1]:
                simplex[-1], values[-1] = contracted, fc
            else:
                simplex = [simplex[0]] + [simplex[0] + 0.5 * (s - simplex[0]) for s in simplex[1:]]
                values = [rosenbrock(s) for s in simplex]
    return simplex[0], values[0]


@program(lambda r: (r.standard_normal((80, 4)), r.standard_normal(80)))
def early_stopping(x, y):
    train, test = slice(None, 60), slice(60, None)
    w = np.zeros(x.shape[1])
    best, best_w, bad = np.inf, None, 0
    losses = []
    for epoch in range(200):
        e = x[train] @ w - y[train]
        w = w - 0.05 * x[train].T @ e / 60
        loss = np.mean((x[test] @ w - y[test]) ** 2)
        losses.append(loss)
        if loss < best - 1e-7:
            best, best_w, bad = loss, w.copy(), 0
        else:
            bad += 1
            if bad >= 5:
                break
    return best, best_w, losses, epoch


@program(lambda r: (r.standard_normal((60, 3)), (r.random(60) > 0.5).astype(float)))
def logistic_irls(x, y):
    w = np.zeros(x.shape[1])
    for i in range(25):
        p = 1 / (1 + np.exp(-x @ w))
        s = p * (1 - p)
        if np.any(s < 1e-10):
            raise RuntimeError("separable")
        step = np.linalg.solve((x.T * s) @ x, x.T @ (y - p))
        w = w + step
        if np.linalg.norm(step) < 1e-8:
            break
    return w, i


@program(lambda r: (r.standard_normal((40, 8)), r.standard_normal(40), 3.0))
def lasso_by_coordinate_descent(x, y, penalty):
    w = np.zeros(x.shape[1])
    norms = (x**2).sum(axis=0)
    for _ in range(60):
        largest = 0.0
        for j in range(len(w)):
            old = w[j]
            rho = x[:, j] @ (y - x @ w + x[:, j] * w[j])
            if rho > penalty:
                w[j] = (rho - penalty) / norms[j]
            elif rho < -penalty:
                w[j] = (rho + penalty) / norms[j]
            else:
                w[j] = 0
            largest = max(largest, abs(w[j] - old))
        if largest < 1e-7:
            break
    return w, np.flatnonzero(w).tolist()


@program(
    lambda r: (
        np.array([[2.0, 1, 1, 0], [1, 3, 0, 1]]),
        np.array([8.0, 9.0]),
        np.array([-3.0, -5, 0, 0]),
    )
)
def simplex_method(a, b, c):
    m, n = a.shape
    tableau = np.zeros((m + 1, n + 1))
    tableau[:m, :n], tableau[:m, -1], tableau[-1, :n] = a, b, c
    basis = [2, 3]
    while True:
        j = int(np.argmin(tableau[-1, :-1]))
        if tableau[-1, j] >= -1e-12:
            break
        column = tableau[:m, j]
        if np.all(column <= 0):
            raise ValueError("unbounded")
        ratios = np.where(column > 0, tableau[:m, -1] / np.where(column > 0, column, 1), np.inf)
        i = ratios.argmin()
        basis[i] = j
        tableau[i] /= tableau[i, j]
        for k in range(m + 1):
            if k != i:
                tableau[k] -= tableau[k, j] * tableau[i]
    x = np.zeros(n)
    x[basis] = tableau[:m, -1]
    return x, -tableau[-1, -1], basis


@program(lambda r: (lambda x: (x - 2) ** 2 + 1, 0.0, 5.0))
def golden_section(f, a, b):
    ratio = (np.sqrt(5) - 1) / 2
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    evaluations = 2
    while abs(b - a) > 1e-6:
        if f(c) < f(d):
            b = d
        else:
            a = c
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        evaluations += 2
    return (a + b) / 2, evaluations


# Clusters and mixtures.


@program(lambda r: (np.concatenate([r.normal(m, 0.3, (40, 2)) for m in (0, 3, 6)]), 3))
def kmeans(points, k):
    centers = points[:: len(points) // k][:k].copy()
    labels = None
    for step in range(50):
        distances = np.linalg.norm(points[:, None] - centers[None], axis=2)
        new = np.argmin(distances, axis=1)
        if labels is not None and np.array_equal(new, labels):
            break
        labels = new
        for j in range(k):
            members = points[labels == j]
            if len(members) == 0:
                continue
            centers[j] = members.mean(axis=0)
    return centers, labels, step


@program(lambda r: (np.concatenate([r.normal(-2, 0.5, 60), r.normal(3, 1.0, 90)]),))
def mixture_by_em(x):
    mu = np.array([x.min(), x.max()])
    sigma = np.array([1.0, 1.0])
    pi = np.array([0.5, 0.5])
    last = -np.inf
    for it in range(100):
        density = np.exp(-0.5 * ((x[:, None] - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
        weighted = pi * density
        total = weighted.sum(axis=1, keepdims=True)
        r = weighted / total
        likelihood = np.log(total).sum()
        if likelihood - last < 1e-6:
            break
        last = likelihood
        n = r.sum(axis=0)
        mu = (r * x[:, None]).sum(axis=0) / n
        sigma = np.sqrt((r * (x[:, None] - mu) ** 2).sum(axis=0) / n)
        pi = n / len(x)
    return mu, sigma, pi, likelihood


@program(lambda r: (np.concatenate([r.normal(m, 0.2, (20, 2)) for m in (0, 2)]),))
def dbscan(points, eps=0.4, minimum=4):
    n = len(points)
    labels = np.full(n, -1)
    visited = np.zeros(n, bool)
    cluster = 0
    for i in range(n):
        if visited[i]:
            continue
        visited[i] = True
        near = np.flatnonzero(((points - points[i]) ** 2).sum(axis=1) < eps**2)
        if len(near) < minimum:
            continue
        labels[i] = cluster
        queue = deque(near.tolist())
        while queue:
            j = queue.popleft()
            if labels[j] == -1:
                labels[j] = cluster
            if visited[j]:
                continue
            visited[j] = True
            others = np.flatnonzero(((points - points[j]) ** 2).sum(axis=1) < eps**2)
            if len(others) >= minimum:
                queue.extend(others.tolist())
        cluster += 1
    return labels, cluster


@program(lambda r: (np.sort(r.standard_normal(12))[:, None] * [1.0, 2.0],))
def agglomerate(points, k=3):
    clusters = [[i] for i in range(len(points))]
    merges = []
    while len(clusters) > k:
        centers = np.array([points[c].mean(axis=0) for c in clusters])
        d = ((centers[:, None] - centers[None]) ** 2).sum(-1)
        d[np.diag_indices_from(d)] = np.inf
        i, j = np.unravel_index(d.argmin(), d.shape)
        merges.append((int(i), int(j), float(d[i, j])))
        clusters[i] += clusters[j]
        del clusters[j]
    return clusters, merges
