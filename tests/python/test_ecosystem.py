"""rune_jit.Array and jitted functions with other libraries, each with the library itself."""

from __future__ import annotations

import functools
import io
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

RNG = np.random.default_rng(0)
X = RNG.random((20, 4))


@functools.cache
def faults(library: str) -> dict[str, str | None]:
    """By case of array_consumers.py: what is wrong."""
    if library == "sklearn":
        pytest.importorskip("sklearn", minversion="1.6")
    pytest.importorskip("scipy", minversion="1.15")
    script = Path(__file__).with_name("array_consumers.py")
    path = os.pathsep.join(p for p in sys.path if p)
    result = subprocess.run(
        [sys.executable, str(script), library],
        capture_output=True,
        text=True,
        env={**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": path},
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("library, least", [("scipy", 20), ("sklearn", 15)])
def test_libraries_that_take_the_array_api(library: str, least: int) -> None:
    found = faults(library)
    assert len(found) >= least
    assert {name: fault for name, fault in found.items() if fault} == {}


def test_namespace_without_an_import_of_it() -> None:
    program = (
        "import sys, rune_jit; x = rune_jit.asarray([1.0]);"
        "assert 'rune_jit.numpy' not in sys.modules;"
        "assert x.__array_namespace__() is sys.modules['rune_jit.numpy']"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_unique_values_are_in_order() -> None:
    y = rune_jit.asarray(np.array([3, 1, 2, 3, 1]))
    xp = y.__array_namespace__()
    np.testing.assert_array_equal(np.asarray(xp.unique_values(y)), [1, 2, 3])
    z = rune_jit.asarray(np.array([np.nan, 1.0, np.nan]))
    np.testing.assert_array_equal(np.asarray(xp.unique_values(z)), [1, np.nan, np.nan])


def test_array_api_compat() -> None:
    compat = pytest.importorskip("array_api_compat")
    a = rune_jit.asarray(X)
    assert compat.is_array_api_obj(a) and not compat.is_numpy_array(a)
    assert compat.array_namespace(a, a + 1) is rune_jit.numpy
    assert compat.device(a) == "cpu" and compat.size(a) == 80
    moved = compat.to_device(a, "interpreter")
    assert moved.device == "interpreter"
    with pytest.raises(TypeError):
        compat.array_namespace(a, X)


# pandas: what it holds is no argument of a program, so such calls run on NumPy, and pandas keeps
# the index.


def frames() -> tuple[Any, Any]:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, 2.0, 4.0], index=["a", "b", "c"], name="s")
    frame = pandas.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}, index=["p", "q"])
    return series, frame


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sqrt(x) * 2 + 1,
        lambda x: x - x.mean(),
        lambda x: np.where(x > 2, x, 0.0),
        lambda x: x.sum(),
        lambda x: np.asarray(x) * 2,
    ],
)
def test_pandas_arguments(function: Any) -> None:
    for x in frames():
        wanted = function(x)
        jitted = rune_jit.jit(function)
        with pytest.warns(rune_jit.JitFallbackWarning, match="argument of (Series|DataFrame)"):
            results = jitted(x), jitted(x)
        assert re.fullmatch(
            r"<lambda>: on NumPy: .* argument of (Series|DataFrame) \(argument x\)",
            jitted.explain(),
        )
        for result in results:
            assert type(result) is type(wanted)
            np.testing.assert_array_equal(np.asarray(result), np.asarray(wanted))
            if hasattr(wanted, "index"):
                assert result.index.equals(wanted.index)


def test_pandas_values_are_compiled() -> None:
    series, frame = frames()
    jitted = rune_jit.jit(lambda x: np.sqrt(x) + 1, fallback="error")
    np.testing.assert_array_equal(jitted(series.to_numpy()), np.sqrt(series.to_numpy()) + 1)
    np.testing.assert_array_equal(frame.apply(jitted, raw=True), np.sqrt(frame) + 1)


def test_pandas_of_arrays() -> None:
    pandas = pytest.importorskip("pandas")
    series, _ = frames()
    a = rune_jit.asarray(X)
    pandas.testing.assert_frame_equal(pandas.DataFrame(a), pandas.DataFrame(X))
    for found in (series + a[:3, 0], a[:3, 0] + series):
        pandas.testing.assert_series_equal(found, series + X[:3, 0])


def test_matplotlib() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    a, pictures = rune_jit.asarray(X), []
    for x in (a, X):
        figure = Figure()
        axes = figure.subplots(2, 4).ravel()
        axes[0].plot(x[:, 0], x[:, 1])
        axes[1].scatter(x[:, 0], x[:, 1], c=x[:, 2])
        axes[2].imshow(x)
        axes[3].hist(x[:, 0])
        axes[4].contourf(x)
        axes[5].bar(x[:4, 0], x[:4, 1])
        axes[6].errorbar(x[:4, 0], x[:4, 1], yerr=x[:4, 2])
        axes[7].fill_between(x[:, 0], x[:, 1])
        stream = io.BytesIO()
        figure.savefig(stream, format="rgba")
        pictures.append(stream.getvalue())
    assert pictures[0] == pictures[1]


def test_files() -> None:
    a = rune_jit.asarray(X)
    for write, read in (
        (np.save, np.load),
        (lambda file, x: np.savez(file, x=x), lambda file: np.load(file)["x"]),
        (lambda file, x: np.savez_compressed(file, x=x), lambda file: np.load(file)["x"]),
        (lambda file, x: np.savetxt(file, x, fmt="%.17g"), np.loadtxt),
    ):
        stream = io.BytesIO()
        write(stream, a)
        stream.seek(0)
        np.testing.assert_array_equal(read(stream), X)


