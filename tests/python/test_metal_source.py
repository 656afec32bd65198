"""What the CPU runs is rendered for Metal, and the text passes the check of Metal's rules."""

from __future__ import annotations

import pytest
from msl_check import check_many
from op_cases import CASES, OpCase

import rune_jit

# Operations that name float64 themselves.
NAMES_FLOAT64 = {"float_power", "sum with dtype", "astype"}


def metal_source(case: OpCase, dtype: str) -> str | None:
    """The source, or None if the operation leaves arrays of this dtype as they are."""
    traced = rune_jit.jit(case.function, device="metal", fallback="error")
    try:
        return traced.lower(*case.arguments(dtype)).source("metal")
    except rune_jit.UnsupportedOpError as error:
        assert "computes nothing" in str(error)
        return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_operation_renders(case: OpCase) -> None:
    sources = []
    for dtype in case.dtypes:
        try:
            sources.append(metal_source(case, dtype))
        except rune_jit.DTypeError as error:
            # Metal has no float64, in which NumPy computes on float64 and on many integers.
            assert case.name in NAMES_FLOAT64 or dtype not in ("float16", "float32"), str(error)
            assert "float64" in str(error)
    check_many([source for source in sources if source])
