# mypy: ignore-errors
# ruff: noqa
import numpy as np, warnings


def robust(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.log(x) / x
    r[~np.isfinite(r)] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            m = np.nanmean(np.where(x > 1e9, x, np.nan))
        except RuntimeWarning as e:
            m = str(e)
    return r, m


def strict(x, y):
    try:
        with np.errstate(all="raise"):
            return x / y, "fine"
    except FloatingPointError as e:
        return np.full_like(x, np.nan), str(e)


def nanstats(x):
    return (
        np.nanmax(x),
        np.nanargmin(x),
        np.nansum(x, axis=0),
        np.nanstd(x),
        np.isnan(x).any(axis=1),
        np.nan_to_num(x, nan=-1),
        np.fmax.reduce(x.ravel()),
        np.maximum.reduce(x.ravel()),
    )


CALLS = [
    ("robust", lambda r: (r.random(4) * np.array([1, 0, -1, 1]),)),
    ("strict", lambda r: (r.random(3), r.random(3))),
    ("strict", lambda r: (r.random(3), np.zeros(3))),
    ("nanstats", lambda r: (np.where(r.random((3, 4)) < 0.3, np.nan, r.random((3, 4))),)),
    ("strict", lambda r: (np.array([1e308, 1.0]), np.array([1e-10, 1.0]))),
    ("nanstats", lambda r: (np.full((2, 2), np.nan),)),
]