def test_to_file(tmp_path: Path) -> None:
    rune_jit.asarray(X).tofile(tmp_path / "x")
    np.testing.assert_array_equal(np.fromfile(tmp_path / "x"), X.ravel())


def halved(x: Any) -> Any:
    return x / 2


def test_cloudpickle() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    a = rune_jit.asarray(X)
    again = cloudpickle.loads(cloudpickle.dumps(a))
    assert type(again) is rune_jit.Array and again.device == a.device
    np.testing.assert_array_equal(np.asarray(again), X)
    jitted = cloudpickle.loads(cloudpickle.dumps(rune_jit.jit(lambda x: x + 1, fallback="error")))
    np.testing.assert_array_equal(jitted(X), X + 1)


def test_joblib(tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    a, jitted = rune_jit.asarray(X), rune_jit.jit(halved)
    joblib.dump(a, tmp_path / "a")
    np.testing.assert_array_equal(np.asarray(joblib.load(tmp_path / "a")), X)
    assert joblib.hash(a) == joblib.hash(rune_jit.array(X)) != joblib.hash(a + 1)
    for options in ({"prefer": "threads"}, {"backend": "loky"}):
        results = joblib.Parallel(n_jobs=2, **options)(joblib.delayed(jitted)(x) for x in (a, X, a))
        assert [type(r) for r in results] == [rune_jit.Array, np.ndarray, rune_jit.Array]
        for result in results:
            np.testing.assert_array_equal(np.asarray(result), X / 2)


# DLPack, on the host. test_cuda_sharing.py has it on a card.


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(X.copy())
    a = rune_jit.from_dlpack(tensor)
    tensor[0, 0] = 7
    assert a[0, 0] == 7  # the memory is shared
    with warnings.catch_warnings():  # torch warns of memory that is read-only
        warnings.simplefilter("ignore")
        back = torch.from_dlpack(rune_jit.jit(halved)(a))
    assert isinstance(back, torch.Tensor)
    np.testing.assert_array_equal(back.numpy(), tensor.numpy() / 2)


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(12.0, dtype="float32").reshape(3, 4)
    a = rune_jit.from_dlpack(x)
    assert type(a) is rune_jit.Array
    back = jax.dlpack.from_dlpack(rune_jit.jit(halved)(a))
    np.testing.assert_array_equal(np.asarray(back), np.asarray(x) / 2)
    np.testing.assert_array_equal(np.asarray(rune_jit.asarray(x)), np.asarray(x))


class _Table:
    def __init__(self) -> None:
        pandas = pytest.importorskip("pandas")
        self.frame, self.weights = pandas.DataFrame(X), np.ones(X.shape[1])

    def rows(self, x: Any) -> Any:
        return self.frame[x[:, 0] > 0].values * self.weights


def test_pandas_inside_of_functions() -> None:
    """It takes masks that are no arrays of NumPy's for lists of names."""
    pandas = pytest.importorskip("pandas")

    def columns(x: Any) -> Any:
        return pandas.DataFrame(x).loc[:, np.array([True] * (x.shape[1] - 1) + [False])].values

    def rows(x: Any) -> Any:
        frame = pandas.DataFrame(x * 2)
        return frame[x[:, 0] > 0].values, frame.groupby(np.arange(len(x)) % 2).mean().values

    def helped(x: Any) -> Any:
        return rows(x + 1)[1] * float(x[0, 0])

    table = _Table()
    for function in (columns, rows, helped, table.rows):
        jitted = rune_jit.jit(function)
        for _ in range(3):
            assert_matches(jitted(X.copy()), function(X.copy()))
    method, ours = rune_jit.jit(_Table.rows), _Table()
    for _ in range(3):
        assert_matches(method(ours, X.copy()), table.rows(X.copy()))


def test_numbers_that_differ_at_each_call() -> None:
    """There is one entry for all, from some number of values on."""

    def is_within(value: Any, start: Any, end: Any) -> Any:
        return start <= value <= end

    jitted = rune_jit.jit(is_within)
    values = np.random.default_rng(0).normal(size=600).tolist()
    for value in values:
        assert jitted(value, 0.0, 1.0) is is_within(value, 0.0, 1.0)
        assert jitted(0.5, 0.0, 1.0) is True
    size = jitted.cache_info().size
    assert size < 150
    for value in values:
        jitted(value + 7, 0.0, 1.0)
    assert jitted.cache_info().size <= size + 1


def test_namespaces_of_numpys_arrays_in_traces() -> None:
    compat = pytest.importorskip("array_api_compat")

    def whole(x: Any) -> Any:
        xp = compat.array_namespace(x, np.ones(3))
        out = xp.zeros((3, 3))
        out[0] = xp.concat([x[0, :1], x[1, :2]])
        return out, xp.linalg.matrix_transpose(x), x.__array_namespace__() is np

    def in_segments(x: Any) -> Any:
        picked = x[x > 0.5] if x.sum() > 0 else x
        xp = compat.array_namespace(picked, x, np.ones(3))
        return xp.sum(picked), xp.linalg.eigh(x @ x.T)[0], xp is compat.array_namespace(np.ones(2))

    x = np.random.default_rng(0).random((3, 3))
    for f, options in ((whole, {"fallback": "error"}), (in_segments, {})):
        jitted = rune_jit.jit(f, **options)
        for _ in range(3):
            assert_matches(jitted(x), f(x))
