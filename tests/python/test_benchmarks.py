"""The benchmarks run and their results are right, on tiny sizes; times are not looked at."""

from __future__ import annotations

import importlib
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bench():
    """The modules of benchmarks/, which are scripts and not a package."""
    before = list(sys.path)
    sys.path.insert(0, str(FOLDER))
    try:
        names = ("workloads", "peers", "timing", "machine", "report", "run")
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path[:] = before


def workload_names():
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("workloads").names()
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("name", workload_names())
def test_result_is_numpys_or_an_unsupported_operation_is_named(bench, name):
    row = bench["run"].measure(name, bench["peers"].RuneJit(), [], 0.0, tiny=True)
    assert len(row.times["numpy"].samples) >= 3
    if row.failures:
        assert row.failures["rune_jit"].startswith("UnsupportedOpError"), row.failures
        return
    assert len(row.times["rune_jit"].samples) >= 3
    if row.workload.kernels is not None:
        assert row.costs["kernels"] == row.workload.kernels
    assert row.costs["flops"] > 0
    # Stencils do not read their corners.
    assert row.costs["bytes_read"] + row.costs["bytes_written"] >= 0.8 * row.workload.bytes


def test_a_wrong_result_is_reported_and_not_timed(bench):
    peers, run = bench["peers"], bench["run"]

    class Wrong(peers.NumPy):
        name = "wrong"

        def prepare(self, workload):
            return lambda: workload.fn(*workload.args) + np.float32(1)

    class Broken(peers.NumPy):
        name = "broken"

        def prepare(self, workload):
            raise RuntimeError("no such thing")

    row = run.measure("gelu", peers.RuneJit(), [Wrong(), Broken()], 0.0, tiny=True)
    assert "differs from NumPy by 1" in row.failures["wrong"]
    assert row.failures["broken"] == "RuntimeError: no such thing"
    assert set(row.times) == {"numpy", "rune_jit"}


def test_disagreement_sees_nan_shape_and_dtype(bench):
    run = bench["run"]
    workload = bench["workloads"].build("sum_axis0", tiny=True)
    want = np.ones(4, np.float32)
    assert run.disagreement(workload, [want.copy()], want, True) is None
    assert run.disagreement(workload, [np.full(4, np.nan, np.float32)], want, True)
    assert "shape" in run.disagreement(workload, [want[:, None]], want, True)
    assert "float64" in run.disagreement(workload, [want.astype(np.float64)], want, True)
    assert run.disagreement(workload, [want.astype(np.float64)], want, False) is None
    assert "2 results" in run.disagreement(workload, [want, want], want, True)


def test_interleaving_gives_everyone_rounds(bench):
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    times = {name: bench["timing"].Times(0.0) for name in "ab"}
    bench["timing"].interleave(calls, times, 0.0)
    assert len(times["a"].samples) == len(times["b"].samples) >= 3
    changes = sum(x != y for x, y in itertools.pairwise(order))
    assert changes >= 5  # a, b, a, b ... and not all of a first


def test_run_prints_tables_and_writes_results(bench, capsys, tmp_path):
    output = tmp_path / "results.md"
    arguments = ["--tiny", "--no-peers", "--workload", "softmax", "--workload", "tiny_call"]
    assert bench["run"].main([*arguments, "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    text = output.read_text()
    for word in ("softmax", "tiny_call", "GB/s", "GFLOP/s", "NumPy"):
        assert word in printed
        assert word in text


def test_unknown_workload_names_those_that_exist(bench):
    with pytest.raises(KeyError, match="softmax"):
        bench["workloads"].build("soft")


def test_measured_limits_are_plausible(bench):
    assert bench["machine"].copy_bandwidth(1 << 20, rounds=2) > 1e8
    assert bench["machine"].fma_peak(rounds=1) > 1e8
