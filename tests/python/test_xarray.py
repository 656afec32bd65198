"""xarray's arrays and datasets as arguments, of NumPy's arrays and of dask's: results are what
xarray computes, with dimensions, coordinates, names and attributes."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

if "CI" not in os.environ or sys.version_info < (3, 11):
    pytest.importorskip("xarray")
    pytest.importorskip("dask")
import dask.array as da
import xarray as xr


def labelled(scale: float = 1.0) -> Any:
    return xr.DataArray(
        scale * np.random.default_rng(0).random((6, 4)),
        dims=("t", "y"),
        coords={
            "t": np.arange(6) * 10,
            "place": ("y", list("abcd")),
            "day": np.datetime64("2020-01-01", "ns"),
            "area": (("t", "y"), np.arange(24.0).reshape(6, 4), {"units": "m2"}),
        },
        name="height",
        attrs={"units": "m", "range": np.array([0, 1])},
    )


def same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, (xr.DataArray, xr.Dataset)):
        xr.testing.assert_allclose(found, wanted)
        xr.testing.assert_identical(found * 0, wanted * 0)  # names, coordinates, attributes
        assert str(found.attrs) == str(wanted.attrs)
    else:
        np.testing.assert_allclose(found, wanted)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: 2 * x + np.sqrt(x),
    "mean over a dimension": lambda x: x - x.mean("t"),
    "of all": lambda x: (x.sum(), x.std()),
    "selection of labels": lambda x: x.sel(t=slice(10, 30)),
    "lists of labels": lambda x: x.sel(t=[10, 50, 20]),
    "groups": lambda x: x.groupby_bins("t", 3).mean(),
    "slices": lambda x: x.isel(t=slice(1, 5), y=2),
    "transposed": lambda x: x.transpose("y", "t") / 2,
    "where": lambda x: xr.where(x > 0.5, x, 0) + x.where(x < 0.5, 1),
    "differences": lambda x: x.diff("t"),
    "shifts": lambda x: x.shift(t=1),
    "windows": lambda x: x.rolling(t=3).mean(),
    "neighbours": lambda x: x.isel(t=0) + x.isel(t=1, drop=True),
    "broadcasting": lambda x: x.max("y") * x.min("t"),
    "products": lambda x: xr.dot(x.drop_vars("day"), x.drop_vars("day").isel(t=0), dim="y"),
    "coordinates": lambda x: x * x.t + x.area,
    "NumPy's functions": lambda x: np.mean(x, axis=0),
    "plain arrays": lambda x: x.data * 2,
}


# In which xarray compares coordinates, as those with an index are always known.
COMPARING = ("windows", "neighbours", "products")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    function, x = PROGRAMS[name], labelled()
    if name in COMPARING:
        same(rune_jit.jit(function)(x), function(x))
        with pytest.raises(rune_jit.ConcretizationError, match="no value is known"):
            rune_jit.jit(function)(x.chunk(t=4))
        x = x.drop_vars("area")
    pairs = function(x), rune_jit.jit(function)(x), rune_jit.jit(function)(x.chunk(t=4, y=3))
    for wanted, found, lazy in zip(*(p if type(p) is tuple else (p,) for p in pairs), strict=True):
        assert type(found) is type(wanted)
        same(found, wanted)
        if isinstance(wanted, xr.DataArray):
            assert type(found.data) is np.ndarray
            assert isinstance(lazy.data, da.Array)
        same(lazy.compute(), wanted)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.where(x > 0.5, x, 0),
        lambda x: np.asarray(x) * 2,
        lambda x: float(x[0, 0]) + x,
        lambda x: x.groupby("t").mean(),
        lambda x: x.sortby(x.isel(t=0)),
        lambda x: x.interp(t=[5, 15]),
    ],
)
def test_what_needs_values(function: Any) -> None:
    """Of NumPy's arrays the function runs on NumPy, or in segments; of dask's it is refused."""
    x = labelled()
    jitted = rune_jit.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rune_jit.JitFallbackWarning)
        for _ in range(2):
            same(jitted(x), function(x))


def test_asking_for_values_of_dasks_arrays_is_refused() -> None:
    with pytest.raises(rune_jit.ConcretizationError, match="no value is known"):
        rune_jit.jit(lambda x: np.where(x > 0.5, x, 0))(labelled().chunk(t=4))


def test_one_program_for_equal_labels() -> None:
    jitted = rune_jit.jit(lambda x: x * x.t, fallback="error")
    for scale in (1.0, 2.0, 3.0):
        same(jitted(labelled(scale)), labelled(scale) * labelled().t)
    assert jitted.cache_info().misses == 1
    moved = labelled().assign_coords(t=np.arange(6))
    same(jitted(moved), moved * moved.t)
    for other in (labelled().rename("h"), labelled().assign_attrs(units="km")):
        same(jitted(other), other * other.t)
    assert jitted.cache_info().misses == 4


def test_coordinates_that_are_written_to() -> None:
    jitted = rune_jit.jit(lambda x: x + x.area, fallback="error")
    x = labelled()
    for _ in range(3):
        same(jitted(x), x + x.area)
        x.area.data[:] += 1
    same(jitted(labelled()), labelled() + labelled().area)


def test_writes_to_arguments() -> None:
    def halve(x: Any) -> Any:
        x[:2] = x[:2] / 2
        return x.sum("y")

    ours, wanted = labelled(), labelled()
    jitted = rune_jit.jit(halve)
    for _ in range(2):
        same(jitted(ours), halve(wanted))
        same(ours, wanted)


def test_attributes_that_are_assigned() -> None:
    def describe(x: Any) -> Any:
        x.attrs["units"] = "km"
        return x / 1000

    ours, wanted = labelled(), labelled()
    jitted = rune_jit.jit(describe)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rune_jit.JitFallbackWarning)
        same(jitted(ours), describe(wanted))
    assert ours.attrs["units"] == wanted.attrs["units"] == "km"


def test_datasets() -> None:
    x = xr.Dataset({"a": labelled(), "b": labelled().mean("y")}, attrs={"title": "two"})

    def function(x: Any) -> Any:
        return (x - x.mean("t")).assign(c=x.a * x.b)

    same(rune_jit.jit(function, fallback="error")(x), function(x))
    lazy = rune_jit.jit(function)(x.chunk(t=4))
    assert isinstance(lazy.c.data, da.Array)
    same(lazy.compute(), function(x))


def test_nothing_is_computed() -> None:
    def fail(block: Any) -> Any:
        raise AssertionError("it was computed")

    data = da.ones((8, 6), chunks=4).map_blocks(fail, dtype=float, meta=np.ones((0, 0)))
    where = da.ones(8, chunks=4).map_blocks(fail, dtype=float, meta=np.ones(0))
    x = xr.DataArray(data, dims=("t", "y"), coords={"w": ("t", where)})
    y = rune_jit.jit(lambda x: x - x.mean("t"))(x)
    assert y.dims == ("t", "y")
    assert y.coords["w"].data.name == where.name
