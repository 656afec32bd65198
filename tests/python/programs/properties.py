# mypy: ignore-errors
# ruff: noqa
import numpy as np
from enum import Enum, IntEnum, auto
from typing import NamedTuple


class Unit(Enum):
    RAD = auto()
    DEG = auto()


class Axis(IntEnum):
    X = 0
    Y = 1
    Z = 2


class Pose(NamedTuple):
    t: np.ndarray
    q: np.ndarray

    def inverse(self):
        return Pose(
            -rotate(self.q * np.array([1, -1, -1, -1]), self.t), self.q * np.array([1, -1, -1, -1])
        )


def rotate(q, v):
    w, u = q[0], q[1:]
    return v + 2 * np.cross(u, np.cross(u, v) + w * v)


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name)

    def __set__(self, obj, value):
        if value <= 0:
            raise ValueError(f"{self.name[1:]} must be positive, not {value}")
        setattr(obj, self.name, value)


class Body:
    mass = Positive()
    count = 0

    def __init__(self, mass, pos):
        self.mass = mass
        self._pos = np.asarray(pos, float)
        type(self).count += 1

    @property
    def pos(self):
        return self._pos

    @pos.setter
    def pos(self, v):
        self._pos[:] = v

    def __getattr__(self, name):
        if name in Axis.__members__.keys():
            return self._pos[Axis[name]]
        raise AttributeError(name)

    def rotated(self, angle, unit=Unit.RAD, axis=Axis.Z):
        a = np.deg2rad(angle) if unit is Unit.DEG else angle
        q = np.zeros(4)
        q[0] = np.cos(a / 2)
        q[1 + axis] = np.sin(a / 2)
        pose = Pose(np.zeros(3), q)
        self.pos = rotate(pose.q, self.pos)
        return pose


def main(m, p, a):
    b = Body(m, p)
    pose = b.rotated(a, Unit.DEG)
    pose2 = b.rotated(a / 10, axis=Axis.X)
    b.mass = b.mass * 2
    return b, b.X, b.Z, pose, pose2.inverse(), Body.count


CALLS = [
    ("main", lambda r: (2.0, r.random(3), 30)),
    ("main", lambda r: (1, [1, 2, 3], 90.0)),
    ("main", lambda r: (-1.0, r.random(3), 3)),
    ("main", lambda r: (np.float64(3), r.random(3), 45)),
    ("rotate", lambda r: (r.random(4), r.random(3))),
]
