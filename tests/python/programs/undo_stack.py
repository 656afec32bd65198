# mypy: ignore-errors
# ruff: noqa
import numpy as np


class Canvas:
    def __init__(self, h, w):
        self.px = np.zeros((h, w), np.uint8)
        self.undo, self.redo = [], []

    def _save(self):
        self.undo.append(self.px.copy())
        self.redo.clear()

    def rect(self, y, x, h, w, c):
        self._save()
        self.px[y : y + h, x : x + w] = c
        return self

    def line(self, y0, x0, y1, x1, c):
        self._save()
        n = max(abs(y1 - y0), abs(x1 - x0)) + 1
        self.px[
            np.linspace(y0, y1, n).round().astype(int), np.linspace(x0, x1, n).round().astype(int)
        ] = c
        return self

    def back(self):
        if not self.undo:
            raise IndexError("nothing to undo")
        self.redo.append(self.px)
        self.px = self.undo.pop()
        return self

    def forward(self):
        self.undo.append(self.px)
        self.px = self.redo.pop()
        return self

    def __str__(self):
        return "\n".join("".join(".#+*"[v % 4] for v in r) for r in self.px)


def session(h, w, ops):
    c = Canvas(h, w)
    for name, *a in ops:
        getattr(c, name)(*a)
    print(c)
    return c.px, len(c.undo), len(c.redo), c


shared = Canvas(4, 5)


def draw(c):
    shared.rect(0, 0, 2, 2, c).line(0, 0, 3, 4, c + 1)
    return shared.px.sum(), str(shared)


CALLS = [
    (
        "session",
        lambda r: (
            4,
            6,
            [("rect", 1, 1, 2, 3, 1), ("line", 0, 0, 3, 5, 2), ("back",), ("back",), ("forward",)],
        ),
    ),
    ("session", lambda r: (2, 2, [("back",)])),
    ("draw", lambda r: (1,)),
    ("draw", lambda r: (int(r.integers(5)),)),
    ("session", lambda r: (3, 3, [("rect", 0, 0, 9, 9, 300)])),
]
