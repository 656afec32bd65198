# mypy: ignore-errors
# ruff: noqa: B007
"""Programs that ask for values (value_programs.py): models, agents, controllers and simulations, as
classes whose methods call each other and keep state from call to call."""

from __future__ import annotations

from collections import deque

import numpy as np
from value_programs import method


@method("fit", lambda r: (r.standard_normal((40, 3)), r.integers(0, 2, 40)), 0.5)
class LogisticRegression:
    def __init__(self, rate, tolerance=1e-3):
        self.rate, self.tolerance = rate, tolerance
        self.weights, self.bias = None, 0.0
        self.losses = []

    def predict(self, x):
        return 1 / (1 + np.exp(-(x @ self.weights + self.bias)))

    def fit(self, x, y, epochs=60):
        if self.weights is None:
            self.weights = np.zeros(x.shape[1])
        for epoch in range(epochs):
            p = self.predict(x)
            error = p - y
            self.weights -= self.rate * x.T @ error / len(y)
            self.bias -= self.rate * error.mean()
            loss = -np.mean(y * np.log(p + 1e-12) + (1 - y) * np.log(1 - p + 1e-12))
            if self.losses and abs(self.losses[-1] - loss) < self.tolerance:
                break
            self.losses.append(loss)
        return self


@method("train", lambda r: (r.standard_normal((30, 2)), r.integers(0, 2, (30, 1)) * 1.0))
class TwoLayers:
    def __init__(self):
        r = np.random.default_rng(1)
        self.params = {
            "w1": r.standard_normal((2, 5)) * 0.5,
            "b1": np.zeros(5),
            "w2": r.standard_normal((5, 1)) * 0.5,
            "b2": np.zeros(1),
        }
        self.velocity = {key: np.zeros_like(value) for key, value in self.params.items()}
        self.cache = {}

    def forward(self, x):
        z = x @ self.params["w1"] + self.params["b1"]
        hidden = np.maximum(z, 0)
        out = 1 / (1 + np.exp(-(hidden @ self.params["w2"] + self.params["b2"])))
        self.cache = {"x": x, "z": z, "hidden": hidden, "out": out}
        return out

    def backward(self, y):
        c, grads = self.cache, {}
        delta = (c["out"] - y) / len(y)
        grads["w2"], grads["b2"] = c["hidden"].T @ delta, delta.sum(axis=0)
        delta = (delta @ self.params["w2"].T) * (c["z"] > 0)
        grads["w1"], grads["b1"] = c["x"].T @ delta, delta.sum(axis=0)
        return grads

    def train(self, x, y, epochs=20, rate=0.3, momentum=0.9):
        losses = []
        for _ in range(epochs):
            out = self.forward(x)
            losses.append(float(((out - y) ** 2).mean()))
            for key, grad in self.backward(y).items():
                self.velocity[key] = momentum * self.velocity[key] - rate * grad
                self.params[key] += self.velocity[key]
        return losses


@method("episode", lambda r: (int(r.integers(0, 4)),))
class QLearning:
    """An agent on a ring of states; the last one ends the episode."""

    def __init__(self, states=8, actions=2, alpha=0.4, gamma=0.9, epsilon=0.2):
        self.q = np.zeros((states, actions))
        self.alpha, self.gamma, self.epsilon = alpha, gamma, epsilon
        self.rng = np.random.default_rng(3)
        self.steps = []

    def choose(self, state):
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(self.q.shape[1]))
        return int(np.argmax(self.q[state]))

    def episode(self, state):
        for step in range(60):
            action = self.choose(state)
            following = state + 1 if action else max(state - 1, 0)
            reward = 1.0 if following == len(self.q) - 1 else -0.01
            best = 0.0 if reward > 0 else self.q[following].max()
            self.q[state, action] += self.alpha * (
                reward + self.gamma * best - self.q[state, action]
            )
            state = following
            if reward > 0:
                break
        self.steps.append(step + 1)
        return self.q.copy(), step


@method("track", lambda r: (np.cumsum(r.standard_normal(20)) + r.standard_normal(20),))
class KalmanTracker:
    def __init__(self, dt=1.0, q=0.1, r=1.0):
        self.f = np.array([[1.0, dt], [0.0, 1.0]])
        self.h = np.array([[1.0, 0.0]])
        self.q, self.r = q * np.eye(2), r * np.eye(1)
        self.x, self.p = np.zeros(2), 10 * np.eye(2)
        self.rejected = 0

    def predict(self):
        self.x = self.f @ self.x
        self.p = self.f @ self.p @ self.f.T + self.q

    def update(self, z):
        y = z - self.h @ self.x
        s = self.h @ self.p @ self.h.T + self.r
        if (y**2 / s[0, 0])[0] > 9:
            self.rejected += 1
            return False
        k = self.p @ self.h.T @ np.linalg.inv(s)
        self.x = self.x + k @ y
        self.p = (np.eye(2) - k @ self.h) @ self.p
        return True

    def track(self, measured):
        path = np.zeros((len(measured), 2))
        for i, z in enumerate(measured):
            self.predict()
            self.update(z)
            path[i] = self.x
        return path, self.rejected


