"""What the CPU runs is rendered for CUDA, and NVRTC compiles the text without a warning."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_check import check_cuda, check_many, require_nvrtc
from node_cases import CASES as NODES
from node_graphs import Graph
from op_cases import CASES, OpCase
from test_kernels import ONE_KERNEL

import rune_jit
from rune_jit import _core, ir


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    require_nvrtc()


def cuda_source(case: OpCase, dtype: str) -> str | None:
    """The source, or None if the operation leaves arrays of this dtype as they are."""
    try:
        lowered = rune_jit.jit(case.function, device="cuda", fallback="error").lower(
            *case.arguments(dtype)
        )
    except rune_jit.UnsupportedOpError as error:
        assert "computes nothing" in str(error)
        return None
    return lowered.source()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_operation(case: OpCase) -> None:
    check_many(source for dtype in case.dtypes if (source := cuda_source(case, dtype)))


@pytest.mark.parametrize("name", NODES)
def test_every_node(name: str) -> None:
    graph = Graph()
    expected = NODES[name](graph)
    text = graph.finish(*(v for v, _ in expected))
    check_many([ir.Program(text, "cuda", graph.functions).lowered.source()])


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_every_kind_of_kernel(name: str) -> None:
    function, arguments = ONE_KERNEL[name]
    check_cuda(rune_jit.jit(function, device="cuda").lower(*arguments).source())


def test_a_wrong_text_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r'(?s)cannot compile.*identifier "y" is undefined'):
        _core.compile_cuda("__global__ void f(float* x) { *x = y; }", 90)
    with pytest.raises(RuntimeError, match=r"compute capability 3\.0"):
        _core.compile_cuda("", 30)
    with pytest.raises(AssertionError, match="never referenced"):
        check_cuda("__global__ void f() { int y; }")


def test_large_contractions() -> None:
    for dtype in (np.float32, np.float16, np.float64, np.int32):
        x = np.broadcast_to(dtype(1), (512, 512))
        check_cuda(rune_jit.jit(lambda a, b: a @ b, device="cuda").lower(x, x).source())
