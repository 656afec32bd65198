# mypy: ignore-errors
# ruff: noqa
import numpy as np


class PID:
    def __init__(self, kp, ki, kd, limits=(None, None)):
        self.kp, self.ki, self.kd = kp, ki, kd
        self.integral = 0
        self.last = None
        self.lo, self.hi = limits

    def __call__(self, err, dt):
        self.integral += err * dt
        d = 0 if self.last is None else (err - self.last) / dt
        self.last = err
        u = self.kp * err + self.ki * self.integral + self.kd * d
        if self.hi is not None and u > self.hi:
            self.integral -= err * dt
            u = self.hi
        elif self.lo is not None and u < self.lo:
            self.integral -= err * dt
            u = self.lo
        return u


class Plant:
    def __init__(self, A, B):
        self.A, self.B = A, B
        self.x = np.zeros(len(B))
        self.trace = [self.x]

    def step(self, u, dt):
        k1 = self.A @ self.x + self.B * u
        k2 = self.A @ (self.x + dt / 2 * k1) + self.B * u
        self.x = self.x + dt * k2
        self.trace.append(self.x)
        return self.x


def simulate(target, n, dt, kp=2.0, limits=(None, None)):
    plant = Plant(np.array([[0.0, 1.0], [-1.0, -0.5]]), np.array([0.0, 1.0]))
    pid = PID(kp, 0.5, 0.1, limits)
    settle = None
    for i in range(n):
        x = plant.step(pid(target - plant.x[0], dt), dt)
        if settle is None and abs(x[0] - target) < 0.1 * abs(target):
            settle = i
    return np.array(plant.trace), settle, pid, plant


CALLS = [
    ("simulate", lambda r: (1.0, 30, 0.1)),
    ("simulate", lambda r: (2.0, 40, 0.1, 5.0, (-1.0, 1.0))),
    ("simulate", lambda r: (1, 10, 0.2)),
    ("simulate", lambda r: (r.random(), 20, 0.1, 3, (None, 0.5))),
]
