"""The table of operations (op_cases.py) with every size of the arguments dynamic in turn: NumPy's
result or an error, never a result that depends on the largest size."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import optree
import pytest
from op_cases import CASES, OpCase

import rune_jit
from rune_jit import ConcretizationError, Dim, UnsupportedOpError


def _sized(case: OpCase) -> list[tuple[OpCase, int]]:
    return [(case, size) for size in sorted({n for shape in case.shapes for n in shape if n > 0})]


_PAIRS = [pair for case in CASES for pair in _sized(case)]


@pytest.mark.parametrize("part", range(7))
def test_ops_with_a_dynamic_size(part: int, full: bool) -> None:
    computed = refused = 0
    for case, size in _PAIRS[part :: 7 if full else 49]:
        dtype = next(d for d in ("float32", "int32", *case.dtypes) if d in case.dtypes)
        arguments = case.arguments(dtype)
        dim = Dim("n", min=1, max=max(size, 5))
        named = {f"a{i}": x for i, x in enumerate(arguments)}
        axes = {
            name: {axis: dim for axis, n in enumerate(x.shape) if n == size}
            for name, x in named.items()
        }
        parameters = ", ".join(named)
        function = eval(f"lambda {parameters}: f({parameters})", {"f": case.function})
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            expected = function(*(x.copy() for x in arguments))
        jitted = rune_jit.jit(function, dynamic=axes, fallback="error")
        try:
            results = jitted(*arguments)
        except (UnsupportedOpError, ConcretizationError):
            refused += 1
            continue
        computed += 1
        for got, want in zip(*map(_leaves, (results, expected)), strict=True):
            what = f"{case.name}, size {size}"
            assert got.shape == want.shape and got.dtype == want.dtype, what
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=what)
    assert computed > 4 * refused


def _leaves(results: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in optree.tree_leaves(results)]