@method("run", lambda r: (float(r.random() * 20),))
class Controller:
    def __init__(self):
        self.kp, self.ki, self.kd = 1.2, 0.4, 0.05
        self.integral, self.last = 0.0, None
        self.history = deque(maxlen=5)

    def control(self, error, dt):
        self.integral = min(max(self.integral + error * dt, -10.0), 10.0)
        slope = 0.0 if self.last is None else (error - self.last) / dt
        self.last = error
        return self.kp * error + self.ki * self.integral + self.kd * slope

    def run(self, target, dt=0.1):
        value, settled = 0.0, None
        for step in range(80):
            power = self.control(target - value, dt)
            value += dt * (power - 0.3 * value)
            self.history.append(value)
            if settled is None and abs(target - value) < 0.05:
                settled = step
        return value, settled, list(self.history)


@method("step", lambda r: (0.05,), 12)
class Particles:
    def __init__(self, n):
        r = np.random.default_rng(5)
        self.position, self.speed = r.random((n, 2)), r.standard_normal((n, 2))
        self.time, self.hits = 0.0, np.zeros(n, int)

    def bounce(self):
        for axis in range(2):
            outside = (self.position[:, axis] < 0) | (self.position[:, axis] > 1)
            self.speed[outside, axis] *= -1
            self.hits += outside
        np.clip(self.position, 0, 1, out=self.position)

    def pairs(self, radius):
        found = []
        for i in range(len(self.position)):
            for j in range(i + 1, len(self.position)):
                if np.linalg.norm(self.position[i] - self.position[j]) < radius:
                    found.append((i, j))
        return found

    def step(self, dt):
        for _ in range(5):
            self.position += self.speed * dt
            self.bounce()
            self.time += dt
        for i, j in self.pairs(0.15):
            self.speed[[i, j]] = self.speed[[j, i]]
        energy = 0.5 * (self.speed**2).sum()
        return energy, self.hits.sum(), round(self.time, 6)


@method("fit", lambda r: (r.standard_normal((30, 2)), r.choice([-1, 1], 30)), 4)
class AdaBoost:
    def __init__(self, rounds):
        self.rounds, self.stumps = rounds, []

    def stump(self, x, y, w):
        best = (np.inf, None)
        for feature in range(x.shape[1]):
            for threshold in np.linspace(x[:, feature].min(), x[:, feature].max(), 6):
                for sign in (1, -1):
                    guess = np.where(x[:, feature] < threshold, sign, -sign)
                    error = w[guess != y].sum()
                    if error < best[0]:
                        best = (error, (feature, threshold, sign))
        return best

    def fit(self, x, y):
        w = np.linspace(1, 2, len(y))
        w /= w.sum()
        self.stumps.clear()
        for _ in range(self.rounds):
            error, (feature, threshold, sign) = self.stump(x, y, w)
            error = min(max(error, 0.01), 0.99)
            alpha = 0.5 * np.log((1 - error) / error)
            guess = np.where(x[:, feature] < threshold, sign, -sign)
            w = w * np.exp(-alpha * y * guess)
            w /= w.sum()
            self.stumps.append((alpha, feature, threshold, sign))
        return self.score(x, y)

    def score(self, x, y):
        total = np.zeros(len(x))
        for alpha, feature, threshold, sign in self.stumps:
            total += alpha * np.where(x[:, feature] < threshold, sign, -sign)
        return np.mean(np.sign(total) == y)


@method("pull", lambda r: (25,))
class Bandit:
    def __init__(self, arms=4):
        self.rng = np.random.default_rng(11)
        self.means = self.rng.random(arms)
        self.counts, self.values = np.zeros(arms, int), np.zeros(arms)

    def pull(self, rounds):
        total = 0.0
        for _ in range(rounds):
            if (self.counts == 0).any():
                arm = int(np.flatnonzero(self.counts == 0)[0])
            else:
                bonus = np.sqrt(2 * np.log(self.counts.sum()) / self.counts)
                arm = int(np.argmax(self.values + bonus))
            reward = float(self.rng.random() < self.means[arm])
            self.counts[arm] += 1
            self.values[arm] += (reward - self.values[arm]) / self.counts[arm]
            total += reward
        return total, self.counts.copy()


