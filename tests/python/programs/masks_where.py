# mypy: ignore-errors
# ruff: noqa
import numpy as np


def tax(income):
    brackets = [0, 10, 40, 100]
    rates = np.array([0.1, 0.2, 0.4])
    lo, hi = np.array(brackets[:-1]), np.array(brackets[1:])
    part = np.clip(income[:, None], lo, hi) - lo
    return (part * rates).sum(1)


def grades(s):
    return (
        np.select([s >= 90, s >= 70, s >= 50], ["A", "B", "C"], default="F"),
        np.piecewise(s, [s < 50, s >= 50], [lambda v: v * 0.5, lambda v: v + 1]),
        np.where(s > 60)[0],
        np.argwhere(s > 60),
        np.extract(s > 60, s),
        np.compress([True, False, True], s[:3]),
        np.count_nonzero(s > 50),
    )


def outliers(x, k=1.5):
    q1, q3 = np.percentile(x, [25, 75])
    m = (x < q1 - k * (q3 - q1)) | (x > q3 + k * (q3 - q1))
    y = x.copy()
    y[m] = np.median(x[~m])
    z = np.where(m, np.nan, x)
    np.putmask(x, m, 0)
    np.copyto(y, -1, where=y > 2)
    return y, z, m.nonzero(), ~m & (x > 0), m.any(), np.flatnonzero(np.diff(m.astype(int)) == 1)


def interp_nan(y):
    bad = np.isnan(y)
    if bad.all():
        raise ValueError("all missing")
    idx = lambda m: m.nonzero()[0]
    y[bad] = np.interp(idx(bad), idx(~bad), y[~bad])
    return y


CALLS = [
    ("tax", lambda r: (r.random(4) * 150,)),
    ("grades", lambda r: (r.random(5) * 100,)),
    ("outliers", lambda r: (np.r_[r.normal(size=8), 10.0],)),
    ("interp_nan", lambda r: (np.where(r.random(7) < 0.3, np.nan, r.random(7)),)),
    ("interp_nan", lambda r: (np.full(3, np.nan),)),
    ("outliers", lambda r: (r.normal(size=6), 0.5)),
    ("tax", lambda r: (np.array([5, 50, 500]),)),
]
