# mypy: ignore-errors
# ruff: noqa
import numpy as np, enum, re


class S(enum.Enum):
    IDLE = "idle"
    RISE = "rise"
    HOLD = "hold"
    FALL = "fall"


class Detector:
    HYST = 0.1
    table = {
        (S.IDLE, True): S.RISE,
        (S.RISE, True): S.HOLD,
        (S.RISE, False): S.IDLE,
        (S.HOLD, False): S.FALL,
        (S.FALL, True): S.HOLD,
        (S.FALL, False): S.IDLE,
    }

    def __init__(self, level):
        self.level, self.state, self.log, self.since = level, S.IDLE, [], 0

    def feed(self, v):
        up = v > (
            self.level - self.HYST if self.state in (S.RISE, S.HOLD) else self.level + self.HYST
        )
        new = self.table.get((self.state, bool(up)), self.state)
        if new is not self.state:
            self.log.append((self.state.value, new.value, round(float(v), 4)))
            self.since = 0
        self.state = new
        self.since += 1
        return new


def run(x, level):
    d = Detector(level)
    states = [d.feed(v) for v in x]
    codes = np.array([list(S).index(s) for s in states])
    text = "".join(s.name[0] for s in states)
    return codes, text, [(m.start(), m.end()) for m in re.finditer("H+", text)], d.log, d.since


def rle(a):
    a = np.asarray(a)
    if a.size == 0:
        return a, a
    ch = np.r_[True, a[1:] != a[:-1], True]
    i = np.flatnonzero(ch)
    return a[i[:-1]], np.diff(i)


def unrle(v, n):
    return np.repeat(v, n)


def codec(a):
    v, n = rle(a)
    b = unrle(v, n)
    assert (b == a).all(), "not reversible"
    return list(zip(v.tolist(), n.tolist())), b.dtype


CALLS = [
    ("run", lambda r: (np.abs(np.sin(np.arange(12) + r.random())), 0.5)),
    ("codec", lambda r: (r.integers(0, 2, 10),)),
    ("codec", lambda r: (np.array([np.nan, np.nan, 1.0]),)),
    ("rle", lambda r: ([],)),
    ("run", lambda r: (r.random(9), 0.4)),
    ("codec", lambda r: (r.random(4) > 0.5,)),
]
