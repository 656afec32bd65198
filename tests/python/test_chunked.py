"""dask's arrays as arguments: functions are cut into blocks, and compute what NumPy computes."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit.chunked import blocks, files, memory

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402

X = np.random.default_rng(0).random((23, 17), dtype=np.float32)
CHUNKS = [(23, 17), (8, 5), (1, 17), ((10, 1, 12), (3, 0, 14)), (4, 4)]


def library(name: str) -> Any:
    """A library that these tests need: without it they are skipped, but not in CI."""
    has_all = "CI" in os.environ and sys.version_info >= (3, 11)
    return importlib.import_module(name) if has_all else pytest.importorskip(name)


def check(
    f: Callable[..., Any],
    *arguments: Any,
    chunks: Any = (8, 5),
    exact: bool = False,
    **options: Any,
) -> Any:
    """Compares f of the first argument in chunks with NumPy's result; returns dask's."""
    lazy = rune_jit.jit(f, **options)(da.from_array(arguments[0], chunks=chunks), *arguments[1:])
    wanted = f(*arguments)
    pairs = zip(lazy, wanted, strict=True) if isinstance(wanted, tuple) else [(lazy, wanted)]
    for found, want in pairs:
        assert isinstance(found, da.Array)
        computed = np.asarray(found.compute(scheduler="sync"))
        assert found.shape == computed.shape == np.shape(want)
        assert found.dtype == computed.dtype == np.asarray(want).dtype
        if exact or computed.dtype.kind not in "f":
            np.testing.assert_array_equal(computed, want)
        else:
            np.testing.assert_allclose(computed, want, 2e-6, 2e-6)
    return lazy


def sweep(x: Any) -> Any:
    y = x.copy()
    y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return y


def sweeps(x: Any) -> Any:
    for _ in range(5):
        x = sweep(x)
    return x


def standardise(x: Any) -> Any:
    return (x - x.mean(0)) / x.std(0)


def k_means_step(x: Any, centers: Any) -> Any:
    distances = ((x[:, None, :] - centers[None]) ** 2).sum(-1)
    nearest = distances.argmin(1)
    member = (nearest[:, None] == np.arange(len(centers))).astype(x.dtype)
    return member.T @ x / member.sum(0)[:, None]


def masked_mean(x: Any) -> Any:
    mask = x > 0.5
    return np.where(mask, x, np.float32(0)).sum() / mask.sum()


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_elementwise_is_one_task_a_block(chunks: Any) -> None:
    lazy = check(lambda x: np.tanh(x) * 2 + x, X, chunks=chunks)
    x = da.from_array(X, chunks=chunks)
    blocks_of_elements = np.count_nonzero(np.outer(*x.chunks))
    own = [key for key in dict(lazy.dask) if isinstance(key, tuple) and key[0] == lazy.name]
    assert len(own) == blocks_of_elements


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_a_stencil_is_numpys_bit_for_bit(chunks: Any) -> None:
    """Also where five sweeps reach beyond the neighbouring blocks."""
    lazy = check(sweeps, X, chunks=chunks, exact=True)
    assert all(sum(axis) == n for axis, n in zip(lazy.chunks, X.shape, strict=True))


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("f", [standardise, masked_mean], ids=lambda f: f.__name__)
def test_programs_of_several_passes(f: Any, chunks: Any) -> None:
    check(f, X, chunks=chunks)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_k_means(chunks: Any) -> None:
    check(k_means_step, X, X[:3].copy(), chunks=chunks)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "var", "prod", "argmax", "any"])
def test_reductions(name: str, axis: Any) -> None:
    if name == "argmax" and axis == (0, 1):
        pytest.skip("NumPy has no argmax along two axes")
    check(lambda x: getattr(np, name)(x + 0.25, axis=axis), X)


def test_integers_and_bools_are_exact() -> None:
    n = np.arange(60, dtype=np.int64).reshape(5, 12) ** 9
    check(lambda x: (x.sum(), x.prod(0), (x > 7).sum(1), (x > 7).all()), n, chunks=(2, 5))


def test_special_values() -> None:
    x = X.copy()
    x[3, 4], x[7, 8], x[9, 9] = np.nan, np.inf, -0.0
    check(lambda x: (x.max(0), x.min(), x.sum(1), -x, np.isnan(x).sum()), x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.T,
        lambda x: x[::-1, 2:-3:2],
        lambda x: np.roll(x, 3, 1) - x,
        lambda x: np.pad(x, ((1, 2), (0, 3))),
        lambda x: np.concatenate([x[5:], x[:5] * 2]),
        lambda x: np.stack([x, x * 2]).max(0),
        lambda x: np.broadcast_to(x[:, None], (23, 2, 17)) + np.arange(2)[:, None],
        lambda x: np.diff(x, axis=0),
        lambda x: x @ x.T,
        lambda x: np.einsum("ij,ik->jk", x, x),
        lambda x: (x, x.sum(), x.T[0]),
        lambda x: np.cumsum(x, axis=1),
    ],
)
def test_movement_and_products(f: Any) -> None:
    # The columns are one chunk, as a running sum along them needs.
    check(f, X, chunks=(8, 17))


@pytest.mark.parametrize(
    ("shape", "chunks"), [((40,), (2,)), ((6, 7), (2, 7)), ((5, 6, 7), (2, 6, 7))]
)
def test_one_to_three_dimensions(shape: tuple[int, ...], chunks: Any) -> None:
    x = np.random.default_rng(1).random(shape)
    check(lambda x: (np.sin(x) + x.mean(), x.reshape(-1) * 2, x.sum(-1)), x, chunks=chunks)


def test_arguments_of_several_kinds() -> None:
    columns = np.arange(17, dtype=np.float32)
    scale = da.from_array(np.linspace(0, 1, 23, dtype=np.float32)[:, None], chunks=(5, 1))

    def f(x: Any, columns: Any, more: dict[str, Any], n: int) -> Any:
        return {"y": x * columns + more["scale"] * n, "n": n, "columns": columns}

    found = rune_jit.jit(f)(da.from_array(X, chunks=(8, 5)), columns, {"scale": scale}, 3)
    wanted = f(X, columns, {"scale": scale.compute()}, 3)
    assert found["n"] == 3 and found["columns"] is columns
    np.testing.assert_allclose(found["y"].compute(), wanted["y"], 1e-6)


def test_whole_arrays_take_no_memory() -> None:
    """100 TB: tracing and cutting allocate nothing of that size, nor do positions."""
    x = da.zeros((10**7, 10**6), chunks=(10**6, 10**5), dtype=np.float64)
    f = rune_jit.jit(lambda x: x[:, 0] * np.arange(x.shape[0]) + x.argmax(0)[0])
    with dask.config.set({"rune_jit.memory-limit": "2 TB"}):
        assert f(x).shape == (10**7,)


def test_what_is_lazy_is_computed_once_asked() -> None:
    def no_chunk(x: Any) -> Any:
        raise AssertionError("computed")

    x = da.from_array(X, chunks=(8, 5)).map_blocks(no_chunk, meta=np.empty((0, 0), np.float32))
    y = rune_jit.jit(standardise)(x)
    with pytest.raises(AssertionError, match="computed"):
        y.compute(scheduler="sync")


def test_names_are_by_content() -> None:
    x = da.from_array(X, chunks=(8, 5))
    one, same = (rune_jit.jit(standardise)(x) for _ in range(2))
    assert one.name == same.name != rune_jit.jit(masked_mean)(x).name
    assert one.name != rune_jit.jit(standardise)(x.rechunk((9, 5))).name


def test_results_of_one_call_together_with_dask() -> None:
    x = da.from_array(X, chunks=(8, 5))
    centered, total = rune_jit.jit(lambda x: (x - x.mean(0), x.sum()))(x)
    both = dask.compute(centered + total, da.sum(centered))
    np.testing.assert_allclose(both[0], X - X.mean(0) + X.sum(), 1e-5)
    again = rune_jit.jit(np.tanh)(centered)
    np.testing.assert_allclose(again.compute(), np.tanh(X - X.mean(0)), 1e-5, 1e-6)


@pytest.mark.parametrize("scheduler", ["threads", "sync", "processes"])
def test_schedulers(scheduler: str) -> None:
    y = rune_jit.jit(standardise)(da.from_array(X, chunks=(8, 5)))
    found = y.compute(scheduler=scheduler, num_workers=2)
    np.testing.assert_allclose(found, standardise(X), 2e-6, 2e-6)


def test_a_program_that_was_pickled_is_compiled_once() -> None:
    program = rune_jit.jit(lambda x: x * 3 + 5).lower(da.from_array(X, chunks=(23, 17)))
    block = blocks.Program(program.plan.programs[0], "cpu")
    first = blocks._executables.get(pickle.loads(pickle.dumps(block)))
    assert blocks._executables.get(pickle.loads(pickle.dumps(block))) is first


def test_files_of_native_byte_order(tmp_path: Any) -> None:
    zarr = library("zarr")
    z = zarr.create_array(str(tmp_path / "x.zarr"), shape=X.shape, dtype="<f4", chunks=(8, 5))
    z[:] = X
    y = rune_jit.jit(sweeps, fallback="error")(da.from_zarr(str(tmp_path / "x.zarr")))
    np.testing.assert_array_equal(y.compute(), sweeps(X))
    np.testing.assert_array_equal(rune_jit.jit(sweeps, fallback="error")(z[:]), sweeps(X))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "u1"])
def test_chunks_of_plain_files_are_mapped(tmp_path: Any, zarr_format: Any, dtype: str) -> None:
    zarr = library("zarr")
    path = tmp_path / "x.zarr"
    z = zarr.create_array(
        path, shape=X.shape, dtype=dtype, chunks=(8, 5), compressors=None, zarr_format=zarr_format
    )
    wanted = (100 * X).astype(dtype)
    z[:16] = wanted[:16]  # the last rows have no files
    wanted[16:] = 0
    corner = slice(8, 16), slice(15, 17)
    opened = da.from_zarr(str(path)), da.from_zarr(z)  # fsspec's files, and zarr's
    for x in opened:
        (stored,) = (getattr(v, "value", v) for k, v in dict(x.dask).items() if type(k) is str)
        part = files.elements(stored, corner)
        if dtype != ">f4":  # zarr makes arrays that can be written to
            assert not part.flags.writeable
        np.testing.assert_array_equal(part, wanted[corner])
        assert files.elements(stored, (slice(16, 23), slice(0, 5))).flags.writeable
        assert files.elements(stored, (slice(7, 9), slice(0, 5))).flags.writeable  # of two chunks
        if dtype != ">f4":
            np.testing.assert_array_equal(rune_jit.jit(sweeps)(x).compute(), sweeps(wanted))


@pytest.mark.parametrize(
    "kind",
    [
        {},  # compressed
        {"compressors": None, "filters": "transpose"},
        {"compressors": None, "serializer": "big"},
        {"compressors": None, "shards": (16, 10)},
        {"compressors": None, "order": "F", "zarr_format": 2},
    ],
    ids=str,
)
def test_chunks_of_other_files_are_read_by_zarr(tmp_path: Any, kind: dict[str, Any]) -> None:
    zarr = library("zarr")
    given: dict[str, Any] = dict(kind)
    if "filters" in kind:
        given["filters"] = [zarr.codecs.TransposeCodec(order=(1, 0))]
    if "serializer" in kind:
        given["serializer"] = zarr.codecs.BytesCodec(endian="big")
    z = zarr.create_array(tmp_path / "x.zarr", shape=X.shape, dtype="f4", chunks=(8, 5), **given)
    z[:] = X
    x = da.from_zarr(str(tmp_path / "x.zarr"))
    np.testing.assert_array_equal(files.elements(z, (slice(0, 8), slice(0, 5))), X[:8, :5])
    np.testing.assert_array_equal(rune_jit.jit(sweeps)(x).compute(), sweeps(X))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: x if x.sum() > 0 else -x, "no value is known before they are computed"),
        (lambda x: float(x[0, 0]), "no value is known before they are computed"),
        (lambda x: x[x > 0.5], "cannot"),
        (lambda x: x[x.argmax(0)], "positions that arrays in chunks decide"),
    ],
)
def test_refusals(f: Any, message: str) -> None:
    x = da.from_array(X, chunks=(8, 5))
    with pytest.raises(
        (rune_jit.UnsupportedOpError, rune_jit.ConcretizationError), match=message
    ) as e:
        rune_jit.jit(f)(x)
    assert "hint: " in str(e.value)


def test_a_refusal_names_the_line() -> None:
    def f(x: Any) -> Any:
        return x * 2 if x[0, 0] > 0 else x

    with pytest.raises(rune_jit.ConcretizationError, match=r"at .*test_chunked.py:\d+"):
        rune_jit.jit(f)(da.from_array(X, chunks=(8, 5)))


def test_writes_to_arguments_are_refused() -> None:
    def f(x: Any) -> Any:
        x[0] = 1
        return x * 2

    with pytest.raises(rune_jit.UnsupportedOpError, match="cannot write to an argument"):
        rune_jit.jit(f)(da.from_array(X, chunks=(8, 5)))


def test_unknown_chunks_are_refused() -> None:
    x = da.from_array(X, chunks=(8, 5))
    with pytest.raises(rune_jit.UnsupportedOpError, match="unknown chunks"):
        rune_jit.jit(np.tanh)(x[x > 0.5])


def test_a_captured_dask_array_is_no_constant() -> None:
    captured = da.from_array(X, chunks=(8, 5))

    def f(x: Any) -> Any:
        return x + captured

    with pytest.raises(rune_jit.UnsupportedOpError, match="hint: pass it as an argument"):
        rune_jit.jit(f)(da.from_array(X, chunks=(8, 5)))
    with pytest.raises(rune_jit.UnsupportedOpError, match="Array"):
        rune_jit.jit(f, fallback="error")(X)


def test_explain_names_blocks_halos_and_memory() -> None:
    f = rune_jit.jit(sweeps)
    x = da.from_array(X, chunks=(8, 5))
    text = f.lower(x).explain()
    assert "pass 0: 12 blocks (3 x 4)" in text
    assert "halo [10, 10]" in text
    assert "predicted peak memory" in text
    assert "in blocks: 1 passes over 12 blocks" in f.explain()


def test_xarray_keeps_dimensions() -> None:
    xarray = library("xarray")
    field = xarray.DataArray(X, dims=("y", "x"), coords={"y": np.arange(23.0)})
    found = xarray.apply_ufunc(rune_jit.jit(sweeps), field.chunk({"y": 8, "x": 5}), dask="allowed")
    assert found.dims == ("y", "x") and isinstance(found.data, da.Array)
    np.testing.assert_array_equal(found.compute().values, sweeps(X))
    np.testing.assert_array_equal(found.y, field.y)


def test_xarray_computes_blocks() -> None:
    """With dask="parallelized" xarray cuts, and the function is compiled for blocks."""
    xarray = library("xarray")
    field = xarray.DataArray(X, dims=("y", "x")).chunk({"y": 8, "x": -1})
    found = xarray.apply_ufunc(
        rune_jit.jit(lambda x: x - x.mean(-1, keepdims=True)),
        field,
        input_core_dims=[["x"]],
        output_core_dims=[["x"]],
        dask="parallelized",
        output_dtypes=[np.float32],
    )
    np.testing.assert_allclose(found.compute().values, X - X.mean(1, keepdims=True), 1e-5, 1e-6)


def test_distributed() -> None:
    distributed = library("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        assert memory.worker()[1:] == (1, 2, "a worker's memory limit")
        x = da.from_array(X, chunks=(8, 5))
        for array in (x, x.persist()):
            y = rune_jit.jit(standardise)(array)
            np.testing.assert_allclose(y.compute(), standardise(X), 2e-6, 2e-6)
