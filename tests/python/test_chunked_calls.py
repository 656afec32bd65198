"""What no block computes alone: functions of the host, running sums and positions along axes of
several chunks; and what does not fit in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit.chunked import memory
from rune_jit.chunked.reading import Reader

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402

X = np.random.default_rng(0).random((23, 17), dtype=np.float32)
STACK = np.random.default_rng(1).random((7, 4, 4)) + 4 * np.eye(4)


def check(
    f: Callable[..., Any], x: np.ndarray, chunks: Any = (8, 5), scheduler: str = "sync"
) -> Any:
    """Compares f of an array in chunks with NumPy's result; returns dask's."""
    lazy = rune_jit.jit(f)(da.from_array(x, chunks=chunks))
    wanted = f(x)
    pairs = zip(lazy, wanted, strict=True) if isinstance(wanted, tuple) else [(lazy, wanted)]
    for found, want in pairs:
        computed = np.asarray(found.compute(scheduler=scheduler, num_workers=2))
        assert found.shape == computed.shape == np.shape(want)
        assert found.dtype == computed.dtype == np.asarray(want).dtype
        np.testing.assert_allclose(computed, want, 2e-5, 2e-6)
    return lazy


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sort(x, axis=0),
        lambda x: np.sort(x),
        lambda x: np.argsort(x * 2, axis=1, kind="stable") + 1,
        lambda x: np.partition(x, 3, axis=0)[3],
        lambda x: np.median(x, axis=0),
        lambda x: x - np.median(x, axis=1, keepdims=True),
        lambda x: np.quantile(x, 0.25, axis=0),
        lambda x: np.quantile(x, [0.25, 0.5, 1.0], axis=1),
        lambda x: np.quantile(x, [0.25, 0.5], axis=0, keepdims=True) * 2,
        lambda x: np.percentile(x, q=30, axis=-1),
        lambda x: np.median(x) + np.sort(x, axis=None)[:4],
        lambda x: np.sort(x.sum(0)) + np.sort(x, axis=0)[0],
        lambda x: (np.sort(x, 0).mean(1), x.max()),
    ],
)
@pytest.mark.parametrize("chunks", [(8, 5), (23, 17), ((10, 1, 12), (3, 14))], ids=str)
def test_sorting_and_quantiles(f: Any, chunks: Any) -> None:
    check(f, X, chunks)


Z = (X + 1j * np.random.default_rng(2).random(X.shape)).astype(np.complex64)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: np.fft.rfft(x, axis=1), X),
        (lambda x: np.fft.fft(x, axis=0), Z),
        (lambda x: np.fft.ifft(x, 20, 0, "ortho"), Z),
        (lambda x: np.fft.irfft(np.fft.rfft(x) * np.arange(9), n=17), X),
        (lambda x: np.abs(np.fft.fft(x, axis=0)) ** 2, X),
        (lambda x: np.fft.hfft(x, axis=-1).sum(0), Z),
        (lambda x: np.fft.fft2(x), Z),
        (lambda x: np.fft.ifftn(x, axes=(1, 0), norm="forward"), Z),
        (lambda x: np.fft.irfft2(np.fft.rfft2(x) / 2, axes=(0, 1)), X),
        (lambda x: np.fft.fft2(x, s=(8, 8)), X),
        (lambda x: np.fft.fftshift(x, axes=0), Z),
        (lambda x: (x * 2 + 1j * x, x.conj().T[1:], x.real), Z),
        (lambda x: (x - x.mean(0), x.sum(), np.abs(x).max()), Z),
        (lambda x: x @ x.T, Z),
        (lambda x: np.exp(1j * np.angle(x)), Z),
        (lambda x: np.cumsum(np.sort(x, axis=0), axis=1), Z),
        (lambda x: x.prod(1), Z.astype(np.complex128)),
    ],
)
@pytest.mark.parametrize("chunks", [(8, 5), ((10, 1, 12), 17)], ids=str)
def test_complex_numbers_and_fourier_transforms(f: Any, x: Any, chunks: Any) -> None:
    check(f, x, chunks)


ROWS = np.array([3, -1, 22, 3])


def test_positions_that_are_known() -> None:
    check(lambda x: x[ROWS] + x[ROWS - 1], X)
    check(lambda x: np.take(x, ROWS[:2] % 5, axis=1), X)
    with pytest.raises(rune_jit.UnsupportedOpError, match="may be out of range"):
        rune_jit.jit(lambda x: x[ROWS + 20])(da.from_array(X, chunks=(8, 5)))


def test_complex_arrays_together_with_numpys() -> None:
    lazy = rune_jit.jit(lambda x, y, z: (x + y, z))(da.from_array(Z, chunks=(8, 5)), Z[0], Z)
    np.testing.assert_allclose(lazy[0].compute(), Z + Z[0], 1e-6)
    np.testing.assert_array_equal(lazy[1], Z)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_of_several_axes_are_numpys_bit_for_bit(name: str) -> None:
    x = np.random.default_rng(3).random((4, 6, 5), dtype=np.float32)
    given = x if name.startswith("r") else x + 1j * x[::-1]
    function = getattr(np.fft, name)
    lazy = rune_jit.jit(function)(da.from_array(given, chunks=(2, 3, 4)))
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), function(given))
    assert lazy.npartitions > 1


def test_lines_are_sorted_in_the_chunks_of_the_other_axes() -> None:
    lazy = check(lambda x: np.sort(x, axis=0), X)
    assert lazy.chunks == ((23,), (5, 5, 5, 2))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.linalg.inv(x.T @ x + np.eye(17, dtype=np.float32)),
        lambda x: np.linalg.solve(x.T @ x + np.eye(17, dtype=np.float32), x.sum(0)),
        lambda x: x @ np.linalg.eigh(x.T @ x)[1][:, -1:] ** 2,
        lambda x: x / np.linalg.norm(np.linalg.svd(x.T @ x)[1]),
    ],
)
@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_linear_algebra_of_what_has_been_reduced(f: Any, scheduler: str) -> None:
    check(f, X, (8, 17), scheduler)


def test_stacks_of_matrices_stay_in_chunks() -> None:
    lazy = check(lambda x: np.linalg.inv(x * 2), STACK, (3, 2, 4))
    assert lazy.chunks == ((3, 3, 1), (4,), (4,))
    check(lambda x: tuple(np.linalg.slogdet(x)), STACK, (3, 4, 2))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.cumsum(x, axis=0),
        lambda x: x - np.cumsum(x * 2, axis=0) / x.mean(0),
        lambda x: np.cumsum(np.cumsum(x, axis=0), axis=1)[3:, ::-1],
        lambda x: np.cumprod(x + 0.5, axis=1).sum(0),
        lambda x: np.diff(np.cumsum(x, axis=0), axis=0),
        lambda x: np.maximum.accumulate(x, axis=1),
    ],
)
@pytest.mark.parametrize("chunks", [(8, 5), ((10, 1, 12), (3, 14))], ids=str)
def test_running_sums_along_chunks(f: Any, chunks: Any) -> None:
    check(f, X, chunks)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.take(x, [20, 3, -1], 0),
        lambda x: np.take(x * 2, [16, 0, 3], 1) + 1,
        lambda x: (x + x.mean())[[5, 4, 22, 9]] * 2,
        lambda x: x.reshape(-1) * 2,
        lambda x: (x.T + 1).reshape(17, 23)[::2],
        lambda x: np.diag(x) + x.reshape(-1)[:17],
        lambda x: np.convolve(x[:, 0], [1.0, 2.0, 1.0]),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=0).mean(-1),
    ],
)
def test_what_needs_whole_axes_or_arrays(f: Any) -> None:
    check(f, X)


def test_calls_that_differ_have_other_names() -> None:
    x = da.from_array(X, chunks=(8, 5))
    one, same, other = (
        rune_jit.jit(lambda x, k=k: np.partition(x, k, axis=0))(x) for k in (3, 3, 5)
    )
    assert other.name not in (one.name, same.name)


def test_an_error_of_the_host_ends_the_run() -> None:
    y = rune_jit.jit(lambda x: np.linalg.inv(x.T @ x * 0))(da.from_array(X, chunks=(8, 17)))
    with pytest.raises(np.linalg.LinAlgError):
        y.compute(scheduler="sync")


def test_tracing_calls_takes_no_memory() -> None:
    """Shapes are found by one line of 100,000 x 200,000 elements."""
    x = da.zeros((100_000, 200_000), chunks=(1000, 1000), dtype=np.float32)
    with dask.config.set({"rune_jit.memory-limit": "2 GB"}):
        assert rune_jit.jit(lambda x: np.sort(x, axis=0))(x).shape == x.shape
    with pytest.raises(rune_jit.UnsupportedOpError, match=r"sort: cannot call it on .* .76294 MiB"):
        rune_jit.jit(lambda x: np.sort(x, axis=None))(x)


def test_what_does_not_fit_is_refused() -> None:
    x = da.zeros((20_000, 20_000), chunks=(2000, 2000), dtype=np.float32)
    f = rune_jit.jit(lambda x: np.cumsum(x, axis=0))
    with (
        dask.config.set({"rune_jit.memory-limit": "200 MB"}),
        pytest.raises(rune_jit.UnsupportedOpError, match=r"pass 0 in 190.7 MiB") as e,
    ):
        f(x)
    assert "hint: make chunks smaller" in str(e.value)
    with dask.config.set({"rune_jit.memory-limit": "2 GB", "num_workers": 3}):
        text = f.lower(x).explain()
        assert "limit 1907.3 MiB: rune_jit.memory-limit" in text and "of 3 threads" in text


def passes_of(f: Callable[..., Any], x: Any, device: str | None = None) -> Any:
    """The memory of the passes of f, in one process of two threads."""
    plan = rune_jit.jit(f).lower(x).plan
    who = memory.Worker(1 << 40, threads=2, processes=1, source="")
    return memory.of_passes(plan, Reader(plan, [x]), who, device)


def test_predicted_memory_counts_tasks_edges_and_kept_arrays() -> None:
    x = da.zeros((40, 1024), chunks=(10, 1024), dtype=np.float64)
    row = 1024 * 8
    chunk = 10 * row
    (one,) = passes_of(lambda x: x[1:] + x[:-1], x)
    assert one.computed == 11 * row + 10 * row  # put together, and the result
    assert one.task == one.computed + chunk + row  # a chunk, and the edge of the next one
    (with_edges,) = passes_of(lambda x: x[1:] + x[:-1], x, "cpu")
    assert with_edges.shared == 3 * chunk + 2 * row  # of two tasks, and what the last edge is of
    assert [p.kept for p in passes_of(lambda x: x - np.cumsum(x, axis=0), x)] == [0, 0]
    both = passes_of(
        lambda x: np.cumsum(x, axis=0) - np.cumsum(x, axis=0).max(), x.rechunk((10, 256))
    )
    assert [p.kept for p in both] == [4 * chunk, 4 * chunk + 8, 4 * chunk + 8]


def test_edges_are_cut_off_chunks(tmp_path: Any) -> None:
    """A block of a stencil takes its own chunk, and what is needed of those around it."""
    zarr = pytest.importorskip("zarr")

    def near(x: Any) -> Any:
        return x[2:] + x[1:-1] * x[:-2]

    wide = np.random.default_rng(2).random((60, 8))
    z = zarr.create_array(str(tmp_path / "x.zarr"), shape=wide.shape, dtype="f8", chunks=(10, 8))
    z[:] = wide
    for x in (da.from_array(wide, chunks=(10, 8)), da.from_zarr(str(tmp_path / "x.zarr"))):
        y = rune_jit.jit(near)(x)
        (found,) = dask.optimize(y)
        edges = [key for key in dict(found.dask) if "edges" in str(key)]
        assert len(edges) == 5  # all but the first chunk, whose elements only one block needs
        np.testing.assert_array_equal(y.compute(), near(wide))
    doubled = da.from_array(z, chunks=(10, 8), getitem=lambda a, at: np.asarray(a[at]) * 2)
    np.testing.assert_array_equal(rune_jit.jit(near)(doubled).compute(), near(2 * wide))
    own = [key for key in dict(found.dask) if str(key).startswith("('from-zarr")]
    assert not own  # blocks read the files themselves


def test_containers_that_hold_themselves_have_no_arrays_of_dask() -> None:
    items: list[Any] = [X]
    items.append(items)
    with pytest.warns(rune_jit.JitFallbackWarning, match="holds itself"):
        result = rune_jit.jit(lambda items: items[0] + 1)(items)
    np.testing.assert_array_equal(result, X + 1)
