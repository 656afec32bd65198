# mypy: ignore-errors
# ruff: noqa
import numpy as np

RATE = 8000


def adsr(n, a, d, s, r):
    env = np.empty(n)
    na, nd, nr = int(a * n), int(d * n), int(r * n)
    env[:na] = np.linspace(0, 1, na, endpoint=False)
    env[na : na + nd] = np.linspace(1, s, nd)
    env[na + nd : n - nr] = s
    env[n - nr :] = np.linspace(s, 0, nr)
    return env


def tone(freq, dur, kind="sine"):
    t = np.arange(int(dur * RATE)) / RATE
    ph = 2 * np.pi * freq * t
    match kind:
        case "sine":
            y = np.sin(ph)
        case "square":
            y = np.sign(np.sin(ph))
        case "saw":
            y = 2 * (freq * t % 1) - 1
        case _:
            raise ValueError(f"unknown wave {kind!r}")
    return y * adsr(len(t), 0.1, 0.2, 0.7, 0.3)


def note(name):
    names = "C C# D D# E F F# G G# A A# B".split()
    return 440 * 2 ** ((names.index(name[:-1]) - 9) / 12 + int(name[-1]) - 4)


def song(notes, kind):
    parts = [tone(note(n), 0.02, kind) for n in notes]
    y = np.concatenate(parts)
    pcm = np.int16(y / np.max(np.abs(y)) * 32767)
    zc = np.count_nonzero(np.diff(np.sign(y)))
    return pcm, zc, pcm.tobytes()[:4]


def karplus(freq, n, seed):
    N = int(RATE / freq)
    rng = np.random.RandomState(seed)
    buf = rng.uniform(-1, 1, N)
    out = np.zeros(n)
    for i in range(n):
        out[i] = buf[i % N]
        buf[i % N] = 0.996 * 0.5 * (buf[i % N] + buf[(i + 1) % N])
    return out


CALLS = [
    ("song", lambda r: (["A4", "C#5", "E5"], "sine")),
    ("song", lambda r: (["A4", "B3"], "square")),
    ("karplus", lambda r: (440, 60, 0)),
    ("karplus", lambda r: (1000.0, 30, 1)),
    ("song", lambda r: (["H4"], "sine")),
    ("song", lambda r: (["A4"], "noise")),
    ("song", lambda r: (["A4", "G2"], "saw")),
]
