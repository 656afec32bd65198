"""Random programs on arrays in random chunks give NumPy's results."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from blocks import block_program

import rune_jit


def check(seed: int, device: str) -> str | None:
    """None if the program of the seed gives NumPy's results in blocks; if it is refused, the
    reason. Raises AssertionError with its text otherwise."""
    import dask.array as da

    program = block_program(seed)
    function = program.function()
    arguments = [
        a if chunks is None else da.from_array(a, chunks=chunks)
        for a, chunks in zip(program.arguments, program.chunks, strict=True)
    ]
    text = f"{program.text}chunks {program.chunks}, shapes {[a.shape for a in program.arguments]}"
    # Sums of blocks are rounded otherwise than NumPy's.
    is_wide = all(a.dtype != np.float32 for a in program.arguments)
    tolerance = 1e-12 if is_wide else 2e-5
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of empty slices
        wanted = function(*(a.copy() for a in program.arguments))
    try:
        lazy = rune_jit.jit(function, device=device)(*arguments)
    except rune_jit.UnsupportedOpError as error:
        return str(error)
    for found, want in zip(lazy, wanted, strict=True):
        computed = np.asarray(found.compute(scheduler="sync"))
        assert computed.shape == np.shape(want) == found.shape, text
        assert computed.dtype == np.asarray(want).dtype == found.dtype, text
        if np.asarray(want).dtype.kind == "f":
            scale = max(1.0, float(np.max(np.abs(want), initial=0)))
            np.testing.assert_allclose(computed, want, tolerance, scale * tolerance, err_msg=text)
        else:
            np.testing.assert_array_equal(computed, want, text)
    return None


@pytest.mark.parametrize("device", ["cpu", "interpreter"])
def test_block_programs(device: str, full: bool) -> None:
    pytest.importorskip("dask.array")
    count = (2000 if full else 120) if device == "interpreter" else (400 if full else 25)
    refused = [check(seed, device) for seed in range(count)]
    reasons = [reason for reason in refused if reason is not None]
    assert len(reasons) < 0.02 * count, "\n".join(reasons[:5])
