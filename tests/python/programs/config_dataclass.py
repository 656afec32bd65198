# mypy: ignore-errors
# ruff: noqa
import numpy as np
from dataclasses import dataclass, field, replace, asdict, astuple


@dataclass(frozen=True)
class Config:
    n: int = 10
    dt: float = 0.1
    scheme: str = "euler"

    def __post_init__(self):
        if self.dt <= 0:
            raise ValueError("dt must be > 0")


@dataclass
class State:
    x: np.ndarray
    v: np.ndarray
    t: float = 0.0
    log: list = field(default_factory=list)

    def energy(self):
        return 0.5 * (self.v @ self.v + self.x @ self.x)


def euler(s, dt):
    s.x = s.x + dt * s.v
    s.v = s.v - dt * s.x


def leapfrog(s, dt):
    s.v -= 0.5 * dt * s.x
    s.x += dt * s.v
    s.v -= 0.5 * dt * s.x


SCHEMES = {"euler": euler, "leapfrog": leapfrog}


def run(cfg, x0, v0):
    s = State(x0, v0)
    step = SCHEMES[cfg.scheme]
    for i in range(cfg.n):
        step(s, cfg.dt)
        s.t += cfg.dt
        if i % 3 == 0:
            s.log.append((i, s.energy()))
    return s, astuple(cfg), replace(cfg, n=cfg.n + 1), asdict(s)["t"]


CALLS = [
    ("run", lambda r: (Config(), r.random(3), r.random(3))),
    ("run", lambda r: (Config(5, 0.2, "leapfrog"), r.random(3), r.random(3))),
    ("run", lambda r: (Config(5, scheme="rk4"), r.random(3), r.random(3))),
    ("run", lambda r: (Config(4, 0.1 + r.random()), r.random(2), r.random(2))),
]