@method("minimize", lambda r: (r.standard_normal(4),))
class QuasiNewton:
    """BFGS with backtracking."""

    def __init__(self, limit=40):
        self.limit, self.evaluations, self.trace = limit, 0, []

    def value(self, x):
        self.evaluations += 1
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def gradient(self, x):
        g = np.zeros_like(x)
        g[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
        g[1:] += 200 * (x[1:] - x[:-1] ** 2)
        return g

    def minimize(self, x):
        h, g = np.eye(len(x)), self.gradient(x)
        for _ in range(self.limit):
            if np.linalg.norm(g) < 1e-4:
                break
            d = -h @ g
            t, f = 1.0, self.value(x)
            while self.value(x + t * d) > f + 1e-4 * t * g @ d:
                t *= 0.5
                if t < 1e-8:
                    break
            s = t * d
            new = self.gradient(x + s)
            y = new - g
            if s @ y > 1e-10:
                rho = 1 / (s @ y)
                a = np.eye(len(x)) - rho * np.outer(s, y)
                h = a @ h @ a.T + rho * np.outer(s, s)
            x, g = x + s, new
            self.trace.append(f)
        return x, self.evaluations


@method("generation", lambda r: (2,))
class Life:
    def __init__(self, n=12):
        self.cells = (np.random.default_rng(2).random((n, n)) < 0.35).astype(np.uint8)
        self.seen, self.age = {}, 0

    def neighbours(self):
        total = np.zeros_like(self.cells)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if dy or dx:
                    total += np.roll(self.cells, (dy, dx), axis=(0, 1))
        return total

    def generation(self, count):
        for _ in range(count):
            n = self.neighbours()
            self.cells = ((n == 3) | ((self.cells == 1) & (n == 2))).astype(np.uint8)
            self.age += 1
            key = self.cells.tobytes()
            if key in self.seen:
                return f"cycle of {self.age - self.seen[key]}"
            self.seen[key] = self.age
        return int(self.cells.sum())


@method("backtest", lambda r: (100 + np.cumsum(r.standard_normal(80)),))
class Strategy:
    def __init__(self, fast=3, slow=9, cash=1000.0):
        self.fast, self.slow, self.cash, self.shares = fast, slow, cash, 0
        self.trades = []

    def signal(self, prices, day):
        fast = prices[day - self.fast : day].mean()
        return fast > prices[day - self.slow : day].mean()

    def backtest(self, prices):
        worth = np.empty(len(prices))
        for day, price in enumerate(prices):
            if day >= self.slow:
                wants = self.signal(prices, day)
                if wants and self.shares == 0:
                    self.shares = int(self.cash // price)
                    self.cash -= self.shares * price
                    self.trades.append(("buy", day))
                elif not wants and self.shares > 0:
                    self.cash += self.shares * price
                    self.shares = 0
                    self.trades.append(("sell", day))
            worth[day] = self.cash + self.shares * price
        peak = np.maximum.accumulate(worth)
        return worth[-1], ((peak - worth) / peak).max(), len(self.trades)


@method("iterate", lambda r: (r.random((5, 5)),))
class GridWorld:
    def __init__(self, gamma=0.9):
        self.gamma, self.sweeps = gamma, 0

    def backup(self, values, rewards):
        padded = np.pad(values, 1, mode="edge")
        moves = np.stack([padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]])
        return rewards + self.gamma * moves.max(axis=0), moves.argmax(axis=0)

    def iterate(self, rewards, tolerance=1e-3):
        values = np.zeros_like(rewards)
        while True:
            new, policy = self.backup(values, rewards)
            self.sweeps += 1
            change = np.abs(new - values).max()
            values = new
            if change < tolerance or self.sweeps > 300:
                return values, policy, self.sweeps


@method("add", lambda r: (r.standard_normal(7),), 16)
class RollingStatistics:
    def __init__(self, size):
        self.buffer, self.at, self.full = np.zeros(size), 0, False
        self.alerts = []

    def add(self, values):
        for value in values:
            self.buffer[self.at] = value
            self.at += 1
            if self.at == len(self.buffer):
                self.at, self.full = 0, True
            known = self.buffer if self.full else self.buffer[: self.at]
            mean, spread = known.mean(), known.std()
            if spread > 0 and abs(value - mean) > 2 * spread:
                self.alerts.append((float(value), round(float(mean), 6)))
        return known.mean(), np.median(known), len(self.alerts)
